//! Filters of texts.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::Input;
use crate::expression::text::shown;
use crate::expression::{Error, ErrorKind};

pub(super) fn base64(input: &Input<'_>) -> Result<Option<Value>, Error> {
    let text = input.text("base64")?;
    input.meter.take(text.len())?;
    input.made(STANDARD.encode(text))
}

pub(super) fn capitalize(input: &Input<'_>) -> Result<Option<Value>, Error> {
    let text = input.text("capitalize")?;
    let mut chars = text.chars();
    let first: String = chars.next().map(char::to_uppercase).into_iter().flatten().collect();
    input.made(first + &chars.as_str().to_lowercase())
}

pub(super) fn from_json(input: &Input<'_>) -> Result<Option<Value>, Error> {
    // What a byte of JSON can become, as in `[0,0,0]`.
    const GROWTH: usize = 8;
    let text = input.text("from_json")?;
    input.meter.take(text.len().saturating_mul(GROWTH))?;
    let value = serde_json::from_str(text).map_err(|error| {
        let message = format!("{} is no JSON: {error}", shown(input.value));
        Error::new(ErrorKind::Invalid, message)
    })?;
    Ok(Some(value))
}

pub(super) fn lines(input: &Input<'_>) -> Result<Option<Value>, Error> {
    parts(input, input.text("lines")?.lines())
}

pub(super) fn lower(input: &Input<'_>) -> Result<Option<Value>, Error> {
    input.made(input.text("lower")?.to_lowercase())
}

pub(super) fn replace(input: &Input<'_>) -> Result<Option<Value>, Error> {
    let text = input.text("replace")?;
    let from = input.text_argument("replace", 0)?.unwrap_or_default();
    let to = input.text_argument("replace", 1)?.unwrap_or_default();
    // It is counted before it is made: a text of commas can grow to any size.
    let count = text.matches(from).count();
    input.meter.take(count.saturating_mul(to.len()).saturating_add(text.len()))?;
    Ok(Some(Value::String(text.replace(from, to))))
}

pub(super) fn split(input: &Input<'_>) -> Result<Option<Value>, Error> {
    let text = input.text("split")?;
    match input.text_argument("split", 0)? {
        None => parts(input, text.split_whitespace()),
        Some(separator) => parts(input, text.split(separator)),
    }
}

fn parts<'t>(
    input: &Input<'_>,
    texts: impl Iterator<Item = &'t str>,
) -> Result<Option<Value>, Error> {
    let mut parts = Vec::new();
    for text in texts {
        input.meter.items(1)?;
        input.meter.take(text.len())?;
        parts.push(Value::from(text));
    }
    Ok(Some(Value::Array(parts)))
}

pub(super) fn string(input: &Input<'_>) -> Result<Option<Value>, Error> {
    Ok(Some(Value::String(input.meter.text(input.value)?.into_owned())))
}

pub(super) fn title(input: &Input<'_>) -> Result<Option<Value>, Error> {
    let mut whole = String::new();
    let mut begins = true;
    for c in input.text("title")?.chars() {
        match begins {
            true => whole.extend(c.to_uppercase()),
            false => whole.extend(c.to_lowercase()),
        }
        begins = c.is_whitespace() || "-([{<".contains(c);
    }
    input.made(whole)
}

pub(super) fn to_json(input: &Input<'_>) -> Result<Option<Value>, Error> {
    // The size without escapes is known; with them it is at most six times as much.
    const ESCAPED: usize = 6;
    let size = crate::expression::meter::size(input.value, usize::MAX / ESCAPED)?;
    input.meter.take(size)?;
    input.made(input.value.to_string())
}

pub(super) fn trim(input: &Input<'_>) -> Result<Option<Value>, Error> {
    input.made(input.text("trim")?.trim().to_owned())
}

/// The text in at most so many characters; the last of one that was cut is `…`.
pub(super) fn truncate(input: &Input<'_>) -> Result<Option<Value>, Error> {
    let text = input.text("truncate")?;
    let length = input.argument(0).and_then(Value::as_u64);
    let Some(length) = length.and_then(|length| usize::try_from(length).ok()) else {
        return Err(Error::kind("`truncate` takes a number of characters"));
    };
    if text.char_indices().nth(length).is_none() {
        return input.made(text.to_owned());
    }
    let kept: String = text.chars().take(length.saturating_sub(1)).collect();
    input.made(if length == 0 { kept } else { kept + "…" })
}

/// A text between the marks of what somebody sent, for a prompt. Marks in the text itself lose
/// their meaning.
pub(super) fn untrusted(input: &Input<'_>) -> Result<Option<Value>, Error> {
    let text = input.meter.text(input.value)?;
    input.made(crate::expression::untrusted::marked(&text))
}

pub(super) fn upper(input: &Input<'_>) -> Result<Option<Value>, Error> {
    input.made(input.text("upper")?.to_uppercase())
}

/// A text as it can stand in an address; an object as the pairs behind a question mark.
pub(super) fn urlencode(input: &Input<'_>) -> Result<Option<Value>, Error> {
    let text = |value: &Value| match value {
        Value::Array(_) | Value::Object(_) => input.refuse("urlencode", "texts and numbers"),
        value => Ok(encoded(&input.meter.text(value)?)),
    };
    let Value::Object(members) = input.value else { return input.made(text(input.value)?) };
    let mut pairs = Vec::new();
    for (name, value) in members.iter().filter(|(_, value)| !value.is_null()) {
        pairs.push(format!("{}={}", encoded(name), text(value)?));
    }
    input.made(pairs.join("&"))
}

fn encoded(text: &str) -> String {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let digit = |value: u8| HEX.get(usize::from(value)).copied().map(char::from);
    let mut whole = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            whole.push(char::from(byte));
        } else {
            whole.push('%');
            whole.extend(digit(byte >> 4));
            whole.extend(digit(byte & 15));
        }
    }
    whole
}
