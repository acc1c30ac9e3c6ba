//! What a request for a run is held to.

use cairn_core::canonical;
use cairn_core::event::limits;
use cairn_core::plan::{Mode, Plan, Trigger};
use cairn_core::text::Slug;
use serde_json::{Value, json};

use super::Roles;
use crate::error::{Error, Result};
use crate::flow::payload;
use crate::trigger::input;

/// How deep what starts a run may nest.
pub(in crate::flow) const PAYLOAD_DEPTH_MAX: usize = 48;
/// How many bytes of it there may be.
const PAYLOAD_MAX: usize = 4 << 20;

/// Whether a run can begin where it is asked for.
pub(super) fn require_start(plan: &Plan, trigger: Option<&Slug>) -> Result<()> {
    if plan.mode() == Mode::Guided {
        return Err(led(plan));
    }
    let is_named = plan.triggers.iter().any(|known| Some(&known.id) == trigger);
    if !is_named && plan.entry.is_empty() {
        return Err(no_entry(plan));
    }
    Ok(())
}

/// Whoever starts a run by hand needs the role of the trigger, or every role that the workflow
/// asks of people when the run begins at a trigger that is not for them.
pub(in crate::flow) fn require_role(
    plan: &Plan,
    trigger: Option<&Slug>,
    roles: &Roles,
) -> Result<()> {
    let asked = |trigger: &Trigger| {
        let role = trigger.config.0.get("require_role").and_then(Value::as_str);
        (trigger.r#type.as_str() == "manual").then_some((trigger.id.clone(), role?.to_owned()))
    };
    let asked: Vec<(Slug, String)> = plan.triggers.iter().filter_map(asked).collect();
    let is_manual =
        |known: &Trigger| known.r#type.as_str() == "manual" && Some(&known.id) == trigger;
    let is_for_people = plan.triggers.iter().any(is_manual);
    let own = asked.into_iter().filter(|(id, _)| !is_for_people || Some(id) == trigger);
    match own.into_iter().find(|(_, role)| !roles.has(role)) {
        Some((_, role)) => Err(Error::RoleMissing { role }),
        None => Ok(()),
    }
}

/// Why a run that names no trigger cannot begin.
fn led(plan: &Plan) -> Error {
    let id = &plan.workflow_id;
    Error::Invalid {
        message: format!(
            "`{id}` leads an agent or a person through its steps: it cannot run by itself"
        ),
        fix: format!("go through it with `cairn guide {id}`, or let an agent start it over MCP"),
        details: json!({"field": "workflow"}),
    }
}

fn no_entry(plan: &Plan) -> Error {
    let triggers: Vec<&str> = plan.triggers.iter().map(|trigger| trigger.id.as_str()).collect();
    Error::Invalid {
        message: format!("runs of `{}` begin at its triggers, and none is named", plan.workflow_id),
        fix: format!("say which it is (`--trigger`, or `trigger`): {}", triggers.join(", ")),
        details: json!({"field": "trigger", "known": triggers}),
    }
}

/// An event whose payload a plan allows.
pub(in crate::flow) fn fitting(
    plan: &Plan,
    trigger: Option<&Slug>,
    mut event: Value,
) -> Result<Value> {
    let Some(payload) = event.get_mut("payload") else { return Ok(event) };
    *payload = input::of_run(plan, trigger, payload.take())?;
    Ok(event)
}

/// Whether what came in can be recorded.
pub(in crate::flow) fn require_recordable(event: &Value, key: Option<&str>) -> Result<()> {
    let invalid = |message: String, fix: String| {
        Err(Error::Invalid { message, fix, details: json!({"field": "event"}) })
    };
    let payload = event.get("payload").unwrap_or(&Value::Null);
    if let Err(error) = canonical::check(payload, PAYLOAD_DEPTH_MAX) {
        let fix = format!("nest it no deeper than {PAYLOAD_DEPTH_MAX} levels");
        return invalid(format!("the event cannot be recorded: {error}"), fix);
    }
    if !payload::fits(payload, PAYLOAD_MAX)? {
        let fix = "send where it is to be found, such as a path or an address".to_owned();
        return invalid("the event has more than 4 MiB".to_owned(), fix);
    }
    match key.map_or(1, str::len) {
        1..=limits::NAME => Ok(()),
        length => invalid(
            format!("the event's key has {length} bytes"),
            format!("send one of 1 to {} bytes", limits::NAME),
        ),
    }
}
