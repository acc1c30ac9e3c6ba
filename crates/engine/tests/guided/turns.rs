//! Every kind of loop, turn by turn, and the names of the steps in it.

use cairn_core::event::guided::Autonomy;
use cairn_core::snapshot::EngineState;
use cairn_engine::guided::answer::Answer;
use serde_json::{Value, json};

use crate::loops::traces;
use crate::world::{THREE, World, blockers, prompt, step};

/// A workflow with one loop of this head and a body of two steps, and a step behind it.
fn looped(head: &str) -> String {
    format!(
        "
id: project.looped
name: Looped
description: A loop and what comes behind it.
version: 1.0.0
steps:
  - id: begin
    title: Begin
    prompt: Begin.
  - id: round
    type: loop
    title: Round
    loop: {{{head}}}
    body:
      - {{id: one, title: One, prompt: One.}}
      - {{id: two, title: Two, prompt: Two.}}
  - {{id: end, title: End, prompt: End.}}
"
    )
}

const NESTED: &str = "
id: project.nested
name: Nested
description: A loop in a loop.
version: 1.0.0
steps:
  - id: outer
    type: loop
    title: Outer
    loop: {type: for, count: 2, maxIterations: 5}
    body:
      - {id: first, title: First, prompt: First.}
      - id: inner
        type: loop
        title: Inner
        loop: {type: forEach, items: files, maxIterations: 5}
        body: [{id: look, title: Look, prompt: 'Look at {{currentItem}}.'}]
      - {id: last, title: Last, prompt: Last.}
";

/// Two loops, one in the other, that artifacts end.
const DECIDED: &str = "
id: project.decided-twice
name: Decided twice
description: Two loops that artifacts end.
version: 1.0.0
steps:
  - id: outer
    type: loop
    title: Outer
    loop:
      type: while
      maxIterations: 4
      conditionSource: {kind: artifact_contract, contractRef: wr.contracts.loop_control}
    body:
      - {id: decide-outer, title: Decide, prompt: Decide., outputContract: {contractRef: wr.contracts.loop_control}}
      - id: inner
        type: loop
        title: Inner
        loop:
          type: while
          maxIterations: 4
          conditionSource: {kind: artifact_contract, contractRef: wr.contracts.loop_control}
        body:
          - {id: decide-inner, title: Decide, prompt: Decide., outputContract: {contractRef: wr.contracts.loop_control}}
  - {id: end, title: End, prompt: End.}
";

/// The instances of steps that a run stood at, in order.
async fn instances(world: &World, answer: &Answer) -> String {
    let states = world.states(answer.session.unwrap().session).await;
    let keys = states.iter().filter_map(|state| state.pending());
    keys.map(|key| key.to_string()).collect::<Vec<_>>().join(" ")
}

fn decision(word: &str, named: Option<&str>) -> Vec<Value> {
    let mut artifact = json!({"kind": "wr.loop_control", "decision": word});
    if let Some(named) = named {
        artifact.as_object_mut().unwrap().insert("loopId".into(), json!(named));
    }
    vec![artifact]
}

#[tokio::test]
async fn iterations_count_from_0_and_only_a_new_turn_counts_one_up() {
    let world = World::of(&looped("type: for, count: 2, maxIterations: 2"));
    let first = world.start("looped").await;
    world.to_the_end(first.clone()).await;
    assert_eq!(
        instances(&world, &first).await,
        "begin round@0::one round@0::two round@1::one round@1::two end"
    );
}

#[tokio::test]
async fn a_step_in_nested_loops_is_named_by_every_turn_around_it() {
    let world = World::of(NESTED);
    let first = world.start_with("nested", json!({"files": ["a", "b"]})).await;
    world.to_the_end(first.clone()).await;
    assert_eq!(
        instances(&world, &first).await,
        "outer@0::first outer@0/inner@0::look outer@0/inner@1::look outer@0::last \
         outer@1::first outer@1/inner@0::look outer@1/inner@1::look outer@1::last"
    );
}

