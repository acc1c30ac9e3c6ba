//! `error`: fires when a run of another workflow fails.

use cairn_core::catalog::{SettingFault, TriggerType};
use cairn_engine::trigger::{Trigger, Watch};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::settings::{self, closed, text, texts};

/// The type.
pub struct Error;

#[derive(Deserialize)]
struct Input {
    #[serde(default)]
    workflows: Vec<String>,
}

impl Trigger for Error {
    fn kind(&self) -> TriggerType {
        let properties = json!({
            "workflows": texts("The ids of the workflows whose failures it takes; those of all that name it in `on_error` when it is left out."),
        });
        let example = json!({"type": "error", "workflows": ["project.triage"]});
        TriggerType {
            name: "error".to_owned(),
            input: closed(properties, &[], "Fires when a run of another workflow fails.", example),
            payload: Some(payload()),
            check: |config| settings::faults(config, checked),
        }
    }

    fn watch(&self, config: &Value) -> Result<Watch, Vec<SettingFault>> {
        checked(settings::read(config)?).map(|()| Watch::Failures)
    }
}

/// What the engine tells of a failure. What is not known is null, but for `truncated`.
fn payload() -> Value {
    let any = |what: &str| json!({"description": what});
    let properties = json!({
        "attempt": {"type": "integer", "description": "1, or one more than the attempt of the failure that led to the run."},
        "code": text("The stable name of the error."),
        "error": text("Why the run failed, in words."),
        "event": {"type": "object", "description": "The event that the failed run was given."},
        "failed_node": text("The step at which it failed."),
        "output": any("What came out of the last try of that step."),
        "run_id": text("The run that failed."),
        "state": {"type": "object", "description": "The status and the error of each step."},
        "steps": {"type": "object", "description": "The outputs of the steps that were done."},
        "tries": {"type": "integer", "description": "How often the failed step was tried."},
        "truncated": {"type": "boolean", "default": false, "description": "Whether something was too large to be told."},
        "workflow": text("The id of the workflow."),
    });
    let names: Vec<String> =
        properties.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect();
    json!({
        "type": "object", "properties": properties, "required": names,
        "additionalProperties": false,
    })
}

/// Whether ids are ids.
fn checked(Input { workflows }: Input) -> Result<(), Vec<SettingFault>> {
    let faults: Vec<SettingFault> = workflows
        .iter()
        .enumerate()
        .filter(|(_, id)| id.trim().is_empty() || id.contains(char::is_whitespace))
        .map(|(place, id)| {
            let message = format!("`{id}` is not the id of a workflow");
            SettingFault::new(format!("workflows.{place}"), message, "such as `project.triage`")
        })
        .collect();
    if faults.is_empty() { Ok(()) } else { Err(faults) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workflows_are_named_by_their_ids() {
        let check = |config: Value| checked(settings::read(&config).unwrap());
        assert_eq!(check(json!({"workflows": ["project.a"]})), Ok(()));
        let faults = check(json!({"workflows": ["project.a", "a b"]})).unwrap_err();
        assert_eq!(faults[0].field, "workflows.1");
    }
}
