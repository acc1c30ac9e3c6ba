//! Workflows as agents see them: a list to choose from, and one to look into.

use cairn_core::canonical::StrictValue;
use cairn_core::plan::{
    Action, CapabilityNeed, Contract, Loop, Mode, Plan, Recommendations, Reference, Step,
};
use cairn_engine::catalog::{Catalog, Found};
use cairn_lang::ids::{self, IdStatus};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;

use crate::arguments::Problem;
use crate::error::{Error, Result};
use crate::guided::request::{Detail, InspectWorkflow, ListWorkflows};

/// How many workflows a page has.
const PAGE: usize = 50;
/// How long a description in the list may be, in bytes.
const DESCRIPTION_MAX: usize = 240;

/// One page of the workflows.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names say it")]
pub struct Workflows {
    pub workflows: Vec<Entry>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// How many runs wait for an agent; resume_session finds them.
    #[serde(skip_serializing_if = "is_zero")]
    pub waiting_runs: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde asks it")]
const fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// A workflow in the list.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the other names say it")]
pub struct Entry {
    pub workflow_id: String,
    pub name: String,
    pub description: String,
    pub kind: Kind,
    /// `namespaced` or `legacy`.
    pub id_status: &'static str,
    /// The id that this one stands for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub canonical_id: Option<String>,
    /// The id that a legacy one should get.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggested_id: Option<String>,
    pub source_kind: &'static str,
    /// `graph`: an automation. The engine performs it, and hands you single steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dialect: Option<&'static str>,
    /// Why it cannot be started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// Whether a workflow is made to be started, or to be called by others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Kind {
    Workflow,
    Routine,
}

/// One workflow, without its prompts.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names say it")]
pub struct Inspected {
    #[serde(flatten)]
    #[schemars(schema_with = "entry_schema")]
    pub entry: Entry,
    pub workflow_hash: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub preconditions: Vec<String>,
    /// What start_workflow takes as `context`, field by field; of an automation.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "object_schema")]
    pub input: Option<StrictValue>,
    #[schemars(schema_with = "list_schema")]
    pub steps: Vec<StepInfo>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "list_schema")]
    pub references: Vec<Reference>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "list_schema")]
    pub capabilities: Vec<CapabilityNeed>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "object_schema")]
    pub recommendations: Option<Recommendations>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "list_schema")]
    pub loops: Vec<Loop>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "list_schema")]
    pub contracts: Vec<Contract>,
}

/// A step, without its prompt.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names say it")]
pub struct StepInfo {
    pub step_id: String,
    pub title: String,
    /// What the engine does there; `guide` is handed to you.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub r#type: Option<String>,
    /// References of the contracts that its outputs are under; with full detail.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub contracts: Vec<String>,
}

/// The workflows that a query leaves, by namespace, then workflows before routines, then by id.
pub fn list(catalog: &Catalog, asked: &ListWorkflows) -> Result<Workflows> {
    let found = catalog.list()?;
    let taken: Vec<&str> = found.iter().map(|found| found.id.as_str()).collect();
    let mut entries: Vec<Entry> = found.iter().map(|found| entry(found, &taken)).collect();
    if let Some(query) = &asked.query {
        let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
        entries.retain(|entry| {
            let text = format!("{} {} {}", entry.workflow_id, entry.name, entry.description);
            let text = text.to_lowercase();
            words.iter().all(|word| text.contains(word.as_str()))
        });
    }
    entries.iter_mut().for_each(|entry| entry.description = cut(&entry.description));
    entries.sort_by(|a, b| order(a).cmp(&order(b)));
    let start = match &asked.cursor {
        None => 0,
        Some(cursor) => after(&entries, cursor)?,
    };
    let mut rest = entries.into_iter().skip(start);
    let workflows: Vec<Entry> = rest.by_ref().take(PAGE).collect();
    let last = workflows.last().map(|entry| entry.workflow_id.clone());
    Ok(Workflows { workflows, next_cursor: rest.next().and(last), waiting_runs: 0 })
}

