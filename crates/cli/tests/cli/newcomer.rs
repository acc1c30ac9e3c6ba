//! What somebody meets who has the help and the guides alone.

use std::fs;

use serde_json::Value;

use crate::automation::{Running, with_workflow};
use crate::env::{Outcome, TestEnv};

const ORDER: &str = "name: Order
env: [{ name: ORDER_SECRET, widget: secret }]
triggers:
  - { id: order, type: webhook, path: /order, secret: ORDER_SECRET, entry_node: a, input: { n: { type: integer, required: true } } }
graph: { nodes: [{ id: a, type: log, level: warning, message: 'got {{ event.payload.n }}' }] }
";

fn run_id(env: &TestEnv) -> String {
    let listed = env.run(&["runs", "list", "--json"]).stdout;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    listed["items"][0]["runId"].as_str().unwrap_or_else(|| panic!("{listed}")).to_owned()
}

#[test]
fn a_handler_that_is_not_there_is_told_of_wherever_failures_are_looked_at() {
    let text = "name: Fails
on_error: { trigger_workflow: project.nothere }
graph: { nodes: [{ id: a, type: shell, command: [sh, -c, 'exit 3'] }] }
";
    let env = with_workflow("fails", text);
    let mut running = Running::start(&env);
    let run = running.begin("fails");
    running.until(&run, "failed");
    let shown = || env.run(&["runs", "show", &run]).stdout;
    assert!(shown().contains("nobody was told: `project.nothere`"), "{}", shown());
    assert!(shown().contains(&format!("go on with `cairn runs fork {run} --from a`")));
    for command in [&["trigger", "list"][..], &["doctor"]] {
        let told = env.run(command);
        let told = format!("{}{}", told.stdout, told.stderr);
        assert!(told.contains("`project.nothere`, which its `on_error` names"), "{told}");
    }
    // What is said of a run is said before what is said of a later one.
    let later = running.begin("fails");
    running.until(&later, "failed");
    running.server.urge(rustix::process::Signal::TERM);
    let (_, log) = running.server.ended();
    assert!(log.contains(&format!("{run} failed at a: SHELL_EXIT")), "{log}");
    assert!(log.contains("`project.nothere`, which `on_error` of its workflow names"), "{log}");
}

#[test]
fn a_failed_run_names_the_run_that_was_told() {
    let text = "name: Fails
on_error: { trigger_workflow: project.hears }
graph: { nodes: [{ id: a, type: shell, command: [sh, -c, 'exit 3'] }] }
";
    let env = with_workflow("fails", text);
    let hears = "name: Hears\ntriggers: [{ id: e, type: error, workflows: [project.fails], entry_node: a }]\ngraph: { nodes: [{ id: a, type: log, message: heard }] }\n";
    fs::write(env.path("workflows/hears.yaml"), hears).unwrap();
    let ran = env.run(&["run", "fails"]);
    assert_eq!(ran.code, 1, "{ran}");
    let listed = env.run(&["runs", "list", "--workflow", "fails", "--json"]).stdout;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let run = listed["items"][0]["runId"].as_str().unwrap();
    let shown = env.run(&["runs", "show", run]);
    assert!(shown.stdout.contains("→ told project.hears: run_"), "{shown}");
    let triggers = env.run(&["trigger", "list"]);
    assert!(triggers.stdout.contains("when a run of project.fails fails"), "{triggers}");
}

