//! Who may rely on what a person allowed: second tries, and forks with other outputs.

use std::sync::atomic::Ordering;
use std::time::Duration;

use cairn_core::event::engine::InterruptDecision;
use cairn_core::flow::{Answer, Change, Verdict};
use cairn_core::id::RunId;
use cairn_engine::flow::{Automations, Decider, Filter, ForkPoint, Forker};
use serde_json::{Value, json};

use crate::world::{World, request};

const PAY: &str = "
    { id: ask, type: human, prompt: Pay?, who: [ada], cases: { approved: pay, rejected: end } }
    { id: pay, type: log, message: hold, on_interrupt: ask }
";
const CALLS: &str = "
    { id: ask, type: human, prompt: Pay?, who: [ada], cases: { approved: child, rejected: end } }
    { id: child, type: workflow, workflow: project.pays }
";
const PAYS: &str = "{ id: pay, type: log, message: hold, on_interrupt: ask }";

async fn until<F: Future<Output = bool>>(met: impl Fn() -> F) {
    let waits = async {
        while !met().await {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), waits).await.unwrap();
}

async fn approve(engine: &Automations, run: RunId) {
    until(async || !engine.state(run).await.unwrap().1.tasks.is_empty()).await;
    let task = *engine.state(run).await.unwrap().1.tasks.keys().next().unwrap();
    let answer = Answer { verdict: Verdict::Approved, values: Value::Null };
    engine.answer(run, task, "ada", answer).await.unwrap();
}

/// An engine on a run whose payment was allowed and then cut off; gives the run that pays.
async fn in_doubt(world: &World) -> (Automations, RunId) {
    world.done.holds.store(true, Ordering::SeqCst);
    let engine = world.engine();
    let run = engine.submit(request("w", json!({}))).await.unwrap().run;
    approve(&engine, run).await;
    world.done.held.notified().await;
    engine.stop(Duration::from_secs(5)).await;
    world.done.holds.store(false, Ordering::SeqCst);
    let engine = world.engine();
    engine.recover().await.unwrap();
    let listed = engine.list(&Filter::default()).await.unwrap();
    let pays = listed.iter().find(|row| row.parent == Some(run)).map_or(run, |row| row.run);
    until(async || {
        let state = engine.state(pays).await.unwrap().1;
        let pay = state.steps.get(&"pay".parse().unwrap());
        pay.is_some_and(|step| format!("{:?}", step.status) == "Unknown")
    })
    .await;
    (engine, pays)
}

// case: approval.retry
#[tokio::test]
async fn what_was_allowed_once_is_not_repeated_by_those_who_could_not_allow_it() {
    for workflows in [vec![("w", PAY)], vec![("w", CALLS), ("pays", PAYS)]] {
        let world = World::new(&workflows);
        let (engine, run) = in_doubt(&world).await;
        let decide = async |name: &str, answers: bool| {
            let decider = Decider { by: name.into(), answers };
            let pay = "pay".parse().unwrap();
            engine.resolve(run, pay, decider, InterruptDecision::Retry).await
        };
        for (name, answers) in [("ada", false), ("eve", true), ("agent", false)] {
            let refused = decide(name, answers).await.unwrap_err();
            assert_eq!(refused.code(), "TASK_FORBIDDEN", "{name}: {refused}");
            assert!(refused.to_string().contains("`ask`"), "{refused}");
        }
        assert_eq!(world.tries(), [1], "nothing is paid again");
        decide("ada", true).await.unwrap();
        engine.ended(run).await.unwrap();
        assert_eq!(world.tries(), [2], "whoever allowed it may");
    }
}

// case: approval.shown
#[tokio::test]
async fn a_fork_with_another_amount_asks_again() {
    let nodes = "
        { id: sum, type: log, message: hundred, next: ask }
        { id: ask, type: human, prompt: 'Pay {{ steps.sum }}?', cases: { approved: pay, rejected: end } }
        { id: pay, type: log, message: pay }
    ";
    let world = World::new(&[("w", nodes)]);
    let engine = world.engine();
    let run = engine.submit(request("w", json!({}))).await.unwrap().run;
    approve(&engine, run).await;
    engine.ended(run).await.unwrap();
    for (output, asks) in
        [(json!({"message": "hundred"}), false), (json!({"message": "million"}), true)]
    {
        let changes = vec![Change { instance: "sum".parse().unwrap(), output: output.clone() }];
        let step = "pay".parse().unwrap();
        let from = ForkPoint { run, step, changes, on_new_plan: false };
        let before = world.tries().len();
        let forked = engine.fork(&from, &Forker::local("ada")).await.unwrap();
        assert_eq!(forked.fork.vouched.is_empty(), asks, "{output}");
        if asks {
            until(async || !engine.state(forked.run).await.unwrap().1.tasks.is_empty()).await;
            assert_eq!(world.tries().len(), before, "nothing is paid");
        } else {
            engine.ended(forked.run).await.unwrap();
        }
    }
}
