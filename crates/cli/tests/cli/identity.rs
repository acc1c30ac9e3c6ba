//! Which workflow is meant: the one whose file is in that place, whoever else has its name,
//! wherever one stands and however it is named.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Stdio;

use insta::assert_snapshot;
use serde_json::Value;

use crate::env::{Outcome, TestEnv};

/// Tells its setting, and how long its secret is: that is not hidden.
const NEEDY: &str = "name: Needy
env:
  - { name: MODE, required: true }
  - { name: TOK, widget: secret, required: true }
graph:
  nodes:
    - { id: a, type: shell, command: [sh, -c, 'printf %s \"$MODE:${#KEY}\"'], env: { MODE: '{{ env.MODE }}', KEY: '{{ secret.TOK }}' }, next: b }
    - { id: b, type: end, result: '{{ steps.a.stdout }}' }
";

/// A folder to stand in, and what a workflow is called there.
type Door = (&'static str, &'static str);

/// A workflow, its id, and the doors that lead to it. All are kept in one data directory.
const WORKFLOWS: [(&str, &[Door]); 6] = [
    (
        "project.deploy",
        &[
            ("one", "deploy"),
            ("one", "project.deploy"),
            ("one", "workflows/deploy.yaml"),
            ("one/workflows", "./deploy.yaml"),
            ("two", "../one/workflows/deploy.yaml"),
            (".", "one/../one/workflows/deploy.yaml"),
            ("linked", "deploy"),
            (".", "linked/workflows/deploy.yaml"),
        ],
    ),
    ("project.deploy", &[("two", "deploy"), ("one", "../two/workflows/deploy.yaml")]),
    ("project.nightly", &[("two", "nightly"), (".", "two/workflows/nightly/workflow.yaml")]),
    ("project.a", &[(".", "a/workflow.yaml"), ("a", "workflow.yaml"), ("b", "../a/workflow.yaml")]),
    // A link is in a place of its own: what a workflow uses is taken from beside it.
    ("project.by-link", &[(".", "by-link.yaml"), ("one", "../by-link.yaml")]),
    (
        "project.b",
        &[(".", "b/workflow.yaml"), ("b", "workflow.yaml"), ("b", "../a/../b/workflow.yaml")],
    ),
];

fn with_projects() -> TestEnv {
    let env = TestEnv::new();
    for file in [
        "one/workflows/deploy.yaml",
        "two/workflows/deploy.yaml",
        "two/workflows/nightly/workflow.yaml",
        "a/workflow.yaml",
        "b/workflow.yaml",
    ] {
        fs::create_dir_all(env.path(file).parent().unwrap()).unwrap();
        fs::write(env.path(file), NEEDY).unwrap();
    }
    symlink(env.path("one"), env.path("linked")).unwrap();
    symlink(env.path("a/workflow.yaml"), env.path("by-link.yaml")).unwrap();
    env
}

/// Runs a command for someone who stands in a folder.
fn stand(env: &TestEnv, folder: &str, args: &[&str], input: &str) -> Outcome {
    let mut command = env.command(args);
    command.current_dir(env.path(folder)).env("PATH", "/usr/bin:/bin");
    fs::write(env.path("input"), input).unwrap();
    command.stdin(Stdio::from(fs::File::open(env.path("input")).unwrap()));
    Outcome::of(command.output().unwrap())
}

fn set(env: &TestEnv, (folder, name): Door, mode: &str, secret: &str) {
    let set = stand(env, folder, &["secret", "set", "TOK", "--workflow", name], secret);
    assert_eq!(set.code, 0, "{folder} {name}: {set}");
    let set = stand(env, folder, &["env", "set", name, "MODE", mode], "");
    assert_eq!(set.code, 0, "{folder} {name}: {set}");
}

/// What a workflow has by this door: its setting, and whether it has a secret.
fn has(env: &TestEnv, (folder, name): Door) -> (Option<String>, bool) {
    let listed = stand(env, folder, &["env", "list", name, "--json"], "");
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap_or_else(|_| panic!("{listed}"));
    let item = |name: &str| {
        let items = listed["items"].as_array().unwrap();
        items.iter().find(|item| item["name"] == name).unwrap()
    };
    (item("MODE")["value"].as_str().map(str::to_owned), item("TOK")["isSet"] == true)
}

#[test]
fn a_secret_set_for_one_file_is_given_to_no_other() {
    let env = with_projects();
    let set = stand(&env, ".", &["secret", "set", "TOK", "--workflow", "a/workflow.yaml"], "for-a");
    assert_eq!(set.code, 0, "{set}");
    stand(&env, ".", &["env", "set", "b/workflow.yaml", "MODE", "m"], "");
    let ran = stand(&env, ".", &["run", "b/workflow.yaml", "--json"], "");
    assert_ne!(ran.code, 0, "{ran}");
    assert!(ran.to_string().contains("`TOK` has no value"), "{ran}");
}

