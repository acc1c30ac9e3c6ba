//! Steps that are done again and again.

use serde::{Deserialize, Serialize};

use super::Confirmation;
use crate::canonical::StrictValue;
use crate::text::Slug;

/// Steps that are done again and again.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Loop {
    /// The steps and inner loops of one turn; their order is what they are counted by.
    pub body: Vec<Slug>,
    /// The condition under which it is begun; without one it always is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<Slug>,
    /// Its name, among those of the steps.
    pub id: Slug,
    /// How many turns there may be.
    pub max_iterations: u32,
    /// What keeps it going.
    pub repeat: Repeat,
    /// Who must agree before it is begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub require_confirmation: Option<Confirmation>,
    /// Its name for people.
    pub title: String,
    /// What the steps of a turn can call it by.
    #[serde(default, skip_serializing_if = "LoopVariables::is_empty")]
    pub variables: LoopVariables,
    /// How often a run may come to it, when it is in a cycle; without one,
    /// [the usual](super::cycle::VISITS_MAX).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visits_max: Option<u32>,
}

/// What keeps a loop going.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(
    tag = "kind",
    rename_all = "snake_case",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
pub enum Repeat {
    /// A number of turns.
    Count {
        /// The number, or what gives it.
        count: StrictValue,
    },
    /// One turn for each item of a list.
    Each {
        /// What gives the list.
        items: StrictValue,
    },
    /// A condition holds.
    While {
        /// Which.
        condition_id: Slug,
    },
    /// No artifact of this contract has said to stop.
    UntilDecision {
        /// Which contract.
        contract_ref: String,
        /// What artifacts call the loop, when not by its id.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        decision_id: Option<String>,
    },
}

/// Names that the steps of a turn see the turn by.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LoopVariables {
    /// The item's place in the list; counts from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<String>,
    /// The item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<String>,
    /// The turn; counts from 1, as people do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iteration: Option<String>,
}

impl LoopVariables {
    /// Whether nothing is named.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.index.is_none() && self.item.is_none() && self.iteration.is_none()
    }
}
