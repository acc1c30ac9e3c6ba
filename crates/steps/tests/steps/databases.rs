//! Database servers that a test starts for itself.

use std::net::TcpListener;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// Whom servers run as when the tests run as root, which servers refuse.
const NOBODY: u32 = 65_534;

/// A server of its own, which ends with the test.
pub(crate) struct Server {
    child: Child,
    pub(crate) port: u16,
    pub(crate) folder: TempDir,
    signal: Signal,
}

impl Drop for Server {
    fn drop(&mut self) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        pid.iter().for_each(|pid| kill_process(*pid, self.signal).unwrap());
        self.child.wait().unwrap();
    }
}

/// A PostgreSQL with the user `app`, whose password is `hunter2`.
pub(crate) fn postgres() -> Server {
    let folder = folder();
    let (data, word) = (folder.path().join("data"), folder.path().join("word"));
    std::fs::write(&word, "hunter2").unwrap();
    give(&word);
    let mut init = command("initdb");
    init.arg("--pgdata").arg(&data).args(["--username=app", "--auth=scram-sha-256"]);
    init.arg("--pwfile").arg(&word).args(["--no-sync", "--encoding=UTF8", "--locale=C"]);
    succeed(init);
    let port = free_port();
    let mut server = command("postgres");
    server.arg("-D").arg(&data).arg("-k").arg(folder.path());
    server.args(["-h", "127.0.0.1", "-F", "-p", &port.to_string()]);
    start(server, port, folder, Signal::QUIT)
}

/// A MariaDB with the user `root`, who has no password.
pub(crate) fn mariadb() -> Server {
    let folder = folder();
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    give(&data);
    // What `mariadb-install-db` does, without the packages that it needs for it.
    let tables = folder.path().join("tables.sql");
    let [system, rows] = ["system_tables", "system_tables_data"].map(mariadb_file);
    let begin = "create database mysql;\nuse mysql;\nset @auth_root_socket = null;\n";
    std::fs::write(&tables, format!("{begin}{system}{rows}")).unwrap();
    let mut init = command("mariadbd");
    init.args(["--no-defaults", "--bootstrap"]).arg(format!("--datadir={}", data.display()));
    init.stdin(std::fs::File::open(&tables).unwrap());
    succeed(init);
    let port = free_port();
    let mut server = command("mariadbd");
    server.arg("--no-defaults").arg(format!("--datadir={}", data.display()));
    server.arg(format!("--socket={}", folder.path().join("socket").display()));
    server.arg(format!("--pid-file={}", folder.path().join("pid").display()));
    server.args(["--bind-address=127.0.0.1", &format!("--port={port}")]);
    start(server, port, folder, Signal::KILL)
}

/// A file that comes with the server, wherever the system keeps it.
fn mariadb_file(name: &str) -> String {
    let places = ["/usr/share/mysql/mysql_", "/usr/share/mariadb/mariadb_"];
    let found =
        places.iter().find_map(|place| std::fs::read_to_string(format!("{place}{name}.sql")).ok());
    found.unwrap_or_else(|| panic!("`{name}.sql` is missing: run scripts/setup.sh"))
}

fn folder() -> TempDir {
    let folder = TempDir::with_prefix("cairn-test-").unwrap();
    give(folder.path());
    folder
}

/// Hands a path to whom servers run as.
fn give(path: &Path) {
    if rustix::process::geteuid().is_root() {
        chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A program of a server, wherever the system keeps it.
fn command(name: &str) -> Command {
    let path = std::env::var_os("PATH").unwrap();
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let more = versions.map(|version| version.path().join("bin"));
    let more = more.chain([PathBuf::from("/usr/sbin"), PathBuf::from("/usr/local/sbin")]);
    let found = std::env::split_paths(&path).chain(more).map(|folder| folder.join(name));
    let found = found.into_iter().find(|path| path.exists());
    let found = found.unwrap_or_else(|| panic!("`{name}` is missing: run scripts/setup.sh"));
    let mut command = Command::new(found);
    if rustix::process::geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command.current_dir("/").stdin(Stdio::null()).stdout(Stdio::null()).env("HOME", "/");
    command
}

fn succeed(mut command: Command) {
    let output = command.stderr(Stdio::piped()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Starts a server and waits until it answers.
fn start(mut command: Command, port: u16, folder: TempDir, signal: Signal) -> Server {
    let log = std::fs::File::create(folder.path().join("log")).unwrap();
    let child = command.stderr(log).spawn().unwrap();
    let server = Server { child, port, folder, signal };
    let begun = Instant::now();
    let said = || std::fs::read_to_string(server.folder.path().join("log")).unwrap();
    while !said().contains("ready to accept connections")
        && !said().contains("ready for connections")
    {
        assert!(begun.elapsed() < Duration::from_secs(30), "it does not start: {}", said());
        std::thread::sleep(Duration::from_millis(10));
    }
    server
}
