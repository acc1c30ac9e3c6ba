//! Runs start others with the rights of whoever asked for them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cairn_core::event::{ActorKind, By, Door, Via};
use cairn_core::id::RunId;
use cairn_engine::flow::{Automations, Filter, ForkPoint, Forker, Roles, RunRequest};
use cairn_engine::guided::ask::Continue;
use cairn_engine::host::SystemHost;
use cairn_engine::record::{Record, Wanted};
use cairn_engine::rights::{Grant, Rights};
use serde_json::json;

use crate::hand::{back, done, token as token_of};
use crate::world::{World, request};

const CHILD: &str = "name: child
triggers:
  - { id: by-hand, type: manual, require_role: admin }
  - { id: other, type: error }
graph: { nodes: [{ id: done, type: end, result: secret }] }
";
const FAILS: &str = "name: fails
on_error: { trigger_workflow: project.child }
graph: { nodes: [{ id: no, type: log, message: fail }] }
";
const REPORTED: &str = "name: reported
on_error: { trigger_workflow: project.reports }
graph: { nodes: [{ id: no, type: log, message: fail }] }
";

/// Tokens that are called after what they lack.
pub(crate) struct Named;

#[async_trait]
impl Rights for Named {
    async fn of(&self, token_id: &str) -> cairn_engine::Result<Grant> {
        let all = Grant {
            who: format!("the token `{token_id}`"),
            ended: None,
            may_run: true,
            roles: Roles::Any,
            workflows: Vec::new(),
        };
        Ok(match token_id {
            "workflow" => {
                let workflows = vec!["project.parent".into(), "project.grand".into()];
                Grant { workflows, ..all }
            }
            "scope" => Grant { may_run: false, ..all },
            "role" => Grant { roles: Roles::Of(BTreeSet::from(["run".to_owned()])), ..all },
            "revoked" => Grant { ended: Some("was revoked"), ..all },
            _ => all,
        })
    }
}

fn world() -> World {
    let parent = "{ id: call, type: workflow, workflow: project.child }";
    let grand = "{ id: call, type: workflow, workflow: project.parent }";
    let held = "{ id: look, type: guide, prompt: Look, next: call }
        { id: call, type: workflow, workflow: project.child }";
    let reports = "name: reports
triggers: [{ id: other, type: error }]
graph: { nodes: [{ id: call, type: workflow, workflow: project.child }] }
";
    let workflows = [
        ("child", CHILD),
        ("parent", parent),
        ("grand", grand),
        ("fails", FAILS),
        ("reported", REPORTED),
        ("reports", reports),
        ("held", held),
    ];
    let world = World::new(&workflows);
    World { rights: Arc::new(Named), ..world }
}

fn by(token: Option<&str>, door: Door) -> By {
    let via =
        Via { actor: ActorKind::Program, door, line: None, token_id: token.map(str::to_owned) };
    By { name: "somebody".to_owned(), via: Some(via) }
}

/// Waits for the end of a run; gives how it ended and why.
async fn end(engine: &Automations, run: RunId) -> String {
    let ended = tokio::time::timeout(Duration::from_secs(20), engine.ended(run));
    let ended = ended.await.unwrap().unwrap();
    let past = engine.past(run).await.unwrap();
    format!("{:?} {:?} {:?}", ended.status, ended.result, past.events)
}

/// Waits until a workflow is told that a run failed; gives how its run ended.
async fn told(engine: &Automations, failed: RunId, workflow: &str) -> String {
    end(engine, failed).await;
    let filter = Filter { workflow: Some(workflow.to_owned()), ..Filter::default() };
    for _ in 0..400 {
        if let Some(told) = engine.list(&filter).await.unwrap().first() {
            return end(engine, told.run).await;
        }
        engine.tell_of_failure(failed).await.unwrap();
        tokio::task::yield_now().await;
    }
    "nobody was told".to_owned()
}

