//! The protocol, line by line, against a whole engine in memory.

use std::sync::Arc;

use cairn_api::token::{Holder, Scope};
use cairn_core::catalog::{Catalog as Types, StepType, interpreted};
use cairn_engine::catalog::{Catalog, Directory};
use cairn_engine::flow::{self, Automations, NoEvaluator, NoSettings, Parts};
use cairn_engine::guided::{Guide, Options};
use cairn_engine::host::SystemHost;
use cairn_engine::performer::{Ctx, Failed, Outcome, Performer, Performers};
use cairn_lang::ids::SourceKind;
use cairn_mcp::{Door, ToolSet, serve_streams};
use cairn_triggers::channel::Channels;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// How long an answer to an ordinary advance may be without its prompt, in bytes.
const ADVANCE_MAX: usize = 600;

fn door() -> Door {
    door_to(Catalog::new(Vec::new()), Performers::default())
}

/// The door to workflows, with what performs their steps.
pub(crate) fn door_to(catalog: Catalog, performers: Performers) -> Door {
    let store = cairn_store::open(&cairn_store::Config::Memory).unwrap();
    let types = types(&performers);
    let catalog = Arc::new(catalog.knowing(types.clone()));
    let parts = Parts {
        host: SystemHost::shared(),
        store: store.clone(),
        catalog: Arc::clone(&catalog),
        types,
        performers: performers.clone(),
        environment: Arc::new(NoSettings),
        evaluator: Arc::new(NoEvaluator),
        rights: Arc::new(cairn_engine::rights::NoTokens),
    };
    let automations = Automations::new(parts, flow::Options::default());
    let guide = Guide::new(
        store,
        Arc::clone(&catalog),
        performers,
        SystemHost::shared(),
        Options::default(),
    );
    let triggers = cairn_triggers::catalog::all(Channels::default());
    Door {
        guide,
        automations,
        triggers,
        catalog,
        holder: Holder { scopes: vec![Scope::Run], ..Holder::default() },
        reach: cairn_mcp::Reach::User,
    }
}

fn types(performers: &Performers) -> Types {
    let steps = interpreted::all().into_iter().chain(performers.kinds());
    Types::new(steps).with_triggers(cairn_triggers::catalog::all(Channels::default()).kinds())
}

/// A folder with a workflow.
pub(crate) fn folder(name: &str, text: &str) -> (tempfile::TempDir, Catalog) {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join(format!("{name}.yaml")), text).unwrap();
    let root = home.path().to_owned();
    let catalog = Catalog::new(vec![Directory { kind: SourceKind::Project, root }]);
    (home, catalog)
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

pub(crate) async fn call(door: &Door, tool: &str, arguments: Value) -> Value {
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
    let text = "
id: project.faulty
name: Faulty
description: Its first step fails.
version: 1.0.0
steps:
  - {id: tell, title: Tell, run: {type: log, message: Hello.}}
  - {id: end, title: End, prompt: End.}
";
    let (_home, catalog) = folder("faulty", text);
    let door = door_to(catalog, Performers::new(vec![Arc::new(Faulty)]));
    let told = call(&door, "start_workflow", json!({"workflowId": "project.faulty"})).await;
    assert_eq!(told["isError"], true, "{told}");
    assert_eq!(told["structuredContent"]["code"], "INTERNAL_ERROR", "{told}");
    let fine = call(&door, "start_workflow", json!({"workflowId": "wr.quick-task"})).await;
    assert_eq!(fine["isError"], false, "{fine}");
}

// case: mcp.stdio
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

const RELEASE: &str = "
id: project.release
name: Release
description: Writes notes and asks a person.
triggers:
  - { type: manual, input: { days: { type: integer } } }
graph:
  nodes:
    - { id: write, type: guide, title: Write the notes, prompt: 'Write about {{ event.payload.days }} days.', output_contract: { type: object, required: [text] }, next: check }
    - { id: check, type: human, prompt: 'Fine?', who: [ada], cases: { approved: done, default: done } }
    - { id: done, type: end, result: '{{ steps.write.text }}' }
";

fn tells(result: &Value, parts: &[&str]) {
    let text = result["content"][0]["text"].as_str().unwrap();
    for part in parts {
        assert!(text.contains(part), "{part} is not in:\n{text}");
    }
}

