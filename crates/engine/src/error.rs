//! What can go wrong with a call, as far as a caller would act differently on it.

use std::path::PathBuf;
use std::{io, sync::Arc};

use cairn_core::catalog::SettingFault;
use cairn_core::digest::Digest;
use cairn_core::flow::{NotThere, Rejection};
use cairn_core::id::{RunId, SessionId};
use cairn_core::instance::StepInstanceKey;
use cairn_core::token;
use cairn_lang::diagnostic::{Diagnostic, Severity};
use cairn_store as store;
use serde_json::{Value, json};

use crate::catalog::Identity;
use crate::secrets::Scope;

/// What the engine answers with.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// The store says no.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// A token is not one to go by.
    #[error("{field}: {source}")]
    Token {
        /// Which field of the call it came in.
        field: &'static str,
        /// What is wrong with it.
        source: token::Error,
        /// What to send instead.
        instead: String,
    },
    /// Two tokens of one call belong to different places, or one came in the wrong field.
    #[error("{message}")]
    TokenScope {
        /// What does not fit.
        message: String,
        /// What to send instead.
        instead: String,
    },
    /// The token is signed by us, and what it names is not there.
    #[error("the token names {0}, which is not in this data directory")]
    TokenUnknownNode(String),
    /// The token's plan is not the run's.
    #[error("the token was given out for another plan than the run `{0}` is pinned to")]
    TokenHashMismatch(String),
    /// Another process is writing to the session that a run is carried on in.
    #[error("{0}")]
    TokenSessionLocked(store::Error),
    /// What the caller sent makes no sense.
    #[error("{message}")]
    Invalid {
        /// What is wrong, and where.
        message: String,
        /// What to send instead.
        fix: String,
        /// Particulars for programs.
        details: Value,
    },
    /// The run is over.
    #[error("the run `{0}` is complete; there is no step to acknowledge")]
    RunComplete(String),
    /// The system gives no random bytes.
    #[error("the system gives no random bytes: {0}")]
    NoEntropy(String),
    /// There is no such run.
    #[error("there is no run {0}")]
    RunUnknown(RunId),
    /// Another process performs the run, and did not take what was said to it.
    #[error("run {run} is performed by another process{}, which does not answer", by(.owner.as_deref()))]
    RunElsewhere {
        /// The run.
        run: RunId,
        /// The session it lives in.
        session: SessionId,
        /// Who owns that session, as it said itself.
        owner: Option<Box<store::Owner>>,
    },
    /// Another process admits the runs of a workflow, and did not take a request.
    #[error("the runs of `{workflow}` are admitted by another process{}, which does not answer", by(.owner.as_deref()))]
    AdmittedElsewhere {
        /// The workflow.
        workflow: String,
        /// The session that it owns for that.
        session: SessionId,
        /// Who it is, as it said itself.
        owner: Option<Box<store::Owner>>,
    },
    /// Nobody decides for a session at the moment: what did is being loaded again.
    #[error("the runs of session {session} are being loaded again after a failure")]
    LaneDown {
        /// The session.
        session: SessionId,
    },
    /// This process is about to end.
    #[error("this process is about to end, and begins nothing more")]
    Stopping,
    /// Nobody listens to what is said to the owner of a session: it begins or ends in this moment.
    #[error("the process that owns session {session} does not listen")]
    Unheard {
        /// The session.
        session: SessionId,
    },
    /// What a former owner of a session started still runs, and cannot be ended.
    #[error(
        "session {session} cannot go on before what its former owner started has ended: {message}"
    )]
    LeftRunning {
        /// The session.
        session: SessionId,
        /// What is left.
        message: String,
    },
    /// Another process has replaced this one as the owner of a session.
    #[error("another process owns session {session} now")]
    LeaseLost {
        /// The session.
        session: SessionId,
    },
    /// More requests for runs of a workflow are being looked at, or wait, than there is room for.
    #[error("`{workflow}` has as many requests as it can take")]
    Busy {
        /// The workflow.
        workflow: String,
        /// How long to wait.
        after_ms: u64,
    },
    /// As many runs of a workflow are under way as may be, and its trigger refuses more.
    #[error("`{workflow}` has {most} runs under way or waiting, and its trigger takes no more")]
    Overflow {
        /// The workflow.
        workflow: String,
        /// How many there may be.
        most: usize,
        /// How long to wait.
        after_ms: u64,
    },
    /// A workflow is at a limit, and its trigger drops what comes then.
    #[error("`{workflow}` is at its limit, and its trigger drops what comes then")]
    Dropped {
        /// The workflow.
        workflow: String,
    },
    /// Whoever asks lacks a role.
    #[error("this workflow needs the role `{role}`, which this token lacks")]
    RoleMissing {
        /// The role.
        role: String,
    },
    /// A run would start another that whoever asked for it may not start.
    #[error("`{workflow}` is not started: {who} {lacks}")]
    ChildForbidden {
        /// The workflow.
        workflow: String,
        /// Who asked for the run.
        who: String,
        /// What they lack.
        lacks: String,
    },
    /// Something was asked, and nobody can say whether it is recorded: the process that owns the
    /// session took it and did not answer, or a disk failed at the wrong moment.
    #[error("{}", doubt(.session, .owner.as_deref()))]
    InDoubt {
        /// The session.
        session: SessionId,
        /// Who it is, as it said itself.
        owner: Option<Box<store::Owner>>,
    },
    /// The process that performs the run says no.
    #[error("{message}")]
    Told {
        /// The stable name of what went wrong there.
        code: String,
        /// In words.
        message: String,
        /// How long to wait before asking again, if that helps.
        after_ms: Option<u64>,
    },
    /// What is meant came from elsewhere, and nobody trusts it yet.
    #[error("session {session} was imported, and nobody has said yet that it may go on here")]
    Untrusted {
        /// The session.
        session: SessionId,
    },
    /// A session from elsewhere claims to run what only this program has.
    #[error("run {run} calls itself `{workflow}`, and its plan is not that of this program")]
    NotOurs {
        /// The run.
        run: RunId,
        /// What it calls itself.
        workflow: String,
    },
    /// A session from elsewhere is not the one that was shown.
    #[error("session {session} is of the bundle {found}, and {given} was to be trusted")]
    OtherBundle {
        /// The session.
        session: SessionId,
        /// What it is.
        found: Digest,
        /// What was meant.
        given: Digest,
    },
    /// Another agent works on the run.
    #[error("run {run} is claimed by {by} until {}", cairn_core::time::show(*until_ms))]
    Claimed {
        /// The run.
        run: RunId,
        /// Who has it.
        by: String,
        /// Until when, in milliseconds since 1970, unless they call again.
        until_ms: u64,
    },
    /// The run is not where it takes this.
    #[error("run {run}: {refused}")]
    RunRefused {
        /// The run.
        run: RunId,
        /// Why it does not.
        refused: Rejection,
    },
    /// A run cannot be gone on from there.
    #[error("run {run}: {source}{}", nearest.as_ref().map(|step| format!("; did you mean `{step}`?")).unwrap_or_default())]
    RunNotThere {
        /// The run.
        run: RunId,
        /// Why not.
        source: NotThere,
        /// The step that was likely meant.
        nearest: Option<String>,
    },
    /// Another try would do again what a person allowed, and somebody else asks for it.
    #[error(
        "run {run}: another try of `{step}` may do again what was allowed once at `{asked}`, and takes somebody who could allow it"
    )]
    RetryForbidden {
        /// The run.
        run: RunId,
        /// What is to be tried again.
        step: Box<StepInstanceKey>,
        /// Where a person was asked, in this run or in one that led to it.
        asked: Box<StepInstanceKey>,
    },
    /// More runs of a workflow are asked for than may begin.
    #[error(
        "`{workflow}` begins no more than {runs_max} runs in {per_ms} ms; the next may begin in {after_ms} ms"
    )]
    RateLimited {
        /// The workflow.
        workflow: String,
        /// How many runs.
        runs_max: u32,
        /// In what time.
        per_ms: u64,
        /// How long to wait.
        after_ms: u64,
    },
    /// A run would be one too many in a chain of runs that start one another.
    #[error(
        "`{workflow}` is not started: {links} runs led to this one, each of which started the next"
    )]
    TriggerLoop {
        /// The workflow.
        workflow: String,
        /// How many runs led to it.
        links: u32,
    },
    /// A workflow does not compile.
    #[error("{} has {}", .path.display(), count(.diagnostics))]
    WorkflowInvalid {
        /// Its file.
        path: PathBuf,
        /// What is wrong with it.
        diagnostics: Vec<Diagnostic>,
    },
    /// Several workflows go by this name.
    #[error("{} workflows go by the name `{given}`: {}", .matches.len(), list(.matches))]
    WorkflowAmbiguous {
        /// What was given.
        given: String,
        /// Which they are.
        matches: Vec<Identity>,
    },
    /// No workflow has this id.
    #[error("there is no workflow `{given}`{}", nearest.as_ref().map(|id| format!("; did you mean `{id}`?")).unwrap_or_default())]
    WorkflowUnknown {
        /// What was given.
        given: String,
        /// The id that was likely meant.
        nearest: Option<String>,
    },
    /// A source cannot be read.
    #[error("{}: {source}", .path.display())]
    File {
        /// Which file or directory.
        path: PathBuf,
        /// What the system said.
        source: Arc<io::Error>,
    },
    /// The master key cannot be used.
    #[error("the master key{} cannot be used: {what}", path.as_ref().map(|path| format!(" {}", path.display())).unwrap_or_default())]
    SecretKey {
        /// The file that it is in, when it is in one.
        path: Option<PathBuf>,
        /// What is wrong with it.
        what: String,
    },
    /// A secret is not what was sealed.
    #[error("{} cannot be opened: {what}", name.as_ref().map_or_else(|| "the vault".to_owned(), |name| format!("the secret `{name}`")))]
    SecretDecrypt {
        /// Which one; none when it is all of them.
        name: Option<String>,
        /// What is wrong.
        what: String,
    },
    /// There is no such secret.
    #[error("{}", scope.lacks(name))]
    SecretUnknown {
        /// Who it would be for.
        scope: Scope,
        /// What was given.
        name: String,
    },
    /// A workflow does not ask for a setting of this name.
    #[error("`{workflow}` asks for no setting `{name}`{}", nearest.as_ref().map(|id| format!("; did you mean `{id}`?")).unwrap_or_default())]
    SettingUnknown {
        /// The workflow.
        workflow: String,
        /// What was given.
        name: String,
        /// The name that was likely meant.
        nearest: Option<String>,
    },
    /// Values of settings are not what their workflow asks for.
    #[error("{path}: {}", first_of(.faults))]
    SettingsInvalid {
        /// Where they are, for people.
        path: String,
        /// What is wrong with them.
        faults: Vec<SettingFault>,
    },
    /// Who asks for a change cannot be recorded, so it is not made.
    #[error("nothing was changed, since the audit record cannot be written: {source}")]
    AuditUnwritable {
        /// What the store said.
        source: store::Error,
    },
    /// A line of the record of who changed what is not what was written.
    #[error("line {line} of {} is not what was written, or does not follow the one before it", .path.display())]
    AuditBroken {
        /// Where the record is.
        path: PathBuf,
        /// Counts from 1.
        line: u64,
    },
    /// Lines of the record of who changed what are gone.
    #[error("{} has {found} line(s) where {written} were written: the others were deleted or cut off", .path.display())]
    AuditCut {
        /// Where the record is.
        path: PathBuf,
        /// How many stand there before the first that is missing.
        found: u64,
        /// How many were written, as far as is known.
        written: u64,
    },
    /// No line of the record of who changed what is about a run that was begun here.
    #[error("{} has no line about {run}, which was begun here: its lines were deleted", .path.display())]
    AuditUnnamed {
        /// Where the record is.
        path: PathBuf,
        /// The run.
        run: RunId,
    },
    /// What is kept apart from the record of who changed what is gone.
    #[error("how many lines {} had is not known: `audit.head` was deleted or changed", .path.display())]
    AuditHead {
        /// Where the record is.
        path: PathBuf,
    },
    /// What the log says cannot be, though every byte of it is sound.
    #[error("{0}")]
    Broken(String),
}

