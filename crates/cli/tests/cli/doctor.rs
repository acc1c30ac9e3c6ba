use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use crate::env::TestEnv;

fn state(checks: &Value, name: &str) -> String {
    let checks = checks["checks"].as_array().unwrap();
    let check = checks.iter().find(|check| check["name"] == name).unwrap();
    check["state"].as_str().unwrap().to_owned()
}

#[test]
fn every_check_is_a_line() {
    let env = TestEnv::with_session();
    let outcome = env.run(&["doctor", "--json"]);
    let checks: Value = serde_json::from_str(&outcome.stdout).unwrap();
    let names = checks["checks"].as_array().unwrap().iter();
    let names: Vec<_> = names.map(|check| check["name"].as_str().unwrap()).collect();
    insta::assert_snapshot!(names.join("\n"), @r"
    version
    system
    user
    data directory
    writable
    file system
    free space
    sync
    permissions
    key ring
    admin token
    audit record
    processes
    agents
    sessions
    workflows
    triggers
    ");
    let lines = env.run(&["doctor"]);
    assert_eq!(lines.code, 0, "{lines}");
    for (line, name) in lines.stdout.lines().zip(names) {
        assert!(line.contains(&format!("  {name}  ")), "{line}");
    }
}

#[test]
fn a_key_ring_that_others_can_read_is_a_failure() {
    let env = TestEnv::new();
    env.run(&["key", "rotate"]);
    let path = env.home().join("keys/keyring.json");
    fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
    fs::set_permissions(env.home(), fs::Permissions::from_mode(0o755)).unwrap();
    let outcome = env.run(&["doctor", "--json"]);
    assert_eq!(outcome.code, 3, "{outcome}");
    let checks: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(checks["ok"], false);
    assert_eq!(state(&checks, "key ring"), "failed");
    assert_eq!(state(&checks, "permissions"), "warning");
    assert_eq!(state(&checks, "file system"), "ok");
}

#[test]
fn a_damaged_key_ring_is_a_failure() {
    let env = TestEnv::new();
    let key_ring = || {
        let outcome = env.run(&["doctor", "--json"]);
        let checks: Value = serde_json::from_str(&outcome.stdout).unwrap();
        (outcome.code, state(&checks, "key ring"))
    };
    assert_eq!(key_ring(), (0, "info".to_owned()));
    assert!(!env.home().join("keys").exists());
    env.run(&["key", "rotate"]);
    assert_eq!(key_ring(), (0, "ok".to_owned()));
    fs::write(env.home().join("keys/keyring.json"), "junk").unwrap();
    assert_eq!(key_ring(), (3, "failed".to_owned()));
}

#[test]
fn a_home_that_is_a_file_is_refused() {
    let env = TestEnv::new();
    env.spoil_home();
    insta::assert_snapshot!(env.run(&["doctor"]), @r"
    exit 2
    --- stderr
    error[HOME_NOT_A_DIRECTORY]: [tmp]/home is not a directory
      → name a directory with --home or CAIRN_HOME
    ");
}
