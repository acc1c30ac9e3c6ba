use insta::assert_snapshot;

use crate::env::{NO_SESSION, SESSION, TestEnv};

#[test]
fn a_session_is_kept_until_it_is_let_go() {
    let env = TestEnv::with_session();
    assert_snapshot!(env.run(&["session", "keep", SESSION]), @r"
    exit 0
    --- stdout
    keeping sess_01hf7yat000000000000000007 whatever its age
    ");
    assert!(env.run(&["session", "show", SESSION, "--json"]).stdout.contains(r#""kept":true"#));
    assert_snapshot!(env.run(&["session", "keep", SESSION, "--off", "--json"]), @r#"
    exit 0
    --- stdout
    {"kept":false,"sessionId":"sess_01hf7yat000000000000000007"}
    "#);
    assert!(env.run(&["session", "show", SESSION, "--json"]).stdout.contains(r#""kept":false"#));
}

#[test]
fn only_a_session_can_be_kept() {
    let env = TestEnv::with_session();
    assert_snapshot!(env.run(&["session", "keep"]), @r"
    exit 2
    --- stderr
    error[USAGE_INVALID]: the following required arguments were not provided: <ID>
      → see `cairn session keep --help`
    ");
    assert_snapshot!(env.run(&["session", "keep", "x"]), @r"
    exit 2
    --- stderr
    error[SESSION_ID_INVALID]: `x` is not a session id, nor the beginning of one with at least 6 characters after `sess_`
      → copy an id from `cairn session list`, such as sess_01hf7yat…
    ");
    assert_snapshot!(env.run(&["session", "keep", NO_SESSION]), @r"
    exit 4
    --- stderr
    error[SESSION_NOT_FOUND]: there is no session sess_01hf7yat000000000000000008
      → list the sessions there are with `cairn session list`
    ");
}
