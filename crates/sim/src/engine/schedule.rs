//! The clock's triggers on a simulated machine: whoever is killed, and wherever the clock goes,
//! each instant starts one run.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cairn_core::event::EventData;
use cairn_core::id::{EventIndex, RunId};
use cairn_engine::catalog::Catalog;
use cairn_engine::flow::schedule::{Schedule, Timed, Timetable};
use cairn_engine::flow::{Automations, NoEvaluator, NoSettings, Options, Parts};
use cairn_engine::performer::Performers;
use cairn_engine::trigger::{Firing, Times};
use cairn_store::Store;
use cairn_store::memory::Control;
use serde_json::json;
use tokio::sync::watch;

use super::book::Book;
use super::executor::{Machine, Process};
use super::host::SimHost;
use super::outside::Act;
use super::{workflows, world};

const MINUTE: u64 = 60_000;

/// Every minute; missed firings are replayed.
struct Minutely;

impl Times for Minutely {
    fn next_after(&self, ms: u64) -> Option<u64> {
        Some((ms / MINUTE + 1) * MINUTE)
    }

    fn due(&self, last_ms: u64, now_ms: u64) -> Vec<u64> {
        (last_ms / MINUTE + 1..=now_ms / MINUTE).map(|minute| minute * MINUTE).collect()
    }

    fn firing(&self, at_ms: u64) -> Firing {
        Firing::new(at_ms.to_string(), json!({"at": at_ms}))
    }
}

/// Starts a process that keeps time.
fn start(machine: &Machine, control: &Control, number: u32, timetable: watch::Receiver<Timetable>) {
    let process = Process(number);
    let act = Act { machine: machine.clone(), process, book: Book::default() };
    let parts = Parts {
        host: SimHost::shared(machine.clone(), process),
        store: control.store(number),
        catalog: Arc::new(Catalog::of_tree(workflows::tree(), workflows::types())),
        types: workflows::types(),
        performers: Performers::new(vec![Arc::new(act)]),
        environment: Arc::new(NoSettings),
        evaluator: Arc::new(NoEvaluator),
        rights: Arc::new(cairn_engine::rights::NoTokens),
    };
    let engine = Automations::new(parts, Options::default());
    let looking = engine.clone();
    machine.spawn(process, Box::pin(async move { looking.look_after_all().await }));
    machine.spawn(
        process,
        Box::pin(async move {
            let schedule = Schedule::load(engine).await;
            schedule.keep(timetable, std::future::pending()).await;
        }),
    );
}

/// How many runs each instant has, and up to when the trigger was seen to.
fn found(store: &Store) -> (BTreeMap<u64, u32>, u64) {
    let (mut queued, mut instants) = (BTreeMap::<RunId, u32>::new(), BTreeMap::new());
    let mut seen = 0;
    let read = async {
        for session in store.sessions.list().await.unwrap() {
            for event in store.log.read(session, EventIndex(0)).await.unwrap() {
                match &event.data {
                    EventData::RunQueued(_) => {
                        *queued.entry(event.scope.run().unwrap()).or_default() += 1;
                    }
                    EventData::TriggerReceived(received) => {
                        instants.insert(received.run_id, received.key.parse::<u64>().unwrap());
                    }
                    _ => {}
                }
            }
        }
        let name = cairn_store::port::documents::Name::fixed("schedules.json");
        let marks = store.documents.read(&name).await.unwrap().unwrap();
        let marks: BTreeMap<String, u64> = serde_json::from_slice(&marks.bytes).unwrap();
        seen = marks["nap"];
    };
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(read);
    let runs = queued.into_iter().map(|(run, times)| (instants[&run], times));
    (runs.collect(), seen)
}

#[test]
fn each_instant_starts_one_run_whoever_is_killed() {
    for seed in 0..20 {
        let machine = Machine::new(seed);
        let control = Control::new(world::outside(&machine));
        let timed = Timed {
            key: "nap".to_owned(),
            workflow: "project.nap".to_owned(),
            trigger: "m".parse().unwrap(),
            kind: "cron".to_owned(),
            is_enabled: true,
            times: Arc::new(Minutely),
        };
        let (change, timetable) = watch::channel(Arc::new(vec![timed]));
        let begun = machine.now_ms();
        for number in 1..=6 {
            start(&machine, &control, number, timetable.clone());
            // Killed somewhere on the way, often while it starts a run.
            let life = Duration::from_millis(machine.below(150_000) as u64 + 1);
            let near = machine.now_ms() % MINUTE;
            let life = match machine.percent(50) {
                true => Duration::from_millis(MINUTE - near) + life / 10_000,
                false => life,
            };
            assert!(machine.play(machine.now() + life, u64::MAX), "seed {seed}");
            machine.crash(Process(number));
            if machine.percent(30) {
                machine.jump(90_000);
            }
            assert!(machine.play(machine.now() + life / 2, u64::MAX), "seed {seed}");
        }
        start(&machine, &control, 7, timetable.clone());
        // It ends between two minutes, with nothing under way.
        let rest = 3 * MINUTE - machine.now_ms() % MINUTE - MINUTE / 4;
        let until = machine.now() + Duration::from_millis(rest);
        assert!(machine.play(until, u64::MAX), "seed {seed}");
        machine.crash(Process(7));
        drop(change);
        assert_eq!(machine.panics(), 0, "seed {seed}");
        let (runs, seen) = found(&control.store(8));
        let wanted: Vec<u64> = Minutely.due(begun, seen);
        assert!(wanted.len() >= 3, "seed {seed}: {wanted:?}");
        assert_eq!(runs.keys().copied().collect::<Vec<_>>(), wanted, "seed {seed}");
        assert!(runs.values().all(|runs| *runs == 1), "seed {seed}: {runs:?}");
    }
}
