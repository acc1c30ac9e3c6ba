//! The payload of a run, held to what its trigger asks for.
//!
//! The compiler lets values that have rules go where others may not, so no run begins with a
//! payload that breaks them, whichever way it came.

use cairn_core::catalog::{SettingFault, input};
use cairn_core::plan::{Plan, Trigger};
use cairn_core::text::Slug;
use serde_json::{Map, Value, json};

use crate::error::{Error, Result};

/// The payload that a run begins with: what was given, held to the rules of the trigger that
/// it comes from.
///
/// A run that no trigger of the plan starts is held to the rules of one as well, when all of
/// them have some: only then does the compiler rely on them.
pub fn of_run(plan: &Plan, trigger: Option<&Slug>, payload: Value) -> Result<Value> {
    match rules(plan, trigger) {
        Some(rules) => input::fill(rules, payload).map_err(|faults| invalid(&faults)),
        None => Ok(payload),
    }
}

/// The rules that a run is held to, if there are any.
pub(crate) fn rules<'p>(plan: &'p Plan, trigger: Option<&Slug>) -> Option<&'p Map<String, Value>> {
    let own = trigger.and_then(|id| plan.triggers.iter().find(|trigger| trigger.id == *id));
    let rules = |trigger: &'p Trigger| trigger.config.0.get("input").and_then(Value::as_object);
    let rules = match own {
        Some(own) => rules(own),
        None => {
            let all: Option<Vec<_>> = plan.triggers.iter().map(rules).collect();
            let manual = plan.triggers.iter().position(|one| one.r#type.as_str() == "manual");
            all.and_then(|all| all.into_iter().nth(manual.unwrap_or_default()))
        }
    };
    rules.filter(|rules| !rules.is_empty())
}

/// An input that breaks the rules, as an error.
#[must_use]
pub fn invalid(faults: &[SettingFault]) -> Error {
    let shown = |fault: &SettingFault| json!({"field": fault.field, "message": fault.message, "suggestion": fault.hint});
    let first = faults.first();
    Error::Invalid {
        message: first.map(|fault| fault.message.clone()).unwrap_or_default(),
        fix: first.map(|fault| fault.hint.clone()).unwrap_or_default(),
        details: json!({"faults": faults.iter().map(shown).collect::<Vec<_>>()}),
    }
}
