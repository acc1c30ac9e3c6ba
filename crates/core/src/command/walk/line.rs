//! Lines for a shell: what becomes of their input, their arguments and their variables.
//!
//! What a line hands on is followed: through pipes, `read`, assignments and substitutions. Where
//! it becomes a program, whatever it came from is one.

use std::collections::{BTreeMap, BTreeSet};

use super::super::line::{Line, LineCommand, LineWord, line};
use super::super::variables::{configures, loads};
use super::super::{Input, Place, Programs, Rule, Why, Word};
use super::{DEPTH_MAX, read_at, variable};

/// What a line makes of what it is given.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// What becomes of its input.
    pub(super) input: Option<Input>,
    /// Whether a program in it expands its variables.
    pub(super) expands: bool,
    /// The variables that become a program or an option, its arguments among them.
    pub(super) variables: BTreeMap<String, Why>,
}

/// Reads a line that stands in so many commands.
pub(super) fn read_line(text: &str, programs: &dyn Programs, depth: usize) -> Found {
    if depth >= DEPTH_MAX {
        return Found { input: Some(Input::Program), ..Found::default() };
    }
    let mut lines =
        Lines { programs, depth, found: Found::default(), known: BTreeMap::new(), all: own() };
    lines.line(&line(text));
    lines.found
}

/// Words that a command follows, or that close one.
const RESERVED: [&str; 17] = [
    "!", "coproc", "do", "done", "elif", "else", "esac", "fi", "if", "then", "time", "until",
    "while", "{", "}", "&&", "||",
];

/// Words that open what one input is read in.
const OPENING: [&str; 6] = ["case", "for", "if", "until", "while", "{"];

/// Commands of a shell that run nothing, whatever they are given.
const INERT: [&str; 20] = [
    ":", "[", "[[", "break", "case", "cd", "continue", "echo", "exit", "false", "function",
    "printf", "return", "select", "set", "shift", "test", "true", "umask", "unset",
];

/// Commands that do not read their input, so that nothing of it is in what they write.
const UNREAD: [&str; 20] = [
    "basename", "date", "df", "dirname", "du", "find", "hostname", "id", "ls", "mktemp", "nproc",
    "pwd", "readlink", "realpath", "seq", "type", "uname", "uptime", "which", "whoami",
];

/// What something was made of: the line's input, and variables.
#[derive(Clone, Debug, Default)]
struct Feed {
    input: bool,
    variables: BTreeSet<String>,
}

/// The line's own input.
fn own() -> Feed {
    Feed { input: true, ..Feed::default() }
}

impl Feed {
    fn add(&mut self, other: &Self) {
        self.input |= other.input;
        self.variables.extend(other.variables.iter().cloned());
    }

    fn is_empty(&self) -> bool {
        !self.input && self.variables.is_empty()
    }
}

struct Lines<'w> {
    programs: &'w dyn Programs,
    depth: usize,
    found: Found,
    /// What variables were made of that the line itself sets.
    known: BTreeMap<String, Feed>,
    /// What is read by commands that stand in a group behind a pipe.
    all: Feed,
}

