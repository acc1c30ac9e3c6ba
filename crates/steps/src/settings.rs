//! Reading what a step is told.

use cairn_engine::performer::Failed;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The settings of a step. The compiler has checked them; a plan from elsewhere may not be.
pub(crate) fn read<T: DeserializeOwned>(config: Value) -> Result<T, Failed> {
    serde_json::from_value(config)
        .map_err(|error| Failed::new("STEP_SETTINGS", format!("its settings: {error}")))
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use cairn_core::digest::Digest;
    use cairn_core::id::SessionId;
    use cairn_engine::performer::Ctx;

    /// What a step of an automation knows that has no workspace, files or secrets.
    pub(crate) fn ctx() -> Ctx {
        Ctx {
            workflow_id: "project.test".into(),
            workflow_key: "test".into(),
            session: SessionId::from_bits(1),
            workspace: None,
            idempotency_key: Digest::of(b"key"),
            chain: 0,
            trace: None,
            timeout: Duration::from_secs(30),
            assets: Arc::default(),
            secrets: Vec::new(),
            hosts: None,
        }
    }
}
