//! Searches text for a pattern.

use regex::RegexBuilder;
use serde_json::{Map, Value, json};

use crate::error::{Code, Error};

/// How many bytes a pattern may be compiled to.
const PATTERN_MAX: usize = 1 << 20;
/// How many bytes of text are searched.
const TEXT_MAX: usize = 64 << 10;

/// The first match, or `null`.
pub(super) fn run(pattern: &str, text: &str) -> Result<Value, Error> {
    if text.len() > TEXT_MAX {
        let message = format!("the text has {} bytes; {TEXT_MAX} are searched", text.len());
        return Err(Error::new(Code::Failed, message));
    }
    let regex = RegexBuilder::new(pattern).size_limit(PATTERN_MAX).build().map_err(|error| {
        let text = error.to_string();
        let last = text.lines().last().unwrap_or_default();
        Error::new(Code::Syntax, format!("the pattern cannot be read: {last}"))
    })?;
    let Some(found) = regex.captures(text) else { return Ok(Value::Null) };
    let groups: Vec<_> = found.iter().skip(1).map(part).collect();
    let named: Map<String, Value> = regex
        .capture_names()
        .flatten()
        .map(|name| (name.to_owned(), json!(part(found.name(name)))))
        .collect();
    Ok(json!({"match": part(found.get(0)), "groups": groups, "named": named}))
}

fn part(part: Option<regex::Match<'_>>) -> Option<&str> {
    part.map(|part| part.as_str())
}
