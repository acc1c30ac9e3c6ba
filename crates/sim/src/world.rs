//! What must hold of the store on any disk, judged from outside.
//!
//! One session, one endless list of plans that are submitted in order. The checker knows
//! which of them were acknowledged or served, and nothing of how the store works.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cairn_core::digest::SnapshotRef;
use cairn_core::event::engine::{RunPaused, RunResumed, SnapshotTaken};
use cairn_core::event::guided::SessionCreated;
use cairn_core::event::{Event, EventData, NewEvent, Scope};
use cairn_core::id::{ChangeId, EventId, EventIndex, RunId, SessionId};
use cairn_core::pin::BlobKind;
use cairn_store::port::Lease;
use cairn_store::{AppendPlan, Appended, Blob, Epoch, Error, Health, Store, files};
use tokio::runtime::{Builder, Runtime};

use crate::disk::Disk;
use crate::effect::Change;
use crate::fs::SimFs;
use crate::image::{Body, Image, Inode, ROOT};

/// What the store must not do.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Violation {
    #[error("{doing} was refused with {}: {error}", .error.code())]
    Refused { doing: &'static str, error: Error },
    #[error("event {0} is not the one that was appended there")]
    Foreign(usize),
    #[error("{0} events end in the middle of a plan")]
    Half(usize),
    #[error("{visible} plans are visible, and {required} were acknowledged or served")]
    Lost { visible: usize, required: usize },
    #[error("recovering once shows {first} plans, recovering again {second}")]
    Unstable { first: usize, second: usize },
    #[error("the session is {}: {damage}", .health.name())]
    Unhealthy { health: Health, damage: String },
    #[error("plan {plan} was answered with {answer:?}")]
    WrongAnswer { plan: usize, answer: Appended },
    #[error("a blob of plan {0} has other bytes")]
    WrongBlob(usize),
    #[error("the list of sessions does not show what there is")]
    WrongList,
    #[error("{0}")]
    Other(String),
}

/// The session that everything happens in.
#[must_use]
pub const fn session() -> SessionId {
    SessionId::mint(1_700_000_000_000, 1)
}

/// A disk with nothing but the data directory, durably.
#[must_use]
pub fn fresh() -> Disk {
    let mut image = Image::default();
    let dir = Inode(ROOT.0 + 1);
    image.add(dir, Body::Dir(BTreeMap::new()), 0);
    image.apply(&Change::Link { dir: ROOT, name: "cairn".to_owned(), node: dir }, 0);
    Disk::on(image)
}

/// The plan of this number. The first creates the session; from the third on they bring blobs.
#[must_use]
pub fn plan(number: usize) -> AppendPlan {
    let name = number.to_string();
    let run = Scope::Run(RunId::mint(1_700_000_000_000, 2));
    let event = |kind: &str, scope, data: EventData| {
        let id = EventId::derive(&[kind, &name]);
        NewEvent { id, scope, data }
    };
    if number == 0 {
        let created = event("created", Scope::Session, SessionCreated {}.into());
        return AppendPlan { events: vec![created], ..AppendPlan::default() };
    }
    let (by, change_id) = ("sim".to_owned(), ChangeId::derive(&[&name]));
    let mut events = vec![event(
        "paused",
        run,
        RunPaused { by: by.clone(), change_id, imported: false, via: None }.into(),
    )];
    if number % 2 == 1 {
        events.push(event(
            "resumed",
            run,
            RunResumed { by, change_id, input: None, via: None }.into(),
        ));
    }
    let mut blobs = Vec::new();
    if number >= 2 {
        let bytes = format!("{{\"plan\":{number}}}").into_bytes();
        let blob = Blob { kind: BlobKind::Snapshot, bytes };
        let (snapshot_ref, through) = (SnapshotRef(blob.digest()), EventIndex(number as u64));
        let taken = SnapshotTaken { artifacts: Vec::new(), snapshot_ref, through };
        events.push(event("snapshot", run, taken.into()));
        blobs.push(blob);
    }
    AppendPlan { events, blobs, ..AppendPlan::default() }
}

/// A process that uses the store.
pub struct Actor {
    runtime: Runtime,
    store: Store,
    lease: Mutex<Option<Box<dyn Lease>>>,
}

impl Actor {
    /// Opens the store.
    pub fn start(fs: &SimFs) -> Result<Self, Error> {
        let runtime = Builder::new_current_thread().build();
        // Without a runtime there is nothing to simulate with.
        let runtime = runtime.unwrap_or_else(|error| panic!("no runtime: {error}"));
        // So short that one seal makes several segments.
        let config = files::Config { segment_max: 1000, ..files::Config::new("/cairn") };
        let store = {
            let _inside = runtime.enter();
            files::open_on(Arc::new(fs.clone()), &config)?
        };
        Ok(Self { runtime, store, lease: Mutex::default() })
    }

