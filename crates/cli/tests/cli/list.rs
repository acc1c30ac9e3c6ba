use std::fs;

use insta::assert_snapshot;

use crate::env::{SESSION, TestEnv};

#[test]
fn an_empty_home_has_no_sessions() {
    let env = TestEnv::new();
    assert_snapshot!(env.run(&["session", "list"]), @r"
    exit 0
    --- stderr
    no sessions in [tmp]/home
    ");
    assert_snapshot!(env.run(&["session", "list", "--json"]), @r#"
    exit 0
    --- stdout
    {"items":[],"nextCursor":null}
    "#);
    assert_snapshot!(env.run(&["session", "list", "--quiet"]), @"exit 0");
}

#[test]
fn sessions_are_listed_newest_first() {
    let env = TestEnv::with_session();
    env.append("sess_01hf7yzz000000000000000001", 1);
    assert_snapshot!(env.run(&["session", "list"]), @r"
    exit 0
    --- stdout
    SESSION                          HEALTH   EVENTS  SIZE     RUNS  LATEST RUN          LABEL  KEPT  UPDATED
    sess_01hf7yzz000000000000000001  healthy  2       [size]    1     append-loop queued  -      -     [ago]
    sess_01hf7yat000000000000000007  healthy  11      [size]  1     append-loop queued  -      -     [ago]
    ");
    assert_snapshot!(env.run(&["session", "list", "--limit", "1"]), @r"
    exit 0
    --- stdout
    SESSION                          HEALTH   EVENTS  SIZE   RUNS  LATEST RUN          LABEL  KEPT  UPDATED
    sess_01hf7yzz000000000000000001  healthy  2       [size]  1     append-loop queued  -      -     [ago]
    --- stderr
    there are more; go on with --cursor sess_01hf7yzz000000000000000001
    ");
    assert_snapshot!(env.run(&["session", "list", "--cursor", "sess_01hf7yzz000000000000000001", "--json"]), @r#"
    exit 0
    --- stdout
    {"items":[{"sessionId":"sess_01hf7yat000000000000000007","health":"healthy","damage":null,"createdAt":"2023-11-14T22:13:20.000Z","updatedAt":"2023-11-14T22:13:20.010Z","events":11,"bytes":"[size]","kept":false,"runCount":1,"latestRun":{"runId":"run_2vs7m9naht9m8j50ahpxk73q6k","kind":"engine","label":null,"status":"queued","workflowId":"append-loop","workflowHash":null,"events":6,"nodes":0,"createdAt":"2023-11-14T22:13:20.001Z","updatedAt":"2023-11-14T22:13:20.010Z"}}],"nextCursor":null}
    "#);
}

#[test]
fn damaged_sessions_can_be_asked_for() {
    let env = TestEnv::with_session();
    env.append("sess_01hf7yzz000000000000000001", 1);
    env.damage(SESSION);
    let outcome = env.run(&["session", "list", "--health", "healthy"]);
    assert!(outcome.stdout.contains("sess_01hf7yzz") && !outcome.stdout.contains(SESSION));
    let outcome = env.run(&["session", "list"]);
    assert!(outcome.stdout.contains("corrupt_"), "{outcome}");
}

#[test]
fn one_that_cannot_be_read_hides_no_other() {
    let env = TestEnv::with_session();
    env.append("sess_01hf7yzz000000000000000001", 1);
    env.make_unreadable(SESSION);
    assert_snapshot!(env.run(&["session", "list"]), @r"
    exit 0
    --- stdout
    SESSION                          HEALTH      EVENTS  SIZE   RUNS  LATEST RUN          LABEL  KEPT  UPDATED
    sess_01hf7yzz000000000000000001  healthy     2       [size]  1     append-loop queued  -      -     [ago]
    sess_01hf7yat000000000000000007  unreadable  -       -      -     -                   -      -     -
    --- stderr
    sess_01hf7yat000000000000000007 cannot be looked at: STORE_IO: reading [tmp]/home/sessions/sess_01hf7yat000000000000000007/manifest.jsonl: it is a directory, and not a regular file
    ");
    assert_snapshot!(env.run(&["session", "list", "--health", "unreadable", "--json"]), @r#"
    exit 0
    --- stdout
    {"items":[{"sessionId":"sess_01hf7yat000000000000000007","health":"unreadable","damage":"STORE_IO: reading [tmp]/home/sessions/sess_01hf7yat000000000000000007/manifest.jsonl: it is a directory, and not a regular file","createdAt":"2023-11-14T22:13:20.000Z","updatedAt":null,"events":0,"bytes":"[size]","kept":false,"runCount":0,"latestRun":null}],"nextCursor":null}
    "#);
    let healthy = env.run(&["session", "list", "--health", "healthy"]);
    assert!(healthy.stdout.contains("sess_01hf7yzz") && healthy.stderr.is_empty(), "{healthy}");
}

#[test]
fn lines_fit_into_a_narrow_terminal() {
    let env = TestEnv::new();
    let bundle = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/sessions/bug-hunt.json");
    assert_eq!(env.run(&["session", "import", bundle]).code, 0);
    let list = env.run_on_terminal(&["session", "list"], 80);
    assert!(list.lines().all(|line| line.chars().count() <= 80), "{list}");
    assert!(list.contains("project.bug-hunt complete"), "{list}");
    assert!(!list.contains("KEPT"), "{list}");
    let wide = env.run_on_terminal(&["session", "list"], 200);
    assert_eq!(wide, env.run(&["session", "list"]).stdout);
    let show = env.run_on_terminal(&["session", "show", "sess_01m325"], 80);
    assert!(show.lines().all(|line| line.chars().count() <= 80), "{show}");
    assert!(show.contains('…'), "{show}");
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let env = TestEnv::new();
    assert_snapshot!(env.run(&["session", "list", "--limit", "0"]), @r"
    exit 2
    --- stderr
    error[USAGE_INVALID]: invalid value '0' for '--limit <N>': a whole number from 1 to 200
      → see `cairn session list --help`
    ");
    assert_snapshot!(env.run(&["session", "list", "--health", "fine"]), @r"
    exit 2
    --- stderr
    error[USAGE_INVALID]: invalid value 'fine' for '--health <STATE>' [possible values: healthy, corrupt_tail, corrupt_head, unknown_version, unreadable]
      → see `cairn session list --help`
    ");
    assert_snapshot!(env.run(&["session", "list", "--cursor", "x"]), @r"
    exit 2
    --- stderr
    error[USAGE_INVALID]: `x` is not a cursor
      → copy it from the end of an earlier page
    ");
}

#[test]
fn a_home_that_cannot_be_one_is_refused() {
    let env = TestEnv::new();
    env.spoil_home();
    assert_snapshot!(env.run(&["session", "list"]), @r"
    exit 2
    --- stderr
    error[HOME_NOT_A_DIRECTORY]: [tmp]/home is not a directory
      → name a directory with --home or CAIRN_HOME
    ");
    assert_snapshot!(env.run(&["key", "rotate", "--home", "/proc/nowhere"]), @r"
    exit 1
    --- stderr
    error[STORE_IO]: making /proc/nowhere: No such file or directory (os error 2)
      → look at the data directory and its disk with `cairn doctor`
    ");
}

#[cfg(unix)]
#[test]
fn a_home_that_cannot_be_written_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    if rustix::process::geteuid().is_root() {
        // Nothing is forbidden to root.
        return;
    }
    let env = TestEnv::new();
    fs::set_permissions(env.home(), fs::Permissions::from_mode(0o500)).unwrap();
    let outcome = env.run(&["key", "rotate"]);
    assert_eq!(outcome.code, 8, "{outcome}");
    assert!(outcome.stderr.starts_with("error[STORE_DENIED]"), "{outcome}");
}
