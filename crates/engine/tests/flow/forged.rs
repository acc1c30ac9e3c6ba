//! Bundles whose author knows the format: every digest fits, and what they say is a lie. They are
//! refused or paper, and what is here stays as it is.

#![expect(clippy::indexing_slicing, reason = "a test that fails may panic")]

use cairn_core::event::{DecodeError, Event};
use cairn_core::id::{BundleId, RunId, SessionId};
use cairn_engine::flow::{Automations, Filter, ForkPoint, Forker, Truster};
use cairn_store::bundle::{self, ExportInfo};
use serde_json::{Value, json};

use crate::recovery::left;
use crate::world::{World, request, run};

const STEAL: &str = "
    { id: ask, type: human, prompt: Pay?, cases: { approved: pay, rejected: end } }
    { id: pay, type: log, message: pay, next: hold }
    { id: hold, type: log, message: hold }
";
const OPEN: &str = "
    { id: a, type: log, message: first, next: b }
    { id: b, type: log, message: hold, next: c }
    { id: c, type: log, message: last }
";

/// What a liar knows of the place that the bundle is for.
pub(crate) struct Known {
    pub(crate) session: SessionId,
    pub(crate) desk: SessionId,
    pub(crate) run: RunId,
    pub(crate) over: RunId,
    pub(crate) file: String,
}

/// Changes the events of a session.
pub(crate) type Lie = fn(&mut Vec<Value>, &Known);

/// Every lie.
const LIES: [(&str, Lie); 21] = [
    ("nothing is changed", |_, _| {}),
    ("the ids of a session that is here", |events, known| set_session(events, known.session)),
    ("the id of a desk that is here", |events, known| set_session(events, known.desk)),
    ("the id of a run that is here", |events, known| set_run(events, known.run)),
    ("the id of a run that is over", |events, known| set_run(events, known.over)),
    ("a child of a run that is here", |events, known| {
        queued(events)["data"]["parent"] =
            json!({"runId": known.run, "sessionId": known.session, "instance": "b"});
    }),
    ("another workflow", |events, _| rename(events, "project.other")),
    ("a workflow of this program", |events, _| rename(events, "wr.quick-task")),
    ("a workflow that is nowhere", |events, _| rename(events, "project.nowhere")),
    ("an id that leads out", |events, _| rename(events, "../../etc/passwd")),
    ("somebody else asked for it", |events, _| {
        queued(events)["data"]["by"] = "root".into();
        queued(events)["data"]["via"] = json!({"actor": "person", "door": "cli"});
    }),
    ("deeper than any chain may be", |events, _| queued(events)["data"]["depth"] = 99.into()),
    ("a step that was never asked for is done", |events, _| {
        let at = of_kind(events, "step_completed");
        events[at]["data"]["instance"] = "nobody".into();
    }),
    ("an end that is not there", |events, _| {
        let at = of_kind(events, "step_started");
        events[at]["data"]["instance"] = "c".into();
    }),
    ("the desk lists a session that is here", |events, known| {
        let listed = json!({"epoch": 99, "listedId": known.session, "workflowId": "project.w"});
        insert(events, "session_listed", &listed, None);
    }),
    ("a run that is here is let go of", |events, known| {
        insert(events, "run_retired", &json!({}), Some(known.over));
    }),
    ("a trigger that fires here fired", |events, known| {
        let received = json!({
            "key": "k", "payload": {"inline": {}}, "runId": known.over, "triggerId": "m",
            "workflowId": "project.w",
        });
        insert(events, "trigger_received", &received, None);
    }),
    ("a name that acts on a terminal", |events, _| {
        queued(events)["data"]["by"] = "\u{1b}]0;owned\u{7}\u{202e}".into();
    }),
    ("a folder of somebody else", |events, _| {
        queued(events)["data"]["workspace"] = "/root/.ssh".into();
    }),
    ("a file that is here", |events, known| {
        let here = known.file.clone();
        queued(events)["data"]["workflowSourceRef"] = here.clone().into();
        let at = of_kind(events, "run_started");
        events[at]["data"]["workflowSourceRef"] = here.into();
    }),
    ("a pause of its own, to be resumed", |events, _| {
        let run = queued(events)["scope"]["runId"].as_str().unwrap().parse().unwrap();
        let paused = json!({"by": "ada", "changeId": "prefchg_00000000000000000000000001"});
        insert(events, "run_paused", &paused, Some(run));
    }),
];

