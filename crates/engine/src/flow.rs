//! Automations: runs that the engine performs by itself.
//!
//! In reading order: whoever asks for a run goes through [`intake`], is admitted at the [`desk`]
//! of the workflow, and begins in a [`lane`]: one session, one owner, one task that decides for
//! all its runs and commits what it decided as one. Whatever came in while a commit was under way
//! goes into the next. Nothing is performed before the intent to do so is durable. Who owns what,
//! and who goes on with what was left, is in [`ownership`]; [`sessions`] says which session new runs
//! go into, [`telling`] how something is said to a run wherever it is, and [`waiting`] how its end
//! is waited for.
//!
//! Three rooms need nothing of that: [`reading`] knows runs as their logs have them, [`workflows`]
//! finds files, and [`refusals`] keeps what was refused.

pub mod chain;
mod desk;
mod failures;
mod forks;
mod hand;
mod index;
mod intake;
mod lane;
mod lanes;
mod mail;
mod ownership;
mod payload;
mod perform;
mod plans;
mod rate;
mod reading;
mod refusals;
mod retire;
pub mod schedule;
mod sessions;
mod snapshots;
mod tail;
mod telling;
pub mod trace;
mod waiting;
mod watch;
mod workflows;

pub use forks::{ForkPoint, Forked};
pub use index::{Filter, Summary};
pub use intake::{Asked, Call, Roles, RunRequest, TriggerEvent};
pub use lanes::Fallen;
pub use perform::{Bindings, Environment, NoSettings, Redact};
pub use reading::Past;
pub use refusals::Refused;
pub use retire::{RETENTION, Tidied};
pub use watch::{Ended, Observer, Refusal, Told, Watch};

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cairn_core::catalog::Catalog as Types;
use cairn_core::digest::WorkflowHash;
use cairn_core::event::By;
use cairn_core::event::engine::InterruptDecision;
use cairn_core::flow::{Answer, Command, Limits};
use cairn_core::id::{ChangeId, EventId, RunId, SessionId, TaskId};
use cairn_core::instance::StepInstanceKey;
use cairn_core::plan::{Plan, Retention};
use cairn_core::projection::run::RunState;
use cairn_core::text::Slug;
use cairn_store::Store;
use tokio::sync::Semaphore;

use crate::catalog::{Catalog, Identity};
use crate::error::{Error, Result};
use crate::host::Host;
use crate::performer::Performers;
use lanes::Lanes;
use plans::Plans;

/// How often runs are looked through for those whose time is over.
const TIDY_EVERY: Duration = Duration::from_secs(60 * 60);
/// How long whoever starts has other things to do.
const TIDY_FIRST: Duration = Duration::from_secs(60);

/// Runs automations. Clones share everything.
#[derive(Clone)]
pub struct Automations {
    inner: Arc<Inner>,
}

/// What an engine of automations is made of.
pub struct Parts {
    /// The machine it runs on.
    pub host: Arc<dyn Host>,
    /// Where everything is kept.
    pub store: Store,
    /// The workflows.
    pub catalog: Arc<Catalog>,
    /// The step types.
    pub types: Types,
    /// What performs them.
    pub performers: Performers,
    /// What gives settings and secrets.
    pub environment: Arc<dyn Environment>,
    /// What evaluates what must not be evaluated in this process.
    pub evaluator: Arc<dyn Evaluator>,
}

/// How long runs stay left before somebody goes on with them.
const LOOK_AFTER: std::time::Duration = std::time::Duration::from_secs(5);

/// How an engine of automations behaves.
#[derive(Clone, Debug)]
pub struct Options {
    /// How many steps are performed at once.
    pub steps_at_once: usize,
    /// How many steps of one workflow are performed at once.
    pub steps_at_once_per_workflow: usize,
    /// How many runs of one workflow are under way at once, unless it says so itself.
    pub runs_at_once: usize,
    /// How many runs of a workflow may begin within a minute, unless it says so itself.
    pub runs_per_minute: u32,
    /// How much a run may do.
    pub limits: Limits,
    /// How long a step may take that does not say so.
    pub step_timeout: Duration,
    /// From which size on a value is kept beside the log.
    pub inline_max: usize,
    /// How large a session may get before new runs go into another.
    pub session_max: u64,
    /// How old a session may get before new runs go into another.
    pub session_age_max: Duration,
    /// How long runs are kept whose workflow does not say so.
    pub retention: Retention,
    /// After how many events of a run its state is stored, so that they need not be read again.
    pub snapshot_every: usize,
    /// How long an agent waits for its next step before it is told how the run goes.
    pub hand_patience: Duration,
    /// Tells people of trouble that no caller hears of.
    pub trouble: fn(&str),
}

