//! Programs that run the command behind their own options.

/// A program that runs another.
pub(super) struct Wrapper {
    /// The letters of its options that a value follows.
    pub(super) valued: &'static str,
    /// The long names of those options.
    pub(super) values: &'static [&'static str],
    /// How many arguments of its own stand before the command.
    pub(super) own: usize,
    /// The beginnings of options that a command line follows, or is a part of.
    pub(super) lines: &'static [&'static str],
    /// Whether variables of the environment may stand before the command.
    pub(super) sets_variables: bool,
    /// The beginnings of options that put what is read into the arguments of the command, if
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
        if let Some(long) = option.strip_prefix("--") {
            return usize::from(self.values.contains(&long));
        }
        let letters = option.trim_start_matches('-');
        let valued = letters.find(|letter| self.valued.contains(letter));
        usize::from(valued.is_some_and(|place| place + 1 == letters.len()))
    }

    /// Whether a command line follows an option, or is a part of it.
    pub(super) fn is_line(&self, option: &str) -> bool {
        self.lines.iter().any(|name| option.starts_with(name))
    }

    /// Whether an option puts what is read into the arguments of the command.
    pub(super) fn is_filling(&self, option: &str) -> bool {
        self.fills_in.is_some_and(|options| options.iter().any(|name| option.starts_with(name)))
    }
}