impl Error {
    /// The stable name of the error: programs compare it, so it stays as it is for good.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Store(error) => error.code(),
            Self::Token { source, .. } => source.code(),
            Self::TokenScope { .. } => token::Error::ScopeMismatch.code(),
            Self::TokenUnknownNode(_) => "TOKEN_UNKNOWN_NODE",
            Self::TokenHashMismatch(_) => "TOKEN_WORKFLOW_HASH_MISMATCH",
            Self::TokenSessionLocked(_) => "TOKEN_SESSION_LOCKED",
            Self::Invalid { .. } => "VALIDATION_ERROR",
            Self::RunComplete(_) => "RUN_COMPLETE",
            Self::NoEntropy(_) => "SYSTEM_NO_ENTROPY",
            Self::RunUnknown(_) => "RUN_NOT_FOUND",
            Self::RunElsewhere { .. } => "RUN_ELSEWHERE",
            Self::AdmittedElsewhere { .. } => "WORKFLOW_ELSEWHERE",
            Self::LaneDown { .. }
            | Self::LeaseLost { .. }
            | Self::LeftRunning { .. }
            | Self::Unheard { .. } => "RUN_LANE_DOWN",
            Self::Stopping => "SERVER_STOPPING",
            Self::Busy { .. } => "RUN_BUSY",
            Self::Overflow { .. } => "TRIGGER_OVERFLOW",
            Self::Dropped { .. } => "TRIGGER_DROPPED",
            Self::RoleMissing { .. } => "AUTH_FORBIDDEN",
            Self::ChildForbidden { .. } => "CHILD_FORBIDDEN",
            Self::InDoubt { .. } => "RUN_IN_DOUBT",
            Self::Told { code, .. } => told(code),
            Self::Untrusted { .. } => "SESSION_UNTRUSTED",
            Self::NotOurs { .. } => "WORKFLOW_ID_RESERVED",
            Self::OtherBundle { .. } => "SESSION_OTHER_BUNDLE",
            Self::Claimed { .. } => "RUN_CLAIMED",
            Self::RunRefused { refused: Rejection::Ended, .. } => "RUN_ENDED",
            Self::RunRefused { refused: Rejection::NotAsked(_), .. } => "TASK_FORBIDDEN",
            Self::RunRefused { refused: Rejection::ForAgent(_), .. } => "TASK_FOR_AGENT",
            Self::RunRefused { refused: Rejection::NoTask(_), .. } => "TASK_NOT_FOUND",
            Self::RunRefused { refused: Rejection::Unfit(_), .. } => "VALIDATION_ERROR",
            Self::RunRefused { refused: Rejection::Elsewhere(_), .. } => "RUN_DECIDED_ELSEWHERE",
            Self::RunRefused { refused: Rejection::Foreign(_), .. } => "RUN_HISTORY_UNFIT",
            Self::RunRefused { .. } => "RUN_STATE",
            Self::RunNotThere { .. } => "RUN_FORK_POINT",
            Self::RetryForbidden { .. } => "TASK_FORBIDDEN",
            Self::RateLimited { .. } => "RUN_RATE_LIMITED",
            Self::TriggerLoop { .. } => "TRIGGER_LOOP",
            Self::WorkflowInvalid { .. } => "WORKFLOW_INVALID",
            Self::WorkflowAmbiguous { .. } => "WORKFLOW_ID_AMBIGUOUS",
            Self::WorkflowUnknown { .. } => "WORKFLOW_NOT_FOUND",
            Self::File { source, .. } => match source.kind() {
                io::ErrorKind::NotFound => "FILE_NOT_FOUND",
                io::ErrorKind::PermissionDenied => "FILE_DENIED",
                _ => "FILE_IO",
            },
            Self::SecretKey { .. } => "SECRET_KEY_UNUSABLE",
            Self::SecretDecrypt { .. } => "SECRET_DECRYPT_FAILED",
            Self::SecretUnknown { .. } => "SECRET_NOT_FOUND",
            Self::SettingUnknown { .. } => "SETTING_NOT_FOUND",
            Self::SettingsInvalid { .. } => "SETTING_INVALID",
            Self::AuditUnwritable { .. } => "AUDIT_UNWRITABLE",
            Self::AuditBroken { .. } => "AUDIT_BROKEN",
            Self::AuditCut { .. } | Self::AuditUnnamed { .. } => "AUDIT_LINES_MISSING",
            Self::AuditHead { .. } => "AUDIT_HEAD_MISSING",
            Self::Broken(_) => "INVARIANT_VIOLATION",
        }
    }

    /// Whether nothing came of what was asked, and asking again is the way: whoever decides was
    /// replaced, or is being loaded again.
    #[must_use]
    pub(crate) fn is_passing(&self) -> bool {
        match self {
            Self::Told { .. } => matches!(self.code(), "RUN_LANE_DOWN" | "SERVER_STOPPING"),
            Self::LaneDown { .. }
            | Self::LeaseLost { .. }
            | Self::Unheard { .. }
            | Self::Store(store::Error::Fenced { .. }) => true,
            _ => false,
        }
    }

    /// The same, of a process that is known.
    #[must_use]
    pub(crate) fn of_owner(self, of: Option<&store::Owner>) -> Self {
        match self {
            Self::InDoubt { session, owner: None } => {
                Self::InDoubt { session, owner: of.cloned().map(Box::new) }
            }
            other => other,
        }
    }

    /// Whether it says nothing of what was asked: the same request may be taken later.
    #[must_use]
    pub(crate) fn goes_by(&self) -> bool {
        self.is_passing()
            || matches!(
                self.code(),
                "RUN_IN_DOUBT"
                    | "RUN_ELSEWHERE"
                    | "WORKFLOW_ELSEWHERE"
                    | "SESSION_LOCKED"
                    | "SESSION_OWNED"
                    | "STORE_BUSY"
                    | "STORE_DURABILITY_LOST"
                    | "STORE_FULL"
                    | "STORE_IO"
            )
    }

    /// How long to wait before asking again, where the error itself knows better than its code.
    #[must_use]
    pub const fn after_ms(&self) -> Option<u64> {
        match self {
            Self::RateLimited { after_ms, .. }
            | Self::Busy { after_ms, .. }
            | Self::Overflow { after_ms, .. } => Some(*after_ms),
            Self::Told { after_ms, .. } => *after_ms,
            _ => None,
        }
    }

    /// What to do next, where the error itself knows better than its code.
    #[must_use]
    pub fn fix(&self) -> Option<&str> {
        match self {
            Self::Token { instead, .. } | Self::TokenScope { instead, .. } => Some(instead),
            Self::Invalid { fix, .. } => Some(fix),
            Self::SettingsInvalid { faults, .. } => faults.first().map(|fault| fault.hint.as_str()),
            _ => None,
        }
    }

    /// Particulars for programs.
    #[must_use]
    pub fn details(&self) -> Option<Value> {
        match self {
            Self::Token { field, .. } => Some(json!({"field": field})),
            Self::Invalid { details, .. } => Some(details.clone()),
            Self::WorkflowAmbiguous { given, matches } => {
                let ids: Vec<&str> = matches.iter().map(Identity::id).collect();
                let paths: Vec<&str> = matches.iter().map(Identity::place).collect();
                Some(json!({"given": given, "matches": ids, "paths": paths}))
            }
            Self::WorkflowUnknown { given, nearest } => {
                Some(json!({"given": given, "nearest": nearest}))
            }
            Self::SecretKey { path: Some(path), .. } => {
                Some(json!({"path": path.display().to_string()}))
            }
            Self::SecretDecrypt { name: Some(name), .. } => Some(json!({"name": name})),
            Self::SecretUnknown { scope, name } => {
                Some(json!({"scope": scope.to_string(), "name": name}))
            }
            Self::SettingUnknown { workflow, name, nearest } => {
                Some(json!({"workflowId": workflow, "given": name, "nearest": nearest}))
            }
            Self::SettingsInvalid { path, faults } => {
                let fault = |fault: &SettingFault| json!({"name": fault.field, "message": fault.message, "suggestion": fault.hint});
                Some(json!({"path": path, "faults": faults.iter().map(fault).collect::<Vec<_>>()}))
            }
            Self::File { path, .. } | Self::AuditHead { path } => {
                Some(json!({"path": path.display().to_string()}))
            }
            Self::RoleMissing { role } => Some(json!({"cause": "role", "role": role})),
            Self::AuditBroken { path, line } => {
                Some(json!({"path": path.display().to_string(), "line": line}))
            }
            Self::AuditUnnamed { path, run } => {
                Some(json!({"path": path.display().to_string(), "runId": run.to_string()}))
            }
            Self::AuditCut { path, found, written } => Some(json!({
                "path": path.display().to_string(), "found": found, "written": written,
            })),
            _ => None,
        }
    }

    /// The error of a call that carries a run on: a lock is told in the terms of tokens.
    #[must_use]
    pub(crate) fn of_execution(self) -> Self {
        match self {
            Self::Store(error @ store::Error::Locked { .. }) => Self::TokenSessionLocked(error),
            other => other,
        }
    }
}

