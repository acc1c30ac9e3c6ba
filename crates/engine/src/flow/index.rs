//! The list of runs: noted as they go, caught up on from the sessions.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cairn_core::event::{Event, EventData};
use cairn_core::id::{EventIndex, RunId, SessionId};
use cairn_core::projection::run::RunStatus;
use cairn_store as store;
use cairn_store::Store;
use cairn_store::port::{Mark, Moved, Place, RunFilter, RunRow, SessionRead, SnapshotAt, Which};
use tokio::sync::{Mutex as AsyncMutex, Notify};

use super::received::asked_for;
use crate::catalog::Identity;
use crate::error::Result;
use crate::host::Host;

/// How long notes are gathered before they are written. A run that is soon over is written
/// once; whoever reads the list has what is noted written first.
const GATHER: Duration = Duration::from_millis(50);

/// What is known of a run at a glance.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Summary {
    /// The run.
    pub run: RunId,
    /// The session it lives in.
    pub session: SessionId,
    /// Its workflow.
    pub workflow: String,
    /// Where the workflow's file was.
    pub place: Option<String>,
    /// Where it stands.
    pub status: RunStatus,
    /// Its first event.
    pub first: EventIndex,
    /// An event with which it was over; none of its own come later.
    pub last: Option<EventIndex>,
    /// When it was asked for, in milliseconds since 1970.
    pub queued_ms: u64,
    /// When it began.
    pub started_ms: Option<u64>,
    /// When it was over.
    pub ended_ms: Option<u64>,
    /// The trigger that asked.
    pub trigger: Option<String>,
    /// The run that waits for it.
    pub parent: Option<RunId>,
    /// Its latest snapshot.
    pub snapshot: Option<SnapshotAt>,
    /// Whether its time to be kept is over.
    pub is_retired: bool,
    /// Whether it came from elsewhere and nobody trusts it yet.
    pub is_paper: bool,
    /// The first event of its session that is not looked at in this.
    pub seen: EventIndex,
}

/// Which runs are wanted.
pub type Filter = RunFilter;

impl Summary {
    /// Whether the run is over.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.status.is_over()
    }

    /// When it began, or was asked for if it did not.
    pub(super) fn begun_ms(&self) -> u64 {
        self.started_ms.unwrap_or(self.queued_ms)
    }

    /// Which workflow it is a run of.
    #[must_use]
    pub fn identity(&self) -> Identity {
        Identity::recorded(&self.workflow, self.place.as_deref())
    }

    fn row(self) -> RunRow {
        RunRow {
            run: self.run,
            session: self.session,
            workflow: self.workflow,
            place: self.place,
            status: self.status,
            first: self.first,
            last: self.last,
            queued_ms: self.queued_ms,
            started_ms: self.started_ms,
            ended_ms: self.ended_ms,
            trigger: self.trigger,
            parent: self.parent,
            snapshot: self.snapshot,
            is_retired: self.is_retired,
            seen: self.seen,
        }
    }

    fn of(row: RunRow) -> Self {
        Self {
            run: row.run,
            session: row.session,
            workflow: row.workflow,
            place: row.place,
            status: row.status,
            first: row.first,
            last: row.last,
            queued_ms: row.queued_ms,
            started_ms: row.started_ms,
            ended_ms: row.ended_ms,
            trigger: row.trigger,
            parent: row.parent,
            snapshot: row.snapshot,
            is_retired: row.is_retired,
            is_paper: false,
            seen: row.seen,
        }
    }
}

/// The list of runs. What is noted is written a little later, by a task of its own.
pub(super) struct Index {
    host: Arc<dyn Host>,
    store: Store,
    noted: Arc<Noted>,
}

#[derive(Default)]
struct Noted {
    rows: Mutex<BTreeMap<RunId, Summary>>,
    /// What is being written, which nobody can read from the list yet.
    written: Mutex<BTreeMap<RunId, Summary>>,
    /// Held by whoever reads and writes, so that nothing older is written over what is newer.
    turn: AsyncMutex<()>,
    /// The sessions that this process writes to: their workflow, and the last event.
    moved: Mutex<BTreeMap<SessionId, (String, EventIndex)>>,
    wake: Notify,
    writing: Mutex<bool>,
    /// What sessions hold beyond a list that could not be written, until it can be: somebody may
    /// have stopped in the middle of writing it.
    unkept: Mutex<Unkept>,
    /// The sessions that whoever caught up last could not read.
    hidden: Mutex<BTreeSet<SessionId>>,
}

