//! Gives a step another id, wherever it is named.

use std::collections::BTreeSet;

use cairn_core::expression::{self, Expr, Reference};
use cairn_core::text::Slug;
use granit_parser::ScalarStyle;
use serde_json::Value;

use super::Refused;
use super::change::replaced;
use super::tree::{Kind, Node};

/// Fields of a node that name steps.
const NAMING: [&str; 6] = ["body", "branches", "cases", "fallback", "inputs", "next"];
/// Fields of a node that are one expression.
const EXPRESSIONS: [&str; 3] = ["expr", "when", "while"];

/// What is done to the bytes of the source: a place, how many go, and what comes.
type Patch = (usize, usize, String);

/// The text with a step renamed.
pub(super) fn step(
    text: &str,
    tree: &Node,
    document: &Value,
    from: &str,
    to: &str,
) -> Result<String, Refused> {
    let nodes = document.pointer("/graph/nodes").and_then(Value::as_array);
    let ids = nodes.into_iter().flatten().filter_map(|node| node.get("id")?.as_str());
    let ids: BTreeSet<&str> = ids.collect();
    if !ids.contains(from) {
        return Err(Refused::Nothing(format!("/graph/nodes/{from}")));
    }
    if to.parse::<Slug>().is_err() || to.contains('.') {
        return Err(Refused::Name(format!("`{to}` cannot name a step")));
    }
    if ids.contains(to) {
        return Err(Refused::Name(format!("`{to}` names a step already")));
    }
    let mut work = Work { text, from, to, ids, patches: Vec::new() };
    work.document(tree)?;
    let mut patches = work.patches;
    patches.sort();
    patches.dedup();
    let mut changed = text.to_owned();
    for (at, count, new) in patches.into_iter().rev() {
        changed = replaced(&changed, at..at + count, &new);
    }
    Ok(changed)
}

/// A text with templates after a step was renamed. The function says what names a step.
#[must_use]
pub fn text(text: &str, from: &str, to: &str, is_step: &dyn Fn(&str) -> bool) -> Option<String> {
    let mut changed = text.to_owned();
    for (at, count) in named(text, from, is_step, false)?.into_iter().rev() {
        changed = replaced(&changed, at..at + count, to);
    }
    Some(changed)
}

struct Work<'w> {
    text: &'w str,
    from: &'w str,
    to: &'w str,
    ids: BTreeSet<&'w str>,
    patches: Vec<Patch>,
}

impl Work<'_> {
    fn document(&mut self, tree: &Node) -> Result<(), Refused> {
        tree.at("/graph/entry").into_iter().for_each(|node| self.names(node));
        for trigger in items(tree.at("/triggers")) {
            trigger.at("/entry_node").into_iter().for_each(|node| self.names(node));
        }
        for edge in items(tree.at("/graph/edges")) {
            for side in ["/from", "/to"] {
                edge.at(side).into_iter().for_each(|node| self.names(node));
            }
        }
        for node in items(tree.at("/graph/nodes")) {
            node.at("/id").into_iter().for_each(|node| self.names(node));
            let Kind::Map { entries, .. } = &node.kind else { continue };
            for entry in entries {
                if NAMING.contains(&entry.key.as_str()) {
                    self.names(&entry.node);
                } else if EXPRESSIONS.contains(&entry.key.as_str()) {
                    self.templates(&entry.node, true)?;
                } else {
                    self.templates(&entry.node, false)?;
                }
            }
        }
        Ok(())
    }

    /// A value that names steps: one, a list of them, or a map to them.
    fn names(&mut self, node: &Node) {
        match &node.kind {
            Kind::Scalar { text, .. } if text == self.from => {
                let raw = self.text.get(node.bytes.clone()).unwrap_or_default();
                let at = raw.find(self.from).unwrap_or_default();
                self.patches.push((node.bytes.start + at, self.from.len(), self.to.to_owned()));
            }
            Kind::Scalar { .. } => {}
            Kind::List { items, .. } => items.iter().for_each(|item| self.names(item)),
            Kind::Map { entries, .. } => entries.iter().for_each(|entry| self.names(&entry.node)),
        }
    }

    /// Texts in which expressions look at steps.
    fn templates(&mut self, node: &Node, is_expression: bool) -> Result<(), Refused> {
        match &node.kind {
            Kind::List { items, .. } => {
                items.iter().try_for_each(|item| self.templates(item, is_expression))
            }
            Kind::Map { entries, .. } => {
                entries.iter().try_for_each(|entry| self.templates(&entry.node, is_expression))
            }
            Kind::Scalar { text, style } => {
                if !is_expression && !text.contains("{{") && !text.contains("{%") {
                    return Ok(());
                }
                let is_step = |name: &str| self.ids.contains(name);
                // A text that is no template is told when it is compiled.
                let Some(found) = named(text, self.from, &is_step, is_expression) else {
                    return Ok(());
                };
                if found.is_empty() {
                    return Ok(());
                }
                let raw = self.text.get(node.bytes.clone()).unwrap_or_default();
                let quoted = matches!(style, ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted);
                let inner = if quoted { 1..raw.len().saturating_sub(1) } else { 0..raw.len() };
                let source = raw.get(inner.clone()).unwrap_or_default();
                // In the source an expression looks as in the text, unless quotes are escaped.
                let places = named(source, self.from, &is_step, is_expression)
                    .filter(|places| places.len() == found.len());
                let start = node.bytes.start + inner.start;
                let patch = |(at, count)| (start + at, count, self.to.to_owned());
                let patches: Vec<Patch> = match places {
                    Some(places) => places.into_iter().map(patch).collect(),
                    None => vec![self.rewritten(node, text, found)?],
                };
                self.patches.extend(patches);
                Ok(())
            }
        }
    }

    /// A quoted text written anew, because of what is escaped in it.
    fn rewritten(
        &self,
        node: &Node,
        text: &str,
        found: Vec<(usize, usize)>,
    ) -> Result<Patch, Refused> {
        if !node.is_inline() {
            return Err(Refused::Unsure);
        }
        let mut changed = text.to_owned();
        for (at, count) in found.into_iter().rev() {
            changed = replaced(&changed, at..at + count, self.to);
        }
        Ok((node.bytes.start, node.bytes.len(), Value::String(changed).to_string()))
    }
}

fn items(node: Option<&Node>) -> &[Node] {
    match node.map(|node| &node.kind) {
        Some(Kind::List { items, .. }) => items,
        _ => &[],
    }
}

/// Where a text names a step: places and lengths, in order.
fn named(
    text: &str,
    from: &str,
    is_step: &dyn Fn(&str) -> bool,
    is_expression: bool,
) -> Option<Vec<(usize, usize)>> {
    let references: Vec<Reference> = match is_expression {
        true => expression::expression(text, is_step).ok()?.references(),
        false => {
            let template = expression::template(text, is_step).ok()?;
            template.values().flat_map(Expr::references).collect()
        }
    };
    let step = |reference: Reference| match reference.members.into_iter().next() {
        Some((Some(name), at)) if reference.root == "steps" && name == from => Some(at),
        _ => None,
    };
    let mut found = Vec::new();
    for at in references.into_iter().filter_map(step) {
        // In `steps["name"]` the place is that of the quote.
        let rest = text.get(at..)?;
        let skip = rest.find(from).filter(|skip| *skip <= 2)?;
        found.push((at + skip, from.len()));
    }
    found.sort_unstable();
    found.dedup();
    Some(found)
}
