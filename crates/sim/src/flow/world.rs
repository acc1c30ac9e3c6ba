//! A run in a world that does what it owes in any order, and that crashes.
//!
//! What is durable is the log, the children that were asked for, and what people remember.
//! Everything else is gone after a crash; a decision that did not become durable has not
//! happened, and neither have its effects.

use std::collections::{BTreeMap, BTreeSet};

use cairn_core::catalog::Class;
use cairn_core::digest::{Digest, WorkflowHash};
use cairn_core::event::engine::{ENGINE, EndStatus, Payload, RunQueued};
use cairn_core::event::guided::{RunStarted, SourceKind};
use cairn_core::event::{Event, EventData, NewEvent, Scope};
use cairn_core::flow::{Command, Decision, Effect, Fault, Graph, Limits, Moment, Rejection, Run};
use cairn_core::id::{EventId, EventIndex, RunId, SessionId, TaskId, TimerId};
use cairn_core::instance::StepInstanceKey;
use cairn_core::plan::{OnInterrupt, Step};
use cairn_core::projection::run::{RunState, StepStatus};
use serde_json::{Value, json};

use super::Violation;
use super::author::Written;
use super::chance::Chance;
use super::laws::{self, Laws};
use super::reference::{Cut, Notes};
use crate::random::Random;

pub(super) const RUN: RunId = RunId::from_bits(7);
pub(super) const SESSION: SessionId = SessionId::from_bits(1);

/// Something that is to be done.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Duty {
    Effect(Effect),
    /// A child is under way and will end.
    Child {
        child: RunId,
        instance: StepInstanceKey,
        input: Value,
    },
}

impl Duty {
    const fn effect(&self) -> Option<&Effect> {
        match self {
            Self::Effect(effect) => Some(effect),
            Self::Child { .. } => None,
        }
    }
}

/// What became of a command.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Reply {
    /// It is recorded.
    Taken,
    Refused(Rejection),
    /// The process crashed before it was recorded.
    Lost,
}

/// How rough a world is, in a hundred times.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weather {
    pub(super) crash: usize,
    pub(super) lose: usize,
    pub(super) pause: usize,
    pub(super) cancel: usize,
    pub(super) stray: usize,
}

pub(super) struct World {
    pub(super) random: Random,
    pub(super) chance: Chance,
    pub(super) weather: Weather,
    pub(super) graph: Graph,
    pub(super) run: Run,
    pub(super) input: Value,
    pub(super) log: Vec<Event>,
    /// What the log comes to.
    pub(super) folded: RunState,
    pub(super) duties: Vec<Duty>,
    pub(super) now_ms: u64,
    pub(super) notes: Notes,
    pub(super) laws: Laws,
    /// How often the world may still do what nobody asked for.
    pub(super) troubles: usize,
    /// Questions that were asked at any time.
    pub(super) tasks: BTreeSet<TaskId>,
    /// Timers that were set at any time.
    pub(super) timers: BTreeMap<TimerId, u64>,
    /// What loops gave that are over.
    pub(super) loops: BTreeMap<StepInstanceKey, Value>,
    steps_max: u32,
    minted: u128,
}

pub(super) struct NoSecrets;

impl cairn_core::flow::Secrets for NoSecrets {
    fn reveal(&self, _: &str) -> Option<String> {
        None
    }
}

