//! What an agent is answered.

use std::fmt::Write as _;

use cairn_core::event::EventData;
use cairn_core::event::engine::Payload;
use cairn_core::expression::untrusted;
use cairn_core::id::EventIndex;
use cairn_core::instance::StepInstanceKey;
use cairn_core::keyring::Keyring;
use cairn_core::projection::run::{RunStatus, StepStatus};
use cairn_core::reason::Blocker;
use cairn_core::text::{Slug, truncate};
use cairn_core::token::compact::Attempt;
use cairn_store::Store;
use serde_json::Value;

use super::claims::{self, ClaimId};
use super::log::{self, Open, Stop};
use super::reads::Reads;
use super::{Held, Spot, inline, output};
use crate::error::Result;
use crate::flow::plans::Plans;
use crate::flow::{Past, payload};
use crate::guided::answer::{
    Answer, BranchSummary, Lifecycle, NextIntent, Pending, Question, Recap, RunError, RunRef,
    Standing, TokenSet, Warning, WarningCode,
};

/// How much of a result is shown, in bytes of JSON.
const RESULT_MAX: usize = 16 << 10;
/// How much of a question is shown.
const PROMPT_MAX: usize = 512;
/// How much of what happened so far is told.
const RECAP_MAX: usize = 2_048;
/// How much of an agent's notes is told again.
const NOTES_MAX: usize = 240;
/// How many steps that are under way are named.
const DOING_MAX: usize = 8;

/// An answer in the making.
pub(super) struct Reply<'a> {
    past: &'a Past,
    lifecycle: Lifecycle,
    /// Where the run stops; none when it goes on by itself.
    stop: Option<Stop<'a>>,
    /// The step that is shown, when it is not the first of those that are handed out.
    shown: Option<EventIndex>,
    attempt: Attempt,
    /// Where the token stands, when that is not where the step was handed out.
    token_at: Option<EventIndex>,
    blockers: Vec<Blocker>,
    warnings: Vec<Warning>,
    branches: Vec<BranchSummary>,
}

impl<'a> Reply<'a> {
    fn new(past: &'a Past, lifecycle: Lifecycle, stop: Option<Stop<'a>>) -> Self {
        Self {
            past,
            lifecycle,
            stop,
            shown: None,
            attempt: Attempt::FIRST,
            token_at: None,
            blockers: Vec::new(),
            warnings: Vec::new(),
            branches: Vec::new(),
        }
    }

    /// A run was begun.
    pub(super) fn begun(past: &'a Past) -> Self {
        Self::new(past, Lifecycle::Start, log::first_stop(&past.events, EventIndex(0)))
    }

    /// A step was done, as the event at this place says.
    pub(super) fn advanced(past: &'a Past, at: EventIndex, warnings: Vec<Warning>) -> Self {
        let stop = log::first_stop(&past.events, at);
        Self { warnings, ..Self::new(past, Lifecycle::Advance, stop) }
    }

    /// Somebody wants to know how the run goes.
    pub(super) fn back(past: &'a Past) -> Self {
        let stop = Some(log::last_stop(&past.events)).filter(log::is_stop);
        Self::new(past, Lifecycle::Rehydrate, stop)
    }

    /// A step that waits is shown again.
    pub(super) fn again(past: &'a Past, spot: &Spot) -> Self {
        let (shown, attempt) = (Some(spot.event.index), spot.attempt);
        Self { shown, attempt, ..Self::back(past) }
    }

    /// What was handed in is not what the step asks for.
    pub(super) fn blocked(past: &'a Past, spot: &Spot, blockers: Vec<Blocker>) -> Self {
        // The run as it was when the step was handed out, whatever became of it since.
        let stop = log::first_stop(&past.events, spot.event.index);
        let attempt = claims::next_try(spot.attempt);
        let shown = Some(spot.event.index);
        Self { shown, attempt, blockers, ..Self::new(past, Lifecycle::Advance, stop) }
    }

    /// Tokens are given out under this claim.
    pub(super) fn under(self, claim: ClaimId) -> Self {
        Self { attempt: claim.first_try(), ..self }
    }

    /// The token stands elsewhere than the step.
    pub(super) fn with_token_at(self, at: EventIndex) -> Self {
        Self { token_at: Some(at), ..self }
    }

    /// No new run was started for an output that is not what the step asks for.
    pub(super) fn not_forked(mut self) -> Self {
        self.warnings.push(Warning {
            code: WarningCode::ForkRepeats,
            message: "this step is done already, and its run stays as it is; no new run was \
                      started. The retry starts one, once its output is what the step asks for"
                .to_owned(),
        });
        self
    }

    /// A step that is done is shown again, with where the run went from there and the token
    /// that goes another way: it stands where the step was answered.
    pub(super) fn rewound(
        past: &'a Past,
        spot: &Spot,
        (at, attempt): (EventIndex, Attempt),
        warnings: Vec<Warning>,
        continue_token: String,
    ) -> Self {
        let stop = log::first_stop(&past.events, spot.event.index);
        let branch = Self::branch(past, at, continue_token, true);
        let shown = Some(spot.event.index);
        let reply =
            Self { shown, attempt, warnings, ..Self::new(past, Lifecycle::Rehydrate, stop) };
        Self { branches: vec![branch], token_at: Some(at), ..reply }
    }