#[test]
fn a_secret_fits_the_signature_that_it_is_for() {
    let env = with_workflow("order", ORDER);
    for command in
        [&["secret", "set", "ORDER_SECRET"][..], &["secret", "set", "order", "ORDER_SECRET"]]
    {
        let refused = env.run_with_input(command, b"too short to be base64!");
        assert_eq!(refused.code, 2, "{refused}");
        assert!(
            refused.stderr.contains("whsec_") && refused.stderr.contains("--generate"),
            "{refused}"
        );
    }
    let missing = env.run(&["trigger", "curl", "order", "--set", "n=1"]);
    let wanted = "`project.order` has no secret `ORDER_SECRET`: set it with `cairn secret set ORDER_SECRET --workflow project.order`";
    assert!(missing.stderr.contains(wanted), "{missing}");
    let made = env.run(&["secret", "set", "ORDER_SECRET", "--workflow", "order", "--generate"]);
    assert_eq!(made.code, 0, "{made}");
    assert!(made.stdout.starts_with("whsec_") && made.stderr.contains("shown once"), "{made}");
    assert_eq!(env.run(&["env", "check", "order"]).code, 0);
    let refused = env.run(&["trigger", "curl", "order", "--set", "n=x"]);
    assert_eq!(refused.code, 2, "{refused}");
    let curl = env.run(&["trigger", "curl", "order", "--set", "n=1"]);
    assert!(curl.stdout.contains("--fail-with-body -w '\\n'"), "{curl}");
    let shown = env.run(&["workflow", "show", "order"]);
    assert!(shown.stdout.contains("ORDER_SECRET signs requests to /hooks/order"), "{shown}");
}

#[test]
fn a_secret_that_was_set_before_its_webhook_is_told_of() {
    let env = with_workflow(
        "order",
        &ORDER
            .replace("type: webhook", "type: manual")
            .replace(" path: /order, secret: ORDER_SECRET,", ""),
    );
    assert_eq!(env.run_with_input(&["secret", "set", "ORDER_SECRET"], b"not base64!!").code, 0);
    fs::write(env.path("workflows/order.yaml"), ORDER).unwrap();
    let checked = env.run(&["env", "check", "order"]);
    assert_eq!(checked.code, 3, "{checked}");
    assert!(checked.stdout.contains("`order` is signed with it"), "{checked}");
    assert!(checked.stdout.contains("--generate"), "{checked}");
}

#[test]
fn a_value_on_the_command_line_is_no_secret() {
    let env = with_workflow("order", ORDER);
    for words in
        [&["SHOP_KEY", "v1"][..], &["SHOP_KEY", "v-1!"], &["SHOP_KEY", "v1", "--workflow", "order"]]
    {
        let mut args = vec!["secret", "set"];
        args.extend(words);
        let told = env.run(&args);
        assert_eq!(told.code, 2, "{told}");
        assert!(told.stderr.contains("a value is never an argument"), "{told}");
        assert!(!told.stderr.contains("v-1!"), "{told}");
    }
}

#[test]
fn a_workflow_is_named_in_the_same_way_everywhere() {
    let env = with_workflow("order", ORDER);
    assert_eq!(env.run(&["run", "order", "--set", "n=1"]).code, 0);
    for command in [&["audit", "list"][..], &["runs", "list"]] {
        let list = |name: &str| {
            let mut args = command.to_vec();
            args.extend(["--workflow", name]);
            env.run(&args)
        };
        let (short, whole) = (list("order"), list("project.order"));
        assert!(!short.stdout.is_empty() && short.stdout == whole.stdout, "{short} {whole}");
        let unknown = list("nope");
        assert!(unknown.stderr.contains("WORKFLOW_NOT_FOUND"), "{unknown}");
    }
    let unknown = env.run(&["usage", "--workflow", "nope"]);
    assert!(unknown.stderr.contains("WORKFLOW_NOT_FOUND"), "{unknown}");
}

#[test]
fn what_a_log_step_says_is_shown() {
    let env = with_workflow("order", ORDER);
    let ran = env.run(&["run", "order", "--set", "n=7"]);
    assert!(ran.stderr.contains("warning: got 7"), "{ran}");
    let events = env.run(&["runs", "events", &run_id(&env)]);
    assert!(events.stdout.contains("warning: got 7"), "{events}");
}

