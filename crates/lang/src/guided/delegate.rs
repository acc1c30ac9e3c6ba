//! Steps that hand out work, and steps that the compiler adds.

use std::collections::BTreeMap;

use cairn_core::canonical::StrictValue;
use cairn_core::event::guided::Capability;
use cairn_core::guided::probe;
use cairn_core::plan::{Action, ContextKey, Fragment, Need, Origin, Prompt, Step, StepSource};
use cairn_core::text::Slug;
use serde_json::json;

use super::header::Metrics;
use super::{Build, Scope, header, prompt};
use crate::diagnostic::Code;
use crate::read::{Fields, Spot};

const FIELDS: &[&str] = &[
    "id",
    "type",
    "title",
    "parallelDelegations",
    "requireConfirmation",
    "runCondition",
    "notesOptional",
    "synthesis",
];
const DELEGATION: &[&str] =
    &["workflowId", "goal", "runCondition", "contextMapping", "args", "modelTier", "allowedTools"];

const INTRODUCTION: &str = "Hand out each of the following pieces of work to a subagent of its own, all in one go, and wait for all of them. Start subagents with your own tool for that; do not start workflow runs in this conversation. If you cannot start subagents, do the pieces yourself, one after the other. Put the results together in your notes.";
const PREFERRED: &str = "Hand out each of the following pieces of work to a subagent of its own, all in one go, and wait for all of them. Start subagents with your own tool for that; do not start workflow runs in this conversation. If you cannot start subagents, do the pieces yourself, one after the other, and give an artifact of kind `wr.capability_observation` with capability `delegation`, status `unavailable` and in `detail` what you tried. Put the results together in your notes.";
const ALONE: &str = "Do the following pieces of work yourself, one after the other: this workflow is not to be handed out to subagents. Do not start workflow runs in this conversation. Put the results together in your notes.";

impl<'a> Build<'a> {
    /// A step that hands out work side by side. Each piece is a fragment, so that those
    /// whose condition does not hold are not even mentioned.
    pub(super) fn parallel(&mut self, item: &Spot<'a>, scope: &Scope) -> Vec<Slug> {
        let Some(fields) = item.fields(FIELDS) else { return Vec::new() };
        let named = self.id(&fields, scope);
        let name = named.as_ref().map(|(name, _)| name.clone()).unwrap_or_default();
        let list = fields.need("parallelDelegations");
        let pieces = list.as_ref().map(Spot::items).unwrap_or_default();
        if let Some(list) = list.filter(|list| list.is_list() && pieces.is_empty()) {
            list.error(Code::InvalidValue, "there is nothing to hand out");
        }
        let mut fragments = Vec::new();
        for (place, piece) in pieces.iter().enumerate() {
            let Some(piece) = piece.fields(DELEGATION) else { continue };
            let id = format!("piece-{}", place + 1);
            let named = format!("{name}.fragment.{id}");
            let condition = self.condition(piece.get("runCondition").as_ref(), &named);
            let Some(text) = delegation(&piece, scope) else { continue };
            fragments.push(Fragment { condition, id, text });
        }
        let prompt = Prompt {
            fragments,
            agent_role: scope.role.clone(),
            notes_optional: fields.flag("notesOptional").unwrap_or(scope.notes_optional),
            text: self.introduction().to_owned(),
            ..Prompt::default()
        };
        let synthesis = self.synthesis(&fields, scope);
        let action = Action::Prompt(Box::new(prompt));
        let kept = self.keep(&fields, scope, named, action, Vec::new());
        self.follow(kept, item, synthesis)
    }

