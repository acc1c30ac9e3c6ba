//! What the signs between values do. The rules are those of Jinja, except that values of
//! types that do not fit are refused where Jinja finds some order or number for them.

use std::cmp::Ordering;

use serde_json::{Number, Value};

use super::meter::Meter;
use super::text::kind;
use super::{Error, ErrorKind, Op};

/// Whether a value counts as true: not `null`, `false`, zero or empty.
pub(super) fn is_true(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(truth) => *truth,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
    }
}

/// A number that can be calculated with.
#[derive(Clone, Copy)]
pub(super) enum Num {
    Whole(i128),
    Float(f64),
}

impl Num {
    pub(super) fn of(number: &Number) -> Self {
        let whole = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
        whole.map_or_else(|| Self::Float(number.as_f64().unwrap_or_default()), Self::Whole)
    }

    #[expect(clippy::cast_precision_loss, reason = "whole numbers are rounded beside others")]
    pub(super) const fn float(self) -> f64 {
        match self {
            Self::Whole(whole) => whole as f64,
            Self::Float(float) => float,
        }
    }

    /// The number as a value, if it is not too large for one.
    pub(super) fn value(self) -> Result<Value, Error> {
        let number = match self {
            Self::Whole(whole) => match (i64::try_from(whole), u64::try_from(whole)) {
                (Ok(whole), _) => Some(Number::from(whole)),
                (_, Ok(whole)) => Some(Number::from(whole)),
                _ => None,
            },
            Self::Float(float) => Number::from_f64(float),
        };
        number.map(Value::Number).ok_or_else(overflow)
    }
}

fn overflow() -> Error {
    Error::new(ErrorKind::Overflow, "the result is larger than a number can be")
}

/// Two values with a sign between that is neither `and` nor `or`.
pub(super) fn binary(op: Op, left: &Value, right: &Value, meter: &Meter) -> Result<Value, Error> {
    match op {
        Op::Equal => Ok(Value::Bool(equal(left, right))),
        Op::Unequal => Ok(Value::Bool(!equal(left, right))),
        Op::Less => order(op, left, right).map(|order| Value::Bool(order.is_lt())),
        Op::LessEqual => order(op, left, right).map(|order| Value::Bool(order.is_le())),
        Op::More => order(op, left, right).map(|order| Value::Bool(order.is_gt())),
        Op::MoreEqual => order(op, left, right).map(|order| Value::Bool(order.is_ge())),
        Op::In => contains(right, left).map(Value::Bool),
        Op::NotIn => contains(right, left).map(|found| Value::Bool(!found)),
        Op::Joined => {
            let (left, right) = (meter.text(left)?, meter.text(right)?);
            Ok(Value::String([left, right].concat()))
        }
        Op::Plus => plus(left, right, meter),
        _ => calculate(op, left, right),
    }
}

fn plus(left: &Value, right: &Value, meter: &Meter) -> Result<Value, Error> {
    match (left, right) {
        (Value::String(left), Value::String(right)) => {
            meter.take(left.len() + right.len())?;
            Ok(Value::String([left.as_str(), right].concat()))
        }
        (Value::Array(left), Value::Array(right)) => {
            let mut items = Vec::new();
            for item in left.iter().chain(right) {
                meter.items(1)?;
                items.push(meter.copy(item)?);
            }
            Ok(Value::Array(items))
        }
        _ => calculate(Op::Plus, left, right),
    }
}

fn calculate(op: Op, left: &Value, right: &Value) -> Result<Value, Error> {
    let (Value::Number(left), Value::Number(right)) = (left, right) else {
        let (left, right) = (kind(left), kind(right));
        return Err(Error::kind(format!("`{}` does not take {left} and {right}", op.sign())));
    };
    let (left, right) = (Num::of(left), Num::of(right));
    let divides = matches!(op, Op::Divided | Op::DividedWhole | Op::Remainder);
    if divides && right.float() == 0.0 {
        return Err(Error::new(ErrorKind::DivisionByZero, "a number is divided by zero"));
    }
    match (op, left, right) {
        (Op::Divided, left, right) => Num::Float(left.float() / right.float()),
        (_, Num::Whole(left), Num::Whole(right)) => Num::Whole(whole(op, left, right)?),
        (_, left, right) => Num::Float(float(op, left.float(), right.float())),
    }
    .value()
}

