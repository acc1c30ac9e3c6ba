//! Filters of instants. Zones are offsets: which one a place has is no matter of the text alone.

use serde_json::Value;

use super::Input;
use crate::expression::text::shown;
use crate::expression::{Error, ErrorKind};
use crate::time;

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] =
    ["Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday"];
/// What a day is written as when nothing else is asked for.
const DAY: &str = "%Y-%m-%d";
/// How many bytes a form may have.
const FORM_MAX: usize = 256;
const DAY_MS: u64 = 86_400_000;
/// The first instant that is not read any more: the year 10000.
const END_MS: u64 = 253_402_300_800_000;

pub(super) fn date(input: &Input<'_>) -> Result<Option<Value>, Error> {
    let form = input.text_argument("date", 0)?.unwrap_or(DAY);
    let zone = input.text_argument("date", 1)?.unwrap_or("Z");
    let minutes = offset(zone).ok_or_else(|| {
        let message = format!("`{zone}` is no offset from UTC, such as `+02:00` or `Z`");
        Error::new(ErrorKind::Invalid, message)
    })?;
    let ms = instant(input, "date")?;
    let local = ms.saturating_add_signed(minutes * 60_000);
    input.made(written(form, ms, local, minutes).map_err(|m| Error::new(ErrorKind::Invalid, m))?)
}

pub(super) fn timestamp(input: &Input<'_>) -> Result<Option<Value>, Error> {
    Ok(Some(Value::from(instant(input, "timestamp")? / 1_000)))
}

pub(super) fn plus_seconds(input: &Input<'_>) -> Result<Option<Value>, Error> {
    let ms = instant(input, "plus_seconds")?;
    let seconds = input.argument(0).and_then(Value::as_i64);
    let moved = seconds.and_then(|seconds| ms.checked_add_signed(seconds.checked_mul(1_000)?));
    match moved.filter(|moved| *moved < END_MS) {
        Some(moved) => input.made(time::show(moved)),
        None => Err(Error::kind(
            "`plus_seconds` takes a whole number of seconds, within the years 1970 to 9999",
        )),
    }
}

/// Says what is wrong with a form.
pub(super) fn check(form: &str) -> Result<(), String> {
    written(form, 0, 0, 0).map(drop)
}

/// The instant that a value names: as text with its offset, as a day, or as seconds since 1970.
fn instant(input: &Input<'_>, filter: &str) -> Result<u64, Error> {
    let found = match input.value {
        Value::String(text) if text.len() == 10 => time::parse(&format!("{text}T00:00:00Z")),
        Value::String(text) => time::parse(text),
        Value::Number(number) => number.as_u64().and_then(|seconds| seconds.checked_mul(1_000)),
        _ => return input.refuse(filter, "an instant"),
    };
    found.filter(|ms| *ms < END_MS).ok_or_else(|| {
        let message = format!(
            "{} is no instant since 1970, such as `2027-03-01T09:00:00Z`, `2027-03-01` or a number of seconds",
            shown(input.value)
        );
        Error::new(ErrorKind::Invalid, message)
    })
}

/// The minutes of an offset.
fn offset(zone: &str) -> Option<i64> {
    if zone == "Z" {
        return Some(0);
    }
    let (sign, rest) = zone.split_at_checked(1)?;
    let (hours, minutes) = rest.split_once(':')?;
    let part = |text: &str, max: i64| {
        let number = text.parse::<u8>().ok().map(i64::from).filter(|number| *number <= max);
        number.filter(|_| text.len() == 2 && text.bytes().all(|b| b.is_ascii_digit()))
    };
    let minutes = part(hours, 18)? * 60 + part(minutes, 59)?;
    match sign {
        "+" => Some(minutes),
        "-" => Some(-minutes),
        _ => None,
    }
}

/// An instant in a form.
fn written(form: &str, ms: u64, local: u64, minutes: i64) -> Result<String, String> {
    if form.len() > FORM_MAX {
        return Err(format!("the form of a date has at most {FORM_MAX} bytes"));
    }
    // `2027-03-01T09:00:00.000Z`
    let shown = time::show(local);
    let part = |from: usize, to: usize| shown.get(from..to).unwrap_or_default().to_owned();
    let days = local / DAY_MS;
    let month =
        part(5, 7).parse::<usize>().ok().and_then(|month| MONTHS.get(month.checked_sub(1)?));
    let weekday = usize::try_from(days % 7).ok().and_then(|day| DAYS.get(day));
    let name = |name: Option<&&str>, short: bool| {
        let name = name.copied().unwrap_or_default();
        if short { name.get(..3).unwrap_or_default().to_owned() } else { name.to_owned() }
    };
    let mut text = String::new();
    let mut signs = form.chars();
    while let Some(sign) = signs.next() {
        if sign != '%' {
            text.push(sign);
            continue;
        }
        text.push_str(&match signs.next() {
            Some('Y') => part(0, 4),
            Some('m') => part(5, 7),
            Some('d') => part(8, 10),
            Some('H') => part(11, 13),
            Some('M') => part(14, 16),
            Some('S') => part(17, 19),
            Some('L') => part(20, 23),
            Some('F') => part(0, 10),
            Some('T') => part(11, 19),
            Some('a') => name(weekday, true),
            Some('A') => name(weekday, false),
            Some('b') => name(month, true),
            Some('B') => name(month, false),
            Some('s') => (ms / 1_000).to_string(),
            Some('z') => {
                let (hours, rest) = (minutes.abs() / 60, minutes.abs() % 60);
                format!("{}{hours:02}:{rest:02}", if minutes < 0 { '-' } else { '+' })
            }
            Some('%') => "%".to_owned(),
            other => {
                let other = other.map(String::from).unwrap_or_default();
                return Err(format!("a date has no `%{other}`; known are `%Y %m %d %H %M %S %L %F %T %a %A %b %B %s %z %%`"));
            }
        });
    }
    Ok(text)
}
