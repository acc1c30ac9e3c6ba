use std::fs;

use insta::assert_snapshot;
use serde_json::Value;

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
    --- stderr
    it does nothing here before you say so: cairn session trust sess_01hf7yat000000000000000007
    ");
    assert_eq!(env.run(&["session", "verify", SESSION]).code, 0);
    let shown = |env: &TestEnv| -> Value {
        serde_json::from_str(&env.run(&["session", "show", SESSION, "--json"]).stdout).unwrap()
    };
    let (mut here, mut there) = (shown(&env), shown(&TestEnv::with_session()));
    assert_eq!(here["imported"]["originalSessionId"], SESSION);
    assert_eq!(here["runs"][0]["status"], "paused");
    here.as_object_mut().unwrap().remove("imported");
    for shown in [&mut here, &mut there] {
        shown.as_object_mut().unwrap().retain(|name, _| name != "runs" && name != "latestRun");
    }
    assert_eq!(here, there);
    // Nobody sits at a terminal, so nobody says yes; whoever names the digest was shown it.
    let asked = env.run(&["session", "trust", SESSION]);
    assert_eq!(asked.code, 2, "{asked}");
    assert!(asked.stderr.contains("error[USAGE_UNCONFIRMED]"), "{asked}");
    assert!(
        asked.stderr.contains(&format!("`cairn session trust {SESSION} --root sha256:")),
        "{asked}"
    );
    let other = format!("sha256:{}", "0".repeat(64));
    let refused = env.run(&["session", "trust", SESSION, "--root", &other]);
    assert!(refused.stderr.contains("error[SESSION_OTHER_BUNDLE]"), "{refused}");
    let claims: Value =
        serde_json::from_str(&env.run(&["session", "trust", SESSION, "--json"]).stdout).unwrap();
    assert_eq!((&claims["trusted"], &claims["events"]), (&Value::Bool(false), &Value::from(11)));
    let root = claims["rootHash"].as_str().unwrap();
    assert_eq!(env.run(&["session", "trust", SESSION, "--root", root]).code, 0);
    assert!(shown(&env)["imported"]["trustedBy"].is_string());
    let again = env.run(&["session", "import", "a.json", "--json"]).stdout;
    assert!(again.contains(r#""again":true"#) && again.contains(r#""trusted":true"#), "{again}");
}

#[test]
fn a_bundle_whose_session_is_there_becomes_a_new_one() {
    let bundle = bundle();
    let env = TestEnv::with_session();
    let before = env.run(&["session", "show", SESSION, "--json"]).stdout;
    let told = env.run_with_input(&["session", "import", "-"], bundle.as_bytes());
    assert!(told.stderr.contains(&format!("it was {SESSION}\n")), "{told}");
    let again = env.run_with_input(&["session", "import", "-", "--json"], bundle.as_bytes());
    let again: Value = serde_json::from_str(&again.stdout).unwrap();
    let session = again["sessionId"].as_str().unwrap();
    assert!(told.stdout.starts_with(&format!("imported {session} with 11 events")), "{told}");
    assert_ne!(session, SESSION);
    let said = ["again", "asNew", "trusted"].map(|name| again[name].as_bool().unwrap());
    assert_eq!(said, [true, true, false], "{again}");
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
