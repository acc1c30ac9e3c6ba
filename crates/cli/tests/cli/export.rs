use std::fs;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _, symlink};
use std::thread;

use insta::assert_snapshot;
use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};

use crate::env::{NO_SESSION, SESSION, TestEnv};

// case: path.exports
#[test]
fn a_session_goes_into_a_file_or_to_standard_output() {
    let env = TestEnv::with_session();
    assert_snapshot!(env.run(&["session", "export", SESSION, "-o", "a.json"]), @r"
    exit 0
    --- stdout
    exported sess_01hf7yat000000000000000007 to a.json ([size])
    ");
    assert_snapshot!(env.run(&["session", "export", SESSION, "-o", "a.json", "--json"]), @r#"
    exit 0
    --- stdout
    {"bundleId":"bundle_[fresh]","bytes":"[size]","file":"a.json","sessionId":"sess_01hf7yat000000000000000007"}
    "#);
    let printed = env.run(&["session", "export", SESSION]);
    assert_eq!(printed.code, 0);
    let printed: serde_json::Value = serde_json::from_str(&printed.stdout).unwrap();
    let written: serde_json::Value =
        serde_json::from_slice(&fs::read(env.path("a.json")).unwrap()).unwrap();
    let mode = fs::metadata(env.path("a.json")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "it is for its owner alone");
    let keys =
        |value: &serde_json::Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&printed), keys(&written));
    assert_eq!(env.run(&["session", "export", SESSION, "-o", "-"]).code, 0);
}

// case: bundle.no-secrets
#[test]
fn a_bundle_holds_no_path_of_this_machine() {
    let env = TestEnv::with_session();
    let bundle = env.run(&["session", "export", SESSION]).stdout;
    assert!(!bundle.contains(env.home().to_str().unwrap()));
}

#[test]
fn a_session_that_is_not_whole_is_exported_only_when_a_part_will_do() {
    let env = TestEnv::with_session();
    env.damage(SESSION);
    let outcome = env.run(&["session", "export", SESSION, "-o", "a.json"]);
    assert_eq!(outcome.code, 3, "{outcome}");
    assert!(outcome.stderr.starts_with("error[SESSION_CORRUPT]"), "{outcome}");
    assert!(outcome.stderr.contains("\n  → add --partial to export"), "{outcome}");
    assert!(!env.path("a.json").exists());
    assert_imported(&env);
}

