//! What a provider is asked, and what comes back.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cairn_core::id::SessionId;
use cairn_engine::performer::{Failed, FailureKind};
use serde_json::Value;

/// How long an agent may say nothing, when nobody says.
pub(super) const STALL: Duration = Duration::from_secs(300);

/// A piece of work for a model or an agent.
#[derive(Clone)]
pub struct Request {
    /// The session whose owner starts it: what it leaves running is ended with that.
    pub owner: SessionId,
    /// What it is told about its part.
    pub system: Option<String>,
    /// What it is to do.
    pub prompt: String,
    /// What its answer must be like, as a JSON schema.
    pub schema: Option<Value>,
    /// The model; the provider's own choice when there is none.
    pub model: Option<String>,
    /// How many turns an agent may take.
    pub turns_max: Option<u32>,
    /// How many tokens an answer may have.
    pub tokens_max: Option<u64>,
    /// The tools that it may use, as the provider calls them.
    pub tools: Vec<String>,
    /// Whether it counts as done though a tool was denied to it.
    pub takes_denials: bool,
    /// Where it works.
    pub folder: PathBuf,
    /// That folder as it was opened, where its path may lead elsewhere by now.
    pub opened: Option<Arc<OwnedFd>>,
    /// Whether it goes on with a conversation.
    pub session: Session,
    /// How long it may take.
    pub timeout: Duration,
    /// How long it may say nothing.
    pub stall: Duration,
    /// Variables of the programs that are started.
    pub variables: Vec<(String, OsString)>,
    /// The files of the workflow, by path.
    pub assets: Arc<BTreeMap<String, Arc<[u8]>>>,
    /// Who hears of it while it works.
    pub progress: Option<Arc<dyn Fn(Progress) + Send + Sync>>,
}

impl Request {
    /// A piece of work with nothing but a prompt.
    #[must_use]
    pub fn new(owner: SessionId, prompt: impl Into<String>, folder: PathBuf) -> Self {
        Self {
            owner,
            system: None,
            prompt: prompt.into(),
            schema: None,
            model: None,
            turns_max: None,
            tokens_max: None,
            tools: Vec::new(),
            takes_denials: false,
            folder,
            opened: None,
            session: Session::New,
            timeout: STALL,
            stall: STALL,
            variables: Vec::new(),
            assets: Arc::default(),
            progress: None,
        }
    }

    /// Tells whoever listens.
    pub(super) fn tell(&self, progress: Progress) {
        if let Some(told) = &self.progress {
            told(progress);
        }
    }
}

/// Whether a conversation is gone on with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Session {
    /// It is a new one, and forgotten afterwards.
    New,
    /// It is the one that is kept there, or becomes that.
    Kept(Kept),
}

/// Where a conversation is kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Kept {
    /// A folder of its own.
    pub folder: PathBuf,
}

/// What an agent is doing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Progress {
    /// It says something.
    Said(String),
    /// It uses a tool.
    Tool {
        /// Which.
        name: String,
        /// With what, cut short.
        input: String,
    },
    /// A tool was denied to it.
    Denied(String),
}

/// What came of it.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Reply {
    /// What was answered.
    pub text: String,
    /// The answer as a value, when one was asked for.
    pub structured: Option<Value>,
    /// What it used up.
    pub used: Used,
    /// The provider's own id of the conversation.
    pub session: Option<String>,
    /// The tools that were denied to it.
    pub denied: Vec<String>,
    /// How many turns it took, when the provider says.
    pub turns: Option<u32>,
    /// Whether it had to be ended after its answer.
    pub lingered: bool,
}

/// What was used up.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Used {
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cost_usd_micros: Option<u64>,
    /// Whether some of it is computed and not reported.
    pub estimated: bool,
    /// How many agents were started or models asked.
    pub launches: u32,
    pub model: Option<String>,
    pub provider: Option<String>,
}

impl Used {
    /// One launch of which nothing is known yet.
    pub(super) fn launch() -> Self {
        Self { launches: 1, ..Self::default() }
    }

    /// This and another.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let cost = match (self.cost_usd_micros, other.cost_usd_micros) {
            (Some(a), Some(b)) => Some(a.saturating_add(b)),
            (a, b) => a.or(b),
        };
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            cost_usd_micros: cost,
            estimated: self.estimated || other.estimated,
            launches: self.launches.saturating_add(other.launches),
            model: other.model.or(self.model),
            provider: other.provider.or(self.provider),
        }
    }
}

/// The ways in which work does not get done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RefusalKind {
    /// The model declined.
    Refused,
    /// Tools that it wanted were denied to it.
    ToolsDenied,
    /// There was no structured answer where one was asked for.
    NoResult,
    /// There was one, and not as its schema asks.
    InvalidResult,
    /// Nothing was heard of it for too long, or its time was over.
    Stalled,
    /// The other side wants to be left alone.
    RateLimited,
    /// It took more turns than it may.
    TurnsOver,
    /// It would cost more than it may.
    OverBudget,
    /// There is no key, or the wrong one.
    NotLoggedIn,
    /// The program is not there.
    NotInstalled,
    /// Nobody answered, or the answer broke off.
    Unreachable,
    /// The other side has a fault.
    Server,
    /// It printed more than it may.
    TooMuch,
    /// It ended without an answer.
    Failed,
    /// The configuration does not have what was asked for.
    Unconfigured,
}

