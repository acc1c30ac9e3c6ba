//! Requests against servers of this machine, and against names that mean no good.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use cairn_core::digest::Digest;
use cairn_engine::performer::{Ctx, Failed, FailureKind, Outcome, UsedSecret};
use cairn_steps::catalog::Settings;
use cairn_steps::guard::{Guard, Policy, Resolver};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::world::{ctx, perform, settings};

/// A server that keeps what it was sent, and answers by path.
struct Server {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Server {
    async fn start(answers: Vec<(&'static str, String)>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&seen);
        let answers: Arc<BTreeMap<_, _>> = Arc::new(answers.into_iter().collect());
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (kept, answers) = (Arc::clone(&kept), Arc::clone(&answers));
                tokio::spawn(async move {
                    let mut request = Vec::new();
                    while !is_whole(&request) {
                        let mut part = [0; 4096];
                        match stream.read(&mut part).await {
                            Ok(read @ 1..) => request.extend_from_slice(&part[..read]),
                            _ => return,
                        }
                    }
                    let request = String::from_utf8(request).unwrap();
                    let path = request.split([' ', '?']).nth(1).unwrap().to_owned();
                    kept.lock().unwrap().push(request);
                    let answer = answers.get(path.as_str()).cloned().unwrap_or_default();
                    // A client that has enough may be gone.
                    let _ = stream.write_all(answer.as_bytes()).await;
                });
            }
        });
        Self { address, seen }
    }

    fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    body.len() >= length.map_or(0, |length| length.parse().unwrap())
}

fn answer(status: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n{headers}\r\n{body}"
    )
}

/// Settings under which everything of this machine may be asked.
fn open() -> Settings {
    allowing(&["127.0.0.1:*", "*.test:*"], Names::default())
}

fn allowing(allowed: &[&str], names: Names) -> Settings {
    let allowed = allowed.iter().map(|text| text.parse().unwrap()).collect();
    let guard = Guard { policy: Arc::new(Policy::new(allowed)), resolver: Arc::new(names) };
    Settings { guard, ..settings(std::path::Path::new("/nonexistent")) }
}

/// Names with a list of answers each, the last of which stays.
#[derive(Default)]
struct Names {
    answers: BTreeMap<&'static str, Vec<Vec<&'static str>>>,
    asked: AtomicUsize,
}

#[async_trait::async_trait]
impl Resolver for Names {
    async fn resolve(&self, host: &str) -> std::io::Result<Vec<IpAddr>> {
        let turn = self.asked.fetch_add(1, Ordering::Relaxed);
        let answers = self.answers.get(host).ok_or(std::io::ErrorKind::NotFound)?;
        let found = answers.get(turn).or(answers.last()).unwrap();
        Ok(found.iter().map(|text| text.parse().unwrap()).collect())
    }
}

async fn ask(settings: &Settings, config: Value) -> Result<Outcome, Failed> {
    perform(settings, "http", config, &ctx()).await
}

#[tokio::test]
async fn a_request_carries_what_it_is_told_and_the_answer_comes_back() {
    let reply = answer(
        "201 Created",
        "content-type: application/json\r\nx-a: 1\r\nx-a: 2\r\n",
        "{\"id\":7}",
    );
    let server = Server::start(vec![("/orders", reply)]).await;
    let config = json!({
        "method": "POST", "url": server.url("/orders?a=1"), "query": {"b": "x y&z", "c": 2},
        "headers": {"X-Token": "t"}, "body": {"sku": "é"},
    });
    let done = ask(&open(), config).await.unwrap();
    assert_eq!(done.output["status"], json!(201));
    assert_eq!(done.output["json"], json!({"id": 7}));
    assert_eq!(done.output["headers"]["x-a"], json!("1, 2"));
    assert_eq!(done.fault, None);
    let seen = server.seen().remove(0);
    assert!(seen.starts_with("POST /orders?a=1&b=x+y%26z&c=2 HTTP/1.1\r\n"), "{seen}");
    assert!(seen.contains("x-token: t\r\n") && seen.ends_with("{\"sku\":\"é\"}"), "{seen}");
    assert!(seen.contains("content-type: application/json\r\n"), "{seen}");
    let key = format!("idempotency-key: {}\r\n", Digest::of(b"key").hex());
    assert!(seen.contains(&key), "{seen}");
    assert!(seen.contains("cairn-chain: 3\r\n"), "{seen}");
    let trace = format!("traceparent: {}\r\n", ctx().trace.unwrap().parent());
    assert!(seen.contains(&trace), "{seen}");
    assert!(!seen.to_lowercase().contains("gzip"), "{seen}");
}

