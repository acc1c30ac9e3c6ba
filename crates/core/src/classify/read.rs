//! What an answer says, wherever in it that stands.

use serde_json::{Map, Value};

/// How many places of a text are tried as the beginning of JSON.
const TRIES_MAX: usize = 32;
/// How much of a text is looked through for JSON.
const LOOKED_MAX: usize = 256 << 10;
/// How much of the reasoning is kept.
const REASONING_MAX: usize = 2_000;

/// What an answer says.
#[derive(Default)]
pub(super) struct Said {
    pub(super) verdict: Option<String>,
    pub(super) confidence: Option<f64>,
    pub(super) reasoning: Option<String>,
    /// Whether there are several verdicts, and not the same.
    pub(super) contradicts: bool,
}

/// What a structured result says, or else the JSON that stands in a text.
pub(super) fn said(text: &str, structured: Option<&Value>) -> Said {
    if let Some(said) = structured.and_then(Value::as_object).and_then(of_object) {
        return said;
    }
    let mut found = objects(text).into_iter().filter_map(|object| of_object(&object));
    let Some(first) = found.next() else { return Said::default() };
    if found.any(|other| other.verdict != first.verdict) {
        return Said { contradicts: true, ..Said::default() };
    }
    first
}

/// What an object says, when it has a verdict.
fn of_object(object: &Map<String, Value>) -> Option<Said> {
    let verdict = match object.get("verdict")? {
        Value::String(text) => text.clone(),
        plain @ (Value::Bool(_) | Value::Number(_)) => plain.to_string(),
        _ => return None,
    };
    let reasoning = object.get("reasoning").and_then(Value::as_str);
    Some(Said {
        verdict: Some(verdict),
        confidence: object.get("confidence").and_then(confidence),
        reasoning: reasoning.map(|text| crate::text::truncate(text, REASONING_MAX)),
        contradicts: false,
    })
}

/// A share of one, however it is written: `0.9`, `"0.9"`, `90` or `"90 %"`.
fn confidence(value: &Value) -> Option<f64> {
    let number = match value {
        Value::Number(number) => number.as_f64()?,
        Value::String(text) => text.trim().trim_end_matches('%').trim().parse().ok()?,
        _ => return None,
    };
    let percent = number > 1.0 || value.as_str().is_some_and(|text| text.contains('%'));
    let share = if percent { number / 100.0 } else { number };
    (0.0..=1.0).contains(&share).then_some(share)
}

/// The objects that stand in a text, outermost only.
fn objects(text: &str) -> Vec<Map<String, Value>> {
    let text = text.get(..text.floor_char_boundary(LOOKED_MAX)).unwrap_or_default();
    let (mut found, mut from) = (Vec::new(), 0);
    for _ in 0..TRIES_MAX {
        let Some(at) = text.get(from..).and_then(|rest| rest.find('{')) else { break };
        let start = from + at;
        let rest = text.get(start..).unwrap_or_default();
        let mut stream = serde_json::Deserializer::from_str(rest).into_iter::<Map<String, Value>>();
        match stream.next() {
            Some(Ok(object)) => {
                from = start + stream.byte_offset().max(1);
                found.push(object);
            }
            _ => from = start + 1,
        }
    }
    found
}
