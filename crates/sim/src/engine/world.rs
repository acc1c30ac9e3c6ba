//! Several processes on one store, people who ask things of them, and everything that goes wrong.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cairn_core::event::engine::{InterruptDecision, Payload};
use cairn_core::event::{Event, EventData};
use cairn_core::flow::{Answer, Verdict};
use cairn_core::id::{BundleId, EventIndex, RunId, SessionId};
use cairn_core::plan::Retention;
use cairn_core::projection::run::{RunState, StepStatus};
use cairn_engine::catalog::Catalog;
use cairn_engine::flow::schedule::Timetable;
use cairn_engine::flow::{
    Automations, Decider, ForkPoint, Forker, NoEvaluator, Options, Parts, RETENTION, Roles,
    RunRequest, TriggerEvent, Truster,
};
use cairn_engine::host::BoxFuture;
use cairn_engine::performer::Performers;
use cairn_store::Store;
use cairn_store::bundle::{self, ExportInfo};
use cairn_store::memory::{Control, Outside};
use serde_json::json;
use tokio::sync::watch;

use super::book::{Book, Told};
use super::executor::{Machine, Process};
use super::host::SimHost;
use super::outside::{Act, People};
use super::shelf::{self, Owners};
use super::ticks;
use super::weather::{Fault, Weather};
use super::workflows::{self, Written};

/// How often something may be polled before a world counts as stuck.
const POLLS_MAX: u64 = 2_000_000;
/// What a forged history says that no plan does.
pub(super) const EVIL: &str = "evil";
/// Somebody who may ask for forks, and answers nothing.
pub(super) const NOBODY: &str = "an agent";

/// What happened how often.
pub type Counts = BTreeMap<&'static str, u64>;

