//! Guided runs through the real binary, over MCP on standard input and output.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use crate::{Bound, Figure, median};

/// A loop that is long enough: 1,000 turns of three steps.
const LOOP: &str = "
id: project.long
name: Long
description: A loop to measure with.
version: 1.0.0
steps:
  - id: round
    type: loop
    title: Round
    loop: {type: for, count: 1000, maxIterations: 1000}
    body:
      - {id: one, title: One, prompt: 'Do the first thing of turn {{currentIteration}}.'}
      - {id: two, title: Two, prompt: Do the second thing.}
      - {id: three, title: Three, prompt: Do the third thing.}
";
const NOTES: &str = "Changed `src/cart.rs` so that an empty cart has a total of zero; the three new tests pass, and nothing is left open in this step.";
const STEPS: usize = 2_000;
const SESSIONS: usize = 1_000;
/// How many calls one figure is the median of.
const SAMPLE: usize = 41;

/// Measures every figure whose group's name contains `wanted`.
pub(crate) fn figures(dir: &Path, binary: &Path, wanted: &str) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    if "guided".contains(wanted) {
        let world = World::new(dir, binary)?;
        figures.extend(world.start()?);
        figures.extend(world.long_run()?);
        figures.extend(world.syncs()?);
        figures.extend(world.resume()?);
    }
    Ok(figures)
}

pub(crate) struct World {
    binary: PathBuf,
    project: PathBuf,
    home: PathBuf,
}

impl World {
    /// A project with a workflow to be led through, and a data directory.
    pub(crate) fn at(project: &Path, home: &Path, binary: &Path) -> Result<Self> {
        std::fs::create_dir_all(project.join("workflows"))?;
        std::fs::write(project.join("workflows/long.yaml"), LOOP)?;
        let (project, home) = (project.to_owned(), home.to_owned());
        Ok(Self { binary: binary.to_owned(), project, home })
    }

    /// A process that has never seen the data directory.
    pub(crate) fn fresh(&self) -> Result<Agent> {
        self.agent(&self.home, &[])
    }

    fn new(dir: &Path, binary: &Path) -> Result<Self> {
        let home = std::env::current_dir()?.join(dir).join("guided");
        Self::at(&dir.join("project"), &home, binary)
    }

    fn agent(&self, home: &Path, around: &[&str]) -> Result<Agent> {
        let mut line = around.iter().map(std::convert::AsRef::as_ref).collect::<Vec<_>>();
        let mcp = [self.binary.as_os_str(), "mcp".as_ref()];
        line.extend(mcp);
        let (program, arguments) = line.split_first().context("an empty command")?;
        let mut child = Command::new(program)
            .args(arguments)
            .env("CAIRN_HOME", home)
            .env_remove("CAIRN_WORKFLOWS")
            .current_dir(&self.project)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("starting the binary")?;
        let stdin = child.stdin.take().context("no input")?;
        let stdout = BufReader::new(child.stdout.take().context("no output")?);
        let mut agent = Agent { child, stdin: Some(stdin), stdout, calls: 0 };
        agent.request(
            "initialize",
            &json!({
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "bench", "version": "1"},
            }),
        )?;
        agent.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        Ok(agent)
    }

    /// From the start of a process to the answer to its first request.
    fn start(&self) -> Result<Vec<Figure>> {
        let mut times = Vec::new();
        for _ in 0..15 {
            let begun = Instant::now();
            let agent = self.agent(&self.home, &[])?;
            times.push(begun.elapsed());
            drop(agent);
        }
        Ok(vec![Figure {
            name: "mcp: start to initialize, ms",
            value: median(times).as_secs_f64() * 1e3,
            bound: Bound::AtMost(50.0),
            detail: "median of 15 starts".into(),
        }])
    }

    /// What a call costs early and late in one run.
    fn long_run(&self) -> Result<Vec<Figure>> {
        let mut agent = self.agent(&self.home, &[])?;
        let mut token = agent.begin()?;
        let mut times = Vec::with_capacity(STEPS);
        let (mut cpu, mut disk) = (agent.cpu()?, bytes_below(&self.home)?);
        let first_disk = disk;
        let first_cpu = cpu;
        for _ in 0..STEPS {
            let begun = Instant::now();
            token = agent.go(&token)?;
            times.push(begun.elapsed());
        }
        cpu = agent.cpu()? - first_cpu;
        disk = bytes_below(&self.home)? - first_disk;
        let part = |from: usize| {
            let part = times.get(from..from + SAMPLE).unwrap_or_default();
            median(part.to_vec()).as_secs_f64()
        };
        let (early, late) = (part(1), part(STEPS - SAMPLE));
        let per_step = |total: f64| total / STEPS as f64;
        Ok(vec![
            Figure {
                name: "continue: step 2,000 / step 20",
                value: late / early,
                bound: Bound::AtMost(1.2),
                detail: format!("{:.2} ms / {:.2} ms", late * 1e3, early * 1e3),
            },
            Figure {
                name: "continue: CPU per advance, ms",
                value: per_step(cpu.as_secs_f64() * 1e3),
                bound: Bound::AtMost(2.0),
                detail: format!("user and system, over {STEPS} advances"),
            },
            Figure {
                name: "continue: memory after 2,000 steps, MB",
                value: agent.resident_mb()?,
                bound: Bound::AtMost(40.0),
                detail: "resident".into(),
            },
            Figure {
                name: "continue: disk per step, KB",
                value: per_step(disk as f64) / 1e3,
                bound: Bound::AtMost(f64::INFINITY),
                detail: "blocks in use, journal and snapshots".into(),
            },
        ])
    }

    /// How often an advance makes the disk keep its word, beside its snapshot.
    fn syncs(&self) -> Result<Vec<Figure>> {
        const ADVANCES: usize = 100;
        let log = self.home.with_extension("syncs");
        let out = log.display().to_string();
        if Command::new("strace").arg("-V").output().is_err() {
            println!("no figure of syncs: strace is not there\n");
            return Ok(Vec::new());
        }
        let strace = ["strace", "-f", "-y", "-qq", "-e", "trace=fdatasync,fsync", "-o", &out];
        let mut agent = self.agent(&self.home, &strace)?;
        let mut token = agent.begin()?;
        let counted = |log: &Path| -> Result<(usize, usize)> {
            let text = std::fs::read_to_string(log)?;
            let all = text.lines().filter(|line| line.contains("sync("));
            let (snapshots, rest): (Vec<_>, Vec<_>) =
                all.partition(|line| line.contains("/snapshots"));
            Ok((rest.len(), snapshots.len()))
        };
        let before = counted(&log)?;
        for _ in 0..ADVANCES {
            token = agent.go(&token)?;
        }
        let after = counted(&log)?;
        let each = |count: usize| count as f64 / ADVANCES as f64;
        Ok(vec![Figure {
            name: "continue: syncs per advance",
            value: each(after.0 - before.0),
            bound: Bound::AtMost(1.05),
            detail: format!("and {:.2} for the snapshot", each(after.1 - before.1)),
        }])
    }

    /// Finding a run among many.
    fn resume(&self) -> Result<Vec<Figure>> {
        let home = self.home.with_extension("many");
        let mut agent = self.agent(&home, &[])?;
        for _ in 0..SESSIONS {
            let token = agent.begin()?;
            agent.go(&token)?;
        }
        agent.tool("resume_session", &json!({"query": "cart"}))?;
        drop(agent);
        // A process that has never seen them, as a brand-new chat has.
        let mut first = Vec::new();
        for _ in 0..5 {
            let mut agent = self.agent(&home, &[])?;
            let begun = Instant::now();
            agent.tool("resume_session", &json!({"query": "empty cart total"}))?;
            first.push(begun.elapsed());
        }
        Ok(vec![Figure {
            name: "resume_session over 1,000 sessions, ms",
            value: median(first).as_secs_f64() * 1e3,
            bound: Bound::AtMost(30.0),
            detail: "first call of a new process, median of 5".into(),
        }])
    }
}

