//! Going on from an earlier step, in another run.

use std::sync::Arc;

use cairn_core::digest::{Digest, SnapshotRef};
use cairn_core::event::engine::{ForkedFrom, Payload, RunQueued};
use cairn_core::event::{By, EventData};
use cairn_core::flow::{Asker, Begun, Change, Cut, Fork, NotThere, begun};
use cairn_core::id::{EventIndex, NodeId, RunId};
use cairn_core::instance::StepInstanceKey;
use cairn_core::pin::BlobKind;
use cairn_core::plan::Plan;
use cairn_core::projection::run::RunState;
use cairn_core::snapshot::RunSnapshot;
use cairn_lang::diagnostic::nearest;
use cairn_store::Blob;
use cairn_store::port::Room;
use serde_json::json;

use super::desk::{Arrived, Desk};
use super::holdings::started;
use super::index::Summary;
use super::intake::{self, Roles, busy, require_role, triggers_of};
use super::lane::NewRun;
use super::plans::Ready;
use super::tries::{self, Tries};
use super::{Automations, Inner, unknown};
use crate::catalog::Identity;
use crate::error::{Error, Result};
use crate::record::{Action, Deed};

/// Where a fork begins.
#[derive(Clone, PartialEq, Debug)]
pub struct ForkPoint {
    /// Of which run.
    pub run: RunId,
    /// With which step.
    pub step: StepInstanceKey,
    /// With which earlier outputs changed.
    pub changes: Vec<Change>,
    /// On the workflow as it is now, and not as it was.
    pub on_new_plan: bool,
}

/// Somebody who asks for a fork.
#[derive(Clone, PartialEq, Debug)]
pub struct Forker {
    /// Who.
    pub by: By,
    /// What they may do.
    pub roles: Roles,
    /// Whether they may answer what runs ask of people. An agent may not.
    pub answers: bool,
}

impl Forker {
    /// A person on this machine.
    pub fn local(by: impl Into<By>) -> Self {
        Self { by: by.into(), roles: Roles::Any, answers: true }
    }
}

/// A fork that was begun.
#[derive(Clone, PartialEq, Debug)]
pub struct Forked {
    /// The new run.
    pub run: RunId,
    /// What it does again, and what it keeps.
    pub fork: Fork,
}

/// A fork that can be begun.
pub(super) struct Prepared {
    pub(super) fork: Fork,
    summary: Summary,
    state: RunState,
    ready: Arc<Ready>,
    started: cairn_core::event::guided::RunStarted,
}

impl Inner {
    /// What a fork would do.
    pub(super) async fn forked(
        &self,
        from: &ForkPoint,
        asker: &Forker,
        id: RunId,
    ) -> Result<Prepared> {
        let (summary, mut state) = self.reading.state(from.run).await?;
        // A state that is known in part only is not to be gone on from, here or elsewhere.
        self.store.log.status(summary.session).await?.require_known(summary.session)?;
        let Some(was) = state.started.clone() else {
            let refused = cairn_core::flow::Rejection::OutOfPlace("not begun");
            return Err(Error::RunRefused { run: from.run, refused });
        };
        let old = self.plans.get(was.workflow_hash).await?;
        let is_imported = super::papers::is_imported(&self.store, summary.session).await?;
        let (ready, started) = if from.on_new_plan {
            let found = self.workflows.find_same(&Identity::of_run(&was)).await?;
            if let Some(queued) = &state.queued {
                unfit(&found.compiled()?.plan, queued).map_or(Ok(()), Err)?;
            }
            let ready = self.plans.pin(&found).await?;
            let started = started(&found, &ready);
            (ready, started)
        } else {
            (Arc::clone(&old), was)
        };
        // In a loop or a cycle, the run is looked at as it was then: later turns and visits have
        // taken its place.
        if !from.step.loop_path.is_empty() || old.graph.is_in_cycle(&from.step.step) {
            state = self.reading.state_at(&summary, &from.step).await?;
        }
        // Of a run that came from elsewhere the steps are kept, and not what it was given.
        if is_imported {
            state.from_elsewhere();
            let (workflow, plan) = (Identity::of_run(&started), &ready.graph.plan);
            let input = self.given_here(&state, &workflow, plan).await?;
            self.require_computed(&summary, &state, &ready, &input).await?;
            state.queued.iter_mut().for_each(|q| q.input = Payload::inline(input.clone()));
        }
        let done = begun(&self.reading.past(from.run).await?.events);
        let decided = self.decisions.in_children(&ready.graph, &state).await?;
        let now_ms = self.host.now_ms();
        let (name, answers) = (asker.by.name.as_str(), asker.answers);
        let asker = Asker { name, answers, now_ms, decided: &decided };
        let was = from.on_new_plan.then_some(&old.graph);
        let place = Cut { step: &from.step, changes: &from.changes, was };
        let fork = Fork::new(&ready.graph, (&state, &done), place, asker, id);
        let fork = fork.map_err(|source| not_there(from.run, source, &done))?;
        Ok(Prepared { fork, summary, state, ready, started })
    }

    pub(super) async fn fork(self: &Arc<Self>, from: &ForkPoint, asker: &Forker) -> Result<Forked> {
        let id = self.host.run_id()?;
        self.fork_on_record(from, id, asker).await
    }

