//! The ports: what the rest of Cairn may ask of a store. The conformance suite holds
//! every backend to what the comments here say.

pub mod audit;
pub mod documents;
pub mod locks;
pub mod mailbox;
pub mod search;

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use cairn_core::digest::{Digest, SnapshotRef};
use cairn_core::event::Event;
use cairn_core::id::{BundleId, EventIndex, RunId, SessionId};
use cairn_core::keyring::Keyring;
use cairn_core::pin::{BlobKind, Pin};
use cairn_core::projection::run::RunStatus;

use crate::error::{Result, require_known};
use crate::fence::Epoch;
use crate::health::{Health, Notice};
use crate::open::Store;
use crate::plan::{AppendPlan, Appended, Blob};

/// What happened in each session, only ever added to.
#[async_trait]
pub trait EventLog: Send + Sync {
    /// Adds a plan's events, together or not at all; the first such call makes the session.
    ///
    /// A plan whose events are all recorded already changes nothing and answers with where
    /// they are. When one of its runs went on after the plan's author looked, the answer is
    /// `Conflict`: look again, decide again. By the time this returns, events and blobs will
    /// survive a crash. A caller that stops waiting does not undo the append. A session that
    /// a later version wrote to takes nothing: the answer is `Newer`, and reading it works.
    ///
    /// Before anything else, a replay included, the plan's fence is compared with the session's
    /// epoch, in the same act as the append: a lower one is refused with `Fenced`, a higher one
    /// with `EpochBackwards`. A plan without a fence is refused with `Unfenced` when the session
    /// has ever had an owner and either it or the plan holds events of runs that the engine
    /// performs: only owners add to those. Guided runs are added to without a fence by many
    /// processes, also while one of them performs a step of theirs under a lease. A refused plan
    /// adds no event; blobs that came with it are left to the next collection.
    async fn append(&self, session: SessionId, plan: AppendPlan) -> Result<Appended>;

    /// Gives what happened from `from` on, in order, as far as it is durable.
    ///
    /// Fails on a damaged session; [`EventLog::read_prefix`] reads what is left of one.
    async fn read(&self, session: SessionId, from: EventIndex) -> Result<Vec<Event>> {
        self.read_between(session, from, EventIndex::LAST).await
    }

    /// The same, up to an event; what comes later is not looked at.
    async fn read_between(
        &self,
        session: SessionId,
        from: EventIndex,
        through: EventIndex,
    ) -> Result<Vec<Event>>;

    /// Reads the part of a session that can still be trusted, and says how the session is.
    async fn read_prefix(&self, session: SessionId) -> Result<Prefix>;

    /// Says how a session is and how much it holds, without reading payloads.
    async fn status(&self, session: SessionId) -> Result<Status>;

    /// Moves what was appended into its final, compact form. Changes nothing that can be read.
    async fn seal(&self, session: SessionId) -> Result<()>;

    /// Says whether there is room for more; `Full` says how much is missing.
    async fn room(&self, _: Room) -> Result<()> {
        Ok(())
    }
}

/// What room is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Room {
    /// For a run that is to begin.
    Run,
    /// For a run under way to go on.
    Step,
}

/// What can still be trusted of a session.
#[derive(Clone, PartialEq, Debug)]
pub struct Prefix {
    /// The events, oldest first.
    pub events: Vec<Event>,
    /// How the session is.
    pub health: Health,
    /// What is damaged, when it is.
    pub damage: Option<String>,
}

/// How a session is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Status {
    /// Its health.
    pub health: Health,
    /// What is damaged, when it is.
    pub damage: Option<String>,
    /// What else there is to know.
    pub notices: Vec<Notice>,
    /// How many events can be read.
    pub events: u64,
    /// How many bytes they take.
    pub bytes: u64,
    /// The blobs it needs.
    pub pins: Vec<Pin>,
    /// Whether it is kept whatever its age.
    pub kept: bool,
    /// The format that a program must know to write to it.
    pub format: u32,
}

