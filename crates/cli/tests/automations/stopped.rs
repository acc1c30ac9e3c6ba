//! An owner that is stopped, anywhere in its work: others are told within two seconds who it is,
//! since when, and what to do; nothing that was refused happens later, nothing is lost or done
//! twice; and one that is killed in the end is taken over at once. And one whose lock files
//! somebody removes: whoever comes then has the sessions, and the old owner writes nothing behind
//! it.

use std::collections::BTreeSet;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::receiver::{Receiver, well};
use crate::server::{Place, Server, call};

const WAITS: &str = "name: Waits
rate_limit: 100000/min
concurrency: 100000
graph:
  nodes:
    - { id: a, type: wait, duration_sec: 3600 }
";

/// How many effects a busy run has outside.
const TURNS: u32 = 6;

/// How often an owner is stopped: `CAIRN_STOPS`, twenty times unless it says so.
fn rounds() -> usize {
    std::env::var("CAIRN_STOPS").ok().and_then(|stops| stops.parse().ok()).unwrap_or(20)
}

fn busy(port: u16) -> String {
    format!(
        "name: Busy
rate_limit: 100000/min
concurrency: 100000
graph:
  nodes:
    - {{ id: l, type: loop, count: {TURNS}, body: [i] }}
    - {{ id: i, type: http, method: POST, url: 'http://127.0.0.1:{port}/{{{{ run.id }}}}/{{{{ index }}}}', body: {{ n: 1 }} }}
"
    )
}

fn place() -> (Place, Receiver) {
    let receiver = Receiver::start(|_, _| well(&json!(1)));
    let flows = [("waits", WAITS.to_owned()), ("busy", busy(receiver.port))];
    let config = "[http]\nallow = [\"127.0.0.1:*\"]\n";
    (Place::new(config, &flows), receiver)
}

fn signal(child: &Child, name: &str) {
    let pid = child.id().to_string();
    let sent = Command::new("sh").args(["-c", &format!("kill -{name} {pid}")]).status().unwrap();
    assert!(sent.success());
}

/// What a command said on standard error, and how long it took.
struct Said {
    done: bool,
    text: String,
    took: Duration,
}

fn say(place: &Place, args: &[&str]) -> Said {
    let begun = Instant::now();
    let done = place.command(args).output().unwrap();
    let text = String::from_utf8_lossy(&done.stderr).into_owned();
    Said { done: done.status.success(), text, took: begun.elapsed() }
}

fn begin(place: &Place, server: &Server, workflow: &str) -> String {
    asked(&server.address, &place.token(), workflow).unwrap()
}

fn asked(address: &str, token: &str, workflow: &str) -> Option<String> {
    let asked = json!({"workflow": workflow});
    let (status, begun) = call(address, token, "POST /api/v1/runs", "", Some(&asked))?;
    assert_eq!(status, 201, "{begun}");
    Some(begun["runId"].as_str().unwrap().to_owned())
}

fn status(place: &Place, run: &str) -> Value {
    let shown = place.command(&["runs", "show", run, "--json"]).output().unwrap();
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    shown["status"].clone()
}

/// A number below `end`, another one each time.
fn below(end: u64) -> u64 {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).unwrap();
    u64::from_le_bytes(bytes) % end
}

/// Lets a moment pass, exactly: what is to be hit in it is short.
fn spin(moment: Duration) {
    let begun = Instant::now();
    while begun.elapsed() < moment {
        std::hint::spin_loop();
    }
}

/// People who ask for runs all the time, while a server is stopped and goes on.
struct Load {
    is_over: Arc<AtomicBool>,
    begun: Arc<Mutex<BTreeSet<String>>>,
    people: Vec<std::thread::JoinHandle<()>>,
}

impl Load {
    fn on(place: &Place, server: &Server) -> Self {
        let is_over = Arc::<AtomicBool>::default();
        let begun = Arc::<Mutex<BTreeSet<String>>>::default();
        let people = (0..3).map(|_| {
            let (address, token) = (server.address.clone(), place.token());
            let (is_over, begun) = (Arc::clone(&is_over), Arc::clone(&begun));
            std::thread::spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    let run = asked(&address, &token, "project.busy");
                    let Some(run) = run else { return };
                    begun.lock().unwrap().insert(run);
                    let list = "GET /api/v1/runs?limit=5";
                    drop(call(&address, &token, list, "", None));
                }
            })
        });
        Self { people: people.collect(), is_over, begun }
    }

    /// Everything that was begun, once nobody asks for more.
    fn end(self) -> BTreeSet<String> {
        self.is_over.store(true, Ordering::Relaxed);
        self.people.into_iter().for_each(|one| one.join().unwrap());
        std::mem::take(&mut *self.begun.lock().unwrap())
    }
}

