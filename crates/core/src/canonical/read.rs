//! Reading JSON without guessing: no duplicate keys, no inexact integers, bounded depth.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};

use super::exact::{integer, recorded};
use super::write::{is_inexact, number};
use super::{DEPTH_MAX, Error, INTEGER_MAX, ROOM_MAX, VALUES_MAX};

/// Reads one JSON value, strictly, into `T`.
///
/// The text is checked as a whole first, since a typed reader sees only the members
/// that it knows.
pub fn parse<T: DeserializeOwned>(text: &[u8]) -> Result<T, Error> {
    if let Some(integer) = huge_integer(text).and_then(|huge| text.get(huge)) {
        return Err(Error::IntegerTooLarge(String::from_utf8_lossy(integer).into_owned()));
    }
    if values(text) > VALUES_MAX {
        return Err(Error::TooMany);
    }
    let StrictValue(value) = serde_json::from_slice(text).map_err(named)?;
    T::deserialize(value).map_err(|error| Error::Json(error.to_string()))
}

/// Reads one JSON value that somebody else made: as [`parse`], and refused before it is read when
/// it would take far more room in memory than in the text.
pub fn parse_foreign<T: DeserializeOwned>(text: &[u8]) -> Result<T, Error> {
    if room(text) > ROOM_MAX {
        return Err(Error::TooMuchRoom);
    }
    parse(text)
}

/// Reads one JSON value that another program wrote, which knows nothing of our rules: an integer
/// that not all readers keep exact is the text of its digits, as [`exact`](super::exact) has it.
/// Members that come twice are refused, since nobody can say which of them is meant.
pub fn parse_exact(text: &[u8]) -> Result<Value, Error> {
    if values(text) > VALUES_MAX {
        return Err(Error::TooMany);
    }
    let quoted = quote_huge(text);
    let mut input = serde_json::Deserializer::from_slice(&quoted);
    let strict = Strict { depth: 0, inexact: Inexact::Text };
    let value = strict.deserialize(&mut input).map_err(named)?;
    input.end().map_err(named)?;
    Ok(value)
}

/// The text with every integer in quotes that serde would round.
fn quote_huge(text: &[u8]) -> Cow<'_, [u8]> {
    let (mut quoted, mut rest) = (Vec::new(), text);
    while let Some(huge) = huge_integer(rest) {
        let (before, number) = rest.split_at(huge.start);
        let (number, after) = number.split_at(huge.len());
        quoted.extend_from_slice(before);
        quoted.push(b'"');
        quoted.extend_from_slice(number);
        quoted.push(b'"');
        rest = after;
    }
    if quoted.is_empty() {
        return Cow::Borrowed(text);
    }
    quoted.extend_from_slice(rest);
    Cow::Owned(quoted)
}

/// About how many bytes a text takes in memory, with what is read of it and its canonical form: an
/// object with members has room for several at once, and so has a list.
fn room(text: &[u8]) -> usize {
    // A text is held as it came, as it was read and as it is written, with room to grow.
    const COPIES: usize = 6;
    const OBJECT: usize = 680;
    const LIST: usize = 160;
    const VALUE: usize = 64;
    let (mut room, mut rest) = (text.len().saturating_mul(COPIES), text);
    while let Some(at) = rest.iter().position(|b| b"\",[{".contains(b)) {
        rest = rest.get(at..).unwrap_or_default();
        let (skip, cost) = match rest.first() {
            Some(b'"') => (string_len(rest), VALUE / 2),
            Some(b'{') => (1, OBJECT),
            Some(b'[') => (1, LIST),
            _ => (1, VALUE),
        };
        room = room.saturating_add(cost);
        rest = rest.get(skip..).unwrap_or_default();
    }
    room
}

/// About how many values a text holds: each takes far more room in memory than in the text.
fn values(text: &[u8]) -> usize {
    let (mut count, mut rest) = (0, text);
    while let Some(at) = rest.iter().position(|b| b"\",[{".contains(b)) {
        rest = rest.get(at..).unwrap_or_default();
        let skip = match rest.first() {
            Some(b'"') => string_len(rest),
            _ => {
                count += 1;
                1
            }
        };
        rest = rest.get(skip..).unwrap_or_default();
    }
    count
}

