//! The arguments of a program that are data, but for some.

use super::super::option::is_named;
use super::super::table::{Kind, program};
use super::super::target::{Writes, is_denied};
use super::super::tool::{Operands, Tool, Value};
use super::super::{Input, Rule, Why, Word};
use super::{GUESSES_MAX, Walk, is_input, may_be_input};

impl Walk<'_, '_> {
    /// A program whose arguments are data, but for some.
    pub(super) fn tool(&mut self, tool: &Tool, program: &'static str, from: usize, to: usize) {
        let (mut programs, mut ended, mut all, mut has_command) = (0, false, false, false);
        let (mut is_value, mut inner) = (false, 0);
        if tool.reads {
            self.reads(Input::Program);
        }
        for at in from..to {
            let Some(word) = self.word(at) else { return };
            let was_value = std::mem::take(&mut is_value);
            if all {
                self.inner(at, to, &mut inner);
            }
            if programs > 0 {
                programs -= 1;
                self.value(tool, at, word.written(), program);
            } else if word.written() == Some("--") && !ended && !was_value {
                ended = tool.ends;
            } else if tool.bundles && at == from && word.is_sent {
                // Letters of options need no hyphen here.
                self.refuse(at, Rule::Value, program);
            } else if !ended && (word.is_option() || (tool.bundles && at == from)) {
                match tool.program(word.lead) {
                    Some(Value::Here(value)) => self.value(tool, at, Some(value), program),
                    Some(Value::Next(count)) => programs = count,
                    None => is_value = tool.is_valued(word.lead),
                }
                all |= word.written().is_some_and(|word| tool.words.contains(&word));
            } else if was_value && !ended {
                // It belongs to the option before it.
            } else {
                let is_first = !std::mem::replace(&mut has_command, true);
                if tool.operands == Operands::Command && is_first {
                    self.refuse(at, Rule::Name, program);
                }
                all |= word.written().is_some_and(|word| tool.words.contains(&word));
            }
            if all || tool.operands == Operands::Programs {
                self.refuse(at, Rule::Value, program);
            }
            if ended {
                self.behind(at, at + 1);
            }
        }
        self.named_inputs(tool, from, to);
    }

    /// A program reads its input where a word of a tool that runs its arguments names it, or
    /// where a word says so by itself. What stands behind `--` is not the tool's own.
    fn named_inputs(&mut self, tool: &Tool, from: usize, to: usize) {
        let words = (from..to).filter_map(|at| self.word(at).and_then(Word::written));
        let own: Vec<&str> = words.take_while(|word| *word != "--").collect();
        // Such as `build -`: a word, and the input behind it.
        let is_pair = |reader: &&str| {
            let pair = reader.split_once(' ');
            pair.is_some_and(|(word, input)| own.contains(&word) && own.contains(&input))
        };
        let runs = tool.operands == Operands::Programs;
        let is_named = |word: &str| {
            let value = word.split_once('=').map_or(word, |(_, value)| value);
            tool.readers.contains(&word) || (runs && is_input(value))
        };
        if own.iter().any(|word| is_named(word)) || tool.readers.iter().any(is_pair) {
            self.reads(Input::Program);
        }
    }

    /// A word of the command that a tool runs elsewhere, as `docker exec` does, which may be a
    /// program that reads.
    fn inner(&mut self, at: usize, to: usize, seen: &mut usize) {
        let Some(row) = self.word(at).and_then(Word::written).and_then(program) else { return };
        *seen += 1;
        match &row.kind {
            _ if *seen > GUESSES_MAX => self.reads(Input::Program),
            Kind::Runs(kind) => {
                let guessed = std::mem::replace(&mut self.guesses, true);
                self.interpreter(kind, row.name(), (at + 1, to), true);
                self.guesses = guessed;
            }
            Kind::Joins(kind) if kind.reads => self.reads(Input::Program),
            Kind::Takes(tool) if tool.reads => self.reads(Input::Program),
            _ => {}
        }
    }

    /// Whether a word is the value of one of these options, behind it or in it.
    fn is_of(&self, at: usize, options: &[&str]) -> bool {
        let is_option = |at: usize, is_here: bool| {
            let lead = self.word(at).map(|word| word.lead).unwrap_or_default();
            let name = lead.split_once('=').filter(|_| is_here).map_or(lead, |(name, _)| name);
            name.starts_with('-')
                && options.iter().any(|known| *known == name || is_named(name, known))
        };
        // A letter stands behind others, and before what is glued to it.
        let is_letter = |at: usize, is_here: bool| {
            let lead = self.word(at).map(|word| word.lead).unwrap_or_default();
            let letters = lead.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
            let letters = letters.unwrap_or_default();
            let is_known = |letter: char| {
                options.iter().any(|known| known.len() == 2 && known.ends_with(letter))
            };
            match is_here {
                true => letters.chars().next().is_some_and(is_known),
                false => letters.chars().next_back().is_some_and(is_known),
            }
        };
        let is_this = is_option(at, true) || is_letter(at, true);
        let is_before = |at: usize| is_option(at, false) || is_letter(at, false);
        is_this || at.checked_sub(1).is_some_and(is_before)
    }

