//! One step of an agent: a prompt, and what is asked of its answer.

use cairn_core::plan::{
    Action, FunctionScope, OnFailure, OnInterrupt, OutputContract, Prompt, Step,
};
use cairn_core::text::Slug;

use super::keys::keys;
use super::{Build, Scope, header};
use crate::diagnostic::Code;
use crate::read::{Fields, Spot};

pub(super) const FIELDS: &[&str] = &[
    "agentRole",
    "askForFiles",
    "assessmentConsequences",
    "assessmentRefs",
    "audit",
    "contextKeys",
    "functionCalls",
    "functionDefinitions",
    "functionReferences",
    "guidance",
    "hasValidation",
    "id",
    "modelTier",
    "nonAssumableChoices",
    "notesOptional",
    "output",
    "outputContract",
    "prompt",
    "promptBlocks",
    "promptFragments",
    "requireConfirmation",
    "run",
    "runCondition",
    "templateCall",
    "title",
    "type",
    "validationCriteria",
    "verification",
];

impl<'a> Build<'a> {
    /// The step, and what follows it.
    pub(super) fn step(&mut self, item: &Spot<'a>, scope: &Scope) -> Vec<Slug> {
        let Some(fields) = item.fields(FIELDS) else { return Vec::new() };
        if let Some(kind) = fields.get("type") {
            kind.choice(&[("step", ()), ("loop", ()), ("parallel", ())]);
        }
        if fields.get("run").is_some() {
            return self.run(&fields, scope).into_iter().collect();
        }
        let named = self.id(&fields, scope);
        let name = named.as_ref().map(|(name, _)| name.clone()).unwrap_or_default();
        let mut prompt = self.prompt(&fields, scope);
        prompt.fragments = self.fragments(&fields, scope, &name);
        if let Some((_, id)) = &named {
            let own = FunctionScope::Step { step_id: id.clone() };
            self.define(fields.get("functionDefinitions"), &own);
            self.call(&fields, id);
        }
        let output_contracts = self.demands(&fields, &name, &mut prompt);
        let followers = self.followers(&fields, scope, &name);
        let action = Action::Prompt(Box::new(prompt));
        let kept = self.keep(&fields, scope, named, action, output_contracts);
        self.follow(kept, item, followers)
    }

    /// What is asked of the answer: contracts, checks and assessments.
    pub(super) fn demands(
        &mut self,
        fields: &Fields<'a>,
        name: &str,
        prompt: &mut Prompt,
    ) -> Vec<OutputContract> {
        let contracts = self.outputs(fields, &mut prompt.requirements);
        let check = fields.get("validationCriteria");
        prompt.check = check.and_then(|spot| self.check(&spot, name));
        if let Some(check) = prompt.check.as_ref().filter(|_| contracts.is_empty()) {
            prompt.requirements.extend(super::check::lines(check));
        }
        self.assess(fields, prompt);
        self.choices(fields, prompt);
        prompt.context_keys = keys(fields);
        contracts
    }

    /// Puts a step among those of the plan.
    pub(super) fn keep(
        &mut self,
        fields: &Fields<'a>,
        scope: &Scope,
        named: Option<(String, Slug)>,
        action: Action,
        output_contracts: Vec<OutputContract>,
    ) -> Option<Slug> {
        let name = named.as_ref().map(|(name, _)| name.as_str()).unwrap_or_default();
        let title = fields.need("title").and_then(|spot| super::prompt::prose(&spot, scope));
        let condition = self.run_condition(fields, scope, name);
        let asks = fields.get("requireConfirmation").is_some();
        let typed = matches!(action, Action::Typed { .. });
        let inherited = scope.confirmation.clone().filter(|_| !asks && !typed);
        let require_confirmation = self.confirmation(fields, name).or(inherited);
        let (_, id) = named?;
        self.steps.push(Step {
            // Whatever comes of a step that the engine performs, conditions may look at it.
            on_failure: if typed { OnFailure::Skip {} } else { OnFailure::Stop {} },
            action,
            condition,
            id: id.clone(),
            on_interrupt: OnInterrupt::Retry,
            origin: scope.origin.clone(),
            output_contracts,
            require_confirmation,
            retry: None,
            timeout_ms: None,
            visits_max: None,
            title: title?,
        });
        Some(id)
    }

    /// The text of a step, and what goes with it.
    fn prompt(&mut self, fields: &Fields<'a>, scope: &Scope) -> Prompt {
        let role = fields.get("agentRole").and_then(|spot| super::prompt::prose(&spot, scope));
        let mut prompt = Prompt {
            agent_role: role.or_else(|| scope.role.clone()),
            model_tier: header::model_tier(fields),
            notes_optional: fields.flag("notesOptional").unwrap_or(scope.notes_optional),
            ..Prompt::default()
        };
        match (fields.get("prompt"), fields.get("promptBlocks")) {
            (Some(text), None) => {
                prompt.text = super::prompt::prose(&text, scope).unwrap_or_default();
            }
            (None, Some(blocks)) => self.blocks(&blocks, scope, &mut prompt),
            (Some(_), Some(blocks)) => {
                blocks.error_hint(
                    Code::Conflict,
                    "the step has both `prompt` and `promptBlocks`",
                    "keep one of them",
                );
            }
            (None, None) => {
                fields.spot.error_hint(
                    Code::MissingField,
                    "the step says nothing to do",
                    "add `prompt`, `promptBlocks`, `run` or `templateCall`",
                );
            }
        }
        let lines = self.guidance(fields, scope);
        super::prompt::add_lines(&mut prompt.text, "Guidance:", &lines);
        super::prompt::within_budget(&fields.spot, &prompt);
        prompt
    }

    /// The lines that a step adds to its text.
    pub(super) fn guidance(&mut self, fields: &Fields<'a>, scope: &Scope) -> Vec<String> {
        let guidance = fields.get("guidance").map(|spot| spot.items()).unwrap_or_default();
        let mut lines: Vec<String> =
            guidance.iter().filter_map(|spot| super::prompt::prose(spot, scope)).collect();
        if fields.flag("askForFiles") == Some(true) {
            lines.push("Ask the user for the files you need.".to_owned());
        }
        if let Some(spot) = fields.get("hasValidation") {
            spot.flag();
            let message = "`hasValidation` has no effect";
            spot.warn(
                Code::FieldIgnored,
                message,
                "`validationCriteria` alone says what is checked",
            );
        }
        lines.extend(self.applied(fields));
        lines
    }
}