fn of_kind(events: &[Value], kind: &str) -> usize {
    events.iter().position(|event| event["kind"] == kind).unwrap()
}

fn queued(events: &mut [Value]) -> &mut Value {
    let at = of_kind(events, "run_queued");
    &mut events[at]
}

fn replace(events: &mut Vec<Value>, from: &str, to: &str) {
    let text = serde_json::to_string(events).unwrap().replace(from, to);
    *events = serde_json::from_str(&text).unwrap();
}

pub(crate) fn set_session(events: &mut Vec<Value>, to: SessionId) {
    let from = events[0]["sessionId"].as_str().unwrap().to_owned();
    replace(events, &from, &to.to_string());
}

pub(crate) fn set_run(events: &mut Vec<Value>, to: RunId) {
    let from = queued(events)["scope"]["runId"].as_str().unwrap().to_owned();
    replace(events, &from, &to.to_string());
}

fn rename(events: &mut [Value], to: &str) {
    for event in events {
        if event["data"]["workflowId"].is_string() {
            event["data"]["workflowId"] = to.into();
        }
    }
}

/// Puts an event behind all others.
pub(crate) fn insert(events: &mut Vec<Value>, kind: &str, data: &Value, run: Option<RunId>) {
    let session = events[0]["sessionId"].clone();
    let mut event = json!({
        "kind": kind, "data": data, "sessionId": session, "v": 1,
        "eventId": format!("evt_{:026}", events.len()), "eventIndex": events.len(),
    });
    if let Some(run) = run {
        event["scope"] = json!({"runId": run});
    }
    // The key of an event follows from what it says.
    event["dedupeKey"] = "x".into();
    events.push(event);
}

/// The bundle of a session with a lie in it, as its author would attest it; none when it is no
/// event.
pub(crate) async fn forged(
    world: &World,
    run: RunId,
    known: &Known,
    lie: impl Fn(&mut Vec<Value>, &Known),
) -> Option<Vec<u8>> {
    let session = world.engine().past(run).await.unwrap().summary.session;
    let (events, blobs) = bundle::whole(&world.store(), session).await.unwrap();
    let as_json = |event: &Event| serde_json::from_slice(&event.encode().unwrap()).unwrap();
    let mut values: Vec<Value> = events.iter().map(as_json).collect();
    lie(&mut values, known);
    let mut events = Vec::new();
    for value in values {
        events.push(keyed(value)?);
    }
    let session = events[0].session;
    let info = ExportInfo {
        bundle_id: BundleId::from_bits(1),
        exported_at: "2026-01-01T00:00:00Z".into(),
        app_version: "0.0.0".into(),
    };
    bundle::as_told(session, (events, blobs), info).ok()
}

/// The event with the key that it must have, which the refusal of another one names.
fn keyed(mut value: Value) -> Option<Event> {
    let read = |value: &Value| Event::decode(&cairn_core::canonical::to_vec(value).unwrap());
    match read(&value) {
        Err(DecodeError::WrongKey { expected, .. }) => {
            value["dedupeKey"] = expected.into();
            read(&value).ok()
        }
        read => read.ok(),
    }
}

/// What is here that is not paper.
async fn own(engine: &Automations, world: &World) -> Value {
    let listed = engine.list(&Filter { with_retired: true, ..Filter::default() }).await.unwrap();
    let own = listed.iter().filter(|row| !row.is_paper);
    let rows: Vec<_> = own.map(|row| json!([row.run, row.session, row.status.name()])).collect();
    json!([rows, world.store().sessions.list().await.unwrap()])
}

