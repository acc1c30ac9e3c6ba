//! Automations: runs that the engine performs by itself.
//!
//! In reading order: whoever asks for a run goes through [`intake`], is admitted at the [`desk`]
//! of the workflow, and begins in a [`lane`]: one session, one owner, one task that decides for
//! all its runs and commits what it decided as one. Whatever came in while a commit was under way
//! goes into the next. Nothing is performed before the intent to do so is durable. Who owns what,
//! and who goes on with what was left, is in [`ownership`]; [`received`] begins what a trigger
//! received and somebody was cut off from beginning, [`sessions`] says which session new runs go into, [`telling`] how something is said to a run wherever it is, and [`waiting`] how its end
//! is waited for.
//!
//! The rooms below need nothing of that, and say what they need: [`reading`] knows runs as their
//! logs have them, [`workflows`] finds files, [`perform`] performs steps, [`holdings`] acquires
//! sessions and reads what is left in them, [`retire`] lets go of runs, [`tail`] tells what other
//! processes record, [`mail`] writes to them, and [`refusals`] keeps what was refused. One room is
//! above: [`hand`] hands steps to agents.

pub mod chain;
mod computed;
mod decisions;
mod desk;
mod failures;
mod forks;
mod given;
mod hand;
mod holdings;
mod index;
mod intake;
mod lane;
mod lanes;
mod letters;
mod mail;
mod options;
mod orphans;
mod ownership;
mod papers;
mod payload;
mod perform;
mod plans;
mod rate;
mod reading;
mod received;
mod refusals;
mod retire;
mod rights;
pub mod schedule;
mod sessions;
mod snapshots;
mod tail;
mod telling;
pub mod trace;
mod tries;
mod trust;
mod waiting;
mod watch;
mod workflows;

pub use decisions::Decider;
pub use failures::FailureTold;
pub use forks::{ForkPoint, Forked, Forker};
pub use hand::{Claimant, WaitingRun};
pub use index::{Filter, Summary};
pub use intake::{Asked, Call, Roles, RunRequest, TriggerEvent};
pub use lanes::Fallen;
pub use options::Options;
pub use perform::{Bindings, Environment, NoSettings, Redact};
pub use reading::Past;
pub use refusals::Refused;
pub use retire::{RETENTION, Tidied};
pub use trust::{ClaimedPlan, ClaimedRun, Claims, Truster};
pub use watch::{Ended, Observer, Refusal, Told, Watch};

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cairn_core::catalog::Catalog as Types;
use cairn_core::digest::WorkflowHash;
use cairn_core::event::By;
use cairn_core::event::engine::InterruptDecision;
use cairn_core::flow::{Answer, Command};
use cairn_core::id::{EventIndex, RunId, SessionId, TaskId};
use cairn_core::instance::StepInstanceKey;
use cairn_core::plan::Plan;
use cairn_core::projection::run::RunState;
use cairn_core::text::Slug;
use cairn_store::Store;
use serde_json::json;
use tokio::sync::Semaphore;

use crate::catalog::{Catalog, Identity};
use crate::error::{Error, Result};
use crate::host::{Either, Host, either};
use crate::performer::Performers;
use crate::record::{Action, Record};
use crate::rights::Rights;
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
    /// What tokens allow.
    pub rights: Arc<dyn Rights>,
}

/// How long runs stay left before somebody goes on with them whom nobody told of it.
const LOOK_AFTER: Duration = Duration::from_secs(15);
/// How soon whoever was told that somebody is gone looks again: a process that ends closes its
/// inbox before it gives its leases back.
const LOOK_SOON: Duration = Duration::from_millis(20);

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

