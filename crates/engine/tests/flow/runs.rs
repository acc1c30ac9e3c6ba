//! Runs from beginning to end.

use std::sync::atomic::Ordering;
use std::time::Duration;

use cairn_core::event::engine::EndStatus;
use cairn_core::flow::{Answer, Verdict};
use cairn_engine::catalog::Identity;
use cairn_engine::flow::{Filter, ForkPoint, Forker, RunRequest};
use serde_json::json;

use crate::world::{World, kinds, request, result, run, write};

#[tokio::test]
async fn a_run_goes_through_its_steps_and_is_listed() {
    let world = World::new(&[(
        "hello",
        "{ id: a, type: log, message: 'hi {{ event.payload.name }}', next: b }
         { id: b, type: end, result: '{{ steps.a }}' }",
    )]);
    let engine = world.engine();
    let (ended, past) = run(&engine, "hello", json!({"name": "Ada"})).await;
    assert_eq!(result(&ended), json!({"status": "Succeeded", "result": {"message": "hi Ada"}}));
    assert_eq!(
        kinds(&past),
        [
            "run_queued",
            "run_started",
            "step_started",
            "step_completed",
            "step_completed",
            "run_completed"
        ]
    );
    let listed = engine.list(&Filter::default()).await.unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!((listed[0].run, listed[0].status.name()), (past.summary.run, "succeeded"));
}

#[tokio::test]
async fn a_step_that_fails_is_tried_again_and_then_fails_the_run() {
    let world = World::new(&[
        ("once", "{ id: a, type: log, message: once, retry: { max: 1, delay_sec: 0 } }"),
        ("fails", "{ id: a, type: log, message: fail, retry: { max: 1, delay_sec: 0 } }"),
    ]);
    let engine = world.engine();
    let (ended, _) = run(&engine, "once", json!({})).await;
    assert_eq!(ended.status, EndStatus::Succeeded);
    assert_eq!(world.tries(), [2], "both tries carry one key");
    let (ended, past) = run(&engine, "fails", json!({})).await;
    assert_eq!(ended.status, EndStatus::Failed);
    assert_eq!(ended.result["code"], "TEST_FAILED");
    assert_eq!(past.summary.status.name(), "failed");
}

#[tokio::test]
async fn one_key_starts_one_run() {
    let world = World::new(&[(
        "hook",
        "name: hook
triggers: [{ type: manual, id: m }]
graph: { nodes: [{ id: a, type: log, message: x }] }",
    )]);
    let mut request = request("hook", json!({}));
    (request.trigger, request.key) = (Some("m".parse().unwrap()), Some("delivery-1".into()));
    let engine = world.engine();
    let first = engine.submit(request.clone()).await.unwrap();
    engine.ended(first.run).await.unwrap();
    assert!(!first.replayed);
    for _ in 0..3 {
        let again = engine.submit(request.clone()).await.unwrap();
        assert_eq!((again.run, again.replayed), (first.run, true));
    }
    engine.stop(Duration::from_secs(5)).await;
    let again = world.engine().submit(request).await.unwrap();
    assert_eq!((again.run, again.replayed), (first.run, true), "after a restart, too");
    assert_eq!(world.tries(), [1]);
}

#[tokio::test]
async fn a_child_run_gives_its_result() {
    let world = World::new(&[
        (
            "outer",
            "{ id: c, type: workflow, workflow: project.inner, input: { n: '{{ event.payload.n }}' }, next: e }
             { id: e, type: end, result: '{{ steps.c.result }}' }",
        ),
        ("inner", "{ id: e, type: end, result: '{{ event.payload.n }}' }"),
    ]);
    let (ended, _) = run(&world.engine(), "outer", json!({"n": 4})).await;
    assert_eq!(result(&ended), json!({"status": "Succeeded", "result": 4}));
}

#[tokio::test]
async fn a_child_that_cannot_be_started_fails_its_step() {
    let world = World::new(&[(
        "outer",
        "{ id: c, type: workflow, workflow: project.gone, on_failure: fallback, fallback: e }
         { id: e, type: end, result: alone }",
    )]);
    let (ended, past) = run(&world.engine(), "outer", json!({})).await;
    assert_eq!(result(&ended), json!({"status": "Succeeded", "result": "alone"}));
    let failed = past.events.iter().find_map(|event| match &event.data {
        cairn_core::event::EventData::StepFailed(failed) => Some(failed.error.code.clone()),
        _ => None,
    });
    assert_eq!(failed.as_deref(), Some("WORKFLOW_NOT_FOUND"));
}

