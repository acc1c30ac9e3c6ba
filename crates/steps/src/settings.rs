//! Reading what a step is told.

use cairn_engine::performer::Failed;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The settings of a step. The compiler has checked them; a plan from elsewhere may not be.
pub(crate) fn read<T: DeserializeOwned>(config: Value) -> Result<T, Failed> {
    serde_json::from_value(config)
        .map_err(|error| Failed::new("STEP_SETTINGS", format!("its settings: {error}")))
}
