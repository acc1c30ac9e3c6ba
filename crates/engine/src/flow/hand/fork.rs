//! Going another way from a step that is done: a run of its own, which keeps what was before.

use cairn_core::event::engine::{TaskAnswered, TaskOpened};
use cairn_core::event::{By, Event as Recorded, EventData};
use cairn_core::flow::{Fork, Repeated};
use cairn_core::id::{EventIndex, RunId};
use cairn_core::instance::StepInstanceKey;
use cairn_core::pin::BlobKind;
use cairn_core::snapshot::RunSnapshot;
use cairn_core::text::truncate;
use cairn_core::token::compact::Attempt;

use super::claims::{ClaimId, next_try};
use super::follow::Since;
use super::reply::{Reply, node};
use super::{Hand, Held, Spot, asker, log};
use crate::error::{Error, Result};
use crate::flow::{ForkPoint, Forker, Past, Roles};
use crate::guided::answer::{Answer, RunRef, Warning, WarningCode};
use crate::guided::ask::Continue;

/// How many forks of one step are told apart.
const FORKS_MAX: usize = 1_024;
/// How many of them are told of, and how many tries each is looked for at.
const FORKS_TOLD: usize = 4;
const TRIES_TOLD: usize = 4;
/// How much of the names of steps is told.
const NAMED_MAX: usize = 1_024;

impl Hand {
    /// Shows a step that is done, with the token that goes another way from it.
    pub(super) async fn rewound(
        &self,
        past: &Past,
        spot: &Spot,
        task: &TaskOpened,
    ) -> Result<Option<Answer>> {
        let Some((at, _)) = log::answered(&past.events, task.task_id) else { return Ok(None) };
        let mut attempt = Attempt::FIRST;
        let mut forks = Vec::new();
        for _ in 0..FORKS_MAX {
            // A fork whose output was blocked at first was made by one of the tries after it.
            let mut tried = attempt;
            for _ in 0..TRIES_TOLD {
                let fork = fork_of(past.summary.run, task, tried);
                if self.flow.index.find(fork).await?.is_some() {
                    forks.push(fork);
                }
                tried = next_try(tried);
            }
            if !forks.contains(&fork_of(past.summary.run, task, attempt)) {
                break;
            }
            attempt = attempt.next(node(past, at));
        }
        let fork = self.preview_of(past.summary.run, task).await?;
        let claim = ClaimId::of(spot.attempt);
        let token = Held::new(past, &self.keys).token(past.summary.first, claim.first_try());
        let reply = Reply::rewound(past, spot, (at, attempt), vec![repeats(&fork)], token);
        let mut answer = self.replies().make(reply).await?;
        // The latest are most likely meant.
        for fork in forks.into_iter().rev().take(FORKS_TOLD) {
            let forked = self.flow.reading.past(fork).await?;
            let join = ClaimId::mint(&*self.flow.host)?.first_try();
            let token = Held::new(&forked, &self.keys).token(forked.summary.first, join);
            answer.branches.push(Reply::branch(&forked, EventIndex(0), token, false));
        }
        Ok(Some(answer))
    }

    async fn preview_of(&self, run: RunId, task: &TaskOpened) -> Result<Fork> {
        let from = from(run, task);
        let forker = forker("agent".into(), &Roles::Any);
        Ok(self.flow.forked(&from, &forker, RunId::from_bits(0)).await?.fork)
    }

    /// What a new run took over from the one it was forked from. Its log says it, so that a
    /// repeated call is told the same.
    async fn reused(&self, forked: &Past) -> Result<String> {
        let from = forked.state.queued.as_ref().and_then(|queued| queued.forked_from.as_ref());
        let from = from.ok_or_else(|| Error::Broken("a fork of nothing".to_owned()))?;
        let bytes = self.flow.store.blobs.get(BlobKind::Snapshot, from.snapshot_ref.0).await?;
        let kept = RunSnapshot::decode(&bytes).map_err(|error| Error::Broken(error.to_string()))?;
        Ok(named(kept.state.steps.keys()))
    }