#[tokio::test]
async fn what_cannot_be_recorded_fails_its_own_step_and_nobody_elses() {
    let world = World::new(&[
        (
            "id",
            "{ id: a, type: log, message: id, next: e }\n{ id: e, type: end, result: '{{ steps.a }}' }",
        ),
        ("huge", "{ id: a, type: log, message: huge }"),
        ("loud", "{ id: a, type: log, message: loud }"),
        ("sum", "{ id: a, type: end, result: '{{ event.payload.n * 1000 }}' }"),
        (
            "long",
            "{ id: l, type: loop, count: 5000, max_iterations: 5000, body: [b] }
             { id: b, type: branch, expr: '{{ index > 3 }}', cases: { 'true': c, 'false': c } }
             { id: c, type: parallel, branches: [] }",
        ),
    ]);
    let engine = world.engine();
    let big = 9_007_199_254_740_991_u64;
    for (workflow, payload, expected) in [
        ("id", json!({}), json!({"id": "9007199254740993"})),
        ("huge", json!({}), json!("VALUE_INVALID")),
        ("loud", json!({}), json!("TEST_FAILED")),
        ("sum", json!({"n": big}), json!("VALUE_INVALID")),
        ("id", json!({"n": u64::MAX}), json!({"id": "9007199254740993"})),
    ] {
        let (ended, _) = run(&engine, workflow, payload).await;
        let found = ended.result.get("code").unwrap_or(&ended.result);
        assert_eq!(*found, expected, "{workflow}");
    }
    let deep = (0..100).fold(json!(1), |inner, _| json!([inner]));
    let refused = engine.submit(request("id", deep)).await.unwrap_err();
    assert_eq!(refused.code(), "VALIDATION_ERROR", "{refused}");
}

#[tokio::test]
async fn what_is_said_to_a_run_is_recordable_or_refused() {
    let world = World::new(&[("ask", "{ id: a, type: human, prompt: Well }")]);
    let engine = world.engine();
    let run = engine.submit(request("ask", json!({}))).await.unwrap().run;
    for (by, reason) in [("", "x".to_owned()), ("ada", "x".repeat(2_000))] {
        let refused = engine.cancel(run, by, &reason).await.unwrap_err();
        assert_eq!(refused.code(), "VALIDATION_ERROR", "{refused}");
    }
    engine.cancel(run, "ada", "enough").await.unwrap();
}

/// A workflow that fails, and tells another.
fn failing(name: &str, to: &str) -> String {
    format!(
        "name: {name}\ntriggers: [{{ type: error }}]\non_error: {{ trigger_workflow: {to} }}\ngraph: {{ nodes: [{{ id: a, type: log, message: fail }}] }}"
    )
}

const HANDLER: &str = "name: handler
triggers: [{ type: error }]
graph: { nodes: [{ id: a, type: end, result: '{{ event.payload.workflow }} {{ event.payload.failed_node }} {{ event.payload.code }}' }] }";

/// The runs of a workflow that are over, with what came of them.
async fn results(
    engine: &cairn_engine::flow::Automations,
    workflow: &str,
) -> Vec<serde_json::Value> {
    let filter = cairn_engine::flow::Filter {
        workflow: Some(format!("project.{workflow}")),
        ..Default::default()
    };
    let mut results = Vec::new();
    for summary in engine.list(&filter).await.unwrap() {
        results.push(engine.ended(summary.run).await.unwrap().result);
    }
    results
}

