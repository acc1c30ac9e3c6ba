//! The protocol, line by line, against a whole engine in memory.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "helpers of tests may fail loudly, too"
)]

use std::sync::Arc;

use cairn_core::catalog::StepType;
use cairn_engine::catalog::{Catalog, Directory};
use cairn_engine::guided::{Guide, Options};
use cairn_engine::performer::{Ctx, Failed, Outcome, Performer, Performers};
use cairn_lang::ids::SourceKind;
use cairn_mcp::{Door, ToolSet, serve_streams};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// How long an answer to an ordinary advance may be without its prompt, in bytes.
const ADVANCE_MAX: usize = 600;

fn door() -> Door {
    let store = cairn_store::open(&cairn_store::Config::Memory).unwrap();
    let catalog = Arc::new(Catalog::new(Vec::new()));
    let options = Options::default();
    let guide = Guide::new(store, Arc::clone(&catalog), Performers::default(), options);
    Door { guide, catalog }
}

/// Sends lines, closes the input, and gives everything that came back, by the ids of requests.
async fn talk(door: &Door, set: ToolSet, lines: &[Value]) -> Vec<Value> {
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    say(door, set, &lines).await
}

/// The same with lines that may be anything.
async fn say(door: &Door, set: ToolSet, lines: &[String]) -> Vec<Value> {
    let (client, server) = tokio::io::duplex(1 << 20);
    let (input, output) = tokio::io::split(server);
    let (mut from_server, mut to_server) = tokio::io::split(client);
    let serving = tokio::spawn(serve_streams(door.clone(), set, input, output));
    for line in lines {
        to_server.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }
    to_server.shutdown().await.unwrap();
    let mut answers = String::new();
    from_server.read_to_string(&mut answers).await.unwrap();
    serving.await.unwrap().unwrap();
    let answers = answers.lines().map(|line| serde_json::from_str(line).unwrap());
    let mut answers: Vec<Value> = answers.collect();
    answers.sort_by_key(|answer| answer["id"].as_u64());
    answers
}

/// Requests in the current revision, each of which stands by itself.
fn current(requests: &[(&str, Value)]) -> Vec<Value> {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    });
    let numbered = requests.iter().zip(1..);
    let lines = numbered.map(|((method, params), id)| {
        let mut params = params.clone();
        params["_meta"] = meta.clone();
        json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
    });
    lines.collect()
}

/// Requests in an older revision, after the handshake.
fn older(requests: &[(&str, Value)]) -> Vec<Value> {
    let hello = json!({
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    });
    let numbered = requests.iter().zip(1..);
    let lines = numbered.map(|((method, params), id)| {
        json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
    });
    let first = [
        json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
    ];
    first.into_iter().chain(lines).collect()
}

async fn call(door: &Door, tool: &str, arguments: Value) -> Value {
    let request = ("tools/call", json!({"name": tool, "arguments": arguments}));
    let mut answers = talk(door, ToolSet::default(), &current(&[request])).await;
    answers.remove(0)["result"].take()
}

