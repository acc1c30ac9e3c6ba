//! Finding a run again: in a brand-new chat, after an import, on another machine.

use cairn_core::id::BundleId;
use cairn_core::projection::session::SessionView;
use cairn_engine::guided::ask::{Resume, Start};
use cairn_store::bundle;
use serde_json::json;

use crate::world::{NOTES, THREE, World, ack, step};

#[tokio::test]
async fn a_run_is_found_by_its_notes_and_goes_on() {
    let world = World::of(THREE);
    let first = world.start("project.three").await;
    let token = &first.tokens.continue_token;
    let call = ack(token, "Narrowed the flaky checkout test to the clock.", Vec::new());
    world.guide.proceed(call).await.unwrap();
    world.start("project.three").await;
    let query = Resume { query: Some("flaky CHECKOUT".into()), ..Resume::default() };
    let found = world.restarted().resume(query).await.unwrap();
    assert_eq!(found.len(), 1, "what lacks the words is left out");
    let best = found.first().unwrap();
    assert_eq!(best.run, first.session.unwrap());
    assert_eq!(best.why.first().unwrap().name(), "matched_notes");
    assert_eq!(best.pending_step.as_deref(), Some("The second"));
    assert_eq!(best.status, "in_progress");
    let back = world.guide.proceed(crate::world::back(&best.continue_token)).await.unwrap();
    assert_eq!(step(&back), "second");
    assert!(back.recap.unwrap().text.contains("flaky checkout"));
}

#[tokio::test]
async fn a_run_is_found_by_what_was_noted_long_before_its_tip() {
    let world = World::of(THREE);
    let first = world.start("project.three").await;
    let call = ack(&first.tokens.continue_token, "An empty cart cannot be paid.", Vec::new());
    let second = world.guide.proceed(call).await.unwrap();
    world.go(&second).await;
    world.start("project.three").await;
    for guide in [world.guide.clone(), world.restarted()] {
        let query = Resume { query: Some("empty cart".into()), ..Resume::default() };
        let found = guide.resume(query).await.unwrap();
        assert_eq!(found.first().unwrap().run, first.session.unwrap());
        let why: Vec<_> = found.iter().map(|found| found.why.first().unwrap().name()).collect();
        assert_eq!(why, ["matched_earlier_notes"]);
    }
}

#[tokio::test]
async fn the_run_that_goes_on_is_offered_before_longer_and_finished_ones() {
    let world = World::of(THREE);
    let long = world.start("project.three").await;
    let second = world.go(&long).await;
    let done = world.start("project.three").await;
    world.to_the_end(done.clone()).await;
    let short = world.start("project.three").await;
    let order = || async {
        let found = world.guide.resume(Resume::default()).await.unwrap();
        found.into_iter().map(|found| found.run).collect::<Vec<_>>()
    };
    let [long, done, short] = [long, done, short].map(|answer| answer.session.unwrap());
    assert_eq!(order().await, [short, long, done]);
    // What moves comes first again, and what ends goes last.
    let third = world.go(&second).await;
    assert_eq!(order().await, [long, short, done]);
    world.go(&third).await;
    assert_eq!(order().await, [short, long, done]);
}

#[tokio::test]
async fn a_run_is_found_by_the_name_of_its_workflow() {
    let world = World::of(&THREE.replace("name: Three steps", "name: Spring Cleaning"));
    world.start("project.three").await;
    for guide in [world.guide.clone(), world.restarted(), world.restarted()] {
        let query = Resume { query: Some("cleaning spring".into()), ..Resume::default() };
        let found = guide.resume(query).await.unwrap();
        assert_eq!(found.first().unwrap().why.first().unwrap().name(), "matched_workflow_id");
    }
}

#[tokio::test]
async fn the_checkout_is_observed_and_found_by() {
    let world = World::of(THREE);
    let project = world.home.path().join("project");
    std::fs::create_dir_all(project.join(".git/refs/heads/fix")).unwrap();
    std::fs::write(project.join(".git/HEAD"), "ref: refs/heads/fix/cart\n").unwrap();
    let sha = "4f3c2a1b0d9e8f7a6b5c4d3e2f1a0b9c8d7e6f5a";
    std::fs::write(project.join(".git/refs/heads/fix/cart"), format!("{sha}\n")).unwrap();
    let start = Start {
        workflow: "three".into(),
        workspace: Some(project.join("src/..").join("..").join("project")),
        ..Start::default()
    };
    std::fs::create_dir(project.join("src")).unwrap();
    let there = world.guide.start(start).await.unwrap();
    world.start("project.three").await;
    let query = Resume { workspace: Some(project), ..Resume::default() };
    let found = world.guide.resume(query).await.unwrap();
    let why: Vec<&str> = found.first().unwrap().why.iter().map(|why| why.name()).collect();
    assert_eq!(found.first().unwrap().run, there.session.unwrap());
    assert_eq!(why, ["matched_head_sha", "matched_branch"]);
}

