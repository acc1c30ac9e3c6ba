//! From what goes over the wire to what the engine is asked.

use std::path::PathBuf;

use cairn_core::event::guided as event;
use cairn_core::id::SessionId;
use cairn_engine::guided::ask;
use serde_json::{Map, Value};

use super::{
    Autonomy, CheckpointWorkflow, ContinueWorkflow, Intent, Kept, Output, Preferences,
    ResumeSession, RiskPolicy, StartWorkflow, Tokens,
};
use crate::arguments::Problem;
use crate::error::{Error, Result};

impl TryFrom<StartWorkflow> for ask::Start {
    type Error = Error;

    fn try_from(given: StartWorkflow) -> Result<Self> {
        Ok(Self {
            workflow: given.workflow_id,
            goal: given.goal,
            context: given.context.map(Value::Object),
            preferences: wanted(given.preferences),
            session: given.session_id.as_deref().map(session).transpose()?,
            workspace: given.workspace_path.map(workspace).transpose()?,
            tokens: tokens(given.tokens),
            by: None,
        })
    }
}

impl TryFrom<ContinueWorkflow> for ask::Continue {
    type Error = Error;

    fn try_from(given: ContinueWorkflow) -> Result<Self> {
        let at = match (given.continue_token, given.state_token, given.ack_token) {
            (Some(token), None, None) => ask::At::Compact(token),
            (None, Some(state), ack) => ask::At::Pair { state, ack },
            (None, None, None) => return Err(no_token("continueToken")),
            (None, None, Some(_)) => {
                let problem = "ackToken came without its stateToken";
                let fix = "send both as one answer gave them, or its continueToken alone";
                return Err(Problem::new("stateToken", problem, fix).into());
            }
            (Some(_), ..) => {
                let problem = "continueToken came together with stateToken or ackToken";
                let fix = "send continueToken alone";
                return Err(Problem::new("continueToken", problem, fix).into());
            }
        };
        Ok(Self {
            at,
            intent: given.intent.map(Into::into),
            output: given.output.map(Into::into),
            context: given.context.map(Value::Object),
            preferences: wanted(given.preferences),
            tokens: tokens(given.tokens),
            by: None,
        })
    }
}

impl TryFrom<CheckpointWorkflow> for ask::Checkpoint {
    type Error = Error;

    fn try_from(given: CheckpointWorkflow) -> Result<Self> {
        let at = match (given.checkpoint_token, given.state_token, given.session_token) {
            (Some(token), None, None) => ask::CheckpointAt::Compact(token),
            (Some(checkpoint), Some(state), None) => ask::CheckpointAt::Pair { state, checkpoint },
            // A session for notes is a run like any other; its token is just called that.
            (None, None, Some(token)) => ask::CheckpointAt::Compact(token),
            (None, _, None) => return Err(no_token("checkpointToken")),
            (_, _, Some(_)) => {
                let problem = "sessionToken came together with other tokens";
                let fix = "send sessionToken alone, or leave it out";
                return Err(Problem::new("sessionToken", problem, fix).into());
            }
        };
        let replaces_notes = given.output.replaces_notes.unwrap_or_default();
        let (output, tokens) = (given.output.into(), tokens(given.tokens));
        Ok(Self { at, output, replaces_notes, tokens, by: None })
    }
}

impl TryFrom<ResumeSession> for ask::Resume {
    type Error = Error;

    fn try_from(given: ResumeSession) -> Result<Self> {
        Ok(Self {
            query: given.query,
            git_branch: given.git_branch,
            git_head_sha: given.git_head_sha,
            workspace: given.workspace_path.map(workspace).transpose()?,
        })
    }
}

impl From<Intent> for ask::Intent {
    fn from(given: Intent) -> Self {
        match given {
            Intent::Advance => Self::Advance,
            Intent::Rehydrate => Self::Rehydrate,
        }
    }
}

impl From<Output> for ask::Output {
    fn from(given: Output) -> Self {
        output(given.notes_markdown, given.artifacts)
    }
}

impl From<Kept> for ask::Output {
    fn from(given: Kept) -> Self {
        output(given.notes_markdown, given.artifacts)
    }
}

fn output(notes: Option<String>, artifacts: Option<Vec<Map<String, Value>>>) -> ask::Output {
    let artifacts = artifacts.into_iter().flatten().map(Value::Object).collect();
    ask::Output { notes, artifacts }
}

fn wanted(given: Option<Preferences>) -> ask::Wanted {
    let autonomy = given.and_then(|given| given.autonomy).map(|autonomy| match autonomy {
        Autonomy::Guided => event::Autonomy::Guided,
        Autonomy::FullAutoStopOnUserDeps => event::Autonomy::FullAutoStopOnUserDeps,
        Autonomy::FullAutoNeverStop => event::Autonomy::FullAutoNeverStop,
    });
    let risk_policy = given.and_then(|given| given.risk_policy).map(|policy| match policy {
        RiskPolicy::Conservative => event::RiskPolicy::Conservative,
        RiskPolicy::Balanced => event::RiskPolicy::Balanced,
        RiskPolicy::Aggressive => event::RiskPolicy::Aggressive,
    });
    ask::Wanted { autonomy, risk_policy }
}

const fn tokens(given: Option<Tokens>) -> ask::Tokens {
    match given {
        None | Some(Tokens::Compact) => ask::Tokens::Compact,
        Some(Tokens::Pair) => ask::Tokens::Pair,
    }
}

fn no_token(name: &str) -> Error {
    let fix = format!(
        "send `{name}` as the last answer of this run gave it; if it is lost, call resume_session"
    );
    Problem::new(name, format!("`{name}` is missing"), fix).into()
}

fn session(given: &str) -> Result<SessionId> {
    given.parse().map_err(|_| {
        let fix = "send `session.sessionId` of an earlier answer, or leave it out for a new one";
        Problem::new("sessionId", "`sessionId` is not the id of a session", fix).into()
    })
}

fn workspace(given: String) -> Result<PathBuf> {
    let path = PathBuf::from(given);
    if path.is_absolute() {
        return Ok(path);
    }
    let fix = "send the whole path, beginning with `/`, or leave it out";
    Err(Problem::new("workspacePath", "`workspacePath` is not an absolute path", fix).into())
}