/// What is said to a stopped owner: who it is, since when, and what to do, within two seconds.
/// Gives whether it was refused, and so never happens.
fn require_named(owner: u32, args: &[&str], said: &Said) -> bool {
    let Said { done, text, took } = said;
    assert!(*took < Duration::from_secs(2), "{args:?} took {took:?}: {text}");
    assert!(!done, "{args:?}: {text}");
    let in_doubt = text.contains("RUN_IN_DOUBT");
    let codes = ["RUN_ELSEWHERE", "WORKFLOW_ELSEWHERE", "STORE_BUSY"];
    assert!(in_doubt || codes.iter().any(|code| text.contains(code)), "{args:?}: {text}");
    assert!(text.contains(&format!("process {owner} since 20")), "{args:?}: {text}");
    assert!(text.contains("continue it if it is stopped, or end it"), "{args:?}: {text}");
    !in_doubt
}

/// Waits until runs are over, and looks whether each has one end, which is its last event.
fn require_one_end<'r>(place: &Place, runs: impl IntoIterator<Item = &'r String>) {
    let by = Instant::now() + Duration::from_secs(60);
    for run in runs {
        while !["succeeded", "cancelled"].contains(&status(place, run).as_str().unwrap()) {
            assert!(Instant::now() < by, "{run} never ends");
        }
        let (ends, kinds) = (["run_completed", "run_cancelled", "run_failed"], kinds(place, run));
        let count = kinds.iter().filter(|kind| ends.contains(&kind.as_str())).count();
        assert_eq!(count, 1, "{run}: {kinds:?}");
        assert!(ends.contains(&kinds.last().unwrap().as_str()), "{run}: {kinds:?}");
    }
}

/// The kinds of all events of a run, in order.
fn kinds(place: &Place, run: &str) -> Vec<String> {
    let events = place.command(&["runs", "events", run, "--json"]).output().unwrap();
    let lines = String::from_utf8(events.stdout).unwrap();
    let events = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let all: Vec<Value> = events
        .flat_map(|event| match event["items"].as_array() {
            Some(items) => items.clone(),
            None => vec![event],
        })
        .collect();
    all.iter().map(|event| event["kind"].as_str().unwrap().to_owned()).collect()
}

/// The runs there are, by id.
fn listed(place: &Place) -> BTreeSet<String> {
    let args = ["runs", "list", "--json", "--limit", "1000"];
    let listed = place.command(&args).output().unwrap();
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let ids = listed.split("\"runId\":\"").skip(1).filter_map(|rest| rest.split('"').next());
    ids.map(str::to_owned).collect()
}

/// Waits until all of these have succeeded, by the list: there are many.
fn require_all_succeed(server: &Server, token: &str) {
    let by = Instant::now() + Duration::from_secs(90);
    let open = "GET /api/v1/runs?workflow=project.busy&status=queued,running,waiting&limit=1";
    loop {
        let (_, page) = call(&server.address, token, open, "", None).unwrap();
        if page["items"].as_array().unwrap().is_empty() {
            return;
        }
        assert!(Instant::now() < by, "runs never end: {page}");
        std::thread::yield_now();
    }
}

#[test]
fn a_stopped_owner_is_named_at_once_and_what_was_refused_never_happens() {
    let (place, receiver) = place();
    let server = place.serve();
    let mut begun = BTreeSet::new();
    for round in 0..rounds() {
        let run = begin(&place, &server, "project.waits");
        let load = Load::on(&place, &server);
        // It is stopped somewhere in the middle of what these do.
        spin(Duration::from_micros(5_000 + below(60_000)));
        signal(&server.child, "STOP");
        let commands = [
            ["runs", "cancel", &run],
            ["runs", "pause", &run],
            ["run", "project.waits", "--quiet"],
        ];
        let refused = std::thread::scope(|scope| {
            let place = &place;
            let all = commands.map(|args| (args, scope.spawn(move || say(place, &args))));
            all.map(|(args, said)| require_named(server.child.id(), &args, &said.join().unwrap()))
        });
        signal(&server.child, "CONT");
        begun.extend(load.end());
        begun.insert(run.clone());
        // It lives again: whatever it had taken is done by the time that it answers.
        let what = format!("GET /api/v1/runs/{run}");
        let (_, shown) = call(&server.address, &place.token(), &what, "", None).unwrap();
        let expected: &[&str] = match refused {
            [true, true, _] => &["waiting"],
            [false, true, _] => &["waiting", "cancelled"],
            [true, false, _] => &["waiting", "paused"],
            [false, false, _] => &["waiting", "paused", "cancelled"],
        };
        assert!(expected.contains(&shown["status"].as_str().unwrap()), "round {round}: {shown}");
        let all = listed(&place);
        let more: Vec<_> = all.difference(&begun).collect();
        // One that is in doubt may have begun.
        assert!(
            more.len() <= usize::from(!refused[2]),
            "round {round}: refused, and begun: {more:?}"
        );
        begun.extend(all);
        let cancelled = say(&place, &["runs", "cancel", &run]);
        assert!(cancelled.done || cancelled.text.contains("RUN_ENDED"), "{}", cancelled.text);
    }
    require_all_succeed(&server, &place.token());
    // It was stopped and never killed: everything that it did outside, it did once.
    let asked = receiver.asked();
    assert!(asked.len() > rounds(), "there was something to be stopped in: {}", asked.len());
    assert!(asked.values().all(|asked| asked.times == 1 && asked.keys.len() == 1), "{asked:?}");
    assert_eq!(asked.len() % TURNS as usize, 0, "each run did all of it: {}", asked.len());
    let sound = say(&place, &["session", "verify", "--all"]);
    assert!(sound.done, "{}", sound.text);
}

