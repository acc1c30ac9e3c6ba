//! Reads a command as the programs in it will.

mod line;
mod script;
mod tool;

use std::collections::BTreeMap;

use self::line::read_line;
use super::interpreter::UNKNOWN;
use super::shape::Unfollowed;
use super::table::{Joiner, Kind, Row, called, expands, program};
use super::tool::Operands;
use super::variables::{configures, loads};
use super::wrapper::Wrapper;
use super::{Input, Place, Programs, Reading, Rule, Why, Word};

/// What a program is called that nobody knows.
const SOME_PROGRAM: &str = "a program";

/// How many commands can stand in one another.
const DEPTH_MAX: usize = 8;

/// How many words of a command are looked at that may be interpreters.
const GUESSES_MAX: usize = 16;

/// Reads a command.
#[must_use]
pub fn read(words: &[Word<'_>], programs: &dyn Programs) -> Reading {
    read_at(0, words, programs)
}

/// Reads a command that stands in so many others.
fn read_at(depth: usize, words: &[Word<'_>], programs: &dyn Programs) -> Reading {
    let mut walk = Walk::new(words, programs, depth);
    walk.run(0, words.len());
    let place = |(place, word): (Option<Place>, &Word<'_>)| match place.unwrap_or(Place::Data) {
        Place::Data if word.has_sent_option() => refused(Rule::Option, SOME_PROGRAM),
        place => place,
    };
    let places = std::mem::take(&mut walk.places).into_iter().zip(words).map(place).collect();
    let Walk { input, expands, variables, unfollowed, writes, feeds_shell, .. } = walk;
    Reading { places, input, expands, variables, unfollowed, writes, feeds_shell }
}

const fn refused(rule: Rule, program: &'static str) -> Place {
    Place::Refused(Why { rule, program })
}

/// What is known of a program.
#[derive(Clone, Copy)]
enum Known {
    /// Nothing, not even whether it is in the table.
    Nothing,
    /// It is not in the table.
    Unlisted,
    /// It is, and this is what it is called there.
    Row(&'static Row, &'static str),
}

/// What is known of a program with these names, each of which may lead to another row.
fn known(names: &[String]) -> Vec<Known> {
    let mut rows: Vec<(&'static Row, &'static str)> = Vec::new();
    let is_hidden = |name: &String| name.starts_with("/proc/") || name.starts_with("/dev/");
    for (row, name) in names.iter().filter_map(|name| Some((program(name)?, name))) {
        if !rows.iter().any(|(known, _)| std::ptr::eq(*known, row)) {
            rows.push((row, called(row, name)));
        }
    }
    match (names.is_empty() || names.iter().any(is_hidden), rows.is_empty()) {
        (true, _) => vec![Known::Nothing],
        (false, true) => vec![Known::Unlisted],
        (false, false) => rows.into_iter().map(|(row, name)| Known::Row(row, name)).collect(),
    }
}

fn stricter((one, other): (Option<Place>, &Option<Place>)) -> Option<Place> {
    let strict = |place: Option<Place>| place.unwrap_or(Place::Data);
    if strict(one) >= strict(*other) { one } else { *other }
}

/// Whether a program makes programs of its arguments or its input.
fn runs_others(name: &str) -> bool {
    program(name).is_some_and(|row| !matches!(&row.kind, Kind::Takes(tool) if tool.is_plain()))
}

/// Whether a program runs what its arguments or the files around it say.
fn runs_programs(name: &str) -> bool {
    let runs =
        |row: &Row| matches!(&row.kind, Kind::Takes(tool) if tool.operands == Operands::Programs);
    program(name).is_some_and(runs)
}

/// Whether a word may be the name of the input, as far as is known.
fn may_be_input(word: &Word<'_>) -> bool {
    match (word.written(), word.text) {
        (Some(path), _) => is_input(path),
        (None, Some(text)) if !text.contains('$') => is_input(text),
        _ => !word.says_something,
    }
}

/// Whether a path is that of the input.
pub(super) fn is_input(path: &str) -> bool {
    path == "-" || path.ends_with("dev/stdin") || path.ends_with("/fd/0")
}

struct Walk<'w, 'a> {
    words: &'w [Word<'a>],
    programs: &'w dyn Programs,
    places: Vec<Option<Place>>,
    input: Input,
    /// Whether a program in it expands its variables.
    expands: bool,
    /// The variables that become a program or an option in a line for a shell.
    variables: BTreeMap<String, Why>,
    /// What a line for a shell does that nothing is followed through.
    unfollowed: Option<Unfollowed>,
    /// The words that name what is written.
    writes: Vec<usize>,
    /// Whether a shell reads the input.
    feeds_shell: bool,
    /// Whether a program is only taken for one.
    guesses: bool,
    /// Whether it is what starts a script: behind the script's path stands what is the script's.
    starts_script: bool,
    depth: usize,
}

impl<'w, 'a> Walk<'w, 'a> {
    fn new(words: &'w [Word<'a>], programs: &'w dyn Programs, depth: usize) -> Self {
        let (places, input) = (vec![None; words.len()], Input::Data);
        let (expands, guesses, starts_script) = (false, false, false);
        let (variables, unfollowed, writes) = (BTreeMap::new(), None, Vec::new());
        Self {
            words,
            programs,
            places,
            input,
            expands,
            variables,
            unfollowed,
            writes,
            feeds_shell: false,
            guesses,
            starts_script,
            depth,
        }
    }

    fn word(&self, at: usize) -> Option<&'w Word<'a>> {
        self.words.get(at)
    }

    fn refuse(&mut self, at: usize, rule: Rule, program: &'static str) {
        if let Some(place) = self.places.get_mut(at) {
            *place = (*place).max(Some(refused(rule, program)));
        }
    }

    /// Nothing from here on is an option.
    fn behind(&mut self, from: usize, to: usize) {
        let places = self.places.get_mut(from..to).unwrap_or_default();
        if !self.guesses {
            places.iter_mut().filter(|place| place.is_none()).for_each(|place| {
                *place = Some(Place::Behind);
            });
        }
    }

    fn reads(&mut self, input: Input) {
        self.input = self.input.max(input);
    }

    /// A variable becomes a program or an option.
    fn varies(&mut self, name: String, why: Why) {
        let known = self.variables.entry(name).or_insert(why);
        *known = (*known).max(why);
    }

    /// A line for a shell, and the words behind it that it is given.
    fn line(&mut self, text: &str, from: usize, to: usize) {
        let found = read_line(text, self.programs, self.depth);
        self.expands |= found.expands;
        self.feeds_shell |= found.feeds_shell;
        if let Some(unfollowed) = found.unfollowed {
            let what = unfollowed.what;
            (from..to).for_each(|at| self.refuse(at, Rule::Unfollowed, what));
            self.unfollowed.get_or_insert(unfollowed);
        }
        found.input.into_iter().for_each(|input| self.reads(input));
        for (name, why) in found.variables {
            match is_argument(&name) {
                true => (from..to).for_each(|at| self.refuse(at, why.rule, why.program)),
                false => self.varies(name, why),
            }
        }
    }

    /// The command in these words.
    fn run(&mut self, from: usize, to: usize) {
        let Some(first) = self.word(from).filter(|_| from < to) else { return };
        self.refuse(from, Rule::Name, SOME_PROGRAM);
        if self.depth >= DEPTH_MAX {
            (from..to).for_each(|at| self.refuse(at, Rule::Name, SOME_PROGRAM));
            return self.reads(Input::Program);
        }
        self.depth += 1;
        let written: Vec<&str> = first.written().map_or(first.choices.clone(), |name| vec![name]);
        let names: Vec<String> =
            written.iter().flat_map(|name| self.programs.names(name)).collect();
        written.iter().for_each(|name| self.script(name, from + 1, to));
        // Whatever one of its names would make of the words counts, and what only some of them
        // would let through does not.
        let before = self.places.clone();
        let mut strictest: Option<Vec<Option<Place>>> = None;
        for known in known(&names) {
            self.places.clone_from(&before);
            self.arguments(known, from + 1, to);
            strictest = Some(match strictest {
                Some(places) => places.into_iter().zip(&self.places).map(stricter).collect(),
                None => self.places.clone(),
            });
        }
        self.places = strictest.unwrap_or(before);
        self.depth -= 1;
    }

    /// A script, and the words that it is given: whatever runs it may take them for its own.
    fn script(&mut self, name: &str, from: usize, to: usize) {
        let Some(line) = self.programs.script(name) else { return };
        let own = line.iter().map(String::as_str).chain([name]).map(Word::literal);
        let own: Vec<Word<'_>> = own.collect();
        let given = self.words.get(from..to).unwrap_or_default();
        let words = [own.as_slice(), given].concat();
        let mut walk = Walk::new(&words, self.programs, self.depth);
        walk.starts_script = true;
        walk.run(0, words.len());
        self.input = self.input.max(walk.input);
        self.expands |= walk.expands;
        walk.variables.into_iter().for_each(|(name, why)| self.varies(name, why));
        self.unfollowed = self.unfollowed.take().or(walk.unfollowed);
        self.feeds_shell |= walk.feeds_shell;
        let found = walk.places.into_iter().skip(own.len());
        for (place, found) in self.places.iter_mut().skip(from).zip(found) {
            *place = (*place).max(found.filter(|found| *found != Place::Behind));
        }
    }

    /// The arguments of a program.
    fn arguments(&mut self, known: Known, from: usize, to: usize) {
        let (row, name) = match known {
            Known::Nothing => {
                return self.interpreter(&UNKNOWN, SOME_PROGRAM, (from, to), true);
            }
            Known::Unlisted => return self.plain(from, to),
            Known::Row(row, name) => (row, name),
        };
        self.openings((row, name), from, to);
        self.expands |= expands(row);
        match &row.kind {
            Kind::Runs(kind) => self.interpreter(kind, name, (from, to), true),
            Kind::Wraps(kind) => self.wrapper(kind, name, from, to),
            Kind::Joins(kind) => self.joining(kind, name, from, to),
            Kind::Finds => self.find(from, to),
            // What runs scripts beside other things hands them what stands behind their path.
            Kind::Takes(_) if self.starts_script && !expands(row) => {}
            Kind::Takes(tool) => {
                self.tool(tool, name, from, to);
                self.targets(tool, name, from, to);
                if tool.operands != Operands::Data {
                    self.plain(from, to);
                }
            }
        }
    }

    /// What was sent may not begin so, or hold it, with this program.
    fn openings(&mut self, (row, name): (&'static Row, &'static str), from: usize, to: usize) {
        for at in from..to {
            let Some(word) = self.word(at).filter(|word| word.is_sent) else { continue };
            let Some(text) = word.text else { continue };
            let sent = text.get(word.lead.len()..).unwrap_or_default();
            let begins = |known: &&str| sent.trim_start().to_ascii_lowercase().starts_with(known);
            let holds = |known: &&str| text.to_ascii_lowercase().contains(known);
            if row.begins.iter().any(begins) || row.holds.iter().any(holds) {
                self.refuse(at, Rule::Value, name);
            }
        }
    }

    /// A program of which nothing is known. Where it names an interpreter, it may run it.
    fn plain(&mut self, from: usize, to: usize) {
        let mut guesses = 0;
        for at in from..to {
            let Some(name) = self.word(at).and_then(Word::written) else { continue };
            let Some(row) = program(name) else { continue };
            let Kind::Runs(kind) = &row.kind else { continue };
            guesses += 1;
            if guesses > GUESSES_MAX {
                return (at..to).for_each(|at| self.refuse(at, Rule::Script, row.name()));
            }
            // A word such as `node` may mean something else.
            let sure = kind.is_shell || name.contains('/');
            let guessed = std::mem::replace(&mut self.guesses, true);
            self.interpreter(kind, row.name(), (at + 1, to), sure);
            self.guesses = guessed;
            if sure {
                return;
            }
        }
    }

    /// A program that runs the command behind its own options.
    fn wrapper(&mut self, kind: &Wrapper, program: &'static str, from: usize, to: usize) {
        let (mut own, mut skipped, mut ended, mut fills_in) = (kind.own, 0, false, false);
        let mut variables = Vec::new();
        for at in from..to {
            let Some(word) = self.word(at) else { return };
            let lead = word.lead;
            if skipped > 0 {
                skipped -= 1;
            } else if !ended && word.is_option() {
                ended = lead == "--";
                fills_in |= kind.is_filling(lead);
                skipped = kind.values_of(lead);
                if kind.is_line(lead) {
                    self.refuse(at, Rule::Text, program);
                    self.refuse(at + 1, Rule::Text, program);
                    let glued = lead.split_once('=').map(|(_, line)| line);
                    let next = self.word(at + 1).and_then(|word| word.text);
                    return glued.or(next).into_iter().for_each(|line| self.line(line, to, to));
                }
            } else if kind.sets_variables && variable(lead).is_some() {
                let is_program = |name| loads(name) || configures(name);
                if !variable(lead).is_some_and(is_program) {
                    self.behind(at, at + 1);
                    variables.push(at);
                    continue;
                }
            } else if own > 0 {
                own -= 1;
            } else {
                if self.run_expands(at, to) {
                    variables.iter().for_each(|at| self.refuse(*at, Rule::Value, "make"));
                }
                self.given(&variables);
                if kind.fills_in.is_some() {
                    let filled = self.filled(at, to, fills_in);
                    self.reads(filled);
                }
                return;
            }
            self.refuse(at, Rule::Wrapped, program);
        }
        if !kind.is_plain_alone {
            self.reads(Input::Program);
        }
    }

    /// Variables that words set for a command that was read: what it makes of them.
    fn given(&mut self, words: &[usize]) {
        for at in words {
            let name = self.word(*at).and_then(|word| variable(word.lead));
            if let Some(why) = name.and_then(|name| self.variables.get(name).copied()) {
                self.refuse(*at, why.rule, why.program);
            }
            if let Some(what) = self.unfollowed.as_ref().map(|unfollowed| unfollowed.what) {
                self.refuse(*at, Rule::Unfollowed, what);
            }
        }
    }

    /// The command in these words, and whether a program in it expands its variables.
    fn run_expands(&mut self, from: usize, to: usize) -> bool {
        let before = std::mem::take(&mut self.expands);
        self.run(from, to);
        let expands = self.expands;
        self.expands |= before;
        expands
    }

    /// What becomes of the input of `xargs`, which adds it to a command or puts it in.
    fn filled(&self, from: usize, to: usize, fills_in: bool) -> Input {
        let mut words = self.words.get(from..to).unwrap_or_default().to_vec();
        words.push(Word { is_sent: true, ..Word::default() });
        let reading = read_at(self.depth, &words, self.programs);
        match reading.places.last() {
            Some(Place::Refused(_)) => Input::Program,
            Some(Place::Behind) if !fills_in => reading.input,
            // Where in a program it is put, nobody knows.
            _ if fills_in && words.iter().any(|word| self.is_known(word)) => Input::Program,
            _ => reading.input.max(Input::Arguments),
        }
    }

    fn is_known(&self, word: &Word<'_>) -> bool {
        let names = word.written().map(|name| self.programs.names(name)).unwrap_or_default();
        names.iter().any(|name| runs_others(name))
    }

    /// A program that makes one text of its arguments.
    fn joining(&mut self, kind: &Joiner, program: &'static str, from: usize, to: usize) {
        let (mut words, mut count, mut is_value) = (Vec::new(), 0, false);
        for at in from..to {
            let Some(word) = self.word(at) else { return };
            let is_file = word.written().is_some_and(|text| text.eq_ignore_ascii_case("-file"));
            let script = self.word(at + 1).is_some_and(|script| script.is_whole);
            if kind.has_scripts && is_file && script {
                let is_read = |script: &Word<'_>| script.written().is_some_and(is_input);
                if self.word(at + 1).is_some_and(is_read) {
                    self.reads(Input::Program);
                }
                return;
            }
            self.refuse(at, Rule::Joined, program);
            let is_option = word.is_option();
            if !is_option && !is_value {
                count += 1;
                words.extend(word.written().into_iter().flat_map(str::split_whitespace));
            }
            is_value = is_option && word.lead.ends_with(|letter| kind.valued.contains(letter));
        }
        let line = words.join(" ");
        let before = self.unfollowed.take();
        self.line(&line, to, to);
        // What is no line for a shell is not held to the form of one.
        let inner = self.unfollowed.take().filter(|_| kind.is_shell);
        self.unfollowed = before.or(inner);
        // An interpreter among the words reads, and so does what was given no command.
        let is_read = |word: &&str| runs_others(word) || (kind.has_scripts && is_input(word));
        if count <= kind.own || words.iter().any(is_read) || kind.reads {
            self.reads(Input::Program);
        }
    }

    /// `find` runs what stands behind `-exec`, and takes what begins with a hyphen for an
    /// action.
    fn find(&mut self, from: usize, to: usize) {
        let (mut at, mut is_value) = (from, false);
        while let Some(word) = self.word(at).filter(|_| at < to) {
            if matches!(word.written(), Some("-exec" | "-execdir" | "-ok" | "-okdir")) {
                let is_end = |at: &usize| {
                    let word = self.word(*at).and_then(Word::written);
                    matches!(word, Some(";" | "\\;" | "+"))
                };
                let end = (at + 1..to).find(is_end).unwrap_or(to);
                self.run(at + 1, end);
                if self.runs_found(at + 1, end) {
                    (from..to).for_each(|at| self.refuse(at, Rule::Script, "find"));
                }
                (at, is_value) = (end + 1, false);
                continue;
            }
            if !is_value {
                self.refuse(at, Rule::Find, "find");
            } else if at > from && self.word(at - 1).is_some_and(|word| WRITES.contains(&word.lead))
            {
                self.refuse(at, Rule::Value, "find");
            }
            is_value = !is_value && word.is_whole && word.is_option();
            at += 1;
        }
    }
}

