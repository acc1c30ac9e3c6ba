//! Source texts: files by path, and documents that know where each value stands.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde_json::{Map, Number};

use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::ids::SourceKind;

mod json;
mod yaml;

/// How long a file may be.
pub const BYTES_MAX: usize = 1 << 20;
/// How deep lists and maps may nest.
pub const DEPTH_MAX: usize = 64;

/// The files of one source, by their path from its root.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SourceTree {
    /// Where the files come from, which decides what they may define.
    pub kind: SourceKind,
    /// The files. Paths have `/` between their parts.
    pub files: BTreeMap<String, Vec<u8>>,
    /// Files of bundled sources whose routines can be called from here.
    pub library: BTreeMap<String, Vec<u8>>,
}

/// A place in a text. Both count from 1, columns in characters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Position {
    pub line: u32,
    pub column: u32,
}

/// A value, and where it stands.
#[derive(Clone, PartialEq, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Node {
    pub at: Position,
    pub value: Value,
}

/// A value of a document.
#[derive(Clone, PartialEq, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Value {
    Null,
    Flag(bool),
    Number(Number),
    Text(String),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

/// A key of a map, and what it stands for.
#[derive(Clone, PartialEq, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Entry {
    pub key: String,
    pub key_at: Position,
    pub node: Node,
}

/// Why a text is no document.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Fault {
    at: Position,
    code: Code,
    message: String,
    suggestion: Option<String>,
}

/// Reads a JSON or YAML document: by the path's ending, else by how it begins.
pub fn parse(path: &str, bytes: &[u8]) -> Result<Node, Box<Diagnostic>> {
    read(path, bytes).map_err(|fault| {
        Box::new(Diagnostic {
            path: path.to_owned(),
            line: fault.at.line,
            column: fault.at.column,
            severity: Severity::Error,
            code: fault.code,
            pointer: String::new(),
            message: fault.message,
            suggestion: fault.suggestion,
        })
    })
}

fn read(path: &str, bytes: &[u8]) -> Result<Node, Fault> {
    if bytes.len() > BYTES_MAX {
        let message = format!("the file has {} bytes; at most {BYTES_MAX} are read", bytes.len());
        return Err(Fault::new(Position::START, Code::TooLong, message));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let good = bytes.get(..error.valid_up_to()).unwrap_or_default();
        let at = Position::after(&String::from_utf8_lossy(good));
        Fault::new(at, Code::Malformed, "the text is not UTF-8")
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let is_json = match path.rsplit_once('.').map(|(_, ending)| ending) {
        Some("json") => true,
        Some("yaml" | "yml") => false,
        _ => text.trim_start().starts_with(['{', '[']),
    };
    if is_json { json::read(text) } else { yaml::read(text) }
}

impl Position {
    /// The first character of a text.
    pub const START: Self = Self { line: 1, column: 1 };

    /// The place right behind a text.
    pub(crate) fn after(text: &str) -> Self {
        let line = 1 + text.matches('\n').count();
        let column = 1 + text.rsplit('\n').next().map_or(0, |rest| rest.chars().count());
        let short = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        Self { line: short(line), column: short(column) }
    }
}

impl Fault {
    fn new(at: Position, code: Code, message: impl Into<String>) -> Self {
        Self { at, code, message: message.into(), suggestion: None }
    }

    fn hint(mut self, suggestion: impl Into<String>) -> Self {
        self.suggestion = Some(suggestion.into());
        self
    }
}

impl Node {
    /// What stands under this key, if this is a map that has it.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Self> {
        match &self.value {
            Value::Map(entries) => entries.iter().find(|e| e.key == key).map(|e| &e.node),
            _ => None,
        }
    }

    /// The text, if it is one.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The value without its positions.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        match &self.value {
            Value::Null => serde_json::Value::Null,
            Value::Flag(flag) => (*flag).into(),
            Value::Number(number) => number.clone().into(),
            Value::Text(text) => text.clone().into(),
            Value::List(items) => items.iter().map(Self::to_json).collect(),
            Value::Map(entries) => {
                let members = entries.iter().map(|e| (e.key.clone(), e.node.to_json()));
                members.collect::<Map<_, _>>().into()
            }
        }
    }
}

/// The entries of a map that is being read.
#[derive(Default)]
struct Entries {
    list: Vec<Entry>,
    /// The digests of their keys, so that none of them is looked for one by one.
    seen: BTreeSet<u64>,
}

impl Entries {
    /// Adds a key that is not there yet.
    fn insert(&mut self, entry: Entry) -> Result<(), Fault> {
        let mut hasher = DefaultHasher::new();
        entry.key.hash(&mut hasher);
        if !self.seen.insert(hasher.finish())
            && let Some(first) = self.list.iter().find(|known| known.key == entry.key)
        {
            let Position { line, .. } = first.key_at;
            let message = format!("`{}` stands twice in one map, first in line {line}", entry.key);
            let fault = Fault::new(entry.key_at, Code::DuplicateKey, message);
            return Err(fault.hint("keep one of the two"));
        }
        self.list.push(entry);
        Ok(())
    }
}

/// A number as every JSON reader takes it.
fn number(text: &str, at: Position) -> Result<Number, Fault> {
    let number: Number = serde_json::from_str(text)
        .map_err(|_| Fault::new(at, Code::Malformed, format!("`{text}` is not a number")))?;
    let exact = |whole: u64| whole <= cairn_core::canonical::INTEGER_MAX;
    let fits = match (number.as_i64(), number.as_u64()) {
        (Some(whole), _) => exact(whole.unsigned_abs()),
        (None, Some(_)) => false,
        (None, None) => true,
    };
    if fits {
        Ok(number)
    } else {
        let message = format!("the number {text} is beyond 2^53");
        Err(Fault::new(at, Code::InvalidValue, message).hint("write it as text, in quotes"))
    }
}

fn too_deep(at: Position) -> Fault {
    Fault::new(at, Code::TooDeep, format!("lists and maps nest deeper than {DEPTH_MAX} levels"))
}

#[cfg(test)]
mod tests;
