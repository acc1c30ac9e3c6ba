//! Commands: what a run brings stays data, and becomes no program and no option of one.
//!
//! The law, in one place:
//!
//! 1. What a run brings names no program and is no program text, and is no value that a program
//!    takes for one: `git -c`, `tar --checkpoint-action`, `find -exec`.
//! 2. An argument that a run brings does not begin with `-` or `+`, unless a `--` stands before
//!    it, written out, that the program is known to honour.
//! 3. What a program reads that takes programs from its input is program text.
//! 4. Programs are known by their names: as written, and when the command is about to start by
//!    every name that leads to the file. A script is read as its interpreter reads it, which the
//!    first line names ([`Programs::script`]).
//! 5. What a line for a shell pipes, reads, assigns, substitutes or writes to a file is followed to
//!    the commands in it, and counts as what they make of it ([`Reading::variables`]). A line that
//!    does what is not followed is given nothing that was sent ([`Reading::unfollowed`]).
//! 6. What is written goes to no place whose files are run later, if data says where.
//! 7. A variable whose name makes programs run something else is no data ([`loads`]), and to a
//!    program that expands its variables none is ([`Reading::expands`]).
//!
//! [`read`] reads a command as the programs in it will, from the left to the right: a wrapper
//! such as `timeout` runs the command behind it, an interpreter takes options, a program text or
//! a script, and only then data. The compiler asks it of what is written out, and whoever starts
//! a command asks it again of what the run made of it. What each program does is in one table
//! (`table.rs`); one that is not there takes any argument that the second rule lets through.

mod interpreter;
mod line;
mod option;
mod shape;
mod shebang;
mod table;
mod target;
#[cfg(test)]
mod tests;
mod tool;
mod variables;
mod walk;
mod wrapper;

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

pub use shape::Unfollowed;
pub use shebang::interpreter_of;
pub use table::{is_known, is_many, shells};
pub use variables::{configures, is_variable, loads};
pub use walk::read;

/// What is known of programs where a command is read.
pub trait Programs {
    /// The names of the program that a word names: itself, and those that it stands for.
    fn names(&self, name: &str) -> Vec<String>;

    /// What starts the script that a word names, if it names one ([`interpreter_of`]).
    fn script(&self, name: &str) -> Option<Vec<String>>;
}

/// Nothing is known of programs but what they are called.
pub struct Called;

impl Programs for Called {
    fn names(&self, name: &str) -> Vec<String> {
        vec![name.to_owned()]
    }

    fn script(&self, _: &str) -> Option<Vec<String>> {
        None
    }
}

/// A word of a command: the program, or one of its arguments.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Word<'a> {
    /// How it begins, as far as that is written out.
    pub lead: &'a str,
    /// Whether that is all of it.
    pub is_whole: bool,
    /// Whether something of it is written out, at its beginning or not.
    pub says_something: bool,
    /// Whether somebody sent a part of it.
    pub is_sent: bool,
    /// The texts that it is one of, where a choice says so.
    pub choices: Vec<&'a str>,
    /// What became of it, once that is known.
    pub text: Option<&'a str>,
}

impl<'a> Word<'a> {
    /// A word that is written out.
    #[must_use]
    pub const fn literal(text: &'a str) -> Self {
        Self {
            lead: text,
            is_whole: true,
            says_something: !text.is_empty(),
            is_sent: false,
            choices: Vec::new(),
            text: Some(text),
        }
    }

    /// A word of which the first so many bytes are written out, and the rest was sent.
    #[must_use]
    pub fn sent(text: &'a str, lead: usize) -> Self {
        let lead = text.get(..lead).unwrap_or_default();
        let says_something = !lead.is_empty();
        Self { lead, says_something, is_sent: true, text: Some(text), ..Self::default() }
    }

    /// Its text, if it is written out.
    fn written(&self) -> Option<&'a str> {
        self.is_whole.then_some(self.lead)
    }

    /// Whether it begins as an option does.
    fn is_option(&self) -> bool {
        self.lead.len() > 1 && self.lead.starts_with(['-', '+'])
    }

    /// Whether data says which option it is, or whether it is one.
    fn has_sent_option(&self) -> bool {
        let begins = |text: &str| text.starts_with(['-', '+']);
        self.is_sent
            && match self.lead {
                "" => self.text.is_some_and(begins),
                lead => begins(lead) && !lead.contains('='),
            }
    }
}

