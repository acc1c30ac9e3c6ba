//! Template calls: a step that stands for the steps of a template or routine.

use std::collections::BTreeMap;

use cairn_core::plan::{
    Action, FunctionScope, OnFailure, OnInterrupt, Origin, OutputContract, Prompt, Step, StepSource,
};
use cairn_core::text::Slug;

use super::step::FIELDS;
use super::{Build, Scope, bind, condition, header};
use crate::builtins::{ROUTINES, Template};
use crate::diagnostic::Code;
use crate::read::{Fields, Spot};
use crate::source::{self, Node, SourceTree, Value};

/// How deep routines may call routines.
const DEPTH_MAX: usize = 8;

/// The routines that can be called, by name; nothing takes the place of a bundled one.
///
/// They are only looked for when the workflow calls any.
pub(super) fn routines(tree: &SourceTree, bytes: &[u8]) -> BTreeMap<String, (String, Node)> {
    let mut routines = BTreeMap::new();
    if !bytes.windows(ROUTINES.len()).any(|part| part == ROUTINES.as_bytes()) {
        return routines;
    }
    for (path, bytes) in tree.library.iter().chain(&tree.files) {
        let Ok(document) = source::parse(path, bytes) else { continue };
        let id = document.get("id").and_then(Node::as_text).unwrap_or_default();
        let name = id.split_once('.').map_or(id, |(_, name)| name);
        if let Some(name) = name.strip_prefix("routine-") {
            routines.entry(name.to_owned()).or_insert((path.clone(), document));
        }
    }
    routines
}

impl<'a> Build<'a> {
    /// What holds for the steps of a workflow or routine.
    pub(super) fn scope(&mut self, fields: &Fields<'a>, outer: &Scope) -> Scope {
        let mut scope = outer.clone();
        for spot in fields.get("features").iter().flat_map(Spot::items) {
            let Some(id) = spot.filled() else { continue };
            match self.catalog.feature(id) {
                None => spot.unknown("feature", id, self.catalog.features.iter().map(|f| f.id)),
                Some(feature) => {
                    self.features.insert(feature.id, feature);
                    if !scope.features.iter().any(|known| known.id == feature.id) {
                        scope.features.push(feature);
                    }
                }
            }
        }
        scope.features.sort_by_key(|feature| feature.id);
        for spot in fields.get("extensionPoints").iter().flat_map(Spot::items) {
            let known = ["slotId", "purpose", "default", "acceptedKinds"];
            let Some(slot) = spot.fields(&known) else { continue };
            slot.need_text("purpose");
            for kind in slot.get("acceptedKinds").iter().flat_map(Spot::items) {
                kind.choice(&[("routine", ()), ("workflow", ())]);
            }
            let (id, default) = (slot.need_text("slotId"), slot.need_text("default"));
            let Some((id, default)) = id.zip(default) else { continue };
            let workflow = fields.get("id").and_then(|spot| spot.node.as_text());
            let bound = bind::find(&self.bound, workflow.unwrap_or_default(), &id);
            scope.slots.insert(id, bound.cloned().unwrap_or(default));
        }
        self.assessments(fields);
        self.define_conditions(fields);
        self.define(fields.get("functionDefinitions"), &FunctionScope::Workflow {});
        scope
    }

    /// The steps that a call stands for. What the call says beside is handed down to them.
    pub(super) fn template(&mut self, item: &Spot<'a>, scope: &Scope) -> Vec<Slug> {
        let Some(fields) = item.fields(FIELDS) else { return Vec::new() };
        for other in ["prompt", "promptBlocks", "run"] {
            if let Some(spot) = fields.get(other) {
                let message = format!("the step has both `templateCall` and `{other}`");
                spot.error_hint(Code::Conflict, message, "keep one of them");
            }
        }
        let named = self.id(&fields, scope);
        fields.need_text("title");
        let call = fields.get("templateCall").and_then(|s| s.fields(&["templateId", "args"]));
        let Some((call, (name, id))) = call.zip(named) else { return Vec::new() };
        let Some(spot) = call.need("templateId") else { return Vec::new() };
        let Some(given) = spot.filled() else { return Vec::new() };
        let origin = Origin { id: Some(given.to_owned()), source: StepSource::TemplateInjected };
        let first = self.steps.len();
        let order = match given.strip_prefix(ROUTINES) {
            Some(routine) => {
                let condition = condition::within(&fields, scope);
                let mut inner = Scope { origin, condition, ..scope.clone() };
                inner.prefix = format!("{name}.");
                inner.arguments = arguments(&call);
                let role = fields.get("agentRole").and_then(|s| super::prompt::prose(&s, scope));
                inner.role = role.or(inner.role);
                inner.notes_optional = fields.flag("notesOptional").unwrap_or(inner.notes_optional);
                let asked = self.confirmation(&fields, &name);
                inner.confirmation = asked.or(inner.confirmation);
                self.routine(&spot, &call, routine, inner)
            }
            None => self.built_in(&fields, scope, (&name, id), (&spot, &call), origin),
        };
        self.hand_down(item, &fields, scope, &name, first, order)
    }

