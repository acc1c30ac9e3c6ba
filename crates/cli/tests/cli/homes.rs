//! The data directory: who makes it, and what is said when it is not there.

use cairn_api::audit::CLI;

use crate::env::{Outcome, TestEnv};

const RUN: &str = "run_01hf7yat000000000000000007";
const SESSION: &str = "sess_01hf7yat000000000000000007";

/// The commands that make a data directory when they are the first, or that use none.
const NOT_HELD_TO_IT: &[&str] = &[
    "completions",
    "config show",
    "dev append-loop",
    // It makes the usual one, to measure it.
    "doctor",
    "env set",
    "guide",
    "help",
    "key rotate",
    "mcp",
    "reference",
    "run",
    "secret set",
    "serve",
    "session import",
    "token create",
    "trigger fire",
    "workflow compile",
    "workflow list",
    "workflow new",
    "workflow rebind",
    "workflow show",
    "workflow validate",
];

/// Every other command, so that it gets as far as the data directory.
const READS: &[(&str, &[&str])] = &[
    ("audit list", &[]),
    ("audit verify", &[]),
    ("env check", &["w"]),
    ("env list", &["w"]),
    ("env unset", &["w", "WHO"]),
    ("provider check", &[]),
    ("provider list", &[]),
    ("provider skills", &["claude"]),
    ("runs answer", &[RUN, "--approve"]),
    ("runs cancel", &[RUN]),
    ("runs events", &[RUN]),
    ("runs export", &[RUN]),
    ("runs fork", &[RUN, "--from", "a"]),
    ("runs list", &[]),
    ("runs pause", &[RUN]),
    ("runs release", &[RUN]),
    ("runs replay", &[RUN]),
    ("runs resolve", &[RUN, "a", "--decision", "skip"]),
    ("runs resume", &[RUN]),
    ("runs show", &[RUN]),
    ("secret list", &[]),
    ("secret remove", &["WHO", "--yes"]),
    ("secret rotate", &[]),
    ("session delete", &[SESSION, "--yes"]),
    ("session export", &[SESSION]),
    ("session gc", &[]),
    ("session keep", &[SESSION]),
    ("session list", &[]),
    ("session rebind", &[SESSION, "."]),
    ("session resume", &["--query", "x"]),
    ("session show", &[SESSION]),
    ("session trust", &[SESSION]),
    ("session verify", &[SESSION]),
    ("token list", &[]),
    ("token revoke", &["x"]),
    ("trigger curl", &["w", "hook"]),
    ("trigger list", &[]),
    ("trigger next", &["w"]),
    ("usage", &[]),
];

const WORKFLOW: &str = "name: W
env: [{ name: WHO }, { name: KEY, widget: secret }]
triggers: [{ id: hook, type: webhook, path: /w, secret: KEY, entry_node: a }]
graph: { nodes: [{ id: a, type: end }] }
";

fn run(env: &TestEnv, (command, more): (&str, &[&str]), home: Option<&str>) -> Outcome {
    let mut args: Vec<&str> = home.map(|home| ["--home", home]).into_iter().flatten().collect();
    args.extend(command.split(' '));
    args.extend(more);
    let mut command = env.command(&args);
    Outcome::of(command.env_remove("CAIRN_HOME").output().unwrap())
}

#[test]
fn every_command_is_known_to_make_a_data_directory_or_not() {
    for (command, _) in CLI {
        let known = NOT_HELD_TO_IT.contains(command);
        let listed = READS.iter().any(|(name, _)| name == command);
        assert!(known != listed, "{command}");
    }
}

#[test]
fn a_command_that_reads_makes_no_data_directory() {
    let env = crate::automation::with_workflow("w", WORKFLOW);
    for command in READS {
        let named = env.path("nowhere/x");
        let told = run(&env, *command, Some(named.to_str().unwrap()));
        assert!(!env.path("nowhere").exists(), "{}: {told}", command.0);
        let usual = run(&env, *command, None);
        assert!(!env.path(".local").exists(), "{}: {usual}", command.0);
        assert!(!usual.stderr.contains("INTERNAL"), "{}: {usual}", command.0);
        let is_about_it = told.stderr.contains("HOME_NOT_FOUND")
            && told.stderr.contains("nowhere/x, which --home names");
        // Some say something else first, or need nothing of it.
        let needs_none = ["provider list", "trigger next"].contains(&command.0);
        assert!(is_about_it || needs_none, "{}: {told}", command.0);
    }
    let lists = ["runs list", "session list", "secret list", "token list", "audit list", "usage"];
    for list in lists {
        let usual = run(&env, (list, &[]), None);
        let nothing = if list == "secret list" { "there are no secrets\n" } else { "" };
        assert_eq!((usual.code, usual.stdout.as_str()), (0, nothing), "{list}: {usual}");
    }
}

#[test]
fn whoever_named_the_data_directory_is_told() {
    let env = TestEnv::new();
    let mut command = env.command(&["runs", "list"]);
    let told = Outcome::of(command.env("CAIRN_HOME", env.path("gone")).output().unwrap());
    assert_eq!(told.code, 4, "{told}");
    assert!(told.stderr.contains("gone, which CAIRN_HOME names"), "{told}");
    let told = run(&env, ("doctor", &[]), Some(env.path("gone").to_str().unwrap()));
    assert!(told.stderr.contains("HOME_NOT_FOUND") && !env.path("gone").exists(), "{told}");
}
