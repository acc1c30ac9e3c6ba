use insta::assert_snapshot;
use serde_json::{Value, json};

use super::*;

/// A plan with these steps, each an id and an action.
fn plan(steps: &[(&str, Value)], more: &Value) -> Plan {
    let step = |(id, action): &(&str, Value)| {
        json!({
            "action": action, "id": id, "title": id, "outputContracts": [],
            "onFailure": {"kind": "stop"}, "onInterrupt": "retry",
            "origin": {"source": "authored"},
        })
    };
    let mut plan = json!({
        "assets": [], "capabilities": [], "conditions": [], "contracts": [], "description": "",
        "dialect": "graph", "edges": [], "entry": [], "env": [], "features": [], "functions": [],
        "loops": [], "name": "T", "policy": {}, "recommendations": {}, "schemaVersion": 1,
        "steps": steps.iter().map(step).collect::<Vec<_>>(), "tags": [], "triggers": [],
        "warnings": [], "workflowId": "project.t",
    });
    for (name, value) in more.as_object().unwrap() {
        plan[name] = value.clone();
    }
    serde_json::from_value(plan).unwrap()
}

fn typed(r#type: &str, config: Value) -> Value {
    json!({"kind": "typed", "type": r#type, "config": config})
}

fn lines(plan: &Plan) -> String {
    Capabilities::of(plan).lines().join("\n")
}

// case: approval.capabilities
#[test]
fn everything_that_reaches_out_is_listed_in_the_order_of_the_plan() {
    let header = json!({"Authorization": "Bearer {{ secret.SHOP }}"});
    let steps = [
        ("build", typed("shell", json!({"command": ["make", "-j", "{{ env.JOBS }}", "a b", ""]}))),
        ("line", typed("shell", json!({"command": "cd x &&\n  make\n"}))),
        ("script", typed("python", json!({"script": "nodes/x.py", "args": ["{{ event.id }}"]}))),
        (
            "order",
            typed(
                "http",
                json!({"url": "https://api.example.com/o", "method": "POST", "headers": header}),
            ),
        ),
        ("anywhere", typed("http", json!({"url": "{{ env.API }}/o"}))),
        (
            "load",
            typed("db_query", json!({"database": "main", "query": "SELECT 1", "read_only": true})),
        ),
        ("save", typed("db_query", json!({"database": "main", "query": "DELETE FROM x"}))),
        ("child", typed("workflow", json!({"workflow": "project.enrich"}))),
        (
            "fix",
            typed(
                "agent",
                json!({
                    "provider": "claude", "model": "opus", "preset": "careful", "prompt": "Fix it.",
                    "allowed_tools": ["Bash(git *)", "Edit"], "skills": ["docs"],
                    "workdir": "sub", "session": "persistent",
                }),
            ),
        ),
        ("sort", typed("classify", json!({"preset": "cheap", "prompt": "Which?"}))),
        ("ticket", typed("skill", json!({"skill": "create-ticket", "session": "root"}))),
        ("write", typed("guide", json!({"prompt": "Write."}))),
        ("page", typed("human", json!({"prompt": "Page?", "who": ["ada", "bob"]}))),
        ("allow", typed("human", json!({"prompt": "Allow?"}))),
        ("respond", typed("webhook_respond", json!({"status": 201}))),
        ("later", typed("teleport", json!({"to": "mars"}))),
        ("inner", typed("branch", json!({"expr": "true"}))),
    ];
    let secret = |name: &str, hosts: Value| {
        json!({
            "description": "", "hosts": hosts, "name": name, "options": [], "required": true,
            "secret": true, "type": "secret",
        })
    };
    let more = json!({
        "assets": [{"path": "nodes/x.py", "sha256": format!("sha256:{}", "0".repeat(64))}],
        "dataTables": [{"access": "read_write", "name": "o", "ref": "orders"}],
        "env": [secret("HOOK", json!([])), secret("SHOP", json!(["api.example.com", "*.shop.example"]))],
        "policy": {"errorWorkflowId": "project.failed"},
        "triggers": [{"config": {"path": "x", "secret": "HOOK"}, "id": "hook", "type": "webhook"}],
    });
    assert_snapshot!(lines(&plan(&steps, &more)));
}

#[test]
fn a_plan_that_stays_inside_can_do_nothing() {
    let steps = INNER.map(|kind| (kind, typed(kind, json!({}))));
    let found = Capabilities::of(&plan(&steps, &json!({})));
    assert!(found.is_empty() && found.lines().is_empty(), "{found:?}");
}

#[test]
fn what_is_shown_cannot_act_on_the_terminal_or_hide_behind_it() {
    let command = "true\u{202e}\u{9b}31m\x1b[2K\rrm -rf x\nsecond";
    let steps = [
        ("line", typed("shell", json!({"command": command}))),
        ("list", typed("shell", json!({"command": ["echo", command]}))),
        ("host", typed("http", json!({"url": "https://a\u{202e}.example/"}))),
    ];
    let shown = Capabilities::of(&plan(&steps, &json!({}))).lines();
    assert!(shown.iter().all(|line| !line.chars().any(crate::text::acts)), "{shown:?}");
    let whole = shown.join("\n");
    assert!(whole.contains("rm -rf x") && whole.contains("second"), "{whole}");
}