    /// The step of a template that comes with the program.
    fn built_in(
        &mut self,
        fields: &Fields<'a>,
        scope: &Scope,
        (name, id): (&str, Slug),
        (spot, call): (&Spot<'a>, &Fields<'a>),
        origin: Origin,
    ) -> Vec<Slug> {
        let given = origin.id.clone().unwrap_or_default();
        let arguments = arguments(call);
        let Some(template) = self.catalog.template(&given) else {
            let routines = self.routines.keys().map(|name| format!("{ROUTINES}{name}"));
            let routines: Vec<String> = routines.collect();
            let known = self.catalog.templates.iter().map(|template| template.id);
            spot.unknown("template", &given, known.chain(routines.iter().map(String::as_str)));
            return Vec::new();
        };
        for wanted in template.arguments.iter().filter(|name| !arguments.contains_key(**name)) {
            let message = format!("the template needs the argument `{wanted}`");
            call.spot.error_hint(Code::MissingField, message, "add it to `args`");
        }
        for (given, spot) in call.get("args").iter().flat_map(Spot::members) {
            if !template.arguments.contains(&given) {
                spot.unknown("argument", given, template.arguments.iter().copied());
            }
        }
        let condition = self.run_condition(fields, scope, name);
        self.stencil(template, id.clone(), &arguments, origin, condition);
        let asked = self.confirmation(fields, name).or_else(|| scope.confirmation.clone());
        if let Some(step) = self.steps.last_mut() {
            step.require_confirmation = asked;
            if let Action::Prompt(prompt) = &mut step.action {
                let role = fields.get("agentRole").and_then(|s| super::prompt::prose(&s, scope));
                prompt.agent_role = role.or_else(|| scope.role.clone());
                prompt.notes_optional =
                    fields.flag("notesOptional").unwrap_or(scope.notes_optional);
            }
        }
        vec![id]
    }