impl Default for Options {
    fn default() -> Self {
        Self {
            steps_at_once: 256,
            steps_at_once_per_workflow: 64,
            runs_at_once: 256,
            runs_per_minute: 60,
            limits: Limits::default(),
            step_timeout: Duration::from_secs(30),
            inline_max: 32 << 10,
            session_max: 64 << 20,
            session_age_max: Duration::from_secs(24 * 60 * 60),
            retention: RETENTION,
            snapshot_every: 2_000,
            hand_patience: Duration::from_secs(20),
            trouble: |_| {},
        }
    }
}

/// What came of the steps that were under way when an engine stopped.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Left {
    /// How many came to an end while it was drained.
    pub finished: usize,
    /// Those that did not. Whoever recovers their runs goes on with them as they say.
    pub parked: Vec<(RunId, StepInstanceKey)>,
}

/// Evaluates what must not be evaluated in this process.
#[async_trait::async_trait]
pub trait Evaluator: Send + Sync {
    /// The value of settings or of an expression, given what they can look at.
    async fn evaluate(
        &self,
        source: &serde_json::Value,
        is_expression: bool,
        context: serde_json::Map<String, serde_json::Value>,
    ) -> Result<serde_json::Value, cairn_core::flow::Fault>;
}

/// There is none: whatever needs one fails.
pub struct NoEvaluator;

#[async_trait::async_trait]
impl Evaluator for NoEvaluator {
    async fn evaluate(
        &self,
        _: &serde_json::Value,
        _: bool,
        _: serde_json::Map<String, serde_json::Value>,
    ) -> Result<serde_json::Value, cairn_core::flow::Fault> {
        let message = "this program evaluates paths and simple filters only";
        Err(cairn_core::flow::Fault::new("EXPR_WORKER", message))
    }
}

pub(crate) struct Inner {
    host: Arc<dyn Host>,
    store: Store,
    workflows: workflows::Workflows,
    performers: Performers,
    environment: Arc<dyn Environment>,
    evaluator: Arc<dyn Evaluator>,
    options: Options,
    plans: Plans,
    lanes: Lanes,
    slots: Arc<Semaphore>,
    index: Arc<index::Index>,
    reading: reading::Reading,
    refusals: refusals::Refusals,
    watchers: watch::Watchers,
    /// Held while others are told of a failure.
    telling: tokio::sync::Mutex<()>,
    tail: tail::Tail,
}

impl Automations {
    /// An engine over a store. Nothing runs before something is asked for, or
    /// [`Self::recover`] is called.
    #[must_use]
    pub fn new(parts: Parts, options: Options) -> Self {
        let Parts { host, store, catalog, types, performers, environment, evaluator } = parts;
        let index = Arc::new(index::Index::new(Arc::clone(&host), store.clone()));
        let inner = Inner {
            reading: reading::Reading::new(store.clone(), Arc::clone(&index)),
            workflows: workflows::Workflows::new(Arc::clone(&host), catalog),
            plans: Plans::new(store.clone(), types),
            index,
            refusals: refusals::Refusals::new(Arc::clone(&host), store.clone()),
            slots: Arc::new(Semaphore::new(options.steps_at_once)),
            lanes: Lanes::default(),
            watchers: watch::Watchers::default(),
            telling: tokio::sync::Mutex::default(),
            tail: tail::Tail::default(),
            host,
            store,
            performers,
            environment,
            evaluator,
            options,
        };
        Self { inner: Arc::new(inner) }
    }

    /// Goes on with every run that is not over and that nobody else performs.
    pub async fn recover(&self) -> Result<usize> {
        self.inner.recover().await
    }

    /// Recovers, and then goes on with whatever other processes leave, until it is dropped.
    pub async fn look_after_all(&self) {
        let mut found = self.recover().await.map(drop);
        loop {
            // What cannot be gone on with stays as it is, for people to look at.
            if let Err(error) = found {
                (self.inner.options.trouble)(&format!("runs that were left: {error}"));
            }
            self.inner.host.sleep(LOOK_AFTER).await;
            found = self.inner.take_up_all().await.map(drop);
        }
    }

