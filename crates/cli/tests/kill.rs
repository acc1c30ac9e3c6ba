//! Killing the real program, over and over: what it said is there afterwards, and it goes on.

#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]

#[path = "../src/commands/dev/workload.rs"]
mod workload;

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use cairn_core::event::Event;
use cairn_core::id::{EventIndex, SessionId};
use cairn_store::{Config, Health, Store, open};
use workload::Workload;

fn append_loop(home: &Path, session: SessionId, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cairn"));
    command.arg("--home").arg(home).args(["dev", "append-loop", "--session"]);
    command.arg(session.to_string()).args(more).stdin(Stdio::null()).stdout(Stdio::piped());
    command
}

/// When a process is killed.
#[derive(Clone, Copy, Debug)]
enum When {
    /// So long after it was started.
    Started(Duration),
    /// So long after its first acknowledgement.
    Acknowledged(Duration),
}

/// Kills a process; gives the last index that it said was acknowledged.
fn kill(mut child: Child, when: When) -> Option<u64> {
    let stdout = child.stdout.take().unwrap();
    let (first, begun) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        let lines = BufReader::new(stdout).lines().map_while(Result::ok);
        let numbers = lines.filter_map(|line| line.parse::<u64>().ok());
        // Nobody may be waiting for the first one.
        numbers.inspect(|_| first.send(()).unwrap_or_default()).last()
    });
    let delay = match when {
        When::Started(delay) => delay,
        When::Acknowledged(delay) => {
            begun.recv_timeout(Duration::from_secs(20)).unwrap();
            delay
        }
    };
    let deadline = Instant::now() + delay;
    while Instant::now() < deadline {
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    reader.join().unwrap()
}

/// A session that is being killed, and how much of it was seen to be right.
struct Victim {
    workload: Workload,
    verified: u64,
    acknowledged: u64,
}

impl Victim {
    /// Looks at the session as a new process would.
    async fn verify(&mut self, store: &Store, case: &str) {
        let session = self.workload.session;
        let status = match store.log.status(session).await {
            Err(cairn_store::Error::NotFound(_)) if self.acknowledged == 0 => return,
            status => status.unwrap_or_else(|error| panic!("{case}: {error}")),
        };
        assert_eq!(status.health, Health::Healthy, "{case}: {:?}", status.damage);
        assert!(status.events >= self.acknowledged, "{case}: acknowledged events are lost");
        let plans = workload::plans_in(status.events);
        assert!(plans.is_some(), "{case}: {} events are no whole plans", status.events);
        let new = store.log.read(session, EventIndex(self.verified)).await.unwrap();
        let expected = self.expected(self.verified, status.events);
        assert_eq!(new, expected, "{case}: other events than were appended");
        self.verified = status.events;
    }

    fn expected(&self, from: u64, to: u64) -> Vec<Event> {
        let first = (0..).take_while(|plan| workload::events_in(*plan) < from).count() as u64;
        let plans = (first.saturating_sub(1)..).take_while(|plan| workload::events_in(*plan) < to);
        let events = plans.flat_map(|plan| {
            let at = workload::events_in(plan);
            (at..).zip(self.workload.plan(plan).events)
        });
        let events = events.filter(|(index, _)| (from..to).contains(index));
        events.map(|(index, event)| event.at(self.workload.session, EventIndex(index))).collect()
    }
}

/// A small generator, so that a failing kill can be tried again.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// What so many kills of eight sessions came to.
#[derive(Default)]
struct Tally {
    late: u64,
    events: u64,
}

/// Kills eight sessions of one home in turn.
async fn kill_in_turn(home: &Path, kills: std::ops::Range<u64>, random: &mut Random) -> Tally {
    let mut tally = Tally::default();
    let mut victims: Vec<Victim> = (0..8u64)
        .map(|number| {
            let session = SessionId::mint(1_700_000_000_000, u128::from(number));
            let workload = Workload { session, blobs: number % 2 == 0 };
            Victim { workload, verified: 0, acknowledged: 0 }
        })
        .collect();
    for number in kills {
        let victim = victims.get_mut((number % 8) as usize).unwrap();
        // A small journal, so that kills meet rotation and sealing too.
        let mut more = vec!["--count", "100000", "--journal-max", "20000"];
        more.extend(victim.workload.blobs.then_some("--blobs"));
        let child = append_loop(home, victim.workload.session, &more).spawn().unwrap();
        let when = match random.below(4) {
            0 => When::Started(Duration::from_micros(random.below(25_000))),
            _ => When::Acknowledged(Duration::from_micros(random.below(8_000))),
        };
        if let Some(last) = kill(child, when) {
            victim.acknowledged = victim.acknowledged.max(last + 1);
            tally.late += 1;
        }
        let store = open(&Config::files(home)).unwrap();
        victim.verify(&store, &format!("kill {number}: {when:?}")).await;
    }
    // Each of them still goes on, and every byte is as it should be.
    for victim in &mut victims {
        let session = victim.workload.session;
        let mut more = vec!["--count", "3"];
        more.extend(victim.workload.blobs.then_some("--blobs"));
        let output = append_loop(home, session, &more).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let store = open(&Config::files(home)).unwrap();
        victim.verified = 0;
        victim.verify(&store, "at the end").await;
        let report = cairn_store::verify(&store, session).await.unwrap();
        assert_eq!(report.problems, [""; 0], "{session}");
        tally.events += report.events;
    }
    tally
}