#[tokio::test]
async fn a_for_loop_makes_as_many_turns_as_its_count_says() {
    for (count, context, turns) in [
        ("3", json!({}), 3),
        ("0", json!({}), 0),
        ("plan.slices", json!({"plan": {"slices": 2}}), 2),
        ("plan.slices", json!({"plan": {"slices": 0}}), 0),
    ] {
        let world = World::of(&looped(&format!("type: for, count: {count}, maxIterations: 5")));
        let first = world.start_with("looped", context.clone()).await;
        let steps = world.to_the_end(first).await;
        assert_eq!(steps.iter().filter(|step| *step == "one").count(), turns, "{count} {context}");
    }
}

#[tokio::test]
async fn while_and_until_loops_look_at_their_condition_before_every_turn() {
    let head = "maxIterations: 9, condition: {var: open, equals: true}";
    for (kind, goes, stops) in [("while", true, false), ("until", false, true)] {
        let world = World::of(&looped(&format!("type: {kind}, {head}")));
        let begin = world.start_with("looped", json!({"open": stops})).await;
        assert_eq!(step(&world.go(&begin).await), "end", "{kind}: no turn at all");
        let begin = world.start_with("looped", json!({"open": goes})).await;
        let one = world.go(&begin).await;
        assert_eq!(step(&one), "one");
        // In the middle of a turn nothing is looked at.
        let two = world.go_knowing(&one, json!({"open": stops})).await;
        assert_eq!(step(&two), "two", "{kind}");
        let again = world.go_knowing(&two, json!({"open": goes})).await;
        assert_eq!(step(&again), "one", "{kind}");
        let two = world.go(&again).await;
        assert_eq!(step(&world.go_knowing(&two, json!({"open": stops})).await), "end", "{kind}");
    }
}

#[tokio::test]
async fn a_list_is_looked_at_before_every_turn() {
    let world = World::of(&looped("type: forEach, items: files, itemVar: file, maxIterations: 9"));
    let begin = world.start_with("looped", json!({"files": ["a", "b", "c"]})).await;
    let one = world.go(&begin).await;
    // It becomes shorter than the turn that is under way: the turn is made to its end.
    let two = world.go_knowing(&one, json!({"files": []})).await;
    assert_eq!(step(&two), "two");
    assert_eq!(step(&world.go(&two).await), "end");
    // It becomes longer: what was added has its turn.
    let one = world.go(&world.back(&begin.tokens).await).await;
    let longer = json!({"files": ["a", "b", "c", "d"]});
    let steps = world.to_the_end(world.go_knowing(&one, longer).await).await;
    assert_eq!(steps.iter().filter(|step| *step == "two").count(), 4);
}

#[tokio::test]
async fn a_loop_whose_steps_are_all_passed_over_ends_and_says_so() {
    let text = NESTED.replace("title: Look,", "title: Look, runCondition: {var: never},");
    let world = World::of(&text);
    let first = world.start_with("nested", json!({"files": ["a", "b", "c"]})).await;
    assert_eq!(world.to_the_end(first).await, ["first", "last", "first", "last"]);
    // Also where only an artifact could end it, and nobody is asked for one.
    let text = DECIDED.replace("title: Decide,", "title: Decide, runCondition: {var: never},");
    let world = World::of(&text);
    assert_eq!(world.to_the_end(world.start("decided-twice").await).await, ["end"]);
}

#[tokio::test]
async fn a_decision_without_a_name_means_the_loop_that_its_step_stands_in() {
    let world = World::of(DECIDED);
    let first = world.start("decided-twice").await;
    assert_eq!(step(&first), "decide-outer");
    let inner = world.go_with(&first, decision("stop", None)).await;
    assert_eq!(step(&inner), "decide-inner", "the inner loop has its own decision");
    let end = world.go_with(&inner, decision("stop", None)).await;
    assert_eq!(step(&end), "end", "and the outer one has not forgotten its own");
}

#[tokio::test]
async fn a_decision_can_name_a_loop_further_out() {
    let world = World::of(DECIDED);
    let first = world.start("decided-twice").await;
    let inner = world.go_with(&first, decision("continue", Some("outer"))).await;
    let both = [decision("stop", Some("inner")), decision("stop", Some("outer"))].concat();
    assert_eq!(step(&world.go_with(&inner, both).await), "end");
}