    /// Goes on from an earlier step in the run of this id, once it is on record who asked.
    pub(super) async fn fork_on_record(
        self: &Arc<Self>,
        from: &ForkPoint,
        id: RunId,
        asker: &Forker,
    ) -> Result<Forked> {
        let workflow = self.reading.found(from.run).await?.workflow;
        let changed: Vec<String> = from.changes.iter().map(|c| c.instance.to_string()).collect();
        let arguments = json!({
            "of": from.run.to_string(), "step": from.step.to_string(),
            "changed": changed, "onNewPlan": from.on_new_plan,
        });
        let by = asker.by.clone();
        let deed = Deed::to_run(by, Action::ForkRun, id, &workflow).with(&arguments);
        let fork = async |by| {
            let asker = Forker { by, ..asker.clone() };
            self.fork_as(from, id, &asker).await
        };
        self.record.change_by(deed, fork).await
    }

    /// Goes on from an earlier step, in the run of this id.
    async fn fork_as(
        self: &Arc<Self>,
        from: &ForkPoint,
        id: RunId,
        asker: &Forker,
    ) -> Result<Forked> {
        let Prepared { fork, summary, started, .. } = self.forked(from, asker, id).await?;
        let workflow = summary.identity();
        let session = triggers_of(&workflow);
        let mut tries = Tries::at(session);
        loop {
            let asked = match self.desk(&workflow).await {
                Ok(desk) => self.admit_fork(&desk, from, id, asker).await,
                Err(elsewhere @ Error::AdmittedElsewhere { .. }) => {
                    tries.elsewhere = Some(elsewhere.clone());
                    let parts = (started.clone(), asker.clone());
                    let handed = self.post.hand_fork_over(session, from, id, parts).await;
                    handed.and_then(|handed| handed.unwrap_or(Err(elsewhere))).map(drop)
                }
                Err(error) => Err(error),
            };
            if let Some(said) = tries.settle(asked) {
                return said.map(|()| Forked { run: id, fork });
            }
            self.host.sleep(tries::PAUSE).await;
        }
    }

    /// Admits a fork, as any run is admitted: its input was looked at when it was recorded.
    pub(super) async fn admit_fork(
        self: &Arc<Self>,
        desk: &Arc<Desk>,
        from: &ForkPoint,
        id: RunId,
        asker: &Forker,
    ) -> Result<()> {
        let claim = match desk.arrive(id).await {
            Arrived::New(claim) => claim,
            Arrived::Known => return Ok(()),
            Arrived::Unknown(session) => return Err(Error::LaneDown { session }),
            Arrived::Busy => return Err(busy(desk.workflow.id())),
        };
        if self.index.find(id).await?.is_some() {
            return Ok(());
        }
        let Prepared { fork, summary, state, ready, started } =
            self.forked(from, asker, id).await?;
        let mut queued = state.queued.ok_or_else(|| unknown(from.run))?;
        require_role(&ready.graph.plan, queued.trigger_id.as_ref(), &asker.roles)?;
        self.store.log.room(Room::Run).await?;
        let counted = self.count(desk, &ready.graph.plan)?;
        // Where the other run stood says nothing in this one's log.
        let (base, through) = (None, EventIndex(0));
        let workflow_hash = ready.hash;
        let kept = RunSnapshot { base, state: fork.state.clone(), through, workflow_hash };
        let bytes = kept.encode().map_err(|error| Error::Broken(error.to_string()))?;
        let snapshot_ref = SnapshotRef(Digest::of(&bytes));
        queued.parent = None;
        queued.by = Some(asker.by.name.clone());
        queued.via.clone_from(&asker.by.via);
        queued.forked_from = Some(ForkedFrom {
            node_id: state.last_node_id.unwrap_or(NodeId::from_bits(0)),
            run_id: from.run,
            session_id: summary.session,
            snapshot_ref,
            vouched: fork.vouched,
        });
        let Payload::Inline(_) = &queued.input else {
            return Err(Error::Broken("the run's input is not there".to_owned()));
        };
        let blob = Blob { kind: BlobKind::Snapshot, bytes };
        let forked = Some((fork.state, blob));
        let admitted = claim.epoch;
        self.begin(desk, NewRun { id, ready, queued, started, forked, admitted }).await?;
        counted.keep();
        Ok(())
    }
}

/// Why a run cannot follow a plan: what it was given is not what the plan takes.
pub(super) fn unfit(plan: &Plan, queued: &RunQueued) -> Option<Error> {
    let Payload::Inline(input) = &queued.input else { return None };
    let event = input.0.get("event").cloned().unwrap_or_default();
    intake::fitting(plan, queued.trigger_id.as_ref(), event).err()
}

/// Why a run cannot be gone on from somewhere, with the nearest step that it did.
fn not_there(run: RunId, source: NotThere, done: &Begun) -> Error {
    let given = match &source {
        NotThere::Unreached(given)
        | NotThere::NotInPlan(given)
        | NotThere::NotKept(given)
        | NotThere::Changed(given)
        | NotThere::Decided(given) => given,
        NotThere::Again(again) => &again.0,
        NotThere::Unfit(unfit) => &unfit.0,
    };
    let others =
        done.keys().map(|done| done.step.as_str()).filter(|step| *step != given.step.as_str());
    let nearest = nearest(given.step.as_str(), others).map(str::to_owned);
    Error::RunNotThere { run, source, nearest }
}

impl Automations {
    /// The run that a run was forked from, as its first event says.
    pub async fn forked_from(&self, run: &Summary) -> Result<Option<RunId>> {
        let log = &self.inner.store.log;
        let events = log.read_between(run.session, run.first, run.first).await?;
        let from = events.into_iter().find_map(|event| match event.data {
            EventData::RunQueued(queued) => queued.forked_from,
            _ => None,
        });
        Ok(from.map(|from| from.run_id))
    }
}