/// One workflow as much as was asked for.
pub fn inspect(catalog: &Catalog, asked: &InspectWorkflow) -> Result<Inspected> {
    let found = catalog.find(&asked.workflow_id)?;
    let plan = &found.compiled()?.plan;
    let full = asked.detail == Some(Detail::Full);
    let guide = plan.guide.clone().unwrap_or_default();
    let hash = plan.hash().map_err(|error| Error::Internal(error.to_string()))?;
    let nothing = Recommendations::default();
    let all = catalog.list()?;
    let taken: Vec<&str> = all.iter().map(|found| found.id.as_str()).collect();
    let performed = plan.mode() == Mode::Performed;
    Ok(Inspected {
        entry: entry(&found, &taken),
        workflow_hash: hash.to_string(),
        about: guide.about,
        preconditions: guide.preconditions,
        input: input(plan),
        steps: plan.steps.iter().map(|step| step_info(step, full, performed)).collect(),
        references: guide.references,
        capabilities: plan.capabilities.clone(),
        recommendations: Some(plan.recommendations.clone()).filter(|given| *given != nothing),
        loops: if full { plan.loops.clone() } else { Vec::new() },
        contracts: if full { plan.contracts.clone() } else { Vec::new() },
    })
}

fn entry(found: &Found, taken: &[&str]) -> Entry {
    let plan: Option<&Plan> = found.outcome.as_ref().ok().map(|compiled| &compiled.plan);
    let status = ids::check(&found.id, found.kind).unwrap_or(IdStatus::Legacy);
    let suggested = || ids::suggest(&found.id, found.kind, &found.bytes, taken);
    let name = found.id.split_once('.').map_or(found.id.as_str(), |(_, name)| name);
    let is_routine = name.starts_with("routine-") || name.starts_with("routine_");
    Entry {
        workflow_id: found.id.clone(),
        name: plan.map(|plan| plan.name.clone()).unwrap_or_default(),
        description: plan.map(|plan| plan.description.clone()).unwrap_or_default(),
        kind: if is_routine { Kind::Routine } else { Kind::Workflow },
        id_status: status.name(),
        canonical_id: found.alias.as_ref().map(|_| found.id.clone()),
        suggested_id: (status == IdStatus::Legacy).then(suggested),
        source_kind: found.kind.name(),
        dialect: plan.filter(|plan| plan.mode() == Mode::Performed).map(|p| p.dialect.name()),
        problem: plan.is_none().then(|| "it does not compile; inspect it to see why".to_owned()),
    }
}

/// The fields that whoever starts an automation gives.
fn input(plan: &Plan) -> Option<StrictValue> {
    let mut manual = plan.triggers.iter().filter(|trigger| trigger.r#type.as_str() == "manual");
    manual.next()?.config.0.get("input").cloned().map(StrictValue::new)
}

fn step_info(step: &Step, full: bool, performed: bool) -> StepInfo {
    let kind = match &step.action {
        Action::Typed { r#type, .. } => Some(r#type.to_string()),
        Action::Prompt(_) => None,
    };
    let contracts = step.output_contracts.iter().map(|contract| contract.r#ref.clone());
    StepInfo {
        step_id: step.id.to_string(),
        title: step.title.clone(),
        r#type: kind.filter(|_| performed),
        contracts: if full { contracts.collect() } else { Vec::new() },
    }
}

fn order(entry: &Entry) -> (&str, Kind, &str) {
    let id = &entry.workflow_id;
    (ids::namespace(id).unwrap_or_default(), entry.kind, id)
}

fn after(entries: &[Entry], cursor: &str) -> Result<usize> {
    let place = entries.iter().position(|entry| entry.workflow_id == cursor);
    place.map(|place| place + 1).ok_or_else(|| {
        let fix = "send nextCursor of the page before with the same query, or leave it out";
        Problem::new("cursor", "`cursor` is not one that this list gave out", fix).into()
    })
}

/// The beginning of a description, on one line.
fn cut(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.len() <= DESCRIPTION_MAX {
        return line;
    }
    let kept = line.get(..line.floor_char_boundary(DESCRIPTION_MAX)).unwrap_or_default();
    format!("{}…", kept.trim_end())
}

fn entry_schema(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<Entry>()
}

fn object_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object"})
}

fn list_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "array"})
}

#[cfg(test)]
mod tests;
