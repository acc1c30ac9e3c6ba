//! Reading what came with a request, no more of it than may be.

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, header};
use cairn_api::error::{Error, Result};
use cairn_core::canonical;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::guard::BODY_MAX;

/// How long a client may take to send a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// The body, byte for byte, if it is no longer than this.
pub(crate) async fn bytes(body: Body, max: usize) -> Result<Vec<u8>> {
    let read = timeout(BODY_TIMEOUT, axum::body::to_bytes(body, max)).await;
    let read = read.map_err(|_| Error::RequestInvalid("the body took too long".to_owned()))?;
    let max = u64::try_from(max).unwrap_or(u64::MAX);
    // Whatever else can go wrong is a client that went away, and reads no answer.
    read.map(Into::into).map_err(|_| Error::RequestTooLarge { max })
}

/// The body, which has to be JSON; nothing at all counts as an empty object.
pub(crate) async fn json<T: DeserializeOwned>(headers: &HeaderMap, body: Body) -> Result<T> {
    let bytes = bytes(body, usize::try_from(BODY_MAX).unwrap_or(usize::MAX)).await?;
    if bytes.is_empty() {
        return parse(b"{}");
    }
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let kind = kind.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/json") {
        let message = "the body is JSON, and `Content-Type` has to say so: application/json";
        return Err(Error::RequestInvalid(message.to_owned()));
    }
    if headers.contains_key(header::CONTENT_ENCODING) {
        return Err(Error::RequestInvalid("compressed bodies are not taken".to_owned()));
    }
    parse(&bytes)
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    // A list of the members in their order would be taken for the object.
    if !bytes.trim_ascii_start().starts_with(b"{") {
        return Err(Error::RequestInvalid("the body is not an object".to_owned()));
    }
    canonical::parse(bytes)
        .map_err(|error| Error::RequestInvalid(format!("the body cannot be read: {error}")))
}
