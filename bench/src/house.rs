//! A folder with workflows that webhooks start, served by the real binary or run in process.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use cairn_core::event::engine::EndStatus;
use cairn_engine::catalog::{Catalog, Directory};
use cairn_engine::environment::{Kept, NoModels};
use cairn_engine::flow::{
    Automations, NoEvaluator, Options, Parts, Roles, RunRequest, TriggerEvent,
};
use cairn_engine::host::SystemHost;
use cairn_engine::rights::NoTokens;
use cairn_engine::secrets::{KeySource, Vault};
use cairn_lang::ids::SourceKind;
use cairn_steps::catalog::Settings;
use cairn_triggers::channel::Channels;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};
use sha2::Sha256;

/// Signs the webhooks.
const SECRET: &str = "a-secret-of-the-bench";
/// The id of the trigger that every workflow has.
const TRIGGER: &str = "hook";

/// A folder with workflows and a data directory.
pub(crate) struct House {
    pub(crate) folder: PathBuf,
    pub(crate) binary: PathBuf,
}

/// A server that listens.
pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) address: String,
    /// What it says, which stays open so that it can.
    _output: BufReader<ChildStdout>,
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    /// Ends it as an operator does.
    pub(crate) fn stop(mut self) -> Result<()> {
        let pid = self.child.id().to_string();
        ensure!(Command::new("kill").args(["-TERM", &pid]).status()?.success());
        ensure!(self.child.wait()?.success(), "the server did not end well");
        Ok(())
    }

    /// Ends it as a power cut does.
    pub(crate) fn kill(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// The processor time that it has used.
    pub(crate) fn cpu(&self) -> Result<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        let (_, fields) = stat.rsplit_once(") ").context("an odd stat")?;
        let ticks: u64 = fields.split(' ').skip(11).take(2).flat_map(str::parse::<u64>).sum();
        // Linux counts in hundredths of a second, whatever the kernel's own clock.
        Ok(Duration::from_millis(ticks * 10))
    }

    /// A line of its status, in megabytes.
    pub(crate) fn memory(&self, line: &str) -> Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let found = status.lines().find_map(|text| text.strip_prefix(line));
        let kilobytes =
            found.and_then(|text| text.trim().strip_suffix(" kB")).context("no figure")?;
        Ok(kilobytes.trim().parse::<f64>()? * 1_024.0 / 1e6)
    }
}

impl House {
    /// A folder, with a secret that signs webhooks.
    pub(crate) fn new(folder: &Path, binary: &Path) -> Result<Self> {
        let folder = std::env::current_dir()?.join(folder);
        std::fs::create_dir_all(folder.join("workflows"))?;
        let house = Self { folder, binary: binary.to_owned() };
        std::fs::write(house.folder.join("config.toml"), "[http]\nallow = [\"127.0.0.1:*\"]\n")?;
        let mut set = house.command(&["secret", "set", "SIGN"]);
        let mut set = set.stdin(Stdio::piped()).spawn()?;
        set.stdin.take().context("no input")?.write_all(SECRET.as_bytes())?;
        ensure!(set.wait()?.success(), "the secret could not be set");
        Ok(house)
    }

    /// Writes a workflow that `/hooks/<name>` starts.
    pub(crate) fn add(&self, name: &str, respond: &str, nodes: &str) -> Result<()> {
        let text = format!(
            "name: {name}\nrate_limit: 10000000/min\nconcurrency: 1000\nenv:\n  - {{ name: SIGN, widget: secret }}\ntriggers:\n  - {{ id: {TRIGGER}, type: webhook, path: /{name}, secret: SIGN, signature: github, respond: {respond} }}\ngraph:\n  nodes:\n{nodes}"
        );
        Ok(std::fs::write(self.folder.join(format!("workflows/{name}.yaml")), text)?)
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
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

    /// Starts the server, which may take its time to be ready.
    pub(crate) fn start(&self) -> Result<Server> {
        let mut command = self.command(&["serve", "--listen", "127.0.0.1:0"]);
        let mut child = command.stdout(Stdio::piped()).spawn().context("starting the server")?;
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().context("no output")?);
        output.read_line(&mut line)?;
        let address = line.trim_end().strip_prefix("listening on http://");
        let address = address.context("it does not listen")?.to_owned();
        Ok(Server { child, address, _output: output })
    }

    /// Starts the server; gives it and how long it took until it said that it is ready.
    pub(crate) fn serve(&self) -> Result<(Server, Duration)> {
        let begun = Instant::now();
        let server = self.start()?;
        let mut client = Client::to(&server.address)?;
        while client.send("GET /readyz", "", "")?.0 != 200 {}
        Ok((server, begun.elapsed()))
    }