#[test]
fn an_owner_that_is_stopped_and_then_killed_is_taken_over_at_once() {
    let (place, receiver) = place();
    let mut busy = BTreeSet::new();
    for _ in 0..rounds() {
        let mut server = place.serve();
        let run = begin(&place, &server, "project.waits");
        let load = Load::on(&place, &server);
        spin(Duration::from_micros(below(50_000)));
        signal(&server.child, "STOP");
        server.kill();
        busy.extend(load.end());
        let cancelled = say(&place, &["runs", "cancel", &run]);
        assert!(cancelled.done, "{}", cancelled.text);
        assert!(cancelled.took < Duration::from_secs(1), "it took {:?}", cancelled.took);
        assert_eq!(status(&place, &run), "cancelled");
    }
    let server = place.serve();
    require_all_succeed(&server, &place.token());
    require_one_end(&place, busy.iter().take(rounds()));
    // What was under way when it was killed is done again, under the same key.
    for (path, asked) in receiver.asked() {
        assert_eq!(asked.keys.len(), 1, "{path}: {asked:?}");
    }
    let done: BTreeSet<String> = receiver.asked().into_keys().collect();
    for run in &busy {
        let all = (0..TURNS).all(|turn| done.contains(&format!("/{run}/{turn}")));
        assert!(all, "something of {run} was never done");
    }
}

/// Who says to own the sessions of a data directory.
fn owners(place: &Place) -> Vec<String> {
    // There is no session before the first.
    let sessions = std::fs::read_dir(place.home().join("sessions")).into_iter().flatten();
    let notes = sessions.map(|session| session.unwrap().path().join(".owner"));
    // Not every session has had an owner.
    notes.filter_map(|note| std::fs::read_to_string(note).ok()).collect()
}

#[test]
fn a_server_hears_that_a_process_is_gone_and_goes_on_with_its_runs() {
    let (place, _receiver) = place();
    let mut command = place.command(&["run", "project.waits"]);
    let mut runner = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let by = Instant::now() + Duration::from_secs(20);
    let own = |pid: u32| {
        owners(&place).iter().filter(|note| note.starts_with(&format!("process {pid} "))).count()
    };
    while own(runner.id()) < 2 {
        assert!(Instant::now() < by, "nobody has the run: {:?}", owners(&place));
        std::thread::yield_now();
    }
    let server = place.serve();
    let listed = listed(&place);
    assert_eq!(listed.len(), 1);
    assert_eq!(own(server.child.id()), 0, "a living owner is not replaced");
    signal(&runner, "STOP");
    runner.kill().unwrap();
    let killed = Instant::now();
    while own(server.child.id()) < 2 {
        let took = killed.elapsed();
        assert!(took < Duration::from_secs(1), "{took:?}: {:?}", owners(&place));
        std::thread::yield_now();
    }
    runner.wait().unwrap();
    let run = listed.first().unwrap();
    let cancelled = say(&place, &["runs", "cancel", run]);
    assert!(cancelled.done, "{}", cancelled.text);
}

// case: owner.replaced
#[test]
fn an_owner_whose_lock_files_are_removed_writes_nothing_behind_whoever_comes_then() {
    let (place, receiver) = place();
    let server = place.serve();
    for round in 0..rounds() {
        let waits = begin(&place, &server, "project.waits");
        let busy: Vec<String> = (0..3).map(|_| begin(&place, &server, "project.busy")).collect();
        spin(Duration::from_micros(below(20_000)));
        for session in std::fs::read_dir(place.home().join("sessions")).unwrap() {
            // Not every session has had an owner.
            let _ = std::fs::remove_file(session.unwrap().path().join(".owner"));
        }
        let cancelled = say(&place, &["runs", "cancel", &waits]);
        assert!(cancelled.done, "round {round}: {}", cancelled.text);
        require_one_end(&place, busy.iter().chain([&waits]));
        assert_eq!(status(&place, &waits), "cancelled", "round {round}");
        let done = receiver.asked();
        for run in &busy {
            let keys = (0..TURNS).map(|turn| done[&format!("/{run}/{turn}")].keys.len());
            assert!(keys.into_iter().all(|keys| keys == 1), "{run}");
        }
    }
    let sound = say(&place, &["session", "verify", "--all"]);
    assert!(sound.done, "{}", sound.text);
}
