use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, ChildStderr, ChildStdout, Stdio};

use insta::assert_snapshot;
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::process::{Pid, Signal, kill_process};

use crate::env::{Outcome, SESSION, TestEnv};

/// A server that is stopped when the test ends, however it ends.
pub(crate) struct Server {
    child: Child,
    stdout: BufReader<ChildStdout>,
    stderr: ChildStderr,
}

impl Server {
    pub(crate) fn start(env: &TestEnv, args: &[&str]) -> Self {
        Self::start_where_told(env, &[&["--listen", "127.0.0.1:0"], args].concat())
    }

    fn start_where_told(env: &TestEnv, args: &[&str]) -> Self {
        let mut command = env.command(&["serve"]);
        command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let stderr = child.stderr.take().unwrap();
        Self { child, stdout, stderr }
    }

    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    pub(crate) fn signal(&mut self, signal: Signal) -> Option<i32> {
        self.urge(signal);
        self.child.wait().unwrap().code()
    }

    /// Sends a signal without waiting for what comes of it.
    pub(crate) fn urge(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for the end; gives what was remarked until then.
    pub(crate) fn ended(&mut self) -> (Option<i32>, String) {
        let mut remarks = String::new();
        self.stderr.read_to_string(&mut remarks).unwrap();
        (self.child.wait().unwrap().code(), remarks)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn get(address: &str, path: &str, token: &str) -> String {
    let mut stream = TcpStream::connect(address.strip_prefix("http://").unwrap()).unwrap();
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn the_configuration_file_says_where_to_listen() {
    let env = TestEnv::new();
    fs::write(env.path("free.toml"), "serve.listen = \"127.0.0.2:0\"\n").unwrap();
    let mut server = Server::start_where_told(&env, &["--config", "free.toml"]);
    let address = server.line();
    assert!(address.starts_with("listening on http://127.0.0.2:"), "{address}");
    drop(server);
    let mut server = Server::start(&env, &["--config", "free.toml"]);
    let address = server.line();
    assert!(address.starts_with("listening on http://127.0.0.1:"), "{address}");
}

#[test]
fn the_first_start_shows_a_token_that_opens_the_api() {
    let env = TestEnv::with_session();
    let mut server = Server::start(&env, &[]);
    let (address, token) = (server.line(), server.line());
    assert_snapshot!(format!("{address}\n{token}"), @r"
    listening on http://127.0.0.1:[port]
    admin token: cairn_adm_[secret]  (shown once; kept in [tmp]/home/keys/admin.token)
    ");
    let address = address.strip_prefix("listening on ").unwrap();
    let token = token.strip_prefix("admin token: ").unwrap().split(' ').next().unwrap();

    assert!(get(address, "/healthz", "").starts_with("HTTP/1.1 200 "));
    assert!(get(address, "/api/v1/sessions", "").starts_with("HTTP/1.1 401 "));
    let listed = get(address, "/api/v1/sessions", token);
    assert!(listed.starts_with("HTTP/1.1 200 ") && listed.contains(SESSION), "{listed}");
    let file = env.home().join("keys/admin.token");
    assert_eq!(fs::read_to_string(&file).unwrap().trim_end(), token);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(server.signal(Signal::TERM), Some(0));

    let mut again = Server::start(&env, &[]);
    let (address, kept) = (again.line(), again.line());
    assert_snapshot!(kept, @"admin token: kept in [tmp]/home/keys/admin.token");
    let address = address.strip_prefix("listening on ").unwrap();
    assert!(get(address, "/api/v1/sessions", token).starts_with("HTTP/1.1 200 "));
    assert_eq!(again.signal(Signal::INT), Some(0));
}

#[test]
fn a_session_that_cannot_be_read_hides_no_other() {
    let env = TestEnv::with_session();
    env.append("sess_01hf7yzz000000000000000001", 1);
    env.make_unreadable(SESSION);
    let mut server = Server::start(&env, &[]);
    let (address, token) = (server.line(), server.line());
    let address = address.strip_prefix("listening on ").unwrap();
    let token = token.strip_prefix("admin token: ").unwrap().split(' ').next().unwrap();
    let listed = get(address, "/api/v1/sessions", token);
    assert!(listed.starts_with("HTTP/1.1 200 "), "{listed}");
    assert!(listed.contains("sess_01hf7yzz") && listed.contains("\"damage\":\"STORE_IO: "));
}

#[test]
fn programs_read_where_it_listens() {
    let env = TestEnv::new();
    let mut server = Server::start(&env, &["--json"]);
    assert_snapshot!(server.line(), @r#"{"address":"http://127.0.0.1:[port]","adminToken":"cairn_adm_[secret]","adminTokenFile":"[tmp]/home/keys/admin.token"}"#);
}

#[test]
fn other_hosts_are_answered_for_when_they_are_named() {
    let env = TestEnv::new();
    let mut server = Server::start(&env, &["--public-host", "cairn.example"]);
    let address = server.line();
    let address = address.strip_prefix("listening on http://").unwrap();
    for (host, status) in [("cairn.example", "200"), ("evil.com", "421")] {
        let mut stream = TcpStream::connect(address).unwrap();
        let request = format!("GET /healthz HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert_eq!(answer.split(' ').nth(1), Some(status), "{host}");
    }
}

#[test]
fn it_does_not_listen_where_it_must_not() {
    let env = TestEnv::new();
    assert_snapshot!(env.run(&["serve", "--listen", "0.0.0.0:0"]), @r"
    exit 8
    --- stderr
    error[SERVER_ADDRESS_EXPOSED]: 0.0.0.0:0 can be reached from other machines
      → listen on 127.0.0.1, or put a proxy with TLS in front and add --behind-proxy
    ");
    assert_snapshot!(env.run(&["serve", "--listen", "somewhere"]), @r"
    exit 2
    --- stderr
    error[USAGE_INVALID]: invalid value 'somewhere' for '--listen <ADDRESS>': invalid socket address syntax
      → see `cairn serve --help`
    ");
    assert_snapshot!(env.run(&["serve", "--listen", "192.0.2.1:0", "--behind-proxy"]), @r"
    exit 1
    --- stderr
    error[SERVER_BIND_FAILED]: listening on 192.0.2.1:0: Cannot assign requested address (os error 99)
      → choose an address of this machine with --listen
    ");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    assert_snapshot!(env.run(&["serve", "--listen", &address]), @r"
    exit 7
    --- stderr
    error[SERVER_PORT_TAKEN]: 127.0.0.1:[port] is taken by another program
      → stop the other program, or choose a port with --listen 127.0.0.1:0
    ");
    // What could not start has shown no token, so it has made none.
    assert!(!env.home().join("keys/admin.token").exists());
}

#[test]
fn a_token_that_others_can_read_is_not_used() {
    let env = TestEnv::new();
    Server::start(&env, &[]).line();
    let mut server = Server::start(&env, &[]);
    server.line();
    server.line();
    drop(server);
    let file = env.home().join("keys/admin.token");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    assert_snapshot!(env.run(&["serve", "--listen", "127.0.0.1:0"]), @r"
    exit 8
    --- stderr
    error[ADMIN_TOKEN_UNUSABLE]: the admin token in [tmp]/home/keys/admin.token cannot be used: others may read it (mode 644); run `chmod 600 [tmp]/home/keys/admin.token`
      → give the file mode 0600, or delete it: the next `cairn serve` makes a new token
    ");
}

#[test]
fn a_server_whose_data_is_gone_is_alive_and_not_ready() {
    let env = TestEnv::new();
    fs::create_dir_all(env.home().join("sessions")).unwrap();
    let mut server = Server::start(&env, &[]);
    let address = server.line();
    let address = address.strip_prefix("listening on ").unwrap();
    until_ready(address);
    let sessions = env.home().join("sessions");
    fs::rename(&sessions, env.path("elsewhere")).unwrap();
    fs::write(&sessions, "no folder").unwrap();
    assert!(get(address, "/healthz", "").starts_with("HTTP/1.1 200 "));
    let answer = get(address, "/readyz", "");
    assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("SERVER_NOT_READY"), "{answer}");
    fs::remove_file(&sessions).unwrap();
    fs::rename(env.path("elsewhere"), &sessions).unwrap();
    assert!(get(address, "/readyz", "").starts_with("HTTP/1.1 200 "), "as soon as it is back");
}

/// Asks until the server says that it is ready.
fn until_ready(address: &str) {
    let begun = std::time::Instant::now();
    while !get(address, "/readyz", "").starts_with("HTTP/1.1 200 ") {
        assert!(begun.elapsed() < std::time::Duration::from_secs(30), "it is not ready");
    }
}

#[test]
fn a_server_that_says_it_is_ready_knows_its_webhooks() {
    let env = TestEnv::new();
    for _ in 0..5 {
        let mut server = Server::start(&env, &[]);
        let address = server.line();
        let address = address.strip_prefix("listening on ").unwrap();
        until_ready(address);
        // Before it knows them it asks senders to come back, with 503.
        let answer = get(address, "/hooks/nothing", "");
        assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
    }
}

// case: mcp.auth
#[test]
fn a_body_that_is_no_message_gets_an_answer_of_the_protocol() {
    let env = TestEnv::new();
    let mut server = Server::start(&env, &[]);
    let (address, token) = (server.line(), server.line());
    let address = address.strip_prefix("listening on http://").unwrap();
    let token = token.strip_prefix("admin token: ").unwrap().split(' ').next().unwrap();
    let read = env.run(&["token", "create", "--name", "reader", "--scope", "read"]);
    let read = read.stdout.split_whitespace().find(|word| word.starts_with("cairn_tok_")).unwrap();
    let post_with = |token: &str, kind: &str, accept: &str, body: &str| {
        let mut stream = TcpStream::connect(address).unwrap();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nContent-Type: {kind}\r\nAccept: {accept}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let post = |kind: &str, accept: &str, body: &str| post_with(token, kind, accept, body);
    let (json, both) = ("application/json", "application/json, text/event-stream");
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    for (token, code) in [("nobody", "AUTH_TOKEN_INVALID"), (read, "AUTH_FORBIDDEN")] {
        let answer = post_with(token, json, both, ping);
        assert!(answer.contains(&format!("\"code\":\"{code}\"")), "{answer}");
    }
    for (kind, accept, code) in
        [(json, "text/html", "REQUEST_NOT_ACCEPTABLE"), ("text/plain", both, "REQUEST_MEDIA_TYPE")]
    {
        let answer = post(kind, accept, ping);
        assert!(answer.contains("content-type: application/problem+json"), "{answer}");
        assert!(answer.contains(&format!("\"code\":\"{code}\"")), "{answer}");
    }
    for (body, code) in [("{\"jsonrpc\":", "-32700"), ("hello", "-32700"), ("[]", "-32600")] {
        let answer = post(json, both, body);
        assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
        assert!(answer.contains("content-type: application/json"), "{answer}");
        assert!(answer.contains(&format!("\"code\":{code}")), "{answer}");
        assert!(answer.contains("\"id\":null"), "{answer}");
    }
}

#[test]
fn where_traces_go_has_to_be_an_address_that_can_be_spoken_to() {
    let env = TestEnv::new();
    let told = |name: &str, value: &str| {
        let mut command = env.command(&["serve", "--listen", "127.0.0.1:0"]);
        command.env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318").env(name, value);
        Outcome::of(command.output().unwrap()).to_string()
    };
    let refused = told("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4317");
    assert!(refused.contains("USAGE_INVALID") && refused.contains("collector:4317"), "{refused}");
    let refused = told("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc");
    assert!(refused.contains("USAGE_INVALID") && refused.contains("HTTP only"), "{refused}");
    let refused = told("OTEL_EXPORTER_OTLP_HEADERS", "x-key=hunter2,hunter3");
    assert!(refused.contains("USAGE_INVALID") && !refused.contains("hunter"), "{refused}");
}

#[test]
fn traces_go_where_the_environment_says() {
    let env = TestEnv::new();
    fs::create_dir_all(env.path("workflows")).unwrap();
    let text = "name: Quick\ngraph: { nodes: [{ id: a, type: end, result: x }] }\n";
    fs::write(env.path("workflows/quick.yaml"), text).unwrap();
    let collector = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", collector.local_addr().unwrap());
    fs::write(env.path("traced.toml"), format!("telemetry.endpoint = \"{endpoint}\"\n")).unwrap();
    let mut server = Server::start(&env, &["--config", "traced.toml"]);
    let _ = server.line();
    let ran = env.run(&["run", "quick"]);
    assert_eq!(ran.code, 0, "{ran}");
    // The run is another process's, and the server tells of it all the same.
    let (mut stream, _) = collector.accept().unwrap();
    let mut head = [0; 15];
    stream.read_exact(&mut head).unwrap();
    assert_eq!(&head, b"POST /v1/traces");
}

#[test]
fn a_data_directory_has_one_server() {
    let env = TestEnv::new();
    let mut first = Server::start(&env, &[]);
    let address = first.line();
    let second = env.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(second.code, 7, "{second}");
    let (code, process) =
        ("error[SERVER_RUNNING]: process ", address.replace("listening on", "at"));
    assert!(second.stderr.contains(code) && second.stderr.contains(&process), "{second}");
    // Whoever comes after it has the place.
    first.signal(Signal::KILL);
    Server::start(&env, &[]).line();
}

#[test]
fn the_place_of_a_server_that_is_about_to_end_is_waited_for() {
    let env = TestEnv::new();
    Server::start(&env, &[]).line();
    let lock = fs::File::options().write(true).open(env.path("home/server.lock")).unwrap();
    lock.lock().unwrap();
    let watch = inotify::init(CreateFlags::empty()).unwrap();
    inotify::add_watch(&watch, env.path("home/server.lock"), WatchFlags::CLOSE).unwrap();
    let mut next = Server::start(&env, &[]);
    // It has looked for its place, and it was taken.
    let mut room = [MaybeUninit::uninit(); 512];
    inotify::Reader::new(&watch, &mut room).next().unwrap();
    drop(lock);
    assert!(next.line().starts_with("listening on"));
}

// case: keyring.exposed
#[test]
fn a_server_does_not_start_with_files_that_others_may_read() {
    let env = TestEnv::new();
    Server::start(&env, &[]).line();
    assert_eq!(env.run(&["token", "create", "--name", "ci", "--scope", "read"]).code, 0);
    assert_eq!(env.run_with_input(&["secret", "set", "KEY"], b"hush-hush").code, 0);
    let key = env.path(".config/cairn/master.key");
    for file in [env.path("home/keys/tokens.json"), env.path("home/secrets/vault.json"), key] {
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        let refused = env.run(&["serve", "--listen", "127.0.0.1:0"]);
        assert_ne!(refused.code, 0, "{refused}");
        let mend = format!("chmod 600 {}", file.display());
        assert!(refused.stderr.contains(&mend), "{refused}");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    }
    assert!(Server::start(&env, &[]).line().starts_with("listening on"));
}
