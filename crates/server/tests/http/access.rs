use cairn_api::token::Scope;
use cairn_server::tokens::Wanted;
use serde_json::{Value, json};

use crate::client::World;

const HELLO: &str = "name: Hello\ngraph: { nodes: [{ id: a, type: end, result: hi }] }\n";

// case: auth.one-workflow
#[tokio::test]
async fn a_token_for_one_workflow_sees_and_starts_no_other() {
    let world = World::new(&[("mine", HELLO), ("yours", HELLO)]);
    let server = world.serve().await;
    let wanted = Wanted {
        kind: Default::default(),
        name: "ci".to_owned(),
        scopes: vec![Scope::Read, Scope::Run],
        workflows: vec!["project.mine".into()],
        expires_ms: None,
    };
    world.token("cairn_tok_ci", wanted).await;
    let own = [("Authorization", "Bearer cairn_tok_ci")];
    let mine = server.begin("mine", json!({})).await;
    let yours = server.begin("yours", json!({})).await;
    server.until_status(&mine, "succeeded").await;
    server.until_status(&yours, "succeeded").await;

    let listed = server.ask("GET", "/api/v1/runs", &own).await.json();
    let ids: Vec<_> = listed["items"].as_array().unwrap().iter().map(|r| &r["runId"]).collect();
    assert_eq!(json!(ids), json!([mine]));
    let workflows = server.ask("GET", "/api/v1/workflows", &own).await.json();
    assert_eq!(workflows["items"].as_array().unwrap().len(), 1);
    assert_eq!(server.ask("GET", &format!("/api/v1/runs/{mine}"), &own).await.status, 200);
    let start = json!({"workflow": "yours"});
    let hidden = server.call_with("POST", "/api/v1/runs", Some(&start), &own).await;
    let nobody = json!({"workflow": "nobody"});
    let nobody = server.call_with("POST", "/api/v1/runs", Some(&nobody), &own).await;
    assert_eq!((hidden.status, hidden.code().as_str()), (404, "WORKFLOW_NOT_FOUND"));
    assert_eq!(hidden.body.replace("yours", "nobody"), nobody.body);
    let none = "run_01hf7yat000000000000000007";
    // What it is not for is answered like what does not exist, to the letter.
    for (path, given, other) in [
        (format!("/api/v1/runs/{yours}"), yours.as_str(), none),
        (format!("/api/v1/runs/{yours}/events"), &yours, none),
        (format!("/api/v1/runs/{yours}/events/stream"), &yours, none),
        ("/api/v1/runs?workflow=project.yours".to_owned(), "yours", "nobody"),
        ("/api/v1/workflows/yours".to_owned(), "yours", "nobody"),
        ("/api/v1/workflows/yours/env".to_owned(), "yours", "nobody"),
        ("/api/v1/workflows/your".to_owned(), "your", "nobody"),
    ] {
        let hidden = server.ask("GET", &path, &own).await;
        let nobody = server.ask("GET", &path.replace(given, other), &own).await;
        assert_eq!(hidden.status, nobody.status, "{path}");
        assert_eq!(hidden.body.replace(given, other), nobody.body, "{path}");
        assert!(!path.contains('?') || hidden.json()["items"] == json!([]), "{path}");
    }
    for path in [
        "/api/v1/sessions".to_owned(),
        "/api/v1/events".to_owned(),
        "/metrics".to_owned(),
        "/api/v1/audit".to_owned(),
    ] {
        assert_eq!(server.ask("GET", &path, &own).await.status, 403, "{path}");
    }
    for what in ["cancel", "pause", "resume", "replay"] {
        let path = format!("/api/v1/runs/{yours}/{what}");
        let answer = server.call_with("POST", &path, None, &own).await;
        assert_eq!((answer.status, answer.code().as_str()), (404, "RUN_NOT_FOUND"), "{path}");
    }
    world.revoke("ci").await;
    assert_eq!(server.ask("GET", "/api/v1/runs", &own).await.code(), "AUTH_TOKEN_INVALID");
}

