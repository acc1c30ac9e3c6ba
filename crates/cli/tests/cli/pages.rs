//! What the guide shows, done.

use std::fs;
use std::path::Path;
use std::process::Command;

use rustix::process::Signal;

use crate::automation::{Running, until, with_workflow};

/// A page of the guide.
fn page(name: &str) -> String {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide");
    fs::read_to_string(guide.join(name)).unwrap()
}

/// The first block of a kind behind some words.
fn block(page: &str, words: &str, kind: &str) -> String {
    let (_, behind) = page.split_once(words).unwrap_or_else(|| panic!("no {words}"));
    let (_, block) = behind.split_once(&format!("```{kind}\n")).unwrap();
    block.split_once("```").unwrap().0.to_owned()
}

#[test]
fn the_steps_of_the_guide_do_what_it_says() {
    let page = page("graph.md");
    let env = with_workflow("orders", &block(&page, "`orders.yaml`", "yaml"));
    fs::write(env.path("workflows/report.yaml"), block(&page, "`report.yaml`", "yaml")).unwrap();
    let report = env.run(&["run", "report"]);
    assert_eq!(report.stdout, "1 of 2 orders are large\n", "{report}");
    let none = env.run(&["run", "orders", "--set", r#"orders=[{"amount":3}]"#]);
    assert_eq!(none.code, 1, "{none}");
    assert!(none.stderr.contains("no order is above 100"), "{none}");
}

#[test]
fn the_signed_requests_of_the_guide_start_runs() {
    let text = "name: Hooks
env: [{ name: HOOK_SECRET, widget: secret, required: true }, { name: SITE, required: true }]
triggers:
  - { id: pager, type: webhook, path: /pager, secret: HOOK_SECRET, respond: last_step }
  - { id: hub, type: webhook, path: /hub, secret: HOOK_SECRET, signature: github, respond: last_step }
graph: { nodes: [{ id: a, type: end, result: 'got {{ event.payload.what }}' }] }
";
    let env = with_workflow("hooks", text);
    let secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
    let set = env.run_with_input(&["secret", "set", "HOOK_SECRET"], secret.as_bytes());
    assert_eq!(set.code, 0, "{set}");
    let mut running = Running::start(&env);
    let fires = || running.get("/api/v1/triggers").to_string().contains("/hooks/pager");
    until("the server does not know its triggers", fires);
    let page = page("triggers.md");
    let send = |words: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", &block(&page, words, "sh")]);
        command.env("SERVER", &running.address).env("SECRET", secret);
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    let ways = ["To send one by hand", "With `signature: github` the body alone"];
    // What is missing is for the operator.
    for words in ways {
        let told = send(words);
        assert!(told.contains("WEBHOOK_NOT_READY") && !told.contains("SITE"), "{words}: {told}");
    }
    let set = env.run(&["env", "set", "hooks", "SITE", "here"]);
    assert_eq!(set.code, 0, "{set}");
    for words in ways {
        assert_eq!(send(words), "got disk full", "{words}");
    }
    running.server.urge(Signal::TERM);
    let (_, remarks) = running.server.ended();
    let told = "a request to `pager` of `project.hooks` starts nothing: ";
    assert!(remarks.contains(told) && remarks.contains("SITE"), "{remarks}");
}

#[test]
fn a_secret_that_signs_nothing_is_told_of() {
    let text = "name: Hooks\nenv: [{ name: KEY, widget: secret }]\ntriggers: [{ id: pager, type: webhook, path: /pager, secret: KEY }]\ngraph: { nodes: [{ id: a, type: end }] }\n";
    let env = with_workflow("hooks", text);
    for (secret, told) in
        [("", "has no value"), ("not base 64", "is not base64"), ("whsec_MDEyMzQ1Njc4OWFi", "")]
    {
        if !secret.is_empty() {
            // What is set before there is a webhook for it is held to nothing.
            std::fs::remove_file(env.path("workflows/hooks.yaml")).unwrap();
            let set = env.run_with_input(&["secret", "set", "KEY"], secret.as_bytes());
            assert_eq!(set.code, 0, "{set}");
            std::fs::write(env.path("workflows/hooks.yaml"), text).unwrap();
        }
        let listed = env.run(&["trigger", "list", "--json"]).stdout;
        let is_told = listed.contains("so every request is refused");
        assert_eq!(is_told, !told.is_empty(), "{secret}: {listed}");
        assert!(listed.contains(told), "{secret}: {listed}");
    }
}
