//! Sessions as this process knows them: read once, then only what is new.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use cairn_core::event::guided::NodeKind;
use cairn_core::guided::decide;
use cairn_core::id::{AttemptId, EventIndex, NodeId, RunId, SessionId};
use cairn_core::projection::dag::{Node, RunDag};
use cairn_core::projection::session::SessionView;
use cairn_store::{Store, port::EventLog};

use super::tokens::{self, Place, Target};
use crate::catalog;
use crate::error::{Error, Result};

/// How many sessions are kept in memory.
const KEPT_MAX: usize = 32;

/// A session, as far as it has been read.
pub(super) struct Session {
    pub(super) id: SessionId,
    pub(super) view: SessionView,
    next: EventIndex,
}

impl Session {
    fn new(id: SessionId) -> Self {
        Self { id, view: SessionView::default(), next: EventIndex(0) }
    }

    /// Takes in what happened since.
    pub(super) async fn sync(&mut self, log: &dyn EventLog) -> Result<()> {
        let events = log.read(self.id, self.next).await?;
        for event in &events {
            self.view.apply(event);
            self.next = event.index.next();
        }
        Ok(())
    }

    pub(super) fn broken(&self, what: &str) -> Error {
        Error::Broken(format!("session {}: {what}", self.id))
    }

    pub(super) fn dag(&self, run: RunId) -> Result<&RunDag> {
        let view = self.view.runs.get(&run);
        view.and_then(|run| run.dag()).ok_or_else(|| self.broken("a run is not a guided one"))
    }

    /// The node that a call is about.
    pub(super) fn target(&self, target: Target) -> Result<(RunId, NodeId)> {
        let (run, node) = self.find(target.place).map(|(run, node)| (run, node.id))?;
        let beside = target.beside.map(|place| self.find(place)).transpose()?;
        match beside.map(|(other_run, other)| (other_run, other.id)) {
            Some(other) if other != (run, node) => Err(tokens::apart((run, node), other)),
            _ => Ok((run, node)),
        }
    }

    /// The node that a token names.
    fn find(&self, place: Place) -> Result<(RunId, &Node)> {
        let unknown = || Error::TokenUnknownNode(format!("a node of session {}", self.id));
        match place {
            Place::Index(created) => {
                let runs =
                    self.view.runs.iter().filter_map(|(run, view)| Some((*run, view.dag()?)));
                let mut found = runs.filter_map(|(run, dag)| {
                    let nodes = dag.nodes();
                    let at = nodes.binary_search_by_key(&created, |node| node.created).ok()?;
                    Some((run, nodes.get(at)?))
                });
                found.next().ok_or_else(unknown)
            }
            Place::Node(run, node, hash) => {
                let view = self.view.runs.get(&run).ok_or_else(unknown)?;
                let node = view.dag().and_then(|dag| dag.node(node)).ok_or_else(unknown)?;
                if hash.is_some() && view.workflow_hash != hash {
                    return Err(Error::TokenHashMismatch(run.to_string()));
                }
                Ok((run, node))
            }
        }
    }

    /// Whether an attempt has put notes in the place of others at a node.
    pub(super) fn is_corrected(&self, node: NodeId, attempt: AttemptId) -> bool {
        let wanted = decide::correction(attempt);
        self.view.outputs.history(node).iter().any(|output| output.id == wanted)
    }

    /// Whether a run is only there for notes.
    pub(super) fn is_notes(&self, run: RunId) -> bool {
        let run = self.view.runs.get(&run);
        run.and_then(|run| run.workflow_id.as_deref()) == Some(catalog::NOTES)
    }

    /// The latest step that a run came to from the step of a checkpoint, if it has gone on from
    /// there. A checkpoint that is recorded is told of what was so when it was left, and so is
    /// whoever repeats the call.
    pub(super) fn gone_on(
        &self,
        run: RunId,
        checkpoint: NodeId,
        recorded: bool,
    ) -> Result<Option<NodeId>> {
        let dag = self.dag(run)?;
        let here = dag.node(checkpoint).ok_or_else(|| self.broken("a node is missing"))?;
        // Corrected notes stand at the step itself.
        if here.kind != NodeKind::Checkpoint {
            return Ok(None);
        }
        let told = |node: &&Node| !recorded || node.created < here.created;
        let home = dag.path_back(checkpoint).find(|node| node.kind == NodeKind::Step);
        let Some(home) = home else { return Ok(None) };
        let children: Vec<&Node> = dag.went_on(home.id).into_iter().filter(told).collect();
        let follows = |node: &&Node| {
            let behind = |child: &&Node| dag.is_on_path(child.id, node.id);
            node.kind == NodeKind::Step && children.iter().any(behind)
        };
        let steps = dag.nodes().iter().filter(told).filter(follows);
        Ok(steps.max_by_key(|node| node.created).map(|node| node.id))
    }

    /// Whether the run has gone on from where a node stands.
    pub(super) fn has_gone_on(&self, run: RunId, node: NodeId) -> bool {
        self.dag(run).is_ok_and(|dag| !dag.went_on(node).is_empty())
    }
}

/// The sessions that this process has read lately.
#[derive(Default)]
pub(super) struct Known {
    sessions: Mutex<Recent>,
}

#[derive(Default)]
struct Recent {
    by_id: BTreeMap<SessionId, (u64, Arc<tokio::sync::Mutex<Session>>)>,
    uses: BTreeMap<u64, SessionId>,
    clock: u64,
}

impl Recent {
    /// Lets the sessions go that nobody has used for longest. One that is in use stays, so
    /// that there are never two of it.
    fn shrink(&mut self) {
        let over = self.uses.len().saturating_sub(KEPT_MAX);
        let idle = |(_, id): &(&u64, &SessionId)| {
            self.by_id.get(*id).is_some_and(|(_, session)| Arc::strong_count(session) == 1)
        };
        let old: Vec<(u64, SessionId)> =
            self.uses.iter().filter(idle).take(over).map(|(use_, id)| (*use_, *id)).collect();
        for (last, id) in old {
            self.uses.remove(&last);
            self.by_id.remove(&id);
        }
    }
}

impl Known {
    /// A session as it was left, ready to be brought up to date.
    pub(super) fn get(&self, id: SessionId) -> Arc<tokio::sync::Mutex<Session>> {
        let mut recent = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        recent.clock += 1;
        let now = recent.clock;
        let (last, session) = recent
            .by_id
            .entry(id)
            .or_insert_with(|| (now, Arc::new(tokio::sync::Mutex::new(Session::new(id)))));
        let (before, session) = (std::mem::replace(last, now), Arc::clone(session));
        recent.uses.remove(&before);
        recent.uses.insert(now, id);
        recent.shrink();
        session
    }

    /// Forgets a session, so that it is read afresh.
    pub(super) fn forget(&self, id: SessionId) {
        let mut recent = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((last, _)) = recent.by_id.remove(&id) {
            recent.uses.remove(&last);
        }
    }
}

/// Reads a session for one look, without keeping it.
pub(super) async fn read(store: &Store, id: SessionId) -> Result<Session> {
    let mut session = Session::new(id);
    session.sync(&*store.log).await?;
    Ok(session)
}
