//! The arguments of an interpreter: its options, a program text or a script, and then data.

use super::super::interpreter::{
    Brings, EVALUATING_MODULES, First, Interpreter, PLAIN_MODULES, Rest, Where,
};
use super::super::shape::Unfollowed;
use super::super::{Input, Rule, Word};
use super::{Walk, is_input, may_be_input};

impl Walk<'_, '_> {
    /// The arguments of an interpreter. If it is not sure to be one, only what follows `-c` and
    /// the like is looked at.
    pub(super) fn interpreter(
        &mut self,
        kind: &Interpreter,
        program: &'static str,
        (from, to): (usize, usize),
        is_one: bool,
    ) {
        let sure = is_one && kind.first != First::Data;
        let text_is_first = sure && kind.first == First::Text;
        let mut seen = Seen { at: from, to, sure, program, text_is_first, ..Seen::default() };
        if kind.opens_files && is_one {
            self.piped(program, from, to);
        }
        if kind.reads && is_one {
            self.reads(Input::Program);
        }
        while let Some(word) = self.word(seen.at).filter(|_| seen.at < to) {
            let at = seen.at;
            seen.at += 1;
            let next = match word.is_option() && !seen.ended {
                true => self.option(kind, at, word, &mut seen),
                false => self.operand(kind, at, word, &mut seen),
            };
            match next {
                Next::Goes => {}
                Next::Reads if sure => {
                    self.feeds_shell |= kind.is_shell;
                    return self.reads(Input::Program);
                }
                Next::Reads => return,
                Next::Data if seen.opens => {
                    (seen.at..to).for_each(|at| self.refuse(at, Rule::Script, program));
                    return;
                }
                Next::Data => return,
                Next::Behind => return self.behind(at, to),
            }
        }
        if sure && !seen.has_program && kind.first == First::Script {
            self.feeds_shell |= kind.is_shell;
            self.reads(Input::Program);
        }
    }

    fn option(&mut self, kind: &Interpreter, at: usize, word: &Word<'_>, seen: &mut Seen) -> Next {
        if word.written() == Some("--") {
            seen.ended = true;
            return Next::Goes;
        }
        seen.opens |= kind.opens(word.lead);
        let is_data = kind.first == First::Text;
        let spelled = self.spelled(kind, word, seen);
        match kind.option(spelled.as_deref().unwrap_or(word.lead)) {
            Brings::Text(place) => {
                self.refuse(at, Rule::Text, seen.program);
                if place == Where::Next {
                    if seen.at >= seen.to {
                        return Next::Reads;
                    }
                    self.refuse(seen.at, Rule::Text, seen.program);
                    seen.at += 1;
                }
                seen.has_program = true;
                return if kind.rest == Rest::Data { Next::Data } else { Next::Goes };
            }
            Brings::TextLater(values) => {
                seen.text_is_first = true;
                self.values(values, seen);
            }
            Brings::Script(place) => {
                seen.has_program = true;
                self.refuse(at, Rule::Script, seen.program);
                let is_read = match place {
                    Where::Here("") => !word.is_whole,
                    Where::Here(path) => is_input(path),
                    Where::Next => self.word(seen.at).is_some_and(may_be_input),
                };
                if place == Where::Next && kind.first == First::Data {
                    self.refuse(seen.at, Rule::Script, seen.program);
                }
                self.values(usize::from(place == Where::Next), seen);
                if is_read && seen.sure {
                    self.reads(Input::Program);
                }
                if kind.first == First::Script {
                    return Next::Data;
                }
            }
            Brings::Module(place) => {
                self.refuse(at, Rule::Script, seen.program);
                self.module(place, seen);
                return Next::Data;
            }
            Brings::Values(count) => {
                let sure = seen.sure;
                seen.sure &= !is_data;
                self.values(count, seen);
                seen.sure = sure;
            }
            Brings::Input => {
                if kind.is_shell {
                    return Next::Reads;
                }
                if seen.sure {
                    self.reads(Input::Program);
                }
            }
            Brings::Nothing => {}
        }
        if seen.sure && !is_data {
            self.refuse(at, Rule::Script, seen.program);
        }
        Next::Goes
    }

    /// A line for a shell that reads lines in another way is not followed.
    fn foreign(&mut self, program: &'static str, from: usize, to: usize) {
        if ["sh", "ash", "bash", "dash", "rbash"].contains(&program) {
            return;
        }
        let what = "is for a shell that is not `sh`, `bash` or `dash`";
        (from..to).for_each(|at| self.refuse(at, Rule::Unfollowed, what));
        self.unfollowed.get_or_insert(Unfollowed { what, near: program.to_owned() });
    }

    /// A long option that is spelled out behind a letter, or in the next argument.
    fn spelled(&mut self, kind: &Interpreter, word: &Word<'_>, seen: &mut Seen) -> Option<String> {
        let name = kind.spelled(word.lead)?;
        if !name.is_empty() || !word.is_whole {
            return Some(format!("--{name}"));
        }
        let name = self.word(seen.at).filter(|_| seen.at < seen.to)?.lead;
        self.refuse(seen.at, Rule::Script, seen.program);
        seen.at += 1;
        Some(format!("--{name}"))
    }

