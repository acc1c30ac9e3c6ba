//! Exit codes: how the program ends, for scripts.

use std::fmt;

/// How the program ends. The numbers are a promise.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Exit {
    /// Done.
    Success = 0,
    /// It failed, and no other code says why.
    Failed = 1,
    /// The command line is wrong.
    Usage = 2,
    /// What was given or found does not keep the rules.
    Invalid = 3,
    /// What was asked for is not there.
    NotFound = 4,
    /// It waits for a person.
    Waiting = 5,
    /// It took too long.
    Timeout = 6,
    /// Another process is using it, or its state does not allow this.
    Conflict = 7,
    /// It is not allowed.
    Denied = 8,
    /// Ended by SIGINT.
    Interrupted = 130,
    /// Ended by SIGTERM.
    Terminated = 143,
}

impl Exit {
    /// Every way to end, in order of the codes.
    pub const ALL: [Self; 11] = [
        Self::Success,
        Self::Failed,
        Self::Usage,
        Self::Invalid,
        Self::NotFound,
        Self::Waiting,
        Self::Timeout,
        Self::Conflict,
        Self::Denied,
        Self::Interrupted,
        Self::Terminated,
    ];

    /// The number.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// What it means, for the reference.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Success => "done",
            Self::Failed => "it failed, and no other code says why",
            Self::Usage => "the command line is wrong",
            Self::Invalid => {
                "a workflow, a bundle or stored data is not valid, or a check found a problem"
            }
            Self::NotFound => "there is no such session, workflow or file",
            Self::Waiting => "waiting for a person",
            Self::Timeout => "it took too long",
            Self::Conflict => "somebody else has it: a session, a lock or a port",
            Self::Denied => "permissions or a safety rule do not allow it",
            Self::Interrupted => "ended by Ctrl-C (SIGINT)",
            Self::Terminated => "ended by SIGTERM",
        }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.code(), f)
    }
}
