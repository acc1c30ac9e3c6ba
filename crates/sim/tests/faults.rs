//! Failing calls: each write, each sync, each open, and the rest.

#![expect(clippy::print_stdout, reason = "how much was looked at is part of the result")]

use cairn_sim::campaign::{Campaign, Start, starts};
use cairn_sim::crash::Depth;
use cairn_sim::fault::{Call, Fault, Op};
use cairn_sim::record::{Reader, record};
use cairn_sim::strike::{self, End};
use cairn_sim::world::{self, Actor};

/// Plays the workload once for each call of these kinds, with this fault at it; gives how
/// often which answer came. `judge` says what must hold after a failed step.
fn strike(
    kinds: &[Call],
    fault: Fault,
    judge: impl Fn(strike::Run, &str, &Campaign) -> Result<(), String>,
) -> Vec<(String, usize)> {
    let ops = strike::calls().unwrap_or_else(|violation| panic!("{violation}"));
    let mut answers = std::collections::BTreeMap::new();
    let mut findings = Vec::new();
    let campaign = Campaign::default();
    for op in strike::of_kind(&ops, kinds) {
        let (answer, judged) = match strike::play(&[(op.number, fault)]) {
            End::Done(run) => {
                ("got over", run.check(&campaign).map_err(|violation| violation.to_string()))
            }
            End::Failed(run, error) => (error.code(), judge(run, error.code(), &campaign)),
        };
        *answers.entry(answer.to_owned()).or_default() += 1;
        if let Err(finding) = judged {
            findings.push(format!("{fault:?} at {op} ({answer}): {finding}"));
        }
    }
    let answers: Vec<(String, usize)> = answers.into_iter().collect();
    println!("{fault:?} at each of {kinds:?}: {answers:?}");
    assert!(findings.is_empty(), "{} findings:\n{}", findings.len(), findings.join("\n"));
    answers
}

fn resumable(code: &'static str) -> impl Fn(strike::Run, &str, &Campaign) -> Result<(), String> {
    move |run, found, campaign| {
        if found != code {
            return Err(format!("expected {code}"));
        }
        run.check_resumable(campaign).map_err(|violation| violation.to_string())
    }
}

fn poisoned(run: strike::Run, found: &str, campaign: &Campaign) -> Result<(), String> {
    if found != "STORE_DURABILITY_LOST" {
        return Err("expected STORE_DURABILITY_LOST".to_owned());
    }
    run.check_poisoned(campaign).map_err(|violation| violation.to_string())
}

#[test]
fn a_failed_write_has_no_effect_and_the_next_call_works() {
    let answers = strike(&[Call::Write], Fault::Eio, resumable("STORE_IO"));
    assert!(answers.iter().any(|(answer, times)| answer == "STORE_IO" && *times > 5));
}

#[test]
fn a_full_disk_has_no_effect_and_the_next_call_works() {
    let answers = strike(&[Call::Write], Fault::Enospc, resumable("STORE_FULL"));
    assert!(answers.iter().any(|(answer, times)| answer == "STORE_FULL" && *times > 5));
}

#[test]
fn a_write_that_is_cut_off_by_a_full_disk_leaves_nothing_behind() {
    let ops = strike::calls().unwrap();
    let campaign = Campaign::default();
    for op in strike::of_kind(&ops, &[Call::Write]) {
        match strike::play(&[(op.number, Fault::Short(7)), (op.number + 1, Fault::Enospc)]) {
            End::Done(run) => run.check(&campaign),
            End::Failed(run, error) => {
                assert_eq!(error.code(), "STORE_FULL", "{op}");
                run.check_resumable(&campaign)
            }
        }
        .unwrap_or_else(|violation| panic!("{op}: {violation}"));
    }
}

#[test]
fn a_failed_sync_ends_the_writing_and_loses_nothing() {
    for fault in [Fault::Eio, Fault::Enospc] {
        let answers = strike(&[Call::Sync, Call::SyncDir], fault, poisoned);
        assert!(answers.iter().any(|(_, times)| *times > 10));
    }
}

#[test]
fn pages_that_a_failed_sync_forgot_were_never_acknowledged() {
    strike(&[Call::Sync], Fault::LostPages, poisoned);
}

