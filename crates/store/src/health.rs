//! How a session's data is.

/// How a session's data is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Health {
    /// Everything that was acknowledged is there.
    Healthy,
    /// A prefix is whole; what came after it is damaged.
    CorruptTail,
    /// Nothing of it can be trusted.
    CorruptHead,
    /// A later version wrote to it.
    UnknownVersion,
}

impl Health {
    /// The name at the doors.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::CorruptTail => "corrupt_tail",
            Self::CorruptHead => "corrupt_head",
            Self::UnknownVersion => "unknown_version",
        }
    }
}

/// Something about a healthy session that an operator may want to know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Notice {
    /// An append that was never acknowledged was cut off; its bytes are in `quarantine/`.
    TornTailRecovered,
    /// The witness of the last commit is unreadable and was ignored.
    HeadIgnored,
    /// A later version wrote to it: it can be read, not written.
    NewerFormat,
}

impl Notice {
    /// The name at the doors.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::TornTailRecovered => "torn_tail_recovered",
            Self::HeadIgnored => "head_ignored",
            Self::NewerFormat => "newer_format",
        }
    }
}
