//! What values a setting takes, by the way in which a form asks for it.

use serde_json::Value;

use super::EnvField;

/// How long a value may be, as JSON.
const BYTES_MAX: usize = 64 << 10;

impl EnvField {
    /// Why a value is none that this setting takes.
    #[must_use]
    pub fn misfit(&self, value: &Value) -> Option<String> {
        if value.to_string().len() > BYTES_MAX {
            return Some(format!("is longer than {BYTES_MAX} bytes"));
        }
        let text = value.as_str();
        let fits = match self.r#type.as_str() {
            "checkbox" => return why(value.is_boolean(), "is not true or false"),
            "number" => return why(value.is_number(), "is not a number"),
            "kvlist" => return self.misfit_rows(value),
            "picker" => return misfit_picked(value),
            "dropdown" => {
                let known = text.is_some_and(|text| self.options.iter().any(|known| known == text));
                return why(known, &format!("is not one of {}", self.options.join(", ")));
            }
            "textarea" | "secret" => text.is_some(),
            "color" => return why(text.is_some_and(is_color), "is not a color such as #1a2b3c"),
            "date" => return why(text.is_some_and(is_date), "is not a date such as 2027-03-01"),
            "datetime" => {
                return why(
                    text.is_some_and(is_datetime),
                    "is not a time such as 2027-03-01T09:00",
                );
            }
            "email" => {
                return why(
                    text.is_some_and(is_email),
                    "is not an address such as ann@example.org",
                );
            }
            "url" => {
                return why(
                    text.is_some_and(is_url),
                    "is not an address such as https://example.org",
                );
            }
            _ => match text {
                Some(text) => return why(!text.contains(['\n', '\r']), "has more than one line"),
                None => false,
            },
        };
        why(fits, "is not text")
    }

    /// The value that text stands for, where values can only be written as text.
    ///
    /// What it cannot stand for stays text, so that [`EnvField::misfit`] says so.
    #[must_use]
    pub fn value_of(&self, text: &str) -> Value {
        let parsed = match self.r#type.as_str() {
            "checkbox" | "number" | "kvlist" | "picker" => serde_json::from_str(text.trim()).ok(),
            _ => None,
        };
        parsed.unwrap_or_else(|| Value::from(text))
    }

    fn misfit_rows(&self, value: &Value) -> Option<String> {
        let Some(rows) = value.as_array() else { return Some("is not a list of rows".to_owned()) };
        for (place, row) in rows.iter().enumerate() {
            let Some(row) = row.as_object() else {
                return Some(format!("has no columns in row {}", place + 1));
            };
            if let Some(name) = row.keys().find(|name| !self.columns.contains(name)) {
                return Some(format!(
                    "has a column `{name}` in row {}, and none is asked for",
                    place + 1
                ));
            }
            if row.values().any(|cell| cell.is_array() || cell.is_object()) {
                return Some(format!("has more than one value in a cell of row {}", place + 1));
            }
        }
        None
    }
}

fn why(fits: bool, why: &str) -> Option<String> {
    (!fits).then(|| why.to_owned())
}

fn misfit_picked(value: &Value) -> Option<String> {
    let Some(items) = value.as_array() else { return Some("is not a list".to_owned()) };
    let good = |item: &Value| {
        let id = item.get("id").and_then(Value::as_str).is_some_and(|id| !id.is_empty());
        let name = item.get("name").is_none_or(Value::is_string);
        id && name && item.as_object().is_some_and(|item| item.len() <= 2)
    };
    let bad = items.iter().position(|item| !good(item));
    bad.map(|place| format!("is not `{{id, name}}` at item {}", place + 1))
}

fn is_color(text: &str) -> bool {
    let digits = text.strip_prefix('#').unwrap_or_default();
    matches!(digits.len(), 3 | 4 | 6 | 8) && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// A number of exactly this many digits.
fn number(text: &str, digits: usize) -> Option<u32> {
    let plain = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| plain)
}

fn is_date(text: &str) -> bool {
    let mut parts = text.split('-');
    let mut part = |digits| parts.next().and_then(|part| number(part, digits));
    let (Some(year), Some(month), Some(day)) = (part(4), part(2), part(2)) else { return false };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => 0,
    };
    parts.next().is_none() && (1..=days).contains(&day)
}

/// A date and a time of day, with an offset from UTC or without.
fn is_datetime(text: &str) -> bool {
    let Some((date, time)) = text.split_once(['T', ' ']) else { return false };
    let (time, offset) = match time.find(['Z', '+', '-']) {
        Some(at) => time.split_at(at),
        None => (time, "Z"),
    };
    let seconds = |text: &str| {
        let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
        let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        digits && number(whole, 2).is_some_and(|whole| whole < 60)
    };
    let clock = |text: &str, with_seconds: bool| {
        let mut parts = text.split(':');
        let mut part = |max| parts.next().and_then(|p| number(p, 2)).is_some_and(|n| n < max);
        let good = part(24) && part(60);
        good && parts.next().is_none_or(|text| with_seconds && seconds(text))
            && parts.next().is_none()
    };
    let offset = offset == "Z" || offset.get(1..).is_some_and(|offset| clock(offset, false));
    is_date(date) && clock(time, true) && offset
}

