use std::borrow::Cow;
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cairn_engine::secrets::Secret;
use proptest::prelude::*;

use super::*;

mod real;

const NOW: u64 = 1_800_000_000_000;
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const BODY: &[u8] = br#"{"service":"api","n":1}"#;

/// A request to be changed a little and sent.
#[derive(Clone)]
struct Sent {
    method: String,
    query: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    peer: String,
}

impl Sent {
    fn new(headers: &[(&str, &str)]) -> Self {
        Self {
            method: "POST".to_owned(),
            query: String::new(),
            headers: headers.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect(),
            body: BODY.to_vec(),
            peer: "192.0.2.7".to_owned(),
        }
    }

    fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(known, _)| known != name);
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    fn to(&self, hook: &Requests, now_ms: u64, secrets: &[HookSecret]) -> Result<Firing, Refusal> {
        let headers: Vec<(Cow<'_, str>, Cow<'_, [u8]>)> = self
            .headers
            .iter()
            .map(|(name, value)| (Cow::from(name.as_str()), Cow::from(value.as_bytes())))
            .collect();
        let request = Request {
            method: &self.method,
            path: "/pager",
            query: &self.query,
            headers: &headers,
            body: &self.body,
            peer: self.peer.parse().unwrap(),
        };
        hook.verify(&request, now_ms, secrets)
    }
}

fn hook(config: Value) -> Requests {
    let mut whole = json!({"path": "/pager", "secret": "KEY"});
    whole.as_object_mut().unwrap().extend(config.as_object().unwrap().clone());
    Requests::new(&whole).unwrap_or_else(|faults| panic!("{faults:?}"))
}

fn held(secret: &str) -> HookSecret {
    HookSecret { secret: Secret::new(secret), until_ms: None }
}

fn code(result: &Result<Firing, Refusal>) -> String {
    match result {
        Ok(_) => "ok".to_owned(),
        Err(refusal) => format!("{} {}", refusal.status, refusal.code),
    }
}

