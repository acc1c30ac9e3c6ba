//! Changes a YAML or JSON source in place: whatever an edit does not name stays as it is, to
//! the byte, comments and blank lines included.
//!
//! An edit replaces the bytes of the values that it names. Its result is read again and held
//! to what the edit should have made; where the two differ, the edit is refused.

mod change;
mod rename;
mod render;
mod tree;

use serde_json::Value;

use crate::source;

/// A change to a source. Pointers are JSON pointers (RFC 6901).
#[derive(Clone, PartialEq, Debug)]
pub enum Edit {
    /// Gives a value another one, or a map another key.
    Set {
        /// Where.
        pointer: String,
        /// What stands there afterwards.
        value: Value,
    },
    /// Puts an item into a list; at its end, if the place is behind it.
    Insert {
        /// The list.
        pointer: String,
        /// In front of which item.
        place: usize,
        /// The item.
        value: Value,
    },
    /// Takes a key out of a map, or an item out of a list.
    Remove {
        /// Which.
        pointer: String,
    },
    /// Gives a step of a graph workflow another id, wherever it is named.
    RenameStep {
        /// Its id.
        from: String,
        /// Its new id.
        to: String,
    },
}

/// Why an edit is not made.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refused {
    /// The source is not one to begin with.
    #[error("the source cannot be read, in line {line}: {message}")]
    Unread {
        /// The line of the mistake.
        line: u32,
        /// What is wrong.
        message: String,
    },
    /// There is nothing at the place.
    #[error("there is nothing at `{0}`")]
    Nothing(String),
    /// The place is of another kind.
    #[error("`{pointer}` is not {wanted}")]
    Kind {
        /// The place.
        pointer: String,
        /// What the edit asks for.
        wanted: &'static str,
    },
    /// A name that cannot be given.
    #[error("{0}")]
    Name(String),
    /// The edit cannot be made without touching something else.
    #[error("the edit cannot be made in place; change the file by hand")]
    Unsure,
}

/// The source with a change made.
pub fn apply(text: &str, edit: &Edit) -> Result<String, Refused> {
    let before = read(text)?;
    let tree = tree::read(text).ok_or(Refused::Unsure)?;
    let (changed, wanted) = match edit {
        Edit::Set { pointer, value } => {
            if before.pointer(pointer) == Some(value) {
                return Ok(text.to_owned());
            }
            let changed = change::set(text, &tree, pointer, value)?;
            (changed, expected::set(before, pointer, value))
        }
        Edit::Insert { pointer, place, value } => {
            let changed = change::insert(text, &tree, pointer, *place, value)?;
            (changed, expected::insert(before, pointer, *place, value))
        }
        Edit::Remove { pointer } => {
            let changed = change::remove(text, &tree, pointer)?;
            (changed, expected::remove(before, pointer))
        }
        Edit::RenameStep { from, to } => {
            let changed = rename::step(text, &tree, &before, from, to)?;
            // What a text with names in it becomes is known to the renaming alone.
            let after = read(&changed).map_err(|_| Refused::Unsure)?;
            return if alike(&before, &after) { Ok(changed) } else { Err(Refused::Unsure) };
        }
    };
    let after = read(&changed).map_err(|_| Refused::Unsure)?;
    if Some(after) == wanted { Ok(changed) } else { Err(Refused::Unsure) }
}

/// A text with templates, such as a prompt in a file of its own, after a step was renamed.
pub use rename::text as rename_in_text;

fn read(text: &str) -> Result<Value, Refused> {
    let document = source::parse("source", text.as_bytes());
    document
        .map(|node| node.to_json())
        .map_err(|fault| Refused::Unread { line: fault.line, message: fault.message.clone() })
}

/// Whether two documents differ in texts alone.
fn alike(before: &Value, after: &Value) -> bool {
    match (before, after) {
        (Value::String(_), Value::String(_)) => true,
        (Value::Array(before), Value::Array(after)) => {
            before.len() == after.len() && before.iter().zip(after).all(|(b, a)| alike(b, a))
        }
        (Value::Object(before), Value::Object(after)) => {
            before.len() == after.len()
                && before.iter().all(|(name, b)| after.get(name).is_some_and(|a| alike(b, a)))
        }
        (before, after) => before == after,
    }
}

/// What an edit should make of a document.
mod expected {
    use serde_json::Value;

    use super::split;

    pub(super) fn set(mut document: Value, pointer: &str, value: &Value) -> Option<Value> {
        if let Some(place) = document.pointer_mut(pointer) {
            *place = value.clone();
            return Some(document);
        }
        let (parent, name) = split(pointer)?;
        let members = document.pointer_mut(parent)?.as_object_mut()?;
        members.insert(name, value.clone());
        Some(document)
    }

    pub(super) fn insert(
        mut document: Value,
        pointer: &str,
        place: usize,
        value: &Value,
    ) -> Option<Value> {
        let items = document.pointer_mut(pointer)?.as_array_mut()?;
        items.insert(place.min(items.len()), value.clone());
        Some(document)
    }

    pub(super) fn remove(mut document: Value, pointer: &str) -> Option<Value> {
        let (parent, name) = split(pointer)?;
        match document.pointer_mut(parent)? {
            Value::Object(members) => drop(members.remove(&name)?),
            Value::Array(items) => {
                let place = name.parse::<usize>().ok().filter(|place| *place < items.len())?;
                items.remove(place);
            }
            _ => return None,
        }
        Some(document)
    }
}

/// A pointer as that of the parent, and the name in it.
fn split(pointer: &str) -> Option<(&str, String)> {
    let (parent, name) = pointer.rsplit_once('/')?;
    Some((parent, name.replace("~1", "/").replace("~0", "~")))
}

#[cfg(test)]
mod tests;
