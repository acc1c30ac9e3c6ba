use std::fs;
use std::io::Write as _;
use std::path::PathBuf;

use cairn_core::event::{ActorKind, By, Door, Via};
use cairn_core::id::RunId;
use serde_json::json;

use super::*;
use crate::host::SystemHost;

struct World {
    home: tempfile::TempDir,
    record: Record,
}

fn by(door: Door) -> By {
    let token_id = Some("tok_1".to_owned());
    By {
        name: "ci".to_owned(),
        via: Some(Via { actor: ActorKind::Program, door, line: None, token_id }),
    }
}

fn deed(run: u128) -> Deed {
    let run = RunId::from_bits(run);
    Deed::to_run(by(Door::Http), Action::StartRun, run, "project.a").with(&json!({"n": 1}))
}

impl World {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let store = cairn_store::open(&cairn_store::Config::files(home.path())).unwrap();
        let record = Record::new(&store, SystemHost::shared());
        Self { home, record }
    }

    async fn with_lines(count: u128) -> Self {
        let world = Self::new();
        for run in 0..count {
            world.change(run).await.unwrap();
        }
        world
    }

    async fn change(&self, run: u128) -> Result<()> {
        self.record.change(deed(run), async { Ok(()) }).await
    }

    fn lines(&self) -> PathBuf {
        self.home.path().join("audit/audit.jsonl")
    }

    fn head(&self) -> PathBuf {
        self.home.path().join("audit.head")
    }

    fn edit(&self, edit: impl FnOnce(&mut Vec<String>)) {
        let text = fs::read_to_string(self.lines()).unwrap();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        edit(&mut lines);
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        fs::write(self.lines(), text).unwrap();
    }

    async fn verdict(&self) -> String {
        match self.record.verify().await {
            Ok(lines) => format!("{lines} lines"),
            Err(error) => error.code().to_owned(),
        }
    }
}

#[tokio::test]
async fn a_line_says_who_did_what_to_what_and_what_came_of_it() {
    let world = World::with_lines(1).await;
    let failed: Result<()> =
        world.record.change(deed(7), async { Err(Error::Broken("no".to_owned())) }).await;
    assert!(failed.is_err());
    let unrecorded = Deed { by: by(Door::Webhook), ..deed(8) };
    world.record.change(unrecorded, async { Ok::<_, Error>(()) }).await.unwrap();
    let lines = world.record.read(0, 9, &Wanted::default()).await.unwrap().lines;
    assert_eq!(lines.len(), 3, "what a trigger starts stands in the log");
    let first = &lines[0];
    assert_eq!((first.by.as_str(), first.action.as_str()), ("ci", "runs:start"));
    assert_eq!((first.token_id.as_deref(), first.door), (Some("tok_1"), Some(Door::Http)));
    assert_eq!(first.workflow_id.as_deref(), Some("project.a"));
    assert_eq!(first.run_id, Some(RunId::from_bits(0)));
    assert!(first.arguments.is_some() && first.allowed && first.outcome.is_none());
    let last = &lines[2];
    assert_eq!((last.of, last.outcome.as_deref()), (Some(1), Some("INVARIANT_VIOLATION")));
    assert!(!last.allowed);
    assert_eq!(world.verdict().await, "3 lines");
}

