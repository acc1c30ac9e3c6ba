//! Sessions from elsewhere are paper until a person trusts them, and what people decided counts
//! once.

use cairn_core::flow::{Answer, Verdict};
use cairn_core::id::{BundleId, RunId};
use cairn_engine::Error;
use cairn_engine::flow::{Automations, Filter, ForkPoint, Forker, Past, Roles, Truster};
use cairn_lang::ids::SourceKind;
use cairn_store::bundle::{self, ExportInfo, Imported};
use serde_json::{Value, json};

use crate::recovery::left;
use crate::world::{World, request, run};

const PAY: &str = "
    { id: ask, type: human, prompt: Pay?, who: [ada], cases: { approved: pay, rejected: end } }
    { id: pay, type: log, message: pay, next: hold }
    { id: hold, type: log, message: hold, next: done }
    { id: done, type: log, message: done }
";
const PLAIN: &str = "
    { id: a, type: log, message: first, next: b }
    { id: b, type: log, message: hold, next: c }
    { id: c, type: log, message: last }
";

async fn exported(world: &World, run: RunId) -> Vec<u8> {
    let past = world.engine().past(run).await.unwrap();
    let info = ExportInfo {
        bundle_id: BundleId::from_bits(1),
        exported_at: "2026-01-01T00:00:00Z".into(),
        app_version: "0.0.0".into(),
    };
    bundle::export(&world.store(), past.summary.session, info).await.unwrap()
}

fn truster(imported: &Imported) -> Truster<'static> {
    Truster { by: "ada".into(), root: imported.root, workspace: None }
}

async fn approve(engine: &Automations, run: RunId) {
    let task = loop {
        let (_, state) = engine.state(run).await.unwrap();
        if let Some(task) = state.tasks.keys().next() {
            break *task;
        }
        tokio::task::yield_now().await;
    };
    let answer = Answer { verdict: Verdict::Approved, values: Value::Null };
    engine.answer(run, task, "ada", answer).await.unwrap();
}

// case: bundle.twice
#[tokio::test]
async fn paper_can_be_read_and_does_nothing() {
    let (here, there) = (World::new(&[("w", PLAIN)]), World::new(&[("w", PLAIN)]));
    let run = left(&here, "w").await;
    let bytes = exported(&here, run).await;
    let text = String::from_utf8(bytes.clone()).unwrap();
    let home = here.home.path().display().to_string();
    assert!(!text.contains(&home), "a bundle names no places of the machine that it leaves");
    let engine = there.engine();
    let imported = engine.import(&bytes, "ada").await.unwrap();
    engine.recover().await.unwrap();
    assert_eq!(there.tries(), Vec::<u32>::new());
    let listed = engine.list(&Filter::default()).await.unwrap();
    let shown: Vec<_> =
        listed.iter().map(|row| (row.run, row.status.name(), row.is_paper)).collect();
    assert_eq!(shown, [(run, "paused", true)]);
    assert_eq!(engine.past(run).await.unwrap().summary.session, imported.session);
    let step = "b".parse().unwrap();
    let from = ForkPoint { run, step, changes: Vec::new(), on_new_plan: false };
    let told = [
        engine.resume(run, "ada").await.unwrap_err(),
        engine.pause(run, "ada").await.unwrap_err(),
        engine.cancel(run, "ada", "no").await.unwrap_err(),
        engine.fork(&from, &Forker::local("ada")).await.unwrap_err(),
        engine.replay(run, "ada", Roles::Any).await.unwrap_err(),
        engine.ended(run).await.unwrap_err(),
        engine.tell_of_failure(run).await.unwrap_err(),
    ];
    assert!(told.iter().all(|error| error.code() == "SESSION_UNTRUSTED"), "{told:?}");
    assert_eq!(there.store().sessions.list().await.unwrap(), []);
    let other = Truster { root: cairn_core::digest::Digest::of(b"x"), ..truster(&imported) };
    let refused = engine.trust(imported.session, &other).await.unwrap_err();
    assert_eq!(refused.code(), "SESSION_OTHER_BUNDLE");

    let claims = engine.trust(imported.session, &truster(&imported)).await.unwrap();
    assert!(claims.plans[0].same_as.is_some(), "the same plan is here");
    engine.recover().await.unwrap();
    let past = engine.past(run).await.unwrap();
    assert_eq!((past.summary.status.name(), past.summary.is_paper), ("paused", false));
    assert_eq!(there.tries(), Vec::<u32>::new(), "trust permits, and starts nothing");
    engine.resume(run, "ada").await.unwrap();
    engine.ended(run).await.unwrap();
    assert_eq!(there.tries(), [1, 1], "what was cut off is made again, and what comes after it");
    let again = engine.import(&bytes, "ada").await.unwrap();
    assert_eq!((again.session, again.again), (imported.session, true));
}

