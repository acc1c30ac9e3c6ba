//! Automations whose steps an agent does over `cairn mcp`: one process, several, and one that
//! is killed in between.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use crate::env::TestEnv;
use crate::serve::Server;

const REVIEW: &str = "id: project.review
name: Review
description: A change is looked at.
triggers:
  - { type: manual, input: { change: { type: string, required: true } } }
graph:
  nodes:
    - { id: fetch, type: shell, command: [sh, -c, 'echo did >> \"$LOG\"; echo \"$CHANGE\"'], env: { CHANGE: '{{ event.payload.change }}', LOG: LOGFILE }, next: read }
    - { id: read, type: guide, prompt: 'Read {{ steps.fetch.stdout | trim }}.', next: judge }
    - { id: judge, type: guide, prompt: Judge it., output_contract: { type: object, required: [verdict], properties: { verdict: { enum: [good, bad] } } }, next: note }
    - { id: note, type: shell, command: [sh, -c, 'echo noted >> \"$LOG\"; printf %s \"$VERDICT\"'], env: { VERDICT: '{{ steps.judge.verdict }}', LOG: LOGFILE }, next: end }
    - { id: end, type: end, result: '{{ steps.note.stdout }}' }
";

fn env() -> TestEnv {
    let env = TestEnv::new();
    fs::create_dir(env.path("workflows")).unwrap();
    let text = REVIEW.replace("LOGFILE", env.path("log").to_str().unwrap());
    fs::write(env.path("workflows/review.yaml"), text).unwrap();
    env
}

/// An agent at a `cairn mcp` of its own.
struct Agent {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    calls: u64,
}

impl Agent {
    fn new(env: &TestEnv) -> Self {
        let mut command = env.command(&["mcp"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { input: child.stdin.take(), child, output, calls: 0 }
    }

    fn send(&mut self, tool: &str, arguments: &Value) {
        self.calls += 1;
        let line = call(self.calls, tool, arguments);
        writeln!(self.input.as_ref().unwrap(), "{line}").unwrap();
    }

    fn receive(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        let mut answer: Value = serde_json::from_str(&line).unwrap();
        answer["result"]["structuredContent"].take()
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.send(tool, arguments);
        self.receive()
    }

    fn start(&mut self) -> Value {
        let started = json!({"workflowId": "project.review", "context": {"change": "c-17"}});
        self.call("start_workflow", &started)
    }

    fn go_on(&mut self, at: &Value, output: &Value) -> Value {
        let token = at.get("retryContinueToken").unwrap_or(&at["continueToken"]);
        self.call("continue_workflow", &json!({"continueToken": token, "output": output}))
    }

    fn back(&mut self, at: &Value) -> Value {
        self.call("continue_workflow", &json!({"continueToken": at["continueToken"]}))
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.child.wait();
    }
}

fn call(id: u64, tool: &str, arguments: &Value) -> Value {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    });
    let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
}

fn notes(text: &str) -> Value {
    json!({"notesMarkdown": text})
}

fn verdict(word: &str) -> Value {
    json!({"artifacts": [{"kind": "judge", "verdict": word}]})
}

fn step(answer: &Value) -> &str {
    answer["pending"]["stepId"].as_str().unwrap_or("-")
}

fn log(env: &TestEnv) -> String {
    fs::read_to_string(env.path("log")).unwrap_or_default().replace('\n', " ")
}