/// Every route, with every scope, about something of another workflow: it is answered as what
/// there is not.
// case: auth.one-workflow
#[tokio::test]
async fn whatever_a_token_is_not_for_is_not_there_on_any_route() {
    let world = World::new(&[("mine", HELLO), ("yours", HELLO)]);
    let server = world.serve().await;
    let run = server.begin("yours", json!({})).await;
    let ended = server.until_status(&run, "succeeded").await;
    let session = ended["sessionId"].as_str().unwrap();
    let none = ["run_01hf7yat000000000000000007", "sess_01hf7yat000000000000000007", "nobody"];
    let mut tokens = Vec::new();
    for scope in Scope::ALL {
        let (name, text) = (scope.name().replace(':', "-"), format!("cairn_tok_{scope}"));
        let workflows = vec!["project.mine".into()];
        let wanted = Wanted {
            kind: Default::default(),
            name,
            scopes: vec![scope],
            workflows,
            expires_ms: None,
        };
        world.token(&text, wanted).await;
        tokens.push((scope, format!("Bearer {text}")));
    }
    let described = server.get("/api/v1/openapi.json").await.json();
    let mut asked = 0;
    for (path, methods) in described["paths"].as_object().unwrap() {
        let (other, nobody) = match path.split('/').nth(3) {
            Some("runs") => (run.as_str(), none[0]),
            Some("sessions") => (session, none[1]),
            _ => ("yours", none[2]),
        };
        if !path.contains("{id}") {
            continue;
        }
        let rest = path.replace("{task}", "task_01hf7yat000000000000000007").replace("{name}", "X");
        for method in methods.as_object().unwrap().keys().map(|method| method.to_uppercase()) {
            for (scope, token) in &tokens {
                let own = [("Authorization", token.as_str())];
                let body = (method != "GET").then(|| json!({}));
                let mut told = Vec::new();
                for id in [other, nobody] {
                    let path = rest.replace("{id}", id);
                    let answer = server.call_with(&method, &path, body.as_ref(), &own).await;
                    told.push((answer.status, answer.body.replace(id, "ID")));
                }
                assert_eq!(told[0], told[1], "{method} {path} with {scope}");
                assert!(told[0].0 >= 400, "{method} {path} with {scope}: {told:?}");
                asked += 1;
            }
        }
    }
    assert!(asked >= 100, "{asked}");
}

// case: auth.back-off
#[tokio::test]
async fn whoever_sends_wrong_tokens_is_slowed_down_and_locks_nobody_out() {
    let world = World::new(&[]);
    let server = world.serve().await;
    let wrong = [("Authorization", "Bearer guess")];
    for _ in 0..10 {
        assert_eq!(server.ask("GET", "/api/v1/runs", &wrong).await.status, 401);
    }
    let slowed = server.ask("GET", "/api/v1/workflows", &wrong).await;
    assert_eq!((slowed.status, slowed.code().as_str()), (429, "AUTH_TOO_MANY_TRIES"));
    let after: u64 = slowed.headers["retry-after"].parse().unwrap();
    assert!((1..=60).contains(&after), "{after}");
    assert_eq!(server.get("/api/v1/runs").await.status, 200, "the right one is let in");
    let lines = server.get("/api/v1/audit").await;
    assert!(lines.body.contains("AUTH_TOKEN_INVALID"), "{}", lines.body);
}

