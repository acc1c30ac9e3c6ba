//! How a failed job is told.

use cairn_core::expression::{self, ErrorKind};

/// Why a job has no value.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// What kind of failure it is.
    pub code: Code,
    /// What is wrong, and where.
    pub message: String,
}

/// What kind of failure it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Code {
    /// Too many jobs wait already.
    Busy,
    /// The process ended on its way.
    Crash,
    /// The expression itself failed, as jq's `error` does.
    Failed,
    /// It took more memory than a job may.
    Memory,
    /// It does not read as what it should be.
    Syntax,
    /// It took more time than a job may.
    Timeout,
    /// A value does not fit, as in an evaluation without a worker.
    Value(ErrorKind),
}

impl Code {
    const OWN: [Self; 6] =
        [Self::Busy, Self::Crash, Self::Failed, Self::Memory, Self::Syntax, Self::Timeout];

    /// Its stable name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Busy => "EXPR_BUSY",
            Self::Crash => "EXPR_CRASH",
            Self::Failed => "EXPR_FAILED",
            Self::Memory => "EXPR_MEMORY",
            Self::Syntax => "EXPR_SYNTAX",
            Self::Timeout => "EXPR_TIMEOUT",
            Self::Value(kind) => kind.code(),
        }
    }

    /// The code with this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let all = Self::OWN.into_iter().chain(ErrorKind::ALL.into_iter().map(Self::Value));
        all.into_iter().find(|code| code.name() == name)
    }
}

impl Error {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

impl From<expression::Error> for Error {
    fn from(error: expression::Error) -> Self {
        Self { code: Code::Value(error.kind), message: error.message }
    }
}

impl From<expression::Fault> for Error {
    fn from(fault: expression::Fault) -> Self {
        Self::new(Code::Syntax, format!("at byte {}: {}", fault.at, fault.message))
    }
}
