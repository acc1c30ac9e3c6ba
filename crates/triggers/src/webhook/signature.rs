//! The signatures of requests.
//!
//! Every comparison of a signature is made by [`same`], whose time does not depend on where
//! two signatures differ.

use base64::Engine as _;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use cairn_core::digest::Digest;
use cairn_engine::secrets::Secret;
use cairn_engine::trigger::{HookSecret, Refusal, Request};
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::Deserialize;
use sha2::Sha256;
use subtle::ConstantTimeEq as _;

use super::{SIGNATURE_BAD, SIGNATURE_MISSING, STALE, header, only};

/// How many signatures of one request are looked at.
const SIGNATURES_MAX: usize = 16;

/// How requests are signed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Scheme {
    /// As Standard Webhooks say: the id, the time and the body are signed together.
    Standard { tolerance_ms: u64 },
    /// As GitHub does: the body is signed.
    Github { window_ms: Option<u64> },
    /// The body is signed, and a header holds the signature.
    Hmac { header: String, prefix: String, encoding: Encoding, window_ms: Option<u64> },
}

/// How a signature is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Encoding {
    #[default]
    Hex,
    Base64,
}

/// What tells a request from every other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Keys {
    pub(super) now: String,
    /// What it would have had a little earlier.
    pub(super) earlier: Option<String>,
}

impl Scheme {
    /// Why nothing can be signed with a secret.
    pub(super) fn fault(&self, secret: &Secret) -> Option<&'static str> {
        match self {
            Self::Standard { .. } if standard_key(secret).is_none() => {
                Some("is not base64 behind `whsec_`, as Standard Webhooks has it")
            }
            _ if secret.expose().is_empty() => Some("is empty"),
            _ => None,
        }
    }

    /// The headers that hold a signature, or the time that is signed.
    pub(super) fn headers(&self) -> Vec<&str> {
        match self {
            Self::Standard { .. } => vec!["webhook-signature", "webhook-timestamp"],
            Self::Github { .. } => vec!["x-hub-signature", "x-hub-signature-256"],
            Self::Hmac { header, .. } => vec![header],
        }
    }

    /// The headers that sign a body, as [`Self::verify`] wants them.
    pub(super) fn sign(
        &self,
        body: &[u8],
        id: &str,
        now_ms: u64,
        secret: &Secret,
    ) -> Option<Vec<(String, String)>> {
        if self.fault(secret).is_some() {
            return None;
        }
        let of_body = || mac(secret.expose().as_bytes(), &[body]);
        let hex = |bytes: [u8; 32]| -> String {
            bytes.iter().map(|byte| format!("{byte:02x}")).collect()
        };
        Some(match self {
            Self::Standard { .. } => {
                let time = (now_ms / 1000).to_string();
                let parts = [id.as_bytes(), b".", time.as_bytes(), b".", body];
                let made = STANDARD.encode(mac(&standard_key(secret)?, &parts));
                vec![
                    ("webhook-id".to_owned(), id.to_owned()),
                    ("webhook-timestamp".to_owned(), time),
                    ("webhook-signature".to_owned(), format!("v1,{made}")),
                ]
            }
            Self::Github { .. } => {
                vec![("x-hub-signature-256".to_owned(), format!("sha256={}", hex(of_body())))]
            }
            Self::Hmac { header, prefix, encoding, .. } => {
                let made = match encoding {
                    Encoding::Hex => hex(of_body()),
                    Encoding::Base64 => STANDARD.encode(of_body()),
                };
                vec![(header.clone(), format!("{prefix}{made}"))]
            }
        })
    }

    /// What tells a genuine request from every other.
    pub(super) fn verify(
        &self,
        request: &Request<'_>,
        now_ms: u64,
        secrets: &[&HookSecret],
    ) -> Result<Keys, Refusal> {
        match self {
            Self::Standard { tolerance_ms } => {
                let id = standard(request, now_ms, *tolerance_ms, secrets)?;
                Ok(Keys { now: id, earlier: None })
            }
            Self::Github { window_ms } => {
                github(request, secrets)?;
                Ok(body_keys(request, now_ms, *window_ms))
            }
            Self::Hmac { header, prefix, encoding, window_ms } => {
                let given = header_text(request, header)?;
                let given = given.strip_prefix(prefix.as_str()).ok_or(SIGNATURE_BAD)?;
                let given = decoded(given, *encoding).ok_or(SIGNATURE_BAD)?;
                signed_body(request, &given, secrets)?;
                Ok(body_keys(request, now_ms, *window_ms))
            }
        }
    }
}

