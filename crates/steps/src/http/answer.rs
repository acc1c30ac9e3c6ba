//! What a server answered, and whether that counts as success.

use cairn_core::canonical;
use cairn_engine::performer::{Failed, FailureKind, Outcome};
use jiff::Timestamp;
use jiff::fmt::rfc2822;
use reqwest::Response;
use reqwest::header::{CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use serde_json::{Map, Value, json};

use super::client::in_words;
use super::{BODY_MAX, Input, Parse, encoding};

/// How long a server can ask to be left alone.
const WAIT_MAX_MS: u64 = 60 * 60 * 1_000;

/// Reads an answer.
pub(super) async fn outcome(mut answer: Response, input: &Input) -> Result<Outcome, Failed> {
    let status = answer.status().as_u16();
    let headers = answer.headers().clone();
    let from = answer.url().clone();
    let (bytes, truncated) = body(&mut answer).await?;
    let (text, unread) = match encoding::decode(&bytes, charset(&headers).as_deref()) {
        Ok(text) => (text, None),
        // The last character may have been cut off.
        Err(_) if truncated => (String::from_utf8_lossy(&bytes).into_owned(), None),
        Err(unread) => (String::from_utf8_lossy(&bytes).into_owned(), Some(unread)),
    };
    let read = parsed(&text, &headers, input, truncated);
    let fault = status_fault(status, &headers, input.ok_status.as_deref())
        .or_else(|| truncated.then(too_large))
        .or_else(|| unread.map(|unread| not_text(&unread)))
        .or_else(|| read.as_ref().err().cloned());
    let mut output = json!({
        "body": text, "headers": shown(&headers), "status": status, "truncated": truncated,
        "url": from.as_str(),
    });
    if let (Ok(Some(value)), Some(output)) = (read, output.as_object_mut()) {
        output.insert("json".to_owned(), value);
    }
    let notes = format!("status {status} from {}", from.host_str().unwrap_or_default());
    Ok(Outcome { fault, ..Outcome::new(output, notes) })
}

/// The body, or as much of it as is kept.
async fn body(answer: &mut Response) -> Result<(Vec<u8>, bool), Failed> {
    let mut bytes = Vec::new();
    loop {
        match answer.chunk().await {
            Ok(Some(chunk)) => bytes.extend_from_slice(&chunk),
            Ok(None) => return Ok((bytes, false)),
            Err(error) => {
                return Err(Failed::of(
                    FailureKind::Connection,
                    "HTTP_ANSWER",
                    format!("the answer broke off: {}", in_words(&error)),
                ));
            }
        }
        if bytes.len() > BODY_MAX {
            bytes.truncate(BODY_MAX);
            return Ok((bytes, true));
        }
    }
}

/// The body as JSON, when it is asked for or the server says that it is.
fn parsed(
    text: &str,
    headers: &HeaderMap,
    input: &Input,
    truncated: bool,
) -> Result<Option<Value>, Failed> {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let says_json = kind == "application/json" || kind.ends_with("+json");
    match input.parse_response {
        Some(Parse::Text) => Ok(None),
        _ if truncated => Ok(None),
        Some(Parse::Json) => canonical::parse_exact(text.as_bytes()).map(Some).map_err(|error| {
            Failed::of(
                FailureKind::InvalidOutput,
                "HTTP_NOT_JSON",
                format!("the answer was to be JSON, and is not: {error}"),
            )
        }),
        None if says_json => Ok(canonical::parse_exact(text.as_bytes()).ok()),
        None => Ok(None),
    }
}

fn status_fault(status: u16, headers: &HeaderMap, ok: Option<&[u16]>) -> Option<Failed> {
    let fine = ok.map_or(status < 400, |ok| ok.contains(&status));
    if fine {
        return None;
    }
    let (code, kind) = match status {
        429 => ("HTTP_RATE_LIMITED", FailureKind::RateLimited),
        500.. => ("HTTP_SERVER", FailureKind::ServerError),
        _ => ("HTTP_STATUS", FailureKind::Permanent),
    };
    let asked = headers.get(RETRY_AFTER).and_then(|wait| wait.to_str().ok());
    let asked = asked.filter(|_| matches!(status, 429 | 503));
    let wait = asked.map(|wait| match wait.parse::<u64>() {
        Ok(seconds) => format!("; the server asks to wait {seconds} s"),
        Err(_) => format!("; the server asks to wait until {}", short(wait)),
    });
    let message = format!("the server answered with status {status}{}", wait.unwrap_or_default());
    let after_ms = asked.and_then(|wait| after_ms(wait, Timestamp::now()));
    Some(Failed { after_ms, ..Failed::of(kind, code, message) })
}

/// How long a server asks to be left alone: so many seconds, or until an instant. It cannot
/// hold a run up for longer than an hour.
pub(crate) fn after_ms(wait: &str, now: Timestamp) -> Option<u64> {
    let wait = wait.trim();
    let ms = match wait.parse::<u64>() {
        Ok(seconds) => seconds.saturating_mul(1_000),
        Err(_) => {
            let until = rfc2822::DateTimeParser::new().parse_timestamp(wait).ok()?;
            u64::try_from(until.as_millisecond() - now.as_millisecond()).unwrap_or_default()
        }
    };
    Some(ms.min(WAIT_MAX_MS))
}

fn short(text: &str) -> String {
    text.chars().take(64).collect()
}

fn too_large() -> Failed {
    Failed::of(
        FailureKind::InvalidOutput,
        "HTTP_TOO_LARGE",
        "the answer is longer than 1 MiB; ask for less, or fetch it with a `shell` step",
    )
}

fn not_text(unread: &encoding::Unread) -> Failed {
    let message = format!("{unread}; fetch files with a `shell` step");
    Failed::of(FailureKind::InvalidOutput, "HTTP_NOT_TEXT", message)
}

/// The encoding that an answer says it is in.
fn charset(headers: &HeaderMap) -> Option<String> {
    let kind = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    let mut parameters = kind.split(';').skip(1).filter_map(|part| part.split_once('='));
    let (_, name) = parameters.find(|(name, _)| name.trim().eq_ignore_ascii_case("charset"))?;
    Some(name.trim().trim_matches('"').to_ascii_lowercase())
}

/// Headers as later steps see them. Of several with one name all are kept, with commas.
fn shown(headers: &HeaderMap) -> Value {
    let mut shown: Map<String, Value> = Map::new();
    for name in headers.keys() {
        let values = headers.get_all(name).iter();
        let values: Vec<_> = values.map(|v| String::from_utf8_lossy(v.as_bytes())).collect();
        shown.insert(name.as_str().to_owned(), json!(values.join(", ")));
    }
    Value::Object(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_says_how_long_to_leave_it_alone() {
        let now: Timestamp = "2026-03-01T08:00:00Z".parse().unwrap();
        for (wait, ms) in [
            ("30", Some(30_000)),
            (" 0 ", Some(0)),
            ("99999999999999999999", None),
            ("18446744073709551615", Some(WAIT_MAX_MS)),
            ("Sun, 01 Mar 2026 08:00:10 GMT", Some(10_000)),
            ("Sun, 01 Mar 2026 07:00:00 GMT", Some(0)),
            ("Mon, 01 Mar 2027 08:00:00 GMT", Some(WAIT_MAX_MS)),
            ("soon", None),
            ("-5", None),
            ("", None),
        ] {
            assert_eq!(after_ms(wait, now), ms, "{wait}");
        }
    }
}
