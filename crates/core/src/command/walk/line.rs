//! Lines for a shell: what becomes of their input, their arguments and their variables.
//!
//! What a line hands on is followed: through pipes, `read`, assignments, substitutions and files
//! that it writes. Where it becomes a program, whatever it came from is one. In which order that
//! happens does not count: loops go round, and what a variable may hold anywhere it may hold
//! everywhere. What is not followed is named ([`Found::unfollowed`]).

mod files;

use std::collections::{BTreeMap, BTreeSet};

use self::files::Files;
use super::super::line::{Line, LineCommand, LineWord, line};
use super::super::shape::{Unfollowed, unfollowed};
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
    /// What it does that nothing is followed through.
    pub(super) unfollowed: Option<Unfollowed>,
    /// Whether a shell in it reads its input.
    pub(super) feeds_shell: bool,
}

/// How often a line is gone through until nothing new is found.
const PASSES_MAX: usize = 8;

/// Reads a line that stands in so many commands.
pub(super) fn read_line(text: &str, programs: &dyn Programs, depth: usize) -> Found {
    if depth >= DEPTH_MAX {
        return Found { input: Some(Input::Program), ..Found::default() };
    }
    let found = Found { unfollowed: unfollowed(text), ..Found::default() };
    let (known, files) = (BTreeMap::new(), Files::default());
    let mut lines = Lines { programs, depth, found, known, all: own(), files };
    let parsed = line(text);
    for _ in 0..PASSES_MAX {
        let before = lines.weight();
        lines.line(&parsed);
        if lines.weight() == before {
            return lines.found;
        }
    }
    let what = "hands values on in too many steps";
    lines.found.unfollowed.get_or_insert(Unfollowed { what, near: String::new() });
    lines.found
}

/// Words that a command follows, or that close one.
const RESERVED: [&str; 17] = [
    "!", "coproc", "do", "done", "elif", "else", "esac", "fi", "if", "then", "time", "until",
    "while", "{", "}", "&&", "||",
];

/// Words that open what one input is read in.
const OPENING: [&str; 6] = ["case", "for", "if", "until", "while", "{"];

/// Words that close it, behind which all that was written there goes on.
const CLOSING: [&str; 4] = ["done", "esac", "fi", "}"];

/// Commands of a shell that run nothing and read nothing, whatever they are given.
const INERT: [&str; 20] = [
    ":", "[", "[[", "break", "case", "cd", "continue", "echo", "exit", "false", "function",
    "printf", "return", "select", "set", "shift", "test", "true", "umask", "unset",
];

/// Programs that do not read their input, whatever their options, so that nothing of it is in
/// what they write.
const UNREAD: [&str; 15] = [
    "basename", "df", "dirname", "id", "ls", "mktemp", "nproc", "pwd", "readlink", "realpath",
    "seq", "type", "uname", "uptime", "whoami",
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

    fn weight(&self) -> usize {
        usize::from(self.input) + self.variables.len()
    }
}

struct Lines<'w> {
    programs: &'w dyn Programs,
    depth: usize,
    found: Found,
    /// What else variables were made of, where the line itself sets them.
    known: BTreeMap<String, Feed>,
    /// What is read by commands that stand in a group behind a pipe.
    all: Feed,
    /// What the line writes.
    files: Files,
}