// case: bundle.no-authority
#[tokio::test]
async fn a_lie_is_refused_or_paper_and_nothing_here_changes() {
    let there = World::new(&[("w", OPEN), ("other", OPEN), ("ask", STEAL)]);
    let liar = World::new(&[("w", OPEN)]);
    let told = left(&liar, "w").await;
    let engine = there.engine();
    let (_, past) = run(&engine, "w", json!({})).await;
    let asks = engine.submit(request("ask", json!({}))).await.unwrap().run;
    while engine.state(asks).await.unwrap().1.tasks.is_empty() {
        tokio::task::yield_now().await;
    }
    let desk = there.store().sessions.list().await.unwrap();
    let desk = *desk.iter().find(|session| **session != past.summary.session).unwrap();
    let file = there.home.path().join("workflows/other/workflow.yaml").display().to_string();
    let (session, over) = (past.summary.session, past.summary.run);
    let known = Known { session, desk, run: asks, over, file };
    let (before, done) = (own(&engine, &there).await, there.tries().len());
    let mut taken = 0;
    for (name, lie) in LIES {
        let bytes = forged(&liar, told, &known, lie).await;
        let bytes = bytes.unwrap_or_else(|| panic!("{name}: no event says that"));
        match engine.import(&bytes, "ada").await {
            Ok(imported) => {
                taken += 1;
                let claims = engine.claims(imported.session).await.unwrap();
                assert!(!claims.runs.is_empty(), "{name}");
            }
            Err(error) => assert!(error.code().starts_with("BUNDLE_"), "{name}: {error}"),
        }
        engine.recover().await.unwrap();
        assert_eq!(own(&engine, &there).await, before, "{name}");
        assert_eq!(there.tries().len(), done, "{name}: nothing was done");
    }
    assert!(taken >= 15, "most lies are well formed: {taken}");
    assert_eq!(engine.state(asks).await.unwrap().1.tasks.len(), 1, "it still asks");
    // Somebody trusts them all, and then only what was never a lie about this place goes on.
    let papers = there.store().papers.find().unwrap().unwrap();
    for session in papers.sessions.list().await.unwrap() {
        let root = papers.sessions.origin(session).await.unwrap().unwrap().root;
        let truster = Truster { by: "ada".into(), root, workspace: None };
        if let Err(refused) = engine.trust(session, &truster).await {
            assert_eq!(refused.code(), "WORKFLOW_ID_RESERVED", "{refused}");
        }
    }
    engine.recover().await.unwrap();
    assert_eq!(there.tries().len(), done, "trust permits, and starts nothing");
    assert_eq!(engine.state(asks).await.unwrap().1.tasks.len(), 1, "it still asks");
    let over = engine.past(known.over).await.unwrap();
    assert_eq!(over.summary.session, known.session, "a run is where it was");
    assert_eq!(over.events.len(), past.events.len());
}

/// Passes over the question of a session, in one of the ways in which a step can be over.
pub(crate) fn passed_over(events: &mut Vec<Value>, kind: &str, data: &Value) {
    let run = queued(events)["scope"]["runId"].as_str().unwrap().parse().unwrap();
    let question = ["task_opened", "step_waiting", "timer_set"];
    events.retain(|event| !question.contains(&event["kind"].as_str().unwrap()));
    for (at, event) in events.iter_mut().enumerate() {
        event["eventIndex"] = at.into();
    }
    insert(events, kind, data, Some(run));
}

const PASSES: [Lie; 4] = [
    |events, _| {
        passed_over(events, "step_skipped", &json!({"instance": "ask", "reason": "untaken"}))
    },
    |events, _| {
        passed_over(events, "step_skipped", &json!({"instance": "ask", "reason": "failed"}))
    },
    |events, _| {
        passed_over(events, "step_skipped", &json!({"instance": "ask", "reason": "condition"}));
    },
    |events, _| {
        let error = json!({"code": "X_Y", "message": "no"});
        let failed = json!({"attempt": 0, "durationMs": 1, "error": error, "instance": "ask", "then": "skip"});
        passed_over(events, "step_failed", &failed);
    },
];