/// The house: rooms that know of each other only what they are given, and what joins them. Runs
/// begin others and fail into others, so whatever decides, admits and takes over needs all of it.
pub(crate) struct Inner {
    host: Arc<dyn Host>,
    store: Store,
    options: Arc<Options>,
    /// Finds files.
    workflows: Arc<workflows::Workflows>,
    /// Makes plans ready.
    plans: Arc<Plans>,
    /// Lists runs.
    index: Arc<index::Index>,
    /// Knows runs as their logs have them.
    reading: Arc<reading::Reading>,
    /// Performs steps.
    steps: Arc<perform::Steps>,
    /// What this process has.
    lanes: Arc<Lanes>,
    /// Acquires what can be owned.
    holdings: holdings::Holdings,
    /// Writes to other processes.
    post: mail::Post,
    /// Remembers what other processes wrote.
    letters: letters::Letters,
    /// Tells whoever watches.
    watchers: Arc<watch::Watchers>,
    /// Tells them what other processes record.
    others: Arc<tail::Others>,
    /// Lets go of runs whose time is over.
    retention: retire::Keeper,
    /// Takes sessions from elsewhere in.
    trust: trust::Trust,
    /// Knows what people decided.
    decisions: decisions::Decisions,
    /// Keeps what was refused.
    refusals: refusals::Refusals,
    /// Knows who is told of failures.
    takers: failures::Takers,
    /// Keeps who asked for what.
    record: Record,
    /// Knows what tokens allow.
    rights: Arc<dyn Rights>,
    /// Whether what was left at the start was taken up.
    is_recovered: AtomicBool,
}

impl Inner {
    fn new(parts: Parts, options: Options) -> Self {
        let Parts { host, store, catalog, types, performers, environment, evaluator, rights } =
            parts;
        let options = Arc::new(options);
        let index = Arc::new(index::Index::new(Arc::clone(&host), store.clone()));
        let reading = Arc::new(reading::Reading::new(&host, store.clone(), Arc::clone(&index)));
        let workflows = Arc::new(workflows::Workflows::new(Arc::clone(&host), catalog));
        let plans = Arc::new(Plans::new(store.clone(), types));
        let record = Record::new(&store, Arc::clone(&host));
        let (lanes, watchers) = (Arc::<Lanes>::default(), Arc::<watch::Watchers>::default());
        let steps = Arc::new(perform::Steps {
            host: Arc::clone(&host),
            performers,
            environment,
            evaluator,
            slots: Semaphore::new(options.steps_at_once),
            timeout: options.step_timeout,
        });
        let others = Arc::new(tail::Others::new(
            (Arc::clone(&host), store.clone()),
            Arc::clone(&index),
            Arc::clone(&lanes),
            Arc::clone(&watchers),
        ));
        Self {
            holdings: holdings::Holdings {
                host: Arc::clone(&host),
                store: store.clone(),
                index: Arc::clone(&index),
                reading: Arc::clone(&reading),
                workflows: Arc::clone(&workflows),
                plans: Arc::clone(&plans),
                lanes: Arc::clone(&lanes),
                steps: Arc::clone(&steps),
                others: Arc::clone(&others),
                options: Arc::clone(&options),
            },
            post: mail::Post {
                host: Arc::clone(&host),
                mailbox: Arc::clone(&store.mailbox),
                plans: Arc::clone(&plans),
            },
            letters: letters::Letters::default(),
            retention: retire::Keeper {
                host: Arc::clone(&host),
                store: store.clone(),
                index: Arc::clone(&index),
                workflows: Arc::clone(&workflows),
                lanes: Arc::clone(&lanes),
                options: Arc::clone(&options),
                record: record.clone(),
            },
            trust: trust::Trust {
                host: Arc::clone(&host),
                store: store.clone(),
                index: Arc::clone(&index),
                reading: Arc::clone(&reading),
                workflows: Arc::clone(&workflows),
                record: record.clone(),
            },
            decisions: decisions::Decisions {
                reading: Arc::clone(&reading),
                plans: Arc::clone(&plans),
            },
            takers: failures::Takers {
                store: store.clone(),
                index: Arc::clone(&index),
                workflows: Arc::clone(&workflows),
            },
            refusals: refusals::Refusals::new(Arc::clone(&host), store.clone()),
            is_recovered: AtomicBool::new(false),
            record,
            rights,
            host,
            store,
            options,
            workflows,
            plans,
            index,
            reading,
            steps,
            lanes,
            watchers,
            others,
        }
    }
}

impl Automations {
    /// An engine over a store. Nothing runs before something is asked for, or
    /// [`Self::recover`] is called.
    #[must_use]
    pub fn new(parts: Parts, options: Options) -> Self {
        Self { inner: Arc::new(Inner::new(parts, options)) }
    }

    /// Goes on with every run that is not over and that nobody else performs.
    pub async fn recover(&self) -> Result<usize> {
        self.inner.recover().await
    }

