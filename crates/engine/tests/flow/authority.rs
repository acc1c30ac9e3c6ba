//! A forged history on the plan of the one who imports it: it is trusted, resumed and forked, and
//! nothing is done that the plan and this place do not say.

use std::time::Duration;

use cairn_core::event::{Event, EventData};
use cairn_core::id::{BundleId, RunId};
use cairn_core::instance::StepInstanceKey;
use cairn_core::pin::BlobKind;
use cairn_core::projection::run::RunState;
use cairn_core::snapshot::RunSnapshot;
use cairn_core::translate::Blobs;
use cairn_engine::flow::{Automations, ForkPoint, Forker, Roles, Truster};
use cairn_store::bundle::{self, ExportInfo, Imported};
use serde_json::{Value, json};

use crate::forged::{Known, forged};
use crate::recovery::left;
use crate::world::{World, request};

const SAYS: &str = "name: w
env: [{ name: WHO, default: plan }]
graph:
  nodes:
    - { id: a, type: log, message: first, next: hold }
    - { id: hold, type: log, message: hold, next: last }
    - { id: last, type: log, message: 'to {{ env.WHO }} at {{ run.started_at }}' }
";
const ASKS: &str = "
    { id: ask, type: human, prompt: Pay?, who: [ada], cases: { approved: pay, rejected: end } }
    { id: pay, type: log, message: pay }
";

fn known(run: RunId) -> Known {
    let session = cairn_core::id::SessionId::from_bits(1);
    Known { session, desk: session, run, over: run, file: String::new() }
}

fn info() -> ExportInfo {
    ExportInfo {
        bundle_id: BundleId::from_bits(1),
        exported_at: "2026-01-01T00:00:00Z".into(),
        app_version: "0.0.0".into(),
    }
}

/// Takes a bundle in, and trusts it.
async fn trusted(engine: &Automations, bytes: &[u8]) -> Imported {
    let imported = engine.import(bytes, "ada").await.unwrap();
    let truster = Truster { by: "ada".into(), root: imported.root, workspace: None };
    engine.trust(imported.session, &truster).await.unwrap();
    imported
}

async fn ended(engine: &Automations, run: RunId) -> Value {
    let ended = tokio::time::timeout(Duration::from_secs(20), engine.ended(run)).await;
    ended.unwrap().unwrap().result
}

fn each(events: &mut [Value], kind: &str, change: impl Fn(&mut Value)) {
    let of_kind = events.iter_mut().filter(|event| event["kind"] == kind);
    of_kind.for_each(|event| change(&mut event["data"]));
}

// case: bundle.no-authority
#[tokio::test]
async fn a_forged_history_is_resumed_as_the_plan_and_this_place_say() {
    let (liar, there) = (World::new(&[("w", SAYS)]), World::new(&[("w", SAYS)]));
    let run = left(&liar, "w").await;
    let lie = |events: &mut Vec<Value>, _: &Known| {
        each(events, "step_started", |data| {
            data["input"] = json!({"inline": {"message": "evil"}});
        });
        each(events, "run_queued", |data| {
            data["input"]["inline"]["env"] = json!({"WHO": "evil"});
            data["input"]["inline"]["event"]["at"] = "evil".into();
            data["by"] = "root".into();
        });
    };
    let bytes = forged(&liar, run, &known(run), lie).await.unwrap();
    let engine = there.engine();
    trusted(&engine, &bytes).await;
    engine.resume(run, "eve").await.unwrap();
    let said = ended(&engine, run).await;
    let said = said["message"].as_str().unwrap().to_owned();
    assert!(said.starts_with("to plan at 20") && !said.contains("evil"), "{said}");
    let past = engine.past(run).await.unwrap();
    let paused = past.events.iter().position(|e| matches!(e.data, EventData::RunPaused(_)));
    let here = &past.events[paused.unwrap()..];
    let text: String =
        here.iter().map(|e| String::from_utf8(e.encode().unwrap()).unwrap()).collect();
    assert!(!text.contains("evil"), "{text}");
    assert_eq!(past.state.queued.unwrap().by.as_deref(), Some("eve"), "whoever resumed it");
    // A fork of it is given what is said here as well.
    let step: StepInstanceKey = "last".parse().unwrap();
    let from = ForkPoint { run, step, changes: Vec::new(), on_new_plan: false };
    let fork = engine.fork(&from, &Forker::local("ada")).await.unwrap();
    let said = ended(&engine, fork.run).await;
    assert!(said["message"].as_str().unwrap().starts_with("to plan at 20"), "{said}");
}

/// The events and blobs of a session in which a question is open.
async fn asking(world: &World) -> (RunId, Vec<Event>, Blobs) {
    let engine = world.engine();
    let run = engine.submit(request("w", json!({}))).await.unwrap().run;
    while engine.state(run).await.unwrap().1.tasks.is_empty() {
        tokio::task::yield_now().await;
    }
    let session = engine.past(run).await.unwrap().summary.session;
    engine.stop(Duration::from_secs(5)).await;
    let (events, blobs) = bundle::whole(&world.store(), session).await.unwrap();
    (run, events, blobs)
}

