//! The machine that simulated processes share: one thread, one clock, and a seed that picks which
//! task goes on next.
//!
//! Tasks belong to processes. A process that crashes loses its tasks where they stand; one that
//! is stopped keeps them, and they are not polled until it goes on. Time passes only when nothing
//! can go on.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use cairn_engine::host::BoxFuture;

use crate::random::Random;

/// A simulated process. Each start is another one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Process(pub(super) u32);

impl Process {
    /// None of them: what the world does by itself, and what nothing ends.
    pub(super) const WORLD: Self = Self(0);
}

/// The machine. Clones are the same one.
#[derive(Clone)]
pub(super) struct Machine(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    /// Tasks that were woken, in no order of their own.
    woken: Mutex<BTreeSet<u64>>,
}

struct State {
    random: Random,
    tasks: BTreeMap<u64, Task>,
    next: u64,
    /// Those who sleep, by when they are to wake up.
    sleepers: BTreeMap<(Duration, u64), Waker>,
    now: Duration,
    /// How far the clock on the wall is from where it was at the start.
    wall_ms: i64,
    /// How far ahead it ever was.
    ahead_ms: i64,
    stopped: BTreeSet<Process>,
    polls: u64,
    panics: u64,
}

struct Task {
    process: Process,
    /// Not there while it is polled.
    future: Option<BoxFuture<()>>,
}

struct Woken {
    machine: Machine,
    task: u64,
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        held(&self.machine.0.woken).insert(self.task);
    }
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// When the simulated world begins, in milliseconds since 1970.
const BEGIN_MS: i64 = 1_700_000_000_000;

impl Machine {
    pub(super) fn new(seed: u64) -> Self {
        let state = State {
            random: Random::new(seed),
            tasks: BTreeMap::new(),
            next: 0,
            sleepers: BTreeMap::new(),
            now: Duration::ZERO,
            wall_ms: 0,
            ahead_ms: 0,
            stopped: BTreeSet::new(),
            polls: 0,
            panics: 0,
        };
        Self(Arc::new(Shared { state: Mutex::new(state), woken: Mutex::default() }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        held(&self.0.state)
    }

    /// A number below `end`.
    pub(super) fn below(&self, end: usize) -> usize {
        self.state().random.below(end)
    }

    /// Whether something happens that does so this often in a hundred times.
    pub(super) fn percent(&self, times: usize) -> bool {
        self.state().random.percent(times)
    }

    /// Random bits.
    pub(super) fn bits(&self) -> u128 {
        let mut state = self.state();
        u128::from(state.random.next()) << 64 | u128::from(state.random.next())
    }

    /// The time since the start, which never goes back.
    pub(super) fn now(&self) -> Duration {
        self.state().now
    }

    /// The time on the wall.
    pub(super) fn now_ms(&self) -> u64 {
        let state = self.state();
        let passed = i64::try_from(state.now.as_millis()).unwrap_or(i64::MAX);
        u64::try_from(BEGIN_MS + passed + state.wall_ms).unwrap_or_default()
    }

    /// Sets the clock on the wall forward or back.
    pub(super) fn jump(&self, by_ms: i64) {
        let mut state = self.state();
        state.wall_ms += by_ms;
        state.ahead_ms = state.ahead_ms.max(state.wall_ms);
    }

    /// Sets the clock on the wall as far ahead as it ever was: whatever waits for a time that it
    /// showed comes to it.
    pub(super) fn correct_clock(&self) {
        let mut state = self.state();
        state.wall_ms = state.ahead_ms;
    }

    /// How often tasks were polled.
    pub(super) fn polls(&self) -> u64 {
        self.state().polls
    }

    /// How many tasks panicked.
    pub(super) fn panics(&self) -> u64 {
        self.state().panics
    }

    /// Begins a task of a process.
    pub(super) fn spawn(&self, process: Process, future: BoxFuture<()>) -> u64 {
        let mut state = self.state();
        let id = state.next;
        state.next += 1;
        state.tasks.insert(id, Task { process, future: Some(future) });
        held(&self.0.woken).insert(id);
        id
    }

    /// Ends a task where it stands.
    pub(super) fn abort(&self, task: u64) {
        let gone = self.state().tasks.remove(&task);
        // What it holds is let go when nobody looks at the tasks.
        drop(gone);
    }

    /// Ends a process where it stands.
    pub(super) fn crash(&self, process: Process) {
        let mut state = self.state();
        state.stopped.remove(&process);
        let own: Vec<u64> = state
            .tasks
            .iter()
            .filter(|(_, task)| task.process == process)
            .map(|(id, _)| *id)
            .collect();
        let gone: Vec<Option<Task>> = own.iter().map(|id| state.tasks.remove(id)).collect();
        drop(state);
        drop(gone);
    }

    /// Stops a process, or lets it go on.
    pub(super) fn stop(&self, process: Process, stopped: bool) {
        let mut state = self.state();
        match stopped {
            true => state.stopped.insert(process),
            false => state.stopped.remove(&process),
        };
    }

    /// Completes after a while.
    pub(super) fn sleep(&self, pause: Duration) -> Sleep {
        let mut state = self.state();
        let id = state.next;
        state.next += 1;
        Sleep { machine: self.clone(), due: state.now.saturating_add(pause), id }
    }

    /// Plays until nothing can go on any more, a moment is reached, or too much was done; says
    /// whether it is the last.
    pub(super) fn play(&self, until: Duration, polls_max: u64) -> bool {
        loop {
            if self.polls() >= polls_max {
                return false;
            }
            let Some((id, mut future)) = self.pick() else {
                if self.pass_time(until) {
                    continue;
                }
                return true;
            };
            let waker = Waker::from(Arc::new(Woken { machine: self.clone(), task: id }));
            let mut ctx = Context::from_waker(&waker);
            let polled = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(&mut ctx)));
            // A task that panics ends, as on a real machine, and somebody has to notice.
            let polled = polled.unwrap_or_else(|_| {
                self.state().panics += 1;
                Poll::Ready(())
            });
            let mut state = self.state();
            match (polled, state.tasks.get_mut(&id)) {
                (Poll::Pending, Some(task)) => task.future = Some(future),
                (Poll::Ready(()), Some(_)) => {
                    state.tasks.remove(&id);
                }
                // It was ended while it was polled.
                (_, None) => {
                    drop(state);
                    drop(future);
                }
            }
        }
    }

