//! A server that is killed over and over while it performs hundreds of runs.
//!
//! Every run ends once and with the right result, whatever it was doing when the process was
//! killed; what it did outside was done at least once and under one key, and what must not be
//! repeated was not.

mod story;
mod verdict;

use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::receiver::Receiver;
use crate::server::{Place, Server, call};

/// How many runs are under way whenever the server is killed.
const AT_ONCE: usize = 200;
/// How many there are after new ones were begun: some end before the kill.
const FULL: usize = 300;
/// How many ask at once.
const CALLERS: usize = 8;
/// How long runs may take once nobody kills the server any more.
const PATIENCE: Duration = Duration::from_secs(90);

/// A small generator, so that a failing story can be tried again.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// A run that was asked for.
#[derive(Clone)]
struct Wanted {
    workflow: &'static str,
    n: u64,
    /// Its id, as soon as the server lived long enough to say it.
    run: Option<String>,
}

/// Everything that outlives the server.
struct Story {
    place: Place,
    token: String,
    /// By the key that each was asked for with.
    wanted: BTreeMap<String, Wanted>,
    /// When the server was killed, in milliseconds since 1970.
    killed: Vec<u64>,
    resolved: u64,
    random: Random,
}

/// Why something could not be said: the server is gone.
struct Gone;

impl Story {
    fn call(&self, server: &Server, what: &str, body: Option<&Value>) -> Result<Value, Gone> {
        let (status, answer) = call(&server.address, &self.token, what, "", body).ok_or(Gone)?;
        assert!(status < 300, "{what}: {status} {answer}");
        Ok(answer)
    }

    /// Asks for runs, several at once. However often it asks with one key, it is one run.
    fn begin(&mut self, server: &Server, keys: &[String]) -> Result<(), Gone> {
        let ask = |key: &String| {
            let Wanted { workflow, n, .. } = self.wanted[key];
            let body = json!({"workflow": workflow, "payload": {"n": n}});
            let more = format!("Idempotency-Key: {key}\r\n");
            let what = "POST /api/v1/runs";
            let (status, answer) = call(&server.address, &self.token, what, &more, Some(&body))?;
            assert!(matches!(status, 200 | 201), "{key}: {status} {answer}");
            Some((key.clone(), answer["runId"].as_str().unwrap().to_owned()))
        };
        let heard: Vec<(String, String)> = std::thread::scope(|scope| {
            let chunks = keys.chunks(keys.len().div_ceil(CALLERS).max(1));
            let callers: Vec<_> = chunks
                .map(|chunk| scope.spawn(|| chunk.iter().map_while(ask).collect::<Vec<_>>()))
                .collect();
            callers.into_iter().flat_map(|caller| caller.join().unwrap()).collect()
        });
        let all = heard.len() == keys.len();
        for (key, run) in heard {
            self.wanted.get_mut(&key).unwrap().run = Some(run);
        }
        all.then_some(()).ok_or(Gone)
    }

    /// What was asked for and not answered, because the server was gone.
    fn unheard(&self) -> Vec<String> {
        let unheard = self.wanted.iter().filter(|(_, wanted)| wanted.run.is_none());
        unheard.map(|(key, _)| key.clone()).collect()
    }

    /// Begins as many runs as are missing.
    fn top_up(&mut self, server: &Server) -> Result<(), Gone> {
        let mut keys = self.unheard();
        for _ in self.open(server)?.len() + keys.len()..FULL {
            let n = self.wanted.len() as u64;
            let workflow = match self.random.below(20) {
                0..11 => "wide",
                11..16 => "careful",
                16..18 => "family",
                _ => "doomed",
            };
            let key = format!("k{n:06}");
            self.wanted.insert(key.clone(), Wanted { workflow, n, run: None });
            keys.push(key);
        }
        self.begin(server, &keys)
    }

    /// The runs that are not over.
    fn open(&self, server: &Server) -> Result<Vec<Value>, Gone> {
        let mut open = Vec::new();
        let mut cursor = String::new();
        loop {
            let what =
                format!("GET /api/v1/runs?status=queued,running,waiting,paused&limit=200{cursor}");
            let page = self.call(server, &what, None)?;
            open.extend(page["items"].as_array().unwrap().iter().cloned());
            let Some(next) = page["nextCursor"].as_str() else { return Ok(open) };
            cursor = format!("&cursor={next}");
        }
    }

