//! Text in the encodings that servers still use.
//!
//! What a server calls ISO 8859-1 is read as Windows-1252, as browsers do.

use thiserror::Error;

/// Why bytes are no text.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub(super) enum Unread {
    #[error("the answer is not text in UTF-8")]
    NotUtf8,
    #[error("the answer says that it is `{0}`, and is not")]
    Broken(String),
    #[error("the answer is in `{0}`, which is not known here")]
    Unknown(String),
}

/// What Windows-1252 has from 0x80 to 0x9f. Five of them stand for themselves.
const WINDOWS: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}',
    '\u{90}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
];
/// Where ISO 8859-15 differs from ISO 8859-1.
const LATIN_9: [(u8, char); 8] = [
    (0xa4, '€'),
    (0xa6, 'Š'),
    (0xa8, 'š'),
    (0xb4, 'Ž'),
    (0xb8, 'ž'),
    (0xbc, 'Œ'),
    (0xbd, 'œ'),
    (0xbe, 'Ÿ'),
];

/// The text that bytes are, in the encoding that they are said to be in. A mark at their beginning
/// counts for more.
pub(super) fn decode(bytes: &[u8], charset: Option<&str>) -> Result<String, Unread> {
    if let Some(rest) = bytes.strip_prefix(b"\xef\xbb\xbf") {
        return utf8(rest);
    }
    for (mark, is_big) in [(b"\xff\xfe", false), (b"\xfe\xff", true)] {
        // Any byte is a letter in some encodings, so only those that say nothing are read by it.
        let is_wide = charset.is_none_or(|name| name.starts_with("utf"));
        if let Some(rest) = bytes.strip_prefix(mark).filter(|_| is_wide) {
            return utf16(rest, is_big).ok_or_else(|| Unread::Broken("utf-16".to_owned()));
        }
    }
    match charset {
        None | Some("utf-8" | "utf8" | "us-ascii" | "ascii") => utf8(bytes),
        Some("iso-8859-1" | "latin1" | "l1" | "windows-1252" | "cp1252") => {
            Ok(bytes.iter().map(|byte| windows(*byte)).collect())
        }
        Some("iso-8859-15" | "latin9" | "l9") => {
            let letter = |byte: &u8| {
                let own = LATIN_9.iter().find(|(other, _)| other == byte);
                own.map_or(char::from(*byte), |(_, letter)| *letter)
            };
            Ok(bytes.iter().map(letter).collect())
        }
        Some(name @ ("utf-16" | "utf-16le")) => {
            utf16(bytes, false).ok_or_else(|| Unread::Broken(name.to_owned()))
        }
        Some(name @ "utf-16be") => {
            utf16(bytes, true).ok_or_else(|| Unread::Broken(name.to_owned()))
        }
        // Most of what is said to be something else is plain all the same.
        Some(name) if bytes.is_ascii() => utf8(bytes).map_err(|_| Unread::Broken(name.to_owned())),
        Some(name) => Err(Unread::Unknown(name.chars().take(40).collect())),
    }
}

fn utf8(bytes: &[u8]) -> Result<String, Unread> {
    std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| Unread::NotUtf8)
}

fn windows(byte: u8) -> char {
    let place = byte.checked_sub(0x80).map(usize::from);
    place.and_then(|place| WINDOWS.get(place)).copied().unwrap_or(char::from(byte))
}

fn utf16(bytes: &[u8], is_big: bool) -> Option<String> {
    let pairs = bytes.chunks(2).map(|pair| <[u8; 2]>::try_from(pair).ok());
    let unit =
        |pair: [u8; 2]| if is_big { u16::from_be_bytes(pair) } else { u16::from_le_bytes(pair) };
    let units: Option<Vec<u16>> = pairs.map(|pair| pair.map(unit)).collect();
    String::from_utf16(&units?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_read_in_the_encoding_that_it_is_said_to_be_in() {
        for (bytes, charset, text) in [
            (&b"caf\xc3\xa9"[..], None, Ok("café")),
            (b"caf\xc3\xa9", Some("utf-8"), Ok("café")),
            (b"\xef\xbb\xbfcaf\xc3\xa9", Some("iso-8859-1"), Ok("café")),
            (b"caf\xe9 \x80", Some("iso-8859-1"), Ok("café €")),
            (b"\x93caf\xe9\x94", Some("windows-1252"), Ok("“café”")),
            (b"caf\xe9 \xa4", Some("iso-8859-15"), Ok("café €")),
            (b"\xff\xfeh\0i\0", None, Ok("hi")),
            (b"\0h\0i", Some("utf-16be"), Ok("hi")),
            (b"h\0i\0", Some("utf-16le"), Ok("hi")),
            (b"plain", Some("shift_jis"), Ok("plain")),
            (b"caf\xe9", None, Err(Unread::NotUtf8)),
            (b"caf\xe9", Some("utf-8"), Err(Unread::NotUtf8)),
            (b"h\0i", Some("utf-16le"), Err(Unread::Broken("utf-16le".to_owned()))),
            (b"\x82\xa0", Some("shift_jis"), Err(Unread::Unknown("shift_jis".to_owned()))),
        ] {
            assert_eq!(decode(bytes, charset), text.map(str::to_owned), "{bytes:?} {charset:?}");
        }
    }
}
