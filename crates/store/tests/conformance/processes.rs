//! Owners that are processes of their own.

use std::io::{BufRead, BufReader, Lines, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use cairn_core::id::EventIndex;
use cairn_store::{Config, Error, Store, open};

use crate::given::{RUN, SESSION, acquire, by, paused, start};

const HOME: &str = "CAIRN_TEST_OWNER_HOME";

/// A process that owns the session and appends to it until it is refused.
struct Owner {
    process: Child,
    said: Lines<BufReader<ChildStdout>>,
}

impl Owner {
    fn start(home: &Path) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "processes::an_owner_in_a_process_of_its_own", "--nocapture"])
            .env(HOME, home)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { process, said }
    }

    /// What it says next.
    fn next(&mut self) -> String {
        loop {
            // The test harness has something to say, too.
            let line = self.said.next().expect("the owner has ended").unwrap();
            if let Some((_, said)) = line.split_once("owner: ") {
                return said.to_owned();
            }
        }
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let pid = i32::try_from(self.process.id()).unwrap();
        let pid = rustix::process::Pid::from_raw(pid).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

/// Not a test by itself: what the processes of the tests below do.
#[tokio::test]
async fn an_owner_in_a_process_of_its_own() {
    let Ok(home) = std::env::var(HOME) else { return };
    let say = |what: String| {
        // The harness prints the name of the test first, without ending the line.
        println!("owner: {what}");
        std::io::stdout().flush().unwrap();
    };
    let store = open(&Config::files(home)).unwrap();
    let lease = acquire(&store).await;
    say(format!("epoch {}", lease.epoch()));
    for number in 0.. {
        match store.log.append(SESSION, by(lease.epoch(), paused(number))).await {
            Ok(at) => say(format!("event {}", at.last)),
            Err(Error::Locked { .. }) => {}
            Err(error) => {
                assert!(lease.is_lost(), "{error}");
                lease.lost().await;
                say(format!("lost by {}", error.code()));
                return;
            }
        }
    }
}

async fn home() -> (tempfile::TempDir, Store) {
    let home = tempfile::tempdir().unwrap();
    let store = open(&Config::files(home.path())).unwrap();
    store.log.append(SESSION, start()).await.unwrap();
    (home, store)
}

#[tokio::test]
async fn an_owner_whose_lock_file_was_removed_appends_nothing_more_and_hears_of_it() {
    for round in 0..50 {
        let (home, store) = home().await;
        let mut old = Owner::start(home.path());
        let held: u64 = old.next().strip_prefix("epoch ").unwrap().parse().unwrap();
        let mut last = EventIndex(1);
        let event = |said: &str| said.strip_prefix("event ").map(|at| at.parse().unwrap());
        for _ in 0..round {
            last = EventIndex(event(&old.next()).unwrap());
        }
        let dir = home.path().join("sessions").join(SESSION.to_string());
        std::fs::remove_file(dir.join(".owner")).unwrap();
        let lease = loop {
            match store.leases.acquire(SESSION, "test").await {
                Err(Error::Locked { .. }) => {}
                acquired => break acquired.unwrap(),
            }
        };
        assert!(lease.epoch().0 > held, "round {round}");
        let mut plan = by(lease.epoch(), paused(1_000_000));
        let events = store.log.read(SESSION, EventIndex(0)).await.unwrap();
        plan.seen = vec![(RUN, events.last().map(|event| event.index))];
        let first = loop {
            // Nobody else adds to the run any more, or this would be a conflict.
            match store.log.append(SESSION, plan.clone()).await {
                Err(Error::Locked { .. }) => {}
                appended => break appended.unwrap().first,
            }
        };
        let said = loop {
            let said = old.next();
            match event(&said) {
                Some(at) => last = EventIndex(at),
                None => break said,
            }
        };
        assert_eq!(said, "lost by STORE_FENCED", "round {round}");
        assert!(last < first, "round {round}: it appended {last} behind {first}");
        let events = store.log.read(SESSION, EventIndex(0)).await.unwrap();
        assert_eq!(events.last().map(|event| event.index), Some(first), "round {round}");
        assert!(events.iter().any(|event| event.index == last), "round {round}");
    }
}

#[tokio::test]
async fn a_stopped_owner_is_named_at_once_and_never_replaced() {
    let (home, store) = home().await;
    let mut owner = Owner::start(home.path());
    for _ in 0..5 {
        owner.next();
    }
    owner.signal(rustix::process::Signal::STOP);
    let asked = Instant::now();
    let refused = store.leases.acquire(SESSION, "test").await.map(drop);
    assert!(asked.elapsed() < Duration::from_secs(1), "{:?}", asked.elapsed());
    let Err(Error::Owned { owner: Some(named), .. }) = refused else { panic!("{refused:?}") };
    assert_eq!((named.pid, named.purpose.as_str()), (owner.process.id(), "test"));
    assert!(named.started.is_some());
    owner.signal(rustix::process::Signal::CONT);
    for _ in 0..5 {
        assert!(owner.next().starts_with("event "), "it goes on where it was");
    }
    owner.signal(rustix::process::Signal::STOP);
    drop(owner);
    acquire(&store).await;
}
