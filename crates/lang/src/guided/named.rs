//! Conditions with a name, and loops that refer to them by it.

use cairn_core::plan::Repeat;

use super::repeat::Looked;
use super::{Build, condition};
use crate::diagnostic::Code;
use crate::read::{Fields, Spot};

/// The contract under which a step decides whether a loop goes on.
const LOOP_CONTROL: &str = "wr.contracts.loop_control";

const FIELDS: &[&str] = &["id", "conditionId", "kind", "contractRef", "loopId", "condition"];

#[derive(Clone, Copy)]
enum Kind {
    LoopControl,
    Artifact,
    Context,
}

const KINDS: [(&str, Kind); 3] = [
    ("loop_control", Kind::LoopControl),
    ("artifact_contract", Kind::Artifact),
    ("context_variable", Kind::Context),
];

impl<'a> Build<'a> {
    /// Reads the conditions that a workflow defines.
    pub(super) fn define_conditions(&mut self, fields: &Fields<'a>) {
        for item in fields.get("conditions").iter().flat_map(Spot::items) {
            let Some(fields) = item.fields(FIELDS) else { continue };
            let kind = fields.need("kind").and_then(|spot| spot.choice(&KINDS));
            if let (Some(Kind::Context), Some(spot)) = (kind, fields.get("condition")) {
                // One that nothing refers to is to be right as well.
                condition::read(&spot);
            }
            let id = fields.get("conditionId").or_else(|| fields.get("id"));
            let Some(id) = id.or_else(|| fields.need("conditionId")) else { continue };
            let Some(name) = id.filled() else { continue };
            // A routine that is called twice defines the same condition twice.
            let known = self.named.insert(name.to_owned(), item.clone());
            if known.is_some_and(|known| known.node != item.node) {
                id.error(Code::DuplicateId, format!("`{name}` names two conditions"));
            }
        }
    }

    /// What a loop looks at that refers to a condition: `{kind: condition_ref, conditionId}`.
    pub(super) fn referred(&mut self, spot: &Spot<'a>, looped: &Fields<'a>) -> Option<Looked<'a>> {
        let fields = spot.fields(&["kind", "conditionId"])?;
        fields.need("kind")?.choice(&[("condition_ref", ())])?;
        let id = fields.need("conditionId")?;
        let name = id.filled()?;
        let Some(found) = self.named.get(name).cloned() else {
            id.unknown("condition", name, self.named.keys().map(String::as_str));
            return None;
        };
        let fields = found.fields(FIELDS)?;
        let kind = fields.get("kind")?.choice(&KINDS)?;
        if let Kind::Context = kind {
            return fields.need("condition").map(Looked::Context);
        }
        let contract_ref = match kind {
            Kind::Artifact => self.contract(&fields.need("contractRef")?)?.id,
            _ => {
                let contract = self.catalog.contract(LOOP_CONTROL)?;
                self.contracts.insert(contract.id, contract);
                contract.id
            }
        };
        // A loop with an id and a `loopId` is called by the latter in artifacts.
        let own = looped.get("id").and_then(|_| looped.text("loopId"));
        let decision_id = fields.text("loopId").or(own);
        Some(Looked::Decision(Repeat::UntilDecision {
            contract_ref: contract_ref.to_owned(),
            decision_id,
        }))
    }
}
