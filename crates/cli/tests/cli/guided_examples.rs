//! The guided workflows in `examples`: sound, and gone through to their end.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::env::TestEnv;

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/guided")
}

/// Goes through an example with its answers, and gives what each of them was told.
fn told(env: &TestEnv, name: &str) -> Vec<Value> {
    let file = |end: &str| examples().join(format!("{name}.{end}")).display().to_string();
    let (workflow, answers) = (file("yaml"), file("answers.jsonl"));
    let outcome = env.run(&[
        "guide",
        &workflow,
        "--set",
        "version=\"1.2.0\"",
        "--answers",
        &answers,
        "--json",
    ]);
    assert_eq!(outcome.code, 0, "{name} does not come to its end: {outcome}");
    outcome.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn every_example_is_sound_and_comes_to_its_end() {
    let mut names: Vec<String> = Vec::new();
    for entry in fs::read_dir(examples()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|end| end == "yaml") {
            names.push(path.file_stem().unwrap().to_str().unwrap().to_owned());
        }
    }
    assert!(names.len() > 1, "{names:?}");
    for name in names {
        let env = TestEnv::new();
        fs::write(env.path("CHANGELOG.md"), "").unwrap();
        let file = examples().join(format!("{name}.yaml"));
        let sound = env.run(&["workflow", "validate", file.to_str().unwrap()]);
        assert!(sound.to_string().contains("0 errors, 0 warnings"), "{sound}");
        let told = told(&env, &name);
        assert_eq!(told.last().unwrap()["isComplete"], true);
        let warned: Vec<&Value> =
            told.iter().map(|answer| &answer["warnings"]).filter(|w| !w.is_null()).collect();
        assert!(warned.is_empty(), "{name}: {warned:?}");
    }
}

#[test]
fn the_release_check_does_what_the_guide_says() {
    let env = TestEnv::new();
    fs::write(env.path("CHANGELOG.md"), "").unwrap();
    let told = told(&env, "release-check");
    let pending = |answer: &Value| answer["pending"]["stepId"].as_str().map(str::to_owned);
    let steps: Vec<String> = told.iter().filter_map(pending).collect();
    assert_eq!(
        steps,
        [
            "draft",
            "scope",
            "inspect-part",
            "inspect-part",
            "outside",
            "outside.synthesis",
            "mend",
            "more",
            "judge",
            "judge",
            "judge.verification.review",
            "judge.audit",
            "approve",
        ]
    );
    let blocked: Vec<&Value> = told.iter().filter(|answer| answer["kind"] == "blocked").collect();
    assert_eq!(blocked.len(), 1, "a weak assessment asks for more");
    assert_eq!(blocked[0]["blockers"][0]["code"], "INVALID_REQUIRED_OUTPUT");
    let approval = told.iter().rfind(|answer| !answer["pending"].is_null()).unwrap();
    assert_eq!(approval["nextIntent"], "await_user_confirmation");
    let entry = fs::read_to_string(env.path("CHANGELOG.md")).unwrap();
    assert_eq!(entry, "## 1.2.0\n\n- `list` can be sorted.\n", "values came in as data");
}

#[test]
fn a_loop_whose_end_is_reached_already_makes_no_turn() {
    let env = TestEnv::new();
    fs::write(env.path("CHANGELOG.md"), "## 1.2.0\n").unwrap();
    let file = examples().join("release-check.yaml");
    let outcome = env.run(&["guide", file.to_str().unwrap(), "--set", "version=\"1.2.0\""]);
    assert!(outcome.stdout.contains("Settle the scope"), "{outcome}");
    assert!(!outcome.stdout.contains("Draft the entry"), "{outcome}");
}
