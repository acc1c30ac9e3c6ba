//! Steps that the engine performs itself: one table, from which everything else is made.

/// A type of step that the engine performs.
#[derive(Clone, Copy, Debug)]
pub struct RunType {
    /// What steps name it by.
    pub id: &'static str,
    /// What it does.
    pub purpose: &'static str,
    /// What it is told, beside `type` and `saveAs`.
    pub settings: &'static [Setting],
}

/// One thing that a step of a type is told.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Setting {
    pub name: &'static str,
    pub about: &'static str,
    pub required: bool,
    pub holds: Holds,
}

/// What a setting holds.
#[derive(Clone, Copy, Debug)]
pub enum Holds {
    /// Text for `sh -c`, or a program and its arguments. Nothing is filled in: what a run
    /// brings is data, and data never becomes program text.
    Command,
    /// Texts by the names of environment variables, with `{{paths}}`.
    Environment,
    /// A path that stays inside the directory it begins in.
    InnerPath,
    /// A whole number of seconds from 1 on.
    #[expect(missing_docs, reason = "the names say it")]
    Seconds { default: u32, max: u32 },
    /// Text with `{{paths}}`.
    Text,
    /// Any JSON; its texts may hold `{{paths}}`.
    Value,
}

impl Holds {
    /// What it is called in front of people.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Command => "text for `sh -c`, or a list of texts".to_owned(),
            Self::Environment => "map of texts".to_owned(),
            Self::InnerPath => "relative path".to_owned(),
            Self::Seconds { default, max } => format!("1 to {max}, {default} by default"),
            Self::Text => "text".to_owned(),
            Self::Value => "any value".to_owned(),
        }
    }

    /// What the setting is called in a plan, and how often its value counts there.
    pub(crate) fn planned(self, name: &str) -> (String, u64) {
        match self {
            // Units come last, and the plan has one unit of time.
            Self::Seconds { .. } => (format!("{}Ms", name.trim_end_matches("Sec")), 1_000),
            _ => (name.to_owned(), 1),
        }
    }
}

const fn must(name: &'static str, holds: Holds, about: &'static str) -> Setting {
    Setting { name, about, required: true, holds }
}

const fn may(name: &'static str, holds: Holds, about: &'static str) -> Setting {
    Setting { name, about, required: false, holds }
}

/// How long a command may take when nothing else is said.
pub const SHELL_SECONDS: u32 = 60;

/// The longest that a command may be given.
pub const SHELL_SECONDS_MAX: u32 = 3_600;

const TIMEOUT: Holds = Holds::Seconds { default: SHELL_SECONDS, max: SHELL_SECONDS_MAX };

/// Every type, in alphabetical order.
pub const RUN_TYPES: &[RunType] = &[
    RunType {
        id: "end",
        purpose: "ends the run early, as a success",
        settings: &[may("message", Holds::Text, "why the run is over")],
    },
    RunType {
        id: "log",
        purpose: "writes a line into the run's history",
        settings: &[must("message", Holds::Text, "the line")],
    },
    RunType {
        id: "shell",
        purpose: "runs a command and keeps what came of it",
        settings: &[
            must("command", Holds::Command, "what is run"),
            may("cwd", Holds::InnerPath, "where, from the working directory of the run"),
            may("env", Holds::Environment, "environment variables to set"),
            may("stdin", Holds::Text, "what the command reads"),
            may("timeoutSec", TIMEOUT, "how long it may take"),
        ],
    },
    RunType {
        id: "transform",
        purpose: "makes a value out of values of the context",
        settings: &[must("value", Holds::Value, "the value")],
    },
];
