//! Functions: instructions with a name, which steps refer to.

use std::collections::BTreeSet;

use cairn_core::plan::{Action, Function, FunctionScope};
use cairn_core::text::Slug;

use super::Build;
use crate::diagnostic::Code;
use crate::read::{Fields, Spot};

/// A step's mention of a function. Which one it is shows when all loops are known.
pub(super) struct Call<'a> {
    step: Slug,
    name: String,
    spot: Spot<'a>,
}

impl<'a> Build<'a> {
    /// Reads functions that are known in this scope.
    pub(super) fn define(&mut self, list: Option<Spot<'a>>, scope: &FunctionScope) {
        for item in list.iter().flat_map(Spot::items) {
            let known = ["name", "definition", "parameters", "scope"];
            let Some(fields) = item.fields(&known) else { continue };
            let parameters = fields.get("parameters").map(|spot| parameters(&spot));
            let definition = fields.need_text("definition");
            let scope = named_scope(&fields, scope);
            let Some(spot) = fields.need("name") else { continue };
            let (Some(name), Some(mut definition)) = (spot.filled(), definition) else { continue };
            if !is_name(name) {
                let message = format!("`{name}` cannot name a function");
                spot.error_hint(Code::InvalidId, message, "use letters, digits and `_`");
                continue;
            }
            definition.push_str(&parameters.unwrap_or_default());
            let function = Function { definition, name: format!("{name}()"), scope };
            let twin = self
                .functions
                .iter()
                .find(|known| (&known.scope, &known.name) == (&function.scope, &function.name));
            match twin {
                Some(known) if *known == function => {}
                Some(_) => spot.error(Code::DuplicateId, format!("`{name}` names two functions")),
                None => self.functions.push(function),
            }
        }
    }

    /// Notes which functions a step refers to.
    pub(super) fn call(&mut self, fields: &Fields<'a>, step: &Slug) {
        for spot in fields.get("functionReferences").iter().flat_map(Spot::items) {
            let Some(given) = spot.filled() else { continue };
            let name = given.strip_suffix("()").unwrap_or(given);
            self.calls.push(Call { step: step.clone(), name: format!("{name}()"), spot });
        }
        for spot in fields.get("functionCalls").iter().flat_map(Spot::items) {
            let Some(name) = spot.node.get("name").and_then(|name| name.as_text()) else {
                continue;
            };
            self.calls.push(Call { step: step.clone(), name: format!("{name}()"), spot });
        }
    }

    /// The calls of a step as lines of its guidance.
    pub(super) fn applied(&self, fields: &Fields<'a>) -> Vec<String> {
        let mut lines = Vec::new();
        for spot in fields.get("functionCalls").iter().flat_map(Spot::items) {
            let Some(fields) = spot.fields(&["name", "args"]) else { continue };
            let arguments = fields.get("args").map(|spot| spot.members()).unwrap_or_default();
            let arguments: Vec<String> = arguments
                .iter()
                .map(|(name, value)| format!("{name} = {}", value.node.to_json()))
                .collect();
            if let Some(name) = fields.need_text("name") {
                lines.push(format!("Apply `{name}({})`.", arguments.join(", ")));
            }
        }
        lines
    }

    /// Finds what each call means: the step's own function, its loops', the workflow's.
    pub(super) fn resolve_calls(&mut self) {
        for call in std::mem::take(&mut self.calls) {
            let visible = self.visible(&call.step);
            if !visible.contains(call.name.as_str()) {
                call.spot.unknown("function", &call.name, visible);
                continue;
            }
            let step = self.steps.iter_mut().find(|step| step.id == call.step);
            if let Some(Action::Prompt(prompt)) = step.map(|step| &mut step.action)
                && !prompt.functions.contains(&call.name)
            {
                prompt.functions.push(call.name);
            }
        }
    }

    fn visible(&self, step: &Slug) -> BTreeSet<&str> {
        let mut around: Vec<&Slug> = vec![step];
        // A loop can only be entered once on the way out, so this ends.
        while let Some(outer) = self.loops.iter().find(|known| {
            around.last().is_some_and(|inner| known.body.contains(inner))
                && !around.contains(&&known.id)
        }) {
            around.push(&outer.id);
        }
        let known = |function: &&Function| match &function.scope {
            FunctionScope::Step { step_id: id } | FunctionScope::Loop { loop_id: id } => {
                around.contains(&id)
            }
            FunctionScope::Workflow {} => true,
        };
        self.functions.iter().filter(known).map(|function| function.name.as_str()).collect()
    }
}

/// The scope that a function names, when it is one that reaches further than its place.
fn named_scope(fields: &Fields<'_>, place: &FunctionScope) -> FunctionScope {
    let Some(spot) = fields.get("scope") else { return place.clone() };
    let rank = |scope: &FunctionScope| match scope {
        FunctionScope::Step { .. } => 0,
        FunctionScope::Loop { .. } => 1,
        FunctionScope::Workflow {} => 2,
    };
    match spot.choice(&[("step", 0), ("loop", 1), ("workflow", 2)]) {
        Some(2) => FunctionScope::Workflow {},
        Some(given) if given != rank(place) => {
            let message = "the function is known where it stands, not in the scope it names";
            spot.warn(Code::FieldIgnored, message, "leave `scope` out, or move the function");
            place.clone()
        }
        _ => place.clone(),
    }
}

fn parameters(list: &Spot<'_>) -> String {
    let mut text = String::new();
    for item in list.items() {
        let known = ["name", "type", "required", "description", "enum", "default"];
        let Some(fields) = item.fields(&known) else { continue };
        let kinds = ["string", "number", "boolean", "array", "object"].map(|kind| (kind, kind));
        let kind = fields.need("type").and_then(|spot| spot.choice(&kinds));
        let (Some(name), Some(kind)) = (fields.need_text("name"), kind) else { continue };
        let optional = if fields.flag("required") == Some(true) { "" } else { ", optional" };
        text.push_str(&format!("\n- {name} ({kind}{optional})"));
        if let Some(about) = fields.text("description") {
            text.push_str(&format!(": {about}"));
        }
        if let Some(values) = fields.get("enum") {
            text.push_str(&format!("; one of {}", values.node.to_json()));
        }
        if let Some(value) = fields.get("default") {
            text.push_str(&format!("; {} by default", value.node.to_json()));
        }
    }
    text
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