impl Status {
    /// Whether this program may write to the session, or make something of what it holds.
    pub fn require_known(&self, session: SessionId) -> Result<()> {
        require_known(session, self.format)
    }
}

/// The sessions as wholes: which there are, and how long they stay.
#[async_trait]
pub trait Sessions: Send + Sync {
    /// Lists the sessions there are, in order of their ids. One without any event is not there.
    async fn list(&self) -> Result<Vec<SessionId>>;

    /// The mark of a session, which changes with every append; none when it is not there.
    async fn mark(&self, session: SessionId) -> Result<Option<Mark>>;

    /// Says what may have moved since a place in the order of changes that an earlier call gave.
    /// Without one, or with one that this store does not know any more, that is every session.
    ///
    /// Nothing that was appended before the call is missing from what it gives and from what it
    /// gave up to that place. What costs time is what moved, not how much there is.
    async fn moved(&self, since: Option<&Place>) -> Result<Moved>;

    /// Says whether a session is kept whatever its age.
    async fn keep(&self, session: SessionId, kept: bool) -> Result<()>;

    /// Removes a session and everything in it. Its blobs stay until they are collected.
    ///
    /// An owner gives its epoch, and is refused like one that appends when it was replaced.
    /// Whoever gives none is refused with `Owned` while somebody owns the session.
    async fn delete(&self, session: SessionId, fence: Option<Epoch>) -> Result<()>;

    /// Removes a session that is not kept and whose last event is still `last`; says whether.
    /// Fails with `Newer` when a later version wrote to it: what it holds is not for us to judge.
    /// The fence is that of [`Sessions::delete`].
    async fn retire(
        &self,
        session: SessionId,
        last: EventIndex,
        fence: Option<Epoch>,
    ) -> Result<bool>;

    /// Adds a whole session that came from elsewhere: it is there completely or not at all.
    ///
    /// Fails with `Exists` when there is a session of that id, with `BlobMissing` when the
    /// events need a blob that is not in the store yet, and with `Newer` when one of them is
    /// of a later format.
    async fn adopt(
        &self,
        session: SessionId,
        events: Vec<Event>,
        origin: Option<Origin>,
    ) -> Result<()>;

    /// Whether a session was deleted or retired here. One that is gone and was not was taken away
    /// by somebody else, who may bring it back.
    async fn is_deleted(&self, session: SessionId) -> Result<bool>;

    /// Where a session comes from; none when it began here.
    async fn origin(&self, session: SessionId) -> Result<Option<Origin>>;
}

/// Where sessions are that came from elsewhere and that nobody trusts yet: a store of its own,
/// which is made when the first of them arrives.
pub trait Papers: Send + Sync {
    /// The store, if there is one.
    fn find(&self) -> Result<Option<Store>>;

    /// The store.
    fn open(&self) -> Result<Store>;
}

/// A place in the order in which sessions change. What it says is the store's own affair.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place(pub String);

/// What may have moved since somebody last looked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Moved {
    /// The sessions that were written to, each with its mark; none for one that is not there.
    pub marks: BTreeMap<SessionId, Option<Mark>>,
    /// Every session there is, when one may have come or gone; some of them may be without events.
    pub names: Option<BTreeSet<SessionId>>,
    /// From where to go on the next time.
    pub place: Place,
}

/// How far a session is, for whoever only wants to know whether it moved. It begins with the
/// last event, as far as that is known without reading.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mark(pub String);

impl Mark {
    /// The last event, as far as it is known without reading.
    #[must_use]
    pub fn last(&self) -> Option<EventIndex> {
        self.0.split(':').next().and_then(|last| last.parse().ok()).map(EventIndex)
    }

    /// Whether the event before this one is the last.
    #[must_use]
    pub fn is_before(&self, next: EventIndex) -> bool {
        self.last().is_some_and(|last| last.next() == next)
    }
}

