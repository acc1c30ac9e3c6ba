//! The official Python SDK.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use crate::place::{CAIRN, Place, client};
use crate::story::{self, Client, Outcome};

/// A connected client. It is closed with the test, and with it what it started.
struct Python {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    version: String,
}

impl Python {
    fn connect(place: &Place, mode: &str, args: &[&str]) -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/bridge.py");
        let mut command = place.command(client("python/bin/python"));
        command.arg(script).arg(mode).args(args);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut python = Self { child, input, output, version: String::new() };
        let hello = python.read();
        assert_eq!(hello["tools"], json!(story::TOOLS));
        python.version = hello["version"].as_str().unwrap().to_owned();
        python
    }

    fn stdio(place: &Place, mode: &str) -> Self {
        let (home, folder) = (place.home(), place.folder());
        let place_args = [home.to_str().unwrap(), folder.to_str().unwrap()];
        Self::connect(place, mode, &[&["stdio"][..], &place_args, &[CAIRN, "mcp"]].concat())
    }

    fn read(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }
}

impl Client for Python {
    fn call(&mut self, tool: &str, arguments: Value) -> Outcome {
        let mut input = self.input.as_ref().unwrap();
        writeln!(input, "{}", json!({"tool": tool, "arguments": arguments})).unwrap();
        Outcome::new(self.read())
    }
}

impl Drop for Python {
    fn drop(&mut self) {
        self.input = None;
        assert!(self.child.wait().unwrap().success() || std::thread::panicking());
    }
}

#[test]
fn a_whole_story_over_stdio_in_the_current_revision() {
    let place = Place::new();
    let mut client = Python::stdio(&place, "auto");
    assert_eq!(client.version, "2026-07-28");
    story::play(&mut client);
}

#[test]
fn a_whole_story_over_stdio_with_the_older_handshake() {
    let place = Place::new();
    let mut client = Python::stdio(&place, "legacy");
    assert_eq!(client.version, "2025-11-25");
    story::play(&mut client);
}

#[test]
fn a_whole_story_over_http_in_the_current_revision() {
    let place = Place::new();
    let server = place.serve();
    let url = format!("{}/mcp", server.address);
    let mut client = Python::connect(&place, "auto", &["http", &url, &server.token]);
    assert_eq!(client.version, "2026-07-28");
    story::play(&mut client);
}

#[test]
fn a_whole_story_over_http_with_the_older_handshake() {
    let place = Place::new();
    let server = place.serve();
    let url = format!("{}/mcp", server.address);
    let mut client = Python::connect(&place, "legacy", &["http", &url, &server.token]);
    assert_eq!(client.version, "2025-11-25");
    story::play(&mut client);
}
