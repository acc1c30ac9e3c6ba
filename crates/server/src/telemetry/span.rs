//! Runs and steps as spans.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use cairn_core::digest::WorkflowHash;
use cairn_core::event::engine::{Payload, RunQueued};
use cairn_core::event::{Event, EventData};
use cairn_core::id::RunId;
use cairn_core::instance::StepInstanceKey;
use cairn_core::plan::Action;
use cairn_engine::flow::trace::{SpanId, TraceId, TraceParent, step_span};
use cairn_engine::flow::{Automations, Told};

/// How many runs are remembered; what is forgotten is read from the log again.
const RUNS_MAX: usize = 4_096;
/// How many plans are remembered.
const PLANS_MAX: usize = 64;

/// A span that is over.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Span {
    pub(super) trace: TraceId,
    pub(super) id: SpanId,
    pub(super) parent: Option<SpanId>,
    pub(super) name: String,
    pub(super) kind: SpanKind,
    pub(super) start_ms: u64,
    pub(super) end_ms: u64,
    pub(super) attributes: Vec<(&'static str, Attribute)>,
    pub(super) failed: bool,
}

/// What a span stands for, by the numbers of OTLP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SpanKind {
    Internal = 1,
    Consumer = 5,
}

/// Something about a span.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Attribute {
    Text(String),
    Number(u64),
}

/// A run that is not over.
#[derive(Clone)]
struct Open {
    place: TraceParent,
    parent: Option<SpanId>,
    workflow: String,
    trigger: Option<String>,
    queued_ms: u64,
    types: Arc<Types>,
    /// When each step began that is under way, and which try it is.
    begun: HashMap<StepInstanceKey, (u64, u32)>,
}

/// The types of a plan's steps, by step.
type Types = BTreeMap<String, String>;

/// Makes spans of what is recorded.
pub(super) struct Tracer {
    engine: Automations,
    open: HashMap<RunId, Open>,
    plans: HashMap<WorkflowHash, Arc<Types>>,
}

/// How a try at a step ended.
struct Try<'e> {
    instance: &'e StepInstanceKey,
    attempt: u32,
    duration_ms: u64,
    status: &'static str,
    code: Option<&'e str>,
}

impl Tracer {
    pub(super) fn new(engine: Automations) -> Self {
        Self { engine, open: HashMap::new(), plans: HashMap::new() }
    }

    /// The spans that end with a commit.
    pub(super) async fn take(&mut self, told: &Told) -> Vec<Span> {
        let mut spans = Vec::new();
        for event in told.events.iter() {
            if let Some(run) = event.scope.run() {
                spans.extend(self.one(run, event).await);
            }
        }
        spans
    }

    async fn one(&mut self, run: RunId, event: &Event) -> Option<Span> {
        let at_ms = event.id.minted_ms();
        match &event.data {
            EventData::RunQueued(queued) => {
                let open = self.opened(run, queued, at_ms).await;
                self.keep(run, open);
                None
            }
            EventData::RunStarted(started) => {
                let types = self.types(started.workflow_hash).await;
                self.known(run).await?.types = types;
                None
            }
            EventData::StepStarted(e) => self.begun(run, &e.instance, at_ms, e.attempt).await,
            EventData::StepWaiting(e) => self.begun(run, &e.instance, at_ms, e.attempt).await,
            EventData::StepCompleted(e) => {
                let (attempt, duration_ms, status) = (e.attempt, e.duration_ms, "succeeded");
                let done = Try { instance: &e.instance, attempt, duration_ms, status, code: None };
                self.step(run, at_ms, done).await
            }
            EventData::StepFailed(e) => {
                let (attempt, duration_ms, status) = (e.attempt, e.duration_ms, "failed");
                let code = Some(e.error.code.as_str());
                let done = Try { instance: &e.instance, attempt, duration_ms, status, code };
                self.step(run, at_ms, done).await
            }
            EventData::StepInterrupted(e) => {
                let (attempt, duration_ms, status) = (e.attempt, 0, "unknown");
                let done = Try { instance: &e.instance, attempt, duration_ms, status, code: None };
                self.step(run, at_ms, done).await
            }
            EventData::RunCompleted(_) => self.ended(run, at_ms, "succeeded", None).await,
            EventData::RunFailed(e) => {
                self.ended(run, at_ms, "failed", Some(e.error.code.as_str())).await
            }
            EventData::RunCancelled(_) => self.ended(run, at_ms, "cancelled", None).await,
            _ => None,
        }
    }

    /// Notes that a step is under way.
    async fn begun(
        &mut self,
        run: RunId,
        instance: &StepInstanceKey,
        at_ms: u64,
        attempt: u32,
    ) -> Option<Span> {
        let open = self.known(run).await?;
        let begun = open.begun.entry(instance.clone()).or_insert((at_ms, attempt));
        if begun.1 != attempt {
            *begun = (at_ms, attempt);
        }
        None
    }

