//! What agents read. The same data always gives the same text.
//!
//! An answer has its parts in a fixed order, one content item each: the step with what to
//! call next, the references, then whatever else is worth knowing.

mod standing;
mod supplement;
mod workflow;

use std::fmt::Write as _;

use cairn_api::Error;
use cairn_api::guided::answer::{
    Answer, Candidate, Checkpointed, Kind, NextIntent, Pending, Resumed, SessionOpened, Warning,
};
use cairn_core::canonical::StrictValue;
use cairn_core::error::Retry;
use cairn_core::projection::resume::WhyMatched;
use cairn_core::text::inert;
use cairn_engine::guided::answer::{self as engine, Asks, NotesAsked};
use serde_json::{Map, Value, json};

use crate::advice;
use crate::tools::Reply;

pub(crate) use workflow::{inspected, workflows};

/// What stands between a prompt and what is ours.
const RULE: &str = "\n\n---\n";
/// The code of the warning that what was sent is not on record.
const NOT_RECORDED: &str = "replayed_with_other_input";
/// How an agent that has to wait stops, and how the run is found again.
const LATER: &str = "To continue another day, stop here and tell the user: this token stays valid, \
    and resume_session finds the run in a new chat.";

/// An answer about a run.
pub(crate) fn answer(found: engine::Answer) -> Reply<Answer> {
    let references = supplement::references(found.lifecycle, &found.references);
    let asks = found.pending.as_ref().map(|pending| pending.asks.clone()).unwrap_or_default();
    let data = Answer::from(found);
    let mut texts = vec![primary(&data, &asks)];
    texts.extend(references);
    texts.extend(supplement::all(&data));
    Reply { data, texts }
}

/// The step to do, or why there is none, and what to call next.
fn primary(data: &Answer, asks: &Asks) -> String {
    let mut text = match (&data.kind, &data.pending) {
        (Kind::Blocked, pending) => blocked(data, pending.as_ref(), asks),
        (Kind::Ok, Some(pending)) => format!("{}{RULE}{}", pending.prompt, next(data, asks)),
        (Kind::Ok, None) => over(data),
    };
    if let Some(done) = done_before(data) {
        text = format!("{done}{RULE}{text}");
    }
    if let Some(warning) = unrecorded(data) {
        let message = warning.message.trim_start_matches("not recorded: ");
        text = format!("NOT RECORDED: {message}.{RULE}{text}");
    }
    let _ = write!(text, "\n{}", names(data));
    text
}

/// The warning that what was sent is not on record.
fn unrecorded(data: &Answer) -> Option<&Warning> {
    data.warnings.iter().find(|warning| warning.code == NOT_RECORDED)
}

/// What is said first of a step that is shown again and was done before.
fn done_before(data: &Answer) -> Option<String> {
    let pending = data.pending.as_ref().filter(|_| data.kind == Kind::Ok)?;
    let newest = data.branches.first().filter(|_| unrecorded(data).is_none())?;
    let stands = match (&newest.pending_step_id, newest.is_complete) {
        (_, true) => "the run is complete there".to_owned(),
        (Some(at), false) => format!("the run is at `{at}` there"),
        (None, false) => "the run continues there by itself".to_owned(),
    };
    let again = match data.run {
        None => "makes a new branch",
        Some(_) => "starts a new run",
    };
    Some(format!(
        "DONE BEFORE: `{}` is done already, and {stands}. To see that, call continue_workflow with \
         continueToken \"{}\" alone. What follows is the step as it was; the call that it shows \
         {again}.",
        pending.step_id, newest.continue_token
    ))
}

fn next(data: &Answer, asks: &Asks) -> String {
    let (before, call) = match data.next_intent {
        NextIntent::PerformPendingThenContinue if done_before(data).is_some() => {
            ("To do the step another way,", done(data, asks))
        }
        NextIntent::PerformPendingThenContinue if unrecorded(data).is_some() => {
            let before = match data.run {
                None => "To record what you sent as a new branch,",
                Some(_) => "To record what you sent in a new run,",
            };
            (before, done(data, asks))
        }
        NextIntent::PerformPendingThenContinue => ("When the step is done,", done(data, asks)),
        NextIntent::AwaitUserConfirmation => {
            ("Do the step, show the user the result and wait for their yes. Then", done(data, asks))
        }
        NextIntent::RehydrateOnly | NextIntent::Complete | NextIntent::Ended => {
            ("To see where the run stands,", tokens(data, false))
        }
    };
    let intent = data.next_intent.name();
    let mut text = format!("nextIntent: {intent}. {before} call continue_workflow with\n{call}");
    if data.pending.is_none() {
        return text;
    }
    text.push_str("\nIts answer is the next step: do not guess it or work ahead.");
    if let Some(token) = &data.checkpoint_token {
        let _ = write!(
            text,
            " To record notes before that, call checkpoint_workflow with checkpointToken \"{token}\"."
        );
    }
    if data.next_intent == NextIntent::AwaitUserConfirmation {
        let _ = write!(text, " {LATER}");
    }
    text
}

