//! Command lines: what a run brings stays data, and becomes no program and no option of one.
//!
//! What each program makes of its arguments is told by [`cairn_core::command`]. What only the
//! run can say, whether an argument begins as an option does, is looked at when the command is
//! about to start; the plan says which arguments that concerns.

use cairn_core::command::{
    self, Input, Programs, Reading, Rule, Sent, SentArgument, Unfollowed, Word, configures,
    interpreter_of, is_variable,
};
use cairn_core::expression::{Expr, Piece, Template};
use serde_json::{Map, Value, json};

use super::Build;
use super::flow::Flow;
use super::reference::{SecretsAllowed, Written};
use crate::diagnostic::Code;
use crate::read::{Fields, Spot};
use crate::source;

/// How many words a command may have.
const WORDS_MAX: usize = 1_024;

/// The field by which an author vouches for the arguments of a step.
pub(super) const TRUSTS: &str = "trusts_arguments";

/// A part of a command.
struct Part<'s, 'a> {
    spot: &'s Spot<'a>,
    text: &'s str,
    template: Template,
    /// Whether somebody sent a part of it.
    tainted: bool,
}

impl Part<'_, '_> {
    /// How it begins, as far as that is written out.
    fn lead(&self) -> &str {
        let trims = |piece: &Piece| match piece {
            Piece::Value { trims, .. } | Piece::Tag { trims, .. } => trims.0,
            Piece::Text(_) => false,
        };
        match self.template.pieces.as_slice() {
            [Piece::Text(text), next, ..] if trims(next) => text.trim_end(),
            [Piece::Text(text), ..] => text,
            _ => "",
        }
    }

    fn word(&self) -> Word<'_> {
        let is_whole = self.template.is_plain();
        let written = |piece: &Piece| matches!(piece, Piece::Text(text) if !text.is_empty());
        let choices = match self.template.pieces.as_slice() {
            [Piece::Value { value, .. }] => one_of(value).unwrap_or_default(),
            _ => Vec::new(),
        };
        Word {
            lead: if is_whole { self.text } else { self.lead() },
            is_whole,
            says_something: self.template.pieces.iter().any(written),
            is_sent: self.tainted,
            choices,
            text: is_whole.then_some(self.text),
        }
    }
}

/// The scripts of a workflow, by their paths.
struct Sources<'b, 'a>(&'b Build<'a>);

impl Programs for Sources<'_, '_> {
    fn names(&self, name: &str) -> Vec<String> {
        vec![name.to_owned()]
    }

    fn script(&self, name: &str) -> Option<Vec<String>> {
        let path = format!("{}{}", self.0.folder, name.strip_prefix("./").unwrap_or(name));
        interpreter_of(self.0.tree.files.get(&path)?)
    }
}

/// The texts that a choice names.
fn one_of(value: &Expr) -> Option<Vec<&str>> {
    let Expr::Filter { call, .. } = value else { return None };
    if call.name != "one_of" {
        return None;
    }
    call.arguments.iter().map(literal).collect()
}

fn literal(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Literal(Value::String(text)) => Some(text),
        _ => None,
    }
}

