//! Facts from outside: kept, merged key by key, and told to nobody.

use cairn_engine::guided::ask::Continue;
use serde_json::{Map, Value, json};

use crate::world::{NOTES, THREE, World, ack, prompt};

async fn known(world: &World, session: cairn_core::id::SessionId) -> Map<String, Value> {
    let view = world.view(session).await;
    let dag = view.runs.values().next().unwrap().dag().unwrap();
    view.contexts.at(dag, dag.preferred_tip().unwrap().id)
}

#[tokio::test]
async fn context_is_kept_and_need_not_be_sent_again() {
    let world = World::of(&THREE.replace("Do the third thing.", "'Do the third for {{ticket}}.'"));
    let first = world.start_with("three", json!({"ticket": "T-9"})).await;
    assert!(prompt(&first).contains("T-9"));
    let third = world.go(&world.go(&first).await).await;
    assert!(prompt(&third).starts_with("Do the third for T-9."), "{}", prompt(&third));
    let call = crate::world::back(&third.tokens.continue_token);
    let back = world.restarted().proceed(call).await.unwrap();
    assert!(prompt(&back).contains("Do the third for T-9."));
}

#[tokio::test]
async fn context_is_merged_key_by_key_and_null_removes() {
    let world = World::of(THREE);
    let start = json!({"a": 1, "b": {"x": 1, "y": 2}, "c": [1, 2], "d": "gone soon"});
    let first = world.start_with("three", start).await;
    let delta = json!({"b": {"x": 9}, "c": [], "d": null, "e": null, "f": {"n": null}});
    world.go_knowing(&first, delta).await;
    let found = known(&world, first.session.unwrap().session).await;
    let merged = json!({"a": 1, "b": {"x": 9}, "c": [], "f": {"n": null}});
    assert_eq!(Value::Object(found), merged, "maps and lists are replaced whole");
}

#[tokio::test]
async fn only_a_recap_gives_the_context_back_and_no_secret() {
    let world = World::of(THREE);
    let secret = "s3cr3t-of-the-caller";
    let first = world.start_with("three", json!({"token": secret, "ticket": "T-9"})).await;
    let second = world.go_knowing(&first, json!({"dbPassword": secret})).await;
    let blocked = Continue {
        context: Some(json!({"api_key": secret, "deep": {"x": 1}, "long": "y".repeat(4_000)})),
        ..ack(&second.tokens.continue_token, " ", Vec::new())
    };
    let blocked = world.guide.proceed(blocked).await.unwrap();
    assert!(!blocked.blockers.is_empty());
    let told = format!("{first:?} {second:?} {blocked:?}");
    assert!(!told.contains("T-9") || told.matches("T-9").count() == 1, "the prompt alone: {told}");
    let back = world.back(&blocked.tokens).await;
    let recap = &back.recap.as_ref().unwrap().text;
    for line in ["- ticket: T-9", "- token: [hidden]", "- deep: {\"x\":1}", "- long: yyy"] {
        assert!(recap.contains(line), "{line}: {recap}");
    }
    assert!(recap.len() < 2_000, "{} bytes", recap.len());
    for answer in [first, second, blocked, back] {
        let told = format!("{answer:?}");
        assert!(!told.contains(secret), "{told}");
    }
}

#[tokio::test]
async fn what_a_blocked_attempt_says_of_the_world_is_known_afterwards() {
    let world = World::of(THREE);
    let first = world.start_with("three", json!({"ticket": "T-1"})).await;
    let call = Continue {
        context: Some(json!({"ticket": "T-2"})),
        ..ack(&first.tokens.continue_token, " ", Vec::new())
    };
    let blocked = world.guide.proceed(call).await.unwrap();
    assert!(prompt(&blocked).contains("T-2"));
    let found = known(&world, first.session.unwrap().session).await;
    assert_eq!(found.get("ticket"), Some(&json!("T-2")));
}

#[tokio::test]
async fn a_context_of_256_kib_is_taken_and_one_byte_more_is_not() {
    let world = World::of(THREE);
    // `{"é":"…"}` in canonical JSON: 9 bytes around the text.
    let of = |bytes: usize| json!({"é": "x".repeat(bytes - 9)});
    let first = world.start("three").await;
    let call = |bytes: usize| Continue {
        context: Some(of(bytes)),
        ..ack(&first.tokens.continue_token, NOTES, Vec::new())
    };
    let error = world.guide.proceed(call((256 << 10) + 1)).await.unwrap_err();
    assert_eq!(error.code(), "VALIDATION_ERROR");
    assert_eq!(error.details().unwrap().get("bytes"), Some(&json!((256 << 10) + 1)));
    assert!(world.guide.proceed(call(256 << 10)).await.is_ok());
}
