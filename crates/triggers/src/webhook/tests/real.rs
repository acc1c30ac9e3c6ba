//! Requests that were signed by the senders' own tools.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use super::*;

/// Signs with the reference library of Standard Webhooks.
const SIGN: &str = "
import sys, json
from datetime import datetime, timezone
from standardwebhooks import Webhook
secret, id, sec = sys.argv[1:4]
body = sys.stdin.buffer.read().decode()
print(Webhook(secret).sign(msg_id=id, timestamp=datetime.fromtimestamp(int(sec), tz=timezone.utc), data=body))
";

/// The Python that `scripts/setup.sh` put into the target directory.
fn python() -> PathBuf {
    let me = std::env::current_exe().unwrap();
    let target = me.ancestors().find(|folder| folder.join("clients").is_dir());
    let python = target.unwrap_or(Path::new("target")).join("clients/webhooks/bin/python");
    assert!(python.exists(), "{} is missing: run scripts/setup.sh", python.display());
    python
}

fn run(command: &mut Command, input: &[u8]) -> String {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{command:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn what_the_reference_library_signs_is_taken() {
    for (secret, body) in [
        (SECRET, r#"{"service":"api"}"#),
        ("C2FVsBQIhrscChlQIMV+b5sSYspob7oD", "text with ünicode and a\nline"),
    ] {
        let (id, sec) = ("msg_2KWPBgLlAfxdpx2AI54pPJ85f4W", (NOW / 1000).to_string());
        let mut command = Command::new(python());
        let signature = run(command.args(["-c", SIGN, secret, id, &sec]), body.as_bytes());
        let headers =
            [("Webhook-Id", id), ("Webhook-Timestamp", &sec), ("Webhook-Signature", &signature)];
        let sent = Sent { body: body.as_bytes().to_vec(), ..Sent::new(&headers) };
        let sent = sent.with("content-type", "text/plain");
        assert_eq!(sent.to(&hook(json!({})), NOW, &[held(secret)]).unwrap().key, id, "{signature}");
        let other = Sent { body: b"other".to_vec(), ..sent };
        assert_eq!(
            code(&other.to(&hook(json!({})), NOW, &[held(secret)])),
            "401 WEBHOOK_SIGNATURE_BAD"
        );
    }
}

#[test]
fn what_openssl_signs_like_github_is_taken() {
    let secret = "It's a Secret to Everybody";
    let body = b"Hello, World!";
    let mut command = Command::new("openssl");
    let printed = run(command.args(["dgst", "-sha256", "-hmac", secret, "-r"]), body);
    let digest = printed.split_whitespace().next().unwrap();
    let signature = format!("sha256={digest}");
    let sent = Sent { body: body.to_vec(), ..Sent::new(&[("X-Hub-Signature-256", &signature)]) };
    let hook = hook(json!({"signature": "github"}));
    assert_eq!(
        code(&sent.clone().with("content-type", "text/plain").to(&hook, NOW, &[held(secret)])),
        "ok"
    );
    assert_eq!(code(&sent.to(&hook, NOW, &[held("another")])), "401 WEBHOOK_SIGNATURE_BAD");
}
