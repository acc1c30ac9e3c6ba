//! `webhook`: fires when a request arrives that the right sender signed.
//!
//! In reading order: the settings here, who may send ([`peer`]), the signatures
//! ([`signature`]), what a run sees of a request ([`event`]).

mod event;
mod peer;
mod signature;

use std::sync::Arc;

use cairn_core::catalog::{SECRET_NAME, SettingFault, TriggerType, input as form};
use cairn_engine::secrets::Secret;
use cairn_engine::trigger::{Firing, Hook, HookSecret, Refusal, Request, Respond, Trigger, Watch};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::settings::{self, closed, one_of, text, texts, whole};
use peer::Ranges;
use signature::Scheme;

/// How many bytes a body has at most, unless the trigger says otherwise.
pub const BODY_MAX: usize = 1 << 20;
/// How far a sender's clock may be off.
const TOLERANCE_SEC: u64 = 300;
/// How long a secret stays good after another took its place.
const GRACE_SEC: u64 = 86_400;
/// How long `hmac` takes the same body for the same request, unless the trigger says otherwise.
const DEDUPE_SEC: u64 = 300;
const METHODS: [&str; 4] = ["POST", "PUT", "PATCH", "DELETE"];

/// The type.
pub struct Webhook;

#[derive(Deserialize)]
struct Input {
    #[serde(default)]
    allow: Vec<String>,
    body_max: Option<usize>,
    dedupe_sec: Option<u64>,
    encoding: Option<signature::Encoding>,
    grace_sec: Option<u64>,
    header: Option<String>,
    #[serde(default)]
    input: Map<String, Value>,
    #[serde(default)]
    methods: Vec<String>,
    path: String,
    prefix: Option<String>,
    #[serde(default)]
    respond: Answer,
    secret: String,
    #[serde(default)]
    signature: Form,
    tolerance_sec: Option<u64>,
    #[serde(default)]
    trusted_proxies: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Form {
    #[default]
    Standard,
    Github,
    Hmac,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    #[default]
    Immediately,
    LastStep,
    RespondStep,
}

/// The requests of one trigger.
pub struct Requests {
    path: String,
    methods: Vec<String>,
    respond: Respond,
    body_max: usize,
    secret: String,
    grace_ms: u64,
    allow: Ranges,
    proxies: Ranges,
    scheme: Scheme,
}

impl Trigger for Webhook {
    fn kind(&self) -> TriggerType {
        let secret = json!({
            "type": "string", "format": SECRET_NAME,
            "description": "The name of the secret that the sender signs with.",
        });
        let properties = json!({
            "allow": texts("The addresses that may send, such as 10.0.0.0/8; any when it is left out."),
            "body_max": whole(1, 16 << 20, "How many bytes a body may have; 1048576 when it is left out."),
            "dedupe_sec": whole(1, 31_536_000, "How long `github` and `hmac` take the same body for the same request. When it is left out: for good with `github`, 300 with `hmac`."),
            "encoding": one_of(&["hex", "base64"], "How `hmac` writes a signature."),
            "grace_sec": whole(0, 2_592_000, "How long a secret stays good after another took its place; a day when it is left out."),
            "header": text("The header that `hmac` looks for the signature in."),
            "input": {"type": "object", "description": "What the body has to hold: each field by its name, as in `manual`; anything when it is left out."},
            "methods": json!({"type": "array", "items": {"enum": METHODS}, "description": "What it takes; POST when it is left out."}),
            "path": text("Where requests go, below the path of webhooks."),
            "prefix": text("What stands before the signature of `hmac`, such as `sha256=`."),
            "respond": one_of(&["immediately", "last_step", "respond_step"], "When the sender gets its answer."),
            "secret": secret,
            "signature": one_of(&["standard", "github", "hmac"], "How requests are signed: as Standard Webhooks say, as GitHub does, or with an HMAC of the body in a header."),
            "tolerance_sec": whole(1, 3600, "How far the sender's clock may be off; 300 when it is left out."),
            "trusted_proxies": texts("The addresses whose `X-Forwarded-For` counts; none when it is left out."),
        });
        let example = json!({"type": "webhook", "path": "/pager", "secret": "PAGER_SECRET"});
        TriggerType {
            name: "webhook".to_owned(),
            input: closed(
                properties,
                &["path", "secret"],
                "Fires when a signed request arrives.",
                example,
            ),
            payload: None,
            check: |config| settings::faults(config, Requests::read),
        }
    }

