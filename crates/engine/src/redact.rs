//! Keeps secrets out of whatever is recorded or shown.
//!
//! A secret is found as it is, and as it looks in base64, hex, an address and JSON. It is a
//! net below the rope: that no secret gets to where it does not belong is the compiler's
//! business, and a secret in some other disguise is not found.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::Write as _;

use aho_corasick::{AhoCorasick, MatchKind};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use serde_json::Value;

use crate::secrets::Secret;

/// Shorter secrets would hide half of every text.
pub const LENGTH_MIN: usize = 6;
/// A line of a longer secret that is hidden by itself, too.
const LINE_MIN: usize = 16;

/// Hides secrets.
#[derive(Clone, Debug, Default)]
pub struct Redactor(Finder);

/// What finds secrets.
#[derive(Clone, Debug, Default)]
enum Finder {
    /// There are none.
    #[default]
    Nothing,
    /// Finds the forms of all secrets, with what to put in the place of each.
    Forms(AhoCorasick, Vec<String>),
    /// It could not be made. What cannot be searched is not shown.
    Blind,
}

/// What stands for a text that could not be searched.
const UNSEARCHED: &str = "[hidden: secrets could not be searched for]";

impl Redactor {
    /// Hides these secrets, by name.
    #[must_use]
    pub fn new<'a>(secrets: impl IntoIterator<Item = (&'a str, &'a Secret)>) -> Self {
        let mut patterns = Vec::new();
        let mut shown = Vec::new();
        for (name, secret) in secrets {
            for form in forms(secret.expose()) {
                patterns.push(form);
                shown.push(format!("[secret:{name}]"));
            }
        }
        if patterns.is_empty() {
            return Self::default();
        }
        let finder = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(patterns);
        Self(finder.map_or(Finder::Blind, |finder| Finder::Forms(finder, shown)))
    }

    /// Whether there is nothing to hide.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        matches!(self.0, Finder::Nothing)
    }

    /// The text without secrets.
    #[must_use]
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let (finder, shown) = match &self.0 {
            Finder::Nothing => return Cow::Borrowed(text),
            Finder::Blind => return Cow::Borrowed(UNSEARCHED),
            Finder::Forms(finder, shown) => (finder, shown),
        };
        if !finder.is_match(text) {
            return Cow::Borrowed(text);
        }
        let mut hidden = String::with_capacity(text.len());
        finder.replace_all_with(text, &mut hidden, |found, _, hidden| {
            // Each pattern has its place, so a missing one hides as well.
            let name = shown.get(found.pattern().as_usize()).map_or(UNSEARCHED, String::as_str);
            hidden.push_str(name);
            true
        });
        Cow::Owned(hidden)
    }

    /// The value without secrets, in its texts, its names and its numbers.
    #[must_use]
    pub fn value(&self, value: Value) -> Value {
        if self.is_empty() {
            return value;
        }
        if matches!(self.0, Finder::Blind) {
            return Value::String(UNSEARCHED.to_owned());
        }
        match value {
            Value::String(text) => match self.text(&text) {
                Cow::Borrowed(_) => Value::String(text),
                Cow::Owned(hidden) => Value::String(hidden),
            },
            Value::Number(number) => match self.text(&number.to_string()) {
                Cow::Borrowed(_) => Value::Number(number),
                Cow::Owned(hidden) => Value::String(hidden),
            },
            Value::Array(items) => items.into_iter().map(|item| self.value(item)).collect(),
            Value::Object(members) => members
                .into_iter()
                .map(|(name, member)| (self.text(&name).into_owned(), self.value(member)))
                .collect(),
            other => other,
        }
    }
}

/// The ways in which a secret may be written.
fn forms(secret: &str) -> BTreeSet<String> {
    if secret.len() < LENGTH_MIN {
        return BTreeSet::new();
    }
    let mut forms: BTreeSet<String> = written(secret);
    if secret.contains('\n') {
        let lines = secret.lines().map(str::trim).filter(|line| line.len() >= LINE_MIN);
        forms.extend(lines.flat_map(written));
        forms.insert(secret.trim_end().to_owned());
    }
    forms.retain(|form| form.len() >= LENGTH_MIN);
    forms
}

fn written(text: &str) -> BTreeSet<String> {
    let hex = text.bytes().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    });
    let json = Value::from(text).to_string();
    let json = json.trim_start_matches('"').strip_suffix('"').unwrap_or(&json).to_owned();
    let mut forms = BTreeSet::from([text.to_owned(), hex.to_uppercase(), hex, json]);
    forms.extend([false, true].map(|lower| percent(text, lower, false)));
    forms.extend([false, true].map(|lower| percent(text, lower, true)));
    for shift in 0..3 {
        forms.insert(inside(&STANDARD, text, shift));
        forms.insert(inside(&URL_SAFE, text, shift));
    }
    forms
}

