//! Filters of numbers.

use serde_json::Value;

use super::Input;
use crate::expression::operators::Num;
use crate::expression::text::shown;
use crate::expression::{Error, ErrorKind};

pub(super) fn abs(input: &Input<'_>) -> Result<Option<Value>, Error> {
    let Value::Number(number) = input.value else { return input.refuse("abs", "a number") };
    let number = match Num::of(number) {
        Num::Whole(whole) => Num::Whole(whole.abs()),
        Num::Float(float) => Num::Float(float.abs()),
    };
    number.value().map(Some)
}

pub(super) fn int(input: &Input<'_>) -> Result<Option<Value>, Error> {
    let number = match input.value {
        Value::Bool(truth) => Num::Whole(i128::from(*truth)),
        Value::Number(number) => match Num::of(number) {
            Num::Float(float) => Num::Whole(cut(float)),
            whole @ Num::Whole(_) => whole,
        },
        Value::String(text) => {
            let digits = text.trim();
            Num::Whole(digits.parse().map_err(|_| refused("int", "a whole number", input))?)
        }
        _ => return input.refuse("int", "a number or a text"),
    };
    number.value().map(Some)
}

#[expect(clippy::cast_possible_truncation, reason = "cutting is what is asked for")]
const fn cut(float: f64) -> i128 {
    float as i128
}

pub(super) fn float(input: &Input<'_>) -> Result<Option<Value>, Error> {
    let number = match input.value {
        Value::Bool(truth) => f64::from(*truth),
        Value::Number(number) => Num::of(number).float(),
        Value::String(text) => {
            let number = text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
            number.ok_or_else(|| refused("float", "a number", input))?
        }
        _ => return input.refuse("float", "a number or a text"),
    };
    Num::Float(number).value().map(Some)
}

pub(super) fn round(input: &Input<'_>) -> Result<Option<Value>, Error> {
    let Value::Number(number) = input.value else { return input.refuse("round", "a number") };
    let digits = match input.argument(0) {
        None => 0,
        Some(digits) => {
            let digits = digits.as_i64().and_then(|digits| i32::try_from(digits).ok());
            digits
                .filter(|digits| (0..=15).contains(digits))
                .ok_or_else(|| Error::kind("`round` takes 0 to 15 digits"))?
        }
    };
    match Num::of(number) {
        whole @ Num::Whole(_) => whole.value().map(Some),
        Num::Float(float) => {
            let shift = 10_f64.powi(digits);
            Num::Float((float * shift).round() / shift).value().map(Some)
        }
    }
}

fn refused(filter: &str, wanted: &str, input: &Input<'_>) -> Error {
    let message = format!("`{filter}` takes {wanted}, and {} is none", shown(input.value));
    Error::new(ErrorKind::Invalid, message)
}
