//! The ways in which a secret may be written.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use serde_json::Value;

use super::LENGTH_MIN;

/// A line of a longer secret that is hidden by itself, too.
const LINE_MIN: usize = 16;

/// What stands in an address as it is, beside letters and digits.
const PLAIN: &[u8] = b"-_.~";
/// The same as `encodeURIComponent` sees it.
const PLAIN_IN_SCRIPTS: &[u8] = b"-_.~!*'()";

/// The ways in which a secret may be written.
pub(super) fn forms(secret: &str) -> BTreeSet<String> {
    if secret.len() < LENGTH_MIN {
        return BTreeSet::new();
    }
    let mut forms: BTreeSet<String> = written(secret);
    if secret.contains('\n') {
        let lines = secret.lines().map(str::trim).filter(|line| line.len() >= LINE_MIN);
        forms.extend(lines.flat_map(written));
        forms.insert(secret.trim_end().to_owned());
        // What looks for wrapped texts leaves line breaks out.
        forms.extend(written(&secret.replace(['\r', '\n'], "")));
    }
    forms.retain(|form| form.len() >= LENGTH_MIN);
    forms
}

/// A secret, and each line of a longer one, in hex.
pub(super) fn hex_forms(secret: &str) -> BTreeSet<String> {
    if secret.len() < LENGTH_MIN {
        return BTreeSet::new();
    }
    let lines = secret.lines().map(str::trim).filter(|line| line.len() >= LINE_MIN);
    lines.chain([secret, secret.trim_end()]).filter(|text| !text.is_empty()).map(hex).collect()
}

fn hex(text: &str) -> String {
    text.bytes().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

fn written(text: &str) -> BTreeSet<String> {
    let reversed = text.chars().rev().collect();
    let mut forms = BTreeSet::from([text.to_owned(), reversed]);
    forms.extend(in_json(text));
    for plain in [PLAIN, PLAIN_IN_SCRIPTS] {
        let cases = [(false, false), (true, false), (false, true), (true, true)];
        forms.extend(cases.map(|(lower, form)| percent(text, plain, lower, form)));
    }
    forms.extend(letter_by_letter(text));
    forms.extend(["&#39;", "&#x27;", "&apos;", "'"].map(|quote| html(text, quote)));
    for shift in 0..3 {
        forms.insert(inside(&STANDARD, text, shift));
        forms.insert(inside(&URL_SAFE, text, shift));
    }
    forms
}

/// The text inside a JSON text, and inside a JSON text that is inside another one: as it is, or
/// with everything beyond ASCII written out, and with `/` written out.
fn in_json(text: &str) -> BTreeSet<String> {
    let once = |text: &str| {
        let json = Value::from(text).to_string();
        let json = json.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(&json);
        [json.to_owned(), ascii(json, false), ascii(json, true)]
    };
    let mut forms: BTreeSet<String> = once(text).into();
    forms.extend(forms.clone().iter().flat_map(|json| once(json)));
    forms.extend(forms.clone().iter().map(|json| json.replace('/', "\\/")));
    forms
}

/// A text with everything beyond ASCII as `\\uXXXX`, in two parts where one is too small.
fn ascii(text: &str, upper: bool) -> String {
    let mut escaped = String::new();
    for letter in text.chars() {
        if letter.is_ascii() {
            escaped.push(letter);
            continue;
        }
        for unit in letter.encode_utf16(&mut [0; 2]) {
            let _ = match upper {
                true => write!(escaped, "\\u{unit:04X}"),
                false => write!(escaped, "\\u{unit:04x}"),
            };
        }
    }
    escaped
}

/// The text with every letter of it written out, as in addresses, in JSON and in HTML.
fn letter_by_letter(text: &str) -> [String; 7] {
    let bytes = |write: fn(u8) -> String| text.bytes().map(write).collect::<String>();
    let units = |write: fn(u16) -> String| text.encode_utf16().map(write).collect::<String>();
    let letters = |write: fn(u32) -> String| text.chars().map(|l| write(u32::from(l))).collect();
    [
        bytes(|byte| format!("%{byte:02x}")),
        bytes(|byte| format!("%{byte:02X}")),
        units(|unit| format!("\\u{unit:04x}")),
        units(|unit| format!("\\u{unit:04X}")),
        letters(|letter| format!("&#{letter};")),
        letters(|letter| format!("&#x{letter:x};")),
        letters(|letter| format!("&#x{letter:X};")),
    ]
}

/// The text in HTML or XML. How a single quote is written differs.
fn html(text: &str, quote: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;").replace('\'', quote)
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
fn percent(text: &str, plain: &[u8], lower: bool, form: bool) -> String {
    text.bytes().fold(String::new(), |mut escaped, byte| {
        let plain = byte.is_ascii_alphanumeric() || plain.contains(&byte);
        let _ = match byte {
            byte if plain => write!(escaped, "{}", char::from(byte)),
            b' ' if form => write!(escaped, "+"),
            byte if lower => write!(escaped, "%{byte:02x}"),
            byte => write!(escaped, "%{byte:02X}"),
        };
        escaped
    })
}
