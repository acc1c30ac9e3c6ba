//! Requests that no honest client sends: each gets its answer, and holds nobody up.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::client::{Answer, Server, TOKEN, World};

const GREET: &str = "name: Greet\ngraph: { nodes: [{ id: a, type: end, result: hello }] }\n";

/// What the server says to these bytes until it closes.
async fn all_of(server: &Server, sent: &str) -> String {
    let mut stream = server.connect().await;
    stream.write_all(sent.as_bytes()).await.unwrap();
    let mut said = Vec::new();
    // The client keeps its side open, so this ends when the server closes.
    let read = tokio::time::timeout(Duration::from_secs(5), stream.read_to_end(&mut said)).await;
    assert!(read.is_ok(), "the connection stays open after {sent:?}");
    String::from_utf8(said).unwrap()
}

// case: http.smuggling
#[tokio::test]
async fn a_request_that_ends_in_two_places_is_refused_and_hides_no_other() {
    let server = Server::start().await;
    let hidden = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let head = "POST /healthz HTTP/1.1\r\nHost: localhost\r\n";
    for (what, sent) in [
        (
            "length, then chunks",
            format!(
                "{head}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{hidden}"
            ),
        ),
        (
            "chunks, then length",
            format!(
                "{head}Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n{hidden}"
            ),
        ),
        (
            "the same length twice",
            format!("{head}Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello{hidden}"),
        ),
        (
            "two lengths",
            format!("{head}Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello{hidden}"),
        ),
        ("two lengths in one header", format!("{head}Content-Length: 5, 5\r\n\r\nhello{hidden}")),
        (
            "chunks in chunks",
            format!(
                "{head}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{hidden}"
            ),
        ),
        (
            "a coding before chunks",
            format!("{head}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n{hidden}"),
        ),
        ("an odd coding", format!("{head}Transfer-Encoding: xchunked\r\n\r\n{hidden}")),
        (
            "a length behind a folded line",
            format!("{head}X: 1\r\n Content-Length: 5\r\n\r\n{hidden}"),
        ),
        (
            "a length behind a bare line end",
            format!("{head}X: 1\nContent-Length: 5\r\n\r\n{hidden}"),
        ),
        ("bare line ends", hidden.replace("\r\n", "\n") + hidden),
        (
            "a bare end of the head",
            format!("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\n{hidden}"),
        ),
        ("a bare return", format!("{head}X: 1\rContent-Length: 5\r\n\r\n{hidden}")),
    ] {
        let said = all_of(&server, &sent).await;
        assert!(said.starts_with("HTTP/1.1 400 "), "{what}: {said:?}");
        assert_eq!(said.matches("HTTP/1.1").count(), 1, "{what}: {said:?}");
    }
    let fine = all_of(
        &server,
        &format!("{hidden}{}", hidden.replace("Host", "Connection: close\r\nHost")),
    )
    .await;
    assert_eq!(
        fine.matches("HTTP/1.1 200").count(),
        2,
        "one after another they are fine: {fine:?}"
    );
}

