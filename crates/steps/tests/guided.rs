//! Steps that the engine performs in the middle of a guided run: one run, one log.

#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]

use std::path::Path;
use std::sync::Arc;

use cairn_core::catalog::{Class, StepType};
use cairn_engine::catalog::{Catalog, Directory};
use cairn_engine::guided::answer::Answer;
use cairn_engine::guided::ask::{At, Continue, Intent, Output, Resume, Start, Tokens, Wanted};
use cairn_engine::guided::{Guide, Options};
use cairn_engine::host::SystemHost;
use cairn_engine::performer::{Ctx, Failed, Outcome, Performer, Performers};
use cairn_lang::ids::SourceKind;
use cairn_steps::catalog::Settings;
use cairn_store::Config;
use serde_json::Value;

const CHECKED: &str = "
id: project.checked
name: Checked
description: A procedure that looks for itself.
version: 1.0.0
steps:
  - id: count-files
    title: Count the files
    run: {type: shell, command: 'echo x >> ../calls; ls | wc -l'}
  - {id: report, title: Report, prompt: 'There are {{count_files.stdout}} files; exit {{count_files.exit_code}}.'}
  - id: fix-loop
    type: loop
    title: Until the marker is there
    loop: {type: until, maxIterations: 5, condition: {var: marker.ok, equals: true}}
    body:
      - {id: make, title: Make it, prompt: Make the marker.}
      - id: look
        title: Look for it
        run: {type: shell, command: [test, -f, marker], saveAs: marker}
  - id: sum-up
    title: Sum up
    run: {type: transform, value: {files: '{{count_files.exit_code}}', note: 'ok: {{marker.ok}}'}}
  - {id: early, title: Enough, run: {type: end, message: All is there.}}
  - {id: never, title: Never, prompt: This is never reached.}
";

fn guide(home: &Path, performers: Performers) -> Guide {
    let store = cairn_store::open(&Config::files(home.join("data"))).unwrap();
    let directory = Directory { kind: SourceKind::Project, root: home.join("workflows") };
    let options = Options { workspace: Some(home.join("work")), ..Options::default() };
    let catalog = Arc::new(Catalog::new(vec![directory]));
    Guide::new(store, catalog, performers, SystemHost::shared(), options)
}

fn steps(home: &Path) -> Performers {
    let supervisor = env!("CARGO_BIN_EXE_cairn-exec").into();
    cairn_steps::catalog::all(&Settings::new(supervisor, &home.join("data")))
}

fn home() -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    for folder in ["workflows", "work"] {
        std::fs::create_dir(home.path().join(folder)).unwrap();
    }
    std::fs::write(home.path().join("workflows/checked.yaml"), CHECKED).unwrap();
    std::fs::write(home.path().join("work/one"), "").unwrap();
    home
}

fn ack(answer: &Answer) -> Continue {
    Continue { at: At::Compact(answer.tokens.continue_token.clone()), ..go_on() }
}

fn go_on() -> Continue {
    Continue {
        at: At::Compact(String::new()),
        intent: Some(Intent::Advance),
        output: Some(Output { notes: Some("Did it.".into()), artifacts: Vec::new() }),
        context: None,
        preferences: Wanted::default(),
        tokens: Tokens::Compact,
        by: None,
    }
}

fn prompt(answer: &Answer) -> &str {
    answer.pending.as_ref().map(|pending| pending.prompt.as_str()).unwrap_or_default()
}

fn calls(home: &Path) -> usize {
    std::fs::read_to_string(home.join("calls")).unwrap_or_default().lines().count()
}

#[tokio::test]
async fn the_engine_performs_its_steps_and_the_agent_gets_the_outcome() {
    let home = home();
    let guide = guide(home.path(), steps(home.path()));
    let start = Start { workflow: "checked".into(), ..Start::default() };
    let first = guide.start(start).await.unwrap();
    assert_eq!(first.pending.as_ref().unwrap().step_id, "report");
    let text = prompt(&first);
    assert!(text.contains("The engine performed `count-files`"), "{text}");
    assert!(text.contains("There are 1\n files; exit 0."), "{text}");
    // The loop goes round until the engine itself sees that it is done.
    let make = guide.proceed(ack(&first)).await.unwrap();
    assert_eq!(make.pending.as_ref().unwrap().step_id, "make");
    let again = guide.proceed(ack(&make)).await.unwrap();
    assert_eq!(again.pending.as_ref().unwrap().step_id, "make");
    assert!(prompt(&again).contains("exit code 1"), "{}", prompt(&again));
    std::fs::write(home.path().join("work/marker"), "").unwrap();
    let call = ack(&again);
    let done = guide.proceed(call.clone()).await.unwrap();
    assert!(done.is_complete, "it ends early: {done:?}");
    // What was performed is not performed again.
    assert_eq!(guide.proceed(call).await.unwrap(), done);
    assert_eq!(calls(home.path()), 1);
}

/// A performer that is never done, as one whose process dies.
struct Stuck(Arc<tokio::sync::Notify>);

#[async_trait::async_trait]
impl Performer for Stuck {
    fn kind(&self) -> StepType {
        let any = || serde_json::json!({});
        StepType::new("shell", Class::Effectful, any(), any())
    }

    async fn perform(&self, _: Value, _: &Ctx) -> Result<Outcome, Failed> {
        self.0.notify_one();
        std::future::pending().await
    }
}