#[tokio::test]
async fn nothing_acknowledged_is_lost_by_kills() {
    // A new process reads its whole session, so that long ones would only slow the kills down.
    const KILLS_PER_HOME: usize = 400;
    let kills: u64 = std::env::var("CAIRN_KILLS").map_or(500, |kills| kills.parse().unwrap());
    let mut random = Random(kills);
    let mut sum = Tally::default();
    for first in (0..kills).step_by(KILLS_PER_HOME) {
        let home = tempfile::tempdir().unwrap();
        let until = kills.min(first + KILLS_PER_HOME as u64);
        let tally = kill_in_turn(home.path(), first..until, &mut random).await;
        sum = Tally { late: sum.late + tally.late, events: sum.events + tally.events };
    }
    let Tally { late, events } = sum;
    println!("{kills} kills, {late} of them after an acknowledgement; {events} events, none lost");
    assert!(late * 2 > kills, "only {late} of {kills} kills came late enough to matter");
}

#[tokio::test]
async fn two_processes_take_turns() {
    let home = tempfile::tempdir().unwrap();
    let session = SessionId::mint(1_700_000_000_000, 1);
    // Both follow the same script, so one often records what the other is about to: that is
    // a replay or a conflict, never a second copy.
    let both: Vec<Child> = (0..2)
        .map(|_| {
            let mut command = append_loop(home.path(), session, &["--count", "300"]);
            command.stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    let mut acknowledged = 0;
    for child in both {
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        let refused = ["SESSION_LOCKED", "STORE_CONFLICT"].iter().any(|code| stderr.contains(code));
        assert!(output.status.success() || refused, "{stderr}");
        let said = String::from_utf8_lossy(&output.stdout);
        let last = said.lines().filter_map(|line| line.parse::<u64>().ok()).next_back();
        acknowledged = acknowledged.max(last.map_or(0, |last| last + 1));
    }
    let store = open(&Config::files(home.path())).unwrap();
    let workload = Workload { session, blobs: false };
    let mut victim = Victim { workload, verified: 0, acknowledged };
    victim.verify(&store, "after two writers").await;
    assert!(victim.verified >= workload::events_in(300), "{} events", victim.verified);
}

/// Whoever looks does not get in the way of whoever writes.
#[tokio::test]
async fn readers_do_not_disturb_a_writer() {
    let home = tempfile::tempdir().unwrap();
    let session = SessionId::mint(1_700_000_000_000, 1);
    let mut writer = append_loop(home.path(), session, &["--count", "3000"]);
    let mut writer = writer.stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(writer.stdout.take().unwrap()).lines();
    assert!(lines.next().is_some(), "it acknowledges something");
    let drain = std::thread::spawn(move || lines.count());
    let mut reads = 0;
    while writer.try_wait().unwrap().is_none() {
        // A fresh process each time, as a person's command is.
        let store = open(&Config::files(home.path())).unwrap();
        let events = store.log.read(session, EventIndex(0)).await.unwrap();
        assert!(!events.is_empty());
        reads += 1;
    }
    let output = writer.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(drain.join().unwrap(), 2999);
    assert!(reads > 5, "{reads} reads");
}

/// The lock of a process that was stopped stays its own; others are told so and may read.
#[tokio::test]
async fn a_stopped_holder_keeps_its_lock() {
    let home = tempfile::tempdir().unwrap();
    let session = SessionId::mint(1_700_000_000_000, 1);
    let lock: PathBuf = home.path().join("sessions").join(session.to_string()).join(".lock");
    let mut child = append_loop(home.path(), session, &["--count", "1000000"]).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.next().is_some(), "it acknowledges something");
    let drain = std::thread::spawn(move || lines.count());
    let signal = |name: &str| {
        let pid = child.id().to_string();
        assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
    };
    let mut tries = 0;
    loop {
        tries += 1;
        assert!(tries < 10_000, "the process was never stopped while it held its lock");
        signal("-STOP");
        let held = std::fs::File::open(&lock).is_ok_and(|file| file.try_lock().is_err());
        if held {
            break;
        }
        signal("-CONT");
    }
    let store = open(&Config::files(home.path())).unwrap();
    let events = store.log.read(session, EventIndex(0)).await.unwrap();
    let workload = Workload { session, blobs: false };
    let plan = workload.plan(workload::plans_in(events.len() as u64).unwrap() + 5);
    let start = Instant::now();
    let error = store.log.append(session, plan).await.unwrap_err();
    assert_eq!(error.code(), "SESSION_LOCKED");
    assert!(error.to_string().contains(&format!("process {}", child.id())), "{error}");
    assert!(start.elapsed() < Duration::from_secs(1), "fails fast");
    signal("-CONT");
    let deadline = Instant::now() + Duration::from_secs(20);
    while store.log.status(session).await.unwrap().events <= events.len() as u64 + 10 {
        assert!(Instant::now() < deadline, "the holder did not go on");
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    drain.join().unwrap();
    let store = open(&Config::files(home.path())).unwrap();
    let mut victim = Victim { workload, verified: 0, acknowledged: 1 };
    victim.verify(&store, "after a stop").await;
}
