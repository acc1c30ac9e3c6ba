//! What callers send, before anything is decided: sizes, shapes, and what goes together.

use std::path::Path;

use cairn_core::canonical;
use cairn_core::event::limits;
use cairn_core::guided::judge;
use cairn_core::projection::context::merge;
use cairn_core::projection::gaps::Gap;
use cairn_core::text::truncate;
use serde_json::{Map, Value, json};

use super::answer::{Warning, WarningCode};
use super::ask::{Checkpoint, Continue, Intent, Output, Wanted};
use crate::error::{Error, Result};

/// How many artifacts one answer may bring.
const ARTIFACTS_MAX: usize = 32;
/// How long one artifact may be, as canonical JSON.
const ARTIFACT_MAX: usize = 256 << 10;
/// How deep a context may nest; an event that carries it nests a little deeper.
pub(super) const DEPTH_MAX: usize = 32;
/// Names that some programs give a meaning to.
const RESERVED: [&str; 3] = ["__proto__", "constructor", "prototype"];

pub(crate) fn invalid(message: String, fix: &str, details: Value) -> Error {
    Error::Invalid { message, fix: fix.to_owned(), details }
}

/// The context of a call, within its budget.
pub fn context(given: Option<&Value>) -> Result<Map<String, Value>> {
    const FIX: &str =
        "pass a few facts: ids, paths, parameters; put documents into files and pass their paths";
    let members = match given {
        None | Some(Value::Null) => return Ok(Map::new()),
        Some(Value::Object(members)) => members,
        Some(_) => {
            return Err(invalid(
                "`context` must be a map of names to values".to_owned(),
                "send `\"context\": {\"name\": value}`",
                json!({"field": "context"}),
            ));
        }
    };
    if let Some(path) = reserved(given.unwrap_or(&Value::Null), "context") {
        return Err(invalid(
            format!("`{path}` is a reserved name and cannot be a key"),
            "use another name for it",
            json!({"field": path}),
        ));
    }
    let method = "UTF-8 bytes of RFC 8785 canonical JSON";
    match canonical::to_vec_within(members, DEPTH_MAX) {
        Ok(bytes) if bytes.len() <= limits::CONTEXT => Ok(members.clone()),
        Ok(bytes) => Err(invalid(
            format!(
                "`context` has {} bytes, and at most {} are allowed",
                bytes.len(),
                limits::CONTEXT
            ),
            FIX,
            json!({"field": "context", "bytes": bytes.len(), "bytesMax": limits::CONTEXT, "method": method}),
        )),
        Err(error) => Err(invalid(
            match error {
                canonical::Error::TooDeep => {
                    format!("`context` nests deeper than {DEPTH_MAX} levels")
                }
                other => format!("`context` cannot be kept: {other}"),
            },
            "send plain JSON: whole numbers within ±2^53, at most 32 levels",
            json!({"field": "context", "bytesMax": limits::CONTEXT, "method": method}),
        )),
    }
}

/// Whether what a call adds to the context of a run still fits.
pub(super) fn total(known: &Map<String, Value>, given: &Map<String, Value>) -> Result<()> {
    if given.is_empty() {
        return Ok(());
    }
    let mut merged = known.clone();
    merge(&mut merged, given);
    let bytes = canonical::to_vec(&merged).map_or(usize::MAX, |bytes| bytes.len());
    if bytes <= limits::CONTEXT_TOTAL {
        return Ok(());
    }
    let max = limits::CONTEXT_TOTAL;
    Err(invalid(
        format!("the context of the run would have {bytes} bytes, and at most {max} are allowed"),
        "remove keys that are no longer needed by sending them as null, and put documents into files",
        json!({"field": "context", "bytes": bytes, "bytesMax": max}),
    ))
}

/// What a run is for: a sentence, if it is given.
pub(super) fn goal(given: Option<&str>) -> Result<Option<&str>> {
    let goal = given.map(str::trim).filter(|goal| !goal.is_empty());
    match goal {
        Some(goal) if goal.len() > limits::GOAL => Err(invalid(
            format!("`goal` has {} bytes, and at most {} are allowed", goal.len(), limits::GOAL),
            "send one sentence; facts for the steps belong in `context`",
            json!({"field": "goal", "bytesMax": limits::GOAL}),
        )),
        goal => Ok(goal),
    }
}

/// A warning when a goal was sent that says nothing.
#[must_use]
pub fn empty_goal(given: Option<&str>) -> Option<Warning> {
    let is_empty = given.is_some_and(|goal| goal.trim().is_empty());
    is_empty.then(|| Warning {
        code: WarningCode::GoalEmpty,
        message: "not recorded: goal. It is empty; what a run is for is said in one sentence when \
                  it starts"
            .to_owned(),
    })
}

/// A gap that is closed must be one that is open: one that is not is no gap of its own.
pub(super) fn gaps(output: Option<&Output>, open: &[Gap]) -> Result<()> {
    let artifacts = output.map(|output| output.artifacts.as_slice()).unwrap_or_default();
    for (place, artifact) in artifacts.iter().enumerate() {
        if judge::kind(artifact) != Some(judge::kinds::GAP_RESOLUTION) {
            continue;
        }
        let named = artifact.get("gapId").and_then(Value::as_str).unwrap_or_default();
        if open.iter().any(|gap| gap.id.to_string() == named) {
            continue;
        }
        let known: Vec<String> =
            open.iter().map(|gap| format!("{} ({})", gap.id, gap.summary)).collect();
        let ids: Vec<String> = open.iter().map(|gap| gap.id.to_string()).collect();
        return Err(invalid(
            format!("no open gap of this run has the id `{named}`; nothing was recorded"),
            &match known.is_empty() {
                true => "leave the artifact out: no gap is open here".to_owned(),
                false => format!(
                    "send the `gapId` of an open gap, or leave the artifact out; open: {}",
                    truncate(&known.join("; "), limits::SUMMARY)
                ),
            },
            json!({"field": format!("output.artifacts[{place}].gapId"), "open": ids}),
        ));
    }
    Ok(())
}

