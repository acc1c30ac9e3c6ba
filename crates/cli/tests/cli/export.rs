use std::fs;

use insta::assert_snapshot;

use crate::env::{NO_SESSION, SESSION, TestEnv};

#[test]
fn a_session_goes_into_a_file_or_to_standard_output() {
    let env = TestEnv::with_session();
    assert_snapshot!(env.run(&["session", "export", SESSION, "-o", "a.json"]), @r"
    exit 0
    --- stdout
    exported sess_01hf7yat000000000000000007 to a.json ([size])
    ");
    assert_snapshot!(env.run(&["session", "export", SESSION, "-o", "a.json", "--json"]), @r#"
    exit 0
    --- stdout
    {"bundleId":"bundle_[fresh]","bytes":"[size]","file":"a.json","sessionId":"sess_01hf7yat000000000000000007"}
    "#);
    let printed = env.run(&["session", "export", SESSION]);
    assert_eq!(printed.code, 0);
    let printed: serde_json::Value = serde_json::from_str(&printed.stdout).unwrap();
    let written: serde_json::Value =
        serde_json::from_slice(&fs::read(env.path("a.json")).unwrap()).unwrap();
    let keys =
        |value: &serde_json::Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&printed), keys(&written));
    assert_eq!(env.run(&["session", "export", SESSION, "-o", "-"]).code, 0);
}

#[test]
fn a_bundle_holds_no_path_of_this_machine() {
    let env = TestEnv::with_session();
    let bundle = env.run(&["session", "export", SESSION]).stdout;
    assert!(!bundle.contains(env.home().to_str().unwrap()));
}

#[test]
fn of_a_damaged_session_the_valid_part_is_exported() {
    let env = TestEnv::with_session();
    env.damage(SESSION);
    let outcome = env.run(&["session", "export", SESSION, "-o", "a.json"]);
    assert_eq!(outcome.code, 0, "{outcome}");
    assert!(outcome.stderr.starts_with("the session is damaged"), "{outcome}");
    let other = TestEnv::new();
    let file = env.path("a.json");
    let outcome = other.run(&["session", "import", file.to_str().unwrap()]);
    assert_eq!(outcome.code, 0, "{outcome}");
}

#[test]
fn nothing_is_left_behind_when_it_fails() {
    let env = TestEnv::with_session();
    assert_snapshot!(env.run(&["session", "export"]), @r"
    exit 2
    --- stderr
    error[USAGE_INVALID]: the following required arguments were not provided: <ID>
      → see `cairn session export --help`
    ");
    assert_snapshot!(env.run(&["session", "export", "x"]), @r"
    exit 2
    --- stderr
    error[SESSION_ID_INVALID]: `x` is not a session id, nor the beginning of one with at least 6 characters after `sess_`
      → copy an id from `cairn session list`, such as sess_01hf7yat…
    ");
    assert_snapshot!(env.run(&["session", "export", NO_SESSION, "-o", "a.json"]), @r"
    exit 4
    --- stderr
    error[SESSION_NOT_FOUND]: there is no session sess_01hf7yat000000000000000008
      → list the sessions there are with `cairn session list`
    ");
    assert_snapshot!(env.run(&["session", "export", SESSION, "-o", "no/such/folder.json"]), @r"
    exit 4
    --- stderr
    error[FILE_NOT_FOUND]: no/such/folder.json: No such file or directory (os error 2)
      → check the path; `-` stands for standard input or output
    ");
    fs::create_dir(env.path("folder")).unwrap();
    assert_snapshot!(env.run(&["session", "export", SESSION, "-o", "folder"]), @r"
    exit 1
    --- stderr
    error[FILE_IO]: folder: Is a directory (os error 21)
      → check the path and the disk it is on, then try again
    ");
    let left: Vec<_> =
        fs::read_dir(env.path(".")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
}
