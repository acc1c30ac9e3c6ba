//! What the guide shows, done.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::automation::{Running, with_workflow};

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
env: [{ name: HOOK_SECRET, widget: secret, required: true }]
triggers:
  - { id: pager, type: webhook, path: /pager, secret: HOOK_SECRET, respond: last_step }
  - { id: hub, type: webhook, path: /hub, secret: HOOK_SECRET, signature: github, respond: last_step }
graph: { nodes: [{ id: a, type: end, result: 'got {{ event.payload.what }}' }] }
";
    let env = with_workflow("hooks", text);
    let secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
    let set = env.run_with_input(&["secret", "set", "HOOK_SECRET"], secret.as_bytes());
    assert_eq!(set.code, 0, "{set}");
    let running = Running::start(&env);
    let page = page("triggers.md");
    for words in ["To send one by hand", "With `signature: github` the body alone"] {
        let mut command = Command::new("sh");
        command.args(["-c", &block(&page, words, "sh")]);
        command.env("SERVER", &running.address).env("SECRET", secret);
        let sent = command.output().unwrap();
        let told = String::from_utf8_lossy(&sent.stdout).into_owned();
        assert_eq!(told, "got disk full", "{words}: {sent:?}");
    }
}
