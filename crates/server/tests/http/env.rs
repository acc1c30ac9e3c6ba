use cairn_api::token::Scope;
use cairn_engine::catalog::Identity;
use cairn_server::tokens::Wanted;
use serde_json::json;

use crate::client::{Answer, Server, World};

const CANARY: &str = "CANARY-51b0c77e";
const NEEDY: &str = "name: Needy
env:
  - { name: LIMIT, widget: number, required: true, desc: How many }
  - { name: MODE, widget: dropdown, options: [mail, pager], default: mail }
  - { name: PAGER, widget: url, visible_when: 'MODE:pager' }
  - { name: TOKEN, widget: secret, required: true }
graph: { nodes: [{ id: a, type: end, result: '{{ env.LIMIT }}' }] }
";
const OTHER: &str = "name: Other\nenv: [{ name: LIMIT, widget: number }]\ngraph: { nodes: [{ id: a, type: end, result: x }] }\n";
const ENV: &str = "/api/v1/workflows/needy/env";

async fn with(server: &Server, token: &str, method: &str, path: &str, value: &str) -> Answer {
    let authorization = format!("Bearer {token}");
    let body = (method == "PUT").then(|| json!({"value": value}));
    let headers = [("Authorization", authorization.as_str())];
    server.call_with(method, path, body.as_ref(), &headers).await
}

#[tokio::test]
async fn settings_are_listed_set_checked_and_taken_away() {
    let world = World::new(&[("needy", NEEDY)]);
    let server = world.serve().await;
    let env = server.get(ENV).await.json();
    assert_eq!(env["workflowId"], "project.needy");
    let limit = &env["items"][0];
    assert_eq!((&limit["name"], &limit["widget"]), (&json!("LIMIT"), &json!("number")));
    assert_eq!((&limit["missing"], &limit["description"]), (&json!(true), &json!("How many")));
    assert_eq!(env["items"][1]["options"], json!(["mail", "pager"]));
    assert_eq!(env["items"][2]["shown"], false);
    assert_eq!(env["items"][2]["visibleWhen"], json!({"MODE": "pager"}));
    let check = "/api/v1/workflows/needy/env-check";
    let checked = server.get(check).await.json();
    assert_eq!(
        (&checked["ready"], &checked["missing"]),
        (&json!(false), &json!(["LIMIT", "TOKEN"]))
    );

    let put = |name: &str, value: serde_json::Value| {
        let (path, body) = (format!("{ENV}/{name}"), json!({"value": value}));
        let server = &server;
        async move { server.call("PUT", &path, Some(&body)).await }
    };
    let set = put("LIMIT", json!(5)).await;
    assert_eq!((set.status, &set.json()["value"]), (200, &json!(5)));
    assert_eq!(set.json()["origin"], "own");
    for (name, value, status, code) in [
        ("LIMIT", json!("many"), 422, "SETTING_INVALID"),
        ("MODE", json!("smoke"), 422, "SETTING_INVALID"),
        ("TOKEN", json!("in the open"), 422, "SETTING_INVALID"),
        ("LIMITT", json!(5), 404, "SETTING_NOT_FOUND"),
    ] {
        let refused = put(name, value.clone()).await;
        assert_eq!((refused.status, refused.code().as_str()), (status, code), "{name}: {value}");
    }
    let bare = server.call("PUT", &format!("{ENV}/LIMIT"), Some(&json!({"vlaue": 5}))).await;
    assert_eq!((bare.status, bare.code().as_str()), (400, "REQUEST_INVALID"));
    assert_eq!(server.get(ENV).await.json()["items"][0]["value"], 5, "nothing of that was taken");

    let removed = server.call("DELETE", &format!("{ENV}/LIMIT"), None).await.json();
    assert_eq!(removed, json!({"name": "LIMIT", "removed": true}));
    let removed = server.call("DELETE", &format!("{ENV}/LIMIT"), None).await.json();
    assert_eq!(removed, json!({"name": "LIMIT", "removed": false}));
    assert_eq!(server.get("/api/v1/workflows/nobody/env").await.code(), "WORKFLOW_NOT_FOUND");
}