// case: bundle.no-authority
#[tokio::test]
async fn a_run_that_is_over_elsewhere_is_forked_with_its_questions() {
    let lies: [fn(&mut Vec<Value>); 2] = [
        |events| {
            crate::forged::passed_over(
                events,
                "step_skipped",
                &json!({"instance": "ask", "reason": "condition"}),
            );
        },
        |events| {
            let error = json!({"code": "X_Y", "message": "no"});
            let failed = json!({"attempt": 0, "durationMs": 1, "error": error, "instance": "ask", "then": "skip"});
            crate::forged::passed_over(events, "step_failed", &failed);
        },
    ];
    for (at, lie) in lies.into_iter().enumerate() {
        let (liar, there) = (World::new(&[("w", ASKS)]), World::new(&[("w", ASKS)]));
        let (run, _, _) = asking(&liar).await;
        let over = move |events: &mut Vec<Value>, known: &Known| {
            lie(events);
            let pay =
                json!({"attempt": 0, "durationMs": 1, "instance": "pay", "output": {"inline": {}}});
            crate::forged::insert(events, "step_completed", &pay, Some(known.run));
            let result = json!({"result": {"inline": {}}});
            crate::forged::insert(events, "run_completed", &result, Some(known.run));
        };
        let bytes = forged(&liar, run, &known(run), over).await.unwrap();
        let engine = there.engine();
        trusted(&engine, &bytes).await;
        let step: StepInstanceKey = "pay".parse().unwrap();
        let from = ForkPoint { run, step, changes: Vec::new(), on_new_plan: false };
        let fork = engine.fork(&from, &Forker::local("ada")).await.unwrap();
        while engine.state(fork.run).await.unwrap().1.tasks.is_empty() {
            tokio::task::yield_now().await;
        }
        assert_eq!(there.tries(), Vec::<u32>::new(), "lie {at}: nothing is paid");
    }
}

// case: bundle.no-authority
#[tokio::test]
async fn a_snapshot_from_elsewhere_says_nothing() {
    let (liar, there) = (World::new(&[("w", ASKS)]), World::new(&[("w", ASKS)]));
    let (run, mut events, mut blobs) = asking(&liar).await;
    let session = events[0].session;
    // A state in which the question never was, and what it guards is under way.
    let mut state = RunState::fold(run, &events);
    let hash = state.started.as_ref().unwrap().workflow_hash;
    let mut ask = state.steps.remove(&"ask".parse().unwrap()).unwrap();
    (state.tasks, state.timers) = Default::default();
    ask.status = cairn_core::projection::run::StepStatus::Running;
    ask.waiting_for = None;
    state.steps.insert("pay".parse().unwrap(), ask);
    let through = events.last().unwrap().index;
    let kept = RunSnapshot { base: None, state, through, workflow_hash: hash };
    let bytes = kept.encode().unwrap();
    let taken = cairn_core::event::engine::SnapshotTaken {
        artifacts: Vec::new(),
        snapshot_ref: cairn_core::digest::SnapshotRef(cairn_core::digest::Digest::of(&bytes)),
        through,
    };
    blobs.push((BlobKind::Snapshot, bytes));
    let (id, scope) = (cairn_core::id::EventId::from_bits(77), events.last().unwrap().scope);
    let taken = cairn_core::event::NewEvent { id, scope, data: taken.into() };
    events.push(taken.at(session, through.next()));
    let bytes = bundle::as_told(session, (events, blobs), info()).unwrap();
    let engine = there.engine();
    trusted(&engine, &bytes).await;
    engine.resume(run, "ada").await.unwrap();
    while engine.state(run).await.unwrap().1.tasks.is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(there.tries(), Vec::<u32>::new());
}

/// Two runs of one session say that they are of one file, and only one has its plan.
// case: bundle.no-authority
#[tokio::test]
async fn a_run_does_not_borrow_the_workflow_of_another() {
    let other = "{ id: steal, type: log, message: hold }";
    let liar = World::new(&[("w", SAYS), ("x", other)]);
    let there = World::new(&[("w", SAYS)]);
    let (run, theirs) = (left(&liar, "w").await, left(&liar, "x").await);
    let engine = liar.engine();
    let session_of = |run| {
        let engine = &engine;
        async move { engine.past(run).await.unwrap().summary.session }
    };
    let (session, second) = (session_of(run).await, session_of(theirs).await);
    let (mut events, mut blobs) = bundle::whole(&liar.store(), session).await.unwrap();
    let (others, other_blobs) = bundle::whole(&liar.store(), second).await.unwrap();
    blobs.extend(other_blobs);
    let of_run = others.into_iter().filter(|event| event.scope.run() == Some(theirs));
    for event in of_run {
        let index = cairn_core::id::EventIndex(events.len() as u64);
        let new =
            cairn_core::event::NewEvent { id: event.id, scope: event.scope, data: event.data };
        events.push(new.at(session, index));
    }
    let here = there.home.path().join("workflows/w/workflow.yaml").display().to_string();
    for event in &mut events {
        match &mut event.data {
            EventData::RunStarted(started) => {
                (started.workflow_id, started.workflow_source_ref) =
                    ("project.w".into(), here.clone());
            }
            EventData::RunQueued(queued) => {
                queued.workflow_id = "project.w".into();
                queued.workflow_source_ref = Some(here.clone());
            }
            _ => {}
        }
    }
    let bytes = bundle::as_told(session, (events, blobs), info()).unwrap();
    let engine = there.engine();
    trusted(&engine, &bytes).await;
    for (run, is_ours) in [(run, true), (theirs, false)] {
        let state = engine.state(run).await.unwrap().1;
        let started = state.started.unwrap();
        assert_eq!(started.workflow_source_ref == here, is_ours, "{}", started.workflow_source_ref);
        let queued = state.queued.unwrap().workflow_source_ref;
        assert_eq!(queued.as_deref() == Some(here.as_str()), is_ours, "{queued:?}");
    }
}