#[test]
fn an_agent_does_its_part_of_an_automation() {
    let env = env();
    let mut agent = Agent::new(&env);
    let first = agent.start();
    let prompt = first["pending"]["prompt"].as_str().unwrap();
    assert!(prompt.contains("\n\nRead ⟦untrusted⟧c-17⟦/untrusted⟧."), "{first}");
    let second = agent.go_on(&first, &notes("Read it."));
    assert_eq!(step(&second), "judge", "{second}");
    let mut short = second.clone();
    short["pending"]["prompt"].take();
    assert!(short.to_string().len() <= 600, "{short}");
    let blocked = agent.go_on(&second, &verdict("so-so"));
    assert_eq!(blocked["blockers"][0]["code"], "INVALID_REQUIRED_OUTPUT", "{blocked}");
    let last = agent.go_on(&blocked, &verdict("good"));
    assert_eq!((&last["isComplete"], &last["run"]["result"]), (&json!(true), &json!("good")));
    assert_eq!(log(&env), "did noted ");
    let bad = json!({"workflowId": "project.review", "context": {"chnge": "c"}});
    let bad = agent.call("start_workflow", &bad);
    assert_eq!(bad["code"], "VALIDATION_ERROR", "{bad}");
    assert_eq!(bad["details"]["faults"].as_array().map(Vec::len), Some(2), "{bad}");
}

#[test]
fn the_same_answer_sixteen_times_at_once_moves_the_run_once() {
    let env = env();
    let mut agent = Agent::new(&env);
    let first = agent.start();
    let call = json!({"continueToken": first["continueToken"], "output": notes("Read it.")});
    (0..16).for_each(|_| agent.send("continue_workflow", &call));
    let answers: Vec<Value> = (0..16).map(|_| agent.receive()).collect();
    for answer in &answers {
        assert_eq!(answer, &answers[0]);
    }
    let last = agent.go_on(&answers[0], &verdict("bad"));
    assert_eq!(last["run"]["result"], "bad", "{last}");
    assert_eq!(agent.call("continue_workflow", &call), answers[0], "also at the end");
    assert_eq!(log(&env), "did noted ");
}

#[test]
fn an_agent_that_was_killed_goes_on_in_another_process() {
    let env = env();
    let mut agent = Agent::new(&env);
    let first = agent.start();
    agent.kill();
    let mut agent = Agent::new(&env);
    assert_eq!(step(&agent.back(&first)), "read");
    let second = agent.go_on(&first, &notes("Read it."));
    assert_eq!(step(&second), "judge", "{second}");
    agent.kill();
    let mut agent = Agent::new(&env);
    assert_eq!(agent.go_on(&first, &notes("Read it.")), second, "the same answer as before");
    let last = agent.go_on(&second, &verdict("good"));
    assert_eq!(last["run"]["result"], "good", "{last}");
    assert_eq!(log(&env), "did noted ", "nothing was done twice");
}

#[test]
fn two_agents_and_a_server_share_a_run() {
    let env = env();
    let mut server = Server::start(&env, &[]);
    let address = server.line().strip_prefix("listening on http://").unwrap().to_owned();
    server.line();
    let token = fs::read_to_string(env.home().join("keys/admin.token")).unwrap();
    let post = |tool: &str, arguments: &Value| post(&address, token.trim(), tool, arguments);

    // The server performs it, and an agent beside it does the steps.
    let started = json!({"workflowId": "project.review", "context": {"change": "c-1"}});
    let first = post("start_workflow", &started);
    assert_eq!(step(&first), "read", "{first}");
    let (mut one, mut two) = (Agent::new(&env), Agent::new(&env));
    let second = one.go_on(&first, &notes("Read it."));
    assert_eq!(step(&second), "judge", "{second}");
    assert_eq!(step(&two.back(&second)), "judge");
    assert_eq!(two.go_on(&first, &notes("Read it.")), second, "the same answer everywhere");
    let last = two.go_on(&second, &verdict("good"));
    assert_eq!(last["run"]["result"], "good", "{last}");
    let over = post("continue_workflow", &json!({"continueToken": last["continueToken"]}));
    assert_eq!((&over["isComplete"], &over["run"]), (&json!(true), &last["run"]), "{over}");
    assert_eq!(log(&env), "did noted ");

    // An agent begins it, and goes; the server takes its part.
    let first = one.start();
    assert_eq!(step(&first), "read", "{first}");
    drop(one);
    let second = post(
        "continue_workflow",
        &json!({"continueToken": first["continueToken"], "output": notes("Read.")}),
    );
    assert_eq!(step(&second), "judge", "{second}");
    let last = two.go_on(&second, &verdict("bad"));
    assert_eq!(last["run"]["result"], "bad", "{last}");
}

