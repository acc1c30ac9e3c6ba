//! Guided runs: an agent gets one step at a time, does it, and acknowledges.
//!
//! Every call loads what it needs, lets `core` decide, appends, and answers from what is
//! recorded. An answer to a repeated call is made from the same facts by the same
//! functions, so it is the same answer.

pub mod answer;
pub mod ask;
mod blobs;
pub(crate) mod input;
mod perform;
mod position;
mod rebind;
mod reply;
mod resume;
mod session;
mod tokens;
mod workspace;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cairn_core::event::guided::{AdvanceOutcome, OutputChannel, SessionCreated, SourceKind};
use cairn_core::event::{By, NewEvent, Scope, limits};
use cairn_core::guided::decide::{self, Decided, Rejection};
use cairn_core::guided::judge::{self, Asked, Submission};
use cairn_core::guided::scene::scene;
use cairn_core::id::{AttemptId, EventId, NodeId, RunId, SessionId};
use cairn_core::keyring::Keyring;
use cairn_core::plan::Mode;
use cairn_core::reason::Consequence;
use cairn_core::text::truncate;
use cairn_core::token::compact::{Attempt, Kind};
use cairn_lang::ids;
use cairn_store as store;
use cairn_store::{AppendPlan, Blob, Store};
use serde_json::{Value, json};

use crate::catalog::{self, Catalog, Found};
use crate::error::{Error, Result};
use crate::host::Host;
use crate::performer::Performers;
use crate::record::{Action, Deed, Object, Record};
use answer::{AfterCheckpoint, Answer, Behind, Checkpointed, Resumable, SessionOpened};
use ask::{At, Checkpoint, Continue, Intent, Output, Resume, Start, Tokens, Wanted};
use blobs::Cache;
use position::Position;
use session::{Known, Session};
use tokens::{Spot, Target};

pub use input::{context, empty_goal};

/// How often a call is decided again because the run moved meanwhile.
const TRIES_MAX: usize = 16;

/// Leads agents through runs. Cheap to clone.
#[derive(Clone)]
pub struct Guide {
    inner: Arc<Inner>,
}

struct Inner {
    store: Store,
    catalog: Arc<Catalog>,
    performers: Performers,
    host: Arc<dyn Host>,
    options: Options,
    known: Known,
    cache: Cache,
    record: Record,
}

/// How a guide behaves.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The preferences of runs whose user asks for none.
    pub preferences: Wanted,
    /// The project that agents work on, unless they say otherwise.
    pub workspace: Option<PathBuf>,
}

impl Guide {
    /// A guide over a store, on a machine.
    #[must_use]
    pub fn new(
        store: Store,
        catalog: Arc<Catalog>,
        performers: Performers,
        host: Arc<dyn Host>,
        options: Options,
    ) -> Self {
        let (known, cache) = (Known::default(), Cache::default());
        let record = Record::new(&store, Arc::clone(&host));
        let inner = Inner { store, catalog, performers, host, options, known, cache, record };
        Self { inner: Arc::new(inner) }
    }

    /// Begins a run and gives its first step.
    pub async fn start(&self, ask: Start) -> Result<Answer> {
        self.inner.start(ask).await.map_err(Error::of_execution)
    }

    /// Goes on from a step, or gives it again.
    pub async fn proceed(&self, ask: Continue) -> Result<Answer> {
        self.inner.proceed(ask).await.map_err(Error::of_execution)
    }

    /// Leaves notes at a step without going on.
    pub async fn checkpoint(&self, ask: Checkpoint) -> Result<Checkpointed> {
        self.inner.checkpoint(ask).await.map_err(Error::of_execution)
    }

    /// Finds the runs that somebody most likely means. Writes nothing.
    pub async fn resume(&self, ask: Resume) -> Result<Vec<Resumable>> {
        Ok(self.look_for(ask).await?.0)
    }

    /// The same, with how many more there are than are given.
    pub async fn look_for(&self, ask: Resume) -> Result<(Vec<Resumable>, usize)> {
        resume::resume(&self.inner, ask).await
    }

    /// The sessions that were imported and that nobody trusts yet: none of their runs is offered.
    pub async fn untrusted(&self) -> Result<Vec<SessionId>> {
        self.inner.untrusted().await
    }

