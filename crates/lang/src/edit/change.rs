//! Sets, adds and removes values.

use std::ops::Range;

use serde_json::Value;

use super::tree::{Entry, Kind, Node};
use super::{Refused, render, split};

/// The text with a value set.
pub(super) fn set(
    text: &str,
    tree: &Node,
    pointer: &str,
    value: &Value,
) -> Result<String, Refused> {
    let Some((parent, name)) = split(pointer) else {
        return Err(Refused::Kind { pointer: pointer.to_owned(), wanted: "inside a map or list" });
    };
    let missing = || Refused::Nothing(parent.to_owned());
    let around = tree.at(parent).ok_or_else(missing)?;
    match &around.kind {
        Kind::Map { flow, entries } => match entries.iter().find(|entry| entry.key == name) {
            Some(entry) => member(text, entry, *flow, value),
            None => add(text, around, *flow, entries, (&name, value)),
        },
        Kind::List { flow, items } => {
            let place = name.parse::<usize>().ok();
            let node = place.and_then(|place| items.get(place));
            let node = node.ok_or_else(|| Refused::Nothing(pointer.to_owned()))?;
            let new = match *flow {
                true => render::flow(value),
                false if node.is_inline() && !is_large(value) => render::inline(value),
                false => {
                    let indent = column(text, node.bytes.start);
                    let new = fitted(text, node, render::item(value, indent), value);
                    new.trim_start_matches(' ').to_owned()
                }
            };
            Ok(replaced(text, node.bytes.clone(), &new))
        }
        Kind::Scalar { .. } => {
            Err(Refused::Kind { pointer: parent.to_owned(), wanted: "a map or list" })
        }
    }
}

/// Whether a value takes more than a line.
fn is_large(value: &Value) -> bool {
    render::behind(value, 0).contains('\n')
}

fn member(text: &str, entry: &Entry, flow: bool, value: &Value) -> Result<String, Refused> {
    if flow {
        let empty = entry.node.bytes.is_empty();
        let new = if empty { format!(" {}", render::flow(value)) } else { render::flow(value) };
        return Ok(replaced(text, entry.node.bytes.clone(), &new));
    }
    let indent = column(text, entry.key_bytes.start) + 2;
    let new = fitted(text, &entry.node, render::behind(value, indent), value);
    let colon = text.get(entry.key_bytes.end..).and_then(|rest| rest.find(':'));
    let behind = entry.key_bytes.end + colon.ok_or(Refused::Unsure)? + 1;
    if entry.node.bytes.is_empty() {
        return Ok(replaced(text, behind..behind, &new));
    }
    if entry.node.is_inline()
        && new.starts_with(' ')
        && same_line(text, behind, entry.node.bytes.start)
    {
        return Ok(replaced(text, entry.node.bytes.clone(), new.trim_start()));
    }
    Ok(replaced(text, behind..entry.node.bytes.end, &new))
}

/// A new value that leaves a comment behind the old one a comment.
fn fitted(text: &str, old: &Node, new: String, value: &Value) -> String {
    let rest = text.get(old.bytes.end..line_end(text, old.bytes.end)).unwrap_or_default();
    if rest.trim().is_empty() || !new.contains('\n') {
        return new;
    }
    format!(" {}", render::flow(value))
}

fn same_line(text: &str, from: usize, to: usize) -> bool {
    text.get(from..to).is_some_and(|between| !between.contains('\n'))
}

fn add(
    text: &str,
    around: &Node,
    flow: bool,
    entries: &[Entry],
    (name, value): (&str, &Value),
) -> Result<String, Refused> {
    let last = entries.last();
    if flow {
        let quoted = text.trim_start().starts_with('{');
        let key = if quoted { Value::from(name).to_string() } else { render::key(name) };
        let new = format!("{key}: {}", render::flow(value));
        return Ok(match last {
            Some(last) => {
                replaced(text, last.node.bytes.end..last.node.bytes.end, &format!(", {new}"))
            }
            None => {
                let inside = around.bytes.start + 1;
                replaced(text, inside..inside, &new)
            }
        });
    }
    let (first, last) = (entries.first().ok_or(Refused::Unsure)?, last.ok_or(Refused::Unsure)?);
    let indent = column(text, first.key_bytes.start);
    let end = line_end(text, last.node.bytes.end.max(last.key_bytes.end + 1));
    let margin = " ".repeat(indent);
    let new = format!("\n{margin}{}:{}", render::key(name), render::behind(value, indent + 2));
    Ok(replaced(text, end..end, &new))
}

