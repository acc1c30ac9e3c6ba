//! Tokens name a place and an attempt; the facts behind them are in the log alone.

use cairn_core::digest::{Digest, WorkflowHash};
use cairn_core::event::guided::{AdvanceIntent, AdvanceOutcome, AdvanceRecorded};
use cairn_core::event::{NewEvent, Scope};
use cairn_core::id::EventId;
use cairn_core::token::StateToken;
use cairn_core::token::compact::Attempt;
use cairn_engine::guided::answer::{Answer, NextIntent};
use cairn_engine::guided::ask::{
    At, Checkpoint, CheckpointAt, Continue, Output, Resume, Start, Tokens,
};
use cairn_store::AppendPlan;

use crate::world::{NOTES, THREE, World, ack, back, prompt, refused, step};

async fn pair(world: &World, answer: &Answer) -> (String, String) {
    let call = Continue { tokens: Tokens::Pair, ..back(&answer.tokens.continue_token) };
    world.guide.proceed(call).await.unwrap().tokens.pair.unwrap()
}

fn note(answer: &Answer) -> Checkpoint {
    Checkpoint {
        at: CheckpointAt::Compact(answer.tokens.checkpoint_token.clone().unwrap()),
        output: Output { notes: Some("Halfway.".into()), artifacts: Vec::new() },
        replaces_notes: false,
        tokens: Tokens::Compact,
        by: None,
    }
}

#[tokio::test]
async fn a_token_for_another_plan_is_refused() {
    let world = World::of(THREE);
    let first = world.start("project.three").await;
    let keys = world.store.keys.load().await.unwrap();
    let (state, ack_token) = pair(&world, &first).await;
    let sound = StateToken::verify(&state, &keys).unwrap();
    let other = StateToken { workflow_hash: WorkflowHash(Digest::of(b"another plan")), ..sound };
    let at = At::Pair { state: other.sign(&keys).unwrap(), ack: Some(ack_token) };
    let written = world.writes();
    let call = Continue { at, ..ack("", NOTES, Vec::new()) };
    assert_eq!(refused(world.guide.proceed(call).await), "TOKEN_WORKFLOW_HASH_MISMATCH");
    assert_eq!(world.writes(), written);
}

#[tokio::test]
async fn tokens_of_two_steps_of_one_run_do_not_go_together() {
    let world = World::of(THREE);
    let first = world.start("project.three").await;
    let second = world.go(&first).await;
    let (state, _) = pair(&world, &first).await;
    let (_, ack_token) = pair(&world, &second).await;
    let at = At::Pair { state, ack: Some(ack_token) };
    let call = Continue { at, ..ack("", NOTES, Vec::new()) };
    assert_eq!(refused(world.guide.proceed(call).await), "TOKEN_SCOPE_MISMATCH");
}

