//! Programs that make something else of their arguments: programs, options, other commands.

/// What a program does with its arguments.
#[derive(Clone, Copy)]
pub(super) enum Program {
    /// They are data to it, as far as is known here.
    Plain,
    /// It runs a script, or a text that is handed to it.
    Runs(&'static Interpreter),
    /// It runs the command that follows its own options.
    Wraps(&'static Wrapper),
    /// It makes one program text of all of them.
    Joins,
    /// `find`, which runs the command behind `-exec`.
    Finds,
}

/// A program that runs programs of its own language.
pub(super) struct Interpreter {
    names: &'static [&'static str],
    /// The letters of the options that a program text follows.
    text: &'static str,
    /// The long names of those options.
    texts: &'static [&'static str],
    /// The letters of the options that another value follows.
    valued: &'static str,
    /// The long names of those options.
    values: &'static [&'static str],
    /// The letters of the options that take the rest of their argument, if any.
    attached: &'static str,
    /// The letters of the options that the script's path follows.
    script: &'static str,
    /// What the first argument is that is no option.
    pub(super) first: First,
    /// What becomes of the arguments behind a program text.
    pub(super) rest: Rest,
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

/// A program that runs another.
pub(super) struct Wrapper {
    name: &'static str,
    /// The letters of its options that a value follows.
    valued: &'static str,
    /// The long names of those options.
    values: &'static [&'static str],
    /// How many arguments of its own stand before the command.
    pub(super) own: usize,
}

const SCRIPT: Interpreter = Interpreter {
    names: &[],
    text: "e",
    texts: &["eval", "print", "command", "execute"],
    valued: "",
    values: &[],
    attached: "",
    script: "",
    first: First::Script,
    rest: Rest::Options,
};

/// What a program is held for whose name a run brings: options of all kinds count.
pub(super) const UNKNOWN: Interpreter = Interpreter { text: "cCeEnprR", ..SCRIPT };

const INTERPRETERS: [Interpreter; 18] = [
    Interpreter {
        names: &[
            "ash", "bash", "csh", "dash", "elvish", "fish", "ksh", "mksh", "nu", "rbash", "sh",
            "tcsh", "xonsh", "yash", "zsh",
        ],
        text: "cC",
        texts: &["command", "commands", "init-command"],
        valued: "oO",
        values: &["rcfile", "init-file"],
        rest: Rest::Data,
        ..SCRIPT
    },
    Interpreter {
        names: &["ipython", "jython", "micropython", "pypy", "python"],
        text: "c",
        valued: "QWX",
        values: &["check-hash-based-pycs"],
        rest: Rest::Data,
        ..SCRIPT
    },
    Interpreter {
        names: &["perl", "raku"],
        text: "eE",
        valued: "I",
        attached: "0CDFMVdilmx",
        ..SCRIPT
    },
    Interpreter {
        names: &["irb", "jruby", "ruby"],
        valued: "CEIXr",
        attached: "0FKTWix",
        ..SCRIPT
    },
    Interpreter {
        names: &["bun", "deno", "electron", "node", "nodejs", "ts-node", "tsx"],
        text: "ep",
        valued: "Cr",
        values: &[
            "conditions",
            "config",
            "env-file",
            "experimental-loader",
            "import",
            "import-map",
            "input-type",
            "loader",
            "require",
            "title",
        ],
        ..SCRIPT
    },
    Interpreter { names: &["php"], text: "BERr", valued: "SZcdtz", script: "Ff", ..SCRIPT },
    Interpreter { names: &["lua", "luajit", "texlua"], valued: "l", ..SCRIPT },
    Interpreter { names: &["expect", "tclsh", "wish"], text: "c", script: "f", ..SCRIPT },
    Interpreter { names: &["r", "rscript"], valued: "g", script: "f", ..SCRIPT },
    Interpreter { names: &["julia"], text: "eE", valued: "CHLpt", ..SCRIPT },
    Interpreter { names: &["osascript"], valued: "ls", ..SCRIPT },
    Interpreter {
        names: &[
            "clj", "clojure", "elixir", "erl", "groovy", "guile", "iex", "jshell", "racket",
            "sbcl", "scala",
        ],
        text: "cepr",
        ..SCRIPT
    },
    Interpreter {
        names: &["emacs", "ex", "gdb", "lldb", "nvim", "vi", "vim"],
        text: "ce",
        texts: &["cmd", "eval", "eval-command", "ex", "one-line"],
        ..SCRIPT
    },
    Interpreter { names: &["psql"], text: "c", first: First::Data, rest: Rest::Data, ..SCRIPT },
    Interpreter { names: &["mariadb", "mysql"], first: First::Data, rest: Rest::Data, ..SCRIPT },
    Interpreter {
        names: &["awk", "gawk", "mawk", "nawk", "original-awk"],
        texts: &["source"],
        valued: "Fiv",
        values: &["assign", "field-separator", "include"],
        script: "f",
        first: First::Text,
        rest: Rest::Data,
        ..SCRIPT
    },
    Interpreter {
        names: &["sed", "gsed"],
        texts: &["expression"],
        valued: "l",
        values: &["line-length"],
        attached: "i",
        script: "f",
        first: First::Text,
        rest: Rest::OptionsAnywhere,
        ..SCRIPT
    },
    Interpreter {
        names: &["gojq", "jaq", "jq", "yq"],
        text: "",
        texts: &[],
        valued: "L",
        values: &["indent"],
        script: "f",
        first: First::Text,
        rest: Rest::Data,
        ..SCRIPT
    },
];

