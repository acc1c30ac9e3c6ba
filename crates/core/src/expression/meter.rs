//! How much an evaluation may make, so that none takes the machine with it.

use std::borrow::Cow;
use std::cell::Cell;

use serde_json::Value;

use super::{Error, ErrorKind, text};

/// How many bytes the value of a step's settings may have.
pub(super) const RESULT_MAX: usize = 1 << 20;
/// How many bytes an evaluation may make on the way.
const WORK_MAX: usize = 8 << 20;
/// How deep a value may nest.
const DEPTH_MAX: usize = 100;
/// What an item of a list costs beside its content.
const ITEM: usize = 16;

/// What an evaluation has left.
pub(super) struct Meter {
    left: Cell<usize>,
}

impl Meter {
    pub(super) const fn new() -> Self {
        Self { left: Cell::new(WORK_MAX) }
    }

    /// Takes bytes for something that is about to be made.
    pub(super) fn take(&self, bytes: usize) -> Result<(), Error> {
        let left = self.left.get().checked_sub(bytes).ok_or_else(|| {
            let message = format!("evaluating it makes more than {WORK_MAX} bytes");
            Error::new(ErrorKind::TooLarge, message)
        })?;
        self.left.set(left);
        Ok(())
    }

    /// A copy of a value.
    pub(super) fn copy(&self, value: &Value) -> Result<Value, Error> {
        self.take(size(value, WORK_MAX)?)?;
        Ok(value.clone())
    }

    /// A value as it stands in a text.
    pub(super) fn text<'v>(&self, value: &'v Value) -> Result<Cow<'v, str>, Error> {
        // A large value is refused before it is written out.
        self.take(size(value, WORK_MAX)?)?;
        Ok(text(value))
    }

    /// Takes the bytes of a list of so many items.
    pub(super) fn items(&self, count: usize) -> Result<(), Error> {
        self.take(count.saturating_mul(ITEM))
    }
}

/// The bytes of a value, which is no larger than this.
pub(super) fn size(value: &Value, max: usize) -> Result<usize, Error> {
    let mut left = max;
    if measure(value, DEPTH_MAX, &mut left)? {
        return Ok(max - left);
    }
    Err(Error::new(ErrorKind::TooLarge, format!("the value has more than {max} bytes")))
}

fn measure(value: &Value, depth: usize, left: &mut usize) -> Result<bool, Error> {
    let Some(depth) = depth.checked_sub(1) else {
        let message = format!("the value nests deeper than {DEPTH_MAX} levels");
        return Err(Error::new(ErrorKind::TooLarge, message));
    };
    let mut take = |bytes: usize| match left.checked_sub(bytes) {
        Some(rest) => {
            *left = rest;
            true
        }
        None => false,
    };
    Ok(match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => take(ITEM / 2),
        Value::String(text) => take(text.len() + 2),
        Value::Array(items) => {
            if !take(items.len() * 2 + 2) {
                return Ok(false);
            }
            for item in items {
                if !measure(item, depth, left)? {
                    return Ok(false);
                }
            }
            true
        }
        Value::Object(members) => {
            for (name, member) in members {
                let named = match left.checked_sub(name.len() + 4) {
                    Some(rest) => {
                        *left = rest;
                        true
                    }
                    None => false,
                };
                if !named || !measure(member, depth, left)? {
                    return Ok(false);
                }
            }
            true
        }
    })
}
