//! Commands: what they get, what is kept of them, and that nothing of them stays.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use cairn_core::digest::Digest;
use cairn_engine::performer::{Ctx, Failed, FailureKind, Outcome};
use serde_json::{Value, json};

use crate::world::{ctx, perform, settings, until, with_files};

/// A command of a guided run.
async fn guided(line: &str, more: Value) -> Result<Outcome, Failed> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("inner")).unwrap();
    let mut config = json!({"command": ["sh", "-c", line], "timeoutMs": 5_000});
    config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let ctx = Ctx { workspace: Some(folder.path().to_owned()), ..ctx() };
    perform(&settings(folder.path()), "shell", config, &ctx).await
}

/// A command of an automation.
pub(crate) async fn automated(config: Value, ctx: &Ctx) -> Result<Outcome, Failed> {
    let folder = tempfile::tempdir().unwrap();
    perform(&settings(folder.path()), "shell", config, ctx).await
}

pub(crate) fn stdout(outcome: &Outcome) -> &str {
    outcome.output["stdout"].as_str().unwrap()
}

/// Whether a process runs whose command line has this in it.
pub(crate) fn runs(mark: &str) -> bool {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = all.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.map(|line| String::from_utf8_lossy(&line).into_owned()).any(|line| line.contains(mark))
}

/// A time to sleep that no other test uses, so that its process can be found.
pub(crate) fn unique_seconds() -> String {
    let mut bytes = [0; 4];
    getrandom::fill(&mut bytes).unwrap();
    format!("6{}", u32::from_le_bytes(bytes))
}

#[tokio::test]
async fn a_command_has_its_exit_code_and_both_streams() {
    let done = guided("echo out; echo err >&2; exit 3", json!({})).await.unwrap();
    assert_eq!(done.output["exit_code"], json!(3));
    assert_eq!(done.output["ok"], json!(false));
    assert_eq!(done.output["stdout"], json!("out\n"));
    assert_eq!(done.output["stderr"], json!("err\n"));
    assert!(done.notes.starts_with("exit code 3 after "), "{}", done.notes);
    assert!(done.notes.contains(": `echo out; echo err >&2; exit 3`\n"), "{}", done.notes);
    assert!(done.notes.ends_with("\n\nstderr:\n```\nerr\n```"), "{}", done.notes);
}

#[tokio::test]
async fn in_an_automation_an_exit_code_is_a_failure_with_an_output() {
    let done = automated(json!({"command": "echo no; exit 3"}), &ctx()).await.unwrap();
    assert_eq!((stdout(&done), &done.output["exit_code"]), ("no\n", &json!(3)));
    let fault = done.fault.unwrap();
    assert_eq!((fault.code, fault.kind), ("SHELL_EXIT", FailureKind::ExitCode));
    let done = automated(json!({"command": "kill -9 $$"}), &ctx()).await.unwrap();
    assert_eq!(done.output["exit_code"], Value::Null);
    assert_eq!(done.fault.unwrap().code, "SHELL_SIGNAL");
    let fine = automated(json!({"command": ["true"]}), &ctx()).await.unwrap();
    assert_eq!(fine.fault, None);
}

// case: process.environment
#[tokio::test]
async fn it_gets_what_it_is_given_and_little_else() {
    let given = json!({"env": {"N": 7, "T": "x y"}, "stdin": "in", "cwd": "inner"});
    let done = guided("cat; echo \":$N:$T:$(basename $PWD)\"", given).await.unwrap();
    assert_eq!(stdout(&done), "in:7:x y:inner\n");
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some(), "there is more to be had");
    // A shell would add some of its own.
    let config = json!({"command": ["env", "-0"], "env": {"N": 7, "T": "x y"}});
    let seen = automated(config, &ctx()).await.unwrap();
    let set = stdout(&seen).split_terminator('\0').map(|set| set.split_once('=').unwrap());
    let names: BTreeSet<&str> = set.map(|(name, _)| name).collect();
    let wanted =
        ["CAIRN_CHAIN", "CAIRN_IDEMPOTENCY_KEY", "CAIRN_RUN", "HOME", "N", "T", "TRACEPARENT"];
    let safe = ["LANG", "LC_ALL", "PATH", "TMPDIR", "TZ"];
    let safe = safe.into_iter().filter(|name| std::env::var_os(name).is_some());
    assert_eq!(names, safe.chain(wanted).collect());
    let key = guided("echo $CAIRN_IDEMPOTENCY_KEY", json!({})).await.unwrap();
    assert_eq!(stdout(&key).trim(), Digest::of(b"key").hex());
}

