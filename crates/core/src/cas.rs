//! Content addresses: short names of values, by what they are.
//!
//! An address is the XXH64 of a type's address and a value's deterministic CBOR, written as 13
//! characters of Crockford base 32. It is a name that people can type, and nothing rests on it:
//! what is stored is found and checked by its SHA-256, and two values that share an address are
//! a clash, which is told. [`schemas`] has the types that a role thread is made of.

mod cbor;
pub mod schemas;
mod xxh64;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

pub use cbor::encode;

const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const TEXT_LEN: usize = 13;

/// The address of a value, written like `CTS5P6RD8HMCS`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(u64);

/// Why a text is not an address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a content address; one looks like `CTS5P6RD8HMCS`")]
pub struct InvalidAddress(pub String);

/// A value with its type.
#[derive(Clone, PartialEq, Debug)]
pub struct Typed {
    /// The address of the schema that it is under; [that of all schemas](schemas::meta_address)
    /// is under none.
    pub r#type: Option<Address>,
    /// The value.
    pub payload: Value,
}

impl Typed {
    /// A value under a schema.
    #[must_use]
    pub const fn new(r#type: Address, payload: Value) -> Self {
        Self { r#type: Some(r#type), payload }
    }

    /// Its address.
    #[must_use]
    pub fn address(&self) -> Address {
        let mut bytes = self.r#type.map(|at| at.to_string().into_bytes()).unwrap_or_default();
        bytes.extend(encode(&self.payload));
        Address(xxh64::hash(&bytes))
    }

    /// The addresses that it refers to, in the order of its schema: its type first, then every
    /// text that the schema calls a reference.
    #[must_use]
    pub fn references(&self, schema: &Value) -> Vec<Address> {
        let mut found: Vec<Address> = self.r#type.into_iter().collect();
        referred(schema, &self.payload, &mut found);
        found
    }
}

/// The format by which a schema says that a text is an address.
pub const REFERENCE: &str = "ocas_ref";

fn referred(schema: &Value, value: &Value, found: &mut Vec<Address>) {
    if schema.get("format").and_then(Value::as_str) == Some(REFERENCE) {
        found.extend(value.as_str().and_then(|text| text.parse::<Address>().ok()));
    }
    for kind in ["anyOf", "oneOf", "allOf"] {
        let inner = schema.get(kind).and_then(Value::as_array);
        inner.into_iter().flatten().for_each(|inner| referred(inner, value, found));
    }
    match value {
        Value::Object(members) => {
            let others = schema.get("additionalProperties");
            for (name, value) in members {
                let known = schema.get("properties").and_then(|known| known.get(name));
                if let Some(schema) = known.or(others) {
                    referred(schema, value, found);
                }
            }
        }
        Value::Array(items) => {
            let schema = schema.get("items");
            schema.into_iter().for_each(|schema| {
                items.iter().for_each(|item| referred(schema, item, found));
            });
        }
        _ => {}
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for place in (0..TEXT_LEN).rev() {
            let digit = usize::try_from((self.0 >> (5 * place)) & 31).unwrap_or_default();
            write!(f, "{}", char::from(ALPHABET.get(digit).copied().unwrap_or(b'0')))?;
        }
        Ok(())
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Address {
    type Err = InvalidAddress;

    /// Reads an address in capital or small letters.
    fn from_str(text: &str) -> Result<Self, InvalidAddress> {
        let invalid = || InvalidAddress(text.chars().take(64).collect());
        // 13 characters hold 65 bits, and an address has 64.
        if text.len() != TEXT_LEN || text.as_bytes().first().is_none_or(|c| digit(*c) > Some(15)) {
            return Err(invalid());
        }
        let bits = text
            .bytes()
            .try_fold(0_u64, |bits, byte| Some((bits << 5) | u64::try_from(digit(byte)?).ok()?));
        bits.map(Self).ok_or_else(invalid)
    }
}

fn digit(byte: u8) -> Option<usize> {
    ALPHABET.iter().position(|known| *known == byte.to_ascii_uppercase())
}

impl Serialize for Address {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Address {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let text = String::deserialize(input)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn addresses_are_those_of_other_programs() {
        let vectors: Vec<Value> = serde_json::from_str(include_str!("cas/vectors.json")).unwrap();
        assert!(vectors.len() > 10);
        for vector in vectors {
            let text = |name: &str| vector[name].as_str().unwrap();
            let typed = Typed::new(text("type").parse().unwrap(), vector["payload"].clone());
            assert_eq!(hex(&encode(&typed.payload)), text("cborHex"), "{}", text("name"));
            assert_eq!(typed.address().to_string(), text("hash"), "{}", text("name"));
        }
    }

    #[test]
    fn an_address_is_read_as_it_is_written() {
        for wrong in ["", "CTS5P6RD8HMC", "CTS5P6RD8HMCSS", "GTS5P6RD8HMCS", "CTS5P6RD8HMCU", "é"]
        {
            assert!(wrong.parse::<Address>().is_err(), "{wrong}");
        }
        let small: Address = "cts5p6rd8hmcs".parse().unwrap();
        assert_eq!(small.to_string(), "CTS5P6RD8HMCS");
    }

    #[test]
    fn references_are_what_the_schema_says() {
        let schema = json!({"type": "object", "properties": {
            "start": {"type": "string", "format": "ocas_ref"},
            "prev": {"anyOf": [{"type": "string", "format": "ocas_ref"}, {"type": "null"}]},
            "name": {"type": "string"},
            "all": {"type": "array", "items": {"type": "string", "format": "ocas_ref"}},
        }});
        let (a, b) = ("CTS5P6RD8HMCS", "944RT37WX1PQ5");
        let payload = json!({"all": [a, b], "name": a, "prev": null, "start": b});
        let typed = Typed::new(a.parse().unwrap(), payload);
        let found: Vec<String> =
            typed.references(&schema).iter().map(ToString::to_string).collect();
        assert_eq!(found, [a, a, b, b]);
    }

    proptest! {
        #[test]
        fn print_then_parse_is_identity(bits in any::<u64>()) {
            prop_assert_eq!(Address(bits).to_string().parse(), Ok(Address(bits)));
        }
    }
}
