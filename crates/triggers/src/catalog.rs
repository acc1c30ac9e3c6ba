//! Every type of trigger there is.

use std::sync::Arc;

use cairn_engine::trigger::Triggers;

use crate::channel::{Channel, Channels};
use crate::cron::Cron;
use crate::error::Error;
use crate::manual::Manual;
use crate::schedule_at::ScheduleAt;
use crate::webhook::Webhook;

/// Every type of trigger, in alphabetical order, with the channels that messages come from.
#[must_use]
pub fn all(channels: Channels) -> Triggers {
    Triggers::new(vec![
        Arc::new(Channel::new(channels)),
        Arc::new(Cron),
        Arc::new(Error),
        Arc::new(Manual),
        Arc::new(ScheduleAt),
        Arc::new(Webhook),
    ])
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use cairn_core::catalog::Catalog;
    use cairn_core::catalog::{Class, StepType};
    use cairn_lang::graph;
    use cairn_lang::ids::SourceKind;
    use cairn_lang::source::SourceTree;
    use serde_json::json;

    use super::*;

    /// What the compiler says about a workflow with these triggers.
    fn told(triggers: &str) -> String {
        let text = format!(
            "name: T\nenv: [{{name: KEY, widget: secret}}]\ntriggers:\n{triggers}graph: {{nodes: [{{id: a, type: stop}}]}}\n"
        );
        let files = BTreeMap::from([("w.yaml".to_owned(), text.into_bytes())]);
        let tree = SourceTree { kind: SourceKind::Project, files, library: BTreeMap::new() };
        let input = json!({"type": "object", "properties": {}});
        let stop = StepType::new("stop", Class::Pure, input, json!({}));
        let types = Catalog::new([stop]).with_triggers(all(Channels::default()).kinds());
        match graph::compile(&tree, "w.yaml", &types) {
            Ok(_) => String::new(),
            Err(found) => found.iter().map(|found| format!("{found}\n")).collect(),
        }
    }

    #[test]
    fn a_wrong_trigger_is_told_with_its_line_and_column() {
        for (trigger, wanted) in [
            ("cron, cron: '61 * * * *'", "w.yaml:4:25: error[invalid_value] /triggers/0/cron"),
            ("cron, cron: '*/0 * * * *'", "w.yaml:4:25: error[invalid_value]"),
            ("cron, cron: 0 0 30 2 *", "there is no such day"),
            ("cron, cron: '@reboot'", "a start of the machine is no time"),
            (
                "cron, cron: '@daily', timezone: Mars/Base",
                "/triggers/0/timezone: there is no time zone",
            ),
            ("cron, cron: '@daily', missed: twice", "is not one of `skip`, `once`, `all`"),
            ("schedule_at, at: tomorrow", "/triggers/0/at: `tomorrow` is not an instant"),
            ("schedule_at, at: '2019-01-01T00:00:00Z'", "lies in the past"),
            (
                "webhook, path: /x, secret: KEY, allow: [10.0.0.0/8, 10.0.0.0/99]",
                "/triggers/0/allow/1: `10.0.0.0/99`",
            ),
            ("webhook, path: /x, secret: KEYS", "there is no secret `KEYS`; did you mean `KEY`?"),
            ("webhook, path: /x", "the field `secret` is missing"),
            ("webhook, path: x, secret: KEY", "/triggers/0/path: `x` is not a path"),
            ("manual, input: { n: { type: int } }", "/triggers/0/input/n/type: `n` is of no type"),
            ("channel, channel: slack, match: { mode: grey }", "/triggers/0/match/mode"),
            ("error, workflows: ['a b']", "/triggers/0/workflows/0"),
            ("crom", "there is no type of trigger `crom`; did you mean `cron`?"),
        ] {
            let told = told(&format!("  - {{ type: {trigger} }}\n"));
            assert!(told.contains(wanted) && told.lines().count() == 1, "{trigger}: {told}");
        }
    }

    #[test]
    fn every_type_has_an_example_that_compiles() {
        for kind in all(Channels::default()).kinds() {
            let mut example = kind.input["examples"][0].clone();
            assert_eq!(example["type"], json!(kind.name));
            if kind.name == "webhook" {
                example["secret"] = json!("KEY");
            }
            assert_eq!(told(&format!("  - {example}\n")), "", "{example}");
        }
    }
}