#[tokio::test]
async fn a_checkpoint_is_left_with_either_form_of_its_token() {
    let world = World::of(THREE);
    let run = Start { workflow: "three".into(), tokens: Tokens::Pair, ..Start::default() };
    let first = world.guide.start(run.clone()).await.unwrap();
    let compact = |token: &str| CheckpointAt::Compact(token.to_owned());
    let beside = |state: &str, checkpoint: &str| CheckpointAt::Pair {
        state: state.to_owned(),
        checkpoint: checkpoint.to_owned(),
    };
    // One call, answered in each form: both name the same next checkpoint.
    let in_form = async |tokens| {
        let call = Checkpoint { tokens, ..note(&first) };
        world.guide.checkpoint(call).await.unwrap().tokens
    };
    let (long, short) = (in_form(Tokens::Pair).await, in_form(Tokens::Compact).await);
    let (state, _) = long.pair.unwrap();
    let (long, short) = (&long.checkpoint_token.unwrap(), &short.checkpoint_token.unwrap());
    assert!(long.starts_with("chk.v1.") && !short.starts_with("chk."), "{long} {short}");
    let second = note(&first);
    let kept = world.guide.checkpoint(Checkpoint { at: compact(short), ..second.clone() }).await;
    let kept = kept.unwrap();
    let written = world.writes();
    for at in [compact(short), compact(long), beside(&state, short), beside(&state, long)] {
        let again = world.guide.checkpoint(Checkpoint { at: at.clone(), ..second.clone() }).await;
        assert_eq!(again.unwrap(), kept, "{at:?}");
    }
    // Whoever comes back has an attempt of their own, and with it another checkpoint.
    let here = world.guide.proceed(back(&kept.tokens.continue_token)).await.unwrap();
    let own = here.tokens.checkpoint_token.as_ref().unwrap();
    let other = Checkpoint { at: compact(own), ..second.clone() };
    assert_ne!(world.guide.checkpoint(other).await.unwrap().node, kept.node);
    // A state of another step, run or session is no place for it.
    let second = world.go(&first).await;
    let other = world.guide.start(run.clone()).await.unwrap();
    let session = first.session.map(|run| run.session);
    let joined = world.guide.start(Start { session, ..run }).await.unwrap();
    for (answer, named) in [(&other, "different runs"), (&joined, "different runs")] {
        let (state, _) = answer.tokens.pair.clone().unwrap();
        for token in [short, long] {
            let call = Checkpoint { at: beside(&state, token), ..note(&first) };
            let error = world.guide.checkpoint(call).await.unwrap_err();
            assert_eq!(error.code(), "TOKEN_SCOPE_MISMATCH", "{error}");
            assert!(error.to_string().contains(named), "{error}");
        }
    }
    for token in [
        second.tokens.checkpoint_token.as_ref().unwrap(),
        kept.tokens.checkpoint_token.as_ref().unwrap(),
    ] {
        let call = Checkpoint { at: beside(&state, token), ..note(&first) };
        let error = world.guide.checkpoint(call).await.unwrap_err();
        assert_eq!(error.code(), "TOKEN_SCOPE_MISMATCH", "{error}");
        assert!(error.to_string().contains("different steps"), "{error}");
    }
    assert_eq!(world.writes(), written + 4, "a checkpoint, the step and two runs");
}

#[tokio::test]
async fn a_session_that_another_process_writes_to_is_locked_for_writers_alone() {
    let world = World::of(THREE);
    let first = world.start("project.three").await;
    let call = ack(&first.tokens.continue_token, NOTES, Vec::new());
    let second = world.guide.proceed(call.clone()).await.unwrap();
    let session = first.session.unwrap().session;
    let sessions = world.home.path().join("data/sessions");
    let lock = sessions.join(session.to_string()).join(".lock");
    let holder = std::fs::File::open(lock).unwrap();
    holder.try_lock().unwrap();
    let next = ack(&second.tokens.continue_token, NOTES, Vec::new());
    assert_eq!(refused(world.guide.proceed(next.clone()).await), "TOKEN_SESSION_LOCKED");
    let error = world.guide.checkpoint(note(&second)).await.unwrap_err();
    assert_eq!(error.code(), "TOKEN_SESSION_LOCKED");
    let join = Start { workflow: "three".into(), session: Some(session), ..Start::default() };
    assert_eq!(refused(world.guide.start(join).await), "TOKEN_SESSION_LOCKED");
    // What is recorded is told without the lock, and so is where the run stands.
    assert_eq!(world.guide.proceed(call.clone()).await.unwrap(), second);
    assert_eq!(world.restarted().proceed(call).await.unwrap(), second);
    assert_eq!(step(&world.back(&second.tokens).await), "second");
    holder.unlock().unwrap();
    assert_eq!(step(&world.guide.proceed(next).await.unwrap()), "third");
}

