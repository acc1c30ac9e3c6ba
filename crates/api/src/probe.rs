//! What probes are answered with: one word.

use serde::{Deserialize, Serialize};

/// The answer to a probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Probe {
    /// The word.
    pub status: ProbeStatus,
}

/// How a server is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProbeStatus {
    /// It lives.
    Ok,
    /// It can reach its data.
    Ready,
}