#[tokio::test]
async fn chunks_that_break_the_rules_end_the_request() {
    let world = World::new(&[("greet", GREET)]);
    let server = world.serve().await;
    let head = format!(
        "POST /api/v1/runs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    );
    let body = r#"{"workflow":"greet"}"#;
    for chunks in [
        format!("14\n{body}\r\n0\r\n\r\n"),
        format!("14\r\n{body}\n0\r\n\r\n"),
        format!("14\r\n{body}x\r\n0\r\n\r\n"),
        format!("-14\r\n{body}\r\n0\r\n\r\n"),
        format!("14;a\nb\r\n{body}\r\n0\r\n\r\n"),
    ] {
        let said = all_of(&server, &format!("{head}{chunks}")).await;
        assert!(said.starts_with("HTTP/1.1 400 "), "{chunks:?}: {said:?}");
    }
    let whole =
        format!("{}14\r\n{body}\r\n0\r\n\r\n", head.replace("Host", "Connection: close\r\nHost"));
    assert_eq!(Answer::read(&all_of(&server, &whole).await).status, 201);
    assert_eq!(server.get("/api/v1/runs").await.json()["items"].as_array().unwrap().len(), 1);
}

/// A request whose body does not come.
fn unfinished(path: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{{"
    )
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_come_is_given_up() {
    let server = Server::start().await;
    let mut stream = server.connect().await;
    stream.write_all(unfinished("/api/v1/runs").as_bytes()).await.unwrap();
    let begun = tokio::time::Instant::now();
    // A byte now and then is no reason to wait longer. Time stands still while something can
    // be done and jumps when nothing can.
    let (mut reads, mut writes) = stream.into_split();
    let trickle = tokio::spawn(async move {
        while writes.write_all(b" ").await.is_ok() {
            tokio::time::sleep(Duration::from_secs(10)).await;
        }
    });
    let mut said = Vec::new();
    let _ = reads.read_to_end(&mut said).await;
    let answer = Answer::read(&String::from_utf8(said).unwrap());
    assert_eq!((answer.status, answer.code().as_str()), (408, "REQUEST_TIMEOUT"));
    let took = begun.elapsed();
    assert!((Duration::from_secs(30)..Duration::from_secs(41)).contains(&took), "{took:?}");
    trickle.await.unwrap();
}

// case: http.slow
#[tokio::test]
async fn slow_bodies_do_not_hold_up_others() {
    let server = Server::start().await;
    let mut slow = Vec::new();
    for _ in 0..200 {
        let mut stream = server.connect().await;
        stream.write_all(unfinished("/api/v1/runs").as_bytes()).await.unwrap();
        slow.push(stream);
    }
    let begun = Instant::now();
    assert_eq!(server.get("/api/v1/runs").await.status, 200);
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn whoever_asks_before_sending_too_much_is_told_at_once() {
    let world = World::new(&[("greet", GREET)]);
    let server = world.serve().await;
    let ask = |length: usize| {
        format!(
            "POST /api/v1/runs HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: {length}\r\n\r\n"
        )
    };
    let said = all_of(&server, &ask((1 << 20) + 1)).await;
    assert!(!said.contains("100 Continue"), "{said:?}");
    let answer = Answer::read(&said);
    assert_eq!((answer.status, answer.code().as_str()), (413, "REQUEST_TOO_LARGE"));
    let body = json!({"workflow": "greet"}).to_string();
    let mut stream = server.connect().await;
    stream.write_all(ask(body.len()).as_bytes()).await.unwrap();
    let mut start = [0; 25];
    stream.read_exact(&mut start).await.unwrap();
    assert_eq!(&start, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(body.as_bytes()).await.unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).await.unwrap();
    assert_eq!(Answer::read(&said).status, 201, "{said}");
    // Whoever may not come in is told so, and sends nothing.
    let stranger = ask(body.len()).replace(TOKEN, "nobody");
    let said = all_of(&server, &stranger).await;
    assert!(!said.contains("100 Continue") && said.starts_with("HTTP/1.1 401 "), "{said:?}");
}

// case: webhook.body-limit
#[tokio::test]
async fn a_body_without_a_length_is_read_no_further_than_it_may_be() {
    let server = Server::start().await;
    let head = format!(
        "POST /api/v1/runs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    );
    let mut stream = server.connect().await;
    stream.write_all(head.as_bytes()).await.unwrap();
    let chunk = format!("10000\r\n{}\r\n", "x".repeat(1 << 16));
    let (mut reads, mut writes) = stream.into_split();
    let sender = tokio::spawn(async move {
        let mut sent = 0_usize;
        while writes.write_all(chunk.as_bytes()).await.is_ok() {
            sent += chunk.len();
        }
        sent
    });
    let mut said = Vec::new();
    let _ = reads.read_to_end(&mut said).await;
    let answer = Answer::read(&String::from_utf8(said).unwrap());
    assert_eq!((answer.status, answer.code().as_str()), (413, "REQUEST_TOO_LARGE"));
    // The rest lies in the buffers of the system.
    assert!(sender.await.unwrap() < 64 << 20);
}

#[tokio::test]
async fn what_does_not_say_that_it_is_json_is_not_read() {
    let world = World::new(&[("greet", GREET)]);
    let server = world.serve().await;
    let token = format!("Bearer {TOKEN}");
    let body = r#"{"workflow":"greet"}"#;
    for (kind, coding) in [
        (Some("text/plain"), None),
        (Some("application/x-www-form-urlencoded"), None),
        (Some("multipart/form-data; boundary=x"), None),
        (Some("application/jsonx"), None),
        (Some("text/json"), None),
        (Some(""), None),
        (None, None),
        (Some("application/json"), Some("gzip")),
    ] {
        for path in ["/api/v1/runs", "/api/v1/workflows/validate"] {
            let mut headers = vec![("Authorization", token.as_str())];
            headers.extend(kind.map(|kind| ("Content-Type", kind)));
            headers.extend(coding.map(|coding| ("Content-Encoding", coding)));
            let answer = server.send_body("POST", path, &headers, body).await;
            let found = (answer.status, answer.code());
            assert_eq!(found, (415, "REQUEST_MEDIA_TYPE".to_owned()), "{path} {kind:?} {coding:?}");
            assert_eq!(answer.json()["type"], "/errors/REQUEST_MEDIA_TYPE");
        }
    }
    let fine =
        [("Authorization", token.as_str()), ("Content-Type", "Application/JSON; charset=utf-8")];
    assert_eq!(server.send_body("POST", "/api/v1/runs", &fine, body).await.status, 201);
    assert_eq!(server.get("/api/v1/runs").await.json()["items"].as_array().unwrap().len(), 1);
}

// case: http.two
#[tokio::test]
async fn the_second_version_of_the_protocol_is_not_spoken() {
    let server = Server::start().await;
    let mut stream = server.connect().await;
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
    let mut said = Vec::new();
    // What is not read is answered by a reset at the latest.
    let _ = stream.read_to_end(&mut said).await;
    let said = String::from_utf8_lossy(&said);
    assert!(said.is_empty() || said.starts_with("HTTP/1.1 4"), "{said:?}");
    let upgrade = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n";
    let said = all_of(&server, upgrade).await;
    assert!(!said.starts_with("HTTP/1.1 101"), "{said:?}");
}