#[tokio::test]
async fn reading_carries_no_key_and_a_given_key_stays() {
    let server = Server::start(vec![("/", answer("200 OK", "", "ok"))]).await;
    for method in ["GET", "HEAD"] {
        let config = json!({"url": server.url("/"), "method": method});
        ask(&open(), config).await.unwrap();
    }
    let config = json!({"url": server.url("/"), "method": "PUT", "headers": {"idempotency-key": "mine"}, "body": "text"});
    ask(&open(), config).await.unwrap();
    let seen = server.seen();
    assert!(seen[..2].iter().all(|seen| !seen.contains("idempotency-key")), "{seen:?}");
    assert!(seen[2].contains("idempotency-key: mine\r\n"), "{}", seen[2]);
    assert!(seen[2].contains("content-type: text/plain; charset=utf-8\r\n"), "{}", seen[2]);
}

#[tokio::test]
async fn statuses_become_failures_that_say_whether_to_try_again() {
    let server = Server::start(vec![
        ("/404", answer("404 Not Found", "", "no")),
        ("/429", answer("429 Too Many Requests", "retry-after: 30\r\n", "")),
        (
            "/503",
            answer("503 Service Unavailable", "retry-after: Fri, 31 Dec 1999 23:59:59 GMT\r\n", ""),
        ),
        ("/500", answer("500 Oops", "", "")),
        ("/204", answer("204 No Content", "", "")),
    ])
    .await;
    for (path, code, kind, said) in [
        ("/404", "HTTP_STATUS", FailureKind::Permanent, "status 404"),
        ("/429", "HTTP_RATE_LIMITED", FailureKind::RateLimited, "wait 30 s"),
        ("/503", "HTTP_SERVER", FailureKind::ServerError, "until Fri, 31 Dec 1999"),
        ("/500", "HTTP_SERVER", FailureKind::ServerError, "status 500"),
    ] {
        let done = ask(&open(), json!({"url": server.url(path)})).await.unwrap();
        let fault = done.fault.unwrap();
        assert_eq!((fault.code, fault.kind), (code, kind), "{path}");
        assert!(fault.message.contains(said), "{path}: {}", fault.message);
        let wait = match path {
            "/429" => Some(30_000),
            "/503" => Some(0),
            _ => None,
        };
        assert_eq!(fault.after_ms, wait, "{path}");
    }
    let fine = json!({"url": server.url("/404"), "ok_status": [200, 404]});
    assert_eq!(ask(&open(), fine).await.unwrap().fault, None);
    let strict = json!({"url": server.url("/204"), "ok_status": [200]});
    assert_eq!(ask(&open(), strict).await.unwrap().fault.unwrap().code, "HTTP_STATUS");
}

#[tokio::test]
async fn a_server_that_is_not_there_or_breaks_off_may_be_tried_again() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let failed = ask(&open(), json!({"url": format!("http://{address}/")})).await.unwrap_err();
    assert_eq!((failed.code, failed.kind), ("HTTP_REFUSED", FailureKind::Connection));
    assert!(failed.message.contains("nothing listens there"), "{failed}");
    let failed = ask(&open(), json!({"url": "http://nobody.test/"})).await.unwrap_err();
    assert_eq!((failed.code, failed.kind), ("HTTP_NAME", FailureKind::Connection));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let plain = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        // It hears the client out: whoever closes with bytes unread resets the connection.
        let mut hello = [0; 4_096];
        let heard = stream.read(&mut hello).await.unwrap();
        assert!(heard > 0);
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
    });
    let failed = ask(&open(), json!({"url": format!("https://{plain}/")})).await.unwrap_err();
    assert_eq!((failed.code, failed.kind), ("HTTP_TLS", FailureKind::Permanent), "{failed}");
    let short = "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc".to_owned();
    let server = Server::start(vec![("/", short), ("/gone", String::new())]).await;
    let failed = ask(&open(), json!({"url": server.url("/")})).await.unwrap_err();
    assert_eq!((failed.code, failed.kind), ("HTTP_ANSWER", FailureKind::Connection));
    let failed = ask(&open(), json!({"url": server.url("/gone")})).await.unwrap_err();
    assert_eq!((failed.code, failed.kind), ("HTTP_CONNECT", FailureKind::Connection));
}

