//! `cairn serve` with workflows: settings and secrets.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::env::{Outcome, TestEnv};
use crate::serve::{Server, get};

const CANARY: &str = "CANARY-7f3a91c2d4";

const NEEDY: &str = "name: Needy
env:
  - { name: WHO, required: true }
  - { name: TOKEN, widget: secret, required: true }
graph:
  nodes:
    - { id: a, type: shell, command: [sh, -c, 'printf %s \"$WHO:$KEY\"'], env: { WHO: '{% if env.WHO %}{{ env.WHO }}{% endif %}', KEY: '{{ secret.TOKEN }}' }, next: b }
    - { id: b, type: end, result: '{{ steps.a.stdout }}' }
";

pub(crate) fn with_workflow(name: &str, text: &str) -> TestEnv {
    let env = TestEnv::new();
    fs::create_dir_all(env.path("workflows")).unwrap();
    fs::write(env.path("workflows").join(format!("{name}.yaml")), text).unwrap();
    env
}

/// A running server, and how to speak to it.
pub(crate) struct Running {
    pub(crate) server: Server,
    pub(crate) address: String,
    pub(crate) token: String,
}

impl Running {
    pub(crate) fn start(env: &TestEnv) -> Self {
        Self::start_with(env, &[])
    }

    pub(crate) fn start_with(env: &TestEnv, args: &[&str]) -> Self {
        let mut server = Server::start(env, args);
        let address = server.line().strip_prefix("listening on ").unwrap().to_owned();
        server.line();
        let token = fs::read_to_string(env.home().join("keys/admin.token")).unwrap();
        Self { server, address, token: token.trim().to_owned() }
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> (String, Value) {
        let body = body.to_string();
        let mut stream = TcpStream::connect(self.address.strip_prefix("http://").unwrap()).unwrap();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            self.token,
            body.len()
        );
        stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        read(stream)
    }

    pub(crate) fn get(&self, path: &str) -> Value {
        body(&get(&self.address, path, &self.token)).1
    }

    pub(crate) fn begin(&self, workflow: &str) -> String {
        let (status, answer) = self.post("/api/v1/runs", &json!({"workflow": workflow}));
        assert_eq!(status, "201", "{answer}");
        answer["runId"].as_str().unwrap().to_owned()
    }

    pub(crate) fn until(&self, run: &str, status: &str) -> Value {
        let by = Instant::now() + Duration::from_secs(60);
        loop {
            let shown = self.get(&format!("/api/v1/runs/{run}"));
            if shown["status"] == status {
                return shown;
            }
            assert!(Instant::now() < by, "{shown}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn read(mut stream: TcpStream) -> (String, Value) {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    body(&answer)
}

fn body(answer: &str) -> (String, Value) {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().to_owned();
    (status, serde_json::from_str(body).unwrap_or_default())
}

/// Fails when the canary is in any file below a folder.
fn scan(folder: &Path) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            scan(&path);
        } else if let Ok(bytes) = fs::read(&path) {
            let found = bytes.windows(CANARY.len()).any(|part| part == CANARY.as_bytes());
            assert!(!found, "the secret is in {}", path.display());
        }
    }
}

#[test]
fn a_run_gets_its_settings_and_secrets_and_records_no_secret() {
    let env = with_workflow("needy", NEEDY);
    let running = Running::start(&env);
    let (status, answer) = running.post("/api/v1/runs", &json!({"workflow": "needy"}));
    assert_eq!((status.as_str(), &answer["code"]), ("422", &json!("SETTING_INVALID")), "{answer}");
    let told = answer.to_string();
    assert!(told.contains("`WHO`") && told.contains("`TOKEN`"), "{told}");
    assert_eq!(env.run(&["env", "set", "needy", "WHO", "Ada"]).code, 0);
    let set = env.run_with_input(&["secret", "set", "TOKEN"], CANARY.as_bytes());
    assert_eq!(set.code, 0, "{set}");

    let run = running.begin("needy");
    let shown = running.until(&run, "succeeded");
    assert_eq!(shown["result"], "Ada:[secret:TOKEN]");
    let answers = get(&running.address, &format!("/api/v1/runs/{run}/events"), &running.token);
    assert!(!answers.contains(CANARY), "{answers}");
    scan(&env.path("."));
}