#[tokio::test]
async fn a_workflow_cannot_change_what_programs_do() {
    for name in
        ["LD_PRELOAD", "PATH", "BASH_ENV", "PYTHONPATH", "IFS", "GIT_SSH_COMMAND", "NODE_OPTIONS"]
    {
        let config = json!({"command": ["true"], "env": {name: "x"}});
        let failed = automated(config, &ctx()).await.unwrap_err();
        assert_eq!((failed.code, failed.kind), ("SHELL_ENV", FailureKind::Permanent), "{name}");
    }
    let folder = tempfile::tempdir().unwrap();
    let mut settings = settings(folder.path());
    settings.process.allow_env = vec!["NODE_OPTIONS".into()];
    let config = json!({"command": "echo $NODE_OPTIONS", "env": {"NODE_OPTIONS": "x"}});
    let done = perform(&settings, "shell", config, &ctx()).await.unwrap();
    assert_eq!(stdout(&done), "x\n");
}

#[tokio::test]
async fn it_has_less_than_whoever_started_it() {
    // Something that a careless parent leaves open to its children.
    let left = std::fs::File::open("/dev/null").unwrap();
    rustix::io::fcntl_setfd(&left, rustix::io::FdFlags::empty()).unwrap();
    let line = "umask; ulimit -c; grep NoNewPrivs /proc/self/status; echo /proc/$$/fd/*";
    let done = automated(json!({"command": line}), &ctx()).await.unwrap();
    let lines: Vec<&str> = stdout(&done).lines().collect();
    assert_eq!(lines[..3], ["0077", "0", "NoNewPrivs:\t1"], "{}", stdout(&done));
    let open = lines[3].split(' ').map(|path| path.rsplit('/').next().unwrap());
    let open: BTreeSet<&str> = open.collect();
    // The folder itself was open while its names were read.
    assert_eq!(open, BTreeSet::from(["0", "1", "2", "3"]));
    let session = "set -- $(sed 's/.*) //' /proc/self/stat); echo $4";
    let done = automated(json!({"command": session}), &ctx()).await.unwrap();
    let own = std::fs::read_to_string("/proc/self/stat").unwrap();
    let own = own.rsplit_once(") ").unwrap().1.split(' ').nth(3).unwrap().to_owned();
    assert_ne!(stdout(&done).trim(), own, "it has a session of its own");
}

#[tokio::test]
async fn its_time_is_limited_and_so_is_that_of_its_children() {
    let begun = Instant::now();
    let done = guided("sleep 60 & sleep 60", json!({"timeoutMs": 100})).await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(5));
    assert_eq!(done.output["timed_out"], json!(true));
    assert_eq!(done.output["exit_code"], Value::Null);
}