#[tokio::test]
async fn forms_are_sent_as_forms() {
    let server = Server::start(vec![("/", answer("200 OK", "", "ok"))]).await;
    let form = "application/x-www-form-urlencoded";
    for config in [
        json!({"method": "POST", "form": {"a": "x y", "b": 2}}),
        json!({"method": "POST", "body": {"a": "x y", "b": 2}, "headers": {"Content-Type": form}}),
    ] {
        let mut config = config;
        config["url"] = json!(server.url("/"));
        ask(&open(), config).await.unwrap();
        let sent = server.seen().pop().unwrap();
        assert!(sent.contains(&format!("content-type: {form}\r\n")), "{sent}");
        assert!(sent.ends_with("\r\n\r\na=x+y&b=2"), "{sent}");
    }
}

// case: request.answer-limit
#[tokio::test]
async fn answers_have_a_size_and_a_form() {
    let text = "x".repeat((1 << 20) + 1);
    let server = Server::start(vec![
        ("/long", answer("200 OK", "", &text)),
        ("/just", answer("200 OK", "", &text[1..])),
        ("/odd", answer("200 OK", "content-type: application/json\r\n", "{odd")),
    ])
    .await;
    let done = ask(&open(), json!({"url": server.url("/long")})).await.unwrap();
    assert_eq!(done.output["truncated"], json!(true));
    let fault = done.fault.unwrap();
    assert_eq!((fault.code, fault.kind), ("HTTP_TOO_LARGE", FailureKind::InvalidOutput));
    assert_eq!(ask(&open(), json!({"url": server.url("/just")})).await.unwrap().fault, None);
    let odd = |parse: &str| json!({"url": server.url("/odd"), "parse_response": parse});
    let fault = ask(&open(), odd("json")).await.unwrap().fault.unwrap();
    assert_eq!((fault.code, fault.kind), ("HTTP_NOT_JSON", FailureKind::InvalidOutput));
    assert_eq!(ask(&open(), odd("text")).await.unwrap().fault, None);
    let done = ask(&open(), json!({"url": server.url("/odd")})).await.unwrap();
    assert_eq!((done.fault, done.output.get("json")), (None, None));
}

#[tokio::test]
async fn headers_cannot_smuggle() {
    let server = Server::start(vec![("/", answer("200 OK", "", "ok"))]).await;
    for (name, value) in [
        ("X-A", "a\r\nX-B: b"),
        ("X-A", "a\nb"),
        ("X-A", "a\0b"),
        ("X A", "b"),
        ("X-A\r\nX", "b"),
        ("", "b"),
        ("Host", "evil"),
        ("Transfer-Encoding", "chunked"),
        ("content-length", "0"),
        ("Connection", "x"),
        ("Proxy-Authorization", "x"),
    ] {
        let config = json!({"url": server.url("/"), "headers": {name: value}});
        let failed = ask(&open(), config).await.unwrap_err();
        assert_eq!(failed.code, "HTTP_HEADER", "{name:?}: {value:?}");
    }
    assert_eq!(server.seen(), Vec::<String>::new());
}

// case: request.proxy
#[tokio::test]
async fn the_environment_names_no_proxy() {
    // Whoever runs the tests may have one set; no request may go there.
    let server = Server::start(vec![("/", answer("200 OK", "", "ok"))]).await;
    let program = std::env::current_exe().unwrap();
    let child = tokio::process::Command::new(program)
        .args(["--exact", "http::a_request_carries_what_it_is_told_and_the_answer_comes_back"])
        .envs(
            ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "HTTPS_PROXY"].map(|n| (n, server.url("/"))),
        )
        .output();
    let output = child.await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert_eq!(server.seen(), Vec::<String>::new());
}

#[tokio::test]
async fn nothing_inside_is_asked_without_permission() {
    let server = Server::start(vec![("/", answer("200 OK", "", "ok"))]).await;
    let port = server.address.port();
    let names = || Names {
        answers: BTreeMap::from([
            ("nip.test", vec![vec!["127.0.0.1"]]),
            ("mixed.test", vec![vec!["93.184.216.34", "10.0.0.1"]]),
            ("mapped.test", vec![vec!["::ffff:127.0.0.1"]]),
            ("meta.test", vec![vec!["169.254.169.254"]]),
        ]),
        asked: AtomicUsize::new(0),
    };
    // The port is open to all, so that only the addresses are at stake.
    let allowed = ["nip.test:*", "mixed.test:*", "mapped.test:*", "meta.test:*"];
    for url in [
        format!("http://127.0.0.1:{port}/"),
        format!("http://2130706433:{port}/"),
        format!("http://0x7f.1:{port}/"),
        format!("http://[::ffff:127.0.0.1]:{port}/"),
        format!("http://localhost:{port}/"),
        "http://meta.test/".to_owned(),
        "http://nip.test/".to_owned(),
        "http://mixed.test/".to_owned(),
        "http://mapped.test/".to_owned(),
    ] {
        let allowed: &[&str] = if url.contains("meta.test") { &allowed } else { &[] };
        let failed = ask(&allowing(allowed, names()), json!({"url": url})).await.unwrap_err();
        assert_eq!((failed.code, failed.kind), ("HTTP_DENIED", FailureKind::Permanent), "{url}");
    }
    assert_eq!(server.seen(), Vec::<String>::new());
}