fn blocked(data: &Answer, pending: Option<&Pending>, asks: &Asks) -> String {
    let mut text = String::from(match data.run {
        None => "BLOCKED: the run stays at this step.\n",
        Some(_) => "BLOCKED: this is not what the step asks for, and nothing of it was recorded.\n",
    });
    for (place, blocker) in data.blockers.iter().enumerate() {
        let code = blocker.code.name();
        let _ = write!(text, "\n{}. {code}: {}", place + 1, blocker.message);
        if let Some(fix) = &blocker.suggested_fix {
            let _ = write!(text, "\n   suggestedFix: {fix}");
        }
    }
    let token = data.retry_continue_token.as_ref().unwrap_or(&data.continue_token);
    let mut call = json!({"continueToken": token});
    fill(&mut call, asks);
    // An automation takes no context with a step.
    let recorded = match data.run {
        None => " Context and preferences that you sent are recorded; send only what changed.",
        Some(_) => "",
    };
    let first = match data.next_intent {
        NextIntent::AwaitUserConfirmation => "Ask the user for what is missing",
        _ => "Do each suggestedFix",
    };
    let _ = write!(
        text,
        "{RULE}nextIntent: {}. {first}, then send the whole output again; the continueToken below \
         is the `retryContinueToken` of this answer.{recorded}\n{call}",
        data.next_intent.name()
    );
    if let Some(pending) = pending {
        let _ = write!(
            text,
            "\nStill pending: {} (`{}`). To see its prompt again, send the token alone. {LATER}",
            pending.title, pending.step_id
        );
    }
    text
}

fn over(data: &Answer) -> String {
    match &data.run {
        Some(run) if data.is_complete => return standing::over(run),
        Some(run) => return standing::at_work(data, run),
        None => {}
    }
    if data.is_complete {
        "nextIntent: complete. The workflow is complete: call nothing more for this run, and tell \
         the user its outcome."
            .to_owned()
    } else {
        format!("There is no step to do now.{RULE}{}", next(data, &Asks::default()))
    }
}

/// The call that says that a step is done.
fn done(data: &Answer, asks: &Asks) -> String {
    let mut call = tokens_value(data, true);
    fill(&mut call, asks);
    call.to_string()
}

/// The output to fill in for a step.
fn output(asks: &Asks) -> Value {
    let mut output = Map::new();
    // Nobody is asked for notes that would not be recorded.
    if asks.notes != NotesAsked::NotRecorded {
        output.insert("notesMarkdown".to_owned(), json!("<what you did in this step alone>"));
    }
    if !asks.artifacts.is_empty() {
        output.insert("artifacts".to_owned(), json!(asks.artifacts));
    }
    Value::Object(output)
}

/// Adds what a step brings to the call that says it is done.
fn fill(call: &mut Value, asks: &Asks) {
    let Some(fields) = call.as_object_mut() else { return };
    fields.insert("output".to_owned(), output(asks));
    if !asks.context.is_empty() {
        let keys =
            asks.context.iter().map(|(name, told)| (name.clone(), json!(format!("<{told}>"))));
        fields.insert("context".to_owned(), Value::Object(keys.collect()));
    }
}

fn tokens(data: &Answer, done: bool) -> String {
    tokens_value(data, done).to_string()
}

fn tokens_value(data: &Answer, done: bool) -> Value {
    match (&data.state_token, &data.ack_token) {
        (Some(state), Some(ack)) if done => json!({"stateToken": state, "ackToken": ack}),
        (Some(state), _) => json!({"stateToken": state}),
        _ => json!({"continueToken": data.continue_token}),
    }
}

/// Which run and step it is.
fn names(data: &Answer) -> String {
    let mut text = match (&data.session, &data.label) {
        (Some(session), _) => {
            format!("Run {} ({}, {})", session.label, session.run_id, session.session_id)
        }
        (None, label) => format!("Run {}", label.as_deref().unwrap_or("-")),
    };
    if let Some(pending) = data.pending.as_ref().filter(|_| data.kind == Kind::Ok) {
        let _ = write!(text, ", step `{}`: {}", pending.step_id, pending.title);
    }
    if !text.ends_with(['.', '?', '!']) {
        text.push('.');
    }
    text
}

