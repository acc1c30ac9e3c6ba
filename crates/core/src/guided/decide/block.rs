//! An attempt that does not move the run: its record, and a node that keeps what was sent.
//!
//! The node has the state of the one that the attempt was made at, and the retry is made from
//! it. So facts and wishes that came with a blocked attempt hold for the retry and for what
//! follows it, and for no other branch.

use serde_json::Value;

use super::advance::Ack;
use super::record::{Made, Record, Role};
use super::{Decided, Here, Mint, Rejection};
use crate::event::guided::{
    AdvanceRecorded, ContextSource, EdgeCauseKind, EdgeKind, NodeKind, PreferenceSource,
};
use crate::guided::judge::Claim;
use crate::id::{AttemptId, NodeId};

/// The node that keeps what a blocked attempt sent, whoever makes it.
#[must_use]
pub fn blocked_at(attempt: AttemptId) -> NodeId {
    NodeId::derive(&[&attempt.to_string(), "blocked"])
}

/// What a blocked attempt leaves.
pub(super) struct Blocked<'a> {
    pub(super) recorded: AdvanceRecorded,
    /// What was sent; none when nobody sent anything.
    pub(super) ack: Option<Ack<'a>>,
    /// What was said about capabilities.
    pub(super) claims: &'a [Claim],
    /// The outcome of a step that the engine performed.
    pub(super) held: Option<Value>,
}

pub(super) fn block(
    here: Here<'_>,
    blocked: Blocked<'_>,
    mint: Mint<'_>,
) -> Result<Decided, Rejection> {
    let Blocked { recorded, ack, claims, held } = blocked;
    let attempt = recorded.attempt_id;
    let mut record = Record::new(here.run, here.node, attempt.to_string(), mint);
    let cause = record.at_node(recorded);
    if let Some(ack) = ack.filter(Ack::sends_anything) {
        record.stand_at(blocked_at(attempt));
        record.node(Made {
            kind: NodeKind::BlockedAttempt,
            parent: Some(here.node),
            state: here.state,
            hash: here.hash,
        })?;
        record.edge(here.node, EdgeKind::AckedStep, EdgeCauseKind::IntentionalFork, cause);
        record.context(ack.context, ContextSource::AgentDelta);
        let (changes, preferences) = ack.wanted.over(here.preferences);
        record.preferences(changes, preferences, PreferenceSource::User);
        let sent = |artifact: &Value| (Role::Sent, artifact.clone());
        let artifacts: Vec<_> = ack.submission.artifacts.iter().map(sent).collect();
        record.outputs(ack.submission.notes, &artifacts)?;
        record.claims(claims);
    }
    if let Some(held) = held {
        record.outputs(None, &[(Role::Held, held)])?;
    }
    Ok(record.done())
}
