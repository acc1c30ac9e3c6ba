//! Choices that are the user's, which an agent must not make by assuming an answer.

use std::collections::BTreeSet;

use cairn_core::plan::Prompt;
use cairn_core::reason::NonAssumableChoice;

use super::Build;
use crate::builtins::USER_DEPENDENCY;
use crate::diagnostic::Code;
use crate::read::Fields;

/// Each kind of choice, with what an agent is told it is.
const KINDS: [(&str, NonAssumableChoice, &str); 5] = [
    (
        "preference_tradeoff",
        NonAssumableChoice::PreferenceTradeoff,
        "which of several good things matters more",
    ),
    ("scope_boundary", NonAssumableChoice::ScopeBoundary, "what belongs to the task and what not"),
    (
        "irreversible_action",
        NonAssumableChoice::IrreversibleAction,
        "anything that cannot be taken back",
    ),
    (
        "external_side_effect",
        NonAssumableChoice::ExternalSideEffect,
        "anything that others outside will see or pay for",
    ),
    (
        "policy_or_compliance",
        NonAssumableChoice::PolicyOrCompliance,
        "what rules and laws allow here",
    ),
];

impl<'a> Build<'a> {
    /// The choices of a step that are the user's, and what the agent is told about them.
    pub(super) fn choices(&mut self, fields: &Fields<'a>, prompt: &mut Prompt) {
        let Some(list) = fields.get("nonAssumableChoices") else { return };
        let known = KINDS.map(|(name, kind, _)| (name, kind));
        let (items, mut found) = (list.items(), BTreeSet::new());
        for spot in &items {
            let Some(kind) = spot.choice(&known) else { continue };
            if !found.insert(kind) {
                let name = spot.text().unwrap_or_default();
                spot.error(Code::DuplicateId, format!("`{name}` stands in the list twice"));
            }
        }
        if list.is_list() && items.is_empty() {
            list.error_hint(Code::InvalidValue, "the list of choices is empty", "leave it out");
        }
        let Some(contract) = self.catalog.contract(USER_DEPENDENCY).filter(|_| !found.is_empty())
        else {
            return;
        };
        self.contracts.insert(contract.id, contract);
        let told = KINDS.iter().filter(|(_, kind, _)| found.contains(kind));
        let told: Vec<String> =
            told.map(|(name, _, about)| format!("{about} (`{name}`)")).collect();
        prompt.requirements.push(format!(
            "Some choices in this step are the user's and not yours to assume: {}. When you come to one, ask; if you cannot, give an artifact of kind `{}` with dependency `needs_user_choice`, the choiceKind, and in `summary` the options with what speaks for each.",
            told.join("; "),
            contract.kind,
        ));
        prompt.non_assumable_choices = found.into_iter().collect();
    }
}
