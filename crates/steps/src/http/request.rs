//! What is sent, and what of it goes along when the server sends elsewhere.

use cairn_core::hosts;
use cairn_engine::flow::{chain, trace};
use cairn_engine::performer::{Ctx, Failed, UsedSecret};
use reqwest::header::{
    ACCEPT, ACCEPT_ENCODING, ACCEPT_LANGUAGE, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue,
    LOCATION, USER_AGENT,
};
use reqwest::{Client, Response};
use serde_json::Value;
use url::Url;

use super::{Input, Method, denied};
use crate::guard::{self, Denied, Guard, Policy, Target};
use crate::shell::plain;

/// Headers that belong to the connection, which a workflow does not make.
const OURS: [&str; 10] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "transfer-encoding",
    "upgrade",
];

/// What forms are sent as.
const FORM: &str = "application/x-www-form-urlencoded";

/// A request to one address.
pub(super) struct Request {
    pub(super) target: Target,
    method: reqwest::Method,
    headers: HeaderMap,
    body: Option<Vec<u8>>,
    /// Whether there are secrets in it.
    pub(super) secret: bool,
    /// Whether the workflow wrote where it goes, and not a server: what the operator allows
    /// beside the public network counts for the workflow.
    pub(super) written: bool,
    /// The hosts that the workflow limits itself to.
    hosts: Option<Vec<String>>,
}

impl Request {
    pub(super) fn new(input: &Input, ctx: &Ctx, policy: &Policy) -> Result<Self, Failed> {
        straight(&input.url)?;
        let mut target = guard::check(&input.url, policy).map_err(|error| denied(&error))?;
        if !input.query.is_empty() {
            let pairs = input.query.iter().map(|(name, value)| (name, plain(value)));
            target.url.query_pairs_mut().extend_pairs(pairs);
        }
        within(ctx.hosts.as_deref(), &target)?;
        ctx.secrets.iter().try_for_each(|secret| may_go_to(secret, &target.host))?;
        let method = method(input.method);
        let mut headers = HeaderMap::new();
        for (name, value) in &input.headers {
            let (name, value) = header(name, &plain(value))?;
            headers.insert(name, value);
        }
        // What is packed could be a bomb; nothing here unpacks it.
        headers.entry(ACCEPT_ENCODING).or_insert(HeaderValue::from_static("identity"));
        headers.insert(HeaderName::from_static(chain::HEADER), HeaderValue::from(ctx.chain));
        if let Some(step) = &ctx.trace {
            let (name, value) = header(trace::HEADER, &step.parent().to_string())?;
            headers.entry(name).or_insert(value);
        }
        let safe = matches!(input.method, Method::Get | Method::Head);
        if !safe {
            let (name, value) = header("idempotency-key", &ctx.idempotency_key.hex())?;
            headers.entry(name).or_insert(value);
        }
        let body = body(input, &mut headers);
        let (secret, hosts) = (!ctx.secrets.is_empty(), ctx.hosts.clone());
        Ok(Self { target, method, headers, body, secret, written: true, hosts })
    }

    pub(super) fn build(&self, client: &Client) -> Result<reqwest::Request, Failed> {
        let mut builder = client.request(self.method.clone(), self.target.url.clone());
        builder = builder.headers(self.headers.clone());
        if let Some(body) = &self.body {
            builder = builder.body(body.clone());
        }
        builder.build().map_err(|_| Failed::new("HTTP_REQUEST", "the request cannot be made"))
    }

    /// The next request, when the answer sends elsewhere.
    pub(super) fn redirected(
        &self,
        answer: &Response,
        guard: &Guard,
    ) -> Result<Option<Self>, Failed> {
        let status = answer.status().as_u16();
        if !matches!(status, 301..=303 | 307 | 308) {
            return Ok(None);
        }
        let Some(to) = answer.headers().get(LOCATION) else { return Ok(None) };
        let to = to.to_str().ok().and_then(|to| self.target.url.join(to).ok());
        let to = to.ok_or_else(|| {
            Failed::new("HTTP_REDIRECTS", "the server sends to something that is no address")
        })?;
        self.sent_on(matches!(status, 307 | 308), to, guard).map(Some)
    }

