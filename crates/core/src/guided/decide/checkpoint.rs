//! Notes that are left at a node without going on.

use serde_json::Value;

use super::record::{Made, RECAP, Record, Role};
use super::{Decided, Here, Mint, Rejection};
use crate::canonical;
use crate::digest::Digest;
use crate::event::guided::{EdgeCauseKind, EdgeKind, NodeKind};
use crate::id::{AttemptId, NodeId, OutputId};

/// What is to be kept.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Note<'a> {
    pub attempt: AttemptId,
    pub notes: Option<&'a str>,
    pub artifacts: &'a [Value],
}

/// The node that a checkpoint makes, whoever leaves it.
#[must_use]
pub fn spot(attempt: AttemptId) -> NodeId {
    NodeId::derive(&[&attempt.to_string(), "checkpoint"])
}

fn seed(attempt: AttemptId) -> String {
    format!("{attempt}:checkpoint")
}

/// The output that a correction adds, whoever makes it.
#[must_use]
pub fn correction(attempt: AttemptId) -> OutputId {
    OutputId::derive(&[&seed(attempt), RECAP])
}

/// Puts notes in the place of those that led to this node. The earlier ones stay in the log.
pub fn correct(
    here: Here<'_>,
    attempt: AttemptId,
    notes: &str,
    supersedes: Option<OutputId>,
    mint: Mint<'_>,
) -> Decided {
    let mut record = Record::new(here.run, here.node, seed(attempt), mint);
    record.notes(notes, supersedes);
    record.done()
}

/// Leaves a checkpoint: a node with the same state, and the notes on it.
pub fn checkpoint(here: Here<'_>, note: Note<'_>, mint: Mint<'_>) -> Result<Decided, Rejection> {
    leave(here, note, (spot(note.attempt), seed(note.attempt)), mint)
}

/// Leaves a checkpoint for what came with an acknowledgement of a step that the engine performs.
pub(super) fn beside(here: Here<'_>, note: Note<'_>, mint: Mint<'_>) -> Result<Decided, Rejection> {
    let at = NodeId::derive(&[&note.attempt.to_string(), "beside"]);
    leave(here, note, (at, format!("{}:beside", note.attempt)), mint)
}

fn leave(
    here: Here<'_>,
    note: Note<'_>,
    (at, seed): (NodeId, String),
    mint: Mint<'_>,
) -> Result<Decided, Rejection> {
    let mut record = Record::new(here.run, at, seed, mint);
    record.node(Made {
        kind: NodeKind::Checkpoint,
        parent: Some(here.node),
        state: here.state,
        hash: here.hash,
    })?;
    let cause = record.last();
    record.edge(here.node, EdgeKind::Checkpoint, EdgeCauseKind::CheckpointCreated, cause);
    let sent = |artifact: &Value| (Role::Sent, artifact.clone());
    record.outputs(note.notes, &note.artifacts.iter().map(sent).collect::<Vec<_>>())?;
    Ok(record.done())
}

/// The outputs that a checkpoint of these artifacts has, whoever leaves it.
pub fn kept(attempt: AttemptId, artifacts: &[Value]) -> Result<Vec<OutputId>, canonical::Error> {
    let seed = seed(attempt);
    let id = |artifact: &Value| {
        canonical::to_vec(artifact).map(|bytes| Role::Sent.output(&seed, Digest::of(&bytes)))
    };
    artifacts.iter().map(id).collect()
}