    /// Binds the runs of a session to the directory that their project is in now: it was moved, or
    /// the session came from another machine. Gives the runs that were bound elsewhere.
    pub async fn rebind(&self, session: SessionId, project: &Path, by: By) -> Result<Vec<RunId>> {
        self.inner.rebind(session, project, by).await.map_err(Error::of_execution)
    }

    /// Opens a session to leave notes in: a run of a workflow that has nothing else to do.
    pub async fn open_session(&self, by: By) -> Result<SessionOpened> {
        let (workflow, by) = (catalog::NOTES.to_owned(), Some(by));
        let ask = Start { workflow, by, ..Start::default() };
        let answer = self.start(ask).await?;
        let run = answer.session.ok_or_else(|| Error::Broken("a run without a session".into()))?;
        let session_token = answer.tokens.checkpoint_token;
        let session_token =
            session_token.ok_or_else(|| Error::Broken("a session without a token".into()))?;
        Ok(SessionOpened { session: run.session, label: answer.label, session_token })
    }
}

impl Inner {
    async fn start(&self, ask: Start) -> Result<Answer> {
        let context = input::context(ask.context.as_ref())?;
        let goal = input::goal(ask.goal.as_deref())?;
        ask.workspace.as_deref().map(input::workspace).transpose()?;
        let (found, id_warning) = self.find(&ask.workflow).await?;
        let plan = &found.compiled()?.plan;
        if plan.mode() != Mode::Guided {
            return Err(Error::Invalid {
                message: format!(
                    "`{}` is an automation graph: no agent is led through it",
                    found.id
                ),
                fix: "choose a guided workflow; a graph is run by the engine".to_owned(),
                details: json!({"workflowId": found.id}),
            });
        }
        let hash = plan.hash().map_err(|error| Error::Broken(error.to_string()))?;
        let now = self.host.now_ms();
        let run = RunId::mint(now, self.host.entropy()?);
        let id = ask.session.unwrap_or(SessionId::mint(now, self.host.entropy()?));
        let workspace = ask.workspace.as_ref().or(self.options.workspace.as_ref());
        let workspace = workspace.map(PathBuf::as_path);
        let mut mint = minter(&*self.host)?;
        let begun = decide::begin(
            decide::Start {
                plan,
                hash,
                run,
                source_kind: source_kind(found.kind),
                source_ref: &truncate(&found.path.display().to_string(), limits::NAME),
                goal,
                context: &context,
                baseline: self.options.preferences,
                wanted: ask.preferences,
            },
            &mut mint,
        );
        let mut decided = begun.map_err(|rejection| rejected(rejection, ""))?;
        let known = self.known.get(id);
        let mut session = known.lock().await;
        match session.sync(&*self.store.log).await {
            Ok(()) => {}
            Err(Error::Store(store::Error::NotFound(_))) if ask.session.is_none() => {}
            Err(Error::Store(store::Error::NotFound(id))) => return Err(self.not_here(id).await?),
            Err(error) => return Err(error),
        }
        let root = (run, decide::root(run));
        decided.events.extend(workspace::belongs(workspace, root, &mut mint));
        let deed = deed(&ask, &found.id, (id, run));
        self.record.change(deed, self.begin(&mut session, run, decided, workspace)).await?;
        let node = self.perform_owed(&mut session, run, decide::root(run)).await?;
        let position = Position::load(self, &session, run, node).await?;
        let facts = reply::Facts::begun(&found, id_warning, run, workspace);
        let keys = self.store.keys.load().await?;
        let mut answer = reply::answer(self, &session, &position, &keys, ask.tokens, facts).await?;
        answer.warnings.extend(input::empty_goal(ask.goal.as_deref()));
        Ok(answer)
    }

    /// Looks a workflow up, with what is to be said about its id, on a thread that may read and
    /// compile files.
    async fn find(&self, workflow: &str) -> Result<(Arc<Found>, Option<String>)> {
        let (catalog, workflow) = (Arc::clone(&self.catalog), workflow.to_owned());
        let find = move || {
            let found = catalog.find(&workflow)?;
            let id_warning = catalog.id_warning(&found);
            Ok((found, id_warning))
        };
        self.host.wait_for(find).await?
    }

