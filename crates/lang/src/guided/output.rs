//! Which contracts a step's output is under.

use std::collections::BTreeMap;

use cairn_core::plan::OutputContract;

use super::Build;
use crate::builtins::ContractPack;
use crate::read::{Fields, Spot};

impl<'a> Build<'a> {
    /// The contract that a field names.
    pub(super) fn contract(&mut self, spot: &Spot<'_>) -> Option<&'static ContractPack> {
        let given = spot.filled()?;
        let found = self.catalog.contract(given);
        match found {
            Some(contract) => {
                self.contracts.insert(contract.id, contract);
            }
            None => {
                spot.unknown("contract", given, self.catalog.contracts.iter().map(|c| c.id));
            }
        }
        found
    }

    /// The contracts of a step, by reference, and what the agent is told about them.
    pub(super) fn outputs(
        &mut self,
        fields: &Fields<'a>,
        requirements: &mut Vec<String>,
    ) -> Vec<OutputContract> {
        let mut contracts: BTreeMap<&str, (bool, &ContractPack)> = BTreeMap::new();
        if let Some(fields) =
            fields.get("outputContract").and_then(|s| s.fields(&["contractRef", "required"]))
        {
            let required = fields.flag("required").unwrap_or(true);
            let found = fields.need("contractRef").and_then(|spot| self.contract(&spot));
            contracts.extend(found.map(|contract| (contract.id, (required, contract))));
        }
        let mut hints = Vec::new();
        if let Some(fields) = fields.get("output").and_then(|s| s.fields(&["contractRef", "hints"]))
        {
            let found = fields.get("contractRef").and_then(|spot| self.contract(&spot));
            contracts.extend(found.map(|contract| (contract.id, (true, contract))));
            hints = fields.texts("hints");
        }
        for (required, contract) in contracts.values() {
            requirements.extend(contract.guidance(*required));
        }
        requirements.extend(hints);
        contracts
            .into_iter()
            .map(|(id, (required, _))| OutputContract { r#ref: id.to_owned(), required })
            .collect()
    }
}