    /// How the pieces of work are handed out, as far as the workflow lets them be.
    fn introduction(&self) -> &'static str {
        match self.needs.get(&Capability::Delegation) {
            Some(Need::Disabled) => ALONE,
            Some(Need::Preferred) => PREFERRED,
            Some(Need::Required) | None => INTRODUCTION,
        }
    }

    /// The steps that find out whether required capabilities are there.
    pub(super) fn probes(&mut self) -> Vec<Slug> {
        let required = self.needs.iter().filter(|(_, need)| **need == Need::Required);
        let required: Vec<Capability> = required.map(|(capability, _)| *capability).collect();
        let mut order = Vec::new();
        for capability in required {
            let Some(template) = self.catalog.template(probe::TEMPLATE) else { continue };
            let name = probe::name(capability).to_owned();
            let arguments = BTreeMap::from([("capability".to_owned(), name)]);
            let id = Some(probe::TEMPLATE.to_owned());
            let origin = Origin { id, source: StepSource::FeatureInjected };
            let Ok(id) = probe::id(capability).parse::<Slug>() else { continue };
            self.names.insert(id.to_string(), 1);
            self.stencil(template, id.clone(), &arguments, origin, None);
            order.push(id);
        }
        order
    }

    /// Adds what the agent is to report for statistics.
    pub(super) fn metrics(&mut self, profile: Metrics, order: &[Slug]) {
        const COMMITS: &str = "Keep the commits you make in the context key `metrics_commit_shas`, a list that grows.";
        const REQUESTS: &str = "Set the context key `metrics_pr_numbers` to the numbers of the pull requests concerned.";
        const OUTCOME: &str =
            "Set the context key `metrics_outcome` to success, partial, abandoned or error.";
        let added = StepSource::FeatureInjected;
        // A step that the engine performs has nobody to ask.
        let is_passed_over = |id: &Slug| {
            let step = self.steps.iter().find(|step| step.id == *id);
            let typed = |step: &Step| matches!(step.action, Action::Typed { .. });
            step.is_some_and(|step| typed(step) || step.origin.source == added)
        };
        let last = order.iter().rev().find(|id| !is_passed_over(id)).cloned();
        for found in self.steps.iter_mut().filter(|step| step.origin.source != added) {
            let Action::Prompt(prompt) = &mut found.action else { continue };
            let mut lines = Vec::new();
            if profile == Metrics::Coding {
                lines.push(COMMITS);
            }
            if Some(&found.id) == last.as_ref() {
                lines.push(OUTCOME);
                // Statistics are worth no stop, but what is said for them is to make sense.
                prompt.context_keys.push(ContextKey {
                    name: "metrics_outcome".to_owned(),
                    required: false,
                    schema: StrictValue::new(
                        json!({"enum": ["success", "partial", "abandoned", "error"]}),
                    ),
                });
                if profile != Metrics::Outcome {
                    lines.push(REQUESTS);
                }
            }
            for line in &lines {
                prompt.injected.push(prompt::injected("wr.metrics", line));
            }
            let lines: Vec<String> = lines.into_iter().map(str::to_owned).collect();
            prompt::add_lines(&mut prompt.text, "For the statistics:", &lines);
        }
    }
}

/// What is told about one piece of work.
fn delegation(fields: &Fields<'_>, scope: &Scope) -> Option<String> {
    let workflow = fields.need_text("workflowId");
    let goal = fields.get("goal").and_then(|spot| prompt::prose(&spot, scope));
    let mut text = format!("- Workflow `{}`", workflow.clone().unwrap_or_default());
    if let Some(goal) = goal {
        text.push_str(&format!(": {goal}"));
    }
    for (spot, heading) in
        [(fields.get("args"), "with"), (fields.get("contextMapping"), "from your context")]
    {
        for (name, value) in spot.iter().flat_map(Spot::members) {
            let Some(value) = prompt::prose(&value, scope) else { continue };
            text.push_str(&format!("\n  - {heading}: {name} = {value}"));
        }
    }
    if header::model_tier(fields).is_some() {
        let tier = fields.text("modelTier").unwrap_or_default();
        text.push_str(&format!("\n  - model: {tier}"));
    }
    let tools = fields.texts("allowedTools");
    if !tools.is_empty() {
        text.push_str(&format!("\n  - tools: {}", tools.join(", ")));
    }
    workflow.map(|_| text)
}
