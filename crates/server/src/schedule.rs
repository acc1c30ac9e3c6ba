//! Keeping time: one task that knows when each trigger of the clock fires next.
//!
//! It sleeps until the earliest of them. Up to when each was seen to is kept in a document, so
//! that instants which passed while nobody was there are made up for as the trigger says.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cairn_core::event::{ActorKind, By, Door, Via};
use cairn_engine::Error;
use cairn_engine::flow::{Roles, RunRequest, TriggerEvent};
use cairn_engine::trigger::{Times, Watch};
use cairn_store::port::documents::{Documents, Name};
use tokio::time::sleep;

use crate::clock::now_ms;
use crate::routes::Shared;
use crate::watched::{Place, View};

/// How long is slept at most before the clock is looked at again, which may have moved.
const NAP_MAX_MS: u64 = 30_000;
/// When what could not be started is tried again.
const RETRY_MS: u64 = 30_000;
/// How often files are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(2);

static DOCUMENT: Name = Name::fixed("schedules.json");

/// Up to when triggers were seen to, and what went wrong with them.
pub(crate) struct Marks {
    documents: Arc<dyn Documents>,
    seen: Mutex<BTreeMap<String, u64>>,
    errors: Mutex<BTreeMap<String, String>>,
}

impl Marks {
    /// The marks of a store. Those that cannot be read count as none: then nothing was missed.
    pub(crate) async fn load(documents: Arc<dyn Documents>) -> Self {
        let found = documents.read(&DOCUMENT).await.ok().flatten();
        let seen = found.and_then(|found| serde_json::from_slice(&found.bytes).ok());
        let seen = Mutex::new(seen.unwrap_or_default());
        Self { documents, seen, errors: Mutex::default() }
    }

    pub(crate) fn seen(&self, key: &str) -> Option<u64> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).get(key).copied()
    }

    pub(crate) fn error(&self, key: &str) -> Option<String> {
        self.errors.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    fn note(&self, key: &str, error: Option<String>) {
        let mut errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        match error {
            Some(error) => errors.insert(key.to_owned(), error),
            None => errors.remove(key),
        };
    }

    fn set(&self, key: &str, at_ms: Option<u64>) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        match at_ms {
            Some(at_ms) => seen.insert(key.to_owned(), at_ms),
            None => seen.remove(key),
        };
    }

    /// Keeps the marks, whatever was kept before: there is one server. An instant that is fired
    /// twice for an old mark starts the same run.
    async fn save(&self) -> cairn_store::Result<()> {
        let bytes = {
            let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            // Names and numbers can be written down.
            serde_json::to_vec_pretty(&*seen).unwrap_or_default()
        };
        let keep = |_: Option<&[u8]>| Ok((Some(bytes.clone()), ()));
        self.documents.update(&DOCUMENT, keep).await
    }
}

/// Looks at the files of workflows from time to time, until the server closes.
pub(crate) async fn look(shared: Shared) {
    loop {
        let watched = Arc::clone(&shared.watched);
        // What cannot be read now may be read the next time; until then nothing changes.
        let looked = tokio::task::spawn_blocking(move || watched.look()).await;
        for broken in looked.ok().and_then(Result::ok).unwrap_or_default() {
            shared.automation.engine.tell_trouble(&broken);
        }
        tokio::select! {
            () = sleep(LOOK_EVERY) => {}
            () = shared.phase.closing() => return,
        }
    }
}