fn is_email(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else { return false };
    let plain = |c: char| !c.is_whitespace() && !c.is_control() && !"<>(),;:\"[]\\".contains(c);
    let labels = || domain.split('.');
    let label =
        |label: &str| !label.is_empty() && label.chars().all(|c| c.is_alphanumeric() || c == '-');
    !local.is_empty()
        && text.len() <= 254
        && local.chars().all(|c| plain(c) && c != '@')
        && labels().count() > 1
        && labels().all(label)
}

fn is_url(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else { return false };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = host.rsplit('@').next().unwrap_or_default();
    let plain = |c: char| !c.is_whitespace() && !c.is_control() && !"<>\"\\^`{|}".contains(c);
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+.-".contains(c))
        && !host.is_empty()
        && !host.starts_with(':')
        && text.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn field(widget: &str) -> EnvField {
        EnvField {
            columns: vec!["id".to_owned(), "name".to_owned()],
            default: None,
            description: String::new(),
            hidden: false,
            hosts: Vec::new(),
            locked: false,
            name: "X".to_owned(),
            options: vec!["live".to_owned(), "dry".to_owned()],
            regenerate: false,
            required: false,
            secret: widget == "secret",
            source: None,
            r#type: widget.parse().unwrap(),
            visible_when: None,
        }
    }

    #[test]
    fn every_widget_takes_its_values_and_no_others() {
        let long = "x".repeat(BYTES_MAX);
        let cases: &[(&str, &[Value], &[Value])] = &[
            (
                "text",
                &[json!(""), json!("a b")],
                &[json!("a\nb"), json!(1), json!(null), json!(long)],
            ),
            ("textarea", &[json!("a\nb")], &[json!(true)]),
            ("number", &[json!(0), json!(-1.5)], &[json!("1"), json!(null)]),
            ("checkbox", &[json!(true)], &[json!("true"), json!(1)]),
            ("dropdown", &[json!("live")], &[json!("Live"), json!(""), json!(1)]),
            (
                "email",
                &[json!("a.b+c@example.org"), json!("ä@bücher.example")],
                &[
                    json!("a"),
                    json!("a@b"),
                    json!("@b.c"),
                    json!("a@b..c"),
                    json!("a b@c.d"),
                    json!("a@b@c.d"),
                ],
            ),
            (
                "url",
                &[json!("https://example.org/x?y=1#z"), json!("http://u:p@h:80")],
                &[
                    json!("example.org"),
                    json!("https://"),
                    json!("https:///x"),
                    json!("https://a b"),
                    json!("://x"),
                    json!("https://:80"),
                ],
            ),
            (
                "color",
                &[json!("#fff"), json!("#1A2b3c80")],
                &[json!("fff"), json!("#ffg"), json!("#12345")],
            ),
            (
                "date",
                &[json!("2024-02-29"), json!("2027-12-31")],
                &[
                    json!("2027-02-29"),
                    json!("2027-13-01"),
                    json!("2027-00-01"),
                    json!("27-1-1"),
                    json!("2027-01-01-01"),
                    json!("2100-02-29"),
                ],
            ),
            (
                "datetime",
                &[
                    json!("2027-03-01T09:00"),
                    json!("2027-03-01T09:00:30.5Z"),
                    json!("2027-03-01 09:00+05:30"),
                ],
                &[
                    json!("2027-03-01"),
                    json!("2027-03-01T24:00"),
                    json!("2027-03-01T09"),
                    json!("2027-03-01T09:00+25:00"),
                    json!("2027-03-01T09:00:60"),
                ],
            ),
            (
                "kvlist",
                &[json!([]), json!([{"id": "C1", "name": "general"}, {"id": 7}])],
                &[json!({}), json!(["x"]), json!([{"other": 1}]), json!([{"id": [1]}])],
            ),
            (
                "picker",
                &[json!([{"id": "U1", "name": "Ann"}]), json!([{"id": "U1"}])],
                &[
                    json!("U1"),
                    json!([{"name": "Ann"}]),
                    json!([{"id": ""}]),
                    json!([{"id": "U1", "name": 1}]),
                    json!([{"id": "U1", "name": "a", "x": 1}]),
                ],
            ),
        ];
        for (widget, good, bad) in cases {
            for value in *good {
                assert_eq!(field(widget).misfit(value), None, "{widget}: {value}");
            }
            for value in *bad {
                assert!(field(widget).misfit(value).is_some(), "{widget}: {value}");
            }
        }
    }

    #[test]
    fn text_stands_for_what_its_setting_takes() {
        for (widget, text, value) in [
            ("number", "7", json!(7)),
            ("number", "seven", json!("seven")),
            ("checkbox", "true", json!(true)),
            ("text", "7", json!("7")),
            ("picker", r#"[{"id": "U1"}]"#, json!([{"id": "U1"}])),
        ] {
            assert_eq!(field(widget).value_of(text), value, "{widget}: {text}");
        }
    }
}