/// The sessions that could not be read by whoever caught up, and why: what is not listed may be
/// in one of them.
#[must_use]
pub(super) struct Unread(BTreeMap<SessionId, store::Error>);

impl Unread {
    /// Whether a session is among them.
    pub(super) fn has(&self, session: SessionId) -> bool {
        self.0.contains_key(&session)
    }

    /// Says why, when one of these sessions is among them.
    pub(super) fn require(&self, sessions: impl IntoIterator<Item = SessionId>) -> Result<()> {
        let why = sessions.into_iter().find_map(|session| self.0.get(&session));
        why.map_or(Ok(()), |error| Err(error.clone().into()))
    }

    /// Says why, when there is any.
    pub(super) fn require_all(&self) -> Result<()> {
        self.require(self.0.keys().copied())
    }
}

/// Sessions with their marks; none for one that is not there.
type Marks = BTreeMap<SessionId, Option<Mark>>;

/// How far sessions were read.
type Reads = BTreeMap<SessionId, SessionRead>;

#[derive(Clone, Default)]
struct Unkept {
    rows: BTreeMap<RunId, Summary>,
    read: Reads,
    /// The place that the list had, and the one up to which this is everything.
    reached: Option<(Option<Place>, Place)>,
}

impl Unkept {
    fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.read.is_empty()
    }
}

fn held<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Noted {
    fn find(&self, run: RunId) -> Option<Summary> {
        let rows = held(&self.rows);
        rows.get(&run).cloned().or_else(|| held(&self.written).get(&run).cloned())
    }

    /// Everything that is known of runs and not in the list.
    fn all(&self) -> BTreeMap<RunId, Summary> {
        let mut all = held(&self.unkept).rows.clone();
        let (rows, written) = (held(&self.rows), held(&self.written));
        all.extend(written.iter().chain(&*rows).map(|(run, row)| (*run, row.clone())));
        all
    }

    /// Takes back what could not be written. What was noted since is newer.
    fn put_back(&self, moved: BTreeMap<SessionId, (String, EventIndex)>) {
        let mut rows = held(&self.rows);
        for (run, row) in std::mem::take(&mut *held(&self.written)) {
            rows.entry(run).or_insert(row);
        }
        let mut known = held(&self.moved);
        for (session, last) in moved {
            known.entry(session).or_insert(last);
        }
    }

    /// Takes what is to be written. It can be found until it has been.
    fn take(&self) -> Vec<Summary> {
        let mut rows = held(&self.rows);
        let mut written = held(&self.written);
        *written = std::mem::take(&mut *rows);
        written.values().cloned().collect()
    }
}

impl Index {
    pub(super) fn new(host: Arc<dyn Host>, store: Store) -> Self {
        Self { host, store, noted: Arc::default() }
    }

    /// Notes how a run is.
    pub(super) fn note(&self, summary: Summary) {
        held(&self.noted.rows).insert(summary.run, summary);
        self.write_soon();
    }

    /// Notes how far a session was written by this process.
    pub(super) fn moved(&self, session: SessionId, workflow: &str, last: EventIndex) {
        let mut moved = held(&self.noted.moved);
        match moved.get_mut(&session) {
            Some((_, known)) => *known = last,
            None => drop(moved.insert(session, (workflow.to_owned(), last))),
        }
    }

    fn write_soon(&self) {
        if std::mem::replace(&mut *held(&self.noted.writing), true) {
            return self.noted.wake.notify_one();
        }
        let (store, noted) = (self.store.clone(), Arc::clone(&self.noted));
        let host = Arc::clone(&self.host);
        self.host.spawn(Box::pin(async move {
            loop {
                host.sleep(GATHER).await;
                let turn = noted.turn.lock().await;
                write(&store, &noted, None).await;
                drop(turn);
                noted.wake.notified().await;
            }
        }));
    }

    /// Writes what was noted, and reads what sessions hold beyond what the list knows of them.
    pub(super) async fn catch_up(&self) -> Result<Unread> {
        self.look(false).await
    }

    /// The same, whatever was seen before: somebody may have put other files in the place of ours.
    pub(super) async fn look_at_all(&self) -> Result<Unread> {
        self.look(true).await
    }

