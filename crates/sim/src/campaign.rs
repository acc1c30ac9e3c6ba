//! Checking everything that crashes can leave, each disk once.

use std::collections::HashMap;
use std::fmt;
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use cairn_core::digest::Digest;

use crate::crash::{Depth, States};
use crate::image::Image;
use crate::record::{Moment, Reader, Recording, Step, record};
use crate::world::{self, Violation};

/// A search for a disk on which the store is not as it must be.
#[derive(Debug, Default)]
pub struct Campaign {
    known: Mutex<HashMap<Digest, Known>>,
    tally: Mutex<Tally>,
    failure: Mutex<Option<Failure>>,
    failed: AtomicBool,
}

/// What was looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// How many moments.
    pub moments: u64,
    /// At how many of them there was too much pending for every subset.
    pub sampled: u64,
    /// How many ways a crash could go.
    pub states: u64,
    /// How many different disks that left; each was checked.
    pub images: u64,
}

/// Where the store went wrong.
#[derive(Debug)]
pub struct Failure {
    /// When, and what reached the disk.
    pub origin: String,
    /// What it did.
    pub violation: Violation,
    /// What was on the disk.
    pub image: Image,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    visible: Option<usize>,
    required: usize,
}

/// A disk from which to recover, and how it came about.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Start {
    pub origin: String,
    pub image: Image,
    pub required: usize,
}

impl Campaign {
    /// Checks everything that crashes can leave at these moments.
    pub fn crash(&self, moments: &[Moment], depth: Depth) {
        self.each(moments, |moment| self.moment("", moment, depth));
    }

    /// Recovers and goes on from each of these disks, and checks everything that crashes
    /// can leave on the way.
    pub fn crash_again(&self, starts: &[Start], depth: Depth) {
        self.each(starts, |start| {
            let disk = crate::disk::Disk::on(start.image.clone());
            self.recover(&start.origin, &disk, start.required, depth);
        });
    }

    /// Kills the process at each of these moments, recovers in another one while the power
    /// stays, and checks everything that crashes can leave on the way.
    pub fn kill_and_crash(&self, moments: &[Moment], depth: Depth) {
        self.each(moments, |moment| {
            let origin = format!("killed after op {}\n", moment.op);
            self.recover(&origin, &moment.disk.killed(), moment.required, depth);
        });
    }

    /// What was looked at so far, or where the store went wrong; then the search can go on.
    pub fn verdict(&self) -> Result<Tally, Box<Failure>> {
        let images = lock(&self.known).len() as u64;
        self.failed.store(false, Ordering::Relaxed);
        match lock(&self.failure).take() {
            Some(failure) => Err(Box::new(failure)),
            None => Ok(Tally { images, ..*lock(&self.tally) }),
        }
    }

    fn each<T: Sync>(&self, items: &[T], work: impl Fn(&T) + Sync) {
        let next = AtomicUsize::new(0);
        let workers = thread::available_parallelism().map_or(1, NonZero::get);
        thread::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(|| {
                    while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                        if self.failed.load(Ordering::Relaxed) {
                            break;
                        }
                        work(item);
                    }
                });
            }
        });
    }

    fn recover(&self, origin: &str, disk: &crate::disk::Disk, required: usize, depth: Depth) {
        match record(disk, required, Reader::None, &[Step::Read, Step::Append]) {
            Ok(Recording { moments, .. }) => {
                for moment in &moments {
                    self.moment(origin, moment, depth);
                }
            }
            Err(violation) => self.fail(origin.to_owned(), violation, disk.live()),
        }
    }

    fn moment(&self, origin: &str, moment: &Moment, depth: Depth) {
        let states = States::of(&moment.disk, depth);
        let mut tally = lock(&self.tally);
        tally.moments += 1;
        tally.states += states.len() as u64;
        tally.sampled += u64::from(!states.exhaustive);
        drop(tally);
        for (choice, image) in states.iter() {
            if self.failed.load(Ordering::Relaxed) {
                return;
            }
            if let Err(violation) = self.image(&image, moment.required) {
                let choice = states.describe(choice);
                let origin = format!("{origin}power lost after op {}\n{choice}", moment.op);
                return self.fail(origin, violation, image);
            }
        }
    }

    /// Checks one disk, unless an equal one is known.
    fn image(&self, image: &Image, required: usize) -> Result<(), Violation> {
        let digest = image.digest();
        let mut known = lock(&self.known);
        if let Some(known) = known.get_mut(&digest) {
            known.required = known.required.max(required);
            // When the check is not done yet, its end will see what is required by then.
            return known.visible.map_or(Ok(()), |visible| world::enough(visible, required));
        }
        known.insert(digest, Known { visible: None, required });
        drop(known);
        let visible = world::check(image.clone())?;
        let mut known = lock(&self.known);
        let required = known.get(&digest).map_or(required, |known| known.required);
        known.insert(digest, Known { visible: Some(visible), required });
        world::enough(visible, required)
    }

    fn fail(&self, origin: String, violation: Violation, image: Image) {
        self.failed.store(true, Ordering::Relaxed);
        lock(&self.failure).get_or_insert(Failure { origin, violation, image });
    }
}

/// The disks that crashes can leave at these moments, each once: all whose writes are
/// whole, and every `stride`th of the others.
#[must_use]
pub fn starts(moments: &[Moment], depth: Depth, stride: usize) -> Vec<Start> {
    let mut found: HashMap<Digest, usize> = HashMap::new();
    let mut starts: Vec<Start> = Vec::new();
    let mut cuts = 0;
    for moment in moments {
        let states = States::of(&moment.disk, depth);
        for (choice, image) in states.iter() {
            let digest = image.digest();
            if let Some(start) = found.get(&digest).and_then(|place| starts.get_mut(*place)) {
                start.required = start.required.max(moment.required);
                continue;
            }
            cuts += usize::from(choice.cut.is_some());
            if choice.cut.is_none() || cuts % stride.max(1) == 0 {
                found.insert(digest, starts.len());
                let choice = states.describe(choice);
                let origin = format!("power lost after op {}\n{choice}", moment.op);
                starts.push(Start { origin, image, required: moment.required });
            }
        }
    }
    starts
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { origin, violation, image } = self;
        write!(f, "{violation}\n{origin}on the disk:\n{image}")
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { moments, sampled, states, images } = self;
        write!(f, "{states} crash states of {moments} moments ({sampled} of them sampled), ")?;
        write!(f, "{images} different disks, each checked")
    }
}
