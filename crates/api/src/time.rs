//! Instants on the wire: RFC 3339 in UTC, to the millisecond.

use jiff::Timestamp;
use jiff::fmt::temporal::DateTimePrinter;

/// Ids minted before this cannot have been: the time in them is chance.
const EARLIEST_MS: u64 = 1_577_836_800_000; // 2020-01-01
/// Nor after this.
const LATEST_MS: u64 = 4_102_444_800_000; // 2100-01-01

/// An instant as text; none when it is beyond what a date can hold.
#[must_use]
pub fn rfc3339(ms: u64) -> Option<String> {
    let instant = Timestamp::from_millisecond(i64::try_from(ms).ok()?).ok()?;
    Some(DateTimePrinter::new().precision(Some(3)).timestamp_to_string(&instant))
}

/// When an id was minted; none when the id is a derived one and holds no time.
///
/// Nothing is decided by it: it is for people.
#[must_use]
pub const fn plausible(minted_ms: u64) -> Option<u64> {
    if minted_ms >= EARLIEST_MS && minted_ms < LATEST_MS { Some(minted_ms) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_have_three_digits_after_the_point() {
        assert_eq!(rfc3339(1_700_000_000_000).as_deref(), Some("2023-11-14T22:13:20.000Z"));
        assert_eq!(rfc3339(1_700_000_000_007).as_deref(), Some("2023-11-14T22:13:20.007Z"));
        assert_eq!(rfc3339(u64::MAX), None);
    }

    #[test]
    fn a_derived_id_holds_no_time() {
        assert_eq!(plausible(1_700_000_000_000), Some(1_700_000_000_000));
        assert_eq!(plausible(7), None);
        assert_eq!(plausible(0xffff_ffff_ffff), None);
    }
}