/// The text with an item put into a list.
pub(super) fn insert(
    text: &str,
    tree: &Node,
    pointer: &str,
    place: usize,
    value: &Value,
) -> Result<String, Refused> {
    let node = tree.at(pointer).ok_or_else(|| Refused::Nothing(pointer.to_owned()))?;
    let Kind::List { flow, items } = &node.kind else {
        return Err(Refused::Kind { pointer: pointer.to_owned(), wanted: "a list" });
    };
    let place = place.min(items.len());
    if *flow {
        let new = render::flow(value);
        return Ok(match (items.get(place), items.last()) {
            (Some(next), _) => {
                replaced(text, next.bytes.start..next.bytes.start, &format!("{new}, "))
            }
            (None, Some(last)) => {
                replaced(text, last.bytes.end..last.bytes.end, &format!(", {new}"))
            }
            (None, None) => {
                let inside = node.bytes.start + 1;
                replaced(text, inside..inside, &new)
            }
        });
    }
    let first = items.first().ok_or(Refused::Unsure)?;
    let hyphen = hyphen(text, first).ok_or(Refused::Unsure)?;
    let indent = column(text, hyphen);
    let new = format!("-{}", render::item(value, indent + 2));
    let margin = " ".repeat(indent);
    match place.checked_sub(1).and_then(|before| items.get(before)) {
        // What stands above the next item stays with it.
        Some(before) => {
            let end = line_end(text, before.bytes.end);
            Ok(replaced(text, end..end, &format!("\n{margin}{new}")))
        }
        None => Ok(replaced(text, hyphen..hyphen, &format!("{new}\n{margin}"))),
    }
}

/// The text without a key or an item.
pub(super) fn remove(text: &str, tree: &Node, pointer: &str) -> Result<String, Refused> {
    let missing = || Refused::Nothing(pointer.to_owned());
    let (parent, name) = split(pointer).ok_or_else(missing)?;
    let around = tree.at(parent).ok_or_else(missing)?;
    let (flow, parts): (bool, Vec<Range<usize>>) = match &around.kind {
        Kind::Map { flow, entries } => {
            let whole = |entry: &Entry| {
                entry.key_bytes.start..entry.node.bytes.end.max(entry.key_bytes.end + 1)
            };
            (*flow, entries.iter().map(whole).collect())
        }
        Kind::List { flow: true, items } => {
            (true, items.iter().map(|item| item.bytes.clone()).collect())
        }
        Kind::List { items, .. } => {
            let whole = |item: &Node| Some(hyphen(text, item)?..item.bytes.end);
            let parts = items.iter().map(whole).collect::<Option<Vec<_>>>();
            (false, parts.ok_or(Refused::Unsure)?)
        }
        Kind::Scalar { .. } => return Err(missing()),
    };
    let place = match &around.kind {
        Kind::Map { entries, .. } => entries.iter().position(|entry| entry.key == name),
        _ => name.parse().ok(),
    };
    let place = place.filter(|place| *place < parts.len()).ok_or_else(missing)?;
    let part = parts.get(place).cloned().ok_or_else(missing)?;
    if parts.len() == 1 && !flow {
        // Nothing would be left of the block.
        let empty = if matches!(around.kind, Kind::Map { .. }) { "{}" } else { "[]" };
        let value = if empty == "{}" {
            Value::Object(serde_json::Map::new())
        } else {
            Value::Array(Vec::new())
        };
        return match split(parent) {
            Some(_) => set(text, tree, parent, &value),
            None => Ok(replaced(text, around.bytes.clone(), empty)),
        };
    }
    let before = place.checked_sub(1).and_then(|before| parts.get(before));
    let range = match (flow, parts.get(place + 1), before) {
        (true, Some(next), _) => part.start..next.start,
        (true, None, Some(before)) => before.end..part.end,
        (true, None, None) => part,
        (false, next, _) => {
            let begin = line_start(text, part.start);
            let alone = text.get(begin..part.start).is_some_and(|margin| margin.trim().is_empty());
            match next {
                _ if alone => begin..(line_end(text, part.end) + 1).min(text.len()),
                // It stands behind a hyphen, and so will the next.
                Some(next) => part.start..next.start,
                None => return Err(Refused::Unsure),
            }
        }
    };
    Ok(replaced(text, range, ""))
}

/// The hyphen of an item.
fn hyphen(text: &str, item: &Node) -> Option<usize> {
    let before = text.get(..item.bytes.start)?.trim_end_matches([' ', '\t']);
    before.ends_with('-').then(|| before.len() - 1)
}

pub(super) fn replaced(text: &str, range: Range<usize>, new: &str) -> String {
    let before = text.get(..range.start).unwrap_or_default();
    let behind = text.get(range.end..).unwrap_or_default();
    [before, new, behind].concat()
}

fn line_start(text: &str, at: usize) -> usize {
    text.get(..at).and_then(|before| before.rfind('\n')).map_or(0, |end| end + 1)
}

fn line_end(text: &str, at: usize) -> usize {
    text.get(at..).and_then(|behind| behind.find('\n')).map_or(text.len(), |end| at + end)
}

/// How many characters stand before a place on its line.
fn column(text: &str, at: usize) -> usize {
    text.get(line_start(text, at)..at).map_or(0, |before| before.chars().count())
}
