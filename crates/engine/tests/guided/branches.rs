//! Rewinding and forking: an older token is an older place, and going on from it a branch.

use cairn_core::event::EventData;
use cairn_core::event::guided::{EdgeCauseKind, RiskPolicy, TraceKind};
use cairn_core::projection::session::SessionView;
use cairn_engine::guided::ask::{At, Continue, Start, Tokens, Wanted};

use crate::world::{NOTES, THREE, World, ack, step};

#[tokio::test]
async fn as_many_attempts_as_branches() {
    let world = World::of(THREE);
    let first = world.start("project.three").await;
    let run = first.session.unwrap();
    let mut back = first.clone();
    for number in 1..=5 {
        let notes = format!("{NOTES} Attempt {number}.");
        let token = &back.tokens.continue_token;
        let next = world.guide.proceed(ack(token, &notes, Vec::new())).await.unwrap();
        assert_eq!(step(&next), "second");
        back = world.back(&first.tokens).await;
        assert_eq!(back.branches.len(), number.min(5));
    }
    let events = world.events(run.session).await;
    let mut view = SessionView::default();
    events.iter().for_each(|event| view.apply(event));
    let dag = view.runs.get(&run.run).unwrap().dag().unwrap();
    assert_eq!(dag.branches().len(), 5);
    let causes: Vec<EdgeCauseKind> = dag.edges().iter().map(|edge| edge.cause.kind).collect();
    assert_eq!(causes.first(), Some(&EdgeCauseKind::IntentionalFork));
    assert!(causes.iter().skip(1).all(|cause| *cause == EdgeCauseKind::NonTipAdvance));
    let detected = events.iter().filter(|event| match &event.data {
        EventData::DecisionTraceAppended(trace) => {
            trace.entries.iter().any(|entry| entry.kind == TraceKind::DetectedNonTipAdvance)
        }
        _ => false,
    });
    assert_eq!(detected.count(), 4);
}

#[tokio::test]
async fn a_place_that_is_no_tip_tells_what_follows_from_it() {
    let world = World::of(THREE);
    let first = world.start("project.three").await;
    let second = world.go(&first).await;
    let token = &second.tokens.continue_token;
    let third = world.guide.proceed(ack(token, "Wrote the parser.", Vec::new())).await.unwrap();
    let back = world.back(&first.tokens).await;
    assert_eq!(step(&back), "first");
    let branch = back.branches.first().unwrap();
    assert!(branch.preferred);
    assert_eq!(branch.nodes, 2);
    assert!(branch.summary.contains("Wrote the parser."), "{}", branch.summary);
    // Its token leads to where that branch stands.
    let there = world.guide.proceed(crate::world::back(&branch.continue_token)).await.unwrap();
    assert_eq!(there.pending.unwrap().step_id, third.pending.unwrap().step_id);
}

#[tokio::test]
async fn a_checkpoint_hides_nothing_that_follows_it() {
    let world = World::of(THREE);
    let first = world.start("project.three").await;
    let kept = world.note(&first.tokens, "Halfway through.").await;
    let deeper = world.note(&kept.tokens, "Nearly there.").await;
    let call = ack(&deeper.tokens.continue_token, NOTES, Vec::new());
    let second = world.guide.proceed(call).await.unwrap();
    assert_eq!(second.warnings, []);
    let third = world.go(&second).await;
    // Whichever token of the step somebody comes back with, the way it went is told.
    for tokens in [&first.tokens, &kept.tokens, &deeper.tokens] {
        let back = world.back(tokens).await;
        assert_eq!(step(&back), "first");
        let [branch] = back.branches.as_slice() else { panic!("{:?}", back.branches) };
        assert!(branch.preferred && branch.nodes == 2, "{branch:?}");
        let there = world.guide.proceed(crate::world::back(&branch.continue_token)).await.unwrap();
        assert_eq!(step(&there), step(&third));
    }
    // An old token that was never used is a fork all the same, and says so each time.
    for _ in 0..2 {
        let forked = world.go(&first).await;
        assert_eq!(forked.warnings.iter().map(|w| w.code.name()).collect::<Vec<_>>(), ["branched"]);
    }
    assert_eq!(world.back(&kept.tokens).await.branches.len(), 2);
}

