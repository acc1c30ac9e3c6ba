//! A clean place to run the binary in, and what came of it.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use insta::internals::SettingsBindDropGuard;
use rustix::pty::{OpenptFlags, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use tempfile::TempDir;

/// The session that most tests work on.
pub(crate) const SESSION: &str = "sess_01hf7yat000000000000000007";
/// One that is not there.
pub(crate) const NO_SESSION: &str = "sess_01hf7yat000000000000000008";

/// A home of its own. While it is there, snapshots hide what differs from run to run.
pub(crate) struct TestEnv {
    folder: TempDir,
    _settings: SettingsBindDropGuard,
}

/// What a command answered.
pub(crate) struct Outcome {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) code: i32,
}

impl TestEnv {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        // What somebody names has to be there for commands that only read.
        fs::DirBuilder::new().mode(0o700).create(folder.path().join("home")).unwrap();
        let mut settings = insta::Settings::clone_current();
        settings.add_filter(folder.path().to_str().unwrap(), "[tmp]");
        settings.add_filter(r"(sess|bundle)_01[j-z][0-9a-z]{23}", "${1}_[fresh]");
        settings.add_filter(r"(just now|\d+ (s|min|h|d) ago)", "[ago]");
        settings.add_filter(r"\d+(\.\d)? (B|KiB|MiB|GiB|TiB)\b", "[size]");
        settings.add_filter(r#""bytes":\d+"#, r#""bytes":"[size]""#);
        settings.add_filter(r"cairn_adm_[0-9a-z]{52}", "cairn_adm_[secret]");
        settings.add_filter(r"127\.0\.0\.1:\d{5}", "127.0.0.1:[port]");
        settings.add_filter(r"@[0-9a-f]{32}", "@[place]");
        Self { folder, _settings: settings.bind_to_scope() }
    }

    /// A home with a session of 6 plans, some of which need blobs.
    pub(crate) fn with_session() -> Self {
        let env = Self::new();
        env.append(SESSION, 6);
        env
    }

    pub(crate) fn append(&self, session: &str, plans: u32) {
        let count = plans.to_string();
        let outcome =
            self.run(&["dev", "append-loop", "--session", session, "--count", &count, "--blobs"]);
        assert_eq!(outcome.code, 0, "{outcome}");
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// Whether nothing was kept yet.
    pub(crate) fn is_unused(&self) -> bool {
        fs::read_dir(self.home()).unwrap().next().is_none()
    }

    /// Has a file where the home belongs.
    pub(crate) fn spoil_home(&self) {
        fs::remove_dir(self.home()).unwrap();
        fs::write(self.home(), "").unwrap();
    }

    /// A path beside the home.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Changes a byte in the middle of a session's longest file.
    pub(crate) fn damage(&self, session: &str) {
        let folder = self.home().join("sessions").join(session);
        let (_, path) = files(&folder).into_iter().max().unwrap();
        let mut bytes = fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(&path, bytes).unwrap();
    }

    /// Removes the blob that was stored last, whoever needs it.
    pub(crate) fn lose_a_blob(&self) {
        let home = self.home();
        let shelves = ["snapshots", "artifacts", "papers/snapshots", "papers/artifacts"];
        let shelves = shelves.iter().map(|shelf| home.join(shelf)).filter(|shelf| shelf.exists());
        let blobs = shelves.flat_map(|shelf| files(&shelf));
        let changed = |path: &PathBuf| path.metadata().unwrap().modified().unwrap();
        let last = blobs.map(|(_, path)| path).max_by_key(changed).unwrap();
        fs::remove_file(last).unwrap();
    }

    /// Puts a folder where a session's manifest belongs, so that nobody can read it.
    pub(crate) fn make_unreadable(&self, session: &str) {
        let manifest = self.home().join("sessions").join(session).join("manifest.jsonl");
        let _ = fs::remove_file(&manifest);
        fs::create_dir(manifest).unwrap();
    }

    /// The command, ready to be started.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cairn"));
        command
            .args(args)
            .env_clear()
            .env("HOME", self.folder.path())
            .env("CAIRN_HOME", self.home())
            .current_dir(self.folder.path())
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Outcome {
        Outcome::of(self.command(args).output().unwrap())
    }

    /// Runs with standard output on a terminal of this many columns, and gives what it shows.
    pub(crate) fn run_on_terminal(&self, args: &[&str], columns: u16) -> String {
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        unlockpt(&terminal).unwrap();
        let name = ptsname(&terminal, Vec::new()).unwrap().into_string().unwrap();
        let screen = OpenOptions::new().read(true).write(true).open(name).unwrap();
        let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&screen, size).unwrap();
        let mut command = self.command(args);
        let mut child = command.env("NO_COLOR", "1").stdout(screen).spawn().unwrap();
        // The screen is closed with the command, and reading ends.
        drop(command);
        let mut shown = Vec::new();
        let _ = File::from(terminal).read_to_end(&mut shown);
        assert!(child.wait().unwrap().success());
        String::from_utf8(shown).unwrap().replace("\r\n", "\n")
    }

    pub(crate) fn run_with_input(&self, args: &[&str], input: &[u8]) -> Outcome {
        let mut command = self.command(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // A command that has seen enough may not read it all.
        let _ = child.stdin.take().unwrap().write_all(input);
        Outcome::of(child.wait_with_output().unwrap())
    }
}

impl Outcome {
    pub(crate) fn of(output: Output) -> Self {
        Self {
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
            code: output.status.code().unwrap(),
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "exit {}", self.code)?;
        for (name, text) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            if !text.is_empty() {
                write!(f, "--- {name}\n{text}")?;
            }
        }
        Ok(())
    }
}

fn files(folder: &Path) -> Vec<(u64, PathBuf)> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let here = files.into_iter().map(|path| (path.metadata().unwrap().len(), path));
    here.chain(folders.iter().flat_map(|folder| self::files(folder))).collect()
}