/// A checkpoint was recorded, or not.
pub(crate) fn checkpointed(found: engine::Checkpointed) -> Reply<Checkpointed> {
    let (recorded, next) = (found.recorded, found.next.clone());
    let data = Checkpointed::from(found);
    let mut text = match recorded {
        true => "Recorded.".to_owned(),
        false => "NOT RECORDED.".to_owned(),
    };
    for warning in &data.warnings {
        let _ = write!(text, " {}: {}.", warning.code, warning.message);
    }
    match &next {
        engine::AfterCheckpoint::Step => {
            let call = json!({"continueToken": data.continue_token});
            let _ = write!(
                text,
                " The step is still pending; when it is done, send what it asks for with this \
                 continueToken; alone it shows the step again:\n{call}"
            );
        }
        engine::AfterCheckpoint::Behind(behind) => after_behind(&mut text, behind),
        engine::AfterCheckpoint::Complete => text.push_str(" The run is complete."),
        engine::AfterCheckpoint::Notes => {}
    }
    let what = if next == engine::AfterCheckpoint::Notes { "Session" } else { "Run" };
    let _ = write!(
        text,
        "\nThe next checkpoint takes checkpointToken \"{}\".\n{what} {}.",
        data.checkpoint_token, data.label
    );
    Reply { data, texts: vec![text] }
}

/// What follows a checkpoint at a step that the run has left.
fn after_behind(text: &mut String, behind: &engine::Behind) {
    let stands = match &behind.at {
        Some(at) => format!("the run is at `{at}`"),
        None => "the run is complete".to_owned(),
    };
    let call = json!({"continueToken": behind.continue_token});
    let _ = write!(
        text,
        " `{}` is done, and {stands}; to see where it stands, call continue_workflow with\n{call}",
        behind.step
    );
}

/// A session was opened.
pub(crate) fn session_opened(data: &SessionOpened) -> String {
    format!(
        "Session {} ({}) is open. Record notes with checkpoint_workflow and sessionToken \"{}\"; \
         each answer has the token for the next.",
        data.session_id, data.label, data.session_token
    )
}

/// Runs that may be meant. `asked` says by what they were looked for.
pub(crate) fn resumed(data: &Resumed, asked: &Looked) -> String {
    let untrusted = format!("{}{}", waiting(data), untrusted(data));
    if data.candidates.is_empty() && !data.waiting.is_empty() {
        return format!("No guided run matches.{untrusted}");
    }
    if data.candidates.is_empty() {
        let none = "There is no run to resume. Choose a workflow with list_workflows.";
        return format!("{none}{untrusted}");
    }
    let nothing = [WhyMatched::RecencyFallback.name()];
    let matched = data.candidates.iter().filter(|found| found.why_matched != nothing).count();
    let mut text = match (matched, asked.any()) {
        (0, true) => format!("No run matches {}; these moved last.", asked.told()),
        (0, false) => "These runs moved last.".to_owned(),
        (some, _) if some == data.candidates.len() => "Runs, best match first.".to_owned(),
        (some, _) => format!("Runs, best match first; only the first {some} match."),
    };
    text.push_str(
        " Take the one that fits, or ask the user; then call continue_workflow with its \
         continueToken alone.",
    );
    if asked.folder && !asked.words {
        text.push_str(
            " workspacePath puts runs on its git branch and commit first, and leaves none out: \
             `project` says where each was started.",
        );
    }
    for (place, found) in data.candidates.iter().enumerate() {
        let _ = write!(text, "\n\n{}. {}", place + 1, candidate(found));
    }
    match data.more {
        0 => {}
        more => {
            let _ = write!(
                text,
                "\n\n{more} more are not shown; words in `query` that tell the run apart find it."
            );
        }
    }
    text.push_str(&untrusted);
    text
}

/// By what runs were looked for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Looked {
    pub(crate) words: bool,
    /// A branch or commit.
    pub(crate) place: bool,
    pub(crate) folder: bool,
}

impl Looked {
    const fn any(&self) -> bool {
        self.words || self.place || self.folder
    }

    fn told(&self) -> String {
        let all = [
            (self.words, "all of these words"),
            (self.place, "that branch or commit"),
            (self.folder && !self.words, "the branch or commit of that folder"),
        ];
        let told = all.into_iter().filter(|(is_so, _)| *is_so).map(|(_, told)| told);
        told.collect::<Vec<_>>().join(" or ")
    }
}

