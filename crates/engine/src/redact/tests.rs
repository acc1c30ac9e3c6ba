use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn hides(secret: &str) -> Redactor {
    Redactor::new([("KEY", &Secret::new(secret))])
}

/// A text in lines of so many letters.
fn wrapped(text: &str, columns: usize, end: &str) -> String {
    let letters: Vec<char> = text.chars().collect();
    letters.chunks(columns).map(|line| line.iter().collect::<String>() + end).collect()
}

fn hex(text: &str, upper: bool) -> String {
    let byte = |byte| if upper { format!("{byte:02X}") } else { format!("{byte:02x}") };
    text.bytes().map(byte).collect()
}

/// JSON in ASCII alone, as `json.dumps` of Python writes it.
fn dumps(text: &str) -> String {
    ascii(text, false)
}

fn ascii(text: &str, upper: bool) -> String {
    let unit = |letter: char| {
        let mut units = [0; 2];
        let units = letter.encode_utf16(&mut units).iter();
        let shown = |unit| if upper { format!("\\u{unit:04X}") } else { format!("\\u{unit:04x}") };
        units.map(shown).collect::<String>()
    };
    let json = Value::from(text).to_string();
    json.chars().map(|c| if c.is_ascii() { c.to_string() } else { unit(c) }).collect()
}

fn percent(text: &str, upper: bool) -> String {
    let byte = |b: u8| match b {
        b if b.is_ascii_alphanumeric() || b"-_.~".contains(&b) => char::from(b).to_string(),
        b if upper => format!("%{b:02X}"),
        b => format!("%{b:02x}"),
    };
    text.bytes().map(byte).collect()
}

/// HTML with names for all signs that have one.
fn named(text: &str, end: &str, capitals: bool) -> String {
    let name = |c: char| match c {
        '&' if capitals => "AMP",
        '&' => "amp",
        '<' if capitals => "LT",
        '<' => "lt",
        '>' if capitals => "GT",
        '>' => "gt",
        '"' if capitals => "QUOT",
        '"' => "quot",
        '\'' => "apos",
        '/' => "sol",
        '+' => "plus",
        '=' => "equals",
        '%' => "percnt",
        '\\' => "bsol",
        ':' => "colon",
        'é' => "eacute",
        'ö' => "ouml",
        _ => "",
    };
    let each = |c: char| match name(c) {
        "" => c.to_string(),
        name => format!("&{name}{end}"),
    };
    text.chars().map(each).collect()
}