/// The characters that every base64 text has which holds this text `shift` bytes into a
/// group of three. Those at the ends depend on what is around it.
fn inside(engine: &impl Engine, text: &str, shift: usize) -> String {
    let padded = [vec![0; shift].as_slice(), text.as_bytes()].concat();
    let first = [0, 2, 3].get(shift).copied().unwrap_or_default();
    let whole = padded.len() * 8 / 6;
    engine.encode(&padded).get(first..whole).unwrap_or_default().to_owned()
}

/// The text as it stands in an address, or in a form.
fn percent(text: &str, lower: bool, form: bool) -> String {
    text.bytes().fold(String::new(), |mut escaped, byte| {
        let plain = byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
        let _ = match byte {
            byte if plain => write!(escaped, "{}", char::from(byte)),
            b' ' if form => write!(escaped, "+"),
            byte if lower => write!(escaped, "%{byte:02x}"),
            byte => write!(escaped, "%{byte:02X}"),
        };
        escaped
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn hides(secret: &str) -> Redactor {
        Redactor::new([("KEY", &Secret::new(secret))])
    }

    #[test]
    fn a_secret_is_hidden_in_every_form() {
        let secret = "pa ss/\"wörd+1";
        let redactor = hides(secret);
        let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
        for (form, text) in [
            ("raw", format!("a {secret} b")),
            ("base64", format!("a {} b", STANDARD.encode(secret))),
            ("base64, shifted by one", STANDARD.encode(format!("x{secret}yy"))),
            ("base64, shifted by two", STANDARD.encode(format!("user:{secret}"))),
            ("base64url", URL_SAFE.encode(format!("xx{secret}"))),
            ("hex", format!("a {hex} b")),
            ("upper-case hex", hex.to_uppercase()),
            ("percent", "?k=pa%20ss%2F%22w%C3%B6rd%2B1&x".to_owned()),
            ("lower-case percent", "?k=pa%20ss%2f%22w%c3%b6rd%2b1".to_owned()),
            ("form", "k=pa+ss%2F%22w%C3%B6rd%2B1".to_owned()),
            ("json", json!({"k": secret}).to_string()),
        ] {
            let hidden = redactor.text(&text);
            assert!(hidden.contains("[secret:KEY]"), "{form}: {text} became {hidden}");
        }
        assert_eq!(redactor.text(&format!("a {secret} b")), "a [secret:KEY] b");
    }

    #[test]
    fn values_are_searched_to_their_last_corner() {
        let redactor = hides("12345678");
        let value = json!({"12345678": [{"n": 12_345_678, "m": 7}, "is 12345678!", null, true]});
        let hidden = json!({"[secret:KEY]": [{"n": "[secret:KEY]", "m": 7}, "is [secret:KEY]!", null, true]});
        assert_eq!(redactor.value(value), hidden);
    }

    #[test]
    fn without_secrets_nothing_is_touched() {
        let none = Redactor::new([]);
        assert!(none.is_empty() && hides("short").is_empty());
        assert!(matches!(none.text("plain"), Cow::Borrowed("plain")));
        assert!(matches!(hides("something").text("plain"), Cow::Borrowed("plain")));
    }

    #[test]
    fn what_cannot_be_searched_is_not_shown() {
        let blind = Redactor(Finder::Blind);
        assert!(!blind.is_empty());
        assert_eq!(blind.text("plain"), UNSEARCHED);
        for value in [json!("plain"), json!(7), json!({"plain": [true]})] {
            assert_eq!(blind.value(value), json!(UNSEARCHED));
        }
    }

    #[test]
    fn of_two_secrets_the_longer_counts() {
        let (long, short) = (Secret::new("secret-value-long"), Secret::new("secret-value"));
        let both = Redactor::new([("SHORT", &short), ("LONG", &long)]);
        assert_eq!(both.text("secret-value-long secret-value"), "[secret:LONG] [secret:SHORT]");
    }

    #[test]
    fn a_line_of_a_long_secret_is_hidden_too() {
        let key = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\nAQEFAASCBKcwggSjAgEAAoIB\n";
        let redactor = hides(key);
        assert_eq!(redactor.text("x MIIEvQIBADANBgkqhkiG9w0B y"), "x [secret:KEY] y");
        assert_eq!(redactor.text(key.trim_end()), "[secret:KEY]");
    }

    proptest! {
        #[test]
        fn no_secret_is_left(
            secret in "[ -~é]{6,40}", before in "[ -~]{0,9}", after in "[ -~]{0,9}",
        ) {
            let redactor = hides(&secret);
            let text = format!("{before}{secret}{after}");
            prop_assert!(!redactor.text(&text).contains(&secret) || "[secret:KEY]".contains(&secret));
            prop_assert!(redactor.text(&STANDARD.encode(&text)).contains("[secret:KEY]"));
            let twice = redactor.text(&redactor.text(&text)).into_owned();
            prop_assert!(twice.contains("[secret:"));
        }
    }
}
