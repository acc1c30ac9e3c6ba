//! What is sent, and what of it goes along when the server sends elsewhere.

use cairn_engine::flow::{chain, trace};
use cairn_engine::performer::{Ctx, Failed, UsedSecret};
use reqwest::header::{
    ACCEPT, ACCEPT_ENCODING, ACCEPT_LANGUAGE, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue,
    LOCATION, USER_AGENT,
};
use reqwest::{Client, Response};

use super::{Input, Method, denied};
use crate::guard::{self, Policy, Target};
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

/// A request to one address.
pub(super) struct Request {
    pub(super) target: Target,
    method: reqwest::Method,
    headers: HeaderMap,
    body: Option<Vec<u8>>,
    /// Whether there are secrets in it.
    secret: bool,
}

impl Request {
    pub(super) fn new(input: &Input, ctx: &Ctx, policy: &Policy) -> Result<Self, Failed> {
        straight(&input.url)?;
        let mut target = guard::check(&input.url, policy).map_err(|error| denied(&error))?;
        if !input.query.is_empty() {
            let pairs = input.query.iter().map(|(name, value)| (name, plain(value)));
            target.url.query_pairs_mut().extend_pairs(pairs);
        }
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
        let body = input.body.as_ref().map(|body| {
            let kind =
                if body.is_string() { "text/plain; charset=utf-8" } else { "application/json" };
            headers.entry(CONTENT_TYPE).or_insert(HeaderValue::from_static(kind));
            plain(body).into_bytes()
        });
        Ok(Self { target, method, headers, body, secret: !ctx.secrets.is_empty() })
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
        policy: &Policy,
    ) -> Result<Option<Self>, Failed> {
        let keeps = matches!(answer.status().as_u16(), 307 | 308);
        if !keeps && !matches!(answer.status().as_u16(), 301..=303) {
            return Ok(None);
        }
        let Some(to) = answer.headers().get(LOCATION) else { return Ok(None) };
        let to = to.to_str().ok().and_then(|to| self.target.url.join(to).ok());
        let to = to.ok_or_else(|| {
            Failed::new("HTTP_REDIRECTS", "the server sends to something that is no address")
        })?;
        let target = guard::check_url(to, policy).map_err(|error| denied(&error))?;
        let elsewhere = target.url.origin() != self.target.url.origin();
        if elsewhere && self.secret && keeps && self.body.is_some() {
            return Err(Failed::new(
                "SECRET_HOST_DENIED",
                format!("the server sends a request with secrets on to `{}`", target.host),
            ));
        }
        let mut headers = self.headers.clone();
        if elsewhere {
            headers = headers
                .into_iter()
                .filter_map(|(name, value)| Some((name?, value)))
                .filter(|(name, _)| is_harmless(name))
                .collect();
        }
        let only_head = self.method == reqwest::Method::HEAD;
        let (method, body) = match keeps {
            true => (self.method.clone(), self.body.clone()),
            false if only_head => (reqwest::Method::HEAD, None),
            false => (reqwest::Method::GET, None),
        };
        if body.is_none() {
            headers.remove(CONTENT_TYPE);
        }
        if matches!(method, reqwest::Method::GET | reqwest::Method::HEAD) {
            headers.remove("idempotency-key");
        }
        Ok(Some(Self { target, method, headers, body, secret: self.secret }))
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
    let fits = |allowed: &String| {
        let allowed = guard::normal(allowed);
        match allowed.strip_prefix("*.") {
            Some(below) => host.strip_suffix(below).is_some_and(|rest| rest.ends_with('.')),
            None => allowed == host,
        }
    };
    if secret.hosts.is_empty() || secret.hosts.iter().any(fits) {
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
    use super::*;

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