    /// Does a step another way than it was done, in a new run.
    pub(super) async fn fork_held(
        &self,
        spot: &Spot,
        answered: &TaskAnswered,
        ask: &Continue,
        roles: &Roles,
    ) -> Result<Answer> {
        let past = self.flow.reading.past(spot.run).await?;
        let gone = || Error::Broken("an answer to nothing".to_owned());
        let task =
            opened(&past.events, |task| task.task_id == answered.task_id).ok_or_else(gone)?;
        let (event, EventData::TaskOpened(task)) = (task, &task.data) else { return Err(gone()) };
        if let Err(blockers) = self.judge(&past, task, ask.output.as_ref()).await? {
            let shown = Spot { run: spot.run, event: event.clone(), attempt: spot.attempt };
            let reply = Reply::blocked(&past, &shown, blockers).with_token_at(spot.event.index);
            return self.replies().make(reply.not_forked()).await;
        }
        let run = fork_of(spot.run, task, spot.attempt);
        if self.flow.index.find(run).await?.is_none() {
            let asker = forker(asker(ask), roles);
            self.flow.fork_on_record(&from(spot.run, task), run, &asker).await?;
        }
        let forked = self.flow.reading.past(run).await?;
        let forked = self.settle(forked, Since::Event(EventIndex(0))).await?;
        let again = opened(&forked.events, |again| again.instance == task.instance).cloned();
        let Some(again) = again else { return self.not_there_yet(&forked, task).await };
        let EventData::TaskOpened(task) = again.data.clone() else { return Err(gone()) };
        let there = Spot { run, event: again, attempt: Attempt::FIRST };
        let mut answer = self.take(&there, &task, ask).await?;
        answer.session = Some(RunRef { session: forked.summary.session, run });
        answer.warnings.push(Warning {
            code: WarningCode::Forked,
            message: format!(
                "this is a new run, {} ({run}), forked from `{}` of {}, which stays as it is. It \
                 reuses: {}. Everything else is done again",
                answer.label,
                task.instance,
                spot.run,
                self.reused(&forked).await?
            ),
        });
        Ok(answer)
    }
}

impl Hand {
    /// Says where a new run stands that has not come to the step it was made for: a person is
    /// asked again first, or something takes its time.
    async fn not_there_yet(&self, forked: &Past, task: &TaskOpened) -> Result<Answer> {
        let mut answer = self.replies().make(Reply::begun(forked)).await?;
        answer.session = Some(RunRef { session: forked.summary.session, run: forked.summary.run });
        answer.warnings.push(Warning {
            code: WarningCode::Forked,
            message: format!(
                "not recorded: the output. This is a new run, {} ({}), which has not reached `{}` \
                 yet: send the output again when you get that step. The earlier run stays as it is. \
                 The new one reuses: {}. Everything else is done again",
                answer.label,
                forked.summary.run,
                task.instance,
                self.reused(forked).await?
            ),
        });
        Ok(answer)
    }
}

/// An agent answers nothing that is asked of people.
fn forker(by: By, roles: &Roles) -> Forker {
    Forker { by, roles: roles.clone(), answers: false }
}

fn from(run: RunId, task: &TaskOpened) -> ForkPoint {
    ForkPoint { run, step: task.instance.clone(), changes: Vec::new(), on_new_plan: false }
}

/// The run that an attempt at a step that is done leads to: the same whenever it is asked for.
fn fork_of(run: RunId, task: &TaskOpened, attempt: Attempt) -> RunId {
    RunId::derive(&["hand", &run.to_string(), &task.task_id.to_string(), &attempt.0.to_string()])
}

fn opened(events: &[Recorded], is_it: impl Fn(&TaskOpened) -> bool) -> Option<&Recorded> {
    events.iter().find(|event| matches!(&event.data, EventData::TaskOpened(task) if is_it(task)))
}

fn repeats(fork: &Fork) -> Warning {
    let again = |step: &Repeated| match step.has_effects {
        true => format!("`{}` (its effects may happen twice)", step.instance),
        false => format!("`{}`", step.instance),
    };
    let steps: Vec<String> = fork.again.iter().map(again).collect();
    Warning {
        code: WarningCode::ForkRepeats,
        message: format!(
            "this step is done already; another output starts a new run, which reuses: {}; and \
             repeats: {}",
            named(&fork.kept),
            truncate(&steps.join(", "), NAMED_MAX)
        ),
    }
}

/// The names of steps.
fn named<'a>(steps: impl IntoIterator<Item = &'a StepInstanceKey>) -> String {
    let names: Vec<String> = steps.into_iter().map(|step| format!("`{step}`")).collect();
    match names.is_empty() {
        true => "nothing".to_owned(),
        false => truncate(&names.join(", "), NAMED_MAX),
    }
}
