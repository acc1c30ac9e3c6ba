//! What keeps a run at a step that the engine performs, and how it goes on from there.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use cairn_core::catalog::StepType;
use cairn_core::event::guided::Autonomy;
use cairn_engine::guided::Guide;
use cairn_engine::guided::answer::Answer;
use cairn_engine::guided::ask::{Continue, Start, Wanted};
use cairn_engine::performer::{Ctx, Failed, Outcome, Performer, Performers};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::world::{NOTES, World, ack, back, blockers, prompt, step};

/// A command that fails until it was run often enough.
struct Command {
    runs: Arc<AtomicUsize>,
    passes_at: usize,
}

#[async_trait]
impl Performer for Command {
    fn kind(&self) -> StepType {
        crate::performed::kind("shell")
    }

    async fn perform(&self, _: Value, _: &Ctx) -> Result<Outcome, Failed> {
        let run = self.runs.fetch_add(1, Ordering::SeqCst) + 1;
        let ok = run >= self.passes_at;
        let notes = format!("run {run} {}\n\nstdout: 2 of 3 tests", if ok { "ok" } else { "bad" });
        Ok(Outcome::new(json!({"ok": ok, "run": run}), notes))
    }
}

/// A guide whose commands pass from this run on, and how often they were run.
fn running(world: &World, passes_at: usize) -> (Guide, Arc<AtomicUsize>) {
    let runs = Arc::new(AtomicUsize::new(0));
    let command = Command { runs: Arc::clone(&runs), passes_at };
    let performers = Performers::new(vec![Arc::new(command)]);
    (world.performing(&world.store, performers), runs)
}

async fn start(guide: &Guide, autonomy: Autonomy) -> Answer {
    let preferences = Wanted { autonomy: Some(autonomy), risk_policy: None };
    let workflow = "project.kept".to_owned();
    guide.start(Start { workflow, preferences, ..Start::default() }).await.unwrap()
}

async fn go(guide: &Guide, token: &str, context: Option<Value>) -> Answer {
    guide.proceed(Continue { context, ..ack(token, NOTES, Vec::new()) }).await.unwrap()
}

fn workflow(steps: &str) -> World {
    let head = "id: project.kept\nname: Kept\ndescription: Waits.\nversion: 1.0.0\nsteps:\n";
    World::of(&format!("{head}{steps}"))
}

const LISTED: &str = "
  - {id: begin, title: Begin, prompt: Begin.}
  - {id: check, title: Check, run: {type: shell, command: make}}
  - id: each
    type: loop
    title: Each
    loop: {type: forEach, items: files, maxIterations: 5}
    body: [{id: read, title: Read, prompt: 'Read {{currentItem}} after run {{check.run}}.'}]
  - {id: end, title: End, prompt: End.}
";

#[tokio::test]
async fn a_list_that_is_missing_behind_the_engines_step_is_asked_for() {
    for autonomy in [Autonomy::Guided, Autonomy::FullAutoStopOnUserDeps] {
        let world = workflow(LISTED);
        let (guide, runs) = running(&world, 1);
        let first = start(&guide, autonomy).await;
        let call = ack(&first.tokens.continue_token, NOTES, Vec::new());
        let kept = guide.proceed(call.clone()).await.unwrap();
        assert_eq!(blockers(&kept), ["INVARIANT_VIOLATION"]);
        assert!(kept.blockers[0].message.contains("`each` needs a list"), "{:?}", kept.blockers);
        assert_eq!(guide.proceed(call).await.unwrap(), kept, "a repetition tells the same");
        let view = world.view(first.session.unwrap().session).await;
        assert_eq!(
            view.gaps.of_run(first.session.unwrap().run).count(),
            0,
            "no gap where somebody can mend it"
        );

        let token = kept.retry_continue_token.unwrap();
        let again = go(&guide, &token, None).await;
        assert_eq!(blockers(&again), ["INVARIANT_VIOLATION"]);
        let token = again.retry_continue_token.unwrap();
        let read = go(&guide, &token, Some(json!({"files": ["a.rs"]}))).await;
        assert_eq!((step(&read), read.blockers.len()), ("read", 0));
        assert!(prompt(&read).contains("Read a.rs after run 1."), "{}", prompt(&read));
        assert_eq!(runs.load(Ordering::SeqCst), 1, "what was done well is not done again");
    }
}