fn checkout(project: &std::path::Path, branch: &str, sha: char) {
    std::fs::create_dir_all(project.join(".git/refs/heads")).unwrap();
    std::fs::write(project.join(".git/HEAD"), format!("ref: refs/heads/{branch}\n")).unwrap();
    let sha = String::from(sha).repeat(40);
    std::fs::write(project.join(".git/refs/heads").join(branch), format!("{sha}\n")).unwrap();
}

#[tokio::test]
async fn going_back_to_a_branch_stops_no_run() {
    let world = World::of(THREE);
    let project = world.home.path().join("project");
    checkout(&project, "main", 'a');
    let start = |session| Start {
        workflow: "three".into(),
        workspace: Some(project.clone()),
        session,
        ..Start::default()
    };
    let first = world.guide.start(start(None)).await.unwrap();
    checkout(&project, "feature", 'b');
    let second = world.go(&first).await;
    checkout(&project, "main", 'a');
    let third = world.go(&second).await;
    assert_eq!(step(&third), "third");
    let session = first.session.unwrap().session;
    world.guide.start(start(Some(session))).await.unwrap();
}

#[tokio::test]
async fn a_run_is_bound_to_its_project_wherever_that_is_moved() {
    let world = World::of(THREE);
    let at = |name: &str| world.home.path().canonicalize().unwrap().join(name);
    checkout(&at("old"), "main", 'a');
    let workspace = Some(at("old"));
    let start = Start { workflow: "three".into(), workspace, ..Start::default() };
    let first = world.guide.start(start).await.unwrap();
    let session = first.session.unwrap().session;
    let project = async || {
        let found = world.guide.resume(Resume::default()).await.unwrap();
        found.first().unwrap().project.clone().unwrap()
    };
    let codes = async || {
        let back = world.back(&first.tokens).await;
        back.warnings.iter().map(|warning| warning.code.name()).collect::<Vec<_>>()
    };
    assert_eq!(codes().await, ["context_unset"]);
    // There and back again, at the first node of the run, with tokens that stay valid.
    for (from, to) in [("old", "new"), ("new", "old"), ("old", "new")] {
        std::fs::rename(at(from), at(to)).unwrap();
        assert_eq!(codes().await, ["workspace_missing", "context_unset"], "{to}");
        let bound = world.guide.rebind(session, &at(to), "ada".into()).await.unwrap();
        assert_eq!(bound, [first.session.unwrap().run]);
        assert_eq!(project().await, at(to).display().to_string());
        assert_eq!(codes().await, ["context_unset"]);
        let again = world.guide.rebind(session, &at(to), "ada".into()).await.unwrap();
        assert_eq!(again, [], "it is bound already");
    }
    let second = world.go(&first).await;
    assert_eq!((step(&second), second.warnings.len()), ("second", 0), "and that is no fork");
    cairn_core::lineage::check(&world.events(session).await).unwrap();
    let nowhere = world.guide.rebind(session, &at("nowhere"), "ada".into()).await.unwrap_err();
    assert_eq!(nowhere.code(), "VALIDATION_ERROR");
}

#[tokio::test]
async fn words_count_before_the_branch_when_somebody_asks_by_words() {
    let world = World::with(&[
        ("three.yaml", THREE),
        (
            "other.yaml",
            &THREE.replace("project.three", "project.slow").replace("Three steps", "Slowly"),
        ),
    ]);
    let project = world.home.path().join("project");
    checkout(&project, "main", 'a');
    for workflow in ["slow", "three", "three", "three", "three", "three", "three"] {
        let workspace = Some(project.clone());
        let start = Start { workflow: workflow.into(), workspace, ..Start::default() };
        world.go(&world.guide.start(start).await.unwrap()).await;
    }
    for words in ["slow", "Slowly"] {
        let workspace = Some(project.clone());
        let query = Resume { query: Some(words.into()), workspace, ..Resume::default() };
        let found = world.guide.resume(query).await.unwrap();
        assert_eq!(found.first().unwrap().workflow_id, "project.slow", "{words}");
    }
}

#[tokio::test]
async fn a_workspace_is_a_directory_that_is_there() {
    let world = World::of(THREE);
    let start = Start {
        workflow: "three".into(),
        workspace: Some("/nowhere/at/all".into()),
        ..Start::default()
    };
    assert_eq!(world.guide.start(start).await.unwrap_err().code(), "VALIDATION_ERROR");
    assert_eq!(world.writes(), 0);
}

#[tokio::test]
async fn a_branch_with_a_long_name_is_found_too() {
    let world = World::of(THREE);
    let project = world.home.path().join("project");
    let branch = "feature/".to_owned() + &"long-".repeat(20);
    std::fs::create_dir_all(project.join(".git")).unwrap();
    std::fs::write(project.join(".git/HEAD"), format!("ref: refs/heads/{branch}\n")).unwrap();
    let workspace = Some(project);
    let start =
        Start { workflow: "three".into(), workspace: workspace.clone(), ..Start::default() };
    world.guide.start(start).await.unwrap();
    for query in [
        Resume { workspace, ..Resume::default() },
        Resume { git_branch: Some("feature/long".into()), ..Resume::default() },
    ] {
        let found = world.guide.resume(query).await.unwrap();
        assert_eq!(found.first().unwrap().why.first().unwrap().name(), "matched_branch");
    }
}