/// Where an imported session comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Origin {
    /// The session it was.
    pub session: SessionId,
    /// The bundle it came in.
    pub bundle: BundleId,
    /// The digest of the bundle's integrity entries.
    pub root: Digest,
    /// Who trusts it; none while it is paper.
    pub trusted: Option<Trusted>,
}

/// Somebody who said that a session from elsewhere may go on here.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trusted {
    /// Who.
    pub by: String,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
}

/// Bytes kept under their own digest, shared by all sessions.
#[async_trait]
pub trait Blobs: Send + Sync {
    /// Keeps a blob. On return it is durable; keeping it again changes nothing.
    async fn put(&self, blob: Blob) -> Result<Digest>;

    /// Gives a blob's bytes, after checking them against its digest.
    async fn get(&self, kind: BlobKind, digest: Digest) -> Result<Vec<u8>>;

    /// Starts a collection: until it is dropped nobody can pin a blob.
    async fn sweep(&self) -> Result<Box<dyn Sweep>>;
}

/// A collection of blobs that nobody needs, under way.
#[async_trait]
pub trait Sweep: Send + Sync {
    /// Lists the blobs of one kind, in order of their digests, with when they were stored.
    async fn list(&self, kind: BlobKind) -> Result<Vec<(Digest, u64)>>;

    /// Removes a blob.
    async fn remove(&self, kind: BlobKind, digest: Digest) -> Result<()>;
}

/// The runs that the engine performed, as a list that follows from sessions and can be made
/// from them again.
#[async_trait]
pub trait RunIndex: Send + Sync {
    /// Keeps rows, each in the place of its run's last one, and how far their session was read:
    /// all of it or, when it fails, nothing. Then the caller still has what follows from the
    /// sessions, and goes by that.
    ///
    /// Whoever has read less of a session than is recorded of it, or of one of its runs, changes
    /// nothing there. The workflow of a session stays known, also where somebody records who does
    /// not know it.
    async fn record(&self, rows: Vec<RunRow>, read: Vec<SessionRead>) -> Result<()>;

    /// Up to which place in the order of changes everything is in the list; none for a list that
    /// is being made.
    async fn place(&self) -> Result<Option<Place>>;

    /// Says that everything up to a place is in the list, for somebody who has seen to all that
    /// moved since another. Changes nothing when that is not the list's place any more.
    async fn reach(&self, since: Option<&Place>, place: &Place) -> Result<()>;

    /// Gives rows, latest first.
    async fn list(&self, filter: &RunFilter) -> Result<Vec<RunRow>>;

    /// Gives the row of a run.
    async fn find(&self, run: RunId) -> Result<Option<RunRow>>;

    /// Gives how far sessions were read.
    async fn sessions(&self, which: &Which) -> Result<Vec<SessionRead>>;

    /// Forgets sessions that are gone.
    async fn forget(&self, gone: Vec<SessionId>) -> Result<()>;
}

/// What is known of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunRow {
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
    /// The first event of its session that is not looked at in this.
    pub seen: EventIndex,
}

/// A snapshot of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SnapshotAt {
    /// Where it is stored.
    pub at: SnapshotRef,
    /// The last event that is in it.
    pub through: EventIndex,
}

/// How far a session was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionRead {
    /// The session.
    pub session: SessionId,
    /// What tells the workflow whose runs are in it from all others; none when the engine performs
    /// none of them.
    pub workflow: Option<String>,
    /// The first event from which on it is to be read the next time.
    pub next: EventIndex,
    /// The first event that was not read.
    pub seen: EventIndex,
    /// What the session's mark was then; none when it is to be looked at again in any case.
    pub mark: Option<Mark>,
}

impl SessionRead {
    /// Nothing is known of a session.
    #[must_use]
    pub const fn none(session: SessionId) -> Self {
        let start = EventIndex(0);
        Self { session, workflow: None, next: start, seen: start, mark: None }
    }