#[tokio::test]
async fn a_failed_run_tells_the_workflow_it_names_and_those_that_name_it() {
    let watcher = HANDLER.replace("type: error", "type: error, workflows: [project.fails]");
    let other = HANDLER.replace("type: error", "type: error, workflows: [project.else]");
    let world = World::new(&[
        ("fails", &failing("fails", "project.handler")),
        ("handler", HANDLER),
        ("watcher", &watcher),
        ("other", &other),
    ]);
    let engine = world.engine();
    let (_, past) = run(&engine, "fails", json!({})).await;
    let told = engine.tell_of_failure(past.summary.run).await.unwrap();
    assert_eq!(told.len(), 2);
    for _ in 0..3 {
        assert_eq!(engine.tell_of_failure(past.summary.run).await.unwrap(), told, "once only");
    }
    for workflow in ["handler", "watcher"] {
        assert_eq!(results(&engine, workflow).await, ["project.fails a TEST_FAILED"], "{workflow}");
    }
    assert!(results(&engine, "other").await.is_empty());
}

#[tokio::test]
async fn failures_are_told_of_three_levels_up_and_no_further() {
    let names = ["a", "b", "c", "d", "e"];
    let workflows: Vec<(&str, String)> = names
        .windows(2)
        .map(|pair| (pair[0], failing(pair[0], &format!("project.{}", pair[1]))))
        .chain([("e", HANDLER.replace("handler", "e"))])
        .collect();
    let workflows: Vec<(&str, &str)> = workflows.iter().map(|(n, t)| (*n, t.as_str())).collect();
    let world = World::new(&workflows);
    let engine = world.engine();
    let mut run = run(&engine, "a", json!({})).await.1.summary.run;
    for workflow in ["b", "c", "d"] {
        run = engine.tell_of_failure(run).await.unwrap()[0];
        let ended = engine.ended(run).await.unwrap();
        assert_eq!(ended.result["code"], "TEST_FAILED", "{workflow}");
    }
    assert!(engine.tell_of_failure(run).await.unwrap().is_empty());
    assert!(results(&engine, "e").await.is_empty());
}

#[tokio::test]
async fn failures_of_child_runs_are_told_of_however_deep_they_are() {
    let above = |child: &str| format!("{{ id: down, type: workflow, workflow: project.{child} }}");
    let (a, b, c, d) = (above("b"), above("c"), above("d"), above("fails"));
    let world = World::new(&[
        ("a", &a),
        ("b", &b),
        ("c", &c),
        ("d", &d),
        ("fails", &failing("fails", "project.handler")),
        ("handler", HANDLER),
    ]);
    let engine = world.engine();
    run(&engine, "a", json!({})).await;
    let fails = Filter { workflow: Some("project.fails".to_owned()), ..Filter::default() };
    let failed = engine.list(&fails).await.unwrap().remove(0).run;
    engine.tell_of_failure(failed).await.unwrap();
    assert_eq!(results(&engine, "handler").await, ["project.fails a TEST_FAILED"]);
}

#[tokio::test]
async fn a_failure_that_nobody_was_told_of_is_told_after_a_crash() {
    let world = World::new(&[("fails", &failing("fails", "project.handler"))]);
    let engine = world.engine();
    run(&engine, "fails", json!({})).await;
    engine.stop(Duration::from_secs(5)).await;
    // As if the engine had ended between the failure and the telling.
    crate::world::write(&world.home.path().join("workflows"), "handler", HANDLER);
    let file = world.home.path().join("workflows/handler/workflow.yaml");
    let old = std::time::SystemTime::UNIX_EPOCH;
    std::fs::File::options().write(true).open(file).unwrap().set_modified(old).unwrap();
    let engine = world.engine();
    engine.recover().await.unwrap();
    assert_eq!(results(&engine, "handler").await, ["project.fails a TEST_FAILED"]);
    engine.recover().await.unwrap();
    assert_eq!(results(&engine, "handler").await.len(), 1);
}

#[tokio::test]
async fn a_step_that_panics_fails_and_nothing_else_does() {
    let world = World::new(&[
        ("one", "{ id: a, type: log, message: panic }"),
        (
            "two",
            "{ id: p, type: parallel, branches: [a, b], next: m }
             { id: m, type: merge, strategy: list }
             { id: a, type: log, message: panic, on_failure: skip }
             { id: b, type: log, message: fine }",
        ),
    ]);
    let engine = world.engine();
    for _ in 0..2 {
        let (ended, _) = run(&engine, "one", json!({})).await;
        assert_eq!(ended.result["code"], "STEP_PANICKED", "{ended:?}");
    }
    let (ended, _) = run(&engine, "two", json!({})).await;
    assert_eq!(ended.status, EndStatus::Succeeded, "{ended:?}");
}