// case: bundle.ids
#[tokio::test]
async fn what_is_here_stays_and_what_comes_gets_ids_of_its_own() {
    let world = World::new(&[("w", PAY)]);
    let engine = world.engine();
    let run = engine.submit(request("w", json!({}))).await.unwrap().run;
    while engine.state(run).await.unwrap().1.tasks.is_empty() {
        tokio::task::yield_now().await;
    }
    let own = engine.past(run).await.unwrap().summary.session;
    let bytes = exported(&world, run).await;
    let imported = engine.import(&bytes, "ada").await.unwrap();
    assert_eq!((imported.original, imported.as_new), (own, true));
    assert_ne!(imported.session, own);
    let listed = engine.list(&Filter::default()).await.unwrap();
    assert_eq!(listed.len(), 2, "{listed:?}");
    assert!(listed.iter().any(|row| row.run == run && row.session == own && !row.is_paper));
    let copy = listed.iter().find(|row| row.is_paper).unwrap().run;
    engine.trust(imported.session, &truster(&imported)).await.unwrap();
    // An answer to the one says nothing to the other.
    approve(&engine, run).await;
    engine.ended(run).await.unwrap();
    assert_eq!(world.tries().len(), 3);
    engine.resume(copy, "ada").await.unwrap();
    let waiting = engine.state(copy).await.unwrap().1;
    assert_eq!(waiting.tasks.len(), 1, "it asks for itself");
    approve(&engine, copy).await;
    engine.ended(copy).await.unwrap();
    assert_eq!(world.tries().len(), 6);
}

#[tokio::test]
async fn what_people_decided_elsewhere_counts_for_nothing() {
    let (here, there) = (World::new(&[("w", PAY)]), World::new(&[("w", PAY)]));
    let engine = here.engine();
    here.done.holds.store(true, std::sync::atomic::Ordering::SeqCst);
    let run = engine.submit(request("w", json!({}))).await.unwrap().run;
    approve(&engine, run).await;
    here.done.held.notified().await;
    engine.stop(std::time::Duration::from_secs(5)).await;
    let bytes = exported(&here, run).await;
    let engine = there.engine();
    let imported = engine.import(&bytes, "ada").await.unwrap();
    let claims = engine.claims(imported.session).await.unwrap();
    assert_eq!(claims.runs[0].decided, [("ask".to_owned(), "ada".to_owned())]);
    engine.trust(imported.session, &truster(&imported)).await.unwrap();
    let refused = engine.resume(run, "ada").await.unwrap_err();
    assert_eq!(refused.code(), "RUN_DECIDED_ELSEWHERE", "{refused}");
    assert_eq!(there.tries(), Vec::<u32>::new());
    let from =
        ForkPoint { run, step: "hold".parse().unwrap(), changes: Vec::new(), on_new_plan: false };
    let eve = Forker { by: "eve".into(), roles: Roles::Any, answers: true };
    let forked = engine.fork(&from, &eve).await.unwrap();
    approve(&engine, forked.run).await;
    engine.ended(forked.run).await.unwrap();
    assert_eq!(there.tries(), [1, 1, 1]);
}

/// What is called `wr.*` is ours alone: with another plan it is read, and never goes on.
#[tokio::test]
async fn nobody_brings_along_what_only_this_program_has() {
    let named = |nodes: &str| {
        let nodes: String = nodes.trim().lines().map(|l| format!("    - {}\n", l.trim())).collect();
        format!("name: quick\nid: wr.quick\ngraph:\n  nodes:\n{nodes}")
    };
    let (ours, theirs) = (named(PLAIN), named("{ id: a, type: log, message: evil }"));
    for (there, code) in [(&ours, None), (&theirs, Some("WORKFLOW_ID_RESERVED"))] {
        let (here, there) = (World::new(&[("quick", &ours)]), World::new(&[("quick", there)]));
        let bundled =
            |world: &World| world.engine_of(SourceKind::Bundled, "workflows", world.store());
        let engine = bundled(&here);
        here.done.holds.store(true, std::sync::atomic::Ordering::SeqCst);
        let run = engine.submit(request("wr.quick", json!({}))).await.unwrap().run;
        here.done.held.notified().await;
        engine.stop(std::time::Duration::from_secs(5)).await;
        let bytes = exported(&here, run).await;
        let engine = bundled(&there);
        let imported = engine.import(&bytes, "ada").await.unwrap();
        let trusted = engine.trust(imported.session, &truster(&imported)).await;
        assert_eq!(trusted.as_ref().err().map(Error::code), code, "{trusted:?}");
    }
}

