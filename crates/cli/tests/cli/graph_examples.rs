//! The examples of automation graphs, each run with its event.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::env::TestEnv;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/graph")
}

/// Runs an example; gives its result.
fn run(name: &str, more: &[&str]) -> Value {
    let env = TestEnv::new();
    let (file, event) =
        (folder().join(name).join("workflow.yaml"), folder().join(name).join("event.json"));
    let (file, event) = (file.to_str().unwrap().to_owned(), event.to_str().unwrap().to_owned());
    let mut args = vec!["run", file.as_str(), "--json"];
    if Path::new(&event).exists() {
        args.extend(["--event", event.as_str()]);
    }
    args.extend(more);
    let done = env.run(&args);
    assert_eq!(done.code, 0, "{name}: {done}");
    let shown: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(shown["status"], "succeeded", "{shown:#}");
    shown["result"].clone()
}

#[test]
fn every_example_runs_to_its_end() {
    let triage = run("support-triage", &[]);
    assert!(triage.as_str().unwrap().starts_with("Tracked as SUP-"), "{triage}");
    assert_eq!(
        run("support-triage", &["--set", "text=How does it work?"]),
        "See the guide: it starts with `cairn run`."
    );
    let wish = "text=I want a dark mode for the console";
    let wish = run("support-triage", &["--set", wish]);
    assert_eq!(wish, "Noted: I want a dark mode for the console");
    assert_eq!(run("support-triage", &["--set", "text=Hm"]), "Could you say more?");
    assert_eq!(run("incident-response", &[]), "healed: restarted the worker");
    let digest = run("daily-digest", &[]);
    assert_eq!(digest, "#leadership: **2** issues, **2** tickets, **2** pieces of feedback");
    assert_eq!(run("ticket-flow", &["--trigger", "message"]), "A button for Ada");
    assert_eq!(run("ticket-flow", &["--trigger", "action"]), "3 messages, the last: Since today");
    assert_eq!(run("ticket-flow", &["--trigger", "submission"]), "Ticket: It fails since today");
    assert_eq!(run("nested-classification", &[]), "Choose Export in the menu of the table.");
}

#[test]
fn an_example_hands_its_steps_to_whoever_holds_the_run() {
    let env = TestEnv::new();
    let path = |name: &str| folder().join("release-notes").join(name).display().to_string();
    let (file, answers) = (path("workflow.yaml"), path("answers.jsonl"));
    let given = ["--set", "version=v2.1", "--answers", &answers, "--json"];
    let done = env.run(&[&["guide", file.as_str()], &given[..]].concat());
    assert_eq!(done.code, 0, "{done}");
    let lines: Vec<Value> =
        done.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let steps: Vec<&Value> = lines.iter().map(|line| &line["pending"]["stepId"]).collect();
    assert_eq!(steps, [&json!("write"), &json!("risks"), &Value::Null], "{done}");
    assert_eq!(lines[0]["run"]["moreSteps"], 1, "{done}");
    let prompt = lines[0]["pending"]["prompt"].as_str().unwrap();
    assert!(
        prompt.contains("notes of ⟦untrusted⟧v2.1⟦/untrusted⟧")
            && prompt.contains("The old export is gone"),
        "{prompt}"
    );
    assert_eq!(
        lines[2]["run"]["result"],
        json!({
            "published": "Find more, type less (15 words)",
            "risks": "Whoever still uses the old export has to move.",
        })
    );
    let bad = env.run(&["guide", &file, "--set", "version=2", "--answers", &answers]);
    assert_eq!(bad.code, 2, "{bad}");
    assert!(bad.stderr.contains("`version` is not of the type `string`"), "{bad}");
}

#[test]
fn every_example_is_in_the_list_and_has_a_page() {
    let listed = std::fs::read_to_string(folder().join("README.md")).unwrap();
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            assert!(path.join("README.md").exists(), "{name}");
            assert!(listed.contains(&format!("({name})")), "{name}");
        }
    }
}

#[test]
fn every_example_says_what_it_can_do() {
    let env = TestEnv::new();
    let guided = folder().join("../guided");
    let mut files: Vec<PathBuf> = [&folder(), &guided]
        .into_iter()
        .flat_map(|folder| std::fs::read_dir(folder).unwrap())
        .map(|entry| entry.unwrap().path())
        .map(|path| if path.is_dir() { path.join("workflow.yaml") } else { path })
        .filter(|path| path.extension().is_some_and(|ext| ext == "yaml"))
        .collect();
    files.sort_by_key(|path| path.display().to_string());
    let mut told = String::new();
    for file in &files {
        let file = file.to_str().unwrap();
        let checked = env.run(&["workflow", "validate", file]);
        assert_eq!(checked.code, 0, "{file}: {checked}");
        told.push_str(&checked.stdout);
        // Both commands say the same, and programs are told as much as people.
        let lines = checked.stdout.lines().filter(|line| line.starts_with("  "));
        let shown = env.run(&["workflow", "show", file]).stdout;
        lines.for_each(|line| assert!(shown.contains(line), "{file}: {line}"));
        let json =
            |args: &[&str]| -> Value { serde_json::from_str(&env.run(args).stdout).unwrap() };
        let of_show = json(&["workflow", "show", file, "--json"]);
        let of_validate = json(&["workflow", "validate", file, "--json"]);
        assert_eq!(of_show["capabilities"], of_validate["capabilities"][0]["can"], "{file}");
    }
    for line in [
        "  command   issues: bash nodes/list.sh issues",
        "  command   collect: bash nodes/changes.sh",
        "  prompts   2 handed to an agent: write, risks",
        "  person    page: asks anybody who may run it, and is approved when nobody answers in time",
        "  file      nodes/write.md",
    ] {
        assert!(told.lines().any(|told| told == line), "{line}: {told}");
    }
}
