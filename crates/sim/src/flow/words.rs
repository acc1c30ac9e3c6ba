//! The expressions of random automations.
//!
//! What a worker process would evaluate carries a word that says what kind of value is
//! wanted, so that the one that stands in for it can give one.

use serde_json::{Value, json};

use crate::random::Random;

/// What switches can come to.
pub(super) const CASES: [&str; 4] = ["a", "b", "c", "other"];

/// What a value that only a worker gives is to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wanted {
    Case,
    Flag,
    List,
    Text,
}

impl Wanted {
    const ALL: [(Self, &'static str); 4] =
        [(Self::Case, "case"), (Self::Flag, "flag"), (Self::List, "list"), (Self::Text, "text")];

    fn word(self) -> &'static str {
        Self::ALL.iter().find(|(wanted, _)| *wanted == self).map_or("text", |(_, word)| word)
    }

    /// What the text of an expression asks for.
    pub(super) fn of(text: &str) -> Self {
        let found = Self::ALL.iter().find(|(_, word)| text.contains(&format!("'{word}'")));
        found.map_or(Self::Text, |(wanted, _)| *wanted)
    }
}

/// Something to look at.
fn path(random: &mut Random, known: &[String], given: &[&str]) -> String {
    let place = random.below(known.len() + given.len());
    let found = given.get(place).map(|name| (*name).to_owned());
    found.or_else(|| known.get(place - given.len()).cloned()).unwrap_or_default()
}

fn worker(random: &mut Random, known: &[String], wanted: Wanted) -> String {
    let path = path(random, known, &["event.payload.n", "event.payload.list"]);
    format!("{path} | default(0) | batch(2, '{}')", wanted.word())
}

/// Something that holds or does not; seldom it cannot be told.
pub(super) fn condition(random: &mut Random, known: &[String]) -> String {
    match random.below(20) {
        0..8 => format!("event.payload.n < {}", random.below(5)),
        8..11 => "event.payload.yes".to_owned(),
        11..15 => {
            let path = path(random, known, &["event.payload.n"]);
            format!("({path} | default(0) | string | length) < {}", 1 + random.below(12))
        }
        15..19 => worker(random, known, Wanted::Flag),
        _ => "event.payload.no > 1".to_owned(),
    }
}

/// One of several words.
pub(super) fn choice(random: &mut Random, known: &[String]) -> String {
    match random.below(10) {
        0..4 => "event.payload.text".to_owned(),
        4..8 => format!("{} | default('c')", path(random, known, &["event.payload.text"])),
        _ => worker(random, known, Wanted::Case),
    }
}

/// A value for a setting.
pub(super) fn template(random: &mut Random, known: &[String]) -> String {
    let given = ["event.payload.n", "event.payload.list", "run.attempt", "run.id", "event.payload"];
    let path = path(random, known, &given);
    match random.below(20) {
        0..2 => "plain".to_owned(),
        2..9 => format!("{{{{ {path} | default('none') }}}}"),
        9..17 => format!("so: {{{{ {path} | default('none') | string }}}}"),
        17..19 => format!("{{{{ {} }}}}", worker(random, known, Wanted::Text)),
        _ => format!("{{{{ {path} }}}}"),
    }
}

/// What keeps a loop going.
pub(super) fn repeat(random: &mut Random, known: &[String], depth: usize) -> (&'static str, Value) {
    match random.below(20) {
        0..5 => ("items", json!("{{ event.payload.list }}")),
        5..7 if depth > 0 => ("items", json!("{{ item }}")),
        5..8 => ("items", json!("{{ event.payload.deep }}")),
        8..10 => {
            let path = path(random, known, &["event.payload.list"]);
            ("items", json!(format!("{{{{ {path} | default([]) }}}}")))
        }
        10..12 => ("items", json!(format!("{{{{ {} }}}}", worker(random, known, Wanted::List)))),
        12..15 => ("count", json!(random.below(4))),
        15..17 => ("count", json!("{{ event.payload.n }}")),
        17..18 => ("while", json!("event.payload.n > 2")),
        _ => ("while", json!(worker(random, known, Wanted::Flag))),
    }
}
