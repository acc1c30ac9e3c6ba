//! What whoever comes back is told beside the notes: the context, and the artifacts.

use cairn_core::event::guided::{OutputChannel, OutputPayload};
use cairn_core::guided::judge;
use cairn_core::projection::recap::told_nodes;
use cairn_core::text::truncate;
use serde_json::{Map, Value};

use super::super::position::Position;
use super::super::session::Session;
use super::super::{Inner, blobs};
use super::heading;
use crate::error::Result;

/// What the names of secrets hold.
const SECRETS: [&str; 7] =
    ["apikey", "api_key", "credential", "passphrase", "password", "secret", "token"];

/// How much of the context is told, and of one value.
const CONTEXT_MAX: usize = 1_536;
const VALUE_MAX: usize = 160;
/// How many artifacts are told of, the latest, and how much of each.
const ARTIFACTS_MAX: usize = 8;
const ARTIFACT_MAX: usize = 240;

/// The context as it stands, as far as there is room.
pub(super) fn context(context: &Map<String, Value>) -> Option<String> {
    let lines = context.iter().map(|(key, value)| match is_secret(key) {
        true => format!("- {key}: [hidden]"),
        false => format!("- {key}: {}", line(value, VALUE_MAX)),
    });
    listed("Context:", lines.collect(), CONTEXT_MAX)
}

/// Whether a key is called like something that is not told again. Secrets do not belong into a
/// context, but whoever put one there is not to read it in every new chat.
fn is_secret(key: &str) -> bool {
    let key = key.to_lowercase();
    SECRETS.iter().any(|word| key.contains(word))
}

/// The artifacts on the way to a node, the latest kept, each in a line.
pub(super) async fn artifacts(
    inner: &Inner,
    session: &Session,
    position: &Position,
) -> Result<Option<String>> {
    let dag = session.dag(position.run)?;
    let mut lines = Vec::new();
    let mut omitted = 0;
    for node in told_nodes(dag, position.node) {
        let kept = session.view.outputs.standing(node);
        for output in kept.filter(|output| output.channel == OutputChannel::Artifact) {
            let OutputPayload::ArtifactRef { sha256, .. } = &output.payload else { continue };
            if lines.len() >= ARTIFACTS_MAX {
                omitted += 1;
                continue;
            }
            let artifact = blobs::artifact(&inner.store, *sha256).await?;
            // What the engine keeps for itself has no kind.
            let Some(kind) = judge::kind(&artifact) else { continue };
            let mut rest = artifact.clone();
            rest.as_object_mut().map(|members| members.remove("kind"));
            let at = heading(inner, session, position, node).await?;
            lines.push(format!("- {at} {kind}: {}", line(&rest, ARTIFACT_MAX)));
        }
    }
    lines.reverse();
    if omitted > 0 {
        lines.insert(0, format!("- [TRUNCATED] {omitted} earlier ones left out"));
    }
    Ok(listed("Artifacts:", lines, usize::MAX))
}

/// A list under a title, as many lines as fit; how many do not is said.
fn listed(title: &str, lines: Vec<String>, max: usize) -> Option<String> {
    if lines.is_empty() {
        return None;
    }
    let mut text = title.to_owned();
    for (place, line) in lines.iter().enumerate() {
        if text.len() + line.len() + 1 > max {
            text.push_str(&format!("\n- [TRUNCATED] {} more", lines.len() - place));
            break;
        }
        text.push('\n');
        text.push_str(line);
    }
    Some(text)
}

/// A value in one line.
fn line(value: &Value, max: usize) -> String {
    let text = match value {
        Value::String(text) => text.split_whitespace().collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    };
    truncate(&text, max).replace('\n', " ")
}
