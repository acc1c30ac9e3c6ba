//! How `cairn serve` stops: what is under way ends or is parked, and the next start goes on.

use std::fs;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use crate::automation::{Running, with_workflow};
use crate::env::TestEnv;
use crate::serve::get;

/// Two steps that note each time they are performed; the first waits for a file.
const SLOW: &str = r#"name: Slow
env: [{ name: KEY, widget: secret }]
triggers:
  - { id: hook, type: webhook, path: /slow, secret: KEY, entry_node: a }
  - { id: hand, type: manual, entry_node: a }
graph:
  nodes:
    - { id: a, type: shell, timeout_sec: 600, on_interrupt: ON_INTERRUPT, command: [sh, -c, 'echo a >> "$AT/performed"; while [ ! -e "$AT/go" ]; do sleep 0.02; done; echo done'], env: { AT: FOLDER }, next: b }
    - { id: b, type: shell, on_interrupt: fail, command: [sh, -c, 'echo b >> "$AT/performed"'], env: { AT: FOLDER }, next: c }
    - { id: c, type: end, result: '{{ steps.a.stdout | trim }}' }
"#;

fn until(what: &str, holds: impl Fn() -> bool) {
    let by = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < by, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn performed(env: &TestEnv) -> String {
    let lines = fs::read_to_string(env.path("performed")).unwrap_or_default();
    lines.split_whitespace().collect()
}

/// A server with a run whose first step is under way.
fn busy(on_interrupt: &str, drain: &str) -> (TestEnv, Running, String) {
    let env = with_workflow("slow", "");
    let folder = env.path("");
    let text = SLOW.replace("FOLDER", folder.to_str().unwrap());
    let text = text.replace("ON_INTERRUPT", on_interrupt);
    fs::write(env.path("workflows/slow.yaml"), text).unwrap();
    let running = Running::start_with(&env, &["--drain", drain]);
    let run = running.begin("slow");
    until("the step never began", || performed(&env) == "a");
    (env, running, run)
}

#[test]
fn steps_under_way_end_and_no_other_begins_when_the_server_stops() {
    let (env, mut running, run) = busy("fail", "600");
    running.server.urge(Signal::TERM);
    until("it never stopped taking work", || {
        get(&running.address, "/readyz", "").starts_with("HTTP/1.1 503 ")
    });
    for answer in [
        get(&running.address, "/readyz", ""),
        get(&running.address, "/hooks/slow", ""),
        get(&running.address, "/hooks/nowhere", ""),
    ] {
        assert!(
            answer.starts_with("HTTP/1.1 503 ") && answer.contains("SERVER_STOPPING"),
            "{answer}"
        );
        assert!(answer.to_ascii_lowercase().contains("\r\nretry-after: "), "{answer}");
    }
    let (status, answer) = running.post("/api/v1/runs", &json!({"workflow": "slow"}));
    assert_eq!((status.as_str(), &answer["code"]), ("503", &json!("SERVER_STOPPING")), "{answer}");
    let shown = running.get(&format!("/api/v1/runs/{run}"));
    assert_eq!(shown["steps"]["a"]["status"], "running", "it answers on: {shown}");

    fs::write(env.path("go"), "").unwrap();
    let (code, remarks) = running.server.ended();
    assert_eq!(code, Some(0), "{remarks}");
    assert!(remarks.contains("steps under way have 600 s to end"), "{remarks}");
    assert!(remarks.contains("1 step came to its end while stopping"), "{remarks}");
    assert!(!remarks.contains("parked"), "{remarks}");
    assert_eq!(performed(&env), "a", "the next step was not begun");

    let again = Running::start(&env);
    let shown = again.until(&run, "succeeded");
    assert_eq!(shown["result"], "done");
    assert_eq!(performed(&env), "ab", "each was performed once");
}

#[test]
fn what_takes_longer_is_parked_and_performed_again_at_the_next_start() {
    let (env, mut running, run) = busy("retry", "0");
    running.server.urge(Signal::TERM);
    let (code, remarks) = running.server.ended();
    assert_eq!(code, Some(0), "{remarks}");
    assert!(remarks.contains(&format!("parked: a of {run}")), "{remarks}");
    fs::write(env.path("go"), "").unwrap();
    let again = Running::start(&env);
    let shown = again.until(&run, "succeeded");
    assert_eq!((&shown["result"], &shown["steps"]["a"]["attempts"]), (&json!("done"), &json!(2)));
    assert_eq!(performed(&env), "aab");
}

#[test]
fn a_second_signal_parks_at_once_and_a_step_that_must_not_be_repeated_is_not() {
    let (env, mut running, run) = busy("fail", "600");
    running.server.urge(Signal::TERM);
    until("it never stopped taking work", || {
        get(&running.address, "/readyz", "").starts_with("HTTP/1.1 503 ")
    });
    running.server.urge(Signal::INT);
    let (code, remarks) = running.server.ended();
    assert_eq!(code, Some(0), "{remarks}");
    assert!(remarks.contains(&format!("parked: a of {run}")), "{remarks}");
    fs::write(env.path("go"), "").unwrap();
    let again = Running::start(&env);
    let shown = again.until(&run, "failed");
    assert_eq!(shown["error"]["step"], "a", "{shown}");
    assert_eq!(performed(&env), "a");
}