    /// Recovers, and then goes on with whatever other processes leave, until it is dropped: at
    /// once where [`Self::follow_others`] hears of it, and else when it next looks.
    pub async fn look_after_all(&self) {
        let recovered = self.recover().await;
        if let Ok(count @ 1..) = &recovered {
            let what = if *count == 1 { "run that was" } else { "runs that were" };
            self.tell_news(&format!("resumed {count} {what} under way when a process ended"));
        }
        let mut found = recovered.map(drop);
        self.inner.is_recovered.store(true, Ordering::Release);
        let mut pause = LOOK_AFTER;
        loop {
            // What cannot be gone on with stays as it is, for people to look at.
            if let Err(error) = found {
                (self.inner.options.trouble)(&format!("runs that were left: {error}"));
            }
            let sleep = || self.inner.host.sleep(pause);
            pause = match either(self.inner.others.left(), sleep).await {
                Either::First(()) => LOOK_SOON,
                Either::Second(()) => pause.saturating_mul(2).min(LOOK_AFTER),
            };
            found = self.inner.take_up_all().await.map(drop);
        }
    }

    /// Whether runs that were left were taken up, as far as they could be, by
    /// [`Self::look_after_all`].
    #[must_use]
    pub fn is_recovered(&self) -> bool {
        self.inner.is_recovered.load(Ordering::Acquire)
    }

    /// Asks for a run. The same key asks for the same run, once, and gets the same answer.
    ///
    /// Whoever asks, the same is looked at in the same order: the trigger and its key, the role,
    /// the input, the limits, the settings. Of what is refused nothing is recorded.
    pub async fn submit(&self, request: RunRequest) -> Result<Asked> {
        self.submit_within(request, Duration::ZERO).await
    }

    /// The same, by somebody who waits so long for the limits of the workflow.
    pub async fn submit_within(&self, request: RunRequest, patience: Duration) -> Result<Asked> {
        self.inner.submit(request, patience).await
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
        self.inner.others.follow().await
    }

    /// The same, for somebody who has read a session up to an event: whatever is recorded behind
    /// it is told, also what came before this was heard of.
    pub async fn follow_others_after(&self, session: SessionId, last: EventIndex) -> Result<()> {
        self.inner.others.told(session, last);
        self.follow_others().await
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
        let own = self.inner.reading.list(filter).await?;
        let papers = self.inner.reading.papers().list(filter).await?;
        Ok(papers::merged(own, papers, filter.limit))
    }

    /// The sessions that could not be read for the list of runs: theirs may be missing there.
    #[must_use]
    pub fn hidden(&self) -> Vec<SessionId> {
        self.inner.index.hidden()
    }

    /// Everything that is recorded of a run.
    pub async fn past(&self, run: RunId) -> Result<Past> {
        match self.inner.reading.past(run).await {
            Err(Error::Untrusted { .. }) => self.inner.reading.papers().past(run).await,
            past => past,
        }
    }

    /// How a run is, without its events: of a long run, far less has to be read.
    pub async fn state(&self, run: RunId) -> Result<(Summary, RunState)> {
        match self.inner.reading.state(run).await {
            Err(Error::Untrusted { .. }) => self.inner.reading.papers().state(run).await,
            state => state,
        }
    }

    /// Ends a run.
    pub async fn cancel(&self, run: RunId, by: impl Into<By>, reason: &str) -> Result<()> {
        let (by, reason) = (by.into(), reason.to_owned());
        let arguments = json!({"reason": reason});
        let command = Command::Cancel { by: by.clone(), reason };
        self.inner.steer(run, (by, Action::CancelRun), &arguments, command).await
    }

    /// What a trigger of a workflow was refused.
    pub async fn refused(&self, workflow: &Identity, trigger: &Slug) -> Result<Option<Refused>> {
        self.inner.refusals.of(workflow, trigger).await
    }

    /// Notes that a request to a trigger was refused before a run was asked for.
    pub fn note_refusal(&self, workflow: &Identity, trigger: &Slug, code: &'static str) {
        let message = "the request was refused before its body was looked at".to_owned();
        if self.inner.refusals.note_code(workflow, trigger, (code, message)) {
            self.tell_trouble(&format!(
                "a request to `{trigger}` of `{}` was refused: {code}",
                workflow.id()
            ));
        }
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
        let (by, change) = (by.into(), self.inner.host.change_id()?);
        let command = Command::Pause { change, by: by.clone() };
        self.inner.steer(run, (by, Action::PauseRun), &json!({}), command).await
    }