    /// A program of such a language may open a file by a name that is a command or begins with
    /// where to write.
    fn piped(&mut self, program: &'static str, from: usize, to: usize) {
        for at in from..to {
            let word = self.word(at).filter(|word| word.is_sent);
            let text = word.and_then(|word| word.text.map(|text| (text, word.lead)));
            let is_command = text.is_some_and(|(text, lead)| {
                let text = text.trim();
                text.ends_with('|') || (lead.is_empty() && text.starts_with(['|', '>']))
            });
            if is_command {
                self.refuse(at, Rule::Value, program);
            }
        }
    }

    /// A module and its arguments. One that nobody knows may run them, and an author can vouch
    /// for it.
    fn module(&mut self, place: Where<'_>, seen: &mut Seen) {
        seen.has_program = true;
        let name = match place {
            Where::Here(name) => Some(name),
            Where::Next => self.word(seen.at).and_then(Word::written),
        };
        if !seen.sure {
            return;
        }
        self.values(usize::from(place == Where::Next), seen);
        let (rule, input) = match name {
            Some(name) if PLAIN_MODULES.contains(&name) => return,
            Some(name) if EVALUATING_MODULES.iter().any(|known| is_within(name, known)) => {
                (Rule::Text, Input::Program)
            }
            _ => (Rule::Script, Input::Arguments),
        };
        (seen.at..seen.to).for_each(|at| self.refuse(at, rule, seen.program));
        self.reads(input);
    }

    fn values(&mut self, count: usize, seen: &mut Seen) {
        for _ in 0..count {
            if seen.sure && seen.at < seen.to {
                self.refuse(seen.at, Rule::Script, seen.program);
            }
            seen.at += 1;
        }
    }

    /// An argument that is no option.
    fn operand(&mut self, kind: &Interpreter, at: usize, word: &Word<'_>, seen: &mut Seen) -> Next {
        // `yq eval` is `yq`, and the text follows.
        let evaluates = ["e", "ea", "eval", "eval-all"];
        if kind.has_commands
            && seen.text_is_first
            && !seen.has_program
            && word.written().is_some_and(|word| evaluates.contains(&word))
        {
            return Next::Goes;
        }
        if seen.text_is_first && !seen.has_program {
            self.refuse(at, Rule::Text, seen.program);
            seen.has_program = true;
            if let (true, Some(line)) = (kind.is_shell, word.text) {
                self.line(line, seen.at, seen.to);
                self.foreign(seen.program, seen.at, seen.to);
            }
            return if kind.rest == Rest::Data { Next::Data } else { Next::Goes };
        }
        match word.written() {
            Some("eval") if kind.has_commands => {
                self.refuse(seen.at, Rule::Text, seen.program);
                seen.at += 1;
                seen.has_program = true;
                return Next::Goes;
            }
            Some("inspect" | "repl") if kind.has_commands => {
                if seen.sure {
                    self.reads(Input::Program);
                }
                return Next::Goes;
            }
            Some(word) if kind.has_commands && COMMANDS.contains(&word) => return Next::Goes,
            Some(path) if is_input(path) && !seen.has_program => return Next::Reads,
            _ => {}
        }
        if seen.has_program && seen.ended && !seen.opens {
            return Next::Behind;
        }
        // A script of `awk -f` or `sed -f` is given files, and nothing that was sent is an option.
        if self.starts_script && seen.has_program && kind.first == First::Text {
            return if kind.rest == Rest::Data { Next::Data } else { Next::Goes };
        }
        if seen.sure && word.is_sent {
            self.refuse(at, Rule::Script, seen.program);
            seen.has_program |= word.says_something;
            return Next::Goes;
        }
        let is_path = word.is_whole || word.says_something;
        match is_path && kind.first != First::Data && kind.rest != Rest::OptionsAnywhere {
            true => Next::Data,
            false => Next::Goes,
        }
    }
}

/// The commands of an interpreter that a script, a package or a task follows.
const COMMANDS: [&str; 13] = [
    "add", "bench", "cache", "compile", "create", "exec", "install", "run", "serve", "start",
    "task", "test", "x",
];

/// Whether a module is another, or a part of it.
fn is_within(name: &str, module: &str) -> bool {
    name.strip_prefix(module).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// What has been seen of an interpreter's arguments.
#[derive(Default)]
struct Seen {
    /// The argument that is next.
    at: usize,
    /// Where they end.
    to: usize,
    /// Whether it is one for sure.
    sure: bool,
    /// What it is called.
    program: &'static str,
    /// A program text or a script was given.
    has_program: bool,
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
    /// This and what follows is data, and nothing of it an option.
    Behind,
    /// The program is read from the input.
    Reads,
}
