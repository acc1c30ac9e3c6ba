//! Command lines: what a run brings stays data, and becomes no program and no option of one.
//!
//! A command is read as the programs in it will read it, from the left to the right: a wrapper
//! such as `timeout` runs the command behind it, an interpreter takes options, a program text
//! or a script, and only then data.

mod programs;

use cairn_core::expression::{Expr, Piece, Template};
use serde_json::{Value, json};

use self::programs::{Brings, First, Interpreter, Program, Rest, UNKNOWN, Where, Wrapper, program};
use super::Build;
use super::flow::Flow;
use super::reference::Written;
use crate::diagnostic::Code;
use crate::read::Spot;

/// Variables that make a program run something else. What begins with one of them counts too.
const LOADING: [&str; 22] = [
    "BASH_ENV",
    "BASH_FUNC_",
    "DYLD_",
    "ENV",
    "GCONV_PATH",
    "GIT_",
    "IFS",
    "JAVA_TOOL_OPTIONS",
    "LD_",
    "LUA_INIT",
    "NODE_OPTIONS",
    "NODE_PATH",
    "PATH",
    "PERL5DB",
    "PERL5LIB",
    "PERL5OPT",
    "PERLLIB",
    "PROMPT_COMMAND",
    "PYTHON",
    "RUBYLIB",
    "RUBYOPT",
    "ZDOTDIR",
];

/// What an argument of an interpreter cannot be.
const SCRIPT: &str = "be a script or an option of an interpreter";

/// A part of a command.
struct Part<'s, 'a> {
    spot: &'s Spot<'a>,
    text: &'s str,
    template: Template,
    /// Whether somebody sent a part of it.
    tainted: bool,
}

impl Part<'_, '_> {
    /// Its text, if it is written out.
    fn literal(&self) -> Option<&str> {
        self.template.is_plain().then_some(self.text)
    }

    /// How it begins, as far as that is written out.
    fn lead(&self) -> &str {
        match self.template.pieces.first() {
            Some(Piece::Text(text)) => text,
            _ => "",
        }
    }

    /// Whether it begins as an option does.
    fn is_option(&self) -> bool {
        self.lead().len() > 1 && self.lead().starts_with(['-', '+'])
    }

    /// Whether something of it is written out.
    fn says_something(&self) -> bool {
        let written = |piece: &Piece| matches!(piece, Piece::Text(text) if !text.is_empty());
        self.template.pieces.iter().any(written)
    }

    /// The programs that it may name.
    fn programs(&self) -> Vec<Program> {
        if let Some(name) = self.literal() {
            return vec![program(name)];
        }
        let named = match self.template.pieces.as_slice() {
            [Piece::Value { value, .. }] => one_of(value),
            _ => None,
        };
        named.unwrap_or_else(|| vec![Program::Runs(&UNKNOWN)])
    }
}

/// The programs that a choice names.
fn one_of(value: &Expr) -> Option<Vec<Program>> {
    let Expr::Filter { call, .. } = value else { return None };
    let name = |argument: &Expr| match argument {
        Expr::Literal(Value::String(name)) => Some(program(name)),
        _ => None,
    };
    (call.name == "one_of").then(|| call.arguments.iter().map(name).collect())?
}

/// Whether a variable of this name makes a program run something else.
pub(super) fn loads(name: &str) -> bool {
    let exact = ["ENV", "IFS", "PATH"];
    LOADING.iter().any(|known| match exact.contains(known) {
        true => name == *known,
        false => name.starts_with(known),
    })
}