fn whole(op: Op, left: i128, right: i128) -> Result<i128, Error> {
    // Both are of 64 bits, so only the product can be too large for 128.
    Ok(match op {
        Op::Plus => left + right,
        Op::Minus => left - right,
        Op::Times => left.checked_mul(right).ok_or_else(overflow)?,
        Op::DividedWhole => {
            let exact = left % right == 0 || (left < 0) == (right < 0);
            left / right - i128::from(!exact)
        }
        _ => {
            let rest = left % right;
            if rest != 0 && (rest < 0) != (right < 0) { rest + right } else { rest }
        }
    })
}

fn float(op: Op, left: f64, right: f64) -> f64 {
    match op {
        Op::Plus => left + right,
        Op::Minus => left - right,
        Op::Times => left * right,
        Op::DividedWhole => divided(left, right).0,
        _ => divided(left, right).1,
    }
}

/// What a division gives and leaves, when the one is whole and the other has the sign of
/// the divisor.
fn divided(left: f64, right: f64) -> (f64, f64) {
    let rest = left % right;
    let crosses = rest != 0.0 && (rest < 0.0) != (right < 0.0);
    let times = (left - rest) / right - if crosses { 1.0 } else { 0.0 };
    let rest = match () {
        () if crosses => rest + right,
        () if rest == 0.0 => 0.0_f64.copysign(right),
        () => rest,
    };
    // What is a hair below a whole number was meant to be it.
    let floor = times.floor();
    let whole = if times - floor > 0.5 { floor + 1.0 } else { floor };
    (if times == 0.0 { 0.0_f64.copysign(left / right) } else { whole }, rest)
}

/// The number with its sign turned.
pub(super) fn negated(value: &Value) -> Result<Value, Error> {
    match value {
        Value::Number(number) => match Num::of(number) {
            Num::Whole(whole) => Num::Whole(-whole).value(),
            Num::Float(float) => Num::Float(-float).value(),
        },
        other => Err(Error::kind(format!("`-` does not take {}", kind(other)))),
    }
}

/// Whether two values are the same. `1`, `1.0` and `true` are.
pub(super) fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Null, Value::Null) => true,
        (Value::String(left), Value::String(right)) => left == right,
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len()
                && left.iter().zip(right).all(|(left, right)| equal(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            let same = |(name, value): (&String, &Value)| {
                right.get(name).is_some_and(|other| equal(value, other))
            };
            left.len() == right.len() && left.iter().all(same)
        }
        _ => match (countable(left), countable(right)) {
            (Some(left), Some(right)) => compare(left, right).is_eq(),
            _ => false,
        },
    }
}

fn countable(value: &Value) -> Option<Num> {
    match value {
        Value::Number(number) => Some(Num::of(number)),
        Value::Bool(truth) => Some(Num::Whole(i128::from(*truth))),
        _ => None,
    }
}

/// Which of two numbers is larger. No digit is lost on the way.
pub(super) fn compare(left: Num, right: Num) -> Ordering {
    match (left, right) {
        (Num::Whole(left), Num::Whole(right)) => left.cmp(&right),
        (Num::Float(left), Num::Float(right)) => {
            left.partial_cmp(&right).unwrap_or(Ordering::Equal)
        }
        (Num::Whole(whole), Num::Float(float)) => beside(whole, float),
        (Num::Float(float), Num::Whole(whole)) => beside(whole, float).reverse(),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a number this large stays at the limit")]
fn beside(whole: i128, float: f64) -> Ordering {
    let floor = float.floor();
    whole.cmp(&(floor as i128)).then(if float > floor { Ordering::Less } else { Ordering::Equal })
}

fn order(op: Op, left: &Value, right: &Value) -> Result<Ordering, Error> {
    ordered(left, right).ok_or_else(|| {
        let (left, right) = (kind(left), kind(right));
        Error::kind(format!("`{}` does not compare {left} with {right}", op.sign()))
    })
}

/// Which of two values comes first, if they can be compared: numbers, or texts.
pub(super) fn ordered(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => Some(compare(Num::of(left), Num::of(right))),
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        _ => None,
    }
}

fn contains(container: &Value, value: &Value) -> Result<bool, Error> {
    match (container, value) {
        (Value::String(text), Value::String(part)) => Ok(text.contains(part.as_str())),
        (Value::Array(items), value) => Ok(items.iter().any(|item| equal(item, value))),
        (Value::Object(members), Value::String(name)) => Ok(members.contains_key(name)),
        _ => {
            let (container, value) = (kind(container), kind(value));
            Err(Error::kind(format!("`in` does not look for {value} in {container}")))
        }
    }
}
