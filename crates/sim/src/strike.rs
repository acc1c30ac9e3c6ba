//! A run of the store in which calls fail, and what must hold after the failure.

use cairn_store::Error;

use crate::campaign::{Campaign, Start};
use crate::crash::Depth;
use crate::disk::Disk;
use crate::fault::{Call, Fault, Op};
use crate::fs::SimFs;
use crate::record::{Moment, Step};
use crate::world::{self, Actor, Violation, refused};

/// Create, three appends, an owner and a seal among them.
pub const WORKLOAD: [Step; 6] =
    [Step::Append, Step::Append, Step::Acquire, Step::Append, Step::Seal, Step::Append];

/// How a run ended.
pub enum End {
    /// All steps were done; whatever failed was got over.
    Done(Run),
    /// A step failed.
    Failed(Run, Error),
}

/// A run up to its end or its first failure.
pub struct Run {
    /// The process.
    pub fs: SimFs,
    /// Its store, unless opening that is what failed.
    actor: Option<Actor>,
    /// How many plans were acknowledged.
    acknowledged: usize,
    /// The steps that are still to be done.
    rest: &'static [Step],
}

/// The calls that the workload makes when nothing fails.
pub fn calls() -> Result<Vec<Op>, Violation> {
    match play(&[]) {
        End::Done(run) => Ok(run.fs.ops()),
        End::Failed(_, error) => Err(refused("running the workload")(error)),
    }
}

/// Runs the workload with these faults, up to the first step that fails.
#[must_use]
pub fn play(faults: &[(u64, Fault)]) -> End {
    let fs = world::fresh().process();
    for (op, fault) in faults {
        fs.fault(*op, *fault);
    }
    let opened = Actor::start(&fs);
    let mut run = Run { fs, actor: None, acknowledged: 0, rest: &WORKLOAD };
    match opened {
        Ok(actor) => run.actor = Some(actor),
        Err(error) => return End::Failed(run, error),
    }
    match run.go_on() {
        Ok(()) => End::Done(run),
        Err(error) => End::Failed(run, error),
    }
}

impl Run {
    /// Does what is still to be done, up to the first step that fails.
    fn go_on(&mut self) -> Result<(), Error> {
        let actor = match self.actor.take() {
            Some(actor) => actor,
            None => Actor::start(&self.fs)?,
        };
        let actor = self.actor.insert(actor);
        while let Some((step, rest)) = self.rest.split_first() {
            match step {
                Step::Append => {
                    actor.append(self.acknowledged)?;
                    self.acknowledged += 1;
                }
                Step::Acquire => {
                    actor.acquire()?;
                }
                Step::Seal => actor.seal()?,
                Step::Read => {}
            }
            self.rest = rest;
        }
        Ok(())
    }

    /// What there is now, with what is expected of it.
    fn moment(&self) -> Moment {
        let (op, disk) = (self.fs.count(), self.fs.disk().fork());
        Moment { op, disk, required: self.acknowledged, served_early: 0 }
    }

    /// Checks that everything acknowledged is there, for a process beside this one, after a
    /// power failure, and after a kill and a power failure.
    pub fn check(&self, campaign: &Campaign) -> Result<(), Violation> {
        let beside = world::visible(&self.fs.disk().fork())?;
        world::enough(beside, self.acknowledged)?;
        campaign.crash(&[self.moment()], Depth::LIGHT);
        campaign.kill_and_crash(&[self.moment()], Depth::LIGHT);
        match campaign.verdict() {
            Ok(_) => Ok(()),
            Err(failure) => Err(Violation::Other(failure.to_string())),
        }
    }

    /// Checks that the failed step had no effect and that it and all others can be done now.
    pub fn check_resumable(mut self, campaign: &Campaign) -> Result<(), Violation> {
        self.check(campaign)?;
        let beside = world::visible(&self.fs.disk().fork())?;
        if beside != self.acknowledged {
            let what = format!("{beside} plans are there, {} acknowledged", self.acknowledged);
            return Err(Violation::Other(format!("a failed call had an effect: {what}")));
        }
        self.go_on().map_err(refused("trying again"))?;
        self.check(campaign)
    }

    /// Checks that this process writes nothing more, and that another one loses nothing.
    pub fn check_poisoned(self, campaign: &Campaign) -> Result<(), Violation> {
        self.check(campaign)?;
        if let Some(actor) = &self.actor {
            for _ in 0..2 {
                match actor.append(self.acknowledged) {
                    Err(error) if error.code() == "STORE_DURABILITY_LOST" => {}
                    Err(error) => return Err(refused("appending after a lost sync")(error)),
                    Ok(_) => return Err(Violation::Other("appended after a lost sync".into())),
                }
            }
        }
        self.check(campaign)
    }
}

/// Lets the disk fill up after so many plans: the store must refuse, serve, and go on when
/// there is room again.
pub fn fill_up(plans: usize) -> Result<(), Violation> {
    let fs = world::fresh().process();
    let actor = Actor::start(&fs).map_err(refused("opening"))?;
    for number in 0..plans {
        actor.append(number).map_err(refused("appending"))?;
    }
    fs.set_full(true);
    for _ in 0..3 {
        match actor.append(plans) {
            Err(error) if error.code() == "STORE_FULL" => {}
            Err(error) => return Err(refused("appending to a full disk")(error)),
            Ok(_) => return Err(Violation::Other("appended to a full disk".into())),
        }
        world::enough(actor.read()?, plans)?;
        actor.inspect(plans)?;
    }
    fs.set_full(false);
    actor.append(plans).map_err(refused("appending when there is room again"))?;
    world::enough(world::visible(&Disk::on(fs.disk().durable()))?, plans + 1)
}

/// Ends the process after so many calls; another one must find everything acknowledged.
pub fn end_after(calls: u64) -> Result<(), Violation> {
    let fs = world::fresh().process();
    fs.stop_after(calls);
    let mut run = Run { fs, actor: None, acknowledged: 0, rest: &WORKLOAD };
    // It fails, or there was nothing more to do.
    let _ = run.go_on();
    run.fs.end();
    world::enough(world::visible(run.fs.disk())?, run.acknowledged)
}

/// Recovers from what a crash left while calls fail as `prepare` plans it: a read may be
/// refused then, but what it shows must be all of it, and afterwards nothing may be lost.
pub fn recover_with(start: &Start, prepare: impl FnOnce(&SimFs)) -> Result<u64, Violation> {
    let disk = Disk::on(start.image.clone());
    let fs = disk.process();
    prepare(&fs);
    match Actor::start(&fs) {
        Ok(actor) => match actor.read() {
            Ok(plans) => world::enough(plans, start.required)?,
            Err(Violation::Refused { error, .. }) if error.code() != "SESSION_CORRUPT" => {}
            Err(violation) => return Err(violation),
        },
        Err(error) if error.code() != "SESSION_CORRUPT" => {}
        Err(error) => return Err(refused("opening")(error)),
    }
    let calls = fs.count();
    fs.end();
    world::enough(world::visible(&disk)?, start.required)?;
    world::enough(world::check(disk.durable())?, start.required)?;
    Ok(calls)
}

/// The calls of one kind.
pub fn of_kind<'a>(ops: &'a [Op], wanted: &'a [Call]) -> impl Iterator<Item = &'a Op> {
    ops.iter().filter(|op| wanted.contains(&op.call))
}
