//! Filters of lists and objects.

use std::cmp::Ordering;
use std::collections::HashSet;

use serde_json::Value;

use super::Input;
use crate::expression::operators::{Num, is_true, ordered};
use crate::expression::text::kind;
use crate::expression::{Error, ErrorKind};

pub(super) fn first(input: &Input<'_>) -> Result<Option<Value>, Error> {
    if let Value::String(text) = input.value {
        return Ok(text.chars().next().map(|c| Value::from(c.to_string())));
    }
    input.list("first")?.first().map(|item| input.meter.copy(item)).transpose()
}

pub(super) fn last(input: &Input<'_>) -> Result<Option<Value>, Error> {
    if let Value::String(text) = input.value {
        return Ok(text.chars().next_back().map(|c| Value::from(c.to_string())));
    }
    input.list("last")?.last().map(|item| input.meter.copy(item)).transpose()
}

/// An object as pairs of a name and a value.
pub(super) fn items(input: &Input<'_>) -> Result<Option<Value>, Error> {
    let Value::Object(members) = input.value else { return input.refuse("items", "an object") };
    let mut pairs = Vec::new();
    for (name, value) in members {
        input.meter.items(2)?;
        input.meter.take(name.len())?;
        pairs.push(Value::Array(vec![Value::from(name.as_str()), input.meter.copy(value)?]));
    }
    Ok(Some(Value::Array(pairs)))
}

pub(super) fn join(input: &Input<'_>) -> Result<Option<Value>, Error> {
    let items = input.list("join")?;
    let between = input.text_argument("join", 0)?.unwrap_or_default();
    let mut whole = String::new();
    for (place, item) in items.iter().enumerate() {
        if place > 0 {
            input.meter.take(between.len())?;
            whole.push_str(between);
        }
        whole.push_str(&input.meter.text(item)?);
    }
    Ok(Some(Value::String(whole)))
}

pub(super) fn keys(input: &Input<'_>) -> Result<Option<Value>, Error> {
    let Value::Object(members) = input.value else { return input.refuse("keys", "an object") };
    names(input, members)
}

fn names(
    input: &Input<'_>,
    members: &serde_json::Map<String, Value>,
) -> Result<Option<Value>, Error> {
    let mut names = Vec::new();
    for name in members.keys() {
        input.meter.items(1)?;
        input.meter.take(name.len())?;
        names.push(Value::from(name.as_str()));
    }
    Ok(Some(Value::Array(names)))
}

pub(super) fn values(input: &Input<'_>) -> Result<Option<Value>, Error> {
    let Value::Object(members) = input.value else { return input.refuse("values", "an object") };
    copies(input, members.values())
}

pub(super) fn length(input: &Input<'_>) -> Result<Option<Value>, Error> {
    let count = match input.value {
        Value::String(text) => text.chars().count(),
        Value::Array(items) => items.len(),
        Value::Object(members) => members.len(),
        _ => return input.refuse("length", "a text, a list or an object"),
    };
    Ok(Some(Value::from(count)))
}

/// A list as it is, the names of an object, or the characters of a text.
pub(super) fn list(input: &Input<'_>) -> Result<Option<Value>, Error> {
    match input.value {
        Value::Array(_) => input.meter.copy(input.value).map(Some),
        Value::Object(members) => names(input, members),
        Value::String(text) => {
            input.meter.items(text.len())?;
            Ok(Some(text.chars().map(|c| Value::from(c.to_string())).collect()))
        }
        _ => input.refuse("list", "a list, an object or a text"),
    }
}

/// One thing of each item: `map(attribute="author.name")`.
pub(super) fn map(input: &Input<'_>) -> Result<Option<Value>, Error> {
    let items = input.list("map")?;
    let Some(path) = input.text_argument("map", 0)? else {
        return Err(Error::kind("`map` takes the name of an attribute"));
    };
    let mut values = Vec::new();
    for item in items {
        let value = match (at(item, path), input.argument(1)) {
            (Some(value), _) | (None, Some(value)) => value,
            (None, None) => {
                let message = format!("an item has no `{path}`; `map` takes a `default` for it");
                return Err(Error::new(ErrorKind::Undefined, message));
            }
        };
        input.meter.items(1)?;
        values.push(input.meter.copy(value)?);
    }
    Ok(Some(Value::Array(values)))
}

