//! A whole history, decided by a seed: appends, seals, readers, rivals, faults, kills and
//! power failures in any order.

use std::sync::{Arc, Mutex, PoisonError};

use cairn_store::Error;

use crate::crash::random_image;
use crate::disk::Disk;
use crate::fault::Fault;
use crate::fs::{SimFs, Watch};
use crate::random::Random;
use crate::world::{self, Actor, Violation, refused};

/// About as many calls as an append makes.
const CALLS: usize = 40;

type Deed = fn(&mut Life) -> Result<String, Violation>;

/// What can happen, and how often it does.
const DEEDS: [(usize, &str, Deed); 11] = [
    (35, "append", Life::append),
    (15, "append with a fault", Life::append_with_fault),
    (8, "append beside a reader", Life::append_beside_reader),
    (8, "seal", Life::seal),
    (4, "seal with a fault", Life::seal_with_fault),
    (10, "read", Life::read),
    (6, "rival", Life::rival),
    (5, "change places", Life::change_places),
    (6, "kill", Life::kill),
    (8, "lose power", Life::lose_power),
    (4, "restart", Life::restart),
];

/// A world under way.
struct Life {
    random: Random,
    disk: Disk,
    writer: Process,
    reader: Option<Process>,
    /// The next plan to submit: all before it were acknowledged or served.
    next: usize,
    /// A call failed and nobody was told: until the next append a reader beside the writer
    /// may see less.
    shaken: bool,
}

struct Process {
    fs: SimFs,
    actor: Actor,
}

impl Process {
    fn start(disk: &Disk) -> Result<Self, Violation> {
        let fs = disk.process();
        let actor = Actor::start(&fs).map_err(refused("opening"))?;
        Ok(Self { fs, actor })
    }
}

/// Plays a world of so many steps; `tell` hears what happens.
pub fn play(seed: u64, steps: usize, tell: &mut dyn FnMut(String)) -> Result<usize, Violation> {
    let disk = world::fresh();
    let writer = Process::start(&disk)?;
    let mut life =
        Life { random: Random::new(seed), disk, writer, reader: None, next: 0, shaken: false };
    for _ in 0..steps {
        life.step(tell)?;
    }
    let left = world::check(life.disk.durable())?;
    world::enough(left, life.next)?;
    Ok(left)
}

impl Life {
    /// Does something, by chance; tells what before it is judged.
    fn step(&mut self, tell: &mut dyn FnMut(String)) -> Result<(), Violation> {
        let mut dice = self.random.below(DEEDS.iter().map(|(odds, ..)| odds).sum());
        for (odds, name, deed) in DEEDS {
            if dice < odds {
                let number = self.next;
                let told = deed(self);
                let what = told.as_deref().unwrap_or("violation");
                tell(format!("{number:4} plans: {name}: {what}"));
                return told.map(drop);
            }
            dice -= odds;
        }
        Ok(())
    }

    /// Notes an acknowledged plan. One that nobody knew of cannot have been there before.
    fn acknowledge(&mut self, result: Result<bool, Error>) -> Result<(), Violation> {
        if result.map_err(refused("appending"))? {
            return Err(Violation::Other(format!("plan {} was there already", self.next)));
        }
        self.next += 1;
        Ok(())
    }

    fn try_append(&self) -> Result<bool, Error> {
        self.writer.actor.append(self.next).map(|appended| appended.replayed)
    }

    fn append(&mut self) -> Result<String, Violation> {
        let result = self.try_append();
        self.acknowledge(result)?;
        self.shaken = false;
        Ok(String::from("done"))
    }

    /// Plans a fault for one of the next calls; says what and when.
    fn plan_fault(&mut self) -> String {
        let short = Fault::Short(self.random.below(300));
        let faults =
            [Fault::Eio, Fault::Enospc, Fault::Eintr, Fault::Emfile, Fault::LostPages, short];
        let fault = faults.get(self.random.below(faults.len())).copied().unwrap_or(short);
        let op = self.writer.fs.count() + 1 + self.random.below(CALLS) as u64;
        self.writer.fs.fault(op, fault);
        format!("{fault:?} at op {op}")
    }

    fn append_with_fault(&mut self) -> Result<String, Violation> {
        let what = self.plan_fault();
        let result = self.try_append();
        self.writer.fs.calm();
        match result {
            Ok(_) => {
                self.acknowledge(result)?;
                self.shaken = true;
                Ok(format!("{what}: got over"))
            }
            Err(error) if error.code() == "STORE_DURABILITY_LOST" => {
                if self.try_append().is_ok() {
                    return Err(Violation::Other(format!("appended after {what}")));
                }
                self.writer = self.recover()?;
                Ok(format!("{what}: poisoned and started again"))
            }
            Err(error) if error.code() == "SESSION_CORRUPT" => Err(refused("appending")(error)),
            Err(error) => {
                let result = self.try_append();
                self.acknowledge(result)?;
                Ok(format!("{what}: {}, appended at the second try", error.code()))
            }
        }
    }