    /// A run that goes on from a step, by what happened in it behind an event.
    pub(super) fn branch(
        past: &Past,
        at: EventIndex,
        continue_token: String,
        preferred: bool,
    ) -> BranchSummary {
        let later = past.events.iter().filter(|event| event.index > at);
        let lines: Vec<String> = later.filter_map(|event| line(&event.data)).collect();
        let now = log::last_stop(&past.events);
        BranchSummary {
            node: node(past, at),
            preferred,
            nodes: lines.len(),
            is_complete: now.end.is_some(),
            at: now.handed().next().map(|open| open.task.instance.to_string()),
            summary: recapped(&lines).map(|recap| recap.text).unwrap_or_default(),
            continue_token,
        }
    }

    /// The step that the answer shows.
    fn open(&self) -> Option<&Open<'a>> {
        let mut handed = self.stop.as_ref()?.handed();
        match self.shown {
            Some(at) => handed.find(|open| open.at == at),
            None => handed.next(),
        }
    }
}

/// A name for a place in the log of a run.
pub(super) fn node(past: &Past, at: EventIndex) -> cairn_core::id::NodeId {
    cairn_core::id::NodeId::derive(&[&past.summary.run.to_string(), &at.0.to_string()])
}

/// Makes answers of what stands in the log.
pub(super) struct Replies<'a> {
    pub(super) store: &'a Store,
    pub(super) plans: &'a Plans,
    pub(super) keys: &'a Keyring,
}

impl Replies<'_> {
    /// Makes an answer.
    pub(super) async fn make(&self, reply: Reply<'_>) -> Result<Answer> {
        let held = Held::new(reply.past, self.keys);
        let pending = match reply.open() {
            Some(open) => Some(self.pending(reply.past, open).await?),
            None => None,
        };
        let standing = self.standing(&reply).await?;
        let token = match reply.open() {
            Some(open) => held.token(reply.token_at.unwrap_or(open.at), reply.attempt),
            None => {
                let claim = ClaimId::of(reply.attempt);
                held.token(reply.past.summary.first, claim.first_try())
            }
        };
        let is_complete = reply.stop.as_ref().is_some_and(|stop| stop.end.is_some());
        let coming_back = reply.lifecycle == Lifecycle::Rehydrate;
        // Whoever has to speak of the run needs its name.
        let told = reply.lifecycle != Lifecycle::Advance || pending.is_none();
        let (session, run) = (reply.past.summary.session, reply.past.summary.run);
        Ok(Answer {
            lifecycle: reply.lifecycle,
            retry_continue_token: (!reply.blockers.is_empty()).then(|| token.clone()),
            tokens: TokenSet { continue_token: token, checkpoint_token: None, pair: None },
            label: held.label.as_str().to_owned(),
            is_complete,
            next_intent: match &pending {
                _ if is_complete && standing.status != RunStatus::Succeeded.name() => {
                    NextIntent::Ended
                }
                _ if is_complete => NextIntent::Complete,
                Some(_) => NextIntent::PerformPendingThenContinue,
                None => NextIntent::RehydrateOnly,
            },
            session: told.then_some(RunRef { session, run }),
            preferences: None,
            step_context: None,
            recap: if coming_back && reply.token_at.is_none() { recap(reply.past) } else { None },
            branches: reply.branches,
            references: Vec::new(),
            standing: Some(standing),
            pending,
            blockers: reply.blockers,
            warnings: reply.warnings,
        })
    }

    /// A step as an agent gets it.
    async fn pending(&self, past: &Past, open: &Open<'_>) -> Result<Pending> {
        let instance = &open.task.instance;
        let request = payload::value(self.store, &open.task.request).await?;
        let reads = self.reads(past, &instance.step).await?;
        let contract = request.get("output_contract");
        let asks = output::asks(contract, &instance.step, &reads);
        let mut prompt = untrusted::warned(&text(&request, "prompt"));
        let _ = write!(prompt, "\n\n{}", output::demands(contract, &asks));
        Ok(Pending {
            step_id: instance.to_string(),
            title: self.title(past, instance).await?,
            prompt,
            require_confirmation: false,
            asks,
            is_owed: false,
        })
    }

    /// What later steps read of a step.
    pub(super) async fn reads(&self, past: &Past, step: &Slug) -> Result<Reads> {
        let Some(started) = &past.state.started else { return Ok(Reads::default()) };
        let ready = self.plans.get(started.workflow_hash).await?;
        Ok(Reads::of(&ready.graph.plan, step))
    }

    /// What a step is called.
    pub(super) async fn title(&self, past: &Past, instance: &StepInstanceKey) -> Result<String> {
        let title = match &past.state.started {
            Some(started) => {
                let ready = self.plans.get(started.workflow_hash).await?;
                ready.graph.plan.step(&instance.step).map(|step| step.title.clone())
            }
            None => None,
        };
        Ok(title.filter(|title| !title.is_empty()).unwrap_or_else(|| instance.step.to_string()))
    }

    async fn standing(&self, reply: &Reply<'_>) -> Result<Standing> {
        let state = &reply.past.state;
        let mut standing = Standing {
            status: state.status().name(),
            result: None,
            error: None,
            asks: Vec::new(),
            more: 0,
            doing: Vec::new(),
            cut_off: Vec::new(),
        };
        let Some(stop) = &reply.stop else {
            standing.asks = self.asks(&log::last_stop(&reply.past.events)).await?;
            let unknown = state.steps.iter().filter(|(_, step)| step.status == StepStatus::Unknown);
            standing.cut_off = unknown.map(|(key, _)| key.to_string()).take(DOING_MAX).collect();
            let busy = |status| matches!(status, StepStatus::Running | StepStatus::Pending);
            let doing = state.steps.iter().filter(|(_, step)| busy(step.status));
            standing.doing = doing.map(|(key, _)| key.to_string()).take(DOING_MAX).collect();
            return Ok(standing);
        };
        standing.status = RunStatus::Waiting.name();
        // What waits beside a step that is shown once more is told by the run that it leads to.
        standing.more = match reply.token_at {
            None => stop.handed().count().saturating_sub(1),
            Some(_) => 0,
        };
        standing.asks = self.asks(stop).await?;
        match stop.end {
            Some(EventData::RunCompleted(run)) => {
                standing.status = RunStatus::Succeeded.name();
                standing.result = Some(self.result(&run.result).await?);
            }
            Some(EventData::RunFailed(run)) => {
                standing.status = RunStatus::Failed.name();
                let step = run.instance.as_ref().map(ToString::to_string);
                let (code, message) = (run.error.code.clone(), run.error.message.clone());
                standing.error = Some(RunError { code, message, step });
            }
            Some(_) => standing.status = RunStatus::Cancelled.name(),
            None => {}
        }
        Ok(standing)
    }

    /// What came out, unless it is too long to be shown.
    async fn result(&self, result: &Payload) -> Result<Value> {
        let value = payload::value(self.store, result).await?;
        let length = value.to_string().len();
        if length <= RESULT_MAX {
            return Ok(value);
        }
        Ok(Value::String(format!("[left out: {length} bytes; `cairn runs show` has it]")))
    }

    async fn asks(&self, stop: &Stop<'_>) -> Result<Vec<Question>> {
        let mut asks = Vec::new();
        for open in stop.asked() {
            let request = payload::value(self.store, &open.task.request).await?;
            let who = request.get("who").and_then(Value::as_array);
            let who = who.into_iter().flatten().filter_map(Value::as_str);
            asks.push(Question {
                step: open.task.instance.to_string(),
                task: open.task.task_id,
                prompt: truncate(&text(&request, "prompt"), PROMPT_MAX),
                who: who.map(str::to_owned).collect(),
                form: request.get("form").cloned(),
            });
        }
        Ok(asks)
    }
}

