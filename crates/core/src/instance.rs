//! Step instances: which step, in which turn of which loops, on which visit.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::digest::Digest;
use crate::id::{NodeId, RunId};
use crate::text::Slug;

/// One turn of one loop. Turns count from 0.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LoopTurn {
    /// Which turn.
    pub iteration: u32,
    /// Which loop.
    pub loop_id: Slug,
}

/// One instance of a step, written `outer@0/inner@2::triage`; a later visit in a role
/// graph adds `~1`, `~2` and so on.
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
            write!(f, "{separator}{}@{}", turn.loop_id, turn.iteration)?;
        }
        if !self.loop_path.is_empty() {
            f.write_str("::")?;
        }
        write!(f, "{}", self.step)?;
        if self.visit > 0 {
            write!(f, "~{}", self.visit)?;
        }
        Ok(())
    }
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
    let (step, visit) = match name.split_once('~') {
        None => (name, 0),
        Some((step, visit)) => (step, read_count(visit).filter(|visit| *visit > 0)?),
    };
    Some(StepInstanceKey { loop_path, step: step.parse().ok()?, visit })
}

fn read_turn(text: &str) -> Option<LoopTurn> {
    let (loop_id, iteration) = text.split_once('@')?;
    Some(LoopTurn { iteration: read_count(iteration)?, loop_id: loop_id.parse().ok()? })
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
    use super::*;

    #[test]
    fn keys_print_as_they_parse() {
        for text in ["triage", "outer@0/inner@2::triage", "review~3", "each@10::fetch-1~1"] {
            assert_eq!(text.parse::<StepInstanceKey>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn a_key_has_one_spelling() {
        for text in [
            "", "::a", "a@0", "a@00::b", "a@+1::b", "A", "a~0", "a~01", "a@0/::b", "a@-1::b",
            "a::b::c",
        ] {
            assert!(text.parse::<StepInstanceKey>().is_err(), "{text}");
        }
    }
}