#[test]
fn the_beginning_of_a_run_is_read_as_that_of_a_session() {
    let env = with_workflow("order", ORDER);
    assert_eq!(env.run(&["run", "order", "--set", "n=1"]).code, 0);
    let run = run_id(&env);
    assert_eq!(env.run(&["runs", "show", &run[..10]]).code, 0);
    for (text, code) in
        [("run_01", "RUN_ID_INVALID"), ("work", "RUN_ID_INVALID"), ("run_zzzzzz", "RUN_NOT_FOUND")]
    {
        let told = env.run(&["runs", "show", text]);
        assert!(told.stderr.contains(code), "{text}: {told}");
    }
    let exported = env.run(&["session", "export", &run, "--markdown"]);
    assert_eq!(exported.code, 0, "{exported}");
}

#[test]
fn who_acts_is_known_without_a_variable() {
    let env = with_workflow("order", ORDER);
    let mut command = env.command(&["run", "order", "--set", "n=1"]);
    let ran = Outcome::of(command.env_remove("USER").output().unwrap());
    assert_eq!(ran.code, 0, "{ran}");
    let told = env.run(&["audit", "list"]).stdout;
    assert!(!told.contains("somebody"), "{told}");
}

#[test]
fn a_cancelled_run_says_who_ended_it_and_why() {
    let text = "name: Long\ngraph: { nodes: [{ id: a, type: wait, duration_sec: 3600 }] }\n";
    let env = with_workflow("long", text);
    let running = Running::start(&env);
    let run = running.begin("long");
    running.until(&run, "waiting");
    let cancelled = env.run(&["runs", "cancel", &run, "--reason", "wrong order"]);
    assert_eq!(cancelled.code, 0, "{cancelled}");
    running.until(&run, "cancelled");
    let shown = env.run(&["runs", "show", &run]);
    assert!(shown.stdout.contains(": wrong order"), "{shown}");
    assert!(shown.stdout.contains("recorded in sess_"), "{shown}");
}

#[test]
fn sessions_of_engines_are_listed_when_asked_for() {
    let env = with_workflow("order", ORDER);
    let running = Running::start(&env);
    let (status, answer) = running
        .post("/api/v1/runs", &serde_json::json!({"workflow": "order", "payload": {"n": 1}}));
    assert_eq!(status, "201", "{answer}");
    running.until(answer["runId"].as_str().unwrap(), "succeeded");
    let count = |args: &[&str]| {
        let listed = env.run(args).stdout;
        let listed: Value = serde_json::from_str(&listed).unwrap();
        listed["items"].as_array().unwrap().clone()
    };
    let shown = count(&["session", "list", "--json"]);
    assert!(shown.iter().all(|session| session["runCount"] != 0), "{shown:?}");
    assert!(count(&["session", "list", "--json", "--all"]).len() >= shown.len());
}

#[test]
fn what_is_meant_twice_or_was_done_before_is_said_to_be() {
    let env = crate::automation::with_workflow(
        "w",
        "name: W\ngraph: { nodes: [{ id: a, type: end }] }\n",
    );
    let begin = || {
        let begun = env.run(&["run", "w", "--json"]).stdout;
        let begun: serde_json::Value = serde_json::from_str(&begun).unwrap();
        begun["runId"].as_str().unwrap().to_owned()
    };
    let (one, other) = (begin(), begin());
    // They begin in the same minute, and so do their ids.
    let short = &one[..10];
    assert!(other.starts_with(short), "{one} {other}");
    let told = env.run(&["runs", "show", short]);
    assert!(told.stderr.contains("RUN_ID_AMBIGUOUS"), "{told}");
    env.run(&["token", "create", "--name", "ci", "--scope", "read"]);
    assert_eq!(env.run(&["token", "revoke", "ci"]).code, 0);
    let told = env.run(&["token", "revoke", "ci"]);
    assert!(told.stderr.contains("ACCESS_TOKEN_REVOKED"), "{told}");
}
