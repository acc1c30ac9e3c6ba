//! Events name the lines that let them through, so that a record that is gone is missed.

use std::fs;
use std::path::Path;

use cairn_core::event::{ActorKind, By, Door, Via};
use cairn_engine::flow::{Automations, RunRequest};
use cairn_engine::host::SystemHost;
use cairn_engine::record::Record;
use serde_json::json;

use crate::recovery::left;
use crate::world::{World, request};

fn by() -> By {
    let via = Via { actor: ActorKind::Person, door: Door::Cli, line: None, token_id: None };
    By { name: "ada".to_owned(), via: Some(via) }
}

/// Starts a run that waits, pauses it and resumes it: three lines, each named by an event.
async fn asked(engine: &Automations) {
    let wanted = RunRequest { by: by(), ..request("w", json!({})) };
    let run = engine.submit(wanted).await.unwrap().run;
    engine.pause(run, by()).await.unwrap();
    engine.resume(run, by()).await.unwrap();
}

async fn verdict(world: &World) -> String {
    let store = world.store();
    match Record::new(&store, SystemHost::shared()).verify_with(&store).await {
        Ok(lines) => format!("{lines} lines"),
        Err(error) => error.code().to_owned(),
    }
}

/// What somebody does to the files of the record.
type Tampering = fn(lines: &Path, head: &Path);

// case: audit.chain
#[tokio::test]
async fn a_record_that_is_gone_is_missed_by_the_events() {
    let cases: [(&str, Tampering, &str, &str); 4] = [
        ("nothing", |_, _| {}, "3 lines", "6 lines"),
        (
            "both deleted",
            |lines, head| {
                fs::remove_file(lines).unwrap();
                fs::remove_file(head).unwrap();
            },
            "AUDIT_LINES_MISSING",
            "AUDIT_BROKEN",
        ),
        (
            "the folder deleted",
            |lines, head| {
                fs::remove_dir_all(lines.parent().unwrap()).unwrap();
                fs::remove_file(head).unwrap();
            },
            "AUDIT_LINES_MISSING",
            "AUDIT_BROKEN",
        ),
        (
            "cut to one line, and no head",
            |lines, head| {
                let text = fs::read_to_string(lines).unwrap();
                let first = text.lines().next().unwrap();
                fs::write(lines, format!("{first}\n")).unwrap();
                fs::remove_file(head).unwrap();
            },
            "AUDIT_LINES_MISSING",
            "AUDIT_BROKEN",
        ),
    ];
    for (what, tamper, then, later) in cases {
        let world = World::new(&[("w", "{ id: ask, type: human, prompt: ok }")]);
        let engine = world.engine();
        asked(&engine).await;
        let home = world.home.path().join("data");
        tamper(&home.join("audit/audit.jsonl"), &home.join("audit.head"));
        assert_eq!(verdict(&world).await, then, "{what}");
        asked(&engine).await;
        assert_eq!(verdict(&world).await, later, "{what}, and more lines");
    }
}

/// A run that was left is taken over by being spoken to, and that is no failure.
#[tokio::test]
async fn a_run_that_goes_on_is_on_record_as_such() {
    let nodes = "{ id: a, type: log, message: hold }";
    let world = World::new(&[("w", nodes)]);
    let run = left(&world, "w").await;
    let engine = world.engine();
    engine.go_on(run, by()).await.unwrap();
    engine.ended(run).await.unwrap();
    let refused = engine.go_on(run, by()).await.unwrap_err();
    assert_eq!(refused.code(), "RUN_ENDED");
    let store = world.store();
    let record = Record::new(&store, SystemHost::shared());
    let lines = record.read(0, 9, &Default::default()).await.unwrap().lines;
    let resumed: Vec<_> = lines.iter().filter(|line| line.action == "runs:resume").collect();
    let told: Vec<_> = resumed.iter().map(|line| line.outcome.as_deref()).collect();
    assert_eq!(told, [None, None, Some("RUN_ENDED")], "{lines:?}");
}
