//! The programs that make something else of their arguments or their input: one row for each
//! group that does so in the same way.

mod elsewhere;
mod interpreters;
mod plain;
mod runners;
mod scripts;
mod seldom;
mod tools;
mod wrappers;
mod writers;

use std::collections::HashMap;
use std::sync::LazyLock;

use super::interpreter::Interpreter;
use super::tool::{TOOL, Tool};
use super::wrapper::{WRAPPER, Wrapper};
use elsewhere::ELSEWHERE;
use interpreters::INTERPRETERS;
use plain::PLAIN;
use runners::RUNNERS;
use scripts::SCRIPTS;
use seldom::SELDOM;
use tools::TOOLS;
use wrappers::{JOINERS, WRAPPERS};
use writers::WRITERS;

/// Programs that read their arguments in the same way.
pub(super) struct Row {
    pub(super) names: &'static [&'static str],
    pub(super) kind: Kind,
    /// What nothing that was sent may begin with, in small letters.
    pub(super) begins: &'static [&'static str],
    /// What nothing that was sent may hold, in small letters.
    pub(super) holds: &'static [&'static str],
}

/// What a program does with its arguments.
pub(super) enum Kind {
    /// It runs a script, or a text that is handed to it.
    Runs(Interpreter),
    /// It runs the command that follows its own options.
    Wraps(Wrapper),
    /// It makes one program text of all of them.
    Joins(Joiner),
    /// `find`, which runs the command behind `-exec`.
    Finds,
    /// They are data to it, but for some.
    Takes(Tool),
}

/// A program that makes one text of its arguments and hands it to a shell or a database.
pub(super) struct Joiner {
    /// The letters of its options that a value follows.
    pub(super) valued: &'static str,
    /// How many arguments of its own stand before the text. With no more, it reads the text.
    pub(super) own: usize,
    /// Whether programs are read from its input, whatever its arguments.
    pub(super) reads: bool,
    /// Whether it takes a script behind `-File` too.
    pub(super) has_scripts: bool,
    /// Whether a shell of this machine reads the text.
    pub(super) is_shell: bool,
}

const JOINER: Joiner =
    Joiner { valued: "", own: 0, reads: false, has_scripts: false, is_shell: false };

impl Row {
    /// What the programs are called.
    pub(super) fn name(&self) -> &'static str {
        self.names.first().copied().unwrap_or_default()
    }
}

type Names = &'static [&'static str];

const fn row(names: Names, kind: Kind) -> Row {
    Row { names, kind, begins: &[], holds: &[] }
}

const fn runs(names: Names, kind: Interpreter) -> Row {
    row(names, Kind::Runs(kind))
}

const fn wraps(names: Names, valued: &'static str, values: Names, own: usize) -> Row {
    row(names, Kind::Wraps(Wrapper { valued, values, own, ..WRAPPER }))
}

const fn takes(names: Names, programs: Names) -> Row {
    row(names, Kind::Takes(Tool { programs, ..TOOL }))
}

/// A program whose arguments are data, and whose options `--` ends. A value follows some.
const fn plain(names: Names, valued: &'static str, values: Names) -> Row {
    row(names, Kind::Takes(Tool { valued, values, ..TOOL }))
}

fn rows() -> impl Iterator<Item = &'static Row> {
    [INTERPRETERS, WRAPPERS, JOINERS, TOOLS, ELSEWHERE, RUNNERS, SCRIPTS, SELDOM, WRITERS, PLAIN]
        .into_iter()
        .flatten()
}

/// The rows by the names of their programs: a long line asks for many.
static ROWS: LazyLock<HashMap<&'static str, &'static Row>> = LazyLock::new(|| {
    let named = |row: &'static Row| row.names.iter().map(move |name| (*name, row));
    rows().flat_map(named).collect()
});

/// The program with this name, whatever its folder, its version and the machine it builds for.
pub(super) fn program(name: &str) -> Option<&'static Row> {
    let file = file(name);
    let file = built_for(&file);
    let named = |name: &str| ROWS.get(name).copied();
    named(file).or_else(|| named(family(file).unwrap_or_else(|| stem(file))))
}

/// Whether there is a row for the program with this name.
#[must_use]
pub fn is_known(name: &str) -> bool {
    program(name).is_some()
}

/// The name of a tool without the machine that it builds for: `gcc-12` of
/// `x86_64-linux-gnu-gcc-12`.
fn built_for(file: &str) -> &str {
    const MACHINES: [&str; 7] = [
        "-linux-gnu-",
        "-linux-gnueabi-",
        "-linux-gnueabihf-",
        "-linux-gnux32-",
        "-linux-musl-",
        "-none-eabi-",
        "-w64-mingw32-",
    ];
    let tool = MACHINES.iter().find_map(|machine| file.split_once(machine));
    tool.map_or(file, |(_, tool)| tool)
}