/// A name, and how it writes a text.
type Encoding = (&'static str, fn(&str) -> String);

const ENCODINGS: &[Encoding] = &[
    ("raw", |s| s.to_owned()),
    ("reversed", |s| s.chars().rev().collect()),
    ("base64", |s| STANDARD.encode(s)),
    ("base64, shifted by one", |s| STANDARD.encode(format!("x{s}yy"))),
    ("base64, shifted by two", |s| STANDARD.encode(format!("user:{s}"))),
    ("base64url", |s| URL_SAFE.encode(format!("xx{s}"))),
    ("base64, 76 columns", |s| {
        wrapped(&STANDARD.encode(format!("{}{s}", "p".repeat(51))), 76, "\n")
    }),
    ("base64, 64 columns", |s| {
        wrapped(&STANDARD.encode(format!("{}{s}", "p".repeat(43))), 64, "\n")
    }),
    ("base64, MIME", |s| wrapped(&STANDARD.encode(format!("{}{s}z", "p".repeat(52))), 76, "\r\n")),
    ("base64, indented", |s| {
        wrapped(&STANDARD.encode(format!("{}{s}", "p".repeat(41))), 64, "\n    ")
    }),
    ("base64, in JSON", |s| json!(wrapped(&STANDARD.encode(s), 7, "\n")).to_string()),
    ("base64, in JSON with carriage returns", |s| {
        json!(wrapped(&STANDARD.encode(s), 7, "\r\n")).to_string()
    }),
    ("base64, in JSON in JSON", |s| {
        json!(json!(wrapped(&STANDARD.encode(s), 7, "\n")).to_string()).to_string()
    }),
    ("base64, in JSON in JSON in JSON", |s| {
        let once = json!(wrapped(&STANDARD.encode(s), 9, "\r\n")).to_string();
        json!(json!(once).to_string()).to_string()
    }),
    ("base64, breaks as numbers in JSON", |s| wrapped(&STANDARD.encode(s), 7, "\\u000a")),
    ("base64, breaks as numbers in JSON in JSON", |s| wrapped(&STANDARD.encode(s), 7, "\\\\u000A")),
    ("base64, in lines in an address", |s| percent(&wrapped(&STANDARD.encode(s), 7, "\n"), true)),
    ("base64, breaks of HTML", |s| wrapped(&STANDARD.encode(s), 7, "&#10;")),
    ("base64, named breaks of HTML", |s| wrapped(&STANDARD.encode(s), 7, "&NewLine;")),
    ("hex, breaks of an address", |s| wrapped(&hex(s, false), 10, "%0A")),
    ("html, named", |s| named(s, ";", false)),
    ("html, named, some in capitals", |s| named(s, ";", true)),
    ("html, numbers without `;`", |s| {
        // A number reads on as long as digits follow.
        let each = |(at, c): (usize, char)| {
            let next = s.get(at + c.len_utf8()..).and_then(|rest| rest.chars().next());
            match next.is_some_and(|next| next.is_ascii_digit()) || c.is_ascii_alphanumeric() {
                true => c.to_string(),
                false => format!("&#{}", u32::from(c)),
            }
        };
        s.char_indices().map(each).collect::<String>() + " "
    }),
    ("html, named, in JSON", |s| json!(named(s, ";", false)).to_string()),
    ("hex", |s| hex(s, false)),
    ("hex, upper case", |s| hex(s, true)),
    ("hex, wrapped", |s| wrapped(&hex(s, false), 10, "\n")),
    ("percent", |s| percent(s, true)),
    ("percent, lower case", |s| percent(s, false)),
    ("form", |s| percent(s, true).replace("%20", "+")),
    ("json", |s| json!({"k": s}).to_string()),
    ("json in json", |s| json!(json!({"k": s}).to_string()).to_string()),
    ("json.dumps", dumps),
    ("json.dumps, upper case", |s| ascii(s, true)),
    ("json.dumps twice", |s| dumps(&dumps(s))),
    ("json, slashes escaped", |s| json!(s).to_string().replace('/', "\\/")),
    ("html", |s| {
        s.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
    }),
    ("percent, slashes left alone", |s| percent(s, true).replace("%2F", "/")),
    ("percent, some in lower case", |s| {
        let mut upper = false;
        let mut byte = |b: u8| {
            upper = !upper;
            percent(&char::from(b).to_string(), upper)
        };
        if s.is_ascii() { s.bytes().map(&mut byte).collect() } else { percent(s, false) }
    }),
    ("html, `<` and `&` alone", |s| s.replace('&', "&amp;").replace('<', "&lt;")),
    ("html in json", |s| json!(s.replace('&', "&amp;").replace('<', "&lt;")).to_string()),
    ("json, as for a page", |s| {
        json!(s).to_string().replace('<', "\\u003C").replace('>', "\\u003e").replace('&', "\\u0026")
    }),
    ("json, in an address", |s| percent(&json!(s).to_string(), true)),
    ("base64, in an address", |s| percent(&STANDARD.encode(s), true)),
    ("base64url, without padding", |s| URL_SAFE.encode(s).trim_end_matches('=').to_owned()),
    ("hex, mixed", |s| {
        let mixed = |(at, c): (usize, char)| match at % 3 {
            0 => c.to_ascii_uppercase(),
            _ => c,
        };
        hex(s, false).char_indices().map(mixed).collect()
    }),
    ("hex, mixed and wrapped", |s| {
        let mixed = |(at, c): (usize, char)| if at % 3 == 0 { c.to_ascii_uppercase() } else { c };
        wrapped(&hex(s, false).char_indices().map(mixed).collect::<String>(), 16, "\n")
    }),
    ("a script's text", |s| s.replace('\\', "\\\\").replace('\'', "\\'").replace('\n', "\\n")),
    ("two lines", |s| wrapped(s, s.chars().count() / 2 + 1, "\n")),
];

// case: secret.disguise
#[test]
fn a_secret_is_hidden_in_every_form() {
    for secret in [
        "pa ss/\"wörd+1",
        "sk-live-0123456789abcdefABCDEF",
        "пароль-🔑-секрет",
        r#"C:\new\"x"&<y>"#,
        "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    ] {
        let redactor = hides(secret);
        for (name, encode) in ENCODINGS {
            let text = format!("before {} after", encode(secret));
            let hidden = redactor.text(&text).into_owned();
            assert!(hidden.contains("[secret:KEY]"), "{name} of {secret}: {text} became {hidden}");
            assert!(
                hidden.starts_with("before ") && hidden.ends_with(" after"),
                "{name}: {hidden}"
            );
            // What stays of base64 are the letters at the ends, which others share.
            let stays =
                hidden.replace("[secret:KEY]", "").replace("before ", "").replace(" after", "");
            assert!(!stays.contains(secret), "{name} of {secret}: {hidden}");
            let own = encode(secret).matches(['p', '\r', '\n', ' ']).count();
            assert!(stays.len() <= own + 80, "{name} of {secret}: {hidden}");
        }
        assert_eq!(redactor.text(&format!("a {secret} b")), "a [secret:KEY] b");
    }
}

#[test]
fn short_secrets_are_not_looked_for_across_lines() {
    let redactor = hides("123456");
    assert_eq!(redactor.text("123\n456"), "123\n456");
    assert_eq!(redactor.text("x 123456\ny"), "x [secret:KEY]\ny");
}

#[test]
fn values_are_searched_to_their_last_corner() {
    let redactor = hides("12345678");
    let value = json!({"12345678": [{"n": 12_345_678, "m": 7}, "is 12345678!", null, true]});
    let hidden =
        json!({"[secret:KEY]": [{"n": "[secret:KEY]", "m": 7}, "is [secret:KEY]!", null, true]});
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
    let encoded = wrapped(&STANDARD.encode(key), 20, "\n");
    assert!(redactor.text(&encoded).contains("[secret:KEY]"), "{encoded}");
}

proptest! {
    #[test]
    fn no_encoder_hides_a_secret(
        secret in "[a-zA-Z0-9/\"'<>&%+=\\\\ \n\u{e9}\u{20ac}\u{1f511}-]{8,40}[a-z]{3}",
        // Half an escape in front would take the first character of the secret with it.
        before in "([ -~]{0,8} )?", after in "[ -~]{0,9}",
    ) {
        let redactor = hides(&secret);
        // What is two lines is looked for without its blanks, of which some are all.
        for (name, encode) in ENCODINGS.iter().filter(|(name, _)| *name != "two lines") {
            let encoded = encode(&secret);
            let hidden = redactor.text(&format!("{before}{encoded}{after}")).into_owned();
            prop_assert!(!hidden.contains(&encoded), "{name} of {secret:?}: {hidden}");
            prop_assert!(hidden.contains("[secret:KEY]"), "{name} of {secret:?}: {hidden}");
        }
    }

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