const fn wrapper(
    name: &'static str,
    valued: &'static str,
    values: &'static [&'static str],
    own: usize,
) -> Wrapper {
    Wrapper { name, valued, values, own }
}

const WRAPPERS: [Wrapper; 34] = [
    wrapper("busybox", "", &[], 0),
    wrapper("chroot", "", &["groups", "userspec"], 1),
    wrapper("chrt", "DPT", &[], 1),
    wrapper("command", "", &[], 0),
    wrapper("dbus-run-session", "", &[], 0),
    wrapper("doas", "Cu", &[], 0),
    wrapper("dumb-init", "", &[], 0),
    wrapper("env", "Cu", &["chdir", "unset"], 0),
    wrapper("exec", "a", &[], 0),
    wrapper("fakeroot", "bfils", &[], 0),
    wrapper("flock", "Ew", &["conflict-exit-code", "timeout", "wait"], 1),
    wrapper("gosu", "", &[], 1),
    wrapper("ionice", "cn", &["class", "classdata"], 0),
    wrapper("ltrace", "Denopsu", &[], 0),
    wrapper("nice", "n", &["adjustment"], 0),
    wrapper("nohup", "", &[], 0),
    wrapper("npx", "p", &["package"], 0),
    wrapper("nsenter", "GSt", &["setgid", "setuid", "target"], 0),
    wrapper("proxychains", "f", &[], 0),
    wrapper("setarch", "", &[], 1),
    wrapper("setsid", "", &[], 0),
    wrapper("stdbuf", "eio", &["error", "input", "output"], 0),
    wrapper("strace", "EIOPSUXabeopsu", &[], 0),
    wrapper("su-exec", "", &[], 1),
    wrapper(
        "sudo",
        "CDRTUghprtu",
        &[
            "chdir",
            "chroot",
            "close-from",
            "command-timeout",
            "group",
            "host",
            "other-user",
            "prompt",
            "role",
            "type",
            "user",
        ],
        0,
    ),
    wrapper(
        "systemd-run",
        "EHMpu",
        &[
            "description",
            "gid",
            "host",
            "machine",
            "nice",
            "property",
            "setenv",
            "slice",
            "uid",
            "unit",
            "working-directory",
        ],
        0,
    ),
    wrapper("taskset", "", &[], 1),
    wrapper("time", "fo", &["format", "output"], 0),
    wrapper("timeout", "ks", &["kill-after", "signal"], 1),
    wrapper("tini", "egp", &[], 0),
    wrapper("toybox", "", &[], 0),
    wrapper("unbuffer", "", &[], 0),
    wrapper("unshare", "GRSw", &["root", "setgid", "setuid", "wd"], 0),
    wrapper(
        "xargs",
        "EILPadns",
        &["arg-file", "delimiter", "max-args", "max-chars", "max-lines", "max-procs"],
        0,
    ),
];

/// Programs that make one text of their arguments and hand it to a shell or a database.
const JOINING: [&str; 16] = [
    "cmd",
    "duckdb",
    "eval",
    "mosh",
    "parallel",
    "powershell",
    "pwsh",
    "rsh",
    "runuser",
    "script",
    "sg",
    "sqlite",
    "ssh",
    "su",
    "sudoedit",
    "watch",
];

/// The program with this name, whatever its folder and its version.
pub(super) fn program(name: &str) -> Program {
    let stem = stem(name);
    let stem = stem.as_str();
    if stem == "find" {
        return Program::Finds;
    }
    if JOINING.contains(&stem) {
        return Program::Joins;
    }
    if let Some(found) = INTERPRETERS.iter().find(|known| known.names.contains(&stem)) {
        return Program::Runs(found);
    }
    WRAPPERS.iter().find(|known| known.name == stem).map_or(Program::Plain, Program::Wraps)
}

/// Whether a program that joins its arguments takes a script behind `-File` too.
pub(super) fn has_scripts(name: &str) -> bool {
    matches!(stem(name).as_str(), "powershell" | "pwsh")
}

