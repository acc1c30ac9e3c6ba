//! Loops: how often they go round, what their steps see, and what is told of it.

use cairn_core::event::EventData;
use cairn_core::event::guided::Autonomy;
use cairn_engine::guided::ask::{Continue, Start};
use serde_json::{Value, json};

use crate::world::{NOTES, World, ack, blockers, step};

const DECIDED: &str = "
id: project.decided
name: Decided
description: A loop that an artifact ends.
version: 1.0.0
steps:
  - id: round
    type: loop
    title: Round and round
    loop:
      type: while
      maxIterations: 3
      conditionSource: {kind: artifact_contract, contractRef: wr.contracts.loop_control}
    body:
      - {id: work, title: Work, prompt: 'Turn {{currentIteration}}.'}
      - {id: decide, title: Decide, prompt: Decide., outputContract: {contractRef: wr.contracts.loop_control}}
  - {id: after, title: After, prompt: Finish.}
";

const EACH: &str = "
id: project.each
name: Each
description: A loop over a list.
version: 1.0.0
steps:
  - {id: begin, title: Begin, prompt: Begin.}
  - id: over
    type: loop
    title: Over the files
    loop: {type: forEach, items: files, itemVar: file, indexVar: place, maxIterations: 10}
    body: [{id: one, title: One, prompt: 'File {{file.path}} at {{place}} of {{files.length}}.'}]
  - {id: end, title: End, prompt: End.}
";

fn decision(word: &str) -> Vec<Value> {
    vec![json!({"kind": "wr.loop_control", "decision": word})]
}

