//! Programs that run programs of their own language.

use super::option::is_named;

/// A program that runs programs of its own language.
pub(super) struct Interpreter {
    /// The letters of the options that a program text follows.
    pub(super) text: &'static str,
    /// The long names of those options.
    pub(super) texts: &'static [&'static str],
    /// The letters of the options that another value follows.
    pub(super) valued: &'static str,
    /// The long names of those options.
    pub(super) values: &'static [&'static str],
    /// The letters of the options that take the rest of their argument, if any.
    pub(super) attached: &'static str,
    /// The letters of the options that the script's path follows.
    pub(super) script: &'static str,
    /// The long names of those options.
    pub(super) scripts: &'static [&'static str],
    /// The letters of the options with which a program is read from the input.
    pub(super) input: &'static str,
    /// The letters of the options that a module follows, which takes the rest.
    pub(super) module: &'static str,
    /// The letter that the name of a long option follows, as in `-W exec`.
    pub(super) spells: Option<char>,
    /// Whether programs are read from the input, whatever the arguments.
    pub(super) reads: bool,
    /// What the first argument is that is no option.
    pub(super) first: First,
    /// What becomes of the arguments behind a program text.
    pub(super) rest: Rest,
    /// Whether it is a shell, whose `-c` says what the first argument is.
    pub(super) is_shell: bool,
    /// Whether its first argument can be a command such as `run`.
    pub(super) has_commands: bool,
    /// Whether it runs what its arguments name: with `-n` and `-p`, Perl and Ruby take a file
    /// name that ends in `|` for a command.
    pub(super) opens_files: bool,
}

/// What the first argument of an interpreter is that is no option.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum First {
    /// The path of a script, unless a program text was given.
    Script,
    /// A program text, unless one was given.
    Text,
    /// Data.
    Data,
}

/// What becomes of the arguments behind a program text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Rest {
    /// They are handed to the program as they are.
    Data,
    /// They are looked through for options, up to the first that is none.
    Options,
    /// They are looked through for options, up to `--`.
    OptionsAnywhere,
}

pub(super) const SCRIPT: Interpreter = Interpreter {
    text: "e",
    texts: &["eval", "print", "command", "execute"],
    valued: "",
    values: &[],
    attached: "",
    script: "",
    scripts: &[],
    input: "",
    module: "",
    spells: None,
    reads: false,
    first: First::Script,
    rest: Rest::Options,
    is_shell: false,
    has_commands: false,
    opens_files: false,
};

/// What a program is held for that nobody knows: options of all kinds count.
pub(super) const UNKNOWN: Interpreter = Interpreter { text: "cCeEnprR", ..SCRIPT };

/// What an option of an interpreter brings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Brings<'a> {
    /// Nothing more.
    Nothing,
    /// A program text: behind a `=` or its letter, or as the next argument.
    Text(Where<'a>),
    /// The first argument that is no option is a program text, behind so many values.
    TextLater(usize),
    /// The path of a script.
    Script(Where<'a>),
    /// A module that takes the rest.
    Module(Where<'a>),
    /// So many values, as the next arguments.
    Values(usize),
    /// The program is read from the input, and what follows is data.
    Input,
}

/// Where what an option brings stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Where<'a> {
    /// In the same argument.
    Here(&'a str),
    /// In the next.
    Next,
}

/// Modules of Python that take plain data, as arguments and as input.
pub(super) const PLAIN_MODULES: [&str; 18] = [
    "ast",
    "base64",
    "calendar",
    "compileall",
    "difflib",
    "ensurepip",
    "gzip",
    "http.server",
    "json",
    "json.tool",
    "mimetypes",
    "platform",
    "py_compile",
    "quopri",
    "tarfile",
    "tokenize",
    "venv",
    "zipfile",
];

/// Modules of Python that run what they are given, which nobody can vouch for.
pub(super) const EVALUATING_MODULES: [&str; 17] = [
    "IPython", "asyncio", "bdb", "bpython", "cProfile", "code", "doctest", "idlelib", "pdb",
    "pickle", "profile", "ptpython", "runpy", "sqlite3", "timeit", "trace", "unittest",
];

/// Options of which a name and a value follow.
const PAIRS: [&str; 4] = ["arg", "argjson", "rawfile", "slurpfile"];

impl Interpreter {
    /// What an option brings, as far as it is written out.
    pub(super) fn option<'a>(&self, written: &'a str) -> Brings<'a> {
        let (name, place) = match written.split_once('=') {
            Some((name, value)) => (name, Where::Here(value)),
            None => (written, Where::Next),
        };
        let small = name.to_ascii_lowercase();
        let long = small.trim_start_matches('-');
        // A name in full counts before the beginnings of others.
        let all = [self.texts, self.scripts, self.values, &PAIRS].concat();
        let is_whole = long.len() > 1 && all.contains(&long);
        let known = |names: &[&str]| match is_whole {
            true => names.contains(&long),
            false => names.iter().any(|name| is_named(&small, name)),
        };
        match place {
            _ if known(self.texts) => Brings::Text(place),
            _ if known(self.scripts) => Brings::Script(place),
            Where::Next if known(self.values) => Brings::Values(1),
            Where::Next if self.first == First::Text && known(&PAIRS) => Brings::Values(2),
            _ if name.starts_with("--") => Brings::Nothing,
            _ => self.cluster(written.get(1..).unwrap_or_default()),
        }
    }

    /// What several letters behind one hyphen bring.
    fn cluster<'a>(&self, letters: &'a str) -> Brings<'a> {
        if self.is_shell {
            let values = letters.matches(|c| self.valued.contains(c)).count();
            return match letters.contains(|c| self.text.contains(c)) {
                true => Brings::TextLater(values),
                false if letters.contains(|c| self.input.contains(c)) => Brings::Input,
                false => Brings::Values(values),
            };
        }
        for (place, letter) in letters.char_indices() {
            let rest = letters.get(place + letter.len_utf8()..).unwrap_or_default();
            let place = if rest.is_empty() { Where::Next } else { Where::Here(rest) };
            if self.attached.contains(letter) {
                break;
            }
            if self.text.contains(letter) {
                // Letters such as those of `-pe` stand for options, and are no text.
                let more = rest.chars().all(|letter| self.text.contains(letter));
                return Brings::Text(if more { Where::Next } else { place });
            }
            if self.script.contains(letter) {
                return Brings::Script(place);
            }
            if self.module.contains(letter) {
                return Brings::Module(place);
            }
            if self.input.contains(letter) {
                return Brings::Input;
            }
            if self.valued.contains(letter) {
                return Brings::Values(usize::from(rest.is_empty()));
            }
        }
        Brings::Nothing
    }

    /// The beginning of a long option that is spelled out behind a letter.
    pub(super) fn spelled<'a>(&self, option: &'a str) -> Option<&'a str> {
        option.strip_prefix('-')?.strip_prefix(self.spells?)
    }

    /// Whether an option makes it run what its arguments name.
    pub(super) fn opens(&self, option: &str) -> bool {
        self.opens_files && !option.starts_with("--") && option.contains(['n', 'p'])
    }
}