    fn watch(&self, config: &Value) -> Result<Watch, Vec<SettingFault>> {
        Ok(Watch::Hook(Arc::new(Requests::new(config)?)))
    }
}

impl Requests {
    /// The requests that the settings of a trigger ask for.
    pub fn new(config: &Value) -> Result<Self, Vec<SettingFault>> {
        Self::read(settings::read(config)?)
    }

    fn read(input: Input) -> Result<Self, Vec<SettingFault>> {
        let mut faults: Vec<SettingFault> = path_fault(&input.path).into_iter().collect();
        let ranges = |field: &str, list: &[String], faults: &mut Vec<SettingFault>| {
            Ranges::read(field, list).unwrap_or_else(|found| {
                faults.extend(found);
                Ranges::default()
            })
        };
        faults.extend(form::faults(&input.input));
        let allow = ranges("allow", &input.allow, &mut faults);
        let proxies = ranges("trusted_proxies", &input.trusted_proxies, &mut faults);
        let scheme = scheme(&input).map_err(|fault| faults.push(fault)).ok();
        let Some(scheme) = scheme.filter(|_| faults.is_empty()) else { return Err(faults) };
        let methods = match input.methods.is_empty() {
            true => vec!["POST".to_owned()],
            false => input.methods,
        };
        let respond = match input.respond {
            Answer::Immediately => Respond::Immediately,
            Answer::LastStep => Respond::LastStep,
            Answer::RespondStep => Respond::RespondStep,
        };
        Ok(Self {
            path: input.path,
            methods,
            respond,
            body_max: input.body_max.unwrap_or(BODY_MAX),
            secret: input.secret,
            grace_ms: input.grace_sec.unwrap_or(GRACE_SEC).saturating_mul(1000),
            allow,
            proxies,
            scheme,
        })
    }
}

/// How requests are signed.
fn scheme(input: &Input) -> Result<Scheme, SettingFault> {
    let of_hmac = [
        ("header", input.header.is_some()),
        ("prefix", input.prefix.is_some()),
        ("encoding", input.encoding.is_some()),
    ];
    let given = of_hmac.iter().find(|(_, given)| *given);
    let window_ms = input.dedupe_sec.map(|seconds| seconds.saturating_mul(1000));
    match (input.signature, given, &input.header) {
        (Form::Hmac, _, Some(header)) if is_header_name(header) => Ok(Scheme::Hmac {
            header: header.to_ascii_lowercase(),
            prefix: input.prefix.clone().unwrap_or_default(),
            encoding: input.encoding.unwrap_or_default(),
            // Its senders may have nothing to tell but that something happened.
            window_ms: Some(window_ms.unwrap_or(DEDUPE_SEC * 1000)),
        }),
        (Form::Hmac, _, Some(header)) => {
            let message = format!("`{header}` cannot be the name of a header");
            Err(SettingFault::new("header", message, "write a name such as `X-Signature`"))
        }
        (Form::Hmac, _, None) => Err(SettingFault::new(
            "signature",
            "`hmac` does not say which header holds the signature",
            "add `header`, such as `header: X-Signature`",
        )),
        (_, Some((field, _)), _) => Err(SettingFault::new(
            *field,
            format!("only `signature: hmac` has `{field}`"),
            "leave it out, or say `signature: hmac`",
        )),
        (Form::Github, ..) => Ok(Scheme::Github { window_ms }),
        (Form::Standard, ..) if window_ms.is_some() => Err(SettingFault::new(
            "dedupe_sec",
            "requests that are signed as Standard Webhooks say have an id of their own",
            "leave it out",
        )),
        (Form::Standard, ..) => {
            let tolerance_sec = input.tolerance_sec.unwrap_or(TOLERANCE_SEC);
            Ok(Scheme::Standard { tolerance_ms: tolerance_sec.saturating_mul(1000) })
        }
    }
}

fn is_header_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    !name.is_empty() && name.len() <= 64 && name.chars().all(fits)
}

