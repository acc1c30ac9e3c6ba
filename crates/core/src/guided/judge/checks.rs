//! Whether notes are as a step's check asks.

use regex::RegexBuilder;

use super::super::condition::holds;
use super::Asked;
use crate::plan::Check;
use crate::schema;
use crate::text::Slug;

/// How large a compiled pattern may be.
const PATTERN_MAX: usize = 1 << 20;

/// What notes fail to be, in the author's words and with the rule; empty when they pass.
pub(super) fn faults(check: &Check, notes: &str, asked: Asked<'_>) -> Vec<String> {
    match check {
        Check::All { checks } => {
            checks.iter().flat_map(|inner| faults(inner, notes, asked)).collect()
        }
        Check::Any { checks } => {
            let all: Vec<Vec<String>> =
                checks.iter().map(|inner| faults(inner, notes, asked)).collect();
            match all.iter().any(Vec::is_empty) {
                true => Vec::new(),
                false => vec![all.concat().join(", or ")],
            }
        }
        Check::Not { check } => {
            let passes = faults(check, notes, asked).is_empty();
            let told = || format!("this must not be so: {}", check.told());
            passes.then(told).into_iter().collect()
        }
        Check::Contains { condition, value, .. } => {
            fault(condition.as_ref(), asked, check.told(), || notes.contains(value.as_str()))
        }
        Check::Length { condition, max, min, .. } => {
            let length = notes.chars().count();
            let fits = |n: Option<u32>, test: fn(usize, usize) -> bool| {
                n.and_then(|n| usize::try_from(n).ok()).is_none_or(|n| test(length, n))
            };
            let told = format!("{}; they have {length}", check.told());
            fault(condition.as_ref(), asked, told, || {
                fits(*min, |length, min| length >= min) && fits(*max, |length, max| length <= max)
            })
        }
        Check::Regex { condition, flags, pattern, .. } => {
            fault(condition.as_ref(), asked, check.told(), || matches(pattern, flags, notes))
        }
        Check::Schema { condition, message, schema } => {
            let wrong = match serde_json::from_str(notes) {
                Ok(value) => schema::faults(&schema.0, &value, "the artifact"),
                Err(_) => vec!["the notes must be JSON and nothing else".to_owned()],
            };
            let told = format!("{message} ({})", wrong.join("; "));
            fault(condition.as_ref(), asked, told, || wrong.is_empty())
        }
    }
}

fn fault(
    condition: Option<&Slug>,
    asked: Asked<'_>,
    told: String,
    passes: impl FnOnce() -> bool,
) -> Vec<String> {
    let applies = condition.is_none_or(|id| {
        let condition = asked.plan.conditions.iter().find(|known| known.id == *id);
        condition.is_some_and(|condition| holds(&condition.config.0, asked.scene))
    });
    if applies && !passes() { vec![told] } else { Vec::new() }
}

/// The compiler has tried the pattern, so one that does not compile here matches nothing.
fn matches(pattern: &str, flags: &str, notes: &str) -> bool {
    RegexBuilder::new(pattern)
        .case_insensitive(flags.contains('i'))
        .multi_line(flags.contains('m'))
        .dot_matches_new_line(flags.contains('s'))
        .size_limit(PATTERN_MAX)
        .build()
        .is_ok_and(|regex| regex.is_match(notes))
}