// case: process.survivors
#[tokio::test]
async fn nothing_survives_however_it_hides() {
    for hidden in [
        "sleep {} &",
        "setsid sleep {} &",
        "nohup sleep {} >/dev/null 2>&1 &",
        "(setsid sh -c 'sleep {} & exit' &);",
        "env -i setsid sleep {} &",
    ] {
        let seconds = unique_seconds();
        let mark = format!("sleep\0{seconds}");
        let line = hidden.replace("{}", &seconds);
        // Whether it ends by itself, runs out of time or is called off.
        let ended = format!("{line} echo started");
        let begun = Instant::now();
        let done = automated(json!({"command": ended}), &ctx()).await.unwrap();
        assert_eq!(stdout(&done), "started\n", "{hidden}");
        assert!(begun.elapsed() < Duration::from_secs(5), "{hidden}");
        assert!(!runs(&mark), "after its end: {hidden}");

        let stuck = format!("{line} sleep 50");
        let done = guided(&stuck, json!({"timeoutMs": 300})).await.unwrap();
        assert_eq!(done.output["timed_out"], json!(true), "{hidden}");
        assert!(!runs(&mark), "after its time: {hidden}");

        let (ctx, config) = (ctx(), json!({"command": stuck}));
        let work = automated(config, &ctx);
        let up = until(hidden, || runs(&mark));
        tokio::select! {
            ended = work => panic!("it ended: {ended:?}"),
            () = up => {}
        }
        until(&format!("called off: {hidden}"), || !runs(&mark)).await;
    }
}

#[tokio::test]
async fn a_command_that_kills_its_keeper_does_not_get_away() {
    let seconds = unique_seconds();
    let line = format!("setsid sleep {seconds} & kill -9 $PPID; sleep {seconds}");
    let done = automated(json!({"command": line}), &ctx()).await.unwrap();
    assert_eq!(done.fault.unwrap().code, "SHELL_SIGNAL");
    until("both sleepers die", || !runs(&format!("sleep\0{seconds}"))).await;
}

// case: process.bomb
#[tokio::test]
async fn too_many_processes_end_all_of_them() {
    let seconds = unique_seconds();
    let line = format!("for i in $(seq 200); do sleep {seconds} & done; wait");
    let begun = Instant::now();
    let done = automated(json!({"command": line}), &ctx()).await.unwrap();
    assert_eq!(done.fault.unwrap().code, "SHELL_PROCESSES");
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert!(!runs(&format!("sleep\0{seconds}")));
}

#[tokio::test]
async fn what_was_printed_before_its_time_was_over_is_kept() {
    let line = "echo half; echo why >&2; sleep 60";
    let done = guided(line, json!({"timeoutMs": 1_000})).await.unwrap();
    assert_eq!(done.output["timed_out"], json!(true));
    assert_eq!(done.output["stdout"], json!("half\n"));
    assert_eq!(done.output["stderr"], json!("why\n"));
}

#[tokio::test]
async fn a_long_output_keeps_its_end_in_a_guided_run() {
    let done = guided("yes line | head -c 300000; echo last", json!({})).await.unwrap();
    assert!(stdout(&done).len() <= 17 << 10 && stdout(&done).ends_with("last\n"));
    assert_eq!(done.output["truncated"], json!(true));
}

// case: limit.output
#[tokio::test]
async fn a_command_of_an_automation_that_prints_too_much_is_stopped() {
    for line in ["yes", "yes >&2"] {
        let begun = Instant::now();
        let done = automated(json!({"command": line}), &ctx()).await.unwrap();
        let fault = done.fault.unwrap();
        assert_eq!(fault.code, "SHELL_OUTPUT_TOO_LARGE", "{line}");
        assert_eq!(fault.kind, FailureKind::InvalidOutput);
        assert_eq!(done.output["truncated"], json!(true));
        assert!(begun.elapsed() < Duration::from_secs(5), "{line}");
    }
    let line = "head -c 1048576 /dev/zero | tr '\\0' x";
    let done = automated(json!({"command": line}), &ctx()).await.unwrap();
    assert_eq!((stdout(&done).len(), done.fault), (1 << 20, None));
    for (line, kept) in [
        ("head -c 1048577 /dev/zero | tr '\\0' x", "stdout"),
        ("head -c 1048577 /dev/zero | tr '\\0' x >&2", "stderr"),
    ] {
        let done = automated(json!({"command": line}), &ctx()).await.unwrap();
        assert_eq!(done.fault.unwrap().code, "SHELL_OUTPUT_TOO_LARGE", "{line}");
        assert_eq!(done.output[kept].as_str().unwrap().len(), 1 << 20, "{line}");
    }
}