    /// The request to the address that a server sends on to. What it keeps is its method and
    /// body.
    fn sent_on(&self, keeps: bool, to: Url, guard: &Guard) -> Result<Self, Failed> {
        let elsewhere = to.origin() != self.target.url.origin();
        // A server does not get further inside than the workflow asked to be.
        let written = self.written && !elsewhere;
        let target = if written {
            guard::check_url(to, &guard.policy)
        } else {
            guard::check_url(to, &guard.without_permissions().policy)
        };
        let target = target.map_err(|error| denied(&error))?;
        within(self.hosts.as_deref(), &target)?;
        if elsewhere && self.secret && keeps && self.body.is_some() {
            return Err(Failed::new(
                "SECRET_HOST_DENIED",
                format!("the server sends a request with secrets on to `{}`", target.host),
            ));
        }
        let only_head = self.method == reqwest::Method::HEAD;
        let (method, body) = match keeps {
            true => (self.method.clone(), self.body.clone()),
            false if only_head => (reqwest::Method::HEAD, None),
            false => (reqwest::Method::GET, None),
        };
        let mut headers = if elsewhere { self.left() } else { self.headers.clone() };
        if body.is_none() {
            headers.remove(CONTENT_TYPE);
        }
        if matches!(method, reqwest::Method::GET | reqwest::Method::HEAD) {
            headers.remove("idempotency-key");
        }
        // Neither headers nor a body with secrets came along.
        let secret = self.secret && !elsewhere;
        Ok(Self { target, method, headers, body, secret, written, hosts: self.hosts.clone() })
    }

    /// What another origin is told: nothing that only the first one may know. With a secret
    /// somewhere in the headers, no header is known to be without one.
    fn left(&self) -> HeaderMap {
        if self.secret {
            return HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static("identity"))]);
        }
        let headers = self.headers.iter().filter(|(name, _)| is_harmless(name));
        headers.map(|(name, value)| (name.clone(), value.clone())).collect()
    }
}

/// What is sent, with the header that says what it is unless the workflow says so.
fn body(input: &Input, headers: &mut HeaderMap) -> Option<Vec<u8>> {
    let is_form = |headers: &HeaderMap| {
        let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let kind = kind.and_then(|kind| kind.split(';').next()).unwrap_or_default();
        kind.trim().eq_ignore_ascii_case(FORM)
    };
    let fields = match (&input.form, &input.body) {
        (Some(form), _) => Some(form.iter().collect::<Vec<_>>()),
        (None, Some(Value::Object(members))) if is_form(headers) => {
            Some(members.iter().collect::<Vec<_>>())
        }
        _ => None,
    };
    let (kind, bytes) = match (fields, &input.body) {
        (Some(fields), _) => {
            let mut form = url::form_urlencoded::Serializer::new(String::new());
            form.extend_pairs(fields.into_iter().map(|(name, value)| (name, plain(value))));
            (FORM, form.finish())
        }
        (None, Some(text @ Value::String(_))) => ("text/plain; charset=utf-8", plain(text)),
        (None, Some(body)) => ("application/json", plain(body)),
        (None, None) => return None,
    };
    headers.entry(CONTENT_TYPE).or_insert(HeaderValue::from_static(kind));
    Some(bytes.into_bytes())
}

/// Whether a host is one of those that the workflow limits itself to.
fn within(hosts: Option<&[String]>, target: &Target) -> Result<(), Failed> {
    match hosts {
        Some(hosts) if !hosts::any_fits(hosts, &target.host) => {
            Err(denied(&Denied::OutsideWorkflow(target.host.clone())))
        }
        _ => Ok(()),
    }
}

/// Refuses an address that leads up or stays behind: what it names is not what stands there.
/// Reading an address takes such segments away, also when their dots are encoded.
fn straight(url: &str) -> Result<(), Failed> {
    let url: String = url.chars().filter(|c| !matches!(c, '\t' | '\n' | '\r')).collect();
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let odd = |segment: &str| {
        let plain = segment.to_ascii_lowercase().replace("%2e", ".");
        plain == "." || plain == ".."
    };
    if path.split(['/', '\\']).any(|segment| odd(segment.trim())) {
        let message = "the path of the address has a segment `.` or `..`, which leads elsewhere; \
                       look at the data in it, or write the path out";
        return Err(Failed::new("HTTP_PATH", message));
    }
    Ok(())
}

/// Whether a header says nothing that only the first host may know.
fn is_harmless(name: &HeaderName) -> bool {
    [ACCEPT, ACCEPT_ENCODING, ACCEPT_LANGUAGE, CONTENT_TYPE, USER_AGENT].contains(name)
}

/// Whether a secret may be sent to a host.
fn may_go_to(secret: &UsedSecret, host: &str) -> Result<(), Failed> {
    if secret.hosts.is_empty() || hosts::any_fits(&secret.hosts, host) {
        return Ok(());
    }
    Err(Failed::new(
        "SECRET_HOST_DENIED",
        format!(
            "the secret `{}` may not be sent to `{host}`; its allowed hosts say where",
            secret.name
        ),
    ))
}

fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), Failed> {
    let wrong = |what: &str| Failed::new("HTTP_HEADER", format!("the header `{name}` {what}"));
    let known = HeaderName::from_bytes(name.as_bytes()).map_err(|_| {
        Failed::new("HTTP_HEADER", format!("`{}` is no name of a header", name.escape_debug()))
    })?;
    if OURS.contains(&known.as_str()) {
        return Err(wrong("belongs to the connection, and cannot be set"));
    }
    let mut value = HeaderValue::from_str(value)
        .map_err(|_| wrong("has a line break or another character that no header can have"))?;
    value.set_sensitive(true);
    Ok((known, value))
}

const fn method(method: Method) -> reqwest::Method {
    match method {
        Method::Get => reqwest::Method::GET,
        Method::Head => reqwest::Method::HEAD,
        Method::Post => reqwest::Method::POST,
        Method::Put => reqwest::Method::PUT,
        Method::Patch => reqwest::Method::PATCH,
        Method::Delete => reqwest::Method::DELETE,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::settings::tests::ctx;

    fn guard(allowed: &[&str], hosts: Option<&[&str]>) -> Guard {
        let allowed = allowed.iter().map(|text| text.parse().unwrap()).collect();
        let hosts = hosts.map(|hosts| hosts.iter().map(|text| text.parse().unwrap()).collect());
        Guard::new(Policy::new(allowed).limited_to(hosts))
    }

    /// A request with headers and a body, as a workflow with these hosts writes it.
    fn written(url: &str, guard: &Guard, hosts: Option<&[&str]>, secret: bool) -> Request {
        let input = json!({
            "url": url, "method": "POST", "body": {"a": 1},
            "headers": {"Authorization": "Bearer s", "X-Key": "s", "Cookie": "s", "Accept": "a/b"},
        });
        let secret = secret.then(|| UsedSecret { name: "K".into(), hosts: Vec::new() });
        let hosts = hosts.map(|hosts| hosts.iter().map(|host| (*host).to_owned()).collect());
        let ctx = Ctx { hosts, secrets: secret.into_iter().collect(), ..ctx() };
        Request::new(&serde_json::from_value(input).unwrap(), &ctx, &guard.policy).unwrap()
    }

    fn sent_on(from: &Request, keeps: bool, to: &str, guard: &Guard) -> Result<Request, Failed> {
        from.sent_on(keeps, from.target.url.join(to).unwrap(), guard)
    }

    // case: request.secret-host
    #[test]
    fn headers_stay_behind_when_a_redirect_leads_elsewhere() {
        let guard = guard(&[], None);
        let names = |request: &Request| {
            let mut names: Vec<&str> = request.headers.keys().map(HeaderName::as_str).collect();
            names.sort_unstable();
            names.join(" ")
        };
        let first = written("https://a.example.com/x", &guard, None, false);
        let all = "accept accept-encoding authorization cairn-chain content-type cookie idempotency-key x-key";
        assert_eq!(names(&first), all);
        for (keeps, to, method, left) in [
            (false, "/y", "GET", "accept accept-encoding authorization cairn-chain cookie x-key"),
            (true, "/y", "POST", all),
            (false, "https://b.example.com/", "GET", "accept accept-encoding"),
            (true, "https://b.example.com/", "POST", "accept accept-encoding content-type"),
            (false, "http://a.example.com/", "GET", "accept accept-encoding"),
            (false, "https://a.example.com:8443/", "GET", "accept accept-encoding"),
        ] {
            let next = sent_on(&first, keeps, to, &guard).unwrap();
            assert_eq!((names(&next).as_str(), next.method.as_str()), (left, method), "{to}");
            assert_eq!(next.body.is_some(), keeps, "{to}");
        }
        // A secret may be in any header.
        let first = written("https://a.example.com/x", &guard, None, true);
        let next = sent_on(&first, false, "https://b.example.com/", &guard).unwrap();
        assert_eq!((names(&next).as_str(), next.secret), ("accept-encoding", false));
        let failed = sent_on(&first, true, "https://b.example.com/", &guard).err().unwrap();
        assert_eq!(failed.code, "SECRET_HOST_DENIED");
    }

    // case: request.redirect
    #[test]
    fn a_server_gets_no_further_inside_than_the_workflow_asked_to_be() {
        let guard = guard(&["10.0.0.0/8:*", "intra.example:*", "localhost:*"], None);
        let public = written("https://a.example.com/", &guard, None, false);
        let inside = written("http://10.0.0.5:9000/", &guard, None, false);
        for (from, to, goes) in [
            (&public, "https://b.example.com/", true),
            (&public, "http://10.0.0.5/", false),
            (&public, "http://[::ffff:10.0.0.5]/", false),
            (&public, "http://localhost/", false),
            (&public, "https://b.example.com:9000/", false),
            (&public, "https://intra.example:9000/", false),
            (&inside, "/next", true),
            (&inside, "http://10.0.0.5:9001/", false),
            (&inside, "http://10.0.0.6:9000/", false),
            (&inside, "http://localhost:9000/", false),
            (&inside, "https://b.example.com/", true),
        ] {
            let next = sent_on(from, false, to, &guard);
            let from = &from.target.url;
            assert_eq!(
                next.as_ref().map_err(|e| e.code).err(),
                (!goes).then_some("HTTP_DENIED"),
                "{from} {to}"
            );
        }
        // There and back: the way back is the server's.
        let away = sent_on(&inside, false, "https://b.example.com/", &guard).unwrap();
        let back = sent_on(&away, false, "http://10.0.0.5:9000/", &guard);
        assert_eq!(back.err().unwrap().code, "HTTP_DENIED");
    }

    // case: request.hosts
    #[test]
    fn hosts_limit_every_hop() {
        let open = guard(&["10.0.0.5"], None);
        let limited = guard(&["10.0.0.5"], Some(&["a.example.com", "*.example.net"]));
        let asks = |guard: &Guard, hosts: Option<&[&str]>, url: &str| {
            let input = serde_json::from_value(json!({"url": url})).unwrap();
            let hosts = hosts.map(|hosts| hosts.iter().map(|host| (*host).to_owned()).collect());
            Request::new(&input, &Ctx { hosts, ..ctx() }, &guard.policy).map_err(|e| e.message)
        };
        for (guard, hosts, url, why) in [
            (&open, None, "https://any.example.org/", ""),
            (&open, Some(&["a.example.com"][..]), "https://a.example.com/", ""),
            (&open, Some(&["a.example.com"]), "https://A.example.com./", ""),
            (&open, Some(&["a.example.com"]), "https://b.example.com/", "`hosts` of the workflow"),
            (&open, Some(&["a.example.com"]), "http://10.0.0.5/", "`hosts` of the workflow"),
            (&open, Some(&["10.0.0.5"]), "http://10.0.0.5/", ""),
            (&open, Some(&[]), "https://a.example.com/", "`hosts` of the workflow"),
            (&open, Some(&["not a host"]), "https://a.example.com/", "`hosts` of the workflow"),
            (&limited, None, "https://a.example.com/", ""),
            (&limited, None, "https://x.y.example.net/", ""),
            (&limited, None, "https://example.net/", "`http.hosts`"),
            (&limited, None, "https://a.example.com.evil.example/", "`http.hosts`"),
            // What is allowed by itself need not be listed twice.
            (&limited, None, "http://10.0.0.5/", ""),
            (
                &limited,
                Some(&["x.example.net"]),
                "https://a.example.com/",
                "`hosts` of the workflow",
            ),
            (&limited, Some(&["evil.example"]), "https://evil.example/", "`http.hosts`"),
        ] {
            let told = asks(guard, hosts, url).err().unwrap_or_default();
            assert_eq!(told.is_empty(), why.is_empty(), "{url} {hosts:?}: {told}");
            assert!(told.contains(why), "{url} {hosts:?}: {told}");
        }
        let first = written("https://a.example.com/", &limited, Some(&["a.example.com"]), false);
        let on = |guard: &Guard, to| sent_on(&first, false, to, guard).err().map(|e| e.message);
        assert_eq!(on(&limited, "https://a.example.com:8443/x"), None);
        assert!(on(&limited, "https://x.example.net/").unwrap().contains("of the workflow"));
        assert!(on(&limited, "https://b.example.com/").unwrap().contains("`http.hosts`"));
        assert!(on(&open, "https://b.example.com/").unwrap().contains("of the workflow"));
    }

    #[test]
    fn an_address_leads_where_it_is_written() {
        for url in [
            "https://x.org/a/../b",
            "https://x.org/order/..",
            "https://x.org/order/%2e%2E/admin",
            "https://x.org/./a",
            "https://x.org/order/.\t./admin",
            "https://x.org/a\\..\\b",
            "https://x.org/a/..?q=1",
            "https://x.org/a/.. #x",
            "https:\\\\x.org\\..\\http://a",
        ] {
            assert_eq!(straight(url).map_err(|failed| failed.code), Err("HTTP_PATH"), "{url}");
        }
        for url in ["https://x.org", "https://x.org/a..b/...", "https://x.org/?up=../x", "x"] {
            assert_eq!(straight(url), Ok(()), "{url}");
        }
    }
}