impl World {
    /// A world in which a run was asked for.
    pub(super) fn new(seed: u64, graph: Graph, written: &Written) -> Result<Self, Violation> {
        let mut random = Random::new(seed.wrapping_mul(31).wrapping_add(7));
        let pick = |random: &mut Random, of: [usize; 4]| of.get(random.below(4)).copied();
        let mut some = |of| pick(&mut random, of).unwrap_or_default();
        let failing = some([0, 5, 20, 35]);
        let weather = Weather {
            crash: some([0, 2, 5, 15]),
            lose: some([0, 2, 5, 15]),
            pause: some([0, 0, 2, 8]),
            cancel: some([0, 0, 0, 3]),
            stray: some([0, 5, 10, 20]),
        };
        let input = json!({"event": {"payload": written.payload, "at": "now"}, "env": {}});
        let limits = Limits { steps_max: written.steps_max, ..Limits::default() };
        let mut world = Self {
            random,
            chance: Chance { seed, failing },
            weather,
            run: Run::new(RunState::new(RUN), limits),
            input,
            log: Vec::new(),
            folded: RunState::new(RUN),
            duties: Vec::new(),
            now_ms: 1_000,
            notes: Notes::default(),
            laws: Laws::default(),
            troubles: 60,
            tasks: BTreeSet::new(),
            timers: BTreeMap::new(),
            loops: BTreeMap::new(),
            steps_max: written.steps_max,
            minted: 0,
            graph,
        };
        let queued = world.queued(written);
        world.record(vec![queued])?;
        world.run.state = world.folded.clone();
        Ok(world)
    }

    fn queued(&self, written: &Written) -> NewEvent {
        let queued = RunQueued {
            advance: None,
            by: None,
            depth: 0,
            forked_from: None,
            input: Payload::inline(self.input.clone()),
            parent: None,
            trigger_id: written.trigger.as_ref().and_then(|trigger| trigger.parse().ok()),
            via: None,
            workflow_id: self.graph.plan.workflow_id.clone(),
            workflow_source_ref: None,
            workspace: None,
        };
        NewEvent { id: EventId::from_bits(0), scope: Scope::Run(RUN), data: queued.into() }
    }

    fn record(&mut self, events: Vec<NewEvent>) -> Result<(), Violation> {
        for event in events {
            let event = event.at(SESSION, EventIndex(self.log.len() as u64));
            // What the run knows is held against what is read back.
            let line = event.encode().map_err(|error| Violation(error.to_string()))?;
            let event = Event::decode(&line).map_err(|error| Violation(error.to_string()))?;
            self.folded.apply(&event);
            self.note_loop(&event.data);
            self.log.push(event);
        }
        Ok(())
    }

    /// The log has no output of a loop: it is read when the loop is over.
    fn note_loop(&mut self, data: &EventData) {
        let EventData::LoopExited(exited) = data else { return };
        let step = self.folded.steps.get(&exited.instance);
        if let Some(Payload::Inline(output)) = step.and_then(|step| step.output.as_ref()) {
            self.loops.insert(exited.instance.clone(), output.0.clone());
        }
    }

    pub(super) fn start(&mut self) -> Result<(), Violation> {
        let started = RunStarted {
            assets: Vec::new(),
            goal: None,
            workflow_hash: WorkflowHash(Digest::of(b"plan")),
            workflow_id: self.graph.plan.workflow_id.clone(),
            workflow_source_kind: SourceKind::Project,
            workflow_source_ref: "w".to_owned(),
            workspace: None,
        };
        match self.tell(Command::Start(started))? {
            Reply::Refused(rejection) => Err(Violation(format!("starting: {rejection}"))),
            Reply::Taken | Reply::Lost => Ok(()),
        }
    }

    /// Whether something happens that nobody asked for.
    pub(super) fn trouble(&mut self, percent: usize) -> bool {
        let happens = self.troubles > 0 && self.random.percent(percent);
        self.troubles -= usize::from(happens);
        happens
    }

    /// Says something to the run, and records what it decides unless a crash comes before.
    pub(super) fn tell(&mut self, command: Command) -> Result<Reply, Violation> {
        let recovers = command == Command::Recover;
        let resumes = matches!(command, Command::Resume { .. });
        let minted = &mut self.minted;
        let mut random = || {
            *minted += 1;
            *minted
        };
        let mut moment = Moment { now_ms: self.now_ms, random: &mut random };
        let decision = match self.run.decide(&self.graph, command, &mut moment) {
            Ok(decision) => decision,
            Err(rejection) => {
                laws::same(&self.folded, &self.run.state, "after a refusal")?;
                return Ok(Reply::Refused(rejection));
            }
        };
        if self.trouble(self.weather.lose) {
            self.crash()?;
            return Ok(Reply::Lost);
        }
        let rested = (self.folded.paused && !resumes) || self.folded.cancel_requested;
        self.laws.decided(&decision, rested, recovers)?;
        let before = self.log.len();
        self.record(decision.events.clone())?;
        self.note_cuts(before);
        laws::same(&self.folded, &self.run.state, "after a decision")?;
        self.take(decision);
        Ok(Reply::Taken)
    }

