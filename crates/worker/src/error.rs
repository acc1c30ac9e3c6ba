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
    /// The codes that evaluating without a worker does not know.
    const OWN: [(Self, &'static str); 6] = [
        (Self::Busy, "EXPR_BUSY"),
        (Self::Crash, "EXPR_CRASH"),
        (Self::Failed, "EXPR_FAILED"),
        (Self::Memory, "EXPR_MEMORY"),
        (Self::Syntax, "EXPR_SYNTAX"),
        (Self::Timeout, "EXPR_TIMEOUT"),
    ];

    fn all() -> impl Iterator<Item = (Self, &'static str)> {
        let values = ErrorKind::ALL.into_iter().map(|(kind, name)| (Self::Value(kind), name));
        Self::OWN.into_iter().chain(values)
    }

    /// Its stable name.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::all().find(|(code, _)| *code == self).map_or("EXPR_FAILED", |(_, name)| name)
    }

    /// The code with this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::all().find(|(_, known)| *known == name).map(|(code, _)| code)
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