#[tokio::test]
async fn a_person_is_asked_and_answers() {
    let world = World::new(&[(
        "ask",
        "{ id: ask, type: human, prompt: Go?, cases: { approved: yes-step, rejected: end } }
         { id: yes-step, type: log, message: go }",
    )]);
    let engine = world.engine();
    let asked = engine.submit(request("ask", json!({}))).await.unwrap();
    let past = engine.past(asked.run).await.unwrap();
    assert_eq!(past.summary.status.name(), "waiting");
    let task = *past.state.tasks.keys().next().unwrap();
    let answer = Answer { verdict: Verdict::Approved, values: json!(null) };
    engine.answer(asked.run, task, "ada", answer.clone()).await.unwrap();
    assert_eq!(engine.ended(asked.run).await.unwrap().status, EndStatus::Succeeded);
    let late = engine.answer(asked.run, task, "ada", answer).await.unwrap_err();
    assert_eq!(late.code(), "RUN_ENDED");
}

#[tokio::test]
async fn a_run_can_be_cancelled_while_a_step_is_under_way() {
    let world = World::new(&[("long", "{ id: a, type: log, message: hold }")]);
    world.done.holds.store(true, std::sync::atomic::Ordering::SeqCst);
    let engine = world.engine();
    let asked = engine.submit(request("long", json!({}))).await.unwrap();
    world.done.held.notified().await;
    engine.cancel(asked.run, "ada", "enough").await.unwrap();
    assert_eq!(engine.ended(asked.run).await.unwrap().status, EndStatus::Cancelled);
}

#[tokio::test]
async fn a_fork_does_the_rest_again_also_on_a_newer_plan() {
    let nodes = "{ id: a, type: log, message: one, next: b }
         { id: b, type: end, result: '{{ steps.a }}' }";
    let world = World::new(&[("forked", nodes)]);
    let engine = world.engine();
    let (_, past) = run(&engine, "forked", json!({})).await;
    let step = "b".parse().unwrap();
    let mut from =
        ForkPoint { run: past.summary.run, step, changes: Vec::new(), on_new_plan: false };
    let changed = cairn_core::flow::Change { instance: "a".parse().unwrap(), output: json!("two") };
    from.changes.push(changed);
    let preview = engine.preview(&from, &Forker::local("tester")).await.unwrap();
    assert_eq!((preview.again.len(), preview.kept.len()), (1, 1));
    let forked = engine.fork(&from, &Forker::local("tester")).await.unwrap();
    assert_eq!(engine.ended(forked.run).await.unwrap().result, json!("two"));
    write(&world.home.path().join("workflows"), "forked", &nodes.replace("'{{ steps.a }}'", "new"));
    from.on_new_plan = true;
    let forked = engine.fork(&from, &Forker::local("tester")).await.unwrap();
    assert_eq!(engine.ended(forked.run).await.unwrap().result, json!("new"));
    assert_eq!(world.tries(), [1], "what was kept is not done again");
    from.step = "nowhere".parse().unwrap();
    assert_eq!(
        engine.fork(&from, &Forker::local("tester")).await.unwrap_err().code(),
        "RUN_FORK_POINT"
    );
    from.step = "aa".parse().unwrap();
    let told = engine.fork(&from, &Forker::local("tester")).await.unwrap_err().to_string();
    assert!(told.ends_with("the plan has no step `aa`; did you mean `a`?"), "{told}");
}

#[tokio::test]
async fn large_outputs_are_kept_beside_the_log() {
    let world = World::new(&[(
        "large",
        "{ id: a, type: log, message: '{{ event.payload.text }}', next: b }
         { id: b, type: end, result: '{{ steps.a }}' }",
    )]);
    let text = "x".repeat(100_000);
    let nodes = json!({"text": text});
    let (ended, past) = run(&world.engine(), "large", nodes).await;
    assert_eq!(ended.result["message"].as_str().map(str::len), Some(100_000));
    assert_eq!(past.state.steps.len(), 2);
}

