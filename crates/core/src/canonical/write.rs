//! A serde serializer that writes canonical JSON in one pass.
//!
//! Members go to the output as they come; an object whose members did not come in
//! order is put in order when it ends. Durable types declare their fields in order,
//! so that this rarely costs anything.

use std::cmp::Ordering;
use std::fmt::Display;

use serde::ser::{self, Serialize};

use super::{DEPTH_MAX, Error, INTEGER_MAX};

/// The canonical JSON of a value.
pub fn to_vec<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, Error> {
    to_vec_within(value, DEPTH_MAX)
}

/// The canonical JSON of a value that nests no deeper than `depth_max`.
pub fn to_vec_within<T: Serialize + ?Sized>(value: &T, depth_max: usize) -> Result<Vec<u8>, Error> {
    let mut writer = Writer { out: Vec::with_capacity(512), depth: 0, depth_max };
    value.serialize(&mut writer)?;
    Ok(writer.out)
}

impl ser::Error for Error {
    fn custom<T: Display>(message: T) -> Self {
        Self::Json(message.to_string())
    }
}

struct Writer {
    out: Vec<u8>,
    depth: usize,
    depth_max: usize,
}

impl Writer {
    fn enter(&mut self, bracket: u8) -> Result<(), Error> {
        self.depth += 1;
        if self.depth > self.depth_max {
            return Err(Error::TooDeep);
        }
        self.out.push(bracket);
        Ok(())
    }

    fn leave(&mut self, bracket: u8) {
        self.depth -= 1;
        self.out.push(bracket);
    }

    fn integer(&mut self, magnitude: u128, negative: bool) -> Result<(), Error> {
        let sign = if negative { "-" } else { "" };
        if magnitude > u128::from(INTEGER_MAX) {
            return Err(Error::IntegerTooLarge(format!("{sign}{magnitude}")));
        }
        self.out.extend_from_slice(sign.as_bytes());
        self.out.extend_from_slice(magnitude.to_string().as_bytes());
        Ok(())
    }

    fn text(&mut self, text: &str) {
        self.out.push(b'"');
        let mut rest = text;
        while let Some(at) = rest.bytes().position(|b| b < 0x20 || b == b'"' || b == b'\\') {
            let (plain, tail) = rest.split_at(at);
            self.out.extend_from_slice(plain.as_bytes());
            let (special, tail) = tail.split_at(1);
            self.escape(special.as_bytes().first().copied().unwrap_or_default());
            rest = tail;
        }
        self.out.extend_from_slice(rest.as_bytes());
        self.out.push(b'"');
    }

    fn escape(&mut self, byte: u8) {
        let short = match byte {
            0x08 => b'b',
            0x09 => b't',
            0x0a => b'n',
            0x0c => b'f',
            0x0d => b'r',
            b'"' | b'\\' => byte,
            _ => {
                self.out.extend_from_slice(format!("\\u{byte:04x}").as_bytes());
                return;
            }
        };
        self.out.extend_from_slice(&[b'\\', short]);
    }
}

impl<'w> ser::Serializer for &'w mut Writer {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Array<'w>;
    type SerializeTuple = Array<'w>;
    type SerializeTupleStruct = Array<'w>;
    type SerializeTupleVariant = Array<'w>;
    type SerializeMap = Object<'w>;
    type SerializeStruct = Object<'w>;
    type SerializeStructVariant = Object<'w>;

    fn serialize_bool(self, value: bool) -> Result<(), Error> {
        self.out.extend_from_slice(if value { b"true" } else { b"false" });
        Ok(())
    }

    fn serialize_i8(self, value: i8) -> Result<(), Error> {
        self.serialize_i64(value.into())
    }

    fn serialize_i16(self, value: i16) -> Result<(), Error> {
        self.serialize_i64(value.into())
    }

    fn serialize_i32(self, value: i32) -> Result<(), Error> {
        self.serialize_i64(value.into())
    }

    fn serialize_i64(self, value: i64) -> Result<(), Error> {
        self.integer(value.unsigned_abs().into(), value < 0)
    }

    fn serialize_i128(self, value: i128) -> Result<(), Error> {
        self.integer(value.unsigned_abs(), value < 0)
    }