    async fn look(&self, at_all: bool) -> Result<Unread> {
        let _turn = self.noted.turn.lock().await;
        self.keep_unkept().await;
        let listed = self.store.runs.place().await?;
        let here = held(&self.noted.unkept).reached.clone().map(|(_, place)| place);
        let since = here.or_else(|| listed.clone()).filter(|_| !at_all);
        let moved = self.store.sessions.moved(since.as_ref()).await?;
        write(&self.store, &self.noted, Some(&moved.marks)).await;
        let (marks, mut known, mut gone) = self.to_look_at(&moved).await?;
        let (mut unread, mut hidden) = (BTreeMap::new(), BTreeSet::new());
        for (session, mark) in marks {
            let read = known.remove(&session);
            let Some(mark) = mark else {
                gone.extend(read.map(|read| read.session));
                continue;
            };
            if read.as_ref().is_some_and(|read| read.mark.as_ref() == Some(&mark)) {
                continue;
            }
            if let Err(error) = self.look_at(session, read.clone(), mark).await? {
                hidden.insert(session);
                unread.extend(unless_damaged(session, error));
                // Until it can be read it is looked at each time.
                let none = SessionRead::none(session);
                let again = SessionRead { mark: None, ..read.unwrap_or(none) };
                self.keep(Vec::new(), vec![again]).await;
            }
        }
        *held(&self.noted.hidden) = hidden;
        // What could not be read is still to be seen to, whatever others say of it meanwhile.
        if self.forget_gone(gone).await && unread.is_empty() {
            self.reach(listed, moved.place).await;
        }
        Ok(Unread(unread))
    }

    /// The sessions to look at, with their marks, what is known of them, and those that are gone:
    /// whatever moved, what is to be looked at in any case, and what came by another way.
    async fn to_look_at(&self, moved: &Moved) -> Result<(Marks, Reads, BTreeSet<SessionId>)> {
        let mut marks = moved.marks.clone();
        let mut known = self.sessions(&Which::Unsettled).await?;
        let mut wanted: BTreeSet<SessionId> = known.keys().copied().collect();
        let mut gone = BTreeSet::new();
        let these = match &moved.names {
            None => Which::These(marks.keys().copied().collect()),
            Some(_) => Which::All,
        };
        known.extend(self.sessions(&these).await?);
        if let Some(names) = &moved.names {
            wanted.extend(names.iter().filter(|session| !known.contains_key(session)));
            gone.extend(known.keys().filter(|session| !names.contains(session)));
        }
        for session in wanted {
            if let Entry::Vacant(place) = marks.entry(session) {
                place.insert(self.store.sessions.mark(session).await?);
            }
        }
        Ok((marks, known, gone))
    }

    /// Reads what a session holds beyond what is known of it; the inner error says why it cannot
    /// be read.
    async fn look_at(
        &self,
        session: SessionId,
        read: Option<SessionRead>,
        mark: Mark,
    ) -> Result<store::Result<()>> {
        let mut read = read.unwrap_or_else(|| SessionRead::none(session));
        let status = match self.store.log.status(session).await {
            Ok(status) => status,
            Err(error) => return Ok(Err(error)),
        };
        if status.events < read.seen.0 && status.damage.is_none() {
            // Somebody put an older copy back. The log counts, whatever the list knew.
            self.store.runs.forget(vec![session]).await?;
            read = SessionRead { workflow: read.workflow, ..SessionRead::none(session) };
        }
        let events = match self.store.log.read(session, read.next).await {
            Ok(events) => events,
            Err(error) => return Ok(Err(error)),
        };
        self.take_in(read, &events, mark).await?;
        self.take_listed(&events).await?;
        Ok(Ok(()))
    }

    /// Notes that everything up to a place is known: in the list or, while that cannot be
    /// written, here.
    async fn reach(&self, since: Option<Place>, place: Place) {
        {
            let mut unkept = held(&self.noted.unkept);
            if !unkept.is_empty() {
                let since = unkept.reached.take().map_or(since, |(since, _)| since);
                unkept.reached = Some((since, place));
                return;
            }
        }
        // Whoever looks next looks at the same once more.
        let _ = self.store.runs.reach(since.as_ref(), &place).await;
    }

    /// The sessions that could not be read when the list last caught up, for whatever reason: what
    /// it has of their runs may be old, or nothing at all.
    pub(super) fn hidden(&self) -> Vec<SessionId> {
        held(&self.noted.hidden).iter().copied().collect()
    }