// case: secret.never-shown
#[tokio::test]
async fn a_secret_can_be_set_and_forgotten_and_is_never_shown() {
    let world = World::new(&[("needy", NEEDY)]);
    let server = world.serve().await;
    let path = "/api/v1/workflows/needy/secrets/TOKEN";
    let set = server.call("PUT", path, Some(&json!({"value": CANARY}))).await;
    assert_eq!((set.status, &set.json()["name"]), (200, &json!("TOKEN")));
    let env = server.get(ENV).await;
    let token = &env.json()["items"][3];
    assert_eq!((&token["isSet"], &token["origin"]), (&json!(true), &json!("vault")));
    assert_eq!(token["value"], json!(null));
    let plain = server
        .call("PUT", "/api/v1/workflows/needy/secrets/LIMIT", Some(&json!({"value": CANARY})))
        .await;
    assert_eq!(plain.status, 400, "{}", plain.body);
    for answer in [&set, &env, &plain, &server.get("/api/v1/audit").await] {
        assert!(!answer.body.contains(CANARY), "{}", answer.body);
    }
    let file = world.home().with_file_name("workflows").join("needy.yaml");
    let workflow = Identity::of_place(&file);
    let scope = cairn_engine::secrets::Scope::Workflow(workflow);
    let known = world.vault().reveal(&scope, "TOKEN").await;
    assert_eq!(known.unwrap().expose(), CANARY);
    let gone = server.call("DELETE", path, None).await.json();
    assert_eq!(gone, json!({"name": "TOKEN", "removed": true}));
    assert_eq!(server.get(ENV).await.json()["items"][3]["isSet"], false);
}

#[tokio::test]
async fn who_may_edit_may_not_write_secrets_and_nobody_reaches_another_workflow() {
    let world = World::new(&[("needy", NEEDY), ("other", OTHER)]);
    let server = world.serve().await;
    for (name, scope) in
        [("edit", Scope::Edit), ("seal", Scope::SecretsWrite), ("read", Scope::Read)]
    {
        let workflows = vec!["project.needy".into()];
        let scopes = vec![scope];
        let wanted = Wanted {
            kind: Default::default(),
            name: name.to_owned(),
            scopes,
            workflows,
            expires_ms: None,
        };
        world.token(&format!("cairn_tok_{name}"), wanted).await;
    }
    let secret = "/api/v1/workflows/needy/secrets/TOKEN";
    let mode = "/api/v1/workflows/needy/env/MODE";
    let others = "/api/v1/workflows/other/env/LIMIT";
    for (token, method, path, status) in [
        ("cairn_tok_edit", "PUT", mode, 200),
        ("cairn_tok_edit", "PUT", secret, 403),
        ("cairn_tok_edit", "DELETE", secret, 403),
        ("cairn_tok_edit", "DELETE", others, 404),
        ("cairn_tok_edit", "GET", ENV, 403),
        ("cairn_tok_seal", "PUT", secret, 200),
        ("cairn_tok_seal", "PUT", mode, 403),
        ("cairn_tok_read", "GET", ENV, 200),
        ("cairn_tok_read", "GET", "/api/v1/workflows/other/env", 404),
        ("cairn_tok_read", "PUT", mode, 403),
        ("cairn_tok_read", "PUT", secret, 403),
    ] {
        let answer = with(&server, token, method, path, "pager").await;
        assert_eq!(answer.status, status, "{token} {method} {path}: {}", answer.body);
    }
    let record = server.get("/api/v1/audit").await.json();
    let told: Vec<_> = record["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| (&entry["action"], &entry["object"], &entry["allowed"]))
        .collect();
    assert!(told.contains(&(&json!("settings:set"), &json!("MODE"), &json!(true))), "{told:?}");
    assert!(told.contains(&(&json!("secrets:set"), &json!("TOKEN"), &json!(true))), "{told:?}");
    assert!(told.contains(&(&json!("secrets:write"), &json!(secret), &json!(false))), "{told:?}");
}