#[tokio::test]
async fn an_admin_makes_and_revokes_tokens() {
    let world = World::new(&[("mine", HELLO), ("yours", HELLO)]);
    let server = world.serve().await;
    let wanted = json!({"name": "ci", "scopes": ["read"], "workflows": ["mine"]});
    let made = server.call("POST", "/api/v1/tokens", Some(&wanted)).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let made = made.json();
    assert_eq!(made["workflows"], json!(["project.mine"]), "{made}");
    assert!(made["expiresAt"].is_string(), "{made}");
    let own = format!("Bearer {}", made["token"].as_str().unwrap());
    let own = [("Authorization", own.as_str())];
    assert_eq!(server.ask("GET", "/api/v1/workflows/mine", &own).await.status, 200);
    let more = server.call_with("POST", "/api/v1/tokens", Some(&wanted), &own).await;
    assert_eq!((more.status, more.code().as_str()), (403, "AUTH_FORBIDDEN"));
    let less = server.call_with("DELETE", "/api/v1/tokens/ci", None, &own).await;
    assert_eq!((less.status, less.code().as_str()), (403, "AUTH_FORBIDDEN"));
    for (wrong, status) in [
        (wanted.clone(), 400),
        (json!({"name": "a b", "scopes": ["read"]}), 400),
        (json!({"name": "x", "scopes": []}), 400),
        (json!({"name": "x", "scopes": ["all"]}), 400),
        (json!({"name": "x", "scopes": ["read"], "workflows": ["nobody"]}), 404),
        (json!({"name": "x", "scopes": ["read"], "expiresInSec": 0}), 400),
        (json!({"name": "x", "scopes": ["read"], "expiresInSec": 3_153_600_001_u64}), 400),
        (json!({"name": "x", "scopes": ["read"], "expiresInSec": u64::MAX}), 400),
    ] {
        let refused = server.call("POST", "/api/v1/tokens", Some(&wrong)).await;
        assert_eq!(refused.status, status, "{wrong}: {}", refused.body);
    }
    let listed = server.get("/api/v1/tokens").await;
    assert!(!listed.body.contains(made["token"].as_str().unwrap()), "{}", listed.body);
    assert_eq!(listed.json()["items"].as_array().unwrap().len(), 1);
    let revoked = server.call("DELETE", "/api/v1/tokens/ci", None).await;
    assert_eq!((revoked.status, &revoked.json()["revoked"]), (200, &json!(true)));
    let after = server.ask("GET", "/api/v1/workflows/mine", &own).await;
    assert_eq!(after.code(), "AUTH_TOKEN_INVALID");
    assert_eq!(server.call("DELETE", "/api/v1/tokens/nobody", None).await.status, 404);
    assert!(server.get("/api/v1/audit").await.body.contains("tokens:write"));
}

// case: auth.role
#[tokio::test]
async fn a_role_is_needed_for_every_way_to_start_a_workflow_that_asks_for_it() {
    let guarded = "name: Guarded
triggers:
  - { id: by-hand, type: manual, require_role: admin }
  - { id: nightly, type: cron, cron: '0 3 * * *' }
graph: { nodes: [{ id: a, type: end, result: hi }] }
";
    let world = World::new(&[("guarded", guarded), ("open", HELLO)]);
    let server = world.serve().await;
    let wanted = Wanted {
        kind: Default::default(),
        name: "ci".to_owned(),
        scopes: vec![Scope::Read, Scope::Run],
        workflows: Vec::new(),
        expires_ms: None,
    };
    world.token("cairn_tok_ci", wanted).await;
    let own = [("Authorization", "Bearer cairn_tok_ci")];
    let run = server.begin("guarded", json!({})).await;
    server.until_status(&run, "succeeded").await;
    for (path, body) in [
        ("/api/v1/runs".to_owned(), Some(json!({"workflow": "guarded"}))),
        ("/api/v1/runs".to_owned(), Some(json!({"workflow": "guarded", "trigger": "nightly"}))),
        (format!("/api/v1/runs/{run}/replay"), None),
        (format!("/api/v1/runs/{run}/fork"), Some(json!({"step": "a"}))),
    ] {
        let refused = server.call_with("POST", &path, body.as_ref(), &own).await;
        assert_eq!((refused.status, refused.code().as_str()), (403, "AUTH_FORBIDDEN"), "{path}");
        let told = refused.json()["detail"].to_string();
        assert!(told.contains("`admin`"), "{told}");
    }
    let recorded = server.get("/api/v1/audit?limit=100").await.json();
    let by_ci = |entry: &Value| entry["by"] == "ci";
    let refused = |entry: &&Value| by_ci(entry) && entry["allowed"] == false;
    let refused = recorded["items"].as_array().unwrap().iter().filter(refused).count();
    assert_eq!(refused, 4, "what was refused is on record as refused: {recorded}");
    let start = json!({"workflow": "open"});
    assert_eq!(server.call_with("POST", "/api/v1/runs", Some(&start), &own).await.status, 201);
}

#[tokio::test]
async fn the_record_says_who_did_what() {
    let world = World::new(&[("mine", HELLO)]);
    let server = world.serve().await;
    let run = server.begin("mine", json!({})).await;
    let page = server.get("/api/v1/audit").await.json();
    let entry = &page["items"][0];
    assert_eq!((&entry["by"], &entry["action"]), (&json!("admin"), &json!("runs:start")));
    assert_eq!((&entry["runId"], &entry["allowed"]), (&json!(run), &json!(true)));
    assert_eq!(entry["workflowId"], "project.mine");
    assert_eq!(world.record().verify().await.unwrap(), 1);
}
