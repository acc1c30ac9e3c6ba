//! Why an expression has no value.

/// Why an expression has no value.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// What kind of failure it is.
    pub kind: ErrorKind,
    /// What is wrong, and where.
    pub message: String,
}

/// What kind of failure it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ErrorKind {
    /// A number is divided by zero.
    DivisionByZero,
    /// A value is not of the form that the workflow asks for.
    Invalid,
    /// A number is larger than numbers get.
    Overflow,
    /// A value is larger than values get.
    TooLarge,
    /// A value is of a type that does not fit.
    Type,
    /// Something that is looked at is not there.
    Undefined,
    /// Only a worker process can evaluate it.
    Worker,
}

impl ErrorKind {
    /// Every kind there is, with its stable name. They are told in the log of a run, where a
    /// step failed for them.
    pub const ALL: [(Self, &'static str); 7] = [
        (Self::DivisionByZero, "EXPR_DIVISION_BY_ZERO"),
        (Self::Invalid, "EXPR_INVALID"),
        (Self::Overflow, "EXPR_OVERFLOW"),
        (Self::TooLarge, "EXPR_TOO_LARGE"),
        (Self::Type, "EXPR_TYPE"),
        (Self::Undefined, "EXPR_UNDEFINED"),
        (Self::Worker, "EXPR_WORKER"),
    ];

    /// Its stable name.
    #[must_use]
    pub fn code(self) -> &'static str {
        Self::ALL.iter().find(|(kind, _)| *kind == self).map_or("EXPR_FAILED", |(_, name)| name)
    }
}

impl Error {
    /// A failure of this kind.
    #[must_use]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    pub(super) fn kind(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Type, message)
    }

    /// Its stable name.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.kind.code()
    }
}