fn candidate(found: &Candidate) -> String {
    let nothing = [WhyMatched::RecencyFallback.name()];
    let why = match found.why_matched == nothing {
        // That it moved last is said above.
        true => String::new(),
        false => format!(" ({})", found.why_matched.join(", ")),
    };
    let mut text = format!(
        "{}: {}, {}{}, moved {} ago{why}",
        found.session.label,
        found.workflow_id,
        found.status,
        if found.branch { ", another branch" } else { "" },
        age(found.idle_sec),
    );
    let line = |name: &str, value: &str| format!("\n   {name}: {}", inert(value));
    text.extend(found.goal.as_deref().map(|goal| line("goal", goal)));
    text.extend(found.project.as_deref().map(|path| line("project", path)));
    text.extend(found.pending_step.as_deref().map(|step| line("pending step", step)));
    text.extend(found.blocked_by.iter().map(|why| line("blocked", why)));
    let _ = write!(text, "\n   continueToken: \"{}\"", found.continue_token);
    if !found.snippet.is_empty() {
        let snippet = found.snippet.lines().map(inert).collect::<Vec<_>>().join("\n   > ");
        let _ = write!(text, "\n   > {snippet}");
    }
    text
}

/// The runs that wait for an agent, whoever started them.
fn waiting(data: &Resumed) -> String {
    if data.waiting.is_empty() {
        return String::new();
    }
    let mut text =
        "\n\nAutomations that wait for an agent, whoever started them. To do the step of \
                    one, call continue_workflow with its continueToken alone: that claims the run \
                    until 15 minutes after your last call."
            .to_owned();
    for run in &data.waiting {
        let since = run.waiting_since.as_deref().unwrap_or("?");
        let _ = write!(
            text,
            "\n\n- {}: {}, pending step: {}, since {since}",
            run.session.label, run.workflow_id, run.pending_step,
        );
        if let Some(until) = run.claimed_until.as_ref().filter(|_| run.claimed_as_you) {
            let _ = write!(
                text,
                "\n  claimed under your name until {until}. If that was you, in a chat that is over, \
                 this token takes the run over; if another agent of the user works on it, leave it\
                 \n  continueToken: \"{}\"",
                run.continue_token
            );
        } else if let Some(until) = &run.claimed_until {
            let _ = write!(
                text,
                "\n  claimed by another agent until {until}; if that agent is gone, tell the user: \
                 `cairn runs release {}` releases it",
                run.session.run_id
            );
        } else {
            let _ = write!(text, "\n  continueToken: \"{}\"", run.continue_token);
        }
        let snippet = run.snippet.lines().map(inert).collect::<Vec<_>>().join("\n  > ");
        let _ = write!(text, "\n  > {snippet}");
    }
    text
}

/// A time in words, in its largest unit.
fn age(seconds: u64) -> String {
    let (count, unit) = match seconds {
        0..60 => (seconds, "s"),
        60..3_600 => (seconds / 60, "min"),
        3_600..86_400 => (seconds / 3_600, "h"),
        _ => (seconds / 86_400, "d"),
    };
    format!("{count} {unit}")
}

/// What to tell the user of sessions that nobody trusts yet.
fn untrusted(data: &Resumed) -> String {
    let Some(first) = data.untrusted.first() else { return String::new() };
    let count = data.untrusted.len();
    let (sessions, wait) = if count == 1 { ("session", "waits") } else { ("sessions", "wait") };
    format!(
        "\n\n{count} imported {sessions} {wait} for a person's trust; until then no run of it can be \
         resumed. Tell the user: `cairn session trust {first}` shows what it would do and asks."
    )
}

/// A failure: what is wrong, what to do, whether to try again.
pub(crate) fn failure(error: &Error) -> Reply<Value> {
    let envelope = advice::envelope(error);
    let again = match envelope.retry {
        Retry::NotRetryable => "the same call fails again".to_owned(),
        Retry::RetryableImmediate => "send the same call again at once".to_owned(),
        Retry::RetryableAfterMs { after_ms } => {
            format!("send the same call again after {after_ms} ms")
        }
    };
    let mut text = format!(
        "ERROR {}: {}\nDo: {}\nRetry: {again}.",
        envelope.code, envelope.message, envelope.suggestion
    );
    // What is wrong with arguments is all in the message.
    let new = |details: &&StrictValue| details.0.get("problems").is_none();
    if let Some(details) = envelope.details.as_ref().filter(new) {
        let _ = write!(text, "\nDetails: {}", details.0);
    }
    Reply { data: serde_json::to_value(&envelope).unwrap_or_default(), texts: vec![text] }
}

#[cfg(test)]
mod tests;
