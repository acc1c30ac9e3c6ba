//! Keeping time: one task that knows when each trigger of the clock fires next.
//!
//! It sleeps until the earliest of them. Up to when each was seen to is kept in a document, so
//! that missed firings are replayed as the trigger says.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cairn_core::event::{ActorKind, By, Door, Via};
use cairn_core::text::Slug;
use cairn_store::port::documents::Name;
use tokio::sync::watch;

use super::{Automations, Roles, RunRequest, TriggerEvent};
use crate::error::Error;
use crate::host::{Either, either};
use crate::trigger::Times;

static DOCUMENT: Name = Name::fixed("schedules.json");
/// How long is slept at most before the clock is looked at again, which may have moved.
const NAP_MAX_MS: u64 = 30_000;
/// When what could not be started is tried again.
const RETRY_MS: u64 = 30_000;

/// A trigger that the clock fires.
#[derive(Clone)]
pub struct Timed {
    /// Its name among all triggers; another when its settings are others.
    pub key: String,
    /// The id of the workflow.
    pub workflow: String,
    /// Its own id.
    pub trigger: Slug,
    /// Its type.
    pub kind: String,
    /// Whether it fires.
    pub is_enabled: bool,
    /// When it fires.
    pub times: Arc<dyn Times>,
}

/// The triggers of the clock at one time.
pub type Timetable = Arc<Vec<Timed>>;

/// Fires the triggers of the clock. One process of a store does at a time.
pub struct Schedule {
    engine: Automations,
    /// Up to when triggers were seen to.
    marks: Mutex<BTreeMap<String, u64>>,
    /// What went wrong with them.
    errors: Mutex<BTreeMap<String, String>>,
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Schedule {
    /// The schedule of an engine, with the marks of its store. Those that cannot be read count
    /// as none: then nothing was missed.
    pub async fn load(engine: Automations) -> Self {
        let found = engine.inner.store.documents.read(&DOCUMENT).await.ok().flatten();
        let marks = found.and_then(|found| serde_json::from_slice(&found.bytes).ok());
        let marks = Mutex::new(marks.unwrap_or_default());
        Self { engine, marks, errors: Mutex::default() }
    }

    /// Up to when a trigger was seen to.
    #[must_use]
    pub fn seen_until(&self, key: &str) -> Option<u64> {
        held(&self.marks).get(key).copied()
    }

    /// What went wrong with the last run of a trigger.
    #[must_use]
    pub fn error(&self, key: &str) -> Option<String> {
        held(&self.errors).get(key).cloned()
    }

    /// Fires what the timetable says, as it is at each time, until `stop` is over or nobody can
    /// change the timetable any more.
    pub async fn keep(
        &self,
        mut timetable: watch::Receiver<Timetable>,
        stop: impl Future<Output = ()>,
    ) {
        let mut plan = Plan::default();
        let mut stop = pin!(stop);
        loop {
            let now = Arc::clone(&timetable.borrow_and_update());
            plan.follow(self, &now).await;
            let nap = Duration::from_millis(plan.fire(self).await);
            let pause =
                async { either(timetable.changed(), || self.engine.inner.host.sleep(nap)).await };
            match either(&mut stop, || pause).await {
                Either::First(()) | Either::Second(Either::First(Err(_))) => return,
                Either::Second(_) => {}
            }
        }
    }

    fn now_ms(&self) -> u64 {
        self.engine.inner.host.now_ms()
    }

    fn mark(&self, key: &str, at_ms: Option<u64>) {
        let mut marks = held(&self.marks);
        match at_ms {
            Some(at_ms) => marks.insert(key.to_owned(), at_ms),
            None => marks.remove(key),
        };
    }

    /// Notes what is wrong with a trigger, and tells people when that is news: nobody else waits
    /// for what a clock starts.
    fn note(&self, key: &str, error: Option<String>) {
        let before = match &error {
            Some(error) => held(&self.errors).insert(key.to_owned(), error.clone()),
            None => held(&self.errors).remove(key),
        };
        if let Some(error) = error.filter(|error| before.as_ref() != Some(error)) {
            self.engine.tell_trouble(&format!("{key} cannot start its run: {error}"));
        }
    }

    /// Keeps the marks, whatever was kept before. An instant that is fired twice for an old mark
    /// starts the same run.
    async fn save(&self) {
        let bytes = {
            let marks = held(&self.marks);
            // Names and numbers can be written down.
            serde_json::to_vec_pretty(&*marks).unwrap_or_default()
        };
        let keep = |_: Option<&[u8]>| Ok::<_, cairn_store::Error>((Some(bytes.clone()), ()));
        // Without them nothing is lost but what passes until the next start.
        let _ = self.engine.inner.store.documents.update(&DOCUMENT, keep).await;
    }
}

/// Something that is to be done at an instant.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    /// To see which instants of a trigger have come.
    Look(usize),
    /// To fire an instant that had to wait.
    Fire(usize, u64),
}

