//! What expressions look at: whether it is there, and whether it may be looked at here.

use std::borrow::Cow;

use cairn_core::catalog::{StepType, Takes};
use cairn_core::expression::{Expr, Reference};
use cairn_core::flow::ERROR;
use serde_json::Value;

use super::Build;
use super::fault::{self, Wrong};
use super::flow::Flow;
use super::form;
use super::schema::{self, Output};
use crate::diagnostic::Code;
use crate::read::{Spot, meant};
use crate::source::Position;

/// What an event has.
const EVENT: &[&str] = &[
    "at", "channel", "id", "key", "payload", "source", "text", "thread", "trace", "trigger",
    "type", "user",
];
/// What a run has.
const RUN: &[&str] = &["attempt", "id", "started_at", "trigger_id", "workflow_id"];
/// What a path can begin with.
const ROOTS: [&str; 5] = ["env", "event", "run", "secret", "steps"];

/// A text with expressions, and where it stands.
pub(super) struct Written<'s, 'a> {
    pub(super) spot: &'s Spot<'a>,
    pub(super) text: &'s str,
    /// Whether the text is a file of its own.
    pub(super) is_file: bool,
}

/// Which secrets may be looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SecretsAllowed {
    None,
    /// Those that go to some hosts only.
    Bound,
    All,
}

impl SecretsAllowed {
    /// Which secrets may flow into a field.
    pub(super) const fn into(takes: Takes) -> Self {
        match takes {
            Takes::Secrets => Self::All,
            Takes::Address | Takes::BoundSecrets => Self::Bound,
            _ => Self::None,
        }
    }
}

/// From where is looked, and how.
pub(super) struct Look<'f> {
    pub(super) here: usize,
    pub(super) flow: &'f Flow,
    /// Which secrets may be looked at.
    pub(super) secrets: SecretsAllowed,
    /// Whether turns of the loop that looks may have been made.
    pub(super) turns: bool,
    /// What is looked at under the condition that it is there.
    pub(super) guarded: Vec<Reference>,
}

