use std::io::Write as _;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::env::TestEnv;

/// What `cairn mcp` answers to these lines, and nothing but that.
fn talk(env: &TestEnv, args: &[&str], lines: &[Value]) -> Vec<Value> {
    let mut command = env.command(&[&["mcp"], args].concat());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    lines.iter().for_each(|line| writeln!(input, "{line}").unwrap());
    drop(input);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let answers = String::from_utf8(output.stdout).unwrap();
    answers.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn tools(env: &TestEnv, args: &[&str]) -> usize {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let list =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}});
    let answers = talk(env, args, &[list]);
    answers[0]["result"]["tools"].as_array().unwrap().len()
}

#[test]
fn it_ends_with_its_input() {
    assert!(talk(&TestEnv::new(), &[], &[]).is_empty());
}

#[test]
fn a_flag_adds_sessions_for_notes() {
    let env = TestEnv::new();
    assert_eq!(tools(&env, &[]), 6);
    assert_eq!(tools(&env, &["--tools", "execute"]), 6);
    assert_eq!(tools(&env, &["--enable-start-session"]), 7);
}

#[test]
fn a_home_that_cannot_be_used_is_told_before_anything_else() {
    let env = TestEnv::new();
    env.spoil_home();
    let outcome = env.run(&["mcp"]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (2, ""), "{outcome}");
    assert!(outcome.stderr.contains("HOME_NOT_A_DIRECTORY"), "{outcome}");
}
