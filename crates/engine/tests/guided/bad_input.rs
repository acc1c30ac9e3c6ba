//! What cannot be acted on is refused with a way out, and leaves no trace.

use cairn_core::id::SessionId;
use cairn_engine::guided::ask::{
    At, Checkpoint, CheckpointAt, Continue, Output, Start, Tokens, Wanted,
};
use serde_json::{Value, json};

use crate::world::{NOTES, THREE, World, ack, back, refused, step};

#[tokio::test]
async fn bad_context_is_refused_with_figures() {
    let world = World::of(THREE);
    let start = |context: Value| Start {
        workflow: "three".into(),
        context: Some(context),
        ..Start::default()
    };
    let large = json!({"blob": "x".repeat(256 << 10)});
    let error = world.guide.start(start(large)).await.unwrap_err();
    assert_eq!(error.code(), "VALIDATION_ERROR");
    let details = error.details().unwrap();
    assert_eq!(details.get("bytesMax"), Some(&json!(262_144)));
    assert!(details.get("bytes").and_then(Value::as_u64).unwrap() > 262_144);
    assert!(details.get("method").is_some());
    for (context, field) in [
        (json!({"__proto__": 1}), "context.__proto__"),
        (json!({"a": [{"constructor": {}}]}), "context.a.constructor"),
        (json!([1, 2]), "context"),
        (json!("text"), "context"),
        (json!({"n": 9_007_199_254_740_993_u64}), "context"),
        (nested(40), "context"),
        (json!({"n": 1e300}), ""),
    ] {
        match world.guide.start(start(context.clone())).await {
            Ok(_) => assert_eq!(field, "", "{context}"),
            Err(error) => {
                assert_eq!(error.code(), "VALIDATION_ERROR", "{context}");
                assert_eq!(error.details().unwrap().get("field"), Some(&json!(field)));
                assert!(error.fix().is_some());
            }
        }
    }
    assert_eq!(world.writes(), 1, "only the harmless one was written");
}

/// A value that many maps stand around.
fn nested(levels: usize) -> Value {
    (0..levels).fold(json!(1), |inner, _| json!({"in": inner}))
}

#[tokio::test]
async fn every_context_that_is_taken_can_be_kept() {
    let world = World::of(THREE);
    for levels in 1..64 {
        let context = Some(nested(levels));
        let start = Start { workflow: "three".into(), context, ..Start::default() };
        match world.guide.start(start).await {
            Ok(_) => assert!(levels <= 32, "{levels}"),
            Err(error) => {
                assert_eq!((error.code(), levels > 32), ("VALIDATION_ERROR", true));
                assert!(error.to_string().ends_with("deeper than 32 levels"), "{error}");
            }
        }
    }
}

#[tokio::test]
async fn a_long_path_to_a_workflow_is_no_obstacle() {
    let world = World::of(THREE);
    let folder = ["long"; 3].map(|name| name.repeat(60)).iter().collect::<std::path::PathBuf>();
    let folder = world.home.path().join("workflows").join(folder);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("deep.yaml"), THREE.replace("project.three", "project.deep"))
        .unwrap();
    assert!(!world.start("project.deep").await.is_complete);
}

#[tokio::test]
async fn an_unknown_workflow_names_the_nearest() {
    let world = World::of(THREE);
    let start = Start { workflow: "project.thre".into(), ..Start::default() };
    let error = world.guide.start(start).await.unwrap_err();
    assert_eq!(error.code(), "WORKFLOW_NOT_FOUND");
    assert!(error.to_string().contains("did you mean `project.three`?"), "{error}");
    let broken = World::of(&THREE.replace("prompt: Do the second", "promt: Do the second"));
    let start = Start { workflow: "project.three".into(), ..Start::default() };
    assert_eq!(broken.guide.start(start).await.unwrap_err().code(), "WORKFLOW_INVALID");
}

#[tokio::test]
async fn a_name_that_two_workflows_have_is_ambiguous() {
    let other = THREE.replace("project.three", "team.three");
    let world = World::with(&[("one.yaml", THREE), ("two.yaml", &other)]);
    let start = Start { workflow: "three".into(), ..Start::default() };
    let error = world.guide.start(start).await.unwrap_err();
    assert_eq!(error.code(), "WORKFLOW_ID_AMBIGUOUS");
    let matches = error.details().unwrap().get("matches").cloned();
    assert_eq!(matches, Some(json!(["project.three", "team.three"])));
}

