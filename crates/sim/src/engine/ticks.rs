//! The clock's trigger of the world: every few seconds, and what was missed is not replayed.

use std::sync::Arc;

use cairn_engine::flow::Automations;
use cairn_engine::flow::schedule::{Schedule, Timed, Timetable};
use cairn_engine::host::BoxFuture;
use cairn_engine::trigger::{Firing, Times};
use serde_json::json;
use tokio::sync::watch;

use super::workflows;

/// How often it fires, in milliseconds.
const EVERY: u64 = 4_000;

struct Ticks;

impl Times for Ticks {
    fn next_after(&self, ms: u64) -> Option<u64> {
        Some((ms / EVERY + 1) * EVERY)
    }

    fn due(&self, last_ms: u64, now_ms: u64) -> Vec<u64> {
        let latest = now_ms / EVERY * EVERY;
        (latest > last_ms).then_some(latest).into_iter().collect()
    }

    fn firing(&self, at_ms: u64) -> Firing {
        Firing::new(at_ms.to_string(), json!({"at": at_ms}))
    }
}

/// What the clock starts.
pub(super) fn timetable() -> Timetable {
    let trigger = "m".parse().ok();
    let timed = trigger.map(|trigger| Timed {
        key: "tick".to_owned(),
        workflow: workflows::TICKS.to_owned(),
        trigger,
        kind: "cron".to_owned(),
        is_enabled: true,
        times: Arc::new(Ticks),
    });
    Arc::new(timed.into_iter().collect())
}

/// Keeps time in a process, for as long as it lives.
pub(super) fn keep(engine: Automations, timetable: watch::Receiver<Timetable>) -> BoxFuture<()> {
    Box::pin(async move {
        let schedule = Schedule::load(engine).await;
        schedule.keep(timetable, std::future::pending()).await;
    })
}
