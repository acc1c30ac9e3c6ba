//! Evaluates expressions, without copying what they look at.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::code::{Code, Part, Test};
use super::filters::{self, Input};
use super::meter::Meter;
use super::operators::{binary, is_true, negated};
use super::prepare::Scope;
use super::text::{kind, shown};
use super::{Error, ErrorKind};

/// A value, or nothing where something that is looked at is not there.
type Found<'a> = Option<Cow<'a, Value>>;

/// One evaluation.
#[derive(Clone, Copy)]
pub(super) struct Evaluation<'a> {
    pub(super) scope: &'a dyn Scope,
    pub(super) meter: &'a Meter,
}

impl<'a> Evaluation<'a> {
    /// The value of an expression, which must have one.
    pub(super) fn value(self, code: &'a Code) -> Result<Cow<'a, Value>, Error> {
        self.find(code)?.ok_or_else(|| self.missing(code))
    }

    fn own(self, code: &'a Code) -> Result<Value, Error> {
        match self.value(code)? {
            Cow::Owned(value) => Ok(value),
            Cow::Borrowed(value) => self.meter.copy(value),
        }
    }

    fn find(self, code: &'a Code) -> Result<Found<'a>, Error> {
        let value = match code {
            Code::Value(value) => return Ok(Some(Cow::Borrowed(value))),
            Code::Path { root, parts } => return self.path(root, parts),
            Code::Of(of, parts) => return self.walk(self.find(of)?, parts),
            Code::Default(both) => {
                // Both are evaluated, so that a mistake in the other shows before it is needed.
                let (of, other) = (self.find(&both.0)?, self.find(&both.1)?);
                return Ok(of.or(other));
            }
            Code::And(both) | Code::Or(both) => {
                let left = self.value(&both.0)?;
                let wanted = matches!(code, Code::And(_));
                return if is_true(&left) == wanted { self.find(&both.1) } else { Ok(Some(left)) };
            }
            Code::Choice(parts) => {
                let [then, when, otherwise] = &**parts;
                let when = is_true(&*self.value(when)?);
                return self.find(if when { then } else { otherwise });
            }
            Code::List(items) => {
                self.meter.items(items.len())?;
                Value::Array(items.iter().map(|item| self.own(item)).collect::<Result<_, _>>()?)
            }
            Code::Map(entries) => self.map(entries)?,
            Code::Not(of) => Value::Bool(!is_true(&*self.value(of)?)),
            Code::Negated(of) => negated(&*self.value(of)?)?,
            Code::Binary(op, both) => {
                binary(*op, &*self.value(&both.0)?, &*self.value(&both.1)?, self.meter)?
            }
            Code::Test { of, test, negated } => Value::Bool(self.test(of, *test)? != *negated),
            Code::Matches(of, pattern) => {
                let value = self.value(of)?;
                filters::matches(&value, pattern)?;
                return Ok(Some(value));
            }
            Code::Filter(of, filter, arguments) => {
                let value = self.value(of)?;
                let mut given = Vec::with_capacity(arguments.len());
                for argument in arguments {
                    given.push(argument.as_ref().map(|code| self.value(code)).transpose()?);
                }
                let input = Input { value: &value, arguments: &given, meter: self.meter };
                return Ok(filter.run(&input)?.map(Cow::Owned));
            }
        };
        Ok(Some(Cow::Owned(value)))
    }

    fn map(self, entries: &'a [(Code, Code)]) -> Result<Value, Error> {
        let mut map = Map::new();
        for (key, value) in entries {
            let key = match self.own(key)? {
                Value::String(key) => key,
                other => {
                    let message = format!("a key is a text, not {}", kind(&other));
                    return Err(Error::kind(message));
                }
            };
            map.insert(key, self.own(value)?);
        }
        Ok(Value::Object(map))
    }

    fn test(self, of: &'a Code, test: Test) -> Result<bool, Error> {
        match test {
            Test::Defined => Ok(self.find(of)?.is_some()),
            Test::Undefined => Ok(self.find(of)?.is_none()),
            test => Ok(test.holds(&*self.value(of)?)),
        }
    }

    fn path(self, root: &'a str, parts: &'a [Part]) -> Result<Found<'a>, Error> {
        match parts.split_first() {
            Some((Part::Name(name), rest)) => self.walk(self.scope.member(root, name), rest),
            _ => self.walk(self.scope.root(root), parts),
        }
    }

    fn walk(self, from: Found<'a>, parts: &'a [Part]) -> Result<Found<'a>, Error> {
        let mut value = from;
        for part in parts {
            let Some(of) = value else { return Ok(None) };
            value = match part {
                Part::Name(name) => member(of, name),
                Part::Item(index) => item(of, &*self.value(index)?)?,
            };
        }
        Ok(value)
    }

