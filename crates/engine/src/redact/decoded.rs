//! A text as it reads once its escapes are resolved, and where each part of it stood.
//!
//! Which letters an encoder escapes, and in which case it writes their numbers, differs from one
//! to the next. What they all have in common is how the text is read back.

use super::entities::{loose, sign};
use super::is_blank;

/// A way of escaping letters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Escapes {
    /// `%2F`.
    Address,
    /// `%2F`, and `+` for a blank.
    Form,
    /// `&lt;`, `&#60;` and `&#x3c;`.
    Html,
    /// `\n`, `\"`, `\u003c` and `\x3c`.
    Json,
}

impl Escapes {
    pub(super) const ALL: [Self; 4] = [Self::Address, Self::Form, Self::Html, Self::Json];

    /// What an escape at the beginning of these bytes stands for, and how long it is.
    fn read(self, bytes: &[u8]) -> Option<(Letter, usize)> {
        match (self, bytes) {
            (Self::Form, [b'+', ..]) => Some((Letter::Byte(b' '), 1)),
            (Self::Address | Self::Form, [b'%', rest @ ..]) => {
                Some((Letter::Byte(u8::try_from(number(rest, 2, 16)?).ok()?), 3))
            }
            (Self::Html, [b'&', ..]) => entity(bytes),
            (Self::Json, [b'\\', rest @ ..]) => {
                escaped(rest).map(|(letter, length)| (letter, length + 1))
            }
            _ => None,
        }
    }
}

/// What an escape stands for.
enum Letter {
    Byte(u8),
    Char(char),
}

/// A number of so many digits.
fn number(bytes: &[u8], digits: usize, radix: u32) -> Option<u32> {
    let digits = std::str::from_utf8(bytes.get(..digits)?).ok()?;
    let is_number = !digits.is_empty() && digits.chars().all(|digit| digit.is_digit(radix));
    u32::from_str_radix(digits, radix).ok().filter(|_| is_number)
}

/// `&lt;`, `&#60;` and `&#x3c;`, of which many read without the `;`.
fn entity(bytes: &[u8]) -> Option<(Letter, usize)> {
    /// The longest entity that counts, such as `&DiacriticalGrave;`, or a number and zeros.
    const LENGTH_MAX: usize = 20;
    let run = |from: usize, is_part: fn(u8) -> bool| {
        let rest = bytes.get(from..).unwrap_or_default().iter().take(LENGTH_MAX);
        from + rest.take_while(|byte| is_part(**byte)).count()
    };
    let closed = |end: usize| end + usize::from(bytes.get(end) == Some(&b';'));
    let (from, radix) = match bytes {
        [_, b'#', b'x' | b'X', ..] => (3, 16),
        [_, b'#', ..] => (2, 10),
        _ => {
            let end = run(1, |byte| byte.is_ascii_alphanumeric());
            let name = std::str::from_utf8(bytes.get(1..end)?).ok()?;
            if bytes.get(end) == Some(&b';')
                && let Some(sign) = sign(name)
            {
                return Some((Letter::Char(sign), end + 1));
            }
            return loose(name).map(|(sign, length)| (Letter::Char(sign), 1 + length));
        }
    };
    let is_digit: fn(u8) -> bool = match radix {
        16 => |byte: u8| byte.is_ascii_hexdigit(),
        _ => |byte: u8| byte.is_ascii_digit(),
    };
    let end = run(from, is_digit);
    let letter = char::from_u32(number(bytes.get(from..end)?, end - from, radix)?)?;
    Some((Letter::Char(letter), closed(end)))
}

/// What stands behind a backslash.
fn escaped(bytes: &[u8]) -> Option<(Letter, usize)> {
    let letter = match bytes.first()? {
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        quoted @ (b'"' | b'\'' | b'\\' | b'/') => char::from(*quoted),
        b'x' => {
            return Some((Letter::Byte(u8::try_from(number(bytes.get(1..)?, 2, 16)?).ok()?), 3));
        }
        b'u' => return unit(bytes),
        _ => return None,
    };
    Some((Letter::Char(letter), 1))
}