/// The codes that a step of an agent fails with.
mod codes {
    pub(super) const REFUSED: &str = "AGENT_REFUSED";
    pub(super) const TOOLS_DENIED: &str = "AGENT_TOOLS_DENIED";
    pub(super) const NO_RESULT: &str = "AGENT_NO_RESULT";
    pub(super) const INVALID_RESULT: &str = "AGENT_INVALID_RESULT";
    pub(super) const STALLED: &str = "AGENT_STALLED";
    pub(super) const RATE_LIMITED: &str = "AGENT_RATE_LIMITED";
    pub(super) const TURNS: &str = "AGENT_TURNS";
    pub(super) const OVER_BUDGET: &str = "AGENT_OVER_BUDGET";
    pub(super) const NOT_LOGGED_IN: &str = "AGENT_NOT_LOGGED_IN";
    pub(super) const NOT_INSTALLED: &str = "AGENT_NOT_INSTALLED";
    pub(super) const UNREACHABLE: &str = "AGENT_UNREACHABLE";
    pub(super) const SERVER: &str = "AGENT_SERVER";
    pub(super) const OUTPUT_TOO_LARGE: &str = "AGENT_OUTPUT_TOO_LARGE";
    pub(super) const FAILED: &str = "AGENT_FAILED";
    pub(super) const UNCONFIGURED: &str = "AGENT_UNCONFIGURED";
}

impl RefusalKind {
    /// Every one of them.
    pub const ALL: [Self; 15] = [
        Self::Refused,
        Self::ToolsDenied,
        Self::NoResult,
        Self::InvalidResult,
        Self::Stalled,
        Self::RateLimited,
        Self::TurnsOver,
        Self::OverBudget,
        Self::NotLoggedIn,
        Self::NotInstalled,
        Self::Unreachable,
        Self::Server,
        Self::TooMuch,
        Self::Failed,
        Self::Unconfigured,
    ];

    /// The code of the failure of a step.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Refused => codes::REFUSED,
            Self::ToolsDenied => codes::TOOLS_DENIED,
            Self::NoResult => codes::NO_RESULT,
            Self::InvalidResult => codes::INVALID_RESULT,
            Self::Stalled => codes::STALLED,
            Self::RateLimited => codes::RATE_LIMITED,
            Self::TurnsOver => codes::TURNS,
            Self::OverBudget => codes::OVER_BUDGET,
            Self::NotLoggedIn => codes::NOT_LOGGED_IN,
            Self::NotInstalled => codes::NOT_INSTALLED,
            Self::Unreachable => codes::UNREACHABLE,
            Self::Server => codes::SERVER,
            Self::TooMuch => codes::OUTPUT_TOO_LARGE,
            Self::Failed => codes::FAILED,
            Self::Unconfigured => codes::UNCONFIGURED,
        }
    }

    /// Its name in files: the code without its first word, in lower case.
    #[must_use]
    pub fn name(self) -> String {
        self.code().trim_start_matches("AGENT_").to_ascii_lowercase()
    }

    const fn kind(self) -> FailureKind {
        match self {
            Self::NoResult | Self::InvalidResult | Self::TooMuch => FailureKind::InvalidOutput,
            Self::Stalled => FailureKind::Timeout,
            Self::RateLimited => FailureKind::RateLimited,
            Self::Unreachable => FailureKind::Connection,
            Self::Server => FailureKind::ServerError,
            Self::Failed => FailureKind::ExitCode,
            Self::Refused
            | Self::ToolsDenied
            | Self::TurnsOver
            | Self::OverBudget
            | Self::NotLoggedIn
            | Self::NotInstalled
            | Self::Unconfigured => FailureKind::Permanent,
        }
    }
}

/// Why work did not get done, and what it cost all the same.
#[derive(Clone, PartialEq, Debug)]
pub struct Refusal {
    /// Which of the known ways it is.
    pub kind: RefusalKind,
    /// In words: what, why, and what to do about it.
    pub message: String,
    /// What was used up.
    pub used: Box<Used>,
    /// How long the other side asks to be left alone.
    pub after_ms: Option<u64>,
    /// What was answered all the same.
    pub said: String,
}

impl Refusal {
    /// One before anything was used up.
    #[must_use]
    pub fn new(kind: RefusalKind, message: impl Into<String>) -> Self {
        let (used, said) = (Box::default(), String::new());
        Self { kind, message: message.into(), used, after_ms: None, said }
    }

    /// The same after something was used up.
    #[must_use]
    pub fn after(self, used: Used) -> Self {
        Self { used: Box::new(used), ..self }
    }

    /// The same with what was answered.
    #[must_use]
    pub fn saying(self, said: impl Into<String>) -> Self {
        Self { said: said.into(), ..self }
    }

    /// As the failure of a step.
    #[must_use]
    pub fn failed(&self) -> Failed {
        let failed = Failed::of(self.kind.kind(), self.kind.code(), self.message.clone());
        Failed { after_ms: self.after_ms, ..failed }
    }
}
