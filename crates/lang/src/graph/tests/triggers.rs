//! A small fixed list of triggers, and how mistakes in them are told.

use cairn_core::catalog::schema::{closed, text, texts};
use cairn_core::catalog::{SECRET_NAME, SettingFault, TriggerType};
use insta::assert_snapshot;
use serde_json::{Value, json};

use super::{compile, lines};

pub(super) fn all() -> Vec<TriggerType> {
    let kind =
        |name: &str, input: Value, check| TriggerType { name: name.to_owned(), input, check };
    let secret = json!({"type": "string", "format": SECRET_NAME});
    vec![
        kind(
            "channel",
            closed(
                &json!({"channel": text(), "event": text(), "match": {"type": "object"}}),
                &["channel"],
            ),
            |_| Vec::new(),
        ),
        kind(
            "cron",
            closed(
                &json!({"cron": text(), "missed": {"enum": ["skip", "once", "all"]}, "timezone": text()}),
                &["cron"],
            ),
            |config| match config["cron"] == "never" {
                true => vec![SettingFault::new("cron", "`never` is no time", "write `* * * * *`")],
                false => Vec::new(),
            },
        ),
        kind(
            "manual",
            closed(&json!({"input": {"type": "object"}, "require_role": text()}), &[]),
            |_| Vec::new(),
        ),
        kind(
            "webhook",
            closed(
                &json!({
                    "allow": texts(), "path": text(), "secret": secret,
                    "respond": {"enum": ["immediately", "last_step", "respond_step"]},
                }),
                &["path", "secret"],
            ),
            |config| {
                let allowed = config["allow"].as_array().cloned().unwrap_or_default();
                let bad = allowed.iter().enumerate().filter(|(_, range)| *range == "all");
                bad.map(|(place, _)| {
                    SettingFault::new(format!("allow.{place}"), "`all` is no range", "write `::/0`")
                })
                .chain(
                    config
                        .get("mode")
                        .map(|_| SettingFault::new("mode", "not here", "leave it out")),
                )
                .collect()
            },
        ),
    ]
}

#[test]
fn what_a_type_finds_wrong_is_told_where_it_stands() {
    let text = "
name: Test
env: [{ name: KEY, widget: secret }]
triggers:
  - { type: cron, cron: never }
  - { type: crom, cron: never }
  - type: webhook
    path: /x
    secret: KEY
    allow:
      - 10.0.0.0/8
      - all
  - { type: webhook, path: /y, secret: KEY, alow: [all], allow: 7 }
  - { type: webhook, path: '/{{ env.X }}', secret: KEY, allow: [all] }
graph:
  nodes: [{ id: a, type: log, message: a }]
";
    assert_snapshot!(lines(&compile(text).unwrap_err()), @r"
    w/workflow.yaml:5:25: error[invalid_value] /triggers/0/cron: `never` is no time; write `* * * * *`
    w/workflow.yaml:6:13: error[unknown_name] /triggers/1/type: there is no type of trigger `crom`; did you mean `cron`?
    w/workflow.yaml:12:9: error[invalid_value] /triggers/2/allow/1: `all` is no range; write `::/0`
    w/workflow.yaml:13:45: error[unknown_field] /triggers/3/alow: the field `alow` is not known here; did you mean `allow`?
    w/workflow.yaml:13:65: error[wrong_type] /triggers/3/allow: a list should stand here, not a number
    w/workflow.yaml:14:28: error[unsupported] /triggers/4/path: `{{…}}` cannot stand in a trigger: there is no run yet; write the value itself
    ");
}
