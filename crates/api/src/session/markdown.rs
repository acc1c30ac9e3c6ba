//! A session as a document for people, in Markdown.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use cairn_core::bundle::Salvage;
use cairn_core::event::Event;
use cairn_core::event::guided::{NodeKind, OutputPayload};
use cairn_core::id::{EventIndex, NodeId, RunId, SessionId};
use cairn_core::pin::BlobKind;
use cairn_core::projection::dag::Node;
use cairn_core::projection::session::{Progress, RunView, SessionView};
use cairn_core::text::truncate;
use cairn_store::{Health, Store};

use self::text::{code, fence, html, inline, quote};
use super::read::instant;
use super::story::{self, Guided, Shelf, Told, first_line};
use crate::error::{Error, Result};

mod facts;
mod text;

/// How much of one artifact is shown, in bytes.
const ARTIFACT_MAX: usize = 4096;

/// How much of a session must be there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extent {
    /// All of it.
    Whole,
    /// What is left of it; the document says so.
    Partial,
}

/// A session as a document.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Document {
    /// The document.
    pub markdown: String,
    /// What is wrong with the session; none when it is whole.
    pub salvage: Option<Salvage>,
}

/// Writes a session down.
pub async fn tell(store: &Store, session: SessionId, extent: Extent) -> Result<Document> {
    let (events, mut health, mut wrong) = match extent {
        Extent::Whole => {
            let events = store.log.read(session, EventIndex(0)).await;
            (events.map_err(Error::of_export)?, Health::Healthy, Vec::new())
        }
        Extent::Partial => {
            let prefix = store.log.read_prefix(session).await?;
            (prefix.events, prefix.health, prefix.damage.into_iter().collect())
        }
    };
    let mut shelf = Shelf::new();
    let pins = events.iter().flat_map(Event::pins);
    let blobs: BTreeSet<_> = pins.map(|pin| (pin.blob_kind, pin.snapshot_ref)).collect();
    for (kind, digest) in blobs {
        match (store.blobs.get(kind, digest).await, extent) {
            (Ok(bytes), _) => {
                shelf.insert((kind, digest), bytes);
            }
            (Err(error), Extent::Whole) => return Err(Error::of_export(error)),
            (Err(error), Extent::Partial) => wrong.push(error.to_string()),
        }
    }
    if health == Health::Healthy && !wrong.is_empty() {
        health = Health::CorruptTail;
    }
    let salvage = (health != Health::Healthy)
        .then(|| Salvage { damage: wrong.join("; "), health: health.name().to_owned() });
    Ok(Document { markdown: document(session, &events, &shelf, salvage.as_ref()), salvage })
}

/// The document of a session with these events, as far as the blobs are at hand.
fn document(
    session: SessionId,
    events: &[Event],
    shelf: &Shelf,
    salvage: Option<&Salvage>,
) -> String {
    let view = SessionView::fold(events);
    let writer = Writer { view: &view, told: story::told(events, &view), shelf };
    let mut out = format!("# {}\n\n", writer.title(session));
    if let Some(salvage) = salvage {
        let (health, damage) = (code(&salvage.health), inline(&salvage.damage));
        let _ = writeln!(
            out,
            "> **This is not the whole session.** It is {health}: {damage}. What follows is what could still be read.\n"
        );
    }
    let _ = writeln!(out, "- Session: {}", code(&session.to_string()));
    if let Some(times) = view.times {
        for (label, ms) in [("From", times.first_ms), ("To", times.last_ms)] {
            let _ = writeln!(out, "- {label}: {}", instant(ms).unwrap_or_else(|| "unknown".into()));
        }
    }
    let _ = writeln!(out, "- Events: {}", view.events);
    for (key, seen) in &view.observations {
        let sure = story::name(&seen.confidence);
        let value = code(seen.value.as_str());
        let _ = writeln!(out, "- Workspace: {} is {value} (confidence: {sure})", key.name());
    }
    let mut runs: Vec<_> = view.runs.iter().collect();
    runs.sort_by_key(|(_, run)| (run.times.first_ms, run.last_index));
    for (number, (id, run)) in (1..).zip(runs) {
        match Guided::of(*id, run, shelf) {
            Some(guided) => writer.run(&mut out, number, &guided),
            None => writer.engine_run(&mut out, number, (*id, run)),
        }
    }
    out
}

struct Writer<'a> {
    view: &'a SessionView,
    told: BTreeMap<NodeId, Told<'a>>,
    shelf: &'a Shelf,
}