#[tokio::test]
async fn whoever_comes_back_to_such_a_step_is_told_how_it_stands() {
    let world = workflow(LISTED);
    let (guide, runs) = running(&world, 1);
    let first = start(&guide, Autonomy::Guided).await;
    let kept = go(&guide, &first.tokens.continue_token, None).await;
    let writes = world.writes();
    let here = guide.proceed(back(&kept.tokens.continue_token)).await.unwrap();
    assert_eq!(step(&here), "check");
    assert!(prompt(&here).contains("run 1 ok"), "{}", prompt(&here));
    assert!(prompt(&here).contains("the engine does not run this again"), "{}", prompt(&here));
    let context = Some(json!({"files": ["a.rs"]}));
    assert_eq!(world.writes(), writes);
    assert_eq!(step(&go(&guide, &here.tokens.continue_token, context).await), "read");
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_run_that_never_stops_tells_a_gap_there_and_goes_on() {
    let world = workflow(LISTED);
    let (guide, _) = running(&world, 1);
    let first = start(&guide, Autonomy::FullAutoNeverStop).await;
    let end = go(&guide, &first.tokens.continue_token, None).await;
    assert_eq!((step(&end), end.blockers.len()), ("end", 0));
    assert!(end.warnings.iter().any(|warning| warning.code.name() == "gap_recorded"));
}

#[tokio::test]
async fn a_run_that_begins_with_the_engine_can_be_kept_at_once() {
    let world = workflow(LISTED.split_once("Begin.}\n").unwrap().1);
    let (guide, _) = running(&world, 1);
    let kept = start(&guide, Autonomy::Guided).await;
    assert_eq!(blockers(&kept), ["INVARIANT_VIOLATION"]);
    let token = kept.retry_continue_token.unwrap();
    let read = go(&guide, &token, Some(json!({"files": ["b.rs"]}))).await;
    assert_eq!(step(&read), "read");
}

const VERIFIED: &str = "
  - {id: build, title: Build, prompt: Build it., verification: {command: make test}}
  - {id: end, title: End, prompt: End.}
";

#[tokio::test]
async fn a_verification_that_fails_keeps_the_run_until_it_passes() {
    let world = workflow(VERIFIED);
    let (guide, runs) = running(&world, 3);
    let build = start(&guide, Autonomy::Guided).await;
    let mut kept = go(&guide, &build.tokens.continue_token, None).await;
    for run in 1..=2 {
        assert_eq!(blockers(&kept), ["INVALID_REQUIRED_OUTPUT"]);
        let message = &kept.blockers[0].message;
        assert!(message.contains(&format!("run {run} bad")), "{message}");
        let token = kept.retry_continue_token.unwrap();
        let here = guide.proceed(back(&token)).await.unwrap();
        assert!(prompt(&here).contains("2 of 3 tests"), "{}", prompt(&here));
        kept = go(&guide, &token, None).await;
    }
    assert_eq!((step(&kept), kept.blockers.len()), ("end", 0));
    assert!(prompt(&kept).contains("run 3 ok"), "{}", prompt(&kept));
    assert_eq!(runs.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn a_verification_that_fails_is_a_gap_in_a_run_that_never_stops() {
    let world = workflow(VERIFIED);
    let (guide, _) = running(&world, 9);
    let build = start(&guide, Autonomy::FullAutoNeverStop).await;
    let end = go(&guide, &build.tokens.continue_token, None).await;
    assert_eq!((step(&end), end.blockers.len()), ("end", 0));
    let gap = end.warnings.iter().find(|warning| warning.code.name() == "gap_recorded").unwrap();
    assert!(gap.message.contains("`build.verification` did not pass"), "{}", gap.message);
}

#[tokio::test]
async fn a_verification_that_the_agent_looks_at_is_the_agents_to_judge() {
    let told = "{command: make test, prompt: Judge what came of it.}";
    let world = workflow(&VERIFIED.replace("{command: make test}", told));
    let (guide, _) = running(&world, 9);
    let build = start(&guide, Autonomy::Guided).await;
    let review = go(&guide, &build.tokens.continue_token, None).await;
    assert_eq!((step(&review), review.blockers.len()), ("build.verification.review", 0));
}

/// A command that waits to be let go.
struct Waiting {
    begun: Arc<Semaphore>,
    over: Arc<Semaphore>,
}

#[async_trait]
impl Performer for Waiting {
    fn kind(&self) -> StepType {
        crate::performed::kind("shell")
    }

    async fn perform(&self, _: Value, _: &Ctx) -> Result<Outcome, Failed> {
        self.begun.add_permits(1);
        self.over.acquire().await.unwrap().forget();
        Ok(Outcome::new(json!({"ok": true}), "done"))
    }
}

#[tokio::test]
async fn coming_back_does_not_wait_for_a_long_step_of_the_engine() {
    let world = workflow(VERIFIED);
    let (begun, over) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let waiting = Waiting { begun: Arc::clone(&begun), over: Arc::clone(&over) };
    let guide = world.performing(&world.store, Performers::new(vec![Arc::new(waiting)]));
    let build = start(&guide, Autonomy::Guided).await;
    let token = build.tokens.continue_token.clone();
    let at_work = tokio::spawn({
        let (guide, token) = (guide.clone(), token.clone());
        async move { go(&guide, &token, None).await }
    });
    begun.acquire().await.unwrap().forget();
    let writes = world.writes();
    let here = guide.proceed(back(&token)).await.unwrap();
    assert_eq!(step(&here), "build");
    assert_eq!(here.branches.len(), 1, "what was recorded meanwhile is seen");
    assert_eq!(world.writes(), writes);
    over.add_permits(1);
    assert_eq!(step(&at_work.await.unwrap()), "end");
}

/// Says that the run is over.
struct Ends;

#[async_trait]
impl Performer for Ends {
    fn kind(&self) -> StepType {
        crate::performed::kind("end")
    }

    async fn perform(&self, config: Value, _: &Ctx) -> Result<Outcome, Failed> {
        let message = config.get("message").and_then(Value::as_str).unwrap().to_owned();
        Ok(Outcome { ends: true, ..Outcome::new(json!({}), message) })
    }
}

#[tokio::test]
async fn whoever_is_at_the_end_hears_why_the_engine_ended_it() {
    let world = workflow(
        "
  - {id: begin, title: Begin, prompt: Begin.}
  - {id: stop, title: Stop, run: {type: end, message: 'Nothing is left of {{ticket}}.'}}
  - {id: never, title: Never, prompt: Never.}
",
    );
    let guide = world.performing(&world.store, Performers::new(vec![Arc::new(Ends)]));
    let first = start(&guide, Autonomy::Guided).await;
    let end = go(&guide, &first.tokens.continue_token, Some(json!({"ticket": "T-17"}))).await;
    assert!(end.is_complete);
    let told = end.recap.unwrap().text;
    assert!(told.contains("Nothing is left of T-17."), "{told}");
}