// case: request.rebinding
#[tokio::test]
async fn a_name_that_changes_its_mind_gains_nothing() {
    let server = Server::start(vec![("/", answer("200 OK", "", "ok"))]).await;
    // Looked at once: this machine, which is allowed. Whoever asked again would get another.
    let names = Names {
        answers: BTreeMap::from([("turn.test", vec![vec!["127.0.0.1"], vec!["127.0.0.66"]])]),
        asked: AtomicUsize::new(0),
    };
    let settings = allowing(&["127.0.0.1:*", "turn.test:*"], names);
    let url = format!("http://turn.test:{}/", server.address.port());
    assert_eq!(ask(&settings, json!({"url": url})).await.unwrap().output["body"], json!("ok"));
    // Public at first, inside the second time: each request looks for itself.
    let names = Names {
        answers: BTreeMap::from([("turn.test", vec![vec!["127.0.0.1"], vec!["169.254.169.254"]])]),
        asked: AtomicUsize::new(0),
    };
    let settings = allowing(&["127.0.0.1:*", "turn.test:*"], names);
    ask(&settings, json!({"url": url})).await.unwrap();
    assert_eq!(ask(&settings, json!({"url": url})).await.unwrap_err().code, "HTTP_DENIED");
}

// case: request.redirect
#[tokio::test]
async fn every_hop_of_a_redirect_is_looked_at() {
    let to = |to: &str| answer("302 Found", &format!("location: {to}\r\n"), "");
    let server = Server::start(vec![
        ("/in", to("http://169.254.169.254/latest/meta-data")),
        ("/local", to("http://localhost/")),
        ("/file", to("file:///etc/passwd")),
        ("/user", to("http://a:b@127.0.0.1/")),
        ("/round", to("/round")),
        ("/next", to("/end?x=1")),
        ("/odd", to("http://[::1")),
        ("/end", answer("200 OK", "", "end")),
    ])
    .await;
    for path in ["/in", "/local", "/file", "/user"] {
        let failed = ask(&open(), json!({"url": server.url(path)})).await.unwrap_err();
        assert_eq!(failed.code, "HTTP_DENIED", "{path}");
    }
    for path in ["/round", "/odd"] {
        let failed = ask(&open(), json!({"url": server.url(path)})).await.unwrap_err();
        assert_eq!(failed.code, "HTTP_REDIRECTS", "{path}");
    }
    let done = ask(&open(), json!({"url": server.url("/next")})).await.unwrap();
    assert_eq!(done.output["body"], json!("end"));
    assert_eq!(done.output["url"], json!(server.url("/end?x=1")));
}

#[tokio::test]
async fn what_the_operator_allows_counts_for_the_workflow_and_not_for_a_server() {
    let other = Server::start(vec![("/", answer("200 OK", "", "other"))]).await;
    let to = |status: &str, to: &str| answer(status, &format!("location: {to}\r\n"), "");
    let named = format!("http://inside.test:{}/", other.address.port());
    let first = Server::start(vec![
        ("/away", to("302 Found", &other.url("/"))),
        ("/keep", to("307 Temporary Redirect", &other.url("/"))),
        ("/named", to("302 Found", &named)),
        ("/here", to("302 Found", "/there")),
        ("/there", answer("200 OK", "", "there")),
    ])
    .await;
    let names = || Names {
        answers: BTreeMap::from([("inside.test", vec![vec!["127.0.0.1"]])]),
        asked: AtomicUsize::new(0),
    };
    let settings = || allowing(&["127.0.0.1:*", "*.test:*"], names());
    // The workflow may ask it, under its address and under its name.
    for url in [other.url("/"), named.clone()] {
        assert!(ask(&settings(), json!({"url": url})).await.is_ok(), "{url}");
    }
    let headers = json!({"Authorization": "Bearer s"});
    let config = |path: &str| json!({"url": first.url(path), "method": "POST", "headers": headers, "body": {"a": 1}});
    for path in ["/away", "/keep", "/named"] {
        let failed = ask(&settings(), config(path)).await.unwrap_err();
        assert_eq!(failed.code, "HTTP_DENIED", "{path}: {failed}");
    }
    assert_eq!(other.seen().len(), 2);
    ask(&settings(), config("/here")).await.unwrap();
    let seen = first.seen().last().unwrap().to_lowercase();
    assert!(seen.starts_with("get /there ") && seen.contains("authorization: bearer s"), "{seen}");
}