/// Waits until something can be seen.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let by = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < by, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_run_that_is_interrupted_says_how_it_goes_on() {
    let text = "name: Long\ngraph: { nodes: [{ id: a, type: wait, duration_sec: 3600 }] }\n";
    let env = with_workflow("long", text);
    let mut command = env.command(&["run", "long"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let waits = || env.run(&["runs", "list", "--status", "waiting", "--json"]).stdout;
    until("it does not wait", || waits().contains("run_"));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let ended = child.wait_with_output().unwrap();
    let told = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(130), "{told}");
    let run = told.lines().find(|line| line.starts_with("run_")).unwrap();
    let resume = format!("stopped; `cairn runs resume {run}` goes on where it was");
    assert_eq!(told.lines().last(), Some(resume.as_str()), "{told}");
    assert!(!told.contains("panicked"), "{told}");
}

#[test]
fn a_chain_of_commands_that_start_one_another_ends() {
    let env = with_workflow("again", "");
    let cairn = env!("CARGO_BIN_EXE_cairn");
    let (home, folder) = (env.home(), env.path(""));
    let (home, folder) = (home.to_str().unwrap(), folder.to_str().unwrap());
    let text = format!(
        "name: Again\nrate_limit: 1000/min\ngraph:\n  nodes:\n    - {{ id: a, type: shell, timeout_sec: 100, command: [sh, -c, 'cd \"$AT\" && exec {cairn} run again --home {home}'], env: {{ AT: {folder} }} }}\n"
    );
    fs::write(env.path("workflows/again.yaml"), text).unwrap();
    let ended = env.run(&["run", "again"]);
    assert_eq!(ended.code, 1, "{ended}");
    let listed = env.run(&["runs", "list", "--json"]).stdout;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let runs = listed["items"].as_array().unwrap();
    assert_eq!(runs.len(), 9, "{listed:#}");
    let last = runs[0]["runId"].as_str().unwrap();
    let shown = env.run(&["runs", "show", last, "--json"]).stdout;
    assert!(shown.contains("TRIGGER_LOOP"), "{shown}");
}

#[test]
fn what_a_failed_command_printed_is_recorded_without_secrets() {
    let text = NEEDY.replace("printf %s \"$WHO:$KEY\"", "printf %s \"$WHO:$KEY\" >&2; exit 3");
    let env = with_workflow("needy", &text);
    assert_eq!(env.run(&["env", "set", "needy", "WHO", "Ada"]).code, 0);
    let set = env.run_with_input(&["secret", "set", "TOKEN"], CANARY.as_bytes());
    assert_eq!(set.code, 0, "{set}");
    let ran = env.run(&["run", "needy", "--json"]);
    assert!(ran.stdout.contains("Ada:[secret:TOKEN]"), "{ran}");
    scan(&env.path("."));
}

#[test]
fn a_run_that_another_process_left_is_taken_up_by_a_server_that_is_there() {
    let text = r#"name: Left
graph:
  nodes:
    - { id: a, type: shell, timeout_sec: 60, command: [sh, -c, 'touch "$AT/begun"; while [ ! -e "$AT/go" ]; do sleep 0.05; done; echo done'], env: { AT: FOLDER }, next: b }
    - { id: b, type: end, result: '{{ steps.a.stdout | trim }}' }
"#;
    let env = with_workflow("left", text);
    let text = text.replace("FOLDER", env.path("").to_str().unwrap());
    fs::write(env.path("workflows/left.yaml"), text).unwrap();
    let running = Running::start(&env);
    let mut alone = env.command(&["run", "left", "--json"]).spawn().unwrap();
    until("it does not begin", || env.path("begun").exists());
    alone.kill().unwrap();
    alone.wait().unwrap();
    fs::write(env.path("go"), "").unwrap();
    let run = running.get("/api/v1/runs")["items"][0]["runId"].as_str().unwrap().to_owned();
    let ended = running.until(&run, "succeeded");
    assert_eq!((&ended["result"], &ended["steps"]["a"]["attempts"]), (&json!("done"), &json!(2)));
    let told = env.run(&["runs", "events", &run]).stdout;
    let try_1 = told.find("try 1 was cut off").unwrap_or_else(|| panic!("{told}"));
    let try_2 = told.find("begun again, try 2").unwrap_or_else(|| panic!("{told}"));
    assert!(try_1 < try_2, "{told}");
}

