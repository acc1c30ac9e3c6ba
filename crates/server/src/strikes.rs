//! Patience with wrong tokens.
//!
//! A token has 256 bits, and nobody guesses one. Whoever sends wrong ones all the same is told to
//! slow down. The right token is let in at any time, so nobody can lock out those who share an
//! address with them, such as everybody behind a proxy.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

/// How many wrong tokens of one address are answered in a span of time.
const STRIKES_MAX: u32 = 10;
const SPAN_MS: u64 = 60_000;
/// Of how many addresses wrong tokens are counted at once.
const ADDRESSES_MAX: usize = 4_096;

/// The wrong tokens of a while.
#[derive(Debug, Default)]
pub(crate) struct Strikes(Mutex<HashMap<IpAddr, Span>>);

#[derive(Clone, Copy, Debug)]
struct Span {
    since_ms: u64,
    strikes: u32,
}

impl Span {
    const fn left_ms(self, now_ms: u64) -> u64 {
        // Where the clock went back the span begins anew.
        SPAN_MS.saturating_sub(now_ms.abs_diff(self.since_ms))
    }
}

impl Strikes {
    /// Counts a wrong token; says how long to wait when there were too many.
    pub(crate) fn count(&self, from: IpAddr, now_ms: u64) -> Option<u64> {
        let mut spans = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if spans.len() >= ADDRESSES_MAX && !spans.contains_key(&from) {
            spans.retain(|_, span| span.left_ms(now_ms) > 0);
        }
        // Where wrong tokens come from more addresses than that, each has its own first ones.
        if spans.len() >= ADDRESSES_MAX && !spans.contains_key(&from) {
            return None;
        }
        let fresh = Span { since_ms: now_ms, strikes: 0 };
        let span = spans.entry(from).or_insert(fresh);
        if span.left_ms(now_ms) == 0 {
            *span = fresh;
        }
        span.strikes = span.strikes.saturating_add(1);
        (span.strikes > STRIKES_MAX).then(|| span.left_ms(now_ms))
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    const THERE: IpAddr = IpAddr::V4(Ipv4Addr::BROADCAST);

    #[test]
    fn after_some_wrong_ones_an_address_waits_for_its_minute_to_end() {
        let strikes = Strikes::default();
        assert!((0..10).all(|at| strikes.count(HERE, 1_000 + at).is_none()));
        assert_eq!(strikes.count(HERE, 2_000), Some(59_000));
        assert_eq!(strikes.count(HERE, 60_999), Some(1));
        assert_eq!(strikes.count(THERE, 2_000), None, "another address");
        assert_eq!(strikes.count(HERE, 61_000), None, "another minute");
    }

    #[test]
    fn a_clock_that_goes_back_keeps_nobody_waiting() {
        let strikes = Strikes::default();
        assert_eq!((0..11).filter_map(|_| strikes.count(HERE, 10_000_000)).count(), 1);
        assert_eq!(strikes.count(HERE, 0), None);
    }

    #[test]
    fn the_count_is_bounded() {
        let strikes = Strikes::default();
        for address in 0..10_000 {
            strikes.count(IpAddr::V4(Ipv4Addr::from_bits(address)), 0);
        }
        assert_eq!(strikes.0.lock().unwrap().len(), ADDRESSES_MAX);
        strikes.count(THERE, SPAN_MS);
        assert_eq!(strikes.0.lock().unwrap().len(), 1, "old ones make room");
    }
}