// case: token.portable
#[tokio::test]
async fn an_imported_session_goes_on_as_the_old_one_would() {
    let world = World::of(THREE);
    let first = world.start("project.three").await;
    let second = world.go(&first).await;
    let session = first.session.unwrap().session;
    let join = Start { workflow: "three".into(), session: Some(session), ..Start::default() };
    world.guide.start(join.clone()).await.unwrap();
    world.to_the_end(world.guide.start(join).await.unwrap()).await;
    world.go(&world.back(&first.tokens).await).await;
    let info = bundle::ExportInfo {
        bundle_id: BundleId::from_bits(1),
        exported_at: "2026-01-01T00:00:00Z".into(),
        app_version: "test".into(),
    };
    let exported = bundle::export(&world.store, session, info).await.unwrap();
    let other = World::of(THREE);
    let imported = bundle::import(&other.store, &exported).await.unwrap();
    assert!(other.guide.resume(Resume::default()).await.unwrap().is_empty(), "it is paper");
    let papers = other.store.papers.open().unwrap();
    let whole = bundle::whole(&papers, imported.session).await.unwrap();
    bundle::adopt(&other.store, imported.session, whole, None).await.unwrap();
    let fold = |events: Vec<cairn_core::event::Event>| {
        let mut view = SessionView::default();
        events.iter().for_each(|event| view.apply(event));
        view
    };
    let (old, mut new) =
        (fold(world.events(session).await), fold(other.events(imported.session).await));
    new.session = old.session;
    assert_eq!(old, new, "equal projections");
    let here = world.guide.resume(Resume::default()).await.unwrap();
    let there = other.guide.resume(Resume::default()).await.unwrap();
    let brief = |all: &[cairn_engine::guided::answer::Resumable]| -> Vec<_> {
        all.iter().map(|r| (r.run.run, r.snippet.clone(), r.why.clone())).collect()
    };
    assert_eq!(here.len(), 3);
    assert_eq!(brief(&here), brief(&there), "equal order");
    // Tokens do not travel; fresh ones are made from what is stored.
    let old_token = crate::world::back(&second.tokens.continue_token);
    assert!(other.guide.proceed(old_token).await.is_err());
    let token = &there.first().unwrap().continue_token;
    let next = other.guide.proceed(ack(token, NOTES, Vec::new())).await.unwrap();
    assert_eq!(step(&next), "third");
}

#[tokio::test]
async fn a_changed_file_is_picked_up_and_a_run_keeps_its_plan() {
    let world = World::of(THREE);
    let first = world.start("project.three").await;
    let path = world.home.path().join("workflows/one.yaml");
    std::fs::write(&path, THREE.replace("second thing", "other thing entirely")).unwrap();
    let second = world.go(&first).await;
    assert!(second.pending.as_ref().unwrap().prompt.contains("second thing"), "it is pinned");
    let back = world.back(&second.tokens).await;
    assert_eq!(back.warnings.first().unwrap().code.name(), "pinned_drift");
    let fresh = world.go(&world.start("project.three").await).await;
    assert!(fresh.pending.unwrap().prompt.contains("other thing"), "without a restart");
}

#[tokio::test]
async fn a_run_can_join_a_session_that_is_there() {
    let world = World::of(THREE);
    let first = world.start("project.three").await;
    let session = first.session.unwrap().session;
    let again = Start {
        workflow: "three".into(),
        session: Some(session),
        context: Some(json!({"ticket": "T-9"})),
        ..Start::default()
    };
    let second = world.guide.start(again).await.unwrap();
    assert_eq!(second.session.unwrap().session, session);
    assert_ne!(second.session.unwrap().run, first.session.unwrap().run);
    assert!(second.pending.as_ref().unwrap().prompt.contains("T-9"));
    assert_eq!(step(&world.go(&first).await), "second");
    assert_eq!(step(&world.go(&second).await), "second");
}

#[tokio::test]
async fn a_session_can_keep_notes_without_a_procedure() {
    use cairn_engine::guided::ask::{Checkpoint, CheckpointAt, Output, Tokens};
    let world = World::of(THREE);
    let opened = world.guide.open_session("agent".into()).await.unwrap();
    let note = |token: &str, text: &str| Checkpoint {
        at: CheckpointAt::Compact(token.to_owned()),
        output: Output { notes: Some(text.to_owned()), artifacts: Vec::new() },
        replaces_notes: false,
        tokens: Tokens::Compact,
        by: None,
    };
    let one =
        world.guide.checkpoint(note(&opened.session_token, "Tuned the query.")).await.unwrap();
    let next = one.tokens.checkpoint_token.as_ref().unwrap();
    world.guide.checkpoint(note(next, "Halved its time again.")).await.unwrap();
    let query = Resume { query: Some("halved".into()), ..Resume::default() };
    let found = world.guide.resume(query).await.unwrap();
    assert_eq!(found.first().unwrap().run.session, opened.session);
}
