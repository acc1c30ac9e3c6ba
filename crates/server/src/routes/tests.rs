use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU32, Ordering};

use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use cairn_api::token::{Scope, TokenKind};
use cairn_engine::catalog::Catalog;
use cairn_engine::flow::{Automations, NoEvaluator, NoSettings, Options, Parts};
use cairn_engine::host::SystemHost;
use cairn_engine::record::Wanted as Lines;
use cairn_engine::record::changes::Changes;
use cairn_engine::secrets::{KeySource, Secret, Vault};
use tempfile::TempDir;
use tower::ServiceExt as _;

use super::*;
use crate::access::Action;
use crate::tokens::Wanted;

const TOKEN: &str = "cairn_adm_test";
const RUN: &str = "run_01hf7yat000000000000000007";

struct World {
    app: Shared,
    /// How many requests there were.
    asked: AtomicU32,
    _home: TempDir,
}

impl World {
    async fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let store = cairn_store::open(&cairn_store::Config::Memory).unwrap();
        let catalog = Arc::new(Catalog::new(Vec::new()));
        let parts = Parts {
            host: SystemHost::shared(),
            store: store.clone(),
            catalog: Arc::clone(&catalog),
            types: cairn_steps::catalog::types(),
            performers: cairn_steps::catalog::all(&cairn_steps::catalog::Settings::new(
                std::path::PathBuf::new(),
                home.path(),
            )),
            environment: Arc::new(NoSettings),
            evaluator: Arc::new(NoEvaluator),
            rights: Arc::new(cairn_engine::rights::NoTokens),
        };
        let automation = Automation {
            engine: Automations::new(parts, Options::default()),
            catalog,
            triggers: cairn_triggers::catalog::all(cairn_triggers::channel::Channels::default()),
            vault: Vault::new(
                &store,
                home.path(),
                KeySource::Given(Secret::new("0123456789abcdef".repeat(4))),
            ),
        };
        let config = crate::Config {
            admin_token: Digest::of(TOKEN.as_bytes()),
            new_token: || Ok("cairn_tok_made_up_by_a_test".to_owned()),
            public_hosts: Vec::new(),
            mcp: Some(axum::routing::post(|| async { "tools" })),
            automation,
            drain: crate::DEFAULT_DRAIN,
            telemetry: None,
        };
        let (_, phase) = Phases::new();
        let app = Arc::new(App::new(config, store, phase).await);
        app.watched.look().unwrap();
        Self { app, asked: AtomicU32::new(1), _home: home }
    }

    fn table(&self) -> Vec<Route> {
        table(self.app.mcp.as_ref())
    }

    async fn token(&self, name: &str, scope: Scope, expires_ms: Option<u64>) -> String {
        let (text, scopes) = (format!("cairn_tok_{name}"), vec![scope]);
        let wanted = Wanted {
            kind: Default::default(),
            name: name.to_owned(),
            scopes,
            workflows: Vec::new(),
            expires_ms,
        };
        self.app.tokens.create(&self.changes(), &text, wanted, 1).await.unwrap();
        text
    }

    fn changes(&self) -> Changes {
        Changes::new(&self.app.record, &self.app.store, "me".into())
    }

    /// Asks from an address of its own, so that nobody is told to slow down.
    async fn status(&self, method: &str, path: &str, authorization: Option<&str>) -> StatusCode {
        let from = Ipv4Addr::from_bits(self.asked.fetch_add(1, Ordering::Relaxed));
        self.status_from(from, method, path, authorization).await
    }

    async fn status_from(
        &self,
        from: Ipv4Addr,
        method: &str,
        path: &str,
        authorization: Option<&str>,
    ) -> StatusCode {
        let mut request = Request::builder()
            .method(method.to_ascii_uppercase().as_str())
            .uri(path)
            .header(header::HOST, "localhost");
        if let Some(value) = authorization {
            request = request.header(header::AUTHORIZATION, value);
        }
        let peer = Peer(SocketAddr::from((from, 1)));
        let request = request.extension(peer).body(Body::empty()).unwrap();
        router(Arc::clone(&self.app)).oneshot(request).await.unwrap().status()
    }
}

fn filled(path: &str) -> String {
    let task = "task_01hf7yat000000000000000007";
    path.replace("{id}", RUN)
        .replace("{task}", task)
        .replace("{name}", "LIMIT")
        .replace("{*path}", "nobody")
}

#[tokio::test]
async fn only_probes_and_signed_requests_are_public() {
    let public: Vec<_> = World::new()
        .await
        .table()
        .into_iter()
        .filter(|route| route.access == Access::Public)
        .map(|route| route.path)
        .collect();
    assert_eq!(public, ["/healthz", "/readyz", "/hooks/{*path}"]);
}

// case: auth.every-route
#[tokio::test]
async fn every_other_route_wants_the_token() {
    let world = World::new().await;
    for route in world.table() {
        let path = filled(route.path);
        let with_token = world.status(route.method, &path, Some(&format!("Bearer {TOKEN}"))).await;
        assert_ne!(with_token, StatusCode::UNAUTHORIZED, "{path}");
        assert_ne!(with_token, StatusCode::METHOD_NOT_ALLOWED, "{} {path}", route.method);
        let in_url = format!("{path}?token={TOKEN}&access_token={TOKEN}");
        for (path, given) in [
            (&path, None),
            (&path, Some("Bearer garbage")),
            (&path, Some("Basic Y2Fpcm46Y2Fpcm4=")),
            (&in_url, None),
        ] {
            let wanted = match route.access {
                Access::Public if path.starts_with("/hooks") => StatusCode::NOT_FOUND,
                // Nobody has looked at the files of workflows yet.
                Access::Public if path.starts_with("/readyz") => StatusCode::SERVICE_UNAVAILABLE,
                Access::Public => StatusCode::OK,
                Access::Needs(_) => StatusCode::UNAUTHORIZED,
            };
            assert_eq!(world.status(route.method, path, given).await, wanted, "{path} {given:?}");
        }
    }
}

