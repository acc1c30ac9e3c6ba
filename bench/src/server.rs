//! Automations through the real server: webhooks, starts, memory, and what a kill costs.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};
use sha2::Sha256;

use crate::{Bound, Figure, flushes, median};

/// Signs the webhooks.
const SECRET: &str = "a-secret-of-the-bench";
/// How many webhooks one figure is of.
const HOOKS: usize = 2_000;
/// How many runs there are under load, and then on disk.
const RUNS: usize = 10_000;
/// How many of them are under way at once.
const AT_ONCE: usize = 64;
/// How many steps each has.
const STEPS: usize = 10;
/// How long something may take that takes a moment.
const PATIENCE: Duration = Duration::from_secs(20);
/// How many runs are under way when the server is killed.
const KILLED: usize = 100;

/// Measures every figure when `wanted` asks for the server's.
pub(crate) fn figures(dir: &Path, binary: &Path, wanted: &str) -> Result<Vec<Figure>> {
    if !"flow-server".contains(wanted) {
        return Ok(Vec::new());
    }
    let holder = Holder::start()?;
    let place = Place::new(dir, binary, holder.port)?;
    let mut figures = place.hooks()?;
    figures.extend(place.load()?);
    figures.extend(place.start()?);
    figures.push(place.kill(&holder)?);
    Ok(figures)
}

/// A folder with workflows and a home.
struct Place {
    folder: PathBuf,
    binary: PathBuf,
}

