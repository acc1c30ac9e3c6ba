//! Answers to steps: typed in, or read from a file.

use std::collections::VecDeque;
use std::path::Path;

use cairn_api::error::{Error, Result};
use cairn_engine::guided::answer::Answer;
use cairn_engine::guided::ask::{At, Continue, Intent, Output, Tokens};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::Args;
use crate::commands::run::limited;

/// What somebody at a terminal wants.
pub(super) enum Given {
    /// The draft is the answer.
    Answer,
    /// Show it again.
    Again,
    /// No more for now.
    Nothing,
}

/// An answer to a step.
#[derive(Clone, Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub(super) struct Said {
    /// The step that is meant; without it the one that is pending.
    pub(super) step: Option<String>,
    #[serde(default)]
    pub(super) notes: String,
    #[serde(default)]
    pub(super) artifacts: Vec<Value>,
    #[serde(default)]
    pub(super) context: Map<String, Value>,
}

impl Said {
    /// The call that says it.
    pub(super) fn ack(self, token: &str, args: &Args) -> Continue {
        let notes = (!self.notes.trim().is_empty()).then_some(self.notes);
        Continue {
            at: At::Compact(token.to_owned()),
            intent: Some(Intent::Advance),
            output: Some(Output { notes, artifacts: self.artifacts }),
            context: (!self.context.is_empty()).then_some(Value::Object(self.context)),
            preferences: args.wanted(),
            tokens: Tokens::Compact,
            by: None,
        }
    }

    /// Whether nothing was said yet.
    pub(super) fn is_empty(&self) -> bool {
        self.notes.trim().is_empty() && self.artifacts.is_empty() && self.context.is_empty()
    }
}

/// The answers of a file, in order.
pub(super) struct Script {
    answers: VecDeque<Said>,
    used: usize,
}

impl Script {
    pub(super) fn read(path: &Path) -> Result<Self> {
        let read = match path.to_str() {
            Some("-") => limited(std::io::stdin().lock()),
            _ => std::fs::File::open(path).and_then(limited),
        };
        let text = read.and_then(|bytes| {
            String::from_utf8(bytes).map_err(|_| std::io::ErrorKind::InvalidData.into())
        });
        let text = text.map_err(|source| Error::File { path: path.to_owned(), source })?;
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        let answers = match text.trim_start().starts_with('[') {
            true => serde_json::from_str(&text),
            false => lines.map(serde_json::from_str).collect(),
        };
        let answers = answers.map_err(|error| Error::Usage {
            message: format!("{}: {error}", path.display()),
            suggestion:
                "give a JSON list, or one JSON object a line, such as {\"notes\": \"Did it.\"}"
                    .to_owned(),
        })?;
        Ok(Self { answers, used: 0 })
    }

    /// The answer to the pending step, if there is one left. A blocked step takes the next.
    pub(super) fn next(&mut self, answer: &Answer) -> Result<Option<Said>> {
        let Some(said) = self.answers.pop_front() else { return Ok(None) };
        self.used += 1;
        let pending = answer.pending.as_ref().map(|pending| pending.step_id.as_str());
        match said.step.as_deref().filter(|step| Some(*step) != pending) {
            None => Ok(Some(said)),
            Some(step) => Err(Error::Usage {
                message: format!(
                    "answer {} is for the step `{step}`, and `{}` is pending",
                    self.used,
                    pending.unwrap_or_default()
                ),
                suggestion: "put the answers in the order of the steps, or leave `step` out"
                    .to_owned(),
            }),
        }
    }
}