impl Writer<'_> {
    /// The names of the workflows that were run, or the session's id.
    fn title(&self, session: SessionId) -> String {
        let mut names = Vec::new();
        for (id, run) in &self.view.runs {
            let guided = Guided::of(*id, run, self.shelf);
            let name = guided.and_then(|guided| guided.plan.map(|plan| plan.name));
            let name = name.or_else(|| run.workflow_id.clone());
            names.extend(name.filter(|name| !names.contains(name)));
        }
        if names.is_empty() { code(&session.to_string()) } else { inline(&names.join(", ")) }
    }

    fn run(&self, out: &mut String, number: usize, guided: &Guided<'_>) {
        let workflow = guided.run.workflow_id.as_deref().unwrap_or("unknown");
        let name = guided.plan.as_ref().map_or(workflow, |plan| plan.name.as_str());
        let status = guided.status(self.view).unwrap_or("unknown");
        let _ = writeln!(out, "\n## Run {number}: {}\n", inline(name));
        let _ = writeln!(out, "- Workflow: {}", code(workflow));
        if let Some(hash) = guided.run.workflow_hash {
            let _ = writeln!(out, "- Plan: {}", code(&hash.0.to_string()));
        }
        let _ = writeln!(out, "- Run: {}", code(&guided.id.to_string()));
        let _ = writeln!(out, "- Status: {status}");
        let Some(tip) = guided.dag.preferred_tip() else {
            let _ = writeln!(out, "\nNothing was recorded yet.");
            return;
        };
        let mut path: Vec<&Node> = guided.dag.path_back(tip.id).collect();
        path.reverse();
        for (place, node) in (1..).zip(path) {
            self.node(out, place, guided, node);
        }
        if let Some(next) = guided.pending(tip) {
            let title = inline(&guided.title(&next));
            let _ = writeln!(out, "\n### Next: {title}\n\nStep {}.", code(&next.to_string()));
        }
        self.branches(out, guided, tip);
    }

    fn node(&self, out: &mut String, place: usize, guided: &Guided<'_>, node: &Node) {
        let _ = writeln!(out, "\n### {place}. {}\n", heading(guided, node));
        let mut about = vec![code(&node.id.to_string())];
        about.extend(guided.step(node).map(|step| format!("step {}", code(&step.to_string()))));
        let told = self.told.get(&node.id);
        about.extend(told.and_then(|told| told.created_ms).and_then(instant));
        let siblings = node.parent.map_or(0, |parent| guided.dag.children(parent).count());
        if siblings > 1 {
            let cause = told.and_then(|told| told.cause.as_ref()).map(story::name);
            let cause = cause.map(|cause| format!(" ({})", code(&cause))).unwrap_or_default();
            about.push(format!("one of {siblings} ways on{cause}"));
        }
        let _ = writeln!(out, "{}", about.join(" · "));
        for output in self.view.outputs.standing(node.id) {
            match &output.payload {
                OutputPayload::Notes { notes_markdown } => {
                    let _ = write!(out, "\n{}", quote(notes_markdown));
                }
                OutputPayload::ArtifactRef { byte_length, content_type, sha256 } => {
                    let kind = code(content_type);
                    let digest = code(&sha256.to_string());
                    let _ = writeln!(out, "\nArtifact {kind}, {byte_length} bytes, {digest}:\n");
                    let bytes = self.shelf.get(&(BlobKind::Artifact, *sha256));
                    out.push_str(&artifact(bytes.map(Vec::as_slice)));
                }
            }
        }
        if let Some(told) = told {
            facts::write(out, told);
        }
    }

    /// The ways that were not gone on with, in short.
    fn branches(&self, out: &mut String, guided: &Guided<'_>, tip: &Node) {
        let dag = guided.dag;
        let others: Vec<_> = dag.branches().into_iter().filter(|b| b.tip != tip.id).collect();
        if others.is_empty() {
            return;
        }
        let _ = writeln!(out, "\n### Other branches\n");
        for branch in others {
            let own: Vec<&Node> =
                dag.path_back(branch.tip).take_while(|n| !dag.is_on_path(n.id, tip.id)).collect();
            let (Some(last), Some(first)) = (own.first(), own.last()) else { continue };
            let from = first.parent.map(|from| code(&from.to_string()));
            let notes = own.iter().find_map(|node| self.view.outputs.notes(node.id));
            let _ = writeln!(
                out,
                "- {}, {} from {}, ends at {}{}",
                heading(guided, last),
                if own.len() == 1 { "1 node".to_owned() } else { format!("{} nodes", own.len()) },
                from.as_deref().unwrap_or("the beginning"),
                code(&branch.tip.to_string()),
                notes.map(|notes| format!(": {}", inline(&first_line(notes)))).unwrap_or_default(),
            );
        }
    }

    fn engine_run(&self, out: &mut String, number: usize, (id, run): (RunId, &RunView)) {
        let workflow = run.workflow_id.as_deref().unwrap_or("unknown");
        let status = match &run.progress {
            Progress::Engine(state) => state.status().name(),
            Progress::Guided(_) => "unknown",
        };
        let _ = writeln!(out, "\n## Run {number}: {}\n", inline(workflow));
        let _ = writeln!(out, "- Run: {}, performed by the engine", code(&id.to_string()));
        let _ = writeln!(out, "- Status: {status}\n- Events: {}", run.events);
    }
}

/// What a node is called: the step that led to it, or what it is.
fn heading(guided: &Guided<'_>, node: &Node) -> String {
    let step = guided.step(node).map(|step| inline(&guided.title(&step)));
    match (node.kind, step) {
        (NodeKind::Step, Some(title)) => title,
        (NodeKind::Step, None) if node.parent.is_none() => "Start".to_owned(),
        (NodeKind::Step, None) => "A step".to_owned(),
        (NodeKind::Checkpoint, Some(title)) => format!("Checkpoint before {title}"),
        (NodeKind::Checkpoint, None) => "Checkpoint".to_owned(),
        (NodeKind::BlockedAttempt, Some(title)) => format!("Blocked attempt at {title}"),
        (NodeKind::BlockedAttempt, None) => "Blocked attempt".to_owned(),
    }
}

/// An artifact's content: JSON is laid out, other text is shown as it is.
fn artifact(bytes: Option<&[u8]>) -> String {
    let Some(bytes) = bytes else { return "It could not be read.\n".to_owned() };
    let json: Option<serde_json::Value> = serde_json::from_slice(bytes).ok();
    if let Some(pretty) = json.and_then(|json| serde_json::to_string_pretty(&json).ok()) {
        return fence("json", &truncate(&pretty, ARTIFACT_MAX));
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => fence("", &truncate(text, ARTIFACT_MAX)),
        Err(_) => "It is not text.\n".to_owned(),
    }
}

#[cfg(test)]
mod tests;
