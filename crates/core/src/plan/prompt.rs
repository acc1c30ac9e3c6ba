//! Instructions for an agent, and what is asked of its answer.

use serde::{Deserialize, Serialize};

use super::ModelTier;
use crate::canonical::StrictValue;
use crate::digest::Digest;
use crate::reason::NonAssumableChoice;
use crate::text::Slug;

/// Instructions for an agent.
///
/// What the agent is shown is its role, the text, the fragments whose conditions hold,
/// and the requirements, in this order.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Prompt {
    /// The stance that the agent takes in this step, in place of the plan's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_role: Option<String>,
    /// The assessments that the answer must bring, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assessments: Vec<String>,
    /// The blocks that the text was made of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<StrictValue>,
    /// What the notes of the answer must satisfy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<Check>,
    /// What follows from assessments, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub consequences: Vec<Consequence>,
    /// The keys of the context that the answer sets, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub context_keys: Vec<ContextKey>,
    /// Text that is added when a condition holds, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fragments: Vec<Fragment>,
    /// The functions that the text refers to, in order.
    pub functions: Vec<String>,
    /// Pieces of the text that were put in from elsewhere, in order.
    pub injected: Vec<InjectedText>,
    /// The strength of model that suits it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_tier: Option<ModelTier>,
    /// Choices in this step that are the user's, in the order of their definition.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub non_assumable_choices: Vec<NonAssumableChoice>,
    /// Whether the answer may come without notes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub notes_optional: bool,
    /// What is asked of the answer, a line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requirements: Vec<String>,
    /// The text.
    pub text: String,
}

/// A key of the context that an answer sets.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ContextKey {
    /// Its name.
    pub name: String,
    /// Whether the answer is not whole without it.
    pub required: bool,
    /// What it may be, in the keywords of [`Check::Schema`].
    pub schema: StrictValue,
}

/// Text that is added to a prompt when a condition holds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Fragment {
    /// The condition; without one it is always added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<Slug>,
    /// Its name in the step.
    pub id: String,
    /// What is added.
    pub text: String,
}

/// What must hold of an answer's notes.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(
    tag = "kind",
    rename_all = "snake_case",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Check {
    All {
        checks: Vec<Check>,
    },
    Any {
        checks: Vec<Check>,
    },
    Not {
        check: Box<Check>,
    },
    Contains {
        /// The condition under which it is checked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        condition: Option<Slug>,
        message: String,
        value: String,
    },
    Length {
        /// The condition under which it is checked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        condition: Option<Slug>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max: Option<u32>,
        message: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        min: Option<u32>,
    },
    Regex {
        /// The condition under which it is checked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        condition: Option<Slug>,
        /// Of `imsu`, in this order.
        flags: String,
        message: String,
        pattern: String,
    },
    /// The notes are JSON of this shape.
    Schema {
        /// The condition under which it is checked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        condition: Option<Slug>,
        message: String,
        /// A JSON schema of few keywords: `type`, `enum`, `const`, `properties`, `required`,
        /// `additionalProperties`, `items`, `minItems`, `maxItems`, `minLength`, `maxLength`,
        /// `minimum`, `maximum`, `pattern`, `title` and `description`.
        schema: StrictValue,
    },
}

impl Check {
    /// What is asked of notes, in the author's words and with the rule behind them.
    #[must_use]
    pub fn told(&self) -> String {
        let joined = |checks: &[Self], between| {
            checks.iter().map(Self::told).collect::<Vec<_>>().join(between)
        };
        match self {
            Self::All { checks } => joined(checks, " / "),
            Self::Any { checks } => format!("At least one of: {}", joined(checks, " / ")),
            Self::Not { check } => format!("Not: {}", check.told()),
            Self::Contains { message, value, .. } => {
                format!("{message} (your notes contain {})", fenced(value))
            }
            Self::Regex { message, pattern, flags, .. } => {
                let (pattern, meaning) = pattern_told(pattern, flags);
                format!("{message} (your notes match the pattern {}{meaning})", fenced(pattern))
            }
            Self::Schema { message, schema, .. } => {
                format!(
                    "{message} (your notes are JSON of the schema {})",
                    fenced(&schema.0.to_string())
                )
            }
            Self::Length { message, min, max, .. } => {
                let bounds = match (min, max) {
                    (Some(min), Some(max)) => format!("{min} to {max}"),
                    (Some(min), None) => format!("at least {min}"),
                    (None, Some(max)) => format!("at most {max}"),
                    (None, None) => "any number of".to_owned(),
                };
                format!("{message} (your notes have {bounds} characters)")
            }
        }
    }
}

/// A text between marks that it does not hold itself, so that its ends cannot be mistaken.
fn fenced(text: &str) -> String {
    match text.contains('`') {
        false => format!("`{text}`"),
        true => format!("between the double brackets ⟪{text}⟫"),
    }
}

/// A pattern without the switches that it begins with, and what those mean for it, in words.
fn pattern_told<'p>(pattern: &'p str, flags: &str) -> (&'p str, String) {
    let inline = pattern.strip_prefix("(?").and_then(|rest| rest.split_once(')'));
    let is_switch = |switches: &&str| switches.chars().all(|switch| "ims".contains(switch));
    let inline = inline.filter(|(switches, _)| !switches.is_empty() && is_switch(switches));
    let (switches, rest) = inline.unwrap_or(("", pattern));
    let is_on = |switch: char| switches.contains(switch) || flags.contains(switch);
    let mut meaning = String::new();
    if is_on('i') {
        meaning.push_str(", in upper or lower case");
    }
    // Without these in the pattern the switches change nothing.
    if is_on('s') && rest.contains('.') {
        meaning.push_str(", where `.` is also the end of a line");
    }
    if is_on('m') && rest.contains(['^', '$']) {
        meaning.push_str(", where `^` and `$` are the ends of any line");
    }
    (rest, meaning)
}

/// What follows from an assessment: more is to be done before the run goes on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Consequence {
    /// The assessment it looks at, when not at all of the step's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assessment: Option<String>,
    /// What to do then.
    pub guidance: String,
    /// The level that any dimension must have for it.
    pub level: String,
}

/// Text that the compiler put in.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InjectedText {
    /// How long it is.
    pub byte_length: u64,
    /// Its name.
    pub r#ref: String,
    /// Which text.
    pub sha256: Digest,
}

impl Check {
    /// The conditions under which it, or a part of it, is checked.
    #[must_use]
    pub fn conditions(&self) -> Vec<&Slug> {
        match self {
            Self::All { checks } | Self::Any { checks } => {
                checks.iter().flat_map(Self::conditions).collect()
            }
            Self::Not { check } => check.conditions(),
            Self::Contains { condition, .. }
            | Self::Length { condition, .. }
            | Self::Regex { condition, .. }
            | Self::Schema { condition, .. } => condition.iter().collect(),
        }
    }
}
