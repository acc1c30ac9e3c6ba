//! Whatever a principal changes, through whichever door, is on record; and what cannot be recorded
//! is not changed. A seed decides what is asked for.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::server::{Place, Server, ask, call};

const GRAPH: &str = "name: Asking
rate_limit: 1000/min
env:
  - { name: LIMIT, widget: number, default: 1 }
  - { name: KEY, widget: secret }
graph:
  nodes:
    - { id: ask, type: human, prompt: May it?, cases: { approved: done, rejected: done } }
    - { id: done, type: end, result: hi }
";
const GUIDED: &str = "id: project.led\nname: Led\ndescription: Leads.\nversion: '1'\nsteps:\n  - { id: one, title: One, prompt: Do it. }\n";

/// A place with a server, and what was made in it.
struct World {
    place: Place,
    server: Server,
    token: String,
    /// The token of an agent.
    agent: String,
    /// Where an agent that is led through a workflow can go on.
    held: Vec<String>,
    /// The same, of an agent on standard input and output: to go on, and to note something.
    local: Vec<(String, String)>,
    runs: Vec<String>,
    /// Sessions, and the bundles that were made of them.
    bundles: Vec<(String, String)>,
    made: usize,
}

/// What came of a call.
struct Told {
    ok: bool,
    answer: Value,
}

impl World {
    fn new() -> Self {
        let workflows = [("asking", GRAPH.to_owned()), ("led", GUIDED.to_owned())];
        let place = Place::new("", &workflows);
        let server = place.serve();
        let token = place.token();
        let (agent, held, local) = (String::new(), vec![], vec![]);
        let (runs, bundles, made) = (vec![], vec![], 0);
        let mut world = Self { place, server, token, agent, held, local, runs, bundles, made };
        let scopes = ["--scope", "read", "--scope", "run"];
        let made = world.cli(&[&["token", "create", "--name", "agent"][..], &scopes].concat(), "");
        made.answer["token"].as_str().unwrap().clone_into(&mut world.agent);
        world
    }

    /// Somebody starts a run, which is there when this returns.
    fn start(&mut self) -> String {
        let started = self.http("POST /api/v1/runs", Some(&json!({"workflow": "asking"})));
        let run = started.answer["runId"].as_str().unwrap().to_owned();
        self.runs.push(run.clone());
        run
    }

    /// Notes where an agent can go on, once it is told.
    fn hold(&mut self, action: &str, told: &Told) {
        let token = &told.answer["result"]["structuredContent"]["continueToken"];
        match (action, token.as_str()) {
            ("runs:start", Some(token)) => self.held.push(token.to_owned()),
            // What is done is done once, and the same call again changes nothing.
            ("runs:continue", _) if told.ok => drop(self.held.pop()),
            _ => {}
        }
    }

    /// The session of a run, as a bundle.
    fn bundle(&mut self) -> (String, String) {
        let run = self.start();
        let shown = self.http(&format!("GET /api/v1/runs/{run}"), None);
        let session = shown.answer["sessionId"].as_str().unwrap().to_owned();
        let file = self.place.path(&format!("b{}.json", self.made)).display().to_string();
        assert!(self.cli(&["session", "export", &session, "-o", &file], "").ok);
        self.bundles.push((session.clone(), file.clone()));
        (session, file)
    }

    fn cli(&self, args: &[&str], input: &str) -> Told {
        let mut command = self.place.command(args);
        command.arg("--json").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let answer = serde_json::from_slice(&output.stdout).unwrap_or_default();
        Told { ok: output.status.success(), answer }
    }

    fn http(&self, what: &str, body: Option<&Value>) -> Told {
        let (status, answer) = call(&self.server.address, &self.token, what, "", body).unwrap();
        Told { ok: status < 300, answer }
    }

    fn mcp(&self, tool: &str, arguments: &Value) -> Told {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": tool, "arguments": arguments}});
        let more = "Accept: application/json, text/event-stream\r\n";
        let (status, answer) =
            call(&self.server.address, &self.agent, "POST /mcp", more, Some(&body)).unwrap();
        Told { ok: status < 300 && answer["result"]["isError"] == false, answer }
    }

