//! Deterministic CBOR of JSON values (RFC 8949, section 4.2.1): shortest forms, members in the
//! order of their encoded names.

use serde_json::{Map, Number, Value};

/// The largest integer that every reader of JSON knows exactly.
const INTEGER_MAX: f64 = 9_007_199_254_740_991.0;

const UNSIGNED: u8 = 0;
const NEGATIVE: u8 = 1;
const TEXT: u8 = 3;
const LIST: u8 = 4;
const MAP: u8 = 5;

/// The deterministic CBOR of a value.
#[must_use]
pub fn encode(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    write(value, &mut out);
    out
}

fn write(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.push(0xf6),
        Value::Bool(false) => out.push(0xf4),
        Value::Bool(true) => out.push(0xf5),
        Value::Number(number) => write_number(number, out),
        Value::String(text) => write_text(text, out),
        Value::Array(items) => {
            head(LIST, items.len() as u64, out);
            items.iter().for_each(|item| write(item, out));
        }
        Value::Object(members) => write_map(members, out),
    }
}

fn write_map(members: &Map<String, Value>, out: &mut Vec<u8>) {
    head(MAP, members.len() as u64, out);
    let mut encoded: Vec<(Vec<u8>, &Value)> = members
        .iter()
        .map(|(name, value)| {
            let mut key = Vec::new();
            write_text(name, &mut key);
            (key, value)
        })
        .collect();
    encoded.sort_by(|one, other| one.0.cmp(&other.0));
    for (key, value) in encoded {
        out.extend(key);
        write(value, out);
    }
}

fn write_text(text: &str, out: &mut Vec<u8>) {
    head(TEXT, text.len() as u64, out);
    out.extend(text.as_bytes());
}

/// What begins an item: its kind, and a count in as few bytes as it takes.
fn head(kind: u8, count: u64, out: &mut Vec<u8>) {
    let kind = kind << 5;
    let bytes = count.to_be_bytes();
    let (mark, used) = match count {
        0..24 => return out.push(kind | bytes.last().copied().unwrap_or_default()),
        24..0x100 => (24, 1),
        0x100..0x1_0000 => (25, 2),
        0x1_0000..0x1_0000_0000 => (26, 4),
        _ => (27, 8),
    };
    out.push(kind | mark);
    out.extend(bytes.get(8 - used..).unwrap_or_default());
}

/// Whole numbers are integers as far as every reader knows them exactly, and floats beyond.
fn write_number(number: &Number, out: &mut Vec<u8>) {
    let value = number.as_f64().unwrap_or_default();
    if value.fract() != 0.0 || value.abs() > INTEGER_MAX {
        return write_float(value, out);
    }
    let whole = number.as_i64().map_or_else(|| i128_of(value), i128::from);
    match u64::try_from(whole) {
        Ok(count) => head(UNSIGNED, count, out),
        Err(_) => head(NEGATIVE, u64::try_from(-1 - whole).unwrap_or_default(), out),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "it is whole, and within 53 bits")]
const fn i128_of(value: f64) -> i128 {
    value as i128
}

#[expect(clippy::cast_possible_truncation, reason = "the shorter form is used when it is equal")]
fn write_float(value: f64, out: &mut Vec<u8>) {
    let single = value as f32;
    if f64::from(single).to_bits() != value.to_bits() {
        out.push(0xfb);
        return out.extend(value.to_bits().to_be_bytes());
    }
    if let Some(half) = half(single) {
        out.push(0xf9);
        return out.extend(half.to_be_bytes());
    }
    out.push(0xfa);
    out.extend(single.to_bits().to_be_bytes());
}

/// The half-precision form of a number that is not whole, when it has one.
fn half(value: f32) -> Option<u16> {
    let bits = value.to_bits();
    let sign = u16::try_from(bits >> 31).ok()? << 15;
    let exponent = i32::try_from((bits >> 23) & 0xff).ok()? - 127;
    let fraction = bits & 0x007f_ffff;
    let exact = |shift: u32, fraction: u32| {
        (fraction.trailing_zeros() >= shift).then(|| u16::try_from(fraction >> shift).ok())?
    };
    match exponent {
        -14..=15 => {
            let exponent = u16::try_from(exponent + 15).ok()? << 10;
            Some(sign | exponent | exact(13, fraction)?)
        }
        // A number below the normal ones has its leading bit written out.
        -24..=-15 => {
            let shift = u32::try_from(-1 - exponent).ok()?;
            Some(sign | exact(shift, fraction | 0x0080_0000)?)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn hex(value: &Value) -> String {
        encode(value).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Examples of RFC 8949, appendix A.
    #[test]
    fn values_have_their_shortest_form() {
        for (value, expected) in [
            (json!(1.5), "f93e00"),
            (json!(-4.1), "fbc010666666666666"),
            (json!(5.960_464_477_539_063e-8), "f90001"),
            (json!(0.000_061_035_156_25), "f90400"),
            (json!(3.402_823_466_385_288_6e38), "fa7f7fffff"),
            (json!(1.1), "fb3ff199999999999a"),
            (json!(1.0e300), "fb7e37e43c8800759c"),
            (json!(1.0), "01"),
            (json!(-0.0), "00"),
            (json!(1_000_000), "1a000f4240"),
            (json!(-1000), "3903e7"),
            (json!("ü"), "62c3bc"),
            (json!([1, [2, 3]]), "8201820203"),
            (json!({"b": [2, 3], "a": 1}), "a26161016162820203"),
        ] {
            assert_eq!(hex(&value), expected, "{value}");
        }
    }
}
