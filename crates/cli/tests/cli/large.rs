//! Whatever is handed in within the size that is allowed takes 2 s of the processor and 200 MB of
//! memory at most, and ends in an answer.

use std::fs;
use std::process::Command;

use crate::env::{Outcome, TestEnv};

/// Runs a command that the system ends when it takes more.
fn within(env: &TestEnv, args: &[&str]) -> Outcome {
    let inner = env.command(args);
    let mut command = Command::new("sh");
    command
        .args(["-c", r#"ulimit -c 0 && ulimit -t 2 && ulimit -d 204800 && exec "$@""#, "sh"])
        .arg(inner.get_program())
        .args(inner.get_args())
        .env_clear()
        .envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .current_dir(env.path(""));
    Outcome::of(command.output().unwrap())
}

/// As much of a text as comes to a number of bytes.
fn fill(piece: &str, bytes: usize) -> String {
    piece.repeat(bytes / piece.len())
}

// case: bundle.shape
#[test]
fn any_bundle_is_taken_in_or_refused_within_bounds() {
    const BYTES: usize = 63 << 20;
    let env = TestEnv::new();
    let bundle = |events: &str, plans: &str| {
        format!(
            r#"{{"bundleSchemaVersion":1,"bundleId":"bundle_00000000000000000000000001","exportedAt":"2026-01-01T00:00:00Z","producer":{{"appVersion":"0"}},"integrity":{{"kind":"sha256_manifest_v1","entries":[]}},"session":{{"sessionId":"sess_00000000000000000000000001","events":[{events}],"manifest":[],"snapshots":{{}},"pinnedWorkflows":{{{plans}}}}}}}"#
        )
    };
    let keys: String = (0..BYTES / 12).map(|n| format!(r#""{n:08}":1,"#)).collect();
    let cases = [
        ("one string", bundle(&format!(r#"{{"data":"{}"}}"#, fill("x", BYTES)), "")),
        (
            "one string of escapes",
            bundle(&format!(r#"{{"data":"{}"}}"#, fill("\\u00e9", BYTES)), ""),
        ),
        ("one string as an event", bundle(&format!(r#""{}""#, fill("x", BYTES)), "")),
        ("one number", bundle(&fill("9", BYTES), "")),
        ("small objects", bundle(&format!("{}{{}}", fill(r#"{"a":1},"#, BYTES)), "")),
        ("empty arrays in one event", bundle(&format!("[{}[]]", fill("[],", BYTES)), "")),
        ("deep arrays", bundle(&fill("[", BYTES), "")),
        ("many keys", bundle(&format!("{{{keys}\"z\":1}}"), "")),
        (
            "one plan",
            bundle("", &format!(r#""sha256:{}":{{"a":"{}"}}"#, "0".repeat(64), fill("x", BYTES))),
        ),
        ("many plans", bundle("", &format!("{keys}\"z\":1"))),
        ("blanks", fill(" ", BYTES)),
        ("nothing that is text", fill("\u{fffd}", BYTES)),
    ];
    for (name, text) in cases {
        fs::write(env.path("bundle.json"), text).unwrap();
        let outcome = within(&env, &["session", "import", "bundle.json"]);
        assert_eq!(outcome.code, 3, "{name}: {outcome}");
        assert!(outcome.stderr.len() < 2_000, "{name}: {}", outcome.stderr.len());
    }
}

// case: source.many-mistakes
#[test]
fn any_workflow_is_told_about_within_bounds() {
    const BYTES: usize = 1 << 20;
    let env = TestEnv::new();
    let keys: String = (0..60_000).map(|n| format!("key{n}: 1\n")).collect();
    let nodes = |node: &str| format!("name: x\ngraph:\n  nodes:\n{}", fill(node, BYTES - 64));
    let cases = [
        ("unknown keys", format!("name: x\n{keys}")),
        ("one string", format!("name: {}\n", fill("x", BYTES - 64))),
        ("the same step", nodes("    - { id: a, type: end }\n")),
        ("steps of no type", nodes("    - { id: a, type: nope }\n")),
        ("templates", nodes("    - { id: a, type: end, result: '{{ steps.b.c }}' }\n")),
        ("deep lists", format!("name: {}\n", fill("[", BYTES - 64))),
        ("deep maps", format!("name: {}\n", fill("{a: ", BYTES - 64))),
        ("anchors", format!("a: &a [{}]\n", fill("x, ", BYTES / 2)) + &fill("b: *a\n", BYTES / 4)),
        (
            "one long template",
            format!(
                "name: x\ngraph: {{ nodes: [{{ id: a, type: end, result: '{{{{ {} }}}}' }}] }}\n",
                fill("a + ", BYTES / 2)
            ),
        ),
    ];
    for (name, text) in cases {
        fs::write(env.path("w.yaml"), text).unwrap();
        let outcome = within(&env, &["workflow", "validate", "w.yaml"]);
        assert_eq!(
            outcome.code,
            3,
            "{name}: {}",
            outcome.stderr.chars().take(500).collect::<String>()
        );
        let told = outcome.stdout.len() + outcome.stderr.len();
        assert!(told < 200_000, "{name}: {told} bytes of diagnostics");
    }
}
