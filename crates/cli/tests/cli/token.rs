//! `cairn token`: made, shown once, revoked; and the record of it.

use std::fs;

use insta::assert_snapshot;
use serde_json::Value;

use crate::env::TestEnv;
use crate::serve::{Server, get};

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn a_token_opens_a_running_server_until_it_is_revoked() {
    let env = TestEnv::new();
    let mut server = Server::start(&env, &[]);
    let address = server.line();
    let address = address.strip_prefix("listening on ").unwrap();
    let made = env.run(&["token", "create", "--name", "ci", "--scope", "read", "--json"]);
    assert_eq!(made.code, 0, "{made}");
    let made = json(&made.stdout);
    let token = made["token"].as_str().unwrap();
    assert!(token.starts_with("cairn_tok_") && token.len() == 62, "{token}");
    assert!(get(address, "/api/v1/runs", token).starts_with("HTTP/1.1 200 "));
    assert!(get(address, "/api/v1/audit", token).starts_with("HTTP/1.1 403 "));
    let listed = env.run(&["token", "list", "--json"]);
    assert!(!listed.stdout.contains(token), "{listed}");
    assert_eq!(json(&listed.stdout)["items"][0]["scopes"][0], "read");
    let file = env.home().join("keys/tokens.json");
    assert!(!fs::read_to_string(file).unwrap().contains(token));

    let id = made["tokenId"].as_str().unwrap();
    assert_eq!(env.run(&["token", "revoke", id]).code, 0);
    assert!(get(address, "/api/v1/runs", token).starts_with("HTTP/1.1 401 "));
}

#[test]
fn what_is_wrong_with_a_token_is_told() {
    let env = TestEnv::new();
    let create = |args: &[&str]| env.run(&[&["token", "create"], args].concat());
    assert_eq!(create(&["--name", "a"]).code, 2, "without a scope it allows nothing");
    assert_eq!(create(&["--name", "a", "--scope", "write"]).code, 2);
    assert_eq!(create(&["--name", "a", "--scope", "read", "--expires", "soon"]).code, 2);
    assert_eq!(create(&["--name", "a b", "--scope", "read"]).code, 2);
    assert_eq!(create(&["--name", "a", "--scope", "read", "--workflow", "nobody"]).code, 4);
    assert_eq!(create(&["--name", "a", "--scope", "read"]).code, 0);
    assert_eq!(create(&["--name", "a", "--scope", "read"]).code, 2, "the name is taken");
    assert_snapshot!(env.run(&["token", "revoke", "nobody"]), @r"
    exit 4
    --- stderr
    error[ACCESS_TOKEN_NOT_FOUND]: there is no token `nobody`
      → list the tokens there are with `cairn token list`
    ");
}

#[test]
fn the_record_of_changes_tells_when_it_was_changed() {
    let env = TestEnv::new();
    for name in ["a", "b", "c"] {
        env.run(&["token", "create", "--name", name, "--scope", "read"]);
    }
    assert_snapshot!(env.run(&["audit", "verify"]), @r"
    exit 0
    --- stdout
    3 line(s), each as it was written
    ");
    let path = env.home().join("audit/audit.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines[1] = lines[1].replacen("tokens:create", "tokens:revoke", 1);
    fs::write(&path, lines.join("\n") + "\n").unwrap();
    assert_snapshot!(env.run(&["audit", "verify"]), @r"
    exit 3
    --- stderr
    error[AUDIT_BROKEN]: line 2 of [tmp]/home/audit/audit.jsonl is not what was written, or does not follow the one before it
      → find out who changed the file; what stands before that line can be trusted
    ");
}
