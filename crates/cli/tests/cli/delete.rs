use insta::assert_snapshot;

use crate::env::{NO_SESSION, SESSION, TestEnv};

#[test]
fn a_session_is_deleted_once_that_is_confirmed() {
    let env = TestEnv::with_session();
    assert_snapshot!(env.run(&["session", "delete", SESSION]), @r"
    exit 2
    --- stderr
    error[USAGE_UNCONFIRMED]: deleting sess_01hf7yat000000000000000007 with 11 events cannot be undone, and nobody confirmed it
      → add --yes if you are sure
    ");
    assert_eq!(env.run(&["session", "show", SESSION]).code, 0);
    assert_snapshot!(env.run(&["session", "delete", SESSION, "--yes"]), @r"
    exit 0
    --- stdout
    deleted sess_01hf7yat000000000000000007
    ");
    assert_eq!(env.run(&["session", "show", SESSION]).code, 4);
}

#[test]
fn a_damaged_session_can_be_deleted() {
    let env = TestEnv::with_session();
    env.damage(SESSION);
    let outcome = env.run(&["session", "delete", SESSION, "--yes", "--json"]);
    assert_snapshot!(outcome, @r#"
    exit 0
    --- stdout
    {"deleted":true,"sessionId":"sess_01hf7yat000000000000000007"}
    "#);
}

#[test]
fn only_a_session_can_be_deleted() {
    let env = TestEnv::with_session();
    assert_snapshot!(env.run(&["session", "delete"]), @r"
    exit 2
    --- stderr
    error[USAGE_INVALID]: the following required arguments were not provided: <ID>
      → see `cairn session delete --help`
    ");
    assert_snapshot!(env.run(&["session", "delete", "/", "--yes"]), @r"
    exit 2
    --- stderr
    error[SESSION_ID_INVALID]: `/` is not a session id, nor the beginning of one with at least 6 characters after `sess_`
      → copy an id from `cairn session list`, such as sess_01hf7yat…
    ");
    assert_snapshot!(env.run(&["session", "delete", NO_SESSION, "--yes"]), @r"
    exit 4
    --- stderr
    error[SESSION_NOT_FOUND]: there is no session sess_01hf7yat000000000000000008
      → list the sessions there are with `cairn session list`
    ");
}
