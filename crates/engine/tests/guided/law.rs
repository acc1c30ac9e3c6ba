//! The law of input: what a call sends is recorded, refused, or named in a warning as not
//! recorded. One table, every kind of call against everything that it can send.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use cairn_core::catalog::StepType;
use cairn_core::event::guided::{Autonomy, OutputPayload, RiskPolicy};
use cairn_core::event::{Event, EventData};
use cairn_engine::guided::Guide;
use cairn_engine::guided::answer::{Answer, Warning};
use cairn_engine::guided::ask::{
    Checkpoint, CheckpointAt, Continue, Output, Start, Tokens, Wanted,
};
use cairn_engine::performer::{Ctx, Failed, Outcome, Performer, Performers};
use serde_json::{Value, json};

use crate::world::{NOTES, World, ack, back, step};

const FLOW: &str = "
id: project.law
name: Law
description: A step that is checked, a command that fails at first, a step behind a condition.
version: 1.0.0
steps:
  - {id: first, title: First, prompt: Do it.}
  - id: checked
    title: Checked
    prompt: Write findings.
    validationCriteria: [{type: contains, value: 'Finding', message: name a finding}]
    verification: {command: make test}
  - {id: extra, title: Extra, prompt: Look closer., runCondition: {var: deep}}
  - {id: last, title: Last, prompt: Finish.}
";

/// The word that tells what a call sent from everything else in the log.
const MARK: &str = "marked-by-this-call";

/// What a call can send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sent {
    Notes,
    Artifacts,
    Context,
    Preferences,
}

/// What may become of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    Recorded,
    Refused,
    Named,
}

/// A command that fails the first times.
struct Command {
    runs: AtomicUsize,
    failures: usize,
}

#[async_trait]
impl Performer for Command {
    fn kind(&self) -> StepType {
        crate::performed::kind("shell")
    }

    async fn perform(&self, _: Value, _: &Ctx) -> Result<Outcome, Failed> {
        let ok = self.runs.fetch_add(1, Ordering::SeqCst) >= self.failures;
        Ok(Outcome::new(json!({"ok": ok}), format!("ended {ok}")))
    }
}

struct Case {
    world: World,
    guide: Guide,
}

impl Case {
    fn new(failures: usize) -> Self {
        let world = World::of(FLOW);
        let command = Command { runs: AtomicUsize::new(0), failures };
        let performers = Performers::new(vec![Arc::new(command)]);
        let guide = world.performing(&world.store, performers);
        Self { world, guide }
    }

    async fn start(&self) -> Answer {
        let start = Start { workflow: "project.law".into(), ..Start::default() };
        self.guide.start(start).await.unwrap()
    }

    async fn go(&self, from: &Answer, notes: &str) -> Answer {
        let token = from.retry_continue_token.as_ref().unwrap_or(&from.tokens.continue_token);
        self.guide.proceed(ack(token, notes, Vec::new())).await.unwrap()
    }

    /// Where the run stands before the call of a row.
    async fn at(&self, row: &str) -> Answer {
        let first = self.start().await;
        match row {
            "block" => self.go(&first, NOTES).await,
            "failed verification" | "engine step" => {
                let checked = self.go(&first, NOTES).await;
                self.go(&checked, "Finding 1: none.").await
            }
            "completed run" => {
                let mut answer = first;
                while !answer.is_complete {
                    answer = self.go(&answer, "Finding 1: none.").await;
                }
                answer
            }
            _ => first,
        }
    }

    async fn events(&self, at: &Answer) -> Vec<Event> {
        let session = at.tokens.continue_token.clone();
        let here = self.guide.proceed(back(&session)).await.unwrap();
        self.world.events(here.session.unwrap().session).await
    }
}

fn call(at: &Answer, sent: Sent, notes: &str) -> Continue {
    let token = at.retry_continue_token.as_ref().unwrap_or(&at.tokens.continue_token);
    let mut call = ack(token, notes, Vec::new());
    let output = call.output.as_mut().unwrap();
    match sent {
        Sent::Notes => output.notes = Some(format!("{notes} {MARK}")),
        Sent::Artifacts => output.artifacts = vec![json!({"kind": "x.result", "name": MARK})],
        Sent::Context => call.context = Some(json!({"deep": MARK})),
        Sent::Preferences => {
            call.preferences = Wanted { risk_policy: Some(RiskPolicy::Aggressive), autonomy: None };
        }
    }
    call
}