#[tokio::test]
async fn a_checkpoint_left_behind_knows_that_the_run_went_on() {
    let world = World::of(THREE);
    let first = world.start("project.three").await;
    let kept = world.note(&first.tokens, "Halfway through.").await;
    world.go(&first).await;
    assert_eq!(world.back(&kept.tokens).await.branches.len(), 1);
    let call = ack(&kept.tokens.continue_token, NOTES, Vec::new());
    let forked = world.guide.proceed(call).await.unwrap();
    assert!(forked.warnings.iter().any(|warning| warning.code.name() == "branched"), "{forked:?}");
}

#[tokio::test]
async fn a_branch_keeps_its_own_context_and_preferences() {
    let world = World::of(THREE);
    let first = world.start("project.three").await;
    let with = |ticket: &str, token: &str| Continue {
        context: Some(serde_json::json!({"ticket": ticket})),
        ..ack(token, NOTES, Vec::new())
    };
    let bold = Wanted { autonomy: None, risk_policy: Some(RiskPolicy::Aggressive) };
    let call = Continue { preferences: bold, ..with("A-1", &first.tokens.continue_token) };
    let one = world.guide.proceed(call).await.unwrap();
    let again = world.back(&first.tokens).await;
    let two = world.guide.proceed(with("B-2", &again.tokens.continue_token)).await.unwrap();
    let run = first.session.unwrap();
    let mut view = SessionView::default();
    world.events(run.session).await.iter().for_each(|event| view.apply(event));
    let dag = view.runs.get(&run.run).unwrap().dag().unwrap();
    let tickets: Vec<String> = dag
        .leaves()
        .map(|leaf| view.contexts.at(dag, leaf.id).get("ticket").unwrap().to_string())
        .collect();
    assert_eq!(tickets, ["\"A-1\"", "\"B-2\""]);
    let risks: Vec<_> =
        dag.leaves().map(|leaf| view.preferences.at(dag, leaf.id).risk_policy).collect();
    assert_eq!(risks, [RiskPolicy::Aggressive, RiskPolicy::Conservative]);
    assert_ne!(one.tokens, two.tokens);
}

#[tokio::test]
async fn the_long_pair_and_the_short_token_name_the_same_place() {
    let world = World::of(THREE);
    let run = Start { workflow: "three".into(), tokens: Tokens::Pair, ..Start::default() };
    let first = world.guide.start(run).await.unwrap();
    let (state, ack_token) = first.tokens.pair.clone().unwrap();
    assert!(state.starts_with("st.v1.") && ack_token.starts_with("ack.v1."));
    let short = world.go(&first).await;
    let long = Continue {
        at: At::Pair { state: state.clone(), ack: Some(ack_token) },
        ..ack("", NOTES, Vec::new())
    };
    assert_eq!(world.guide.proceed(long).await.unwrap(), short, "one attempt, one answer");
    let alone = Continue {
        at: At::Pair { state, ack: None },
        intent: None,
        output: None,
        ..ack("", NOTES, Vec::new())
    };
    assert_eq!(step(&world.guide.proceed(alone).await.unwrap()), "first");
}

#[tokio::test]
async fn tokens_are_short_and_begin_with_the_run() {
    let world = World::of(THREE);
    let first = world.start("project.three").await;
    for token in [&first.tokens.continue_token, first.tokens.checkpoint_token.as_ref().unwrap()] {
        assert!(token.len() <= 96, "{token}");
        assert!(token.starts_with(&format!("{}.", first.label)), "{token}");
    }
    assert!(first.label.starts_with("three-"), "{}", first.label);
    assert_eq!(world.go(&first).await.label, first.label);
}
