//! Automations beside the raw limit: every outcome is durable before the next step begins.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use async_trait::async_trait;
use cairn_core::catalog::{Catalog as Types, Class, StepType, interpreted, schema};
use cairn_core::event::engine::EndStatus;
use cairn_core::flow::Limits;
use cairn_engine::catalog::{Catalog, Directory};
use cairn_engine::flow::{
    Automations, Filter, NoEvaluator, NoSettings, Options, Parts, Roles, RunRequest, TriggerEvent,
};
use cairn_engine::host::SystemHost;
use cairn_engine::performer::{Ctx, Failed, Outcome, Performer, Performers};
use cairn_lang::ids::SourceKind;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::{Bound, Figure, flushes, median, raw};

/// Runs at once.
const AT_ONCE: usize = 64;
/// Steps of a run.
const STEPS: usize = 10;
/// What one step's commit writes, more or less.
const COMMIT: usize = 1_100;

/// Measures every figure whose group's name contains `wanted`.
pub(crate) fn figures(dir: &Path, wanted: &str) -> Result<Vec<Figure>> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let bench = Bench { dir, runtime };
    type Group<'a> = (&'static str, fn(&Bench<'a>) -> Result<Vec<Figure>>);
    let groups: [Group<'_>; 6] = [
        ("flow-many", Bench::many_at_once),
        ("flow-one", Bench::one_at_a_time),
        ("flow-templates", Bench::templates),
        ("flow-fan", Bench::fan_out),
        ("flow-loop", Bench::loops),
        ("flow-start", Bench::start),
    ];
    let mut figures = Vec::new();
    for (_, measure) in groups.iter().filter(|(name, _)| name.contains(wanted)) {
        figures.extend(measure(&bench)?);
    }
    Ok(figures)
}

struct Bench<'a> {
    dir: &'a Path,
    runtime: Runtime,
}

/// A step that touches nothing and counts as if it did.
struct Work {
    times: Arc<Mutex<Vec<Instant>>>,
}

#[async_trait]
impl Performer for Work {
    fn kind(&self) -> StepType {
        work()
    }

    async fn perform(&self, _: Value, _: &Ctx) -> std::result::Result<Outcome, Failed> {
        self.times.lock().unwrap_or_else(PoisonError::into_inner).push(Instant::now());
        Ok(Outcome::new(json!({"ok": true}), ""))
    }
}

fn work() -> StepType {
    let input = schema::closed(&json!({"message": schema::text()}), &["message"]);
    let output = schema::closed(&json!({"ok": schema::flag()}), &[]);
    StepType::new("work", Class::Effectful, input, output)
}

/// An engine over a folder of its own.
struct World {
    engine: Automations,
    home: PathBuf,
    times: Arc<Mutex<Vec<Instant>>>,
}

