//! `cairn workflow new`: every template becomes a workflow that is right and runs.

use std::fs;

use insta::assert_snapshot;
use serde_json::Value;

use crate::env::TestEnv;

fn templates(env: &TestEnv) -> Vec<(String, String)> {
    let listed: Value =
        serde_json::from_str(&env.run(&["workflow", "new", "--list", "--json"]).stdout).unwrap();
    let text = |item: &Value, name: &str| item[name].as_str().unwrap().to_owned();
    let items = listed["items"].as_array().unwrap();
    items.iter().map(|item| (text(item, "name"), text(item, "kind"))).collect()
}

#[test]
fn the_templates_are_listed() {
    assert_snapshot!(TestEnv::new().run(&["workflow", "new", "--list"]), @"
    exit 0
    --- stdout
    TEMPLATE               KIND    SHOWS
    bug-hunt               guided  an agent goes from a report to a fix that is shown to work
    daily-digest           graph   a schedule, three sources, one text
    incident-response      graph   three sources are asked at the same time, an agent makes sense of them, a model judges
    nested-classification  graph   one decision behind another
    release-check          guided  an agent finds out whether a version can be released, part by part
    release-notes          graph   the engine gathers and publishes, an agent writes in between
    support-triage         graph   a model classifies a message, and it goes one of four ways
    ticket-flow            graph   one workflow with three triggers, each with an entry of its own
    ");
}

#[test]
fn every_template_becomes_a_workflow_that_is_right_and_runs() {
    let all = templates(&TestEnv::new());
    assert!(all.iter().any(|(_, kind)| kind == "graph"));
    assert!(all.iter().any(|(_, kind)| kind == "guided"));
    for (template, kind) in all {
        let env = TestEnv::new();
        let made = env.run(&["workflow", "new", "my-own", "--template", &template, "--json"]);
        assert_eq!(made.code, 0, "{template}: {made}");
        let made: Value = serde_json::from_str(&made.stdout).unwrap();
        assert_eq!(made["workflowId"], "project.my-own", "{template}");
        let validated = env.run(&["workflow", "validate", "workflows"]);
        assert_eq!(validated.code, 0, "{template}: {validated}");
        assert!(validated.stdout.contains("1 workflow"), "{template}: {validated}");
        let shown = env.run(&["workflow", "show", "my-own", "--json"]);
        assert!(shown.stdout.contains("\"name\":\"My own\""), "{template}: {shown}");
        if template == "release-notes" {
            let answers = env.path("workflows/my-own/answers.jsonl");
            let given = ["--set", "version=v2.1", "--answers", answers.to_str().unwrap()];
            let ran = env.run(&[&["guide", "my-own"][..], &given].concat());
            assert_eq!(ran.code, 0, "{template}: {ran}");
        } else if kind == "graph" {
            let event = env.path("workflows/my-own/event.json");
            let event = event.to_str().unwrap();
            let mut args = vec!["run", "my-own", "--json"];
            if fs::exists(event).unwrap() {
                args.extend(["--event", event]);
            }
            if template == "ticket-flow" {
                let lost = env.run(&args);
                assert!(
                    lost.code == 2 && lost.stderr.contains("action, message, submission"),
                    "{lost}"
                );
                args.extend(["--trigger", "message"]);
            }
            let ran = env.run(&args);
            assert_eq!(ran.code, 0, "{template}: {ran}");
        }
    }
}

#[test]
fn nothing_is_overwritten_and_no_name_is_taken_twice() {
    let env = TestEnv::new();
    let new = |name: &str, template: &str, more: &[&str]| {
        env.run(&[&["workflow", "new", name, "--template", template], more].concat())
    };
    assert_snapshot!(new("triage", "support-triage", &[]), @r"
    exit 0
    --- stdout
    workflows/triage/workflow.yaml
    workflows/triage/event.json
    workflows/triage/nodes/answers.json
    workflows/triage/nodes/issue.sh
    --- stderr
    try it: cairn run project.triage --event workflows/triage/event.json
    check it after a change: cairn workflow validate workflows/triage
    ");
    let file = env.path("workflows/triage/workflow.yaml");
    fs::write(&file, "mine").unwrap();
    assert_snapshot!(new("triage", "daily-digest", &[]), @r"
    exit 7
    --- stderr
    error[FILE_EXISTS]: workflows/triage: entity already exists
      → choose another name, or move away what is there
    ");
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    assert_eq!(new("digest", "daily-digest", &[]).code, 0);
    assert_snapshot!(new("digest", "daily-digest", &["--into", "elsewhere"]), @r"
    exit 2
    --- stderr
    error[USAGE_INVALID]: there is a workflow `project.digest` already, in workflows/digest/workflow.yaml
      → choose another name
    ");
    assert_snapshot!(new("other", "daily-digst", &[]), @r"
    exit 2
    --- stderr
    error[USAGE_INVALID]: there is no template `daily-digst`; did you mean `daily-digest`?
      → list the templates with `cairn workflow new --list`
    ");
    for name in ["../evil", "Triage", "", "a.b", "a/b", "wr.x"] {
        let refused = new(name, "bug-hunt", &[]);
        assert_eq!(refused.code, 2, "{name}: {refused}");
    }
    let entries = fs::read_dir(env.path("workflows")).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["digest", "triage"], "nothing else was left");
    assert!(!env.path("elsewhere").exists());
}
