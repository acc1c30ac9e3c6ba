//! The settings of a step as the plan carries them: checked, and in one spelling.

use std::collections::BTreeSet;

use cairn_core::catalog::{Cases, StepSettings, StepType, Takes};
use cairn_core::expression::{Expr, Fault, Template};
use cairn_core::text::Slug;
use serde_json::{Map, Value, json};

use super::command::TRUSTS;
use super::flow::Flow;
use super::node::COMMON;
use super::reference::{Look, SecretsAllowed, Written};
use super::{Build, Draft, fault, form, trigger};
use crate::diagnostic::Code;
use crate::read::Spot;
use crate::source;

/// How many bytes the settings of a step may have.
const CONFIG_MAX: usize = 256 << 10;

/// Whether the expression of a `transform` is a template.
fn is_template(draft: &Draft<'_>) -> bool {
    let Some(fields) = draft.fields.as_ref().filter(|_| draft.is("transform")) else {
        return false;
    };
    let engine = fields.get("engine");
    let engine = engine.as_ref().and_then(|spot| spot.node.as_text());
    matches!(engine, Some("gotemplate" | "template")) && fields.get("expression").is_some()
}

impl Build<'_> {
    /// The settings of a step.
    pub(super) fn config(&self, place: usize, flow: &Flow) -> Map<String, Value> {
        self.settings(place);
        let mut config = Map::new();
        let mut is_whole = true;
        let Some(draft) = self.drafts.get(place) else { return config };
        let Some(fields) = &draft.fields else { return config };
        if draft.kind.is_none() {
            return config;
        }
        for (name, spot) in
            fields.all().filter(|(name, _)| !COMMON.contains(name) && *name != "branches")
        {
            let takes = draft.kind.map(|kind| kind.takes(&[name]));
            if name == "expression" && is_template(draft) {
                // Every spelling of templates is read, so their engine has nothing left to say.
                let text = spot.filled().map(|text| Written { spot: &spot, text, is_file: false });
                let text = text.and_then(|text| self.text(place, flow, &text, Takes::Values));
                config.extend(text.map(|text| ("template".to_owned(), Value::String(text))));
                continue;
            }
            if name == "engine" && is_template(draft) {
                continue;
            }
            let value = match takes {
                Some(Takes::Command) => self.command(place, flow, &spot, fields, &mut config),
                Some(Takes::Arguments) => self.arguments(place, flow, &spot, fields, &mut config),
                _ => self.value(place, flow, &spot, &mut vec![name]),
            };
            match name {
                "env" => self.environment(place, flow, &spot),
                TRUSTS => self.trusting(place, &spot),
                _ => {}
            }
            // What is refused is told of, and not again as something that is missing.
            is_whole &= value.is_some();
            if let Some(value) = value {
                match takes {
                    Some(Takes::AssetFor(other)) => {
                        if let Some(spot) = fields.get(other) {
                            let message = format!("the step has both `{name}` and `{other}`");
                            spot.error_hint(Code::Conflict, message, "keep one of them");
                        }
                        config.insert(other.to_owned(), value);
                    }
                    _ => drop(config.insert(name.to_owned(), value)),
                }
            }
        }
        if draft.is("merge") {
            let from = self.links.iter().filter(|link| link.to == place && !link.fails);
            let from: BTreeSet<usize> = from.map(|link| link.from).collect();
            let inputs: Vec<&Slug> = from.iter().filter_map(|from| self.id(*from)).collect();
            config.entry("inputs").or_insert(json!(inputs));
            config.entry("strategy").or_insert(json!("object"));
        }
        if let Some(Cases::Listed(field)) = draft.kind.map(|kind| &kind.cases) {
            let cases: Vec<&str> = self.named_cases(place);
            config.entry(*field).or_insert(json!(cases));
        }
        if let Some(spot) = fields.get("on_expire").filter(|_| draft.is("human"))
            && config.get("on_expire") == Some(&json!("approve"))
            && config.get("approves_unattended") != Some(&json!(true))
        {
            let message = "what nobody looked at would count as approved";
            let hint =
                "add `approves_unattended: true` if that is meant, or write `on_expire: reject`";
            spot.error_hint(Code::InvalidValue, message, hint);
        }
        self.programs(draft);
        let whole = Value::Object(config);
        let settings = StepSettings { config: &whole, file: &|path| self.bytes_of(path) };
        let check = |kind: &StepType| (kind.check)(&settings);
        for fault in draft.kind.filter(|_| is_whole).map(check).unwrap_or_default() {
            trigger::told(fields, &fault);
        }
        let Value::Object(config) = whole else { return Map::new() };
        let bytes = Value::Object(config.clone()).to_string().len();
        if bytes > CONFIG_MAX {
            let message = format!("the step has {bytes} bytes; at most {CONFIG_MAX} may be");
            draft.spot.error_hint(
                Code::TooLong,
                message,
                "keep long texts in files under `nodes/`",
            );
        }
        config
    }

    /// A value, with what is in it held to what may flow to its place.
    pub(super) fn value<'s>(
        &self,
        here: usize,
        flow: &Flow,
        spot: &Spot<'s>,
        path: &mut Vec<&'s str>,
    ) -> Option<Value> {
        let kind = self.drafts.get(here)?.kind?;
        let takes = kind.takes(path);
        match takes {
            Takes::Asset => return self.asset(spot).map(|path| json!(path)),
            Takes::AssetFor(field) => {
                return self
                    .asset_text(here, flow, spot, kind.takes(&[field]))
                    .map(|text| json!(text));
            }
            Takes::Expression => return self.expression(here, flow, spot).map(|text| json!(text)),
            Takes::Schema => return form::read(spot),
            Takes::Steps => return Some(spot.node.to_json()),
            _ => {}
        }
        match &spot.node.value {
            source::Value::Text(text) => {
                let written = Written { spot, text, is_file: false };
                // Whoever names parameters says nothing that a secret could be in.
                let members = kind.members_take(path);
                if let Some(members) = members.filter(|takes| *takes != Takes::BoundSecrets) {
                    return self.members(here, flow, &written, members);
                }
                self.text(here, flow, &written, takes).map(Value::String)
            }
            source::Value::List(_) => {
                let items = spot.items();
                let value = |item: &Spot<'s>, path: &mut Vec<&'s str>| {
                    path.push("0");
                    let value = self.value(here, flow, item, path);
                    path.pop();
                    value
                };
                Some(items.iter().filter_map(|item| value(item, path)).collect())
            }
            source::Value::Map(_) => {
                let mut members = Map::new();
                for (name, member) in spot.members() {
                    path.push(name);
                    let value = self.value(here, flow, &member, path);
                    path.pop();
                    members.extend(value.map(|value| (name.to_owned(), value)));
                }
                Some(Value::Object(members))
            }
            _ => Some(spot.node.to_json()),
        }
    }

    /// A template that stands for a whole list or map, whose members take only some things.
    fn members(
        &self,
        here: usize,
        flow: &Flow,
        written: &Written<'_, '_>,
        takes: Takes,
    ) -> Option<Value> {
        let template = self.template(here, flow, written, SecretsAllowed::None)?;
        if !matches!(takes, Takes::Prompt | Takes::Values | Takes::Secrets) {
            if !template.is_plain() {
                let message = "`{{…}}` cannot stand here: a run does not change it";
                written.spot.error_hint(Code::TaintedValue, message, "write the list or map out");
            }
            return None;
        }
        let field = written.spot.pointer.rsplit('/').next().unwrap_or_default();
        let what = format!("name what is in `{field}`");
        template.values().for_each(|expr| self.refuse(here, written, expr, &what));
        Some(json!(template.to_string()))
    }

    /// Text, with its expressions in the plan's spelling.
    pub(super) fn text(
        &self,
        here: usize,
        flow: &Flow,
        written: &Written<'_, '_>,
        takes: Takes,
    ) -> Option<String> {
        if takes == Takes::Literal {
            return self.literal(written);
        }
        let template = self.template(here, flow, written, SecretsAllowed::into(takes))?;
        Some(match takes {
            Takes::Address => self.address(here, written, template).to_string(),
            Takes::Prompt => self.prompt(here, template).to_string(),
            Takes::Own => {
                let what = "say who does the work or what they may do";
                template.values().for_each(|expr| self.refuse(here, written, expr, what));
                template.to_string()
            }
            _ => template.to_string(),
        })
    }

    /// Text that stays as it is written, because a program is made of it.
    fn literal(&self, written: &Written<'_, '_>) -> Option<String> {
        if let Some(at) = written.text.find("{{").or_else(|| written.text.find("{%")) {
            let at = self.position(written, at);
            let message = "`{{…}}` cannot stand here: what a run brings is data, not program text";
            let hint =
                "hand the value over as an argument: in SQL as `$1` with `args`, in jq as `input`";
            written.spot.error_at(at, Code::TaintedValue, message, Some(hint.to_owned()));
            return None;
        }
        Some(written.text.to_owned())
    }

    /// A template that looks only at what is there.
    pub(super) fn template(
        &self,
        here: usize,
        flow: &Flow,
        written: &Written<'_, '_>,
        secrets: SecretsAllowed,
    ) -> Option<Template> {
        match self.read_template(written.text) {
            Err(fault) => self.fault(written, fault),
            Ok(template) => {
                let guarded = template.values().flat_map(Expr::guarded);
                let guarded = guarded.chain(self.guarded_by_when(here)).collect();
                let look = Look { here, flow, secrets, turns: false, guarded };
                for (expr, names) in template.scoped() {
                    self.looked_at(&look, written, expr, &names);
                }
                Some(template)
            }
        }
    }

    /// One expression, which fills the value.
    pub(super) fn expression(&self, here: usize, flow: &Flow, spot: &Spot<'_>) -> Option<String> {
        self.expression_after(here, flow, spot, false)
    }

    /// One expression, which may look at the last turn of the loop it stands in.
    pub(super) fn expression_after(
        &self,
        here: usize,
        flow: &Flow,
        spot: &Spot<'_>,
        turns: bool,
    ) -> Option<String> {
        let text = spot.filled()?;
        let written = Written { spot, text, is_file: false };
        match self.read_expression(text) {
            Err(fault) => self.fault(&written, fault),
            Ok(expr) => {
                let (secrets, guarded) = (SecretsAllowed::None, expr.guarded());
                let look = Look { here, flow, secrets, turns, guarded };
                self.looked_at(&look, &written, &expr, &[]);
                Some(expr.to_string())
            }
        }
    }

    fn fault<T>(&self, written: &Written<'_, '_>, fault: Fault) -> Option<T> {
        let (at, code, message, hint) = fault::told(fault);
        written.spot.error_at(self.position(written, at), code, message, hint);
        None
    }
}