    /// Forgets sessions that are gone; says whether it could. One that was made since the others
    /// were listed is there.
    async fn forget_gone(&self, missing: BTreeSet<SessionId>) -> bool {
        let mut gone = Vec::new();
        for session in missing {
            if let Err(store::Error::NotFound(_)) = self.store.log.status(session).await {
                gone.push(session);
            }
        }
        if gone.is_empty() {
            return true;
        }
        held(&self.noted.unkept).read.retain(|session, _| !gone.contains(session));
        held(&self.noted.unkept).rows.retain(|_, row| !gone.contains(&row.session));
        self.store.runs.forget(gone).await.is_ok()
    }

    /// How far sessions were read.
    pub(super) async fn sessions(&self, which: &Which) -> Result<Reads> {
        let known = self.store.runs.sessions(which).await?;
        let mut known: Reads = known.into_iter().map(|read| (read.session, read)).collect();
        for read in held(&self.noted.unkept).read.values() {
            // What the list says of it is old.
            known.remove(&read.session);
            if which.takes(read) {
                known.insert(read.session, read.clone());
            }
        }
        Ok(known)
    }

    /// How far one session was read, if it is known.
    pub(super) async fn session(&self, session: SessionId) -> Result<Option<SessionRead>> {
        Ok(self.sessions(&Which::These(BTreeSet::from([session]))).await?.remove(&session))
    }

    /// Writes what could not be written before.
    async fn keep_unkept(&self) {
        let Unkept { rows, read, reached } = held(&self.noted.unkept).clone();
        if rows.is_empty() && read.is_empty() {
            return;
        }
        let kept = (rows.into_values().map(Summary::row).collect(), read.into_values().collect());
        if self.store.runs.record(kept.0, kept.1).await.is_err() {
            return;
        }
        *held(&self.noted.unkept) = Unkept::default();
        if let Some((since, place)) = reached {
            // Whoever looks next looks at the same once more.
            let _ = self.store.runs.reach(since.as_ref(), &place).await;
        }
    }

    /// Keeps what was read from a session: in the list or, while that cannot be written, here.
    async fn keep(&self, rows: Vec<Summary>, read: Vec<SessionRead>) {
        // One that cannot be written costs a while to try, and so it is tried once.
        if held(&self.noted.unkept).is_empty() {
            let kept = rows.iter().cloned().map(Summary::row).collect();
            if self.store.runs.record(kept, read.clone()).await.is_ok() {
                return;
            }
        }
        let mut unkept = held(&self.noted.unkept);
        unkept.rows.extend(rows.into_iter().map(|row| (row.run, row)));
        for read in read {
            let recorded = match unkept.read.get(&read.session).cloned() {
                Some(known) => known.followed_by(read),
                None => Some(read),
            };
            unkept.read.extend(recorded.map(|read| (read.session, read)));
        }
    }

    /// Notes of which workflow the sessions are that a desk lists. They may hold no run yet.
    async fn take_listed(&self, events: &[Event]) -> Result<()> {
        let listed = events.iter().filter_map(|event| match &event.data {
            EventData::SessionListed(listed) => {
                let place = listed.workflow_source_ref.as_deref();
                Some((listed.listed_id, key(&listed.workflow_id, place)))
            }
            _ => None,
        });
        let listed: BTreeMap<SessionId, String> = listed.collect();
        if listed.is_empty() {
            return Ok(());
        }
        let known = self.sessions(&Which::These(listed.keys().copied().collect())).await?;
        let fresh = |(session, workflow): (SessionId, String)| {
            let read = known.get(&session).cloned().unwrap_or_else(|| SessionRead::none(session));
            let is_known = read.workflow.is_some();
            (!is_known).then_some(SessionRead { workflow: Some(workflow), ..read })
        };
        let fresh: Vec<SessionRead> = listed.into_iter().filter_map(fresh).collect();
        self.keep(Vec::new(), fresh).await;
        Ok(())
    }

