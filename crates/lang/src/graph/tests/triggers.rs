//! A small fixed list of triggers, and how mistakes in them are told.

use cairn_core::catalog::schema::{closed, text, texts};
use cairn_core::catalog::{SECRET_NAME, SettingFault, TriggerType};
use insta::assert_snapshot;
use serde_json::{Value, json};

use super::{compile, lines};

pub(super) fn all() -> Vec<TriggerType> {
    let kind = |name: &str, input: Value, check| TriggerType {
        name: name.to_owned(),
        input,
        payload: (name == "cron")
            .then(|| closed(&json!({"scheduled_at": text()}), &["scheduled_at"])),
        check,
    };
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

/// What is told about a log of this message, with these triggers.
fn logged(triggers: &str, message: &str) -> String {
    let text = format!(
        "
name: Test
triggers:
{triggers}
graph:
  entry: a
  nodes:
    - {{ id: a, type: log, message: first, next: b }}
    - id: b
      type: log
      message: '{message}'
"
    );
    match compile(&text) {
        Ok(compiled) => lines(&compiled.warnings),
        Err(found) => lines(&found),
    }
}

#[test]
fn a_payload_has_what_the_triggers_ask_for_and_nothing_else() {
    let one = "  - { type: manual, input: { who: { type: string, required: true }, days: { type: integer } } }";
    assert_snapshot!(logged(one, "{{ event.payload.whoo }}"), @"w/workflow.yaml:11:34: error[unknown_field] /graph/nodes/1/message: no trigger that leads here gives a run `whoo`; did you mean `who`?");
    assert_snapshot!(logged(one, "{{ .Event.Payload.hosts | default(\"x\") }}"), @"w/workflow.yaml:11:35: error[unknown_field] /graph/nodes/1/message: no trigger that leads here gives a run `hosts`; known are `days`, `who`");
    let fine = ["event.payload.who", "event.payload", "event.payload.who.x", "event.source.x"];
    for message in fine.map(|read| format!("{{{{ {read} }}}}")) {
        assert_eq!(logged(one, &message), "", "{message}");
    }
}

#[test]
fn a_payload_of_several_triggers_may_have_what_one_of_them_asks_for() {
    let who = "  - { type: manual, input: { who: { type: string } } }";
    let other = "  - { type: manual, id: other, input: { host: { type: string } } }";
    let both = format!("{who}\n{other}");
    assert_eq!(logged(&both, "{{ event.payload.host | default(1) }}"), "");
    assert!(logged(&both, "{{ event.payload.host }}").contains("a run may begin without `host`"));
    assert_snapshot!(logged(&both, "{{ event.payload.hosst }}"), @"w/workflow.yaml:12:34: error[unknown_field] /graph/nodes/1/message: no trigger that leads here gives a run `hosst`; did you mean `host`?");
    // What cannot be known is not told about.
    let open = format!("{who}\n  - {{ type: manual, id: o, input: {{}} }}");
    assert_eq!(logged(&open, "{{ event.payload.whoo }}"), "");
    assert_eq!(logged("  - { type: manual }", "{{ event.payload.whoo }}"), "");
    // A trigger that begins behind a step brings nothing to it.
    let behind = "  - { type: manual, id: o, entry_node: b, input: { whoo: { type: string } } }";
    let behind = format!("{who}\n{behind}");
    assert_eq!(logged(&behind, "{{ event.payload.whoo | default(1) }}"), "");
    let text = "
name: Test
triggers:
  - { type: manual, input: { who: { type: string } } }
  - { type: manual, id: o, entry_node: b, input: { whoo: { type: string } } }
graph:
  entry: a
  nodes:
    - { id: a, type: log, message: '{{ event.payload.whoo }}', next: b }
    - { id: b, type: loop, items: [1], body: [c] }
    - { id: c, type: log, message: '{{ event.payload.hwo }}' }
";
    assert_snapshot!(lines(&compile(text).unwrap_err()), @r"
    w/workflow.yaml:9:54: error[unknown_field] /graph/nodes/0/message: no trigger that leads here gives a run `whoo`; did you mean `who`?
    w/workflow.yaml:11:54: error[unknown_field] /graph/nodes/2/message: no trigger that leads here gives a run `hwo`; did you mean `who`?
    ");
    // Of a trigger that is wrong itself, nothing is known.
    assert_snapshot!(logged(&format!("{who}\n  - {{ type: crom }}"), "{{ event.payload.x }}"), @"w/workflow.yaml:5:13: error[unknown_name] /triggers/1/type: there is no type of trigger `crom`; did you mean `cron`?");
}
