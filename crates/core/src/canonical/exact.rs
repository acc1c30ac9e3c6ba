//! Values before they are recorded: whether they can be, and what they are from then on.

use serde_json::{Number, Value};

use super::write::{is_inexact, number as written};
use super::{Error, INTEGER_MAX};

/// The value as it is read back once it is recorded.
///
/// JSON has one kind of number, so a double that is written like an integer comes back as
/// one: `600.0` is `600`, and `-0.0` is `0`. Whoever goes on with the value as it came would
/// not do the same again after reading it back.
#[must_use]
pub fn recorded(mut value: Value) -> Value {
    settle(&mut value);
    value
}

fn settle(value: &mut Value) {
    match value {
        Value::Number(number) => {
            if let Some(integer) = integer(number) {
                *number = integer;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(settle),
        Value::Object(members) => members.values_mut().for_each(settle),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

/// The integer that a double is written as.
pub(super) fn integer(number: &Number) -> Option<Number> {
    let double = number.as_f64().filter(|_| number.is_f64())?;
    let is_integer = double.fract() == 0.0 && !is_inexact(double);
    is_integer.then(|| written(double).parse::<i64>().ok()).flatten().map(Number::from)
}

/// Whether a value can be recorded, nested no deeper than `depth_max`.
pub fn check(value: &Value, depth_max: usize) -> Result<(), Error> {
    let inner = || depth_max.checked_sub(1).ok_or(Error::TooDeep);
    match value {
        Value::Number(number) if is_beyond(number) => Err(Error::IntegerTooLarge(digits(number))),
        Value::Array(items) => {
            let depth = inner()?;
            items.iter().try_for_each(|item| check(item, depth))
        }
        Value::Object(members) => {
            let depth = inner()?;
            members.values().try_for_each(|member| check(member, depth))
        }
        _ => Ok(()),
    }
}

/// The value with every integer that not all readers keep exact as a text.
///
/// Ids of this size are common in what other programs answer, and are not reckoned with.
#[must_use]
pub fn exact(value: Value) -> Value {
    match value {
        Value::Number(number) if is_beyond(&number) => Value::String(digits(&number)),
        Value::Array(items) => items.into_iter().map(exact).collect(),
        Value::Object(members) => {
            members.into_iter().map(|(name, member)| (name, exact(member))).collect()
        }
        other => other,
    }
}

fn is_beyond(number: &Number) -> bool {
    let magnitude = number.as_u64().or_else(|| Some(number.as_i64()?.unsigned_abs()));
    match magnitude {
        Some(magnitude) => magnitude > INTEGER_MAX,
        None => number.as_f64().is_some_and(is_inexact),
    }
}

/// An integer without a fraction, also when it came as a double.
fn digits(number: &Number) -> String {
    let double = number.as_f64().filter(|_| number.is_f64());
    double.map_or_else(|| number.to_string(), written)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::canonical::to_vec;

    #[test]
    fn what_passes_the_check_can_be_written() {
        let deep = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!([inner]));
        let values = [
            json!({"id": 9_007_199_254_740_992_u64, "list": [-9_007_199_254_740_992_i64, 1.5e300]}),
            json!([9_007_199_254_740_993_u64]),
            json!({"a": {"b": i64::MIN}}),
            json!(u64::MAX),
            json!([1e20, -1e16]),
            json!([1e21, 1.5, -0.0, 600.0]),
            deep(64),
            deep(65),
        ];
        for value in values {
            assert_eq!(check(&value, 64), to_vec(&value).map(drop), "{value}");
            let exact = exact(value);
            assert!(!matches!(check(&exact, 64), Err(Error::IntegerTooLarge(_))), "{exact}");
        }
        let ids = exact(json!({"id": 9_007_199_254_740_993_u64, "n": 7}));
        assert_eq!(ids, json!({"id": "9007199254740993", "n": 7}));
    }
    #[test]
    fn a_double_that_is_written_like_an_integer_is_one() {
        let came = json!({"a": [600.0, -0.0, -7.0, 0.5, 1e15, 1e21, 9_007_199_254_740_992.0]});
        let kept = json!({"a": [600, 0, -7, 0.5, 1_000_000_000_000_000_i64, 1e21, 9_007_199_254_740_992_i64]});
        assert_eq!(recorded(came), kept);
    }
}
