//! What a worker may take from the machine.

use std::io;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, setrlimit};

/// How many bytes of memory.
const MEMORY_MAX: u64 = 256 << 20;
/// How many seconds of a processor, for one job.
const JOB_SECONDS: u64 = 2;
/// How many open files.
const FILES_MAX: u64 = 16;

/// Limits the process for good.
pub(super) fn apply() -> io::Result<()> {
    let fixed = |max: u64| Rlimit { current: Some(max), maximum: Some(max) };
    setrlimit(Resource::As, fixed(MEMORY_MAX))?;
    setrlimit(Resource::Nofile, fixed(FILES_MAX))?;
    setrlimit(Resource::Core, fixed(0))?;
    setrlimit(Resource::Fsize, fixed(0))?;
    start_job()
}

/// Gives the process its time for another job.
pub(super) fn start_job() -> io::Result<()> {
    use rustix::time::{ClockId, clock_gettime};
    let used = clock_gettime(ClockId::ProcessCPUTime);
    let used = Duration::try_from(used).unwrap_or_default().as_secs();
    // One more, since the seconds that were used are cut.
    let current = Some(used + 1 + JOB_SECONDS);
    setrlimit(Resource::Cpu, Rlimit { current, maximum: None })?;
    Ok(())
}

/// Leaves the network, where the system allows it to anyone, and says whether it did.
#[cfg(target_os = "linux")]
pub(super) fn leave_network() -> bool {
    use nix::sched::{CloneFlags, unshare};
    unshare(CloneFlags::CLONE_NEWNET).is_ok()
        || unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET).is_ok()
}

/// Other systems have no way to leave it.
#[cfg(not(target_os = "linux"))]
pub(super) const fn leave_network() -> bool {
    false
}