impl Lines<'_> {
    /// How much is known. It only grows.
    fn weight(&self) -> usize {
        let known = self.known.values().map(|feed| feed.weight() + 1);
        known.sum::<usize>() + self.all.weight() + self.files.weight()
    }

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
            last = self.command(command, &input);
            written.add(&last);
            // What a group writes is what all of its commands do.
            if closes(command) {
                last = written.clone();
                self.all.add(&input);
            }
            self.write_all(command, &last);
        }
        written
    }

    fn input_of(&mut self, command: &LineCommand, last: &Feed) -> Feed {
        match &command.input {
            Some(word) => {
                let mut feed = self.feed(word);
                if command.reads_file && self.files.holds(word) {
                    feed.add(&self.files.content);
                }
                feed
            }
            None if command.is_piped => last.clone(),
            None => self.all.clone(),
        }
    }

    /// What a word is made of.
    fn feed(&mut self, word: &LineWord) -> Feed {
        let mut feed = Feed::default();
        for name in &word.variables {
            feed.add(&self.variable(name));
        }
        for line in &word.outputs {
            let output = self.line(line);
            feed.add(&output);
        }
        // A shell computes with the text of a variable, which may hold a command.
        for name in &word.computed {
            let computed = self.variable(name);
            self.note(&computed, Why { rule: Rule::Text, program: "sh" });
            feed.add(&computed);
        }
        // Names of files that the line makes.
        if word.text.contains(['*', '?', '[']) {
            feed.add(&self.files.content);
        }
        feed
    }

    /// What a variable is made of: itself, if the line was given it, and what the line sets.
    fn variable(&self, name: &str) -> Feed {
        let mut feed = self.known.get(name).cloned().unwrap_or_default();
        feed.variables.insert(name.to_owned());
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
            // From elsewhere, other files have the names that the line runs.
            "cd" => self.note(&output, Why { rule: Rule::Value, program: "cd" }),
            inert if INERT.contains(&inert) => {}
            _ => {
                let mut content = output.clone();
                content.add(input);
                if self.perform(&given, input, &content) {
                    self.feeds_shell(command);
                }
            }
        }
        if reads_input(&name, &given) {
            output.add(input);
        }
        // `ls` tells the names of files, and the others that read nothing do not.
        let is_silent = INERT.contains(&name.as_str()) || UNREAD.contains(&name.as_str());
        if !is_silent || name == "ls" {
            output.add(&self.files.content);
        }
        output
    }

    /// A variable that a word sets.
    fn assign(&mut self, word: &LineWord, feed: &Feed) {
        let Some(name) = variable(&word.text) else { return };
        if loads(name) || configures(name) {
            self.note(feed, Why { rule: Rule::Value, program: "a program" });
        }
        let mut feed = feed.clone();
        // Where it is computed with, a text that names a variable stands for it.
        if word.lead.is_none() {
            let value = word.text.get(name.len() + 1..).unwrap_or_default();
            let names = value.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            let is_name =
                |name: &&str| name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
            for other in names.filter(is_name).filter(|other| self.known.contains_key(*other)) {
                feed.add(&self.variable(other));
            }
            feed.variables.extend(Some(value.to_owned()).filter(|value| variable_name(value)));
        }
        self.known.entry(name.to_owned()).or_default().add(&feed);
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
    /// Says whether a shell in it reads its input.
    fn perform(&mut self, given: &[(&LineWord, &Feed)], input: &Feed, content: &Feed) -> bool {
        // `env NAME=value` sets variables of what it runs.
        for (word, feed) in given.iter().filter(|(word, _)| assigns(word)) {
            self.assign(word, feed);
        }
        let words: Vec<Word<'_>> = given.iter().enumerate().map(word).collect();
        let reading = read_at(self.depth, &words, self.programs);
        self.found.expands |= reading.expands;
        for ((_, feed), place) in given.iter().zip(&reading.places) {
            if let Place::Refused(why) = place {
                self.note(feed, *why);
            }
        }
        for (name, why) in &reading.variables {
            let feed = self.variable(name);
            self.note(&feed, *why);
        }
        if reading.input != Input::Data {
            self.reads(input, reading.input, "a program");
        }
        self.made(given, &words, &reading, content);
        if let Some(unfollowed) = reading.unfollowed {
            self.found.unfollowed.get_or_insert(unfollowed);
        }
        reading.feeds_shell
    }

    /// A shell that reads its input is given variables too: what it reads is a line like this
    /// one, or a file like a script, or nobody knows what.
    fn feeds_shell(&mut self, command: &LineCommand) {
        match &command.input {
            Some(_) if command.reads_file => {}
            Some(word) => {
                let text = word.text.clone();
                self.nested(&text, &Feed::default());
            }
            None if command.is_piped => {
                let what = "feeds a shell what another command writes";
                self.found.unfollowed.get_or_insert(Unfollowed { what, near: String::new() });
            }
            None => self.found.feeds_shell = true,
        }
    }

    /// A line in this one.
    fn nested(&mut self, text: &str, input: &Feed) {
        let found = read_line(text, self.programs, self.depth + 1);
        self.found.expands |= found.expands;
        if let Some(read) = found.input {
            self.reads(input, read, "sh");
        }
        if let Some(unfollowed) = found.unfollowed {
            self.found.unfollowed.get_or_insert(unfollowed);
        }
        for (name, why) in &found.variables {
            let feed = self.variable(name);
            self.note(&feed, *why);
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

/// Whether a text names a variable.
fn variable_name(text: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !text.is_empty()
        && text.chars().all(is_letter)
        && !text.starts_with(|c: char| c.is_ascii_digit())
}

/// Whether a command closes a group, or is only where one writes to.
fn closes(command: &LineCommand) -> bool {
    let first = command.words.first();
    first.is_none_or(|word| CLOSING.contains(&word.text.as_str()))
}

/// Whether what a command writes may hold what it reads.
fn reads_input(name: &str, given: &[(&LineWord, &Feed)]) -> bool {
    let is_option = |word: &LineWord| word.text.starts_with('-') && word.text.len() > 1;
    let is_file = |word: &LineWord| {
        let is_device = word.text.contains("/dev/") || word.text.contains("/proc/");
        word.lead.is_none() && !is_device && word.text != "-"
    };
    let mut operands = given.iter().skip(1).map(|(word, _)| *word).filter(|word| !is_option(word));
    let is_unread = INERT.contains(&name) || UNREAD.contains(&name);
    // `cat` reads the files that it is given, if none of them is the input by another name.
    let reads_file = name == "cat"
        && operands.clone().next().is_some()
        && operands.all(is_file)
        && given.iter().skip(1).all(|(word, _)| word.lead != Some(0));
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
