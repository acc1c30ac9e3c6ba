//! The arguments of a command that is about to start: what was sent is data, and no program.
//!
//! The rules are those of [`cairn_core::command`]. What only this machine can say is found out
//! here: which program a name stands for, through links and whatever it is called.

use std::ffi::OsString;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use cairn_core::command::{self, Input, Programs, Rule, Sent, Why, interpreter_of, shells};
use cairn_engine::performer::{Ctx, Failed};

/// How many links are followed from a program's name to its file.
const LINKS_MAX: usize = 40;

/// The file in which a system lists its shells.
const SHELLS: &str = "/etc/shells";

/// What is known of the words of a command.
pub(crate) struct Given<'a> {
    /// Whose they are.
    pub(crate) ctx: &'a Ctx,
    /// What of them was sent.
    pub(crate) sent: &'a Sent,
    /// Where the list of arguments begins among the words.
    pub(crate) from: usize,
    /// Whether the workflow's author vouches for them.
    pub(crate) trusts: bool,
}

/// Refuses a command in which something that was sent would be an option or a program.
pub(crate) fn check(
    command: &[String],
    given: &Given<'_>,
    variables: &[(String, OsString)],
    folder: &Path,
) -> Result<(), Failed> {
    if given.sent.is_empty() {
        return Ok(());
    }
    let path = variables.iter().rev().find(|(name, _)| name == "PATH").map(|(_, path)| path);
    let folders: Vec<PathBuf> =
        path.map(|path| std::env::split_paths(path).collect()).unwrap_or_default();
    let words = given.sent.words(command, given.from);
    let reading = command::read(&words, &Found { path: &folders, folder });
    if let Some((at, why)) = reading.refused(&words, given.trusts).next() {
        return Err(refused(at, why, given));
    }
    let unfollowed = reading.unfollowed.filter(|_| given.sent.stdin && !given.trusts);
    if let Some(unfollowed) = unfollowed {
        return Err(unstarted(
            given,
            &format!(
                "the line {} (`{}`), and `stdin`, which was sent by somebody, cannot be followed \
                 through it; put the line into a script file of the workflow, use the list form, \
                 or say `trusts_arguments: true`",
                unfollowed.what, unfollowed.near
            ),
        ));
    }
    match reading.input {
        Input::Program if given.sent.stdin => Err(unread("a program from its input", given)),
        Input::Arguments if given.sent.stdin && !given.trusts => {
            Err(unread("arguments from its input", given))
        }
        _ => Ok(()),
    }
}

fn refused(at: usize, why: Why, given: &Given<'_>) -> Failed {
    let place = (at + 1).saturating_sub(given.from);
    let list = if given.from > 0 { "args" } else { "command" };
    let advice = match why.rule.is_program() {
        _ if why.rule == Rule::Unfollowed => {
            "put the line into a script file of the workflow and pass the value as an argument, \
             use the list form, or say `trusts_arguments: true`"
        }
        true => "write it out, or pass it through `one_of(…)`, `slug` or `int`",
        false => {
            "put `--` before it where the program honours that, hand the value over in `env` or \
             `stdin`, pass it through `one_of(…)`, `slug` or `int`, or say \
             `trusts_arguments: true`"
        }
    };
    unstarted(
        given,
        &format!("item {place} of `{list}` was sent by somebody, and cannot {why}; {advice}"),
    )
}

fn unread(what: &str, given: &Given<'_>) -> Failed {
    unstarted(
        given,
        &format!(
            "the command reads {what}, and `stdin` was sent by somebody; hand the value over in \
             `env`, or in `stdin` of a program that reads data"
        ),
    )
}

fn unstarted(given: &Given<'_>, why: &str) -> Failed {
    let step = given.ctx.trace.as_ref().map(|step| format!("of `{}` ", step.instance.step));
    let step = step.unwrap_or_default();
    Failed::new("SHELL_ARGUMENT", format!("nothing {step}was started: {why}"))
}

/// The programs of this machine, as a command that starts in a folder finds them.
struct Found<'a> {
    path: &'a [PathBuf],
    folder: &'a Path,
}

impl Programs for Found<'_> {
    fn names(&self, name: &str) -> Vec<String> {
        names(name, self.path, self.folder)
    }

    fn script(&self, name: &str) -> Option<Vec<String>> {
        let file = find(name, self.path, self.folder)?;
        let mut line = [0; 256];
        // What is no regular file is not started, and is not waited for.
        let read = file.is_file().then(|| std::fs::File::open(&file).ok()).flatten();
        let length = read.and_then(|mut file| file.read(&mut line).ok())?;
        interpreter_of(line.get(..length)?)
    }
}

