//! Instants as text: RFC 3339 in UTC, to the millisecond.

const DAY_MS: i64 = 86_400_000;

/// An instant as text.
#[must_use]
pub fn show(ms: u64) -> String {
    let ms = i64::try_from(ms).unwrap_or(i64::MAX);
    let (days, rest) = (ms.div_euclid(DAY_MS), ms.rem_euclid(DAY_MS));
    let (year, month, day) = civil(days);
    let (seconds, millis) = (rest / 1_000, rest % 1_000);
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

/// Reads an instant such as `2026-03-01T08:00:00Z` or `2026-03-01 09:30:00.5+01:30`.
#[must_use]
pub fn parse(text: &str) -> Option<u64> {
    let (date, rest) = text.trim().split_once(['T', 't', ' '])?;
    let zone = rest.find(['Z', 'z', '+', '-'])?;
    let (clock, zone) = rest.split_at_checked(zone)?;
    let [year, month, day] = numbers(date, '-')?;
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let [hour, minute, second] = numbers(clock, ':')?;
    let fits = (1..=12).contains(&month)
        && (1..=days_in(year, month)).contains(&day)
        && hour < 24
        && minute < 60
        && second <= 60;
    if !fits {
        return None;
    }
    let offset = match zone {
        "Z" | "z" => 0,
        zone => {
            let (sign, zone) = zone.split_at_checked(1)?;
            let (hours, minutes) = zone.split_once(':')?;
            let minutes = number(hours)? * 60 + number(minutes)?;
            if sign == "-" { -minutes } else { minutes }
        }
    };
    let millis: String = fraction.chars().chain("000".chars()).take(3).collect();
    let seconds = days(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second;
    u64::try_from((seconds - offset * 60) * 1_000 + number(&millis)?).ok()
}

fn numbers(text: &str, between: char) -> Option<[i64; 3]> {
    let found: Option<Vec<i64>> = text.split(between).map(number).collect();
    found?.try_into().ok()
}

fn number(text: &str) -> Option<i64> {
    let digits = !text.is_empty() && text.len() <= 4 && text.bytes().all(|b| b.is_ascii_digit());
    if digits { text.parse().ok() } else { None }
}

const fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

const fn days_in(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if is_leap(year) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Days from 1970-01-01 to a date. Years begin in March here, so that leap days come last.
const fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The date so many days from 1970-01-01.
fn civil(days_since: i64) -> (i64, i64, i64) {
    let approximate = 1970 + days_since.div_euclid(365);
    let mut year = approximate + 1;
    while days(year, 1, 1) > days_since {
        year -= (days(year, 1, 1) - days_since).div_euclid(366).max(1);
    }
    let mut month = 12;
    while days(year, month, 1) > days_since {
        month -= 1;
    }
    (year, month, days_since - days(year, month, 1) + 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn instants_are_read_in_any_zone() {
        for (text, ms) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2023-11-14T22:13:20.007Z", 1_700_000_000_007),
            ("2023-11-14 23:43:20.0071+01:30", 1_700_000_000_007),
            ("2024-02-29T23:59:59-00:00", 1_709_251_199_000),
        ] {
            assert_eq!(parse(text), Some(ms), "{text}");
        }
        for text in ["", "2023-02-29T00:00:00Z", "2023-01-01", "2023-01-01T00:00:00", "x", "1T2Z"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_shown_is_read_again(ms in 0_u64..4_102_444_800_000) {
            prop_assert_eq!(parse(&show(ms)), Some(ms), "{}", show(ms));
        }
    }
}