/// A question that a history passes over is asked here, whichever way the run goes on.
// case: bundle.no-authority
#[tokio::test]
async fn a_question_that_was_passed_over_elsewhere_is_asked_here() {
    for (at, lie) in PASSES.into_iter().enumerate() {
        let (liar, there) = (World::new(&[("w", STEAL)]), World::new(&[("w", STEAL)]));
        let engine = liar.engine();
        let run = engine.submit(request("w", json!({}))).await.unwrap().run;
        while engine.state(run).await.unwrap().1.tasks.is_empty() {
            tokio::task::yield_now().await;
        }
        let past = engine.past(run).await.unwrap();
        let (session, file) = (past.summary.session, String::new());
        let known = Known { session, desk: session, run, over: run, file };
        engine.stop(std::time::Duration::from_secs(5)).await;
        let bytes = forged(&liar, run, &known, lie).await.unwrap_or_else(|| panic!("lie {at}"));
        let engine = there.engine();
        let imported = engine.import(&bytes, "ada").await.unwrap();
        let truster = Truster { by: "ada".into(), root: imported.root, workspace: None };
        engine.trust(imported.session, &truster).await.unwrap();
        let before = engine.past(run).await.unwrap().events.len();
        engine.recover().await.unwrap();
        assert_eq!(engine.past(run).await.unwrap().events.len(), before, "it rests, lie {at}");
        let refused = engine.resume(run, "ada").await.unwrap_err();
        assert_eq!(refused.code(), "RUN_DECIDED_ELSEWHERE", "lie {at}: {refused}");
        let (step, changes) = ("ask".parse().unwrap(), Vec::new());
        let from = ForkPoint { run, step, changes, on_new_plan: false };
        let fork = engine.fork(&from, &Forker::local("ada")).await.unwrap();
        while engine.state(fork.run).await.unwrap().1.tasks.is_empty() {
            tokio::task::yield_now().await;
        }
        assert_eq!(there.tries(), Vec::<u32>::new(), "lie {at}: nothing is paid");
    }
}

/// Whether somebody is asked follows from what was sent.
const COMPUTED: &str = "
    { id: risk, type: make, value: { level: '{{ event.payload.amount }}' }, next: br }
    { id: br, type: branch, expr: 'steps.risk.level > 1', cases: { 'true': ask, 'false': pay } }
    { id: ask, type: human, prompt: Pay?, cases: { approved: pay, rejected: end } }
    { id: pay, type: log, message: pay }
";

/// Claims that a run took the way without the question: its value was another one.
fn computed_otherwise(events: &mut Vec<Value>, _: &Known) {
    let question = ["task_opened", "step_waiting", "timer_set"];
    events.retain(|event| !question.contains(&event["kind"].as_str().unwrap()));
    for (at, event) in events.iter_mut().enumerate() {
        event["eventIndex"] = at.into();
        if event["kind"] != "step_completed" {
            continue;
        }
        match event["data"]["instance"].as_str().unwrap() {
            "risk" => event["data"]["output"] = json!({"inline": {"level": 0}}),
            "br" => {
                event["data"]["output"] = json!({"inline": {"value": false}});
                event["data"]["case"] = "false".into();
            }
            _ => {}
        }
    }
}

/// A value that follows from the plan is computed here, and a history that says another one is
/// not gone on with, whichever way.
// case: bundle.no-authority
#[tokio::test]
async fn a_value_that_the_plan_computes_is_computed_here() {
    for (name, lie) in [("honest", (|_, _| {}) as Lie), ("forged", computed_otherwise)] {
        let (liar, there) = (World::new(&[("w", COMPUTED)]), World::new(&[("w", COMPUTED)]));
        let engine = liar.engine();
        let run = engine.submit(request("w", json!({"amount": 5}))).await.unwrap().run;
        while engine.state(run).await.unwrap().1.tasks.is_empty() {
            tokio::task::yield_now().await;
        }
        let session = engine.past(run).await.unwrap().summary.session;
        let known = Known { session, desk: session, run, over: run, file: String::new() };
        engine.stop(std::time::Duration::from_secs(5)).await;
        let bytes = forged(&liar, run, &known, lie).await.unwrap();
        let engine = there.engine();
        let imported = engine.import(&bytes, "ada").await.unwrap();
        let truster = Truster { by: "ada".into(), root: imported.root, workspace: None };
        engine.trust(imported.session, &truster).await.unwrap();
        let resumed = engine.resume(run, "ada").await;
        if name == "honest" {
            resumed.unwrap();
            while engine.state(run).await.unwrap().1.tasks.is_empty() {
                tokio::task::yield_now().await;
            }
        } else {
            let refused = resumed.unwrap_err();
            assert_eq!(refused.code(), "RUN_HISTORY_UNFIT", "{refused}");
            assert!(refused.to_string().contains("`risk` gave another value"), "{refused}");
            let (step, changes) = ("pay".parse().unwrap(), Vec::new());
            let from = ForkPoint { run, step, changes, on_new_plan: false };
            let refused = engine.fork(&from, &Forker::local("ada")).await.unwrap_err();
            assert_eq!(refused.code(), "RUN_HISTORY_UNFIT", "{refused}");
        }
        assert_eq!(there.tries(), Vec::<u32>::new(), "{name}: nothing is paid");
    }
}
