//! Values that no workflow was written for: each ends its run with a name, and none is taken
//! for a yes.

use std::fs;

use serde_json::{Value, json};

use crate::canary::{set_secret, until};
use crate::server::Place;

/// How a run of a workflow ends, as it is told.
fn run(place: &Place, workflow: &str, payload: &Value) -> Value {
    fs::write(place.path("event.json"), payload.to_string()).unwrap();
    let args = ["run", workflow, "--event", "event.json", "--json"];
    let done = place.command(&args).output().unwrap();
    let said = String::from_utf8(done.stdout).unwrap();
    let errors = String::from_utf8_lossy(&done.stderr).into_owned();
    serde_json::from_str(&said).unwrap_or_else(|_| panic!("{workflow} {payload}: {said}{errors}"))
}

fn branch(expr: &str, cases: &str) -> String {
    let expr = serde_json::to_string(expr).unwrap();
    format!(
        "name: Odd\ngraph:\n  nodes:\n    - {{ id: judge, type: branch, expr: {expr}, cases: {{ {cases} }} }}\n    - {{ id: yes, type: end, result: went on }}\n    - {{ id: no, type: end, result: went on }}\n"
    )
}

// case: expr.no-value
#[test]
fn what_has_no_value_decides_nothing() {
    let payload = json!({
        "big": 9_007_199_254_740_991_u64, "fine": 1e308, "zero": 0, "text": "many", "none": null, "list": [1], "half": 0.5,
    });
    let both = "'true': yes, 'false': no";
    let any = "'true': yes, default: no";
    for (expr, code) in [
        ("event.payload.big * event.payload.big > 0", "EXPR_OVERFLOW"),
        ("event.payload.fine * 10 > 0", "EXPR_OVERFLOW"),
        ("('nan' | float) < 1", "EXPR_INVALID"),
        ("1 / event.payload.zero == 1", "EXPR_DIVISION_BY_ZERO"),
        ("1 % event.payload.zero == 1", "EXPR_DIVISION_BY_ZERO"),
        ("event.payload.half / event.payload.zero > 1", "EXPR_DIVISION_BY_ZERO"),
        ("event.payload.missing == 1", "EXPR_UNDEFINED"),
        ("event.payload.missing.deeper", "EXPR_UNDEFINED"),
        ("event.payload.none.deeper == 1", "EXPR_UNDEFINED"),
        ("event.payload.list[7] == 1", "EXPR_UNDEFINED"),
        ("event.payload.text > 1", "EXPR_TYPE"),
        ("event.payload.list < 1", "EXPR_TYPE"),
        ("event.payload.none >= 0", "EXPR_TYPE"),
        ("event.payload.text - 1 == 0", "EXPR_TYPE"),
    ] {
        for cases in [both, any] {
            let place = Place::new("", &[("odd", branch(expr, cases))]);
            let shown = run(&place, "odd", &payload);
            assert_eq!(shown["status"], "failed", "{expr}: {shown}");
            assert_eq!(shown["error"]["code"], code, "{expr}: {shown}");
            assert_eq!(shown["result"], json!(null), "{expr}: {shown}");
        }
    }
}

#[test]
fn a_workflow_that_calls_itself_comes_to_an_end() {
    let text =
        "name: Deep\ngraph: { nodes: [{ id: c, type: workflow, workflow: project.deep }] }\n";
    let place = Place::new("", &[("deep", text.to_owned())]);
    let shown = run(&place, "deep", &json!({}));
    assert_eq!(
        (&shown["status"], &shown["error"]["code"]),
        (&json!("failed"), &json!("CHILD_FAILED"))
    );
    let why = shown["error"]["message"].as_str().unwrap();
    assert!(why.contains("16 runs stand above this one"), "{why}");
    let listed = place.command(&["runs", "list", "--json"]).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert_eq!(listed.matches("\"runId\"").count(), 17, "{listed}");
}

#[test]
fn output_of_one_byte_too_many_fails_the_run_and_not_the_engine() {
    let text = |bytes: usize| {
        format!(
            "name: Long\ngraph:\n  nodes:\n    - {{ id: a, type: shell, command: [sh, -c, 'head -c {bytes} /dev/zero | tr \"\\\\0\" x'], next: b }}\n    - {{ id: b, type: end, result: '{{{{ steps.a.stdout | length }}}}' }}\n"
        )
    };
    let place = Place::new("", &[("just", text(1 << 20)), ("over", text((1 << 20) + 1))]);
    let just = run(&place, "just", &json!({}));
    assert_eq!(
        (&just["status"], &just["result"]),
        (&json!("succeeded"), &json!(1 << 20)),
        "{just}"
    );
    let over = run(&place, "over", &json!({}));
    assert_eq!(over["error"]["code"], "SHELL_OUTPUT_TOO_LARGE", "{}", over["error"]);
}