/// A server that listens.
struct Server {
    child: Child,
    address: String,
    /// What it says, which stays open so that it can.
    _output: BufReader<ChildStdout>,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Place {
    fn new(dir: &Path, binary: &Path, port: u16) -> Result<Self> {
        let folder = std::env::current_dir()?.join(dir).join("server");
        std::fs::create_dir_all(folder.join("workflows"))?;
        let place = Self { folder, binary: binary.to_owned() };
        std::fs::write(place.folder.join("config.toml"), "[http]\nallow = [\"127.0.0.1:*\"]\n")?;
        let head = |name: &str, respond: &str| {
            format!(
                "name: {name}\nrate_limit: 10000000/min\nconcurrency: 1000\nenv:\n  - {{ name: SIGN, widget: secret }}\ntriggers:\n  - {{ type: webhook, path: /{name}, secret: SIGN, signature: github, respond: {respond} }}\ngraph:\n  nodes:\n"
            )
        };
        let one = "    - { id: a, type: log, message: x }\n".to_owned();
        let ten: String = (0..STEPS)
            .map(|step| match step + 1 {
                STEPS => format!("    - {{ id: s{step}, type: log, message: x }}\n"),
                next => format!("    - {{ id: s{step}, type: log, message: x, next: s{next} }}\n"),
            })
            .collect();
        let held = format!(
            "    - {{ id: a, type: http, method: POST, url: 'http://127.0.0.1:{port}/{{{{ run.id }}}}' }}\n"
        );
        // A workflow performs 64 steps at once; two of them hold what is killed.
        for (name, respond, nodes) in [
            ("one", "last_step", one),
            ("ten", "last_step", ten),
            ("held-0", "immediately", held.clone()),
            ("held-1", "immediately", held),
        ] {
            let path = place.folder.join("workflows").join(format!("{name}.yaml"));
            std::fs::write(path, head(name, respond) + &nodes)?;
        }
        let mut set = place.command(&["secret", "set", "SIGN"]);
        let mut set = set.stdin(Stdio::piped()).spawn()?;
        set.stdin.take().context("no input")?.write_all(SECRET.as_bytes())?;
        ensure!(set.wait()?.success(), "the secret could not be set");
        Ok(place)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command
            .args(args)
            .env("CAIRN_HOME", self.folder.join("home"))
            .env("CAIRN_CONFIG", self.folder.join("config.toml"))
            .env("CAIRN_MASTER_KEY_FILE", self.folder.join("master.key"))
            .env_remove("CAIRN_WORKFLOWS")
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    /// Starts the server; gives it and how long it took until it was ready.
    fn serve(&self) -> Result<(Server, Duration)> {
        let begun = Instant::now();
        let mut command = self.command(&["serve", "--listen", "127.0.0.1:0"]);
        let mut child = command.stdout(Stdio::piped()).spawn().context("starting the server")?;
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().context("no output")?);
        output.read_line(&mut line)?;
        let address = line.trim_end().strip_prefix("listening on http://");
        let address = address.context("it does not listen")?.to_owned();
        let server = Server { child, address, _output: output };
        let mut client = Client::to(&server.address)?;
        // Before it knows its webhooks it asks senders to come back; then it asks for a signature.
        while client.send("POST /hooks/one", "", "")?.0 != 401 {}
        Ok((server, begun.elapsed()))
    }

    fn stop(mut server: Server) -> Result<()> {
        let pid = server.child.id().to_string();
        ensure!(Command::new("kill").args(["-TERM", &pid]).status()?.success());
        ensure!(server.child.wait()?.success(), "the server did not end well");
        Ok(())
    }

    fn hooks(&self) -> Result<Vec<Figure>> {
        let (server, _) = self.serve()?;
        let mut client = Client::to(&server.address)?;
        for number in 0..HOOKS / 10 {
            client.hook("one", &format!("warm-{number}"))?;
        }
        let before = flushes(&self.folder);
        let mut times = Vec::with_capacity(HOOKS);
        for number in 0..HOOKS {
            let begun = Instant::now();
            client.hook("one", &format!("hook-{number}"))?;
            times.push(begun.elapsed());
        }
        let counted = flushed(before, flushes(&self.folder), HOOKS, "webhook");
        times.sort_unstable();
        let at = |part: f64| {
            let index = (times.len() as f64 * part) as usize;
            times.get(index).copied().unwrap_or_default().as_secs_f64() * 1_000.0
        };
        Self::stop(server)?;
        Ok(vec![
            Figure {
                name: "webhook to finished, p50, ms",
                value: at(0.5),
                bound: Bound::AtMost(1.5),
                detail: counted,
            },
            Figure {
                name: "webhook to finished, p99, ms",
                value: at(0.99),
                bound: Bound::AtMost(4.0),
                detail: format!("{HOOKS} webhooks, one after another"),
            },
        ])
    }

    /// Ten thousand runs of ten steps, 64 at once.
    fn load(&self) -> Result<Vec<Figure>> {
        let (server, _) = self.serve()?;
        let (before, begun) = (flushes(&self.folder), Instant::now());
        let lanes: Vec<_> = (0..AT_ONCE)
            .map(|lane| {
                let address = server.address.clone();
                std::thread::spawn(move || -> Result<()> {
                    let mut client = Client::to(&address)?;
                    for number in (lane..RUNS).step_by(AT_ONCE) {
                        client.hook("ten", &format!("load-{number}"))?;
                    }
                    Ok(())
                })
            })
            .collect();
        for lane in lanes {
            lane.join().map_err(|_| anyhow::anyhow!("a client panicked"))??;
        }
        let took = begun.elapsed();
        let steps = RUNS * STEPS;
        let counted = flushed(before, flushes(&self.folder), steps, "step");
        let peak = memory(&server.child, "VmHWM:")?;
        Self::stop(server)?;
        let kept = size(&self.folder.join("home").join("sessions"))?;
        println!(
            "kept in sessions, with triggers and journals: {:.0} bytes a step",
            kept as f64 / steps as f64
        );
        Ok(vec![Figure {
            name: "memory under load, MB",
            value: peak,
            bound: Bound::AtMost(120.0),
            detail: format!(
                "{:.0} steps/s through webhooks, {AT_ONCE} runs at once; {counted}",
                steps as f64 / took.as_secs_f64()
            ),
        }])
    }

    fn start(&self) -> Result<Vec<Figure>> {
        let mut times = Vec::new();
        let mut idle = 0.0;
        for _ in 0..5 {
            let (server, ready) = self.serve()?;
            times.push(ready);
            // Whatever it does at its start is done when it answers this.
            Client::to(&server.address)?.send("GET /healthz", "", "")?;
            std::thread::sleep(Duration::from_millis(500));
            idle = memory(&server.child, "VmRSS:")?;
            Self::stop(server)?;
        }
        Ok(vec![
            Figure {
                name: "server ready with 10,000 finished runs, ms",
                value: median(times).as_secs_f64() * 1_000.0,
                bound: Bound::AtMost(100.0),
                detail: "from its start until it takes webhooks".to_owned(),
            },
            Figure {
                name: "memory when idle, MB",
                value: idle,
                bound: Bound::AtMost(40.0),
                detail: "half a second after its start, 10,000 finished runs".to_owned(),
            },
        ])
    }

    /// Kills the server with runs under way; how long until all of them go on.
    fn kill(&self, holder: &Holder) -> Result<Figure> {
        let mut times = Vec::new();
        for round in 0..5 {
            let (mut server, _) = self.serve()?;
            let mut client = Client::to(&server.address)?;
            for number in 0..KILLED {
                let workflow = format!("held-{}", number % 2);
                client.hook(&workflow, &format!("held-{round}-{number}"))?;
            }
            holder.until(KILLED)?;
            server.child.kill()?;
            server.child.wait()?;
            holder.forget();
            let (server, _) = self.serve()?;
            let ready = Instant::now();
            holder.until(KILLED)?;
            times.push(ready.elapsed());
            holder.let_go();
            let mut client = Client::to(&server.address)?;
            client.until_none_is_open(&self.folder)?;
            Self::stop(server)?;
            holder.forget();
        }
        Ok(Figure {
            name: "killed with 100 runs: all go on, s after ready",
            value: median(times).as_secs_f64(),
            bound: Bound::AtMost(0.3),
            detail: "until each of their steps was performed again".to_owned(),
        })
    }
}

/// What the disk was made to do, for people.
fn flushed(before: Option<u64>, after: Option<u64>, of: usize, what: &str) -> String {
    let Some((before, after)) = before.zip(after) else { return "flushes not counted".into() };
    let count = after.saturating_sub(before);
    format!("{count} device flushes, {:.2} a {what}", count as f64 / of as f64)
}

/// A line of a process's status, in megabytes.
fn memory(child: &Child, line: &str) -> Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id()))?;
    let found = status.lines().find_map(|text| text.strip_prefix(line));
    let kilobytes = found.and_then(|text| text.trim().strip_suffix(" kB")).context("no figure")?;
    Ok(kilobytes.trim().parse::<f64>()? * 1_024.0 / 1e6)
}

