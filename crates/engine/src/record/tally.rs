//! Counts what is refused, so that nobody fills the disk by being turned away.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::Refusal;

/// How long the same refusal is only counted once it is written.
const SPAN_MS: u64 = 60_000;
/// How many kinds of refusal are told apart at a time; what is more is counted together.
const KINDS_MAX: usize = 64;

/// The refusals of the last minute.
#[derive(Debug, Default)]
pub(super) struct Tally(Mutex<BTreeMap<String, Counted>>);

#[derive(Debug)]
struct Counted {
    refusal: Refusal,
    /// When it was last written.
    written_ms: u64,
    /// How often it was refused since.
    times: u64,
}

impl Tally {
    /// Counts a refusal; gives what is to be written now, and how often each was.
    pub(super) fn count(&self, refusal: Refusal, now_ms: u64) -> Vec<(Refusal, u64)> {
        let mut due = self.due(now_ms, false);
        let mut kinds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut key = refusal.kind();
        let mut refusal = refusal;
        if kinds.len() >= KINDS_MAX && !kinds.contains_key(&key) {
            refusal = refusal.among_others();
            key = refusal.kind();
        }
        match kinds.get_mut(&key) {
            Some(counted) => counted.times += 1,
            None => {
                due.push((refusal.clone(), 1));
                kinds.insert(key, Counted { refusal, written_ms: now_ms, times: 0 });
            }
        }
        due
    }

    /// What was counted over a minute that is over, or over any; it begins anew.
    pub(super) fn due(&self, now_ms: u64, is_end: bool) -> Vec<(Refusal, u64)> {
        let mut kinds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut due = Vec::new();
        // A clock that was put back must not keep anything from being written.
        kinds.retain(|_, counted| {
            let is_over = is_end || now_ms.abs_diff(counted.written_ms) >= SPAN_MS;
            if is_over && counted.times > 0 {
                due.push((counted.refusal.clone(), counted.times));
                counted.written_ms = now_ms;
                counted.times = 0;
                return true;
            }
            !is_over
        });
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(peer: &str) -> Refusal {
        Refusal::login(peer, "AUTH_TOKEN_INVALID")
    }

    #[test]
    fn a_thousand_refusals_are_two_lines() {
        let tally = Tally::default();
        let written: usize = (0..1_000).map(|at| tally.count(refusal("a"), at).len()).sum();
        assert_eq!(written, 1);
        let due = tally.due(SPAN_MS, false);
        assert_eq!(due.len(), 1);
        assert_eq!(due[0].1, 999);
        assert!(tally.due(SPAN_MS, true).is_empty());
        // Nothing is remembered of what was not refused again.
        assert!(tally.due(2 * SPAN_MS, false).is_empty());
        assert!(tally.0.lock().unwrap().is_empty());
    }

    #[test]
    fn many_who_are_refused_are_counted_together() {
        let tally = Tally::default();
        let each = (0..10_000).map(|peer| tally.count(refusal(&peer.to_string()), 0).len());
        assert_eq!(each.sum::<usize>(), KINDS_MAX + 1);
        let due = tally.due(SPAN_MS, false);
        assert_eq!(due.iter().map(|(_, times)| times).sum::<u64>(), 10_000 - 65);
    }
}
