//! Files that a line writes. What it runs is none of those that hold what somebody sent, and what
//! it makes itself is no program that anything is known of.

use std::collections::BTreeSet;

use super::super::super::line::{LineCommand, LineWord};
use super::super::super::target::is_obeyed;
use super::super::super::{Place, Reading, Rule, Why, Word};
use super::super::{read_at, runs_programs};
use super::{Feed, Lines};

/// How many words of a command are looked at that may name such a file.
const WORDS_MAX: usize = 64;

/// The files that a line writes, which are told apart by their names alone.
#[derive(Debug, Default)]
pub(super) struct Files {
    /// What is written to them.
    pub(super) content: Feed,
    names: BTreeSet<String>,
    /// Whether some are written whose names are not known.
    has_unknown: bool,
}

impl Files {
    pub(super) fn weight(&self) -> usize {
        self.content.weight() + self.names.len() + usize::from(self.has_unknown)
    }

    /// Whether a word may name one of them.
    pub(super) fn holds(&self, word: &LineWord) -> bool {
        let is_any = self.has_unknown || !self.names.is_empty();
        // A file without a known name is none of the workflow's own, and none of the system's.
        let is_own =
            word.lead.is_none() && word.text.starts_with(['/']) || word.text.starts_with("nodes/");
        let is_unknown = self.has_unknown && !is_own;
        is_any && (is_unknown || name(word).is_none_or(|name| self.names.contains(name)))
    }

    fn write(&mut self, word: &LineWord, content: &Feed) {
        if DEVICES.contains(&word.text.as_str()) {
            return;
        }
        self.content.add(content);
        match name(word) {
            Some(name) => drop(self.names.insert(name.to_owned())),
            None => self.has_unknown = true,
        }
    }
}

/// What is written to and keeps nothing.
const DEVICES: [&str; 4] = ["/dev/null", "/dev/stderr", "/dev/stdout", "/dev/tty"];

/// The name of the file that a word names, without its folder, if that is written out.
fn name(word: &LineWord) -> Option<&str> {
    let ends = |c: char| c == '/' || c == '=' || c.is_whitespace();
    let name = word.text.trim_end().rsplit(ends).next()?;
    let is_plain = !name.is_empty() && !name.contains(['$', '*', '?', '[', '{', '`']);
    (is_plain && !matches!(name, "." | "..")).then_some(name)
}

impl Lines<'_> {
    /// What a command writes by its redirections.
    pub(super) fn write_all(&mut self, command: &LineCommand, content: &Feed) {
        for word in &command.writes {
            let named = self.feed(word);
            self.note(&named, Why { rule: Rule::Target, program: "sh" });
            self.files.write(word, content);
        }
    }

    /// What a program makes of files that the line writes, and which of them it writes itself.
    pub(super) fn made(
        &mut self,
        given: &[(&LineWord, &Feed)],
        words: &[Word<'_>],
        reading: &Reading,
        content: &Feed,
    ) {
        let Some((first, _)) = given.first() else { return };
        for at in &reading.writes {
            let Some((word, _)) = given.get(*at) else { continue };
            self.files.write(word, content);
        }
        let text = first.text.as_str();
        let is_new = matches!(text, "split" | "csplit");
        let holds = |mark: char| given.iter().skip(1).any(|(word, _)| word.text.contains(mark));
        let is_script = (text.ends_with("awk") && holds('>')) || (text == "sed" && holds('w'));
        if is_new || is_script {
            self.files.content.add(content);
            self.files.has_unknown |= !content.is_empty();
        }
        // A copy of a shell is one, whatever it is called.
        if text.contains('/') && self.files.holds(first) {
            let mut all = content.clone();
            all.add(&self.files.content);
            return self.note(&all, Why { rule: Rule::Text, program: "a program" });
        }
        if !self.files.content.is_empty() && self.runs_made(given, words) {
            let content = self.files.content.clone();
            self.note(&content, Why { rule: Rule::Text, program: "a program" });
        }
    }

    /// Whether a program may run a file that the line writes, or let others run it.
    fn runs_made(&self, given: &[(&LineWord, &Feed)], words: &[Word<'_>]) -> bool {
        let Some((first, _)) = given.first() else { return false };
        let held =
            |(at, (word, _)): (usize, &(&LineWord, &Feed))| self.files.holds(word).then_some(at);
        let held: Vec<usize> = given.iter().enumerate().skip(1).filter_map(held).collect();
        if first.text == "chmod" && !held.is_empty() {
            return true;
        }
        let is_obeyed =
            self.files.has_unknown || self.files.names.iter().any(|name| is_obeyed(name));
        if held.len() > WORDS_MAX || (is_obeyed && runs_programs(&first.text)) {
            return true;
        }
        held.into_iter().any(|at| {
            let mut words = words.to_vec();
            if let Some(word) = words.get_mut(at) {
                *word = Word { is_sent: true, ..Word::default() };
            }
            let reading = read_at(self.depth, &words, self.programs);
            matches!(reading.places.get(at), Some(Place::Refused(why)) if is_run(why.rule))
        })
    }
}

/// Whether a file is run that stands where this rule refuses it.
const fn is_run(rule: Rule) -> bool {
    matches!(rule, Rule::Value | Rule::Joined | Rule::Script | Rule::Name | Rule::Text)
}
