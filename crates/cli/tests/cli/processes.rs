//! What is ended when an engine was killed: what it started itself, and nothing else.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::automation::with_workflow;
use crate::env::{Outcome, TestEnv};

/// A time to sleep that no other test uses, so that its process can be found.
fn unique_seconds() -> String {
    let mut bytes = [0; 4];
    getrandom::fill(&mut bytes).unwrap();
    format!("6{}", u32::from_le_bytes(bytes))
}

/// Whether a process sleeps for this long.
fn sleeps(seconds: &str) -> bool {
    let mark = format!("sleep\0{seconds}\0");
    let all = fs::read_dir("/proc").unwrap().flatten();
    let mut lines = all.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    lines.any(|line| line == mark.as_bytes())
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(20), "it took too long: {what}");
        std::thread::yield_now();
    }
}

/// The supervisors that a data directory has recorded.
fn supervisors(home: &Path) -> Vec<Pid> {
    let Ok(entries) = fs::read_dir(home.join("processes")) else { return Vec::new() };
    let read = |path: &Path| -> Value { serde_json::from_slice(&fs::read(path).unwrap()).unwrap() };
    let paths = entries.map(|entry| entry.unwrap().path());
    let records = paths.filter(|path| path.extension().is_some_and(|ending| ending == "json"));
    let pid = |record: Value| i32::try_from(record["supervisor"]["pid"].as_i64()?).ok();
    records.filter_map(|path| Pid::from_raw(pid(read(&path))?)).collect()
}

/// A run whose step sleeps, started by hiding as the line does.
fn start(env: &TestEnv) -> Child {
    let mut command = env.command(&["run", "sleeper"]);
    command.env("PATH", "/usr/bin:/bin").stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

/// Kills an engine and its supervisors at once, as when memory runs out.
fn kill_hard(env: &TestEnv, mut engine: Child) {
    let supervisors = supervisors(&env.home());
    assert!(!supervisors.is_empty(), "what runs is recorded");
    let all = |signal: Signal| supervisors.iter().try_for_each(|pid| kill_process(*pid, signal));
    // Who is stopped does not see that the engine is gone.
    all(Signal::STOP).unwrap();
    engine.kill().unwrap();
    engine.wait().unwrap();
    all(Signal::KILL).unwrap();
}

#[test]
fn a_variable_in_the_environment_ends_nobody() {
    let env = TestEnv::new();
    for value in ["x", ""] {
        let mut stranger = Command::new("sleep").arg("60").env("CAIRN_RUN", value).spawn().unwrap();
        let output = env.command(&["runs", "list"]).env("CAIRN_RUN", value).output().unwrap();
        let outcome = Outcome::of(output);
        assert_eq!(outcome.code, 0, "{outcome}");
        assert_eq!(stranger.try_wait().unwrap(), None, "it is left alone");
        stranger.kill().unwrap();
        stranger.wait().unwrap();
    }
}

#[test]
fn the_next_start_ends_what_a_killed_engine_left() {
    for line in ["sleep {}", "(setsid sh -c 'sleep {} & exit' &); sleep 50"] {
        let seconds = unique_seconds();
        let line = line.replace("{}", &seconds);
        let text = format!(
            "name: Sleeper\ngraph:\n  nodes:\n    - {{ id: a, type: shell, command: [sh, -c, \"{line}\"] }}\n"
        );
        let (env, other) = (with_workflow("sleeper", &text), TestEnv::new());
        let engine = start(&env);
        until("the step sleeps", || sleeps(&seconds));
        assert_eq!(env.run(&["runs", "list"]).code, 0);
        assert!(sleeps(&seconds), "its owner lives: {line}");
        kill_hard(&env, engine);
        assert!(sleeps(&seconds), "nobody is there to end it: {line}");
        assert_eq!(other.run(&["runs", "list"]).code, 0);
        assert!(sleeps(&seconds), "another data directory started it: {line}");
        assert_eq!(env.run(&["runs", "list"]).code, 0);
        assert!(!sleeps(&seconds), "{line}");
        assert_eq!(supervisors(&env.home()), []);
    }
}
