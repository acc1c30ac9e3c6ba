//! What a run sees of a request: its body, and of its headers what is no key to anything.

use std::net::IpAddr;

use cairn_engine::trigger::{Firing, Refusal, Request};
use serde_json::{Map, Value, json};

use super::signature::Keys;
use super::{BODY_INVALID, header};

/// Names of headers that carry keys, or parts of such names.
const PRIVATE: [&str; 9] = [
    "authorization",
    "cookie",
    "secret",
    "signature",
    "token",
    "api-key",
    "apikey",
    "password",
    "credential",
];
/// How many headers a run sees.
const HEADERS_MAX: usize = 64;

/// What starts the run of a request.
pub(super) fn firing(
    keys: Keys,
    request: &Request<'_>,
    sender: Option<IpAddr>,
) -> Result<Firing, Refusal> {
    let payload = payload(request)?;
    let source = json!({
        "method": request.method,
        "path": request.path,
        "query": query(request.query),
        "headers": headers(request),
        "address": sender.map(|address| address.to_string()),
    });
    let event = Map::from_iter([("source".to_owned(), source)]);
    Ok(Firing { key: keys.now, earlier: keys.earlier, payload, event })
}

/// The body: JSON when the sender says so, or nothing else and it is; text otherwise.
fn payload(request: &Request<'_>) -> Result<Value, Refusal> {
    if request.body.is_empty() {
        return Ok(Value::Null);
    }
    let kind = header(request, "content-type").next().map(|kind| kind.to_ascii_lowercase());
    let kind = kind.unwrap_or_default();
    let kind = kind.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    let is_json = kind == b"application/json" || kind.ends_with(b"+json");
    let text = std::str::from_utf8(request.body).map_err(|_| BODY_INVALID)?;
    match serde_json::from_str(text) {
        Ok(value) if is_json || kind.is_empty() => Ok(value),
        Err(_) if is_json => Err(BODY_INVALID),
        _ if kind == b"application/x-www-form-urlencoded" => Ok(query(text)),
        _ => Ok(json!(text)),
    }
}

/// The headers by their names in lower case. Those that carry keys are left out.
fn headers(request: &Request<'_>) -> Map<String, Value> {
    let mut seen = Map::new();
    for (name, value) in request.headers.iter().take(HEADERS_MAX) {
        let name = name.to_ascii_lowercase();
        if PRIVATE.iter().any(|part| name.contains(part)) {
            continue;
        }
        seen.insert(name, json!(String::from_utf8_lossy(value)));
    }
    seen
}

/// The fields of a query or a form. Of two with one name the later counts.
fn query(text: &str) -> Value {
    let fields = text.split('&').filter(|field| !field.is_empty());
    let field = |field: &str| {
        let (name, value) = field.split_once('=').unwrap_or((field, ""));
        (unescaped(name), json!(unescaped(value)))
    };
    Value::Object(fields.map(field).collect())
}

fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        let escaped = || {
            let pair = std::str::from_utf8(after.get(..2)?).ok()?;
            u8::from_str_radix(pair, 16).ok().filter(|_| !pair.starts_with('+'))
        };
        match first {
            b'+' => bytes.push(b' '),
            b'%' => match escaped() {
                Some(byte) => {
                    bytes.push(byte);
                    rest = after.get(2..).unwrap_or_default();
                }
                None => bytes.push(b'%'),
            },
            other => bytes.push(*other),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