impl Lines<'_> {
    /// The commands of a line, and what their output is made of.
    fn line(&mut self, line: &Line) -> Feed {
        if line.is_cut {
            self.reads(&own(), Input::Program, "sh");
        }
        let (mut written, mut last) = (Feed::default(), Feed::default());
        for command in &line.commands {
            let input = self.input_of(command, &last);
            if command.is_piped && is_opening(command) {
                self.all.add(&input);
            }
            let is_group = command.words.first().is_some_and(|word| word.text == "}");
            last = self.command(command, &input);
            written.add(&last);
            // What a group writes is what all of its commands do.
            if is_group {
                last = written.clone();
            }
        }
        written
    }

    fn input_of(&mut self, command: &LineCommand, last: &Feed) -> Feed {
        match &command.input {
            Some(word) => self.feed(word),
            None if command.is_piped => last.clone(),
            None => self.all.clone(),
        }
    }

    /// What a word is made of.
    fn feed(&mut self, word: &LineWord) -> Feed {
        let mut feed = Feed::default();
        for name in &word.variables {
            match self.known.get(name) {
                Some(known) => feed.add(known),
                None => drop(feed.variables.insert(name.clone())),
            }
        }
        for line in &word.outputs {
            let output = self.line(line);
            feed.add(&output);
        }
        feed
    }

    /// A command, and what its output is made of.
    fn command(&mut self, command: &LineCommand, input: &Feed) -> Feed {
        let feeds: Vec<Feed> = command.words.iter().map(|word| self.feed(word)).collect();
        let mut given: Vec<(&LineWord, &Feed)> = command.words.iter().zip(&feeds).collect();
        let reserved = |(word, _): &&(&LineWord, &Feed)| RESERVED.contains(&word.text.as_str());
        given.drain(..given.iter().take_while(reserved).count());
        let assigned = given.iter().take_while(|(word, _)| assigns(word)).count();
        for (word, feed) in given.drain(..assigned) {
            self.assign(word, feed);
        }
        let mut output = Feed::default();
        feeds.iter().for_each(|feed| output.add(feed));
        let Some((first, _)) = given.first() else {
            // Nothing but a redirection hands on what it reads.
            output.add(input);
            return output;
        };
        let name = first.text.clone();
        match name.as_str() {
            "for" => self.set(given.get(1), &output),
            "read" | "mapfile" | "readarray" => self.set_all(&given, input),
            "declare" | "export" | "local" | "readonly" | "typeset" => {
                given.iter().for_each(|(word, feed)| self.assign(word, feed));
            }
            "trap" => given.iter().skip(1).take(1).for_each(|(word, feed)| {
                self.note(feed, Why { rule: Rule::Joined, program: "trap" });
                self.nested(&word.text, input);
            }),
            inert if INERT.contains(&inert) => {}
            _ => self.perform(&given, input),
        }
        if reads_input(&name, &given) {
            output.add(input);
        }
        output
    }

    /// A variable that a word sets.
    fn assign(&mut self, word: &LineWord, feed: &Feed) {
        let Some(name) = variable(&word.text) else { return };
        if loads(name) || configures(name) {
            self.note(feed, Why { rule: Rule::Value, program: "a program" });
        }
        self.known.insert(name.to_owned(), feed.clone());
    }

    fn set(&mut self, word: Option<&(&LineWord, &Feed)>, feed: &Feed) {
        if let Some((word, _)) = word {
            let known = self.known.entry(word.text.clone()).or_default();
            known.add(feed);
        }
    }

    /// The variables that `read` sets.
    fn set_all(&mut self, given: &[(&LineWord, &Feed)], input: &Feed) {
        for (word, _) in given.iter().skip(1).filter(|(word, _)| !word.text.starts_with('-')) {
            self.known.entry(word.text.clone()).or_default().add(input);
        }
        for name in ["MAPFILE", "REPLY"] {
            self.known.entry(name.to_owned()).or_default().add(input);
        }
    }

    /// A program and its arguments.
    fn perform(&mut self, given: &[(&LineWord, &Feed)], input: &Feed) {
        let words: Vec<Word<'_>> = given.iter().enumerate().map(word).collect();
        let reading = read_at(self.depth, &words, self.programs);
        self.found.expands |= reading.expands;
        for ((_, feed), place) in given.iter().zip(&reading.places) {
            if let Place::Refused(why) = place {
                self.note(feed, *why);
            }
        }
        for (name, why) in &reading.variables {
            let feed =
                self.feed(&LineWord { variables: vec![name.clone()], ..LineWord::default() });
            self.note(&feed, *why);
        }
        if reading.input != Input::Data {
            self.reads(input, reading.input, "a program");
        }
    }

    /// A line in this one.
    fn nested(&mut self, text: &str, input: &Feed) {
        let found = read_line(text, self.programs, self.depth + 1);
        self.found.expands |= found.expands;
        if let Some(read) = found.input {
            self.reads(input, read, "sh");
        }
    }

    /// Something is read that programs or arguments are made of.
    fn reads(&mut self, feed: &Feed, input: Input, program: &'static str) {
        let rule = if input == Input::Program { Rule::Text } else { Rule::Value };
        if feed.input {
            self.found.input = self.found.input.max(Some(input));
        }
        self.note_variables(feed, Why { rule, program });
    }

    /// Something stands where nothing that was sent can.
    fn note(&mut self, feed: &Feed, why: Why) {
        if feed.input {
            let input = if why.rule.is_program() { Input::Program } else { Input::Arguments };
            self.found.input = self.found.input.max(Some(input));
        }
        self.note_variables(feed, why);
    }

    fn note_variables(&mut self, feed: &Feed, why: Why) {
        for name in &feed.variables {
            let known = self.found.variables.entry(name.clone()).or_insert(why);
            *known = (*known).max(why);
        }
    }
}

/// Whether a word sets a variable.
fn assigns(word: &LineWord) -> bool {
    variable(&word.text).is_some_and(|name| word.lead.is_none_or(|lead| lead > name.len()))
}

/// Whether a command opens what the commands behind it read the same input in.
fn is_opening(command: &LineCommand) -> bool {
    command.words.first().is_none_or(|word| OPENING.contains(&word.text.as_str()))
}

/// Whether what a command writes may hold what it reads.
fn reads_input(name: &str, given: &[(&LineWord, &Feed)]) -> bool {
    let names_file = |(word, _): &(&LineWord, &Feed)| !word.text.starts_with('-');
    let is_unread = INERT.contains(&name) || UNREAD.contains(&name);
    let reads_file = name == "cat" && given.iter().skip(1).any(names_file);
    !is_unread && !reads_file
}

/// A word as programs see it.
fn word<'a>((at, (word, feed)): (usize, &(&'a LineWord, &Feed))) -> Word<'a> {
    let text = word.text.as_str();
    if at == 0 && matches!(text, "." | "source") {
        // It runs a script, as a shell does.
        return Word::literal("bash");
    }
    // A folder that varies says nothing of the program in it.
    let behind = word.lead.and_then(|_| text.rsplit_once('/')).map(|(_, file)| file);
    match (word.lead, behind) {
        (None, _) => Word::literal(text),
        (Some(_), Some(file)) if at == 0 && !file.is_empty() && !file.contains('$') => {
            Word { is_sent: !feed.is_empty(), ..Word::literal(file) }
        }
        (Some(lead), _) => Word {
            lead: text.get(..lead).unwrap_or_default(),
            says_something: lead > 0 || behind.is_some_and(|file| !file.contains('$')),
            is_sent: !feed.is_empty(),
            text: Some(text),
            ..Word::default()
        },
    }
}
