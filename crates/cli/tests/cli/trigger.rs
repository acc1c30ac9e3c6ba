//! `cairn trigger`: what starts runs, and when.

use std::fs;

use cairn_api::token::Scope;
use insta::assert_snapshot;

use crate::automation::with_workflow;
use crate::env::TestEnv;

fn with_workflows() -> TestEnv {
    let env = TestEnv::new();
    let write = |name: &str, text: &str| {
        fs::create_dir_all(env.path("workflows")).unwrap();
        fs::write(env.path("workflows").join(name), text).unwrap();
    };
    write(
        "once.yaml",
        "name: Once\ntriggers:\n  - { id: then, type: schedule_at, at: '2099-03-01T09:00:00Z' }\n  - { id: ask, type: manual, input: { name: { type: string, required: true } } }\ngraph: { nodes: [{ id: a, type: end, result: 'hi {{ event.payload.name }}' }] }\n",
    );
    write(
        "off.yaml",
        "name: Off\nenabled: false\ntriggers: [{ id: tick, type: cron, cron: '@daily' }]\ngraph: { nodes: [{ id: a, type: end }] }\n",
    );
    env
}

#[test]
fn triggers_are_listed_with_when_they_fire() {
    let env = with_workflows();
    assert_snapshot!(env.run(&["trigger", "list"]), @r"
    exit 0
    --- stdout
    WORKFLOW      TRIGGER  TYPE         FIRES
    project.off   tick     cron         not: the workflow is switched off
    project.once  ask      manual       -
    project.once  then     schedule_at  at 2099-03-01T09:00:00.000Z
    ");
    assert_snapshot!(env.run(&["trigger", "next", "once", "--json"]), @r#"
    exit 0
    --- stdout
    {"items":[{"enabled":true,"localAt":[],"nextAt":["2099-03-01T09:00:00.000Z"],"triggerId":"then"}]}
    "#);
}

#[test]
fn a_trigger_is_fired_by_hand() {
    let env = with_workflows();
    fs::write(env.path("event.json"), r#"{"name":"Ada"}"#).unwrap();
    let fired = env.run(&["trigger", "fire", "once", "ask", "--event", "event.json", "--json"]);
    assert_eq!(fired.code, 0, "{fired}");
    assert!(fired.stdout.contains("\"result\":\"hi Ada\""), "{fired}");
    let fired = env.run(&["trigger", "fire", "once", "ask", "--set", "name=Bo", "--json"]);
    assert!(fired.stdout.contains("\"result\":\"hi Bo\""), "{fired}");
    assert_eq!(env.run(&["trigger", "fire", "once", "ask"]).code, 2, "the name is missing");
    assert_snapshot!(env.run(&["run", "once", "--trigger", "nightly"]), @r"
    exit 4
    --- stderr
    error[TRIGGER_NOT_FOUND]: `project.once` has no trigger `nightly`
      → list the triggers there are with `cairn trigger list`
    ");
    assert_snapshot!(env.run(&["run", "once", "--trigger", "asks"]), @r"
    exit 4
    --- stderr
    error[TRIGGER_NOT_FOUND]: `project.once` has no trigger `asks`; did you mean `ask`?
      → list the triggers there are with `cairn trigger list`
    ");
    assert_snapshot!(env.run(&["run", "once", "--trigger", "ask"]), @r"
    exit 2
    --- stderr
    error[VALIDATION_ERROR]: `name` is missing
      → give it a value with `--set name=VALUE`
    ");
    assert_snapshot!(env.run(&["trigger", "fire", "once", "nightly"]), @r"
    exit 4
    --- stderr
    error[TRIGGER_NOT_FOUND]: `once` has no trigger `nightly`
      → list the triggers there are with `cairn trigger list`
    ");
}

#[test]
fn no_command_begins_a_run_with_what_its_trigger_does_not_take() {
    let env = TestEnv::new();
    fs::create_dir_all(env.path("workflows")).unwrap();
    let text = "name: Form\ntriggers: [{ type: manual, input: { tool: { type: string, enum: [ls, df] }, n: { type: integer, default: 3 } } }]\ngraph: { nodes: [{ id: a, type: end, result: '{{ event.payload.n }}' }] }\n";
    fs::write(env.path("workflows/form.yaml"), text).unwrap();
    for args in [
        &["run", "form", "--set", "tool=rm"][..],
        &["run", "workflows/form.yaml", "--set", "tool=rm"],
        &["run", "form", "--trigger", "manual", "--set", "tool=rm"],
        &["run", "form", "--set", "tool=rm", "--detach"],
        &["run", "form", "--set", "other=1"],
    ] {
        let refused = env.run(args);
        assert_ne!(refused.code, 0, "{args:?}: {refused}");
        let told = refused.stderr.contains("not one of") || refused.stderr.contains("no field");
        assert!(told, "{args:?}: {refused}");
    }
    fs::write(env.path("bad.json"), "{\"tool\": \"rm\"}").unwrap();
    let refused = env.run(&["trigger", "fire", "form", "manual", "--event", "bad.json"]);
    assert!(refused.code != 0 && refused.stderr.contains("not one of"), "{refused}");
    let listed = env.run(&["runs", "list", "--json"]);
    assert!(listed.stdout.contains("\"items\":[]"), "{listed}");
    let good = env.run(&["run", "form", "--set", "tool=ls"]);
    assert_eq!((good.code, good.stdout.trim()), (0, "3"), "{good}");
}

#[test]
fn every_scope_of_a_token_is_a_role_that_can_be_asked_for() {
    let trigger = |(place, scope): (usize, &Scope)| {
        format!("  - {{ id: t{place}, type: manual, require_role: '{scope}' }}\n")
    };
    let triggers: String = Scope::ALL.iter().enumerate().map(trigger).collect();
    let text =
        format!("name: Roles\ntriggers:\n{triggers}graph: {{ nodes: [{{ id: a, type: end }}] }}\n");
    let env = with_workflow("roles", &text);
    let told = env.run(&["workflow", "validate"]);
    assert_eq!(told.stdout, "1 workflow: 0 errors, 0 warnings\n", "{told}");
}

/// What `trigger curl` prints is sent as it stands, and its signature is good.
#[test]
fn a_signed_request_is_printed_ready_to_paste() {
    let text = "name: Pager\nenv: [{ name: KEY, widget: secret }]\ntriggers: [{ id: alert, type: webhook, path: /pager, secret: KEY, respond: last_step, input: { service: { type: string, required: true } } }]\ngraph:\n  nodes:\n    - { id: a, type: end, result: { service: '{{ event.payload.service }}' } }\n";
    let env = crate::automation::with_workflow("pager", text);
    let set = |value: &str| {
        let mut command = env.command(&["secret", "set", "KEY", "--workflow", "pager"]);
        command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::null());
        let mut child = command.spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), value.as_bytes()).unwrap();
        assert!(child.wait().unwrap().success());
    };
    let unset = env.run(&["trigger", "curl", "pager", "--set", "service=api"]);
    assert!(unset.stderr.contains("SECRET_NOT_FOUND"), "{unset}");
    set("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
    let running = crate::automation::Running::start(&env);
    let send = |args: &[&str]| {
        let server = running.address.as_str();
        let args = [&["trigger", "curl", "pager", "--server", server, "--json"], args].concat();
        let printed = env.run(&args);
        let request: serde_json::Value = serde_json::from_str(&printed.stdout).unwrap();
        let body = request["body"].as_str().unwrap();
        let headers = request["headers"].as_object().unwrap();
        let headers: String = headers
            .iter()
            .map(|(name, value)| format!("{name}: {}\r\n", value.as_str().unwrap()))
            .collect();
        let text = format!(
            "POST /hooks/pager HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n{headers}Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut stream =
            std::net::TcpStream::connect(server.strip_prefix("http://").unwrap()).unwrap();
        std::io::Write::write_all(&mut stream, text.as_bytes()).unwrap();
        let mut answer = String::new();
        std::io::Read::read_to_string(&mut stream, &mut answer).unwrap();
        answer
    };
    crate::automation::until("the server does not know its triggers", || {
        send(&["--set", "service=api"]).contains(r#"{"service":"api"}"#)
    });
    // What would be refused is not signed.
    let refused = env.run(&["trigger", "curl", "pager", "--set", "servce=api"]);
    assert!(refused.code != 0 && refused.stderr.contains("service"), "{refused}");
    let printed = env.run(&["trigger", "curl", "pager", "--set", "service=it's"]).stdout;
    assert!(
        printed.starts_with(
            "curl -sS --fail-with-body -w '\\n' -X POST 'http://127.0.0.1:7373/hooks/pager' \\\n"
        ),
        "{printed}"
    );
    assert!(printed.contains(r#"{"service":"it'\''s"}"#), "{printed}");
    assert!(!printed.contains("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"), "{printed}");
}

#[test]
fn instants_are_shown_by_the_clock_of_the_trigger_too() {
    let env = TestEnv::new();
    fs::create_dir_all(env.path("workflows")).unwrap();
    let text = "name: Zone\ntriggers: [{ type: cron, cron: '0 8 1 1 *', timezone: Asia/Jakarta }, { type: channel, channel: slack }]\ngraph: { nodes: [{ id: a, type: end }] }\n";
    fs::write(env.path("workflows/zone.yaml"), text).unwrap();
    let shown = env.run(&["trigger", "next", "zone", "--count", "1"]);
    let line = shown.stdout.trim_end();
    assert!(line.contains("-01-01T01:00:00.000Z  "), "{shown}");
    assert!(line.ends_with("-01-01T08:00:00+07:00[Asia/Jakarta]"), "{shown}");
    let listed = env.run(&["trigger", "list"]);
    assert!(listed.stdout.contains("the channel `slack` is not connected"), "{listed}");
}