#[tokio::test]
async fn a_replay_needs_neither_the_workflow_nor_its_file() {
    let world = World::of(THREE);
    let first = world.start("project.three").await;
    let call = ack(&first.tokens.continue_token, NOTES, Vec::new());
    let second = world.guide.proceed(call.clone()).await.unwrap();
    std::fs::remove_dir_all(world.home.path().join("workflows")).unwrap();
    for guide in [world.guide.clone(), world.restarted()] {
        assert_eq!(guide.proceed(call.clone()).await.unwrap(), second);
    }
    // The run goes on with its plan to the end.
    let back = world.restarted().proceed(back(&second.tokens.continue_token)).await.unwrap();
    assert!(prompt(&back).starts_with(prompt(&second)), "{}", prompt(&back));
    assert_eq!(world.to_the_end(second).await, ["second", "third"]);
}

#[tokio::test]
async fn an_outcome_that_leads_nowhere_is_never_computed_again() {
    let world = World::of(THREE);
    let first = world.start("project.three").await;
    let run = first.session.unwrap();
    let root = cairn_core::guided::decide::root(run.run);
    let attempt_id = Attempt::FIRST.id(root);
    let outcome =
        AdvanceOutcome::Advanced { to_node_id: cairn_core::guided::decide::target(attempt_id) };
    let record = AdvanceRecorded {
        attempt_id,
        input_digest: None,
        intent: AdvanceIntent::AckPending,
        outcome,
    };
    let last = world.view(run.session).await.runs.get(&run.run).unwrap().last_index;
    let event = NewEvent {
        id: EventId::mint(1, 1),
        scope: Scope::Node(run.run, root),
        data: record.into(),
    };
    let plan = AppendPlan {
        events: vec![event],
        seen: vec![(run.run, Some(last))],
        ..AppendPlan::default()
    };
    world.store.log.append(run.session, plan).await.unwrap();
    let recorded = world.events(run.session).await.len();
    let call = ack(&first.tokens.continue_token, NOTES, Vec::new());
    assert_eq!(refused(world.guide.proceed(call).await), "INVARIANT_VIOLATION");
    assert_eq!(world.events(run.session).await.len(), recorded);
}

#[tokio::test]
async fn a_token_outlives_one_rotation_of_the_keys() {
    let world = World::of(THREE);
    let first = world.start("project.three").await;
    world.store.keys.rotate().await.unwrap();
    let second = world.go(&first).await;
    assert_eq!(step(&second), "second");
    world.store.keys.rotate().await.unwrap();
    let call = ack(&first.tokens.continue_token, NOTES, Vec::new());
    assert_eq!(refused(world.guide.proceed(call).await), "TOKEN_BAD_SIGNATURE");
    assert_eq!(step(&world.go(&second).await), "third", "signed in between");
}

#[tokio::test]
async fn the_tip_with_the_latest_activity_is_the_one_to_come_back_to() {
    let world = World::of(THREE);
    let first = world.start("project.three").await;
    let one = world.go(&first).await;
    let again = world.back(&first.tokens).await;
    let two = world.guide.proceed(ack(&again.tokens.continue_token, "Another way.", Vec::new()));
    let two = two.await.unwrap();
    let snippet = || async {
        let found = world.guide.resume(Resume::default()).await.unwrap();
        assert_eq!(found.len(), 1, "one tip of each run");
        found.first().unwrap().snippet.clone()
    };
    assert_eq!(snippet().await, "Another way.");
    // Going on where the first branch stands makes it the preferred one.
    world.guide.proceed(ack(&one.tokens.continue_token, "The old way.", Vec::new())).await.unwrap();
    assert_eq!(snippet().await, "The old way.");
    let back = world.back(&first.tokens).await;
    let preferred: Vec<bool> = back.branches.iter().map(|branch| branch.preferred).collect();
    assert_eq!(preferred, [true, false]);
    assert!(back.branches.first().unwrap().summary.ends_with("The old way."));
    assert_eq!(step(&two), "second");
}

#[test]
fn what_to_do_next_is_one_of_four_words() {
    let names = [
        NextIntent::PerformPendingThenContinue,
        NextIntent::AwaitUserConfirmation,
        NextIntent::RehydrateOnly,
        NextIntent::Complete,
    ]
    .map(NextIntent::name);
    assert_eq!(
        names,
        ["perform_pending_then_continue", "await_user_confirmation", "rehydrate_only", "complete"]
    );
}