#[tokio::test]
async fn no_more_runs_are_under_way_than_a_workflow_allows() {
    let world = World::new(&[(
        "narrow",
        "name: narrow\nconcurrency: 1\ngraph: { nodes: [{ id: a, type: log, message: hold }] }",
    )]);
    world.done.holds.store(true, std::sync::atomic::Ordering::SeqCst);
    let engine = world.engine();
    let one = engine.submit(request("narrow", json!({}))).await.unwrap();
    world.done.held.notified().await;
    let two = engine.submit(request("narrow", json!({}))).await.unwrap();
    assert_eq!(engine.past(two.run).await.unwrap().summary.status.name(), "queued");
    world.done.holds.store(false, std::sync::atomic::Ordering::SeqCst);
    world.done.go.notify_one();
    for asked in [one, two] {
        assert_eq!(engine.ended(asked.run).await.unwrap().status, EndStatus::Succeeded);
    }
}

/// A workflow whose trigger says what becomes of what is too much; its runs stay under way.
fn limited(overflow: &str, limit: &str) -> String {
    format!(
        "name: w\n{limit}\ntriggers: [{{ type: manual, id: m, overflow: {overflow} }}]\n\
         graph:\n  nodes:\n    - {{ id: a, type: log, message: hold }}\n"
    )
}

fn fired(key: &str) -> RunRequest {
    let (trigger, key) = ("m".parse().ok(), Some(key.to_owned()));
    RunRequest { trigger, key, ..request("w", json!({})) }
}

#[tokio::test]
async fn what_comes_over_a_limit_goes_as_its_trigger_says() {
    let cases = [
        ("drop", "concurrency: 1", "TRIGGER_DROPPED"),
        ("drop", "rate_limit: 1/h", "TRIGGER_DROPPED"),
        ("reject", "concurrency: 1", "TRIGGER_OVERFLOW"),
        ("reject", "rate_limit: 1/h", "RUN_RATE_LIMITED"),
        ("queue", "concurrency: 1", "queued"),
        ("queue", "rate_limit: 1/h", "queued"),
    ];
    for (overflow, limit, wanted) in cases {
        let world = World::new(&[("w", &limited(overflow, limit))]);
        world.done.holds.store(true, Ordering::SeqCst);
        let engine = world.engine();
        let first = engine.submit(fired("1")).await.unwrap();
        world.done.held.notified().await;
        let seen = match engine.submit(fired("2")).await {
            Ok(asked) => engine.state(asked.run).await.unwrap().0.status.name(),
            Err(error) => error.code(),
        };
        assert_eq!(seen, wanted, "{overflow} over {limit}");
        assert!(engine.submit(fired("1")).await.unwrap().replayed, "the first is known");
        let refused = wanted != "queued";
        let runs = engine.list(&Filter::default()).await.unwrap();
        assert_eq!(runs.len(), if refused { 1 } else { 2 }, "{overflow} over {limit}: {runs:?}");
        let file = world.home.path().join("workflows/w/workflow.yaml");
        let (workflow, trigger) = (Identity::of_place(&file), "m".parse().unwrap());
        let noted = engine.refused(&workflow, &trigger).await.unwrap();
        let noted = noted.map(|noted| (noted.count, noted.code));
        assert_eq!(noted, refused.then(|| (1, wanted.to_owned())), "{overflow} over {limit}");
        world.done.go.notify_one();
        engine.ended(first.run).await.unwrap();
    }
}

#[tokio::test]
async fn a_run_that_waits_for_the_rate_begins_when_it_may_also_after_a_restart() {
    let world = World::new(&[("w", &limited("queue", "rate_limit: { max: 1, per_sec: 1 }"))]);
    let engine = world.engine();
    let runs = [
        engine.submit(fired("1")).await.unwrap().run,
        engine.submit(fired("2")).await.unwrap().run,
        engine.submit(fired("3")).await.unwrap().run,
    ];
    engine.ended(runs[1]).await.unwrap();
    engine.stop(Duration::from_secs(5)).await;
    drop(engine);
    let engine = world.engine();
    engine.recover().await.unwrap();
    engine.ended(runs[2]).await.unwrap();
    let mut began = Vec::new();
    for run in runs {
        began.push(engine.state(run).await.unwrap().0.started_ms.unwrap());
    }
    let apart: Vec<u64> = began.windows(2).map(|two| two[1] - two[0]).collect();
    // A run is counted a moment before it begins.
    assert!(apart.iter().all(|ms| *ms >= 900), "{apart:?} ms apart");
}

