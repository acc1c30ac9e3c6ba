//! What the world knows: what was acknowledged to whoever asked, what reached the disk, and what
//! was done outside. Nothing of how the engine works.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cairn_core::digest::Digest;
use cairn_core::event::engine::StepStarted;
use cairn_core::event::{Event, EventData};
use cairn_core::id::{RunId, SessionId, TimerId};
use cairn_core::instance::StepInstanceKey;
use cairn_core::projection::run::RunStatus;

use super::executor::Process;
use super::workflows;
use super::world::is_refusal;

/// The book. Clones are the same one.
#[derive(Clone, Default)]
pub(super) struct Book(Arc<Mutex<Entries>>);

#[derive(Default)]
pub(super) struct Entries {
    pub(super) violations: Vec<String>,
    pub(super) runs: BTreeMap<RunId, RunEntry>,
    /// Everything that was recorded, in the order in which it reached the disk.
    pub(super) log: Vec<Event>,
    /// Who recorded it.
    pub(super) by: Vec<Process>,
    fired: BTreeSet<TimerId>,
    /// Who performed which try.
    tries: BTreeMap<Try, Process>,
    /// Who may have been replaced as the owner of a session without knowing it.
    pub(super) replaced: BTreeSet<Process>,
    /// What a request with a key was told.
    pub(super) keys: BTreeMap<(String, String), Vec<Told>>,
    /// Runs that somebody was told of.
    pub(super) promised: BTreeSet<RunId>,
    /// Who waits for the end of which run.
    pub(super) waiting: BTreeSet<(Process, RunId)>,
    /// Runs whose cancellation was acknowledged.
    pub(super) cancelled: BTreeSet<RunId>,
    /// The keys that are recorded as received, and the run that each asks for.
    pub(super) received: BTreeMap<(String, String), RunId>,
    /// What was said to runs, by the name under which it was said.
    pub(super) said: BTreeMap<String, Said>,
    /// The children that their parents were told of.
    children_told: BTreeSet<(RunId, RunId)>,
    /// The runs that are over, as every process lists them when everything is quiet.
    pub(super) listed: Vec<BTreeMap<RunId, RunStatus>>,
    /// The key under which each step was performed.
    step_keys: BTreeMap<(RunId, StepInstanceKey), Digest>,
}

/// Something that was said to a run, under a name that nobody else has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Said {
    /// It was acknowledged.
    Done(RunId),
    /// It was refused, and so it never happens.
    Refused(RunId, String),
}

type Try = (RunId, StepInstanceKey, u32);

/// What somebody was told who asked for a run.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Told {
    /// It is there.
    Accepted(RunId),
    /// It never will be.
    Refused(String),
    /// Nothing: the process ended before, or could not say.
    Nothing,
}

/// A run as its events tell it.
#[derive(Clone, Debug)]
pub(super) struct RunEntry {
    pub(super) workflow: String,
    pub(super) session: SessionId,
    pub(super) is_started: bool,
    pub(super) end: Option<&'static str>,
    /// Whether it is recorded that somebody cancelled it.
    pub(super) is_cancelled: bool,
    /// Whether it was begun elsewhere: what its history says of people counts for nothing.
    pub(super) is_imported: bool,
    /// Whether its time is over, so that it may be gone.
    pub(super) is_retired: bool,
    intents: BTreeSet<(StepInstanceKey, u32)>,
}

impl Book {
    pub(super) fn open(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn violation(&self, what: String) {
        self.open().violations.push(what);
    }
}

impl Entries {
    fn wrong(&mut self, what: String) {
        self.violations.push(what);
    }

    /// Something reached the disk.
    pub(super) fn recorded(&mut self, by: Process, event: Event) {
        if let EventData::TriggerReceived(received) = &event.data {
            let key = (received.workflow_id.clone(), received.key.clone());
            self.received.insert(key, received.run_id);
        }
        if let Some(run) = event.scope.run() {
            self.of_run(run, &event);
        }
        self.log.push(event);
        self.by.push(by);
    }

    /// A session was taken in with this history, which nobody here wrote.
    pub(super) fn adopted(&mut self, history: &[Event]) {
        for event in history {
            let Some(run) = event.scope.run() else { continue };
            self.of_run(run, event);
            if let Some(entry) = self.runs.get_mut(&run) {
                entry.is_imported = true;
            }
        }
    }

    /// Whether every run is over that was begun here. One from elsewhere may rest for good.
    pub(super) fn all_over(&self) -> bool {
        self.runs.values().all(|run| run.end.is_some() || run.is_imported)
    }

    /// Somebody was told something of a run. Of one that is there nobody is told that it is not,
    /// or that something broke.
    pub(super) fn told<T>(&mut self, run: RunId, said: &cairn_engine::Result<T>) {
        let Err(error) = said else { return };
        let is_there = self.runs.get(&run).is_some_and(|entry| !entry.is_retired);
        if is_there && ["RUN_NOT_FOUND", "INVARIANT_VIOLATION"].contains(&error.code()) {
            self.wrong(format!("{run} is there, and somebody is told {}: {error}", error.code()));
        }
    }