#[test]
fn a_command_that_takes_too_long_leaves_what_it_printed() {
    let text = "name: Slow\ngraph:\n  nodes:\n    - { id: a, type: shell, timeout_sec: 1, command: [sh, -c, 'echo so far so good >&2; exec sleep 600'] }\n";
    let env = with_workflow("slow", text);
    let ran = env.run(&["run", "slow", "--json"]);
    assert_eq!(ran.code, 1, "{ran}");
    let ran: Value = serde_json::from_str(&ran.stdout).unwrap();
    let step = &ran["steps"]["a"];
    assert_eq!(step["error"]["code"], "STEP_TIMEOUT", "{ran:#}");
    assert_eq!(step["output"]["stderr"], "so far so good\n", "{ran:#}");
    assert_eq!(step["output"]["timed_out"], true, "{ran:#}");
}

#[test]
fn what_a_step_starts_belongs_to_the_trace_that_the_run_belongs_to() {
    let inner = "name: Inner\ngraph:\n  nodes:\n    - { id: a, type: shell, command: [sh, -c, 'printf %s \"$TRACEPARENT\"'] }\n";
    let outer = "name: Outer\ngraph:\n  nodes:\n    - { id: a, type: shell, command: [sh, -c, 'printf %s \"$TRACEPARENT\"'], next: b }\n    - { id: b, type: workflow, workflow: inner }\n";
    let env = with_workflow("outer", outer);
    fs::write(env.path("workflows/inner.yaml"), inner).unwrap();
    let trace = "0af7651916cd43dd8448eb211c80319c";
    let above = format!("00-{trace}-b7ad6b7169203331-01");
    let told = |above: &str| {
        let mut run = env.command(&["run", "outer", "--json"]);
        let ran = Outcome::of(run.env("TRACEPARENT", above).output().unwrap());
        let found: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran}"));
        let own = found["steps"]["a"]["output"]["stdout"].as_str().unwrap().to_owned();
        let child = found["steps"]["b"]["output"]["result"]["stdout"].as_str().unwrap().to_owned();
        (own, child)
    };
    let (own, child) = told(&above);
    assert!(own.starts_with(&format!("00-{trace}-")), "{own}");
    assert!(child.starts_with(&format!("00-{trace}-")), "{child}");
    assert!(own != child && own != above && child != above, "{own} {child}");
    // Nobody says, or nothing that can be read: the run begins a trace, and its child is in it.
    for nothing in ["", "00-0-0-00"] {
        let (own, child) = told(nothing);
        assert!(own.len() == above.len() && !own.contains(trace), "{own}");
        assert_eq!(own[..36], child[..36]);
    }
}

#[test]
fn an_event_that_is_too_large_is_refused() {
    let env = with_workflow("any", "name: Any\ngraph:\n  nodes:\n    - { id: a, type: end }\n");
    let of = |bytes: usize| format!("\"{}\"", "x".repeat(bytes - 2));
    let most = env.run_with_input(&["run", "any", "--event", "-"], of(4 << 20).as_bytes());
    assert_eq!(most.code, 0, "{most}");
    let more = env.run_with_input(&["run", "any", "--event", "-"], of((4 << 20) + 1).as_bytes());
    assert_eq!(more.code, 2, "{more}");
    assert!(more.stderr.contains("the event has more than 4 MiB"), "{more}");
}

#[test]
fn a_run_that_is_left_to_another_process_is_begun_there_only() {
    let text = "name: Left\ngraph:\n  nodes:\n    - { id: a, type: shell, on_interrupt: fail, command: [sh, -c, 'echo once'], next: b }\n    - { id: b, type: end, result: '{{ steps.a.stdout | trim }}' }\n";
    let env = with_workflow("left", text);
    for given in ["left", "workflows/left.yaml"] {
        let left = env.run(&["run", given, "--detach"]);
        assert_eq!(left.code, 0, "{left}");
        let shown = || env.run(&["runs", "show", left.stdout.trim(), "--json"]).stdout;
        until("it does not end", || shown().contains("succeeded"));
        let shown: Value = serde_json::from_str(&shown()).unwrap();
        assert_eq!(
            (&shown["result"], &shown["steps"]["a"]["attempts"]),
            (&json!("once"), &json!(1))
        );
    }
}
