//! Where a run stands at a node, with everything that decisions and answers look at.

use std::collections::BTreeMap;
use std::sync::Arc;

use cairn_core::digest::WorkflowHash;
use cairn_core::event::guided::{Capability, CapabilityStatus, Preferences};
use cairn_core::guided::decide::Here;
use cairn_core::guided::performed::Performed;
use cairn_core::id::{NodeId, RunId};
use cairn_core::instance::StepInstanceKey;
use cairn_core::plan::{Plan, Step};
use cairn_core::projection::gaps::Gap;
use cairn_core::snapshot::{EngineState, LoopFrame};
use serde_json::{Map, Value};

use super::Inner;
use super::session::Session;
use crate::error::Result;

/// A node and what holds there.
pub(super) struct Position {
    pub(super) run: RunId,
    pub(super) node: NodeId,
    pub(super) hash: WorkflowHash,
    pub(super) plan: Arc<Plan>,
    pub(super) state: Arc<EngineState>,
    pub(super) context: Map<String, Value>,
    pub(super) preferences: Preferences,
    capabilities: BTreeMap<Capability, CapabilityStatus>,
    /// The gaps that are open there.
    pub(super) gaps: Vec<Gap>,
}

impl Position {
    pub(super) async fn load(
        inner: &Inner,
        session: &Session,
        run: RunId,
        node: NodeId,
    ) -> Result<Self> {
        let view = session.view.runs.get(&run);
        let hash = view.and_then(|view| view.workflow_hash);
        let hash = hash.ok_or_else(|| session.broken("a run has no plan"))?;
        let dag = session.dag(run)?;
        let found = dag.node(node).ok_or_else(|| session.broken("a node is missing"))?;
        Ok(Self {
            run,
            node,
            hash,
            plan: inner.cache.plan(&inner.store, hash).await?,
            state: inner.cache.state(&inner.store, found.snapshot).await?,
            context: session.view.contexts.at(dag, node),
            preferences: session.view.preferences.at(dag, node),
            capabilities: session.view.capabilities.known(dag, node),
            gaps: session.view.gaps.open_at(dag, node).into_iter().cloned().collect(),
        })
    }

    /// The step that is pending.
    pub(super) fn step(&self) -> Option<&Step> {
        self.plan.step(&self.state.pending()?.step)
    }

    /// The step that was pending at another node of the run.
    pub(super) async fn step_at(
        &self,
        inner: &Inner,
        session: &Session,
        node: NodeId,
    ) -> Result<Option<&Step>> {
        let pending = self.pending_at(inner, session, node).await?;
        Ok(pending.and_then(|key| self.plan.step(&key.step)))
    }

    /// The same with its loops and their turns.
    pub(super) async fn pending_at(
        &self,
        inner: &Inner,
        session: &Session,
        node: NodeId,
    ) -> Result<Option<StepInstanceKey>> {
        let found = session.dag(self.run)?.node(node);
        let found = found.ok_or_else(|| session.broken("a node is missing"))?;
        let state = inner.cache.state(&inner.store, found.snapshot).await?;
        Ok(state.pending())
    }

    /// The pending step, when the engine is to perform it.
    pub(super) fn owed(&self) -> Option<Performed<'_>> {
        Performed::of(self.step()?)
    }

    /// Whether the engine is to act here.
    pub(super) fn is_owed_by_engine(&self) -> bool {
        self.owed().is_some()
    }

    /// The steps that were done on the way, as far as the state keeps them.
    pub(super) fn done(&self) -> &[StepInstanceKey] {
        match &*self.state {
            EngineState::Running(running) => running.completed().steps(),
            EngineState::Init | EngineState::Complete { .. } => &[],
        }
    }

    pub(super) fn loop_stack(&self) -> &[LoopFrame] {
        match &*self.state {
            EngineState::Running(running) => running.loop_stack(),
            EngineState::Init | EngineState::Complete { .. } => &[],
        }
    }

    pub(super) fn here<'a>(&'a self, session: &Session) -> Here<'a> {
        Here {
            plan: &self.plan,
            hash: self.hash,
            run: self.run,
            node: self.node,
            state: &self.state,
            context: &self.context,
            preferences: self.preferences,
            has_children: session.has_gone_on(self.run, self.node),
            capabilities: &self.capabilities,
            gaps: &self.gaps,
        }
    }
}
