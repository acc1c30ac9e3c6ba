//! Reading the part of an object that this program knows.

use serde::de::value::{MapDeserializer, SeqDeserializer, StrDeserializer};
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer, VariantAccess,
    Visitor,
};
use serde_json::{Error, Value};

/// Reads what is known of a value: members that its types do not have are left out.
///
/// Only members of structs are: what is in a map, or is data of somebody else, stays whole.
pub(crate) fn known<T: DeserializeOwned>(value: Value) -> Result<T, Error> {
    T::deserialize(Known(value))
}

/// A value whose structs are read as far as they are known.
struct Known(Value);

impl IntoDeserializer<'_, Error> for Known {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for Known {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Array(items) => {
                visitor.visit_seq(SeqDeserializer::new(items.into_iter().map(Known)))
            }
            Value::Object(members) => {
                let members = members.into_iter().map(|(name, value)| (name, Known(value)));
                visitor.visit_map(MapDeserializer::new(members))
            }
            plain => plain.deserialize_any(visitor),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let mut value = self.0;
        if let Value::Object(members) = &mut value {
            members.retain(|name, _| fields.contains(&name.as_str()));
        }
        Self(value).deserialize_any(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.0 {
            Value::Object(members) if members.len() == 1 => match members.into_iter().next() {
                Some((name, content)) => visitor.visit_enum(Named { name, content }),
                None => visitor.visit_none(),
            },
            plain => plain.deserialize_enum(name, variants, visitor),
        }
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        unit unit_struct seq tuple tuple_struct map identifier ignored_any
    }
}

/// A variant and what is in it.
struct Named {
    name: String,
    content: Value,
}

impl<'de> EnumAccess<'de> for Named {
    type Error = Error;
    type Variant = Known;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Known), Error> {
        let name: StrDeserializer<'_, Error> = self.name.as_str().into_deserializer();
        Ok((seed.deserialize(name)?, Known(self.content)))
    }
}

impl<'de> VariantAccess<'de> for Known {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        serde::Deserialize::deserialize(self)
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Error> {
        seed.deserialize(self)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_any(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_struct("", fields, visitor)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::event::engine::{StepCompleted, StepStarted};
    use crate::event::tests::golden;
    use crate::event::{EventData, Kind};

    #[test]
    fn what_is_known_of_any_event_is_read_beside_what_is_not() {
        for kind in Kind::ALL {
            let data = golden::data(*kind);
            let mut value = serde_json::to_value(&data).unwrap();
            value.as_object_mut().unwrap().insert("weather".into(), json!({"sun": [1]}));
            assert_eq!(EventData::read_known(*kind, value).unwrap(), data, "{}", kind.name());
        }
    }

    #[test]
    fn structs_inside_are_read_too_and_data_stays_whole() {
        let value = json!({
            "attempt": 0, "durationMs": 1, "instance": "fetch", "mood": "fine",
            "output": {"inline": {"mood": "fine", "n": {"mood": 1}}},
            "usage": {"inputTokens": 1, "outputTokens": 2, "seconds": 3},
        });
        let step: StepCompleted = known(value).unwrap();
        let kept = json!({"mood": "fine", "n": {"mood": 1}});
        assert_eq!(step.output, crate::event::engine::Payload::inline(kept));
        assert_eq!(step.usage.unwrap().output_tokens, 2);
        let blob = crate::digest::Digest::of(b"x").to_string();
        let value = json!({
            "attempt": 0, "instance": "fetch",
            "input": {"blob": {"byteLength": 1, "contentType": "t", "sha256": blob, "at": "s3"}},
        });
        assert!(known::<StepStarted>(value).is_ok());
    }

    #[test]
    fn what_is_needed_and_is_not_there_is_still_missed() {
        assert!(known::<StepStarted>(json!({"attempt": 0, "weather": 1})).is_err());
        let unknown_word = json!({"attempt": 0, "instance": "a", "waitingFor": "godot"});
        assert!(EventData::read_known(Kind::StepWaiting, unknown_word).is_err());
    }
}