    /// The span of a try at a step.
    async fn step(&mut self, run: RunId, at_ms: u64, done: Try<'_>) -> Option<Span> {
        let Try { instance, attempt, duration_ms, status, code } = done;
        let open = self.known(run).await?;
        let begun = open.begun.remove(instance).map(|(at_ms, _)| at_ms);
        let step = instance.step.to_string();
        let mut attributes = vec![
            ("cairn.workflow.id", Attribute::Text(open.workflow.clone())),
            ("cairn.run.id", Attribute::Text(run.to_string())),
            ("cairn.step.id", Attribute::Text(instance.to_string())),
            ("cairn.step.attempt", Attribute::Number(u64::from(attempt))),
            ("cairn.step.status", Attribute::Text(status.to_owned())),
        ];
        let kind = open.types.get(&step).map(|kind| Attribute::Text(kind.clone()));
        attributes.extend(kind.map(|kind| ("cairn.step.type", kind)));
        attributes.extend(code.map(|code| ("error.type", Attribute::Text(code.to_owned()))));
        Some(Span {
            trace: open.place.trace,
            id: step_span(run, instance, attempt),
            parent: Some(open.place.span),
            name: step,
            kind: SpanKind::Internal,
            // A step without an intent is recorded when it is done.
            start_ms: begun.unwrap_or(at_ms.saturating_sub(duration_ms)),
            end_ms: at_ms,
            attributes,
            failed: status != "succeeded",
        })
    }

    /// The span of a run that is over.
    async fn ended(
        &mut self,
        run: RunId,
        at_ms: u64,
        status: &'static str,
        code: Option<&str>,
    ) -> Option<Span> {
        self.known(run).await?;
        let open = self.open.remove(&run)?;
        let mut attributes = vec![
            ("cairn.workflow.id", Attribute::Text(open.workflow.clone())),
            ("cairn.run.id", Attribute::Text(run.to_string())),
            ("cairn.run.status", Attribute::Text(status.to_owned())),
        ];
        let trigger = open.trigger.map(|id| ("cairn.trigger.id", Attribute::Text(id)));
        attributes.extend(trigger);
        attributes.extend(code.map(|code| ("error.type", Attribute::Text(code.to_owned()))));
        Some(Span {
            trace: open.place.trace,
            id: open.place.span,
            parent: open.parent,
            name: open.workflow,
            kind: SpanKind::Consumer,
            start_ms: open.queued_ms,
            end_ms: at_ms,
            attributes,
            failed: status == "failed",
        })
    }

    fn keep(&mut self, run: RunId, open: Open) {
        if self.open.len() >= RUNS_MAX {
            self.open.clear();
        }
        self.open.insert(run, open);
    }

    /// A run that is remembered, or else as the log has it.
    async fn known(&mut self, run: RunId) -> Option<&mut Open> {
        if !self.open.contains_key(&run) {
            let past = self.engine.past(run).await.ok()?;
            let queued = past.state.queued.as_ref()?;
            let mut open = self.opened(run, queued, past.summary.queued_ms).await;
            if let Some(started) = &past.state.started {
                open.types = self.types(started.workflow_hash).await;
            }
            self.keep(run, open);
        }
        self.open.get_mut(&run)
    }

    /// A run that was asked for.
    async fn opened(&self, run: RunId, queued: &RunQueued, at_ms: u64) -> Open {
        let above = match &queued.input {
            input @ Payload::Inline(_) => TraceParent::of_input(input),
            Payload::Blob(_) => self.asked_by(run).await,
        };
        Open {
            place: TraceParent::of_run(run, above),
            parent: above.map(|above| above.span),
            workflow: queued.workflow_id.clone(),
            trigger: queued.trigger_id.as_ref().map(ToString::to_string),
            queued_ms: at_ms,
            types: Arc::default(),
            begun: HashMap::new(),
        }
    }

    /// What asked for a run with a large input, which is beside the log.
    async fn asked_by(&self, run: RunId) -> Option<TraceParent> {
        TraceParent::of_input(&self.engine.past(run).await.ok()?.state.queued?.input)
    }

    async fn types(&mut self, hash: WorkflowHash) -> Arc<Types> {
        if let Some(known) = self.plans.get(&hash) {
            return Arc::clone(known);
        }
        let plan = self.engine.plan(hash).await;
        let steps = plan.iter().flat_map(|plan| &plan.steps);
        let types = steps.filter_map(|step| match &step.action {
            Action::Typed { r#type, .. } => Some((step.id.to_string(), r#type.to_string())),
            Action::Prompt(_) => None,
        });
        let types: Arc<Types> = Arc::new(types.collect());
        if self.plans.len() >= PLANS_MAX {
            self.plans.clear();
        }
        self.plans.insert(hash, Arc::clone(&types));
        types
    }
}
