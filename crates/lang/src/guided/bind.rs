//! Bindings: what a project puts in place of the defaults of extension points.
//!
//! A bindings file maps the slots of extension points to ids of routines or workflows. A map
//! under the id of a workflow holds for that workflow alone, and goes before the rest.

use std::collections::BTreeMap;

use crate::diagnostic::Code;
use crate::ids::{self, SourceKind};
use crate::read::{Report, Spot};
use crate::source::{self, Node, SourceTree};

/// Where a source may hold bindings, the strongest first. The first is the project's own,
/// which holds for the workflows of every source.
pub const BINDINGS: [&str; 2] = [".cairn/bindings.json", "bindings.json"];

/// What is bound: by workflow, if it is for one alone, and slot.
pub(super) type Bound = BTreeMap<(Option<String>, String), String>;

/// Reads the bindings of a source. What is wrong with them is told.
pub(super) fn read(tree: &SourceTree, report: &Report) -> Bound {
    let mut bound = Bound::new();
    // The strongest is read last and so has the last word.
    for path in BINDINGS.iter().rev() {
        let Some(bytes) = tree.files.get(*path) else { continue };
        match source::parse(path, bytes) {
            Err(fault) => report.add(*fault),
            Ok(document) => file(path, &document, report, &mut bound),
        }
    }
    bound
}

fn file(path: &str, document: &Node, report: &Report, bound: &mut Bound) {
    for (name, spot) in Spot::root(path, document, report).members() {
        if !spot.is_map() {
            bound.extend(target(&spot).map(|id| ((None, name.to_owned()), id)));
            continue;
        }
        for (slot, spot) in spot.members() {
            let key = (Some(name.to_owned()), slot.to_owned());
            bound.extend(target(&spot).map(|id| (key, id)));
        }
    }
}

/// The id that a slot is bound to. It becomes part of prompts, so it must look like one.
fn target(spot: &Spot<'_>) -> Option<String> {
    let id = spot.filled()?;
    if ids::check(id, SourceKind::Bundled).is_err() {
        let message = format!("`{id}` is not the id of a routine or workflow");
        spot.error_hint(Code::InvalidId, message, "such as `project.routine-review`");
        return None;
    }
    Some(id.to_owned())
}

/// What a slot of a workflow is bound to.
pub(super) fn find<'b>(bound: &'b Bound, workflow: &str, slot: &str) -> Option<&'b String> {
    let own = bound.get(&(Some(workflow.to_owned()), slot.to_owned()));
    own.or_else(|| bound.get(&(None, slot.to_owned())))
}
