//! What a busy server leaves in its data directory is for its owner alone, whatever the umask says.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::server::{Place, Server, call};

const BUSY: &str = "name: Busy
env: [{ name: KEY, widget: secret }, { name: LIMIT, widget: number, default: 1 }]
graph:
  nodes:
    - { id: make, type: shell, command: [touch, made], next: large }
    - { id: large, type: shell, command: [seq, '90000'], next: ask }
    - { id: ask, type: human, prompt: May it?, cases: { default: end } }
";
const GUIDED: &str = "id: project.led\nname: Led\ndescription: Leads.\nversion: '1'\nsteps:\n  - { id: one, title: One, prompt: Do it. }\n";

/// Everything below a folder that others can get at, and the kinds of files there are.
fn look(folder: &Path, top: &Path, open: &mut Vec<String>, kinds: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        // What is only there for a moment may be gone.
        let Ok(found) = fs::symlink_metadata(&path) else { continue };
        let mode = found.permissions().mode() & 0o777;
        if !found.is_symlink() && mode & 0o077 != 0 {
            open.push(format!("{} {mode:o}", path.display()));
        }
        let kind = path.strip_prefix(top).unwrap().components().next().unwrap();
        kinds.insert(kind.as_os_str().to_string_lossy().into_owned());
        if found.is_dir() {
            look(&path, top, open, kinds);
        }
    }
}

/// Runs a command of the program under a generous umask.
fn cli(place: &Place, args: &[&str], input: &str) -> Value {
    let mut command = place.command(args);
    command.arg("--json").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{args:?}: {output:?}");
    serde_json::from_slice(&output.stdout).unwrap_or_default()
}

fn asks(place: &Place, server: &Server) -> (String, String) {
    let http = |what: &str, body: Option<&Value>| {
        call(&server.address, &place.token(), what, "", body).unwrap().1
    };
    let begun = http("POST /api/v1/runs", Some(&json!({"workflow": "busy"})));
    let run = begun["runId"].as_str().unwrap().to_owned();
    let by = Instant::now() + Duration::from_secs(60);
    loop {
        let shown = http(&format!("GET /api/v1/runs/{run}"), None);
        if shown["status"] == "waiting" {
            return (run, shown["sessionId"].as_str().unwrap().to_owned());
        }
        assert!(shown["status"] != "failed" && Instant::now() < by, "{shown}");
    }
}

// case: path.modes
#[test]
fn nothing_that_a_busy_server_leaves_is_for_others() {
    let place = Place::new("", &[("busy", BUSY.to_owned()), ("led", GUIDED.to_owned())]);
    let mut server = place.serve();
    cli(&place, &["secret", "set", "KEY"], "a value of some length");
    cli(&place, &["env", "set", "busy", "LIMIT", "3"], "");
    cli(&place, &["token", "create", "--name", "t", "--scope", "read"], "");
    let (run, session) = asks(&place, &server);
    let bundle = place.path("bundle.json").display().to_string();
    cli(&place, &["session", "export", &session, "-o", &bundle], "");
    cli(&place, &["session", "import", &bundle], "");
    cli(&place, &["session", "keep", &session], "");
    let folder = place.path("exported").display().to_string();
    cli(&place, &["runs", "export", &run, "--to", &folder], "");
    let led = place.path("led.json");
    fs::write(&led, json!([{"step": "one", "notes": "done"}]).to_string()).unwrap();
    cli(&place, &["guide", "project.led", "--answers", &led.display().to_string()], "");
    let mut kinds = BTreeSet::new();
    for state in ["running", "killed", "started again"] {
        let mut open = Vec::new();
        look(&place.home(), &place.home(), &mut open, &mut kinds);
        for exported in [PathBuf::from(&bundle), PathBuf::from(&folder)] {
            let mode = fs::metadata(&exported).unwrap().permissions().mode() & 0o777;
            if mode & 0o077 != 0 {
                open.push(format!("{} {mode:o}", exported.display()));
            }
        }
        assert_eq!(open, Vec::<String>::new(), "{state}");
        match state {
            "running" => server.kill(),
            "killed" => server = place.serve(),
            _ => {}
        }
    }
    let wanted = [
        "artifacts",
        "audit",
        "audit.head",
        "env",
        "index.sqlite",
        "keys",
        "papers",
        "secrets",
        "server.lock",
        "sessions",
        "sockets",
        "workflows",
    ];
    let missing: Vec<_> = wanted.into_iter().filter(|kind| !kinds.contains(*kind)).collect();
    assert_eq!(missing, Vec::<&str>::new(), "it was busy: {kinds:?}");
}

/// What others may change keeps the server from starting, and it says what to do.
// case: path.modes
#[test]
fn a_data_directory_that_others_may_change_is_refused() {
    let place = Place::new("", &[]);
    place.serve().kill();
    for (name, mode, starts) in [
        ("", 0o777, false),
        ("", 0o770, false),
        ("sessions", 0o777, false),
        ("audit", 0o722, false),
        ("audit.head", 0o620, false),
        ("", 0o755, true),
        ("audit", 0o755, true),
    ] {
        let path = if name.is_empty() { place.home() } else { place.home().join(name) };
        fs::create_dir_all(place.home().join("sessions")).unwrap();
        let was = fs::metadata(&path).unwrap().permissions();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        fs::write(place.path("serve.log"), "").unwrap();
        if starts {
            place.serve().kill();
        } else {
            let mut child = place.spawn();
            assert_eq!(child.wait().unwrap().code(), Some(8), "{name} {mode:o}");
        }
        let said = fs::read_to_string(place.path("serve.log")).unwrap();
        let fix = format!("chmod -R go-rwx {}", path.display());
        assert!(said.contains(&fix), "{name} {mode:o}: {said}");
        fs::set_permissions(&path, was).unwrap();
    }
}
