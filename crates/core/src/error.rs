//! The error envelope: the one shape in which every door reports a failure.

use serde::{Deserialize, Serialize};

use crate::canonical::StrictValue;

/// A failure as a caller sees it: what happened, whether to try again, what to do.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Envelope {
    /// The name to match on, such as `STORE_CONFLICT`. Never renamed, never reused.
    pub code: String,
    /// Particulars for programs; nothing depends on them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<StrictValue>,
    /// What is wrong and where, in words.
    pub message: String,
    /// Whether the same call may work later.
    pub retry: Retry,
    /// What to do next, in words.
    pub suggestion: String,
}

/// Whether and when the same call is worth another try.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(
    tag = "kind",
    rename_all = "snake_case",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
pub enum Retry {
    /// It will fail again.
    NotRetryable,
    /// It may work at once.
    RetryableImmediate,
    /// It may work after a pause.
    RetryableAfterMs {
        /// How long to wait.
        after_ms: u64,
    },
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use serde_json::json;

    use super::*;
    use crate::canonical;

    fn check(envelope: &Envelope) -> String {
        let bytes = canonical::to_vec(envelope).unwrap();
        assert_eq!(canonical::parse::<Envelope>(&bytes).as_ref(), Ok(envelope));
        String::from_utf8(bytes).unwrap()
    }

    fn locked(retry: Retry, details: Option<StrictValue>) -> Envelope {
        Envelope {
            code: "SESSION_LOCKED".into(),
            details,
            message: "another process writes to the session".into(),
            retry,
            suggestion: "try again".into(),
        }
    }

    #[test]
    fn the_envelope_is_camel_case() {
        let after = Retry::RetryableAfterMs { after_ms: 250 };
        assert_snapshot!(check(&locked(after, Some(StrictValue::new(json!({"holder": 7}))))), @r#"{"code":"SESSION_LOCKED","details":{"holder":7},"message":"another process writes to the session","retry":{"afterMs":250,"kind":"retryable_after_ms"},"suggestion":"try again"}"#);
        assert_snapshot!(check(&locked(Retry::RetryableImmediate, None)), @r#"{"code":"SESSION_LOCKED","message":"another process writes to the session","retry":{"kind":"retryable_immediate"},"suggestion":"try again"}"#);
        assert_snapshot!(check(&locked(Retry::NotRetryable, None)), @r#"{"code":"SESSION_LOCKED","message":"another process writes to the session","retry":{"kind":"not_retryable"},"suggestion":"try again"}"#);
    }

    #[test]
    fn an_unknown_way_to_retry_is_refused() {
        let text = br#"{"kind":"retryable_tomorrow"}"#;
        assert!(canonical::parse::<Retry>(text).is_err());
    }
}
