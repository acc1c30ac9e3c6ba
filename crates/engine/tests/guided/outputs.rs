//! What a step brings: in which order it is kept, under which names, and how much of it.

use cairn_core::event::guided::{OutputChannel, OutputPayload};
use cairn_core::event::{Event, EventData};
use cairn_core::text::TRUNCATED;
use cairn_engine::guided::ask::{Checkpoint, CheckpointAt, Output, Tokens};
use serde_json::{Value, json};

use crate::world::{THREE, World, ack, blockers};

/// The outputs of a log, in order: their ids, and `notes` or the digest of an artifact.
fn outputs(events: &[Event]) -> Vec<(String, String)> {
    let output = |event: &Event| match &event.data {
        EventData::NodeOutputAppended(output) => {
            let what = match (&output.payload, output.output_channel) {
                (OutputPayload::Notes { .. }, OutputChannel::Recap) => "notes".to_owned(),
                (OutputPayload::ArtifactRef { sha256, .. }, OutputChannel::Artifact) => {
                    sha256.to_string()
                }
                other => panic!("{other:?}"),
            };
            Some((output.output_id.to_string(), what))
        }
        _ => None,
    };
    events.iter().filter_map(output).collect()
}

fn things() -> Vec<Value> {
    (0..6).map(|number| json!({"kind": "project.thing", "number": number})).collect()
}

#[tokio::test]
async fn notes_come_first_and_artifacts_by_their_digest() {
    let world = World::of(THREE);
    let mut orders = Vec::new();
    for turned in [false, true] {
        let mut artifacts = things();
        if turned {
            artifacts.reverse();
        }
        let first = world.start("project.three").await;
        world.go_with(&first, artifacts).await;
        let kept = outputs(&world.events(first.session.unwrap().session).await);
        let kept: Vec<String> = kept.into_iter().map(|(_, what)| what).collect();
        assert_eq!(kept.first().unwrap(), "notes");
        assert_eq!(kept.len(), 7);
        assert!(kept.iter().skip(1).is_sorted(), "{kept:?}");
        orders.push(kept);
    }
    orders.dedup();
    assert_eq!(orders.len(), 1, "the order in which they came does not matter");
}

#[tokio::test]
async fn what_an_attempt_leads_to_is_named_after_the_attempt() {
    let here = World::of(THREE);
    let first = here.start("project.three").await;
    let session = first.session.unwrap().session;
    let there = here.copied();
    let mut logs = Vec::new();
    for world in [&here, &there] {
        world.go_with(&first, things()).await;
        logs.push(world.events(session).await);
    }
    let [one, two] = [logs.first().unwrap(), logs.last().unwrap()];
    assert_eq!(outputs(one), outputs(two));
    let facts = |events: &[Event]| -> Vec<_> { events.iter().map(|event| event.scope).collect() };
    assert_eq!(facts(one), facts(two), "also the nodes");
    let minted = |events: &[Event]| events.last().unwrap().id;
    assert_ne!(minted(one), minted(two), "and it was done twice");
}

#[tokio::test]
async fn notes_are_cut_at_4096_bytes_between_characters() {
    let world = World::of(THREE);
    for (given, kept, warned) in [
        ("é".repeat(2048), "é".repeat(2048), false),
        // 13 bytes of marker leave 4083, and a character of two bytes does not fit in halves.
        ("é".repeat(2049), "é".repeat(2041) + TRUNCATED, true),
        (format!("{}🦀", "x".repeat(4093)), "x".repeat(4083) + TRUNCATED, true),
    ] {
        let first = world.start("project.three").await;
        let call = ack(&first.tokens.continue_token, &given, Vec::new());
        let second = world.guide.proceed(call).await.unwrap();
        let run = first.session.unwrap();
        let view = world.view(run.session).await;
        let tip = view.runs.get(&run.run).unwrap().dag().unwrap().preferred_tip().unwrap().id;
        assert_eq!(view.outputs.notes(tip), Some(kept.as_str()));
        let told = second.warnings.iter().any(|warning| warning.code.name() == "notes_truncated");
        assert_eq!(told, warned);
    }
}