    fn take(&mut self, decision: Decision) {
        for effect in decision.effects {
            match &effect {
                Effect::Task(task) => {
                    self.tasks.insert(*task);
                    continue;
                }
                Effect::Timer { timer, due_ms } => drop(self.timers.insert(*timer, *due_ms)),
                Effect::Respond { .. } | Effect::End(_) => continue,
                _ => {}
            }
            self.duties.push(Duty::Effect(effect));
        }
    }

    /// Everything is forgotten but what is durable, and the run goes on from that.
    pub(super) fn crash(&mut self) -> Result<(), Violation> {
        let folded = RunState::fold(RUN, &self.log);
        laws::same(&folded, &self.folded, "folded at once and one by one")?;
        let limits = Limits { steps_max: self.steps_max, ..Limits::default() };
        self.run = Run::new(folded, limits);
        if self.folded.end.is_some() {
            return Ok(());
        }
        // Until a recovery is recorded, what was owed is what the last process left.
        let owed = self.duties.clone();
        self.laws.cut_off(owed.iter().filter_map(Duty::effect));
        if self.folded.started.is_none() {
            return self.start();
        }
        let (before, paused) = (self.log.len(), self.folded.paused);
        match self.tell(Command::Recover)? {
            // It crashed again, and recovered there.
            Reply::Lost => Ok(()),
            Reply::Refused(rejection) => Err(Violation(format!("recovering: {rejection}"))),
            Reply::Taken => {
                self.duties.drain(..owed.len());
                self.hold_owed(&owed, before, paused)
            }
        }
    }

    /// Notes the tries that were given up or made again without anybody being asked.
    fn note_cuts(&mut self, from: usize) {
        for event in self.log.iter().skip(from) {
            let (instance, attempt, cut) = match &event.data {
                EventData::StepFailed(e) if e.error.code == "STEP_INTERRUPTED" => {
                    (&e.instance, e.attempt, Cut::Failed)
                }
                EventData::StepResolved(e) if e.by == ENGINE => {
                    (&e.instance, e.attempt, Cut::Repeated)
                }
                _ => continue,
            };
            self.notes.cuts.insert((instance.clone(), attempt), cut);
        }
    }

    /// Holds what is owed after a crash against what was owed before it.
    fn hold_owed(&self, owed: &[Duty], from: usize, paused: bool) -> Result<(), Violation> {
        if self.folded.end.is_some() {
            return Ok(());
        }
        let now: Vec<&Effect> = self.duties.iter().filter_map(Duty::effect).collect();
        for duty in owed {
            let kept = match duty {
                Duty::Child { instance, .. } | Duty::Effect(Effect::Child { instance, .. }) => {
                    // What it is given may have to be evaluated again first.
                    let again = |effect: &&Effect| match effect {
                        Effect::Child { instance: key, .. } => key == instance,
                        effect => computes(effect, instance),
                    };
                    now.iter().any(again)
                }
                Duty::Effect(Effect::Perform { instance, attempt, key, class })
                    if *class == Class::Effectful =>
                {
                    match self.step(instance).map(|step| step.on_interrupt) {
                        Some(OnInterrupt::Retry) => {
                            let (instance, attempt) = (instance.clone(), attempt + 1);
                            let again =
                                Effect::Perform { instance, attempt, key: *key, class: *class };
                            paused || now.contains(&&again)
                        }
                        _ => self.was_cut(instance, from),
                    }
                }
                Duty::Effect(
                    Effect::Perform { instance, .. } | Effect::Evaluate { instance, .. },
                ) => paused || now.iter().any(|effect| computes(effect, instance)),
                Duty::Effect(effect @ Effect::Timer { timer, .. }) => {
                    !self.folded.timers.contains_key(timer) || now.contains(&effect)
                }
                Duty::Effect(Effect::CallOff) => false,
                Duty::Effect(effect) => now.contains(&effect),
            };
            if !kept {
                return Err(Violation(format!(
                    "{duty:?} was owed before the crash, and not after"
                )));
            }
        }
        for effect in now {
            let before = owed.contains(&Duty::Effect(effect.clone()));
            if !before && !self.is_new(effect, owed, from) {
                return Err(Violation(format!(
                    "{effect:?} is owed after the crash, and was not before"
                )));
            }
        }
        Ok(())
    }