/// One approval, and however many forks of whoever may not approve: one payment.
// case: approval.once
#[tokio::test]
async fn an_approval_pays_once() {
    let world = World::new(&[("w", PAY)]);
    let engine = world.engine();
    let run = engine.submit(request("w", json!({}))).await.unwrap().run;
    approve(&engine, run).await;
    engine.ended(run).await.unwrap();
    assert_eq!(world.tries().len(), 3);
    for (name, answers, from) in [
        ("eve", true, "pay"),
        ("ada", false, "hold"),
        ("agent", false, "done"),
        ("eve", false, "ask"),
    ] {
        let from =
            ForkPoint { run, step: from.parse().unwrap(), changes: Vec::new(), on_new_plan: false };
        let asker = Forker { by: name.into(), roles: Roles::Any, answers };
        let forked = engine.fork(&from, &asker).await.unwrap();
        assert!(forked.fork.vouched.is_empty(), "{name} {answers}");
        while engine.state(forked.run).await.unwrap().1.tasks.is_empty() {
            tokio::task::yield_now().await;
        }
        assert_eq!(world.tries().len(), 3, "{name} {answers}: nothing is paid again");
        let mut supplied = from.clone();
        supplied.step = "done".parse().unwrap();
        let output = json!({"verdict": "approved", "by": "ada"});
        supplied.changes =
            vec![cairn_core::flow::Change { instance: "ask".parse().unwrap(), output }];
        let refused = engine.fork(&supplied, &asker).await.unwrap_err();
        assert!(matches!(refused, Error::RunNotThere { .. }), "{refused}");
    }
    // Whoever could have answered keeps it, and it is theirs.
    let from =
        ForkPoint { run, step: "hold".parse().unwrap(), changes: Vec::new(), on_new_plan: false };
    let forked = engine.fork(&from, &Forker::local("ada")).await.unwrap();
    engine.ended(forked.run).await.unwrap();
    let past: Past = engine.past(forked.run).await.unwrap();
    let vouched = past.state.queued.unwrap().forked_from.unwrap().vouched;
    assert_eq!(vouched, ["ask".parse().unwrap()]);
}

/// What was approved in a child run was approved in the run that asked for it.
#[tokio::test]
async fn an_approval_in_a_child_run_is_asked_for_again() {
    let nodes = "
        { id: child, type: workflow, workflow: project.w, next: pay }
        { id: pay, type: log, message: paid }
    ";
    let ask = "{ id: ask, type: human, prompt: Pay? }";
    let world = World::new(&[
        ("w", ask),
        ("parent", nodes),
        ("plain", "{ id: a, type: log, message: a }"),
        ("other", &nodes.replace("project.w", "project.plain")),
    ]);
    let engine = world.engine();
    let parent = engine.submit(request("parent", json!({}))).await.unwrap().run;
    let child = loop {
        let listed = engine.list(&Filter::default()).await.unwrap();
        if let Some(child) = listed.iter().find(|row| row.parent == Some(parent)) {
            break child.run;
        }
        tokio::task::yield_now().await;
    };
    approve(&engine, child).await;
    engine.ended(parent).await.unwrap();
    let (_, other) = run(&engine, "other", json!({})).await;
    let eve = Forker { by: "eve".into(), roles: Roles::Any, answers: false };
    for (run, kept) in [(parent, false), (other.summary.run, true)] {
        let from = ForkPoint {
            run,
            step: "pay".parse().unwrap(),
            changes: Vec::new(),
            on_new_plan: false,
        };
        let fork = engine.preview(&from, &eve).await.unwrap();
        assert_eq!(fork.kept.contains(&"child".parse().unwrap()), kept, "{fork:?}");
    }
}
