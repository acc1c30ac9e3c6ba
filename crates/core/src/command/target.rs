//! Files that are written: a place whose files are run later is no place for what was sent.

/// Which arguments of a program name what it writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Writes {
    /// None.
    Nothing,
    /// All that are no options.
    Every,
    /// The last that is no option.
    Last,
    /// The first that is no option.
    First,
    /// Those that are no options, but for so many.
    From(usize),
    /// What a command such as `clone` writes: the last that is no option if another stands
    /// before it, and with other commands all.
    Behind(&'static [&'static str]),
    /// An archive that is created.
    Archive,
    /// Those that begin so.
    Named(&'static str),
}

/// Names of files and folders that something else runs or obeys, in small letters.
const OBEYED: &[&str] = &[
    "authorized_keys",
    "build.gradle",
    "build.rs",
    "cargo.toml",
    "cmakelists.txt",
    "conftest.py",
    "crontab",
    "docker-compose.yml",
    "dockerfile",
    "gemfile",
    "gnumakefile",
    "justfile",
    "makefile",
    "node_modules",
    "nodes",
    "package.json",
    "pom.xml",
    "pyproject.toml",
    "rakefile",
    "setup.cfg",
    "setup.py",
    "sitecustomize.py",
    "taskfile.yml",
    "tox.ini",
    "usercustomize.py",
    "vagrantfile",
    "workflow.json",
    "workflow.yaml",
    "workflow.yml",
];

/// Whether a path leads to a place that somebody else's data must not be written to, as far as
/// what was sent decides: outside the folder, or a file that is hidden, such as `.bashrc` and
/// `.git/hooks`, or obeyed, such as a makefile.
pub(super) fn is_denied(path: &str, lead: usize) -> bool {
    let (written, sent) = (path.get(..lead).unwrap_or_default(), path.get(lead..).unwrap_or(path));
    if written.is_empty() && sent.starts_with(['/', '~']) {
        return true;
    }
    // What is written out before the last `/` is the author's.
    let from = written.rfind('/').map_or(0, |at| at + 1);
    let parts = path.get(from..).unwrap_or(path).split('/');
    parts.into_iter().any(|part| {
        let is_hidden = part.starts_with('.') && part != ".";
        is_hidden || is_obeyed(part)
    })
}

/// Whether a file of this name is run or obeyed by something else.
pub(super) fn is_obeyed(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let ends = |ending: &&str| name.ends_with(*ending);
    OBEYED.contains(&name.as_str()) || ENDINGS.iter().any(ends) || name.contains(".so.")
}

/// What the names of files end in that other programs load or run: a module beside a script is
/// found before the one of the system.
const ENDINGS: [&str; 24] = [
    ".awk",
    ".bash",
    ".bat",
    ".cjs",
    ".class",
    ".cmd",
    ".dll",
    ".dylib",
    ".egg-link",
    ".jar",
    ".js",
    ".lua",
    ".mjs",
    ".mk",
    ".php",
    ".pl",
    ".pm",
    ".pth",
    ".py",
    ".pyc",
    ".rb",
    ".sh",
    ".so",
    ".tcl",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_is_written_below_the_folder_and_in_the_open() {
        assert!(OBEYED.is_sorted());
        for (path, lead) in [
            (".bashrc", 0),
            (".git/hooks/post-checkout", 0),
            ("a/../../x", 0),
            ("/etc/cron.d/x", 0),
            ("~/.profile", 0),
            ("out/.ssh/authorized_keys", 4),
            ("out/..", 4),
            (".bashrc", 1),
            ("Makefile", 0),
            ("nodes/own.sh", 0),
            ("./.envrc", 0),
            ("decimal.py", 0),
            ("json/__init__.py", 0),
            ("Strict.PM", 0),
            ("libc.so.6", 0),
            ("deploy.sh", 0),
            ("out/a.pth", 4),
        ] {
            assert!(is_denied(path, lead), "{path}");
        }
        for (path, lead) in [
            ("report.txt", 0),
            ("a/b.txt", 0),
            ("./a", 0),
            ("/var/log/own/a.log", 13),
            (".cache/own/a", 11),
            ("../out/a", 7),
            ("", 0),
        ] {
            assert!(!is_denied(path, lead), "{path}");
        }
    }
}