/// What a command makes of its words and of its input.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reading {
    /// What becomes of each word.
    pub places: Vec<Place>,
    /// What becomes of the input.
    pub input: Input,
    /// Whether a program in it makes program text of its variables, as `make` does.
    pub expands: bool,
    /// The variables that become a program or an option of one in a line for a shell.
    pub variables: BTreeMap<String, Why>,
    /// What a line for a shell does that nothing is followed through. Nothing that was sent goes
    /// into such a line, unless an author vouches for it.
    pub unfollowed: Option<Unfollowed>,
    /// The words that name files that are written.
    pub writes: Vec<usize>,
    /// Whether a shell reads the input: what is written out there is a line for it.
    pub feeds_shell: bool,
}

impl Reading {
    /// The words that were sent and cannot stand where they do. With `trusted`, an author
    /// vouches for the arguments: only what would be a program is left.
    pub fn refused(&self, words: &[Word<'_>], trusted: bool) -> impl Iterator<Item = (usize, Why)> {
        let places = self.places.iter().zip(words).enumerate();
        places.filter_map(move |(at, (place, word))| match place {
            Place::Refused(why) if word.is_sent && (!trusted || why.rule.is_program()) => {
                Some((at, *why))
            }
            _ => None,
        })
    }
}

/// What becomes of a word. The later is the stricter.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Place {
    /// It is data, behind a `--` that the program honours.
    Behind,
    /// It is data, unless it begins as an option does.
    Data,
    /// What was sent cannot stand here.
    Refused(Why),
}

/// Why what was sent cannot stand somewhere.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Why {
    /// The rule.
    pub rule: Rule,
    /// The program that makes something else of it, as the table calls it.
    pub program: &'static str,
}

/// What a word would be. The later is the stricter.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Rule {
    /// Something that a line for a shell was given, in which it is not followed.
    Unfollowed,
    /// An option.
    Option,
    /// A value that the program takes for a program, for options or for its configuration.
    Value,
    /// The name of a file that is written, where files are run later.
    Target,
    /// A place or an action of `find`.
    Find,
    /// An argument of a program that runs another.
    Wrapped,
    /// A part of a text that is run.
    Joined,
    /// A script, or an option of an interpreter.
    Script,
    /// The name of a program.
    Name,
    /// The text of a program.
    Text,
}

impl Rule {
    /// Whether it would be a program itself, which nobody can vouch for.
    #[must_use]
    pub const fn is_program(self) -> bool {
        matches!(self, Self::Name | Self::Text)
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let program = self.program;
        match self.rule {
            Rule::Unfollowed => write!(f, "be followed through a line that {program}"),
            Rule::Option => f.write_str("be an option, which begins with `-` or `+`"),
            Rule::Value => {
                write!(f, "be a value that `{program}` takes for a program or an option")
            }
            Rule::Target => write!(
                f,
                "be where `{program}` writes: a path that is hidden, leads outside or names what is run"
            ),
            Rule::Find => f.write_str("be a place or an action of `find`"),
            Rule::Wrapped => f.write_str("be an argument of a program that runs another"),
            Rule::Joined => write!(f, "become a part of what `{program}` runs"),
            Rule::Script => f.write_str("be a script or an option of an interpreter"),
            Rule::Name => f.write_str("name a program"),
            Rule::Text => f.write_str("be program text"),
        }
    }
}

/// What becomes of the input of a command. The later is the stricter.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Input {
    /// It is data.
    Data,
    /// Arguments of a command are made of it.
    Arguments,
    /// A program is read from it.
    Program,
}

/// What of a command was sent by somebody, as the plan has it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sent {
    /// Whether all of its arguments are: their list is made by the run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
    /// The arguments of which a part is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<SentArgument>,
    /// Whether a part of its input is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stdin: bool,
}

/// An argument of which a part was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SentArgument {
    /// Its place in the list, from 0.
    pub at: usize,
    /// How many bytes at its beginning are written out.
    pub lead: usize,
}

impl Sent {
    /// The field of a step's settings that has it.
    pub const FIELD: &'static str = "sent";

    /// Whether nothing was.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The words that these texts are, of which the list of arguments begins at `from`.
    #[must_use]
    pub fn words<'a>(&self, texts: &'a [String], from: usize) -> Vec<Word<'a>> {
        let word = |(at, text): (usize, &'a String)| {
            let at = at.checked_sub(from);
            let sent = self.arguments.iter().find(|sent| Some(sent.at) == at);
            match sent {
                Some(sent) => Word::sent(text, sent.lead),
                None if self.all && at.is_some() => Word::sent(text, 0),
                None => Word::literal(text),
            }
        };
        texts.iter().enumerate().map(word).collect()
    }
}