    /// Records a run's beginning, with what is seen of its checkout.
    async fn begin(
        &self,
        session: &mut Session,
        run: RunId,
        decided: Decided,
        workspace: Option<&Path>,
    ) -> Result<()> {
        for _ in 0..TRIES_MAX {
            let (mut decided, mut mint) = (decided.clone(), minter(&*self.host)?);
            let seen = workspace::observe(workspace, &session.view, &mut mint);
            decided.events.splice(0..0, seen);
            if session.view.session.is_none() {
                let data = SessionCreated {}.into();
                decided.events.insert(0, NewEvent { id: mint(), scope: Scope::Session, data });
            }
            self.append_or_look(session, run, decided).await?;
            if session.view.runs.contains_key(&run) {
                return Ok(());
            }
        }
        Err(store::Error::Busy { session: session.id, waiting: TRIES_MAX }.into())
    }

    async fn proceed(&self, ask: Continue) -> Result<Answer> {
        let keys = self.store.keys.load().await?;
        let target = tokens::read(&ask.at, &keys)?;
        let context = input::context(ask.context.as_ref())?;
        input::artifacts(ask.output.as_ref())?;
        let Some(tried) = target.attempt.filter(|_| is_advance(&ask)) else {
            input::rehydrate_only(&ask)?;
            return self.back(target, &keys, ask.tokens).await;
        };
        let known = self.known.get(target.session);
        let mut session = known.lock().await;
        self.sync(&mut session).await?;
        let (run, node) = session.target(target)?;
        let attempt = tried.id(node);
        let output = ask.output.as_ref();
        let submission = Submission {
            notes: output.and_then(|output| output.notes.as_deref()),
            artifacts: output.map(|output| output.artifacts.as_slice()).unwrap_or_default(),
        };
        let ack = decide::Ack { attempt, submission, context: &context, wanted: ask.preferences };
        if session.view.attempts.of(node, attempt).is_none() {
            let arguments = json!({"input": ack.digest().ok().map(|digest| digest.to_string())});
            let deed = step_deed(ask.by.as_ref(), &session, run, &arguments);
            self.record.note(deed).await?;
        }
        for _ in 0..TRIES_MAX {
            if session.view.attempts.of(node, attempt).is_some() {
                let reply = reply::Attempted { run, node, attempt };
                return self.recorded(&mut session, reply, &ack, &keys, ask.tokens).await;
            }
            let position = Position::load(self, &session, run, node).await?;
            input::total(&position.context, &context)?;
            input::gaps(ask.output.as_ref(), &position.gaps)?;
            if position.is_owed_by_engine() {
                self.perform(&mut session, run, node, attempt, Some(ack)).await?;
                continue;
            }
            let mut mint = minter(&*self.host)?;
            let decided = decide::advance(position.here(&session), ack, &mut mint);
            let label = Spot::new(&session, run, node).label;
            let mut decided = decided.map_err(|rejection| rejected(rejection, label.as_str()))?;
            let root = workspace::of_run(&session.view, run);
            decided.events.extend(workspace::observe(root.as_deref(), &session.view, &mut mint));
            self.append_or_look(&mut session, run, decided).await?;
        }
        Err(store::Error::Busy { session: session.id, waiting: TRIES_MAX }.into())
    }

    /// Gives the step again that a token stands at. It writes nothing, so it does not wait for
    /// whoever is at work on the session, which may take long.
    async fn back(&self, target: Target, keys: &Keyring, tokens: Tokens) -> Result<Answer> {
        let known = self.known.get(target.session);
        if let Ok(mut session) = known.try_lock() {
            self.sync(&mut session).await?;
            return self.given_again(&session, target, keys, tokens).await;
        }
        let session = session::read(&self.store, target.session).await?;
        self.given_again(&session, target, keys, tokens).await
    }

    async fn given_again(
        &self,
        session: &Session,
        target: Target,
        keys: &Keyring,
        tokens: Tokens,
    ) -> Result<Answer> {
        let (run, node) = session.target(target)?;
        let position = Position::load(self, session, run, node).await?;
        let facts = reply::Facts::back(self, session, &position, None);
        reply::answer(self, session, &position, keys, tokens, facts).await
    }

