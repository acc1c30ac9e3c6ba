//! The preferences by the names that they have on the wire.

use cairn_core::event::guided::{Autonomy, RiskPolicy};

pub(crate) const AUTONOMY: [(&str, Autonomy); 3] = [
    ("guided", Autonomy::Guided),
    ("full_auto_stop_on_user_deps", Autonomy::FullAutoStopOnUserDeps),
    ("full_auto_never_stop", Autonomy::FullAutoNeverStop),
];

pub(crate) const RISK_POLICY: [(&str, RiskPolicy); 3] = [
    ("conservative", RiskPolicy::Conservative),
    ("balanced", RiskPolicy::Balanced),
    ("aggressive", RiskPolicy::Aggressive),
];

/// The name of a choice.
pub(crate) fn of<T: PartialEq>(choices: &[(&'static str, T)], value: &T) -> &'static str {
    choices.iter().find(|(_, choice)| choice == value).map_or("", |(name, _)| name)
}

/// The choice of a name.
pub(crate) fn find<T: Copy>(choices: &[(&'static str, T)], name: &str) -> Option<T> {
    choices.iter().find(|(known, _)| *known == name).map(|(_, choice)| *choice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_are_those_on_the_wire() {
        for (name, value) in AUTONOMY {
            assert_eq!(serde_json::to_value(value).unwrap(), name);
        }
        for (name, value) in RISK_POLICY {
            assert_eq!(serde_json::to_value(value).unwrap(), name);
        }
    }
}
