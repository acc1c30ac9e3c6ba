use cairn_core::digest::{SnapshotRef, WorkflowHash};
use cairn_core::event::guided::{NodeCreated, NodeKind, RunStarted, SessionCreated, SourceKind};
use cairn_core::event::{EventData, NewEvent, Scope};
use cairn_core::id::{EventId, NodeId, RunId};
use cairn_core::pin::BlobKind;
use cairn_store::{AppendPlan, Blob, Config};
use insta::assert_snapshot;

use crate::env::{NO_SESSION, SESSION, TestEnv};

#[test]
fn a_session_is_shown_at_a_glance() {
    let env = TestEnv::with_session();
    assert_snapshot!(env.run(&["session", "show", SESSION, "--events", "4"]), @r"
    exit 0
    --- stdout
    session   sess_01hf7yat000000000000000007
    health    healthy
    events    11 ([size])
    blobs     2
    kept      no
    created   2023-11-14T22:13:20.000Z ([ago])
    updated   [ago]
    observed  git_branch branch-5-0

    runs
      run_2vs7m9naht9m8j50ahpxk73q6k  queued  append-loop  -  6 events  [ago]

    last events
      #7   [ago]  context_set           context given: 2 keys
      #8   [ago]  step_started          work started (attempt 5)
      #9   [ago]  observation_recorded  observed git_branch `branch-5-0`
      #10  [ago]  context_set           context given: 2 keys
    ");
    assert_snapshot!(env.run(&["session", "show", SESSION, "--events", "1", "--json"]), @r#"
    exit 0
    --- stdout
    {"sessionId":"sess_01hf7yat000000000000000007","health":"healthy","damage":null,"createdAt":"2023-11-14T22:13:20.000Z","updatedAt":"2023-11-14T22:13:20.010Z","events":11,"bytes":"[size]","kept":false,"runCount":1,"latestRun":{"runId":"run_2vs7m9naht9m8j50ahpxk73q6k","kind":"engine","label":null,"status":"queued","workflowId":"append-loop","workflowHash":null,"events":6,"nodes":0,"createdAt":"2023-11-14T22:13:20.001Z","updatedAt":"2023-11-14T22:13:20.010Z"},"notices":[],"blobs":2,"observations":[{"key":"git_branch","value":"branch-5-0"}],"runs":[{"runId":"run_2vs7m9naht9m8j50ahpxk73q6k","kind":"engine","label":null,"status":"queued","workflowId":"append-loop","workflowHash":null,"events":6,"nodes":0,"createdAt":"2023-11-14T22:13:20.001Z","updatedAt":"2023-11-14T22:13:20.010Z"}],"timeline":[{"index":10,"at":"2023-11-14T22:13:20.010Z","kind":"context_set","runId":"run_2vs7m9naht9m8j50ahpxk73q6k","nodeId":null,"text":"context given: 2 keys"}],"graphs":[]}
    "#);
}

/// A home with the example that has forks, a checkpoint and gaps.
fn with_forks() -> TestEnv {
    let env = TestEnv::new();
    let bundle = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/sessions/rounding.json");
    assert_eq!(env.run(&["session", "import", bundle]).code, 0);
    env
}

#[test]
fn a_guided_run_is_drawn_with_its_forks() {
    let env = with_forks();
    let show = ["session", "show", "sess_01m4ts", "--events", "0"];
    let drawn = |stdout: &str| stdout.split_once("\n\nrun_").unwrap().1.to_owned();
    let mut command = env.command(&show);
    let shown = command.env("LC_ALL", "C.UTF-8").output().unwrap().stdout;
    assert_snapshot!(drawn(std::str::from_utf8(&shown).unwrap()), @r"
    01m4ts07r10000002f39vw079e: Bug hunt
      ●    …wehp6j  Show that it is gone              [gap: critical] ← tip  All 213 tests pass; the reproduction prints 10.00.
      ●    …wswq5x  Write the fix                     [preferences]          Adds first and rounds the sum. New test `two halves make a whole`.
      │ ●  …x57r58  Write the fix                     [blocked] [diverged]   Rounds down instead. Every total is off by one the other way.
      ├─╯
      ●    …xgjs4k  Find the cause                                           The cause
      │ ◆  …xvxt3y  checkpoint before Find the cause
      ├─╯
      ●    …y78v39  Reproduce the fault                                      `cart total` prints 10.01 for two items of 5.00.
      ●    …yjkw2m  start
    ");
    // Without a locale there is only ASCII.
    let plain = env.run(&show).stdout;
    assert_snapshot!(drawn(&plain), @r"
    01m4ts07r10000002f39vw079e: Bug hunt
      *    ..wehp6j  Show that it is gone              [gap: critical] <- tip  All 213 tests pass; the reproduction prints 10.00.
      *    ..wswq5x  Write the fix                     [preferences]           Adds first and rounds the sum. New test `two halves make a whole`.
      | *  ..x57r58  Write the fix                     [blocked] [diverged]    Rounds down instead. Every total is off by one the other way.
      |-'
      *    ..xgjs4k  Find the cause                                            The cause
      | #  ..xvxt3y  checkpoint before Find the cause
      |-'
      *    ..y78v39  Reproduce the fault                                       `cart total` prints 10.01 for two items of 5.00.
      *    ..yjkw2m  start
    ");
    let asked = command.env("LC_ALL", "C.UTF-8").arg("--ascii").output().unwrap().stdout;
    assert_eq!(drawn(std::str::from_utf8(&asked).unwrap()), drawn(&plain));
}

#[test]
fn a_graph_is_the_same_for_programs() {
    let env = with_forks();
    let shown = env.run(&["session", "show", "sess_01m4ts", "--json"]).stdout;
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    let graph = &shown["graphs"][0];
    assert_eq!((graph["nodes"].as_array().unwrap().len(), &graph["nodesLeftOut"]), (7, &0.into()));
    assert_eq!(graph["preferredTip"], graph["nodes"][6]["nodeId"]);
    assert_eq!(graph["nodes"][3]["step"]["title"], "Find the cause");
    assert_eq!(graph["nodes"][6]["gaps"][0]["severity"], "critical");
    assert_eq!(graph["nodes"][4]["blockers"][0], "The suite's result is not in the notes");
}

/// A home with a guided run of this many nodes, one after the other.
fn with_nodes(count: u128) -> TestEnv {
    let env = TestEnv::new();
    let blob = |kind| Blob { kind, bytes: b"{}".to_vec() };
    let blobs = vec![blob(BlobKind::Plan), blob(BlobKind::Snapshot)];
    let (run, digest) = (RunId::from_bits(1), blobs[0].digest());
    let started = RunStarted {
        assets: Vec::new(),
        goal: None,
        workflow_hash: WorkflowHash(digest),
        workflow_id: "project.long".into(),
        workflow_source_kind: SourceKind::Project,
        workflow_source_ref: String::new(),
        workspace: None,
    };
    let mut facts: Vec<(Scope, EventData)> =
        vec![(Scope::Session, SessionCreated {}.into()), (Scope::Run(run), started.into())];
    facts.extend((1..=count).map(|number| {
        let created = NodeCreated {
            node_kind: NodeKind::Step,
            parent_node_id: (number > 1).then(|| NodeId::from_bits(number - 1)),
            snapshot_ref: SnapshotRef(digest),
            workflow_hash: WorkflowHash(digest),
        };
        (Scope::Node(run, NodeId::from_bits(number)), created.into())
    }));
    let facts = (1..).zip(facts);
    let events =
        facts.map(|(n, (scope, data))| NewEvent { id: EventId::from_bits(n), scope, data });
    let plan = AppendPlan { events: events.collect(), blobs, ..AppendPlan::default() };
    let store = cairn_store::open(&Config::files(env.home())).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(store.log.append(SESSION.parse().unwrap(), plan)).unwrap();
    env
}

#[test]
fn a_long_run_is_drawn_from_its_end() {
    let env = with_nodes(203);
    let nodes = |shown: &str| shown.lines().filter(|line| line.starts_with("  *  ..")).count();
    let shown = env.run(&["session", "show", SESSION, "--events", "0"]).stdout;
    assert_eq!(nodes(&shown), 200);
    assert!(shown.ends_with("  :\n  3 older nodes are left out; see --all\n"), "{shown}");
    let shown = env.run(&["session", "show", SESSION, "--events", "0", "--all"]).stdout;
    assert_eq!(nodes(&shown), 203);
    assert!(shown.ends_with("  start\n"), "{shown}");
}

#[test]
fn a_narrow_terminal_cuts_the_notes() {
    let env = with_forks();
    let shown = env.run_on_terminal(&["session", "show", "sess_01m4ts", "--events", "0"], 90);
    let drawn = shown.split_once("\n\nrun_").unwrap().1;
    assert!(drawn.lines().all(|line| line.chars().count() <= 90), "{drawn}");
}

#[test]
fn the_beginning_of_an_id_is_enough_when_it_is_unique() {
    let env = TestEnv::with_session();
    let whole = env.run(&["session", "show", SESSION]);
    assert_eq!(env.run(&["session", "show", "sess_01hf7y"]).stdout, whole.stdout);
    env.append("sess_01hf7yzz000000000000000001", 1);
    assert_snapshot!(env.run(&["session", "show", "sess_01hf7y"]), @r"
    exit 2
    --- stderr
    error[SESSION_ID_AMBIGUOUS]: 2 sessions begin with `sess_01hf7y`
      → give more characters of the id; `cairn session list` shows them
    ");
    assert_snapshot!(env.run(&["session", "show", "sess_01hf7y", "--json"]), @r#"
    exit 2
    --- stderr
    {"code":"SESSION_ID_AMBIGUOUS","details":{"given":"sess_01hf7y","matches":["sess_01hf7yat000000000000000007","sess_01hf7yzz000000000000000001"]},"message":"2 sessions begin with `sess_01hf7y`","retry":{"kind":"not_retryable"},"suggestion":"give more characters of the id; `cairn session list` shows them"}
    "#);
    assert_eq!(env.run(&["session", "show", "sess_01hf7ya"]).code, 0);
}

#[test]
fn what_is_left_of_a_damaged_session_is_shown() {
    let env = TestEnv::with_session();
    env.damage(SESSION);
    let outcome = env.run(&["session", "show", SESSION]);
    assert_eq!(outcome.code, 0, "{outcome}");
    assert!(outcome.stdout.contains("\ndamage  "), "{outcome}");
}

#[test]
fn a_session_that_cannot_be_is_told_from_one_that_is_not_there() {
    let env = TestEnv::with_session();
    assert_snapshot!(env.run(&["session", "show"]), @r"
    exit 2
    --- stderr
    error[USAGE_INVALID]: the following required arguments were not provided: <ID>
      → see `cairn session show --help`
    ");
    assert_snapshot!(env.run(&["session", "show", "nonsense"]), @r"
    exit 2
    --- stderr
    error[SESSION_ID_INVALID]: `nonsense` is not a session id, nor the beginning of one with at least 6 characters after `sess_`
      → copy an id from `cairn session list`, such as sess_01hf7yat…
    ");
    assert_snapshot!(env.run(&["session", "show", "sess_01hf7"]), @r"
    exit 2
    --- stderr
    error[SESSION_ID_INVALID]: `sess_01hf7` is not a session id, nor the beginning of one with at least 6 characters after `sess_`
      → copy an id from `cairn session list`, such as sess_01hf7yat…
    ");
    assert_snapshot!(env.run(&["session", "show", "../../etc/passwd"]), @r"
    exit 2
    --- stderr
    error[SESSION_ID_INVALID]: `../../etc/passwd` is not a session id, nor the beginning of one with at least 6 characters after `sess_`
      → copy an id from `cairn session list`, such as sess_01hf7yat…
    ");
    assert_snapshot!(env.run(&["session", "show", "sess_zzzzzz"]), @r"
    exit 4
    --- stderr
    error[SESSION_NOT_FOUND]: there is no session sess_zzzzzz
      → list the sessions there are with `cairn session list`
    ");
    assert_snapshot!(env.run(&["session", "show", NO_SESSION]), @r"
    exit 4
    --- stderr
    error[SESSION_NOT_FOUND]: there is no session sess_01hf7yat000000000000000008
      → list the sessions there are with `cairn session list`
    ");
    assert_snapshot!(env.run(&["session", "show", NO_SESSION, "--json"]), @r#"
    exit 4
    --- stderr
    {"code":"SESSION_NOT_FOUND","details":{"sessionId":"sess_01hf7yat000000000000000008"},"message":"there is no session sess_01hf7yat000000000000000008","retry":{"kind":"not_retryable"},"suggestion":"list the sessions there are with `cairn session list`"}
    "#);
}
