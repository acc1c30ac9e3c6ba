//! A run's context.

use serde::{Deserialize, Serialize};

use crate::canonical::StrictValue;
use crate::id::{ContextId, NodeId};

/// The run's context was given or changed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ContextSet {
    /// What was given: merged over what was there, `null` removes a key.
    pub context: StrictValue,
    /// The change's own id.
    pub context_id: ContextId,
    /// The node at which a later change was made; a sibling branch does not see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_id: Option<NodeId>,
    /// Where it came from.
    pub source: ContextSource,
}

/// Where context comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum ContextSource {
    Initial,
    AgentDelta,
    Merge,
}
