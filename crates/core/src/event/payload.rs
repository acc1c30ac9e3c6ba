//! Values that events carry: in the event, kept as a blob, or named where they stand already.

use serde::{Deserialize, Serialize};

use crate::canonical::{self, StrictValue};
use crate::digest::Digest;
use crate::instance::StepInstanceKey;

/// A JSON value, in the event itself or, when it is large, kept as a blob.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Payload {
    /// The value itself.
    Inline(StrictValue),
    /// A blob that holds it.
    Blob(BlobRef),
}

impl Payload {
    /// A value that stands in the event, as it is read back from there.
    #[must_use]
    pub fn inline(value: serde_json::Value) -> Self {
        Self::Inline(StrictValue::new(value))
    }

    /// The digest of the value, wherever it stands; none for a value that cannot be written.
    #[must_use]
    pub fn digest(&self) -> Option<Digest> {
        match self {
            Self::Inline(value) => Some(Digest::of(&canonical::to_vec(value).ok()?)),
            Self::Blob(blob) => Some(blob.sha256),
        }
    }
}

/// Names a blob.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BlobRef {
    /// How long it is.
    pub byte_length: u64,
    /// What it is.
    pub content_type: String,
    /// Which blob.
    pub sha256: Digest,
}

/// What a step is given: a value, or where one that is recorded already stands.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(untagged, from = "StepInputWire")]
pub enum StepInput {
    /// A value.
    Given(Payload),
    /// A value that was recorded earlier in the same run.
    Earlier {
        /// Which.
        earlier: EarlierValue,
    },
}

/// A value that was recorded earlier in the same run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EarlierValue {
    /// What the same step was given at an earlier try.
    Attempt(u32),
    /// What came of another step.
    Output(StepInstanceKey),
}

impl StepInput {
    /// The value, when it stands here.
    #[must_use]
    pub const fn given(&self) -> Option<&Payload> {
        match self {
            Self::Given(payload) => Some(payload),
            Self::Earlier { .. } => None,
        }
    }

    /// The value, when it stands here.
    pub const fn given_mut(&mut self) -> Option<&mut Payload> {
        match self {
            Self::Given(payload) => Some(payload),
            Self::Earlier { .. } => None,
        }
    }
}

impl From<Payload> for StepInput {
    fn from(payload: Payload) -> Self {
        Self::Given(payload)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum StepInputWire {
    Inline(StrictValue),
    Blob(BlobRef),
    Earlier(EarlierValue),
}

impl From<StepInputWire> for StepInput {
    fn from(wire: StepInputWire) -> Self {
        match wire {
            StepInputWire::Inline(value) => Self::Given(Payload::Inline(value)),
            StepInputWire::Blob(blob) => Self::Given(Payload::Blob(blob)),
            StepInputWire::Earlier(earlier) => Self::Earlier { earlier },
        }
    }
}

/// What a try at a step used up of a model.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Usage {
    /// What it cost, in millionths of a US dollar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd_micros: Option<u64>,
    /// Whether cost or tokens are computed, because the provider did not report them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
    /// Tokens that the model read.
    pub input_tokens: u64,
    /// How many agents were started or models asked.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub launches: u32,
    /// The model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Tokens that the model wrote.
    pub output_tokens: u64,
    /// Who runs the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
}

const fn is_zero(number: &u32) -> bool {
    *number == 0
}