fn note(at: &Answer, sent: Sent, replaces_notes: bool) -> Option<Checkpoint> {
    let output = match sent {
        Sent::Notes => Output { notes: Some(MARK.into()), artifacts: Vec::new() },
        Sent::Artifacts => {
            let notes = replaces_notes.then(|| "Corrected.".to_owned());
            Output { notes, artifacts: vec![json!({"kind": "x.result", "name": MARK})] }
        }
        // A checkpoint has no place for these: a field that is not known is refused at the door.
        Sent::Context | Sent::Preferences => return None,
    };
    Some(Checkpoint {
        at: CheckpointAt::Compact(at.tokens.checkpoint_token.clone().unwrap()),
        output,
        replaces_notes,
        tokens: Tokens::Compact,
        by: None,
    })
}

/// Whether what was sent is in the log.
async fn is_recorded(case: &Case, events: &[Event], sent: Sent) -> bool {
    let mut found = false;
    for event in events {
        found |= match (&event.data, sent) {
            (EventData::NodeOutputAppended(output), _) => match (&output.payload, sent) {
                (OutputPayload::Notes { notes_markdown }, Sent::Notes) => {
                    notes_markdown.contains(MARK)
                }
                (OutputPayload::ArtifactRef { sha256, .. }, Sent::Artifacts) => {
                    let kind = cairn_core::pin::BlobKind::Artifact;
                    let bytes = case.world.store.blobs.get(kind, *sha256).await.unwrap();
                    String::from_utf8_lossy(&bytes).contains(MARK)
                }
                _ => false,
            },
            (EventData::ContextSet(set), Sent::Context) => set.context.0.to_string().contains(MARK),
            (EventData::PreferencesChanged(change), Sent::Preferences) => {
                change.effective.risk_policy == RiskPolicy::Aggressive
            }
            _ => false,
        };
    }
    found
}

/// Whether a warning names what was sent as not recorded.
fn is_named(warnings: &[Warning], sent: Sent) -> bool {
    let name = match sent {
        Sent::Notes => "notes",
        Sent::Artifacts => "1 artifact",
        Sent::Context => "context `deep`",
        Sent::Preferences => "preferences",
    };
    warnings.iter().any(|warning| {
        warning.message.contains(&format!("not recorded: {name}"))
            || warning.message.contains(&format!(", {name}"))
            || warning.message.contains("nothing of this call was recorded")
    })
}

async fn fate(row: &str, sent: Sent) -> Fate {
    let case = Case::new(if row == "failed verification" { 2 } else { 1 });
    let at = case.at(row).await;
    let (refused, warnings) = match row {
        "checkpoint" | "checkpoint again" | "correction" | "checkpoint at the end" => {
            let at = match row {
                "correction" => case.go(&at, NOTES).await,
                _ => at.clone(),
            };
            if row == "checkpoint again" {
                let first = note(&at, Sent::Notes, false).unwrap();
                let output = Output { notes: Some("Other.".into()), artifacts: Vec::new() };
                case.guide.checkpoint(Checkpoint { output, ..first }).await.unwrap();
            }
            let Some(ask) = note(&at, sent, row == "correction") else { return Fate::Refused };
            match case.guide.checkpoint(ask).await {
                Err(error) => (Some(error.code()), Vec::new()),
                Ok(told) => {
                    assert_eq!(told.recorded, told.warnings.is_empty(), "{told:?}");
                    (None, told.warnings)
                }
            }
        }
        _ => {
            let notes = if row == "block" { "Nothing." } else { "Finding 1: none." };
            if row == "replay with another input" {
                case.go(&at, NOTES).await;
            }
            let call = call(&at, sent, notes);
            if row == "replay" {
                case.guide.proceed(call.clone()).await.unwrap();
            }
            match case.guide.proceed(call).await {
                Err(error) => (Some(error.code()), Vec::new()),
                Ok(answer) => {
                    let blocks = ["block", "failed verification"].contains(&row);
                    assert_eq!(answer.blockers.is_empty(), !blocks, "{row} {sent:?}");
                    (None, answer.warnings)
                }
            }
        }
    };
    let recorded = is_recorded(&case, &case.events(&at).await, sent).await;
    let named = is_named(&warnings, sent);
    match (refused, recorded, named) {
        (Some(_), false, _) => Fate::Refused,
        (None, true, false) => Fate::Recorded,
        (None, false, true) => Fate::Named,
        other => panic!("{row} {sent:?}: {other:?}, {warnings:?}"),
    }
}