#[test]
fn a_webhook_without_its_secret_is_listed_as_such() {
    let text = "name: Pager\nenv: [{ name: PAGER_KEY, widget: secret }]\ntriggers: [{ id: pager, type: webhook, path: /pager, secret: PAGER_KEY }]\ngraph: { nodes: [{ id: a, type: end }] }\n";
    let place = Place::new("", &[("pager", text.to_owned())]);
    // Whoever reads makes no data directory.
    fs::create_dir(place.home()).unwrap();
    let list = || String::from_utf8(place.command(&["trigger", "list"]).output().unwrap().stdout);
    let listed = list().unwrap();
    assert!(listed.contains("the secret `PAGER_KEY` has no value"), "{listed}");
    assert!(listed.contains("cairn secret set PAGER_KEY"), "{listed}");
    let set = |from: &str| {
        fs::write(place.path("value"), from).unwrap();
        let stdin = fs::File::open(place.path("value")).unwrap();
        let set = place.command(&["secret", "set", "PAGER_KEY"]).stdin(stdin).output().unwrap();
        assert!(set.status.success(), "{}", String::from_utf8_lossy(&set.stderr));
    };
    set("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
    let listed = list().unwrap();
    assert!(listed.contains("on requests to /hooks/pager"), "{listed}");
}

#[test]
fn a_firing_without_its_secret_is_told_of_and_the_next_one_runs_once_it_is_there() {
    let text = "name: Tick\nenv: [{ name: TICK_KEY, widget: secret, required: true }]\ntriggers: [{ id: tick, type: cron, cron: '* * * * * *' }]\ngraph: { nodes: [{ id: a, type: end }] }\n";
    let place = Place::new("", &[("tick", text.to_owned())]);
    let said = |args: &[&str]| {
        let output = place.command(args).output().unwrap();
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    };
    let mut server = place.serve();
    until("nobody is told", || {
        let listed = said(&["trigger", "list"]);
        (listed.contains("was refused") && listed.contains("`TICK_KEY` has no value")).then_some(())
    });
    let log = fs::read_to_string(place.path("serve.log")).unwrap();
    assert!(log.contains("cannot start its run: SETTING_INVALID"), "{log}");
    assert!(said(&["runs", "list"]).contains("no runs"));
    set_secret(&place, "TICK_KEY", "long-enough-to-hide");
    until("nothing runs", || said(&["runs", "list"]).contains("succeeded").then_some(()));
    server.kill();
}

#[test]
fn a_session_that_cannot_be_read_is_named_where_its_runs_would_be() {
    let text = "name: One\ngraph: { nodes: [{ id: a, type: end }] }\n";
    let place = Place::new("", &[("one", text.to_owned())]);
    run(&place, "one", &json!({}));
    let list = || {
        let output = place.command(&["runs", "list", "--json"]).output().unwrap();
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let listed = list();
    assert_eq!(listed["unreadableSessions"], json!([]), "{listed}");
    let session = listed["items"][0]["sessionId"].as_str().unwrap().to_owned();
    let journal = place.home().join("sessions").join(&session).join("journal.jsonl");
    fs::rename(&journal, place.path("away")).unwrap();
    for entry in fs::read_dir(place.home()).unwrap().map(Result::unwrap) {
        if entry.file_name().to_string_lossy().starts_with("index.sqlite") {
            fs::remove_file(entry.path()).unwrap();
        }
    }
    let hidden = list();
    assert_eq!((&hidden["items"], &hidden["unreadableSessions"]), (&json!([]), &json!([session])));
    let output = place.command(&["runs", "list"]).output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains(&format!("`cairn session verify {session}`")), "{told}");
    assert!(!told.contains("no runs"), "{told}");
    fs::rename(place.path("away"), journal).unwrap();
    assert_eq!(list()["items"], listed["items"]);
}

#[test]
fn a_detached_run_beside_a_server_leaves_no_process() {
    let text = "name: Ask\ngraph: { nodes: [{ id: a, type: human, prompt: Yes or no? }] }\n";
    let place = Place::new("", &[("ask", text.to_owned())]);
    let run = || {
        let done = place.command(&["run", "ask", "--detach"]).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap().trim().to_owned()
    };
    let left = || {
        let home = place.home().to_string_lossy().into_owned();
        let told = fs::read_dir("/proc").unwrap().flatten();
        let told = told.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
        let told = told.map(|line| String::from_utf8_lossy(&line).into_owned());
        told.filter(|line| line.contains(&home) && line.contains("--stay")).count()
    };
    let waits = |run: &str| {
        let shown = place.command(&["runs", "show", run, "--json"]).output().unwrap();
        String::from_utf8(shown.stdout).unwrap().contains("\"waiting\"").then_some(())
    };
    let mut server = place.serve();
    let beside = run();
    until("the server does not go on with it", || waits(&beside));
    assert_eq!(left(), 0);
    server.kill();
    let alone = run();
    until("nobody goes on with it", || waits(&alone));
    assert_eq!(left(), 1);
    for run in [beside, alone] {
        assert!(place.command(&["runs", "cancel", &run]).output().unwrap().status.success());
    }
    until("it stays when its run is over", || (left() == 0).then_some(()));
}