    /// Whether the recovery itself says that a try was cut off.
    fn was_cut(&self, instance: &StepInstanceKey, from: usize) -> bool {
        self.log.iter().skip(from).any(|event| match &event.data {
            EventData::StepFailed(failed) => failed.instance == *instance,
            EventData::StepInterrupted(cut) => cut.instance == *instance,
            _ => false,
        })
    }

    /// Whether what is owed follows from what the recovery recorded, or is asked again from
    /// its beginning.
    fn is_new(&self, effect: &Effect, owed: &[Duty], from: usize) -> bool {
        let mut recorded = self.log.iter().skip(from).map(|event| &event.data);
        match effect {
            Effect::Perform { instance, class: Class::Effectful, .. } => recorded.any(
                |data| matches!(data, EventData::StepStarted(step) if step.instance == *instance),
            ),
            Effect::Timer { timer, .. } => recorded
                .any(|data| matches!(data, EventData::TimerSet(set) if set.timer_id == *timer)),
            Effect::Child { instance, .. } => {
                let known = owed.iter().any(
                    |duty| matches!(duty, Duty::Child { instance: key, .. } if key == instance),
                );
                known
                    || recorded.any(
                        |data| matches!(data, EventData::StepWaiting(w) if w.instance == *instance),
                    )
            }
            Effect::Perform { instance, .. } | Effect::Evaluate { instance, .. } => {
                let computed = |duty: &Duty| match duty {
                    Duty::Effect(effect) => computes(effect, instance),
                    Duty::Child { .. } => false,
                };
                // It may also be new, behind a step that was cut off; and while the run rests,
                // what was answered is asked again.
                owed.iter().any(computed)
                    || self.folded.paused
                    || self.log.len() > from
                    || self
                        .folded
                        .steps
                        .get(instance)
                        .is_some_and(|s| s.status == StepStatus::Waiting)
            }
            _ => true,
        }
    }

    pub(super) fn step(&self, instance: &StepInstanceKey) -> Option<&Step> {
        self.graph.plan.steps.iter().find(|step| step.id == instance.step)
    }

    /// What a step is given: what was recorded with its intent, else what it comes to now.
    pub(super) fn settings(
        &self,
        instance: &StepInstanceKey,
    ) -> Result<Result<Value, Fault>, Violation> {
        let now = self.run.settings(&self.graph, instance, &NoSecrets);
        let step = self.folded.steps.get(instance);
        let Some(Payload::Inline(recorded)) = step.and_then(|step| step.input.as_ref()) else {
            return Ok(now);
        };
        match now {
            Ok(now) if now != recorded.0 => Err(Violation(format!(
                "{instance} is recorded with {} and performed with {now}",
                recorded.0
            ))),
            _ => Ok(Ok(recorded.0.clone())),
        }
    }

    /// How the run ended.
    pub(super) fn ended(&self) -> Option<EndStatus> {
        self.folded.end.as_ref().map(cairn_core::projection::run::End::status)
    }
}

fn computes(effect: &Effect, key: &StepInstanceKey) -> bool {
    match effect {
        Effect::Evaluate { instance, .. } => instance == key,
        Effect::Perform { instance, class, .. } => *class != Class::Effectful && instance == key,
        _ => false,
    }
}
