//! Failures over HTTP: RFC 9457 problem documents, with the envelope's members beside.

use cairn_core::error::Envelope;
use serde::{Deserialize, Serialize};

use crate::error::Error;

/// The media type of a problem document.
pub const CONTENT_TYPE: &str = "application/problem+json";

/// A failure as an HTTP answer's body.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Problem {
    /// Names the kind of problem; relative, and the same for ever.
    #[serde(rename = "type")]
    pub kind: String,
    /// The kind of problem in a few words.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// What is wrong here; the envelope's message.
    pub detail: String,
    /// The envelope.
    #[serde(flatten)]
    pub envelope: Envelope,
}

impl From<&Error> for Problem {
    fn from(error: &Error) -> Self {
        let envelope = error.envelope();
        Self {
            kind: format!("/errors/{}", envelope.code),
            title: title(&envelope.code),
            status: error.status(),
            detail: envelope.message.clone(),
            envelope,
        }
    }
}

/// A code in words: `SESSION_NOT_FOUND` is `Session not found`.
fn title(code: &str) -> String {
    let mut words = code.replace('_', " ").to_ascii_lowercase();
    if let Some(first) = words.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    words
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;

    #[test]
    fn a_problem_carries_the_envelope_beside_its_own_members() {
        let problem = Problem::from(&Error::TokenMissing);
        assert_snapshot!(serde_json::to_string_pretty(&problem).unwrap(), @r#"
        {
          "type": "/errors/AUTH_TOKEN_MISSING",
          "title": "Auth token missing",
          "status": 401,
          "detail": "the request carries no bearer token",
          "code": "AUTH_TOKEN_MISSING",
          "message": "the request carries no bearer token",
          "retry": {
            "kind": "not_retryable"
          },
          "suggestion": "send the header `Authorization: Bearer <token>`; a token in the URL is not read"
        }
        "#);
    }
}
