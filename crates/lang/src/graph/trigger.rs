//! What starts runs.

use std::collections::BTreeMap;

use cairn_core::canonical::StrictValue;
use cairn_core::catalog::schema::{closed, text, texts};
use cairn_core::plan::Trigger;
use cairn_core::text::Slug;
use serde_json::{Value, json};

use super::{Build, env, schema};
use crate::diagnostic::Code;
use crate::read::Spot;
use crate::source;

/// What every trigger can say.
const COMMON: [&str; 3] = ["entry_node", "id", "type"];

/// The settings of a type of trigger.
fn settings(kind: &str) -> Option<Value> {
    let flag = || json!({"type": "boolean"});
    Some(match kind {
        "channel" => closed(
            &json!({
                "channel": text(), "event": text(), "match": {"type": "object"},
                "match_enabled": flag(), "reply_source": flag(), "target": text(),
            }),
            &["channel"],
        ),
        "cron" => closed(
            &json!({"cron": text(), "missed": {"enum": ["skip", "once", "all"]}, "timezone": text()}),
            &["cron"],
        ),
        "error" => closed(&json!({"workflows": texts()}), &[]),
        "manual" => closed(&json!({"input": {"type": "object"}, "require_role": text()}), &[]),
        "schedule_at" => closed(&json!({"at": text()}), &["at"]),
        "webhook" => closed(
            &json!({
                "allow": texts(), "path": text(), "secret": text(),
                "respond": {"enum": ["immediately", "last_step", "respond_step"]},
                "signature": {"enum": ["standard", "github"]},
                "tolerance_sec": {"type": "integer", "minimum": 1, "maximum": 3600},
            }),
            &["path", "secret"],
        ),
        _ => return None,
    })
}

const TYPES: [&str; 6] = ["channel", "cron", "error", "manual", "schedule_at", "webhook"];

impl Build<'_> {
    /// The triggers, by id.
    pub(super) fn triggers(&self, spot: Option<Spot<'_>>) -> Vec<Trigger> {
        let mut triggers: BTreeMap<Slug, Trigger> = BTreeMap::new();
        for item in spot.map(|spot| spot.items()).unwrap_or_default() {
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
        let Some(settings) = settings(kind.filled()?) else {
            kind.unknown("type of trigger", kind.text()?, TYPES);
            return None;
        };
        let properties = settings.get("properties").and_then(Value::as_object)?;
        let mut known: Vec<&str> = properties.keys().map(String::as_str).collect();
        known.extend(COMMON);
        let fields = item.fields(&known)?;
        for (name, rule) in properties {
            fields.get(name).iter().for_each(|spot| schema::check(spot, rule));
        }
        schema::required(&settings).for_each(|name| drop(fields.need(name)));
        for (name, spot) in fields.all() {
            self.verbatim(&spot);
            if name == "secret" {
                self.signing_secret(&spot);
            }
        }
        let entry = fields.get("entry_node").map(|spot| self.target(&spot));
        let named = fields.get("id").map(|spot| env::slug(&spot));
        let config = fields.all().filter(|(name, _)| !COMMON.contains(name));
        let config = config.map(|(name, spot)| (name.to_owned(), spot.node.to_json())).collect();
        let r#type: Slug = kind.text()?.parse().ok()?;
        Some(Trigger {
            config: StrictValue(Value::Object(config)),
            entry: entry.flatten(),
            id: named.unwrap_or(Some(r#type.clone()))?,
            r#type,
        })
    }

    /// A trigger is there before any run, so no run can fill it in.
    fn verbatim(&self, spot: &Spot<'_>) {
        match &spot.node.value {
            source::Value::Text(text) if text.contains("{{") => spot.error_hint(
                Code::Unsupported,
                "`{{…}}` cannot stand in a trigger: there is no run yet",
                "write the value itself",
            ),
            source::Value::List(_) => spot.items().iter().for_each(|item| self.verbatim(item)),
            source::Value::Map(_) => {
                spot.members().iter().for_each(|(_, member)| self.verbatim(member));
            }
            _ => {}
        }
    }

    fn signing_secret(&self, spot: &Spot<'_>) {
        let Some(name) = spot.node.as_text() else { return };
        let secrets =
            self.env.values().filter(|field| field.secret).map(|field| field.name.as_str());
        if !self.env.get(name).is_some_and(|field| field.secret) {
            spot.unknown("secret", name, secrets);
        }
    }
}
