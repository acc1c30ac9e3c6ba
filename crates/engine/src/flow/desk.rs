//! The desk of a workflow: where its runs are admitted.
//!
//! One process at a time admits the runs of a workflow, by a lease on the session that keeps its
//! trigger keys, and owns every session that its runs are in. So its limits hold over all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cairn_core::id::{RunId, SessionId};
use cairn_core::plan::RateLimit;
use cairn_store::Epoch;
use cairn_store::port::Lease;
use tokio::sync::{Notify, Semaphore, mpsc};

use super::lane::Message;
use super::rate::RateLimiter;
use crate::catalog::Identity;
use crate::host::Host;

/// How many requests may be looked at at once before others are told to come back.
const REQUESTS_MAX: usize = 1_024;
/// How many runs may wait for their turn.
const WAITING_MAX: usize = 100_000;
/// How much they may hold in memory, all together.
const WAITING_BYTES_MAX: usize = 256 << 20;

/// Where the runs of a workflow are admitted.
pub(super) struct Desk {
    pub(super) workflow: Identity,
    /// The session that keeps the trigger keys.
    pub(super) session: SessionId,
    lease: Mutex<Arc<dyn Lease>>,
    turns: Mutex<Turns>,
    changed: Notify,
    /// Whether somebody sees to what was received and not begun.
    owes: AtomicBool,
    pub(super) rate: RateLimiter,
    /// The places there are for steps of the workflow, in all its sessions.
    pub(super) slots: Arc<Semaphore>,
    host: Arc<dyn Host>,
}

/// Where a run stands.
enum Turn {
    /// Its request is being looked at. One whose trigger takes no place in the queue has its turn
    /// from the moment it is let through.
    Arriving { reserved: bool },
    /// It waits until its limits let it begin.
    Waiting { place: u64, session: SessionId },
    /// It is under way.
    UnderWay { session: SessionId },
    /// The lane of its session fell, and what the session holds of it is not known yet.
    Unknown { session: SessionId, was_under_way: bool },
}

/// A run that waits, and who is told when it may begin.
struct Waiter {
    run: RunId,
    limits: Limits,
    session: SessionId,
    lane: Messages,
    /// How much it holds in memory.
    bytes: usize,
}

/// The runs of a session that are not over, as they were loaded from it.
pub(super) struct OpenRuns {
    pub(super) session: SessionId,
    /// Those that were begun: they have their turn.
    pub(super) begun: Vec<RunId>,
    /// All of them.
    pub(super) all: BTreeSet<RunId>,
}

/// What is said to a lane.
type Messages = mpsc::UnboundedSender<Message>;

/// What a run waits for.
#[derive(Clone, Debug)]
pub(super) struct Limits {
    /// How many may be under way, this one with them.
    pub(super) most: usize,
    /// How many may begin in a span of time; none for one that was counted when it was asked for.
    pub(super) rate: Option<RateLimit>,
}

impl Turn {
    /// Whether it counts for the limit of how many may be under way.
    const fn counts(&self) -> bool {
        matches!(
            self,
            Self::Arriving { reserved: true }
                | Self::UnderWay { .. }
                | Self::Unknown { was_under_way: true, .. }
        )
    }

    const fn session(&self) -> Option<SessionId> {
        match self {
            Self::Waiting { session, .. }
            | Self::UnderWay { session }
            | Self::Unknown { session, .. } => Some(*session),
            Self::Arriving { .. } => None,
        }
    }
}

/// Every run that is not over, each in one state. The rest follows from that, and changes in
/// [`Turns::set`] alone.
#[derive(Default)]
struct Turns {
    runs: BTreeMap<RunId, Turn>,
    queue: BTreeMap<u64, Waiter>,
    /// The runs whose request is being looked at, until whatever comes of it is recorded.
    claimed: BTreeSet<RunId>,
    arriving: usize,
    under_way: usize,
    /// How much those that wait hold in memory.
    bytes: usize,
    next: u64,
    /// When the one in front may begin, when it is the rate that it waits for.
    due_ms: Option<u64>,
}