/// The path to a key with a reserved name.
fn reserved(value: &Value, path: &str) -> Option<String> {
    match value {
        Value::Object(members) => members.iter().find_map(|(key, inner)| {
            let path = format!("{path}.{key}");
            if RESERVED.contains(&key.as_str()) { Some(path) } else { reserved(inner, &path) }
        }),
        Value::Array(items) => items.iter().find_map(|item| reserved(item, path)),
        _ => None,
    }
}

/// The project of a call: a directory that is there.
pub(super) fn workspace(path: &Path) -> Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    Err(invalid(
        format!("`workspacePath` is {}, which is not a directory here", path.display()),
        "send the absolute path of the project that you work on, or leave it out",
        json!({"field": "workspacePath"}),
    ))
}

/// The artifacts of an answer: each a map with its kind, within its budget.
pub(super) fn artifacts(output: Option<&Output>) -> Result<()> {
    let artifacts = output.map(|output| output.artifacts.as_slice()).unwrap_or_default();
    let at = |place: usize| json!({"field": format!("output.artifacts[{place}]")});
    if artifacts.len() > ARTIFACTS_MAX {
        return Err(invalid(
            format!(
                "there are {} artifacts, and at most {ARTIFACTS_MAX} are allowed",
                artifacts.len()
            ),
            "send the ones that the step asks for",
            json!({"field": "output.artifacts", "max": ARTIFACTS_MAX}),
        ));
    }
    for (place, artifact) in artifacts.iter().enumerate() {
        let kind = artifact.get("kind").and_then(Value::as_str).unwrap_or_default();
        if kind.is_empty() {
            return Err(invalid(
                format!("`output.artifacts[{place}]` does not name its kind"),
                "give a map such as `{\"kind\": \"wr.loop_control\", \"decision\": \"stop\"}`",
                at(place),
            ));
        }
        match canonical::to_vec(artifact) {
            Ok(bytes) if bytes.len() <= ARTIFACT_MAX => {}
            Ok(bytes) => {
                let len = bytes.len();
                return Err(invalid(
                    format!(
                        "`output.artifacts[{place}]` has {len} bytes, and at most {ARTIFACT_MAX} are allowed"
                    ),
                    "put the bulk of it into a file and name its path in the artifact",
                    at(place),
                ));
            }
            Err(error) => {
                return Err(invalid(
                    format!("`output.artifacts[{place}]` cannot be kept: {error}"),
                    "send plain JSON: whole numbers within ±2^53, at most 64 levels",
                    at(place),
                ));
            }
        }
    }
    Ok(())
}

/// A checkpoint must hold something, and only notes can take the place of notes.
pub(super) fn something(ask: &Checkpoint) -> Result<()> {
    let Output { notes, artifacts } = &ask.output;
    let noted = notes.as_deref().is_some_and(|notes| !notes.trim().is_empty());
    if ask.replaces_notes && !(noted && artifacts.is_empty()) {
        return Err(invalid(
            "only notes can take the place of notes".to_owned(),
            "send `output.notesMarkdown` without artifacts, or leave out `replacesNotes`",
            json!({"field": "output.replacesNotes"}),
        ));
    }
    if noted || !artifacts.is_empty() {
        return Ok(());
    }
    Err(invalid(
        "the checkpoint holds nothing".to_owned(),
        "send `output.notesMarkdown` with what is worth keeping",
        json!({"field": "output"}),
    ))
}

/// A call that only comes back brings nothing along.
pub(crate) fn rehydrate_only(ask: &Continue) -> Result<()> {
    if ask.preferences != Wanted::default() {
        return Err(invalid(
            "preferences change when a step is done, and this call only shows the step".to_owned(),
            "send `preferences` together with the `output` of the step, or leave them out to see the step again",
            json!({"field": "preferences"}),
        ));
    }
    if ask.intent == Some(Intent::Rehydrate) {
        if ask.output.is_none() && ask.context.is_none() {
            return Ok(());
        }
        return Err(invalid(
            "`rehydrate` records nothing, and the call sends something to record".to_owned(),
            "leave out `output` and `context` to see the step again, or send `\"intent\": \"advance\"` to advance",
            json!({"field": "intent"}),
        ));
    }
    if ask.output.is_some() || ask.context.is_some() || ask.intent.is_some() {
        let pair = "to advance, send the `ackToken` too, or a `continueToken` with `output`, such as `\"output\": {\"notesMarkdown\": \"…\"}`";
        let both = "to advance, add `output`, such as `\"output\": {\"notesMarkdown\": \"…\"}` (or `\"intent\": \"advance\"`); to see the step again, leave `context` out";
        let only_context = ask.output.is_none() && ask.intent.is_none();
        return Err(invalid(
            "the call does not say whether to advance or to show the step".to_owned(),
            if only_context { both } else { pair },
            json!({"field": if only_context { "context" } else { "ackToken" }}),
        ));
    }
    Ok(())
}