#[tokio::test]
async fn decisions_that_no_loop_can_act_on_are_not_carried_along() {
    let world = World::with(&[("three.yaml", THREE), ("twice.yaml", DECIDED)]);
    for (workflow, named) in [("three", None), ("decided-twice", Some("elsewhere"))] {
        let mut answer = world.start_in(workflow, Autonomy::FullAutoNeverStop).await;
        let first = answer.clone();
        while !answer.is_complete {
            let many = ["continue", "stop"].map(|word| decision(word, named)).concat();
            answer = world.go_with(&answer, many).await;
        }
        for state in world.states(first.session.unwrap().session).await {
            if let EngineState::Running(running) = state {
                assert_eq!(running.decisions(), [], "{workflow}");
            }
        }
    }
    // What a loop will act on is carried along once.
    let answer = world.start("decided-twice").await;
    let both = [decision("continue", Some("outer")), decision("stop", Some("outer"))].concat();
    world.go_with(&answer, both).await;
    let states = world.states(answer.session.unwrap().session).await;
    let Some(EngineState::Running(running)) = states.last() else { panic!("{states:?}") };
    assert_eq!(running.decisions().len(), 1);
}

#[tokio::test]
async fn a_limit_is_a_count_of_turns() {
    let world = World::of(DECIDED);
    let mut answer = world.start_in("decided-twice", Autonomy::FullAutoNeverStop).await;
    let first = answer.clone();
    while !answer.is_complete {
        answer = world.go(&answer).await;
    }
    let turns = instances(&world, &first).await;
    assert!(turns.contains("outer@3/inner@3::decide-inner"), "{turns}");
    assert!(!turns.contains("@4"), "{turns}");
}

#[tokio::test]
async fn what_does_not_fit_under_the_limit_is_never_dropped_in_silence() {
    for (head, context, fits) in [
        (
            "type: forEach, items: files, maxIterations: 2",
            json!({"files": [1, 2, 3]}),
            json!({"files": [1, 2]}),
        ),
        ("type: for, count: turns, maxIterations: 2", json!({"turns": 3}), json!({"turns": 2})),
    ] {
        let world = World::of(&looped(head));
        let mut answer = world.start_with("looped", context.clone()).await;
        for _ in 0..4 {
            answer = world.go(&answer).await;
        }
        assert_eq!(step(&answer), "two");
        let blocked = world.go(&answer).await;
        assert_eq!(blockers(&blocked), ["INVARIANT_VIOLATION"], "{head}");
        let message = &blocked.blockers.first().unwrap().message;
        for part in ["`round`", "2 turns", "iteration 2"] {
            assert!(message.contains(part), "{message}");
        }
        let fresh = world.back(&answer.tokens).await;
        assert_eq!(step(&world.go_knowing(&fresh, fits).await), "end", "{head}");
        // Where nothing may stop, it is disclosed.
        let mut answer = world.start_in("looped", Autonomy::FullAutoNeverStop).await;
        answer = world.go_knowing(&answer, context).await;
        for _ in 0..4 {
            answer = world.go(&answer).await;
        }
        assert_eq!(step(&answer), "end");
        let told = answer.warnings.iter().find(|warning| warning.code.name() == "gap_recorded");
        assert!(told.unwrap().message.contains("2 turns"), "{told:?}");
    }
}

#[tokio::test]
async fn a_condition_that_still_holds_at_the_limit_ends_the_loop_in_the_trace() {
    for head in [
        "type: while, condition: {var: open}, maxIterations: 2",
        "type: until, condition: {not: {var: open}}, maxIterations: 2",
    ] {
        let world = World::of(&looped(head));
        let first = world.start_with("looped", json!({"open": true})).await;
        let steps = world.to_the_end(first.clone()).await;
        assert_eq!(steps, ["begin", "one", "two", "one", "two", "end"], "{head}");
        let told = traces(&world, first.session.unwrap().session).await;
        assert!(told.contains("but 2 turns are the limit"), "{told}");
    }
}

#[tokio::test]
async fn inner_turns_hide_outer_ones() {
    let world = World::of(NESTED);
    let first = world.start_with("nested", json!({"files": ["a", "b"]})).await;
    let look = world.go(&first).await;
    assert!(prompt(&look).starts_with("Look at a."), "{}", prompt(&look));
    assert!(prompt(&world.go(&look).await).starts_with("Look at b."));
}
