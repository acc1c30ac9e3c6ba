//! Steps that the engine performs in the middle of a guided run: one run, one log.

#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]

use std::path::Path;
use std::sync::Arc;

use cairn_engine::catalog::{Catalog, Directory};
use cairn_engine::guided::answer::Answer;
use cairn_engine::guided::ask::{At, Continue, Intent, Output, Resume, Start, Tokens, Wanted};
use cairn_engine::guided::{Guide, Options};
use cairn_engine::performer::{Ctx, Failed, Outcome, Performer, Performers};
use cairn_lang::ids::SourceKind;
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
    Guide::new(store, catalog, performers, options)
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
    let guide = guide(home.path(), cairn_steps::catalog::all());
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
struct Stuck;

#[async_trait::async_trait]
impl Performer for Stuck {
    fn name(&self) -> &'static str {
        "shell"
    }

    async fn perform(&self, _: Value, _: &Ctx) -> Result<Outcome, Failed> {
        std::future::pending().await
    }
}

#[tokio::test]
async fn a_step_that_was_cut_off_is_performed_when_the_run_goes_on() {
    let home = home();
    let stuck = guide(home.path(), Performers::new(vec![Arc::new(Stuck)]));
    let start = Start { workflow: "checked".into(), ..Start::default() };
    let limit = std::time::Duration::from_millis(200);
    assert!(tokio::time::timeout(limit, stuck.start(start)).await.is_err());

    let guide = guide(home.path(), cairn_steps::catalog::all());
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
