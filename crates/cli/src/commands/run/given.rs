//! What a run is given on the command line.

use std::io::Read as _;

use cairn_api::error::{Error, Result};
use cairn_core::canonical;
use serde_json::{Map, Value, json};

use crate::commands::guide::fact;
use crate::output::plain;

/// How many bytes are read of what a run is given.
const INPUT_MAX: u64 = 16 << 20;

/// The payload of an event.
#[derive(clap::Args)]
pub(crate) struct Given {
    /// Read the event's payload from a JSON file, or from `-`
    #[arg(long, value_name = "FILE")]
    event: Option<String>,

    /// Set a field of the event's payload; a value that is JSON is taken as such
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,
}

impl Given {
    /// The payload; none when nothing is given.
    pub(crate) fn payload(&self) -> Result<Option<Value>> {
        let payload = self.event.as_deref().map(parsed).transpose()?;
        if self.set.is_empty() {
            return Ok(payload);
        }
        let facts = self.set.iter().map(|set| fact(set)).collect::<Result<Vec<_>>>()?;
        let facts: Map<_, _> = facts.into_iter().collect();
        match payload.unwrap_or_else(|| json!({})) {
            Value::Object(mut members) => {
                members.extend(facts);
                Ok(Some(Value::Object(members)))
            }
            _ => Err(Error::Usage {
                message: "--set needs an event that is an object".to_owned(),
                suggestion: "leave --set out, or give an object with --event".to_owned(),
            }),
        }
    }
}

/// The value of `NAME=VALUE`, when it was no JSON and is taken as text.
pub(crate) fn text_of<'a>(set: &'a str, taken: &Value) -> Option<&'a str> {
    let (_, given) = set.split_once('=')?;
    (taken.as_str() == Some(given)).then_some(given)
}

/// Says that something is taken as text.
pub(crate) fn text_note(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    format!("note: {} is not JSON, and taken as text; write '{}' to say so", plain(text), quoted)
}

/// The error of an input that was given on the command line: what is missing can be given
/// there as well.
pub(crate) fn with_flag(error: cairn_engine::Error, payload: &Value) -> Error {
    let cairn_engine::Error::Invalid { message, fix, details } = error else { return error.into() };
    let field = details.pointer("/faults/0/field").and_then(Value::as_str);
    let fix = match field.map(|field| (field, payload.get(field))) {
        Some(("", _)) | None => fix,
        Some((field, None)) => format!("give it a value with `--set {field}=VALUE`"),
        // What looks like a number is one, unless it is quoted.
        Some((field, Some(given @ (Value::Number(_) | Value::Bool(_)))))
            if message.contains("`string`") =>
        {
            format!("write it as a text: `--set '{field}=\"{given}\"'`")
        }
        Some(_) => fix,
    };
    cairn_engine::Error::Invalid { message, fix, details }.into()
}

fn parsed(given: &str) -> Result<Value> {
    if given.trim_start().starts_with(['{', '[', '"']) && !std::path::Path::new(given).exists() {
        return Err(Error::Usage {
            message: "--event takes the name of a file, and this is the event itself".to_owned(),
            suggestion: "set its fields with --set NAME=VALUE, or pipe it in with `--event -`"
                .to_owned(),
        });
    }
    canonical::parse_exact(&read(given)?).map_err(|error| Error::Usage {
        message: format!("{given} is not JSON: {error}"),
        suggestion: "give a file with the event's payload as JSON".to_owned(),
    })
}

fn read(given: &str) -> Result<Vec<u8>> {
    let failed = |source| Error::File { path: given.into(), source };
    // A pipe is fine here: whoever names it waits for it.
    let bytes = match given {
        "-" => limited(std::io::stdin().lock()),
        _ => std::fs::File::open(given).and_then(limited),
    };
    bytes.map_err(failed)
}

/// Everything that comes, up to the limit of what a run is given.
pub(crate) fn limited(from: impl std::io::Read) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(INPUT_MAX + 1).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length <= INPUT_MAX) {
        return Ok(bytes);
    }
    let message = format!("it has more than {INPUT_MAX} bytes");
    Err(std::io::Error::new(std::io::ErrorKind::FileTooLarge, message))
}