// case: request.secret-plain
#[tokio::test]
async fn a_secret_crosses_the_public_network_with_https_only() {
    let asked = async |secret: bool, url: &str, allowed: &[&str], address: &'static str| {
        let names = Names {
            answers: BTreeMap::from([("api.test", vec![vec![address]])]),
            asked: AtomicUsize::new(0),
        };
        let secret =
            secret.then(|| UsedSecret { name: "GH".into(), hosts: vec!["api.test".into()] });
        let secrets = secret.into_iter().collect();
        let ctx = Ctx { secrets, ..ctx() };
        let settings = allowing(allowed, names);
        let config = json!({"url": url, "headers": {"authorization": "x"}});
        match perform(&settings, "http", config, &ctx).await {
            Err(failed) if failed.code == "SECRET_NEEDS_HTTPS" => "refused",
            Err(failed) if failed.code.starts_with("SECRET") => "another host",
            _ => "sent",
        }
    };
    let own = "127.0.0.1";
    for (secret, url, allowed, address, fate) in [
        (true, "http://api.test/", &[][..], "192.31.196.1", "refused"),
        (true, "http://api.test/", &["api.test:*"], "192.31.196.1", "refused"),
        (true, "http://api.test:8080/", &[], "2606:4700::1111", "refused"),
        (true, "http://api.test:1/", &["api.test:*"], own, "sent"),
        (true, "http://api.test:1/", &["127.0.0.1:*", "api.test:*"], own, "sent"),
        (true, "http://other.test/", &[], own, "another host"),
        (false, "http://api.test:1/", &["api.test:*"], own, "sent"),
        (true, "https://api.test:1/", &["api.test:*"], own, "sent"),
    ] {
        let told = asked(secret, url, allowed, address).await;
        assert_eq!(told, fate, "{secret} {url} {allowed:?} {address}");
    }
}

// case: request.secret-host
#[tokio::test]
async fn a_secret_goes_to_its_hosts_only() {
    let server = Server::start(vec![("/", answer("200 OK", "", "ok"))]).await;
    let asked = async |hosts: &[&str], host: &'static str| {
        let names = Names {
            answers: BTreeMap::from([(host, vec![vec!["127.0.0.1"]])]),
            asked: AtomicUsize::new(0),
        };
        let settings = allowing(&["127.0.0.1:*", "*.test:*"], names);
        let hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
        let ctx = Ctx { secrets: vec![UsedSecret { name: "GH".into(), hosts }], ..ctx() };
        let url = format!("http://{host}:{}/", server.address.port());
        let config = json!({"url": url, "headers": {"authorization": "x"}});
        perform(&settings, "http", config, &ctx).await
    };
    for (hosts, host) in [
        (&["api.git.test"][..], "api.git.test"),
        (&["API.git.test."], "api.git.test"),
        (&["*.git.test"], "api.git.test"),
        (&[], "evil.test"),
        (&["a.test", "b.test"], "b.test"),
    ] {
        assert!(asked(hosts, host).await.is_ok(), "{hosts:?} {host}");
    }
    let before = server.seen().len();
    for (hosts, host) in [
        (&["api.git.test"][..], "evil.test"),
        (&["api.git.test"], "api.git.test.evil.test"),
        (&["*.git.test"], "git.test"),
        (&["*.git.test"], "evilgit.test"),
        (&["git.test"], "api.git.test"),
    ] {
        let failed = asked(hosts, host).await.unwrap_err();
        assert_eq!(failed.code, "SECRET_HOST_DENIED", "{hosts:?} {host}");
        assert!(failed.message.contains("`GH`"), "{failed}");
    }
    assert_eq!(server.seen().len(), before);
}

#[tokio::test]
async fn what_is_no_whole_address_says_so_in_plain_words() {
    for (url, why) in [
        ("example.org/x", "a whole one begins with `https://`"),
        ("http://", "it names no host"),
        ("http://example.com:99999", "its port"),
        ("http://256.1.1.1", "the number of a machine"),
        ("http://exa mple.com", "characters that no host has"),
    ] {
        let settings =
            allowing(&[], Names { answers: BTreeMap::new(), asked: AtomicUsize::new(0) });
        let failed = ask(&settings, json!({"url": url})).await.unwrap_err();
        assert_eq!(failed.code, "HTTP_ADDRESS", "{url}");
        assert!(
            failed.to_string().contains(why) && !failed.to_string().contains("relative"),
            "{failed}"
        );
    }
}