    /// Calls a tool as an agent does that started the program.
    fn stdio(&self, tool: &str, arguments: &Value) -> Told {
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"}});
        let call = json!({"name": tool, "arguments": arguments});
        let said = [
            json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}),
            json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
            json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}),
        ];
        let said: String = said.iter().map(|line| format!("{line}\n")).collect();
        let mut command = self.place.command(&["mcp"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(said.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let answers = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let answer = answers.into_iter().find(|answer| answer["id"] == 2);
        let answer = answer.unwrap_or_else(|| panic!("{tool}: {text} {output:?}"));
        Told { ok: answer["result"]["isError"] == false, answer }
    }

    /// An agent on standard input and output begins to be led.
    fn start_local(&mut self) -> Told {
        let told = self.stdio("start_workflow", &json!({"workflowId": "project.led"}));
        let given = &told.answer["result"]["structuredContent"];
        let token = |name: &str| given[name].as_str().map(str::to_owned);
        self.local.extend(token("continueToken").zip(token("checkpointToken")));
        told
    }

    /// The lines of the record, past those that are known.
    fn lines(&self, known: usize) -> Vec<Value> {
        let text = fs::read_to_string(self.place.home().join("audit/audit.jsonl"));
        let text = text.unwrap_or_default();
        text.lines().skip(known).map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// All runs, once each of them waits for somebody or is over: a run that was just started
    /// moves by itself until then.
    fn runs_at_rest(&self) -> Vec<Value> {
        let by = Instant::now() + Duration::from_secs(20);
        loop {
            let runs = self.http("GET /api/v1/runs?limit=200", None).answer;
            let runs = runs["items"].as_array().unwrap().clone();
            let moves = |run: &&Value| ["queued", "running"].iter().any(|s| run["status"] == *s);
            let Some(moving) = runs.iter().find(moves) else { return runs };
            assert!(Instant::now() < by, "it never comes to rest: {moving}");
        }
    }

    /// What there is that a principal can change.
    fn state(&self) -> BTreeMap<String, String> {
        let mut state = BTreeMap::new();
        for folder in ["secrets", "env", "keys"] {
            let Ok(entries) = fs::read_dir(self.place.home().join(folder)) else { continue };
            // A document is locked and written beside its place first, also when it is noted that a
            // token was used.
            let is_own = |name: &str| !name.starts_with('.') && !name.ends_with(".tmp");
            let entries = entries.map(Result::unwrap).filter(|entry| entry.path().is_file());
            for entry in entries.filter(|entry| is_own(&entry.file_name().to_string_lossy())) {
                let text = fs::read_to_string(entry.path()).unwrap_or_default();
                // When a token was last used is noted by itself.
                let kept: Vec<&str> = text.lines().filter(|l| !l.contains("usedMs")).collect();
                state.insert(entry.path().display().to_string(), kept.join("\n"));
            }
        }
        for run in self.runs_at_rest() {
            state.insert(run["runId"].to_string(), run["status"].to_string());
        }
        for folder in ["sessions", "papers/sessions"] {
            let Ok(sessions) = fs::read_dir(self.place.home().join(folder)) else { continue };
            for session in sessions {
                let session = session.unwrap().path();
                let kept = session.join("keep").exists();
                // What a session holds is its runs' and the log's business.
                state.insert(session.display().to_string(), kept.to_string());
            }
        }
        // Where an agent stands is told by what it is handed.
        for token in &self.held {
            let mut back = self.mcp("continue_workflow", &json!({"continueToken": token})).answer;
            // Whoever comes back gets tokens of their own.
            let tokens = ["checkpointToken", "continueToken"];
            let told = back["result"]["structuredContent"].as_object_mut();
            told.into_iter().for_each(|told| told.retain(|name, _| !tokens.contains(&&**name)));
            state.insert(token.clone(), back["result"]["structuredContent"].to_string());
        }
        state
    }
}

/// Something that is asked for: what it is recorded as, and what came of it.
fn step(world: &mut World, dice: u64) -> (&'static str, Told) {
    world.made += 1;
    let number = world.made;
    let name = format!("t{number}");
    let run = world.runs.get(dice as usize / 32 % world.runs.len().max(1)).cloned();
    let run = run.unwrap_or_else(|| "run_01hf7yat000000000000000007".to_owned());
    let session = world.bundles.last().map(|(session, _)| session.clone());
    let session = session.unwrap_or_else(|| "sess_01hf7yat000000000000000007".to_owned());
    let start = json!({"workflow": "asking"});
    match dice % CALLS {
        0 => ("secrets:set", world.cli(&["secret", "set", "KEY"], &format!("value {number}"))),
        1 => ("secrets:remove", world.cli(&["secret", "remove", "KEY", "--yes"], "")),
        2 => {
            ("settings:set", world.cli(&["env", "set", "asking", "LIMIT", &number.to_string()], ""))
        }
        3 => ("settings:unset", world.cli(&["env", "unset", "asking", "LIMIT"], "")),
        4 => (
            "tokens:create",
            world.cli(&["token", "create", "--name", &name, "--scope", "read"], ""),
        ),
        5 => ("tokens:revoke", world.cli(&["token", "revoke", &format!("t{}", number / 2)], "")),
        6 => ("keys:rotate", world.cli(&["key", "rotate"], "")),
        7 => ("runs:cancel", world.cli(&["runs", "cancel", &run], "")),
        8 => ("runs:pause", world.cli(&["runs", "pause", &run], "")),
        9 => ("runs:start", world.http("POST /api/v1/runs", Some(&start))),
        10 => ("runs:start", world.mcp("start_workflow", &json!({"workflowId": "project.led"}))),
        11 => ("runs:start", world.mcp("start_workflow", &json!({"workflowId": "project.nobody"}))),
        12 => {
            let path = "PUT /api/v1/workflows/asking/env/LIMIT";
            ("settings:set", world.http(path, Some(&json!({"value": number}))))
        }
        13 => {
            let path = "PUT /api/v1/workflows/asking/secrets/KEY";
            ("secrets:set", world.http(path, Some(&json!({"value": format!("other {number}")}))))
        }
        14 => ("secrets:remove", world.http("DELETE /api/v1/workflows/asking/secrets/KEY", None)),
        15 => ("settings:unset", world.http("DELETE /api/v1/workflows/asking/env/LIMIT", None)),
        16 => {
            ("tokens:revoke", world.http(&format!("DELETE /api/v1/tokens/t{}", number / 3), None))
        }
        17 => (
            "runs:cancel",
            world.http(&format!("POST /api/v1/runs/{run}/cancel"), Some(&json!({}))),
        ),
        18 => ("runs:pause", world.http(&format!("POST /api/v1/runs/{run}/pause"), None)),
        19 => ("runs:resume", world.http(&format!("POST /api/v1/runs/{run}/resume"), None)),
        20 => ("runs:replay", world.http(&format!("POST /api/v1/runs/{run}/replay"), None)),
        21 => {
            let answered = world.cli(&["runs", "answer", &run, "--approve"], "");
            ("tasks:answer", answered)
        }
        22 => ("reads", world.http("GET /api/v1/workflows", None)),
        23 => ("reads", world.cli(&["runs", "list"], "")),
        24 => ("reads", world.cli(&["session", "list"], "")),
        25 => {
            let body = json!({"step": "ask"});
            ("runs:fork", world.http(&format!("POST /api/v1/runs/{run}/fork"), Some(&body)))
        }
        26 => {
            let body = json!({"step": "ask", "decision": "retry"});
            ("runs:resolve", world.http(&format!("POST /api/v1/runs/{run}/resolve"), Some(&body)))
        }
        27 => {
            let path =
                format!("POST /api/v1/runs/{run}/tasks/task_01hf7yat000000000000000007/answer");
            ("tasks:answer", world.http(&path, Some(&json!({"verdict": "approved"}))))
        }
        28 => {
            let body = json!({"name": name, "scopes": ["read"]});
            ("tokens:create", world.http("POST /api/v1/tokens", Some(&body)))
        }
        29 => {
            let to = world.place.path(&name).display().to_string();
            ("runs:export", world.cli(&["runs", "export", &run, "--to", &to], ""))
        }
        30 => ("secrets:rotate", world.cli(&["secret", "rotate"], "")),
        31 => ("sessions:gc", world.cli(&["session", "gc"], "")),
        32 => ("reads", world.http("GET /api/v1/runs", None)),
        33 => ("runs:start", world.mcp("start_session", &json!({}))),
        35 => ("runs:start", world.start_local()),
        36 => {
            let (token, _) = world.local.pop().unwrap_or_default();
            let arguments = json!({"continueToken": token, "output": {"notesMarkdown": name}});
            ("runs:continue", world.stdio("continue_workflow", &arguments))
        }
        37 => {
            let (_, token) = world.local.pop().unwrap_or_default();
            let arguments = json!({"checkpointToken": token, "output": {"notesMarkdown": name}});
            ("runs:continue", world.stdio("checkpoint_workflow", &arguments))
        }
        38 => {
            let (token, _) = world.local.pop().unwrap_or_default();
            let file = world.place.path(&format!("{name}.json"));
            fs::write(&file, json!([{"step": "one", "notes": name}]).to_string()).unwrap();
            let file = file.display().to_string();
            let led = world.cli(&["guide", "--continue", &token, "--answers", &file], "");
            ("runs:continue", led)
        }
        39 => ("runs:resume", world.cli(&["runs", "resume", &run], "")),
        34 => about_sessions(world, dice / CALLS, &session),
        _ => {
            let token = world.held.last().cloned().unwrap_or_else(|| "none".to_owned());
            let arguments = json!({"continueToken": token, "output": {"notesMarkdown": name}});
            ("runs:continue", world.mcp("continue_workflow", &arguments))
        }
    }
}

/// How many kinds of calls there are.
const CALLS: u64 = 41;

/// Something that is asked for about a session.
fn about_sessions(world: &mut World, dice: u64, session: &str) -> (&'static str, Told) {
    let bundle = world.bundles.last().map(|(_, file)| file.clone()).unwrap_or_default();
    match dice % 6 {
        0 => ("sessions:keep", world.cli(&["session", "keep", session], "")),
        1 => ("sessions:export", world.cli(&["session", "export", session], "")),
        2 => ("sessions:export", world.cli(&["session", "export", session, "--markdown"], "")),
        3 => ("sessions:import", world.cli(&["session", "import", &bundle], "")),
        4 => ("sessions:delete", world.cli(&["session", "delete", "sess_01hf7yat", "--yes"], "")),
        _ => {
            let root = format!("sha256:{}", "0".repeat(64));
            let path = format!("POST /api/v1/sessions/{session}/trust");
            ("sessions:trust", world.http(&path, Some(&json!({"rootHash": root}))))
        }
    }
}

/// The next of a series of numbers that follows from its seed.
fn next(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *seed >> 33
}

#[test]
fn what_changed_is_recorded_and_what_is_recorded_changed() {
    for mut seed in [7, 42] {
        let mut world = World::new();
        world.bundle();
        let mut told = Vec::new();
        for _ in 0..110 {
            let (before, known) = (world.state(), world.lines(0).len());
            let (action, outcome) = step(&mut world, next(&mut seed));
            let lines = world.lines(known);
            let after = world.state();
            told.push(format!("{action} ok={} {lines:?}", outcome.ok));
            let what = told.last().unwrap().clone();
            // A line that says more of another is no change by itself.
            let is_own = |line: &&Value| line["action"] == action && line["of"].is_null();
            let own: Vec<&Value> = lines.iter().filter(is_own).collect();
            if before != after {
                let changed: Vec<_> =
                    after.iter().filter(|(name, value)| before.get(*name) != Some(value)).collect();
                assert_eq!(own.len(), 1, "changed and not on record once: {what} {changed:?}");
                assert_eq!(own[0]["allowed"], true, "{what}");
            }
            if outcome.ok && action != "reads" {
                assert_eq!(own.len(), 1, "done and not on record once: {what}");
                assert!(own[0]["by"].is_string() && own[0]["door"].is_string(), "{what}");
            }
            if action == "reads" {
                assert!(lines.is_empty(), "read and on record: {what}");
            }
            if !outcome.ok {
                assert_eq!(before, after, "failed and changed: {what}");
                assert!(
                    own.iter().all(|l| l["allowed"] == true || l["outcome"].is_string()),
                    "{what}"
                );
            }
            if let Some(run) = outcome.answer["runId"].as_str().filter(|_| action == "runs:start") {
                assert_eq!(own[0]["runId"], run, "{what}");
                assert_eq!(own[0]["workflowId"], "project.asking", "{what}");
                world.runs.push(run.to_owned());
            }
            world.hold(action, &outcome);
        }
        let verified = world.cli(&["audit", "verify"], "");
        assert!(verified.ok, "{told:?}");
        assert_eq!(verified.answer["lines"], world.lines(0).len());
    }
}

#[test]
fn without_a_record_nothing_changes_through_any_door() {
    let mut world = World::new();
    let (session, bundle) = world.bundle();
    let held = world.mcp("start_workflow", &json!({"workflowId": "project.led"}));
    world.hold("runs:start", &held);
    assert_eq!(world.held.len(), 1, "{}", held.answer);
    for _ in 0..3 {
        let local = world.start_local();
        assert!(local.ok, "{}", local.answer);
    }
    let audit = world.place.home().join("audit/audit.jsonl");
    fs::remove_file(&audit).unwrap();
    fs::create_dir(&audit).unwrap();
    let run = world.runs[0].clone();
    let mut seen = Vec::new();
    for dice in (0..CALLS).filter(|dice| ![11, 22, 23, 24, 32].contains(dice)) {
        let before = world.state();
        let (action, outcome) = step(&mut world, dice);
        assert!(!outcome.ok, "{action} ({dice}) was done: {}", outcome.answer);
        assert_eq!(before, world.state(), "{action} ({dice}) changed something");
        seen.push(action);
    }
    for args in [
        &["run", "asking"][..],
        &["guide", "project.led"],
        &["trigger", "fire", "asking", "nobody"],
        &["runs", "fork", &run, "--from", "ask"],
        &["runs", "export", &run],
        &["secret", "rotate"],
        &["session", "gc"],
        &["session", "import", &bundle],
        &["session", "export", &session],
        &["session", "export", &session, "--markdown"],
        &["session", "keep", &session],
        &["session", "delete", &session, "--yes"],
        &["key", "rotate"],
        &["workflow", "rebind", "asking", "led"],
        &["token", "create", "--name", "x", "--scope", "admin"],
    ] {
        let before = world.state();
        assert!(!world.cli(args, "").ok, "{args:?} was done");
        assert_eq!(before, world.state(), "{args:?} changed something");
    }
    // Reading goes on.
    assert!(world.cli(&["runs", "list"], "").ok && seen.len() == 36);
}

#[test]
fn a_record_that_is_gone_or_cut_off_is_noticed() {
    let mut world = World::new();
    for _ in 0..3 {
        world.http("POST /api/v1/runs", Some(&json!({"workflow": "asking"})));
    }
    world.server.kill();
    let audit = world.place.home().join("audit/audit.jsonl");
    let text = fs::read_to_string(&audit).unwrap();
    let cut: Vec<&str> = text.lines().take(2).collect();
    fs::write(&audit, format!("{}\n", cut.join("\n"))).unwrap();
    for what in ["cut off", "deleted"] {
        let output = world.place.command(&["audit", "verify"]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains("AUDIT_LINES_MISSING"), "{what}: {said}");
        let doctor = world.cli(&["doctor"], "").answer;
        let checks = doctor["checks"].as_array().unwrap();
        let check = checks.iter().find(|check| check["name"] == "audit record").unwrap();
        assert_eq!(check["state"], "failed", "{what}: {check}");
        // It answers once it has looked at its record.
        let server = world.place.serve();
        ask(&server.address, "GET /healthz HTTP/1.1\r\n", "").unwrap();
        drop(server);
        let said = fs::read_to_string(world.place.path("serve.log")).unwrap();
        assert!(said.contains("WARNING: the audit record is not whole"), "{what}: {said}");
        let _ = fs::remove_dir_all(audit.parent().unwrap());
    }
}
