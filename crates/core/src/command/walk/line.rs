//! Lines for a shell: whether a program in one expands its variables.

use super::super::Word;
use super::{Walk, read_at, variable};

/// How many commands of a line are looked at that may be such a program.
const COMMANDS_MAX: usize = 256;

/// Words that a command follows.
const BEFORE: [&str; 10] =
    ["!", "do", "elif", "else", "exec", "if", "then", "time", "until", "while"];

impl Walk<'_, '_> {
    /// Notes whether a line runs a program that expands its variables.
    pub(super) fn line(&mut self, line: &str) {
        // Every such program has it in its name, and most lines have none.
        let is_hint = |command: &&str| command.to_ascii_lowercase().contains("make");
        let commands = line.split(['\n', ';', '&', '|', '(', ')', '{', '}', '`']);
        let mut commands = commands.filter(is_hint);
        self.expands |= commands.by_ref().take(COMMANDS_MAX).any(|line| self.is_expanding(line));
        self.expands |= commands.next().is_some();
    }

    fn is_expanding(&self, command: &str) -> bool {
        let words = command.split_whitespace().map(|word| word.trim_matches(['"', '\'']));
        let is_before = |word: &&str| BEFORE.contains(word) || variable(word).is_some();
        let words: Vec<Word<'_>> = words.skip_while(is_before).map(Word::literal).collect();
        read_at(self.depth, &words, self.programs).expands
    }
}
