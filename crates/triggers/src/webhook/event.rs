//! What a run sees of a request: its body, and of its headers what is no key to anything.

use std::net::IpAddr;

use cairn_core::canonical;
use cairn_engine::trigger::{Firing, Refusal, Request};
use serde_json::{Map, Value, json};

use super::signature::Keys;
use super::{BODY_INVALID, header};

/// What a name has in it that carries authority, wherever it stands.
const PARTS: [&str; 13] = [
    "apikey",
    "assertion",
    "authentic",
    "authoriz",
    "cookie",
    "credential",
    "passphrase",
    "passw",
    "private",
    "secret",
    "session",
    "signature",
    "token",
];
/// Words of a name that carries authority.
const WORDS: [&str; 14] = [
    "auth", "bearer", "csrf", "hmac", "jwt", "key", "nonce", "otp", "pass", "pin", "pwd", "sid",
    "sig", "xsrf",
];
/// How many headers a run sees.
const HEADERS_MAX: usize = 64;

/// What starts the run of a request.
pub(super) fn firing(
    keys: Keys,
    request: &Request<'_>,
    sender: Option<IpAddr>,
    signing: &[&str],
) -> Result<Firing, Refusal> {
    let payload = payload(request)?;
    let source = json!({
        "method": request.method,
        "path": request.path,
        "query": without_authority(query(request.query)),
        "headers": headers(request, signing),
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
    match canonical::parse_exact(request.body) {
        Ok(value) if is_json || kind.is_empty() => Ok(value),
        Err(_) if is_json => Err(BODY_INVALID),
        _ if kind == b"application/x-www-form-urlencoded" => Ok(query(text)),
        _ => Ok(json!(text)),
    }
}

/// Whether a name is that of something which lets whoever has it do more than look: whatever is
/// kept of a request can be read by those who may see the run, and sent again.
fn carries_authority(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let is_word = |word: &str| WORDS.contains(&word) || word.starts_with("sign");
    PARTS.iter().any(|part| name.contains(part)) || name.split(['-', '_', '.']).any(is_word)
}

/// Fields without those that carry authority.
fn without_authority(fields: Value) -> Value {
    match fields {
        Value::Object(mut fields) => {
            fields.retain(|name, _| !carries_authority(name));
            Value::Object(fields)
        }
        other => other,
    }
}

/// The headers by their names in lower case. Those that carry authority are left out, and so are
/// those that this trigger finds a signature or its time in, whatever they are called.
fn headers(request: &Request<'_>, signing: &[&str]) -> Map<String, Value> {
    let mut seen = Map::new();
    for (name, value) in request.headers.iter().take(HEADERS_MAX) {
        let name = name.to_ascii_lowercase();
        if carries_authority(&name) || signing.contains(&name.as_str()) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_carries_authority_is_known() {
        for name in [
            "Authorization",
            "Proxy-Authorization",
            "X-Forwarded-Authorization",
            "Cookie",
            "Set-Cookie",
            "X-Api-Key",
            "ApiKey",
            "X-ApiKey-Id",
            "X-Auth",
            "X-Auth-Request-User",
            "X-Amz-Security-Token",
            "X-Gitlab-Token",
            "X-Hub-Signature",
            "X-Hub-Signature-256",
            "X-Sig",
            "X_Sig",
            "X-Signed-By",
            "X-Signing-Input",
            "Webhook-Signature",
            "Svix-Signature",
            "X-Secret",
            "X-Client-Secret-Id",
            "X-Session-Id",
            "X-CSRF",
            "X-XSRF-Value",
            "X-JWT",
            "X-Jwt-Assertion",
            "X-HMAC",
            "X-Password",
            "X-Passwd",
            "X-Pass",
            "X-Credentials",
            "X-Private-Thing",
            "X-Nonce",
            "X-OTP",
            "Authentication-Info",
            "access_token",
            "key",
        ] {
            assert!(carries_authority(name), "{name}");
        }
        for name in [
            "Content-Type",
            "User-Agent",
            "Accept",
            "Host",
            "X-GitHub-Delivery",
            "X-GitHub-Event",
            "X-Request-Id",
            "X-Trace",
            "Webhook-Id",
            "Date",
            "X-Author",
            "X-Keyboard",
            "X-Design",
            "X-Monkey",
            "page",
        ] {
            assert!(!carries_authority(name), "{name}");
        }
    }
}