#[tokio::test]
async fn the_server_says_who_it_is_in_every_revision() {
    let door = door();
    let answers =
        talk(&door, ToolSet::default(), &current(&[("server/discover", json!({}))])).await;
    let found = &answers[0]["result"];
    assert_eq!(found["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "cairn");
    assert_eq!(found["capabilities"], json!({"tools": {}}));
    assert!(found["instructions"].as_str().unwrap().len() < 500);
    let answers = talk(&door, ToolSet::default(), &older(&[])).await;
    let found = &answers[0]["result"];
    assert_eq!(found["protocolVersion"], "2025-06-18");
    assert_eq!(found["serverInfo"]["name"], "cairn");
    assert_eq!(found["serverInfo"]["version"], env!("CARGO_PKG_VERSION"));
}

#[tokio::test]
async fn freshness_is_told_to_clients_that_know_of_it() {
    let door = door();
    let list = [("tools/list", json!({}))];
    let answers = talk(&door, ToolSet::default(), &current(&list)).await;
    assert_eq!(answers[0]["result"]["ttlMs"], 300_000);
    let answers = talk(&door, ToolSet::default(), &older(&list)).await;
    let fields: Vec<&String> = answers[1]["result"].as_object().unwrap().keys().collect();
    assert_eq!(fields, ["tools"]);
}

#[tokio::test]
async fn what_is_not_declared_is_not_there() {
    let requests =
        ["prompts/list", "resources/list", "resources/templates/list"].map(|m| (m, json!({})));
    for answer in talk(&door(), ToolSet::default(), &current(&requests)).await {
        assert_eq!(answer["error"]["code"], -32601, "{answer}");
    }
}

#[tokio::test]
async fn whoever_says_nothing_is_let_go() {
    assert!(talk(&door(), ToolSet::default(), &[]).await.is_empty());
}

#[tokio::test]
async fn what_was_asked_before_the_input_closed_is_answered() {
    let start = (
        "tools/call",
        json!({
            "name": "start_workflow",
            "arguments": {"workflowId": "wr.quick-task"},
        }),
    );
    let requests: Vec<_> = std::iter::repeat_n(start, 16).collect();
    let answers = talk(&door(), ToolSet::default(), &current(&requests)).await;
    assert_eq!(answers.len(), 16);
    for answer in answers {
        assert_eq!(answer["result"]["structuredContent"]["kind"], "ok", "{answer}");
    }
}

#[tokio::test]
async fn a_wrong_argument_is_a_result_and_a_wrong_tool_is_not() {
    let door = door();
    for arguments in [json!({"workflowIt": "x"}), json!("x"), json!({"workflowId": 7})] {
        let result = call(&door, "start_workflow", arguments).await;
        assert_eq!(result["isError"], true, "{result}");
        assert_eq!(result["structuredContent"]["code"], "VALIDATION_ERROR", "{result}");
        let told = result["content"][0]["text"].as_str().unwrap();
        assert!(told.contains(result["structuredContent"]["suggestion"].as_str().unwrap()));
    }
    let request = ("tools/call", json!({"name": "start_workflw", "arguments": {}}));
    let answers = talk(&door, ToolSet::default(), &current(&[request])).await;
    assert_eq!(answers[0]["error"]["code"], -32602);
    assert!(answers[0]["error"]["message"].as_str().unwrap().contains("`start_workflow`"));
}

#[tokio::test]
async fn an_ordinary_advance_is_small_whatever_the_prompt() {
    let door = door();
    let first = call(&door, "start_workflow", json!({"workflowId": "wr.quick-task"})).await;
    let token = &first["structuredContent"]["continueToken"];
    let notes = "Done when: the button is green everywhere\nCheck: `make shots` shows it";
    let advance = json!({"continueToken": token, "output": {"notesMarkdown": notes}});
    let mut moved = call(&door, "continue_workflow", advance).await["structuredContent"].take();
    assert_eq!(moved["kind"], "ok", "{moved:#}");
    moved["pending"]["prompt"].take();
    let bytes = moved.to_string().len();
    assert!(bytes <= ADVANCE_MAX, "{bytes} bytes: {moved}");
}

#[tokio::test]
async fn notes_can_be_kept_without_a_workflow_when_that_is_allowed() {
    let door = door();
    let request = ("tools/call", json!({"name": "start_session", "arguments": {}}));
    let denied = talk(&door, ToolSet::default(), &current(std::slice::from_ref(&request))).await;
    assert_eq!(denied[0]["error"]["code"], -32602);
    let set = ToolSet { start_session: true };
    let opened = talk(&door, set, &current(&[request])).await;
    let token = &opened[0]["result"]["structuredContent"]["sessionToken"];
    let output = json!({"notesMarkdown": "Called the supplier."});
    let keep = json!({"sessionToken": token, "output": output});
    let kept = call(&door, "checkpoint_workflow", keep).await;
    assert_eq!(kept["isError"], false, "{kept}");
    let next = &kept["structuredContent"]["checkpointToken"];
    let kept =
        call(&door, "checkpoint_workflow", json!({"checkpointToken": next, "output": output}));
    assert_eq!(kept.await["isError"], false);
}

/// A step type with a fault of its own.
struct Faulty;

#[async_trait::async_trait]
impl Performer for Faulty {
    fn kind(&self) -> StepType {
        let open = serde_json::json!({"type": "object"});
        StepType::new("log", cairn_core::catalog::Class::Effectful, open.clone(), open)
    }

    async fn perform(&self, _: Value, _: &Ctx) -> Result<Outcome, Failed> {
        panic!("a fault of the program")
    }
}

#[tokio::test]
async fn a_fault_of_the_program_is_told_and_the_server_goes_on() {
    let home = tempfile::tempdir().unwrap();
    let text = "
id: project.faulty
name: Faulty
description: Its first step fails.
version: 1.0.0
steps:
  - {id: tell, title: Tell, run: {type: log, message: Hello.}}
  - {id: end, title: End, prompt: End.}
";
    std::fs::write(home.path().join("faulty.yaml"), text).unwrap();
    let root = home.path().to_owned();
    let catalog = Arc::new(Catalog::new(vec![Directory { kind: SourceKind::Project, root }]));
    let store = cairn_store::open(&cairn_store::Config::Memory).unwrap();
    let performers = Performers::new(vec![Arc::new(Faulty)]);
    let guide = Guide::new(store, Arc::clone(&catalog), performers, Options::default());
    let door = Door { guide, catalog };
    let told = call(&door, "start_workflow", json!({"workflowId": "project.faulty"})).await;
    assert_eq!(told["isError"], true, "{told}");
    assert_eq!(told["structuredContent"]["code"], "INTERNAL_ERROR", "{told}");
    let fine = call(&door, "start_workflow", json!({"workflowId": "wr.quick-task"})).await;
    assert_eq!(fine["isError"], false, "{fine}");
}

#[tokio::test]
async fn what_is_no_message_is_answered_and_the_rest_goes_on() {
    let list = current(&[("tools/list", json!({}))]);
    let mut lines = vec!["hello".to_owned(), "{\"jsonrpc\":".to_owned(), String::new()];
    lines.push(json!({"id": 9, "method": "ping"}).to_string());
    lines.extend(list.iter().map(Value::to_string));
    lines.push("\u{1}".to_owned());
    let answers = say(&door(), ToolSet::default(), &lines).await;
    let told: Vec<_> =
        answers.iter().map(|a| (a["id"].clone(), a["error"]["code"].clone())).collect();
    let none = Value::Null;
    let parse = (none.clone(), json!(-32700));
    let wanted = [parse.clone(), parse.clone(), parse, (json!(1), none), (json!(9), json!(-32600))];
    assert_eq!(told, wanted, "{answers:?}");
    assert!(answers[3]["result"]["tools"].is_array());
    let garbage = say(&door(), ToolSet::default(), &["nothing else".to_owned()]).await;
    assert_eq!(garbage.len(), 1, "also where nothing else is said: {garbage:?}");
}

#[tokio::test]
async fn a_call_that_cannot_be_read_is_answered_under_its_id() {
    let arguments = json!({"workflowId": "wr.quick-task", "context": {"a": "HERE"}});
    let call =
        current(&[("tools/call", json!({"name": "start_workflow", "arguments": arguments}))]);
    let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    for value in ["\"\\ud83c\"", "1e400", &deep] {
        let line = call[0].to_string().replace("\"HERE\"", value);
        let answers = say(&door(), ToolSet::default(), &[line]).await;
        assert_eq!(answers.len(), 1, "{value}: {answers:?}");
        assert_eq!(answers[0]["id"], call[0]["id"], "{value}");
        let told = &answers[0]["result"];
        assert_eq!(told["isError"], true, "{value}: {told}");
        assert_eq!(told["structuredContent"]["code"], "VALIDATION_ERROR", "{value}: {told}");
    }
}

#[tokio::test]
async fn a_call_of_no_tool_says_what_it_lacks() {
    for params in [json!({}), json!({"arguments": {}}), json!({"name": 7, "arguments": {}})] {
        let call = current(&[("tools/call", params.clone())])[0].to_string();
        let answers = say(&door(), ToolSet::default(), &[call]).await;
        assert_eq!(answers[0]["error"]["code"], -32602, "{params}: {answers:?}");
        let message = answers[0]["error"]["message"].as_str().unwrap();
        assert!(message.contains("`name`"), "{params}: {message}");
    }
}
