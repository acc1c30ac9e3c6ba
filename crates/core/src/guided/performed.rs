//! Steps of a guided run that the engine performs itself.

use serde_json::Value;

use crate::plan::{Action, Step};
use crate::text::Slug;

/// The setting that names the context key of the outcome. It is the run's, so every step type
/// of a guided workflow has it.
pub const SAVE_AS: &str = "saveAs";

/// A step that the engine performs.
#[derive(Clone, Copy, Debug)]
pub struct Performed<'a> {
    /// Which step.
    pub step: &'a Slug,
    /// The step type.
    pub r#type: &'a Slug,
    /// The settings, with values yet to be filled in.
    pub config: &'a Value,
    /// The context key under which later steps find the outcome.
    pub save_as: Option<&'a str>,
}

impl<'a> Performed<'a> {
    /// The step, when it is one that the engine performs.
    #[must_use]
    pub fn of(step: &'a Step) -> Option<Self> {
        match &step.action {
            Action::Prompt(_) => None,
            Action::Typed { config, r#type } => {
                let save_as = config.0.get(SAVE_AS).and_then(Value::as_str);
                Some(Self { step: &step.id, r#type, config: &config.0, save_as })
            }
        }
    }
}