    /// Decides for steps of which nobody knows what became of them.
    fn resolve(&mut self, server: &Server, most: usize) -> Result<(), Gone> {
        let open = self.open(server)?;
        let waiting = open
            .iter()
            .filter(|run| run["workflowId"] == "project.careful" && run["status"] == "waiting");
        for run in waiting.take(most) {
            let id = run["runId"].as_str().unwrap();
            let shown = self.call(server, &format!("GET /api/v1/runs/{id}"), None)?;
            if shown["steps"]["asked"]["status"] != "unknown" {
                continue;
            }
            let decision = ["skip", "fail", "retry"][self.random.below(3) as usize];
            let body = json!({"step": "asked", "decision": decision});
            self.call(server, &format!("POST /api/v1/runs/{id}/resolve"), Some(&body))?;
            self.resolved += 1;
        }
        Ok(())
    }

    /// Lets the server live for a moment, and kills it: in the middle of its start, while
    /// runs are being begun, or at its work.
    fn live_and_die(&mut self) {
        let (when, chance) = (self.random.below(4), self.random.below(1_000));
        if when == 0 {
            let mut child = self.place.spawn();
            spin(Duration::from_micros(chance * 150));
            child.kill().unwrap();
            child.wait().unwrap();
            return self.killed.push(now_ms());
        }
        let mut server = self.place.serve();
        if when == 1 {
            let pid = Pid::from_child(&server.child);
            let killer = std::thread::spawn(move || {
                spin(Duration::from_micros(chance * 100));
                kill_process(pid, Signal::KILL).unwrap();
                now_ms()
            });
            let _ = self.top_up(&server).and_then(|()| self.resolve(&server, 8));
            self.killed.push(killer.join().unwrap());
            server.child.wait().unwrap();
            return;
        }
        assert!(self.resolve(&server, 8).is_ok(), "the server ended by itself");
        assert!(self.top_up(&server).is_ok(), "the server ended by itself");
        spin(Duration::from_micros(chance * 300));
        server.kill();
        self.killed.push(now_ms());
    }

    /// Lets everything come to its end.
    fn finish(&mut self) -> Duration {
        let server = self.place.serve();
        let begun = Instant::now();
        let alive = |done: Result<(), Gone>| assert!(done.is_ok(), "the server ended by itself");
        alive(self.begin(&server, &self.unheard()));
        loop {
            alive(self.resolve(&server, usize::MAX));
            let Ok(open) = self.open(&server) else { panic!("the server ended by itself") };
            if open.is_empty() {
                break;
            }
            if begun.elapsed() > PATIENCE {
                let run = open[0]["runId"].as_str().unwrap();
                panic!("{} runs do not end, such as {run}:\n{}", open.len(), self.told(run));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let took = begun.elapsed();
        let mut server = server;
        kill_process(Pid::from_child(&server.child), Signal::TERM).unwrap();
        assert_eq!(server.child.wait().unwrap().code(), Some(0));
        took
    }

    /// What happened to a run, for people.
    fn told(&self, run: &str) -> String {
        let output = self.place.command(&["runs", "events", run]).output().unwrap();
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    }
}

fn spin(time: Duration) {
    let deadline = Instant::now() + time;
    std::thread::sleep(time.saturating_sub(Duration::from_millis(2)));
    while Instant::now() < deadline {
        std::thread::yield_now();
    }
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

#[test]
fn every_run_ends_once_and_rightly_however_often_the_server_is_killed() {
    let (kills, seed) = (number("CAIRN_SERVE_KILLS", 15), number("CAIRN_SEED", 4));
    println!("CAIRN_SERVE_KILLS={kills} CAIRN_SEED={seed}");
    let receiver = Receiver::start(story::answer);
    let config = "[http]\nallow = [\"127.0.0.1:*\"]\n";
    let marks = tempfile::NamedTempFile::new().unwrap();
    let workflows = story::workflows(receiver.port, marks.path().to_str().unwrap());
    let place = Place::new(config, &workflows);
    place.serve().kill();
    let token = place.token();
    let (wanted, killed) = (BTreeMap::new(), Vec::new());
    let mut story = Story { place, token, wanted, killed, resolved: 0, random: Random(seed) };
    let begun = Instant::now();
    // The first life has nothing to go on with, and all runs to begin.
    let mut server = story.place.serve();
    assert!(story.top_up(&server).is_ok(), "the server ended by itself");
    server.kill();
    story.killed.push(now_ms());
    for _ in 1..kills {
        story.live_and_die();
    }
    let killing = begun.elapsed();
    let finishing = story.finish();
    println!("{kills} kills in {killing:.1?}, then {finishing:.1?} until all runs were over");
    verdict::check(&story, &receiver.asked(), &std::fs::read_to_string(marks.path()).unwrap());
}
