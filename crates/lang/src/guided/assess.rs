//! Assessments: judgements that a step asks for, and what follows from them.

use std::collections::BTreeSet;

use cairn_core::plan::{Assessment, Consequence, Dimension, Prompt};
use serde_json::{Map, Value, json};

use super::Build;
use crate::diagnostic::Code;
use crate::read::{Fields, Spot};

/// The contract that assessments are given under.
const CONTRACT: &str = "wr.contracts.assessment";

impl<'a> Build<'a> {
    /// Reads the assessments that a workflow defines.
    pub(super) fn assessments(&mut self, fields: &Fields<'a>) {
        for item in fields.get("assessments").map(|spot| spot.items()).unwrap_or_default() {
            let Some(found) = assessment(&item) else { continue };
            let id = found.id.clone();
            match self.assessments.get(&id) {
                Some(known) if *known == found => {}
                Some(_) => {
                    item.error(Code::DuplicateId, format!("`{id}` names two assessments"));
                }
                None => {
                    self.assessments.insert(id, found);
                }
            }
        }
    }

    /// What a step asks for and what follows, with what the agent is told about it.
    pub(super) fn assess(&mut self, fields: &Fields<'a>, prompt: &mut Prompt) {
        let refs = fields.get("assessmentRefs").map(|spot| spot.items()).unwrap_or_default();
        for spot in refs {
            let Some(id) = spot.filled() else { continue };
            let Some(found) = self.assessments.get(id) else {
                spot.unknown("assessment", id, self.assessments.keys().map(String::as_str));
                continue;
            };
            if prompt.assessments.iter().any(|known| known == id) {
                spot.error(Code::DuplicateId, format!("`{id}` is asked for twice"));
                continue;
            }
            prompt.requirements.push(line(found));
            prompt.assessments.push(id.to_owned());
        }
        if !prompt.assessments.is_empty() {
            let found = self.catalog.contract(CONTRACT);
            self.contracts.extend(found.map(|contract| (contract.id, contract)));
        }
        let spots = fields.get("assessmentConsequences");
        for spot in spots.iter().flat_map(|spot| spot.items()) {
            let consequence = self.consequence(&spot, &prompt.assessments);
            prompt.consequences.extend(consequence);
        }
        if let Some(spot) = spots.filter(|_| fields.get("assessmentRefs").is_none()) {
            spot.error_hint(
                Code::MissingField,
                "consequences follow from assessments, and the step asks for none",
                "add `assessmentRefs`",
            );
        }
    }

    fn consequence(&self, spot: &Spot<'a>, asked: &[String]) -> Option<Consequence> {
        let fields = spot.fields(&["when", "effect"])?;
        let when = fields.need("when").and_then(|s| s.fields(&["anyEqualsLevel", "forAssessment"]));
        let effect = fields.need("effect").and_then(|s| s.fields(&["kind", "guidance"]));
        let guidance = effect.and_then(|effect| {
            effect.need("kind")?.choice(&[("require_followup", ())])?;
            effect.need_text("guidance")
        });
        let when = when?;
        let assessment = when.get("forAssessment").and_then(|spot| {
            let id = spot.filled()?;
            if !asked.iter().any(|known| known == id) {
                let known = asked.iter().map(String::as_str);
                spot.unknown("assessment of this step", id, known);
                return None;
            }
            Some(id.to_owned())
        });
        let level = when.need("anyEqualsLevel")?;
        let given = level.filled()?;
        let looked_at = asked.iter().filter(|id| assessment.as_ref().is_none_or(|one| one == *id));
        let levels: BTreeSet<&str> = looked_at
            .filter_map(|id| self.assessments.get(id))
            .flat_map(|found| &found.dimensions)
            .flat_map(|dimension| dimension.levels.iter().map(String::as_str))
            .collect();
        if !levels.is_empty() && !levels.contains(given) {
            level.unknown("level", given, levels);
        }
        Some(Consequence { assessment, guidance: guidance?, level: given.to_owned() })
    }
}

fn assessment(spot: &Spot<'_>) -> Option<Assessment> {
    let fields = spot.fields(&["id", "purpose", "dimensions"])?;
    let (id, purpose) = (fields.need_text("id"), fields.need_text("purpose"));
    let list = fields.need("dimensions")?;
    let mut dimensions: Vec<Dimension> = Vec::new();
    for item in list.items() {
        let Some(dimension) = dimension(&item) else { continue };
        if dimensions.iter().any(|known| known.id == dimension.id) {
            item.error(Code::DuplicateId, format!("`{}` names two dimensions", dimension.id));
        }
        dimensions.push(dimension);
    }
    if list.is_empty_list() {
        list.error(Code::InvalidValue, "an assessment has at least one dimension");
    }
    Some(Assessment { dimensions, id: id?, purpose: purpose? })
}

fn dimension(spot: &Spot<'_>) -> Option<Dimension> {
    let fields = spot.fields(&["id", "purpose", "levels", "required"])?;
    let (id, purpose) = (fields.need_text("id"), fields.need_text("purpose"));
    let list = fields.need("levels")?;
    let levels = list.texts();
    let distinct: BTreeSet<&String> = levels.iter().collect();
    if list.is_list() && distinct.len() < levels.len().max(2) {
        list.error(Code::InvalidValue, "a dimension has at least two levels, each once");
    }
    let required = fields.flag("required").unwrap_or(true);
    Some(Dimension { id: id?, levels, purpose: purpose?, required })
}

/// What an agent is told about an assessment.
fn line(assessment: &Assessment) -> String {
    let dimension = |d: &Dimension| {
        let optional = if d.required { "" } else { ", optional" };
        format!("`{}` ({}{optional}) {}", d.id, d.levels.join(" | "), d.purpose)
    };
    let dimensions: Vec<String> = assessment.dimensions.iter().map(dimension).collect();
    let levels = assessment.dimensions.iter().map(|d| (d.id.clone(), json!(d.levels.first())));
    let levels: Map<String, Value> = levels.collect();
    let example = json!({
        "kind": "wr.assessment", "assessmentId": assessment.id, "dimensions": levels,
    });
    format!(
        "Give an artifact of kind `wr.assessment` with assessmentId `{}` ({}) and in `dimensions` a level for each of: {}; for example `{example}`.",
        assessment.id,
        assessment.purpose,
        dimensions.join("; ")
    )
}