pub(crate) async fn traces(world: &World, session: cairn_core::id::SessionId) -> String {
    let events = world.events(session).await;
    let lines = events.iter().filter_map(|event| match &event.data {
        EventData::DecisionTraceAppended(trace) => Some(trace.entries.clone()),
        _ => None,
    });
    let line = |entry: &cairn_core::event::guided::TraceEntry| {
        format!(
            "{}: {}",
            serde_json::to_value(entry.kind).unwrap().as_str().unwrap(),
            entry.summary
        )
    };
    lines.flatten().map(|entry| line(&entry)).collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn an_artifact_ends_a_loop_and_every_decision_is_traced() {
    let world = World::of(DECIDED);
    let first = world.start("project.decided").await;
    assert!(first.pending.as_ref().unwrap().prompt.contains("Turn 1."));
    let decide = world.go(&first).await;
    let second = world.go_with(&decide, decision("continue")).await;
    assert!(second.pending.as_ref().unwrap().prompt.contains("Turn 2."));
    let decide = world.go(&second).await;
    let after = world.go_with(&decide, decision("stop")).await;
    assert_eq!(step(&after), "after");
    insta::assert_snapshot!(traces(&world, first.session.unwrap().session).await, @r"
    evaluated_condition: no artifact has decided to stop
    entered_loop: entered loop `round`
    selected_next_step: `work` comes next
    selected_next_step: `decide` comes next
    evaluated_condition: an artifact decided to go on
    selected_next_step: `work` comes next
    selected_next_step: `decide` comes next
    evaluated_condition: an artifact decided to stop
    exited_loop: left loop `round` after 2 turns
    selected_next_step: `after` comes next
    ");
}

#[tokio::test]
async fn a_missing_decision_never_ends_a_loop() {
    let world = World::of(DECIDED);
    let first = world.start("project.decided").await;
    let decide = world.go(&first).await;
    let blocked = world.go(&decide).await;
    assert_eq!(blockers(&blocked), ["MISSING_REQUIRED_OUTPUT"]);
    // Where nothing may stop, it is disclosed, and the loop goes on to its limit.
    let mut answer = world.start_in("project.decided", Autonomy::FullAutoNeverStop).await;
    let mut steps = Vec::new();
    while !answer.is_complete {
        steps.push(step(&answer).to_owned());
        answer = world.go(&answer).await;
    }
    assert_eq!(steps, ["work", "decide", "work", "decide", "work", "decide", "after"]);
}

#[tokio::test]
async fn a_turn_beyond_the_limit_is_a_blocker_with_figures() {
    let world = World::of(DECIDED);
    let mut answer = world.start("project.decided").await;
    for _ in 0..2 {
        answer = world.go(&answer).await;
        answer = world.go_with(&answer, decision("continue")).await;
    }
    answer = world.go(&answer).await;
    let blocked = world.go_with(&answer, decision("continue")).await;
    assert_eq!(blockers(&blocked), ["INVARIANT_VIOLATION"]);
    let message = &blocked.blockers.first().unwrap().message;
    assert!(message.contains("`round`") && message.contains("3 turns"), "{message}");
    let call = ack(&blocked.retry_continue_token.unwrap(), NOTES, decision("stop"));
    assert_eq!(step(&world.guide.proceed(call).await.unwrap()), "after");
}

#[tokio::test]
async fn a_decision_about_another_loop_is_refused() {
    let world = World::of(DECIDED);
    let decide = world.go(&world.start("project.decided").await).await;
    let other = json!({"kind": "wr.loop_control", "loopId": "elsewhere", "decision": "stop"});
    let blocked = world.go_with(&decide, vec![other]).await;
    assert_eq!(blockers(&blocked), ["INVALID_REQUIRED_OUTPUT"]);
    assert!(blocked.blockers.first().unwrap().message.contains("`elsewhere`"));
}

#[tokio::test]
async fn a_loop_over_a_list_shows_each_item() {
    let world = World::of(EACH);
    let context = json!({"files": [{"path": "a.rs"}, {"path": "b.rs"}]});
    let start =
        Start { workflow: "project.each".into(), context: Some(context), ..Start::default() };
    let mut answer = world.guide.start(start).await.unwrap();
    let mut prompts = Vec::new();
    while !answer.is_complete {
        let prompt = answer.pending.as_ref().unwrap().prompt.clone();
        prompts.push(prompt.lines().next().unwrap().to_owned());
        answer = world.go(&answer).await;
    }
    assert_eq!(prompts, ["Begin.", "File a.rs at 0 of 2.", "File b.rs at 1 of 2.", "End."]);
}

#[tokio::test]
async fn a_list_that_is_not_there_is_asked_for() {
    let world = World::of(EACH);
    let first = world.start("project.each").await;
    let blocked = world.go(&first).await;
    assert_eq!(blockers(&blocked), ["INVARIANT_VIOLATION"]);
    let blocker = blocked.blockers.first().unwrap();
    assert!(blocker.message.contains("a list in the context at `files`"), "{blocker:?}");
    let call = Continue {
        context: Some(json!({"files": []})),
        ..ack(&blocked.retry_continue_token.unwrap(), NOTES, Vec::new())
    };
    let end = world.guide.proceed(call).await.unwrap();
    assert_eq!(step(&end), "end", "an empty list has no turns");
    let told = traces(&world, first.session.unwrap().session).await;
    assert!(told.contains("exited_loop: left loop `over` after 0 turns"), "{told}");
}

#[tokio::test]
async fn snapshots_stay_small_however_long_a_loop_runs() {
    let world = World::of(&DECIDED.replace("maxIterations: 3", "maxIterations: 100"));
    let mut answer = world.start("project.decided").await;
    let mut sizes = Vec::new();
    for _ in 0..60 {
        answer = world.go(&answer).await;
        answer = world.go_with(&answer, decision("continue")).await;
    }
    for event in world.events(answer_session(&world).await).await {
        if let EventData::NodeCreated(node) = event.data {
            let kind = cairn_core::pin::BlobKind::Snapshot;
            sizes.push(world.store.blobs.get(kind, node.snapshot_ref.0).await.unwrap().len());
        }
    }
    let (early, late) = (sizes.get(5).unwrap(), sizes.last().unwrap());
    assert!(late <= &(early + 16), "{early} bytes at first, {late} at last");
}

async fn answer_session(world: &World) -> cairn_core::id::SessionId {
    *world.store.sessions.list().await.unwrap().first().unwrap()
}

#[tokio::test]
async fn a_decision_that_decides_nothing_is_refused_wherever_it_is_sent() {
    let sent = [
        (json!({"kind": "wr.loop_control", "decision": "halt"}), "continue, stop"),
        (json!({"kind": "wr.loop_control"}), "continue, stop"),
        (json!({"kind": "wr.loop_control", "decision": "stop", "loopId": "rund"}), "`rund`"),
    ];
    for (artifact, part) in sent {
        let world = World::of(DECIDED);
        let work = world.start("project.decided").await;
        let blocked = world.go_with(&work, vec![artifact.clone()]).await;
        assert_eq!(blockers(&blocked), ["INVALID_REQUIRED_OUTPUT"], "{artifact}");
        assert!(blocked.blockers[0].message.contains(part), "{}", blocked.blockers[0].message);
        let never = world.start_in("project.decided", Autonomy::FullAutoNeverStop).await;
        let decide = world.go_with(&never, vec![artifact.clone()]).await;
        assert_eq!(step(&decide), "decide");
        assert!(decide.warnings.iter().any(|w| w.code.name() == "gap_recorded"), "{artifact}");
    }
}

/// Loops in loops whose every step is passed over.
const ENDLESS: &str = "
id: project.endless
name: Endless
description: Turns and turns.
version: 1.0.0
steps:
  - {id: begin, title: Begin, prompt: Begin.}
  - id: outer
    type: loop
    title: Outer
    loop: {type: for, count: 1000, maxIterations: 1000}
    body:
      - id: inner
        type: loop
        title: Inner
        loop: {type: for, count: 1000, maxIterations: 1000}
        body: [{id: never, title: Never, prompt: Never., runCondition: {var: no, equals: 1}}]
  - {id: end, title: End, prompt: End.}
";

#[tokio::test]
async fn a_walk_that_does_not_end_is_never_taken_for_the_end() {
    let world = World::of(ENDLESS);
    let begin = world.start("project.endless").await;
    let blocked = world.go(&begin).await;
    assert_eq!(blockers(&blocked), ["INVARIANT_VIOLATION"]);
    let begin = world.start_in("project.endless", Autonomy::FullAutoNeverStop).await;
    let end = world.go(&begin).await;
    assert_eq!(step(&end), "end", "the loop is left, and the run goes on behind it");
    assert!(end.warnings.iter().any(|w| w.message.contains("`outer` turns without a step")));
}
