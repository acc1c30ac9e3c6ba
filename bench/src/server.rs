//! Automations through the real server: webhooks, starts, memory, and what a kill costs.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::Value;

use crate::house::{Client, House, at, lines, load};
use crate::{Bound, Figure, flushes, median};

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

/// The folder and its figures.
struct Place(House);

impl Place {
    fn new(dir: &Path, binary: &Path, port: u16) -> Result<Self> {
        let house = House::new(&dir.join("server"), binary)?;
        let held = format!(
            "    - {{ id: a, type: http, method: POST, url: 'http://127.0.0.1:{port}/{{{{ run.id }}}}' }}\n"
        );
        house.add("one", "last_step", &lines(1))?;
        house.add("ten", "last_step", &lines(STEPS))?;
        // A workflow performs 64 steps at once; two of them hold what is killed.
        house.add("held-0", "immediately", &held)?;
        house.add("held-1", "immediately", &held)?;
        Ok(Self(house))
    }

    fn hooks(&self) -> Result<Vec<Figure>> {
        let (server, _) = self.0.serve()?;
        let mut client = Client::to(&server.address)?;
        for number in 0..HOOKS / 10 {
            client.hook("one", &format!("warm-{number}"))?;
        }
        let before = flushes(&self.0.folder);
        let mut times = Vec::with_capacity(HOOKS);
        for number in 0..HOOKS {
            let begun = Instant::now();
            client.hook("one", &format!("hook-{number}"))?;
            times.push(begun.elapsed());
        }
        let counted = flushed(before, flushes(&self.0.folder), HOOKS, "webhook");
        server.stop()?;
        Ok(vec![
            Figure {
                name: "webhook to finished, p50, ms",
                value: at(&mut times, 0.5),
                bound: Bound::AtMost(1.5),
                detail: counted,
            },
            Figure {
                name: "webhook to finished, p99, ms",
                value: at(&mut times, 0.99),
                bound: Bound::AtMost(4.0),
                detail: format!("{HOOKS} webhooks, one after another"),
            },
        ])
    }

    /// Ten thousand runs of ten steps, 64 at once.
    fn load(&self) -> Result<Vec<Figure>> {
        let (server, _) = self.0.serve()?;
        let before = flushes(&self.0.folder);
        let took = load(&server.address, ("ten", "load"), RUNS, AT_ONCE)?;
        let steps = RUNS * STEPS;
        let counted = flushed(before, flushes(&self.0.folder), steps, "step");
        let peak = server.memory("VmHWM:")?;
        server.stop()?;
        let kept = size(&self.0.folder.join("home").join("sessions"))?;
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
            let (server, ready) = self.0.serve()?;
            times.push(ready);
            // Whatever it does at its start is done when it answers this.
            Client::to(&server.address)?.send("GET /healthz", "", "")?;
            std::thread::sleep(Duration::from_millis(500));
            idle = server.memory("VmRSS:")?;
            server.stop()?;
        }
        Ok(vec![
            Figure {
                name: "server ready with 10,000 finished runs, ms",
                value: median(times).as_secs_f64() * 1_000.0,
                bound: Bound::AtMost(100.0),
                detail: "from its start until it says so".to_owned(),
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
            let (server, _) = self.0.serve()?;
            let mut client = Client::to(&server.address)?;
            for number in 0..KILLED {
                let workflow = format!("held-{}", number % 2);
                client.hook(&workflow, &format!("held-{round}-{number}"))?;
            }
            holder.until(KILLED)?;
            server.kill()?;
            holder.forget();
            let (server, _) = self.0.serve()?;
            let ready = Instant::now();
            holder.until(KILLED)?;
            times.push(ready.elapsed());
            holder.let_go();
            let mut client = Client::to(&server.address)?;
            until_none_is_open(&mut client, &self.0.admin()?)?;
            server.stop()?;
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

fn size(folder: &Path) -> Result<u64> {
    let mut sum = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let about = entry.metadata()?;
        sum += if about.is_dir() { size(&entry.path())? } else { about.len() };
    }
    Ok(sum)
}

/// Waits until no run is under way.
fn until_none_is_open(client: &mut Client, admin: &str) -> Result<()> {
    let what = "/api/v1/runs?status=queued,running,waiting&limit=1";
    loop {
        let answer = client.get(what, admin)?;
        if answer.get("items").and_then(Value::as_array).is_some_and(Vec::is_empty) {
            return Ok(());
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
