//! What can be recorded: who asks for what, about what.

use std::fmt;

use cairn_core::audit::Line;
use cairn_core::canonical;
use cairn_core::digest::Digest;
use cairn_core::event::{ActorKind, By, Door, Via};
use cairn_core::id::{RunId, SessionId};
use serde_json::Value;

use super::TEXT_MAX;

/// What can be changed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Action {
    AnswerTask,
    CancelRun,
    ClaimRun,
    CollectSessions,
    ContinueRun,
    CreateToken,
    DeleteSession,
    ExportRun,
    ExportSession,
    ForkRun,
    ImportSession,
    KeepSession,
    PauseRun,
    RebindSession,
    RebindWorkflow,
    ReleaseRun,
    RemoveSecret,
    ReplayRun,
    ResolveStep,
    ResumeRun,
    RetireSession,
    RevokeToken,
    RotateKeys,
    RotateSecrets,
    SetSecret,
    SetSetting,
    StartRun,
    TrustSession,
    UnsetSetting,
}

impl Action {
    /// Its name, as lines have it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::AnswerTask => "tasks:answer",
            Self::CancelRun => "runs:cancel",
            Self::ClaimRun => "runs:claim",
            Self::CollectSessions => "sessions:gc",
            Self::ContinueRun => "runs:continue",
            Self::CreateToken => "tokens:create",
            Self::DeleteSession => "sessions:delete",
            Self::ExportRun => "runs:export",
            Self::ExportSession => "sessions:export",
            Self::ForkRun => "runs:fork",
            Self::ImportSession => "sessions:import",
            Self::KeepSession => "sessions:keep",
            Self::PauseRun => "runs:pause",
            Self::RebindSession => "sessions:rebind",
            Self::RebindWorkflow => "workflows:rebind",
            Self::ReleaseRun => "runs:release",
            Self::RemoveSecret => "secrets:remove",
            Self::ReplayRun => "runs:replay",
            Self::ResolveStep => "runs:resolve",
            Self::ResumeRun => "runs:resume",
            Self::RetireSession => "sessions:retire",
            Self::RevokeToken => "tokens:revoke",
            Self::RotateKeys => "keys:rotate",
            Self::RotateSecrets => "secrets:rotate",
            Self::SetSecret => "secrets:set",
            Self::SetSetting => "settings:set",
            Self::StartRun => "runs:start",
            Self::TrustSession => "sessions:trust",
            Self::UnsetSetting => "settings:unset",
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a change is about.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Object {
    /// A workflow.
    pub workflow: Option<String>,
    /// A run.
    pub run: Option<RunId>,
    /// A session.
    pub session: Option<SessionId>,
    /// The name of something else: a secret, a setting, a token's id.
    pub name: String,
}

/// A change that somebody asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Deed {
    /// Who asks.
    pub by: By,
    /// For what.
    pub action: Action,
    /// About what.
    pub object: Object,
    /// The digest of what they ask with. Values of secrets are no part of it: whoever reads a
    /// digest can try out what it may be of.
    pub arguments: Option<Digest>,
}

impl Deed {
    /// A change to a run.
    #[must_use]
    pub fn to_run(by: By, action: Action, run: RunId, workflow: &str) -> Self {
        let object =
            Object { run: Some(run), workflow: Some(workflow.to_owned()), ..Object::default() };
        Self { by, action, object, arguments: None }
    }

    /// The same, asked with this.
    #[must_use]
    pub fn with(self, arguments: &Value) -> Self {
        // What takes no line needs no digest: payloads can be large.
        let arguments = self.is_recorded().then(|| canonical::digest(arguments).ok()).flatten();
        Self { arguments, ..self }
    }

    /// Whether it takes a line. What the engine does of its own accord, what a trigger has proved
    /// and what a run asks for stands in the log; whoever cannot be told from a principal is one.
    pub(super) fn is_recorded(&self) -> bool {
        let via = self.by.via.as_ref();
        // A session that is gone has no log to say so.
        if self.action == Action::RetireSession {
            return true;
        }
        !matches!(
            via.map(|via| via.door),
            Some(
                Door::Webhook
                    | Door::Schedule
                    | Door::Channel
                    | Door::Child
                    | Door::Error
                    | Door::Engine
            )
        )
    }

    /// The line that lets it through.
    pub(super) fn line(&self) -> Line {
        let Object { workflow, run, session, name } = self.object.clone();
        Line {
            workflow_id: workflow,
            run_id: run,
            session_id: session,
            arguments: self.arguments,
            ..line(&self.by, self.action.name(), &name)
        }
    }

    /// The line that says that nothing came of it.
    pub(super) fn failed(&self, code: &str, of: u64) -> Line {
        let outcome = Some(code.to_owned());
        Line { allowed: false, outcome, of: Some(of), ..self.line() }
    }
}

/// Somebody who is turned away.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// Who.
    pub by: By,
    /// What they asked for.
    pub action: &'static str,
    /// About what.
    pub object: String,
    /// The code of why not.
    pub code: &'static str,
}

impl Refusal {
    /// Somebody at an address who came with a token that is none.
    #[must_use]
    pub fn login(peer: &str, code: &'static str) -> Self {
        let via = Via { actor: ActorKind::Program, door: Door::Http, line: None, token_id: None };
        let by = By { name: "unknown".to_owned(), via: Some(via) };
        Self { by, action: "auth:login", object: peer.to_owned(), code }
    }

    /// What it has in common with others that are counted with it.
    pub(super) fn kind(&self) -> String {
        let token = self.by.via.as_ref().and_then(|via| via.token_id.as_deref());
        let whose = token.unwrap_or(match self.action {
            "auth:login" => &self.object,
            _ => &self.by.name,
        });
        format!("{} {} {whose}", self.action, self.code)
    }

    /// The same, of nobody in particular.
    pub(super) fn among_others(self) -> Self {
        let via = self.by.via.map(|via| Via { token_id: None, ..via });
        let by = By { name: "several".to_owned(), via };
        Self { by, object: "several".to_owned(), ..self }
    }

    /// The line that says so.
    pub(super) fn line(&self) -> Line {
        let outcome = Some(self.code.to_owned());
        Line { allowed: false, outcome, ..line(&self.by, self.action, &self.object) }
    }
}

/// A line without its place.
fn line(by: &By, action: &str, object: &str) -> Line {
    let short = |text: &str| text.chars().take(TEXT_MAX).collect();
    Line {
        action: action.to_owned(),
        allowed: true,
        arguments: None,
        at: String::new(),
        by: short(&by.name),
        digest: String::new(),
        door: by.via.as_ref().map(|via| via.door),
        index: 0,
        object: short(object),
        of: None,
        outcome: None,
        previous: String::new(),
        run_id: None,
        session_id: None,
        times: None,
        token_id: by.via.as_ref().and_then(|via| via.token_id.clone()),
        workflow_id: None,
    }
}
