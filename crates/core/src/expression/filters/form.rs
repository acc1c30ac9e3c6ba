//! Filters that vouch for the form of a value: it passes as it is, or not at all.

use regex::{Regex, RegexBuilder};
use serde_json::Value;

use super::Input;
use crate::expression::operators::equal;
use crate::expression::text::{kind, shown};
use crate::expression::{Error, ErrorKind};

/// How many bytes a text may have that is held to a pattern.
const HELD_MAX: usize = 64 << 10;
/// How many bytes a pattern may be compiled to.
const PATTERN_MAX: usize = 64 << 10;

/// The value itself: `default` has nothing to do for a value that is there.
pub(super) fn given(input: &Input<'_>) -> Result<Option<Value>, Error> {
    input.meter.copy(input.value).map(Some)
}

pub(super) fn one_of(input: &Input<'_>) -> Result<Option<Value>, Error> {
    let among = input.arguments.iter().flatten().any(|known| equal(known, input.value));
    if among {
        return input.meter.copy(input.value).map(Some);
    }
    let known: Vec<String> = input.arguments.iter().flatten().map(|known| shown(known)).collect();
    let message = format!("{} is not one of {}", shown(input.value), known.join(", "));
    Err(Error::new(ErrorKind::Invalid, message))
}

pub(super) fn slug(input: &Input<'_>) -> Result<Option<Value>, Error> {
    const LONGEST: usize = 128;
    let text = input.text("slug")?;
    let safe = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-';
    // A program would take what begins with a hyphen for one of its options.
    let first = text.starts_with(|c: char| c.is_ascii_alphanumeric());
    if first && text.len() <= LONGEST && text.bytes().all(safe) {
        return input.meter.copy(input.value).map(Some);
    }
    let message = format!(
        "{} is no slug: 1 to {LONGEST} of a-z, 0-9, `_` and `-`, with a letter or digit first",
        shown(input.value)
    );
    Err(Error::new(ErrorKind::Invalid, message))
}

pub(super) fn bool(input: &Input<'_>) -> Result<Option<Value>, Error> {
    let truth = match input.value {
        Value::Bool(truth) => *truth,
        Value::String(text) if text == "true" => true,
        Value::String(text) if text == "false" => false,
        Value::Number(number) if number.as_f64() == Some(0.0) => false,
        Value::Number(number) if number.as_f64() == Some(1.0) => true,
        other => {
            let message = format!("`bool` takes true or false, not {}", shown(other));
            return Err(Error::new(ErrorKind::Invalid, message));
        }
    };
    Ok(Some(Value::Bool(truth)))
}

pub(super) fn matches_text(input: &Input<'_>) -> Result<Option<Value>, Error> {
    let text = input.text_argument("matches", 0)?.unwrap_or_default();
    let pattern = pattern(text).map_err(|message| Error::new(ErrorKind::Invalid, message))?;
    matches(input.value, &pattern)?;
    input.meter.copy(input.value).map(Some)
}

/// Refuses a value that is no text of a pattern.
pub(in crate::expression) fn matches(value: &Value, pattern: &Regex) -> Result<(), Error> {
    let Value::String(text) = value else {
        return Err(Error::kind(format!("`matches` takes a text, not {}", kind(value))));
    };
    if text.len() > HELD_MAX {
        let message = format!("`matches` takes at most {HELD_MAX} bytes");
        return Err(Error::new(ErrorKind::TooLarge, message));
    }
    if pattern.is_match(text) {
        return Ok(());
    }
    let message = format!("{} does not match its pattern", shown(value));
    Err(Error::new(ErrorKind::Invalid, message))
}

/// A pattern for whole texts.
pub(in crate::expression) fn pattern(text: &str) -> Result<Regex, String> {
    if !crate::pattern::is_small(text) {
        return Err("the pattern is too large".to_owned());
    }
    let whole = format!(r"\A(?:{text})\z");
    let built = RegexBuilder::new(&whole).size_limit(PATTERN_MAX).dfa_size_limit(1 << 20).build();
    // What closes the group must not open another meaning.
    let alone = RegexBuilder::new(text).size_limit(PATTERN_MAX).build();
    alone.and(built).map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => "the pattern is too large".to_owned(),
        error => {
            let text = error.to_string();
            let last = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
            format!("the pattern cannot be read: {last}")
        }
    })
}

/// Whether a pattern for whole texts takes about any: texts of each of the signs that mean
/// something to a shell, a path or an address.
#[must_use]
pub fn takes_anything(text: &str) -> bool {
    const SIGNS: [&str; 11] = ["-", "/", ".", "$", ";", "|", "&", "`", " ", "(", "<"];
    const LONGEST: usize = 64;
    let Ok(pattern) = pattern(text) else { return false };
    let takes = |sign: &str| (1..=LONGEST).any(|count| pattern.is_match(&sign.repeat(count)));
    SIGNS.into_iter().all(takes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_of_any_text_is_told_from_a_form() {
        for open in [".*", ".+", "^.*$", "(?s).*", r"[\s\S]*", ".{5,9}", "(a|.)*", "[^x]*", r"\D+"]
        {
            assert!(takes_anything(open), "{open}");
        }
        for form in ["", "^", "$", "^$", "[a-z]+", r"\d{4}-\d{2}", "x.*", "[^/]+", r"v\.*", "("] {
            assert!(!takes_anything(form), "{form}");
        }
    }
}