impl Build<'_> {
    /// A command: a line for the shell, or a program and its arguments. Says in the settings
    /// what of it was sent.
    pub(super) fn command(
        &self,
        here: usize,
        flow: &Flow,
        spot: &Spot<'_>,
        fields: &Fields<'_>,
        config: &mut Map<String, Value>,
    ) -> Option<Value> {
        let trusts = fields.get(TRUSTS).is_some_and(|spot| is_true(&spot));
        if !spot.is_list() {
            let line = self.program(spot)?;
            spot.filled()?;
            let words = ["sh", "-c", line].map(Word::literal);
            let reading = command::read(&words, &Sources(self));
            self.surroundings(here, flow, fields, &reading);
            self.note_sent(here, fields, &[], config);
            return Some(json!(["sh", "-c", line]));
        }
        let spots = spot.items();
        if spots.is_empty() {
            spot.error(Code::InvalidValue, "the command is empty");
            return None;
        }
        if spots.len() > WORDS_MAX {
            let message =
                format!("the command has {} words; at most {WORDS_MAX} may be", spots.len());
            spot.error_hint(Code::TooLong, message, "put what is long into a file or into `stdin`");
            return None;
        }
        let parts = self.parts(here, flow, &spots)?;
        let words: Vec<Word<'_>> = parts.iter().map(Part::word).collect();
        let reading = command::read(&words, &Sources(self));
        for (part, place) in parts.iter().zip(&reading.places) {
            let command::Place::Refused(why) = place else { continue };
            match why.rule {
                Rule::Unfollowed if trusts => {}
                Rule::Unfollowed => {
                    let near = reading.unfollowed.as_ref().map(|found| found.near.clone());
                    let near = near.unwrap_or_default();
                    let found = Unfollowed { what: why.program, near };
                    let written = Written { spot: part.spot, text: part.text, is_file: false };
                    for expr in part.template.values() {
                        self.refuse_unfollowed(here, &written, expr, &found);
                    }
                }
                Rule::Text => drop(self.program(part.spot)),
                Rule::Name => self.untainted(here, part, &why.to_string()),
                _ if trusts => {}
                _ => self.untainted(here, part, &why.to_string()),
            }
        }
        self.surroundings(here, flow, fields, &reading);
        self.note_sent(here, fields, &parts, config);
        let parts: Vec<String> = parts.iter().map(|part| part.template.to_string()).collect();
        Some(json!(parts))
    }

    /// What a command makes of its input and its variables.
    fn surroundings(&self, here: usize, flow: &Flow, fields: &Fields<'_>, reading: &Reading) {
        let trusts = fields.get(TRUSTS).is_some_and(|spot| is_true(&spot));
        let stdin = fields.get("stdin").filter(|spot| spot.node.as_text().is_some());
        match reading.input {
            Input::Program => drop(stdin.as_ref().map(|spot| self.program(spot))),
            Input::Arguments if !trusts => {
                stdin.iter().for_each(|spot| self.arguments_read(here, flow, spot));
            }
            _ => {}
        }
        if reading.expands && !trusts {
            self.expanded(here, flow, fields);
        }
        self.line_variables(here, flow, fields, reading, trusts);
        if let Some(unfollowed) = reading.unfollowed.as_ref().filter(|_| !trusts) {
            self.unfollowed(here, flow, fields, unfollowed);
        }
        // What is written out for a shell to read is a line for it.
        let line = stdin.as_ref().and_then(|spot| spot.node.as_text());
        if let Some(line) = line.filter(|line| reading.feeds_shell && !line.contains("{{")) {
            let inner = command::read(&["sh", "-c", line].map(Word::literal), &Sources(self));
            let inner = Reading { feeds_shell: false, ..inner };
            self.surroundings(here, flow, fields, &inner);
        }
    }

    /// Refuses what was sent as the input or a variable of a line in which it is not followed.
    fn unfollowed(&self, here: usize, flow: &Flow, fields: &Fields<'_>, found: &Unfollowed) {
        let env = fields.get("env");
        let variables = match &env {
            Some(env) if env.is_map() => env.members().into_iter().map(|(_, spot)| spot).collect(),
            Some(env) => vec![env.clone()],
            None => Vec::new(),
        };
        for spot in fields.get("stdin").into_iter().chain(variables) {
            let Some(text) = spot.node.as_text() else { continue };
            let written = Written { spot: &spot, text, is_file: false };
            let template = self.template(here, flow, &written, SecretsAllowed::All);
            for expr in template.iter().flat_map(Template::values) {
                self.refuse_unfollowed(here, &written, expr, found);
            }
        }
    }

    /// Refuses what was sent as a variable that a line for the shell makes a program of.
    fn line_variables(
        &self,
        here: usize,
        flow: &Flow,
        fields: &Fields<'_>,
        reading: &Reading,
        trusts: bool,
    ) {
        let Some(env) = fields.get("env").filter(|_| !reading.variables.is_empty()) else { return };
        if !env.is_map() {
            return self.unsent_variable(
                here,
                flow,
                &env,
                "be variables of which programs are made",
            );
        }
        for (name, spot) in env.members() {
            let why = reading.variables.get(name).filter(|why| !trusts || why.rule.is_program());
            if let Some(why) = why {
                self.unsent_variable(here, flow, &spot, &format!("{why}, as `{name}` would here"));
            }
        }
    }

    /// The arguments of a program that the step itself names.
    pub(super) fn arguments(
        &self,
        here: usize,
        flow: &Flow,
        spot: &Spot<'_>,
        fields: &Fields<'_>,
        config: &mut Map<String, Value>,
    ) -> Option<Value> {
        let source::Value::List(_) = &spot.node.value else {
            let value = self.value(here, flow, spot, &mut vec!["args"]);
            config.insert(Sent::FIELD.to_owned(), json!(Sent { all: true, ..Sent::default() }));
            return value;
        };
        let spots = spot.items();
        let parts = self.parts(here, flow, &spots)?;
        let trusts = fields.get(TRUSTS).is_some_and(|spot| is_true(&spot));
        let words: Vec<Word<'_>> = std::iter::once(Word::literal("a script"))
            .chain(parts.iter().map(Part::word))
            .collect();
        let reading = command::read(&words, &Sources(self));
        for (at, why) in reading.refused(&words, trusts) {
            let part = at.checked_sub(1).and_then(|at| parts.get(at));
            part.iter().for_each(|part| self.untainted(here, part, &why.to_string()));
        }
        self.note_sent(here, fields, &parts, config);
        let parts: Vec<String> = parts.iter().map(|part| part.template.to_string()).collect();
        Some(json!(parts))
    }

    fn parts<'s, 'a>(
        &self,
        here: usize,
        flow: &Flow,
        spots: &'s [Spot<'a>],
    ) -> Option<Vec<Part<'s, 'a>>> {
        spots.iter().map(|spot| self.part(here, flow, spot)).collect()
    }

    fn part<'s, 'a>(&self, here: usize, flow: &Flow, spot: &'s Spot<'a>) -> Option<Part<'s, 'a>> {
        let text = spot.text()?;
        let written = Written { spot, text, is_file: false };
        let template = self.template(here, flow, &written, SecretsAllowed::None)?;
        if template.is_plain() && text.starts_with("nodes/") {
            self.asset(spot);
        }
        let tainted = self.is_sent(here, &template);
        Some(Part { spot, text, template, tainted })
    }

    /// Whether somebody sent a part of what a template gives.
    fn is_sent(&self, here: usize, template: &Template) -> bool {
        let mut flows = template.values().flat_map(Expr::flows);
        flows.any(|reference| self.is_tainted(here, &reference))
    }

    /// Says in the settings what was sent, for whoever starts the command.
    fn note_sent(
        &self,
        here: usize,
        fields: &Fields<'_>,
        parts: &[Part<'_, '_>],
        config: &mut Map<String, Value>,
    ) {
        let sent = |(at, part): (usize, &Part<'_, '_>)| {
            part.tainted.then(|| SentArgument { at, lead: part.lead().len() })
        };
        let stdin = fields.get("stdin");
        let stdin = stdin.as_ref().and_then(|spot| spot.node.as_text()).is_some_and(|text| {
            let read = self.read_template(text);
            read.is_ok_and(|template| self.is_sent(here, &template))
        });
        let arguments = parts.iter().enumerate().filter_map(sent).collect();
        let sent = Sent { all: false, arguments, stdin };
        if !sent.is_empty() {
            config.insert(Sent::FIELD.to_owned(), json!(sent));
        }
    }

    /// Refuses what was sent as the input of a program that makes arguments of it.
    fn arguments_read(&self, here: usize, flow: &Flow, spot: &Spot<'_>) {
        let Some(text) = spot.node.as_text() else { return };
        let written = Written { spot, text, is_file: false };
        let Some(template) = self.template(here, flow, &written, SecretsAllowed::All) else {
            return;
        };
        let what = "become arguments of a command, which could be options";
        template.values().for_each(|expr| self.refuse(here, &written, expr, what));
    }

    /// Refuses what is no name of a variable, and what was sent as the place where programs look
    /// for their configuration.
    pub(super) fn environment(&self, here: usize, flow: &Flow, spot: &Spot<'_>) {
        if !spot.is_map() {
            return;
        }
        for (name, spot) in spot.members().iter().filter(|(name, _)| !is_variable(name)) {
            let message = format!("`{}` is no name of a variable", name.escape_debug());
            let hint = "letters, digits and `_` make one, and no digit is the first";
            spot.error_hint(Code::InvalidId, message, hint);
        }
        for (name, spot) in spot.members().iter().filter(|(name, _)| configures(name)) {
            let what = format!("be `{name}`, where programs look for what they run");
            self.unsent_variable(here, flow, spot, &what);
        }
    }

    /// Refuses what was sent as a variable of a program that makes program text of it.
    fn expanded(&self, here: usize, flow: &Flow, fields: &Fields<'_>) {
        let Some(spot) = fields.get("env") else { return };
        if !spot.is_map() {
            return self.unsent_variable(here, flow, &spot, "be variables, which `make` expands");
        }
        for (name, spot) in spot.members().iter().filter(|(name, _)| !configures(name)) {
            let what = format!("be `{name}`, which `make` expands as program text");
            self.unsent_variable(here, flow, spot, &what);
        }
    }

    /// Refuses what was sent in the value of a variable.
    fn unsent_variable(&self, here: usize, flow: &Flow, spot: &Spot<'_>, what: &str) {
        let Some(text) = spot.node.as_text() else { return };
        let written = Written { spot, text, is_file: false };
        let Some(template) = self.template(here, flow, &written, SecretsAllowed::All) else {
            return;
        };
        template.values().for_each(|expr| self.refuse(here, &written, expr, what));
    }

    /// Reports a step whose author vouches for its arguments.
    pub(super) fn trusting(&self, here: usize, spot: &Spot<'_>) {
        let id = self.id(here).map(ToString::to_string).unwrap_or_default();
        if spot.flag() == Some(true) {
            let message =
                format!("the step `{id}` takes whatever a run brings as an argument, options too");
            let hint = "leave it out, and put `--` before the argument or hand it over in `env` or `stdin`";
            spot.warn(Code::ArgumentsTrusted, message, hint);
        }
    }

    /// Text that a program is made of.
    fn program<'s>(&self, spot: &Spot<'s>) -> Option<&'s str> {
        let text = spot.text()?;
        if let Some(at) = text.find("{{").or_else(|| text.find("{%")) {
            let at = self.position(&Written { spot, text, is_file: false }, at);
            let message = "`{{…}}` cannot stand in a command line: what a run brings is data, not program text";
            let hint = "hand the value over in `env` or `stdin`, and write `\"$NAME\"` here";
            spot.error_at(at, Code::TaintedValue, message, Some(hint.to_owned()));
            return None;
        }
        Some(text)
    }

    /// Refuses what somebody sent in a part.
    fn untainted(&self, here: usize, part: &Part<'_, '_>, what: &str) {
        let written = Written { spot: part.spot, text: part.text, is_file: false };
        part.template.values().for_each(|expr| self.refuse(here, &written, expr, what));
    }
}

fn is_true(spot: &Spot<'_>) -> bool {
    matches!(spot.node.value, source::Value::Flag(true))
}
