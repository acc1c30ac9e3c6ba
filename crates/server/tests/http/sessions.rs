use insta::assert_snapshot;
use serde_json::Value;

use crate::client::Server;

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap()
}

fn ids(page: &Value) -> Vec<&str> {
    let items = page["items"].as_array().unwrap();
    items.iter().map(|item| item["sessionId"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn an_empty_list_is_a_page_without_items() {
    let server = Server::start().await;
    let answer = server.get("/api/v1/sessions").await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.headers["content-type"], "application/json");
    assert_eq!(answer.body, r#"{"items":[],"nextCursor":null}"#);
}

#[tokio::test]
async fn a_session_shows_what_there_is_to_see_at_a_glance() {
    let server = Server::start().await;
    let session = server.session(0).await;
    let answer = server.get(&format!("/api/v1/sessions/{session}")).await;
    assert_eq!(answer.status, 200);
    let mut shown = answer.json();
    // How many bytes events take is up to the store.
    shown["bytes"] = Value::from(0);
    assert_snapshot!(pretty(&shown), @r#"
    {
      "blobs": 0,
      "bytes": 0,
      "createdAt": "2023-11-14T22:13:20.000Z",
      "damage": null,
      "events": 1,
      "health": "healthy",
      "kept": false,
      "latestRun": null,
      "notices": [],
      "observations": [],
      "runCount": 0,
      "runs": [],
      "sessionId": "sess_01hf7yat000000000000000000",
      "timeline": [
        {
          "at": "2023-11-14T22:13:20.000Z",
          "index": 0,
          "kind": "session_created",
          "nodeId": null,
          "runId": null,
          "text": "session created"
        }
      ],
      "updatedAt": "2023-11-14T22:13:20.000Z"
    }
    "#);
}

#[tokio::test]
async fn the_list_goes_on_where_the_cursor_says() {
    let server = Server::start().await;
    let mut wanted = Vec::new();
    for minutes in 0..5 {
        wanted.insert(0, server.session(minutes).await.to_string());
    }
    let first = server.get("/api/v1/sessions?limit=3").await.json();
    assert_eq!(ids(&first), wanted[..3]);
    let cursor = first["nextCursor"].as_str().unwrap();
    let second = server.get(&format!("/api/v1/sessions?limit=3&cursor={cursor}")).await.json();
    assert_eq!(ids(&second), wanted[3..]);
    assert_eq!(second["nextCursor"], Value::Null);
}

#[tokio::test]
async fn the_list_can_be_asked_for_damaged_sessions_only() {
    let server = Server::start().await;
    server.session(0).await;
    let healthy = server.get("/api/v1/sessions?health=healthy").await.json();
    assert_eq!(ids(&healthy).len(), 1);
    let damaged = server.get("/api/v1/sessions?health=corrupt_tail").await.json();
    assert_eq!(ids(&damaged), [""; 0]);
}

#[tokio::test]
async fn parameters_that_make_no_sense_are_named() {
    let server = Server::start().await;
    let mut lines = Vec::new();
    for query in [
        "limit=0",
        "limit=-1",
        "limit=201",
        "limit=1000000000",
        "limit=x",
        "limit=1&limit=2",
        "cursor=x",
        "health=fine",
        "color=red",
        "token=x",
    ] {
        let answer = server.get(&format!("/api/v1/sessions?{query}")).await;
        assert_eq!((answer.status, answer.code().as_str()), (400, "REQUEST_INVALID"), "{query}");
        lines.push(format!("{query}: {}", answer.json()["message"].as_str().unwrap()));
    }
    assert_snapshot!(lines.join("\n"), @r"
    limit=0: `limit` is a whole number from 1 to 200
    limit=-1: `limit` is a whole number from 1 to 200
    limit=201: `limit` is a whole number from 1 to 200
    limit=1000000000: `limit` is a whole number from 1 to 200
    limit=x: `limit` is a whole number from 1 to 200
    limit=1&limit=2: the query cannot be read: duplicate field `limit`
    cursor=x: `cursor` is not one that this list gave out
    health=fine: `health` is one of healthy, corrupt_tail, corrupt_head, unknown_version, unreadable
    color=red: the query cannot be read: color: unknown field `color`, expected one of `cursor`, `health`, `limit`
    token=x: the query cannot be read: token: unknown field `token`, expected one of `cursor`, `health`, `limit`
    ");
    assert_eq!(server.get("/api/v1/sessions?limit=200").await.status, 200);
}

// case: auth.exact-id
#[tokio::test]
async fn only_the_exact_id_finds_a_session() {
    let server = Server::start().await;
    let session = server.session(0).await.to_string();
    let upper = session.to_uppercase();
    let prefix = &session[..20];
    for id in [
        "sess_01hf7yat000000000000000007",
        prefix,
        &upper,
        "..%2F..%2Fetc%2Fpasswd",
        "%00",
        "x",
        &format!("{session}%00"),
        &format!("{session}%20"),
        "%FF",
    ] {
        let answer = server.get(&format!("/api/v1/sessions/{id}")).await;
        assert_eq!((answer.status, answer.code().as_str()), (404, "SESSION_NOT_FOUND"), "{id}");
    }
}