    /// A task that can go on, by chance.
    fn pick(&self) -> Option<(u64, BoxFuture<()>)> {
        let mut state = self.state();
        let mut woken = held(&self.0.woken);
        woken.retain(|id| state.tasks.contains_key(id));
        let can = |id: &&u64| {
            let task = state.tasks.get(*id);
            task.is_some_and(|task| !state.stopped.contains(&task.process))
        };
        let ready: Vec<u64> = woken.iter().filter(can).copied().collect();
        if ready.is_empty() {
            return None;
        }
        let picked = state.random.below(ready.len());
        let id = *ready.get(picked)?;
        woken.remove(&id);
        state.polls += 1;
        let future = state.tasks.get_mut(&id)?.future.take()?;
        Some((id, future))
    }

    /// Lets time pass until the next sleeper wakes up; says no when there is none in time.
    fn pass_time(&self, until: Duration) -> bool {
        let mut state = self.state();
        let Some((&(due, id), _)) = state.sleepers.iter().next() else { return false };
        if due > until {
            state.now = until;
            return false;
        }
        state.now = state.now.max(due);
        let waker = state.sleepers.remove(&(due, id));
        drop(state);
        waker.into_iter().for_each(Waker::wake);
        true
    }
}

/// A pause.
pub(super) struct Sleep {
    machine: Machine,
    due: Duration,
    id: u64,
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, ctx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.machine.state();
        if state.now >= self.due {
            state.sleepers.remove(&(self.due, self.id));
            return Poll::Ready(());
        }
        state.sleepers.insert((self.due, self.id), ctx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        let gone = self.machine.state().sleepers.remove(&(self.due, self.id));
        drop(gone);
    }
}
