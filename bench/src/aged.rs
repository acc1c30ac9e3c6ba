//! A data directory with a million runs behind it, beside a young one.
//!
//! The old one is made in process and kept in `bench/out`, since that takes minutes.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use serde_json::json;

use crate::guided::World;
use crate::house::{Client, House, Server, at, call, lines};
use crate::{Bound, Figure, median};

/// Runs of the old store, unless an argument says so.
const RUNS: usize = 1_000_000;
/// The workflows that they are of.
const WORKFLOWS: usize = 100;
/// Guided sessions for each hundred runs.
const RUNS_PER_SESSION: usize = 100;
/// Runs that are made at once.
const AT_ONCE: usize = 256;
/// Webhooks of one round.
const HOOKS: usize = 400;
/// Rounds of each side, alternating.
const ROUNDS: usize = 5;
/// Connections that send webhooks while lists are read.
const SENDERS: usize = 16;
/// How long they send: longer than until the first pass of retention, which comes after a minute.
const LOAD: Duration = Duration::from_secs(90);

/// Measures every figure when `wanted` asks for those of an aged store.
pub(crate) fn figures(out: &Path, binary: &Path, wanted: &str) -> Result<Vec<Figure>> {
    if !"aged".contains(wanted) {
        return Ok(Vec::new());
    }
    let runs = std::env::args().nth(2).map_or(Ok(RUNS), |runs| runs.parse())?;
    let (old, young) = (made(out, binary, runs)?, made(out, binary, 0)?);
    let mut figures = old.starts()?;
    figures.extend(old.beside(&young)?);
    figures.extend(old.under_load()?);
    figures.extend(old.resume()?);
    Ok(figures)
}

struct Aged {
    house: House,
    guided: World,
    /// Tells the keys of this time from those of earlier ones.
    time: String,
}

fn name(workflow: usize) -> String {
    format!("w{workflow:02}")
}

/// The store with so many runs, which is made when it is not there.
fn made(out: &Path, binary: &Path, runs: usize) -> Result<Aged> {
    let folder = std::env::current_dir()?.join(out).join(format!("aged-{runs}"));
    let done = folder.join("done");
    if !done.exists() && folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    let house = House::new(&folder, binary)?;
    for workflow in 0..WORKFLOWS {
        house.add(&name(workflow), "last_step", &lines(1))?;
    }
    let guided = World::at(&folder, &folder.join("home"), binary)?;
    if !done.exists() {
        let begun = Instant::now();
        fill(&house, runs)?;
        let mut agent = guided.fresh()?;
        for _ in 0..runs / RUNS_PER_SESSION {
            let token = agent.begin()?;
            agent.go(&token)?;
        }
        drop(agent);
        std::fs::write(done, "")?;
        println!("made {} in {:?}", folder.display(), begun.elapsed());
    }
    let time = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
    Ok(Aged { house, guided, time: time.as_millis().to_string() })
}

/// Runs so many runs, in this process.
fn fill(house: &House, runs: usize) -> Result<()> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let engine = house.engine()?;
    runtime.block_on(async {
        let mut lanes = tokio::task::JoinSet::new();
        for lane in 0..AT_ONCE {
            let engine = engine.clone();
            lanes.spawn(async move {
                for number in (lane..runs).step_by(AT_ONCE) {
                    // One workflow after another, as their sessions would have come to be.
                    let workflow = number / runs.div_ceil(WORKFLOWS);
                    call(&engine, &name(workflow), &format!("old-{number}")).await?;
                }
                anyhow::Ok(())
            });
        }
        while let Some(done) = lanes.join_next().await {
            done??;
        }
        engine.stop(Duration::from_secs(30)).await;
        Ok(())
    })
}

impl Aged {
    fn key(&self, what: &str, number: usize) -> String {
        format!("{}-{what}-{number}", self.time)
    }

    /// How long a start takes until it is ready, and then its first webhook.
    fn first(&self, what: &str, round: usize) -> Result<(Server, Duration, Duration)> {
        let (server, ready) = self.house.serve()?;
        let mut client = Client::to(&server.address)?;
        let begun = Instant::now();
        client.hook(&name(round), &self.key(what, round))?;
        Ok((server, ready, begun.elapsed()))
    }

    fn starts(&self) -> Result<Vec<Figure>> {
        let (mut ready, mut clean, mut killed) = (Vec::new(), Vec::new(), Vec::new());
        let mut idle = 0.0;
        for round in 0..ROUNDS {
            let (server, took, hook) = self.first("clean", round)?;
            ready.push(took);
            clean.push(hook);
            // It rests when what goes on beside its start is done.
            std::thread::sleep(Duration::from_secs(2));
            idle = server.memory("VmRSS:")?;
            server.kill()?;
            let (server, took, hook) = self.first("killed", round)?;
            ready.push(took);
            killed.push(hook);
            server.stop()?;
        }
        let worst = |times: &[Duration]| times.iter().max().copied().unwrap_or_default();
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        let figure = |name, times: Vec<Duration>, most| Figure {
            name,
            value: ms(worst(&times)),
            bound: Bound::AtMost(most),
            detail: format!("the worst of {}, median {:.1}", times.len(), ms(median(times))),
        };
        Ok(vec![
            figure("aged: ready, ms", ready, 100.0),
            figure("aged: first webhook after a clean stop, ms", clean, 20.0),
            figure("aged: first webhook after kill -9, ms", killed, 150.0),
            Figure {
                name: "aged: memory at rest, MB",
                value: idle,
                bound: Bound::AtMost(60.0),
                detail: "two seconds after its first webhook".to_owned(),
            },
        ])
    }