/// A path is taken as it is written, so it has to be in the one form that requests have.
fn path_fault(path: &str) -> Option<SettingFault> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.~/".contains(c);
    let parts = path.strip_prefix('/').map(|rest| rest.split('/'));
    let plain = |part: &str| !part.is_empty() && part != "." && part != "..";
    let good = parts.is_some_and(|mut parts| parts.all(plain));
    (!good || path.len() > 200 || !path.chars().all(fits)).then(|| {
        let message = format!("`{path}` is not a path for requests");
        let hint =
            "write `/` and names of letters, digits, `-`, `_`, `.` and `~`, such as `/pager`";
        SettingFault::new("path", message, hint)
    })
}

impl Hook for Requests {
    fn path(&self) -> &str {
        &self.path
    }

    fn methods(&self) -> &[String] {
        &self.methods
    }

    fn respond(&self) -> Respond {
        self.respond
    }

    fn body_max(&self) -> usize {
        self.body_max
    }

    fn secret(&self) -> &str {
        &self.secret
    }

    fn fault(&self, secret: &Secret) -> Option<&'static str> {
        self.scheme.fault(secret)
    }

    fn grace_ms(&self) -> u64 {
        self.grace_ms
    }

    fn sign(
        &self,
        body: &[u8],
        id: &str,
        now_ms: u64,
        secret: &Secret,
    ) -> Option<Vec<(String, String)>> {
        self.scheme.sign(body, id, now_ms, secret)
    }

    fn verify(
        &self,
        request: &Request<'_>,
        now_ms: u64,
        secrets: &[HookSecret],
    ) -> Result<Firing, Refusal> {
        let sender = self.proxies.sender(request);
        if !self.allow.is_empty() && !sender.is_some_and(|sender| self.allow.holds(sender)) {
            return Err(FORBIDDEN);
        }
        if request.body.len() > self.body_max {
            return Err(TOO_LARGE);
        }
        if header(request, "content-encoding").next().is_some_and(|coding| coding != b"identity") {
            return Err(ENCODED);
        }
        let good: Vec<&HookSecret> =
            secrets.iter().filter(|s| s.until_ms.is_none_or(|until| now_ms < until)).collect();
        let keys = self.scheme.verify(request, now_ms, &good)?;
        event::firing(keys, request, sender, &self.scheme.headers())
    }
}

const fn refusal(status: u16, code: &'static str) -> Refusal {
    Refusal { status, code }
}

const BODY_INVALID: Refusal = refusal(400, "WEBHOOK_BODY_INVALID");
const ENCODED: Refusal = refusal(415, "WEBHOOK_BODY_ENCODED");
const FORBIDDEN: Refusal = refusal(403, "WEBHOOK_FORBIDDEN");
const SIGNATURE_BAD: Refusal = refusal(401, "WEBHOOK_SIGNATURE_BAD");
const SIGNATURE_MISSING: Refusal = refusal(401, "WEBHOOK_SIGNATURE_MISSING");
const STALE: Refusal = refusal(401, "WEBHOOK_STALE");
const TOO_LARGE: Refusal = refusal(413, "WEBHOOK_BODY_TOO_LARGE");

/// The values of a header, in their order.
fn header<'r>(request: &'r Request<'_>, name: &str) -> impl Iterator<Item = &'r [u8]> {
    let named = request.headers.iter().filter(move |(known, _)| known.eq_ignore_ascii_case(name));
    named.map(|(_, value)| value.as_ref())
}

/// The value of a header that there may be one of, as text of visible characters.
fn only<'r>(request: &'r Request<'_>, name: &str) -> Option<&'r str> {
    let mut values = header(request, name);
    let (first, second) = (values.next()?, values.next());
    let text = std::str::from_utf8(first).ok()?;
    let plain = !text.is_empty() && text.len() <= 256 && text.chars().all(|c| c.is_ascii_graphic());
    (second.is_none() && plain).then_some(text)
}

#[cfg(test)]
mod tests;
