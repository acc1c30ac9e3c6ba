//! A run's readable label: the workflow's name and two words that stand for the run.

use crate::digest::Digest;
use crate::id::RunId;
use crate::token::compact::{LABEL_MAX, Label};

/// The label of a run. Equal whenever it is asked for.
#[must_use]
pub fn label(workflow_id: &str, run: RunId) -> Label {
    let bits = Digest::of_parts("label", &[&run.to_string()]).leading_bits();
    let word = |list: &[&'static str], shift: u32| {
        let place = usize::try_from((bits >> shift) & 0xff).unwrap_or_default();
        list.get(place % list.len().max(1)).copied().unwrap_or("run")
    };
    let tag = format!("{}-{}", word(FIRST, 0), word(SECOND, 8));
    let name = workflow_id.split_once('.').map_or(workflow_id, |(_, name)| name);
    let room = LABEL_MAX.saturating_sub(tag.len() + 1);
    let name: String = name
        .chars()
        .map(|c| if c == '_' || c == '.' { '-' } else { c.to_ascii_lowercase() })
        .filter(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || *c == '-')
        .take(room)
        .collect();
    let text = match name.trim_matches('-') {
        "" => tag.clone(),
        name => format!("{name}-{tag}"),
    };
    Label::new(&text).or_else(|| Label::new(&tag)).unwrap_or_default()
}

/// The first word.
const FIRST: &[&str] = &[
    "amber", "azure", "birch", "blue", "bold", "brave", "brisk", "calm", "cedar", "clear", "cold",
    "cool", "coral", "crisp", "dark", "dawn", "deep", "dry", "dusk", "early", "east", "fair",
    "fern", "fine", "firm", "flat", "free", "fresh", "glad", "gold", "grand", "gray", "green",
    "high", "holly", "iron", "ivory", "keen", "kind", "late", "light", "lime", "long", "low",
    "lunar", "maple", "mild", "mint", "misty", "moss", "neat", "new", "north", "oak", "olive",
    "opal", "pale", "pine", "plain", "polar", "proud", "pure", "quick", "quiet", "rapid", "rare",
    "red", "rich", "rosy", "round", "ruby", "rust", "safe", "sage", "sandy", "sharp", "shy",
    "silk", "slate", "slow", "small", "snowy", "soft", "solar", "south", "stark", "steep", "still",
    "stone", "sunny", "sure", "swift", "tall", "teal", "thin", "tidy", "true", "vast", "warm",
    "west", "white", "wide", "wild", "wise",
];

/// The second word.
const SECOND: &[&str] = &[
    "bank", "bay", "bear", "bell", "bird", "boat", "brook", "camp", "cape", "cave", "cliff",
    "cloud", "coast", "cove", "crab", "crane", "creek", "crow", "dale", "deer", "dove", "dune",
    "eagle", "elk", "elm", "falls", "fawn", "field", "finch", "fire", "fish", "fjord", "foal",
    "ford", "fox", "frog", "gate", "glen", "goat", "goose", "grove", "gull", "hare", "hawk",
    "heath", "heron", "hill", "horse", "ibis", "isle", "jay", "kite", "lake", "lamb", "lark",
    "leaf", "lynx", "marsh", "mesa", "mill", "mole", "moon", "moose", "moth", "mouse", "nest",
    "newt", "oasis", "orca", "otter", "owl", "path", "peak", "pearl", "pier", "plum", "pond",
    "port", "quail", "rain", "raven", "reed", "reef", "ridge", "river", "robin", "rock", "seal",
    "shell", "shore", "snow", "spring", "star", "stork", "swan", "tern", "tide", "toad", "trail",
    "tree", "trout", "vale", "wave", "whale", "wolf", "wood", "wren",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_names_the_workflow_and_fits_into_a_token() {
        for id in [
            "wr.bug-investigation",
            "x",
            "project.UPPER_case",
            "team.a-very-long-workflow-name-indeed",
            "…",
        ] {
            for bits in 0..500u128 {
                let made = label(id, RunId::from_bits(bits * 7919));
                assert!(made.as_str().len() <= LABEL_MAX, "{made:?}");
            }
        }
        let one = label("project.bug_hunt", RunId::from_bits(7));
        assert!(one.as_str().starts_with("bug-hunt-"), "{one:?}");
        assert_eq!(one, label("project.bug_hunt", RunId::from_bits(7)));
        assert_ne!(one, label("project.bug_hunt", RunId::from_bits(8)));
    }
}