    fn serialize_u8(self, value: u8) -> Result<(), Error> {
        self.serialize_u64(value.into())
    }

    fn serialize_u16(self, value: u16) -> Result<(), Error> {
        self.serialize_u64(value.into())
    }

    fn serialize_u32(self, value: u32) -> Result<(), Error> {
        self.serialize_u64(value.into())
    }

    fn serialize_u64(self, value: u64) -> Result<(), Error> {
        self.integer(value.into(), false)
    }

    fn serialize_u128(self, value: u128) -> Result<(), Error> {
        self.integer(value, false)
    }

    fn serialize_f32(self, value: f32) -> Result<(), Error> {
        self.serialize_f64(value.into())
    }

    fn serialize_f64(self, value: f64) -> Result<(), Error> {
        if !value.is_finite() {
            return Err(Error::NotFinite);
        }
        if is_inexact(value) {
            return Err(Error::IntegerTooLarge(number(value)));
        }
        self.out.extend_from_slice(number(value).as_bytes());
        Ok(())
    }

    fn serialize_char(self, value: char) -> Result<(), Error> {
        self.text(value.encode_utf8(&mut [0; 4]));
        Ok(())
    }

    fn serialize_str(self, value: &str) -> Result<(), Error> {
        self.text(value);
        Ok(())
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_none(self) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Error> {
        self.out.extend_from_slice(b"null");
        Ok(())
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
    ) -> Result<(), Error> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        let mut object = self.serialize_map(Some(1))?;
        object.member(variant, value)?;
        object.finish();
        Ok(())
    }

    fn serialize_seq(self, _len: Option<usize>) -> Result<Array<'w>, Error> {
        self.enter(b'[')?;
        Ok(Array { writer: self, first: true, wrapped: false })
    }

    fn serialize_tuple(self, len: usize) -> Result<Array<'w>, Error> {
        self.serialize_seq(Some(len))
    }

    fn serialize_tuple_struct(self, _name: &'static str, len: usize) -> Result<Array<'w>, Error> {
        self.serialize_seq(Some(len))
    }

    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _len: usize,
    ) -> Result<Array<'w>, Error> {
        self.enter(b'{')?;
        self.text(variant);
        self.out.push(b':');
        self.enter(b'[')?;
        Ok(Array { writer: self, first: true, wrapped: true })
    }

    fn serialize_map(self, len: Option<usize>) -> Result<Object<'w>, Error> {
        self.enter(b'{')?;
        let start = self.out.len();
        let members = Vec::with_capacity(len.unwrap_or_default().min(64));
        Ok(Object { writer: self, start, members, sorted: true, wrapped: false })
    }

    fn serialize_struct(self, _name: &'static str, len: usize) -> Result<Object<'w>, Error> {
        self.serialize_map(Some(len))
    }

    fn serialize_struct_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Object<'w>, Error> {
        self.enter(b'{')?;
        self.text(variant);
        self.out.push(b':');
        let mut object = self.serialize_map(Some(len))?;
        object.wrapped = true;
        Ok(object)
    }
}

struct Array<'w> {
    writer: &'w mut Writer,
    first: bool,
    wrapped: bool,
}

impl Array<'_> {
    fn element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        if !self.first {
            self.writer.out.push(b',');
        }
        self.first = false;
        value.serialize(&mut *self.writer)
    }

    fn finish(self) {
        self.writer.leave(b']');
        if self.wrapped {
            self.writer.leave(b'}');
        }
    }
}

/// An object under way: where its members start in the output, and under which keys.
struct Object<'w> {
    writer: &'w mut Writer,
    start: usize,
    members: Vec<(String, usize)>,
    sorted: bool,
    wrapped: bool,
}

