//! A document as the bytes of its values.

use std::ops::Range;

use granit_parser::{Event, Parser, ScalarStyle};

/// A value, and the bytes that it is written in.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) bytes: Range<usize>,
    pub(super) kind: Kind,
}

#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// The style says how it is quoted.
    Scalar {
        text: String,
        style: ScalarStyle,
    },
    List {
        flow: bool,
        items: Vec<Node>,
    },
    Map {
        flow: bool,
        entries: Vec<Entry>,
    },
}

/// A key of a map, and what it stands for.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) key_bytes: Range<usize>,
    pub(super) node: Node,
}

enum Open {
    List { start: usize, flow: bool, items: Vec<Node> },
    Map { start: usize, flow: bool, entries: Vec<Entry>, key: Option<(String, Range<usize>)> },
}

/// Reads a document that is known to be one.
pub(super) fn read(text: &str) -> Option<Node> {
    let mut open: Vec<Open> = Vec::new();
    let mut document = None;
    for next in Parser::new_from_str(text) {
        let (event, span) = next.ok()?;
        let (start, end) = (span.start.byte_offset()?, span.end.byte_offset()?);
        let node = match event {
            Event::Scalar(value, style, ..) => {
                let end = trimmed(text, start, end)?;
                let bytes = match style {
                    ScalarStyle::Literal | ScalarStyle::Folded => head(text, start)?..end,
                    _ => start..end,
                };
                Node { bytes, kind: Kind::Scalar { text: value.into_owned(), style } }
            }
            Event::SequenceStart(..) => {
                let flow = text.get(start..)?.starts_with('[');
                open.push(Open::List { start, flow, items: Vec::new() });
                continue;
            }
            Event::MappingStart(..) => {
                let flow = text.get(start..)?.starts_with('{');
                open.push(Open::Map { start, flow, entries: Vec::new(), key: None });
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => close(open.pop()?, end),
            _ => continue,
        };
        match open.last_mut() {
            None => document = Some(node),
            Some(Open::List { items, .. }) => items.push(node),
            Some(Open::Map { entries, key, .. }) => match (key.take(), node.kind) {
                (Some((name, key_bytes)), kind) => {
                    let node = Node { bytes: node.bytes, kind };
                    entries.push(Entry { key: name, key_bytes, node });
                }
                (None, Kind::Scalar { text, .. }) => *key = Some((text, node.bytes)),
                (None, _) => return None,
            },
        }
    }
    document
}

/// A list or map with all its parts. One in a block ends where its last part does.
fn close(open: Open, end: usize) -> Node {
    match open {
        Open::List { start, flow, items } => {
            let last = items.last().map_or(end, |item| item.bytes.end);
            let bytes = start..if flow { end } else { last };
            Node { bytes, kind: Kind::List { flow, items } }
        }
        Open::Map { start, flow, entries, .. } => {
            let last = entries.last().map_or(end, |entry| entry.node.bytes.end);
            let bytes = start..if flow { end } else { last };
            Node { bytes, kind: Kind::Map { flow, entries } }
        }
    }
}

/// Where a text in a block begins: at its `|` or `>`, and not at its first line.
fn head(text: &str, start: usize) -> Option<usize> {
    if text.get(start..)?.starts_with(['|', '>']) {
        return Some(start);
    }
    let before = text.get(..start)?.trim_end();
    let line = before.rfind('\n').map_or(0, |end| end + 1);
    let head = before.get(line..)?;
    // Behind it there is nothing but how the text ends, and a comment.
    let ends = |(at, _): &(usize, &str)| {
        let rest = head.get(at + 1..).unwrap_or_default();
        let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit() || "+-".contains(c)).trim();
        rest.is_empty() || rest.starts_with('#')
    };
    head.match_indices(['|', '>']).find(ends).map(|(at, _)| line + at)
}

/// The end of a value without the blanks and line ends behind it.
fn trimmed(text: &str, start: usize, end: usize) -> Option<usize> {
    Some(start + text.get(start..end)?.trim_end().len())
}

impl Node {
    /// The value at a pointer.
    pub(super) fn at(&self, pointer: &str) -> Option<&Self> {
        if pointer.is_empty() {
            return Some(self);
        }
        pointer.strip_prefix('/')?.split('/').try_fold(self, |node, name| {
            let name = name.replace("~1", "/").replace("~0", "~");
            match &node.kind {
                Kind::Scalar { .. } => None,
                Kind::List { items, .. } => items.get(name.parse::<usize>().ok()?),
                Kind::Map { entries, .. } => {
                    entries.iter().find(|entry| entry.key == name).map(|entry| &entry.node)
                }
            }
        })
    }

    /// Whether it is written on the line of its key: a scalar that is no block, or in brackets.
    pub(super) fn is_inline(&self) -> bool {
        match &self.kind {
            Kind::Scalar { style, .. } => {
                !matches!(style, ScalarStyle::Literal | ScalarStyle::Folded)
            }
            Kind::List { flow, .. } | Kind::Map { flow, .. } => *flow,
        }
    }
}