/// What a bundle calls a place is no place of this machine, however it is written.
// case: bundle.no-authority
#[tokio::test]
async fn recorded_places_are_nobodys_here() {
    let (liar, there) = (World::new(&[("w", SAYS)]), World::new(&[("w", SAYS)]));
    let run = left(&liar, "w").await;
    let places = [
        "/root/.ssh",
        "../../etc",
        "~/.ssh",
        "C:\\\\x",
        ".",
        "",
        "elsewhere:0123456789abcdef/..",
        "elsewhere:0123456789abcdef/a/../../b",
        "elsewhere:x/y",
        "file:///etc",
        "/",
    ];
    let engine = there.engine();
    for place in places {
        let session = liar.engine().past(run).await.unwrap().summary.session;
        let (mut events, blobs) = bundle::whole(&liar.store(), session).await.unwrap();
        for event in &mut events {
            match &mut event.data {
                EventData::RunStarted(started) => {
                    started.workspace = Some(place.to_owned()).filter(|place| !place.is_empty());
                    started.workflow_source_ref = format!("{place}/x");
                }
                EventData::RunQueued(queued) => queued.workspace = Some(place.to_owned()),
                _ => {}
            }
        }
        let Ok(bytes) = bundle::as_told(session, (events, blobs), info()) else { continue };
        let imported = match engine.import(&bytes, "ada").await {
            Ok(imported) => imported,
            Err(error) => {
                assert!(error.code().starts_with("BUNDLE_"), "{place}: {error}");
                continue;
            }
        };
        let claims = engine.claims(imported.session).await.unwrap();
        for named in &claims.workspaces {
            assert!(bundle::is_elsewhere(named), "{place} is {named}");
        }
    }
}

/// What an agent is shown is what the plan says, and not what a history says it was asked.
// case: bundle.no-authority
#[tokio::test]
async fn an_agent_is_handed_no_prompt_from_elsewhere() {
    let guide = "{ id: look, type: guide, prompt: Look around }";
    let (liar, there) = (World::new(&[("w", guide)]), World::new(&[("w", guide)]));
    let (run, _, _) = asking(&liar).await;
    let lie = |events: &mut Vec<Value>, _: &Known| {
        each(events, "task_opened", |data| data["request"]["inline"]["prompt"] = "evil".into());
    };
    let bytes = forged(&liar, run, &known(run), lie).await.unwrap();
    let engine = there.engine();
    trusted(&engine, &bytes).await;
    assert_eq!(engine.waiting_for_agents(&Roles::Any).await.unwrap(), [], "it rests");
    let joined = engine.join(run, "agent", &Roles::Any).await;
    assert!(joined.is_err() || joined.unwrap().pending.is_none(), "nothing is handed out");
    engine.resume(run, "ada").await.unwrap();
    let offered = loop {
        if let Some(offered) = engine.waiting_for_agents(&Roles::Any).await.unwrap().pop() {
            break offered;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(offered.prompt, "Look around");
    let joined = engine.join(run, "agent", &Roles::Any).await.unwrap();
    let prompt = joined.pending.unwrap().prompt;
    assert!(prompt.contains("Look around") && !prompt.contains("evil"), "{prompt}");
}

// case: bundle.no-authority
#[tokio::test]
async fn a_history_that_its_plan_cannot_have_led_to_is_refused_by_name() {
    let (liar, there) = (World::new(&[("w", SAYS)]), World::new(&[("w", SAYS)]));
    let run = left(&liar, "w").await;
    let lie = |events: &mut Vec<Value>, _: &Known| {
        each(events, "step_started", |data| data["attempt"] = u32::MAX.into());
    };
    let bytes = forged(&liar, run, &known(run), lie).await.unwrap();
    let engine = there.engine();
    trusted(&engine, &bytes).await;
    let refused = engine.resume(run, "ada").await.unwrap_err();
    assert_eq!(refused.code(), "RUN_HISTORY_UNFIT", "{refused}");
    assert_eq!(there.tries(), Vec::<u32>::new());
}
