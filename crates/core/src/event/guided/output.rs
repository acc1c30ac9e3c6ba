//! Work worth keeping: notes and artifacts.

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::event::limits;
use crate::id::OutputId;
use crate::text;

/// Work worth keeping, attached to a node.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NodeOutputAppended {
    /// What kind of output.
    pub output_channel: OutputChannel,
    /// The output's own id.
    pub output_id: OutputId,
    /// The output.
    pub payload: OutputPayload,
    /// The earlier output of this node and channel that this one corrects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supersedes_output_id: Option<OutputId>,
}

/// The channels of a node's outputs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputChannel {
    /// What happened and what is next.
    Recap,
    /// Structured results, kept as blobs.
    Artifact,
}

/// An output.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(
    tag = "payloadKind",
    rename_all = "snake_case",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
pub enum OutputPayload {
    /// Text.
    Notes {
        /// The text, as Markdown.
        notes_markdown: String,
    },
    /// A blob.
    ArtifactRef {
        /// How long it is.
        byte_length: u64,
        /// What it is.
        content_type: String,
        /// Which blob.
        sha256: Digest,
    },
}

impl OutputPayload {
    /// Notes, cut to their budget.
    #[must_use]
    pub fn notes(text: &str) -> Self {
        Self::Notes { notes_markdown: text::truncate(text, limits::NOTES) }
    }
}
