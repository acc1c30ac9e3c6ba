//! Reading what came with a request, no more of it than may be.

use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::Response;
use cairn_api::error::{Error, Result};
use cairn_core::canonical;
use http_body_util::{BodyExt as _, LengthLimitError};
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::answer::Failure;
use crate::guard::BODY_MAX;

/// How long a client may take to send a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// The body, byte for byte, if it is no longer than this.
pub(crate) async fn bytes(body: Body, max: usize) -> Result<Vec<u8>> {
    let read = timeout(BODY_TIMEOUT, axum::body::to_bytes(body, max)).await;
    let read = read.map_err(|_| Error::BodyLate { seconds: BODY_TIMEOUT.as_secs() })?;
    read.map(Into::into).map_err(|error| match is_over(&error) {
        true => Error::RequestTooLarge { max: u64::try_from(max).unwrap_or(u64::MAX) },
        false => Error::RequestInvalid("the body cannot be read to its end".to_owned()),
    })
}

/// Lets a body go by that nobody looks at, as far as it may be sent: whoever is still sending would
/// not hear the answer.
pub(crate) async fn pass(mut body: Body, max: usize) {
    let all = async {
        let mut left = max;
        while let Some(Ok(frame)) = body.frame().await {
            let bytes = frame.data_ref().map_or(0, |data| data.len());
            let Some(less) = left.checked_sub(bytes) else { return };
            left = less;
        }
    };
    // Whoever takes longer has been told nothing, and is sent away.
    let _ = timeout(BODY_TIMEOUT, all).await;
}

/// Whether a body was given up because it is too long.
fn is_over(error: &axum::Error) -> bool {
    let first: &(dyn std::error::Error + 'static) = error;
    std::iter::successors(Some(first), |error| error.source())
        .any(|error| error.is::<LengthLimitError>())
}

/// Lets a request on when its body is there, for handlers that would wait for it as long as
/// it takes.
pub(crate) async fn whole(request: Request, next: Next) -> std::result::Result<Response, Failure> {
    let (parts, body) = request.into_parts();
    let bytes = bytes(body, usize::try_from(BODY_MAX).unwrap_or(usize::MAX)).await?;
    Ok(next.run(Request::from_parts(parts, Body::from(bytes))).await)
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
        return Err(Error::MediaType(message));
    }
    if headers.contains_key(header::CONTENT_ENCODING) {
        return Err(Error::MediaType("compressed bodies are not taken"));
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