#[test]
fn what_is_set_by_one_door_is_there_by_every_door_to_the_same_file_and_by_no_other() {
    let env = with_projects();
    let mut modes: Vec<Option<String>> = vec![None; WORKFLOWS.len()];
    for (at, (_, doors)) in WORKFLOWS.iter().enumerate() {
        for (number, door) in doors.iter().enumerate() {
            let mode = format!("mode-{at}-{number}");
            set(&env, *door, &mode, "a secret");
            modes[at] = Some(mode);
            for (other, (_, others)) in WORKFLOWS.iter().enumerate() {
                // Of the others one door is enough, each in turn.
                let one = number % others.len();
                let asked = if other == at { others } else { &others[one..=one] };
                for asked in asked {
                    let wanted = (modes[other].clone(), modes[other].is_some());
                    assert_eq!(has(&env, *asked), wanted, "set at {door:?}, seen at {asked:?}");
                }
            }
        }
    }
}

#[test]
fn a_run_has_what_belongs_to_its_file_by_whichever_door_it_was_asked_for() {
    let env = with_projects();
    for (at, (_, doors)) in WORKFLOWS.iter().enumerate() {
        set(&env, doors[0], &format!("mode-{at}"), &"s".repeat(20 + at));
    }
    for (at, (id, doors)) in WORKFLOWS.iter().enumerate() {
        for (folder, name) in doors.iter() {
            let plan = stand(&env, folder, &["workflow", "compile", name], "");
            let plan: Value = serde_json::from_str(&plan.stdout).unwrap();
            assert_eq!(plan["workflowId"], *id, "{folder} {name}");
            let ran = stand(&env, folder, &["run", name, "--json"], "");
            assert_eq!(ran.code, 0, "{folder} {name}: {ran}");
            let shown: Value = serde_json::from_str(&ran.stdout).unwrap();
            assert_eq!(shown["result"], format!("mode-{at}:{}", 20 + at), "{folder} {name}");
        }
    }
}

#[test]
fn lists_say_which_of_two_with_one_id_is_meant() {
    let env = with_projects();
    let secret = |folder: &str| {
        stand(&env, folder, &["secret", "set", "TOK", "--workflow", "deploy"], "a secret")
    };
    assert_snapshot!(secret("one"), @r"
    exit 0
    --- stdout
    set TOK for project.deploy ([tmp]/one/workflows/deploy.yaml)
    ");
    secret("two");
    assert_snapshot!(env.run(&["secret", "list"]), @r"
    exit 0
    --- stdout
    NAME  FOR             VERSION  FILE
    TOK   project.deploy  2        [tmp]/one/workflows/deploy.yaml
    TOK   project.deploy  3        [tmp]/two/workflows/deploy.yaml
    ");
    let other = env.path("two/.cairn/workflows");
    fs::create_dir_all(&other).unwrap();
    fs::write(other.join("deploy.yaml"), format!("id: team.deploy\n{NEEDY}")).unwrap();
    assert_snapshot!(stand(&env, "two", &["run", "deploy"], ""), @r"
    exit 2
    --- stderr
    error[WORKFLOW_ID_AMBIGUOUS]: 2 workflows go by the name `deploy`: project.deploy ([tmp]/two/workflows/deploy.yaml), team.deploy ([tmp]/two/.cairn/workflows/deploy.yaml)
      → give the whole id, with its namespace; `cairn workflow list` shows them
    ");
}

#[test]
fn what_belongs_to_a_workflow_follows_it_when_it_is_moved_and_rebound() {
    let env = with_projects();
    set(&env, (".", "a/workflow.yaml"), "kept", "a secret");
    let was = env.path("a/workflow.yaml");
    let rebind =
        |to: &str| stand(&env, ".", &["workflow", "rebind", was.to_str().unwrap(), to], "");
    // As long as it is there, it keeps what it has.
    assert_snapshot!(rebind("b/workflow.yaml"), @r"
    exit 2
    --- stderr
    error[VALIDATION_ERROR]: [tmp]/a/workflow.yaml is still there, and keeps what it has
      → move the file first, or set the values again for the other one
    ");
    fs::rename(env.path("a"), env.path("moved")).unwrap();
    assert_eq!(has(&env, (".", "moved/workflow.yaml")), (None, false));
    set(&env, (".", "b/workflow.yaml"), "other", "another secret");
    assert_snapshot!(rebind("b/workflow.yaml"), @r"
    exit 2
    --- stderr
    error[VALIDATION_ERROR]: project.b ([tmp]/b/workflow.yaml) has settings of its own
      → take them away with `cairn env unset`
    ");
    assert_snapshot!(rebind("moved/workflow.yaml"), @r"
    exit 0
    --- stdout
    1 secret and 1 setting are bound to project.moved ([tmp]/moved/workflow.yaml) now
    ");
    assert_eq!(has(&env, (".", "moved/workflow.yaml")), (Some("kept".to_owned()), true));
    assert_snapshot!(rebind("moved/workflow.yaml"), @r"
    exit 2
    --- stderr
    error[VALIDATION_ERROR]: nothing is kept for [tmp]/a/workflow.yaml
      → `cairn secret list` shows the files that secrets are kept for
    ");
}
