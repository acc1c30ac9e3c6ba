//! `cairn run`: what is asked of the world, and what is told of a failure.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::automation::{Running, with_workflow};
use crate::env::TestEnv;

/// The path of a request, and when it came.
type Asked = (String, Instant);

/// A server that answers with each answer once, and then with the last, and what it was asked.
fn server(answers: &'static [&'static str]) -> (SocketAddr, Arc<Mutex<Vec<Asked>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
    let kept = Arc::clone(&asked);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let head: Vec<String> =
                lines.map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
            let path = head[0].split(' ').nth(1).unwrap().to_owned();
            let mut kept = kept.lock().unwrap();
            let answer = answers.get(kept.len()).or(answers.last()).unwrap();
            kept.push((path, Instant::now()));
            // A client that has enough may be gone.
            let _ = write!(stream, "HTTP/1.1 {answer}\r\nconnection: close\r\n\r\n");
        }
    });
    (address, asked)
}

/// Lets the steps of a place ask a server.
fn allow(env: &TestEnv, address: SocketAddr) {
    let file = env.path(".config/cairn/config.toml");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, format!("[http]\nallow = [\"{address}\"]\n")).unwrap();
}

/// Runs a workflow and gives the run, with its exit code.
fn run(env: &TestEnv, workflow: &str, payload: &Value) -> (i32, Value) {
    fs::write(env.path("event.json"), payload.to_string()).unwrap();
    let ran = env.run(&["run", workflow, "--event", "event.json", "--json"]);
    let shown = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran}"));
    (ran.code, shown)
}

#[test]
fn data_in_an_address_stays_in_its_segment() {
    let (address, asked) = server(&["200 OK\r\ncontent-length: 0"]);
    let step = |path: &str| {
        format!(
            "name: Order\ngraph:\n  nodes:\n    - {{ id: a, type: http, url: 'http://{address}{path}' }}\n"
        )
    };
    let plain = step("/order/{{ event.payload.id }}?of={{ event.payload.id }}");
    let env = with_workflow("plain", &plain);
    fs::write(env.path("workflows/raw.yaml"), step("/{{ event.payload.id | raw_path }}")).unwrap();
    allow(&env, address);
    for (workflow, id, path) in [
        ("plain", "7", "/order/7?of=7"),
        ("plain", "../admin", "/order/..%2Fadmin?of=..%2Fadmin"),
        ("plain", "%2e%2e", "/order/%252e%252e?of=%252e%252e"),
        ("plain", "a?b#c&d", "/order/a%3Fb%23c%26d?of=a%3Fb%23c%26d"),
        ("raw", "a/b", "/a/b"),
    ] {
        let (code, shown) = run(&env, workflow, &json!({"id": id}));
        assert_eq!(code, 0, "{id}: {shown}");
        assert_eq!(asked.lock().unwrap().pop().unwrap().0, path, "{id}");
    }
    for (workflow, id) in
        [("plain", ".."), ("plain", "."), ("raw", "a/../b"), ("raw", "%2e%2E/b"), ("raw", "..\\b")]
    {
        let (code, shown) = run(&env, workflow, &json!({"id": id}));
        assert_eq!((code, &shown["error"]["code"]), (1, &json!("HTTP_PATH")), "{id}: {shown}");
    }
    assert_eq!(asked.lock().unwrap().len(), 0, "nobody is asked for a path that leads elsewhere");
}

// case: limit.retries
#[test]
fn a_server_that_asks_to_wait_is_left_alone_for_that_long() {
    let (address, asked) = server(&[
        "429 Too Many Requests\r\nretry-after: 1\r\ncontent-length: 0",
        "200 OK\r\ncontent-length: 0",
    ]);
    let text = format!(
        "name: Busy\ngraph:\n  nodes:\n    - {{ id: a, type: http, url: 'http://{address}/', retry: {{ max: 1, delay_sec: 0, jitter: false, on: [rate_limited] }} }}\n"
    );
    let env = with_workflow("busy", &text);
    allow(&env, address);
    let (code, shown) = run(&env, "busy", &json!({}));
    assert_eq!((code, &shown["steps"]["a"]["attempts"]), (0, &json!(2)), "{shown}");
    let asked = asked.lock().unwrap();
    let waited = asked[1].1 - asked[0].1;
    assert!(waited >= Duration::from_secs(1), "{waited:?}");
}