#[tokio::test]
async fn every_token_error_says_what_to_send_instead() {
    let world = World::of(THREE);
    let other = World::of(THREE);
    let first = world.start("project.three").await;
    let second = world.start("project.three").await;
    let foreign = other.start("project.three").await;
    let token = first.tokens.continue_token.clone();
    let pair = |tokens: &str| Continue { tokens: Tokens::Pair, ..back(tokens) };
    let long = |answer: cairn_engine::guided::answer::Answer| answer.tokens.pair.unwrap();
    let (state, ack_one) = long(world.guide.proceed(pair(&token)).await.unwrap());
    let two = long(world.guide.proceed(pair(&second.tokens.continue_token)).await.unwrap());
    let with = |at: At| Continue { at, ..ack("", NOTES, Vec::new()) };
    let compact = |text: &str| with(At::Compact(text.to_owned()));
    let mixed = At::Pair { state: state.clone(), ack: Some(two.1.clone()) };
    let lone = |text: &str| with(At::Pair { state: text.to_owned(), ack: None });
    let acked = |text: &str| with(At::Pair { state: state.clone(), ack: Some(text.to_owned()) });
    let newer = state.replace("st.v1.", "st.v2.");
    let letter = if token.get(60..61) == Some("A") { "B" } else { "A" };
    let mut tampered = token.clone();
    tampered.replace_range(60..61, letter);
    let written = world.writes();
    for (call, code, part) in [
        (compact("nonsense"), "TOKEN_INVALID_FORMAT", "copy the `continueToken`"),
        (compact(""), "TOKEN_INVALID_FORMAT", "copy the `continueToken`"),
        (compact(&tampered), "TOKEN_BAD_SIGNATURE", "resume_session"),
        (compact(&foreign.tokens.continue_token), "TOKEN_BAD_SIGNATURE", "resume_session"),
        (
            compact(first.tokens.checkpoint_token.as_ref().unwrap()),
            "TOKEN_SCOPE_MISMATCH",
            "`continueToken`",
        ),
        (compact(&state), "TOKEN_SCOPE_MISMATCH", "`stateToken`"),
        (compact(&ack_one), "TOKEN_SCOPE_MISMATCH", "`ackToken`"),
        (with(mixed), "TOKEN_SCOPE_MISMATCH", "from the same answer"),
        (lone(&token), "TOKEN_SCOPE_MISMATCH", "`continueToken` where it belongs"),
        (
            lone(first.tokens.checkpoint_token.as_ref().unwrap()),
            "TOKEN_SCOPE_MISMATCH",
            "`checkpointToken`",
        ),
        (lone(&ack_one), "TOKEN_SCOPE_MISMATCH", "`ackToken` where it belongs"),
        (lone("nonsense"), "TOKEN_INVALID_FORMAT", "`st.v1.`"),
        (acked(&token), "TOKEN_SCOPE_MISMATCH", "`continueToken` where it belongs"),
        (acked(&state), "TOKEN_SCOPE_MISMATCH", "`stateToken` where it belongs"),
        (acked("nonsense"), "TOKEN_INVALID_FORMAT", "`ack.v1.`"),
        (with(At::Pair { state: newer, ack: None }), "TOKEN_UNSUPPORTED_VERSION", "resume_session"),
    ] {
        let error = world.guide.proceed(call.clone()).await.unwrap_err();
        assert_eq!(error.code(), code, "{call:?}: {error}");
        assert!(error.fix().unwrap().contains(part), "{}", error.fix().unwrap());
    }
    // A token of another run names both.
    let mixed = with(At::Pair { state, ack: Some(two.1) });
    let error = world.guide.proceed(mixed).await.unwrap_err().to_string();
    for run in [first.session.unwrap().run, second.session.unwrap().run] {
        assert!(error.contains(&run.to_string()), "{error}");
    }
    assert_eq!(world.writes(), written, "nothing was written");
}

#[tokio::test]
async fn a_token_of_a_deleted_session_is_unknown() {
    let world = World::of(THREE);
    let first = world.start("project.three").await;
    world.store.sessions.delete(first.session.unwrap().session, None).await.unwrap();
    let call = ack(&first.tokens.continue_token, NOTES, Vec::new());
    assert_eq!(refused(world.guide.proceed(call.clone()).await), "TOKEN_UNKNOWN_NODE");
    assert_eq!(refused(world.restarted().proceed(call).await), "TOKEN_UNKNOWN_NODE");
}

