//! What may flow into the settings of steps that hand work to models and agents.

use std::collections::BTreeMap;

use cairn_lang::graph;
use cairn_lang::ids::SourceKind;
use cairn_lang::source::SourceTree;
use cairn_steps::catalog;
use serde_json::{Value, json};

/// A workflow with one node compiled: its settings, or all that is wrong with it, and the
/// warnings.
fn compiled(node: &Value) -> (Result<Value, String>, String) {
    let mut node = node.clone();
    node["id"] = json!("it");
    match node["type"] == "classify" {
        true => node["cases"] = json!({"bug": "end", "default": "end"}),
        false => node["next"] = json!("end"),
    }
    let nodes = json!([node, {"id": "end", "type": "end"}]);
    let env = json!([{"name": "WHO", "widget": "text"}]);
    let document = json!({"name": "T", "env": env, "graph": {"entry": "it", "nodes": nodes}});
    let files = BTreeMap::from([
        ("workflow.json".to_owned(), document.to_string().into_bytes()),
        ("nodes/p.md".to_owned(), b"Judge {{ event.text }}.".to_vec()),
    ]);
    let tree = SourceTree { kind: SourceKind::Project, files, library: BTreeMap::new() };
    let lines = |found: &[cairn_lang::diagnostic::Diagnostic]| {
        found.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    match graph::compile(&tree, "workflow.json", &catalog::types()) {
        Ok(compiled) => {
            let plan = serde_json::to_value(&compiled.plan).unwrap();
            let steps = plan["steps"].as_array().unwrap();
            let step = steps.iter().find(|step| step["id"] == "it").unwrap();
            (Ok(step["action"]["config"].clone()), lines(&compiled.warnings))
        }
        Err(found) => (Err(lines(&found)), String::new()),
    }
}

fn node(kind: &str) -> Value {
    match kind {
        "skill" => json!({"type": kind, "provider": "claude", "skill": "docs"}),
        _ => json!({"type": kind, "provider": "claude", "prompt": "Judge."}),
    }
}

/// Fields that a model reads. Of all others what somebody sent is kept away.
const READ: [&str; 4] = ["args", "examples", "prompt", "system"];

/// A value of a field that holds this text, in the shape that its schema asks for.
fn holding(schema: &Value, text: &str) -> Value {
    match schema["type"].as_str() {
        Some("array") => json!([text]),
        Some("object") => json!({"x": {"type": text}}),
        _ => json!(text),
    }
}

/// The code and the place of each error, in the order in which they are told.
fn errors(told: &str) -> Vec<(&str, String)> {
    told.lines()
        .filter_map(|line| line.split_once("error["))
        .filter_map(|(_, rest)| rest.split_once("] "))
        .filter_map(|(code, rest)| Some((code, rest.split_once(": ")?.0.to_owned())))
        .collect()
}

/// Every error that a field with such a value has, in the order of their places.
fn expected(field: &str, value: &Value) -> Vec<(&'static str, String)> {
    let place = format!("/graph/nodes/0/{field}");
    match (field, value) {
        // Nothing but a schema stands here, and none with such a type.
        ("output_schema", Value::Object(_)) => vec![("unknown_value", place + "/x/type")],
        ("output_schema", _) => vec![("wrong_type", place)],
        // A choice is none of those that there are, and the case names one that is left out.
        ("on_denied" | "session", _) => {
            vec![("unknown_value", place.clone()), ("tainted_value", place)]
        }
        ("output_cases", Value::Array(_)) => vec![
            ("unknown_name", "/graph/nodes/0/cases/bug".to_owned()),
            ("tainted_value", place + "/0"),
        ],
        (_, Value::Array(_)) => vec![("tainted_value", place + "/0")],
        _ => vec![("tainted_value", place)],
    }
}

// case: agent.data-grants
#[test]
fn what_somebody_sent_says_neither_who_does_the_work_nor_what_they_may_do() {
    let types = catalog::types();
    for kind in ["agent", "classify", "skill"] {
        let fields = types.get(kind).unwrap().input["properties"].as_object().unwrap();
        for (field, schema) in fields.iter().filter(|(name, _)| !READ.contains(&name.as_str())) {
            for sent in ["{{ event.payload.x }}", "Bash({{ event.text }})"] {
                for value in [json!(sent), holding(schema, sent)] {
                    let mut node = node(kind);
                    node[field] = value;
                    let told = compiled(&node).0.expect_err(&format!("{kind}.{field}"));
                    let expected = expected(field, &node[field]);
                    assert_eq!(errors(&told), expected, "{kind}.{field}: {told}");
                }
            }
        }
    }
    let mut agent = node("agent");
    agent["allowed_tools"] = json!(["{{ event.payload.t }}"]);
    let told = compiled(&agent).0.unwrap_err();
    assert!(told.contains("tainted_value") && told.contains("what they may do"), "{told}");
}

#[test]
fn what_the_operator_says_or_the_workflow_validates_may_choose() {
    for (field, value) in [
        ("provider", json!("{{ env.WHO }}")),
        ("model", json!("{{ event.payload.m | one_of('haiku', 'opus') }}")),
        ("preset", json!("{{ event.payload.m | slug }}")),
        ("allowed_tools", json!(["Edit", "{{ env.WHO }}"])),
        ("session", json!("root")),
    ] {
        let mut node = node("agent");
        node[field] = value.clone();
        let config = compiled(&node).0.unwrap();
        assert!(config.get(field).is_some(), "{field}: {config}");
    }
}

// case: agent.marks
#[test]
fn what_somebody_sent_is_marked_wherever_a_model_or_an_agent_reads_it() {
    let marked = |node: &Value, field: &str| {
        let config = compiled(node).0.unwrap();
        let text = config.pointer(field).and_then(Value::as_str).unwrap().to_owned();
        assert!(text.contains("event.text | untrusted"), "{field}: {config}");
    };
    let sent = "Say {{ event.text }}.";
    for kind in ["agent", "classify"] {
        marked(&json!({"type": kind, "prompt": sent}), "/prompt");
        marked(&json!({"type": kind, "prompt": "x", "system": sent}), "/system");
        marked(&json!({"type": kind, "prompt_file": "nodes/p.md"}), "/prompt");
    }
    marked(&json!({"type": "skill", "skill": "x", "args": {"a": [sent]}}), "/args/a/0");
    let example = json!([{"input": sent, "output": "bug"}]);
    marked(&json!({"type": "classify", "prompt": "x", "examples": example}), "/examples/0/input");
    marked(&json!({"type": "guide", "prompt": sent}), "/prompt");
    marked(&json!({"type": "guide", "prompt_file": "nodes/p.md"}), "/prompt");
}

// case: agent.exposure
#[test]
fn an_agent_with_tools_holds_a_key_and_is_a_way_out() {
    let agent = |prompt: &str, tools: Value| {
        let node = json!({
            "type": "agent", "provider": "claude", "prompt": prompt, "allowed_tools": tools,
        });
        compiled(&node).1
    };
    let told = agent("Do {{ event.text }}.", json!(["Bash(*)"]));
    assert!(told.contains("untrusted_with_secret"), "{told}");
    assert!(told.contains("holds the key to its model"), "{told}");
    assert_eq!(agent("Do {{ event.text }}.", json!([])), "");
    assert_eq!(agent("Do it.", json!(["Bash(*)"])), "");
}