#[tokio::test]
async fn a_step_that_was_cut_off_is_performed_when_the_run_goes_on() {
    let home = home();
    let begun = Arc::new(tokio::sync::Notify::new());
    let stuck = guide(home.path(), Performers::new(vec![Arc::new(Stuck(Arc::clone(&begun)))]));
    let start = Start { workflow: "checked".into(), ..Start::default() };
    tokio::select! {
        ended = stuck.start(start) => panic!("it ended: {}", ended.is_ok()),
        () = begun.notified() => {}
    }

    let guide = guide(home.path(), steps(home.path()));
    let found = guide.resume(Resume::default()).await.unwrap();
    let at = At::Compact(found.first().unwrap().continue_token.clone());
    let back = Continue { at, intent: None, output: None, ..go_on() };
    let there = guide.proceed(back.clone()).await.unwrap();
    assert_eq!(there.pending.as_ref().unwrap().step_id, "count-files");
    assert_eq!(calls(home.path()), 0, "coming back performs nothing");
    let on = Continue { intent: Some(Intent::Advance), ..back };
    let after = guide.proceed(on.clone()).await.unwrap();
    assert_eq!(after.pending.as_ref().unwrap().step_id, "report");
    assert_eq!(guide.proceed(on).await.unwrap(), after);
    assert_eq!(calls(home.path()), 1);
}

fn with(home: &Path, text: &str) -> Guide {
    std::fs::write(home.join("workflows/checked.yaml"), text).unwrap();
    guide(home, steps(home))
}

#[tokio::test]
async fn a_long_row_of_engine_steps_is_finished_in_several_calls() {
    let home = home();
    let text = "
id: project.checked
name: Long
description: Many steps of the engine.
version: 1.0.0
steps:
  - {id: begin, title: Begin, prompt: Begin.}
  - id: round
    type: loop
    title: Round
    loop: {type: for, count: 600, maxIterations: 1000}
    body:
      - {id: one, title: One, run: {type: log, message: one}}
      - {id: two, title: Two, run: {type: log, message: two}}
  - {id: last, title: Last, prompt: Last.}
";
    let guide = with(home.path(), text);
    let start = Start { workflow: "checked".into(), ..Start::default() };
    let mut answer = guide.start(start).await.unwrap();
    let mut calls = 0;
    while answer.pending.as_ref().unwrap().step_id != "last" {
        answer = guide.proceed(ack(&answer)).await.unwrap();
        calls += 1;
        assert!(calls < 5);
    }
    assert!(prompt(&answer).len() < 16 << 10, "{} bytes", prompt(&answer).len());
}

#[tokio::test]
async fn a_step_of_the_engine_can_be_forked_from() {
    let home = home();
    let guide = guide(home.path(), steps(home.path()));
    let start = Start { workflow: "checked".into(), ..Start::default() };
    let first = guide.start(start).await.unwrap();
    assert_eq!(calls(home.path()), 1);
    let run = first.session.unwrap();
    let store = cairn_store::open(&Config::files(home.path().join("data"))).unwrap();
    let keys = store.keys.load().await.unwrap();
    let events = store.log.read(run.session, cairn_core::id::EventIndex(0)).await.unwrap();
    let root = events.iter().find(|event| {
        matches!(&event.data, cairn_core::event::EventData::NodeCreated(node) if node.parent_node_id.is_none())
    });
    let token = cairn_core::token::compact::CompactToken {
        label: cairn_core::token::compact::Label::new(&first.label).unwrap(),
        session: run.session,
        node: root.unwrap().index,
        attempt: cairn_core::token::compact::Attempt::FIRST,
    };
    let token = token.sign(cairn_core::token::compact::Kind::Continue, &keys);
    let back = Continue { at: At::Compact(token), intent: None, output: None, ..go_on() };
    let there = guide.proceed(back).await.unwrap();
    assert_eq!(there.pending.as_ref().unwrap().step_id, "count-files");
    let again = guide.proceed(ack(&there)).await.unwrap();
    assert_eq!(again.pending.as_ref().unwrap().step_id, "report");
    assert_eq!(calls(home.path()), 2, "a fork performs it anew");
}

// case: time.instant-once
#[tokio::test]
async fn two_processes_perform_a_step_once() {
    let home = home();
    let text =
        CHECKED.replace("echo x >> ../calls; ls | wc -l", "echo x >> ../calls; sleep 0.3; ls");
    let text = text.replace(
        "  - id: count-files",
        "  - {id: begin, title: Begin, prompt: Begin.}\n  - id: count-files",
    );
    let one = with(home.path(), &text);
    let two = guide(home.path(), steps(home.path()));
    let start = Start { workflow: "checked".into(), ..Start::default() };
    let begun = one.start(start).await.unwrap();
    let (first, second) = tokio::join!(one.proceed(ack(&begun)), two.proceed(ack(&begun)));
    let answers = [first, second];
    let locked = |answer: &cairn_engine::Result<Answer>| {
        answer.as_ref().is_err_and(|error| error.code() == "TOKEN_SESSION_LOCKED")
    };
    assert!(answers.iter().all(|answer| answer.is_ok() || locked(answer)), "{answers:?}");
    let after = two.proceed(ack(&begun)).await.unwrap();
    assert_eq!(after.pending.as_ref().unwrap().step_id, "report");
    assert_eq!(calls(home.path()), 1);
}

#[tokio::test]
async fn what_is_not_set_never_reaches_a_command() {
    let home = home();
    let text = CHECKED.replace(
        "command: 'echo x >> ../calls; ls | wc -l'",
        "command: 'echo x >> ../calls', env: {D: '{{nowhere}}'}",
    );
    let guide = with(home.path(), &text);
    let start = Start { workflow: "checked".into(), ..Start::default() };
    let first = guide.start(start).await.unwrap();
    assert!(prompt(&first).contains("`nowhere` is not set"), "{}", prompt(&first));
    assert_eq!(calls(home.path()), 0);
}
