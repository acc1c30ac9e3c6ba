//! Reads YAML with positions, as much of it as is JSON with a lighter spelling.
//!
//! Only `true`, `false`, `null` and JSON numbers are other than text, so `no` stays a
//! word. Tags, anchors and second documents are refused: a reader would have to know them.

use granit_parser::{Event, Parser, ScalarStyle, Span};

use super::{DEPTH_MAX, Entries, Entry, Fault, Node, Position, Value, number, too_deep};
use crate::diagnostic::Code;

/// A list or map that is still open, and the key that waits for its value.
enum Open {
    List { at: Position, items: Vec<Node> },
    Map { at: Position, entries: Entries, key: Option<(String, Position)> },
}

pub(super) fn read(text: &str) -> Result<Node, Fault> {
    let mut open: Vec<Open> = Vec::new();
    let mut document = None;
    for next in Parser::new_from_str(text) {
        let (event, span) = next.map_err(|error| {
            let at = position(error.marker().line(), error.marker().col());
            match error.info() {
                // The parser has a limit of its own, beyond ours.
                info if info.contains("recursion limit") => too_deep(at),
                info => {
                    let fault = Fault::new(at, Code::Malformed, format!("not YAML: {info}"));
                    match advice(&info) {
                        Some(advice) => fault.hint(advice),
                        None => fault,
                    }
                }
            }
        })?;
        let at = position(span.start.line(), span.start.col());
        refuse(&event, &span, at)?;
        let node = match event {
            Event::DocumentStart(..) if document.is_some() => {
                let fault = Fault::new(at, Code::Unsupported, "a second document begins here");
                return Err(fault.hint("put each workflow into a file of its own"));
            }
            Event::Scalar(text, style, ..) => {
                let value = scalar(&text, matches!(style, ScalarStyle::Plain), at)?;
                Node { at, value }
            }
            Event::SequenceStart(..) | Event::MappingStart(..) => {
                if open.len() > DEPTH_MAX {
                    return Err(too_deep(at));
                }
                open.push(match event {
                    Event::SequenceStart(..) => Open::List { at, items: Vec::new() },
                    _ => Open::Map { at, entries: Entries::default(), key: None },
                });
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some(Open::List { at, items }) => Node { at, value: Value::List(items) },
                Some(Open::Map { at, entries, .. }) => Node { at, value: Value::Map(entries.list) },
                None => continue,
            },
            _ => continue,
        };
        match open.last_mut() {
            None => document = Some(node),
            Some(parent) => add(parent, node)?,
        }
    }
    document.ok_or_else(|| Fault::new(Position::START, Code::Malformed, "the file is empty"))
}

/// What to do about the mistakes that people make most.
fn advice(info: &str) -> Option<&'static str> {
    if info.contains("tabs") {
        return Some("indent with blanks");
    }
    info.contains("flow mapping")
        .then_some("in `{ … }`, text with `: ` or `,` in it goes in quotes")
}

fn add(parent: &mut Open, node: Node) -> Result<(), Fault> {
    match parent {
        Open::List { items, .. } => items.push(node),
        Open::Map { entries, key, .. } => match key.take() {
            Some((key, key_at)) => entries.insert(Entry { key, key_at, node })?,
            None => match node.value {
                Value::Text(text) => *key = Some((text, node.at)),
                Value::Number(number) => *key = Some((number.to_string(), node.at)),
                Value::Flag(flag) => *key = Some((flag.to_string(), node.at)),
                Value::Null => *key = Some(("null".to_owned(), node.at)),
                Value::List(_) | Value::Map(_) => {
                    let fault = Fault::new(node.at, Code::Unsupported, "a key must be text");
                    return Err(fault.hint("put text with `{` or `[` in it in quotes"));
                }
            },
        },
    }
    Ok(())
}

fn refuse(event: &Event<'_>, span: &Span, at: Position) -> Result<(), Fault> {
    if matches!(event, Event::Alias(_) | Event::UnresolvedAlias(_)) {
        let fault = Fault::new(at, Code::Unsupported, "aliases (`*name`) are not taken");
        return Err(fault.hint("write the value out; text that begins with `*` goes in quotes"));
    }
    if event.anchor_id().is_some() {
        let fault = Fault::new(at, Code::Unsupported, "anchors (`&name`) are not taken");
        return Err(fault.hint("write the value out; text that begins with `&` goes in quotes"));
    }
    if event.tag().is_some() {
        let at = span.tag_start().map_or(at, |start| position(start.line(), start.col()));
        let fault = Fault::new(at, Code::Unsupported, "tags (`!name`) are not taken");
        return Err(fault.hint("leave it out; text that begins with `!` goes in quotes"));
    }
    Ok(())
}

fn scalar(text: &str, plain: bool, at: Position) -> Result<Value, Fault> {
    if !plain {
        return Ok(Value::Text(text.to_owned()));
    }
    Ok(match text {
        "" | "~" | "null" => Value::Null,
        "true" => Value::Flag(true),
        "false" => Value::Flag(false),
        _ if serde_json::from_str::<serde_json::Number>(text).is_ok() => {
            Value::Number(number(text, at)?)
        }
        _ => Value::Text(text.to_owned()),
    })
}

/// The parser counts columns from 0.
fn position(line: usize, column: usize) -> Position {
    let short = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    Position { line: short(line.max(1)), column: short(column + 1) }
}
