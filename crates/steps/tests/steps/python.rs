//! Scripts, with packages from a folder that the test makes.

use std::path::Path;
use std::process::Command;

use cairn_core::digest::Digest;
use cairn_engine::performer::{Ctx, FailureKind};
use cairn_steps::catalog::Settings;
use serde_json::json;

use crate::world::{perform, settings, with_files};

/// Makes a wheel of a package that knows a word, and gives the digest of its file.
fn wheel(folder: &Path, name: &str, word: &str) -> String {
    let make = "
import sys, zipfile
folder, name, word = sys.argv[1:]
info = f'{name}-1.0.dist-info'
with zipfile.ZipFile(f'{folder}/{name}-1.0-py3-none-any.whl', 'w') as wheel:
    wheel.writestr(f'{name}.py', f'WORD = {word!r}')
    wheel.writestr(f'{info}/METADATA', f'Metadata-Version: 2.1\\nName: {name}\\nVersion: 1.0\\n')
    wheel.writestr(f'{info}/WHEEL', 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
    wheel.writestr(f'{info}/RECORD', '')
";
    std::fs::create_dir_all(folder).unwrap();
    let args = ["-I", "-c", make, folder.to_str().unwrap(), name, word];
    assert!(Command::new("python3").args(args).status().unwrap().success());
    let file = folder.join(format!("{name}-1.0-py3-none-any.whl"));
    Digest::of(&std::fs::read(file).unwrap()).hex()
}

fn with_wheels(folder: &Path) -> Settings {
    let mut settings = settings(folder);
    settings.python.wheels = Some(folder.join("wheels"));
    settings
}

#[tokio::test]
async fn a_script_runs_with_what_it_is_given_and_alone() {
    let folder = tempfile::tempdir().unwrap();
    let script = "
import json, os, sys
print(json.dumps({'args': sys.argv[1:], 'data': os.environ['DATA'], 'in': sys.stdin.read(),
                  'isolated': sys.flags.isolated}))";
    let ctx = with_files(&[("nodes/process.py", script)]);
    let config = json!({
        "script": "nodes/process.py", "args": ["a b", 7], "env": {"DATA": "d"}, "stdin": "in",
        "parse_output": "json",
    });
    let done = perform(&settings(folder.path()), "python", config, &ctx).await.unwrap();
    let wanted = json!({"args": ["a b", "7"], "data": "d", "in": "in", "isolated": 1});
    assert_eq!((&done.output["json"], &done.fault), (&wanted, &None), "{}", done.output);
}

#[tokio::test]
async fn a_script_that_fails_says_where() {
    let folder = tempfile::tempdir().unwrap();
    let ctx = with_files(&[("x.py", "raise ValueError('no good')")]);
    let done = perform(&settings(folder.path()), "python", json!({"script": "x.py"}), &ctx).await;
    let done = done.unwrap();
    assert_eq!(done.fault.unwrap().kind, FailureKind::ExitCode);
    assert!(done.output["stderr"].as_str().unwrap().contains("ValueError: no good"));
    let missing = json!({"script": "y.py"});
    let failed = perform(&settings(folder.path()), "python", missing, &ctx).await.unwrap_err();
    assert_eq!(failed.code, "PYTHON_FILE");
}

#[tokio::test]
async fn packages_are_installed_once_for_all_who_ask_for_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let settings = with_wheels(folder.path());
    let digest = wheel(&folder.path().join("wheels"), "wordy", "hello");
    let list = format!("wordy==1.0 --hash=sha256:{digest}\n");
    let script = "import sys, wordy; print(wordy.WORD, sys.prefix)";
    let ctx = with_files(&[("x.py", script), ("req.txt", &list)]);
    let config = json!({"script": "x.py", "requirements": "req.txt"});
    let both = tokio::join!(
        perform(&settings, "python", config.clone(), &ctx),
        perform(&settings, "python", config.clone(), &ctx),
    );
    let (first, second) = (both.0.unwrap(), both.1.unwrap());
    assert_eq!(first.output["stdout"], second.output["stdout"]);
    let said = first.output["stdout"].as_str().unwrap();
    assert!(said.starts_with("hello ") && said.contains("data/cache/python"), "{}", first.output);
    let kept = std::fs::read_dir(folder.path().join("data/cache/python")).unwrap().count();
    assert_eq!(kept, 1, "nothing half made is left");
    // Without the packages' folder: what is there is used.
    std::fs::remove_dir_all(folder.path().join("wheels")).unwrap();
    let third = perform(&settings, "python", config, &ctx).await.unwrap();
    assert_eq!(third.output["stdout"], first.output["stdout"]);
    // Another list is another environment, and this one cannot be made.
    let more = format!("{list}other==1.0 --hash=sha256:{digest}\n");
    let ctx: Ctx = with_files(&[("x.py", script), ("req.txt", &more)]);
    let config = json!({"script": "x.py", "requirements": "req.txt"});
    let failed = perform(&settings, "python", config, &ctx).await.unwrap_err();
    assert_eq!((failed.code, failed.kind), ("PYTHON_PACKAGES", FailureKind::ServerError));
    let kept = std::fs::read_dir(folder.path().join("data/cache/python")).unwrap().count();
    assert_eq!(kept, 1, "nothing half made is left");
}

#[tokio::test]
async fn a_package_whose_file_changed_is_not_installed() {
    let folder = tempfile::tempdir().unwrap();
    let settings = with_wheels(folder.path());
    wheel(&folder.path().join("wheels"), "wordy", "hello");
    let list = format!("wordy==1.0 --hash=sha256:{}\n", "0".repeat(64));
    let ctx = with_files(&[("x.py", "import wordy"), ("req.txt", &list)]);
    let config = json!({"script": "x.py", "requirements": "req.txt"});
    let failed = perform(&settings, "python", config, &ctx).await.unwrap_err();
    assert_eq!(failed.code, "PYTHON_PACKAGES");
    assert!(failed.message.to_lowercase().contains("hash"), "{failed}");
}

// case: python.requirements
#[tokio::test]
async fn requirements_without_digests_stop_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    for line in ["wordy==1.0", "git+https://example.com/x.git", "--index-url https://example.com"] {
        let ctx = with_files(&[("x.py", ""), ("req.txt", line)]);
        let config = json!({"script": "x.py", "requirements": "req.txt"});
        let failed =
            perform(&with_wheels(folder.path()), "python", config, &ctx).await.unwrap_err();
        assert_eq!(failed.code, "PYTHON_REQUIREMENTS", "{line}");
    }
    assert!(!folder.path().join("data").exists());
}