    async fn take_in(&self, read: SessionRead, events: &[Event], mark: Mark) -> Result<()> {
        let SessionRead { session, mut workflow, next, seen, .. } = read;
        let mut rows: BTreeMap<RunId, Summary> = BTreeMap::new();
        for event in events {
            let Some(run) = event.scope.run() else { continue };
            if let EventData::RunQueued(queued) = &event.data {
                let place = queued.workflow_source_ref.clone();
                workflow.get_or_insert_with(|| key(&queued.workflow_id, place.as_deref()));
                rows.insert(
                    run,
                    Summary {
                        run,
                        session,
                        workflow: queued.workflow_id.clone(),
                        place,
                        status: RunStatus::Queued,
                        first: event.index,
                        last: None,
                        queued_ms: event.id.minted_ms(),
                        started_ms: None,
                        ended_ms: None,
                        trigger: queued.trigger_id.as_ref().map(ToString::to_string),
                        parent: queued.parent.as_ref().map(|parent| parent.run_id),
                        snapshot: None,
                        is_retired: false,
                        is_paper: false,
                        seen: event.index.next(),
                    },
                );
                continue;
            }
            let status = status_after(&event.data);
            let marked =
                matches!(event.data, EventData::SnapshotTaken(_) | EventData::RunRetired(_));
            if status.is_none() && !marked {
                continue;
            }
            let row = match rows.entry(run) {
                Entry::Occupied(row) => row.into_mut(),
                Entry::Vacant(place) => {
                    let Some(row) = self.kept(run).await? else { continue };
                    place.insert(row)
                }
            };
            // The desk of its workflow tells of a run, too.
            if row.session == session {
                if event.index < row.seen {
                    continue;
                }
                row.seen = event.index.next();
            }
            match &event.data {
                EventData::RunStarted(_) => row.started_ms = Some(event.id.minted_ms()),
                EventData::SnapshotTaken(taken) => {
                    let (at, through) = (taken.snapshot_ref, taken.through);
                    row.snapshot = Some(SnapshotAt { at, through });
                }
                EventData::RunRetired(_) => row.is_retired = true,
                _ => {}
            }
            if let Some(status) = status.filter(|status| moves(row.status, *status, &event.data)) {
                let is_over = status.is_over();
                row.status = status;
                row.ended_ms = is_over.then(|| event.id.minted_ms());
                row.last = is_over.then_some(event.index);
            }
        }
        let open = self.not_begun(events).await?;
        let seen = events.last().map_or(seen.max(next), |event| event.index.next());
        // What was asked for and is not begun is looked at again.
        let mark = open.is_none().then_some(mark);
        let read = SessionRead { session, workflow, next: open.unwrap_or(seen), seen, mark };
        self.keep(rows.into_values().collect(), vec![read]).await;
        Ok(())
    }

    /// The first event that asks for a run which was never begun.
    async fn not_begun(&self, events: &[Event]) -> Result<Option<EventIndex>> {
        let mut first: Option<EventIndex> = None;
        for (run, (at, _)) in asked_for(events) {
            if first.is_none_or(|first| at < first) && self.find(run).await?.is_none() {
                first = Some(at);
            }
        }
        Ok(first)
    }

    pub(super) async fn list(&self, filter: &Filter) -> Result<Vec<Summary>> {
        let noted = self.noted.all();
        if noted.is_empty() {
            let rows = self.store.runs.list(filter).await?;
            return Ok(rows.into_iter().map(Summary::of).collect());
        }
        // Each of these may take the place of one that is in the list.
        let limit = filter.limit.map(|limit| limit.saturating_add(noted.len()));
        let listed = self.store.runs.list(&Filter { limit, ..filter.clone() }).await?;
        let listed = listed.into_iter().filter(|row| !noted.contains_key(&row.run));
        let rows = noted.values().cloned().map(Summary::row).filter(|row| filter.takes(row));
        let mut rows: Vec<RunRow> = rows.chain(listed).collect();
        rows.sort_by_key(|row| std::cmp::Reverse((row.queued_ms, row.run)));
        rows.truncate(filter.limit.unwrap_or(usize::MAX));
        Ok(rows.into_iter().map(Summary::of).collect())
    }

    /// What the list says of a run, or would if it could be written.
    async fn kept(&self, run: RunId) -> Result<Option<Summary>> {
        let unkept = held(&self.noted.unkept).rows.get(&run).cloned();
        match unkept {
            Some(row) => Ok(Some(row)),
            None => Ok(self.store.runs.find(run).await?.map(Summary::of)),
        }
    }

    pub(super) async fn find(&self, run: RunId) -> Result<Option<Summary>> {
        if let Some(noted) = self.noted.find(run) {
            return Ok(Some(noted));
        }
        self.kept(run).await
    }

    /// The sessions that runs of a workflow went into.
    pub(super) async fn sessions_of(&self, workflow: &Identity) -> Result<Vec<SessionRead>> {
        let own = self.sessions(&Which::Of(workflow.key().to_owned())).await?;
        Ok(own.into_values().collect())
    }
}