/// What a row calls the program with this name.
pub(super) fn called(row: &'static Row, name: &str) -> &'static str {
    let file = file(name);
    let own = |known: &&str| **known == *file || **known == *stem(&file);
    row.names.iter().copied().find(own).unwrap_or_else(|| row.name())
}

/// What programs are called that have the beginning of their names in common.
fn family(file: &str) -> Option<&str> {
    const FAMILIES: [&str; 7] = ["ansible", "cargo", "jupyter", "lxc", "qemu", "s6", "salt"];
    const BEGINNINGS: [(&str, &str); 2] = [("gnuplot", "gnuplot"), ("perl5", "perl")];
    if file.starts_with("ld") && file.contains(".so") {
        return Some("ld.so");
    }
    if let Some((_, known)) = BEGINNINGS.iter().find(|(begins, _)| file.starts_with(begins)) {
        return Some(known);
    }
    // Debian calls the programs of ImageMagick `convert-im6.q16` and the like.
    if let Some((first, _)) = file.split_once("-im6").or_else(|| file.split_once("-im7")) {
        return Some(first);
    }
    let (first, _) = file.split_once('-')?;
    FAMILIES.into_iter().find(|family| *family == first)
}

/// The names of programs that run programs of their own language.
pub fn shells() -> impl Iterator<Item = &'static str> {
    INTERPRETERS.iter().flat_map(|row| row.names).copied()
}

/// Whether a program is many in one, and goes by the name that it is called.
#[must_use]
pub fn is_many(name: &str) -> bool {
    program(name).is_some_and(|row| row.name() == "busybox")
}

/// Whether the programs of a row expand the variables of their environment as program text.
pub(super) fn expands(row: &Row) -> bool {
    row.name() == "make"
}

/// The name of a program's file, in small letters.
fn file(name: &str) -> String {
    let file = name.rsplit(['/', '\\']).next().unwrap_or_default().to_ascii_lowercase();
    file.strip_suffix(".exe").map(str::to_owned).unwrap_or(file)
}

/// The name of a program without its version and its build: `python` of `python3.12`, `vim` of
/// `vim.basic`.
fn stem(file: &str) -> &str {
    const BUILDS: [&str; 22] = [
        "-athena",
        "-debug",
        "-dbg",
        "-gtk",
        "-nox",
        "-static",
        ".athena",
        ".basic",
        ".distrib",
        ".gtk",
        ".gtk3",
        ".hydra",
        ".lam",
        ".motif",
        ".mpich",
        ".nox",
        ".openbsd",
        ".openmpi",
        ".real",
        ".static",
        ".tiny",
        ".traditional",
    ];
    let build = BUILDS.iter().find_map(|build| file.strip_suffix(build));
    build
        .unwrap_or(file)
        .trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-' || c == '_')
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_program_is_in_one_row() {
        let mut seen = BTreeSet::new();
        for name in rows().flat_map(|row| row.names) {
            assert!(seen.insert(*name), "{name}");
            assert!(program(name).is_some_and(|row| row.names.contains(name)), "{name}");
        }
    }

    #[test]
    fn a_program_is_known_whatever_its_folder_and_version() {
        for (name, known) in [
            ("/usr/local/bin/bash5.2", "sh"),
            ("BASH.exe", "sh"),
            ("python3.12", "python"),
            ("/usr/bin/vim.basic", "vim"),
            ("/lib64/ld-linux-x86-64.so.2", "ld.so"),
            ("/lib/ld-musl-x86_64.so.1", "ld.so"),
            ("m4", "m4"),
            ("gcc-12", "gcc"),
            ("g++-12", "gcc"),
            ("busybox.static", "busybox"),
            ("qemu-x86_64", "ansible"),
            ("s6-setuidgid", "asdf"),
            ("r2", "irb"),
            ("/lib64/ld64.so.2", "ld.so"),
            ("/usr/bin/x86_64-linux-gnu-gcc-12", "gcc"),
            ("perl5.36-x86_64-linux-gnu", "perl"),
            ("convert-im6.q16", "convert"),
            ("gnuplot5-qt", "ansible"),
            ("mpirun.openmpi", "asdf"),
            ("cargo-nextest", "npm"),
        ] {
            assert_eq!(program(name).map(Row::name), Some(known), "{name}");
        }
        for other in [
            "nodes/notify",
            "./publish",
            "nodes/check.py",
            "send-mail",
            "nodes/make.sh",
            "./bash.sh",
            "mytool",
            "",
            "/",
            "ld",
            "find.py",
        ] {
            let known = program(other).map(Row::name);
            assert!(known.is_none() || other == "ld", "{other}: {known:?}");
        }
    }
}
