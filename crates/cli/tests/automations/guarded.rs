//! What keeps the server itself: its memory from other eyes, its size from what is sent, and
//! this machine from what its steps leave behind.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::{MetadataExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::server::{Place, Server, call};

/// A user that is nobody, for tests that root runs.
const NOBODY: u32 = 65_534;

/// A number of kilobytes that `/proc` tells of a process.
fn kilobytes(pid: u32, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap().trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn other_programs_of_the_same_user_cannot_look_into_the_server() {
    let place = Place::new("", &[]);
    let is_root = rustix::process::geteuid().is_root();
    let mut command = place.command(&["serve", "--listen", "127.0.0.1:0"]);
    command.env("CAIRN_MASTER_KEY", "07".repeat(32)).stdout(Stdio::piped()).stderr(Stdio::null());
    if is_root {
        for path in ["", "workflows", "config.toml"] {
            chown(place.path(path), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        command.uid(NOBODY).gid(NOBODY);
    }
    let mut child = command.spawn().unwrap();
    let pid = child.id();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let server = Server { child, address: String::new() };
    assert!(line.starts_with("listening on "), "{line}");

    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    let core: Vec<&str> = core.split_ascii_whitespace().collect();
    assert_eq!(core[4..6], ["0", "0"], "no core is written");
    // What may not be dumped belongs to root in /proc, whoever runs it.
    assert_eq!(fs::metadata(format!("/proc/{pid}/environ")).unwrap().uid(), 0);
    for file in ["environ", "mem", "maps"] {
        let mut look = Command::new("cat");
        look.arg(format!("/proc/{pid}/{file}")).stdout(Stdio::null()).stderr(Stdio::piped());
        if is_root {
            look.uid(NOBODY).gid(NOBODY);
        }
        let seen = look.output().unwrap();
        let said = String::from_utf8_lossy(&seen.stderr).into_owned();
        assert!(!seen.status.success() && said.contains("Permission denied"), "{file}: {said}");
    }
    drop(server);
}

/// Sends more than may be sent, and gives the status of the answer; none when the connection
/// was closed while it was sent.
fn flood(address: &str, head: &str, pieces: usize) -> Option<u16> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream.write_all(head.as_bytes()).unwrap();
    let piece = format!("10000\r\n{}\r\n", "x".repeat(1 << 16));
    for _ in 0..pieces {
        if stream.write_all(piece.as_bytes()).is_err() {
            break;
        }
    }
    let mut answer = Vec::new();
    // What comes after the answer is a reset, since not all was read.
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).split(' ').nth(1)?.parse().ok()
}

#[test]
fn large_bodies_leave_the_server_as_small_as_it_was() {
    let hook = "name: Pager\nenv: [{ name: KEY, widget: secret }]\ntriggers: [{ id: pager, type: webhook, path: /pager, secret: KEY }]\ngraph: { nodes: [{ id: a, type: end }] }\n";
    let place = Place::new("", &[("pager", hook.to_owned())]);
    let server = place.serve();
    let (pid, token) = (server.child.id(), place.token());
    let known = || {
        let listed = call(&server.address, &token, "GET /api/v1/triggers", "", None);
        listed.is_some_and(|(_, page)| page["items"][0].is_object())
    };
    let begun = Instant::now();
    while !known() {
        assert!(begun.elapsed() < Duration::from_secs(30), "the trigger is not seen");
        std::thread::sleep(Duration::from_millis(20));
    }
    let head = |path: &str| {
        format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
    };
    // One of each makes the server as large as it gets by working at all.
    for path in ["/hooks/pager", "/api/v1/runs", "/mcp"] {
        assert_eq!(flood(&server.address, &head(path), 17), Some(413), "{path}");
    }
    let before = kilobytes(pid, "VmHWM");
    std::thread::scope(|scope| {
        for n in 0..8 {
            let path = ["/hooks/pager", "/api/v1/runs", "/mcp"][n % 3];
            let (address, head) = (&server.address, head(path));
            scope.spawn(move || {
                for _ in 0..20 {
                    // 64 MiB, if anybody took them.
                    if let Some(status) = flood(address, &head, 1024) {
                        assert_eq!(status, 413, "{path}");
                    }
                }
            });
        }
    });
    let grown = kilobytes(pid, "VmHWM") - before;
    assert!(grown < 64 << 10, "10 GiB were offered, and it grew by {grown} kB");
}

#[test]
fn nothing_of_a_step_outlives_a_server_that_is_killed() {
    let seconds = format!("6{}", std::process::id());
    let shell = |id: &str, line: &str| {
        let line = line.replace("{}", &seconds);
        let text = format!(
            "name: {id}\ngraph:\n  nodes:\n    - {{ id: a, type: shell, timeout_sec: 60, command: [sh, -c, \"{line}\"] }}\n"
        );
        (id.to_owned(), text)
    };
    let flows = [
        shell("plain", "sleep {} & sleep {}"),
        shell(
            "hidden",
            "setsid sleep {} & (setsid sh -c 'sleep {} & exit' &); nohup sleep {} >/dev/null 2>&1 & sleep {}",
        ),
        shell("bare", "env -i setsid sleep {} & sleep {}"),
    ];
    let flows: Vec<(&str, String)> =
        flows.iter().map(|(id, text)| (id.as_str(), text.clone())).collect();
    let place = Place::new("", &flows);
    let mut server = place.serve();
    let token = place.token();
    for (id, _) in &flows {
        let body = json!({"workflow": id});
        let begun = call(&server.address, &token, "POST /api/v1/runs", "", Some(&body)).unwrap();
        assert_eq!(begun.0, 201, "{}", begun.1);
    }
    let mark = format!("sleep\0{seconds}\0");
    let sleepers = || {
        let all = fs::read_dir("/proc").unwrap().flatten();
        let lines = all.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
        lines.filter(|line| line.as_slice() == mark.as_bytes()).count()
    };
    let until = |what: &str, wanted: usize, within: Duration| {
        let begun = Instant::now();
        while sleepers() != wanted {
            assert!(begun.elapsed() < within, "{what}: {} sleep", sleepers());
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    until("all are there", 8, Duration::from_secs(20));
    server.kill();
    until("after the kill", 0, Duration::from_secs(5));
}

// case: limit.many
#[test]
fn ten_thousand_starts_are_turned_away_in_good_order() {
    const STARTS: usize = 10_000;
    let text = "name: Greet\ngraph: { nodes: [{ id: a, type: end, result: hello }] }\n";
    let place = Place::new("", &[("greet", text.to_owned())]);
    let server = place.serve();
    let (pid, token) = (server.child.id(), place.token());
    let body = json!({"workflow": "greet"}).to_string();
    let request = format!(
        "POST /api/v1/runs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let before = kilobytes(pid, "VmRSS");
    let counts = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let stream = TcpStream::connect(&server.address).unwrap();
                    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
                    let (mut writes, mut reads) =
                        (stream.try_clone().unwrap(), BufReader::new(stream));
                    let mut counts = (0, 0);
                    for _ in 0..STARTS / 4 {
                        writes.write_all(request.as_bytes()).unwrap();
                        match answer(&mut reads) {
                            (201, _) => counts.0 += 1,
                            (429, body) => {
                                assert!(body.contains("RUN_RATE_LIMITED"), "{body}");
                                counts.1 += 1;
                            }
                            (status, body) => panic!("{status}: {body}"),
                        }
                    }
                    counts
                })
            })
            .collect();
        let all = clients.into_iter().map(|client| client.join().unwrap());
        all.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    });
    assert_eq!(counts.0 + counts.1, STARTS);
    // 60 in a minute, and the clock goes on meanwhile.
    assert!((60..=300).contains(&counts.0), "{counts:?}");
    let grown = kilobytes(pid, "VmRSS").saturating_sub(before);
    assert!(grown < 64 << 10, "it grew by {grown} kB");
    let (_, page) = call(&server.address, &token, "GET /api/v1/runs?limit=5", "", None).unwrap();
    assert_eq!(page["items"].as_array().unwrap().len(), 5);
    assert!(page["nextCursor"].is_string(), "{page}");
}

/// The status and the body of the next answer on a connection that stays open.
fn answer(reads: &mut impl std::io::BufRead) -> (u16, String) {
    let (mut status, mut length) = (0, 0);
    loop {
        let mut line = String::new();
        reads.read_line(&mut line).unwrap();
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(rest) = line.strip_prefix("http/1.1 ") {
            status = rest[..3].parse().unwrap();
        }
        if let Some(rest) = line.strip_prefix("content-length: ") {
            length = rest.parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reads.read_exact(&mut body).unwrap();
    (status, String::from_utf8(body).unwrap())
}
