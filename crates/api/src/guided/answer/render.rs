//! From what the engine says to what goes over the wire.

use cairn_core::id::SessionId;
use cairn_engine::flow;
use cairn_engine::guided::answer;

use super::{
    Answer, Assessment, Assessments, Branch, Candidate, Checkpointed, Dimension, Kind, NextIntent,
    Pending, Preferences, Question, Recap, Resumed, Session, SessionOpened, Standing, StepContext,
    Truncation, WaitingRun, Warning,
};
use crate::time;

impl From<answer::Answer> for Answer {
    fn from(found: answer::Answer) -> Self {
        let (state_token, ack_token) = found.tokens.pair.unzip();
        let label = found.label;
        let (session, label) = match found.session {
            Some(run) => (Some(session(run, label)), None),
            None => (None, Some(label)),
        };
        Self {
            kind: if found.blockers.is_empty() { Kind::Ok } else { Kind::Blocked },
            continue_token: found.tokens.continue_token,
            checkpoint_token: found.tokens.checkpoint_token,
            state_token,
            ack_token,
            pending: found.pending.map(Into::into),
            is_complete: found.is_complete,
            next_intent: found.next_intent.into(),
            label,
            session,
            preferences: found.preferences.map(|given| Preferences {
                autonomy: given.autonomy,
                risk_policy: given.risk_policy,
            }),
            blockers: found.blockers,
            retry_continue_token: found.retry_continue_token,
            step_context: found.step_context.and_then(step_context),
            warnings: found.warnings.into_iter().map(Into::into).collect(),
            recap: found.recap.map(Into::into),
            branches: found.branches.into_iter().map(Into::into).collect(),
            run: found.standing.map(Into::into),
        }
    }
}

impl From<answer::Standing> for Standing {
    fn from(found: answer::Standing) -> Self {
        let answer::Standing { status, result, error, asks, more, doing, cut_off } = found;
        let error = error.map(|answer::RunError { code, message, step }| crate::run::RunError {
            code,
            message,
            step,
        });
        let asks = asks.into_iter().map(|asked| Question {
            step_id: asked.step,
            task_id: asked.task.to_string(),
            prompt: asked.prompt,
            who: asked.who,
            form: asked.form,
        });
        Self { status, result, error, asks: asks.collect(), more_steps: more, doing, cut_off }
    }
}

impl From<answer::Pending> for Pending {
    fn from(found: answer::Pending) -> Self {
        Self {
            step_id: found.step_id,
            title: found.title,
            prompt: found.prompt,
            require_confirmation: found.require_confirmation,
        }
    }
}

impl From<answer::NextIntent> for NextIntent {
    fn from(found: answer::NextIntent) -> Self {
        match found {
            answer::NextIntent::PerformPendingThenContinue => Self::PerformPendingThenContinue,
            answer::NextIntent::AwaitUserConfirmation => Self::AwaitUserConfirmation,
            answer::NextIntent::RehydrateOnly => Self::RehydrateOnly,
            answer::NextIntent::Complete => Self::Complete,
            answer::NextIntent::Ended => Self::Ended,
        }
    }
}

impl From<answer::Warning> for Warning {
    fn from(found: answer::Warning) -> Self {
        Self { code: found.code.name().to_owned(), message: found.message }
    }
}

impl From<answer::Recap> for Recap {
    fn from(found: answer::Recap) -> Self {
        let truncation = Truncation { omitted_entries: found.omitted, policy: "kept_most_recent" };
        Self { text: found.text, truncation: (found.omitted > 0).then_some(truncation) }
    }
}

impl From<answer::BranchSummary> for Branch {
    fn from(found: answer::BranchSummary) -> Self {
        Self {
            node_id: found.node.to_string(),
            preferred: found.preferred,
            nodes: found.nodes,
            is_complete: found.is_complete,
            pending_step_id: found.at,
            summary: found.summary,
            continue_token: found.continue_token,
        }
    }
}

impl From<answer::Checkpointed> for Checkpointed {
    fn from(found: answer::Checkpointed) -> Self {
        let (state_token, ack_token) = found.tokens.pair.unzip();
        Self {
            kind: Kind::Ok,
            label: found.label,
            node_id: found.node.to_string(),
            continue_token: found.tokens.continue_token,
            checkpoint_token: found.tokens.checkpoint_token.unwrap_or_default(),
            state_token,
            ack_token,
            warnings: found.warnings.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<answer::SessionOpened> for SessionOpened {
    fn from(found: answer::SessionOpened) -> Self {
        Self {
            session_id: found.session.to_string(),
            label: found.label,
            session_token: found.session_token,
        }
    }
}

impl Resumed {
    /// What was found, and what is not offered since nobody trusts it.
    #[must_use]
    pub fn new(found: Vec<answer::Resumable>, untrusted: &[SessionId]) -> Self {
        Self {
            candidates: found.into_iter().map(Into::into).collect(),
            more: 0,
            waiting: Vec::new(),
            untrusted: untrusted.iter().map(ToString::to_string).collect(),
        }
    }
}

impl Resumed {
    /// The same, with runs of automations that wait for an agent.
    #[must_use]
    pub fn with_waiting(self, runs: impl IntoIterator<Item = flow::WaitingRun>) -> Self {
        Self { waiting: runs.into_iter().map(Into::into).collect(), ..self }
    }
}

impl From<flow::WaitingRun> for WaitingRun {
    fn from(found: flow::WaitingRun) -> Self {
        let until = found.claimant.and_then(|claimant| time::rfc3339(claimant.until_ms));
        Self {
            session: session(found.run, found.label),
            workflow_id: found.workflow,
            pending_step: found.step,
            snippet: found.prompt,
            waiting_since: time::rfc3339(found.since_ms),
            claimed_until: until,
            claimed_as_you: found.is_own,
            continue_token: found.continue_token,
        }
    }
}

impl From<answer::Resumable> for Candidate {
    fn from(found: answer::Resumable) -> Self {
        Self {
            session: session(found.run, found.label),
            workflow_id: found.workflow_id,
            goal: found.goal,
            project: found.project,
            idle_sec: found.idle_sec,
            branch: found.branch,
            status: found.status.to_owned(),
            blocked_by: found.blocked_by,
            pending_step: found.pending_step,
            why_matched: found.why.into_iter().map(|why| why.name()).collect(),
            snippet: found.snippet,
            continue_token: found.continue_token,
        }
    }
}

fn session(run: answer::RunRef, label: String) -> Session {
    Session { session_id: run.session.to_string(), run_id: run.run.to_string(), label }
}

fn step_context(found: answer::StepContext) -> Option<StepContext> {
    let mut all: Vec<Assessment> = found.assessments.into_iter().map(assessment).collect();
    let assessments = match all.len() {
        0 => return None,
        1 => Assessments::One(Box::new(all.pop()?)),
        _ => Assessments::Several(all),
    };
    Some(StepContext { assessments })
}

fn assessment(found: answer::Accepted) -> Assessment {
    let dimension = |found: answer::AcceptedDimension| Dimension {
        dimension_id: found.dimension_id,
        level: found.level,
        rationale: found.rationale,
    };
    Assessment {
        assessment_id: found.assessment_id,
        dimensions: found.dimensions.into_iter().map(dimension).collect(),
        normalization_notes: found.normalization_notes,
    }
}
