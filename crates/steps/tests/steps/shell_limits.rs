//! Commands that take more than their share: memory, time, room on the disk. Each ends by its
//! name, and whoever started it goes on.

use std::time::{Duration, Instant};

use cairn_engine::performer::FailureKind;
use serde_json::json;

use crate::shell::{automated, runs, stdout, unique_seconds};
use crate::world::{ctx, perform, settings, until};

// case: process.bomb
#[tokio::test]
async fn a_command_that_eats_memory_is_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = settings(folder.path());
    settings.process.memory_max = 128 << 20;
    let seconds = unique_seconds();
    // The second one eats by many hands, none of which has too much.
    for line in [
        format!("sleep {seconds} & tail /dev/zero"),
        format!(
            "sleep {seconds} & for i in 1 2 3 4 5 6; do head -c 40000000 /dev/zero | sort -z -S 100% | tail -c 1 >/dev/null & (a=$(head -c 40000000 /dev/zero | tr '\\0' x); sleep {seconds}) & done; wait"
        ),
    ] {
        let begun = Instant::now();
        let done = perform(&settings, "shell", json!({"command": line}), &ctx()).await.unwrap();
        let fault = done.fault.unwrap();
        assert_eq!((fault.code, fault.kind), ("SHELL_MEMORY", FailureKind::Permanent), "{line}");
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}: {line}", begun.elapsed());
        assert!(!runs(&format!("sleep\0{seconds}")), "{line}");
    }
    let done = perform(&settings, "shell", json!({"command": "echo fine"}), &ctx()).await.unwrap();
    assert_eq!((stdout(&done), &done.fault), ("fine\n", &None));
}

#[tokio::test]
async fn a_command_that_only_computes_ends_with_its_time() {
    let seconds = unique_seconds();
    let line = format!("sleep {seconds} & while :; do :; done");
    let folder = tempfile::tempdir().unwrap();
    let config = json!({"command": ["sh", "-c", line], "timeoutMs": 300});
    let ctx = cairn_engine::performer::Ctx { workspace: Some(folder.path().into()), ..ctx() };
    let begun = Instant::now();
    let done = perform(&settings(folder.path()), "shell", config, &ctx).await.unwrap();
    assert_eq!(done.output["timed_out"], json!(true));
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    until("nobody computes any more", || !runs(&format!("sleep\0{seconds}"))).await;
}

// case: path.quota
#[tokio::test]
async fn a_file_that_is_too_large_is_named() {
    for line in [
        "truncate -s 10G sparse",
        "exec truncate -s 10G sparse",
        "dd if=/dev/zero of=sparse bs=1 count=1 seek=2000000000 2>/dev/null",
        "head -c 10 /dev/zero >a; dd if=/dev/zero of=b bs=1M count=2 seek=1023 2>&1",
    ] {
        let done = automated(json!({"command": line}), &ctx()).await.unwrap();
        let fault = done.fault.unwrap();
        assert_eq!(
            (fault.code, fault.kind),
            ("SHELL_FILE_TOO_LARGE", FailureKind::Permanent),
            "{line}"
        );
        assert!(fault.message.contains("1 GiB"), "{}", fault.message);
    }
    let line = "truncate -s 1G just; stat -c %s just";
    let done = automated(json!({"command": line}), &ctx()).await.unwrap();
    assert_eq!((stdout(&done), &done.fault), ("1073741824\n", &None));
}

#[tokio::test]
async fn whoever_watches_a_command_holds_none_of_its_secrets() {
    let line = "tr '\\0' '\\n' </proc/$PPID/environ; echo; tr '\\0' ' ' </proc/$PPID/cmdline; echo; printf %s \"$KEY\"";
    let config = json!({"command": ["sh", "-c", line], "env": {"KEY": "hunter2"}, "stdin": "in"});
    let done = automated(config, &ctx()).await.unwrap();
    let (watcher, own) = stdout(&done).rsplit_once('\n').unwrap();
    assert_eq!(own, "hunter2", "{}", stdout(&done));
    assert!(watcher.contains("cairn-exec"), "{watcher}");
    assert!(!watcher.contains("hunter2") && !watcher.contains("KEY="), "{watcher}");
}