#[tokio::test]
async fn what_a_call_sends_is_recorded_refused_or_named() {
    use Fate::{Named, Recorded, Refused};
    let table = [
        ("advance", [Recorded; 4]),
        ("block", [Recorded; 4]),
        ("replay", [Recorded; 4]),
        ("replay with another input", [Named; 4]),
        ("checkpoint", [Recorded, Recorded, Refused, Refused]),
        ("checkpoint again", [Named, Named, Refused, Refused]),
        ("correction", [Recorded, Refused, Refused, Refused]),
        ("engine step", [Recorded; 4]),
        ("failed verification", [Recorded; 4]),
        ("completed run", [Refused; 4]),
    ];
    let sent = [Sent::Notes, Sent::Artifacts, Sent::Context, Sent::Preferences];
    for (row, wanted) in table {
        for (sent, wanted) in sent.into_iter().zip(wanted) {
            assert_eq!(fate(row, sent).await, wanted, "{row} {sent:?}");
        }
    }
}

#[tokio::test]
async fn facts_and_wishes_of_a_blocked_attempt_hold_for_the_retry_that_is_shown() {
    let case = Case::new(1);
    let at = case.at("block").await;
    let autonomy = Wanted { autonomy: Some(Autonomy::FullAutoStopOnUserDeps), risk_policy: None };
    let mut call = call(&at, Sent::Context, "Nothing.");
    call.preferences = autonomy;
    let blocked = case.guide.proceed(call.clone()).await.unwrap();
    assert_eq!(blocked.preferences.unwrap().autonomy, Autonomy::FullAutoStopOnUserDeps);
    assert_eq!(case.guide.proceed(call).await.unwrap(), blocked, "a repetition tells the same");
    // Literally the call that the answer shows: the token and the whole output, nothing else.
    let failed = case.go(&blocked, "Finding 1: none.").await;
    let passed = case.go(&failed, "Fixed the test.").await;
    assert_eq!(step(&passed), "extra", "the condition sees what was sent with the block");
    // A branch that came before it, or beside it, sees nothing of it.
    let beside = case.guide.proceed(back(&at.tokens.continue_token)).await.unwrap();
    assert_eq!(beside.preferences.unwrap().autonomy, Autonomy::Guided);
    let beside = case.go(&beside, "Finding 1: none.").await;
    assert_eq!(step(&beside), "last", "{beside:?}");
}

#[tokio::test]
async fn notes_of_a_blocked_attempt_are_told_until_the_step_is_done() {
    let case = Case::new(1);
    let at = case.at("block").await;
    let blocked = case.guide.proceed(call(&at, Sent::Notes, "Nothing.")).await.unwrap();
    let token = blocked.retry_continue_token.clone().unwrap();
    let here = case.guide.proceed(back(&token)).await.unwrap();
    assert!(here.recap.unwrap().text.contains(MARK));
    let failed = case.go(&blocked, "Finding 1: none.").await;
    let passed = case.go(&failed, "Fixed the test.").await;
    let back = case.guide.proceed(back(&passed.tokens.continue_token)).await.unwrap();
    let recap = back.recap.unwrap().text;
    assert!(!recap.contains(MARK), "{recap}");
    assert!(recap.contains("Fixed the test."), "notes for the engine's step: {recap}");
    assert!(recap.contains("ended true"), "and what the engine did: {recap}");
    cairn_core::lineage::check(&case.events(&at).await).unwrap();
}
