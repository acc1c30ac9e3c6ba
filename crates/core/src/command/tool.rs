//! Programs whose arguments are data, but for some.

use super::option::is_named;
use super::target::Writes;

/// A program of which some arguments are programs, options or configuration.
pub(super) struct Tool {
    /// The options whose value is one: letters such as `-c`, names such as `--config`, which
    /// may be written shorter, and names behind one hyphen such as `-config`.
    pub(super) programs: &'static [&'static str],
    /// The words and options behind which every argument is one, such as `exec`.
    pub(super) words: &'static [&'static str],
    /// The words and values with which programs are read from its input, such as `console`, or
    /// two of them, such as `build -`.
    pub(super) readers: &'static [&'static str],
    /// What arguments are that are no options.
    pub(super) operands: Operands,
    /// Whether programs are read from its input, whatever its arguments. Where one of
    /// `programs` names the input as its value, they always are.
    pub(super) reads: bool,
    /// Whether its first argument is letters of options without a hyphen, as in `tar xf`.
    pub(super) bundles: bool,
    /// Whether `--` ends its options, and nothing behind it is one.
    pub(super) ends: bool,
    /// The letters of the options that another value follows, so that a `--` is one there.
    pub(super) valued: &'static str,
    /// The long names of those options.
    pub(super) values: &'static [&'static str],
    /// Which of its arguments name what it writes.
    pub(super) writes: Writes,
    /// The options whose value does.
    pub(super) targets: &'static [&'static str],
    /// The options whose value begins with a name and `=`, and can name a file before that.
    pub(super) named: &'static [&'static str],
    /// The options whose value ends in the name of a variable that is a program.
    pub(super) variables: &'static [&'static str],
}

/// What the arguments of a tool are that are no options.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Operands {
    /// Data.
    Data,
    /// The first is a command such as `commit`, which can be a program of its own, and the
    /// others are data.
    Command,
    /// Each is or brings a program.
    Programs,
}

pub(super) const TOOL: Tool = Tool {
    programs: &[],
    words: &[],
    readers: &[],
    operands: Operands::Data,
    reads: false,
    bundles: false,
    ends: true,
    valued: "",
    values: &[],
    writes: Writes::Nothing,
    targets: &[],
    named: &[],
    variables: &[],
};

/// A tool of which each argument is or brings a program.
pub(super) const RUNNER: Tool = Tool { operands: Operands::Programs, ends: false, ..TOOL };

/// A tool whose first argument is a command.
pub(super) const COMMANDS: Tool = Tool { operands: Operands::Command, ..TOOL };

/// Where the value of an option stands that is a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Value<'a> {
    /// In the same argument.
    Here(&'a str),
    /// In so many of the next.
    Next(usize),
}

impl Tool {
    /// The value of an option that is a program, if it is such an option.
    pub(super) fn program<'a>(&self, option: &'a str) -> Option<Value<'a>> {
        let (name, value) = match option.split_once('=') {
            Some((name, value)) => (name, Value::Here(value)),
            None => (option, Value::Next(1)),
        };
        if self.programs.iter().any(|known| is_named(name, known)) {
            return Some(value);
        }
        // A value can be glued to a name behind one hyphen, as in `-Wl,…` and `-fplugin-arg-…`.
        let is_glued = |known: &&str| {
            let rest = name.strip_prefix(*known).filter(|_| known.len() > 2);
            rest.is_some_and(|rest| rest.starts_with([',', '-']))
        };
        if let Some(known) = self.programs.iter().find(|known| is_glued(known)) {
            return option.get(known.len()..).map(Value::Here);
        }
        if option.starts_with("--") {
            return None;
        }
        let letters = option.trim_start_matches(['-', '+']);
        let letter = |letter: char| {
            self.programs
                .iter()
                .any(|known| known.len() == 2 && known.starts_with('-') && known.ends_with(letter))
        };
        let (at, found) = letters.char_indices().find(|(_, found)| letter(*found))?;
        match letters.get(at + found.len_utf8()..).unwrap_or_default() {
            rest if !rest.is_empty() && option.starts_with(['-', '+']) => Some(Value::Here(rest)),
            _ => {
                // Values of other letters may stand before it.
                let others = letters.chars().filter(|other| self.valued.contains(*other)).count();
                Some(Value::Next(1 + others))
            }
        }
    }

    /// Whether all that it is given is data.
    pub(super) fn is_plain(&self) -> bool {
        let has_programs = !self.programs.is_empty() || !self.words.is_empty();
        !has_programs && self.operands == Operands::Data && !self.reads
    }

    /// Whether the next argument is a value of an option.
    pub(super) fn is_valued(&self, option: &str) -> bool {
        if option.starts_with("--") {
            return self.values.iter().any(|known| is_named(option, known));
        }
        let letters = option.trim_start_matches('-');
        letters.ends_with(|letter| self.valued.contains(letter)) || self.values.contains(&letters)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_is_known_in_every_spelling() {
        let tool = Tool { programs: &["-I", "--use-compress-program", "-config"], ..TOOL };
        assert_eq!(tool.program("--use-compress-program=x"), Some(Value::Here("x")));
        assert_eq!(tool.program("--use-c"), Some(Value::Next(1)));
        assert_eq!(tool.program("-xzI"), Some(Value::Next(1)));
        assert_eq!(tool.program("-Ix"), Some(Value::Here("x")));
        assert_eq!(tool.program("-config"), Some(Value::Next(1)));
        assert_eq!(tool.program("--config=x"), Some(Value::Here("x")));
        assert_eq!(tool.program("-config,x=y"), Some(Value::Here(",x=y")));
        for other in ["--", "-x", "--verbose", "-"] {
            assert_eq!(tool.program(other), None, "{other}");
        }
    }
}