/// `uXXXX`, or two of them for one letter.
fn unit(bytes: &[u8]) -> Option<(Letter, usize)> {
    let high = number(bytes.get(1..)?, 4, 16)?;
    if let Some(letter) = char::from_u32(high) {
        return Some((Letter::Char(letter), 5));
    }
    let low = bytes.get(5..)?.strip_prefix(b"\\u")?;
    let units = [u16::try_from(high).ok()?, u16::try_from(number(low, 4, 16)?).ok()?];
    let letter = char::decode_utf16(units).next()?.ok()?;
    Some((Letter::Char(letter), 11))
}

/// A text without its escapes.
pub(super) struct Decoded {
    pub(super) bytes: Vec<u8>,
    /// Where each byte stood, and where what stood there ended.
    places: Vec<(usize, usize)>,
}

impl Decoded {
    /// A text as it is.
    pub(super) fn of(text: &str) -> Self {
        let place = |(at, letter): (usize, char)| {
            std::iter::repeat_n((at, at + letter.len_utf8()), letter.len_utf8())
        };
        let places = text.char_indices().flat_map(place).collect();
        Self { bytes: text.as_bytes().to_vec(), places }
    }

    /// The text without such escapes; none when it has none.
    pub(super) fn without(&self, escapes: Escapes) -> Option<Self> {
        let mut decoded = Self { bytes: Vec::new(), places: Vec::new() };
        let (mut at, mut has_any) = (0, false);
        while let Some(byte) = self.bytes.get(at) {
            let read = self.bytes.get(at..).and_then(|rest| escapes.read(rest));
            has_any |= read.is_some();
            let (letter, length) = read.unwrap_or((Letter::Byte(*byte), 1));
            let place = self.place(at, at + length);
            match letter {
                Letter::Byte(byte) => decoded.push(&[byte], place),
                Letter::Char(letter) => {
                    decoded.push(letter.encode_utf8(&mut [0; 4]).as_bytes(), place);
                }
            }
            at += length;
        }
        has_any.then_some(decoded)
    }

    /// The text without its line breaks and blanks; none when it has none.
    pub(super) fn unwrapped(&self) -> Option<Self> {
        let is_blank = |byte: &u8| is_blank(char::from(*byte));
        if !self.bytes.iter().any(is_blank) {
            return None;
        }
        let kept = self.bytes.iter().zip(&self.places).filter(|(byte, _)| !is_blank(byte));
        let (bytes, places) = kept.map(|(byte, place)| (*byte, *place)).unzip();
        Some(Self { bytes, places })
    }

    fn push(&mut self, bytes: &[u8], place: (usize, usize)) {
        self.bytes.extend(bytes);
        self.places.extend(std::iter::repeat_n(place, bytes.len()));
    }

    /// Where a part of it stood in the whole text.
    pub(super) fn place(&self, start: usize, end: usize) -> (usize, usize) {
        let of = |at: usize| self.places.get(at).copied().unwrap_or_default();
        (of(start).0, of(end.saturating_sub(1)).1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_read_as_they_are_meant() {
        for (escapes, text, wanted) in [
            (Escapes::Address, "a%2Fb%2fc+d%zz%", Some("a/b/c+d%zz%")),
            (Escapes::Form, "a+b%C3%A9", Some("a bé")),
            (
                Escapes::Html,
                "&lt;&amp;amp;&#39;&#x3C;&no;&&sol;&LT&#64x&eacute",
                Some("<&amp;'<&no;&/<@xé"),
            ),
            (Escapes::Json, r#"\u003C\u003c\n\"\/\\n\ud83d\udd11\x41\q"#, Some("<<\n\"/\\n🔑A\\q")),
            (Escapes::Json, r"\ud83dx", None),
            (Escapes::Html, "a & b; %41", None),
        ] {
            let decoded = Decoded::of(text).without(escapes);
            let found = decoded.map(|decoded| String::from_utf8(decoded.bytes).unwrap());
            assert_eq!(found.as_deref(), wanted, "{text}");
        }
        let decoded = Decoded::of("é%41&lt;b").without(Escapes::Address).unwrap();
        let decoded = decoded.without(Escapes::Html).unwrap();
        assert_eq!(decoded.bytes, "éA<b".as_bytes());
        assert_eq!(decoded.place(2, 4), (2, 9));
    }
}