fn size(folder: &Path) -> Result<u64> {
    let mut sum = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let about = entry.metadata()?;
        sum += if about.is_dir() { size(&entry.path())? } else { about.len() };
    }
    Ok(sum)
}

/// A connection that stays.
struct Client {
    stream: BufReader<TcpStream>,
}

impl Client {
    fn to(address: &str) -> Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    fn send(&mut self, what: &str, more: &str, body: &str) -> Result<(u16, String)> {
        let length = body.len();
        let request = format!(
            "{what} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n{more}\r\n{body}"
        );
        self.stream.get_mut().write_all(request.as_bytes())?;
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        let status = line.split(' ').nth(1).context("no answer")?.parse()?;
        let mut length = 0;
        loop {
            line.clear();
            self.stream.read_line(&mut line)?;
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse()?;
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        Ok((status, String::from_utf8(body)?))
    }

    fn hook(&mut self, path: &str, id: &str) -> Result<()> {
        let body = json!({"id": id}).to_string();
        let mut code = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes())?;
        code.update(body.as_bytes());
        let hex: String =
            code.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        let more = format!("X-GitHub-Delivery: {id}\r\nX-Hub-Signature-256: sha256={hex}\r\n");
        let (status, answer) = self.send(&format!("POST /hooks/{path}"), &more, &body)?;
        ensure!((200..300).contains(&status), "{path} {id}: {status} {answer}");
        Ok(())
    }

    fn until_none_is_open(&mut self, folder: &Path) -> Result<()> {
        let token = std::fs::read_to_string(folder.join("home/keys/admin.token"))?;
        let more = format!("Authorization: Bearer {}\r\n", token.trim());
        let what = "GET /api/v1/runs?status=queued,running,waiting&limit=1";
        loop {
            let (_, answer) = self.send(what, &more, "")?;
            let answer: Value = serde_json::from_str(&answer)?;
            if answer.get("items").and_then(Value::as_array).is_some_and(Vec::is_empty) {
                return Ok(());
            }
        }
    }
}

/// A web server that keeps whoever asks waiting.
struct Holder {
    port: u16,
    held: Arc<Held>,
}

#[derive(Default)]
struct Held {
    asked: Mutex<(BTreeSet<String>, bool)>,
    moved: Condvar,
}

impl Holder {
    fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        let held: Arc<Held> = Arc::default();
        let all = Arc::clone(&held);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let all = Arc::clone(&all);
                std::thread::spawn(move || hold(stream, &all));
            }
        });
        Ok(Self { port, held })
    }

    /// Waits until so many have asked.
    fn until(&self, count: usize) -> Result<()> {
        let asked = self.held.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let fewer = |asked: &mut (BTreeSet<String>, bool)| asked.0.len() < count;
        let waited = self.held.moved.wait_timeout_while(asked, PATIENCE, fewer);
        let (asked, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        ensure!(!waited.timed_out(), "{} of {count} steps were performed", asked.0.len());
        Ok(())
    }

    fn forget(&self) {
        *self.held.asked.lock().unwrap_or_else(PoisonError::into_inner) = Default::default();
    }

    fn let_go(&self) {
        self.held.asked.lock().unwrap_or_else(PoisonError::into_inner).1 = true;
        self.held.moved.notify_all();
    }
}

fn hold(mut stream: TcpStream, held: &Held) {
    let Ok(copy) = stream.try_clone() else { return };
    let mut lines = BufReader::new(copy).lines().map_while(Result::ok);
    while let Some(first) = lines.next() {
        let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
        lines.by_ref().find(String::is_empty);
        let mut asked = held.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.0.insert(path);
        held.moved.notify_all();
        while !asked.1 {
            asked = held.moved.wait(asked).unwrap_or_else(PoisonError::into_inner);
        }
        drop(asked);
        if stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").is_err() {
            return;
        }
    }
}