/// The name of a program without its folder and its version: `python` of
/// `/usr/bin/python3.12`.
fn stem(name: &str) -> String {
    let file = name.rsplit(['/', '\\']).next().unwrap_or_default().to_ascii_lowercase();
    let file = file.strip_suffix(".exe").unwrap_or(&file);
    file.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-').to_owned()
}

/// What an option of an interpreter brings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Brings {
    /// Nothing more.
    Nothing,
    /// A program text: behind a `=` or its letter, or as the next argument.
    Text(Where),
    /// The first argument that is no option is a program text, behind so many values.
    TextLater(usize),
    /// The path of a script.
    Script(Where),
    /// So many values, as the next arguments.
    Values(usize),
    /// The program is read from the input, and what follows is data.
    Input,
}

/// Where what an option brings stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Where {
    /// In the same argument.
    Here,
    /// In the next.
    Next,
}

/// Options of which a name and a value follow.
const PAIRS: [&str; 4] = ["arg", "argjson", "rawfile", "slurpfile"];

impl Interpreter {
    /// What an option brings, as far as it is written out.
    pub(super) fn option(&self, written: &str) -> Brings {
        let (name, place) = match written.split_once('=') {
            Some((name, _)) => (name, Where::Here),
            None => (written, Where::Next),
        };
        let long = name.trim_start_matches('-');
        let known = |names: &[&str]| {
            long.len() > 1 && names.iter().any(|name| name.eq_ignore_ascii_case(long))
        };
        match place {
            _ if known(self.texts) => Brings::Text(place),
            _ if !self.script.is_empty() && known(&["file", "from-file"]) => Brings::Script(place),
            Where::Next if known(self.values) => Brings::Values(1),
            Where::Next if self.first == First::Text && known(&PAIRS) => Brings::Values(2),
            _ if name.starts_with("--") => Brings::Nothing,
            _ => self.cluster(written.get(1..).unwrap_or_default()),
        }
    }

    /// What several letters behind one hyphen bring.
    fn cluster(&self, letters: &str) -> Brings {
        if self.is_shell() {
            let values = letters.matches(|c| self.valued.contains(c)).count();
            return match letters.contains(|c| self.text.contains(c)) {
                true => Brings::TextLater(values),
                false if letters.contains('s') => Brings::Input,
                false => Brings::Values(values),
            };
        }
        for (place, letter) in letters.char_indices() {
            let rest = letters.get(place + letter.len_utf8()..).unwrap_or_default();
            let place = if rest.is_empty() { Where::Next } else { Where::Here };
            if self.attached.contains(letter) {
                break;
            }
            if self.text.contains(letter) {
                // Letters such as those of `-pe` stand for options, and are no text.
                let more = rest.chars().all(|letter| self.text.contains(letter));
                return Brings::Text(if more { Where::Next } else { Where::Here });
            }
            if self.script.contains(letter) {
                return Brings::Script(place);
            }
            if self.valued.contains(letter) {
                return Brings::Values(usize::from(rest.is_empty()));
            }
        }
        Brings::Nothing
    }

    /// Whether it is a shell, whose `-c` says what the first argument is.
    pub(super) fn is_shell(&self) -> bool {
        self.names.contains(&"sh")
    }

    /// Whether it runs what its arguments name: with `-n` and `-p`, Perl and Ruby take a file
    /// name that ends in `|` for a command.
    pub(super) fn opens(&self, option: &str) -> bool {
        let reads = self.names.contains(&"perl") || self.names.contains(&"ruby");
        reads && !option.starts_with("--") && option.contains(['n', 'p'])
    }

    /// Whether its first argument can be a command such as `run`.
    pub(super) fn has_commands(&self) -> bool {
        self.names.contains(&"deno")
    }
}

impl Wrapper {
    /// How many of the next arguments belong to an option.
    pub(super) fn values(&self, option: &str) -> usize {
        if let Some(long) = option.strip_prefix("--") {
            return usize::from(self.values.contains(&long));
        }
        let letters = option.trim_start_matches('-');
        let valued = letters.find(|letter| self.valued.contains(letter));
        usize::from(valued.is_some_and(|place| place + 1 == letters.len()))
    }

    /// Whether a command line follows an option, or is a part of it.
    pub(super) fn is_line(&self, option: &str) -> bool {
        let begins = |names: &[&str]| names.iter().any(|name| option.starts_with(name));
        match self.name {
            "env" => begins(&["-S", "-iS", "-vS", "--split-string"]),
            "flock" | "npx" => begins(&["-c", "--call", "--command"]),
            _ => false,
        }
    }

    /// Whether variables of the environment may stand before the command.
    pub(super) fn sets_variables(&self) -> bool {
        matches!(self.name, "doas" | "env" | "sudo")
    }

    /// Whether an option puts what is read into the arguments of the command.
    pub(super) fn fills_in(&self, option: &str) -> bool {
        let begins = ["-I", "-i", "--replace"].iter().any(|name| option.starts_with(name));
        self.name == "xargs" && begins
    }
}
