use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use cairn_server::Front;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

use crate::client::Server;

// case: webhook.body-limit
#[tokio::test]
async fn a_body_that_says_it_is_too_long_is_not_read() {
    let server = Server::start().await;
    let length = (1 << 20) + 1;
    let answer = server.ask("POST", "/healthz", &[("Content-Length", &length.to_string())]).await;
    assert_eq!((answer.status, answer.code().as_str()), (413, "REQUEST_TOO_LARGE"));
}

#[tokio::test]
async fn an_endless_body_is_not_waited_for() {
    let server = Server::start().await;
    let head = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n";
    let mut stream = server.connect().await;
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut start = [0; 12];
    stream.read_exact(&mut start).await.unwrap();
    assert_eq!(&start, b"HTTP/1.1 200");
}

#[tokio::test]
async fn a_head_that_is_too_long_is_refused() {
    let server = Server::start().await;
    let long = "x".repeat(64 << 10);
    assert_eq!(server.ask("GET", "/healthz", &[("X-Long", &long)]).await.status, 431);
    let names: Vec<String> = (0..100).map(|n| format!("X-{n}")).collect();
    let many: Vec<_> = names.iter().map(|name| (name.as_str(), "x")).collect();
    assert_eq!(server.ask("GET", "/healthz", &many).await.status, 431);
}

// case: http.smuggling
#[tokio::test]
async fn requests_that_two_readers_could_read_differently_are_refused() {
    let server = Server::start().await;
    for lines in [
        "Content-Length: 1\r\nContent-Length: 2",
        "Content-Length: -1",
        "Transfer-Encoding: identity",
        "Transfer-Encoding: chunked, identity",
        "X: 1\r\n folded",
        "X : 1",
    ] {
        let request = format!("POST /healthz HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n\r\n");
        assert_eq!(server.send(&request).await.status, 400, "{lines}");
    }
}

#[tokio::test]
async fn slow_clients_do_not_hold_up_others() {
    let server = Server::start().await;
    let mut slow = Vec::new();
    for _ in 0..200 {
        let mut stream = server.connect().await;
        stream.write_all(b"GET /healthz HTT").await.unwrap();
        slow.push(stream);
    }
    let answer = timeout(Duration::from_secs(5), server.ask("GET", "/healthz", &[])).await;
    assert_eq!(answer.unwrap().status, 200);
}

// case: http.slow
#[tokio::test(start_paused = true)]
async fn a_client_that_never_finishes_its_head_is_let_go() {
    let server = Server::start().await;
    let mut stream = server.connect().await;
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: loc").await.unwrap();
    // Time stands still while something can be done and jumps when nothing can.
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.unwrap();
    assert_eq!(rest, b"");
}

// case: http.slow
#[tokio::test(start_paused = true)]
async fn a_client_that_never_reads_is_let_go() {
    let server = Server::start().await;
    let mut stream = server.connect().await;
    let request = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(1_000);
    // Answers pile up until no more can be written, and then the server's patience runs out.
    let refused = loop {
        if let Err(error) = stream.write_all(&request).await {
            break error;
        }
    };
    assert!(matches!(refused.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe));
}

#[tokio::test]
async fn other_machines_come_in_through_a_proxy_only() {
    let everywhere = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
    let refused = cairn_server::listen(everywhere, Front::None).await.unwrap_err();
    assert_eq!(refused.code(), "SERVER_ADDRESS_EXPOSED");
    assert!(cairn_server::listen(everywhere, Front::Proxy).await.is_ok());
}

#[tokio::test]
async fn a_taken_port_is_named() {
    let server = Server::start().await;
    let error = cairn_server::listen(server.address, Front::None).await.unwrap_err();
    assert_eq!(error.code(), "SERVER_PORT_TAKEN");
}
