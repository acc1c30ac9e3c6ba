//! A run of the store, with the state of the disk at every moment of it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::disk::Disk;
use crate::fault::Op;
use crate::world::{self, Actor, Violation};

/// What a process does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Appends the next plan.
    Append,
    /// Becomes the owner of the session.
    Acquire,
    /// Seals the session.
    Seal,
    /// Reads the session, and goes on from what it sees.
    Read,
}

/// A state of the disk that lasted from one call to the next.
#[derive(Clone, Debug)]
pub struct Moment {
    /// How many calls had been made.
    pub op: u64,
    /// The disk.
    pub disk: Disk,
    /// How many plans were acknowledged or served by then.
    pub required: usize,
    /// How many of them nobody but a reader knew of.
    pub served_early: usize,
}

/// A run of the store.
#[derive(Debug, Default)]
pub struct Recording {
    /// The different states of the disk, in order.
    pub moments: Vec<Moment>,
    /// The calls that were made.
    pub ops: Vec<Op>,
    /// How often a reader was answered.
    pub reads: usize,
    /// How often a reader was refused, by the error's code.
    pub refusals: BTreeMap<&'static str, usize>,
}

/// Whether somebody else reads at every moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Reader {
    /// Nobody does.
    #[default]
    None,
    /// A process that starts then, and finds the writer at work.
    Fresh,
    /// A process that goes on from what it saw before; it reads at every so many moments.
    Resident(usize),
}

/// Runs steps on a disk in which so many plans are known to be.
pub fn record(
    disk: &Disk,
    required: usize,
    reader: Reader,
    steps: &[Step],
) -> Result<Recording, Violation> {
    let tape = Arc::new(Mutex::new(Tape { required, reader, ..Tape::default() }));
    if matches!(reader, Reader::Resident(_)) {
        let resident = Actor::start(&disk.process()).map_err(world::refused("opening"))?;
        lock(&tape).resident = Some(resident);
    }
    let fs = disk.process();
    fs.watch({
        let (tape, disk) = (Arc::clone(&tape), disk.clone());
        Arc::new(move |op| lock(&tape).take(op, &disk))
    });
    let actor = Actor::start(&fs).map_err(world::refused("opening"))?;
    let mut next = 0;
    for step in steps {
        match step {
            Step::Append => {
                actor.append(next).map_err(world::refused("appending"))?;
                next += 1;
            }
            Step::Acquire => {
                actor.acquire().map_err(world::refused("acquiring"))?;
            }
            Step::Seal => actor.seal().map_err(world::refused("sealing"))?,
            Step::Read => next = actor.read()?,
        }
        world::enough(next, lock(&tape).required)?;
        lock(&tape).known(next);
    }
    lock(&tape).take(fs.count(), disk);
    drop(actor);
    lock(&tape).take(fs.count(), disk);
    let mut tape = lock(&tape);
    match tape.violation.take() {
        Some(violation) => Err(violation),
        None => Ok(Recording { ops: fs.ops(), ..std::mem::take(&mut tape.recording) }),
    }
}

#[derive(Default)]
struct Tape {
    recording: Recording,
    reader: Reader,
    resident: Option<Actor>,
    required: usize,
    acknowledged: usize,
    version: Option<u64>,
    violation: Option<Violation>,
}

fn lock(tape: &Mutex<Tape>) -> MutexGuard<'_, Tape> {
    tape.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Tape {
    /// Notes that so many plans were acknowledged.
    fn known(&mut self, plans: usize) {
        self.acknowledged = plans;
        self.required = self.required.max(plans);
        // The disk has not changed since, but from now on more is expected of it.
        if let Some(moment) = self.recording.moments.last_mut() {
            moment.required = moment.required.max(self.required);
        }
    }

    fn take(&mut self, op: u64, disk: &Disk) {
        if self.version == Some(disk.version()) {
            return;
        }
        let seen = match (self.reader, &self.resident) {
            (Reader::None, _) => disk.clone(),
            (Reader::Resident(every), Some(resident)) => {
                if self.recording.moments.len().is_multiple_of(every) {
                    let read = elsewhere(|| resident.read());
                    self.judge(read);
                }
                disk.clone()
            }
            _ => self.read_beside(disk),
        };
        self.version = Some(disk.version());
        let (required, early) = (self.required, self.required.saturating_sub(self.acknowledged));
        let moment = Moment { op, disk: seen.fork(), required, served_early: early };
        self.recording.moments.push(moment);
    }

    /// Lets another process read; gives the disk on which what it was served must be.
    fn read_beside(&mut self, disk: &Disk) -> Disk {
        // On a disk of its own, so that what opening does there is not in the writer's way.
        let fork = disk.fork();
        let mut wrote = false;
        let read = elsewhere(|| {
            let actor = Actor::start(&fork.process()).map_err(world::refused("opening"))?;
            let version = fork.version();
            let read = actor.read();
            wrote = fork.version() != version;
            read
        });
        self.judge(read);
        // A reader that made something durable first may serve it.
        if wrote { fork } else { disk.clone() }
    }

    /// Notes what a reader saw. It may be refused while the writer is at work.
    fn judge(&mut self, read: Result<usize, Violation>) {
        match read {
            Ok(plans) => {
                self.recording.reads += 1;
                if let Err(violation) = world::enough(plans, self.acknowledged) {
                    self.violation.get_or_insert(violation);
                }
                self.required = self.required.max(plans);
            }
            Err(Violation::Refused { error, .. }) if error.code() != "SESSION_CORRUPT" => {
                *self.recording.refusals.entry(error.code()).or_default() += 1;
            }
            Err(violation) => {
                self.violation.get_or_insert(violation);
            }
        }
    }
}

/// Runs a reader in a thread of its own: the writer's runtime is waiting in this one.
fn elsewhere(read: impl FnOnce() -> Result<usize, Violation> + Send) -> Result<usize, Violation> {
    let read = std::thread::scope(|scope| scope.spawn(read).join());
    read.unwrap_or_else(|_| Err(Violation::Other("the reader panicked".to_owned())))
}
