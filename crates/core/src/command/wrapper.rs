//! Programs that run the command behind their own options.

use super::option::{is_named, is_one_of};

/// A program that runs another.
pub(super) struct Wrapper {
    /// The letters of its options that a value follows.
    pub(super) valued: &'static str,
    /// The long names of those options.
    pub(super) values: &'static [&'static str],
    /// How many arguments of its own stand before the command.
    pub(super) own: usize,
    /// The options that a command line follows, or is a part of.
    pub(super) lines: &'static [&'static str],
    /// Whether variables of the environment may stand before the command.
    pub(super) sets_variables: bool,
    /// The options that put what is read into the arguments of the command, if
    /// it makes arguments of its input at all.
    pub(super) fills_in: Option<&'static [&'static str]>,
    /// Whether what it reads is data where no command follows. Many start a shell there.
    pub(super) is_plain_alone: bool,
}

pub(super) const WRAPPER: Wrapper = Wrapper {
    valued: "",
    values: &[],
    own: 0,
    lines: &[],
    sets_variables: false,
    fills_in: None,
    is_plain_alone: false,
};

impl Wrapper {
    /// How many of the next arguments belong to an option.
    pub(super) fn values_of(&self, option: &str) -> usize {
        if option.starts_with("--") {
            return usize::from(self.values.iter().any(|known| is_named(option, known)));
        }
        let letters = option.trim_start_matches('-');
        let valued = letters.find(|letter| self.valued.contains(letter));
        usize::from(valued.is_some_and(|place| place + 1 == letters.len()))
    }

    /// Whether a command line follows an option, or is a part of it.
    pub(super) fn is_line(&self, option: &str) -> bool {
        is_one_of(option, self.lines, self.valued)
    }

    /// Whether an option puts what is read into the arguments of the command.
    pub(super) fn is_filling(&self, option: &str) -> bool {
        // Its own letters take values.
        let valued: String = self.valued.chars().filter(|letter| *letter != 'I').collect();
        self.fills_in.is_some_and(|options| is_one_of(option, options, &valued))
    }
}