/// Who it is, if that is known.
fn doubt(session: &SessionId, owner: Option<&store::Owner>) -> String {
    match owner {
        Some(owner) => format!(
            "the process that owns session {session} ({owner}) took the command and has not answered; it may still happen"
        ),
        None => format!(
            "nobody can say whether what was asked is recorded in session {session}; it may still happen"
        ),
    }
}

fn by(owner: Option<&store::Owner>) -> String {
    owner.map(|owner| format!(" ({owner})")).unwrap_or_default()
}

/// Workflows with their places, for people.
fn list(all: &[Identity]) -> String {
    all.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// How many errors there are, in words, and the first of them.
fn count(diagnostics: &[Diagnostic]) -> String {
    let mut errors = diagnostics.iter().filter(|found| found.severity == Severity::Error);
    let first = errors.next().map(|d| format!("line {}: {}", d.line, d.message));
    match (errors.count(), first.unwrap_or_default()) {
        (0, first) => format!("1 error: {first}"),
        (more, first) => format!("{} errors, the first in {first}", more + 1),
    }
}

/// The stable name of what another process said no with.
fn told(code: &str) -> &'static str {
    const KNOWN: [&str; 46] = [
        "AUDIT_UNWRITABLE",
        "AUTH_FORBIDDEN",
        "CHILD_FORBIDDEN",
        "RUN_BUSY",
        "RUN_DECIDED_ELSEWHERE",
        "RUN_ENDED",
        "RUN_FORK_POINT",
        "RUN_HISTORY_UNFIT",
        "RUN_IN_DOUBT",
        "RUN_LANE_DOWN",
        "RUN_NOT_FOUND",
        "RUN_RATE_LIMITED",
        "RUN_STATE",
        "SECRET_DECRYPT_FAILED",
        "SECRET_KEY_UNUSABLE",
        "SERVER_STOPPING",
        "SESSION_CORRUPT",
        "SESSION_LOCKED",
        "SESSION_NEWER",
        "SESSION_NOT_FOUND",
        "SESSION_OWNED",
        "SESSION_UNKNOWN_VERSION",
        "SESSION_UNTRUSTED",
        "SETTING_INVALID",
        "STORE_BLOB_CORRUPT",
        "STORE_BLOB_MISSING",
        "STORE_BUSY",
        "STORE_CONFLICT",
        "STORE_DURABILITY_LOST",
        "STORE_EPOCH_BACKWARDS",
        "STORE_FENCED",
        "STORE_FILESYSTEM",
        "STORE_FULL",
        "STORE_INVALID_PLAN",
        "STORE_IO",
        "STORE_UNFENCED",
        "SYSTEM_NO_ENTROPY",
        "TASK_FORBIDDEN",
        "TASK_FOR_AGENT",
        "TASK_NOT_FOUND",
        "TRIGGER_DROPPED",
        "TRIGGER_LOOP",
        "TRIGGER_OVERFLOW",
        "VALIDATION_ERROR",
        "WORKFLOW_INVALID",
        "WORKFLOW_NOT_FOUND",
    ];
    KNOWN.into_iter().find(|known| *known == code).unwrap_or("INVARIANT_VIOLATION")
}