    /// Asks for a run. The same key asks for the same run, once, and gets the same answer.
    ///
    /// Whoever asks, the same is looked at in the same order: the trigger and its key, the role,
    /// the input, the limits, the settings. Of what is refused nothing is recorded.
    pub async fn submit(&self, request: RunRequest) -> Result<Asked> {
        self.inner.submit(request).await
    }

    /// Asks for a run, for somebody who waits for what comes of it.
    pub async fn call(&self, request: RunRequest) -> Result<Call> {
        self.inner.call(request).await
    }

    /// What this process decides for and cannot at the moment.
    #[must_use]
    pub fn fallen(&self) -> Vec<Fallen> {
        self.inner.lanes.fallen()
    }

    /// How many lanes fell since this process began.
    #[must_use]
    pub fn falls(&self) -> u64 {
        self.inner.lanes.falls()
    }

    /// How many runs are under way and how many wait for their turn, by workflow, as far as this
    /// process admits them.
    #[must_use]
    pub fn admitted(&self) -> BTreeMap<String, (usize, usize)> {
        self.inner.lanes.counts()
    }

    /// Follows what happens to runs from now on.
    #[must_use]
    pub fn watch(&self) -> Watch {
        self.inner.watchers.watch()
    }

    /// Has somebody told of everything that is recorded from now on.
    pub fn observe(&self, observer: Arc<dyn Observer>) {
        self.inner.watchers.observe(observer);
    }

    /// Tells those who watch what other processes record, too, until it is dropped.
    ///
    /// What is there already counts as known.
    pub async fn follow_others(&self) -> Result<()> {
        self.inner.follow_others().await
    }

    /// The plan that runs are pinned to.
    pub async fn plan(&self, hash: WorkflowHash) -> Result<Plan> {
        Ok(self.inner.plans.get(hash).await?.graph.plan.clone())
    }

    /// Waits until a run is over.
    pub async fn ended(&self, run: RunId) -> Result<Ended> {
        self.inner.ended(run).await
    }

    /// The runs there are, latest first.
    pub async fn list(&self, filter: &Filter) -> Result<Vec<Summary>> {
        self.inner.reading.list(filter).await
    }

    /// Everything that is recorded of a run.
    pub async fn past(&self, run: RunId) -> Result<Past> {
        self.inner.reading.past(run).await
    }

    /// How a run is, without its events: of a long run, far less has to be read.
    pub async fn state(&self, run: RunId) -> Result<(Summary, RunState)> {
        self.inner.reading.state(run).await
    }

    /// Ends a run.
    pub async fn cancel(&self, run: RunId, by: impl Into<By>, reason: &str) -> Result<()> {
        let (by, reason) = (by.into(), reason.to_owned());
        self.inner.tell(run, Command::Cancel { by, reason }).await
    }

    /// What a trigger of a workflow was refused.
    pub async fn refused(&self, workflow: &Identity, trigger: &Slug) -> Result<Option<Refused>> {
        self.inner.refusals.of(workflow, trigger).await
    }

