//! `cairn trigger`: what starts runs, and when.

use std::fs;

use insta::assert_snapshot;

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
    {"items":[{"enabled":true,"nextAt":["2099-03-01T09:00:00.000Z"],"triggerId":"then"}]}
    "#);
}

#[test]
fn a_trigger_is_fired_by_hand() {
    let env = with_workflows();
    fs::write(env.path("event.json"), r#"{"name":"Ada"}"#).unwrap();
    let fired = env.run(&["trigger", "fire", "once", "ask", "--event", "event.json", "--json"]);
    assert_eq!(fired.code, 0, "{fired}");
    assert!(fired.stdout.contains("\"result\":\"hi Ada\""), "{fired}");
    assert_eq!(env.run(&["trigger", "fire", "once", "ask"]).code, 2, "the name is missing");
    assert_snapshot!(env.run(&["trigger", "fire", "once", "nightly"]), @r"
    exit 4
    --- stderr
    error[TRIGGER_NOT_FOUND]: `once` has no trigger `nightly`
      → list the triggers there are with `cairn trigger list`
    ");
}