impl Turns {
    fn set(&mut self, run: RunId, turn: Option<Turn>) {
        let before = self.runs.remove(&run);
        self.under_way -= usize::from(before.as_ref().is_some_and(Turn::counts));
        match before {
            Some(Turn::Arriving { .. }) => self.arriving -= 1,
            Some(Turn::Waiting { place, .. }) => {
                self.bytes -= self.queue.remove(&place).map_or(0, |waiter| waiter.bytes);
            }
            _ => {}
        }
        let Some(turn) = turn else { return };
        self.under_way += usize::from(turn.counts());
        self.arriving += usize::from(matches!(turn, Turn::Arriving { .. }));
        self.runs.insert(run, turn);
    }

    /// Has a run wait at a place in the queue.
    fn wait(&mut self, place: u64, waiter: Waiter) {
        let (run, session) = (waiter.run, waiter.session);
        self.set(run, Some(Turn::Waiting { place, session }));
        self.bytes += waiter.bytes;
        self.queue.insert(place, waiter);
    }

    /// Whether whoever comes now has to come back.
    fn is_full(&self) -> bool {
        self.arriving >= REQUESTS_MAX
            || self.queue.len() >= WAITING_MAX
            || self.bytes >= WAITING_BYTES_MAX
    }

    /// Whether one more may be under way at once, behind whoever waits.
    fn has_place(&self, most: usize) -> bool {
        self.queue.is_empty() && self.under_way < most
    }

    /// The runs whose turn is one of these.
    fn those(&self, is_one: impl Fn(&Turn) -> bool) -> Vec<RunId> {
        self.runs.iter().filter(|(_, turn)| is_one(turn)).map(|(run, _)| *run).collect()
    }

    /// Takes in what a session holds: nobody else of it has a turn or a place.
    fn reload(&mut self, open: &OpenRuns) {
        let OpenRuns { session, begun, all } = open;
        let of_session = self.those(|turn| turn.session() == Some(*session));
        for run in of_session {
            let is_known = !matches!(self.runs.get(&run), Some(Turn::Unknown { .. }));
            if !(is_known && all.contains(&run)) {
                self.set(run, None);
            }
        }
        begun.iter().for_each(|run| self.set(*run, Some(Turn::UnderWay { session: *session })));
    }

    /// Gives turns to those who have waited longest, as long as there are any.
    fn give(&mut self, rate: &RateLimiter, now_ms: u64) {
        self.due_ms = None;
        while let Some((_, waiter)) = self.queue.first_key_value() {
            let Waiter { run, limits, session, lane, .. } = waiter;
            if self.under_way >= limits.most {
                return;
            }
            if let Some(Err(after_ms)) = limits.rate.as_ref().map(|most| rate.take(most, now_ms)) {
                self.due_ms = Some(now_ms.saturating_add(after_ms));
                return;
            }
            let (run, session) = (*run, *session);
            // A lane that is gone is recovered, and its runs are enlisted again.
            drop(lane.send(Message::Turn(run)));
            self.set(run, Some(Turn::UnderWay { session }));
        }
    }
}

/// A request that is being looked at; nobody else looks at one for the same run.
pub(super) struct Claim<'d> {
    desk: &'d Desk,
    run: RunId,
    /// The ownership under which it is looked at. Whatever comes of it is recorded under this one
    /// or not at all: after a loss another process may have begun the same run.
    pub(super) epoch: Epoch,
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        let mut turns = self.desk.turns();
        turns.claimed.remove(&self.run);
        if matches!(turns.runs.get(&self.run), Some(Turn::Arriving { .. })) {
            turns.set(self.run, None);
            // What was reserved for it is free.
            turns.give(&self.desk.rate, self.desk.host.now_ms());
        }
        drop(turns);
        self.desk.changed.notify_waiters();
    }
}