#[tokio::test]
async fn notes_are_of_one_step_and_the_recap_puts_them_together() {
    let world = World::of(THREE);
    let mut answer = world.start("project.three").await;
    for text in ["Found it.", "Mended it."] {
        let call = ack(&answer.tokens.continue_token, text, Vec::new());
        answer = world.guide.proceed(call).await.unwrap();
    }
    let back = world.back(&answer.tokens).await;
    assert_eq!(back.recap.unwrap().text, "[first]\nFound it.\n\n[second]\nMended it.");
}

#[tokio::test]
async fn a_divergence_is_recorded_at_the_node_with_its_reason() {
    let world = World::of(THREE);
    let reasons = [
        "missing_user_context",
        "capability_unavailable",
        "efficiency_skip",
        "safety_stop",
        "policy_constraint",
    ];
    let diverge = |reason: &str| {
        json!({"kind": "wr.workflow_divergence", "reason": reason,
               "summary": "Left it out.", "relatedStepId": "first"})
    };
    let first = world.start("project.three").await;
    let second = world.go_with(&first, reasons.map(diverge).to_vec()).await;
    assert_eq!(second.blockers, []);
    let run = first.session.unwrap();
    let events = world.events(run.session).await;
    let recorded: Vec<_> = events
        .iter()
        .filter_map(|event| match &event.data {
            EventData::DivergenceRecorded(divergence) => {
                let reason = serde_json::to_value(divergence.reason).unwrap();
                assert_eq!(divergence.related_step_id.as_ref().unwrap().as_str(), "first");
                assert!(event.scope.node().is_some());
                Some(reason.as_str().unwrap().to_owned())
            }
            _ => None,
        })
        .collect();
    assert_eq!(recorded, reasons);
    let wrong = world.go_with(&second, vec![diverge("boredom")]).await;
    assert_eq!(blockers(&wrong), ["INVALID_REQUIRED_OUTPUT"], "the reasons are a closed set");
}

#[tokio::test]
async fn notes_of_a_checkpoint_count_whichever_token_the_run_goes_on_with() {
    let world = World::of(THREE);
    let first = world.start("project.three").await;
    let mut token = first.tokens.checkpoint_token.clone().unwrap();
    let mut left = None;
    for text in ["Half of it.", "Three quarters."] {
        let notes = Some(text.to_owned());
        let note = Checkpoint {
            at: CheckpointAt::Compact(token.clone()),
            output: Output { notes, artifacts: Vec::new() },
            replaces_notes: false,
            tokens: Tokens::Compact,
            by: None,
        };
        let kept = world.guide.checkpoint(note).await.unwrap();
        token = kept.tokens.checkpoint_token.clone().unwrap();
        left = Some(kept);
    }
    let newest = left.unwrap().tokens.continue_token;
    for (way, token) in [("old", &first.tokens.continue_token), ("new", &newest)] {
        let call = ack(token, "All of it.", Vec::new());
        let second = world.guide.proceed(call).await.unwrap();
        let told = world.back(&second.tokens).await.recap.unwrap().text;
        let wanted = "[first, checkpoint]\nHalf of it.\n\n[first, checkpoint]\nThree quarters.\n\n[first]\nAll of it.";
        assert_eq!(told, wanted, "{way}");
    }
    // What is left at a step later is no part of what came before.
    let again = world.back(&first.tokens).await;
    let note = Checkpoint {
        at: CheckpointAt::Compact(again.tokens.checkpoint_token.unwrap()),
        output: Output { notes: Some("Another day.".into()), artifacts: Vec::new() },
        replaces_notes: false,
        tokens: Tokens::Compact,
        by: None,
    };
    world.guide.checkpoint(note).await.unwrap();
    let second = world.guide.proceed(ack(&newest, "All of it.", Vec::new())).await.unwrap();
    let told = world.back(&second.tokens).await.recap.unwrap().text;
    assert!(!told.contains("Another day."), "{told}");
}
