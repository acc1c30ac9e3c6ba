//! What the tests have in common.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cairn_core::digest::Digest;
use cairn_core::id::{RunId, SessionId};
use cairn_engine::flow::trace::Try;
use cairn_engine::performer::{Ctx, Failed, Outcome};
use cairn_steps::catalog::{self, Settings};
use serde_json::Value;

/// The settings of an operator who says nothing.
pub(crate) fn settings(folder: &Path) -> Settings {
    Settings::new(env!("CARGO_BIN_EXE_cairn-exec").into(), &folder.join("data"))
}

/// A first try at a step of a run.
fn traced() -> Try {
    let (run, instance) = (RunId::from_bits(1), "fetch".parse().unwrap());
    Try { run, above: None, instance, attempt: 0 }
}

/// What a step of an automation knows that has no workspace, files or secrets.
pub(crate) fn ctx() -> Ctx {
    Ctx {
        workflow_id: "project.test".into(),
        workflow_key: "test".into(),
        session: SessionId::from_bits(1),
        workspace: None,
        idempotency_key: Digest::of(b"key"),
        chain: 3,
        trace: Some(traced()),
        timeout: Duration::from_secs(30),
        assets: Arc::default(),
        secrets: Vec::new(),
        hosts: None,
    }
}

/// The same with files.
pub(crate) fn with_files(files: &[(&str, &str)]) -> Ctx {
    let file = |(path, text): &(&str, &str)| ((*path).to_owned(), Arc::from(text.as_bytes()));
    Ctx { assets: Arc::new(files.iter().map(file).collect::<BTreeMap<_, _>>()), ..ctx() }
}

/// Performs a step.
pub(crate) async fn perform(
    settings: &Settings,
    kind: &str,
    config: Value,
    ctx: &Ctx,
) -> Result<Outcome, Failed> {
    catalog::all(settings).get(kind).unwrap().perform(config, ctx).await
}

/// Waits until something holds, and says what did not when it takes too long.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = std::time::Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(5), "it took too long: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
