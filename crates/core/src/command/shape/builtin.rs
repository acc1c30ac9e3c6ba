//! Commands of the shell itself, and the name of any other: which of them data is followed
//! through.

use super::word::{EXPANDED, ShapeWord};
use super::{RESERVED, Read, Shape, is_name, is_number};

/// Commands of a shell that run or keep what they are given, or show its variables.
const DENIED: &[(&str, &str)] = &[
    (".", "runs a file in this shell, with `.`"),
    ("alias", "defines an alias"),
    ("bind", "uses `bind`"),
    ("builtin", "uses `builtin`"),
    ("caller", "uses `caller`"),
    ("compgen", "uses `compgen`"),
    ("complete", "uses `complete`"),
    ("compopt", "uses `compopt`"),
    ("declare", "declares variables with `declare`"),
    ("enable", "uses `enable`"),
    ("eval", "runs a text with `eval`"),
    ("fc", "runs its history"),
    ("getopts", "reads options with `getopts`"),
    ("hash", "uses `hash`"),
    ("history", "uses its history"),
    ("jobs", "uses `jobs`"),
    ("let", "computes with `let`"),
    ("local", "declares variables with `local`"),
    ("mapfile", "reads into a list with `mapfile`"),
    ("popd", "changes folders with `popd`"),
    ("printenv", "shows its variables"),
    ("pushd", "changes folders with `pushd`"),
    ("readarray", "reads into a list with `readarray`"),
    ("source", "runs a file in this shell, with `source`"),
    ("trap", "runs a text with `trap`"),
    ("typeset", "declares variables with `typeset`"),
    ("unalias", "uses `unalias`"),
];

/// Variables that say what a shell runs or how it reads.
const DIRECTING: [&str; 12] = [
    "BASHOPTS",
    "BASH_ENV",
    "BASH_XTRACEFD",
    "CDPATH",
    "ENV",
    "EXECIGNORE",
    "GLOBIGNORE",
    "PATH",
    "PROMPT_COMMAND",
    "PS0",
    "PS4",
    "SHELLOPTS",
];

/// Operators of `[` that look at one text.
const UNARY: [&str; 16] = [
    "-b", "-c", "-d", "-e", "-f", "-g", "-h", "-k", "-L", "-n", "-p", "-r", "-s", "-w", "-x", "-z",
];