fn standard(
    request: &Request<'_>,
    now_ms: u64,
    tolerance_ms: u64,
    secrets: &[&HookSecret],
) -> Result<String, Refusal> {
    if header(request, "webhook-signature").next().is_none() {
        return Err(SIGNATURE_MISSING);
    }
    let id = only(request, "webhook-id").ok_or(SIGNATURE_MISSING)?;
    let time = only(request, "webhook-timestamp").ok_or(SIGNATURE_MISSING)?;
    let digits = time.len() <= 12 && time.bytes().all(|byte| byte.is_ascii_digit());
    let sent_ms = time.parse::<u64>().ok().filter(|_| digits).ok_or(SIGNATURE_BAD)? * 1000;
    let signed = [id.as_bytes(), b".", time.as_bytes(), b".", request.body];
    let given = header_text(request, "webhook-signature")?;
    let given: Vec<Vec<u8>> = given
        .split(' ')
        .take(SIGNATURES_MAX)
        .filter_map(|one| decoded(one.strip_prefix("v1,")?, Encoding::Base64))
        .collect();
    let good = secrets.iter().filter_map(|held| standard_key(&held.secret)).any(|key| {
        let made = mac(&key, &signed);
        // Each of them is compared, whichever fits.
        given.iter().fold(false, |good, given| same(given, &made) | good)
    });
    if !good {
        return Err(SIGNATURE_BAD);
    }
    // The time is signed, so only now does it say anything.
    if now_ms.abs_diff(sent_ms) > tolerance_ms {
        return Err(STALE);
    }
    Ok(id.to_owned())
}

/// The key in a secret of Standard Webhooks: base64, with or without `whsec_` before it.
fn standard_key(secret: &Secret) -> Option<Vec<u8>> {
    const LENIENT: GeneralPurpose = GeneralPurpose::new(
        &base64::alphabet::STANDARD,
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
    );
    let text = secret.expose();
    let text = text.strip_prefix("whsec_").unwrap_or(text);
    LENIENT.decode(text.trim()).ok().filter(|key| !key.is_empty())
}

fn github(request: &Request<'_>, secrets: &[&HookSecret]) -> Result<(), Refusal> {
    let given = header_text(request, "x-hub-signature-256")?;
    let given = given.strip_prefix("sha256=").ok_or(SIGNATURE_BAD)?;
    let given = decoded(given, Encoding::Hex).ok_or(SIGNATURE_BAD)?;
    signed_body(request, &given, secrets)
}

/// The text of a header that has to be there, and once.
fn header_text<'r>(request: &'r Request<'_>, name: &str) -> Result<&'r str, Refusal> {
    let mut values = header(request, name);
    let first = values.next().ok_or(SIGNATURE_MISSING)?;
    if first.is_empty() {
        return Err(SIGNATURE_MISSING);
    }
    let text = std::str::from_utf8(first).map_err(|_| SIGNATURE_BAD)?;
    // Of two signatures in two headers nobody knows which one counts.
    if values.next().is_some() || text.len() > 4096 { Err(SIGNATURE_BAD) } else { Ok(text) }
}

fn signed_body(
    request: &Request<'_>,
    given: &[u8],
    secrets: &[&HookSecret],
) -> Result<(), Refusal> {
    let keys = secrets.iter().map(|held| held.secret.expose()).filter(|key| !key.is_empty());
    let good =
        keys.fold(false, |good, key| same(given, &mac(key.as_bytes(), &[request.body])) | good);
    if good { Ok(()) } else { Err(SIGNATURE_BAD) }
}

/// What tells a request from every other when only its body is signed: whoever has seen one
/// can send it again under another id, so the id says nothing. In a window of time there is
/// one of each. Whoever comes again in the next window is still the same, so that no window
/// ends between a request and its repetition.
fn body_keys(request: &Request<'_>, now_ms: u64, window_ms: Option<u64>) -> Keys {
    let digest = Digest::of(request.body);
    let within = |window: u64| format!("{digest}@{window}");
    match window_ms.and_then(|window| now_ms.checked_div(window)) {
        Some(window) => Keys { now: within(window), earlier: window.checked_sub(1).map(within) },
        None => Keys { now: digest.to_string(), earlier: None },
    }
}

fn mac(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    // An HMAC takes keys of any length.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else { return [0; 32] };
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().into()
}

/// Whether two signatures are the same, in a time that tells nothing of where they differ.
fn same(given: &[u8], made: &[u8; 32]) -> bool {
    given.ct_eq(made).into()
}

fn decoded(text: &str, encoding: Encoding) -> Option<Vec<u8>> {
    match encoding {
        Encoding::Base64 => STANDARD.decode(text).ok(),
        Encoding::Hex => hex(text),
    }
    .filter(|bytes| bytes.len() == 32)
}

/// Lower-case hex, as every sender writes it.
fn hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect()
}