    /// Answers from what an attempt left in the log.
    async fn recorded(
        &self,
        session: &mut Session,
        tried: reply::Attempted,
        ack: &decide::Ack<'_>,
        keys: &Keyring,
        tokens: Tokens,
    ) -> Result<Answer> {
        let recorded = session.view.attempts.of(tried.node, tried.attempt).cloned();
        let recorded = recorded.ok_or_else(|| session.broken("an attempt left no record"))?;
        let other_input =
            recorded.input_digest.is_some() && recorded.input_digest != ack.digest().ok();
        match recorded.outcome {
            AdvanceOutcome::Blocked { blockers } => {
                let kept = decide::blocked_at(tried.attempt);
                let kept = session.dag(tried.run)?.node(kept).map(|node| node.id);
                let node = kept.unwrap_or(tried.node);
                let position = Position::load(self, session, tried.run, node).await?;
                let blockers = blockers.blockers().to_vec();
                let unrecorded = other_input.then(|| reply::warnings::other_input(ack, true));
                let facts = reply::Facts::Blocked { tried, blockers, unrecorded };
                reply::answer(self, session, &position, keys, tokens, facts).await
            }
            AdvanceOutcome::Advanced { .. } if other_input => {
                let position = Position::load(self, session, tried.run, tried.node).await?;
                let unrecorded = Some(reply::warnings::other_input(ack, false));
                let facts = reply::Facts::back(self, session, &position, unrecorded);
                reply::answer(self, session, &position, keys, tokens, facts).await
            }
            AdvanceOutcome::Advanced { to_node_id } => {
                let end = self.perform_owed(session, tried.run, to_node_id).await?;
                let position = Position::load(self, session, tried.run, end).await?;
                let facts = reply::Facts::Advanced { tried, to: to_node_id };
                reply::answer(self, session, &position, keys, tokens, facts).await
            }
        }
    }

    async fn checkpoint(&self, ask: Checkpoint) -> Result<Checkpointed> {
        let keys = self.store.keys.load().await?;
        input::artifacts(Some(&ask.output))?;
        input::something(&ask)?;
        let target = tokens::read_checkpoint(&ask.at, &keys)?;
        let known = self.known.get(target.session);
        let mut session = known.lock().await;
        self.sync(&mut session).await?;
        let (run, node) = session.target(target)?;
        let tried = target.attempt.ok_or_else(|| session.broken("a checkpoint has no attempt"))?;
        let attempt = tried.id(node);
        let spot = decide::spot(attempt);
        if session.dag(run)?.node(spot).is_none() && !session.is_corrected(node, attempt) {
            let Output { notes, artifacts } = &ask.output;
            let arguments = json!({"notes": notes, "artifacts": artifacts});
            self.record.note(step_deed(ask.by.as_ref(), &session, run, &arguments)).await?;
        }
        for _ in 0..TRIES_MAX {
            let place = if session.dag(run)?.node(spot).is_some() {
                Some((spot, Attempt::FIRST))
            } else if session.is_corrected(node, attempt) {
                Some((node, Attempt::after(attempt)))
            } else {
                None
            };
            if let Some((at, note)) = place {
                let same = match at == spot {
                    true => reply::warnings::same_checkpoint(&session, spot, attempt, &ask),
                    false => {
                        let kept = decide::correction(attempt);
                        reply::warnings::same_correction(&session, node, kept, &ask)
                    }
                };
                let tokens = (Attempt::FIRST, note, ask.tokens);
                return self.checkpointed(&session, (run, at), &keys, tokens, same).await;
            }
            let position = Position::load(self, &session, run, node).await?;
            if ask.replaces_notes {
                self.check_correction(&session, &position, &ask).await?;
            }
            let decided = noted(&*self.host, &session, &position, attempt, &ask)?;
            self.append_or_look(&mut session, run, decided).await?;
        }
        Err(store::Error::Busy { session: session.id, waiting: TRIES_MAX }.into())
    }

    /// Holds notes that take the place of others to what their step asks of notes.
    async fn check_correction(
        &self,
        session: &Session,
        position: &Position,
        ask: &Checkpoint,
    ) -> Result<()> {
        let dag = session.dag(position.run)?;
        let Some(parent) = dag.node(position.node).and_then(|node| node.parent) else {
            return Ok(());
        };
        let before = Position::load(self, session, position.run, parent).await?;
        let Some(step) = before.step() else { return Ok(()) };
        let loop_stack = before.loop_stack();
        let scene = scene(&before.plan, &position.context, loop_stack);
        let asked =
            Asked { plan: &before.plan, step, loop_stack, scene: &scene, gaps: &before.gaps };
        let notes = ask.output.notes.as_deref().unwrap_or_default();
        let problems = judge::correction(asked, notes);
        let blocks = |problem: &&judge::Problem| {
            let autonomy = position.preferences.autonomy;
            !matches!(problem.reason.under(autonomy), Consequence::Disclose(..))
        };
        match problems.iter().find(blocks) {
            None => Ok(()),
            Some(problem) => Err(Error::Invalid {
                message: format!("{}; nothing was replaced", problem.message),
                fix: problem.fix.clone().unwrap_or_default(),
                details: json!({"field": "output.notesMarkdown"}),
            }),
        }
    }

