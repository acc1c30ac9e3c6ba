use insta::assert_snapshot;

use crate::env::{SESSION, TestEnv};

#[test]
fn old_sessions_go_unless_they_are_kept() {
    let env = TestEnv::with_session();
    assert_snapshot!(env.run(&["session", "gc"]), @r"
    exit 0
    --- stdout
    removed 0 sessions and 0 blobs
    ");
    assert_snapshot!(env.run(&["session", "gc", "--older-than", "90d", "--dry-run"]), @r"
    exit 0
    --- stdout
    sess_01hf7yat000000000000000007
    would remove 1 session and 0 blobs
    ");
    env.run(&["session", "keep", SESSION]);
    assert_snapshot!(env.run(&["session", "gc", "--older-than", "90d", "--json"]), @r#"
    exit 0
    --- stdout
    {"deletedBlobs":0,"deletedSessions":[],"dryRun":false,"safeMode":null}
    "#);
    env.run(&["session", "keep", SESSION, "--off"]);
    assert_snapshot!(env.run(&["session", "gc", "--older-than", "90d"]), @r"
    exit 0
    --- stdout
    sess_01hf7yat000000000000000007
    removed 1 session and 0 blobs
    ");
    assert_eq!(env.run(&["session", "show", SESSION]).code, 4);
}

#[test]
fn while_a_session_is_damaged_no_blob_goes() {
    let env = TestEnv::with_session();
    env.damage(SESSION);
    let outcome = env.run(&["session", "gc", "--older-than", "90d"]);
    assert_eq!(outcome.code, 3, "{outcome}");
    assert!(outcome.stdout.contains("removed 0 sessions and 0 blobs"), "{outcome}");
    assert!(outcome.stderr.starts_with("no blob may go while"), "{outcome}");
}

#[test]
fn an_age_that_makes_no_sense_is_refused() {
    let env = TestEnv::new();
    assert_snapshot!(env.run(&["session", "gc", "--older-than", "soon"]), @r"
    exit 2
    --- stderr
    error[USAGE_INVALID]: invalid value 'soon' for '--older-than <AGE>': a whole number and a unit: s, m, h, d or w, such as 90d
      → see `cairn session gc --help`
    ");
    assert_snapshot!(env.run(&["session", "gc", "--older-than"]), @r"
    exit 2
    --- stderr
    error[USAGE_INVALID]: a value is required for '--older-than <AGE>' but none was supplied
      → see `cairn session gc --help`
    ");
}