/// What is to be done when.
#[derive(Default)]
struct Plan {
    timetable: Timetable,
    heap: BinaryHeap<Reverse<(u64, Due)>>,
    /// Instants that had to wait, by trigger.
    waiting: BTreeSet<(usize, u64)>,
}

impl Plan {
    /// Takes over the triggers when they are others than before.
    async fn follow(&mut self, schedule: &Schedule, timetable: &Timetable) {
        if Arc::ptr_eq(&self.timetable, timetable) {
            return;
        }
        self.timetable = Arc::clone(timetable);
        self.heap.clear();
        self.waiting.clear();
        let now = schedule.now_ms();
        for (at, timed) in timetable.iter().enumerate() {
            if !timed.is_enabled {
                // What passes while it is off was not missed.
                schedule.mark(&timed.key, None);
                continue;
            }
            let seen = schedule.seen_until(&timed.key).unwrap_or(now);
            schedule.mark(&timed.key, Some(seen));
            if let Some(next) = timed.times.next_after(seen) {
                self.heap.push(Reverse((next, Due::Look(at))));
            }
        }
        schedule.save().await;
    }

    /// Does what is due; gives for how many milliseconds there is nothing to do.
    async fn fire(&mut self, schedule: &Schedule) -> u64 {
        let mut moved = false;
        loop {
            let now = schedule.now_ms();
            let Some(Reverse((next, _))) = self.heap.peek() else { break };
            if *next > now {
                break;
            }
            let Some(Reverse((_, due))) = self.heap.pop() else { break };
            match due {
                Due::Look(at) => self.look(schedule, at, now).await,
                Due::Fire(at, instant) => self.start(schedule, at, instant, now).await,
            }
            moved = true;
        }
        if moved {
            schedule.save().await;
        }
        let now = schedule.now_ms();
        let next = self.heap.peek().map(|Reverse((next, _))| next.saturating_sub(now));
        next.unwrap_or(NAP_MAX_MS).clamp(1, NAP_MAX_MS)
    }

    /// Fires the instants of a trigger that have come.
    async fn look(&mut self, schedule: &Schedule, at: usize, now: u64) {
        let Some(timed) = self.timetable.get(at).cloned() else { return };
        let seen = schedule.seen_until(&timed.key).unwrap_or(now);
        for instant in timed.times.due(seen, now) {
            self.start(schedule, at, instant, now).await;
        }
        schedule.mark(&timed.key, Some(self.seen_until(at, now.max(seen))));
        if let Some(next) = timed.times.next_after(now.max(seen)) {
            self.heap.push(Reverse((next, Due::Look(at))));
        }
    }

    /// Up to when everything of a trigger was started.
    fn seen_until(&self, at: usize, now: u64) -> u64 {
        let first = self.waiting.iter().find(|(of, _)| *of == at);
        first.map_or(now, |(_, instant)| instant.saturating_sub(1))
    }

    /// Starts the run of an instant, or has it wait.
    async fn start(&mut self, schedule: &Schedule, at: usize, instant: u64, now: u64) {
        let Some(timed) = self.timetable.get(at).cloned() else { return };
        let firing = timed.times.firing(instant);
        let (payload, more) = (firing.payload, firing.event);
        let request = RunRequest {
            workflow: timed.workflow,
            trigger: Some(timed.trigger),
            key: Some(firing.key),
            event: TriggerEvent { payload, kind: timed.kind, more },
            depth: 0,
            by: By {
                name: "schedule".to_owned(),
                via: Some(Via {
                    actor: ActorKind::Engine,
                    door: Door::Schedule,
                    line: None,
                    token_id: None,
                }),
            },
            roles: Roles::Any,
        };
        let asked = schedule.engine.submit(request).await;
        let (wait_ms, wrong) = match &asked {
            // A firing that its trigger drops or refuses is not replayed.
            Ok(_) | Err(Error::Dropped { .. }) => (None, None),
            Err(error @ Error::Overflow { .. }) => {
                (None, Some(format!("{}: {error}", error.code())))
            }
            Err(Error::RateLimited { after_ms, .. }) => (Some(*after_ms), None),
            Err(error) => (Some(RETRY_MS), Some(format!("{}: {error}", error.code()))),
        };
        schedule.note(&timed.key, wrong);
        match wait_ms {
            Some(wait_ms) => {
                self.waiting.insert((at, instant));
                self.heap.push(Reverse((now.saturating_add(wait_ms), Due::Fire(at, instant))));
            }
            None => {
                if self.waiting.remove(&(at, instant)) {
                    let until = self.seen_until(at, now);
                    schedule.mark(&timed.key, Some(until));
                }
            }
        }
    }
}
