//! How processes come and go.

use serde_json::json;

use super::*;

#[tokio::test]
async fn processes_are_started_for_jobs_and_used_again() {
    let pool = Pool::new(settings());
    assert_eq!((pool.started(), pool.idle()), (0, 0));
    for n in 0..20 {
        assert_eq!(pool.run(&jq(". + 1", json!(n))).await, Ok(json!(n + 1)));
    }
    assert_eq!((pool.started(), pool.idle()), (1, 1));
}

#[tokio::test]
async fn idle_processes_stop() {
    let pool = Pool::new(Settings { idle: Duration::from_millis(20), ..settings() });
    assert_eq!(pool.run(&jq(".", json!(1))).await, Ok(json!(1)));
    assert_eq!(pool.idle(), 1);
    while pool.idle() > 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(pool.run(&jq(".", json!(2))).await, Ok(json!(2)));
    assert_eq!(pool.started(), 2);
}

#[tokio::test]
async fn jobs_wait_in_a_bounded_line() {
    let pool = Pool::new(Settings { workers_max: 1, waiting_max: 2, ..settings() });
    let slow = jq("[range(200000)] | length", json!(null));
    let mut jobs = Vec::new();
    for _ in 0..8 {
        let (pool, job) = (pool.clone(), slow.clone());
        jobs.push(tokio::spawn(async move { pool.run(&job).await }));
    }
    let mut busy = 0;
    for job in jobs {
        match job.await.unwrap() {
            Ok(value) => assert_eq!(value, json!(200_000)),
            Err(error) => {
                assert_eq!(error.code.name(), "EXPR_BUSY", "{error}");
                busy += 1;
            }
        }
    }
    assert!((1..8).contains(&busy), "{busy} were refused");
}

#[tokio::test]
async fn a_process_has_no_environment_and_few_files() {
    let pool = Pool::new(settings());
    pool.run(&jq(".", json!(1))).await.unwrap();
    let own = std::process::id().to_string();
    let children = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let path = entry.ok()?.path();
        let status = std::fs::read_to_string(path.join("status")).ok()?;
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
        (parent.trim() == own).then_some(path)
    });
    let mut seen = 0;
    for path in children {
        let limits = std::fs::read_to_string(path.join("limits")).unwrap();
        let line =
            |name: &str| limits.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        assert!(line("Max address space").contains("268435456"), "{limits}");
        assert!(line("Max open files").contains("16"), "{limits}");
        assert!(line("Max core file size").contains(" 0 "), "{limits}");
        assert_eq!(std::fs::read(path.join("environ")).unwrap_or_default(), b"");
        if !pool.shares_network() {
            let routes = std::fs::read_to_string(path.join("net/route")).unwrap();
            assert!(routes.lines().count() <= 1, "{routes}");
        }
        seen += 1;
    }
    assert_eq!(seen, 1);
}

#[tokio::test]
async fn a_program_that_is_no_worker_is_told() {
    let pool = Pool::new(Settings { program: "/bin/false".into(), ..settings() });
    let answer = shown(pool.run(&jq(".", json!(1))).await);
    assert!(answer.starts_with("EXPR_CRASH: the worker ended with exit status: 1"), "{answer}");
    let pool = Pool::new(Settings { program: "/nonexistent".into(), ..settings() });
    let answer = shown(pool.run(&jq(".", json!(1))).await);
    assert!(answer.starts_with("EXPR_CRASH: no worker could be started"), "{answer}");
}