impl Claim<'_> {
    /// Reserves its turn for a run that takes no place in the queue; says no when it would have
    /// to wait. Whoever asks next finds one place less.
    pub(super) fn reserve(&self, most: usize) -> bool {
        let mut turns = self.desk.turns();
        let has_place = turns.has_place(most);
        if has_place {
            turns.set(self.run, Some(Turn::Arriving { reserved: true }));
        }
        has_place
    }
}

/// What a request for a run finds.
pub(super) enum Arrived<'d> {
    /// Nobody asked for it, as far as the desk knows.
    New(Claim<'d>),
    /// It is there, and not over.
    Known,
    /// Whether it is there is not known before its session is loaded again.
    Unknown(SessionId),
    /// Too many are being looked at.
    Busy,
}

impl Desk {
    pub(super) fn new(
        workflow: Identity,
        lease: Arc<dyn Lease>,
        steps_at_once: usize,
        host: Arc<dyn Host>,
    ) -> Self {
        Self {
            workflow,
            session: lease.session(),
            lease: Mutex::new(lease),
            turns: Mutex::default(),
            changed: Notify::new(),
            owes: AtomicBool::new(false),
            rate: RateLimiter::default(),
            slots: Arc::new(Semaphore::new(steps_at_once)),
            host,
        }
    }

    fn turns(&self) -> MutexGuard<'_, Turns> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn lease(&self) -> MutexGuard<'_, Arc<dyn Lease>> {
        self.lease.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of this ownership.
    pub(super) fn epoch(&self) -> Epoch {
        self.lease().epoch()
    }

    /// Whether another process is known to have replaced this one.
    pub(super) fn is_lost(&self) -> bool {
        self.lease().is_lost()
    }

    /// Notes that something was received and not begun; says no when somebody sees to it already.
    pub(super) fn owes(&self) -> bool {
        !self.owes.swap(true, Ordering::AcqRel)
    }

    /// Notes that whoever saw to it has done so.
    pub(super) fn owes_no_more(&self) {
        self.owes.store(false, Ordering::Release);
    }

    /// Goes on under another lease of the same session, with what was loaded under it. Runs of
    /// sessions that this process has no part in any more are forgotten. It is one act: nobody gets
    /// a turn before all those are counted that were begun.
    pub(super) fn renew(
        &self,
        lease: Arc<dyn Lease>,
        loaded: &[OpenRuns],
        is_ours: impl Fn(SessionId) -> bool,
    ) {
        let mut turns = self.turns();
        *self.lease() = lease;
        let is_gone = |turn: &Turn| turn.session().is_some_and(|session| !is_ours(session));
        turns.those(is_gone).into_iter().for_each(|run| turns.set(run, None));
        loaded.iter().for_each(|open| turns.reload(open));
        turns.give(&self.rate, self.host.now_ms());
    }

    /// Looks at a request for a run, after whoever looks at one for the same run.
    pub(super) async fn arrive(&self, run: RunId) -> Arrived<'_> {
        loop {
            // Asked for before looking, so that no change in between is missed.
            let changed = self.changed.notified();
            {
                let mut turns = self.turns();
                match turns.runs.get(&run) {
                    // It has its turn before it is recorded, and nobody is told of it before.
                    _ if turns.claimed.contains(&run) => {}
                    Some(Turn::Arriving { .. }) => {}
                    Some(Turn::Waiting { .. } | Turn::UnderWay { .. }) => return Arrived::Known,
                    Some(Turn::Unknown { session, .. }) => return Arrived::Unknown(*session),
                    None if turns.is_full() => return Arrived::Busy,
                    None => {
                        turns.set(run, Some(Turn::Arriving { reserved: false }));
                        turns.claimed.insert(run);
                        return Arrived::New(Claim { desk: self, run, epoch: self.epoch() });
                    }
                }
            }
            changed.await;
        }
    }

