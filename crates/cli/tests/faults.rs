//! The real program on a disk that fails: full, broken, or gone in the middle of a call.
//!
//! The faults come from outside: `strace` injects them into an unchanged program, and a
//! small file system in memory is really full.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that fails may panic")]

#[path = "../src/commands/dev/workload.rs"]
mod workload;

use std::path::Path;
use std::process::{Command, Output};

use cairn_core::id::{EventIndex, SessionId};
use cairn_store::{Config, Health, open};
use workload::Workload;

const SESSION: SessionId = SessionId::mint(1_700_000_000_000, 1);
const LOOP: [&str; 9] = [
    "dev",
    "append-loop",
    "--session",
    "sess_01hf7yat000000000000000001",
    "--count",
    "6",
    "--blobs",
    "--journal-max",
    "2500",
];

fn run(home: &Path, inject: Option<&str>) -> Output {
    let cairn = env!("CARGO_BIN_EXE_cairn");
    let mut command = match inject {
        None => Command::new(cairn),
        Some(inject) => {
            let mut strace = Command::new("strace");
            let what = inject.split(':').next().unwrap();
            strace.args(["-f", "-o", "/dev/null", "-e", &format!("trace={what}")]);
            strace.args(["-e", &format!("inject={inject}"), cairn]);
            strace
        }
    };
    command.arg("--home").arg(home).args(LOOP);
    command.output().expect("strace is installed (scripts/setup.sh installs it)")
}

/// The last index that was acknowledged, as the program said it.
fn acknowledged(output: &Output) -> Option<u64> {
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().filter_map(|line| line.parse().ok()).next_back()
}

/// Looks at the session as a new process would, then lets it go on.
async fn goes_on(home: &Path, acknowledged: Option<u64>, case: &str) {
    let store = open(&Config::files(home)).unwrap();
    let events = match store.log.read(SESSION, EventIndex(0)).await {
        Ok(events) => events,
        Err(cairn_store::Error::NotFound(_)) => Vec::new(),
        Err(error) => panic!("{case}: {error}"),
    };
    let there = events.len() as u64;
    assert!(acknowledged.is_none_or(|last| last < there), "{case}: {there} of {acknowledged:?}");
    let workload = Workload { session: SESSION, blobs: true };
    let plans = workload::plans_in(there).unwrap_or_else(|| panic!("{case}: half a plan"));
    let expected: Vec<_> = (0..plans).flat_map(|plan| workload.plan(plan).events).collect();
    let found: Vec<_> = events.iter().map(|event| (event.scope, &event.data)).collect();
    let expected: Vec<_> = expected.iter().map(|event| (event.scope, &event.data)).collect();
    assert_eq!(found, expected, "{case}");
    drop(store);
    let output = run(home, None);
    assert!(output.status.success(), "{case}: {}", String::from_utf8_lossy(&output.stderr));
    let store = open(&Config::files(home)).unwrap();
    let report = cairn_store::verify(&store, SESSION).await.unwrap();
    assert_eq!((report.health, report.problems), (Health::Healthy, Vec::new()), "{case}");
    assert_eq!(report.events, workload::events_in(plans + 6), "{case}");
}

/// How often an undisturbed run makes a system call.
fn count(call: &str) -> usize {
    let home = tempfile::tempdir().unwrap();
    let log = home.path().join("calls");
    let mut command = Command::new("strace");
    command.args(["-f", "-e", &format!("trace={call}"), "-o"]).arg(&log);
    command.arg(env!("CARGO_BIN_EXE_cairn")).arg("--home").arg(home.path().join("data")).args(LOOP);
    assert!(command.output().unwrap().status.success());
    let calls = std::fs::read_to_string(log).unwrap();
    calls.lines().filter(|line| line.contains(&format!("{call}("))).count()
}