    /// The answer of a checkpoint that stands at a node.
    async fn checkpointed(
        &self,
        session: &Session,
        (run, node): (RunId, NodeId),
        keys: &Keyring,
        (go, note, tokens): (Attempt, Attempt, Tokens),
        recorded: bool,
    ) -> Result<Checkpointed> {
        let position = Position::load(self, session, run, node).await?;
        let gone = session.gone_on(run, node, recorded)?;
        let behind = match gone {
            Some(gone) => Some(self.behind(session, &position, gone, keys).await?),
            None => None,
        };
        let next = match (&behind, position.state.is_complete()) {
            _ if session.is_notes(run) => AfterCheckpoint::Notes,
            (Some(behind), _) => AfterCheckpoint::Behind(behind.clone()),
            (None, true) => AfterCheckpoint::Complete,
            (None, false) => AfterCheckpoint::Step,
        };
        let warnings = match (recorded, &behind) {
            (false, _) => vec![reply::warnings::other_checkpoint()],
            (true, behind) => {
                let cut = reply::warnings::cut_notes(session.view.outputs.notes(node));
                let behind = behind.as_ref().map(reply::warnings::recorded_behind);
                behind.into_iter().chain(cut).collect()
            }
        };
        // What was not recorded belongs to where the run stands, and the tokens lead there.
        let (place, go, note) = match gone.filter(|_| !recorded) {
            Some(gone) => {
                let attempt = self.fresh()?;
                (Spot::new(session, run, gone), attempt, attempt)
            }
            None => (Spot::new(session, run, node), go, note),
        };
        let (label, tokens) = (place.label(), place.set(session, keys, tokens, go, note)?);
        Ok(Checkpointed { label, node, tokens, recorded, next, warnings })
    }

    /// Where a run stands that has gone on from the step of a checkpoint.
    async fn behind(
        &self,
        session: &Session,
        position: &Position,
        gone: NodeId,
        keys: &Keyring,
    ) -> Result<Behind> {
        let now = Position::load(self, session, position.run, gone).await?;
        let spot = Spot::new(session, position.run, gone);
        Ok(Behind {
            step: position.step().map(|step| step.id.to_string()).unwrap_or_default(),
            at: now.step().map(|step| step.id.to_string()),
            continue_token: spot.token(session, Kind::Continue, Attempt::FIRST, keys)?,
        })
    }

    /// An attempt that nobody else is given.
    fn fresh(&self) -> Result<Attempt> {
        let bits = self.host.entropy()?;
        // Half of the random bits: a compact token holds no more.
        Ok(Attempt(u64::try_from(bits & u128::from(u64::MAX)).unwrap_or_default()))
    }

    async fn untrusted(&self) -> Result<Vec<SessionId>> {
        match self.store.papers.find()? {
            Some(papers) => Ok(papers.sessions.list().await?),
            None => Ok(Vec::new()),
        }
    }

    /// What to say of a session that is not among those that go on: it may wait to be trusted.
    async fn not_here(&self, session: SessionId) -> Result<Error> {
        Ok(match self.untrusted().await?.contains(&session) {
            true => Error::Untrusted { session },
            false => store::Error::NotFound(session).into(),
        })
    }

    async fn sync(&self, session: &mut Session) -> Result<()> {
        match session.sync(&*self.store.log).await {
            Err(Error::Store(store::Error::NotFound(id))) => {
                self.known.forget(id);
                Err(Error::TokenUnknownNode(format!("a node of session {id}")))
            }
            other => other,
        }
    }

    /// Makes a decision durable; when somebody else was faster, looks at what is there.
    async fn append_or_look(
        &self,
        session: &mut Session,
        run: RunId,
        decided: Decided,
    ) -> Result<()> {
        use store::Error::{Conflict, PartlyRecorded};
        match self.append(session, run, decided).await {
            Err(Error::Store(Conflict { .. } | PartlyRecorded { .. })) => self.sync(session).await,
            other => other,
        }
    }

