//! Conditions over a run's context, and who must agree before a run goes on.

use cairn_core::canonical::StrictValue;
use cairn_core::plan::{Condition, Confirmation, ConfirmedBy};
use cairn_core::text::Slug;
use serde_json::{Value, json};

use super::{Build, Scope};
use crate::diagnostic::Code;
use crate::read::{Fields, Spot};
use crate::source;

/// The type of these conditions in a plan.
const TYPE: &str = "context";

const FIELDS: &[&str] = &[
    "var",
    "equals",
    "not_equals",
    "gt",
    "gte",
    "lt",
    "lte",
    "in",
    "contains",
    "and",
    "or",
    "not",
];
const NUMERIC: [&str; 4] = ["gt", "gte", "lt", "lte"];

impl Build<'_> {
    /// The condition in a field, under a name of its own.
    pub(super) fn condition(&mut self, spot: Option<&Spot<'_>>, name: &str) -> Option<Slug> {
        let config = read(spot?)?;
        self.name_condition(spot?, name, config)
    }

    /// The condition under which a step or loop is begun: its own, and that of its scope.
    pub(super) fn run_condition(
        &mut self,
        fields: &Fields<'_>,
        scope: &Scope,
        id: &str,
    ) -> Option<Slug> {
        let config = within(fields, scope)?;
        self.name_condition(&fields.spot, &format!("{id}.run"), config)
    }

    pub(super) fn name_condition(
        &mut self,
        spot: &Spot<'_>,
        name: &str,
        config: Value,
    ) -> Option<Slug> {
        if name.starts_with('.') {
            // It belongs to a step without an id, which has been told already.
            return None;
        }
        let (Ok(id), Ok(r#type)) = (name.parse::<Slug>(), TYPE.parse()) else {
            spot.error(Code::TooLong, format!("the name `{name}` is too long for a condition"));
            return None;
        };
        let condition = Condition { config: StrictValue::new(config), id: id.clone(), r#type };
        self.conditions.insert(id.clone(), condition);
        Some(id)
    }

    /// Who must agree: yes or no, under a condition, or by a gate.
    pub(super) fn confirmation(&mut self, fields: &Fields<'_>, id: &str) -> Option<Confirmation> {
        let spot = fields.get("requireConfirmation")?;
        let name = format!("{id}.confirm");
        if !spot.is_map() {
            let user = Confirmation { by: ConfirmedBy::User, condition: None };
            return spot.flag()?.then_some(user);
        }
        if spot.node.get("kind").is_none() {
            let condition = self.condition(Some(&spot), &name)?;
            return Some(Confirmation { by: ConfirmedBy::User, condition: Some(condition) });
        }
        let gate = spot.fields(&["kind", "condition"])?;
        let by = gate.need("kind")?.choice(&[
            ("human_approval", ConfirmedBy::HumanApproval),
            ("coordinator_eval", ConfirmedBy::CoordinatorEval),
        ]);
        let condition = self.condition(gate.get("condition").as_ref(), &name);
        Some(Confirmation { by: by?, condition })
    }
}

/// The condition of a step or call together with that of its scope.
pub(super) fn within(fields: &Fields<'_>, scope: &Scope) -> Option<Value> {
    let own = fields.get("runCondition").and_then(|spot| read(&spot));
    match (scope.condition.clone(), own) {
        (Some(outer), Some(own)) => Some(json!({"and": [outer, own]})),
        (outer, own) => outer.or(own),
    }
}

/// The keys of the context that a condition looks at.
pub(super) fn keys(condition: &Value) -> Vec<&str> {
    match condition {
        Value::Array(items) => items.iter().flat_map(keys).collect(),
        Value::Object(members) => match members.get("var").and_then(Value::as_str) {
            Some(path) => path.split('.').take(1).collect(),
            None => members.values().flat_map(keys).collect(),
        },
        _ => Vec::new(),
    }
}

/// A condition with one operator at each level: several in one map all have to hold.
pub(super) fn read(spot: &Spot<'_>) -> Option<Value> {
    let fields = spot.fields(FIELDS)?;
    let variable = fields.get("var").and_then(|spot| path(&spot));
    let mut parts = Vec::new();
    let mut whole = true;
    for name in FIELDS.iter().skip(1) {
        let Some(operand) = fields.get(name) else { continue };
        let part = match *name {
            "and" | "or" => several(&operand).map(|inner| json!({*name: inner})),
            "not" => read(&operand).map(|inner| json!({"not": inner})),
            _ if fields.get("var").is_none() => {
                let message = format!("`{name}` compares a variable, and `var` names none");
                operand.error(Code::MissingField, message);
                None
            }
            _ => compared(&operand, name).map(|value| json!({"var": variable, *name: value})),
        };
        whole &= part.is_some();
        parts.extend(part);
    }
    if fields.get("var").is_some() && variable.is_none() {
        return None;
    }
    match (parts.len(), variable) {
        _ if !whole => None,
        (0, Some(variable)) => Some(json!({"var": variable})),
        (0, None) => {
            spot.error_hint(
                Code::InvalidValue,
                "the condition says nothing",
                "write `{\"var\": \"name\", \"equals\": true}`, or `and`, `or`, `not`",
            );
            None
        }
        (1, _) => parts.pop(),
        _ => Some(json!({"and": parts})),
    }
}

fn several(spot: &Spot<'_>) -> Option<Vec<Value>> {
    let items = spot.items();
    if spot.is_list() && items.is_empty() {
        spot.error(Code::InvalidValue, "the list of conditions is empty");
    }
    let read: Vec<Option<Value>> = items.iter().map(read).collect();
    let read: Option<Vec<Value>> = read.into_iter().collect();
    read.filter(|conditions| !conditions.is_empty())
}

/// What a variable is compared with, if it is of the type that the operator needs.
fn compared(spot: &Spot<'_>, operator: &str) -> Option<Value> {
    let fits = match &spot.node.value {
        source::Value::Number(_) => operator != "in",
        source::Value::List(_) => !NUMERIC.contains(&operator) && operator != "contains",
        source::Value::Text(_) | source::Value::Flag(_) => {
            !NUMERIC.contains(&operator) && operator != "in"
        }
        source::Value::Null | source::Value::Map(_) => {
            !NUMERIC.contains(&operator) && !["in", "contains"].contains(&operator)
        }
    };
    if !fits {
        let wanted = match operator {
            "in" => "a list",
            "contains" => "text",
            _ => "a number",
        };
        spot.error(Code::WrongType, format!("`{operator}` compares with {wanted}"));
        return None;
    }
    Some(spot.node.to_json())
}

/// A variable of the context, or a path into one.
pub(super) fn path(spot: &Spot<'_>) -> Option<String> {
    let text = spot.filled()?;
    if is_path(text) {
        return Some(text.to_owned());
    }
    spot.error_hint(
        Code::InvalidValue,
        format!("`{text}` is not the name of a variable"),
        "a name is of letters, digits, `_` and `-`; dots lead into a value",
    );
    None
}

/// Whether a text is a dotted path into the context.
pub(super) fn is_path(text: &str) -> bool {
    let safe = |c: char| c.is_alphanumeric() || c == '_' || c == '-' || c == '$';
    let starts = |part: &str| part.starts_with(|c: char| c.is_alphanumeric() || "_$".contains(c));
    text.split('.').all(|part| starts(part) && part.chars().all(safe))
}