impl Build<'_> {
    /// The place of a byte of a text.
    pub(super) fn position(&self, written: &Written<'_, '_>, at: usize) -> Position {
        let start = written.spot.node.at;
        // To find it takes a look at the whole file, and this one is not told.
        if written.spot.is_only_counted() {
            let offset = u32::try_from(at).unwrap_or(u32::MAX);
            return Position { column: start.column.saturating_add(offset), ..start };
        }
        let before = written.text.get(..at).unwrap_or_default();
        if written.is_file {
            return Position::after(before);
        }
        let found = || {
            let line = before.rsplit('\n').next()?;
            let whole = written.text.get(at - line.len()..)?.lines().next()?;
            let lines = self.text.lines().enumerate().skip(usize::try_from(start.line).ok()? - 1);
            let number = before.matches('\n').count();
            let same =
                written.text.lines().take(number).filter(|other| other.contains(whole)).count();
            let (row, text) = lines.filter(|(_, text)| text.contains(whole)).nth(same)?;
            let first = if row + 1 == usize::try_from(start.line).ok()? {
                skip(text, start.column)
            } else {
                0
            };
            let column = first + text.get(first..)?.find(whole)? + line.len();
            let column = text.get(..column)?.chars().count() + 1;
            Some(Position {
                line: u32::try_from(row + 1).ok()?,
                column: u32::try_from(column).ok()?,
            })
        };
        found().unwrap_or(start)
    }

    /// Says everything that is wrong with what an expression looks at. The names are those
    /// that the template itself gives.
    pub(super) fn looked_at(
        &self,
        look: &Look<'_>,
        written: &Written<'_, '_>,
        expr: &Expr,
        names: &[&str],
    ) {
        let mut wrong: Vec<Wrong> = Vec::new();
        for reference in expr.references() {
            if names.contains(&reference.root.as_str()) {
                continue;
            }
            match self.reference(look, written.spot, &reference) {
                Ok(()) => self.missing(look, written, &reference),
                Err(error) => wrong.push(error),
            }
        }
        wrong.extend(expr.check().into_iter().map(fault::told));
        for (at, code, message, hint) in wrong {
            written.spot.error_at(self.position(written, at), code, message, hint);
        }
    }

    /// Whether a step belongs to the turns of the loop that looks.
    pub(super) fn is_of_turn(&self, look: &Look<'_>, place: usize) -> bool {
        let around = self.drafts.get(place).and_then(|draft| draft.around);
        look.turns && around == Some(look.here)
    }

    fn reference(
        &self,
        look: &Look<'_>,
        spot: &Spot<'_>,
        reference: &Reference,
    ) -> Result<(), Wrong> {
        let Reference { root, at, members } = reference;
        let first = members.first();
        let name = |what: &str| match first {
            Some((Some(name), at)) => Ok((name.as_str(), *at)),
            _ => Err((
                *at,
                Code::InvalidValue,
                format!("`{root}` is followed by the name of {what}"),
                None,
            )),
        };
        match root.as_str() {
            "steps" => {
                let (step, at) = name("a step")?;
                self.step_read(look, spot, (step, at), members)
            }
            "event" if members.is_empty() => Ok(()),
            "event" => {
                let (name, at) = name("a field")?;
                listed("field of the event", name, at, EVENT)?;
                if name == "payload" { self.payload_read(look, members) } else { Ok(()) }
            }
            "run" => {
                name("a field").and_then(|(name, at)| listed("field of the run", name, at, RUN))
            }
            "env" | "secret" => {
                let (name, at) = name("a setting")?;
                self.setting_read((spot, look.secrets), root == "secret", name, at)
            }
            other if self.variable(look.here, other).is_some() => Ok(()),
            other => {
                let hint = spot.hint(|| {
                    let mut names: Vec<&str> = ROOTS.to_vec();
                    names.extend(self.places.keys().map(String::as_str));
                    let around = self.around(look.here).map(|place| self.variables(place));
                    let variables: Vec<String> =
                        around.flat_map(|(item, index)| [item, index]).collect();
                    names.extend(variables.iter().map(String::as_str));
                    meant(other, &names).or_else(|| schema::known_are(&ROOTS))
                });
                Err((
                    *at,
                    Code::UnknownName,
                    format!("there is nothing that `{other}` stands for"),
                    hint,
                ))
            }
        }
    }

    fn step_read(
        &self,
        look: &Look<'_>,
        spot: &Spot<'_>,
        (step, at): (&str, usize),
        members: &[(Option<String>, usize)],
    ) -> Result<(), Wrong> {
        let Some(place) = self.places.get(step).copied() else {
            let hint = spot.hint(|| {
                let names: Vec<&str> = self.places.keys().map(String::as_str).collect();
                meant(step, &names).or_else(|| schema::known_are(&names))
            });
            return Err((at, Code::UnknownName, format!("there is no step `{step}`"), hint));
        };
        let can_be_read = |place: usize| match self.is_of_turn(look, place) {
            true => Ok(()),
            false => self.has_run(look.flow, place, look.here),
        };
        can_be_read(place).map_err(|message| {
            let hint = spot.hint(|| {
                let drafts = self.drafts.iter().enumerate();
                let earlier = drafts.filter(|(place, _)| can_be_read(*place).is_ok());
                let names: Vec<&str> = earlier.map(|(_, draft)| draft.id.as_str()).collect();
                Some(match names.is_empty() {
                    true => "nothing has run before this step".to_owned(),
                    false => format!("what has run is {}", crate::read::quoted(&names)),
                })
            });
            (at, Code::StepNotBefore, message, hint)
        })?;
        if let Some((Some(name), at)) =
            members.get(1).filter(|(name, _)| name.as_deref() != Some(ERROR))
        {
            self.branch_read(place, name, *at)?;
        }
        let Some(kind) = self.drafts.get(place).and_then(|draft| draft.kind) else { return Ok(()) };
        let path: Vec<Option<&str>> =
            members.iter().skip(1).map(|(name, _)| name.as_deref()).collect();
        match schema::follow(&self.output(place, kind), &path) {
            Output::Known(_) | Output::Open => Ok(()),
            Output::Missing { place: 0, .. } if path.first() == Some(&Some(ERROR)) => {
                self.error_read(place, members)
            }
            Output::Missing { place, known } => {
                let (name, at) = members
                    .get(place + 1)
                    .map(|(name, at)| (name.as_deref(), *at))
                    .unwrap_or_default();
                let name = name.unwrap_or_default();
                let hint = spot.hint(|| meant(name, &known).or_else(|| schema::known_are(&known)));
                let message = format!("`{}` steps have no `{name}` in their output", kind.name);
                Err((at, Code::UnknownField, message, hint))
            }
        }
    }

    /// The schema of a step's output, with what its own form says of it.
    pub(super) fn output<'k>(&self, place: usize, kind: &'k StepType) -> Cow<'k, Value> {
        let fields = self.drafts.get(place).and_then(|draft| draft.fields.as_ref());
        let form = |name: &str| form::read(&fields?.get(name)?);
        let mut output = Cow::Borrowed(&kind.output);
        if let Some(form) = form("form")
            && let Some(answer) = output.to_mut().pointer_mut("/properties/answer")
        {
            *answer = form;
        }
        match form("output_contract") {
            Some(contract) => Cow::Owned(contract),
            None => output,
        }
    }

    fn setting_read(
        &self,
        (spot, secrets): (&Spot<'_>, SecretsAllowed),
        secret: bool,
        name: &str,
        at: usize,
    ) -> Result<(), Wrong> {
        let Some(field) = self.env.get(name) else {
            let hint = spot.hint(|| {
                let names: Vec<&str> = self.env.keys().map(String::as_str).collect();
                meant(name, &names).or_else(|| Some("declare it under `env`".to_owned()))
            });
            return Err((at, Code::UnknownName, format!("there is no setting `{name}`"), hint));
        };
        let wrong =
            |message: String, hint: String| Err((at, Code::SecretMisplaced, message, Some(hint)));
        match (field.secret, secret) {
            (true, false) => {
                wrong(format!("`{name}` is a secret"), format!("write `secret.{name}`"))
            }
            (false, true) => wrong(
                format!("`{name}` is no secret"),
                format!("write `env.{name}`, or make it `widget: secret`"),
            ),
            (true, true) if secrets == SecretsAllowed::Bound && field.hosts.is_empty() => wrong(
                format!("the secret `{name}` would be part of an address, and may go to any host"),
                format!("bind it: `{{ name: {name}, widget: secret, hosts: [api.example.com] }}`, or put it into a header"),
            ),
            (true, true) if secrets == SecretsAllowed::None => wrong(
                format!("the secret `{name}` would get where it can be read"),
                "secrets go into headers, bodies, the environment or input of a process, and, when they are bound to `hosts`, into addresses"
                    .to_owned(),
            ),
            _ => Ok(()),
        }
    }

    /// Whether a name is a loop's item, or its place.
    fn variable(&self, here: usize, name: &str) -> Option<bool> {
        self.around(here).find_map(|place| {
            let (item, index) = self.variables(place);
            if name == item { Some(true) } else { (name == index).then_some(false) }
        })
    }

    /// Whether what a reference gives was sent by somebody, in a form that nobody vouches for.
    pub(super) fn is_tainted(&self, here: usize, reference: &Reference) -> bool {
        match reference.root.as_str() {
            "event" => !self.is_declared(reference),
            "env" | "run" | "secret" => false,
            "steps" => {
                let step = reference.members.first().and_then(|(name, _)| name.as_deref());
                let place = step.and_then(|step| self.places.get(step));
                let kind =
                    place.and_then(|place| self.drafts.get(*place)).and_then(|draft| draft.kind);
                let path: Vec<Option<&str>> =
                    reference.members.iter().skip(1).map(|(n, _)| n.as_deref()).collect();
                !kind.is_some_and(|kind| match schema::follow(&kind.output, &path) {
                    Output::Known(schema) => cairn_core::schema::is_harmless(schema),
                    _ => false,
                })
            }
            // A name that the template gives may stand for anything.
            other => self.variable(here, other).unwrap_or(true),
        }
    }
}

/// What of a line stands before a column, in bytes.
fn skip(line: &str, column: u32) -> usize {
    let count = usize::try_from(column).unwrap_or_default().saturating_sub(1);
    line.char_indices().nth(count).map_or(line.len(), |(place, _)| place)
}

fn listed(what: &str, name: &str, at: usize, known: &[&str]) -> Result<(), Wrong> {
    if known.contains(&name) {
        return Ok(());
    }
    let hint = meant(name, known).or_else(|| schema::known_are(known));
    Err((at, Code::UnknownField, format!("there is no {what} `{name}`"), hint))
}