    /// Lets a run of so many bytes begin at once, or has it wait for a message; says which. One
    /// that has its turn or its place keeps it.
    pub(super) fn enter(
        &self,
        (run, bytes): (RunId, usize),
        limits: Limits,
        session: SessionId,
        lane: &Messages,
    ) -> bool {
        let now_ms = self.host.now_ms();
        let mut turns = self.turns();
        let place = match turns.runs.get(&run) {
            Some(Turn::UnderWay { .. }) => return true,
            Some(Turn::Waiting { place, .. }) => *place,
            Some(Turn::Arriving { reserved: true }) => {
                turns.set(run, Some(Turn::UnderWay { session }));
                return true;
            }
            Some(Turn::Arriving { .. } | Turn::Unknown { .. }) | None => {
                let is_free = turns.has_place(limits.most);
                let may_begin = |rate: &RateLimit| self.rate.take(rate, now_ms).is_ok();
                if is_free && limits.rate.as_ref().is_none_or(may_begin) {
                    turns.set(run, Some(Turn::UnderWay { session }));
                    return true;
                }
                turns.next += 1;
                turns.next
            }
        };
        turns.wait(place, Waiter { run, limits, session, lane: lane.clone(), bytes });
        // The one in front may be allowed more than those before it.
        turns.give(&self.rate, now_ms);
        false
    }

    /// Gives turns to those whose time has come.
    pub(super) fn give(&self) {
        let now_ms = self.host.now_ms();
        self.turns().give(&self.rate, now_ms);
    }

    /// When the one in front may begin, when it is only the rate that it waits for.
    pub(super) fn due_ms(&self) -> Option<u64> {
        self.turns().due_ms
    }

    /// Counts a run that was begun before.
    pub(super) fn goes_on(&self, run: RunId, session: SessionId) {
        self.turns().set(run, Some(Turn::UnderWay { session }));
    }

    /// A run is over, or will not begin.
    pub(super) fn leave(&self, run: RunId) {
        let mut turns = self.turns();
        turns.set(run, None);
        turns.give(&self.rate, self.host.now_ms());
    }

    /// A lane fell: what its session holds is not known before it is loaded again. Those that
    /// were under way count until then.
    pub(super) fn fell(&self, session: SessionId) {
        let mut turns = self.turns();
        for run in turns.those(|turn| turn.session() == Some(session)) {
            let was_under_way = turns.runs.get(&run).is_some_and(Turn::counts);
            turns.set(run, Some(Turn::Unknown { session, was_under_way }));
        }
    }

    /// Takes in what a session holds that was loaded.
    pub(super) fn reload(&self, open: &OpenRuns) {
        let mut turns = self.turns();
        turns.reload(open);
        turns.give(&self.rate, self.host.now_ms());
    }

    /// How many runs are under way, and how many wait.
    pub(super) fn counts(&self) -> (usize, usize) {
        let turns = self.turns();
        (turns.under_way, turns.queue.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SESSION: SessionId = SessionId::from_bits(1);

    fn wait(turns: &mut Turns, number: u64, bytes: usize) {
        let (run, session) = (RunId::from_bits(number.into()), SESSION);
        let (lane, _) = mpsc::unbounded_channel();
        let limits = Limits { most: 1, rate: None };
        turns.wait(number, Waiter { run, limits, session, lane, bytes });
    }

    #[test]
    fn those_who_wait_hold_so_much_and_no_more() {
        let mut turns = Turns::default();
        wait(&mut turns, 1, WAITING_BYTES_MAX / 2);
        assert!(!turns.is_full());
        wait(&mut turns, 2, WAITING_BYTES_MAX / 2);
        assert!(turns.is_full());
        // One that is enlisted again at its place counts once.
        wait(&mut turns, 2, WAITING_BYTES_MAX / 2);
        assert_eq!(turns.bytes, WAITING_BYTES_MAX);
        turns.set(RunId::from_bits(1), None);
        turns.set(RunId::from_bits(2), Some(Turn::UnderWay { session: SESSION }));
        assert_eq!((turns.bytes, turns.is_full()), (0, false));
    }
}
