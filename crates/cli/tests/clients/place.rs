//! A project of its own, a server of its own, and where the clients are.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

pub(crate) const CAIRN: &str = env!("CARGO_BIN_EXE_cairn");

/// A project with the workflows of the story, and a home.
pub(crate) struct Place {
    folder: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let workflows = folder.path().join("workflows");
        fs::create_dir(&workflows).unwrap();
        fs::write(workflows.join("relay.yaml"), include_str!("relay.yaml")).unwrap();
        fs::write(workflows.join("story.yaml"), include_str!("story.yaml")).unwrap();
        Self { folder }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.folder().join("home")
    }

    /// A command that sees nothing of the user who runs the tests.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("HOME", self.folder())
            .env("CAIRN_HOME", self.home())
            .current_dir(self.folder())
            .stdin(Stdio::null());
        command
    }

    /// Starts `cairn serve` on a free port.
    pub(crate) fn serve(&self) -> Server {
        let mut command = self.command(CAIRN);
        command.args(["serve", "--listen", "127.0.0.1:0", "--json"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let said: Value = serde_json::from_str(&line).unwrap();
        let text = |field: &str| said[field].as_str().unwrap().to_owned();
        Server { address: text("address"), token: text("adminToken"), child }
    }
}

/// A server that is stopped with the test.
pub(crate) struct Server {
    /// Such as `http://127.0.0.1:40123`.
    pub(crate) address: String,
    pub(crate) token: String,
    child: Child,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A file of the clients.
pub(crate) fn client(path: &str) -> PathBuf {
    let target = Path::new(CAIRN).ancestors().nth(2).unwrap();
    let path = target.join("clients").join(path);
    assert!(path.exists(), "{} is missing: run scripts/setup.sh", path.display());
    path
}

/// The Node that the clients come with.
pub(crate) fn node() -> PathBuf {
    let arch = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    client(&format!("node/node_modules/node-linux-{arch}/bin/node"))
}