#[tokio::test]
async fn lines_are_found_by_workflow_run_and_token() {
    let world = World::with_lines(5).await;
    let found = async |wanted: Wanted| world.record.read(0, 9, &wanted).await.unwrap().lines.len();
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(found(Wanted { workflow: some("project.a"), ..Wanted::default() }).await, 5);
    assert_eq!(found(Wanted { workflow: some("project.b"), ..Wanted::default() }).await, 0);
    assert_eq!(found(Wanted { token: some("tok_1"), ..Wanted::default() }).await, 5);
    let run = Some(RunId::from_bits(3).to_string());
    assert_eq!(found(Wanted { run, ..Wanted::default() }).await, 1);
    let page = world.record.read(1, 2, &Wanted::default()).await.unwrap();
    assert_eq!(page.lines.iter().map(|line| line.index).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(page.next, Some(3));
    assert_eq!(world.record.read(3, 2, &Wanted::default()).await.unwrap().next, None);
}

/// What somebody does to the files.
type Tampering = fn(&World);

// case: audit.chain
#[tokio::test]
async fn whatever_is_done_to_the_record_is_noticed_and_stays_noticed() {
    let cases: [(&str, Tampering, &str, bool); 14] = [
        ("nothing", |_| {}, "4 lines", true),
        (
            "a line edited",
            |w| w.edit(|l| l[1] = l[1].replacen("ci", "me", 1)),
            "AUDIT_BROKEN",
            true,
        ),
        (
            "the last edited",
            |w| w.edit(|l| l[3] = l[3].replacen("ci", "me", 1)),
            "AUDIT_BROKEN",
            false,
        ),
        ("a line put in", |w| w.edit(|l| l.insert(1, l[1].clone())), "AUDIT_BROKEN", true),
        ("a line taken out", |w| w.edit(|l| drop(l.remove(1))), "AUDIT_LINES_MISSING", true),
        ("two swapped", |w| w.edit(|l| l.swap(1, 2)), "AUDIT_LINES_MISSING", true),
        ("the first cut", |w| w.edit(|l| drop(l.remove(0))), "AUDIT_LINES_MISSING", true),
        ("the last cut", |w| w.edit(|l| drop(l.pop())), "AUDIT_LINES_MISSING", true),
        ("all cut", |w| w.edit(Vec::clear), "AUDIT_LINES_MISSING", true),
        ("the file deleted", |w| fs::remove_file(w.lines()).unwrap(), "AUDIT_LINES_MISSING", true),
        ("the head deleted", |w| fs::remove_file(w.head()).unwrap(), "AUDIT_HEAD_MISSING", true),
        (
            "lines cut and the head deleted",
            |w| {
                w.edit(|l| l.truncate(2));
                fs::remove_file(w.head()).unwrap();
            },
            "AUDIT_HEAD_MISSING",
            true,
        ),
        (
            "the last edited and the head deleted",
            |w| {
                w.edit(|l| l[3] = l[3].replacen("ci", "me", 1));
                fs::remove_file(w.head()).unwrap();
            },
            "AUDIT_BROKEN",
            false,
        ),
        ("the head garbled", |w| fs::write(w.head(), "{}").unwrap(), "AUDIT_HEAD_MISSING", true),
    ];
    for (what, tamper, verdict, goes_on) in cases {
        let world = World::with_lines(4).await;
        tamper(&world);
        assert_eq!(world.verdict().await, verdict, "{what}");
        // The next line hides nothing. Where the head was, a place is left empty.
        assert_eq!(world.change(9).await.is_ok(), goes_on, "{what}");
        let after = verdict.replace("AUDIT_HEAD_MISSING", "AUDIT_LINES_MISSING");
        let after = if verdict.starts_with("AUDIT") { after } else { "5 lines".to_owned() };
        assert_eq!(world.verdict().await, after, "{what}, and a line more");
    }
}

#[tokio::test]
async fn what_a_crash_cut_off_or_did_not_count_was_not_tampered_with() {
    let world = World::with_lines(2).await;
    let head = fs::read(world.head()).unwrap();
    let mut file = fs::OpenOptions::new().append(true).open(world.lines()).unwrap();
    file.write_all(b"{\"index\":2,\"at\":").unwrap();
    assert_eq!(world.verdict().await, "2 lines");
    world.change(2).await.unwrap();
    world.change(3).await.unwrap();
    assert_eq!(world.verdict().await, "4 lines");
    // A power failure can leave the head behind the lines, and either slot half written.
    for keep in [512, 300, 256] {
        fs::write(world.head(), &head[..keep.min(head.len())]).unwrap();
        assert_eq!(world.verdict().await, "4 lines", "{keep}");
    }
    world.change(4).await.unwrap();
    assert_eq!(world.verdict().await, "5 lines");
    world.edit(|lines| drop(lines.pop()));
    assert_eq!(world.verdict().await, "AUDIT_LINES_MISSING");
}

// case: audit.unwritable
#[tokio::test]
async fn what_cannot_be_recorded_is_not_done() {
    let blocks: [(&str, Tampering); 4] = [
        ("a folder for the lines", |w| {
            let _ = fs::remove_file(w.lines());
            fs::create_dir_all(w.lines()).unwrap();
        }),
        ("a file for their folder", |w| {
            let _ = fs::remove_dir_all(w.lines().parent().unwrap());
            fs::write(w.lines().parent().unwrap(), "").unwrap();
        }),
        ("a folder for the head", |w| {
            let _ = fs::remove_file(w.head());
            fs::create_dir_all(w.head()).unwrap();
        }),
        ("a last line that is none", |w| fs::write(w.lines(), "{}\n").unwrap()),
    ];
    for (what, block) in blocks {
        let world = World::with_lines(1).await;
        block(&world);
        let mut is_done = false;
        let done: Result<()> = world
            .record
            .change(deed(1), async {
                is_done = true;
                Ok(())
            })
            .await;
        let code = done.unwrap_err().code();
        assert!(code == "AUDIT_UNWRITABLE" || code == "AUDIT_BROKEN", "{what}: {code}");
        assert!(!is_done, "{what}");
    }
}
