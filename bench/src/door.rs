//! The same ten-step run with the same trigger, key and secret, in process and through HTTP.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use cairn_engine::flow::Automations;
use tokio::runtime::Runtime;

use crate::house::{Client, House, Server, at, call, lines, load};
use crate::{Bound, Figure, median};

/// Runs at once.
const AT_ONCE: usize = 64;
/// Runs of one round.
const RUNS: usize = AT_ONCE * 32;
/// Runs of one round, one after another.
const ALONE: usize = 300;
/// Rounds of each side, alternating.
const ROUNDS: usize = 5;
/// Webhooks of one step, one after another.
const HOOKS: usize = 2_000;

/// Measures every figure when `wanted` asks for the door's.
pub(crate) fn figures(dir: &Path, binary: &Path, wanted: &str) -> Result<Vec<Figure>> {
    if !"door".contains(wanted) {
        return Ok(Vec::new());
    }
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let (inside, outside) =
        (house(&dir.join("inside"), binary)?, house(&dir.join("outside"), binary)?);
    let engine = inside.engine()?;
    let (server, _) = outside.serve()?;
    let bench = Bench { runtime, engine, server };
    let mut figures = bench.many()?;
    figures.extend(bench.alone()?);
    figures.extend(bench.one_step()?);
    bench.runtime.block_on(bench.engine.stop(Duration::from_secs(5)));
    bench.server.stop()?;
    Ok(figures)
}

fn house(folder: &Path, binary: &Path) -> Result<House> {
    let house = House::new(folder, binary)?;
    house.add("one", "last_step", &lines(1))?;
    house.add("ten", "last_step", &lines(10))?;
    Ok(house)
}

struct Bench {
    runtime: Runtime,
    engine: Automations,
    server: Server,
}

impl Bench {
    /// So many runs in process, so many at once.
    fn inside(&self, prefix: &str, runs: usize, at_once: usize) -> Result<Duration> {
        self.runtime.block_on(async {
            let begun = Instant::now();
            let mut lanes = tokio::task::JoinSet::new();
            for lane in 0..at_once {
                let (engine, prefix) = (self.engine.clone(), prefix.to_owned());
                lanes.spawn(async move {
                    for number in (lane..runs).step_by(at_once) {
                        call(&engine, "ten", &format!("{prefix}-{number}")).await?;
                    }
                    anyhow::Ok(())
                });
            }
            while let Some(done) = lanes.join_next().await {
                done??;
            }
            Ok(begun.elapsed())
        })
    }

    fn many(&self) -> Result<Vec<Figure>> {
        self.inside("warm", RUNS / 4, AT_ONCE)?;
        load(&self.server.address, ("ten", "warm"), RUNS / 4, AT_ONCE)?;
        let (mut inside, mut outside, mut cpu) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            let prefix = format!("many-{round}");
            inside.push(self.inside(&prefix, RUNS, AT_ONCE)?);
            let before = self.server.cpu()?;
            outside.push(load(&self.server.address, ("ten", &prefix), RUNS, AT_ONCE)?);
            cpu.push(self.server.cpu()? - before);
        }
        let rate = |time: Duration| RUNS as f64 / time.as_secs_f64();
        let (inside, outside, cpu) = (median(inside), median(outside), median(cpu));
        Ok(vec![
            Figure {
                name: "door: CPU of the server for ten steps, ms",
                value: cpu.as_secs_f64() * 1e3 / RUNS as f64,
                bound: Bound::AtMost(1.2),
                detail: format!("median of {ROUNDS} rounds of {RUNS}, {AT_ONCE} at once"),
            },
            Figure {
                name: "door: 64 at once, HTTP / in process",
                value: inside.as_secs_f64() / outside.as_secs_f64(),
                bound: Bound::AtLeast(0.3),
                detail: format!("{:.0} runs/s beside {:.0}", rate(outside), rate(inside)),
            },
            Figure {
                name: "door: memory under that load, MB",
                value: self.server.memory("VmHWM:")?,
                bound: Bound::AtMost(120.0),
                detail: String::new(),
            },
        ])
    }

    fn alone(&self) -> Result<Vec<Figure>> {
        let mut client = Client::to(&self.server.address)?;
        let (mut inside, mut outside) = (Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            for number in 0..ALONE / ROUNDS {
                let key = format!("alone-{round}-{number}");
                inside.push(self.inside(&key, 1, 1)?);
                let begun = Instant::now();
                client.hook("ten", &key)?;
                outside.push(begun.elapsed());
            }
        }
        let (inside, outside) = (at(&mut inside, 0.5), at(&mut outside, 0.5));
        Ok(vec![Figure {
            name: "door: one at a time, HTTP / in process",
            value: outside / inside,
            bound: Bound::AtMost(1.6),
            detail: format!("{outside:.2} ms beside {inside:.2} ms, medians of {ALONE}"),
        }])
    }

    fn one_step(&self) -> Result<Vec<Figure>> {
        let mut client = Client::to(&self.server.address)?;
        for number in 0..HOOKS / 10 {
            client.hook("one", &format!("warm-{number}"))?;
        }
        let mut times = Vec::with_capacity(HOOKS);
        for number in 0..HOOKS {
            let begun = Instant::now();
            client.hook("one", &format!("hook-{number}"))?;
            times.push(begun.elapsed());
        }
        let (p50, p99) = (at(&mut times, 0.5), at(&mut times, 0.99));
        Ok(vec![
            Figure {
                name: "door: webhook of one step, p50, ms",
                value: p50,
                bound: Bound::AtMost(1.0),
                detail: format!("{HOOKS} webhooks, one after another"),
            },
            Figure {
                name: "door: webhook of one step, p99 / p50",
                value: p99 / p50,
                bound: Bound::AtMost(2.5),
                detail: format!("p99 {p99:.2} ms"),
            },
        ])
    }
}