/// A client of the binary.
pub(crate) struct Agent {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    calls: u64,
}

impl Agent {
    fn send(&mut self, message: &Value) -> Result<()> {
        let stdin = self.stdin.as_mut().context("the input is closed")?;
        writeln!(stdin, "{message}")?;
        Ok(stdin.flush()?)
    }

    fn request(&mut self, method: &str, params: &Value) -> Result<Value> {
        self.calls += 1;
        let id = self.calls;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))?;
        loop {
            let mut line = String::new();
            if self.stdout.read_line(&mut line)? == 0 {
                bail!("the binary ended");
            }
            let answer: Value = serde_json::from_str(&line)?;
            if answer.get("id") == Some(&json!(id)) {
                let result = answer.get("result").cloned();
                return result.with_context(|| format!("{method}: {answer}"));
            }
        }
    }

    pub(crate) fn tool(&mut self, name: &str, arguments: &Value) -> Result<Value> {
        let result = self.request("tools/call", &json!({"name": name, "arguments": arguments}))?;
        if result.get("isError") == Some(&json!(true)) {
            bail!("{name}: {result}");
        }
        result.get("structuredContent").cloned().context("no structured content")
    }

    /// Starts a run; gives its token.
    pub(crate) fn begin(&mut self) -> Result<String> {
        let answer = self.tool("start_workflow", &json!({"workflowId": "project.long"}))?;
        token(&answer)
    }

    /// Goes on by one step.
    pub(crate) fn go(&mut self, from: &str) -> Result<String> {
        let output = json!({"notesMarkdown": NOTES});
        let answer =
            self.tool("continue_workflow", &json!({"continueToken": from, "output": output}))?;
        token(&answer)
    }

    /// The processor time that the process has used.
    fn cpu(&self) -> Result<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        let (_, fields) = stat.rsplit_once(") ").context("an odd stat")?;
        let ticks: u64 = fields.split(' ').skip(11).take(2).flat_map(str::parse::<u64>).sum();
        // Linux counts in hundredths of a second, whatever the kernel's own clock.
        Ok(Duration::from_millis(ticks * 10))
    }

    fn resident_mb(&self) -> Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).context("no VmRSS")?;
        let kb: f64 = line.split_whitespace().nth(1).context("no number")?.parse()?;
        Ok(kb / 1e3)
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // It ends when its input does.
        self.stdin = None;
        let _ = self.child.wait();
    }
}

fn token(answer: &Value) -> Result<String> {
    let token = answer.get("continueToken").and_then(Value::as_str);
    Ok(token.with_context(|| format!("no token: {answer}"))?.to_owned())
}

/// The blocks that the files below a directory take.
fn bytes_below(dir: &Path) -> Result<u64> {
    use std::os::unix::fs::MetadataExt as _;
    let mut total = 0;
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let meta = entry.metadata()?;
        total += if meta.is_dir() { bytes_below(&entry.path())? } else { meta.blocks() * 512 };
    }
    Ok(total)
}