impl Bench<'_> {
    fn world(&self, name: &str, workflow: &str) -> Result<World> {
        let home = self.dir.join(name);
        let folder = home.join("workflows").join("w");
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join("workflow.yaml"), workflow)?;
        self.open(&home)
    }

    fn open(&self, home: &Path) -> Result<World> {
        let times = Arc::new(Mutex::new(Vec::new()));
        let work = Work { times: Arc::clone(&times) };
        let root = home.join("workflows");
        let types = Types::new(interpreted::all().into_iter().chain([self::work()]));
        let directory = Directory { kind: SourceKind::Project, root };
        let catalog = Catalog::new(vec![directory]).knowing(types.clone());
        let parts = Parts {
            host: SystemHost::shared(),
            store: cairn_store::open(&cairn_store::Config::files(home.join("data")))?,
            catalog: Arc::new(catalog),
            types,
            performers: Performers::new(vec![Arc::new(work)]),
            environment: Arc::new(NoSettings),
            rights: Arc::new(cairn_engine::rights::NoTokens),
            evaluator: Arc::new(NoEvaluator),
        };
        let options = Options {
            runs_per_minute: u32::MAX,
            limits: Limits { steps_max: u32::MAX, events_max: u32::MAX, ..Limits::default() },
            steps_at_once: 1_024,
            steps_at_once_per_workflow: 1_024,
            ..Options::default()
        };
        let engine = Automations::new(parts, options);
        Ok(World { engine, home: home.to_owned(), times })
    }

    /// Runs a workflow so often, so many at once.
    fn run(&self, world: &World, runs: usize, at_once: usize) -> Result<Duration> {
        self.runtime.block_on(async {
            let begun = Instant::now();
            let mut lanes = tokio::task::JoinSet::new();
            for _ in 0..at_once {
                let engine = world.engine.clone();
                lanes.spawn(async move {
                    for _ in 0..runs / at_once {
                        let event =
                            TriggerEvent { payload: json!({"n": 7}), ..TriggerEvent::default() };
                        let call = engine
                            .call(RunRequest {
                                workflow: "project.w".to_owned(),
                                trigger: None,
                                key: None,
                                event,
                                depth: 0,
                                by: "bench".into(),
                                roles: Roles::Any,
                            })
                            .await?;
                        let ended = call.ended.await?;
                        ensure!(ended.status == EndStatus::Succeeded, "{:?}", ended.result);
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

    fn many_at_once(&self) -> Result<Vec<Figure>> {
        let world = self.world("flow-many", &sequence("x"))?;
        self.run(&world, AT_ONCE, AT_ONCE)?;
        let (mut raws, mut ours) = (Vec::new(), Vec::new());
        let (runs, each) = (AT_ONCE * 8, STEPS * 8);
        let mut flushed = 0;
        for round in 0..5 {
            let path = self.dir.join(format!("flow-raw-{round}"));
            raws.push(raw::group_commit(&path, &[b'x'; COMMIT], AT_ONCE, each)?);
            let before = flushes(self.dir);
            ours.push(self.run(&world, runs, AT_ONCE)?);
            flushed += flushes(self.dir).zip(before).map_or(0, |(after, before)| after - before);
        }
        let (raw, ours) = (median(raws), median(ours));
        let steps = (runs * STEPS) as f64;
        let rate = steps / ours.as_secs_f64();
        let mut figures = vec![Figure {
            name: "64 runs at once / raw group commit",
            value: raw.as_secs_f64() / ours.as_secs_f64(),
            bound: Bound::AtLeast(0.4),
            detail: format!(
                "{rate:.0} steps/s beside {:.0}; {flushed} device flushes, {:.3} a step",
                steps / raw.as_secs_f64(),
                flushed as f64 / (5.0 * steps)
            ),
        }];
        figures.push(Figure {
            name: "64 runs at once, steps/s on a quiet machine",
            value: rate,
            bound: Bound::AtLeast(30_000.0),
            detail: String::new(),
        });
        figures.push(self.kept(&world)?);
        Ok(figures)
    }

    /// The bytes that are kept of a step when its session is sealed.
    fn kept(&self, world: &World) -> Result<Figure> {
        let steps = world.times.lock().unwrap_or_else(PoisonError::into_inner).len();
        let store = cairn_store::open(&cairn_store::Config::files(world.home.join("data")))?;
        let bytes = self.runtime.block_on(async {
            world.engine.stop(Duration::from_secs(5)).await;
            let mut bytes = 0;
            for session in store.sessions.list().await? {
                store.log.seal(session).await?;
                bytes += store.log.status(session).await?.bytes;
            }
            anyhow::Ok(bytes)
        })?;
        Ok(Figure {
            name: "bytes kept of a step, sealed",
            value: bytes as f64 / steps as f64,
            bound: Bound::AtMost(800.0),
            detail: format!("{steps} steps"),
        })
    }

    fn one_at_a_time(&self) -> Result<Vec<Figure>> {
        let world = self.world("flow-one", &sequence("x"))?;
        self.run(&world, 10, 1)?;
        let file = std::fs::File::create(self.dir.join("flow-raw-one"))?;
        let (mut offset, mut raws, mut ours) = (0, Vec::new(), Vec::new());
        let mut flushed = 0;
        for _ in 0..20 {
            raws.extend(raw::one_writer(&file, &mut offset, &[b'x'; COMMIT], 100)?);
            let before = flushes(self.dir);
            ours.push(self.run(&world, 10, 1)?);
            flushed += flushes(self.dir).zip(before).map_or(0, |(after, before)| after - before);
        }
        let (raw, ours) = (median(raws), median(ours) / 100);
        Ok(vec![
            Figure {
                name: "one run at a time / raw write and fdatasync",
                value: raw.as_secs_f64() / ours.as_secs_f64(),
                bound: Bound::AtLeast(0.6),
                detail: format!(
                    "{:.0} steps/s, {ours:?} a step beside {raw:?}; {flushed} device flushes, {:.2} a step",
                    1.0 / ours.as_secs_f64(),
                    flushed as f64 / (20.0 * 100.0)
                ),
            },
            Figure {
                name: "one run at a time, steps/s on a quiet machine",
                value: 1.0 / ours.as_secs_f64(),
                bound: Bound::AtLeast(5_000.0),
                detail: String::new(),
            },
        ])
    }

    fn templates(&self) -> Result<Vec<Figure>> {
        let plain = self.world("flow-plain", &sequence("x"))?;
        let with =
            self.world("flow-with", &sequence("{{ event.payload.n | int }} {{ run.id }}"))?;
        let (mut plains, mut withs) = (Vec::new(), Vec::new());
        for _ in 0..8 {
            plains.push(self.run(&plain, AT_ONCE * 2, AT_ONCE)?);
            withs.push(self.run(&with, AT_ONCE * 2, AT_ONCE)?);
        }
        let (plain, with) = (median(plains), median(withs));
        Ok(vec![Figure {
            name: "steps with templates / steps without",
            value: plain.as_secs_f64() / with.as_secs_f64(),
            bound: Bound::AtLeast(0.8),
            detail: format!("{with:?} beside {plain:?}"),
        }])
    }

    fn fan_out(&self) -> Result<Vec<Figure>> {
        let mut figures = Vec::new();
        for (name, width, bound) in [
            ("fan-out of 100 and merge, ms", 100, 8.0),
            ("fan-out of 990 and merge, ms", 990, 60.0),
        ] {
            let world = self.world(&format!("flow-fan-{width}"), &fan(width))?;
            self.run(&world, 2, 1)?;
            let mut times = Vec::new();
            for _ in 0..10 {
                times.push(self.run(&world, 1, 1)?);
            }
            let time = median(times);
            figures.push(Figure {
                name,
                value: time.as_secs_f64() * 1_000.0,
                bound: Bound::AtMost(bound),
                detail: String::new(),
            });
        }
        Ok(figures)
    }

    fn loops(&self) -> Result<Vec<Figure>> {
        let world = self.world("flow-loop", &looped(1_000))?;
        self.run(&world, 1, 1)?;
        let mut times = Vec::new();
        for _ in 0..3 {
            times.push(self.run(&world, 1, 1)?);
        }
        let time = median(times);
        let long = self.world("flow-long", &looped(100_000))?;
        let whole = self.run(&long, 1, 1)?;
        let times = long.times.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let span = |part: &[Instant]| match (part.first(), part.last()) {
            (Some(first), Some(last)) => last.duration_since(*first),
            _ => Duration::ZERO,
        };
        let first = span(times.get(1_000..2_000).context("too few steps")?);
        let last = span(times.get(99_000..).context("too few steps")?);
        Ok(vec![
            Figure {
                name: "loop of 1,000 steps, s",
                value: time.as_secs_f64(),
                bound: Bound::AtMost(0.2),
                detail: String::new(),
            },
            Figure {
                name: "loop of 100,000: last thousand / second thousand",
                value: last.as_secs_f64() / first.as_secs_f64(),
                bound: Bound::AtMost(1.3),
                detail: format!("{last:?} beside {first:?}; {whole:?} in all"),
            },
        ])
    }

    fn start(&self) -> Result<Vec<Figure>> {
        let world = self.world("flow-start", &one_step())?;
        self.run(&world, 64 * 157, 64)?;
        self.runtime.block_on(world.engine.stop(Duration::from_secs(5)));
        let mut times = Vec::new();
        for _ in 0..3 {
            let begun = Instant::now();
            let again = self.open(&world.home)?;
            self.runtime.block_on(again.engine.recover())?;
            times.push(begun.elapsed());
            self.runtime.block_on(again.engine.stop(Duration::from_secs(5)));
        }
        let listed = self.runtime.block_on(world.engine.list(&Filter::default()))?.len();
        Ok(vec![Figure {
            name: "ready with 10,000 finished runs, ms",
            value: median(times).as_secs_f64() * 1_000.0,
            bound: Bound::AtMost(100.0),
            detail: format!("{listed} runs"),
        }])
    }
}

fn sequence(message: &str) -> String {
    let mut text = "name: W\nrate_limit: 1000000/min\ngraph:\n  nodes:\n".to_owned();
    for step in 0..STEPS {
        let next = if step + 1 < STEPS { format!(", next: s{}", step + 1) } else { String::new() };
        text.push_str(&format!(
            "    - {{ id: s{step}, type: work, message: '{message}'{next} }}\n"
        ));
    }
    text
}

fn one_step() -> String {
    "name: W\nrate_limit: 1000000/min\ngraph:\n  nodes:\n    - { id: a, type: work, message: x }\n"
        .to_owned()
}

fn fan(width: usize) -> String {
    let names: Vec<String> = (0..width).map(|at| format!("s{at}")).collect();
    let mut text = format!(
        "name: W\nrate_limit: 1000000/min\ngraph:\n  nodes:\n    - {{ id: p, type: parallel, branches: [{}], next: m }}\n    - {{ id: m, type: merge, strategy: list }}\n",
        names.join(", ")
    );
    for name in names {
        text.push_str(&format!("    - {{ id: {name}, type: work, message: x }}\n"));
    }
    text
}

fn looped(turns: usize) -> String {
    format!(
        "name: W\nrate_limit: 1000000/min\ngraph:\n  nodes:\n    - {{ id: l, type: loop, count: {turns}, max_iterations: {turns}, body: [a] }}\n    - {{ id: a, type: work, message: x }}\n"
    )
}
