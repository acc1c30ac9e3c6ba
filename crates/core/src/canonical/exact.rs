//! Values from outside, before they are recorded.

use serde_json::{Number, Value};

use super::{Error, INTEGER_MAX};

/// Whether a value can be recorded, nested no deeper than `depth_max`.
pub fn check(value: &Value, depth_max: usize) -> Result<(), Error> {
    let inner = || depth_max.checked_sub(1).ok_or(Error::TooDeep);
    match value {
        Value::Number(number) if is_beyond(number) => {
            Err(Error::IntegerTooLarge(number.to_string()))
        }
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
        Value::Number(number) if is_beyond(&number) => Value::String(number.to_string()),
        Value::Array(items) => items.into_iter().map(exact).collect(),
        Value::Object(members) => {
            members.into_iter().map(|(name, member)| (name, exact(member))).collect()
        }
        other => other,
    }
}

fn is_beyond(number: &Number) -> bool {
    let magnitude = number.as_u64().or_else(|| Some(number.as_i64()?.unsigned_abs()));
    magnitude.is_some_and(|magnitude| magnitude > INTEGER_MAX)
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
}