    /// Webhooks one after another, over all workflows in turn.
    fn hooks(&self, client: &mut Client, round: usize) -> Result<Vec<Duration>> {
        let one = |number| {
            let begun = Instant::now();
            client.hook(&name(number % WORKFLOWS), &self.key("beside", round * HOOKS + number))?;
            Ok(begun.elapsed())
        };
        (0..HOOKS).map(one).collect()
    }

    fn beside(&self, young: &Self) -> Result<Vec<Figure>> {
        let ((old, _), (new, _)) = (self.house.serve()?, young.house.serve()?);
        let (mut of_old, mut of_young) = (Client::to(&old.address)?, Client::to(&new.address)?);
        let (mut old_times, mut young_times) = (Vec::new(), Vec::new());
        self.hooks(&mut of_old, 0)?;
        young.hooks(&mut of_young, 0)?;
        for round in 1..=ROUNDS {
            old_times.extend(self.hooks(&mut of_old, round)?);
            young_times.extend(young.hooks(&mut of_young, round)?);
        }
        old.stop()?;
        new.stop()?;
        let (p95, beside) = (at(&mut old_times, 0.95), at(&mut young_times, 0.95));
        Ok(vec![Figure {
            name: "aged: webhook p95, old / young",
            value: p95 / beside,
            bound: Bound::AtMost(1.5),
            detail: format!("{p95:.2} ms beside {beside:.2} ms, {ROUNDS} rounds of {HOOKS}"),
        }])
    }

    /// Lists while webhooks come in, through one pass of retention.
    fn under_load(&self) -> Result<Vec<Figure>> {
        let (server, _) = self.house.serve()?;
        let done = Arc::new(AtomicBool::new(false));
        let senders: Vec<_> = (0..SENDERS)
            .map(|sender| {
                let (done, address) = (Arc::clone(&done), server.address.clone());
                let prefix = self.key("load", sender);
                std::thread::spawn(move || -> Result<usize> {
                    let mut client = Client::to(&address)?;
                    for number in 0.. {
                        if done.load(Ordering::Relaxed) {
                            return Ok(number);
                        }
                        let workflow = (sender + number) % WORKFLOWS;
                        client.hook(&name(workflow), &format!("{prefix}-{number}"))?;
                    }
                    Ok(0)
                })
            })
            .collect();
        let lists = self.lists(&server);
        done.store(true, Ordering::Relaxed);
        let mut sent = 0;
        for sender in senders {
            sent += sender.join().map_err(|_| anyhow::anyhow!("a client panicked"))??;
        }
        let mut lists = lists?;
        let peak = server.memory("VmHWM:")?;
        server.stop()?;
        let (p50, p99) = (at(&mut lists, 0.5), at(&mut lists, 0.99));
        let rate = sent as f64 / LOAD.as_secs_f64();
        Ok(vec![
            Figure {
                name: "aged: lists under load, p50, ms",
                value: p50,
                bound: Bound::AtMost(20.0),
                detail: format!("{} of them, beside {rate:.0} webhooks/s", lists.len()),
            },
            Figure {
                name: "aged: lists under load, p99, ms",
                value: p99,
                bound: Bound::AtMost(50.0),
                detail: String::new(),
            },
            Figure {
                name: "aged: memory under load, MB",
                value: peak,
                bound: Bound::AtMost(200.0),
                detail: format!("{} s, through one pass of retention", LOAD.as_secs()),
            },
        ])
    }

    fn lists(&self, server: &Server) -> Result<Vec<Duration>> {
        let (mut client, admin) = (Client::to(&server.address)?, self.house.admin()?);
        let (begun, mut times) = (Instant::now(), Vec::new());
        while begun.elapsed() < LOAD {
            let first = client.get("/api/v1/runs?limit=50", &admin)?;
            let cursor = first.get("nextCursor").and_then(serde_json::Value::as_str);
            let next = format!("/api/v1/runs?limit=50&cursor={}", cursor.context("no more")?);
            for path in [
                "/api/v1/runs?limit=50",
                &next,
                "/api/v1/runs?limit=50&workflow=project.w42",
                "/api/v1/runs?limit=50&status=failed",
            ] {
                let asked = Instant::now();
                client.get(path, &admin)?;
                times.push(asked.elapsed());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(times)
    }

    /// Finding a guided run among many, also as the first call of a process.
    fn resume(&self) -> Result<Vec<Figure>> {
        let (mut first, mut later) = (Vec::new(), Vec::new());
        let query = json!({"query": "empty cart total"});
        for _ in 0..ROUNDS {
            let mut agent = self.guided.fresh()?;
            for times in [&mut first, &mut later] {
                let begun = Instant::now();
                agent.tool("resume_session", &query)?;
                times.push(begun.elapsed());
            }
        }
        let ms = |times| median(times).as_secs_f64() * 1e3;
        Ok(vec![
            Figure {
                name: "aged: resume_session, first call, ms",
                value: ms(first),
                bound: Bound::AtMost(30.0),
                detail: format!("median of {ROUNDS} new processes"),
            },
            Figure {
                name: "aged: resume_session, ms",
                value: ms(later),
                bound: Bound::AtMost(30.0),
                detail: String::new(),
            },
        ])
    }
}
