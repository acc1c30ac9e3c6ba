//! `cairn runs`: what is told of runs, and what a fork changes.

use std::process::{Child, Stdio};

use insta::assert_snapshot;
use serde_json::Value;

use crate::automation::{Running, until, with_workflow};
use crate::env::TestEnv;

const STORY: &str = "name: Story
graph:
  nodes:
    - { id: zeta, type: shell, command: [sh, -c, 'echo a line that is long enough to be cut short in the table of steps'], next: bad }
    - { id: bad, type: shell, command: [sh, -c, 'echo no space left >&2; exit 3'], on_failure: fallback, fallback: alpha, next: ask }
    - { id: alpha, type: branch, expr: '{{ event.payload.go }}', cases: { 'true': ask, 'false': ask } }
    - { id: ask, type: human, prompt: 'Go on?', form: { why: { type: string, required: true }, part: { type: integer, minimum: 0 } }, cases: { approved: fin, rejected: fin } }
    - { id: fin, type: end, result: '{{ steps.zeta.stdout | trim }}' }
";

/// Hides what differs from run to run.
fn filtered() -> insta::internals::SettingsBindDropGuard {
    let mut settings = insta::Settings::clone_current();
    settings.add_filter(r"(run|task)_[0-9a-z]{26}", "${1}_[id]");
    settings.add_filter(r"\d{4}-\d\d-\d\dT[0-9:.]+Z", "[time]");
    settings.add_filter(r"(?m)\b[0-9.]+ (ms|s|min) *$", "[while]");
    settings.add_filter(r"\b[0-9.]+ (ms|s|min) *", "[while] ");
    settings.add_filter(r"counts as yours, [^)]+\)", "counts as yours, [name])");
    settings.add_filter(r"TIME +OUTPUT", "TIME OUTPUT");
    settings.add_filter(r#""duration_ms":( ?)\d+"#, r#""duration_ms":${1}0"#);
    settings.add_filter(r"std\w+…", "std…");
    settings.bind_to_scope()
}

/// The runs there are, latest first.
fn runs(env: &TestEnv) -> Vec<Value> {
    let listed = env.run(&["runs", "list", "--json"]).stdout;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    listed["items"].as_array().unwrap().clone()
}

fn id(run: &Value) -> String {
    run["runId"].as_str().unwrap().to_owned()
}

/// A run that somebody waits for, and that is left when this is done with.
fn alone(env: &TestEnv, args: &[&str], status: &str) -> (Child, String) {
    let mut command = env.command(args);
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    until("it does not come there", || runs(env).iter().any(|run| run["status"] == status));
    (child, id(&runs(env)[0]))
}

#[test]
fn a_run_is_shown_as_it_went() {
    let env = with_workflow("story", STORY);
    let running = Running::start(&env);
    let (_, answer) = running
        .post("/api/v1/runs", &serde_json::json!({"workflow": "story", "payload": {"go": true}}));
    let run = id(&answer);
    running.until(&run, "waiting");
    let _bound = filtered();
    assert_snapshot!(env.run(&["runs", "show", &run]), @r#"
    exit 0
    --- stdout
    run_[id]  project.story  waiting
    asked for directly at [time]
    recorded in sess_[fresh]

    STEP   STATUS     CASE  TRIES  TIME OUTPUT
    zeta   succeeded  -     1      [while] {"duration_ms":0,"exit_code":0,"ok":true,"stderr":"","std…
    bad    failed     -     1      [while] SHELL_EXIT
    alpha  succeeded  true  -      [while] {"value":true}
    ask    waiting    -     -      [while]

    ask asks: Go on?
      why   string, required
      part  integer, at least 0
      → cairn runs answer run_[id] task_[id] --approve --set why=… [--set part=…]  (or --reject)

    bad: SHELL_EXIT: the command ended with exit code 3
      no space left
    --- stderr

    `cairn runs show run_[id] --step STEP` shows all of a step
    "#);
    assert_snapshot!(env.run(&["runs", "show", &run, "--step", "bad"]), @r#"
    exit 0
    --- stdout
    bad  failed
    begun at [time], tries 1, time [while]
    SHELL_EXIT: the command ended with exit code 3

    input:
    {
      "command": [
        "sh",
        "-c",
        "echo no space left >&2; exit 3"
      ]
    }

    output:
    {
      "duration_ms": 0,
      "exit_code": 3,
      "ok": false,
      "stdout": "",
      "timed_out": false,
      "truncated": false
    }

    stderr:
    no space left
    "#);
    assert_snapshot!(env.run(&["runs", "show", &run, "--step", "nope"]), @r"
    exit 2
    --- stderr
    error[USAGE_INVALID]: run_[id] has no step `nope`
      → its steps are alpha, ask, bad, zeta
    ");
    let answered = env.run(&["runs", "answer", &run, "--approve", "--set", "why=late"]);
    assert_eq!(answered.code, 0, "{answered}");
    running.until(&run, "succeeded");
    assert_snapshot!(env.run(&["runs", "fork", &run, "--from", "fin", "--set", "zeta=abc", "--set", "bad={}", "--dry-run"]), @r#"
    exit 0
    --- stderr
    note: abc is not JSON, and taken as text; write '"abc"' to say so
    kept: alpha, ask (the decision counts as yours, [name])
    changed: zeta, bad
    again: fin
    "#);
    let forked =
        env.run(&["runs", "fork", &run, "--from", "fin", "--set", r#"zeta={"stdout":"new"}"#]);
    assert_eq!(forked.stdout, "new\n", "{forked}");
    assert!(!forked.stderr.contains("note:"), "{forked}");
    assert_snapshot!(env.run(&["runs", "show", &id(&runs(&env)[0])]), @r#"
    exit 0
    --- stdout
    run_[id]  project.story  succeeded
    asked for directly at [time]
    forked from run_[id]
    recorded in sess_[fresh]

    STEP   STATUS     CASE      TRIES  TIME OUTPUT
    zeta   succeeded  -         1      kept  {"stdout":"new"}
    bad    failed     -         1      kept  SHELL_EXIT
    alpha  succeeded  true      1      kept  {"value":true}
    ask    succeeded  approved  1      kept  {"answer":{"why":"late"},"at":"[time]","b…
    fin    succeeded  -         -      [while] {"result":"new"}

    bad: SHELL_EXIT: the command ended with exit code 3
      no space left

    result: "new"
    --- stderr

    `cairn runs show run_[id] --step STEP` shows all of a step
    "#);
    let listed = env.run(&["runs", "list"]);
    assert_eq!(listed.stdout.matches(&format!("fork of {run}")).count(), 1, "{listed}");
}

#[test]
fn a_question_is_asked_with_its_form_where_the_run_is_followed() {
    let env = with_workflow("story", STORY);
    let (mut child, run) = alone(&env, &["run", "story", "--set", "go=true"], "waiting");
    child.kill().unwrap();
    let told = String::from_utf8(child.wait_with_output().unwrap().stderr).unwrap();
    let at = told.find("? ask asks").unwrap_or_else(|| panic!("{told}"));
    let _bound = filtered();
    assert_snapshot!(&told[at..], @r"
    ? ask asks: Go on?
        why   string, required
        part  integer, at least 0
        → cairn runs answer run_[id] task_[id] --approve --set why=… [--set part=…]  (or --reject)
    … ask  waits for a person
    ");
    // Whoever goes on with it is asked, too.
    let mut again = env.command(&["runs", "resume", &run]);
    let mut again = again.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    until("nobody performs it", || {
        !env.run(&["runs", "show", &run]).stdout.contains("no process performs")
    });
    let answered = env.run(&["runs", "answer", &run, "--approve", "--set", "why=late"]);
    assert_eq!(answered.code, 0, "{answered}");
    again.wait().unwrap();
    let told = String::from_utf8(again.wait_with_output().unwrap().stderr).unwrap();
    assert!(told.contains("ask asks: Go on?") && told.contains("--set why=…"), "{told}");
}

#[test]
fn a_run_that_nobody_performs_says_so() {
    let text = "name: Long\ngraph: { nodes: [{ id: a, type: shell, timeout_sec: 60, command: [sleep, '50'] }] }\n";
    let env = with_workflow("long", text);
    let (mut child, run) = alone(&env, &["run", "long"], "running");
    let listed = || env.run(&["runs", "list"]);
    assert!(listed().stdout.contains("  running  "), "{}", listed());
    child.kill().unwrap();
    child.wait().unwrap();
    let (list, shown) = (listed(), env.run(&["runs", "show", &run]));
    assert!(list.stdout.contains("  interrupted  "), "{list}");
    assert!(list.stderr.contains("cairn runs resume RUN"), "{list}");
    assert!(shown.stdout.contains(&format!("→ cairn runs resume {run}")), "{shown}");
    assert_eq!(runs(&env)[0]["status"], "interrupted");
    for (status, is_there) in [("interrupted", true), ("running", false)] {
        let listed = env.run(&["runs", "list", "--status", status]);
        assert_eq!(listed.stdout.contains(&run), is_there, "{status}: {listed}");
    }
}

#[test]
fn why_a_run_was_cancelled_is_told() {
    let text = "name: Ask\ngraph: { nodes: [{ id: a, type: human, prompt: 'Go on?' }] }\n";
    let env = with_workflow("ask", text);
    let (mut child, run) = alone(&env, &["run", "ask"], "waiting");
    let cancelled = env.run(&["runs", "cancel", &run, "--reason", "wrong input"]);
    assert_eq!(cancelled.code, 0, "{cancelled}");
    child.wait().unwrap();
    let told = env.run(&["runs", "events", &run]);
    assert!(told.stdout.contains(": wrong input"), "{told}");
    let late = env.run(&["runs", "answer", &run, "--approve"]);
    assert!(late.code == 2 && late.stderr.contains("asks nothing"), "{late}");
}

#[test]
fn a_run_of_another_process_can_be_followed() {
    let text = "name: Ask\ngraph: { nodes: [{ id: a, type: human, prompt: 'Go on?' }] }\n";
    let env = with_workflow("ask", text);
    let (mut child, run) = alone(&env, &["run", "ask"], "waiting");
    let mut follow = env.command(&["runs", "events", &run, "--follow"]);
    let mut follow = follow.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut told = std::io::BufReader::new(follow.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("asks") {
        line.clear();
        assert_ne!(
            std::io::BufRead::read_line(&mut told, &mut line).unwrap(),
            0,
            "nothing is asked"
        );
    }
    assert_eq!(env.run(&["runs", "answer", &run, "--approve"]).code, 0);
    let rest = std::io::read_to_string(told).unwrap();
    assert!(follow.wait().unwrap().success() && rest.contains("run_completed"), "{rest}");
    child.wait().unwrap();
}

#[test]
fn what_is_waited_for_takes_its_time() {
    let text = "name: Slow\ngraph: { nodes: [{ id: a, type: wait, duration_sec: 1 }] }\n";
    let env = with_workflow("slow", text);
    let ran = env.run(&["run", "slow", "--json"]);
    let ran: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran}"));
    let took = ran["steps"]["a"]["durationMs"].as_u64().unwrap();
    assert!((900..60_000).contains(&took), "{ran:#}");
}

#[test]
fn a_workflow_that_leads_an_agent_says_how_it_is_gone_through() {
    let env = crate::env::TestEnv::new();
    let ran = env.run(&["run", "wr.quick-task"]);
    assert!(ran.code == 2 && ran.stderr.contains("cairn guide wr.quick-task"), "{ran}");
}

#[test]
fn a_text_that_looks_like_a_number_can_be_given() {
    let text = "name: Typed\ntriggers: [{ id: ask, type: manual, input: { id: { type: string } } }]\ngraph: { nodes: [{ id: a, type: end, result: '{{ event.payload.id }}' }] }\n";
    let env = with_workflow("typed", text);
    let wrong = env.run(&["run", "typed", "--set", "id=12345"]);
    assert!(wrong.stderr.contains(r#"--set 'id="12345"'"#), "{wrong}");
    let right = env.run(&["run", "typed", "--set", r#"id="12345""#]);
    assert_eq!((right.code, right.stdout.trim()), (0, "12345"), "{right}");
}

#[test]
fn a_run_by_hand_begins_at_the_trigger_for_people() {
    let text = "name: By hand\ntriggers:\n  - { id: ask, type: manual }\ngraph: { nodes: [{ id: a, type: end, result: 1 }] }\n";
    let env = with_workflow("hand", text);
    let ran = env.run(&["run", "hand"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(runs(&env)[0]["triggerId"], "ask");
}

#[test]
fn what_begins_like_json_and_is_none_is_refused() {
    let text =
        "name: Plain\ngraph: { nodes: [{ id: a, type: end, result: '{{ event.payload.a }}' }] }\n";
    let env = with_workflow("plain", text);
    for (value, column) in [
        ("a=abc", None),
        (r#"a={"x":1}"#, None),
        (r#"a="{x""#, None),
        ("a={x: 1}", Some("column 2")),
        (r#"a={"stdout":"changed}"#, Some("column 19")),
        ("a=[1,", Some("column 3")),
    ] {
        let ran = env.run(&["run", "plain", "--set", value]);
        assert_eq!(ran.code == 2, column.is_some(), "{value}: {ran}");
        assert!(ran.stderr.contains(column.unwrap_or_default()), "{value}: {ran}");
    }
    let ran = env.run(&["run", "plain", "--event", r#"{"a":"x"}"#]);
    assert_eq!(ran.code, 2, "{ran}");
    assert!(ran.stderr.contains("--event takes the name of a file"), "{ran}");
    assert!(ran.stderr.contains("--event -"), "{ran}");
}