/// Strikes at the first call of a kind, then the second, and so on; gives how often it hurt.
async fn strike_each(call: &str, fault: &str, check: impl Fn(&Output, &str)) -> usize {
    let mut hurt = 0;
    for strike in 1..=count(call) {
        let home = tempfile::tempdir().unwrap();
        let case = format!("{call}:{fault}:when={strike}");
        let output = run(home.path(), Some(&case));
        if !output.status.success() {
            check(&output, &case);
            hurt += 1;
        }
        goes_on(home.path(), acknowledged(&output), &case).await;
    }
    hurt
}

fn refused_with(codes: &'static [&'static str]) -> impl Fn(&Output, &str) {
    move |output, case| {
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(codes.iter().any(|code| stderr.contains(code)), "{case}: {stderr}");
        assert!(!stderr.contains("panicked"), "{case}: {stderr}");
    }
}

#[tokio::test]
async fn a_kill_at_every_system_call_that_writes() {
    let mut strikes = 0;
    for call in
        ["pwrite64", "fdatasync", "fsync", "rename", "renameat2", "mkdir", "ftruncate", "unlink"]
    {
        strikes += strike_each(call, "signal=SIGKILL", |_, _| {}).await;
    }
    println!("{strikes} kills at system calls");
    assert!(strikes > 40, "{strikes}");
}

#[tokio::test]
async fn an_error_at_every_sync_ends_writing() {
    let mut strikes = 0;
    for call in ["fdatasync", "fsync"] {
        let lost = refused_with(&["STORE_DURABILITY_LOST"]);
        strikes += strike_each(call, "error=EIO", lost).await;
    }
    println!("{strikes} failed syncs");
    assert!(strikes > 10, "{strikes}");
}

#[tokio::test]
async fn an_error_at_every_write_leaves_no_trace() {
    let mut strikes = 0;
    for (fault, codes) in
        [("error=ENOSPC", &["STORE_FULL"][..]), ("error=EIO", &["STORE_IO", "STORE_FULL"][..])]
    {
        strikes += strike_each("pwrite64", fault, refused_with(codes)).await;
    }
    println!("{strikes} failed writes");
    assert!(strikes > 10, "{strikes}");
}

/// A file system of half a megabyte, really full.
#[test]
fn a_full_disk_is_an_error_and_room_mends_it() {
    let home = tempfile::tempdir().unwrap();
    // In a mount name space of its own, so that nothing is left behind and no one need be root.
    let script = r#"
        set -eu
        mount -t tmpfs -o size=512k none "$HOME_DIR"
        head -c 100k /dev/zero > "$HOME_DIR/ballast"
        append="$CAIRN --home $HOME_DIR/data dev append-loop --session $SESSION --free-min 0 --count"
        if $append 100000 > "$HOME_DIR/../acknowledged"; then echo "the disk was never full"; exit 1; fi
        $CAIRN --home "$HOME_DIR/data" session verify "$SESSION"
        $CAIRN --home "$HOME_DIR/data" session show "$SESSION" > /dev/null
        rm "$HOME_DIR/ballast"
        $append 5
        $CAIRN --home "$HOME_DIR/data" session verify "$SESSION"
    "#;
    let mount = home.path().join("mount");
    std::fs::create_dir(&mount).unwrap();
    let output = Command::new("unshare")
        .args(["--map-root-user", "--mount", "sh", "-c", script])
        .env("HOME_DIR", &mount)
        .env("CAIRN", env!("CARGO_BIN_EXE_cairn"))
        .env("SESSION", SESSION.to_string())
        .output()
        .unwrap();
    let (stdout, stderr) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{stdout}\n{stderr}");
    assert!(stderr.contains("STORE_FULL"), "{stderr}");
    assert!(!stderr.contains("panicked"), "{stderr}");
    let said = std::fs::read_to_string(home.path().join("acknowledged")).unwrap();
    assert!(said.lines().count() > 50, "{} appends before it was full", said.lines().count());
}