/// The first of several faults, and how many more there are.
fn first_of(faults: &[SettingFault]) -> String {
    let first = faults.first().map(|fault| fault.message.clone()).unwrap_or_default();
    match faults.len() {
        0 | 1 => first,
        more => format!("{first}, and {} more", more - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_by_itself_has_a_name_of_its_own() {
        let session = SessionId::from_bits(1);
        let cases = [
            (Error::NoEntropy("no".to_owned()), "SYSTEM_NO_ENTROPY"),
            (Error::Busy { workflow: "w".to_owned(), after_ms: 1 }, "RUN_BUSY"),
            (Error::LaneDown { session }, "RUN_LANE_DOWN"),
            (Error::LeaseLost { session }, "RUN_LANE_DOWN"),
            (Error::Unheard { session }, "RUN_LANE_DOWN"),
            (Error::Stopping, "SERVER_STOPPING"),
            (Error::LeftRunning { session, message: "x".to_owned() }, "RUN_LANE_DOWN"),
        ];
        for (error, code) in cases {
            assert_eq!(error.code(), code);
        }
        let told = |code: &str| Error::Told {
            code: code.to_owned(),
            message: String::new(),
            after_ms: None,
        };
        let (held, current) = (store::Epoch(1), store::Epoch(2));
        let fenced = Error::Store(store::Error::Fenced { session, held, current });
        for passing in
            [Error::LaneDown { session }, fenced, told("RUN_LANE_DOWN"), told("SERVER_STOPPING")]
        {
            assert!(passing.is_passing(), "{passing}");
        }
        for stays in
            [Error::InDoubt { session, owner: None }, told("RUN_BUSY"), told("SOMETHING_NEW")]
        {
            assert!(!stays.is_passing(), "{stays}");
        }
    }
}
