//! A session that a later version wrote to: everything that reads works, nothing that writes.

use std::fs;
use std::path::Path;

use crate::env::{SESSION, TestEnv};

const FUTURE: &str = "sess_01hf7yat00000000000000000f";
const RUN: &str = "run_01hf7yat00000000000000000g";

/// A home with the golden session of the store's tests.
fn future() -> TestEnv {
    let env = TestEnv::new();
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../store/tests/newer");
    copy(&golden, &env.home());
    env
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let place = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &place),
            false => drop(fs::copy(entry.path(), place).unwrap()),
        }
    }
}

#[test]
fn it_is_listed_shown_verified_and_exported() {
    let env = future();
    let bundle = env.path("bundle.json");
    let bundle = bundle.to_str().unwrap();
    for (args, told) in [
        (vec!["session", "list"], FUTURE),
        (vec!["session", "show", FUTURE], "unknown kind `step_dreaming`"),
        (vec!["session", "verify", FUTURE], "ok   "),
        (vec!["session", "export", FUTURE, "--output", bundle], ""),
        (vec!["runs", "list", "--json"], ""),
    ] {
        let outcome = env.run(&args);
        assert_eq!(outcome.code, 0, "{args:?}: {outcome}");
        assert!(outcome.stdout.contains(told), "{args:?}: {outcome}");
    }
    assert!(fs::read_to_string(bundle).unwrap().contains("step_dreaming"));
    let outcome = env.run(&["session", "import", bundle]);
    assert!(outcome.stderr.contains("BUNDLE_UNSUPPORTED_VERSION"), "{outcome}");
}

#[test]
fn writing_to_it_is_refused_by_name_and_others_go_on() {
    let env = future();
    let outcome = env.run(&["runs", "cancel", RUN]);
    assert_eq!(outcome.code, 7, "{outcome}");
    assert!(outcome.stderr.contains("error[SESSION_NEWER]"), "{outcome}");
    env.append(SESSION, 2);
    assert_eq!(env.run(&["session", "verify", "--all"]).code, 0);
}
