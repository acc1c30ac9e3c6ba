//! Writes new values.

use serde_json::{Map, Value};

/// How long a list or map may be to stand on one line.
const LINE_MAX: usize = 72;

/// A value on one line.
pub(super) fn inline(value: &Value) -> String {
    match value {
        Value::String(text) if is_plain(text) => text.clone(),
        value => value.to_string(),
    }
}

/// A value inside of brackets, where every text is quoted.
pub(super) fn flow(value: &Value) -> String {
    value.to_string()
}

/// A key.
pub(super) fn key(name: &str) -> String {
    if is_plain(name) { name.to_owned() } else { Value::from(name).to_string() }
}

/// A value behind `key:` or `-`, whose further lines are indented by this much. It begins
/// with a blank or a new line.
pub(super) fn behind(value: &Value, indent: usize) -> String {
    match value {
        Value::Object(members) if long(value) && !members.is_empty() => {
            format!("\n{}", " ".repeat(indent) + &map(members, indent))
        }
        Value::Array(items) if long(value) && !items.is_empty() => {
            format!("\n{}", " ".repeat(indent) + &list(items, indent))
        }
        Value::String(text) => match literal(text, indent) {
            Some(block) => format!(" {block}"),
            None => format!(" {}", inline(value)),
        },
        value => format!(" {}", inline(value)),
    }
}

/// An item behind its hyphen: a map begins on the same line.
pub(super) fn item(value: &Value, indent: usize) -> String {
    match value {
        Value::Object(members) if !members.is_empty() => format!(" {}", map(members, indent)),
        Value::Array(items) if long(value) && !items.is_empty() => {
            format!(" {}", list(items, indent))
        }
        value => behind(value, indent),
    }
}

fn long(value: &Value) -> bool {
    value.to_string().len() > LINE_MAX
}

/// The members of a map, a line each. The first stands where the text is put.
pub(super) fn map(members: &Map<String, Value>, indent: usize) -> String {
    let member =
        |(name, value): (&String, &Value)| format!("{}:{}", key(name), behind(value, indent + 2));
    members.iter().map(member).collect::<Vec<_>>().join(&format!("\n{}", " ".repeat(indent)))
}

/// The items of a list, a line each. The first stands where the text is put.
pub(super) fn list(items: &[Value], indent: usize) -> String {
    let lines = items.iter().map(|value| format!("-{}", item(value, indent + 2)));
    lines.collect::<Vec<_>>().join(&format!("\n{}", " ".repeat(indent)))
}

/// A text of several lines as a block.
fn literal(text: &str, indent: usize) -> Option<String> {
    let lines: Vec<&str> = text.strip_suffix('\n').unwrap_or(text).split('\n').collect();
    let ends = |line: &&str| line.ends_with([' ', '\t']) || line.contains('\r');
    let first = lines.first()?;
    let odd = lines.iter().any(ends) || first.starts_with([' ', '\t']) || first.is_empty();
    let visible = text.chars().all(|c| !c.is_control() || c == '\n');
    if lines.len() < 2 || odd || !visible || text.ends_with("\n\n") {
        return None;
    }
    let margin = " ".repeat(indent);
    let mark = if text.ends_with('\n') { "|" } else { "|-" };
    let line = |line: &&str| match line.is_empty() {
        true => String::new(),
        false => format!("{margin}{line}"),
    };
    Some(format!("{mark}\n{}", lines.iter().map(line).collect::<Vec<_>>().join("\n")))
}

/// Whether a text can stand without quotes, and is read as text.
fn is_plain(text: &str) -> bool {
    let safe = |c: char| c.is_ascii_alphanumeric() || "_-./ @+".contains(c);
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_' || c == '/');
    let words = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    begins
        && text.chars().all(safe)
        && !text.ends_with(' ')
        && !words.contains(&text.to_ascii_lowercase().as_str())
}