/// Where the first integer is of so many digits that serde would round it to a double without a
/// word.
fn huge_integer(text: &[u8]) -> Option<Range<usize>> {
    const DIGITS: usize = 20;
    let part_of_number = |b: &u8| b.is_ascii_digit() || b"+-.eE".contains(b);
    let mut rest = text;
    while let Some(at) = rest.iter().position(|b| *b == b'"' || part_of_number(b)) {
        rest = rest.get(at..)?;
        let skip = if rest.first() == Some(&b'"') {
            string_len(rest)
        } else {
            let len = rest.iter().position(|b| !part_of_number(b)).unwrap_or(rest.len());
            let number = rest.get(..len)?;
            let digits = number.strip_prefix(b"-").unwrap_or(number);
            // With a zero in front it is no JSON.
            if len >= DIGITS && digits.iter().all(u8::is_ascii_digit) && !digits.starts_with(b"0") {
                let start = text.len() - rest.len();
                return Some(start..start + len);
            }
            len
        };
        rest = rest.get(skip..)?;
    }
    None
}

/// How long the string is that a text begins with, quotes included.
fn string_len(text: &[u8]) -> usize {
    let mut at = 1;
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}

/// Any JSON value, exactly as reading it back from its canonical JSON gives it.
///
/// It is read strictly, or [made](Self::new) of a value that came some other way. So whoever
/// goes on with it does the same now and after a restart.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(transparent)]
#[non_exhaustive]
pub struct StrictValue(pub Value);

impl StrictValue {
    /// The value as it is [recorded].
    #[must_use]
    pub fn new(value: Value) -> Self {
        Self(recorded(value))
    }
}

impl<'de> Deserialize<'de> for StrictValue {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        Strict { depth: 0, inexact: Inexact::Refused }.deserialize(input).map(Self)
    }
}

/// Gives serde's message its own variant back; serde carries only text.
fn named(error: serde_json::Error) -> Error {
    let text = error.to_string();
    let quoted = || text.split('`').nth(1).unwrap_or_default().to_owned();
    if text.starts_with("duplicate key `") {
        Error::DuplicateKey(quoted())
    } else if text.starts_with("inexact integer `") {
        Error::IntegerTooLarge(quoted())
    } else if text.starts_with("too deep") || text.starts_with("recursion limit") {
        Error::TooDeep
    } else {
        Error::Json(text)
    }
}

struct Strict {
    depth: usize,
    inexact: Inexact,
}

/// What becomes of an integer that not all readers keep exact.
#[derive(Clone, Copy)]
enum Inexact {
    Refused,
    /// It is a text.
    Text,
}

impl Inexact {
    fn take<E: serde::de::Error>(self, digits: String) -> Result<Value, E> {
        match self {
            Self::Refused => Err(E::custom(format!("inexact integer `{digits}`"))),
            Self::Text => Ok(Value::String(digits)),
        }
    }
}

impl Strict {
    fn inside<E: serde::de::Error>(&self) -> Result<Self, E> {
        if self.depth < DEPTH_MAX {
            Ok(Self { depth: self.depth + 1, inexact: self.inexact })
        } else {
            Err(E::custom("too deep"))
        }
    }
}

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<Value, D::Error> {
        input.deserialize_any(self)
    }
}

impl<'de> serde::de::Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Value, E> {
        if value.unsigned_abs() > INTEGER_MAX {
            return self.inexact.take(value.to_string());
        }
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Value, E> {
        if value > INTEGER_MAX {
            return self.inexact.take(value.to_string());
        }
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        if is_inexact(value) {
            return self.inexact.take(number(value));
        }
        let number = Number::from_f64(value).ok_or_else(|| E::custom("not finite"))?;
        Ok(Value::Number(integer(&number).unwrap_or(number)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut array = Vec::new();
        while let Some(item) = items.next_element_seed(self.inside()?)? {
            array.push(item);
        }
        Ok(Value::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = members.next_key::<String>()? {
            let value = members.next_value_seed(self.inside()?)?;
            if object.contains_key(&key) {
                return Err(A::Error::custom(format!("duplicate key `{key}`")));
            }
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}