    /// Lets a paused run go on.
    pub async fn resume(&self, run: RunId, by: impl Into<By>) -> Result<()> {
        let (by, change) = (by.into(), self.inner.host.change_id()?);
        let command = Command::Resume { change, by: by.clone(), input: None };
        self.inner.steer(run, (by, Action::ResumeRun), &json!({}), command).await
    }

    /// Lets a run go on that rests, or that whoever performed it left: being spoken to, it is
    /// taken over. One that goes on already, or comes to its end with it, has done so.
    pub async fn go_on(&self, run: RunId, by: impl Into<By>) -> Result<()> {
        let (by, change) = (by.into(), self.inner.host.change_id()?);
        self.inner.let_go_on(run, by, change).await
    }

    /// Answers a question that a run asked.
    pub async fn answer(
        &self,
        run: RunId,
        task: TaskId,
        by: impl Into<By>,
        answer: Answer,
    ) -> Result<()> {
        let by = by.into();
        let arguments = json!({
            "task": task.to_string(), "verdict": answer.verdict.case(), "values": answer.values,
        });
        let command = Command::Answer { task, by: by.clone(), answer };
        self.inner.steer(run, (by, Action::AnswerTask), &arguments, command).await
    }

    /// Says what became of a step that a crash cut off. What people allowed before it is tried
    /// again only for somebody who could have allowed it.
    pub async fn resolve(
        &self,
        run: RunId,
        instance: StepInstanceKey,
        decider: Decider,
        decision: InterruptDecision,
    ) -> Result<()> {
        self.inner.resolve(run, instance, decider, decision).await
    }

    /// What a fork of a run would do again, and what it would keep.
    pub async fn preview(
        &self,
        from: &ForkPoint,
        asker: &Forker,
    ) -> Result<cairn_core::flow::Fork> {
        let id = self.inner.host.run_id()?;
        Ok(self.inner.forked(from, asker, id).await?.fork)
    }

    /// Goes on from an earlier step, in a run of its own. What people decided before is asked
    /// again, unless whoever asks could have answered.
    pub async fn fork(&self, from: &ForkPoint, asker: &Forker) -> Result<Forked> {
        self.inner.fork(from, asker).await
    }

    /// Tells the workflows that take a run's failure, unless they know; gives their runs.
    pub async fn tell_of_failure(&self, run: RunId) -> Result<Vec<RunId>> {
        self.inner.tell_of_failure(run).await
    }

    /// Which workflows were told that a run failed, and which could not be.
    pub async fn told_of_failure(&self, run: RunId) -> Result<FailureTold> {
        self.inner.told_of_failure(run).await
    }

    /// Does a run again with the same event, on the workflow as it is now, for somebody who has
    /// these roles.
    pub async fn replay(&self, run: RunId, by: impl Into<By>, roles: Roles) -> Result<Asked> {
        self.inner.replay(run, by.into(), roles).await
    }

    /// Takes a session from elsewhere in. It is paper: it can be read, and does nothing.
    pub async fn import(
        &self,
        bytes: &[u8],
        by: impl Into<By>,
    ) -> Result<cairn_store::bundle::Imported> {
        self.inner.trust.import(bytes, by.into()).await
    }

    /// What a session from elsewhere claims, and what it would do.
    pub async fn claims(&self, session: SessionId) -> Result<Claims> {
        self.inner.trust.claims(session).await
    }

    /// Lets a session from elsewhere go on here. Its runs rest until somebody resumes them, and
    /// what people decided elsewhere counts for nothing.
    pub async fn trust(&self, session: SessionId, truster: &Truster<'_>) -> Result<Claims> {
        self.inner.trust.trust(session, truster).await
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

    /// Tells people of something that is no trouble and that no caller hears of.
    pub fn tell_news(&self, what: &str) {
        (self.inner.options.news)(what);
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

/// The run that is meant is not here.
pub(crate) fn unknown(run: RunId) -> Error {
    Error::RunUnknown(run)
}