#[test]
fn interruptions_and_short_writes_do_not_show() {
    for fault in [Fault::Eintr, Fault::Short(1), Fault::Short(100)] {
        let answers = strike(&[Call::Write], fault, |_, _, _| Err("not got over".to_owned()));
        assert_eq!(answers.len(), 1, "{answers:?}");
    }
}

#[test]
fn too_many_open_files_have_no_effect_and_the_next_call_works() {
    strike(&[Call::Open], Fault::Emfile, resumable("STORE_IO"));
}

#[test]
fn any_other_failing_call_is_an_error_or_nothing_and_loses_nothing() {
    let kinds = [
        Call::Read,
        Call::ReadAt,
        Call::Look,
        Call::Lock,
        Call::Rename,
        Call::Remove,
        Call::CreateDir,
        Call::SetLen,
    ];
    strike(&kinds, Fault::Eio, |run, code, campaign| match code {
        "STORE_DURABILITY_LOST" => poisoned(run, code, campaign),
        _ => resumable("STORE_IO")(run, code, campaign),
    });
}

#[test]
fn a_disk_that_stays_full_is_served_and_works_again_when_there_is_room() {
    for plans in [1, 2, 4] {
        strike::fill_up(plans).unwrap_or_else(|violation| panic!("{plans} plans: {violation}"));
    }
}

#[test]
fn a_process_that_ends_at_any_call_does_not_panic() {
    let ops = strike::calls().unwrap();
    let last = ops.last().map_or(0, |Op { number, .. }| *number);
    assert!(last > 100, "{last} calls");
    for stop in 0..last {
        strike::end_after(stop).unwrap_or_else(|violation| panic!("after {stop}: {violation}"));
    }
}

/// Whoever wrote last is asked by the lock's note alone: a rival that could not leave one must
/// not write, or the other would go on from what it knew and write over it.
#[test]
fn a_rival_whose_call_fails_leaves_nobody_behind_the_truth() {
    let mut op = 0;
    loop {
        let disk = world::fresh();
        let (here, there) = (disk.process(), disk.process());
        let writer = Actor::start(&here).unwrap();
        for plan in 0..2 {
            writer.append(plan).unwrap();
        }
        let rival = Actor::start(&there).unwrap();
        there.fault(there.count() + op, Fault::Eio);
        let done = rival.append(2);
        there.calm();
        let again = writer.append(2).unwrap_or_else(|error| panic!("after op {op}: {error}"));
        assert!(again.replayed || done.is_err(), "op {op}: what was acknowledged is gone");
        writer.append(3).unwrap_or_else(|error| panic!("after op {op}: {error}"));
        assert_eq!(world::visible(&disk).unwrap(), 4, "op {op}");
        if op > 0 && there.struck() == 0 {
            break;
        }
        op += 1;
    }
    println!("a rival failed at each of {op} calls");
    assert!(op > 20, "{op}");
}

/// Disks that a crash can leave, from every part of the workload.
fn crashed() -> Vec<Start> {
    let recording = record(&world::fresh(), 0, Reader::None, &strike::WORKLOAD);
    let recording = recording.unwrap_or_else(|violation| panic!("{violation}"));
    starts(&recording.moments, Depth::LIGHT, 10)
}

#[test]
fn a_full_disk_during_recovery_hides_nothing_and_loses_nothing() {
    let starts = crashed();
    for start in &starts {
        strike::recover_with(start, |fs| fs.set_full(true))
            .unwrap_or_else(|violation| panic!("{violation}\n{}", start.origin));
    }
    println!("recovered from {} disks with no room", starts.len());
    assert!(starts.len() > 300, "{}", starts.len());
}

#[test]
fn a_failing_call_during_recovery_hides_nothing_and_loses_nothing() {
    let mut recoveries = 0;
    for start in crashed().iter().step_by(7) {
        let mut op = 1;
        // The plan is for a call that may never come; then all have had their turn.
        while strike::recover_with(start, |fs| fs.fault(op, Fault::Eio))
            .unwrap_or_else(|violation| panic!("op {op}: {violation}\n{}", start.origin))
            >= op
        {
            op += 1;
            recoveries += 1;
        }
    }
    println!("{recoveries} recoveries with a failing call");
    assert!(recoveries > 500, "{recoveries}");
}
