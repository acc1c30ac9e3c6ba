use insta::assert_snapshot;

use crate::client::{Server, TOKEN};

// case: health.silent
#[tokio::test]
async fn health_says_ok_and_nothing_else() {
    let server = Server::start().await;
    let answer = server.ask("GET", "/healthz", &[]).await;
    assert_eq!((answer.status, answer.body.as_str()), (200, r#"{"status":"ok"}"#));
    assert!(!answer.headers.contains_key("server"));
    let mut answer = server.ask("GET", "/readyz", &[]).await;
    // Until it knows its webhooks and runs that were left have been taken up.
    while answer.status == 503 {
        assert!(answer.body.contains("SERVER_NOT_READY"), "{}", answer.body);
        answer = server.ask("GET", "/readyz", &[]).await;
    }
    assert_eq!((answer.status, answer.body.as_str()), (200, r#"{"status":"ready"}"#));
}

// case: browser.headers
#[tokio::test]
async fn every_answer_carries_the_headers_that_protect_browsers() {
    let server = Server::start().await;
    for (path, host) in [("/healthz", "localhost"), ("/nothing", "localhost"), ("/", "evil.com")] {
        let answer = server.ask("GET", path, &[("Host", host)]).await;
        for (name, value) in [
            ("content-security-policy", "default-src 'none'; frame-ancestors 'none'"),
            ("x-content-type-options", "nosniff"),
            ("x-frame-options", "DENY"),
            ("referrer-policy", "no-referrer"),
            ("cache-control", "no-store"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
        ] {
            assert_eq!(answer.headers.get(name).map(String::as_str), Some(value), "{path} {name}");
        }
        assert!(!answer.headers.contains_key("access-control-allow-origin"));
    }
}

#[tokio::test]
async fn a_problem_names_its_page_and_says_what_to_do() {
    let server = Server::start().await;
    let answer = server.ask("GET", "/api/v1/sessions", &[]).await;
    assert_eq!(answer.status, 401);
    assert_eq!(answer.headers["www-authenticate"], "Bearer");
    assert_snapshot!(serde_json::to_string_pretty(&answer.json()).unwrap(), @r#"
    {
      "code": "AUTH_TOKEN_MISSING",
      "detail": "the request carries no bearer token",
      "message": "the request carries no bearer token",
      "retry": {
        "kind": "not_retryable"
      },
      "status": 401,
      "suggestion": "send the header `Authorization: Bearer <token>`; a token in the URL is not read",
      "title": "Auth token missing",
      "type": "/errors/AUTH_TOKEN_MISSING"
    }
    "#);
}

// case: token.header-only
#[tokio::test]
async fn tokens_count_in_the_header_only() {
    let server = Server::start().await;
    let path = "/api/v1/sessions";
    let wrong = server.ask("GET", path, &[("Authorization", "Bearer cairn_adm_tesT")]).await;
    assert_eq!((wrong.status, wrong.code().as_str()), (401, "AUTH_TOKEN_INVALID"));
    let in_url = server.ask("GET", &format!("{path}?token={TOKEN}"), &[]).await;
    assert_eq!((in_url.status, in_url.code().as_str()), (401, "AUTH_TOKEN_MISSING"));
    let twice = format!("Bearer {TOKEN}");
    let twice = [("Authorization", twice.as_str()), ("Authorization", twice.as_str())];
    assert_eq!(server.ask("GET", path, &twice).await.code(), "AUTH_TOKEN_INVALID");
}

// case: browser.host
#[tokio::test]
async fn other_hosts_are_misdirected() {
    let server = Server::start().await;
    for host in ["evil.com", "evil.com:7373", "127.0.0.1.nip.io", "localhost.evil.com", ""] {
        for path in ["/healthz", "/api/v1/sessions", "/"] {
            let answer = server.ask("GET", path, &[("Host", host)]).await;
            let found = (answer.status, answer.code());
            assert_eq!(found, (421, "REQUEST_HOST_DENIED".to_owned()), "{host} {path}");
        }
    }
    for host in ["localhost:7373", "127.0.0.1", "[::1]:80", "cairn.example"] {
        assert_eq!(server.ask("GET", "/healthz", &[("Host", host)]).await.status, 200, "{host}");
    }
    let none = server.send("GET /healthz HTTP/1.0\r\n\r\n").await;
    assert_eq!(none.status, 421);
    let two = [("Host", "localhost"), ("Host", "evil.com")];
    assert_eq!(server.ask("GET", "/healthz", &two).await.status, 421);
    assert_eq!(server.ask("GET", "http://evil.com/healthz", &[]).await.status, 421);
}

// case: browser.origin
// case: browser.cors
#[tokio::test]
async fn other_sites_pages_are_turned_away_even_with_a_token() {
    let server = Server::start().await;
    let bearer = format!("Bearer {TOKEN}");
    for origin in ["https://evil.com", "null", "http://localhost:9999"] {
        let headers = [("Origin", origin), ("Authorization", bearer.as_str())];
        let answer = server.ask("GET", "/api/v1/sessions", &headers).await;
        assert_eq!((answer.status, answer.code().as_str()), (403, "REQUEST_ORIGIN_DENIED"));
        let preflight = [("Origin", origin), ("Access-Control-Request-Method", "GET")];
        assert_eq!(server.ask("OPTIONS", "/api/v1/sessions", &preflight).await.status, 403);
    }
    let own = [("Origin", "http://localhost"), ("Authorization", bearer.as_str())];
    assert_eq!(server.ask("GET", "/api/v1/sessions", &own).await.status, 200);
}

#[tokio::test]
async fn unknown_paths_and_methods_are_problems_too() {
    let server = Server::start().await;
    for path in ["/", "/api", "/api/v1", "/api/v2/sessions", "/healthz/", "//healthz", "/../x"] {
        let answer = server.get(path).await;
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (404, "REQUEST_PATH_UNKNOWN"),
            "{path}"
        );
    }
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "BREW"] {
        let answer = server.ask(method, "/api/v1/sessions", &[]).await;
        assert_eq!((answer.status, answer.code().as_str()), (405, "REQUEST_METHOD_NOT_ALLOWED"));
        assert_eq!(answer.headers["allow"], "GET,HEAD");
    }
}