#[tokio::test]
async fn a_call_must_say_whether_it_goes_on() {
    let world = World::of(THREE);
    let first = world.start("project.three").await;
    let token = &first.tokens.continue_token;
    let context = Continue { context: Some(json!({"a": 1})), ..back(token) };
    let error = world.guide.proceed(context).await.unwrap_err();
    assert_eq!(error.code(), "VALIDATION_ERROR");
    let fix = error.fix().unwrap();
    assert!(fix.contains("add `output`") && fix.contains("leave `context` out"), "{fix}");
    let autonomy = Some(cairn_core::event::guided::Autonomy::FullAutoNeverStop);
    let preferences = Wanted { autonomy, risk_policy: None };
    let call = Continue { preferences, ..back(token) };
    assert_eq!(refused(world.guide.proceed(call).await), "VALIDATION_ERROR");
}

#[tokio::test]
async fn artifacts_are_maps_with_a_kind_within_bounds() {
    let world = World::of(THREE);
    let first = world.start("project.three").await;
    let token = &first.tokens.continue_token;
    let large = json!({"kind": "x", "text": "y".repeat(300 << 10)});
    for artifacts in [
        vec![json!("text")],
        vec![json!({"decision": "stop"})],
        vec![large],
        vec![json!({"kind": "x"}); 33],
    ] {
        let call = ack(token, NOTES, artifacts);
        assert_eq!(refused(world.guide.proceed(call).await), "VALIDATION_ERROR");
    }
    let empty = Checkpoint {
        at: CheckpointAt::Compact(first.tokens.checkpoint_token.clone().unwrap()),
        output: Output::default(),
        replaces_notes: false,
        tokens: Tokens::Compact,
        by: None,
    };
    assert_eq!(world.guide.checkpoint(empty).await.unwrap_err().code(), "VALIDATION_ERROR");
    assert_eq!(world.writes(), 1, "nothing but the start was written");
}

#[tokio::test]
async fn a_complete_run_takes_no_acknowledgement() {
    let world = World::of(THREE);
    let mut answer = world.start("project.three").await;
    while !answer.is_complete {
        answer = world.go(&answer).await;
    }
    let call = ack(&answer.tokens.continue_token, NOTES, Vec::new());
    assert_eq!(refused(world.guide.proceed(call).await), "RUN_COMPLETE");
}

/// A log in which somebody else is always faster.
struct Contended(std::sync::Arc<dyn cairn_store::EventLog>);

#[async_trait::async_trait]
impl cairn_store::EventLog for Contended {
    async fn append(
        &self,
        _: SessionId,
        plan: cairn_store::AppendPlan,
    ) -> cairn_store::Result<cairn_store::Appended> {
        let (run, expected) = plan.seen.first().copied().unwrap();
        Err(cairn_store::Error::Conflict { run, expected, actual: None })
    }

    async fn read_between(
        &self,
        session: SessionId,
        from: cairn_core::id::EventIndex,
        through: cairn_core::id::EventIndex,
    ) -> cairn_store::Result<Vec<cairn_core::event::Event>> {
        self.0.read_between(session, from, through).await
    }

    async fn read_prefix(
        &self,
        session: SessionId,
    ) -> cairn_store::Result<cairn_store::port::Prefix> {
        self.0.read_prefix(session).await
    }

    async fn status(&self, session: SessionId) -> cairn_store::Result<cairn_store::port::Status> {
        self.0.status(session).await
    }

    async fn seal(&self, session: SessionId) -> cairn_store::Result<()> {
        self.0.seal(session).await
    }
}

#[tokio::test]
async fn a_run_that_never_stands_still_is_busy() {
    let world = World::of(THREE);
    let first = world.start("project.three").await;
    let mut store = world.store.clone();
    store.log = std::sync::Arc::new(Contended(store.log));
    let guide = world.performing(&store, cairn_engine::performer::Performers::default());
    let call = ack(&first.tokens.continue_token, NOTES, Vec::new());
    assert_eq!(refused(guide.proceed(call.clone()).await), "STORE_BUSY");
    assert_eq!(step(&world.guide.proceed(call).await.unwrap()), "second", "nothing was recorded");
}
