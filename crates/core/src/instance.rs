//! Step instances: which step, in which turn of which loops, on which visit.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::digest::Digest;
use crate::id::{NodeId, RunId};
use crate::text::Slug;

/// One turn of one visit of a loop. Turns and visits count from 0.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LoopTurn {
    /// Which turn.
    pub iteration: u32,
    /// Which loop.
    pub loop_id: Slug,
    /// How often a cycle came back to the loop before.
    #[serde(default, skip_serializing_if = "is_first")]
    pub visit: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
const fn is_first(visit: &u32) -> bool {
    *visit == 0
}

impl LoopTurn {
    /// The loop itself, inside of these turns.
    #[must_use]
    pub fn of(&self, outer: &[Self]) -> StepInstanceKey {
        let (loop_path, step) = (outer.to_vec(), self.loop_id.clone());
        StepInstanceKey { loop_path, step, visit: self.visit }
    }

    /// Whether another turn belongs to the same visit of the same loop.
    #[must_use]
    pub fn is_beside(&self, other: &Self) -> bool {
        self.loop_id == other.loop_id && self.visit == other.visit
    }
}

impl Ord for LoopTurn {
    /// A visit comes after all turns of the one before.
    fn cmp(&self, other: &Self) -> Ordering {
        let place = |turn: &Self| (turn.visit, turn.iteration);
        place(self).cmp(&place(other)).then_with(|| self.loop_id.cmp(&other.loop_id))
    }
}

impl PartialOrd for LoopTurn {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// One instance of a step, written `outer@0/inner@2::triage`; a later visit, of the step or of
/// a loop around it, adds `~1`, `~2` and so on: `outer~1@0::triage~2`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StepInstanceKey {
    /// The loops around the step, outermost first.
    pub loop_path: Vec<LoopTurn>,
    /// The step.
    pub step: Slug,
    /// How often a cycle came back to it before.
    pub visit: u32,
}

/// Why a text is not a step instance key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a step instance; one looks like `triage` or `outer@0/inner@2::triage`")]
pub struct InvalidInstance(pub String);

impl StepInstanceKey {
    /// The first visit of a step that is in no loop.
    #[must_use]
    pub const fn of(step: Slug) -> Self {
        Self { loop_path: Vec::new(), step, visit: 0 }
    }

    /// The path inside a turn of this loop.
    #[must_use]
    pub fn inside(&self, iteration: u32) -> Vec<LoopTurn> {
        let mut path = self.loop_path.clone();
        path.push(LoopTurn { iteration, loop_id: self.step.clone(), visit: self.visit });
        path
    }

    /// The name of this instance in a run, among those of all runs.
    #[must_use]
    pub fn within(&self, run: RunId) -> Digest {
        Digest::of_parts("step", &[&run.to_string(), &self.to_string()])
    }

    /// The node that its completion makes.
    #[must_use]
    pub fn node(&self, run: RunId) -> NodeId {
        NodeId::derive(&[&run.to_string(), &self.to_string()])
    }
}

impl fmt::Display for StepInstanceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, turn) in self.loop_path.iter().enumerate() {
            let separator = if place == 0 { "" } else { "/" };
            write!(f, "{separator}{}", turn.loop_id)?;
            write_visit(f, turn.visit)?;
            write!(f, "@{}", turn.iteration)?;
        }
        if !self.loop_path.is_empty() {
            f.write_str("::")?;
        }
        write!(f, "{}", self.step)?;
        write_visit(f, self.visit)
    }
}

/// The first visit is not written.
fn write_visit(f: &mut fmt::Formatter<'_>, visit: u32) -> fmt::Result {
    if visit > 0 { write!(f, "~{visit}") } else { Ok(()) }
}

impl fmt::Debug for StepInstanceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for StepInstanceKey {
    type Err = InvalidInstance;

    fn from_str(text: &str) -> Result<Self, InvalidInstance> {
        read(text).ok_or_else(|| InvalidInstance(text.chars().take(64).collect()))
    }
}

fn read(text: &str) -> Option<StepInstanceKey> {
    let (path, name) =
        text.split_once("::").map_or((None, text), |(path, name)| (Some(path), name));
    let loop_path = match path {
        None => Vec::new(),
        Some(path) => path.split('/').map(read_turn).collect::<Option<_>>()?,
    };
    let (step, visit) = read_visit(name)?;
    Some(StepInstanceKey { loop_path, step, visit })
}

fn read_turn(text: &str) -> Option<LoopTurn> {
    let (name, iteration) = text.split_once('@')?;
    let (loop_id, visit) = read_visit(name)?;
    Some(LoopTurn { iteration: read_count(iteration)?, loop_id, visit })
}

fn read_visit(text: &str) -> Option<(Slug, u32)> {
    match text.split_once('~') {
        None => Some((text.parse().ok()?, 0)),
        Some((name, visit)) => {
            Some((name.parse().ok()?, read_count(visit).filter(|visit| *visit > 0)?))
        }
    }
}

/// A count has one spelling, so that equal instances have equal keys.
fn read_count(text: &str) -> Option<u32> {
    let count: u32 = text.parse().ok()?;
    (count.to_string() == text).then_some(count)
}

impl Serialize for StepInstanceKey {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for StepInstanceKey {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        input.deserialize_str(crate::id::IdVisitor(std::marker::PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn keys_print_as_they_parse() {
        for text in [
            "triage",
            "outer@0/inner@2::triage",
            "review~3",
            "each@10::fetch-1~1",
            "each~1@0::fetch",
            "outer~2@0/inner~1@3::fetch~4",
        ] {
            assert_eq!(text.parse::<StepInstanceKey>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn a_key_has_one_spelling() {
        for text in [
            "",
            "::a",
            "a@0",
            "a@00::b",
            "a@+1::b",
            "A",
            "a~0",
            "a~01",
            "a@0/::b",
            "a@-1::b",
            "a::b::c",
            "a~0@0::b",
            "a@0~1::b",
            "a~1::b",
            "a~~1@0::b",
            "a~01@0::b",
        ] {
            assert!(text.parse::<StepInstanceKey>().is_err(), "{text}");
        }
    }
    #[test]
    fn a_visit_comes_after_all_turns_of_the_one_before() {
        let texts = ["each@0::b", "each@1::a", "each~1@0::a", "each~1@2::a", "each~2@0::a"];
        let keys: Vec<StepInstanceKey> = texts.iter().map(|text| text.parse().unwrap()).collect();
        assert!(keys.is_sorted());
    }

    fn slug() -> impl Strategy<Value = Slug> {
        "[a-z][a-z0-9-]{0,6}[a-z0-9]".prop_map(|text| text.parse().unwrap())
    }

    fn key() -> impl Strategy<Value = StepInstanceKey> {
        let turn = (any::<u32>(), slug(), any::<u32>())
            .prop_map(|(iteration, loop_id, visit)| LoopTurn { iteration, loop_id, visit });
        (vec(turn, 0..4), slug(), any::<u32>())
            .prop_map(|(loop_path, step, visit)| StepInstanceKey { loop_path, step, visit })
    }

    proptest! {
        #[test]
        fn print_then_parse_is_identity(a in key(), b in key()) {
            prop_assert_eq!(a.to_string().parse::<StepInstanceKey>(), Ok(a.clone()));
            // Keys of dedupe, nodes and timers are made of the text.
            prop_assert_eq!(a == b, a.to_string() == b.to_string());
            prop_assert_eq!(a.cmp(&b) == Ordering::Equal, a == b);
        }
    }
}