/// Fires what the clock fires, until no work is taken any more.
pub(crate) async fn keep(shared: Shared) {
    let mut plan = Plan::default();
    loop {
        // Asked for before the view is looked at, so that no change in between is missed.
        let changed = shared.watched.changed.notified();
        let view = shared.watched.view();
        plan.follow(&shared, &view).await;
        let nap_ms = plan.fire(&shared).await;
        tokio::select! {
            () = sleep(Duration::from_millis(nap_ms)) => {}
            () = changed => {}
            () = shared.phase.draining() => return,
        }
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
    view: Arc<View>,
    heap: BinaryHeap<Reverse<(u64, Due)>>,
    /// Instants that had to wait, by trigger.
    waiting: BTreeSet<(usize, u64)>,
}

fn times(place: &Place) -> Option<&Arc<dyn Times>> {
    match &place.watch {
        Watch::Times(times) => Some(times),
        _ => None,
    }
}

impl Plan {
    /// Takes over the triggers when they are others than before.
    async fn follow(&mut self, shared: &Shared, view: &Arc<View>) {
        if Arc::ptr_eq(&self.view, view) {
            return;
        }
        self.view = Arc::clone(view);
        self.heap.clear();
        self.waiting.clear();
        let now = now_ms();
        for (at, place) in view.places.iter().enumerate() {
            let Some(times) = times(place) else { continue };
            let key = place.key();
            if !place.enabled {
                // What passes while it is off was not missed.
                shared.marks.set(&key, None);
                continue;
            }
            let seen = shared.marks.seen(&key).unwrap_or(now);
            shared.marks.set(&key, Some(seen));
            if let Some(next) = times.next_after(seen) {
                self.heap.push(Reverse((next, Due::Look(at))));
            }
        }
        // Without them nothing is lost but what passes until the next start.
        let _ = shared.marks.save().await;
    }

    /// Does what is due; gives how long there is nothing to do.
    async fn fire(&mut self, shared: &Shared) -> u64 {
        let mut moved = false;
        loop {
            let now = now_ms();
            let Some(Reverse((next, _))) = self.heap.peek() else { break };
            if *next > now {
                break;
            }
            let Some(Reverse((_, due))) = self.heap.pop() else { break };
            match due {
                Due::Look(at) => self.look(shared, at, now).await,
                Due::Fire(at, instant) => self.start(shared, at, instant, now).await,
            }
            moved = true;
        }
        if moved {
            let _ = shared.marks.save().await;
        }
        let next = self.heap.peek().map(|Reverse((next, _))| next.saturating_sub(now_ms()));
        next.unwrap_or(NAP_MAX_MS).clamp(1, NAP_MAX_MS)
    }

    /// Fires the instants of a trigger that have come.
    async fn look(&mut self, shared: &Shared, at: usize, now: u64) {
        let Some(place) = self.view.places.get(at).cloned() else { return };
        let Some(times) = times(&place) else { return };
        let key = place.key();
        let seen = shared.marks.seen(&key).unwrap_or(now);
        for instant in times.due(seen, now) {
            self.start(shared, at, instant, now).await;
        }
        shared.marks.set(&key, Some(self.seen_until(at, now.max(seen))));
        if let Some(next) = times.next_after(now.max(seen)) {
            self.heap.push(Reverse((next, Due::Look(at))));
        }
    }

    /// Up to when everything of a trigger was started.
    fn seen_until(&self, at: usize, now: u64) -> u64 {
        let first = self.waiting.iter().find(|(of, _)| *of == at);
        first.map_or(now, |(_, instant)| instant.saturating_sub(1))
    }

    /// Starts the run of an instant, or has it wait.
    async fn start(&mut self, shared: &Shared, at: usize, instant: u64, now: u64) {
        let Some(place) = self.view.places.get(at).cloned() else { return };
        let Some(times) = times(&place) else { return };
        let firing = times.firing(instant);
        let (payload, more) = (firing.payload, firing.event);
        let request = RunRequest {
            workflow: place.workflow.clone(),
            trigger: Some(place.trigger.clone()),
            key: Some(firing.key),
            event: TriggerEvent { payload, kind: place.kind.clone(), more },
            depth: 0,
            by: By {
                name: "schedule".to_owned(),
                via: Some(Via { actor: ActorKind::Engine, door: Door::Schedule, token_id: None }),
            },
            roles: Roles::Any,
        };
        let asked = shared.automation.engine.submit(request).await;
        let wait_ms = match &asked {
            Ok(_) => None,
            Err(Error::RateLimited { after_ms, .. }) => Some(*after_ms),
            Err(_) => Some(RETRY_MS),
        };
        let wrong =
            asked.as_ref().err().filter(|error| !matches!(error, Error::RateLimited { .. }));
        shared.marks.note(&place.key(), wrong.map(|error| format!("{}: {error}", error.code())));
        match wait_ms {
            Some(wait_ms) => {
                self.waiting.insert((at, instant));
                self.heap.push(Reverse((now.saturating_add(wait_ms), Due::Fire(at, instant))));
            }
            None => {
                if self.waiting.remove(&(at, instant)) {
                    let until = self.seen_until(at, now);
                    shared.marks.set(&place.key(), Some(until));
                }
            }
        }
    }
}