impl Walk<'_, '_> {
    /// Whether what `find` finds stands where a program or a script does.
    fn runs_found(&self, from: usize, to: usize) -> bool {
        let mut words = self.words.get(from..to).unwrap_or_default().to_vec();
        let is_found = |word: &Word<'_>| word.written().is_some_and(|word| word.contains("{}"));
        let found: Vec<usize> =
            words.iter().enumerate().filter(|(_, word)| is_found(word)).map(|(at, _)| at).collect();
        for at in &found {
            if let Some(word) = words.get_mut(*at) {
                *word = Word { is_sent: true, ..Word::default() };
            }
        }
        let reading = read_at(self.depth, &words, self.programs);
        let is_run = |at: &usize| match reading.places.get(*at) {
            Some(Place::Refused(why)) => why.rule == Rule::Script || why.rule.is_program(),
            _ => false,
        };
        found.iter().any(is_run)
    }
}

/// Whether a shell's variable is one of the words that it is given.
fn is_argument(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_digit() || "@*".contains(c))
}

/// The actions of `find` that write a file.
const WRITES: [&str; 5] = ["-files0-from", "-fls", "-fprint", "-fprint0", "-fprintf"];

/// The name of the variable that a word of a command sets.
fn variable(lead: &str) -> Option<&str> {
    let (name, _) = lead.split_once('=')?;
    let name = name.strip_suffix('+').unwrap_or(name);
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    (!name.is_empty() && name.chars().all(is_name)).then_some(name)
}