impl Build<'_> {
    /// A command: a line for the shell, or a program and its arguments. The input is what the
    /// program is given to read.
    pub(super) fn command(
        &self,
        here: usize,
        flow: &Flow,
        spot: &Spot<'_>,
        input: Option<&Spot<'_>>,
    ) -> Option<Value> {
        if !spot.is_list() {
            let line = self.program(spot)?;
            spot.filled()?;
            return Some(json!(["sh", "-c", line]));
        }
        let spots = spot.items();
        if spots.is_empty() {
            spot.error(Code::InvalidValue, "the command is empty");
            return None;
        }
        let parts: Option<Vec<Part<'_, '_>>> =
            spots.iter().map(|spot| self.part(here, flow, spot)).collect();
        let parts = parts?;
        if self.run(here, &parts) {
            input.filter(|spot| spot.node.as_text().is_some()).map(|spot| self.program(spot));
        }
        let parts: Vec<String> = parts.iter().map(|part| part.template.to_string()).collect();
        Some(json!(parts))
    }

    fn part<'s, 'a>(&self, here: usize, flow: &Flow, spot: &'s Spot<'a>) -> Option<Part<'s, 'a>> {
        let text = spot.text()?;
        let written = Written { spot, text, is_file: false };
        let template = self.template(here, flow, &written, false)?;
        if template.is_plain() && text.starts_with("nodes/") {
            self.asset(spot);
        }
        let tainted = template
            .values()
            .flat_map(Expr::flows)
            .any(|reference| self.is_tainted(here, &reference));
        Some(Part { spot, text, template, tainted })
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

    fn program_of(&self, part: Option<&Part<'_, '_>>) {
        if let Some(part) = part {
            self.program(part.spot);
        }
    }

    /// Refuses what somebody sent in a part.
    fn untainted(&self, here: usize, part: &Part<'_, '_>, what: &str) {
        let written = Written { spot: part.spot, text: part.text, is_file: false };
        part.template.values().for_each(|expr| self.refuse(here, &written, expr, what));
    }

    /// Looks through a command. Says whether what it is given to read becomes a program.
    fn run(&self, here: usize, parts: &[Part<'_, '_>]) -> bool {
        let Some((first, rest)) = parts.split_first() else { return false };
        self.untainted(here, first, "name a program");
        let mut reads = false;
        for program in first.programs() {
            reads |= match program {
                Program::Plain => self.plain(here, rest),
                Program::Runs(kind) => self.interpreter(here, kind, rest, true),
                Program::Wraps(kind) => self.wrapper(here, kind, rest),
                Program::Joins => self.joining(here, first, rest),
                Program::Finds => self.find(here, rest),
            };
        }
        reads
    }

    /// A program of which nothing is known. Where it names an interpreter, it may run it.
    fn plain(&self, here: usize, parts: &[Part<'_, '_>]) -> bool {
        for (place, part) in parts.iter().enumerate() {
            let Some(name) = part.literal() else { continue };
            let Program::Runs(kind) = program(name) else { continue };
            let rest = parts.get(place + 1..).unwrap_or_default();
            // A word such as `node` may mean something else.
            let sure = kind.is_shell() || name.contains('/');
            let reads = self.interpreter(here, kind, rest, sure);
            if sure {
                return reads;
            }
        }
        false
    }

    /// The arguments of an interpreter. If it is not sure to be one, only what follows `-c` and
    /// the like is looked at.
    fn interpreter(
        &self,
        here: usize,
        kind: &Interpreter,
        parts: &[Part<'_, '_>],
        sure: bool,
    ) -> bool {
        let sure = sure && kind.first != First::Data;
        let mut seen = Seen { text_is_first: sure && kind.first == First::Text, ..Seen::default() };
        let mut parts = parts.iter();
        while let Some(part) = parts.next() {
            let next = match part.is_option() && !seen.ended {
                true => self.option(here, kind, part, (&mut parts, sure), &mut seen),
                false => self.operand(here, kind, part, (&mut parts, sure), &mut seen),
            };
            match next {
                Next::Goes => {}
                Next::Reads => return sure,
                Next::Data if seen.opens => {
                    parts.by_ref().for_each(|part| self.untainted(here, part, SCRIPT));
                }
                Next::Data => return false,
            }
        }
        sure && !seen.program && kind.first == First::Script
    }

    fn option<'p, 's: 'p, 'a: 's>(
        &self,
        here: usize,
        kind: &Interpreter,
        part: &Part<'_, '_>,
        (parts, sure): (&mut dyn Iterator<Item = &'p Part<'s, 'a>>, bool),
        seen: &mut Seen,
    ) -> Next {
        if part.literal() == Some("--") {
            seen.ended = true;
            return Next::Goes;
        }
        seen.opens |= kind.opens(part.lead());
        let is_data = kind.first == First::Text;
        match kind.option(part.lead()) {
            Brings::Text(place) => {
                self.program(part.spot);
                if place == Where::Next {
                    let Some(text) = parts.next() else { return Next::Reads };
                    self.program(text.spot);
                }
                seen.program = true;
                return if kind.rest == Rest::Data { Next::Data } else { Next::Goes };
            }
            Brings::TextLater(values) => {
                seen.text_is_first = true;
                self.values(here, parts, values, sure);
            }
            Brings::Script(place) => {
                seen.program = true;
                self.values(here, parts, usize::from(place == Where::Next), sure);
                if kind.first == First::Script {
                    return Next::Data;
                }
            }
            Brings::Values(count) => self.values(here, parts, count, sure && !is_data),
            Brings::Input => return Next::Reads,
            Brings::Nothing => {}
        }
        if sure && !is_data {
            self.untainted(here, part, SCRIPT);
        }
        Next::Goes
    }

    fn values<'p, 's: 'p, 'a: 's>(
        &self,
        here: usize,
        parts: &mut dyn Iterator<Item = &'p Part<'s, 'a>>,
        count: usize,
        sure: bool,
    ) {
        let values = parts.take(count).filter(|_| sure);
        values.for_each(|value| self.untainted(here, value, SCRIPT));
    }

    /// An argument that is no option.
    fn operand<'p, 's: 'p, 'a: 's>(
        &self,
        here: usize,
        kind: &Interpreter,
        part: &Part<'_, '_>,
        (parts, sure): (&mut dyn Iterator<Item = &'p Part<'s, 'a>>, bool),
        seen: &mut Seen,
    ) -> Next {
        if seen.text_is_first && !seen.program {
            self.program(part.spot);
            seen.program = true;
            return if kind.rest == Rest::Data { Next::Data } else { Next::Goes };
        }
        match part.literal() {
            Some("eval") if kind.has_commands() => {
                self.program_of(parts.next());
                seen.program = true;
                return Next::Goes;
            }
            Some("exec" | "run" | "test" | "x") if kind.has_commands() => return Next::Goes,
            Some("-") if !seen.program => return Next::Reads,
            _ => {}
        }
        let is_data = seen.program && seen.ended && !seen.opens;
        if sure && part.tainted && !is_data {
            self.untainted(here, part, SCRIPT);
            return Next::Goes;
        }
        let is_path = part.literal().is_some() || part.says_something();
        match is_path && kind.first != First::Data && kind.rest != Rest::OptionsAnywhere {
            true => Next::Data,
            false => Next::Goes,
        }
    }

    /// A program that runs the command behind its own options.
    fn wrapper(&self, here: usize, kind: &Wrapper, parts: &[Part<'_, '_>]) -> bool {
        let (mut own, mut skipped, mut ended, mut fills_in) = (kind.own, 0, false, false);
        for (place, part) in parts.iter().enumerate() {
            let lead = part.lead();
            if skipped > 0 {
                skipped -= 1;
            } else if !ended && part.is_option() {
                ended = lead == "--";
                fills_in |= kind.fills_in(lead);
                skipped = kind.values(lead);
                if kind.is_line(lead) {
                    self.program(part.spot);
                    self.program_of(parts.get(place + 1));
                    return false;
                }
            } else if kind.sets_variables() && variable(lead).is_some() {
                if variable(lead).is_none_or(|name| !loads(name)) {
                    continue;
                }
            } else if own > 0 {
                own -= 1;
            } else {
                let rest = parts.get(place..).unwrap_or_default();
                let runs = |part: &Part<'_, '_>| {
                    let runs = |program| matches!(program, Program::Runs(_) | Program::Joins);
                    part.literal().map(program).is_some_and(runs)
                };
                return self.run(here, rest) || (fills_in && rest.iter().any(runs));
            }
            self.untainted(here, part, "be an argument of a program that runs another");
        }
        false
    }

    /// A program that makes one text of its arguments.
    fn joining(&self, here: usize, name: &Part<'_, '_>, parts: &[Part<'_, '_>]) -> bool {
        let has_scripts = programs::has_scripts(name.text);
        for (place, part) in parts.iter().enumerate() {
            let is_file = part.literal().is_some_and(|text| text.eq_ignore_ascii_case("-file"));
            let script = parts.get(place + 1).is_some_and(|script| script.literal().is_some());
            if has_scripts && is_file && script {
                return false;
            }
            let what = format!("become a part of what `{}` runs", name.text);
            self.untainted(here, part, &what);
        }
        false
    }

    /// `find` runs what stands behind `-exec`, and takes what begins with a hyphen for an
    /// action.
    fn find(&self, here: usize, parts: &[Part<'_, '_>]) -> bool {
        let (mut reads, mut is_value) = (false, false);
        let mut rest = parts;
        while let Some((part, behind)) = rest.split_first() {
            rest = behind;
            if matches!(part.literal(), Some("-exec" | "-execdir" | "-ok" | "-okdir")) {
                let end = |part: &Part<'_, '_>| matches!(part.literal(), Some(";" | "\\;" | "+"));
                let count = behind.iter().position(end).unwrap_or(behind.len());
                let (command, behind) = behind.split_at_checked(count).unwrap_or_default();
                reads |= self.run(here, command);
                rest = behind;
            } else if !is_value {
                self.untainted(here, part, "be a place or an action of `find`");
            }
            is_value = !is_value && part.literal().is_some() && part.is_option();
        }
        reads
    }
}

/// What has been seen of an interpreter's arguments.
#[derive(Default)]
struct Seen {
    /// A program text or a script was given.
    program: bool,
    /// The first argument that is no option is a program text.
    text_is_first: bool,
    /// No more options follow.
    ended: bool,
    /// Names of files may be commands.
    opens: bool,
}

/// How an interpreter's arguments go on.
enum Next {
    /// As before.
    Goes,
    /// What follows is data.
    Data,
    /// The program is read from the input.
    Reads,
}

/// The name of the variable that a part of a command sets.
fn variable(lead: &str) -> Option<&str> {
    let (name, _) = lead.split_once('=')?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    (!name.is_empty() && name.chars().all(is_name)).then_some(name)
}