    /// Makes a decision durable and takes it in.
    async fn append(&self, session: &mut Session, run: RunId, decided: Decided) -> Result<()> {
        let last = session.view.runs.get(&run).map(|view| view.last_index);
        let blobs = decided.blobs.into_iter().map(|(kind, bytes)| Blob { kind, bytes }).collect();
        let plan =
            AppendPlan { events: decided.events, seen: vec![(run, last)], blobs, fence: None };
        self.store.log.append(session.id, plan).await?;
        session.sync(&*self.store.log).await
    }
}

/// The events of a checkpoint: a node of its own, or notes in the place of others.
fn noted(
    host: &dyn Host,
    session: &Session,
    position: &Position,
    attempt: AttemptId,
    ask: &Checkpoint,
) -> Result<Decided> {
    let (here, mut mint) = (position.here(session), minter(host)?);
    if ask.replaces_notes {
        let notes = ask.output.notes.as_deref().unwrap_or_default();
        let current = session.view.outputs.current(position.node, OutputChannel::Recap);
        let current = current.map(|output| output.id);
        return Ok(decide::correct(here, attempt, notes, current, &mut mint));
    }
    let note = decide::Note {
        attempt,
        notes: ask.output.notes.as_deref(),
        artifacts: &ask.output.artifacts,
    };
    decide::checkpoint(here, note, &mut mint).map_err(|rejection| rejected(rejection, ""))
}

/// Whether a call means to go on.
pub(crate) fn is_advance(ask: &Continue) -> bool {
    match (ask.intent, &ask.at) {
        (Some(Intent::Advance), _) => true,
        (Some(Intent::Rehydrate), _) => false,
        (None, At::Pair { ack, .. }) => ack.is_some(),
        (None, At::Compact(_)) => ask.output.is_some(),
    }
}

fn rejected(rejection: Rejection, label: &str) -> Error {
    match rejection {
        Rejection::Complete => Error::RunComplete(label.to_owned()),
        Rejection::NotYours => Error::Broken(rejection.to_string()),
        Rejection::Context(message) => Error::Invalid {
            message,
            fix: "start again with what the loop needs in `context`".to_owned(),
            details: json!({"field": "context"}),
        },
        Rejection::Unwritable(error) => Error::Invalid {
            message: error.to_string(),
            fix: "send plain JSON: whole numbers within ±2^53, no deep nesting".into(),
            details: json!({}),
        },
        Rejection::OverBudget(error) => Error::Invalid {
            message: error.to_string(),
            fix: "send less, or put the rest into a file and name its path".to_owned(),
            details: json!({}),
        },
    }
}

/// Gives event ids: the time, and random bits that go up by one within a call.
fn minter(host: &dyn Host) -> Result<impl FnMut() -> EventId + use<>> {
    let (now, mut bits) = (host.now_ms(), host.entropy()?);
    Ok(move || {
        bits = bits.wrapping_add(1);
        EventId::mint(now, bits)
    })
}

/// What whoever begins a run is recorded with.
fn deed(ask: &Start, workflow: &str, (session, run): (SessionId, RunId)) -> Deed {
    let by = ask.by.clone().unwrap_or_else(|| "agent".into());
    let arguments = json!({"context": ask.context, "goal": ask.goal, "workspace": ask.workspace});
    let deed = Deed::to_run(by, Action::StartRun, run, workflow).with(&arguments);
    let object = Object { session: Some(session), ..deed.object };
    Deed { object, ..deed }
}

/// What whoever does a step is recorded with.
fn step_deed(by: Option<&By>, session: &Session, run: RunId, arguments: &Value) -> Deed {
    let by = by.cloned().unwrap_or_else(|| "agent".into());
    let workflow = session.view.runs.get(&run).and_then(|run| run.workflow_id.clone());
    let deed = Deed::to_run(by, Action::ContinueRun, run, &workflow.unwrap_or_default());
    let object = Object { session: Some(session.id), ..deed.object.clone() };
    Deed { object, ..deed }.with(arguments)
}

pub(crate) const fn source_kind(kind: ids::SourceKind) -> SourceKind {
    match kind {
        ids::SourceKind::Bundled => SourceKind::Bundled,
        ids::SourceKind::User => SourceKind::User,
        ids::SourceKind::Project => SourceKind::Project,
        ids::SourceKind::Remote => SourceKind::Remote,
        ids::SourceKind::Plugin => SourceKind::Plugin,
    }
}
