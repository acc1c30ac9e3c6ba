use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use tower::ServiceExt as _;

use super::*;

const TOKEN: &str = "cairn_adm_test";

fn app() -> Shared {
    let store = cairn_store::open(&cairn_store::Config::Memory).unwrap();
    Arc::new(App {
        store,
        admin_token: Digest::of(TOKEN.as_bytes()),
        public_hosts: Vec::new(),
        mcp: Some(axum::routing::post(|| async { "tools" })),
    })
}

async fn status(path: &str, authorization: Option<&str>) -> StatusCode {
    let method = if path.starts_with("/mcp") { Method::POST } else { Method::GET };
    let mut request = Request::builder().method(method).uri(path).header(header::HOST, "localhost");
    if let Some(value) = authorization {
        request = request.header(header::AUTHORIZATION, value);
    }
    let request = request.body(Body::empty()).unwrap();
    router(app()).oneshot(request).await.unwrap().status()
}

#[test]
fn only_the_probes_are_public() {
    let public: Vec<_> = table(&app())
        .into_iter()
        .filter(|route| route.access == Access::Public)
        .map(|route| route.path)
        .collect();
    assert_eq!(public, ["/healthz", "/readyz"]);
}

#[tokio::test]
async fn every_other_route_wants_the_token() {
    let session = "sess_01hf7yat000000000000000007";
    for route in table(&app()) {
        let path = route.path.replace("{id}", session);
        let with_token = status(&path, Some(&format!("Bearer {TOKEN}"))).await;
        assert_ne!(with_token, StatusCode::UNAUTHORIZED, "{path}");
        let in_url = format!("{path}?token={TOKEN}&access_token={TOKEN}");
        for (path, given) in [
            (&path, None),
            (&path, Some("Bearer garbage")),
            (&path, Some("Basic Y2Fpcm46Y2Fpcm4=")),
            (&in_url, None),
        ] {
            let wanted = match route.access {
                Access::Public => StatusCode::OK,
                Access::Needs(_) => StatusCode::UNAUTHORIZED,
            };
            assert_eq!(status(path, given).await, wanted, "{path} {given:?}");
        }
    }
}