    /// Hands down what a call says beside its template: instructions to its first step, demands
    /// on the outcome to its last, and what follows goes behind that.
    fn hand_down(
        &mut self,
        item: &Spot<'a>,
        fields: &Fields<'a>,
        scope: &Scope,
        name: &str,
        first: usize,
        mut order: Vec<Slug>,
    ) -> Vec<Slug> {
        let made = self.steps.get(first..).unwrap_or_default();
        let prompted = |step: &&Step| matches!(step.action, Action::Prompt(_));
        let start = made.iter().find(prompted).map(|step| step.id.clone());
        let end = made.iter().rfind(prompted).map(|step| step.id.clone());
        let Some((start, end)) = start.zip(end) else { return order };
        let lines = self.guidance(fields, scope);
        let fragments = self.fragments(fields, scope, name);
        self.change(&start, |_, prompt| {
            super::prompt::add_lines(&mut prompt.text, "Guidance:", &lines);
            prompt.fragments.extend(fragments);
        });
        let own = FunctionScope::Step { step_id: start.clone() };
        self.define(fields.get("functionDefinitions"), &own);
        self.call(fields, &start);
        let tier = header::model_tier(fields);
        for step in self.steps.iter_mut().skip(first) {
            if let Action::Prompt(prompt) = &mut step.action {
                prompt.model_tier = prompt.model_tier.or(tier);
            }
        }
        let mut contracts = Vec::new();
        self.change(&end, |build, prompt| contracts = build.demands(fields, name, prompt));
        if let Some(step) = self.steps.iter_mut().find(|step| step.id == end) {
            contracts.retain(|new| !step.output_contracts.iter().any(|old| old.r#ref == new.r#ref));
            step.output_contracts.extend(contracts);
        }
        let followers = self.followers(fields, scope, name);
        if followers.is_empty() {
            return order;
        }
        if order.last() != Some(&end) {
            let message =
                "what follows needs a step to follow, and the routine does not end with one";
            let hint = "put `verification` and `audit` on a step of the routine";
            item.error_hint(Code::Unsupported, message, hint);
            return order;
        }
        order.pop();
        order.extend(self.follow(Some(end), item, followers));
        order
    }

    /// Changes the prompt of a step that is among those of the plan.
    fn change(&mut self, step: &Slug, change: impl FnOnce(&mut Self, &mut Prompt)) {
        let found = self.steps.iter().position(|known| known.id == *step);
        let Some(Action::Prompt(prompt)) =
            found.and_then(|at| self.steps.get(at)).map(|step| step.action.clone())
        else {
            return;
        };
        let mut prompt = prompt;
        // A check of its own stays unless the change brings another.
        let check = prompt.check.take();
        change(self, &mut prompt);
        prompt.check = prompt.check.or(check);
        if let Some(step) = found.and_then(|at| self.steps.get_mut(at)) {
            step.action = Action::Prompt(prompt);
        }
    }

    /// Adds the one step of a built-in template.
    pub(super) fn stencil(
        &mut self,
        template: &Template,
        id: Slug,
        arguments: &BTreeMap<String, String>,
        origin: Origin,
        condition: Option<Slug>,
    ) {
        let filled = |text: &str| {
            let fill = |text: String, (name, value): (&String, &String)| {
                text.replace(&format!("{{{name}}}"), value)
            };
            arguments.iter().fold(text.to_owned(), fill)
        };
        let mut prompt = Prompt { text: filled(template.prompt), ..Prompt::default() };
        let contract = self.catalog.contract(template.contract);
        if let Some(contract) = contract {
            self.contracts.insert(contract.id, contract);
            prompt.requirements = contract.guidance_with(true, arguments);
        }
        let under = |ref_: &str| OutputContract { r#ref: ref_.to_owned(), required: true };
        self.steps.push(Step {
            action: Action::Prompt(Box::new(prompt)),
            condition,
            id,
            on_failure: OnFailure::Stop {},
            on_interrupt: OnInterrupt::Retry,
            origin,
            output_contracts: contract.map(|contract| under(contract.id)).into_iter().collect(),
            require_confirmation: None,
            retry: None,
            timeout_ms: None,
            visits_max: None,
            title: filled(template.title),
        });
    }

    /// Puts the steps of a routine in the place of its call.
    fn routine(
        &mut self,
        spot: &Spot<'a>,
        call: &Fields<'a>,
        name: &str,
        mut scope: Scope,
    ) -> Vec<Slug> {
        let routines = self.routines;
        let Some((path, document)) = routines.get(name) else {
            spot.unknown("routine", name, routines.keys().map(String::as_str));
            return Vec::new();
        };
        if scope.templates.iter().any(|known| known == name) || scope.templates.len() >= DEPTH_MAX {
            spot.error(Code::Conflict, format!("the routine `{name}` calls itself"));
            return Vec::new();
        }
        scope.templates.push(name.to_owned());
        for (given, argument) in call.get("args").iter().flat_map(Spot::members) {
            if !mentions(document, &format!("{{{given}}}")) {
                let message = format!("the routine `{name}` does not use `{given}`");
                argument.warn(Code::ArgumentUnused, message, "leave it out");
            }
        }
        let root = spot.elsewhere(path, document);
        let Some(fields) = root.fields(header::FIELDS) else { return Vec::new() };
        let mut scope = self.scope(&fields, &scope);
        scope.role = fields.text("agentRole").or(scope.role);
        let first = self.steps.len();
        let order = fields.need("steps").map(|s| self.items(&s, &scope)).unwrap_or_default();
        let rules = fields.texts("metaGuidance");
        if let Some(Action::Prompt(prompt)) = self.steps.get_mut(first).map(|s| &mut s.action) {
            super::prompt::add_lines(&mut prompt.text, "In this part of the work:", &rules);
        }
        order
    }
}

fn arguments(call: &Fields<'_>) -> BTreeMap<String, String> {
    let text = |spot: &Spot<'_>| match spot.node.as_text() {
        Some(text) => text.to_owned(),
        None => spot.node.to_json().to_string(),
    };
    let given = call.get("args").map(|spot| spot.members()).unwrap_or_default();
    given.iter().map(|(name, spot)| ((*name).to_owned(), text(spot))).collect()
}

fn mentions(node: &Node, needle: &str) -> bool {
    match &node.value {
        Value::Text(text) => text.contains(needle),
        Value::List(items) => items.iter().any(|item| mentions(item, needle)),
        Value::Map(entries) => entries.iter().any(|entry| mentions(&entry.node, needle)),
        Value::Null | Value::Flag(_) | Value::Number(_) => false,
    }
}
