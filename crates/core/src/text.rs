//! Text under a byte budget, and names that are safe inside keys.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize};

/// What stands at the end of a text that was cut.
pub const TRUNCATED: &str = "\n\n[TRUNCATED]";

/// Cuts a text to `max` bytes of UTF-8, marker included; a text that fits stays as it is.
///
/// The beginning is kept. A budget smaller than the marker gives as much of the marker as fits.
#[must_use]
pub fn truncate(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    let (keep, marker) = match max.checked_sub(TRUNCATED.len()) {
        Some(room) => (text.floor_char_boundary(room), TRUNCATED.len()),
        None => (0, max),
    };
    let mut cut = text.get(..keep).unwrap_or_default().to_owned();
    cut.push_str(TRUNCATED.get(..marker).unwrap_or_default());
    cut
}

/// Text from elsewhere that a terminal or a log only shows: whatever would move the cursor, change
/// colors, break the line or turn the direction of reading is written out, such as `\u{1b}`.
#[must_use]
pub fn inert(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        if acts(letter) {
            shown.extend(letter.escape_unicode());
        } else {
            shown.push(letter);
        }
    }
    shown
}

/// Whether a letter does something to its surroundings instead of standing among them.
#[must_use]
pub fn acts(letter: char) -> bool {
    letter.is_control()
        || matches!(
            letter,
            // Marks, embeddings, overrides and isolates of the direction of reading.
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
            // Ends of lines and paragraphs.
            | '\u{2028}' | '\u{2029}'
            // Letters that nobody sees: a mark of byte order, and tags.
            | '\u{feff}' | '\u{e0000}'..='\u{e007f}'
        )
}

/// Whether a text has the form of a workflow's id: `namespace.name`, or a name alone as it was
/// before there were namespaces. Nothing else can stand for it: there is one way to write each.
#[must_use]
pub fn is_workflow_id(text: &str) -> bool {
    match text.split_once('.') {
        Some((namespace, name)) => is_segment(namespace) && is_segment(name),
        None => !text.is_empty() && text.bytes().all(is_plain),
    }
}

fn is_segment(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_lowercase()) && text.bytes().all(is_plain)
}

const fn is_plain(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_' || byte == b'-'
}

/// A name of lower-case letters, digits, `_` and `-`, so that it needs no escaping in a key.
///
/// Dots join the names of what stands inside something else, such as `design.compare`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Slug(String);

/// Why a text is not a [`Slug`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a name: use 1 to 128 of a-z, 0-9, `_` and `-`, with dots between")]
pub struct InvalidSlug(pub String);

impl Slug {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Slug {
    type Err = InvalidSlug;

    fn from_str(text: &str) -> Result<Self, InvalidSlug> {
        let name = |part: &str| !part.is_empty() && part.bytes().all(is_plain);
        if text.len() <= 128 && text.split('.').all(name) {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidSlug(text.chars().take(64).collect()))
        }
    }
}

impl fmt::Display for Slug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Slug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl<'de> Deserialize<'de> for Slug {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        input.deserialize_str(crate::id::IdVisitor(std::marker::PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_cut_keeps_the_beginning_and_whole_characters() {
        assert_eq!(truncate("short", 5), "short");
        assert_eq!(truncate("äöüäöüäöüäöü", 20), "äöü\n\n[TRUNCATED]");
        assert_eq!(truncate("0123456789abcdef", 14), "0\n\n[TRUNCATED]");
        assert_eq!(truncate("0123456789abcdef", 5), "\n\n[TR");
    }

    // case: terminal.inert
    #[test]
    fn what_acts_on_a_terminal_is_written_out() {
        for (given, shown) in [
            ("plain, ä, 漢字, 👩\u{200d}🚀, نص", "plain, ä, 漢字, 👩\u{200d}🚀, نص"),
            ("\x1b[31mred\x07", "\\u{1b}[31mred\\u{7}"),
            ("a\r\nb\tc\0\x7f", "a\\u{d}\\u{a}b\\u{9}c\\u{0}\\u{7f}"),
            ("\u{9b}2J\u{85}", "\\u{9b}2J\\u{85}"),
            ("txt.\u{202e}exe", "txt.\\u{202e}exe"),
            ("\u{2066}\u{2069}\u{61c}\u{200f}", "\\u{2066}\\u{2069}\\u{61c}\\u{200f}"),
            ("a\u{2028}b\u{feff}\u{e0041}", "a\\u{2028}b\\u{feff}\\u{e0041}"),
        ] {
            assert_eq!(inert(given), shown, "{given:?}");
        }
    }

    #[test]
    fn names_are_safe_inside_keys() {
        for good in ["a", "0", "fetch-1_b", "design.compare"] {
            assert!(good.parse::<Slug>().is_ok(), "{good}");
        }
        for bad in ["", "A", "a b", "a@0", "a/b", "a::b", ".", ".a", "a.", "a..b", "ä"] {
            assert!(bad.parse::<Slug>().is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn a_cut_text_fits_and_is_cut_only_once(text: String, max in 0usize..64) {
            let cut = truncate(&text, max);
            prop_assert!(cut.len() <= max || cut == text);
            prop_assert_eq!(truncate(&cut, max), cut);
        }
    }
}
