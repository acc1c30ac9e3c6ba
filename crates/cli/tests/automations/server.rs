//! The real server, as often as it takes, over one folder.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

/// A folder with a home, workflows and a configuration, and what the servers in it said.
pub(crate) struct Place {
    folder: PathBuf,
    _kept: Option<TempDir>,
}

/// A server that listens.
pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) address: String,
}

impl Place {
    pub(crate) fn new(config: &str, workflows: &[(&str, String)]) -> Self {
        let kept = tempfile::tempdir().unwrap();
        let place = Self { folder: kept.path().to_owned(), _kept: Some(kept) };
        fs::create_dir(place.path("workflows")).unwrap();
        fs::write(place.path("config.toml"), config).unwrap();
        for (name, text) in workflows {
            fs::write(place.path("workflows").join(format!("{name}.yaml")), text).unwrap();
        }
        place
    }

    /// The same place, for somebody else; it goes with the first.
    pub(crate) fn at(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), _kept: None }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.path("home")
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cairn"));
        command
            .args(args)
            .env_clear()
            .env("HOME", &self.folder)
            .env("PATH", "/usr/bin:/bin")
            .env("CAIRN_HOME", self.home())
            .env("CAIRN_CONFIG", self.path("config.toml"))
            .current_dir(&self.folder)
            .stdin(Stdio::null());
        command
    }

    /// Starts a server, which may not be listening yet. What it remarks goes to `serve.log`.
    pub(crate) fn spawn(&self) -> Child {
        let log = File::options().append(true).create(true).open(self.path("serve.log")).unwrap();
        let mut command = self.command(&["serve", "--listen", "127.0.0.1:0"]);
        command.stdout(Stdio::piped()).stderr(log).spawn().unwrap()
    }

    /// Starts a server and waits until it listens.
    pub(crate) fn serve(&self) -> Server {
        let mut child = self.spawn();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut lines = [String::new(), String::new()];
        lines.iter_mut().for_each(|line| drop(stdout.read_line(line)));
        let address = lines[0].trim_end().strip_prefix("listening on http://");
        let said = fs::read_to_string(self.path("serve.log")).unwrap_or_default();
        let address = address.unwrap_or_else(|| panic!("it does not listen: {lines:?} {said}"));
        Server { child, address: address.to_owned() }
    }

    pub(crate) fn token(&self) -> String {
        fs::read_to_string(self.home().join("keys/admin.token")).unwrap().trim().to_owned()
    }
}

/// Sends a request and gives status, head and body; none when nobody answers to the end.
pub(crate) fn ask(address: &str, request: &str, body: &str) -> Option<(u16, String, String)> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(30))).ok()?;
    let length = body.len();
    let head = format!(
        "{request}Host: localhost\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(format!("{head}{body}").as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some((status, head.to_owned(), body.to_owned()))
}

/// A call of the API with a token; none when the server is gone before it answered.
pub(crate) fn call(
    address: &str,
    token: &str,
    what: &str,
    more: &str,
    body: Option<&Value>,
) -> Option<(u16, Value)> {
    let body = body.map(Value::to_string).unwrap_or_default();
    let json = if body.is_empty() { "" } else { "Content-Type: application/json\r\n" };
    let request = format!("{what} HTTP/1.1\r\nAuthorization: Bearer {token}\r\n{json}{more}");
    let (status, _, body) = ask(address, &request, &body)?;
    Some((status, serde_json::from_str(&body).ok()?))
}

impl Server {
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
