//! A secret that must be nowhere but where it is sent: every file, every answer, every line
//! and every process is searched for it, in each form that it may take on the way.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::receiver::{Receiver, Request};
use crate::server::{Place, Server, ask, call};

/// It looks different in every form.
const CANARY: &str = "CANARY/7f3a91c2+d4&e5=zz?";
/// Signs webhooks.
const SIGNER: &str = "SIGNER/5b1e0c77+a9&f2=yy?";
/// The password of a database.
const PASSWORD: &str = "PASSWORD.88d1f00c.kk";

fn workflows(port: u16, folder: &Path) -> Vec<(&'static str, String)> {
    let folder = folder.display();
    let leaky = format!(
        "name: Leaky
rate_limit: 1000/min
on_error: {{ trigger_workflow: project.mourner }}
env:
  - {{ name: TOKEN, widget: secret, required: true, hosts: [127.0.0.1] }}
  - {{ name: SIGN, widget: secret, required: true }}
triggers:
  - {{ type: webhook, path: /leak, secret: SIGN, signature: github, respond: respond_step }}
graph:
  nodes:
    - {{ id: send, type: http, method: POST, url: 'http://127.0.0.1:{port}/send', headers: {{ Authorization: 'Bearer {{{{ secret.TOKEN }}}}' }}, body: {{ key: 'is {{{{ secret.TOKEN }}}}' }}, next: whole }}
    - {{ id: whole, type: http, method: POST, url: 'http://127.0.0.1:{port}/whole', headers: {{ X-Key: '{{% if true %}}{{{{ secret.TOKEN }}}}{{% endif %}}' }}, next: quoted }}
    - {{ id: quoted, type: http, method: POST, url: 'http://127.0.0.1:{port}/quoted', headers: {{ X-Key: '{{{{ secret.TOKEN | int }}}}' }}, on_failure: skip, next: quoted2 }}
    - {{ id: quoted2, type: http, method: POST, url: 'http://127.0.0.1:{port}/quoted', headers: {{ X-Key: '{{% if true %}}{{{{ secret.TOKEN | fromjson }}}}{{% endif %}}' }}, on_failure: skip, next: stored }}
    - {{ id: stored, type: http, url: 'http://127.0.0.1:{port}/stored', next: process }}
    - {{ id: process, type: shell, timeout_sec: 60, command: [bash, '{folder}/say.sh'], env: {{ KEY: '{{{{ secret.TOKEN }}}}', AT: '{folder}' }}, stdin: '{{{{ secret.TOKEN }}}}', next: rows }}
    - {{ id: rows, type: db_query, database: app, query: 'SELECT text FROM kept', next: far }}
    - {{ id: far, type: db_query, database: far, query: 'SELECT 1', on_failure: skip, next: denied }}
    - {{ id: denied, type: http, url: 'http://127.0.0.1:{port}/denied', headers: {{ X-Key: '{{{{ secret.TOKEN }}}}' }}, on_failure: skip, next: child }}
    - {{ id: child, type: workflow, workflow: project.child, input: '{{{{ steps.stored.json }}}}', next: said }}
    - {{ id: said, type: log, message: '{{{{ steps.process.stdout }}}} {{{{ steps.rows.rows | tojson }}}}', next: answer }}
    - {{ id: answer, type: webhook_respond, body: {{ all: '{{{{ steps.process.stdout }}}}', back: '{{{{ steps.send.json }}}}' }}, next: fails }}
    - {{ id: fails, type: shell, command: [bash, '{folder}/fail.sh'], env: {{ KEY: '{{{{ secret.TOKEN }}}}' }} }}
"
    );
    let child = "name: Child\ngraph:\n  nodes:\n    - { id: a, type: log, message: '{{ event.payload | tojson }}' }\n";
    let mourner = "name: Mourner\ntriggers:\n  - { type: error }\ngraph:\n  nodes:\n    - { id: a, type: log, message: '{{ event.payload | tojson }}' }\n";
    vec![("leaky", leaky), ("child", child.to_owned()), ("mourner", mourner.to_owned())]
}

