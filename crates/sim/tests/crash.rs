//! Power failures at every operation, with every subset of what was not durable yet.

#![expect(clippy::print_stdout, reason = "how much was looked at is part of the result")]

use std::time::Instant;

use cairn_sim::campaign::{Campaign, Tally, starts};
use cairn_sim::crash::Depth;
use cairn_sim::record::{Reader, Recording, Step, record};
use cairn_sim::world;

/// For readers: what is sealed, appended and sealed again while they look.
const TWO_SEALS: [Step; 7] =
    [Step::Append, Step::Append, Step::Seal, Step::Append, Step::Seal, Step::Append, Step::Append];

/// Create, three appends, and a seal among them.
const WORKLOAD: [Step; 5] = [Step::Append, Step::Append, Step::Append, Step::Seal, Step::Append];

/// What an owner does. Its lock file is never synced, so it is there or not in every state:
/// that is why the longer workload has none.
const OWNED: [Step; 4] = [Step::Append, Step::Append, Step::Acquire, Step::Append];

fn workload() -> Recording {
    recorded(&WORKLOAD)
}

fn recorded(steps: &[Step]) -> Recording {
    record(&world::fresh(), 0, Reader::None, steps)
        .unwrap_or_else(|violation| panic!("{violation}"))
}

/// `CAIRN_CRASH_DEPTH=full` looks at everything; it takes long.
fn full() -> bool {
    std::env::var("CAIRN_CRASH_DEPTH").is_ok_and(|depth| depth == "full")
}

fn report(what: &str, campaign: &Campaign, since: Instant) -> Tally {
    let tally = campaign.verdict().unwrap_or_else(|failure| panic!("{what}: {failure}"));
    println!("{what}: {tally} ({:.1} s)", since.elapsed().as_secs_f64());
    tally
}

#[test]
fn nothing_acknowledged_is_lost_whenever_the_power_goes() {
    let since = Instant::now();
    let recording = workload();
    let campaign = Campaign::default();
    campaign.crash(&recording.moments, if full() { Depth::FULL } else { Depth::QUICK });
    let tally = report("power loss", &campaign, since);
    assert!(tally.images > 40_000, "{tally}");
}

#[test]
fn nothing_acknowledged_is_lost_when_the_power_goes_again_during_recovery() {
    let since = Instant::now();
    let recording = workload();
    let stride = if full() { 1 } else { 400 };
    let starts = starts(&recording.moments, Depth::QUICK, stride);
    println!("{} disks to recover from", starts.len());
    let campaign = Campaign::default();
    campaign.crash_again(&starts, Depth::LIGHT);
    let tally = report("power loss in recovery", &campaign, since);
    assert!(tally.images > 20_000, "{tally}");
}

#[test]
fn nothing_acknowledged_is_lost_when_the_power_goes_after_a_kill() {
    let since = Instant::now();
    let recording = workload();
    let campaign = Campaign::default();
    campaign.kill_and_crash(&recording.moments, Depth::LIGHT);
    let tally = report("kill, then power loss", &campaign, since);
    assert!(tally.images > 4_000, "{tally}");
}

#[test]
fn an_owner_loses_nothing_whenever_the_power_goes_also_after_a_kill() {
    let since = Instant::now();
    let recording = recorded(&OWNED);
    let campaign = Campaign::default();
    campaign.crash(&recording.moments, if full() { Depth::FULL } else { Depth::LIGHT });
    campaign.kill_and_crash(&recording.moments, Depth::LIGHT);
    let tally = report("owner", &campaign, since);
    assert!(tally.images > 4_000, "{tally}");
}

/// Reads at the moments of a workload with two seals; all that was served must survive.
fn beside(reader: Reader, what: &str) {
    let since = Instant::now();
    let recording = record(&world::fresh(), 0, reader, &TWO_SEALS);
    let recording = recording.unwrap_or_else(|violation| panic!("{what}: {violation}"));
    println!("{what}: {} reads, refused: {:?}", recording.reads, recording.refusals);
    assert!(recording.reads > 20, "{}", recording.reads);
    let early: Vec<_> =
        recording.moments.into_iter().filter(|moment| moment.served_early > 0).collect();
    assert!(!early.is_empty(), "no reader saw a plan before its writer was answered");
    let campaign = Campaign::default();
    campaign.crash(&early, if full() { Depth::FULL } else { Depth::QUICK });
    let tally = report(what, &campaign, since);
    assert!(tally.images > 5_000, "{tally}");
}

#[test]
fn nothing_is_lost_that_a_new_reader_has_seen_beside_the_writer() {
    beside(Reader::Fresh, "new reader");
}

#[test]
fn nothing_is_lost_that_a_resident_reader_has_seen_beside_the_writer() {
    beside(Reader::Resident(1), "resident reader");
    for every in 2..40 {
        if let Err(violation) = record(&world::fresh(), 0, Reader::Resident(every), &TWO_SEALS) {
            panic!("a reader at every {every}th moment: {violation}");
        }
    }
}