impl Object<'_> {
    fn key(&mut self, key: String) -> Result<(), Error> {
        if let Some((last, _)) = self.members.last() {
            self.sorted &= utf16_order(last, &key) == Ordering::Less;
            self.writer.out.push(b',');
        }
        let start = self.writer.out.len();
        self.writer.text(&key);
        self.writer.out.push(b':');
        self.members.push((key, start));
        Ok(())
    }

    fn member<T: Serialize + ?Sized>(&mut self, key: &str, value: &T) -> Result<(), Error> {
        self.key(key.to_owned())?;
        value.serialize(&mut *self.writer)
    }

    /// Puts the members in order and closes the object; two of one key are refused earlier.
    fn finish(self) {
        if !self.sorted {
            let body = self.writer.out.split_off(self.start);
            let end_of = |next: Option<&(String, usize)>| {
                next.map_or(body.len(), |(_, at)| at - self.start - 1)
            };
            let mut members: Vec<(&str, &[u8])> = (0..self.members.len())
                .filter_map(|place| {
                    let (key, at) = self.members.get(place)?;
                    let end = end_of(self.members.get(place + 1));
                    Some((key.as_str(), body.get(at - self.start..end)?))
                })
                .collect();
            members.sort_by(|a, b| utf16_order(a.0, b.0));
            for (place, (_, bytes)) in members.into_iter().enumerate() {
                if place > 0 {
                    self.writer.out.push(b',');
                }
                self.writer.out.extend_from_slice(bytes);
            }
        }
        self.writer.leave(b'}');
        if self.wrapped {
            self.writer.leave(b'}');
        }
    }

    fn end(self) -> Result<(), Error> {
        if !self.sorted {
            let mut keys: Vec<&str> = self.members.iter().map(|(key, _)| key.as_str()).collect();
            keys.sort_unstable();
            if let Some([twice, _]) = keys.array_windows().find(|[a, b]| a == b) {
                return Err(Error::DuplicateKey((*twice).to_owned()));
            }
        }
        self.finish();
        Ok(())
    }
}

/// How RFC 8785 writes a finite double.
pub(super) fn number(value: f64) -> String {
    ryu_js::Buffer::new().format_finite(value).to_owned()
}

/// Whether a double is written like an integer, and is beyond those that are exact.
///
/// Such a text would not be read back, so it is not written. From 1e21 on a double is
/// written with an exponent and cannot be taken for an integer.
pub(super) fn is_inexact(value: f64) -> bool {
    const EXPONENT_FROM: f64 = 1e21;
    const EXACT_TO: f64 = 9_007_199_254_740_992.0;
    value.abs() > EXACT_TO && value.abs() < EXPONENT_FROM
}

/// The order that RFC 8785 asks for: by UTF-16 code units, not by bytes.
fn utf16_order(a: &str, b: &str) -> Ordering {
    if a.is_ascii() && b.is_ascii() { a.cmp(b) } else { a.encode_utf16().cmp(b.encode_utf16()) }
}

impl ser::SerializeSeq for Array<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.element(value)
    }

    fn end(self) -> Result<(), Error> {
        self.finish();
        Ok(())
    }
}

impl ser::SerializeTuple for Array<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.element(value)
    }

    fn end(self) -> Result<(), Error> {
        self.finish();
        Ok(())
    }
}

impl ser::SerializeTupleStruct for Array<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.element(value)
    }

    fn end(self) -> Result<(), Error> {
        self.finish();
        Ok(())
    }
}

impl ser::SerializeTupleVariant for Array<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.element(value)
    }

    fn end(self) -> Result<(), Error> {
        self.finish();
        Ok(())
    }
}

impl ser::SerializeMap for Object<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        let mut text = Writer { out: Vec::new(), depth: 0, depth_max: 0 };
        key.serialize(&mut text)?;
        let key = serde_json::from_slice(&text.out).map_err(|_| Error::KeyNotText)?;
        self.key(key)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        value.serialize(&mut *self.writer)
    }

    fn serialize_entry<K: Serialize + ?Sized, V: Serialize + ?Sized>(
        &mut self,
        key: &K,
        value: &V,
    ) -> Result<(), Error> {
        self.serialize_key(key)?;
        self.serialize_value(value)
    }

    fn end(self) -> Result<(), Error> {
        Self::end(self)
    }
}

impl ser::SerializeStruct for Object<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        self.member(key, value)
    }

    fn end(self) -> Result<(), Error> {
        Self::end(self)
    }
}

impl ser::SerializeStructVariant for Object<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        self.member(key, value)
    }

    fn end(self) -> Result<(), Error> {
        Self::end(self)
    }
}