#[tokio::test]
async fn a_token_opens_what_its_scope_says_and_nothing_else() {
    let world = World::new().await;
    let expired = world.token("expired", Scope::Admin, Some(2)).await;
    let revoked = world.token("revoked", Scope::Admin, None).await;
    world.app.tokens.revoke(&world.changes(), "revoked", 2).await.unwrap();
    let mut tokens = Vec::new();
    for scope in Scope::ALL {
        tokens.push((scope, world.token(scope.name(), scope, None).await));
    }
    for route in world.table() {
        let Access::Needs(action) = route.access else { continue };
        let path = filled(route.path);
        for token in [&expired, &revoked] {
            let status = world.status(route.method, &path, Some(&format!("Bearer {token}"))).await;
            assert_eq!(status, StatusCode::UNAUTHORIZED, "{path} {token}");
        }
        for (scope, token) in &tokens {
            let status = world.status(route.method, &path, Some(&format!("Bearer {token}"))).await;
            let allowed = action.is_allowed_by(*scope);
            let told = format!("{} {path} with {scope}: {status}", route.method);
            assert_ne!(status, StatusCode::UNAUTHORIZED, "{told}");
            assert_eq!(status != StatusCode::FORBIDDEN, allowed, "{told}");
        }
    }
}

/// Whatever is written into the file of tokens, one of an agent opens nothing that is for people.
// case: approval.agent
#[tokio::test]
async fn a_token_of_an_agent_neither_approves_nor_trusts_nor_administers() {
    let world = World::new().await;
    let (kind, text) = (TokenKind::Agent, "agent text");
    for scope in Scope::ALL {
        let wanted = Wanted::new(("a".to_owned(), kind), vec![scope], Vec::new(), None);
        let is_work = [Scope::Read, Scope::Run, Scope::Edit].contains(&scope);
        assert_eq!(wanted.is_ok(), is_work, "{scope}");
    }
    let (name, scopes) = ("agent".to_owned(), Scope::ALL.to_vec());
    let wanted = Wanted { kind, name, scopes, workflows: Vec::new(), expires_ms: None };
    let made = world.app.tokens.create(&world.changes(), text, wanted, 1).await.unwrap();
    assert_eq!(made.scopes, [Scope::Read, Scope::Run, Scope::Edit]);
    for route in world.table() {
        let Access::Needs(action) = route.access else { continue };
        let path = filled(route.path);
        let status = world.status(route.method, &path, Some(&format!("Bearer {text}"))).await;
        let allowed = made.scopes.iter().any(|scope| action.is_allowed_by(*scope));
        assert_eq!(status != StatusCode::FORBIDDEN, allowed, "{} {path}", route.method);
        let for_people = [Action::AnswerTasks, Action::TrustSessions, Action::WriteTokens];
        assert!(!(allowed && for_people.contains(&action)), "{path}");
    }
}

// case: audit.every-change
#[tokio::test]
async fn every_route_is_known_to_read_or_to_change() {
    use cairn_api::audit::{Call, HTTP};
    let world = World::new().await;
    let name = |route: &Route| format!("{} {}", route.method, route.path);
    let all: Vec<String> = world.table().iter().map(name).collect();
    for route in all.iter().filter(|route| !route.starts_with("get ")) {
        assert!(Call::of(HTTP, route).is_some(), "`{route}` is in no table");
    }
    for (known, _) in HTTP {
        assert!(all.iter().any(|route| route == known), "there is no `{known}`");
    }
}

#[tokio::test]
async fn whoever_is_turned_away_is_on_record_and_cannot_fill_the_disk() {
    let world = World::new().await;
    let reader = world.token("reader", Scope::Read, None).await;
    for _ in 0..100 {
        for route in world.table().iter().filter(|route| route.method != "get") {
            let path = filled(route.path);
            for sent in [Some(format!("Bearer {reader}")), Some("Bearer garbage".to_owned()), None]
            {
                let here = Ipv4Addr::LOCALHOST;
                world.status_from(here, route.method, &path, sent.as_deref()).await;
            }
        }
    }
    world.app.record.settle(true).await;
    let lines = world.app.record.read(0, 1_000, &Lines::default()).await.unwrap().lines;
    let told: Vec<_> = lines
        .iter()
        .map(|line| (line.by.as_str(), line.action.as_str(), line.allowed, line.times))
        .collect();
    let refused = lines.iter().filter(|line| !line.allowed);
    assert!(told.len() < 40, "{told:?}");
    assert!(refused.clone().all(|line| line.outcome.is_some()), "{told:?}");
    let logins = refused.clone().filter(|line| line.action == "auth:login");
    assert!(logins.clone().map(|line| line.times.unwrap()).sum::<u64>() >= 1_500, "{told:?}");
    assert!(logins.clone().all(|line| line.object == "127.0.0.1"), "{told:?}");
    let by_reader = refused.filter(|line| line.by == "reader");
    assert!(by_reader.clone().count() >= 6, "{told:?}");
    assert!(by_reader.clone().all(|line| line.token_id.is_some()), "{told:?}");
    world.app.record.verify().await.unwrap();
}

#[test]
fn the_description_names_every_route() {
    let document = document();
    for route in table(None) {
        let path = route.path.replace("{*path}", "{path}");
        let summary = &document["paths"][&path][route.method]["summary"];
        assert_eq!(summary.as_str(), Some(route.what), "{} {path}", route.method);
    }
}
