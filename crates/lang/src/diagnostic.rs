//! What is wrong with a source: where, why, and what to write instead.

use std::fmt;

/// One thing that is wrong, or worth a look. Diagnostics are in order of the source.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Diagnostic {
    /// The file, from the root of its source tree.
    pub path: String,
    /// Counts from 1.
    pub line: u32,
    /// Counts characters from 1.
    pub column: u32,
    /// Whether the workflow can be run all the same.
    pub severity: Severity,
    /// A stable name.
    pub code: Code,
    /// Where it is in the document, as a JSON pointer.
    pub pointer: String,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub suggestion: Option<String>,
}

/// Whether a workflow can be run all the same.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Severity {
    /// It cannot.
    Error,
    /// It can.
    Warning,
}

impl Severity {
    /// Its stable name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

macro_rules! codes {
    ($($(#[$doc:meta])* $code:ident = $name:literal;)*) => {
        /// What kind of mistake it is.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum Code {
            $($(#[$doc])* $code,)*
        }

        impl Code {
            /// Every kind there is.
            pub const ALL: &'static [Self] = &[$(Self::$code,)*];

            /// Its stable name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$code => $name,)*
                }
            }
        }
    };
}

codes! {
    /// A template's argument is not used by it.
    ArgumentUnused = "argument_unused";
    /// A step takes whatever a run brings as an argument, options too.
    ArgumentsTrusted = "arguments_trusted";
    /// A check can be passed by writing a phrase.
    CheckGameable = "check_gameable";
    /// Two things exclude each other.
    Conflict = "conflict";
    /// Steps come back to themselves without a loop.
    Cycle = "cycle";
    /// A name is given twice.
    DuplicateId = "duplicate_id";
    /// A key stands twice in one map.
    DuplicateKey = "duplicate_key";
    /// A feature changes nothing here.
    FeatureWithoutEffect = "feature_without_effect";
    /// A field has no meaning any more.
    FieldIgnored = "field_ignored";
    /// A host is none of those that the workflow limits itself to.
    HostDenied = "host_denied";
    /// A name has the wrong form.
    InvalidId = "invalid_id";
    /// A value is out of range or empty.
    InvalidValue = "invalid_value";
    /// An old id was used for a workflow that has another now.
    LegacyAlias = "legacy_alias";
    /// A workflow id has no namespace.
    LegacyId = "legacy_id";
    /// Whether a loop goes on is up to the context.
    LoopContextControlled = "loop_context_controlled";
    /// No step of a loop decides whether it goes on.
    LoopWithoutDecision = "loop_without_decision";
    /// The text is neither JSON nor YAML.
    Malformed = "malformed";
    /// Something is read that need not be there.
    MayBeMissing = "may_be_missing";
    /// No input of a merge can arrive.
    MergeNeverFires = "merge_never_fires";
    /// An outcome has no edge to go on by.
    MissingDefault = "missing_default";
    /// Something that must be there is not.
    MissingField = "missing_field";
    /// Something is not set up on this machine.
    NotConfigured = "not_configured";
    /// A placeholder stays as it is written.
    PlaceholderKept = "placeholder_kept";
    /// A name belongs to the program.
    ReservedId = "reserved_id";
    /// A step would be done twice in one run.
    RunsTwice = "runs_twice";
    /// A secret would get where it can be read.
    SecretMisplaced = "secret_misplaced";
    /// A step is read that has run on some of the ways only.
    StepNotAlways = "step_not_always";
    /// A step is read that cannot have run before.
    StepNotBefore = "step_not_before";
    /// What somebody sent would become program text, an address or a path.
    TaintedValue = "tainted_value";
    /// The document nests too deep.
    TooDeep = "too_deep";
    /// Something is too long.
    TooLong = "too_long";
    /// More is wrong than is told.
    TooMany = "too_many";
    /// A field that is not known here.
    UnknownField = "unknown_field";
    /// A name that nothing has.
    UnknownName = "unknown_name";
    /// A value that is not among those there are.
    UnknownValue = "unknown_value";
    /// Nothing leads to a step.
    Unreachable = "unreachable";
    /// A file or directory is there and cannot be read.
    Unreadable = "unreadable";
    /// Something that cannot be used here.
    Unsupported = "unsupported";
    /// What somebody sent, a secret and a way out are in one workflow.
    UntrustedWithSecret = "untrusted_with_secret";
    /// A value is of another type.
    WrongType = "wrong_type";
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, line, column, message, .. } = self;
        write!(f, "{path}:{line}:{column}: {}[{}]", self.severity.name(), self.code.name())?;
        if !self.pointer.is_empty() {
            write!(f, " {}", self.pointer)?;
        }
        write!(f, ": {message}")?;
        self.suggestion.iter().try_for_each(|suggestion| write!(f, "; {suggestion}"))
    }
}

/// How many bytes a name may have for which another is looked for.
const NEAREST_MAX: usize = 128;

/// The name that was most likely meant, if one is near.
#[must_use]
pub fn nearest<'a>(given: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if given.len() > NEAREST_MAX {
        return None;
    }
    let given = given.to_lowercase();
    let rank = |name: &'a str| {
        let lower = name.to_lowercase();
        let (mine, other) = tails(&given, &lower);
        let distance = strsim::osa_distance(mine, other);
        let begins = mine.len() > 2 && other.starts_with(mine);
        let near = begins || distance <= (mine.chars().count() / 3).max(1);
        near.then_some((!begins, distance, name))
    };
    names.into_iter().filter_map(rank).min().map(|(.., name)| name)
}

/// What two dotted names do not share at their beginning, so that a namespace says nothing.
fn tails<'t>(one: &'t str, other: &'t str) -> (&'t str, &'t str) {
    let (mut one, mut other) = (one, other);
    while let (Some((a, one_rest)), Some((b, other_rest))) =
        (one.split_once('.'), other.split_once('.'))
        && a == b
    {
        (one, other) = (one_rest, other_rest);
    }
    (one, other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_near() {
        let names = ["prompt", "promptBlocks", "title", "id"];
        assert_eq!(nearest("promt", names), Some("prompt"));
        assert_eq!(nearest("PROMPT", names), Some("prompt"));
        assert_eq!(nearest("tilte", names), Some("title"));
        assert_eq!(nearest("something", names), None);
        let dotted = ["wr.contracts.assessment", "wr.contracts.loop_control"];
        assert_eq!(nearest("wr.contracts.loop", dotted), Some("wr.contracts.loop_control"));
        assert_eq!(nearest("wr.contract.loop_control", dotted), Some("wr.contracts.loop_control"));
        assert_eq!(nearest("wr.contracts.verdict", dotted), None);
    }

    #[test]
    fn names_are_distinct_and_in_order() {
        assert!(Code::ALL.is_sorted_by(|a, b| a.name() < b.name()));
    }
}
