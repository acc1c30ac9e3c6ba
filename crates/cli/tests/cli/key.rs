use std::fs;

use insta::assert_snapshot;

use crate::env::TestEnv;

#[test]
fn each_rotation_counts_one_further() {
    let env = TestEnv::new();
    assert_snapshot!(env.run(&["key", "rotate"]), @r"
    exit 0
    --- stdout
    signing with key 1 from now on
    ");
    assert_snapshot!(env.run(&["key", "rotate", "--json"]), @r#"
    exit 0
    --- stdout
    {"generation":2}
    "#);
}

#[test]
fn no_key_is_ever_shown() {
    let env = TestEnv::new();
    env.run(&["key", "rotate"]);
    let keyring = fs::read_to_string(env.home().join("keys/keyring.json")).unwrap();
    let keyring: serde_json::Value = serde_json::from_str(&keyring).unwrap();
    let outcome = env.run(&["key", "rotate", "--json"]);
    assert!(!outcome.stdout.contains(keyring["current"].as_str().unwrap()));
}

#[test]
fn a_damaged_key_ring_is_not_replaced() {
    let env = TestEnv::new();
    env.run(&["key", "rotate"]);
    let path = env.home().join("keys/keyring.json");
    fs::write(&path, "{").unwrap();
    let outcome = env.run(&["key", "rotate"]);
    assert_eq!(outcome.code, 8, "{outcome}");
    assert!(outcome.stderr.starts_with("error[KEYRING_UNUSABLE]"), "{outcome}");
    assert_eq!(fs::read_to_string(path).unwrap(), "{");
    assert_snapshot!(env.run(&["key"]).code, @"2");
}