#[tokio::test]
async fn an_automation_is_chosen_started_and_done_with_the_same_tools() {
    let (_home, catalog) = folder("release", RELEASE);
    let door = door_to(catalog, Performers::default());
    let listed = call(&door, "list_workflows", json!({"query": "release"})).await;
    assert_eq!(listed["structuredContent"]["workflows"][0]["dialect"], "graph", "{listed}");
    tells(&listed, &["`project.release` Release (automation): Writes notes"]);
    let seen = call(&door, "inspect_workflow", json!({"workflowId": "project.release"})).await;
    assert_eq!(seen["structuredContent"]["input"], json!({"days": {"type": "integer"}}), "{seen}");
    tells(&seen, &["the engine performs it", "`days`: {", "`write` Write the notes (guide)"]);

    let start = json!({"workflowId": "project.release", "context": {"days": 3}});
    let first = call(&door, "start_workflow", start).await;
    let data = &first["structuredContent"];
    assert_eq!(data["pending"]["stepId"], "write", "{first}");
    assert_eq!(data["pending"]["title"], "Write the notes");
    assert_eq!(
        (&data["run"], &data["checkpointToken"]),
        (&json!({"status": "waiting"}), &Value::Null)
    );
    tells(&first, &["Write about 3 days.", "Output required: one artifact", "step `write`"]);
    let token = data["continueToken"].as_str().unwrap();
    assert!(token.len() <= 96 && token.starts_with("release-"), "{token}");

    let notes = json!({"continueToken": token, "output": {"notesMarkdown": "Wrote it."}});
    let blocked = call(&door, "continue_workflow", notes).await;
    let data = &blocked["structuredContent"];
    assert_eq!((&data["kind"], &data["isComplete"]), (&json!("blocked"), &json!(false)));
    assert_eq!(
        data["blockers"][0]["pointer"],
        json!({"kind": "output_contract", "contractRef": "write"})
    );
    tells(&blocked, &["BLOCKED", "MISSING_REQUIRED_OUTPUT", "Still pending: Write the notes"]);
    let retry = &data["retryContinueToken"];
    let output = json!({"artifacts": [{"kind": "write", "text": "Quiet."}]});
    let waits =
        call(&door, "continue_workflow", json!({"continueToken": retry, "output": output})).await;
    let data = &waits["structuredContent"];
    assert_eq!((&data["pending"], &data["nextIntent"]), (&Value::Null, &json!("rehydrate_only")));
    let asked = &data["run"]["asks"][0];
    assert_eq!((&asked["stepId"], &asked["who"]), (&json!("check"), &json!(["ada"])), "{waits}");
    tells(
        &waits,
        &[
            "waits for a person",
            "asks ada: Fine?",
            "cairn runs answer run_",
            "do not answer for them",
        ],
    );

    let run = data["session"]["runId"].as_str().unwrap().parse().unwrap();
    let task = asked["taskId"].as_str().unwrap().parse().unwrap();
    let verdict = cairn_core::flow::Verdict::Approved;
    let yes = cairn_core::flow::Answer { verdict, values: json!({}) };
    door.automations.answer(run, task, "ada", yes).await.unwrap();
    let token = &data["continueToken"];
    let over = call(&door, "continue_workflow", json!({"continueToken": token})).await;
    let data = &over["structuredContent"];
    assert_eq!((&data["isComplete"], &data["run"]["result"]), (&json!(true), &json!("Quiet.")));
    tells(&over, &["The automation is complete.", "Result: \"Quiet.\""]);
}

#[tokio::test]
async fn what_an_automation_does_not_take_is_told() {
    let (_home, catalog) = folder("release", RELEASE);
    let door = door_to(catalog, Performers::default());
    let start = |more: Value| {
        let mut call = json!({"workflowId": "project.release"});
        call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        call
    };
    let bad = call(&door, "start_workflow", start(json!({"context": {"days": "three"}}))).await;
    assert_eq!(bad["structuredContent"]["code"], "VALIDATION_ERROR", "{bad}");
    tells(&bad, &["`days` is not of the type `integer`", "inspect_workflow shows"]);
    let session = "sess_00000000000000000000000000";
    let bad = call(&door, "start_workflow", start(json!({"sessionId": session}))).await;
    tells(&bad, &["an automation has sessions of its own"]);
    let wanted = json!({
        "context": {"days": 3}, "preferences": {"autonomy": "guided"}, "tokens": "pair",
    });
    let first = call(&door, "start_workflow", start(wanted)).await;
    let codes: Vec<&str> = first["structuredContent"]["warnings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|warning| warning["code"].as_str().unwrap())
        .collect();
    assert_eq!(codes, ["tokens_compact_only", "preferences_unused"]);
    let token = &first["structuredContent"]["continueToken"];
    let keep = json!({"checkpointToken": token, "output": {"notesMarkdown": "Half of it."}});
    let refused = call(&door, "checkpoint_workflow", keep).await;
    assert_eq!(refused["structuredContent"]["code"], "TOKEN_SCOPE_MISMATCH", "{refused}");
    tells(&refused, &["keeps no checkpoints", "send what it asks for with continue_workflow"]);
}

#[tokio::test]
async fn a_trigger_that_asks_for_a_role_is_for_those_who_have_it() {
    let text = RELEASE.replace("{ type: manual,", "{ type: manual, require_role: admin,");
    let (_home, catalog) = folder("release", &text);
    let mut door = door_to(catalog, Performers::default());
    let start = json!({"workflowId": "project.release", "context": {"days": 3}});
    let denied = call(&door, "start_workflow", start.clone()).await;
    assert_eq!(denied["structuredContent"]["code"], "AUTH_FORBIDDEN", "{denied}");
    door.holder.scopes.push(Scope::Admin);
    assert_eq!(call(&door, "start_workflow", start).await["isError"], false);
}