    /// The run that a trigger of a workflow started with a key, if it did.
    pub async fn asked_before(
        &self,
        workflow: &str,
        trigger: &Slug,
        key: &str,
    ) -> Result<Option<RunId>> {
        let found = self.inner.workflows.find(workflow).await?;
        let run = intake::keyed(found.identity(), trigger, key);
        match self.inner.reading.state(run).await {
            Ok(_) => Ok(Some(run)),
            Err(Error::RunUnknown(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Lets a run begin no more steps.
    pub async fn pause(&self, run: RunId, by: impl Into<By>) -> Result<()> {
        let change = self.inner.change_id()?;
        self.inner.tell(run, Command::Pause { change, by: by.into() }).await
    }

    /// Lets a paused run go on.
    pub async fn resume(&self, run: RunId, by: impl Into<By>) -> Result<()> {
        let change = self.inner.change_id()?;
        self.inner.tell(run, Command::Resume { change, by: by.into() }).await
    }

    /// Answers a question that a run asked.
    pub async fn answer(
        &self,
        run: RunId,
        task: TaskId,
        by: impl Into<By>,
        answer: Answer,
    ) -> Result<()> {
        self.inner.tell(run, Command::Answer { task, by: by.into(), answer }).await
    }

    /// Says what became of a step that a crash cut off.
    pub async fn resolve(
        &self,
        run: RunId,
        instance: StepInstanceKey,
        by: impl Into<By>,
        decision: InterruptDecision,
    ) -> Result<()> {
        self.inner.tell(run, Command::Resolve { instance, by: by.into(), decision }).await
    }

    /// Says what came of a step that was handed to an agent.
    pub async fn acknowledge(
        &self,
        run: RunId,
        instance: StepInstanceKey,
        output: serde_json::Value,
    ) -> Result<()> {
        let by = "agent".into();
        self.inner.tell(run, Command::Acknowledge { instance, by, output }).await
    }

    /// What a fork of a run would do again, and what it would keep.
    pub async fn preview(&self, from: &ForkPoint) -> Result<cairn_core::flow::Fork> {
        let id = self.inner.run_id()?;
        Ok(self.inner.forked(from, id).await?.fork)
    }

    /// Goes on from an earlier step, in a run of its own, for somebody who has these roles.
    pub async fn fork(&self, from: &ForkPoint, by: impl Into<By>, roles: &Roles) -> Result<Forked> {
        self.inner.fork(from, &by.into(), roles).await
    }

    /// Tells the workflows that take a run's failure, unless they know; gives their runs.
    pub async fn tell_of_failure(&self, run: RunId) -> Result<Vec<RunId>> {
        self.inner.tell_of_failure(run).await
    }

    /// Does a run again with the same event, on the workflow as it is now, for somebody who has
    /// these roles.
    pub async fn replay(&self, run: RunId, by: impl Into<By>, roles: Roles) -> Result<Asked> {
        self.inner.replay(run, by.into(), roles).await
    }

    /// Whether this process performs a run.
    pub async fn is_here(&self, run: RunId) -> Result<bool> {
        self.inner.is_here(run).await
    }

    /// Whether some process performs the runs of a session, as far as can be seen without
    /// taking it.
    pub async fn is_performed(&self, session: SessionId) -> bool {
        self.inner.lanes.get(session).is_some() || self.inner.store.mailbox.is_open(session).await
    }

    /// Runs that are asked for from now on are begun, and their steps left to whoever recovers
    /// them.
    pub fn hold(&self) {
        self.inner.lanes.hold();
    }

    /// Begins nothing more, and waits until no step is under way. Whoever waits no longer
    /// changes nothing: nothing is begun either way.
    ///
    /// Runs that are asked for are still recorded; whoever recovers them begins them.
    pub async fn drain(&self) {
        self.inner.lanes.drain().await;
    }

    /// Lets go of runs whose time is over at an instant, and gives back what only they needed.
    pub async fn tidy(&self, now_ms: u64) -> Result<Tidied> {
        self.inner.tidy(now_ms).await
    }

    /// Tidies up soon and every hour, for as long as this is waited for.
    pub async fn keep_tidy(&self) {
        let mut pause = TIDY_FIRST;
        loop {
            self.inner.host.sleep(pause).await;
            // What cannot be done now is done in an hour.
            let _ = self.inner.tidy(self.inner.host.now_ms()).await;
            pause = TIDY_EVERY;
        }
    }

    /// Tells people of trouble that no caller hears of.
    pub fn tell_trouble(&self, what: &str) {
        (self.inner.options.trouble)(what);
    }

    /// Stops: what is under way is left to whoever recovers it.
    pub async fn stop(&self, patience: Duration) -> Left {
        let left = self.inner.lanes.stop(&*self.inner.host, patience).await;
        // What is not known of the sessions now is read at the next start.
        let _ = self.inner.index.catch_up().await;
        left
    }
}

impl Inner {
    /// A fresh id for a run.
    fn run_id(&self) -> Result<RunId> {
        Ok(RunId::mint(self.host.now_ms(), self.host.entropy()?))
    }

    /// A fresh id for an event.
    fn event_id(&self) -> Result<EventId> {
        Ok(EventId::mint(self.host.now_ms(), self.host.entropy()?))
    }

    /// A fresh id for a change that somebody makes to a run.
    fn change_id(&self) -> Result<ChangeId> {
        Ok(ChangeId::mint(self.host.now_ms(), self.host.entropy()?))
    }
}

/// The run that is meant is not here.
pub(crate) fn unknown(run: RunId) -> Error {
    Error::RunUnknown(run)
}