    /// Appends the plan of this number, as the owner where only owners may.
    pub fn append(&self, number: usize) -> Result<Appended, Error> {
        let fence = self.held().as_ref().map(|lease| lease.epoch());
        let append = |fence| {
            let plan = AppendPlan { fence, ..plan(number) };
            self.runtime.block_on(self.store.log.append(session(), plan))
        };
        match append(fence) {
            Err(Error::Unfenced { .. }) => append(Some(self.acquire()?)),
            appended => appended,
        }
    }

    /// Becomes the owner of the session.
    pub fn acquire(&self) -> Result<Epoch, Error> {
        let lease = self.runtime.block_on(self.store.leases.acquire(session(), "simulate"))?;
        let epoch = lease.epoch();
        *self.held() = Some(lease);
        Ok(epoch)
    }

    fn held(&self) -> MutexGuard<'_, Option<Box<dyn Lease>>> {
        self.lease.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves what was appended to its final form.
    pub fn seal(&self) -> Result<(), Error> {
        self.runtime.block_on(self.store.log.seal(session()))
    }

    /// Reads the session; gives how many plans there are.
    pub fn read(&self) -> Result<usize, Violation> {
        match self.runtime.block_on(self.store.log.read(session(), EventIndex(0))) {
            Ok(events) => whole_plans(&events),
            Err(Error::NotFound(_)) => Ok(0),
            Err(error) => Err(Violation::Refused { doing: "reading", error }),
        }
    }

    /// Whether the session is well, shown in the list, and has all blobs of so many plans.
    pub fn inspect(&self, plans: usize) -> Result<(), Violation> {
        let list = self.runtime.block_on(self.store.sessions.list());
        let list = list.map_err(refused("listing"))?;
        if list.contains(&session()) != (plans > 0) {
            return Err(Violation::WrongList);
        }
        if plans > 0 {
            let status = self.runtime.block_on(self.store.log.status(session()));
            let status = status.map_err(refused("asking for the status"))?;
            if status.health != Health::Healthy {
                let damage = status.damage.unwrap_or_default();
                return Err(Violation::Unhealthy { health: status.health, damage });
            }
        }
        for number in 0..plans {
            for blob in plan(number).blobs {
                let found = self.store.blobs.get(blob.kind, blob.digest());
                let found = self.runtime.block_on(found).map_err(refused("getting a blob"))?;
                if found != blob.bytes {
                    return Err(Violation::WrongBlob(number));
                }
            }
        }
        Ok(())
    }
}

/// Names what was refused.
pub fn refused(doing: &'static str) -> impl FnOnce(Error) -> Violation {
    move |error| Violation::Refused { doing, error }
}

/// How many plans these events are, from the first on and each complete.
fn whole_plans(events: &[Event]) -> Result<usize, Violation> {
    let (mut plans, mut index) = (0, 0);
    while index < events.len() {
        for expected in plan(plans).events {
            let Some(event) = events.get(index) else {
                return Err(Violation::Half(events.len()));
            };
            if *event != expected.at(session(), EventIndex(index as u64)) {
                return Err(Violation::Foreign(index));
            }
            index += 1;
        }
        plans += 1;
    }
    Ok(plans)
}

/// How many plans a new process sees, after a look at everything else.
pub fn visible(disk: &Disk) -> Result<usize, Violation> {
    let actor = Actor::start(&disk.process()).map_err(refused("opening"))?;
    let plans = actor.read()?;
    actor.inspect(plans)?;
    Ok(plans)
}

/// Whether the store is as it must be on a disk that a crash left; how many plans are visible.
///
/// Recovering twice must show the same, the next plan must be appended, a retry of it must
/// change nothing, and when the power goes again at once, it must be there.
pub fn check(image: Image) -> Result<usize, Violation> {
    let disk = Disk::on(image);
    let first = visible(&disk)?;
    let actor = Actor::start(&disk.process()).map_err(refused("opening again"))?;
    let second = actor.read()?;
    if first != second {
        return Err(Violation::Unstable { first, second });
    }
    let answer = actor.append(first).map_err(refused("appending"))?;
    let events: usize = (0..first).map(|number| plan(number).events.len()).sum();
    if answer.replayed || answer.first != EventIndex(events as u64) {
        return Err(Violation::WrongAnswer { plan: first, answer });
    }
    let survivor = Disk::on(disk.durable());
    let again = actor.append(first).map_err(refused("appending again"))?;
    if !again.replayed || (again.first, again.last) != (answer.first, answer.last) {
        return Err(Violation::WrongAnswer { plan: first, answer: again });
    }
    if let Some(last) = first.checked_sub(1) {
        let again = actor.append(last).map_err(refused("appending what was recovered"))?;
        if !again.replayed {
            return Err(Violation::WrongAnswer { plan: last, answer: again });
        }
    }
    enough(actor.read()?, first + 1)?;
    actor.inspect(first + 1)?;
    enough(visible(&survivor)?, first + 1)?;
    Ok(first)
}

/// Whether all plans are visible that were acknowledged or served.
pub const fn enough(visible: usize, required: usize) -> Result<(), Violation> {
    if visible < required { Err(Violation::Lost { visible, required }) } else { Ok(()) }
}
