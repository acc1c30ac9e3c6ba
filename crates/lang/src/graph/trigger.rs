//! What starts runs.

use std::collections::BTreeMap;

use cairn_core::canonical::StrictValue;
use cairn_core::catalog::{SECRET_NAME, SettingFault, TriggerType};
use cairn_core::plan::{Overflow, Trigger};
use cairn_core::text::Slug;
use serde_json::Value;

use super::limits::TRIGGERS_MAX;
use super::{Build, env, schema};
use crate::diagnostic::{Code, nearest};
use crate::read::{Fields, Spot};
use crate::source;

/// What every trigger can say.
const COMMON: [&str; 4] = ["entry_node", "id", "overflow", "type"];

impl Build<'_> {
    /// The triggers, by id.
    pub(super) fn triggers(&self, spot: Option<Spot<'_>>) -> Vec<Trigger> {
        let mut triggers: BTreeMap<Slug, Trigger> = BTreeMap::new();
        let items = spot.as_ref().map(|spot| spot.items()).unwrap_or_default();
        if let Some(spot) = spot.filter(|_| items.len() > TRIGGERS_MAX) {
            let message =
                format!("there are {} triggers; at most {TRIGGERS_MAX} may be", items.len());
            spot.error_hint(Code::TooLong, message, "move a part into a workflow of its own");
        }
        for item in items.into_iter().take(TRIGGERS_MAX) {
            let Some(mut trigger) = self.trigger(&item) else { continue };
            if item.node.get("id").is_none() {
                let taken = |id: &Slug| triggers.contains_key(id);
                let names = (2..).map(|n| format!("{}-{n}", trigger.r#type));
                let free = names.filter_map(|name| name.parse().ok()).find(|id| !taken(id));
                trigger.id =
                    if taken(&trigger.id) { free.unwrap_or(trigger.id) } else { trigger.id };
            } else if triggers.contains_key(&trigger.id) {
                item.error(Code::DuplicateId, format!("`{}` names two triggers", trigger.id));
            }
            triggers.insert(trigger.id.clone(), trigger);
        }
        triggers.into_values().collect()
    }

    fn trigger(&self, item: &Spot<'_>) -> Option<Trigger> {
        if !item.is_map() {
            item.wrong_type("a map");
            return None;
        }
        let Some(kind) = item.node.get("type") else {
            item.error(Code::MissingField, "the field `type` is missing");
            return None;
        };
        let kind = item.child("type", kind);
        let Some(known) = self.catalog.trigger(kind.filled()?) else {
            let names = self.catalog.triggers().map(|known| known.name.as_str());
            kind.unknown("type of trigger", kind.text()?, names);
            return None;
        };
        let fields = self.trigger_settings(item, known)?;
        let entry = fields.get("entry_node").map(|spot| self.target(&spot));
        let named = fields.get("id").map(|spot| env::slug(&spot));
        let config = fields.all().filter(|(name, _)| !COMMON.contains(name));
        let config = config.map(|(name, spot)| (name.to_owned(), spot.node.to_json())).collect();
        let config = Value::Object(config);
        let r#type: Slug = kind.text()?.parse().ok()?;
        let templates = fields.all().filter(|(_, spot)| !is_verbatim(spot)).count();
        if templates == 0 {
            (known.check)(&config).iter().for_each(|fault| told(&fields, fault));
        }
        Some(Trigger {
            config: StrictValue::new(config),
            entry: entry.flatten(),
            id: named.unwrap_or(Some(r#type.clone()))?,
            overflow: fields.get("overflow").and_then(|spot| overflow(&spot)),
            r#type,
        })
    }

    /// The settings of a trigger, held to the schema of its type.
    fn trigger_settings<'s>(&self, item: &Spot<'s>, kind: &TriggerType) -> Option<Fields<'s>> {
        let properties = kind.input.get("properties").and_then(Value::as_object)?;
        let mut known: Vec<&str> = properties.keys().map(String::as_str).collect();
        known.extend(COMMON);
        let fields = item.fields(&known)?;
        for (name, rule) in properties {
            let Some(spot) = fields.get(name) else { continue };
            schema::check(&spot, rule);
            if rule.get("format").and_then(Value::as_str) == Some(SECRET_NAME) {
                self.signing_secret(&spot);
            }
        }
        schema::required(&kind.input).for_each(|name| drop(fields.need(name)));
        Some(fields)
    }

    fn signing_secret(&self, spot: &Spot<'_>) {
        let Some(name) = spot.node.as_text() else { return };
        let secrets =
            self.env.values().filter(|field| field.secret).map(|field| field.name.as_str());
        if self.env.get(name).is_some_and(|field| field.secret) {
            return;
        }
        let secrets: Vec<&str> = secrets.collect();
        if nearest(name, secrets.iter().copied()).is_some() {
            return spot.unknown("secret", name, secrets);
        }
        let message = format!("there is no secret `{name}`");
        let hint = format!(
            "declare it: `env: [{{ name: {name}, widget: secret }}]`; `cairn secret set {name} \
             --generate` then gives it a value"
        );
        spot.error_hint(Code::UnknownName, message, hint);
    }
}

fn overflow(spot: &Spot<'_>) -> Option<Overflow> {
    let text = spot.text()?;
    let known = Overflow::ALL.into_iter().find(|(name, _)| *name == text);
    if known.is_none() {
        spot.unknown("overflow", text, Overflow::ALL.into_iter().map(|(name, _)| name));
    }
    known.map(|(_, overflow)| overflow)
}

/// Whether a value says all there is: a trigger is there before any run, so no run can fill
/// it in.
fn is_verbatim(spot: &Spot<'_>) -> bool {
    match &spot.node.value {
        source::Value::Text(text) if text.contains("{{") => {
            spot.error_hint(
                Code::Unsupported,
                "`{{…}}` cannot stand in a trigger: there is no run yet",
                "write the value itself",
            );
            false
        }
        source::Value::List(_) => {
            spot.items().iter().filter(|item| !is_verbatim(item)).count() == 0
        }
        source::Value::Map(_) => {
            spot.members().iter().filter(|(_, member)| !is_verbatim(member)).count() == 0
        }
        _ => true,
    }
}

/// Says what is wrong with a setting, where it stands.
pub(super) fn told(fields: &Fields<'_>, fault: &SettingFault) {
    let mut names = fault.field.split('.');
    let first = names.next().and_then(|name| fields.get(name));
    let spot = names.fold(first.unwrap_or_else(|| fields.spot.clone()), |spot, name| {
        let inner = match &spot.node.value {
            source::Value::List(items) => name.parse().ok().and_then(|at: usize| items.get(at)),
            _ => spot.node.get(name),
        };
        inner.map_or_else(|| spot.clone(), |node| spot.child(name, node))
    });
    spot.error_hint(Code::InvalidValue, &fault.message, &fault.hint);
}