/// Operators of `[` that compare two.
const BINARY: [&str; 14] =
    ["=", "==", "!=", "<", ">", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef"];

impl Shape<'_> {
    /// Whether data is followed through a command with these words.
    pub(super) fn performed(&mut self, words: &[ShapeWord<'_>]) -> Read<()> {
        for word in words {
            self.usual_path(word)?;
        }
        let assigned = words.iter().take_while(|word| assigned(word).is_some()).count();
        for word in words.iter().take(assigned) {
            self.assigned(word)?;
        }
        let Some((first, given)) = words.get(assigned..).and_then(<[_]>::split_first) else {
            return Ok(());
        };
        let end = std::mem::replace(&mut self.at, first.at);
        self.named(first)?;
        if let Some((_, what)) = DENIED.iter().find(|(name, _)| *name == first.text) {
            return self.odd(what);
        }
        match first.text.as_str() {
            "[" => self.condition_of(given.split_last().map_or(given, |(_, given)| given)),
            "test" => self.condition_of(given),
            "command" if given.first().is_some_and(|word| matches!(word.raw, "-v" | "-V")) => {
                Ok(())
            }
            "command" => self.odd("uses `command`"),
            "env" if !given.iter().any(is_program) => self.odd("shows its variables"),
            "exec" if !given.first().is_some_and(is_program) => {
                self.odd("redirects itself with `exec`")
            }
            "export" | "readonly" => self.declared(given),
            "printf" => self.printed(given),
            "read" => self.read(given),
            "set" => self.options(given),
            "shopt" if given.iter().any(|word| word.text.contains("alias")) => {
                self.odd("defines an alias")
            }
            "shopt" if !given.iter().all(ShapeWord::is_literal) => {
                self.odd("sets options that are not written out")
            }
            "unset" if !given.iter().all(|word| is_name(word.raw) || is_option(word)) => {
                self.odd("unsets variables that are not written out")
            }
            _ => Ok(()),
        }?;
        self.at = end;
        Ok(())
    }

    /// The name of a command: written out, or at least the file behind its folder.
    fn named(&self, word: &ShapeWord<'_>) -> Read<()> {
        let is_reserved = RESERVED.contains(&word.text.as_str()) || word.text.starts_with('-');
        if is_reserved {
            return self.odd("quotes a word of the shell");
        }
        let folder = word.text.rsplit_once('/');
        let has_file = folder
            .is_some_and(|(_, file)| !file.is_empty() && !file.contains([EXPANDED, '*', '?', '[']));
        let is_known = word.is_literal() && !word.text.is_empty();
        match is_known || (has_file && !word.has_output && !word.is_spelled) {
            true => Ok(()),
            false => self.odd("runs a command whose name is not written out"),
        }
    }

    /// A path that leads to no descriptor, no program and no variables of a process.
    pub(super) fn usual_path(&mut self, word: &ShapeWord<'_>) -> Read<()> {
        let text = word.text.as_str();
        let is_process = |part: &str| {
            let name = part.split('/').next().unwrap_or_default();
            let is_plain = !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase());
            !is_plain || matches!(name, "self" | "thread-self")
        };
        let is_odd = text.ends_with("/proc")
            || text.split("/proc/").skip(1).any(is_process)
            || text.split("/dev/").skip(1).any(|part| {
                let is_input = part == "fd/0";
                (part.starts_with("fd") && !is_input)
                    || part.starts_with("tcp/")
                    || part.starts_with("udp/")
                    || part.starts_with(EXPANDED)
            });
        if is_odd {
            self.at = word.at;
            return self.odd("opens a file below `/proc` or `/dev`");
        }
        Ok(())
    }

    fn assigned(&mut self, word: &ShapeWord<'_>) -> Read<()> {
        let name = assigned(word).unwrap_or_default();
        if name.contains('[') {
            self.at = word.at;
            return self.odd("uses a list");
        }
        self.settable(name)
    }

    /// Whether a line may set a variable of this name.
    pub(super) fn settable(&self, name: &str) -> Read<()> {
        match DIRECTING.contains(&name) {
            true => self.odd("sets a variable that says what a shell runs"),
            false => Ok(()),
        }
    }

    fn declared(&self, given: &[ShapeWord<'_>]) -> Read<()> {
        for word in given {
            let name = assigned(word).unwrap_or(word.raw);
            self.settable(name)?;
            if !is_name(name) {
                return self.odd("declares variables that are not written out");
            }
        }
        match given.is_empty() {
            true => self.odd("shows its variables"),
            false => Ok(()),
        }
    }

    fn printed(&self, given: &[ShapeWord<'_>]) -> Read<()> {
        let given = given.strip_prefix_word("--");
        match given.first() {
            Some(format) if format.text.starts_with('-') => {
                self.odd("sets a variable with `printf`")
            }
            Some(format) if format.text.contains(EXPANDED) => {
                self.odd("prints with a format that is not written out")
            }
            _ => Ok(()),
        }
    }

    /// `read` with names of variables that are written out.
    fn read(&self, given: &[ShapeWord<'_>]) -> Read<()> {
        let mut is_value = false;
        for word in given {
            let was_value = std::mem::take(&mut is_value);
            if is_option(word) {
                let letters = word.raw.trim_start_matches('-');
                if letters.contains(['a', 'u', 'e', 'i']) {
                    return self.odd("reads into a list, or from elsewhere");
                }
                is_value = letters.ends_with(['d', 'n', 'N', 'p', 't']);
            } else if !was_value {
                self.settable(word.raw)?;
                if !is_name(word.raw) {
                    return self.odd("reads into a variable that is not written out");
                }
            }
        }
        Ok(())
    }

    /// `set` with options alone.
    fn options(&self, given: &[ShapeWord<'_>]) -> Read<()> {
        let is_usual = |word: &ShapeWord<'_>| {
            let is_flag = word.raw.starts_with(['-', '+']) && word.raw.len() > 1;
            word.is_literal() && word.raw != "--" && (is_flag || is_option_name(word.raw))
        };
        match given.first() {
            Some(first) if is_option(first) || first.raw.starts_with('+') => {}
            Some(_) => return self.odd("sets its arguments with `set`"),
            None => return self.odd("shows its variables"),
        }
        match given.iter().all(is_usual) {
            true => Ok(()),
            false => self.odd("sets its arguments with `set`"),
        }
    }

    /// What `[` and `test` look at. Only what is quoted stays one word, and no operator.
    fn condition_of(&self, given: &[ShapeWord<'_>]) -> Read<()> {
        let is_one = |word: &ShapeWord<'_>| !word.text.contains(EXPANDED) || !word.splits;
        let given = given.strip_prefix_word("!");
        if !given.iter().all(is_one) {
            return self.odd("tests something that is not quoted");
        }
        let is_known = match given {
            [] | [_] => true,
            [operator, _] => UNARY.contains(&operator.text.as_str()) && operator.is_literal(),
            [_, operator, _] => BINARY.contains(&operator.text.as_str()),
            _ => false,
        };
        match is_known {
            true => Ok(()),
            false => self.odd("tests more than two texts or a file"),
        }
    }
}

/// The name of the variable that a word sets, with its subscript if it has one.
fn assigned<'w>(word: &ShapeWord<'w>) -> Option<&'w str> {
    let (name, _) = word.raw.split_once('=')?;
    let name = name.strip_suffix('+').unwrap_or(name);
    let plain = name.split_once('[').map_or(name, |(plain, _)| plain);
    is_name(plain).then_some(name)
}

/// Whether a word names a program, behind options and variables.
fn is_program(word: &ShapeWord<'_>) -> bool {
    assigned(word).is_none() && !word.text.starts_with('-')
}

fn is_option(word: &ShapeWord<'_>) -> bool {
    word.raw.starts_with('-') && word.raw.len() > 1 && word.is_literal()
}

fn is_option_name(text: &str) -> bool {
    !is_number(text) && ["errexit", "nounset", "pipefail", "xtrace", "noglob"].contains(&text)
}

/// Words without the one in front, if it is this.
trait StripWord {
    fn strip_prefix_word(&self, word: &str) -> &Self;
}

impl StripWord for [ShapeWord<'_>] {
    fn strip_prefix_word(&self, word: &str) -> &Self {
        match self.split_first() {
            Some((first, rest)) if first.raw == word => rest,
            _ => self,
        }
    }
}
