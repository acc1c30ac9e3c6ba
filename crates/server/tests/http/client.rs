//! A server on a free port, and a client that sends exactly what it is told.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cairn_core::digest::Digest;
use cairn_core::event::guided::SessionCreated;
use cairn_core::event::{NewEvent, Scope};
use cairn_core::id::{EventId, SessionId};
use cairn_engine::catalog::{Catalog, Directory};
use cairn_engine::flow::{Automations, Left, NoEvaluator, NoSettings, Options, Parts};
use cairn_engine::host::SystemHost;
use cairn_engine::record::Record;
use cairn_engine::record::changes::Changes;
use cairn_engine::secrets::{self, KeySource, Secret, Vault};
use cairn_lang::ids::SourceKind;
use cairn_server::tokens::{Tokens, Wanted};
use cairn_server::{Automation, Config, DEFAULT_ADDRESS, Front, Stopping, Telemetry};
use cairn_steps::guard::{Guard, Policy};
use cairn_store::{AppendPlan, Store};
use cairn_triggers::channel::Channels;
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub(crate) const TOKEN: &str = "cairn_adm_test";
/// How long steps may take to end.
const DRAIN: Duration = Duration::from_secs(3);

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) store: Store,
    pub(crate) urge: watch::Sender<Stopping>,
    pub(crate) running: JoinHandle<cairn_api::error::Result<Left>>,
    _folder: Option<TempDir>,
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
}

/// A data directory and a directory of workflows. Servers come and go over it.
pub(crate) struct World {
    folder: TempDir,
}

impl World {
    pub(crate) fn new(workflows: &[(&str, &str)]) -> Self {
        let world = Self { folder: tempfile::tempdir().unwrap() };
        for (name, text) in workflows {
            world.write(name, text);
        }
        world
    }

    pub(crate) fn home(&self) -> std::path::PathBuf {
        self.folder.path().join("home")
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let folder = self.folder.path().join("workflows");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(format!("{name}.yaml")), text).unwrap();
    }

    /// The store, as another process has it.
    pub(crate) fn store(&self) -> Store {
        cairn_store::open(&cairn_store::Config::files(self.home())).unwrap()
    }

    pub(crate) fn tokens(&self) -> Tokens {
        Tokens::new(self.store().documents)
    }

    /// The record of who changed what, as another process has it.
    pub(crate) fn record(&self) -> Record {
        Record::new(&self.store(), SystemHost::shared())
    }

    /// Keeps a token.
    pub(crate) async fn token(&self, text: &str, wanted: Wanted) {
        let changes = Changes::new(&self.record(), &self.store(), "me".into());
        self.tokens().create(&changes, text, wanted, 1).await.unwrap();
    }

    /// Lets a token be good no more.
    pub(crate) async fn revoke(&self, given: &str) {
        let changes = Changes::new(&self.record(), &self.store(), "me".into());
        self.tokens().revoke(&changes, given, 2).await.unwrap();
    }

    pub(crate) fn vault(&self) -> Vault {
        vault(&self.store(), &self.home())
    }

    pub(crate) async fn set_secret(&self, name: &str, value: &str) {
        let (scope, value) = (secrets::Scope::Global, Secret::new(value));
        self.vault().set(&scope, name, &value, 1).await.unwrap();
    }

    /// An engine over the same data, as another process has one.
    pub(crate) fn another_engine(&self) -> Automations {
        automation(self.folder.path(), self.vault(), &self.store()).engine
    }

    /// A server over what the world holds.
    pub(crate) async fn serve(&self) -> Server {
        self.serve_traced(None).await
    }

    /// A server that sees the data in its own way.
    pub(crate) async fn serve_on(&self, store: Store) -> Server {
        Server::over(self.folder.path(), self.vault(), store, None, None).await
    }

    /// A server that sends its traces somewhere.
    pub(crate) async fn serve_traced(&self, telemetry: Option<Telemetry>) -> Server {
        Server::over(self.folder.path(), self.vault(), self.store(), None, telemetry).await
    }
}