fn hmac(key: &[u8], text: &[u8]) -> Vec<u8> {
    use ::hmac::{Hmac, KeyInit as _, Mac as _};
    let mut mac = Hmac::<sha2::Sha256>::new_from_slice(key).unwrap();
    mac.update(text);
    mac.finalize().into_bytes().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A request that is signed as Standard Webhooks say.
fn standard(secret: &str, id: &str, sent_sec: u64, body: &[u8]) -> Sent {
    let key = STANDARD.decode(secret.trim_start_matches("whsec_")).unwrap();
    let signed = [format!("{id}.{sent_sec}.").as_bytes(), body].concat();
    let signature = format!("v1,{}", STANDARD.encode(hmac(&key, &signed)));
    let time = sent_sec.to_string();
    let headers =
        [("webhook-id", id), ("webhook-timestamp", &time), ("webhook-signature", &signature)];
    Sent { body: body.to_vec(), ..Sent::new(&headers) }.with("content-type", "application/json")
}

fn good() -> Sent {
    standard(SECRET, "msg_1", NOW / 1000, BODY)
}

fn github(secret: &str) -> Sent {
    let signature = format!("sha256={}", hex(&hmac(secret.as_bytes(), BODY)));
    Sent::new(&[("X-Hub-Signature-256", &signature), ("X-GitHub-Delivery", "72d3162e-cc78")])
}

#[test]
fn a_signed_request_fires_under_its_id() {
    let hook = hook(json!({}));
    let firing =
        good().with("authorization", "Bearer x").with("Cookie", "a=b").with("X-Trace", "t1");
    let firing =
        Sent { query: "a=1%20b&c".to_owned(), ..firing }.to(&hook, NOW, &[held(SECRET)]).unwrap();
    assert_eq!(firing.key, "msg_1");
    assert_eq!(firing.payload, json!({"service": "api", "n": 1}));
    insta::assert_json_snapshot!(firing.event["source"], @r#"
    {
      "address": "192.0.2.7",
      "headers": {
        "content-type": "application/json",
        "webhook-id": "msg_1",
        "x-trace": "t1"
      },
      "method": "POST",
      "path": "/pager",
      "query": {
        "a": "1 b",
        "c": ""
      }
    }
    "#);
    assert_eq!(
        (hook.path(), hook.methods(), hook.body_max()),
        ("/pager", &["POST".to_owned()][..], BODY_MAX)
    );
    assert_eq!(
        (hook.respond(), hook.secret(), hook.grace_ms()),
        (Respond::Immediately, "KEY", 86_400_000)
    );
}

// case: webhook.signature-missing
#[test]
fn an_unsigned_or_wrongly_signed_request_fires_nothing() {
    let other = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    let without = |name: &str| {
        let mut sent = good();
        sent.headers.retain(|(known, _)| known != name);
        sent
    };
    let twice = |name: &str| {
        let mut sent = good();
        let value = sent.headers.iter().find(|(known, _)| known == name).unwrap().clone();
        sent.headers.push(value);
        sent
    };
    let signature =
        good().headers.iter().find(|(n, _)| n == "webhook-signature").unwrap().1.clone();
    let table = [
        ("as it should be", good(), "ok"),
        ("no signature", without("webhook-signature"), "401 WEBHOOK_SIGNATURE_MISSING"),
        ("no id", without("webhook-id"), "401 WEBHOOK_SIGNATURE_MISSING"),
        ("no time", without("webhook-timestamp"), "401 WEBHOOK_SIGNATURE_MISSING"),
        (
            "an empty signature",
            good().with("webhook-signature", ""),
            "401 WEBHOOK_SIGNATURE_MISSING",
        ),
        ("another secret", standard(other, "msg_1", NOW / 1000, BODY), "401 WEBHOOK_SIGNATURE_BAD"),
        ("another id", good().with("webhook-id", "msg_2"), "401 WEBHOOK_SIGNATURE_BAD"),
        (
            "another time",
            good().with("webhook-timestamp", "1800000001"),
            "401 WEBHOOK_SIGNATURE_BAD",
        ),
        (
            "a time with a sign",
            good().with("webhook-timestamp", "+1800000000"),
            "401 WEBHOOK_SIGNATURE_BAD",
        ),
        (
            "a time that is none",
            good().with("webhook-timestamp", "99999999999999999999"),
            "401 WEBHOOK_SIGNATURE_BAD",
        ),
        ("another body", Sent { body: b"{}".to_vec(), ..good() }, "401 WEBHOOK_SIGNATURE_BAD"),
        ("two headers", twice("webhook-signature"), "401 WEBHOOK_SIGNATURE_BAD"),
        ("two ids", twice("webhook-id"), "401 WEBHOOK_SIGNATURE_MISSING"),
        (
            "an unknown version",
            good().with("webhook-signature", &signature.replace("v1,", "v2,")),
            "401 WEBHOOK_SIGNATURE_BAD",
        ),
        (
            "no version",
            good().with("webhook-signature", &signature.replace("v1,", "")),
            "401 WEBHOOK_SIGNATURE_BAD",
        ),
        (
            "a cut signature",
            good().with("webhook-signature", &signature[..30]),
            "401 WEBHOOK_SIGNATURE_BAD",
        ),
        (
            "a good one among others",
            good().with("webhook-signature", &format!("v1a,x v1,AAAA {signature}")),
            "ok",
        ),
        (
            "a long list",
            good().with("webhook-signature", &"v1,x ".repeat(5000)),
            "401 WEBHOOK_SIGNATURE_BAD",
        ),
    ];
    for (case, sent, wanted) in table {
        assert_eq!(code(&sent.to(&hook(json!({})), NOW, &[held(SECRET)])), wanted, "{case}");
    }
    assert_eq!(
        code(&good().to(&hook(json!({})), NOW, &[])),
        "401 WEBHOOK_SIGNATURE_BAD",
        "no secret is set"
    );
    assert_eq!(
        code(&good().to(&hook(json!({})), NOW, &[held("whsec_")])),
        "401 WEBHOOK_SIGNATURE_BAD"
    );
}

// case: webhook.stale
#[test]
fn an_old_or_early_request_fires_nothing() {
    let at = |sec: u64| {
        code(&standard(SECRET, "m", sec, BODY).to(&hook(json!({})), NOW, &[held(SECRET)]))
    };
    let now = NOW / 1000;
    assert_eq!((at(now - 300), at(now + 300)), ("ok".into(), "ok".into()));
    assert_eq!(at(now - 301), "401 WEBHOOK_STALE");
    assert_eq!(at(now + 301), "401 WEBHOOK_STALE");
    let strict = hook(json!({"tolerance_sec": 10}));
    let sent = standard(SECRET, "m", now - 11, BODY);
    assert_eq!(code(&sent.to(&strict, NOW, &[held(SECRET)])), "401 WEBHOOK_STALE");
}

// case: webhook.rotation
#[test]
fn a_replaced_secret_is_good_for_its_grace() {
    let new = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    let old = HookSecret { until_ms: Some(NOW + 1000), ..held(SECRET) };
    let secrets = [held(new), old];
    let send = |secret: &str, now: u64| {
        code(&standard(secret, "m", now / 1000, BODY).to(&hook(json!({})), now, &secrets))
    };
    assert_eq!((send(SECRET, NOW), send(new, NOW)), ("ok".into(), "ok".into()));
    assert_eq!(send(SECRET, NOW + 1000), "401 WEBHOOK_SIGNATURE_BAD");
    assert_eq!(send(new, NOW + 1000), "ok");
}

// case: webhook.signature-form
#[test]
fn signatures_of_github_have_one_form() {
    let hook = hook(json!({"signature": "github"}));
    let good = hex(&hmac(b"It's a Secret", BODY));
    let send = |value: &str| {
        let sent = github("It's a Secret").with("X-Hub-Signature-256", value);
        code(&sent.to(&hook, NOW, &[held("It's a Secret")]))
    };
    assert_eq!(send(&format!("sha256={good}")), "ok");
    for bad in [
        format!("sha256={}", good.to_uppercase()),
        format!("sha256={}", &good[..63]),
        format!("sha256={good}0"),
        format!("sha256={good}00"),
        format!("sha256={}", good.replace(&good[..1], "g")),
        "sha256=".to_owned(),
        good.clone(),
        format!("sha1={good}"),
        format!("sha256={good}, sha256={good}"),
        format!(" sha256={good}"),
        "sha256=\u{fe0f}".to_owned(),
    ] {
        assert_eq!(send(&bad), "401 WEBHOOK_SIGNATURE_BAD", "{bad}");
    }
    assert_eq!(send(""), "401 WEBHOOK_SIGNATURE_MISSING");
    let sha1 = Sent::new(&[("X-Hub-Signature", &format!("sha1={good}"))]);
    assert_eq!(
        code(&sha1.to(&hook, NOW, &[held("It's a Secret")])),
        "401 WEBHOOK_SIGNATURE_MISSING"
    );
    assert_eq!(code(&github("k").to(&hook, NOW, &[held("other"), held("k")])), "ok");
    assert_eq!(code(&github("k").to(&hook, NOW, &[held("other")])), "401 WEBHOOK_SIGNATURE_BAD");
}

#[test]
fn a_request_that_signs_its_body_alone_is_known_by_its_body() {
    let key =
        |config: Value, sent: &Sent, at: u64| sent.to(&hook(config), at, &[held("k")]).unwrap().key;
    let other = github("k").with("X-GitHub-Delivery", "another");
    let plain = || json!({"signature": "github"});
    let known = key(plain(), &github("k"), NOW);
    assert!(known.starts_with("sha256:"), "{known}");
    assert_eq!(key(plain(), &other, NOW), known, "nobody signed the id");
    assert_eq!(key(plain(), &other, NOW + 999_999_999), known, "however late it comes");
    let within = || json!({"signature": "github", "dedupe_sec": 60});
    let first = key(within(), &github("k"), NOW / 60_000 * 60_000);
    assert_eq!(key(within(), &other, NOW / 60_000 * 60_000 + 59_999), first);
    assert_ne!(key(within(), &other, NOW / 60_000 * 60_000 + 60_000), first);
}

// case: webhook.replay-late
#[test]
fn the_end_of_a_window_parts_no_request_from_its_repetition() {
    let hmac_sent = Sent::new(&[("X-Sig", &hex(&hmac(b"k", BODY)))]);
    let at = |config: &Value, ms: u64| {
        let firing = hmac_sent.to(&hook(config.clone()), ms, &[held("k")]).unwrap();
        (firing.key, firing.earlier)
    };
    let plain = json!({"signature": "hmac", "header": "X-Sig"});
    let longer = json!({"signature": "hmac", "header": "X-Sig", "dedupe_sec": 3600});
    for (config, window) in [(&plain, 300_000), (&longer, 3_600_000)] {
        let start = NOW / window * window;
        let (first, _) = at(config, start + window - 1);
        assert_eq!(at(config, start).0, first, "{config}");
        let (next, earlier) = at(config, start + window);
        assert_ne!(next, first, "{config}");
        assert_eq!(earlier.as_ref(), Some(&first), "{config}");
        let (last, earlier) = at(config, start + 2 * window);
        assert!(last != first && earlier != Some(first), "{config}: it is over");
    }
    let forever = json!({"signature": "github"});
    let firing = github("k").to(&hook(forever), NOW, &[held("k")]).unwrap();
    assert_eq!(firing.earlier, None);
    assert_eq!(good().to(&hook(json!({})), NOW, &[held(SECRET)]).unwrap().earlier, None);
}

#[test]
fn a_plain_hmac_is_found_in_its_header() {
    let made = hmac(b"k", BODY);
    let based = hook(
        json!({"signature": "hmac", "header": "X-Sig", "encoding": "base64", "prefix": "v0="}),
    );
    let sent = Sent::new(&[("x-sig", &format!("v0={}", STANDARD.encode(&made)))]);
    assert!(sent.to(&based, NOW, &[held("k")]).unwrap().key.starts_with("sha256:"));
    let plain = hook(json!({"signature": "hmac", "header": "X-Sig"}));
    assert_eq!(code(&Sent::new(&[("X-SIG", &hex(&made))]).to(&plain, NOW, &[held("k")])), "ok");
    assert_eq!(code(&sent.to(&plain, NOW, &[held("k")])), "401 WEBHOOK_SIGNATURE_BAD");
}

// case: webhook.peer
#[test]
fn only_the_allowed_addresses_send() {
    let from = |config: &Value, peer: &str, forwarded: Option<&str>| {
        let sent = Sent { peer: peer.to_owned(), ..good() };
        let sent = forwarded.map_or(sent.clone(), |list| sent.with("X-Forwarded-For", list));
        code(&sent.to(&hook(config.clone()), NOW, &[held(SECRET)]))
    };
    let (ok, no) = ("ok", "403 WEBHOOK_FORBIDDEN");
    let plain = json!({"allow": ["10.0.0.0/8", "192.0.2.7", "2001:db8::/32"]});
    let proxied = json!({"allow": ["198.51.100.0/24"], "trusted_proxies": ["10.0.0.0/8"]});
    let table = [
        (&plain, "10.1.2.3", None, ok),
        (&plain, "::ffff:10.1.2.3", None, ok),
        (&plain, "192.0.2.7", None, ok),
        (&plain, "192.0.2.8", None, no),
        (&plain, "2001:db8::1", None, ok),
        (&plain, "2001:db9::1", None, no),
        (&plain, "203.0.113.1", Some("10.0.0.1"), no),
        (&proxied, "10.0.0.1", Some("198.51.100.9"), ok),
        (&proxied, "::ffff:10.0.0.1", Some("198.51.100.9"), ok),
        (&proxied, "10.0.0.1", Some("198.51.100.9, 10.0.0.2"), ok),
        (&proxied, "10.0.0.1", Some("198.51.100.9, 203.0.113.1"), no),
        (&proxied, "10.0.0.1", Some("198.51.100.9.evil"), no),
        (&proxied, "10.0.0.1", Some(""), no),
        (&proxied, "10.0.0.1", None, no),
        (&proxied, "198.51.100.9", Some("203.0.113.1"), ok),
    ];
    for (config, peer, forwarded, wanted) in table {
        assert_eq!(from(config, peer, forwarded), wanted, "{config} {peer} {forwarded:?}");
    }
}

#[test]
fn bodies_and_methods_have_limits() {
    let send = |config: Value, sent: Sent| code(&sent.to(&hook(config), NOW, &[held(SECRET)]));
    let body = |text: &str| standard(SECRET, "m", NOW / 1000, text.as_bytes());
    assert_eq!(send(json!({"body_max": 4}), body("1234")), "ok");
    assert_eq!(send(json!({"body_max": 4}), body("12345")), "413 WEBHOOK_BODY_TOO_LARGE");
    assert_eq!(
        send(json!({}), good().with("Content-Encoding", "gzip")),
        "415 WEBHOOK_BODY_ENCODED"
    );
    assert_eq!(send(json!({}), good().with("Content-Encoding", "identity")), "ok");
    assert_eq!(hook(json!({})).methods(), ["POST"]);
    assert_eq!(hook(json!({"methods": ["PUT"]})).methods(), ["PUT"]);
    assert_eq!(send(json!({}), body("{\"a\":")), "400 WEBHOOK_BODY_INVALID");
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    assert_eq!(send(json!({}), body(&deep)), "400 WEBHOOK_BODY_INVALID");
    let raw = standard(SECRET, "m", NOW / 1000, &[0xff, 0xfe]).with("content-type", "text/plain");
    assert_eq!(send(json!({}), raw), "400 WEBHOOK_BODY_INVALID");
}

#[test]
fn a_body_is_what_its_sender_says() {
    let payload = |kind: &str, body: &str| {
        let sent = standard(SECRET, "m", NOW / 1000, body.as_bytes()).with("content-type", kind);
        sent.to(&hook(json!({})), NOW, &[held(SECRET)]).unwrap().payload
    };
    assert_eq!(payload("application/json; charset=utf-8", "[1]"), json!([1]));
    assert_eq!(payload("application/cloudevents+json", "[1]"), json!([1]));
    assert_eq!(payload("text/plain", "[1]"), json!("[1]"));
    assert_eq!(
        payload("application/x-www-form-urlencoded", "a=1+2&b=%C3%A9%zz"),
        json!({"a": "1 2", "b": "é%zz"})
    );
    assert_eq!(payload("application/json", ""), Value::Null);
    assert_eq!(payload("", "{\"a\":1}"), json!({"a": 1}));
}

#[test]
fn wrong_settings_are_told() {
    let told = |config: Value| {
        let found = (Webhook.kind().check)(&config);
        found
            .iter()
            .map(|f| format!("{}: {}; {}\n", f.field, f.message, f.hint))
            .collect::<String>()
    };
    let all = [
        json!({"path": "pager", "secret": "K"}),
        json!({"path": "/a/../b", "secret": "K"}),
        json!({"path": "/a b", "secret": "K"}),
        json!({"path": "/a", "secret": "K", "allow": ["10.0.0.0/8", "10.0.0.0/33", "10.0.0.1.evil", "10.1.2.3/8", "::ffff:10.0.0.0/104"]}),
        json!({"path": "/a", "secret": "K", "trusted_proxies": ["all"]}),
        json!({"path": "/a", "secret": "K", "signature": "hmac"}),
        json!({"path": "/a", "secret": "K", "signature": "hmac", "header": "X Sig"}),
        json!({"path": "/a", "secret": "K", "signature": "github", "prefix": "x"}),
        json!({"path": "/a", "secret": "K", "dedupe_sec": 60}),
        json!({"path": "/a", "secret": "K", "input": {"n": {"type": "date"}}}),
    ];
    insta::assert_snapshot!(all.map(told).concat(), @r"
    path: `pager` is not a path for requests; write `/` and names of letters, digits, `-`, `_`, `.` and `~`, such as `/pager`
    path: `/a/../b` is not a path for requests; write `/` and names of letters, digits, `-`, `_`, `.` and `~`, such as `/pager`
    path: `/a b` is not a path for requests; write `/` and names of letters, digits, `-`, `_`, `.` and `~`, such as `/pager`
    allow.1: `10.0.0.0/33` is not a range of addresses; write an address such as `10.0.0.7`, or a range such as `10.0.0.0/8`
    allow.2: `10.0.0.1.evil` is not a range of addresses; write an address such as `10.0.0.7`, or a range such as `10.0.0.0/8`
    allow.3: `10.1.2.3/8` does not begin where its range does; write `10.0.0.0/8`
    allow.4: `::ffff:10.0.0.0/104` is not a range of addresses; write the IPv4 form of it
    trusted_proxies.0: `all` is not a range of addresses; write an address such as `10.0.0.7`, or a range such as `10.0.0.0/8`
    signature: `hmac` does not say which header holds the signature; add `header`, such as `header: X-Signature`
    header: `X Sig` cannot be the name of a header; write a name such as `X-Signature`
    prefix: only `signature: hmac` has `prefix`; leave it out, or say `signature: hmac`
    dedupe_sec: requests that are signed as Standard Webhooks say have an id of their own; leave it out
    input.n.type: `n` is of no type that there is; say `type`: string, number, integer, boolean, array or object
    ");
}

// case: webhook.constant-time
#[test]
fn signatures_are_compared_by_one_function() {
    let text = include_str!("signature.rs");
    assert_eq!(text.matches("ct_eq").count(), 1);
    assert_eq!(text.matches("verify_slice").count(), 0);
    for line in text.lines().filter(|line| line.contains("==") || line.contains("!=")) {
        let known = ["bytes.len() == 32", "self == ", "digits"];
        assert!(known.iter().any(|known| line.contains(known)), "a comparison of its own: {line}");
    }
}

proptest! {
    #[test]
    fn no_header_makes_it_fail_badly(
        names in prop::collection::vec("webhook-(id|timestamp|signature)|x-hub-signature-256|content-type", 0..5),
        values in prop::collection::vec("[ -~é]{0,80}|sha256=[0-9a-fA-F]{60,68}|v1,[A-Za-z0-9+/=]{40,48}", 5),
        body in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        let headers: Vec<(&str, &str)> =
            names.iter().zip(&values).map(|(n, v)| (n.as_str(), v.as_str())).collect();
        let sent = Sent { body, ..Sent::new(&headers) };
        for form in ["standard", "github"] {
            let answer = sent.to(&hook(json!({"signature": form})), NOW, &[held(SECRET)]);
            prop_assert!(answer.is_err_and(|refusal| refusal.status == 401));
        }
    }
}

// case: webhook.nothing-kept
#[test]
fn nothing_that_is_kept_of_a_request_lets_it_be_sent_again() {
    for header in ["X-Sig", "X-Check", "Digest", "X-Custom"] {
        let signature = hex(&hmac(b"plain", BODY));
        let sent = Sent::new(&[(header, &signature), ("X-Other", "kept")]);
        let sent = Sent { query: "token=abc&page=2&sig=zz".to_owned(), ..sent };
        let hook = hook(json!({"signature": "hmac", "header": header}));
        let firing = sent.to(&hook, NOW, &[held("plain")]).unwrap();
        let source = firing.event["source"].to_string();
        assert!(!source.contains(&signature), "{header}: {source}");
        assert!(!source.contains("abc") && !source.contains("zz"), "{header}: {source}");
        assert_eq!(firing.event["source"]["headers"]["x-other"], "kept", "{header}");
        assert_eq!(firing.event["source"]["query"], json!({"page": "2"}), "{header}");
    }
}