/// What the server at `/mcp` answers.
fn post(address: &str, token: &str, tool: &str, arguments: &Value) -> Value {
    let body = call(1, tool, arguments).to_string();
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let body = answer.split_once("\r\n\r\n").unwrap().1;
    let from = body.find('{').unwrap_or_else(|| panic!("{answer}"));
    let to = body.rfind('}').unwrap();
    let mut told: Value = serde_json::from_str(&body[from..=to]).unwrap();
    told["result"]["structuredContent"].take()
}

/// A run that no agent started is found, claimed and finished, by an agent and by a person.
#[test]
fn a_run_that_a_webhook_or_a_person_started_can_be_joined() {
    let env = env();
    let mut server = Server::start(&env, &[]);
    let address = server.line().strip_prefix("listening on http://").unwrap().to_owned();
    server.line();
    let token = fs::read_to_string(env.home().join("keys/admin.token")).unwrap();
    let start = |change: &str| {
        let body = json!({"workflow": "project.review", "payload": {"change": change}}).to_string();
        let mut stream = TcpStream::connect(&address).unwrap();
        let head = format!(
            "POST /api/v1/runs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            token.trim(),
            body.len()
        );
        stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let body: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
        body["runId"].as_str().unwrap().to_owned()
    };
    let run = start("c-9");
    let listed = || env.run(&["runs", "list", "--waiting-for", "agent"]);
    crate::automation::until("nothing waits for an agent", || listed().stdout.contains(&run));
    let shown = env.run(&["runs", "show", &run]).stdout;
    assert!(shown.contains(&format!("cairn guide --continue {run}")), "{shown}");
    let answered = env.run(&["runs", "answer", &run, "--approve"]);
    assert!(answered.stderr.contains("waits for an agent"), "{answered}");

    let (mut one, mut two) = (Agent::new(&env), Agent::new(&env));
    let workflows = one.call("list_workflows", &json!({}));
    assert_eq!(workflows["waitingRuns"], 1, "{workflows}");
    let found = one.call("resume_session", &json!({}));
    let offer = &found["waiting"][0];
    assert_eq!(offer["session"]["runId"], json!(run), "{found}");
    let first = one.back(offer);
    let prompt = first["pending"]["prompt"].as_str().unwrap();
    assert!(prompt.contains("\n\nRead ⟦untrusted⟧c-9⟦/untrusted⟧."), "{first}");
    let late = two.call("resume_session", &json!({"query": "review read"}));
    assert!(late["waiting"][0]["claimedUntil"].is_string(), "{late}");
    // Who comes back under the same name, in a new chat perhaps, takes it over.
    let again = two.back(&late["waiting"][0]);
    assert_eq!(one.go_on(&first, &notes("Read it."))["code"], "RUN_CLAIMED");
    let refused = env.run(&["guide", "--continue", &run]);
    assert!(refused.stderr.contains("RUN_CLAIMED"), "{refused}");
    let second = two.go_on(&again, &notes("Read it."));
    assert_eq!(step(&second), "judge", "{second}");

    // The agent is gone; a person frees the run and does the rest.
    two.kill();
    let freed = env.run(&["runs", "release", &run]);
    assert!(freed.stdout.contains("is free; agent had it"), "{freed}");
    let answers = json!([{"step": "judge", "artifacts": [{"kind": "judge", "verdict": "good"}]}]);
    fs::write(env.path("answers.json"), answers.to_string()).unwrap();
    let done = env.run(&["guide", "--continue", &run, "--answers", "answers.json"]);
    assert_eq!(done.code, 0, "{done}");
    assert!(listed().stderr.contains("no runs"), "{}", listed());
    assert_eq!(log(&env), "did noted ");
}
