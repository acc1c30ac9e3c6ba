//! Every failure that leaves through a door: its code, its envelope, its HTTP status and
//! its exit code.
//!
//! The table in `answers.rs` says for each code what to do next; the pages in
//! `docs/errors/` say it at length.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use cairn_core::canonical::StrictValue;
use cairn_core::error::{Envelope, Retry};
use cairn_core::id::{RunId, SessionId};
use cairn_engine as engine;
use cairn_lang::diagnostic::nearest;
use cairn_store as store;
use serde_json::{Value, json};

use crate::exit::Exit;
use crate::token::Scope;
use crate::workflow::Diagnostic;

mod answers;

pub use answers::Who;

/// What doors answer with.
pub type Result<T> = std::result::Result<T, Error>;

/// What a token lacks that is good, but not for something.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Lack {
    /// The scope that it takes.
    #[error("it lacks the scope `{0}`")]
    Scope(Scope),
    /// It is for some workflows, and this is about one that it is not for or about all of them.
    #[error("it is for some workflows only, and this is about others or about all")]
    Workflow,
}

/// What went wrong.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The store says no.
    #[error(transparent)]
    Store(store::Error),
    /// A session cannot be exported whole, but a part of it can.
    #[error(transparent)]
    NotWhole(store::Error),
    /// The operating system does not let this user near the data.
    #[error("{context}: {source}")]
    DataDenied {
        /// What was being done, and to which file.
        context: String,
        /// What the system said.
        source: io::Error,
    },
    /// A text is neither a session's id nor the beginning of one.
    #[error(
        "`{0}` is not a session id, nor the beginning of one with at least 6 characters after `sess_`"
    )]
    SessionIdInvalid(String),
    /// Several sessions begin like this.
    #[error("{} sessions begin with `{prefix}`", .matches.len())]
    SessionIdAmbiguous {
        /// What was given.
        prefix: String,
        /// The sessions.
        matches: Vec<SessionId>,
    },
    /// No session has this id or begins like this.
    #[error("there is no session {0}")]
    SessionUnknown(String),

    /// A text is neither a run's id nor the beginning of one.
    #[error(
        "`{0}` is not a run id, nor the beginning of one with at least 6 characters after `run_`"
    )]
    RunIdInvalid(String),
    /// Several runs begin like this.
    #[error("{} runs begin with `{prefix}`", .matches.len())]
    RunIdAmbiguous {
        /// What was given.
        prefix: String,
        /// The runs.
        matches: Vec<RunId>,
    },
    /// No run begins like this.
    #[error("there is no run {0}")]
    RunUnknown(String),

    /// The engine says no.
    #[error(transparent)]
    Engine(engine::Error),

    /// The command line cannot be understood.
    #[error("{message}")]
    Usage {
        /// What is wrong with it.
        message: String,
        /// What to type instead.
        suggestion: String,
    },
    /// Something that cannot be undone was not confirmed.
    #[error("{0} cannot be undone, and nobody confirmed it")]
    Unconfirmed(String),
    /// The same, of something that is shown first and then asked about.
    #[error("{message}")]
    Unasked {
        /// What nobody confirmed.
        message: String,
        /// The command that confirms it.
        suggestion: String,
    },
    /// The configuration file says something that cannot be.
    #[error("{}{}: {what}{}", .path.display(), line.map(|line| format!(":{line}")).unwrap_or_default(), meant(nearest))]
    ConfigInvalid {
        /// The file.
        path: PathBuf,
        /// The line.
        line: Option<usize>,
        /// What is wrong there.
        what: String,
        /// The name that was likely meant.
        nearest: Option<String>,
    },
    /// The configuration file that somebody names is not there.
    #[error("there is no configuration file {}, which {named_by} names", .path.display())]
    ConfigMissing {
        /// Where.
        path: PathBuf,
        /// The flag or the variable.
        named_by: &'static str,
    },
    /// There is no place for the data directory.
    #[error("no data directory: neither --home, CAIRN_HOME, XDG_DATA_HOME nor HOME says where")]
    HomeUnknown,
    /// The data directory that somebody names is not there.
    #[error("there is no data directory at {}, which {named_by} names", .path.display())]
    HomeMissing {
        /// Where.
        path: PathBuf,
        /// The flag, the variable, or the line of the file.
        named_by: String,
    },
    /// The data directory is something else.
    #[error("{} is not a directory", .0.display())]
    HomeNotADirectory(PathBuf),
    /// Another server has the data directory.
    #[error("{server} serves {}", .home.display())]
    ServerRunning {
        /// The data directory.
        home: PathBuf,
        /// Which process it is, and where it listens, as far as it said.
        server: String,
    },
    /// A file that the user named cannot be read or written.
    #[error("{}: {source}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The answer could not be written.
    #[error("writing the output: {0}")]
    Output(#[source] io::Error),

    /// The address can be reached from other machines.
    #[error("{0} can be reached from other machines")]
    AddressExposed(SocketAddr),
    /// Another program listens there.
    #[error("{0} is taken by another program")]
    PortTaken(SocketAddr),
    /// Listening failed.
    #[error("listening on {address}: {source}")]
    Bind {
        /// Where.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The file with the admin token cannot be trusted.
    #[error("the admin token in {} cannot be used: {what}", .path.display())]
    AdminToken {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },

    /// No token came with a request.
    #[error("the request carries no bearer token")]
    TokenMissing,
    /// The token is not one of ours.
    #[error("the bearer token is not valid")]
    TokenInvalid,
    /// The token is good, but not for this.
    #[error("this token does not allow `{action}`: {lacks}")]
    Forbidden {
        /// What was asked for.
        action: &'static str,
        /// What the token lacks.
        lacks: Lack,
    },
    /// The request was meant for another server.
    #[error("this server does not answer for that host")]
    HostDenied,
    /// The request comes from another site's page.
    #[error("requests from that origin are not taken")]
    OriginDenied,
    /// The project that a call names is not one that this server lets its callers work on.
    #[error("this server takes no `workspacePath` outside its workspace roots")]
    WorkspaceDenied,
    /// No token has this id or name.
    #[error("there is no token `{0}`")]
    TokenUnknown(String),
    /// The token is good no more already.
    #[error("the token `{0}` is revoked already")]
    TokenRevoked(String),
    /// The file with the tokens cannot be trusted.
    #[error("the tokens in {} cannot be used: {what}", .path.display())]
    TokensUnusable {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// One key came with two different requests.
    #[error("the idempotency key came before with another request")]
    KeyReused,
    /// No workflow has such a trigger.
    #[error("`{workflow}` has no trigger `{trigger}`{}", meant(nearest))]
    TriggerUnknown {
        /// The workflow.
        workflow: String,
        /// What was given.
        trigger: String,
        /// The trigger that was likely meant.
        nearest: Option<String>,
    },
    /// Nothing is there.
    #[error("there is nothing at this path")]
    PathUnknown,
    /// Something is there, but it does not do this.
    #[error("this path does not take {0}")]
    MethodNotAllowed(String),
    /// A parameter makes no sense.
    #[error("{0}")]
    RequestInvalid(String),
    /// The body is not of a kind that is read here.
    #[error("{0}")]
    MediaType(&'static str),
    /// The answer would be of a kind that is not taken.
    #[error("the answer would be of a kind that the request does not take")]
    NotAcceptable,
    /// The body did not come.
    #[error("the body did not come within {seconds} s")]
    BodyLate {
        /// How long it was waited for.
        seconds: u64,
    },
    /// The body is longer than any request needs.
    #[error("the body is longer than {max} bytes")]
    RequestTooLarge {
        /// How long it may be.
        max: u64,
    },
    /// Wrong tokens came from one address, one after another.
    #[error("too many wrong tokens came from your address")]
    TokensTried {
        /// When the next one is looked at with patience again.
        after_ms: u64,
    },
    /// There are as many streams of events as there may be.
    #[error("too many streams of events are open, with this token or in all")]
    TooManyStreams,
    /// The store does not answer.
    #[error("the server cannot reach its data")]
    NotReady,
    /// The server takes no more work.
    #[error("the server is about to stop, and takes no more work")]
    Stopping,
    /// Something that should not happen.
    #[error("{0}")]
    Internal(String),
}

impl From<store::Error> for Error {
    fn from(error: store::Error) -> Self {
        let denied = |kind| {
            matches!(kind, io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
        };
        match error {
            store::Error::Io { context, source } if denied(source.kind()) => {
                Self::DataDenied { context, source: io::Error::new(source.kind(), source) }
            }
            other => Self::Store(other),
        }
    }
}

impl From<engine::Error> for Error {
    fn from(error: engine::Error) -> Self {
        match error {
            engine::Error::Store(error) => error.into(),
            other => Self::Engine(other),
        }
    }
}

impl engine::record::Coded for Error {
    fn code(&self) -> &'static str {
        self.code()
    }
}

impl Error {
    /// Why an export failed: of most sessions that are not whole a part can be exported.
    #[must_use]
    pub fn of_export(error: store::Error) -> Self {
        use store::Error as E;
        match error {
            E::Corrupt { health: store::Health::CorruptHead, .. } => Self::Store(error),
            E::Corrupt { .. }
            | E::UnknownVersion { .. }
            | E::BlobMissing { .. }
            | E::BlobCorrupt { .. } => Self::NotWhole(error),
            error => error.into(),
        }
    }

    /// The stable name of the error: programs compare it, so it stays as it is for good.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Store(error) | Self::NotWhole(error) => error.code(),
            Self::DataDenied { .. } => "STORE_DENIED",
            Self::SessionIdInvalid(_) => "SESSION_ID_INVALID",
            Self::SessionIdAmbiguous { .. } => "SESSION_ID_AMBIGUOUS",
            Self::SessionUnknown(_) => "SESSION_NOT_FOUND",
            Self::RunIdInvalid(_) => "RUN_ID_INVALID",
            Self::RunIdAmbiguous { .. } => "RUN_ID_AMBIGUOUS",
            Self::RunUnknown(_) => "RUN_NOT_FOUND",
            Self::Engine(error) => error.code(),
            Self::Usage { .. } => "USAGE_INVALID",
            Self::Unconfirmed(_) | Self::Unasked { .. } => "USAGE_UNCONFIRMED",
            Self::ConfigInvalid { .. } => "CONFIG_INVALID",
            Self::ConfigMissing { .. } => "CONFIG_NOT_FOUND",
            Self::HomeMissing { .. } => "HOME_NOT_FOUND",
            Self::HomeUnknown => "HOME_UNKNOWN",
            Self::HomeNotADirectory(_) => "HOME_NOT_A_DIRECTORY",
            Self::File { source, .. } => match source.kind() {
                io::ErrorKind::NotFound => "FILE_NOT_FOUND",
                io::ErrorKind::PermissionDenied => "FILE_DENIED",
                io::ErrorKind::AlreadyExists => "FILE_EXISTS",
                _ => "FILE_IO",
            },
            Self::Output(_) => "OUTPUT_FAILED",
            Self::AddressExposed(_) => "SERVER_ADDRESS_EXPOSED",
            Self::PortTaken(_) => "SERVER_PORT_TAKEN",
            Self::ServerRunning { .. } => "SERVER_RUNNING",
            Self::Bind { .. } => "SERVER_BIND_FAILED",
            Self::AdminToken { .. } => "ADMIN_TOKEN_UNUSABLE",
            Self::TokenMissing => "AUTH_TOKEN_MISSING",
            Self::TokenInvalid => "AUTH_TOKEN_INVALID",
            Self::TokensTried { .. } => "AUTH_TOO_MANY_TRIES",
            Self::Forbidden { .. } => "AUTH_FORBIDDEN",
            Self::WorkspaceDenied => "WORKSPACE_DENIED",
            Self::TokenRevoked(_) => "ACCESS_TOKEN_REVOKED",
            Self::TokenUnknown(_) => "ACCESS_TOKEN_NOT_FOUND",
            Self::TokensUnusable { .. } => "ACCESS_TOKENS_UNUSABLE",
            Self::KeyReused => "REQUEST_KEY_REUSED",
            Self::TriggerUnknown { .. } => "TRIGGER_NOT_FOUND",
            Self::HostDenied => "REQUEST_HOST_DENIED",
            Self::OriginDenied => "REQUEST_ORIGIN_DENIED",
            Self::PathUnknown => "REQUEST_PATH_UNKNOWN",
            Self::MethodNotAllowed(_) => "REQUEST_METHOD_NOT_ALLOWED",
            Self::RequestInvalid(_) => "REQUEST_INVALID",
            Self::MediaType(_) => "REQUEST_MEDIA_TYPE",
            Self::NotAcceptable => "REQUEST_NOT_ACCEPTABLE",
            Self::BodyLate { .. } => "REQUEST_TIMEOUT",
            Self::RequestTooLarge { .. } => "REQUEST_TOO_LARGE",
            Self::TooManyStreams => "STREAMS_EXHAUSTED",
            Self::NotReady => "SERVER_NOT_READY",
            Self::Stopping => "SERVER_STOPPING",
            Self::Internal(_) => "INTERNAL_ERROR",
        }
    }

    /// The error of a trigger that a workflow does not have, with the nearest of those it has.
    pub fn trigger_unknown<'a>(
        workflow: &str,
        given: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        Self::TriggerUnknown {
            workflow: workflow.to_owned(),
            trigger: given.chars().take(64).collect(),
            nearest: nearest(given, known).map(str::to_owned),
        }
    }

    /// The failure as every door shows it.
    #[must_use]
    pub fn envelope(&self) -> Envelope {
        let answer = answers::find(self.code());
        let suggestion = match self {
            Self::Usage { suggestion, .. } | Self::Unasked { suggestion, .. } => suggestion,
            Self::Engine(error) => error.fix().unwrap_or(answer.suggestion),
            // Nothing of it is valid, so there is nothing to export.
            Self::Store(store::Error::Corrupt { health: store::Health::CorruptHead, .. }) => {
                "restore the session's folder from a backup, or import a bundle of it"
            }
            Self::Store(store::Error::LockBusy { .. }) => {
                "look at that process: continue it if it is stopped, or end it; then try again; nothing was written"
            }
            Self::NotWhole(_) => {
                "add --partial to export the part that is sound; `cairn session verify` says what is not"
            }
            _ => answer.suggestion,
        };
        Envelope {
            code: self.code().to_owned(),
            details: self.details().map(StrictValue::new),
            message: self.to_string(),
            retry: match self.own_after_ms() {
                Some(after_ms) => Retry::RetryableAfterMs { after_ms },
                None => answer.retry,
            },
            suggestion: suggestion.to_owned(),
        }
    }

    /// The code and the message, for answers in which the failure is one finding of many.
    #[must_use]
    pub fn coded(&self) -> String {
        format!("{}: {self}", self.code())
    }

    /// The HTTP status.
    #[must_use]
    pub fn status(&self) -> u16 {
        answers::find(self.code()).status
    }

    /// Who can do what the envelope suggests.
    #[must_use]
    pub fn who(&self) -> Who {
        answers::find(self.code()).who
    }

    /// How a program ends with it.
    #[must_use]
    pub fn exit(&self) -> Exit {
        answers::find(self.code()).exit
    }

    /// How long to wait, where that is known better than its code says.
    const fn own_after_ms(&self) -> Option<u64> {
        match self {
            Self::Engine(error) => error.after_ms(),
            Self::TokensTried { after_ms } => Some(*after_ms),
            _ => None,
        }
    }

    /// How long to wait before trying again, where that helps.
    #[must_use]
    pub fn retry_after_ms(&self) -> Option<u64> {
        if let Some(after_ms) = self.own_after_ms() {
            return Some(after_ms);
        }
        match answers::find(self.code()).retry {
            Retry::NotRetryable => None,
            Retry::RetryableImmediate => Some(0),
            Retry::RetryableAfterMs { after_ms } => Some(after_ms),
        }
    }

    fn details(&self) -> Option<Value> {
        match self {
            Self::Store(error) | Self::NotWhole(error) => store_details(error),
            Self::SessionIdInvalid(text) => Some(json!({"given": text})),
            Self::SessionIdAmbiguous { prefix, matches } => {
                let matches: Vec<String> = matches.iter().map(ToString::to_string).collect();
                Some(json!({"given": prefix, "matches": matches}))
            }
            Self::SessionUnknown(text) => Some(json!({"sessionId": text})),
            Self::RunIdInvalid(text) => Some(json!({"given": text})),
            Self::RunIdAmbiguous { prefix, matches } => {
                let matches: Vec<String> = matches.iter().map(ToString::to_string).collect();
                Some(json!({"given": prefix, "matches": matches}))
            }
            Self::RunUnknown(text) => Some(json!({"runId": text})),
            Self::Engine(error) => engine_details(error),
            Self::ConfigInvalid { path, line, nearest, .. } => {
                let path = path.display().to_string();
                Some(json!({"path": path, "line": line, "nearest": nearest}))
            }
            Self::ConfigMissing { path, named_by } => {
                Some(json!({"path": path.display().to_string(), "namedBy": named_by}))
            }
            Self::HomeMissing { path, named_by } => {
                Some(json!({"path": path.display().to_string(), "namedBy": named_by}))
            }
            Self::HomeNotADirectory(path)
            | Self::ServerRunning { home: path, .. }
            | Self::File { path, .. }
            | Self::AdminToken { path, .. }
            | Self::TokensUnusable { path, .. } => {
                Some(json!({"path": path.display().to_string()}))
            }
            Self::TriggerUnknown { workflow, trigger, nearest } => {
                Some(json!({"workflowId": workflow, "triggerId": trigger, "nearest": nearest}))
            }
            Self::AddressExposed(address)
            | Self::PortTaken(address)
            | Self::Bind { address, .. } => Some(json!({"address": address.to_string()})),
            Self::Forbidden { action, lacks } => {
                let scope = match lacks {
                    Lack::Scope(scope) => Some(scope.name()),
                    Lack::Workflow => None,
                };
                let cause = if scope.is_some() { "scope" } else { "workflow" };
                Some(json!({"action": action, "cause": cause, "scope": scope}))
            }
            Self::RequestTooLarge { max } => Some(json!({"bytesMax": max})),
            _ => None,
        }
    }
}

