//! `error`: fires when a run of another workflow fails.

use std::collections::BTreeSet;
use std::sync::Arc;

use cairn_core::catalog::{SettingFault, TriggerType};
use cairn_engine::trigger::{Failures, Trigger, Watch};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::settings::{self, closed, texts};

/// The type.
pub struct Error;

#[derive(Deserialize)]
struct Input {
    #[serde(default)]
    workflows: Vec<String>,
}

/// Whose failures one trigger takes.
pub struct Filter(BTreeSet<String>);

impl Trigger for Error {
    fn kind(&self) -> TriggerType {
        let properties = json!({
            "workflows": texts("The ids of the workflows whose failures it takes; those of all that name it in `on_error` when it is left out."),
        });
        let example = json!({"type": "error", "workflows": ["project.triage"]});
        TriggerType {
            name: "error".to_owned(),
            input: closed(properties, &[], "Fires when a run of another workflow fails.", example),
            check: |config| settings::faults(config, Filter::read),
        }
    }

    fn watch(&self, config: &Value) -> Result<Watch, Vec<SettingFault>> {
        Ok(Watch::Failures(Arc::new(Filter::read(settings::read(config)?)?)))
    }
}

impl Filter {
    fn read(Input { workflows }: Input) -> Result<Self, Vec<SettingFault>> {
        let faults: Vec<SettingFault> = workflows
            .iter()
            .enumerate()
            .filter(|(_, id)| id.trim().is_empty() || id.contains(char::is_whitespace))
            .map(|(place, id)| {
                let message = format!("`{id}` is not the id of a workflow");
                SettingFault::new(format!("workflows.{place}"), message, "such as `project.triage`")
            })
            .collect();
        match faults.is_empty() {
            true => Ok(Self(workflows.into_iter().collect())),
            false => Err(faults),
        }
    }
}

impl Failures for Filter {
    fn takes(&self, workflow_id: &str) -> bool {
        self.0.is_empty() || self.0.contains(workflow_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_taken_of_the_listed_workflows() {
        let filter = |config: Value| Filter::read(settings::read(&config).unwrap());
        let one = filter(json!({"workflows": ["project.a"]})).unwrap();
        assert!(one.takes("project.a") && !one.takes("project.ab"));
        assert!(filter(json!({})).unwrap().takes("project.ab"));
        let fault = filter(json!({"workflows": ["project.a", "a b"]})).err().unwrap();
        assert_eq!(fault[0].field, "workflows.1");
    }
}