/// The names that a program goes by: what is written, and every file that leads to it.
fn names(name: &str, path: &[PathBuf], folder: &Path) -> Vec<String> {
    let mut names = vec![name.to_owned()];
    let Some(mut file) = find(name, path, folder) else { return names };
    for _ in 0..LINKS_MAX {
        let Ok(target) = std::fs::read_link(&file) else { break };
        file = file.parent().map_or_else(|| target.clone(), |folder| folder.join(&target));
        names.push(file.to_string_lossy().into_owned());
    }
    // A link of a folder on the way leads on too.
    if let Ok(whole) = file.canonicalize() {
        names.push(whole.to_string_lossy().into_owned());
        names.extend(twins(&whole, path));
    }
    // One that nobody knows may be a shell all the same: whoever installed it says so.
    if !names.iter().any(|name| command::is_known(name))
        && std::fs::read_to_string(SHELLS).is_ok_and(|listed| is_listed(&listed, &file))
    {
        names.push("sh".to_owned());
    }
    // Programs that are many in one go by the name they were called.
    let is_many = |name: &String| command::is_many(name);
    if !is_many(&name.to_owned()) {
        names.retain(|name| !is_many(name));
    }
    names
}

/// Whether a file is one of the programs in a list of shells, by whatever name.
fn is_listed(listed: &str, file: &Path) -> bool {
    let Ok(file) = file.canonicalize() else { return false };
    let shells = listed.lines().map(str::trim).filter(|line| line.starts_with('/'));
    shells.filter_map(|shell| Path::new(shell).canonicalize().ok()).any(|shell| shell == file)
}

/// Where a program is, as whoever starts it finds it.
fn find(name: &str, path: &[PathBuf], folder: &Path) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(folder.join(name));
    }
    let places = path.iter().map(|place| folder.join(place).join(name));
    places.filter(|file| file.is_file()).find(|file| file.metadata().is_ok())
}

/// The shells and interpreters that are the same file under another name.
fn twins(file: &Path, path: &[PathBuf]) -> Vec<String> {
    let same = |one: &std::fs::Metadata, other: &std::fs::Metadata| {
        (one.dev(), one.ino()) == (other.dev(), other.ino())
    };
    let Ok(found) = file.metadata() else { return Vec::new() };
    if found.nlink() < 2 {
        return Vec::new();
    }
    let is_same = |name: &&str| {
        path.iter()
            .any(|folder| folder.join(name).metadata().is_ok_and(|other| same(&found, &other)))
    };
    shells().filter(is_same).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_has_the_names_of_all_that_leads_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        std::fs::write(place("sh"), "").unwrap();
        std::fs::hard_link(place("sh"), place("twin")).unwrap();
        std::os::unix::fs::symlink("twin", place("link")).unwrap();
        std::fs::write(place("busybox"), "").unwrap();
        std::os::unix::fs::symlink("busybox", place("ls")).unwrap();
        let path = [folder.path().to_owned()];
        let ends = |name: &str, wanted: &str| {
            let names = names(name, &path, folder.path());
            names.iter().any(|name| name == wanted || name.ends_with(&format!("/{wanted}")))
        };
        assert!(ends("link", "twin") && ends("link", "sh") && ends("./twin", "sh"));
        assert!(!ends("ls", "busybox"), "it is `ls`");
        assert!(ends("busybox", "busybox"));
        assert_eq!(names("none", &path, folder.path()), ["none"]);
    }

    #[test]
    fn a_program_that_the_system_lists_as_a_shell_is_one() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        std::fs::write(place("newish"), "").unwrap();
        std::os::unix::fs::symlink("newish", place("link")).unwrap();
        let listed = format!("# shells\n/bin/none\n  {}\n", place("link").display());
        assert!(is_listed(&listed, &place("newish")) && is_listed(&listed, &place("link")));
        std::fs::write(place("other"), "").unwrap();
        assert!(!is_listed(&listed, &place("other")) && !is_listed(&listed, &place("none")));
    }

    #[test]
    fn links_that_lead_in_a_circle_end() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        std::os::unix::fs::symlink("b", place("a")).unwrap();
        std::os::unix::fs::symlink("a", place("b")).unwrap();
        assert!(names("./a", &[], folder.path()).len() <= LINKS_MAX + 1);
    }
}