pub(super) fn text(request: &Value, name: &str) -> String {
    match request.get(name) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Null) | None => String::new(),
        Some(other) => other.to_string(),
    }
}

/// What was done so far, as far as there is room, the latest kept.
fn recap(past: &Past) -> Option<Recap> {
    let lines: Vec<String> = past.events.iter().filter_map(|event| line(&event.data)).collect();
    recapped(&lines)
}

fn recapped(lines: &[String]) -> Option<Recap> {
    let mut room = RECAP_MAX;
    let fits = |line: &&String| {
        let left = room.checked_sub(line.len() + 1);
        room = left.unwrap_or_default();
        left.is_some()
    };
    let mut kept: Vec<&String> = lines.iter().rev().take_while(fits).collect();
    kept.reverse();
    let omitted = lines.len() - kept.len();
    let mut text = String::new();
    if omitted > 0 {
        let _ = writeln!(text, "({omitted} earlier steps are left out)");
    }
    for line in kept {
        let _ = writeln!(text, "{line}");
    }
    (!lines.is_empty()).then(|| Recap { text: text.trim_end().to_owned(), omitted })
}

fn line(data: &EventData) -> Option<String> {
    match data {
        EventData::StepCompleted(step) => {
            let notes = inline(&step.output).and_then(|output| output.get("notes"));
            let notes = notes.and_then(Value::as_str).map(|notes| {
                let notes = notes.split_whitespace().collect::<Vec<_>>().join(" ");
                format!(": {}", truncate(&notes, NOTES_MAX).replace('\n', " "))
            });
            Some(format!("- `{}` is done{}", step.instance, notes.unwrap_or_default()))
        }
        EventData::StepFailed(step) => {
            Some(format!("- `{}` failed: {}", step.instance, step.error.message))
        }
        EventData::StepSkipped(step) => Some(format!("- `{}` was skipped", step.instance)),
        _ => None,
    }
}