    /// Refuses what was sent where it says which file is written, if that is one that is run.
    pub(super) fn targets(&mut self, tool: &Tool, name: &'static str, from: usize, to: usize) {
        let written = |at: &usize| self.word(*at).and_then(Word::written);
        let is_operand = |at: &usize| self.word(*at).is_some_and(|word| !word.is_option());
        let last = (from..to).rev().find(is_operand);
        let first = (from..to).find(is_operand);
        let is_meant = |word: &str| (from..to).any(|at| written(&at) == Some(word));
        let targets: Vec<usize> = (from..to)
            .filter(|at| match tool.writes {
                _ if self.is_of(*at, tool.targets) => true,
                Writes::Nothing => false,
                Writes::Every => is_operand(at),
                Writes::Last => last == Some(*at),
                Writes::First => first == Some(*at),
                Writes::From(count) => {
                    is_operand(at) && (from..*at).filter(is_operand).count() >= count
                }
                Writes::Archive => self.is_archive(from, *at),
                Writes::Behind(words) => {
                    // Of two, the first is where from.
                    let before = at.checked_sub(1).and_then(|at| self.word(at));
                    let is_source = before.is_some_and(|source| {
                        let is_path = source.lead.contains(['/', ':']);
                        !source.is_option() && (source.is_sent || is_path)
                    });
                    let mut before = (from..*at).filter_map(|at| written(&at));
                    match before.find(|word| words.contains(word)) {
                        Some("clone") => last == Some(*at) && is_source,
                        Some("add") => is_operand(at) && is_meant("worktree"),
                        Some("create") => is_operand(at) && is_meant("bundle"),
                        Some(_) => is_operand(at),
                        None => false,
                    }
                }
                Writes::Named(lead) => {
                    self.word(*at).is_some_and(|word| word.lead.starts_with(lead))
                }
            })
            .collect();
        self.writes.extend(&targets);
        self.named(tool, name, from, to);
        self.extracts(tool, from, to);
        for at in targets {
            let Some(word) = self.word(at).filter(|word| word.is_sent) else { continue };
            let Some(text) = word.text else { continue };
            // What stands before the path is its option's.
            let named = if let Writes::Named(lead) = tool.writes { lead.len() } else { 0 };
            let option = text.find('=').filter(|_| word.is_option()).map_or(named, |at| at + 1);
            let lead = word.lead.len().saturating_sub(option);
            if text.get(option..).is_some_and(|path| is_denied(path, lead)) {
                self.refuse(at, Rule::Target, name);
            }
        }
    }

    /// Whether a word names an archive that is created: the value of `f` behind such letters.
    fn is_archive(&self, from: usize, at: usize) -> bool {
        let creates = |at: usize| {
            let lead = self.word(at).map(|word| word.lead).unwrap_or_default();
            let is_letters = at == from || (lead.starts_with('-') && !lead.starts_with("--"));
            (is_letters && lead.contains(['A', 'c', 'r', 'u']))
                || ["--append", "--create", "--update"].contains(&lead)
        };
        let before = at.checked_sub(1).filter(|before| *before >= from);
        let lead = |at: usize| self.word(at).map(|word| word.lead).unwrap_or_default();
        let is_value = before.is_some_and(|before| {
            let is_letters = before == from || !lead(before).starts_with("--");
            lead(before) == "--file" || (is_letters && lead(before).ends_with('f'))
        });
        (is_value || lead(at).starts_with("--file=") || lead(at).starts_with("-f"))
            && (from..=at).any(creates)
    }

    /// An archive names the files that are taken from it.
    fn extracts(&mut self, tool: &Tool, from: usize, to: usize) {
        if tool.writes != Writes::Archive {
            return;
        }
        let leads = |at: usize| self.word(at).map(|word| word.lead).unwrap_or_default();
        let is_letters =
            |at: usize| at == from || (leads(at).starts_with('-') && !leads(at).starts_with("--"));
        let has = |letter: char, long: &[&str]| {
            (from..to).any(|at| {
                let name = leads(at).split('=').next().unwrap_or_default();
                (is_letters(at) && leads(at).contains(letter)) || long.contains(&name)
            })
        };
        let is_read = (from..to).any(|at| {
            self.word(at).and_then(Word::written).is_some_and(|word| {
                is_input(word.strip_prefix("--file=").unwrap_or(word)) || word.ends_with("f-")
            })
        });
        if has('x', &["--extract", "--get"]) && (is_read || !has('f', &["--file"])) {
            self.reads(Input::Program);
        }
    }

    /// What was sent is data behind `name=`. In front of it, it may name a file.
    fn named(&mut self, tool: &Tool, name: &'static str, from: usize, to: usize) {
        for at in from..to {
            let Some(word) = self.word(at).filter(|word| word.is_sent) else { continue };
            let option = word.lead.find('=').filter(|_| word.is_option()).map_or(0, |at| at + 1);
            let lead = word.lead.get(option..).unwrap_or_default();
            if self.is_of(at, tool.named) && !lead.contains('=') {
                self.refuse(at, Rule::Value, name);
            }
        }
    }

    /// The value of an option that is a program.
    fn value(&mut self, tool: &Tool, at: usize, written: Option<&str>, name: &'static str) {
        self.refuse(at, Rule::Value, name);
        let Some(value) = written else {
            if self.word(at).is_some_and(may_be_input) {
                self.reads(Input::Program);
            }
            return;
        };
        if self.is_of(at, tool.variables) {
            let variable = value.rsplit('=').next().unwrap_or_default();
            self.varies(variable.to_owned(), Why { rule: Rule::Value, program: name });
        }
        // It may be a command line, as that of `split --filter`, which an interpreter reads in.
        let begins = |at: usize| self.word(at).is_some_and(|word| word.lead.starts_with("--"));
        let is_line = tool.bundles || begins(at) || at.checked_sub(1).is_some_and(begins);
        let runs = |word: &str| program(word).is_some_and(|row| matches!(row.kind, Kind::Runs(_)));
        let breaks = |c: char| c.is_whitespace() || ";|&()".contains(c);
        if is_input(value) || (is_line && value.split(breaks).any(runs)) {
            self.reads(Input::Program);
        }
    }
}