/// Says the secret in many ways, once the test has looked at the process.
const SAY: &str = r#"read -r given
touch "$AT/begun"
while [ ! -e "$AT/go" ]; do sleep 0.02; done
[ "$given" = "$KEY" ] && echo "same"
echo "plain $KEY"
echo "base64 $(printf %s "$KEY" | base64 -w0)" >&2
echo "shifted $(printf %s "x$KEY" | base64 -w0) $(printf %s "xy$KEY" | base64 -w0)"
echo "hex $(printf %s "$KEY" | od -An -tx1 | tr -d ' \n')"
echo "percent $(printf %s "$KEY" | od -An -tx1 | tr -d '\n' | tr ' ' '%')"
"#;
const FAIL: &str = "echo \"cannot use $KEY\" >&2; echo \"$KEY\"; exit 3\n";

/// The ways in which a secret may be written.
fn forms(secret: &str) -> Vec<String> {
    let percent = |lower: bool| -> String {
        let escaped = secret.bytes().map(|byte| match byte {
            byte if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) => {
                char::from(byte).to_string()
            }
            byte if lower => format!("%{byte:02x}"),
            byte => format!("%{byte:02X}"),
        });
        escaped.collect()
    };
    let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
    let mut forms = vec![secret.to_owned(), percent(true), percent(false), hex];
    for shift in 0..3 {
        // What is around it changes the characters at its ends.
        let padded = format!("{}{secret}", &"xyz"[..shift]);
        let whole = padded.len() / 3 * 4;
        let first = if shift == 0 { 0 } else { 4 };
        forms.push(STANDARD.encode(&padded)[first..whole].to_owned());
        forms.push(URL_SAFE_NO_PAD.encode(&padded)[first..whole].to_owned());
    }
    forms
}

/// Everything that must not have a secret in it, by name.
#[derive(Default)]
struct Hay(Vec<(String, Vec<u8>)>);

impl Hay {
    fn add(&mut self, name: impl Into<String>, text: impl Into<Vec<u8>>) {
        self.0.push((name.into(), text.into()));
    }

    /// Every file below a folder, but for those that the test itself wrote secrets into.
    fn add_files(&mut self, folder: &Path, but: &[&str]) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                self.add_files(&path, but);
            } else if !but.iter().any(|name| path.ends_with(name))
                && let Ok(bytes) = fs::read(&path)
            {
                self.add(path.display().to_string(), bytes);
            }
        }
    }

    fn found(&self) -> Vec<String> {
        let needles: Vec<(&str, String)> = [("TOKEN", CANARY), ("SIGN", SIGNER), ("far", PASSWORD)]
            .into_iter()
            .flat_map(|(name, secret)| forms(secret).into_iter().map(move |form| (name, form)))
            .collect();
        let mut found = Vec::new();
        for (place, bytes) in &self.0 {
            for (name, form) in &needles {
                let at = bytes.windows(form.len()).position(|part| part == form.as_bytes());
                if let Some(at) = at {
                    let around = &bytes[at.saturating_sub(120)..(at + 40).min(bytes.len())];
                    let around = String::from_utf8_lossy(around).into_owned();
                    found.push(format!("{name} as {form} is in {place}: …{around}…"));
                }
            }
        }
        found
    }
}

/// The command lines of all processes, and the names of those that have a secret in their
/// environment, of which the server may be none.
fn processes(hay: &mut Hay, but: u32) -> Vec<String> {
    let mut holders = Vec::new();
    for entry in fs::read_dir("/proc").unwrap() {
        let path = entry.unwrap().path();
        let Some(pid) = path.file_name().and_then(|name| name.to_str()?.parse::<u32>().ok()) else {
            continue;
        };
        // A process may end while it is looked at.
        let read = |name: &str| fs::read(path.join(name)).unwrap_or_default();
        hay.add(format!("the command line of process {pid}"), read("cmdline"));
        let environ = read("environ");
        if environ.windows(CANARY.len()).any(|part| part == CANARY.as_bytes()) {
            let name = String::from_utf8_lossy(&read("comm")).trim().to_owned();
            assert_ne!(pid, but, "it is in the environment of the server");
            holders.push(name);
        }
    }
    holders
}