fn engine_details(error: &engine::Error) -> Option<Value> {
    match error {
        engine::Error::WorkflowInvalid { path, diagnostics } => {
            let diagnostics: Vec<Diagnostic> = diagnostics.iter().map(Into::into).collect();
            Some(json!({"path": path.display().to_string(), "diagnostics": diagnostics}))
        }
        engine::Error::TokenSessionLocked(error) => store_details(error),
        other => other.details(),
    }
}

fn meant(nearest: &Option<String>) -> String {
    nearest.as_ref().map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

fn store_details(error: &store::Error) -> Option<Value> {
    use store::Error as E;
    match error {
        E::Conflict { run, expected, actual } => Some(json!({
            "runId": run.to_string(),
            "expectedIndex": expected.map(|at| at.0),
            "actualIndex": actual.map(|at| at.0),
        })),
        E::PartlyRecorded { key, missing } => {
            Some(json!({"recordedKey": key, "missingKey": missing}))
        }
        E::InvalidEvent { place, .. } => Some(json!({"place": place})),
        E::Locked { session, holder } => {
            Some(json!({"sessionId": session.to_string(), "holder": holder}))
        }
        E::Owned { session, owner } => Some(json!({
            "sessionId": session.to_string(),
            "pid": owner.as_ref().map(|owner| owner.pid),
            "processStartTicks": owner.as_ref().and_then(|owner| owner.started),
            "sinceMs": owner.as_ref().map(|owner| owner.since_ms),
            "purpose": owner.as_ref().map(|owner| &owner.purpose),
        })),
        E::Fenced { session, held, current } | E::EpochBackwards { session, held, current } => {
            Some(json!({
                "sessionId": session.to_string(),
                "heldEpoch": held.0,
                "currentEpoch": current.0,
            }))
        }
        E::Unfenced { session, current } => {
            Some(json!({"sessionId": session.to_string(), "currentEpoch": current.0}))
        }
        E::Exists(session) | E::NotFound(session) | E::UnknownVersion { session, .. } => {
            Some(json!({"sessionId": session.to_string()}))
        }
        E::Newer { session, found, known } => Some(json!({
            "sessionId": session.to_string(), "format": found, "knownFormat": known,
        })),
        E::Busy { session, waiting } => {
            Some(json!({"sessionId": session.to_string(), "waiting": waiting}))
        }
        E::Corrupt { session, health, .. } => {
            Some(json!({"sessionId": session.to_string(), "health": health.name()}))
        }
        E::BlobMissing { kind, digest } | E::BlobCorrupt { kind, digest, .. } => {
            Some(json!({"blobKind": kind, "sha256": digest.to_string()}))
        }
        E::DurabilityLost { path, .. } | E::Keyring { path, .. } => {
            Some(json!({"path": path.display().to_string()}))
        }
        E::Filesystem { path, found } => {
            Some(json!({"path": path.display().to_string(), "fileSystem": found}))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