    /// Says what of an expression is not there.
    fn missing(self, code: &Code) -> Error {
        let message = match code {
            Code::Path { root, parts } => self.gap(root, parts),
            Code::Filter(_, filter, _) => {
                format!("`{}` finds nothing in what is empty", filter.name)
            }
            Code::Of(_, parts) => {
                let path: String = parts.iter().map(ToString::to_string).collect();
                format!("there is no `{}` in the value", path.trim_start_matches('.'))
            }
            Code::And(both) | Code::Or(both) | Code::Default(both) => {
                return self.missing(&both.1);
            }
            Code::Choice(parts) => {
                let [then, when, otherwise] = &**parts;
                let when = self.value(when).is_ok_and(|when| is_true(&when));
                return self.missing(if when { then } else { otherwise });
            }
            _ => "a value is not there".to_owned(),
        };
        Error::new(ErrorKind::Undefined, message)
    }

    /// Where a path ends before its end.
    fn gap(self, root: &str, parts: &[Part]) -> String {
        let mut path = root.to_owned();
        let mut at = match parts.first() {
            Some(Part::Name(_)) => None,
            _ => match self.scope.root(root) {
                Some(value) => Some(value),
                None => return format!("there is nothing that `{root}` stands for"),
            },
        };
        for part in parts {
            let next = match (part, at.take()) {
                (Part::Name(name), None) => self.scope.member(root, name),
                (Part::Name(name), Some(of)) => match of.get(name) {
                    Some(value) => Some(Cow::Owned(value.clone())),
                    None => return lacks(&path, &of, &part.to_string()),
                },
                (Part::Item(_), of) => {
                    let of = of.unwrap_or_default();
                    return lacks(&path, &of, &part.to_string());
                }
            };
            let longer = format!("{path}{part}");
            let Some(next) = next else { return format!("there is no `{longer}`") };
            (path, at) = (longer, Some(next));
        }
        format!("there is no `{path}`")
    }
}

/// Says that something has no such part, and what it has instead.
fn lacks(path: &str, of: &Value, part: &str) -> String {
    const NAMED_MAX: usize = 8;
    let has = match of {
        Value::Object(members) if members.is_empty() => "is empty".to_owned(),
        Value::Object(members) => {
            let names: Vec<String> =
                members.keys().take(NAMED_MAX).map(|name| format!("`{name}`")).collect();
            let more = if members.len() > NAMED_MAX { ", …" } else { "" };
            format!("has {}{more}", names.join(", "))
        }
        Value::Array(items) => format!("is a list of {}", items.len()),
        other => format!("is {}", shown(other)),
    };
    format!("there is no `{path}{part}`: `{path}` {has}")
}

fn member<'a>(of: Cow<'a, Value>, name: &str) -> Found<'a> {
    match of {
        Cow::Borrowed(value) => value.get(name).map(Cow::Borrowed),
        Cow::Owned(Value::Object(mut members)) => members.remove(name).map(Cow::Owned),
        Cow::Owned(_) => None,
    }
}

fn item<'a>(of: Cow<'a, Value>, index: &Value) -> Result<Found<'a>, Error> {
    let place = match (&*of, index) {
        (Value::Object(_), Value::String(name)) => return Ok(member(of, name)),
        (Value::Array(items), Value::Number(number)) => place(items.len(), number.as_i64()),
        (Value::Null, Value::Number(_) | Value::String(_)) => return Ok(None),
        (of, index) => {
            let message = format!("{} has no items by {}", kind(of), kind(index));
            return Err(Error::kind(message));
        }
    };
    Ok(place.and_then(|place| match of {
        Cow::Borrowed(value) => value.get(place).map(Cow::Borrowed),
        Cow::Owned(Value::Array(mut items)) => {
            (place < items.len()).then(|| Cow::Owned(items.swap_remove(place)))
        }
        Cow::Owned(_) => None,
    }))
}

/// The place of an item; those below zero count from the end.
fn place(count: usize, index: Option<i64>) -> Option<usize> {
    let index = index?;
    let back = usize::try_from(index.unsigned_abs()).ok()?;
    if index < 0 { count.checked_sub(back) } else { Some(back) }
}