/// Sends a webhook as GitHub signs it, with `openssl`.
fn hook(address: &str, place: &Place, id: &str) -> (u16, String) {
    let body = json!({"id": id}).to_string();
    fs::write(place.path("body.json"), &body).unwrap();
    let signed = Command::new("openssl")
        .args(["dgst", "-sha256", "-hmac", SIGNER, "-hex"])
        .arg(place.path("body.json"))
        .output()
        .unwrap();
    let signed = String::from_utf8(signed.stdout).unwrap();
    let hex = signed.trim().rsplit(' ').next().unwrap().to_owned();
    let request = format!(
        "POST /hooks/leak HTTP/1.1\r\nContent-Type: application/json\r\nX-GitHub-Delivery: {id}\r\nX-Hub-Signature-256: sha256={hex}\r\n"
    );
    // A server that has just started asks senders to come back.
    let (status, head, body) = until("the server is never ready", || {
        ask(address, &request, &body).filter(|(status, ..)| *status != 503)
    });
    (status, format!("{head}\n{body}"))
}

pub(crate) fn set_secret(place: &Place, name: &str, value: &str) {
    let mut command = place.command(&["secret", "set", name]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), value.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success(), "{name}");
}

/// A place with everything that a secret can go through, and what was received of it.
fn place() -> (Place, Receiver, Arc<Mutex<Vec<String>>>) {
    let got: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = Arc::clone(&got);
    let receiver = Receiver::start(move |request: &Request, _| {
        let header = |name: &str| request.headers.get(name).cloned().unwrap_or_default();
        let body = String::from_utf8_lossy(&request.body).into_owned();
        // Traces are nobody's business but the operator's, and secrets not even theirs.
        let what = if request.path == "/v1/traces" { "traces" } else { "" };
        seen.lock().unwrap().push(format!("{what}{} {}", header("authorization"), body));
        let said = json!({
            "plain": CANARY, "base64": STANDARD.encode(CANARY),
            "percent": "CANARY%2F7f3a91c2%2Bd4%26e5%3Dzz%3F", "headers": request.headers,
        });
        let status = if request.path == "/denied" { 403 } else { 200 };
        Some((status, said))
    });
    let place = Place::new("", &[]);
    let folder = place.path("");
    for (name, text) in workflows(receiver.port, &folder) {
        fs::write(place.path("workflows").join(format!("{name}.yaml")), text).unwrap();
    }
    for (name, text) in [("say.sh", SAY), ("fail.sh", FAIL)] {
        fs::write(place.path(name), text).unwrap();
        fs::set_permissions(place.path(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let port = receiver.port;
    let config = format!(
        "[telemetry]\nendpoint = \"http://127.0.0.1:{port}\"\n[http]\nallow = [\"127.0.0.1:*\"]\n[databases.app]\nurl = \"sqlite:app.db\"\n[databases.far]\nurl = \"postgres://app:{PASSWORD}@127.0.0.1:1/app\"\n"
    );
    fs::write(place.path("config.toml"), config).unwrap();
    let made = rusqlite::Connection::open(place.path("app.db")).unwrap();
    made.execute_batch("CREATE TABLE kept(text)").unwrap();
    made.execute("INSERT INTO kept VALUES ($1)", [format!("row {CANARY}")]).unwrap();
    set_secret(&place, "TOKEN", CANARY);
    set_secret(&place, "SIGN", SIGNER);
    (place, receiver, got)
}

/// What every door says about a run, and about everything.
fn ask_all(place: &Place, server: &Server, run: &str, hay: &mut Hay) {
    let token = place.token();
    let paths = [
        "/api/v1/audit",
        "/api/v1/openapi.json",
        "/api/v1/runs",
        "/api/v1/sessions",
        "/api/v1/tasks",
        "/api/v1/tokens",
        "/api/v1/triggers",
        "/api/v1/workflows",
        "/api/v1/workflows/project.leaky",
        "/api/v1/workflows/project.leaky/env",
        "/api/v1/workflows/project.leaky/env-check",
        "/healthz",
        "/metrics",
        "/readyz",
    ];
    let of_run = ["", "/events?limit=200", "/events/stream"];
    let of_run = of_run.map(|rest| format!("/api/v1/runs/{run}{rest}"));
    for path in paths.iter().map(ToString::to_string).chain(of_run) {
        let request = format!("GET {path} HTTP/1.1\r\nAuthorization: Bearer {token}\r\n");
        let (status, head, body) = ask(&server.address, &request, "").unwrap();
        assert_eq!(status, 200, "{path}: {body}");
        hay.add(path, format!("{head}\n{body}"));
    }
    let out = place.path("exported");
    let out = out.to_str().unwrap();
    for args in [
        &["runs", "list", "--json"][..],
        &["runs", "show", run],
        &["runs", "show", run, "--json"],
        &["runs", "events", run],
        &["runs", "events", run, "--json"],
        &["runs", "export", run, "--to", out],
        &["runs", "fork", run, "--from", "send", "--dry-run", "--json"],
        &["secret", "list", "--json"],
        &["env", "list", "leaky", "--all", "--json"],
        &["config", "show", "--origin"],
        &["doctor"],
        &["audit", "list", "--json"],
        &["trigger", "list", "--json"],
        &["workflow", "compile", "leaky"],
    ] {
        let output = place.command(args).output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        hay.add(format!("cairn {}", args.join(" ")), said);
    }
}

pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let by = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < by, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

// case: secret.canary
#[test]
fn a_secret_is_nowhere_but_where_it_is_sent() {
    let (place, _receiver, got) = place();
    let server = place.serve();
    let token = place.token();
    let mut hay = Hay::default();
    for body in [json!({"value": CANARY}), json!({"valu": CANARY}), json!([CANARY])] {
        let what = "PUT /api/v1/workflows/project.leaky/secrets/TOKEN";
        let (status, answer) = call(&server.address, &token, what, "", Some(&body)).unwrap();
        assert_eq!(status < 300, body["value"] == CANARY, "{answer}");
        hay.add(what, answer.to_string());
    }
    // All that happens, as it happens.
    let stream = {
        let (address, token) = (server.address.clone(), token.clone());
        let request = format!("GET /api/v1/events HTTP/1.1\r\nAuthorization: Bearer {token}\r\n");
        std::thread::spawn(move || ask(&address, &request, ""))
    };
    let sender = {
        let (address, path) = (server.address.clone(), place.path(""));
        let at = Place::at(&path);
        std::thread::spawn(move || hook(&address, &at, "d1"))
    };
    until("the step never began", || {
        (place.path("begun").exists() || sender.is_finished()).then_some(())
    });
    if !place.path("begun").exists() {
        panic!("the step never began: {:?}", sender.join());
    }
    let holders = processes(&mut hay, server.child.id());
    // The step's own processes, and the one that watches over them.
    let own = ["bash", "cairn", "sleep", "touch"];
    assert!(holders.contains(&"bash".to_owned()), "the step has it in its environment");
    assert!(holders.iter().all(|name| own.contains(&name.as_str())), "{holders:?}");
    fs::write(place.path("go"), "").unwrap();
    let (status, answer) = sender.join().unwrap();
    assert!(status == 200 && answer.contains("same"), "{answer}");
    hay.add("the answer to the webhook", answer);
    let ended = |workflow: &str| {
        until(&format!("{workflow} never ended"), || {
            let what = format!("GET /api/v1/runs?workflow={workflow}&status=failed,succeeded");
            let (_, runs) = call(&server.address, &token, &what, "", None)?;
            runs["items"][0]["runId"].as_str().map(str::to_owned)
        })
    };
    let run = ended("project.leaky");
    ended("project.mourner");
    ended("project.child");
    let (_, shown) =
        call(&server.address, &token, &format!("GET /api/v1/runs/{run}"), "", None).unwrap();
    went_through(&shown);
    // A command that performs a run itself.
    let output = place.command(&["run", "leaky", "--json"]).output().unwrap();
    hay.add("cairn run", [output.stdout, output.stderr].concat());
    ask_all(&place, &server, &run, &mut hay);
    let (status, answer) = hook(&server.address, &place, "d1");
    assert_eq!(status, 200, "{answer}");
    hay.add("the answer to the same webhook", answer);
    kill_process(Pid::from_child(&server.child), Signal::TERM).unwrap();
    let mut server = server;
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
    hay.add("the stream", stream.join().unwrap().map(|(_, _, body)| body).unwrap_or_default());
    // What is sealed, and what is not.
    hay.add_files(&place.path(""), &["app.db", "config.toml"]);
    let got = got.lock().unwrap();
    let traces: Vec<&String> = got.iter().filter(|got| got.starts_with("traces")).collect();
    assert!(!traces.is_empty(), "spans were sent");
    traces.into_iter().for_each(|traces| hay.add("the traces", traces.as_bytes()));
    let found = hay.found();
    assert!(found.is_empty(), "{} leaks:\n{}", found.len(), found.join("\n"));
    let sent = format!("Bearer {CANARY} {}", json!({"key": format!("is {CANARY}")}));
    assert!(got.contains(&sent), "the receiver was sent it: {got:?}");
}

/// Every step had something to do with the secret, or the search would prove nothing.
fn went_through(shown: &Value) {
    let steps = &shown["steps"];
    for (step, status) in [
        ("send", "succeeded"),
        ("stored", "succeeded"),
        ("process", "succeeded"),
        ("rows", "succeeded"),
        ("far", "failed"),
        ("denied", "failed"),
        ("child", "succeeded"),
        ("said", "succeeded"),
        ("fails", "failed"),
    ] {
        let is = steps[step]["status"].as_str().unwrap_or_default();
        assert!(is == status || (status == "failed" && is == "skipped"), "{step} {is}: {shown:#}");
    }
    for step in ["send", "stored", "process", "rows", "said"] {
        let text = steps[step].to_string();
        assert!(text.contains("[secret:TOKEN]"), "{step} never had it: {text}");
    }
}

#[test]
fn the_compiler_keeps_secrets_out_of_places_that_are_kept() {
    let place = Place::new("[databases.app]\nurl = \"sqlite:app.db\"\n", &[]);
    for node in [
        "{ id: a, type: db_query, database: app, query: SELECT $1, args: ['{{ secret.T }}'] }",
        "{ id: a, type: shell, command: [echo, '{{ secret.T }}'] }",
        "{ id: a, type: http, url: 'https://example.org/?k={{ secret.T }}' }",
        "{ id: a, type: http, url: https://example.org, query: { k: '{{ secret.T }}' } }",
        "{ id: a, type: log, message: '{{ secret.T }}' }",
        "{ id: a, type: end, result: '{{ secret.T }}' }",
        "{ id: a, type: branch, expr: \"secret.T == 'x'\", cases: { 'true': end, 'false': end } }",
        "{ id: a, type: webhook_respond, body: '{{ secret.T }}' }",
        "{ id: a, type: transform, engine: jq, input: '{{ secret.T }}', expression: . }",
    ] {
        let text = format!(
            "name: W\nenv:\n  - {{ name: T, widget: secret }}\ngraph:\n  nodes:\n    - {node}\n"
        );
        let file = place.path("workflows/w.yaml");
        fs::write(&file, text).unwrap();
        let args = ["workflow", "validate", file.to_str().unwrap()];
        let output = place.command(&args).output().unwrap();
        let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(!output.status.success() && said.contains("secret"), "{node}: {said}");
    }
}