#[test]
fn of_a_session_that_lacks_a_blob_the_part_before_it_is_exported() {
    let env = TestEnv::with_session();
    env.lose_a_blob();
    let outcome = env.run(&["session", "export", SESSION, "-o", "a.json", "--json"]);
    assert_eq!(outcome.code, 3, "{outcome}");
    assert!(outcome.stderr.contains(r#""code":"STORE_BLOB_MISSING""#), "{outcome}");
    assert!(outcome.stderr.contains(r#""suggestion":"add --partial"#), "{outcome}");
    assert_imported(&env);
}

/// Exports a part of the session, which says so, and imports it elsewhere.
fn assert_imported(env: &TestEnv) {
    let outcome = env.run(&["session", "export", SESSION, "-o", "a.json", "--partial", "--json"]);
    assert_eq!(outcome.code, 0, "{outcome}");
    assert!(outcome.stderr.starts_with("PARTIAL EXPORT: "), "{outcome}");
    let answer: serde_json::Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(answer["salvage"]["health"], "corrupt_tail", "{outcome}");
    let other = TestEnv::new();
    let file = env.path("a.json");
    let imported = other.run(&["session", "import", file.to_str().unwrap(), "--json"]);
    assert_eq!(imported.code, 0, "{imported}");
    let imported: serde_json::Value = serde_json::from_str(&imported.stdout).unwrap();
    assert_eq!(imported["events"], answer["salvage"]["eventsExported"]);
}

#[test]
fn a_session_is_written_down_to_be_read() {
    let env = TestEnv::new();
    let bundle = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/sessions/rounding.json");
    assert_eq!(env.run(&["session", "import", bundle]).code, 0);
    let printed = env.run(&["session", "export", "sess_01m4ts", "--markdown"]);
    assert!(printed.stdout.starts_with("# Bug hunt\n\n- Session: `sess_01m4ts"), "{printed}");
    assert_snapshot!(env.run(&["session", "export", "sess_01m4ts", "--markdown", "-o", "a.md", "--json"]), @r#"
    exit 0
    --- stdout
    {"bytes":"[size]","file":"a.md","sessionId":"sess_[fresh]"}
    "#);
    assert_eq!(fs::read_to_string(env.path("a.md")).unwrap(), printed.stdout);
    env.lose_a_blob();
    let outcome = env.run(&["session", "export", "sess_01m4ts", "--markdown"]);
    assert!(outcome.stderr.contains("\n  → add --partial"), "{outcome}");
    let outcome = env.run(&["session", "export", "sess_01m4ts", "--markdown", "--partial"]);
    assert!(outcome.stderr.starts_with("PARTIAL EXPORT: sess_01m4ts"), "{outcome}");
    assert!(outcome.stdout.contains("\n> **This is not the whole session.**"), "{outcome}");
}

#[test]
fn a_part_of_a_whole_session_is_all_of_it() {
    let env = TestEnv::with_session();
    let outcome = env.run(&["session", "export", SESSION, "-o", "a.json", "--partial", "--json"]);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""));
    assert!(!outcome.stdout.contains("salvage"), "{outcome}");
}

#[test]
fn a_link_is_followed_and_stays_a_link() {
    let env = TestEnv::with_session();
    fs::create_dir(env.path("there")).unwrap();
    symlink("there/a.json", env.path("a")).unwrap();
    symlink("a", env.path("b")).unwrap();
    // First nothing is where the links lead, then a file.
    for _ in 0..2 {
        let outcome = env.run(&["session", "export", SESSION, "-o", "b"]);
        assert_eq!(outcome.code, 0, "{outcome}");
        let bundle = fs::read(env.path("there/a.json")).unwrap();
        serde_json::from_slice::<serde_json::Value>(&bundle).unwrap();
        assert!(["a", "b"].iter().all(|link| env.path(link).is_symlink()));
        assert_eq!(fs::read_dir(env.path("there")).unwrap().count(), 1);
        fs::write(env.path("there/a.json"), "an older one").unwrap();
    }
    symlink("loop", env.path("loop")).unwrap();
    assert_eq!(env.run(&["session", "export", SESSION, "-o", "loop"]).code, 1);
}

#[test]
fn a_pipe_gets_the_bundle_and_stays_a_pipe() {
    let env = TestEnv::with_session();
    let pipe = env.path("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let reader = thread::spawn({
        let pipe = pipe.clone();
        move || fs::read(pipe).unwrap()
    });
    let outcome = env.run(&["session", "export", SESSION, "-o", "pipe"]);
    assert_eq!(outcome.code, 0, "{outcome}");
    serde_json::from_slice::<serde_json::Value>(&reader.join().unwrap()).unwrap();
    assert!(fs::metadata(pipe).unwrap().file_type().is_fifo());
}

#[test]
fn a_device_gets_the_bundle_and_stays_a_device() {
    let env = TestEnv::with_session();
    // Root could do harm to the real one and makes one of its own; others can do neither.
    let own = env.path("null");
    let made = mknodat(CWD, &own, FileType::CharacterDevice, Mode::WUSR, makedev(1, 3));
    let null = match made {
        Ok(()) => own.to_str().unwrap(),
        Err(_) if rustix::process::geteuid().is_root() => return,
        Err(_) => "/dev/null",
    };
    let outcome = env.run(&["session", "export", SESSION, "-o", null]);
    // A disk may be mounted so that no device works on it.
    assert!(matches!(outcome.code, 0 | 8), "{outcome}");
    assert!(fs::metadata(null).unwrap().file_type().is_char_device());
}

#[test]
fn nothing_is_left_behind_when_it_fails() {
    let env = TestEnv::with_session();
    assert_snapshot!(env.run(&["session", "export"]), @r"
    exit 2
    --- stderr
    error[USAGE_INVALID]: the following required arguments were not provided: <ID>
      → see `cairn session export --help`
    ");
    assert_snapshot!(env.run(&["session", "export", "x"]), @r"
    exit 2
    --- stderr
    error[SESSION_ID_INVALID]: `x` is not a session id, nor the beginning of one with at least 6 characters after `sess_`
      → copy an id from `cairn session list`, such as sess_01hf7yat…
    ");
    assert_snapshot!(env.run(&["session", "export", NO_SESSION, "-o", "a.json"]), @r"
    exit 4
    --- stderr
    error[SESSION_NOT_FOUND]: there is no session sess_01hf7yat000000000000000008
      → list the sessions there are with `cairn session list`
    ");
    assert_snapshot!(env.run(&["session", "export", SESSION, "-o", "no/such/folder.json"]), @r"
    exit 4
    --- stderr
    error[FILE_NOT_FOUND]: no/such/folder.json: No such file or directory (os error 2)
      → check the path; `-` stands for standard input or output
    ");
    fs::create_dir(env.path("folder")).unwrap();
    assert_snapshot!(env.run(&["session", "export", SESSION, "-o", "folder"]), @r"
    exit 1
    --- stderr
    error[FILE_IO]: folder: Is a directory (os error 21)
      → check the path and the disk it is on, then try again
    ");
    let left: Vec<_> =
        fs::read_dir(env.path(".")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
}
