//! The Inspector in its CLI mode. Every call is a client, and over stdio a server, of its own.

use std::process::Command;

use serde_json::Value;

use crate::place::{CAIRN, Place, client, node};
use crate::story::{self, Client, Outcome};

struct Inspector<'a> {
    place: &'a Place,
    target: Vec<String>,
}

impl Inspector<'_> {
    fn command(&self, method: &str) -> Command {
        let mut command = self.place.command(node());
        command.arg(client("node/node_modules/.bin/mcp-inspector")).arg("--cli");
        command.args(&self.target).args(["--method", method]);
        command
    }
}

impl Client for Inspector<'_> {
    fn call(&mut self, tool: &str, arguments: Value) -> Outcome {
        let mut command = self.command("tools/call");
        command.args(["--tool-name", tool]);
        for (name, value) in arguments.as_object().unwrap() {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            command.args(["--tool-arg", &format!("{name}={value}")]);
        }
        let output = command.output().unwrap();
        let said = serde_json::from_slice(&output.stdout);
        Outcome::new(said.unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr))))
    }
}

fn stdio(place: &Place) -> Inspector<'_> {
    let home = format!("CAIRN_HOME={}", place.home().display());
    let target = ["-e", &home, CAIRN, "mcp"].map(str::to_owned);
    Inspector { place, target: target.into() }
}

#[test]
fn a_whole_story_over_stdio() {
    let place = Place::new();
    story::play(&mut stdio(&place));
}

#[test]
fn a_whole_story_over_http() {
    let place = Place::new();
    let server = place.serve();
    let header = format!("Authorization: Bearer {}", server.token);
    let url = format!("{}/mcp", server.address);
    let target = [&*url, "--transport", "http", "--header", &header].map(str::to_owned);
    story::play(&mut Inspector { place: &place, target: target.into() });
}

#[test]
fn no_tool_has_a_schema_that_some_client_cannot_read() {
    let place = Place::new();
    let output = stdio(&place).command("tools/list").arg("--strict").output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !told.contains("Warning"), "{told}");
}