    /// Somebody said something to a run under a name of their own, and was told this.
    pub(super) fn said(&mut self, name: &str, run: RunId, said: &cairn_engine::Result<()>) {
        self.told(run, said);
        let said = match said {
            Ok(()) => Said::Done(run),
            Err(error) if is_refusal(error.code()) => Said::Refused(run, error.to_string()),
            // Nothing is promised: it may have happened.
            Err(_) => return,
        };
        self.said.insert(name.to_owned(), said);
    }

    /// Whether something of a run is known.
    pub(super) fn knows(&self, run: RunId) -> bool {
        self.runs.contains_key(&run)
    }

    fn of_run(&mut self, run: RunId, event: &Event) {
        if let EventData::RunQueued(queued) = &event.data {
            let entry = RunEntry {
                workflow: queued.workflow_id.clone(),
                session: event.session,
                is_started: false,
                end: None,
                is_cancelled: false,
                is_imported: false,
                is_retired: false,
                intents: BTreeSet::new(),
            };
            if let Some(known) = self.runs.insert(run, entry) {
                self.wrong(format!("{run} is asked for twice: in {} too", known.session));
            }
            return;
        }
        let name = event.data.kind().name();
        if matches!(event.data, EventData::RunRetired(_)) {
            self.runs.entry(run).and_modify(|entry| entry.is_retired = true);
            return;
        }
        if matches!(event.data, EventData::SnapshotTaken(_)) {
            return;
        }
        let Some(entry) = self.runs.get_mut(&run) else {
            return self.wrong(format!("{name} of {run}, which was never asked for"));
        };
        let (session, end) = (entry.session, entry.end);
        if session != event.session {
            self.wrong(format!(
                "{name} of {run} is in {}, and the run in {session}",
                event.session
            ));
            return;
        }
        let begins = matches!(event.data, EventData::RunStarted(_) | EventData::StepStarted(_));
        if entry.is_cancelled && begins {
            self.wrong(format!("{name} of {run} behind its cancel"));
        }
        if let Some(end) = end {
            return self.wrong(format!("{name} of {run} behind its {end}"));
        }
        self.within(run, event);
    }

    fn within(&mut self, run: RunId, event: &Event) {
        let Some(entry) = self.runs.get_mut(&run) else { return };
        match &event.data {
            EventData::RunStarted(_) => {
                entry.is_started = true;
                let workflow = entry.workflow.clone();
                self.hold_limit(&workflow, run);
            }
            EventData::StepStarted(StepStarted { instance, attempt, .. }) => {
                entry.intents.insert((instance.clone(), *attempt));
            }
            EventData::TimerFired(fired) if !self.fired.insert(fired.timer_id) => {
                self.wrong(format!("timer {} of {run} fired twice", fired.timer_id));
            }
            EventData::ChildFinished(told)
                if !self.children_told.insert((run, told.child_run_id)) =>
            {
                self.wrong(format!("{run} is told twice of {}", told.child_run_id));
            }
            EventData::RunCancelRequested(_) => entry.is_cancelled = true,
            EventData::RunCompleted(_) | EventData::RunFailed(_) | EventData::RunCancelled(_) => {
                entry.end = Some(event.data.kind().name());
            }
            _ => {}
        }
    }

    /// No more runs of a workflow are under way than may be.
    fn hold_limit(&mut self, workflow: &str, run: RunId) {
        let written = workflows::ALL.iter().find(|written| written.id == workflow);
        let most = written.map_or(usize::MAX, |written| written.at_once);
        let under_way = |entry: &&RunEntry| {
            entry.workflow == workflow && entry.is_started && entry.end.is_none()
        };
        let count = self.runs.values().filter(under_way).count();
        if count > most {
            self.wrong(format!("{run} begins as the {count}th of {workflow}, which allows {most}"));
        }
    }

    /// Something is about to be done outside.
    pub(super) fn performs(&mut self, process: Process, step: Try, key: Digest) {
        let (run, instance, attempt) = &step;
        let known = *self.step_keys.entry((*run, instance.clone())).or_insert(key);
        if known != key {
            self.wrong(format!("{instance} of {run} is performed under two keys"));
        }
        // Whoever was replaced may still do what it had recorded before.
        let is_owner = !self.replaced.contains(&process);
        if is_owner && self.cancelled.contains(run) {
            self.wrong(format!("{instance} of {run} is performed, whose cancel was acknowledged"));
        }
        match self.runs.get(run) {
            None => self.wrong(format!("{instance} of {run} is performed, which is not recorded")),
            Some(entry) if !entry.intents.contains(&(instance.clone(), *attempt)) => {
                self.wrong(format!("try {attempt} of {instance} of {run} is performed unrecorded"));
            }
            Some(RunEntry { end: Some(end), .. }) if is_owner => {
                self.wrong(format!("{instance} of {run} is performed behind its {end}"));
            }
            Some(_) => {}
        }
        if let Some(other) = self.tries.insert(step.clone(), process) {
            let (run, instance, attempt) = &step;
            self.wrong(format!(
                "try {attempt} of {instance} of {run} is performed by {process:?} after {other:?}"
            ));
        }
    }
}
