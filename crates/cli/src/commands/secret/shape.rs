//! What the signatures of webhooks ask of a secret.

use std::sync::Arc;

use cairn_api::error::{Error, Result};
use cairn_engine::catalog::Found;
use cairn_engine::secrets::Secret;
use cairn_engine::trigger::Watch;
use cairn_server::watched;

use crate::commands::trigger;

/// A webhook that a value cannot sign for.
pub(crate) struct Misfit {
    /// Whose webhook it is, and its name.
    pub(crate) workflow: String,
    pub(crate) trigger: String,
    /// What is wrong with the value, as the end of a sentence.
    pub(crate) why: &'static str,
}

/// The first webhook of some workflows that a value of a secret cannot sign for.
pub(crate) fn misfit(found: &[Arc<Found>], name: &str, value: &Secret) -> Option<Misfit> {
    watched::places(found, &trigger::types()).into_iter().find_map(|place| {
        let Watch::Hook(hook) = &place.watch else { return None };
        let why = hook.fault(value).filter(|_| hook.secret() == name)?;
        Some(Misfit { workflow: place.workflow, trigger: place.trigger.to_string(), why })
    })
}

/// Refuses a value that a webhook cannot be signed with.
pub(super) fn require(
    found: &[Arc<Found>],
    (name, of): (&str, Option<&str>),
    value: &Secret,
) -> Result<()> {
    let Some(Misfit { workflow, trigger, why }) = misfit(found, name, value) else { return Ok(()) };
    Err(Error::Usage {
        message: format!("the value {why}, and `{trigger}` of {workflow} is signed with `{name}`"),
        suggestion: format!("let one be made with `{}`", generate(name, of)),
    })
}

/// The command that makes a value that every webhook can be signed with.
pub(crate) fn generate(name: &str, of: Option<&str>) -> String {
    let of = of.map(|of| format!(" --workflow {of}")).unwrap_or_default();
    format!("cairn secret set {name}{of} --generate")
}