/// What stands at a path of names and places with dots between.
fn at<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.').try_fold(value, |value, name| match value {
        Value::Array(items) => items.get(name.parse::<usize>().ok()?),
        value => value.get(name),
    })
}

pub(super) fn max(input: &Input<'_>) -> Result<Option<Value>, Error> {
    best(input, "max", Ordering::Greater)
}

pub(super) fn min(input: &Input<'_>) -> Result<Option<Value>, Error> {
    best(input, "min", Ordering::Less)
}

fn best(input: &Input<'_>, filter: &str, wanted: Ordering) -> Result<Option<Value>, Error> {
    let mut items = input.list(filter)?.iter();
    let Some(mut best) = items.next() else { return Ok(None) };
    compared(filter, best, best)?;
    for item in items {
        if compared(filter, item, best)? == wanted {
            best = item;
        }
    }
    input.meter.copy(best).map(Some)
}

fn compared(filter: &str, left: &Value, right: &Value) -> Result<Ordering, Error> {
    ordered(left, right).ok_or_else(|| {
        let (left, right) = (kind(left), kind(right));
        Error::kind(format!("`{filter}` takes numbers or texts, not {left} and {right}"))
    })
}

pub(super) fn reverse(input: &Input<'_>) -> Result<Option<Value>, Error> {
    match input.value {
        Value::String(text) => input.made(text.chars().rev().collect()),
        Value::Array(items) => copies(input, items.iter().rev()),
        _ => input.refuse("reverse", "a list or a text"),
    }
}

pub(super) fn sort(input: &Input<'_>) -> Result<Option<Value>, Error> {
    let items = input.list("sort")?;
    let reverse = input.argument(0).is_some_and(is_true);
    let path = input.text_argument("sort", 1)?;
    let mut keyed: Vec<(&Value, &Value)> = Vec::with_capacity(items.len());
    for item in items {
        let key = match path {
            None => item,
            Some(path) => at(item, path).ok_or_else(|| {
                Error::new(ErrorKind::Undefined, format!("an item has no `{path}`"))
            })?,
        };
        // All are held to the first, so that sorting cannot fail on the way.
        let first = keyed.first().map_or(key, |(first, _)| first);
        compared("sort", first, key)?;
        keyed.push((key, item));
    }
    let order = |(one, _): &(&Value, &Value), (other, _): &(&Value, &Value)| {
        let order = ordered(one, other).unwrap_or(Ordering::Equal);
        if reverse { order.reverse() } else { order }
    };
    keyed.sort_by(order);
    copies(input, keyed.into_iter().map(|(_, item)| item))
}

pub(super) fn sum(input: &Input<'_>) -> Result<Option<Value>, Error> {
    let mut total = Num::Whole(0);
    for item in input.list("sum")? {
        let Value::Number(number) = item else {
            return Err(Error::kind(format!("`sum` takes numbers, not {}", kind(item))));
        };
        total = match (total, Num::of(number)) {
            // A list has fewer items than would take a sum of 64-bit numbers out of 128.
            (Num::Whole(total), Num::Whole(number)) => Num::Whole(total + number),
            (total, number) => Num::Float(total.float() + number.float()),
        };
    }
    total.value().map(Some)
}

/// The items without those that stand before already.
pub(super) fn unique(input: &Input<'_>) -> Result<Option<Value>, Error> {
    let mut seen = HashSet::new();
    let mut kept = Vec::new();
    for item in input.list("unique")? {
        // A text is told from a number that is written alike.
        let key = input.meter.text(item)?.into_owned();
        if seen.insert((item.is_string(), key)) {
            kept.push(item);
        }
    }
    copies(input, kept.into_iter())
}

fn copies<'v>(
    input: &Input<'_>,
    items: impl Iterator<Item = &'v Value>,
) -> Result<Option<Value>, Error> {
    let mut copies = Vec::new();
    for item in items {
        input.meter.items(1)?;
        copies.push(input.meter.copy(item)?);
    }
    Ok(Some(Value::Array(copies)))
}
