//! What every request must keep, and every answer carries.

use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri, header};
use axum::middleware::Next;
use axum::response::Response;
use cairn_api::error::{Error, Result};

use crate::answer::Failure;
use crate::routes::Shared;

/// How long a request's body may be, in bytes.
pub const BODY_MAX: u64 = 1 << 20;

const LOOPBACK_HOSTS: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

const HEADERS: [(HeaderName, &str); 7] = [
    (header::CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::CACHE_CONTROL, "no-store"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// Turns away what is not meant for this server, comes from another site, or is too long.
pub(crate) async fn check(
    State(shared): State<Shared>,
    request: Request,
    next: Next,
) -> std::result::Result<Response, Failure> {
    let host = host(request.uri(), request.headers(), &shared.public_hosts)?;
    origin(request.headers(), &host)?;
    body(request.headers())?;
    Ok(next.run(request).await)
}

/// Adds the headers that keep browsers from doing harm. A stricter policy of a route's own
/// stays.
pub(crate) async fn seal(mut response: Response) -> Response {
    for (name, value) in HEADERS {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

/// The host a request is meant for. A page that was tricked into calling a loopback address
/// still names its own host here.
fn host(uri: &Uri, headers: &HeaderMap, public_hosts: &[String]) -> Result<Authority> {
    let mut given = headers.get_all(header::HOST).iter();
    let (Some(value), None) = (given.next(), given.next()) else {
        return Err(Error::HostDenied);
    };
    let known = |authority: &Authority| {
        let name = authority.host();
        let public = public_hosts.iter().map(String::as_str);
        LOOPBACK_HOSTS.into_iter().chain(public).any(|host| host.eq_ignore_ascii_case(name))
    };
    let host = Authority::try_from(value.as_bytes()).map_err(|_| Error::HostDenied)?;
    if is_plain(&host) && known(&host) && uri.authority().is_none_or(known) {
        Ok(host)
    } else {
        Err(Error::HostDenied)
    }
}

/// Whether an authority is a name and perhaps a port, and nothing besides. The type takes more than
/// that: names and passwords, and ports that are no numbers.
fn is_plain(authority: &Authority) -> bool {
    let rest = authority.as_str().strip_prefix(authority.host());
    let is_port = |port: &str| {
        let digits = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
        digits && port.parse::<u16>().is_ok()
    };
    rest.is_some_and(|rest| rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port))
}

/// A browser names the page's origin; only our own pages may call, same port included.
fn origin(headers: &HeaderMap, host: &Authority) -> Result<()> {
    let mut given = headers.get_all(header::ORIGIN).iter();
    let own = |value: &HeaderValue| {
        let text = value.to_str().unwrap_or_default();
        let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
        rest.is_some_and(|rest| rest.eq_ignore_ascii_case(host.as_str()))
    };
    if given.all(own) { Ok(()) } else { Err(Error::OriginDenied) }
}

fn body(headers: &HeaderMap) -> Result<()> {
    let length = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    match length.and_then(|length| length.parse::<u64>().ok()) {
        Some(length) if length > BODY_MAX => Err(Error::RequestTooLarge { max: BODY_MAX }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(given: &[(HeaderName, &str)]) -> HeaderMap {
        let pairs = given.iter().cloned();
        pairs.map(|(name, value)| (name, HeaderValue::from_str(value).unwrap())).collect()
    }

    fn host_code(value: &str, uri: &str) -> &'static str {
        let uri = Uri::try_from(uri).unwrap();
        let public = ["cairn.example".to_owned()];
        match host(&uri, &headers(&[(header::HOST, value)]), &public) {
            Ok(_) => "ok",
            Err(error) => error.code(),
        }
    }

    // case: browser.host
    #[test]
    fn only_our_own_names_are_answered_for() {
        for value in [
            "localhost",
            "LOCALHOST:7373",
            "127.0.0.1:1",
            "[::1]:7373",
            "cairn.example",
            "cairn.example:443",
        ] {
            assert_eq!(host_code(value, "/"), "ok", "{value}");
        }
        for value in [
            "evil.com",
            "evil.com:7373",
            "localhost.evil.com",
            "127.0.0.1.nip.io",
            "localhost.",
            "",
            "127.0.0.2",
            "cairn.example.evil.com",
            "me@localhost",
            "0.0.0.0",
            "localhost:7373,evil.com",
            "localhost,evil.com",
            "localhost:evil.com",
            "localhost:",
            "localhost:99999",
            "localhost:+1",
            "localhost:1:2",
            "[::1]evil.com",
            "[::1]:x",
        ] {
            assert_eq!(host_code(value, "/"), "REQUEST_HOST_DENIED", "{value}");
        }
        assert_eq!(host_code("localhost", "http://localhost/"), "ok");
        assert_eq!(host_code("localhost", "http://evil.com/"), "REQUEST_HOST_DENIED");
    }

    // case: browser.origin
    #[test]
    fn an_origin_must_be_the_host_itself() {
        let host = Authority::from_static("localhost:7373");
        let check = |value: &str| origin(&headers(&[(header::ORIGIN, value)]), &host).is_ok();
        assert!(check("http://localhost:7373"));
        assert!(check("https://localhost:7373"));
        for value in [
            "null",
            "",
            "http://localhost",
            "http://localhost:9999",
            "https://evil.com",
            "localhost:7373",
            "http://localhost:7373.evil.com",
            "http://localhost:7373/",
            "file://localhost:7373",
        ] {
            assert!(!check(value), "{value}");
        }
        assert!(origin(&HeaderMap::new(), &host).is_ok());
    }
}
