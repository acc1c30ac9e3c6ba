//! Probes: steps that find out about a capability before anything relies on it.

use crate::event::guided::Capability;
use crate::plan::{Step, StepSource};

/// The template of probes.
pub const TEMPLATE: &str = "wr.templates.capability_probe";

const ALL: [Capability; 2] = [Capability::Delegation, Capability::WebBrowsing];

/// The name of a capability.
#[must_use]
pub const fn name(capability: Capability) -> &'static str {
    match capability {
        Capability::Delegation => "delegation",
        Capability::WebBrowsing => "web_browsing",
    }
}

/// The id of the step that the compiler puts in front to probe a required capability.
#[must_use]
pub const fn id(capability: Capability) -> &'static str {
    match capability {
        Capability::Delegation => "wr_probe_delegation",
        Capability::WebBrowsing => "wr_probe_web_browsing",
    }
}

/// What a step of the compiler's is to find out about; none when it is no such step.
#[must_use]
pub fn of(step: &Step) -> Option<Capability> {
    let ours = is_probe(step) && step.origin.source == StepSource::FeatureInjected;
    ALL.into_iter().find(|capability| ours && step.id.as_str() == id(*capability))
}

/// Whether a step was made from the template of probes, by whomever.
#[must_use]
pub fn is_probe(step: &Step) -> bool {
    step.origin.id.as_deref() == Some(TEMPLATE)
}