/// Why a session cannot be read at the moment. A damaged one is told about by those who ask for
/// it, and one that is gone by nobody.
fn unless_damaged(session: SessionId, error: store::Error) -> Option<(SessionId, store::Error)> {
    use store::Error::{Corrupt, NotFound, UnknownVersion};
    let is_so = matches!(error, Corrupt { .. } | NotFound(_) | UnknownVersion { .. });
    (!is_so).then_some((session, error))
}

fn key(id: &str, place: Option<&str>) -> String {
    Identity::recorded(id, place).key().to_owned()
}

/// The runs of a workflow.
pub(super) fn of(workflow: &Identity) -> Filter {
    // What is told by its id is so wherever its file was.
    match workflow.key() == workflow.id() {
        true => Filter { workflow: Some(workflow.id().to_owned()), ..Filter::default() },
        false => Filter { place: Some(workflow.place().to_owned()), ..Filter::default() },
    }
}

/// Writes what was noted, for whoever has the turn; with marks also how far the sessions of this
/// process are known, so that they are not read again. One that has moved on meanwhile is.
async fn write(store: &Store, noted: &Noted, marks: Option<&Marks>) {
    // How far sessions are known is noted after the runs in them, and so it is taken before.
    let moved = match marks {
        Some(_) => std::mem::take(&mut *held(&noted.moved)),
        None => held(&noted.moved).clone(),
    };
    let rows = noted.take();
    if rows.is_empty() && (marks.is_none() || moved.is_empty()) {
        return;
    }
    let known = moved.iter().map(|(session, last)| {
        let mark = marks.and_then(|marks| marks.get(session)?.as_ref());
        read((*session, last.clone()), mark)
    });
    let known = known.collect();
    match store.runs.record(rows.into_iter().map(Summary::row).collect(), known).await {
        Ok(()) => held(&noted.written).clear(),
        // Those runs may never be noted again, so they stay noted until they are written.
        Err(_) => noted.put_back(moved),
    }
}

fn read(moved: (SessionId, (String, EventIndex)), mark: Option<&Mark>) -> SessionRead {
    let (session, (workflow, last)) = moved;
    let mark = mark.filter(|mark| mark.is_before(last.next())).cloned();
    let next = last.next();
    SessionRead { session, workflow: Some(workflow), next, seen: next, mark }
}

/// Whether an event moves a run that stands somewhere. One that is paused stays so, whatever
/// else happens to it, until it is resumed or over.
const fn moves(from: RunStatus, to: RunStatus, data: &EventData) -> bool {
    !matches!(from, RunStatus::Paused) || to.is_over() || matches!(data, EventData::RunResumed(_))
}

/// Where a run stands after an event; none when it stands where it stood.
pub(super) const fn status_after(data: &EventData) -> Option<RunStatus> {
    Some(match data {
        EventData::RunStarted(_) | EventData::RunResumed(_) => RunStatus::Running,
        EventData::RunPaused(_) => RunStatus::Paused,
        EventData::StepWaiting(_) | EventData::StepInterrupted(_) => RunStatus::Waiting,
        EventData::StepResolved(_)
        | EventData::TaskAnswered(_)
        | EventData::TimerFired(_)
        | EventData::ChildFinished(_) => RunStatus::Running,
        EventData::RunCompleted(_) => RunStatus::Succeeded,
        EventData::RunFailed(_) => RunStatus::Failed,
        EventData::RunCancelled(_) => RunStatus::Cancelled,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use cairn_core::event::engine::{RunResumed, RunRetired};
    use cairn_core::id::ChangeId;

    use super::*;

    #[test]
    fn a_paused_run_stays_paused_until_it_is_resumed_or_over() {
        use RunStatus::{Cancelled, Paused, Queued, Running, Waiting};
        let (by, change_id, via) = ("ada".to_owned(), ChangeId::from_bits(1), None);
        let resumed = EventData::from(RunResumed { by, change_id, input: None, via });
        let other = EventData::from(RunRetired {});
        for (from, to, data, expected) in [
            (Queued, Paused, &other, true),
            (Paused, Running, &other, false),
            (Paused, Waiting, &other, false),
            (Paused, Cancelled, &other, true),
            (Paused, Running, &resumed, true),
            (Waiting, Running, &other, true),
        ] {
            assert_eq!(moves(from, to, data), expected, "{from:?} {to:?}");
        }
    }
}