/// Has a run of a way that leads to the child begun by somebody; gives how it ended.
async fn outcome(engine: &Automations, way: &str, token: Option<&str>) -> String {
    let start = async |workflow: &str, by: By| {
        let request = RunRequest { by, ..request(workflow, json!({})) };
        engine.submit(request).await.unwrap().run
    };
    let asked = || by(token, Door::Http);
    match way {
        "child" => end(engine, start("parent", asked()).await).await,
        "grandchild" => end(engine, start("grand", asked()).await).await,
        "schedule" => end(engine, start("parent", by(None, Door::Schedule)).await).await,
        "error" => told(engine, start("fails", asked()).await, "project.child").await,
        // What an error workflow starts, it starts with its own rights as well.
        "error_child" => told(engine, start("reported", asked()).await, "project.reports").await,
        "fork" => {
            let run = start("parent", by(None, Door::Cli)).await;
            end(engine, run).await;
            let step = "call".parse().unwrap();
            let from = ForkPoint { run, step, changes: Vec::new(), on_new_plan: false };
            let forked = engine
                .fork(&from, &Forker { by: asked(), roles: Roles::Any, answers: false })
                .await
                .unwrap();
            end(engine, forked.run).await
        }
        // An agent comes back to a step that is done, and does it otherwise.
        "hand" => {
            let request = RunRequest { by: by(None, Door::Cli), ..request("held", json!({})) };
            let first = engine.start_held(request).await.unwrap();
            let call = done(token_of(&first), "One.", Vec::new());
            engine.proceed(call, &Roles::Any).await.unwrap();
            end(engine, first.session.unwrap().run).await;
            let again = engine.proceed(back(token_of(&first)), &Roles::Any).await.unwrap();
            let call = done(token_of(&again), "Other.", Vec::new());
            let call = Continue { by: Some(asked()), ..call };
            let forked = engine.proceed(call, &Roles::Any).await.unwrap();
            end(engine, forked.session.unwrap().run).await
        }
        "replay" => {
            let run = start("parent", by(None, Door::Cli)).await;
            end(engine, run).await;
            let again = engine.replay(run, asked(), Roles::Any).await.unwrap();
            end(engine, again.run).await
        }
        other => panic!("{other}"),
    }
}

// case: auth.child
#[tokio::test]
async fn a_child_runs_with_the_rights_of_whoever_asked_for_its_parent() {
    let lacks = [
        (Some("workflow"), "the token `workflow` is limited to other workflows"),
        (Some("scope"), "the token `scope` lacks the scope `run`"),
        (Some("role"), "the token `role` lacks the role `admin`"),
        (Some("revoked"), "the token `revoked` was revoked"),
        (Some("good"), ""),
        (None, ""),
    ];
    let ways =
        ["child", "grandchild", "error", "error_child", "schedule", "fork", "hand", "replay"];
    for way in ways {
        for (token, lack) in lacks {
            let world = world();
            let engine = world.engine();
            let told = outcome(&engine, way, token).await;
            let case = format!("{way} with {token:?}: {told}");
            let has_own_rights = matches!(way, "error" | "error_child" | "schedule");
            if lack.is_empty() || has_own_rights {
                assert!(told.starts_with("Succeeded"), "{case}");
                continue;
            }
            assert!(told.starts_with("Failed"), "{case}");
            // Nothing was begun but what was there before.
            let filter = Filter { workflow: Some("project.child".to_owned()), ..Filter::default() };
            let begun = engine.list(&filter).await.unwrap();
            let before = usize::from(matches!(way, "fork" | "hand" | "replay"));
            assert_eq!(begun.len(), before, "{case}");
            if way == "hand" {
                assert_eq!(recorded(&world, token).await, ["runs:fork", "runs:continue"], "{case}");
            }
        }
    }
}

/// What is on record of a token, in its order.
async fn recorded(world: &World, token: Option<&str>) -> Vec<String> {
    let record = Record::new(&world.store(), SystemHost::shared());
    let wanted = Wanted { token: token.map(str::to_owned), ..Wanted::default() };
    let lines = record.read(0, 100, &wanted).await.unwrap().lines;
    lines.into_iter().map(|line| line.action).collect()
}

#[tokio::test]
async fn whoever_is_refused_a_child_is_told_who_lacks_what() {
    for (token, lack) in [
        ("workflow", "`project.child` is not started: the token `workflow` is limited to other"),
        ("scope", "`project.child` is not started: the token `scope` lacks the scope `run`"),
        ("role", "`project.child` is not started: the token `role` lacks the role `admin`"),
        ("revoked", "`project.child` is not started: the token `revoked` was revoked"),
    ] {
        let world = world();
        let told = outcome(&world.engine(), "child", Some(token)).await;
        assert!(told.contains("CHILD_FORBIDDEN") && told.contains(lack), "{token}: {told}");
    }
}

#[tokio::test]
async fn letting_a_run_go_on_takes_the_role_that_starting_it_does() {
    let text = CHILD.replace(
        "{ id: done,",
        "{ id: ask, type: human, prompt: May it?, cases: { approved: done, rejected: done } }, \
         { id: done,",
    );
    for (token, code) in
        [(Some("role"), Some("AUTH_FORBIDDEN")), (Some("good"), None), (None, None)]
    {
        let world = World { rights: Arc::new(Named), ..World::new(&[("child", &text)]) };
        let engine = world.engine();
        let run = engine.submit(request("child", json!({}))).await.unwrap().run;
        engine.pause(run, by(None, Door::Cli)).await.unwrap();
        let resumed = engine.resume(run, by(token, Door::Http)).await;
        assert_eq!(resumed.err().map(|error| error.code()), code, "{token:?}");
    }
}
