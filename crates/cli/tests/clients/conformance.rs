//! The official conformance suite, over HTTP. It cannot send a token, so a gate adds it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::thread;

use serde_json::Value;

use crate::place::{Place, Server, client, node};

/// What the suite is known to find, and why that is right.
const EXPECTED: &str = include_str!("expected-failures.txt");

#[test]
fn the_server_conforms_to_the_current_revision() {
    check("2026-07-28", &["--requirements", "2026-07-28"]);
}

#[test]
fn the_server_conforms_to_the_last_revision_with_a_handshake() {
    check("2025-11-25", &["--suite", "active", "--spec-version", "2025-11-25"]);
}

/// Runs the suite, and compares what it finds with what is expected, each way.
fn check(revision: &str, args: &[&str]) {
    let place = Place::new();
    let server = place.serve();
    let url = format!("http://{}/mcp", gate(&server));
    let results = place.folder().join("results");
    let mut suite = place.command(node());
    suite.arg(client("node/node_modules/.bin/conformance")).args(["server", "--url", &url]);
    let output = suite.args(args).arg("--output-dir").arg(&results).output().unwrap();
    let (passed, failed) = verdicts(&results);
    assert!(passed > 30, "{}", String::from_utf8_lossy(&output.stderr));
    let expected = expected(revision);
    for (check, why) in &failed {
        let listed = expected.iter().any(|pattern| matches(pattern, check));
        assert!(listed, "{check} fails: {why}");
    }
    for pattern in expected {
        let fails = failed.keys().any(|check| matches(pattern, check));
        assert!(fails, "{pattern} passes now: take it off the list");
    }
}

fn matches(pattern: &str, check: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => check.starts_with(beginning),
        None => check == pattern,
    }
}

/// How many checks passed, and which failed with what message.
fn verdicts(results: &Path) -> (usize, BTreeMap<String, String>) {
    let mut passed = 0;
    let mut failed = BTreeMap::new();
    for scenario in fs::read_dir(results).unwrap() {
        let checks = fs::read(scenario.unwrap().path().join("checks.json")).unwrap();
        let checks: Vec<Value> = serde_json::from_slice(&checks).unwrap();
        for check in checks {
            let text = |field: &str| check[field].as_str().unwrap_or_default().to_owned();
            match check["status"].as_str().unwrap() {
                "FAILURE" => drop(failed.insert(text("id"), text("errorMessage"))),
                "SUCCESS" => passed += 1,
                _ => {}
            }
        }
    }
    (passed, failed)
}

/// The checks that fail in a revision.
fn expected(revision: &str) -> Vec<&'static str> {
    let heading = format!("[{revision}]");
    let lines = EXPECTED.lines().skip_while(|line| *line != heading).skip(1);
    let lines = lines.take_while(|line| !line.starts_with('[')).filter(|line| !line.is_empty());
    lines.map(|line| line.split_once(": ").expect("`check: why`").0).collect()
}

/// A port that passes requests on with the server's token, one for each connection.
fn gate(server: &Server) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let upstream = server.address.strip_prefix("http://").unwrap().to_owned();
    let added = format!("authorization: Bearer {}\r\nconnection: close\r\n", server.token);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (upstream, added) = (upstream.clone(), added.clone());
            // Either end may leave early, and some of the checks do so on purpose.
            thread::spawn(move || pass(stream, &upstream, &added));
        }
    });
    address
}

fn pass(mut client: TcpStream, upstream: &str, added: &str) -> io::Result<()> {
    let (head, rest) = head(&mut client)?;
    let (first, others) = head.split_once("\r\n").unwrap_or((&head, ""));
    let kept: String = others
        .split_inclusive("\r\n")
        .filter(|line| !line.to_ascii_lowercase().starts_with("connection:"))
        .collect();
    let mut server = TcpStream::connect(upstream)?;
    server.write_all(format!("{first}\r\n{added}{kept}").as_bytes())?;
    server.write_all(&rest)?;
    let (mut from, mut to) = (client.try_clone()?, server.try_clone()?);
    thread::spawn(move || io::copy(&mut from, &mut to));
    io::copy(&mut server, &mut client)?;
    client.shutdown(Shutdown::Both)
}

/// The head of a request, its empty line included, and what came after it.
fn head(stream: &mut TcpStream) -> io::Result<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    loop {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
        if let Some(end) = end {
            let rest = bytes.split_off(end + 4);
            return Ok((String::from_utf8_lossy(&bytes).into_owned(), rest));
        }
        let mut part = [0; 4096];
        match stream.read(&mut part)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            length => bytes.extend_from_slice(&part[..length]),
        }
    }
}
