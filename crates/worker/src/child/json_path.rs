//! Looks up JSONPaths.

use cairn_core::expression::ErrorKind;
use serde_json::Value;
use serde_json_path::JsonPath;

use crate::error::{Code, Error};

/// How many levels of brackets a path may have.
const DEPTH_MAX: usize = 32;

/// The value at a path that can name only one, or the list of those that a path finds.
pub(super) fn run(path: &str, input: &Value) -> Result<Value, Error> {
    if depth(path) > DEPTH_MAX {
        let message = format!("the path nests deeper than {DEPTH_MAX} levels");
        return Err(Error::new(Code::Syntax, message));
    }
    let read = JsonPath::parse(path).map_err(|error| {
        let place = error.position() + 1;
        Error::new(Code::Syntax, format!("at character {place} of the path: {}", error.message()))
    })?;
    let found = read.query(input);
    if !is_single(path) {
        return Ok(found.into_iter().cloned().collect());
    }
    found.first().cloned().ok_or_else(|| {
        let message = format!("there is nothing at `{path}`");
        Error::new(Code::Value(ErrorKind::Undefined), message)
    })
}

fn depth(path: &str) -> usize {
    let mut depth: usize = 0;
    let mut deepest = 0;
    for c in path.chars() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

/// Whether a path is made of names and places alone.
fn is_single(path: &str) -> bool {
    let mut quote = None;
    let mut before = ' ';
    for c in path.chars() {
        match quote {
            Some(open) if c == open && before != '\\' => quote = None,
            None if c == '"' || c == '\'' => quote = Some(c),
            None if matches!(c, '*' | '?' | ',' | ':') => return false,
            None if c == '.' && before == '.' => return false,
            _ => {}
        }
        before = if before == '\\' { ' ' } else { c };
    }
    true
}