thread_local! {
    /// What engines told of trouble.
    static TROUBLE: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// What engines told of trouble since this was last asked.
pub(super) fn trouble() -> Vec<String> {
    TROUBLE.take()
}

/// A place where a process runs, one after another.
struct Seat {
    process: Process,
    engine: Option<Automations>,
    /// Whether it looks after whatever others leave, as a server does. A command goes on only with
    /// what it was asked for.
    is_server: bool,
}

pub(super) struct World {
    pub(super) machine: Machine,
    pub(super) book: Book,
    pub(super) counts: Counts,
    control: Control,
    catalog: Arc<Catalog>,
    weather: Weather,
    owners: Owners,
    forgot: Arc<AtomicBool>,
    /// What the clock starts.
    timetable: watch::Sender<Timetable>,
    seats: Vec<Seat>,
    options: Options,
    started: u32,
    /// How much goes wrong, in a hundred things that happen.
    roughness: usize,
}

/// What the store takes from the machine.
pub(super) fn outside(machine: &Machine) -> Outside {
    let (clock, dice) = (machine.clone(), machine.clone());
    Outside {
        now_ms: Arc::new(move || clock.now_ms()),
        random_bytes: Arc::new(move || {
            let mut bytes = [0; 32];
            for half in bytes.chunks_exact_mut(16) {
                half.copy_from_slice(&dice.bits().to_le_bytes());
            }
            Ok(bytes)
        }),
    }
}

impl World {
    pub(super) fn new(seed: u64) -> Self {
        let machine = Machine::new(seed);
        let pick = |of: [u32; 4]| of.get(machine.below(4)).copied().unwrap_or(u32::MAX);
        let options = Options {
            session_max: u64::from(pick([2_000, 8_000, 30_000, u32::MAX])),
            runs_per_minute: pick([6, 60, u32::MAX, u32::MAX]),
            snapshot_every: pick([5, 40, 2_000, 2_000]) as usize,
            retention: Retention { runs_max: pick([1, 3, 10_000, 10_000]), ..RETENTION },
            trouble: |what| TROUBLE.with_borrow_mut(|told| told.push(what.to_owned())),
            ..Options::default()
        };
        let control = Control::new(outside(&machine));
        control.tell_later();
        let roughness = [0, 10, 20, 40].get(machine.below(4)).copied().unwrap_or_default();
        let seats = 1 + machine.below(3);
        let mut world = Self {
            control,
            catalog: Arc::new(Catalog::of_tree(workflows::tree(), workflows::types())),
            book: Book::default(),
            counts: Counts::new(),
            weather: Weather::default(),
            owners: Owners::default(),
            forgot: Arc::default(),
            timetable: watch::Sender::new(ticks::timetable()),
            seats: Vec::new(),
            options,
            started: 0,
            roughness,
            machine,
        };
        for _ in 0..seats {
            // Of several at least one is a server.
            let is_server = world.seats.is_empty() || world.machine.percent(60);
            world.seats.push(Seat { process: Process::WORLD, engine: None, is_server });
        }
        (0..seats).for_each(|seat| world.start(seat));
        world
    }

    fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    /// Starts a process.
    fn start(&mut self, seat: usize) {
        self.started += 1;
        let process = Process(self.started);
        let (machine, book) = (self.machine.clone(), self.book.clone());
        let around = (&self.book, &self.weather, &self.owners);
        let act = Act { machine: machine.clone(), process, book };
        let (forgot, weather) = (Arc::clone(&self.forgot), self.weather.clone());
        let environment = People { machine: machine.clone(), forgot, weather };
        let parts = Parts {
            host: SimHost::shared(machine.clone(), process),
            store: shelf::store(&self.control, &machine, process, around),
            catalog: Arc::clone(&self.catalog),
            types: workflows::types(),
            performers: Performers::new(vec![Arc::new(act)]),
            environment: Arc::new(environment),
            evaluator: Arc::new(NoEvaluator),
            rights: Arc::new(cairn_engine::rights::NoTokens),
        };
        let engine = Automations::new(parts, self.options.clone());
        let timetable = self.timetable.subscribe();
        let Some(seat) = self.seats.get_mut(seat) else { return };
        if seat.is_server {
            let looking = engine.clone();
            machine.spawn(process, Box::pin(async move { looking.look_after_all().await }));
            let following = engine.clone();
            let follow = async move { drop(following.follow_others().await) };
            machine.spawn(process, Box::pin(follow));
            machine.spawn(process, ticks::keep(engine.clone(), timetable));
        }
        *seat = Seat { process, engine: Some(engine), is_server: seat.is_server };
    }

    /// Plays the world to its end.
    pub(super) fn play(&mut self) {
        let deeds = 15 + self.machine.below(75);
        for _ in 0..deeds {
            match self.machine.percent(self.roughness) {
                true => self.something_goes_wrong(),
                false => self.somebody_asks(),
            }
            let pause = [1, 20, 200, 3_000].get(self.machine.below(4)).copied().unwrap_or(1);
            if !self.pass(Duration::from_millis(self.machine.below(pause) as u64)) {
                return;
            }
        }
        self.calm_down();
    }

    /// Lets time pass; says no when something was found, or nothing ends.
    fn pass(&mut self, pause: Duration) -> bool {
        let until = self.machine.now() + pause;
        if !self.machine.play(until, POLLS_MAX) {
            self.book.violation("the world does not come to rest".to_owned());
        }
        if self.machine.panics() > 0 {
            self.book.violation("a task panicked".to_owned());
        }
        self.book.open().violations.is_empty()
    }

    /// Does something in a process, if it is there.
    fn within(&self, seat: usize, deed: impl FnOnce(Automations) -> BoxFuture<()>) {
        let Some(Seat { process, engine: Some(engine), .. }) = self.seats.get(seat) else {
            return;
        };
        self.machine.spawn(*process, deed(engine.clone()));
    }

    fn somebody_asks(&mut self) {
        let seat = self.machine.below(self.seats.len());
        match self.machine.below(24) {
            0..=10 => self.ask_for_run(seat),
            11..=13 => self.cancel(seat),
            14 | 15 => self.janitor(seat, false),
            16 => self.pause(seat),
            17 => self.resume(seat),
            18 => self.fork(seat),
            19 => self.tidy(seat),
            20 | 21 => self.import(seat),
            22 => self.replay(seat),
            _ => self.look(seat),
        }
    }

    fn ask_for_run(&mut self, seat: usize) {
        let asked: Vec<&Written> = workflows::ALL
            .iter()
            .filter(|w| !["project.oops", workflows::TICKS].contains(&w.id))
            .collect();
        let Some(written) = asked.get(self.machine.below(asked.len())) else { return };
        let keyed = written.has_trigger && self.machine.percent(80);
        let key = keyed.then(|| format!("k{}", self.machine.below(12)));
        let trigger = if keyed { "m".parse().ok() } else { None };
        let workflow = written.id.to_owned();
        let slot = (workflow.clone(), key.clone().unwrap_or_default());
        let kind = "manual".to_owned();
        let event = TriggerEvent { payload: json!({}), kind, ..TriggerEvent::default() };
        let (key, roles) = (key.clone(), Roles::Any);
        let by = "somebody".into();
        let request = RunRequest { workflow, trigger, key, event, depth: 0, by, roles };
        self.count(if keyed { "asked with a key" } else { "asked without a key" });
        let book = self.book.clone();
        let number = {
            let mut book = book.open();
            let told = book.keys.entry(slot.clone()).or_default();
            told.push(Told::Nothing);
            told.len() - 1
        };
        let waits = self.machine.percent(50);
        let process = self.seats.get(seat).map_or(Process::WORLD, |seat| seat.process);
        self.within(seat, |engine| {
            Box::pin(async move {
                let asked = engine.submit(request).await;
                let run = asked.as_ref().ok().map(|asked| asked.run);
                let told = match asked {
                    Ok(asked) => {
                        book.open().promised.insert(asked.run);
                        Told::Accepted(asked.run)
                    }
                    Err(error) if is_refusal(error.code()) => Told::Refused(error.to_string()),
                    Err(_) => Told::Nothing,
                };
                if let Some(place) =
                    book.open().keys.get_mut(&slot).and_then(|told| told.get_mut(number))
                {
                    *place = told;
                }
                if let Some(run) = run.filter(|_| waits) {
                    book.open().waiting.insert((process, run));
                    // Who cannot be told now is not left to wait.
                    drop(engine.ended(run).await);
                    book.open().waiting.remove(&(process, run));
                }
            })
        });
    }

    /// A run that is not over, by chance; rarely one that is.
    fn some_run(&self) -> Option<RunId> {
        let book = self.book.open();
        let over = self.machine.percent(10);
        let open: Vec<RunId> = book
            .runs
            .iter()
            .filter(|(_, run)| over || run.end.is_none())
            .map(|(id, _)| *id)
            .collect();
        open.get(self.machine.below(open.len())).copied()
    }

    /// A name under which somebody says one thing.
    fn name(&self) -> String {
        format!("somebody {}", self.machine.bits())
    }

    fn cancel(&mut self, seat: usize) {
        let Some(run) = self.some_run() else { return };
        let queued = self.book.open().runs.get(&run).is_some_and(|run| !run.is_started);
        self.count(if queued { "cancelled while queued" } else { "cancelled" });
        let (book, name) = (self.book.clone(), self.name());
        self.within(seat, |engine| {
            Box::pin(async move {
                let said = engine.cancel(run, name.as_str(), "enough").await;
                // Of two that cancel one run, the second may be told that it is done.
                book.open().told(run, &said);
                if said.is_err() {
                    book.open().said(&name, run, &said);
                }
                if said.is_ok() {
                    book.open().cancelled.insert(run);
                }
            })
        });
    }

    fn pause(&mut self, seat: usize) {
        let Some(run) = self.some_run() else { return };
        self.count("paused");
        let (book, name) = (self.book.clone(), self.name());
        self.within(seat, |engine| {
            Box::pin(async move {
                let said = engine.pause(run, name.as_str()).await;
                book.open().said(&name, run, &said);
            })
        });
    }

    fn resume(&mut self, seat: usize) {
        let Some(run) = self.some_run() else { return };
        self.count("resumed");
        let (book, name) = (self.book.clone(), self.name());
        self.within(seat, |engine| {
            Box::pin(async move {
                let said = engine.resume(run, name.as_str()).await;
                book.open().said(&name, run, &said);
            })
        });
    }

    fn fork(&mut self, seat: usize) {
        let Some(run) = self.some_run() else { return };
        self.count("forked");
        let book = self.book.clone();
        let (place, answers) = (self.machine.below(4), self.machine.percent(50));
        self.within(seat, |engine| {
            Box::pin(async move {
                let Ok((_, state)) = engine.state(run).await else { return };
                let step = state.steps.keys().nth(place).or(state.steps.keys().next()).cloned();
                let Some(step) = step else { return };
                let from = ForkPoint { run, step, changes: Vec::new(), on_new_plan: false };
                // Who may not answer is called so, and never vouches for anything.
                let name = if answers { "somebody" } else { NOBODY };
                let asker = Forker { by: name.into(), roles: Roles::Any, answers };
                let forked = engine.fork(&from, &asker).await;
                book.open().told(run, &forked);
                if let Ok(forked) = forked {
                    book.open().promised.insert(forked.run);
                }
            })
        });
    }

    fn replay(&mut self, seat: usize) {
        let Some(run) = self.some_run() else { return };
        self.count("replayed");
        let book = self.book.clone();
        self.within(seat, |engine| {
            Box::pin(async move {
                let asked = engine.replay(run, "somebody", Roles::Any).await;
                book.open().told(run, &asked);
                if let Ok(asked) = asked {
                    book.open().promised.insert(asked.run);
                }
            })
        });
    }

    /// A session in which something was or is asked of people is taken along and brought back,
    /// as somebody would who has seen it elsewhere. Now and then it is trusted, and resumed.
    fn import(&mut self, seat: usize) {
        let asked = {
            let book = self.book.open();
            let asks = book.runs.values().filter(|run| run.workflow == workflows::ASKS);
            asks.map(|run| run.session).collect::<Vec<_>>()
        };
        let Some(session) = asked.get(self.machine.below(asked.len())).copied() else { return };
        self.count("imported");
        let (store, book) = (self.control.store(0), self.book.clone());
        let (trusts, lies) = (self.machine.percent(80), self.machine.percent(50));
        let number = u128::from(self.counts.get("imported").copied().unwrap_or_default());
        self.within(seat, |engine| {
            Box::pin(async move {
                let (exported_at, app_version) = (String::new(), String::new());
                let info =
                    ExportInfo { bundle_id: BundleId::from_bits(number), exported_at, app_version };
                // It may be gone.
                let bytes = match lies {
                    true => forged(&store, session, info).await,
                    false => bundle::export(&store, session, info).await.ok(),
                };
                let Some(bytes) = bytes else { return };
                let Ok(imported) = engine.import(&bytes, "somebody").await else { return };
                match engine.import(&bytes, "somebody").await {
                    Ok(again) if !again.again || again.session != imported.session => {
                        book.violation(format!(
                            "one bundle is {} and {}",
                            imported.session, again.session
                        ));
                    }
                    _ => {}
                }
                if !trusts {
                    return;
                }
                let (by, root) = ("somebody".into(), imported.root);
                let truster = Truster { by, root, workspace: None };
                let Ok(claims) = engine.trust(imported.session, &truster).await else { return };
                for run in claims.runs {
                    drop(engine.resume(run.run, "somebody").await);
                }
            })
        });
    }

    /// Lets go of runs whose time is over, and of sessions that hold no others.
    fn tidy(&mut self, seat: usize) {
        self.count("tidied");
        let now_ms = self.machine.now_ms();
        self.within(seat, |engine| Box::pin(async move { drop(engine.tidy(now_ms).await) }));
    }

    fn look(&mut self, seat: usize) {
        self.within(seat, |engine| {
            Box::pin(async move { drop(engine.list(&cairn_engine::flow::Filter::default()).await) })
        });
    }

    /// Notes which runs a process lists, and how they are.
    fn note_list(&mut self, seat: usize) {
        let book = self.book.clone();
        self.within(seat, |engine| {
            Box::pin(async move {
                let filter = cairn_engine::flow::Filter::default();
                let Ok(listed) = engine.list(&filter).await else { return };
                let own = listed.iter().filter(|run| !run.is_paper);
                let listed = own.map(|run| (run.run, run.status)).collect();
                book.open().listed.push(listed);
            })
        });
    }

    /// Answers what is asked of people; at the end also what holds runs up.
    fn janitor(&mut self, seat: usize, everything: bool) {
        self.count("answered");
        let open: Vec<RunId> = {
            let book = self.book.open();
            book.runs.iter().filter(|(_, run)| run.end.is_none()).map(|(id, _)| *id).collect()
        };
        let (machine, book) = (self.machine.clone(), self.book.clone());
        self.within(seat, |engine| {
            Box::pin(async move {
                for run in open {
                    let Ok((_, state)) = engine.state(run).await else { continue };
                    tend(&engine, (&machine, &book), run, state, everything).await;
                }
            })
        });
    }

    fn something_goes_wrong(&mut self) {
        let seat = self.machine.below(self.seats.len());
        let Some(process) = self.seats.get(seat).map(|seat| seat.process) else { return };
        match self.machine.below(20) {
            0..=2 => self.crash(seat),
            3 | 4 => {
                self.count("process stopped");
                self.strike(process, "process stopped");
                self.machine.stop(process, true);
            }
            5 => self.machine.stop(process, false),
            6 | 7 => self.take_lease_away(process),
            8..=16 => self.bad_weather(),
            17 => {
                self.count("clock jumps");
                self.weather.hit("clock jumps");
                let far = [-3_600_000, -700, 5_000, 600_000];
                self.machine.jump(far.get(self.machine.below(4)).copied().unwrap_or_default());
            }
            18 => {
                self.count("setting missing");
                let forgot = !self.forgot.load(Ordering::Relaxed);
                self.forgot.store(forgot, Ordering::Relaxed);
            }
            _ => self.stop_well(seat),
        }
    }

    /// Something is wrong with the store for a while, in which people ask for this and that.
    fn bad_weather(&mut self) {
        let Some((fault, name)) = Fault::ALL.get(self.machine.below(Fault::ALL.len())) else {
            return;
        };
        self.count(name);
        self.weather.begin(*fault);
        // Documents are replaced when the clock fires, which takes a while.
        let most = if *fault == Fault::Document { 3_000 } else { 400 };
        for _ in 0..1 + self.machine.below(4) {
            self.somebody_asks();
            let pause = 1 + self.machine.below(most) as u64;
            if !self.pass(Duration::from_millis(pause)) {
                break;
            }
        }
        self.weather.clear(Some(*fault));
    }

    /// Counts what happens to a process as something that went wrong, if it owns anything.
    fn strike(&self, process: Process, what: &'static str) {
        if !self.owners.of(process).is_empty() {
            self.weather.hit(what);
        }
    }

    fn crash(&mut self, seat: usize) {
        self.count("process killed");
        if let Some(place) = self.seats.get(seat) {
            self.strike(place.process, "process killed");
        }
        let Some(place) = self.seats.get_mut(seat) else { return };
        let engine = place.engine.take();
        self.machine.crash(place.process);
        drop(engine);
        if self.machine.percent(70) {
            let pause = self.machine.below(2_000) as u64;
            if self.pass(Duration::from_millis(pause)) {
                self.start(seat);
            }
        } else {
            self.start(seat);
        }
    }

    fn stop_well(&mut self, seat: usize) {
        self.count("process ended well");
        if let Some(place) = self.seats.get(seat) {
            self.strike(place.process, "process ended well");
        }
        self.within(seat, |engine| {
            Box::pin(async move { drop(engine.stop(Duration::from_secs(5)).await) })
        });
        self.pass(Duration::from_secs(6));
        self.crash(seat);
    }

    /// Somebody removes the lock file of a session, or of all that a process has, and another
    /// process takes what it can.
    fn take_lease_away(&mut self, process: Process) {
        let mut sessions = self.owners.of(process);
        let all = self.machine.percent(50);
        if !all {
            let one = sessions.get(self.machine.below(sessions.len())).copied();
            sessions = one.into_iter().collect();
        }
        for session in &sessions {
            self.count("lease lost");
            if self.control.expire(*session).is_some() {
                self.book.open().replaced.insert(process);
            }
        }
        if all {
            let seat = self.machine.below(self.seats.len());
            self.within(seat, |engine| Box::pin(async move { drop(engine.recover().await) }));
        }
    }

    /// Everything works again, and people do what is asked of them: every run comes to its end.
    fn calm_down(&mut self) {
        self.weather.clear(None);
        // The clock starts nothing more, or it would never be quiet.
        self.timetable.send_replace(Timetable::default());
        self.forgot.store(false, Ordering::Relaxed);
        self.machine.correct_clock();
        for seat in 0..self.seats.len() {
            let Some(place) = self.seats.get(seat) else { continue };
            self.machine.stop(place.process, false);
            if place.engine.is_none() {
                self.start(seat);
            }
        }
        for _ in 0..60 {
            if !self.pass(Duration::from_secs(10)) {
                return;
            }
            if self.book.open().all_over() {
                // Whoever is told of a failure begins a run of its own.
                self.pass(Duration::from_secs(30));
                if self.book.open().all_over() {
                    (0..self.seats.len()).for_each(|seat| self.note_list(seat));
                    self.pass(Duration::from_secs(1));
                    return self.nobody_waits();
                }
            }
            (0..self.seats.len()).for_each(|seat| self.janitor(seat, true));
        }
        let open: Vec<String> = {
            let book = self.book.open();
            let open = book.runs.iter().filter(|(_, run)| run.end.is_none() && !run.is_imported);
            open.map(|(id, run)| format!("{id} of {}", run.workflow)).collect()
        };
        self.book.violation(format!("runs that never end: {}", open.join(", ")));
    }

    /// Whoever waited for a run, and is still there, was told of its end.
    fn nobody_waits(&self) {
        let alive = |process: &Process| self.seats.iter().any(|seat| seat.process == *process);
        let mut book = self.book.open();
        let waiting = book.waiting.iter().filter(|(process, _)| alive(process));
        let waiting: Vec<String> =
            waiting.map(|(process, run)| format!("{process:?} for {run}")).collect();
        if !waiting.is_empty() {
            book.violations.push(format!("not told of an end: {}", waiting.join(", ")));
        }
    }

    /// What went wrong for somebody, and how often.
    pub(super) fn hits(&self) -> Counts {
        self.weather.hits()
    }

    /// Everything that is in the store; none when it cannot be read.
    pub(super) fn read_back(&mut self) -> Option<Vec<Event>> {
        let store = self.control.store(0);
        let read = Arc::new(Mutex::new(None));
        let to = Arc::clone(&read);
        self.machine.spawn(
            Process::WORLD,
            Box::pin(async move {
                let mut all = Vec::new();
                let Ok(sessions) = store.sessions.list().await else { return };
                for session in sessions {
                    let Ok(events) = store.log.read(session, EventIndex(0)).await else { return };
                    all.extend(events);
                }
                *to.lock().unwrap_or_else(PoisonError::into_inner) = Some(all);
            }),
        );
        if !self.pass(Duration::from_millis(1)) {
            return None;
        }
        let read = read.lock().unwrap_or_else(PoisonError::into_inner).take();
        if read.is_none() {
            self.book.violation("the store cannot be read".to_owned());
        }
        read
    }

    /// How many processes there were at once.
    pub(super) const fn seats(&self) -> usize {
        self.seats.len()
    }

    /// Ends all processes, so that nothing of the world is left.
    pub(super) fn end(&mut self) {
        for seat in &mut self.seats {
            let engine = seat.engine.take();
            self.machine.crash(seat.process);
            drop(engine);
        }
    }
}

/// Whether an error says that nothing comes of what was asked, now or later. One alone does not.
pub(super) fn is_refusal(code: &str) -> bool {
    code != "RUN_IN_DOUBT"
}

/// The bundle of a session whose history says other things than happened: what was under way was
/// given something else, and what was asked is approved by nobody as soon as a timer fires.
async fn forged(store: &Store, session: SessionId, info: ExportInfo) -> Option<Vec<u8>> {
    let (mut events, blobs) = bundle::whole(store, session).await.ok()?;
    for event in &mut events {
        match &mut event.data {
            EventData::StepStarted(step) => {
                step.input = Payload::inline(json!({"say": EVIL})).into();
            }
            EventData::TaskOpened(task) => {
                let asked = json!({
                    "prompt": EVIL, "expires_sec": 1, "on_expire": "approve",
                    "approves_unattended": true,
                });
                task.request = Payload::inline(asked);
            }
            EventData::TimerSet(timer) => timer.due_ms = 1,
            _ => {}
        }
    }
    bundle::as_told(session, (events, blobs), info).ok()
}

/// Does what a run asks of people.
async fn tend(
    engine: &Automations,
    (machine, book): (&Machine, &Book),
    run: RunId,
    state: RunState,
    everything: bool,
) {
    for task in state.tasks.keys() {
        let verdict = if machine.percent(70) { Verdict::Approved } else { Verdict::Rejected };
        let answer = Answer { verdict, values: json!({}) };
        let name = format!("somebody {}", machine.bits());
        let said = engine.answer(run, *task, name.as_str(), answer).await;
        book.open().said(&name, run, &said);
    }
    let unknown = state.steps.iter().filter(|(_, step)| step.status == StepStatus::Unknown);
    for (instance, _) in unknown {
        let all = [InterruptDecision::Retry, InterruptDecision::Fail, InterruptDecision::Skip];
        let decision = all.get(machine.below(3)).copied().unwrap_or(InterruptDecision::Fail);
        let answers = machine.percent(70);
        let name = format!("{} {}", if answers { "somebody" } else { NOBODY }, machine.bits());
        let decider = Decider { by: name.as_str().into(), answers };
        let said = engine.resolve(run, instance.clone(), decider, decision).await;
        book.open().said(&name, run, &said);
    }
    if state.paused && everything {
        drop(engine.resume(run, "somebody").await);
    }
}