const BROKEN: &str = "name: Broken
graph:
  nodes:
    - { id: build, type: shell, command: [sh, -c, 'echo to stdout; echo first >&2; echo no space left >&2; exit 3'] }
";

#[test]
fn a_failed_command_says_what_it_printed() {
    let env = with_workflow("broken", BROKEN);
    let mut settings = insta::Settings::clone_current();
    settings.add_filter(r"run_[0-9a-z]{26}", "run_[id]");
    settings.add_filter(r"\d{4}-\d\d-\d\dT[0-9:.]+Z", "[time]");
    settings.add_filter(r"TIME +OUTPUT", "TIME OUTPUT");
    settings.add_filter(r"\S+ m?s +SHELL", "[while] SHELL");
    let _bound = settings.bind_to_scope();
    assert_snapshot!(env.run(&["run", "broken"]), @r"
    exit 1
    --- stderr
    run_[id]
    ✗ build  SHELL_EXIT: the command ended with exit code 3 (no space left); the run fails
    failed at build: SHELL_EXIT: the command ended with exit code 3
      first
      no space left
      → see `cairn runs show run_[id]`; go on with `cairn runs fork run_[id] --from build`
    ");
    let runs = env.run(&["runs", "list", "--json"]).stdout;
    let runs: Value = serde_json::from_str(&runs).unwrap();
    let id = runs["items"][0]["runId"].as_str().unwrap_or_else(|| panic!("{runs}"));
    assert_snapshot!(env.run(&["runs", "show", id]), @r"
    exit 0
    --- stdout
    run_[id]  project.broken  failed
    asked for directly at [time]
    recorded in sess_[fresh]

    STEP   STATUS  CASE  TRIES  TIME OUTPUT
    build  failed  -     1      [while] SHELL_EXIT

    SHELL_EXIT: the command ended with exit code 3
      first
      no space left
      → go on with `cairn runs fork run_[id] --from build`
    ");
    let events = env.run(&["runs", "events", id]).stdout;
    let told = "SHELL_EXIT: the command ended with exit code 3 (no space left); the run fails";
    assert!(events.contains(told), "{events}");
}

#[test]
fn what_a_failed_command_printed_can_be_read_behind_it() {
    let text = "name: Skips
graph:
  nodes:
    - { id: build, type: shell, command: [sh, -c, 'echo no space left >&2; exit 3'], on_failure: skip, next: tell }
    - { id: tell, type: end, result: '{{ steps.build.stderr | trim }}' }
";
    let (code, shown) = run(&with_workflow("skips", text), "skips", &json!({}));
    assert_eq!((code, &shown["result"]), (0, &json!("no space left")), "{shown}");
}

#[test]
fn a_form_is_answered_in_either_spelling() {
    let named = "{ why: { type: string, required: true }, part: { type: integer, minimum: 0 } }";
    let schema = "{ type: object, required: [why], additionalProperties: false, properties: { why: { type: string }, part: { type: integer, minimum: 0 } } }";
    let text = |form: &str| {
        format!(
            "name: Ask\ngraph:\n  nodes:\n    - {{ id: ask, type: human, prompt: Go?, form: {form}, cases: {{ default: b }} }}\n    - {{ id: b, type: end, result: '{{{{ steps.ask.verdict }}}}: {{{{ steps.ask.answer.why }}}}, {{{{ steps.ask.answer.part }}}}' }}\n"
        )
    };
    let env = with_workflow("named", &text(named));
    fs::write(env.path("workflows/schema.yaml"), text(schema)).unwrap();
    let running = Running::start(&env);
    for workflow in ["named", "schema"] {
        let run = running.begin(workflow);
        running.until(&run, "waiting");
        let answer = |set: &[&str]| {
            let mut args = vec!["runs", "answer", &run, "--approve"];
            args.extend(set.iter().flat_map(|set| ["--set", set]));
            env.run(&args)
        };
        for wrong in [&["part=1"][..], &["why=late", "part=-1"], &["why=late", "else=1"]] {
            let told = answer(wrong);
            assert_eq!(told.code, 2, "{workflow} {wrong:?}: {told}");
        }
        let told = answer(&["why=late", "part=2"]);
        assert_eq!(told.code, 0, "{workflow}: {told}");
        assert_eq!(running.until(&run, "succeeded")["result"], "approved: late, 2", "{workflow}");
    }
}

#[test]
fn a_run_from_the_command_line_is_held_to_the_limits_of_its_workflow() {
    let text = "name: Seldom
rate_limit: 1/h
graph:
  nodes:
    - { id: a, type: end, result: done }
";
    let env = with_workflow("seldom", text);
    let (code, shown) = run(&env, "seldom", &json!({}));
    assert_eq!((code, &shown["result"]), (0, &json!("done")), "{shown}");
    // Another process counts what the first one began.
    let refused = env.run(&["run", "seldom"]);
    assert!(refused.code != 0 && refused.stderr.contains("RUN_RATE_LIMITED"), "{refused}");
    let runs: Value = serde_json::from_str(&env.run(&["runs", "list", "--json"]).stdout).unwrap();
    assert_eq!(runs["items"].as_array().map(Vec::len), Some(1), "{runs}");
}

#[test]
fn a_run_that_asks_a_person_need_not_be_waited_for() {
    let text = "name: Ask\ngraph:\n  nodes:\n    - { id: ask, type: human, prompt: Go?, cases: { approved: b, default: end } }\n    - { id: b, type: end, result: went }\n";
    let env = with_workflow("ask", text);
    let asked = env.run(&["run", "ask", "--no-wait", "--json"]);
    assert_eq!(asked.code, 5, "{asked}");
    let told: Value = serde_json::from_str(&asked.stdout).unwrap();
    assert_eq!(told["status"], "waiting", "{asked}");
    let run = told["runId"].as_str().unwrap();
    let answered = env.run(&["runs", "answer", run, "--approve"]);
    assert_eq!(answered.code, 0, "{answered}");
    let resumed = env.run(&["runs", "resume", run]);
    assert_eq!(resumed.stdout, "went\n", "{resumed}");
    // What nobody is asked comes to its end.
    let plain =
        with_workflow("plain", "name: P\ngraph: { nodes: [{ id: a, type: end, result: x }] }\n");
    assert_eq!(plain.run(&["run", "plain", "--no-wait"]).code, 0);
}

#[test]
fn why_a_step_failed_can_be_read_behind_it() {
    let text = "name: Skips
graph:
  nodes:
    - { id: build, type: shell, command: [sh, -c, 'exit 3'], on_failure: skip, next: tell }
    - { id: tell, type: end, result: '{{ steps.build.error.code }}' }
";
    let (code, shown) = run(&with_workflow("skips", text), "skips", &json!({}));
    assert_eq!((code, &shown["result"]), (0, &json!("SHELL_EXIT")), "{shown}");
}

#[test]
fn whoever_follows_a_run_that_a_server_admitted_sees_it_from_its_first_event() {
    let text = "name: Ask
graph:
  nodes:
    - { id: which, type: branch, expr: 'true', cases: { 'true': ask, 'false': end } }
    - { id: ask, type: human, prompt: Go on?, cases: { approved: end, rejected: end } }
";
    let env = with_workflow("ask", text);
    let running = Running::start(&env);
    // The server has the desk of the workflow from here on.
    let first = running.begin("ask");
    running.until(&first, "waiting");
    for _ in 0..5 {
        let asked = env.run(&["run", "ask", "--no-wait"]);
        assert_eq!(asked.code, 5, "{asked}");
        assert!(asked.stderr.contains("✓ which"), "{asked}");
        assert!(asked.stderr.contains("? ask asks: Go on?"), "{asked}");
    }
}

#[test]
fn a_run_that_is_replayed_in_another_process_is_shown_from_its_first_step() {
    let text = "name: Two
graph:
  nodes:
    - { id: a, type: log, message: hello, next: b }
    - { id: b, type: end, result: done }
";
    let env = with_workflow("two", text);
    let running = Running::start(&env);
    let first = running.begin("two");
    running.until(&first, "succeeded");
    for _ in 0..5 {
        let again = env.run(&["runs", "replay", &first]);
        assert_eq!((again.code, again.stdout.as_str()), (0, "done\n"), "{again}");
        assert_eq!(again.stderr.matches("✓ a").count(), 1, "{again}");
    }
}
