use std::fs;

use insta::assert_snapshot;

use crate::env::{SESSION, TestEnv};

fn bundle() -> String {
    TestEnv::with_session().run(&["session", "export", SESSION]).stdout
}

#[test]
fn a_bundle_becomes_the_session_it_was() {
    let bundle = bundle();
    let env = TestEnv::new();
    fs::write(env.path("a.json"), &bundle).unwrap();
    assert_snapshot!(env.run(&["session", "import", "a.json"]), @r"
    exit 0
    --- stdout
    imported sess_01hf7yat000000000000000007 with 11 events
    ");
    assert_eq!(env.run(&["session", "verify", SESSION]).code, 0);
    let here = env.run(&["session", "show", SESSION, "--json"]).stdout;
    let there = TestEnv::with_session().run(&["session", "show", SESSION, "--json"]).stdout;
    assert_eq!(here, there);
}

#[test]
fn a_bundle_whose_session_is_there_becomes_a_new_one() {
    let bundle = bundle();
    let env = TestEnv::with_session();
    let before = env.run(&["session", "show", SESSION, "--json"]).stdout;
    assert_snapshot!(env.run_with_input(&["session", "import", "-"], bundle.as_bytes()), @r"
    exit 0
    --- stdout
    imported sess_[fresh] with 11 events
    --- stderr
    there is a session sess_01hf7yat000000000000000007 already; this is a new one
    ");
    assert_snapshot!(env.run_with_input(&["session", "import", "-", "--json"], bundle.as_bytes()), @r#"
    exit 0
    --- stdout
    {"asNew":true,"events":11,"originalSessionId":"sess_01hf7yat000000000000000007","sessionId":"sess_[fresh]"}
    "#);
    assert_eq!(env.run(&["session", "show", SESSION, "--json"]).stdout, before);
    assert_eq!(env.run(&["session", "verify", "--all"]).code, 0);
}

#[test]
fn what_is_no_bundle_stores_nothing() {
    let bundle = bundle();
    let env = TestEnv::new();
    let half = &bundle[..bundle.len() / 2];
    let other_version =
        bundle.replacen("\"bundleSchemaVersion\":1", "\"bundleSchemaVersion\":2", 1);
    assert_ne!(other_version, bundle);
    let twice = bundle.replacen('{', "{\"bundleSchemaVersion\":1,", 1);
    let edited = bundle.replacen("branch-3-0", "branch-3-9", 1);
    assert_ne!(edited, bundle);
    let deep = "[".repeat(100_000);
    let mut told = Vec::new();
    for input in ["", "{}", "[]", "hello", half, &other_version, &twice, &edited, &deep] {
        let outcome = env.run_with_input(&["session", "import", "-"], input.as_bytes());
        assert_eq!(outcome.code, 3, "{outcome}");
        told.push(outcome.stderr.lines().next().unwrap().split(':').next().unwrap().to_owned());
    }
    assert_snapshot!(told.join("\n"), @r"
    error[BUNDLE_INVALID_FORMAT]
    error[BUNDLE_INVALID_FORMAT]
    error[BUNDLE_INVALID_FORMAT]
    error[BUNDLE_INVALID_FORMAT]
    error[BUNDLE_INVALID_FORMAT]
    error[BUNDLE_UNSUPPORTED_VERSION]
    error[BUNDLE_INVALID_FORMAT]
    error[BUNDLE_INTEGRITY_FAILED]
    error[BUNDLE_INVALID_FORMAT]
    ");
    assert_eq!(env.run(&["session", "list"]).stdout, "");
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let env = TestEnv::new();
    assert_snapshot!(env.run(&["session", "import"]), @r"
    exit 2
    --- stderr
    error[USAGE_INVALID]: the following required arguments were not provided: <FILE>
      → see `cairn session import --help`
    ");
    assert_snapshot!(env.run(&["session", "import", "no.json"]), @r"
    exit 4
    --- stderr
    error[FILE_NOT_FOUND]: no.json: No such file or directory (os error 2)
      → check the path; `-` stands for standard input or output
    ");
    assert_snapshot!(env.run(&["session", "import", "."]), @r"
    exit 1
    --- stderr
    error[FILE_IO]: .: Is a directory (os error 21)
      → check the path and the disk it is on, then try again
    ");
}

#[test]
fn a_file_that_may_not_be_read_is_told_as_such() {
    // The kernel lets nobody read it, root included.
    let file = "/proc/sys/vm/compact_memory";
    let outcome = TestEnv::new().run(&["session", "import", file]);
    assert_eq!(outcome.code, 8, "{outcome}");
    assert!(outcome.stderr.contains("FILE_DENIED") && outcome.stderr.contains(file), "{outcome}");
}