fn automation(folder: &Path, vault: Vault, store: &Store) -> Automation {
    let triggers = cairn_triggers::catalog::all(Channels::default());
    let root = folder.join("workflows");
    let directory = Directory { kind: SourceKind::Project, root };
    let types = cairn_steps::catalog::types().with_triggers(triggers.kinds());
    let catalog = Arc::new(Catalog::new(vec![directory]).knowing(types));
    let mut steps = cairn_steps::catalog::Settings::new(PathBuf::new(), folder);
    steps.guard = Guard::new(Policy::new(vec!["127.0.0.1:*".parse().unwrap()]));
    let parts = Parts {
        host: SystemHost::shared(),
        store: store.clone(),
        catalog: Arc::clone(&catalog),
        types: cairn_steps::catalog::types(),
        performers: cairn_steps::catalog::all(&steps),
        environment: Arc::new(NoSettings),
        evaluator: Arc::new(NoEvaluator),
        rights: Arc::new(Tokens::new(Arc::clone(&store.documents))),
    };
    let engine = Automations::new(parts, Options::default());
    Automation { engine, catalog, triggers, vault }
}

fn vault(store: &Store, home: &Path) -> Vault {
    Vault::new(store, home, KeySource::Given(Secret::new("0123456789abcdef".repeat(4))))
}

impl Server {
    /// A server in whose world there is nothing.
    pub(crate) async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = cairn_store::open(&cairn_store::Config::Memory).unwrap();
        let vault = vault(&store, folder.path());
        let path = folder.path().to_owned();
        Self::over(&path, vault, store, Some(folder), None).await
    }

    async fn over(
        path: &Path,
        vault: Vault,
        store: Store,
        folder: Option<TempDir>,
        telemetry: Option<Telemetry>,
    ) -> Self {
        let config = Config {
            public_hosts: vec!["cairn.example".to_owned()],
            admin_token: Digest::of(TOKEN.as_bytes()),
            new_token: || Ok("cairn_tok_made_up_by_a_test".to_owned()),
            mcp: None,
            automation: automation(path, vault, &store),
            drain: DRAIN,
            telemetry,
        };
        let free = SocketAddr::new(DEFAULT_ADDRESS.ip(), 0);
        let listener = cairn_server::listen(free, Front::None).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (urge, stopping) = watch::channel(Stopping::No);
        let running = tokio::spawn(cairn_server::serve(listener, config, store.clone(), stopping));
        Self { address, store, urge, running, _folder: folder }
    }

    /// Asks as the administrator, with a JSON body when there is one.
    pub(crate) async fn call(&self, method: &str, path: &str, body: Option<&Value>) -> Answer {
        self.call_with(method, path, body, &[]).await
    }

    pub(crate) async fn call_with(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
        more: &[(&str, &str)],
    ) -> Answer {
        let body = body.map(ToString::to_string).unwrap_or_default();
        let token = format!("Bearer {TOKEN}");
        let mut headers = vec![("Content-Type", "application/json")];
        if !more.iter().any(|(name, _)| *name == "Authorization") {
            headers.push(("Authorization", &token));
        }
        headers.extend(more);
        self.send_body(method, path, &headers, &body).await
    }

    /// Sends a request with these headers and this body.
    pub(crate) async fn send_body(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let mut request = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {}\r\n",
            body.len()
        );
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        self.send(&format!("{request}\r\n{body}")).await
    }

    /// Begins a run and gives its id.
    pub(crate) async fn begin(&self, workflow: &str, payload: Value) -> String {
        let body = serde_json::json!({"workflow": workflow, "payload": payload});
        let answer = self.call("POST", "/api/v1/runs", Some(&body)).await;
        assert_eq!(answer.status, 201, "{}", answer.body);
        answer.json()["runId"].as_str().unwrap().to_owned()
    }

    /// Looks at a path until something holds of it.
    pub(crate) async fn until(&self, path: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let looked = async {
            loop {
                let seen = self.get(path).await;
                if seen.status == 200 && holds(&seen.json()) {
                    return seen.json();
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        match tokio::time::timeout(Duration::from_secs(30), looked).await {
            Ok(seen) => seen,
            Err(_) => panic!("{path} stays as it is: {}", self.get(path).await.body),
        }
    }

    /// Waits until a run stands somewhere.
    pub(crate) async fn until_status(&self, run: &str, status: &str) -> Value {
        self.until(&format!("/api/v1/runs/{run}"), |run| run["status"] == status).await
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
    pub(crate) async fn stop(self) -> Left {
        self.urge.send(Stopping::Gently).unwrap();
        self.running.await.unwrap().unwrap()
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