#[tokio::test]
async fn runs_that_are_asked_for_at_once_have_each_a_first_event_of_their_own() {
    let world = World::new(&[("w", "{ id: a, type: log, message: x }")]);
    let engine = world.engine();
    engine.submit(request("w", json!({}))).await.unwrap();
    let asked = (0..8).map(|_| {
        let engine = engine.clone();
        tokio::spawn(async move { engine.submit(request("w", json!({}))).await.unwrap().run })
    });
    for asked in asked.collect::<Vec<_>>() {
        let past = engine.past(asked.await.unwrap()).await.unwrap();
        assert_eq!(past.summary.first, past.events[0].index, "{:?}", past.summary);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_burst_no_more_are_let_in_than_may_be_under_way() {
    for (overflow, wanted) in [("drop", "TRIGGER_DROPPED"), ("reject", "TRIGGER_OVERFLOW")] {
        let world = World::new(&[("w", &limited(overflow, "concurrency: 2"))]);
        world.done.holds.store(true, Ordering::SeqCst);
        let engine = world.engine();
        let asked = (0..20).map(|key| {
            let engine = engine.clone();
            tokio::spawn(async move { engine.submit(fired(&key.to_string())).await })
        });
        let (mut begun, mut refused) = (0, Vec::new());
        for asked in asked.collect::<Vec<_>>() {
            match asked.await.unwrap() {
                Ok(_) => begun += 1,
                Err(error) => refused.push(error.code()),
            }
        }
        assert_eq!(begun, 2, "{overflow}: {refused:?}");
        assert!(refused.iter().all(|code| *code == wanted), "{overflow}: {refused:?}");
        assert_eq!(engine.list(&Filter::default()).await.unwrap().len(), 2);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_is_told_of_a_run_finds_it() {
    let world = World::new(&[("w", &limited("queue", "concurrency: 1"))]);
    let engine = world.engine();
    for key in 0..30 {
        let asked = (0..6).map(|_| {
            let engine = engine.clone();
            tokio::spawn(async move {
                let asked = engine.submit(fired(&key.to_string())).await.unwrap();
                (asked, engine.state(asked.run).await.map(|(found, _)| found.run))
            })
        });
        let mut fresh = 0;
        for asked in asked.collect::<Vec<_>>() {
            let (asked, found) = asked.await.unwrap();
            assert_eq!(found.unwrap(), asked.run, "key {key}");
            fresh += usize::from(!asked.replayed);
        }
        assert_eq!(fresh, 1, "key {key}");
    }
}

#[tokio::test]
async fn a_child_is_cancelled_with_its_parent_also_by_whoever_takes_both_over() {
    for is_taken_over in [false, true] {
        let world = World::new(&[
            ("outer", "{ id: c, type: workflow, workflow: project.inner }"),
            ("inner", "{ id: a, type: wait, duration_sec: 3600 }"),
        ]);
        let engine = world.engine();
        let parent = engine.submit(request("outer", json!({}))).await.unwrap().run;
        let of_parent = |engine: cairn_engine::flow::Automations| async move {
            loop {
                let runs = engine.list(&Filter::default()).await.unwrap();
                if let Some(child) = runs.iter().find(|run| run.parent == Some(parent)) {
                    return child.run;
                }
                tokio::task::yield_now().await;
            }
        };
        let child = of_parent(engine.clone()).await;
        engine.cancel(parent, "tester", "enough").await.unwrap();
        let engine = if is_taken_over {
            // Whoever cancelled it is gone at once.
            drop(engine);
            let engine = world.engine();
            while engine.recover().await.is_err() {
                tokio::task::yield_now().await;
            }
            engine
        } else {
            engine
        };
        for run in [parent, child] {
            let ended = tokio::time::timeout(Duration::from_secs(20), engine.ended(run));
            let ended = ended.await.unwrap().unwrap();
            assert_eq!(ended.status, EndStatus::Cancelled, "taken over: {is_taken_over}");
        }
    }
}