#[tokio::test]
async fn json_is_read_when_it_is_asked_for() {
    let config = json!({"command": "echo '{\"a\": [1]}'; echo noise >&2", "parse_output": "json"});
    let done = automated(config, &ctx()).await.unwrap();
    assert_eq!((&done.output["json"], &done.fault), (&json!({"a": [1]}), &None));
    let config = json!({"command": "echo nonsense", "parse_output": "json"});
    let fault = automated(config, &ctx()).await.unwrap().fault.unwrap();
    assert_eq!((fault.code, fault.kind), ("SHELL_NOT_JSON", FailureKind::InvalidOutput));
    let config = json!({"command": "echo 1; exit 2", "parse_output": "json"});
    assert_eq!(automated(config, &ctx()).await.unwrap().fault.unwrap().code, "SHELL_EXIT");
}

#[tokio::test]
async fn the_files_of_the_workflow_are_there_for_reading() {
    let ctx = with_files(&[("nodes/check.sh", "echo checked $1"), ("nodes/lib/x", "x")]);
    let config = json!({"command": ["sh", "nodes/check.sh", "a b; id"]});
    let done = automated(config, &ctx).await.unwrap();
    assert_eq!(stdout(&done), "checked a b; id\n");
    let done = automated(json!({"command": "pwd; cat nodes/lib/x"}), &ctx).await.unwrap();
    let (folder, rest) = stdout(&done).split_once('\n').unwrap();
    assert_eq!(rest, "x");
    assert!(!Path::new(folder).exists(), "a folder of its own goes with it");
    let workspace = tempfile::tempdir().unwrap();
    let ctx = Ctx { workspace: Some(workspace.path().to_owned()), ..ctx };
    automated(json!({"command": "echo kept > made"}), &ctx).await.unwrap();
    assert_eq!(std::fs::read(workspace.path().join("made")).unwrap(), b"kept\n");
    assert!(workspace.path().join("nodes/check.sh").exists());
}

#[tokio::test]
async fn its_notes_have_room_for_all_they_tell() {
    let ticks = "head -c 9000 /dev/zero | tr '\\0' '`'";
    let both = |line: &str| format!("{line}; {line} >&2; exit 7 # {}", "`é".repeat(999));
    for line in [both("yes line | head -c 9000"), both(ticks), "`".repeat(999)] {
        let notes = guided(&line, json!({})).await.unwrap().notes;
        assert!(notes.len() < 4096, "{} bytes", notes.len());
        let fence = notes.lines().last().unwrap();
        assert!(fence.starts_with("```") && fence.bytes().all(|byte| byte == b'`'), "{notes}");
        let fences = notes.lines().filter(|line| *line == fence).count();
        assert_eq!(fences % 2, 0, "{notes}");
    }
}

#[tokio::test]
async fn it_stays_inside_its_workspace() {
    for cwd in ["..", "/etc", "inner/../.."] {
        let error = guided("pwd", json!({"cwd": cwd})).await.unwrap_err();
        assert!(error.message.contains("leaves the workspace"), "{error}");
    }
}

#[tokio::test]
async fn what_is_no_command_is_told() {
    for command in [json!([]), json!([""]), json!("a\0b")] {
        let failed = automated(json!({"command": command}), &ctx()).await.unwrap_err();
        assert_eq!(failed.code, "SHELL_COMMAND");
    }
    let failed = automated(json!({"command": ["no-such-program"]}), &ctx()).await.unwrap_err();
    assert_eq!(failed.code, "SHELL_START");
    assert!(failed.message.contains("`no-such-program` cannot be started"), "{failed}");
}

#[tokio::test]
async fn what_it_does_not_read_does_not_hold_it_up() {
    let stdin = "x".repeat(1 << 20);
    let done = automated(json!({"command": ["true"], "stdin": stdin}), &ctx()).await.unwrap();
    assert_eq!(done.fault, None);
    let stdin = "é".repeat(300_000);
    let config = json!({"command": ["cat"], "stdin": stdin});
    assert_eq!(stdout(&automated(config, &ctx()).await.unwrap()), stdin);
}
