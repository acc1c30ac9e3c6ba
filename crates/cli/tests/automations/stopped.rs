//! An owner that is stopped: others are told within two seconds, nothing that was refused happens
//! later, and one that is killed in the end is taken over at once. And one whose lock files somebody
//! removes: whoever comes then has the sessions, and the old owner writes nothing behind it.

use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::server::{Place, Server, call};

const WAITS: &str = "name: Waits
rate_limit: 100000/min
graph:
  nodes:
    - { id: a, type: wait, duration_sec: 3600 }
";

const BUSY: &str = "name: Busy
rate_limit: 100000/min
graph:
  nodes:
    - { id: l, type: loop, count: 60, body: [i] }
    - { id: i, type: log, message: busy }
";

/// How often an owner is stopped: `CAIRN_STOPS`, three times unless it says so.
fn rounds() -> usize {
    std::env::var("CAIRN_STOPS").ok().and_then(|stops| stops.parse().ok()).unwrap_or(3)
}

fn signal(server: &Server, name: &str) {
    let pid = server.child.id().to_string();
    let sent = Command::new("sh").args(["-c", &format!("kill -{name} {pid}")]).status().unwrap();
    assert!(sent.success());
}

/// What a command says on standard error, and how long it took.
fn said(place: &Place, args: &[&str]) -> (bool, String, Duration) {
    let begun = Instant::now();
    let done = place.command(args).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    (done.status.success(), said, begun.elapsed())
}

fn begin(place: &Place, server: &Server, workflow: &str) -> String {
    let asked = json!({"workflow": workflow});
    let begun = call(&server.address, &place.token(), "POST /api/v1/runs", "", Some(&asked));
    let (status, begun) = begun.unwrap();
    assert_eq!(status, 201, "{begun}");
    begun["runId"].as_str().unwrap().to_owned()
}

fn status(place: &Place, run: &str) -> Value {
    let shown = place.command(&["runs", "show", run, "--json"]).output().unwrap();
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    shown["status"].clone()
}

/// A number below `end`, another one each time.
fn below(end: u8) -> u8 {
    let mut byte = [0];
    getrandom::fill(&mut byte).unwrap();
    byte[0] % end
}

/// Waits until a run is over, and looks whether it has one end, which is its last event.
fn require_one_end(place: &Place, run: &str) {
    let by = Instant::now() + Duration::from_secs(60);
    while !["succeeded", "cancelled"].contains(&status(place, run).as_str().unwrap()) {
        assert!(Instant::now() < by, "{run} never ends");
    }
    let (ends, kinds) = (["run_completed", "run_cancelled", "run_failed"], kinds(place, run));
    let count = kinds.iter().filter(|kind| ends.contains(&kind.as_str())).count();
    assert_eq!(count, 1, "{run}: {kinds:?}");
    assert!(ends.contains(&kinds.last().unwrap().as_str()), "{run}: {kinds:?}");
}

#[test]
fn a_stopped_owner_is_named_at_once_and_what_was_refused_never_happens() {
    let flows = [("waits", WAITS.to_owned()), ("busy", BUSY.to_owned())];
    let place = Place::new("", &flows);
    let mut busy = Vec::new();
    for round in 0..rounds() {
        let mut server = place.serve();
        let run = begin(&place, &server, "project.waits");
        // It is stopped somewhere in the middle of what these do.
        busy.extend((0..below(4)).map(|_| begin(&place, &server, "project.busy")));
        for _ in 0..below(8) {
            call(&server.address, &place.token(), "GET /api/v1/runs", "", None).unwrap();
        }
        signal(&server, "STOP");
        let owner = format!("process {} since", server.child.id());
        for (args, code) in [
            (["runs", "cancel", &run], "RUN_ELSEWHERE"),
            (["runs", "pause", &run], "RUN_ELSEWHERE"),
            (["run", "project.waits", "--quiet"], "WORKFLOW_ELSEWHERE"),
        ] {
            let (done, said, took) = said(&place, &args);
            assert!(!done && said.contains(code) && said.contains(&owner), "{args:?}: {said}");
            assert!(took < Duration::from_secs(2), "{args:?} took {took:?}");
        }
        signal(&server, "CONT");
        assert_eq!(status(&place, &run), "waiting", "round {round}");
        let listed =
            place.command(&["runs", "list", "--json", "--limit", "1000"]).output().unwrap();
        let listed = String::from_utf8_lossy(&listed.stdout).matches("\"runId\":\"run_").count();
        assert_eq!(listed, round + 1 + busy.len(), "a request that was refused began");
        // One that is stopped, and then gone, is taken over.
        signal(&server, "STOP");
        server.kill();
        let (done, said, took) = said(&place, &["runs", "cancel", &run]);
        assert!(done && took < Duration::from_secs(1), "{said} {took:?}");
        assert_eq!(status(&place, &run), "cancelled");
    }
    let _server = place.serve();
    busy.iter().for_each(|run| require_one_end(&place, run));
}

/// The kinds of all events of a run, in order.
fn kinds(place: &Place, run: &str) -> Vec<String> {
    let events = place.command(&["runs", "events", run, "--json"]).output().unwrap();
    let lines = String::from_utf8(events.stdout).unwrap();
    let events = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let all: Vec<Value> = events
        .flat_map(|event| match event["items"].as_array() {
            Some(items) => items.clone(),
            None => vec![event],
        })
        .collect();
    all.iter().map(|event| event["kind"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn an_owner_whose_lock_files_are_removed_writes_nothing_behind_whoever_comes_then() {
    let flows = [("waits", WAITS.to_owned()), ("busy", BUSY.to_owned())];
    let place = Place::new("", &flows);
    let server = place.serve();
    for round in 0..rounds() {
        let waits = begin(&place, &server, "project.waits");
        let busy: Vec<String> = (0..3).map(|_| begin(&place, &server, "project.busy")).collect();
        for session in std::fs::read_dir(place.home().join("sessions")).unwrap() {
            // Not every session has had an owner.
            let _ = std::fs::remove_file(session.unwrap().path().join(".owner"));
        }
        let (done, said, _) = said(&place, &["runs", "cancel", &waits]);
        assert!(done, "round {round}: {said}");
        busy.iter().chain([&waits]).for_each(|run| require_one_end(&place, run));
        assert_eq!(status(&place, &waits), "cancelled", "round {round}");
    }
    let (sound, said, _) = said(&place, &["session", "verify", "--all"]);
    assert!(sound, "{said}");
}