    /// What may ask the server for anything.
    pub(crate) fn admin(&self) -> Result<String> {
        let token = std::fs::read_to_string(self.folder.join("home/keys/admin.token"))?;
        Ok(format!("Authorization: Bearer {}\r\n", token.trim()))
    }

    /// The same engine as the server's, over the same data directory, in this process.
    pub(crate) fn engine(&self) -> Result<Automations> {
        let home = self.folder.join("home");
        let store = cairn_store::open(&cairn_store::Config::files(home.clone()))?;
        let triggers = cairn_triggers::catalog::all(Channels::default());
        let types = cairn_steps::catalog::types().with_triggers(triggers.kinds());
        let root = self.folder.join("workflows");
        let directory = Directory { kind: SourceKind::Project, root };
        let key = KeySource::File(self.folder.join("master.key"));
        let vault = Vault::new(&store, home.clone(), key);
        let parts = Parts {
            host: SystemHost::shared(),
            catalog: Arc::new(Catalog::new(vec![directory]).knowing(types.clone())),
            types,
            performers: cairn_steps::catalog::all(&Settings::new(self.binary.clone(), &home)),
            environment: Arc::new(Kept::new(
                Arc::clone(&store.documents),
                vault,
                Arc::new(NoModels),
            )),
            rights: Arc::new(NoTokens),
            evaluator: Arc::new(NoEvaluator),
            store,
        };
        Ok(Automations::new(parts, Options::default()))
    }
}

/// Nodes that write a line each, one after another.
pub(crate) fn lines(count: usize) -> String {
    let node = |step: usize| match step + 1 {
        last if last == count => format!("    - {{ id: s{step}, type: log, message: x }}\n"),
        next => format!("    - {{ id: s{step}, type: log, message: x, next: s{next} }}\n"),
    };
    (0..count).map(node).collect()
}

/// Asks for a run as the webhook of a workflow does, in this process, and waits for its end.
pub(crate) async fn call(engine: &Automations, workflow: &str, key: &str) -> Result<()> {
    let kind = "webhook".to_owned();
    let event = TriggerEvent { payload: json!({"id": key}), kind, ..TriggerEvent::default() };
    let request = RunRequest {
        workflow: format!("project.{workflow}"),
        trigger: Some(TRIGGER.parse()?),
        key: Some(key.to_owned()),
        event,
        depth: 0,
        by: "webhook".into(),
        roles: Roles::Any,
    };
    let ended = engine.call(request).await?.ended.await?;
    ensure!(ended.status == EndStatus::Succeeded, "{:?}", ended.result);
    Ok(())
}

/// A connection that stays.
pub(crate) struct Client {
    stream: BufReader<TcpStream>,
}

impl Client {
    pub(crate) fn to(address: &str) -> Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    pub(crate) fn send(&mut self, what: &str, more: &str, body: &str) -> Result<(u16, String)> {
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

    pub(crate) fn hook(&mut self, path: &str, id: &str) -> Result<()> {
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

    /// Gets something as the admin; it must be there.
    pub(crate) fn get(&mut self, path: &str, admin: &str) -> Result<Value> {
        let (status, answer) = self.send(&format!("GET {path}"), admin, "")?;
        ensure!(status == 200, "{path}: {status} {answer}");
        Ok(serde_json::from_str(&answer)?)
    }
}

/// Sends webhooks over so many connections at once; gives how long it took.
pub(crate) fn load(
    address: &str,
    (path, prefix): (&str, &str),
    runs: usize,
    at_once: usize,
) -> Result<Duration> {
    let begun = Instant::now();
    let lanes: Vec<_> = (0..at_once)
        .map(|lane| {
            let (address, path, prefix) = (address.to_owned(), path.to_owned(), prefix.to_owned());
            std::thread::spawn(move || -> Result<()> {
                let mut client = Client::to(&address)?;
                for number in (lane..runs).step_by(at_once) {
                    client.hook(&path, &format!("{prefix}-{number}"))?;
                }
                Ok(())
            })
        })
        .collect();
    for lane in lanes {
        lane.join().map_err(|_| anyhow::anyhow!("a client panicked"))??;
    }
    Ok(begun.elapsed())
}

/// The time that a part of all times is below, in milliseconds.
pub(crate) fn at(times: &mut [Duration], part: f64) -> f64 {
    times.sort_unstable();
    let index = (times.len() as f64 * part) as usize;
    times.get(index).copied().unwrap_or_default().as_secs_f64() * 1_000.0
}
