//! What every workflow may use: contracts, features, refs, step types, templates and workflows.
//!
//! Each is defined once, here; schemas, examples, instructions and the catalogs that
//! authors see are made from the definitions.

mod aliases;
mod contracts;
mod features;
mod page;
mod refs;
mod runs;
mod shape;
mod templates;
mod workflows;

pub use aliases::{ALIASES, Alias, canonical};
pub use contracts::{CONTRACTS, USER_DEPENDENCY};
pub use features::{FEATURES, Feature};
pub use page::page;
pub use refs::{REFS, Ref};
pub use runs::{Holds, RUN_TYPES, RunType, SHELL_SECONDS, SHELL_SECONDS_MAX, Setting};
pub use shape::{ContractPack, Field, Shape};
pub use templates::{ROUTINES, TEMPLATES, Template};
pub use workflows::{Bundled, WORKFLOWS, bundled};

/// The catalog that a workflow is compiled against.
#[derive(Clone, Debug)]
pub struct Builtins {
    /// What outputs can be held to, by id.
    pub contracts: &'static [ContractPack],
    /// What can be switched on for a whole workflow, by id.
    pub features: &'static [Feature],
    /// Texts that prompts can take in, by id.
    pub refs: &'static [Ref],
    /// Steps that the engine performs, by id.
    pub runs: &'static [RunType],
    /// Steps that a call stands for, by id.
    pub templates: &'static [Template],
}

impl Builtins {
    /// Everything that comes with the program.
    #[must_use]
    pub const fn standard() -> Self {
        Self {
            contracts: CONTRACTS,
            features: FEATURES,
            refs: REFS,
            runs: RUN_TYPES,
            templates: TEMPLATES,
        }
    }

    /// The contract with this id.
    #[must_use]
    pub fn contract(&self, id: &str) -> Option<&'static ContractPack> {
        self.contracts.iter().find(|contract| contract.id == id)
    }

    /// The feature with this id.
    #[must_use]
    pub fn feature(&self, id: &str) -> Option<&'static Feature> {
        self.features.iter().find(|feature| feature.id == id)
    }

    /// The type of step with this id.
    #[must_use]
    pub fn run_type(&self, id: &str) -> Option<&'static RunType> {
        self.runs.iter().find(|kind| kind.id == id)
    }

    /// The text with this id.
    #[must_use]
    pub fn text(&self, id: &str) -> Option<&'static Ref> {
        self.refs.iter().find(|text| text.id == id)
    }

    /// The template with this id.
    #[must_use]
    pub fn template(&self, id: &str) -> Option<&'static Template> {
        self.templates.iter().find(|template| template.id == id)
    }
}

#[cfg(test)]
mod tests;
