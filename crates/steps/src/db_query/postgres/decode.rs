//! Values of PostgreSQL as JSON.

use cairn_core::canonical;
use serde_json::{Value, json};
use tokio_postgres::types::{FromSql, Kind, Type};

use crate::db_query::rows::{bytes, float, integer};

/// The bytes of a value, of whatever type.
pub(super) struct Raw<'a>(pub(super) &'a [u8]);

impl<'a> FromSql<'a> for Raw<'a> {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Self(raw))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// A value as JSON; none when its type has no such form.
pub(super) fn value(ty: &Type, raw: &[u8]) -> Option<Value> {
    match ty.kind() {
        Kind::Domain(inner) => return value(inner, raw),
        Kind::Array(inner) => return array(inner, raw),
        Kind::Enum(_) => return text(raw),
        _ => {}
    }
    Some(match *ty {
        Type::BOOL => json!(*raw.first()? != 0),
        Type::INT2 => integer(i16::from_be_bytes(raw.try_into().ok()?).into()),
        Type::INT4 => integer(i32::from_be_bytes(raw.try_into().ok()?).into()),
        Type::INT8 => integer(i64::from_be_bytes(raw.try_into().ok()?).into()),
        Type::OID => integer(u32::from_be_bytes(raw.try_into().ok()?).into()),
        // The shortest text of the small number, so that 0.1 stays 0.1.
        Type::FLOAT4 => float(f32::from_be_bytes(raw.try_into().ok()?).to_string().parse().ok()?),
        Type::FLOAT8 => float(f64::from_be_bytes(raw.try_into().ok()?)),
        Type::NUMERIC => json!(numeric(raw)?),
        Type::JSON => canonical::parse_exact(raw).ok()?,
        Type::JSONB => canonical::parse_exact(raw.get(1..)?).ok()?,
        Type::BYTEA => bytes(raw),
        Type::UUID => json!(uuid(raw)?),
        Type::TIMESTAMPTZ => match instant(raw)? {
            Ok(word) => json!(word),
            Err(_) => json!(jiff::Timestamp::from_sql(ty, raw).ok()?.to_string()),
        },
        Type::TIMESTAMP => match instant(raw)? {
            Ok(word) => json!(word),
            Err(_) => json!(jiff::civil::DateTime::from_sql(ty, raw).ok()?.to_string()),
        },
        Type::DATE => match i32::from_be_bytes(raw.try_into().ok()?) {
            i32::MAX => json!("infinity"),
            i32::MIN => json!("-infinity"),
            _ => json!(jiff::civil::Date::from_sql(ty, raw).ok()?.to_string()),
        },
        Type::TIME => json!(jiff::civil::Time::from_sql(ty, raw).ok()?.to_string()),
        Type::INTERVAL => json!(interval(raw)?),
        Type::VOID => Value::Null,
        Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME | Type::UNKNOWN | Type::XML => {
            return text(raw);
        }
        _ if matches!(ty.name(), "citext" | "ltree") => return text(raw),
        _ => return None,
    })
}

fn text(raw: &[u8]) -> Option<Value> {
    Some(json!(std::str::from_utf8(raw).ok()?))
}

/// A word for a point in time that is none, or the microseconds of one that is.
fn instant(raw: &[u8]) -> Option<Result<&'static str, i64>> {
    Some(match i64::from_be_bytes(raw.try_into().ok()?) {
        i64::MAX => Ok("infinity"),
        i64::MIN => Ok("-infinity"),
        micros => Err(micros),
    })
}

fn uuid(raw: &[u8]) -> Option<String> {
    let number = u128::from_be_bytes(raw.try_into().ok()?);
    let hex = format!("{number:032x}");
    let part = |from, to| hex.get(from..to).unwrap_or_default();
    let parts = [part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)];
    Some(parts.join("-"))
}

/// Reads numbers off the front.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (front, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*front)
    }

    fn short(&mut self) -> Option<i16> {
        self.take().map(i16::from_be_bytes)
    }

    fn whole(&mut self) -> Option<i32> {
        self.take().map(i32::from_be_bytes)
    }
}

/// An exact decimal, as it would be written. Its digits come in fours.
fn numeric(raw: &[u8]) -> Option<String> {
    let mut reader = Reader(raw);
    let (count, weight) = (reader.short()?, reader.short()?);
    let (sign, scale) = (reader.short()?.cast_unsigned(), reader.short()?);
    match sign {
        0xC000 => return Some("NaN".to_owned()),
        0xD000 => return Some("Infinity".to_owned()),
        0xF000 => return Some("-Infinity".to_owned()),
        _ => {}
    }
    let mut digits = Vec::new();
    for _ in 0..count {
        digits.push(reader.short()?);
    }
    let group =
        |place: i32| usize::try_from(place).ok().and_then(|p| digits.get(p)).copied().unwrap_or(0);
    let whole: String = match weight {
        0.. => (0..=i32::from(weight)).map(|place| format!("{:04}", group(place))).collect(),
        _ => String::new(),
    };
    let groups = (i32::from(scale) + 3) / 4;
    let first = i32::from(weight) + 1;
    let mut fraction: String =
        (first..first + groups).map(|place| format!("{:04}", group(place))).collect();
    fraction.truncate(usize::try_from(scale).ok()?);
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    let minus = if sign == 0x4000 { "-" } else { "" };
    let dot = if fraction.is_empty() { "" } else { "." };
    Some(format!("{minus}{whole}{dot}{fraction}"))
}

/// A span of time as ISO 8601 writes it.
fn interval(raw: &[u8]) -> Option<String> {
    let mut reader = Reader(raw);
    let micros: i64 = reader.take().map(i64::from_be_bytes)?;
    let (days, months) = (reader.whole()?, reader.whole()?);
    let mut text = String::from("P");
    for (number, unit) in [(months / 12, 'Y'), (months % 12, 'M'), (days, 'D')] {
        if number != 0 {
            text.push_str(&format!("{number}{unit}"));
        }
    }
    if micros != 0 || text == "P" {
        let minus = if micros < 0 { "-" } else { "" };
        let (seconds, rest) =
            (micros.unsigned_abs() / 1_000_000, micros.unsigned_abs() % 1_000_000);
        let fraction = format!(".{rest:06}");
        let fraction = fraction.trim_end_matches('0').trim_end_matches('.');
        text.push_str(&format!("T{minus}{seconds}{fraction}S"));
    }
    Some(text)
}

/// A list, or lists of lists.
fn array(inner: &Type, raw: &[u8]) -> Option<Value> {
    let mut reader = Reader(raw);
    let (dimensions, _, _) = (reader.whole()?, reader.whole()?, reader.whole()?);
    let mut lengths = Vec::new();
    for _ in 0..dimensions {
        lengths.push(usize::try_from(reader.whole()?).ok()?);
        reader.whole()?;
    }
    if lengths.is_empty() {
        return Some(json!([]));
    }
    level(inner, &lengths, &mut reader)
}

fn level(inner: &Type, lengths: &[usize], reader: &mut Reader<'_>) -> Option<Value> {
    let Some((length, deeper)) = lengths.split_first() else {
        let size = reader.whole()?;
        let Ok(size) = usize::try_from(size) else { return Some(Value::Null) };
        let (raw, rest) = reader.0.split_at_checked(size)?;
        reader.0 = rest;
        return value(inner, raw);
    };
    (0..*length).map(|_| level(inner, deeper, reader)).collect::<Option<Vec<_>>>().map(Value::Array)
}
