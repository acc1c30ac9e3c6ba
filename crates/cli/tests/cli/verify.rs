use std::fs;

use insta::assert_snapshot;

use crate::env::{NO_SESSION, SESSION, TestEnv};

#[test]
fn a_whole_session_is_fine() {
    let env = TestEnv::with_session();
    assert_snapshot!(env.run(&["session", "verify", SESSION]), @r"
    exit 0
    --- stdout
    ok   sess_01hf7yat000000000000000007  11 events, 2 blobs
    ");
    assert_snapshot!(env.run(&["session", "verify", "--all", "--json"]), @r#"
    exit 0
    --- stdout
    {"blobs":2,"events":11,"health":"healthy","notices":[],"problems":[],"sessionId":"sess_01hf7yat000000000000000007"}
    "#);
    assert_snapshot!(TestEnv::new().run(&["session", "verify", "--all"]), @r"
    exit 0
    --- stderr
    there are no sessions
    ");
}

#[test]
fn damage_is_found_and_other_sessions_are_still_looked_at() {
    let env = TestEnv::with_session();
    env.append("sess_01hf7yzz000000000000000001", 1);
    env.damage(SESSION);
    let outcome = env.run(&["session", "verify", "--all"]);
    assert_eq!(outcome.code, 3, "{outcome}");
    assert!(outcome.stdout.starts_with(&format!("FAIL {SESSION}  corrupt_")), "{outcome}");
    assert!(outcome.stdout.contains("ok   sess_01hf7yzz"), "{outcome}");
}

#[test]
fn one_that_cannot_be_read_is_not_called_damaged() {
    let env = TestEnv::with_session();
    env.append("sess_01hf7yzz000000000000000001", 1);
    env.make_unreadable(SESSION);
    assert_snapshot!(env.run(&["session", "verify", "--all"]), @r"
    exit 3
    --- stdout
    FAIL sess_01hf7yat000000000000000007  unreadable, 0 events can be read, 0 blobs
         STORE_IO: reading [tmp]/home/sessions/sess_01hf7yat000000000000000007/manifest.jsonl: it is a directory, and not a regular file
    ok   sess_01hf7yzz000000000000000001  2 events, 0 blobs
    ");
    let outcome = env.run(&["session", "verify", "--all", "--json"]);
    assert!(outcome.stdout.contains(r#""health":"unreadable""#), "{outcome}");
}

#[test]
fn a_missing_blob_is_found() {
    let env = TestEnv::with_session();
    let mut removed = 0;
    let mut folders = vec![env.home()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let kept = path.ends_with("sessions") || path.ends_with("keys");
            if path.is_dir() && !kept {
                folders.push(path);
            } else if path.is_file() && path.metadata().unwrap().len() > 0 {
                fs::remove_file(path).unwrap();
                removed += 1;
            }
        }
    }
    assert!(removed > 0);
    let outcome = env.run(&["session", "verify", SESSION]);
    assert_eq!(outcome.code, 3, "{outcome}");
    assert!(outcome.stdout.contains("is not in the store"), "{outcome}");
}

#[test]
fn it_takes_one_session_or_all() {
    let env = TestEnv::with_session();
    assert_snapshot!(env.run(&["session", "verify"]), @r"
    exit 2
    --- stderr
    error[USAGE_INVALID]: the following required arguments were not provided: <ID>
      → see `cairn session verify --help`
    ");
    assert_snapshot!(env.run(&["session", "verify", SESSION, "--all"]), @r"
    exit 2
    --- stderr
    error[USAGE_INVALID]: the argument '[ID]' cannot be used with '--all'
      → see `cairn session verify --help`
    ");
    assert_snapshot!(env.run(&["session", "verify", "x"]), @r"
    exit 2
    --- stderr
    error[SESSION_ID_INVALID]: `x` is not a session id, nor the beginning of one with at least 6 characters after `sess_`
      → copy an id from `cairn session list`, such as sess_01hf7yat…
    ");
    assert_snapshot!(env.run(&["session", "verify", NO_SESSION]), @r"
    exit 4
    --- stderr
    error[SESSION_NOT_FOUND]: there is no session sess_01hf7yat000000000000000008
      → list the sessions there are with `cairn session list`
    ");
}
