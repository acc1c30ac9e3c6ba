//! A server on a free port, and a client that sends exactly what it is told.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use cairn_core::digest::Digest;
use cairn_core::event::guided::SessionCreated;
use cairn_core::event::{NewEvent, Scope};
use cairn_core::id::{EventId, SessionId};
use cairn_server::{Config, DEFAULT_ADDRESS, Front};
use cairn_store::{AppendPlan, Store};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub(crate) const TOKEN: &str = "cairn_adm_test";

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) store: Store,
    stop: Option<oneshot::Sender<()>>,
    running: JoinHandle<cairn_api::error::Result<()>>,
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
}

impl Server {
    pub(crate) async fn start() -> Self {
        let config = Config {
            public_hosts: vec!["cairn.example".to_owned()],
            admin_token: Digest::of(TOKEN.as_bytes()),
            mcp: None,
        };
        let store = cairn_store::open(&cairn_store::Config::Memory).unwrap();
        let free = SocketAddr::new(DEFAULT_ADDRESS.ip(), 0);
        let listener = cairn_server::listen(free, Front::None).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let shutdown = async {
            let _ = stopped.await;
        };
        let running = tokio::spawn(cairn_server::serve(listener, config, store.clone(), shutdown));
        Self { address, store, stop: Some(stop), running }
    }

    /// Makes a session that was created `minutes` after some day in 2023.
    pub(crate) async fn session(&self, minutes: u64) -> SessionId {
        let at_ms = 1_700_000_000_000 + minutes * 60_000;
        let session = SessionId::mint(at_ms, u128::from(minutes));
        let created = NewEvent {
            id: EventId::mint(at_ms, 1),
            scope: Scope::Session,
            data: SessionCreated {}.into(),
        };
        let plan = AppendPlan { events: vec![created], ..AppendPlan::default() };
        self.store.log.append(session, plan).await.unwrap();
        session
    }

    pub(crate) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Gets a path with the admin token.
    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &[("Authorization", &format!("Bearer {TOKEN}"))]).await
    }

    /// Sends a request with these headers beside the usual `Host`.
    pub(crate) async fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
        let mut request = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        if !headers.iter().any(|(name, _)| *name == "Host") {
            request.push_str("Host: localhost\r\n");
        }
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        self.send(&format!("{request}\r\n")).await
    }

    /// Sends these very bytes.
    pub(crate) async fn send(&self, request: &str) -> Answer {
        let mut stream = self.connect().await;
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        // The server may close before it has read everything; what came first counts.
        let _ = stream.read_to_end(&mut answer).await;
        Answer::read(&String::from_utf8(answer).unwrap())
    }

    /// Tells the server to stop, and waits until it has.
    pub(crate) async fn stop(mut self) {
        self.stop.take().unwrap().send(()).unwrap();
        self.running.await.unwrap().unwrap();
    }
}

impl Answer {
    pub(crate) fn read(text: &str) -> Self {
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_default();
        let mut lines = head.lines();
        let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok());
        let headers = lines.filter_map(|line| line.split_once(": "));
        Self {
            status: status.unwrap_or_default(),
            headers: headers.map(|(k, v)| (k.to_ascii_lowercase(), v.to_owned())).collect(),
            body: body.to_owned(),
        }
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    pub(crate) fn code(&self) -> String {
        assert_eq!(self.headers["content-type"], "application/problem+json");
        self.json()["code"].as_str().unwrap().to_owned()
    }
}