    /// What is recorded when this is known and somebody records that; none when they know less.
    #[must_use]
    pub fn followed_by(self, later: Self) -> Option<Self> {
        let workflow = later.workflow.clone().or(self.workflow);
        (later.seen >= self.seen).then_some(Self { workflow, ..later })
    }
}

/// Of which sessions it is wanted how far they were read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Which {
    /// All of them.
    All,
    /// These, as far as they are known.
    These(BTreeSet<SessionId>),
    /// Those with runs of a workflow.
    Of(String),
    /// Those with runs of any workflow.
    OfAny,
    /// Those that are to be looked at again in any case.
    Unsettled,
}

impl Which {
    /// Whether a session is wanted.
    #[must_use]
    pub fn takes(&self, read: &SessionRead) -> bool {
        match self {
            Self::All => true,
            Self::These(sessions) => sessions.contains(&read.session),
            Self::Of(workflow) => read.workflow.as_ref() == Some(workflow),
            Self::OfAny => read.workflow.is_some(),
            Self::Unsettled => read.mark.is_none(),
        }
    }
}

/// Which runs are wanted.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RunFilter {
    /// Of workflows of this id.
    pub workflow: Option<String>,
    /// Of the workflow whose file was in this place.
    pub place: Option<String>,
    /// With one of these statuses.
    pub statuses: Vec<RunStatus>,
    /// Only those that are over, or only those that are not.
    pub is_over: Option<bool>,
    /// In this session.
    pub session: Option<SessionId>,
    /// Asked for before this one.
    pub before: Option<(u64, RunId)>,
    /// At most so many.
    pub limit: Option<usize>,
    /// Also those whose time to be kept is over.
    pub with_retired: bool,
}

impl RunFilter {
    /// Whether a run is wanted.
    #[must_use]
    pub fn takes(&self, row: &RunRow) -> bool {
        self.workflow.as_ref().is_none_or(|workflow| *workflow == row.workflow)
            && (self.place.is_none() || self.place == row.place)
            && (self.statuses.is_empty() || self.statuses.contains(&row.status))
            && self.is_over.is_none_or(|over| over == row.status.is_over())
            && self.session.is_none_or(|session| session == row.session)
            && (self.with_retired || !row.is_retired)
            && self.before.is_none_or(|before| (row.queued_ms, row.run) < before)
    }
}

/// The right to perform a session's runs, held by one process at a time.
#[async_trait]
pub trait Leases: Send + Sync {
    /// Takes the session for this process until the lease is dropped or the process ends, and
    /// raises its epoch: on return the new epoch will survive a crash. A crash on the way may
    /// have raised it too, which harms nobody.
    ///
    /// Fails at once with `Owned` while another process, or another part of this one, has it;
    /// `purpose` is what others are told then, in words that follow "to".
    async fn acquire(&self, session: SessionId, purpose: &str) -> Result<Box<dyn Lease>>;
}

/// The right to perform a session's runs. It is worth what its epoch is worth: the store
/// refuses an epoch that is not the session's own, whatever else the holder believes.
#[async_trait]
pub trait Lease: Send + Sync {
    /// The session.
    fn session(&self) -> SessionId;

    /// The number of this ownership, for everything that the owner changes.
    fn epoch(&self) -> Epoch;

    /// Compares the epoch with the session's own, as a change would: fails with `Fenced` when
    /// another owner acquired the session since, and the owner is told with that.
    async fn verify(&self) -> Result<()>;

    /// Whether the owner is known to have been replaced.
    fn is_lost(&self) -> bool;

    /// Completes once the owner is known to have been replaced: when the store refused one of
    /// its changes at the latest, and earlier where a backend hears of it by itself.
    async fn lost(&self);
}

/// The keys that sign tokens.
#[async_trait]
pub trait Keys: Send + Sync {
    /// Gives the keys; makes the first one when there is none.
    async fn load(&self) -> Result<Keyring>;

    /// Puts a fresh key in the current one's place; the current one stays valid as the previous.
    async fn rotate(&self) -> Result<Keyring>;
}
