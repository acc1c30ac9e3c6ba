//! The same acknowledgement again: the same answer, and one advance.

use cairn_core::event::EventData;
use cairn_core::event::guided::Autonomy;
use cairn_engine::guided::answer::NextIntent;
use cairn_engine::guided::ask::{Checkpoint, CheckpointAt, Continue, Output, Tokens, Wanted};
use cairn_store::Config;

use crate::world::{NOTES, THREE, World, ack, step};

fn advances(events: &[cairn_core::event::Event]) -> usize {
    events.iter().filter(|event| matches!(event.data, EventData::AdvanceRecorded(_))).count()
}

#[tokio::test]
async fn an_acknowledgement_again_and_again_is_one_advance_and_one_answer() {
    let world = World::of(THREE);
    let first = world.start("project.three").await;
    let session = first.session.unwrap().session;
    let call = ack(&first.tokens.continue_token, NOTES, Vec::new());
    let second = world.guide.proceed(call.clone()).await.unwrap();
    let written = world.writes();
    for _ in 0..100 {
        assert_eq!(world.guide.proceed(call.clone()).await.unwrap(), second);
    }
    assert_eq!(world.writes(), written, "a replay writes nothing");
    let again = world.restarted();
    assert_eq!(again.proceed(call.clone()).await.unwrap(), second, "also after a restart");
    // Also when the run has gone on, here and on another branch.
    let third = world.go(&second).await;
    world.go(&world.back(&second.tokens).await).await;
    assert_eq!(world.guide.proceed(call).await.unwrap(), second);
    assert_eq!(step(&third), "third");
    assert_eq!(advances(&world.events(session).await), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn sixteen_at_once_are_one_advance() {
    let world = World::of(THREE);
    let first = world.start("project.three").await;
    let session = first.session.unwrap().session;
    let call = ack(&first.tokens.continue_token, NOTES, Vec::new());
    // Most of them as other processes would: with a store of their own over the same data.
    let guides = [world.guide.clone(), world.restarted(), world.restarted(), world.restarted()];
    let calls = (0..16).map(|number| {
        let guide = guides.get(number % 4).unwrap().clone();
        let call = call.clone();
        tokio::spawn(async move { guide.proceed(call).await.unwrap() })
    });
    let mut answers = Vec::new();
    for call in calls.collect::<Vec<_>>() {
        answers.push(call.await.unwrap());
    }
    answers.dedup();
    assert_eq!(answers.len(), 1, "{answers:#?}");
    assert_eq!(advances(&world.events(session).await), 1);
}

// case: token.other-output
#[tokio::test]
async fn replay_is_fact_returning_whatever_is_sent_along() {
    let world = World::of(THREE);
    let first = world.start("project.three").await;
    let second = world.go(&first).await;
    let other = ack(&first.tokens.continue_token, "Something else entirely.", Vec::new());
    let replayed = world.guide.proceed(other).await.unwrap();
    assert_eq!(step(&replayed), "first", "the place that was rewound to");
    assert_eq!(replayed.next_intent, NextIntent::PerformPendingThenContinue);
    let there = crate::world::back(&replayed.branches[0].continue_token);
    assert_eq!(step(&world.guide.proceed(there).await.unwrap()), step(&second));
    let codes: Vec<&str> = replayed.warnings.iter().map(|warning| warning.code.name()).collect();
    assert_eq!(codes, ["replayed_with_other_input", "context_unset"]);
}

#[tokio::test]
async fn asking_for_other_preferences_is_another_answer() {
    let world = World::of(THREE);
    let first = world.start("project.three").await;
    let call = ack(&first.tokens.continue_token, NOTES, Vec::new());
    world.guide.proceed(call.clone()).await.unwrap();
    let preferences = Wanted { autonomy: Some(Autonomy::FullAutoNeverStop), risk_policy: None };
    let other = Continue { preferences, ..call.clone() };
    let replayed = world.guide.proceed(other).await.unwrap();
    let codes: Vec<&str> = replayed.warnings.iter().map(|warning| warning.code.name()).collect();
    assert_eq!(codes, ["replayed_with_other_input", "context_unset"], "they did not come to hold");
    assert_eq!(world.guide.proceed(call).await.unwrap().warnings, []);
}

#[tokio::test]
async fn a_block_is_replayed_and_its_retry_token_is_a_fresh_attempt() {
    let world = World::of(THREE);
    let first = world.start("project.three").await;
    let call = ack(&first.tokens.continue_token, "  ", Vec::new());
    let blocked = world.guide.proceed(call.clone()).await.unwrap();
    assert_eq!(blocked.blockers.len(), 1);
    assert_eq!(world.guide.proceed(call).await.unwrap(), blocked);
    let retry = blocked.retry_continue_token.clone().unwrap();
    assert_ne!(retry, first.tokens.continue_token);
    let second = world.guide.proceed(ack(&retry, NOTES, Vec::new())).await.unwrap();
    assert_eq!(step(&second), "second");
}

#[tokio::test]
async fn rehydrate_is_pure() {
    let world = World::of(THREE);
    let first = world.start("project.three").await;
    let second = world.go(&first).await;
    let session = first.session.unwrap().session;
    let (written, recorded) = (world.writes(), world.events(session).await.len());
    for _ in 0..10 {
        let back = world.back(&second.tokens).await;
        assert_eq!(step(&back), "second");
        assert!(back.recap.unwrap().text.contains("src/cart.rs"));
    }
    assert_eq!((world.writes(), world.events(session).await.len()), (written, recorded));
}

#[tokio::test]
async fn a_checkpoint_again_is_one_checkpoint() {
    let world = World::of(THREE);
    let first = world.start("project.three").await;
    let session = first.session.unwrap().session;
    let call = Checkpoint {
        at: CheckpointAt::Compact(first.tokens.checkpoint_token.clone().unwrap()),
        output: Output { notes: Some("Halfway through.".into()), artifacts: Vec::new() },
        replaces_notes: false,
        tokens: Tokens::Compact,
        by: None,
    };
    let left = world.guide.checkpoint(call.clone()).await.unwrap();
    let recorded = world.events(session).await.len();
    assert_eq!(world.guide.checkpoint(call.clone()).await.unwrap(), left);
    assert_eq!(world.restarted().checkpoint(call).await.unwrap(), left);
    assert_eq!(world.events(session).await.len(), recorded);
    // The run goes on from the checkpoint, whose notes are part of what happened.
    let back = world.back(&left.tokens).await;
    assert_eq!(step(&back), "first");
    assert!(back.recap.unwrap().text.contains("Halfway"));
    // The old token still goes on: a checkpoint is no step, so this is no fork.
    let second = world.go(&first).await;
    assert_eq!(step(&second), "second");
    let forked = world.events(session).await.into_iter().any(|event| {
        let EventData::EdgeCreated(edge) = event.data else { return false };
        edge.cause.kind == cairn_core::event::guided::EdgeCauseKind::NonTipAdvance
    });
    assert!(!forked);
}

#[tokio::test]
async fn other_notes_under_a_used_checkpoint_token_are_not_kept_in_silence() {
    let world = World::of(THREE);
    let first = world.start("project.three").await;
    let note = |token: &str, text: &str| Checkpoint {
        at: CheckpointAt::Compact(token.to_owned()),
        output: Output { notes: Some(text.into()), artifacts: Vec::new() },
        replaces_notes: false,
        tokens: Tokens::Compact,
        by: None,
    };
    let token = first.tokens.checkpoint_token.as_ref().unwrap();
    assert_eq!(world.guide.checkpoint(note(token, "One.")).await.unwrap().warnings, []);
    let again = world.guide.checkpoint(note(token, "Two.")).await.unwrap();
    assert_eq!(again.warnings.first().unwrap().code.name(), "replayed_with_other_input");
    let next = again.tokens.checkpoint_token.unwrap();
    assert_eq!(world.guide.checkpoint(note(&next, "Two.")).await.unwrap().warnings, []);
}

#[tokio::test]
async fn every_token_of_a_blocked_answer_can_be_used() {
    let world = World::of(THREE);
    let first = world.start("project.three").await;
    let call = ack(&first.tokens.continue_token, " ", Vec::new());
    let blocked = world.guide.proceed(call).await.unwrap();
    assert_eq!(Some(&blocked.tokens.continue_token), blocked.retry_continue_token.as_ref());
    let note = Checkpoint {
        at: CheckpointAt::Compact(blocked.tokens.checkpoint_token.clone().unwrap()),
        output: Output { notes: Some("Stuck.".into()), artifacts: Vec::new() },
        replaces_notes: false,
        tokens: Tokens::Compact,
        by: None,
    };
    assert_eq!(world.guide.checkpoint(note).await.unwrap().warnings, []);
    assert_eq!(step(&world.go(&blocked).await), "second");
}

#[tokio::test]
async fn what_is_recorded_fits_together() {
    let world = World::of(THREE);
    let first = world.start("project.three").await;
    let second = world.go(&first).await;
    world.go(&world.back(&first.tokens).await).await;
    world.go(&world.go(&second).await).await;
    let session = first.session.unwrap().session;
    cairn_core::lineage::check(&world.events(session).await).unwrap();
    let store = cairn_store::open(&Config::files(world.home.path().join("data"))).unwrap();
    let report = cairn_store::verify(&store, session).await.unwrap();
    assert_eq!(report.problems, [""; 0]);
}

#[tokio::test]
async fn notes_are_corrected_by_linkage_and_answers_stay_as_they_were() {
    let world = World::of(THREE);
    let first = world.start("project.three").await;
    let session = first.session.unwrap().session;
    let long = format!("{} The wrong file was named.", "x".repeat(5000));
    let call = ack(&first.tokens.continue_token, &long, Vec::new());
    let second = world.guide.proceed(call.clone()).await.unwrap();
    assert_eq!(second.warnings.first().unwrap().code.name(), "notes_truncated");
    let correct = Checkpoint {
        at: CheckpointAt::Compact(second.tokens.checkpoint_token.clone().unwrap()),
        output: Output { notes: Some("It was `src/total.rs`.".into()), artifacts: Vec::new() },
        replaces_notes: true,
        tokens: Tokens::Compact,
        by: None,
    };
    let corrected = world.guide.checkpoint(correct.clone()).await.unwrap();
    let recorded = world.events(session).await.len();
    assert_eq!(world.guide.checkpoint(correct.clone()).await.unwrap(), corrected, "once");
    // What else comes with that token is not kept, and that is said.
    let other = Output { notes: Some("Something else.".into()), artifacts: Vec::new() };
    for replaces_notes in [true, false] {
        let ask = Checkpoint { output: other.clone(), replaces_notes, ..correct.clone() };
        let told = world.guide.checkpoint(ask).await.unwrap();
        assert_eq!(told.warnings.first().unwrap().code.name(), "replayed_with_other_input");
        assert_eq!(told.tokens, corrected.tokens);
    }
    assert_eq!(world.events(session).await.len(), recorded);
    let back = world.back(&second.tokens).await;
    let recap = back.recap.unwrap().text;
    assert_eq!(recap, "[first]\nIt was `src/total.rs`.", "only what stands is told");
    assert_eq!(world.guide.proceed(call).await.unwrap(), second, "and no answer changes");
    // The next checkpoint has a token of its own, and the run goes on.
    assert_ne!(corrected.tokens.checkpoint_token, second.tokens.checkpoint_token);
    let (one, two) = (world.back(&second.tokens).await, world.back(&second.tokens).await);
    assert_ne!(one.tokens.checkpoint_token, two.tokens.checkpoint_token, "each has its own");
    assert_eq!(step(&world.go(&second).await), "third");
    let history: Vec<_> = world
        .events(session)
        .await
        .into_iter()
        .filter_map(|event| match event.data {
            EventData::NodeOutputAppended(output) => Some(output),
            _ => None,
        })
        .collect();
    let (before, after) = (history.first().unwrap(), history.get(1).unwrap());
    assert_eq!(after.supersedes_output_id, Some(before.output_id));
    cairn_core::lineage::check(&world.events(session).await).unwrap();
}