    fn append_beside_reader(&mut self) -> Result<String, Violation> {
        let seen = Arc::new(Mutex::new(None));
        let op = self.writer.fs.count() + self.random.below(CALLS) as u64;
        self.writer.fs.watch(read_at(op, &self.disk, &seen));
        let result = self.try_append();
        self.writer.fs.calm();
        let before = self.next;
        self.acknowledge(result)?;
        let seen = seen.lock().unwrap_or_else(PoisonError::into_inner).take();
        match seen {
            None => Ok(String::from("done")),
            Some(Ok(plans)) => {
                if !std::mem::take(&mut self.shaken) {
                    world::enough(plans, before)?;
                }
                Ok(format!("{plans} plans seen at op {op}"))
            }
            Some(Err(Violation::Refused { error, .. })) if error.code() != "SESSION_CORRUPT" => {
                Ok(format!("refused with {} at op {op}", error.code()))
            }
            Some(Err(violation)) => Err(violation),
        }
    }

    fn seal(&mut self) -> Result<String, Violation> {
        match self.writer.actor.seal() {
            Ok(()) => Ok(String::from("done")),
            Err(Error::NotFound(_)) if self.next == 0 => Ok("nothing to seal".to_owned()),
            Err(error) => Err(refused("sealing")(error)),
        }
    }

    fn seal_with_fault(&mut self) -> Result<String, Violation> {
        let what = self.plan_fault();
        let sealed = self.writer.actor.seal();
        self.writer.fs.calm();
        match sealed {
            Ok(()) => Ok(format!("{what}: got over")),
            Err(error) if error.code() == "STORE_DURABILITY_LOST" => {
                self.writer = self.recover()?;
                Ok(format!("{what}: poisoned and started again"))
            }
            Err(error) if error.code() == "SESSION_CORRUPT" => Err(refused("sealing")(error)),
            Err(error) => {
                self.seal()?;
                Ok(format!("{what}: {}, sealed at the second try", error.code()))
            }
        }
    }

    /// A process that stays, with what it knows, reads.
    fn read(&mut self) -> Result<String, Violation> {
        let reader = match self.reader.take() {
            Some(reader) => reader,
            None => Process::start(&self.disk)?,
        };
        let plans = reader.actor.read()?;
        world::enough(plans, self.next)?;
        self.reader = Some(reader);
        Ok(format!("{plans} plans seen"))
    }

    /// A process that comes and goes appends.
    fn rival(&mut self) -> Result<String, Violation> {
        let rival = Process::start(&self.disk)?;
        let result = rival.actor.append(self.next).map(|appended| appended.replayed);
        self.acknowledge(result)?;
        Ok(String::from("done"))
    }

    /// The process that was reading writes from now on, and the other way round.
    fn change_places(&mut self) -> Result<String, Violation> {
        let reader = match self.reader.take() {
            Some(reader) => reader,
            None => Process::start(&self.disk)?,
        };
        self.reader = Some(std::mem::replace(&mut self.writer, reader));
        Ok(String::from("done"))
    }

    /// Submits the next plan and ends the process on the way.
    fn die(&mut self) -> u64 {
        let op = self.writer.fs.count() + self.random.below(2 * CALLS) as u64;
        self.writer.fs.stop_after(op);
        let sealing = self.random.percent(30) && self.writer.actor.seal().is_ok();
        if !sealing && self.try_append().is_ok() {
            self.next += 1;
        }
        self.writer.fs.end();
        op
    }

    fn kill(&mut self) -> Result<String, Violation> {
        let op = self.die();
        self.writer = self.recover()?;
        Ok(format!("after op {op}"))
    }

    fn lose_power(&mut self) -> Result<String, Violation> {
        let op = self.die();
        let (image, choice) = random_image(&self.disk, &mut self.random);
        let lost = |violation| Violation::Other(format!("{violation}, after op {op}\n{choice}"));
        let visible = world::check(image.clone()).map_err(lost)?;
        world::enough(visible, self.next).map_err(lost)?;
        self.disk = Disk::on(image);
        self.reader = None;
        self.writer = self.recover()?;
        Ok(format!("after op {op}\n{choice}"))
    }

    fn restart(&mut self) -> Result<String, Violation> {
        self.writer = self.recover()?;
        Ok(String::from("done"))
    }

    /// Starts a process, which goes on from what it sees.
    fn recover(&mut self) -> Result<Process, Violation> {
        let process = Process::start(&self.disk)?;
        let plans = process.actor.read()?;
        process.actor.inspect(plans)?;
        world::enough(plans, self.next)?;
        self.next = plans;
        Ok(process)
    }
}

type Seen = Arc<Mutex<Option<Result<usize, Violation>>>>;

/// Lets another process read before one call.
fn read_at(op: u64, disk: &Disk, seen: &Seen) -> Watch {
    let (disk, seen) = (disk.clone(), seen.clone());
    Arc::new(move |count| {
        if count != op {
            return;
        }
        // The reader has a thread to itself: the writer's runtime is waiting in this one.
        let read = std::thread::scope(|scope| {
            let reader = || Process::start(&disk).and_then(|process| process.actor.read());
            scope.spawn(reader).join().ok()
        });
        *seen.lock().unwrap_or_else(PoisonError::into_inner) = read;
    })
}
