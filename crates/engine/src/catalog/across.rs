//! What workflows expect of each other.

use std::collections::BTreeMap;
use std::sync::Arc;

use cairn_core::catalog::SettingFault;
use cairn_core::catalog::input::fill;
use cairn_core::plan::{Action, Plan};
use cairn_lang::builtins;
use cairn_lang::diagnostic::{Code, Diagnostic, Severity};
use cairn_lang::graph;
use cairn_lang::source::{self, Node, Position, Value};
use serde_json::{Map, Value as Json};

use super::{Found, meant};
use crate::trigger::input;

/// A workflow that others may start.
struct Known {
    id: String,
    /// What it takes, if it says so.
    rules: Option<Map<String, Json>>,
    /// The roles that it asks of whoever starts it.
    roles: Vec<String>,
}

impl Known {
    fn of(found: &Found) -> Self {
        let plan = found.outcome.as_ref().ok().map(|compiled| &compiled.plan);
        let rules = plan.and_then(|plan| input::rules(plan, None)).cloned();
        let roles = plan.map(roles_of).unwrap_or_default();
        Self { id: found.id.clone(), rules, roles }
    }

    fn is_named(&self, given: &str) -> bool {
        self.id == given || self.id.split_once('.').is_some_and(|(_, name)| name == given)
    }
}

/// Says what some workflows expect of each other and is not so: workflows that are not there or
/// take something else, and addresses that two of them listen at. The others are there, too.
pub fn across(found: &mut [Found], others: &[Arc<Found>]) {
    let others = others.iter().map(AsRef::as_ref);
    let known: Vec<Known> = found.iter().chain(others).map(Known::of).collect();
    let mut paths: BTreeMap<String, String> = BTreeMap::new();
    for workflow in found {
        let Ok(compiled) = &workflow.outcome else { continue };
        let Ok(document) = source::parse(&workflow.path.display().to_string(), &workflow.bytes)
        else {
            continue;
        };
        if !graph::is_workflow(&document) {
            continue;
        }
        let mut told = starts(&compiled.plan, &document, &known);
        if graph::is_enabled(&document) {
            told.extend(shared(&compiled.plan, &document, &mut paths));
        }
        let shown = workflow.path.display().to_string();
        let told = told.into_iter().map(|told| Diagnostic { path: shown.clone(), ..told });
        if let Ok(compiled) = &mut workflow.outcome {
            compiled.warnings.extend(told);
            compiled.warnings.sort();
        }
    }
}

/// What is wrong with the workflows that a plan starts.
fn starts(plan: &Plan, document: &Node, known: &[Known]) -> Vec<Diagnostic> {
    let steps = nodes(document).iter().enumerate().filter_map(|(place, node)| {
        let step = plan.step(&node.get("id")?.as_text()?.parse().ok()?)?;
        match &step.action {
            Action::Typed { config, r#type } if r#type.as_str() == "workflow" => {
                Some((place, node, &config.0))
            }
            _ => None,
        }
    });
    let mut told = Vec::new();
    for (place, node, config) in steps {
        let Some(id) = config.get("workflow").and_then(Json::as_str) else { continue };
        let pointer = format!("/graph/nodes/{place}");
        match known.iter().find(|known| known.is_named(id)) {
            Some(child) => {
                told.extend(misgiven(child, config.get("input"), node, &pointer));
                told.extend(guarded(plan, child, node, &pointer));
            }
            None => told.extend(
                node.get("workflow")
                    .and_then(|node| missing(id, known, node, format!("{pointer}/workflow"))),
            ),
        }
    }
    let handler = plan.policy.error_workflow_id.as_deref().and_then(|id| {
        let node = document.get("on_error")?.get("trigger_workflow")?;
        missing(id, known, node, "/on_error/trigger_workflow".to_owned())
    });
    told.extend(handler);
    told
}

/// The roles that a workflow asks of whoever starts it.
fn roles_of(plan: &Plan) -> Vec<String> {
    let manual = plan.triggers.iter().filter(|trigger| trigger.r#type.as_str() == "manual");
    let roles = manual.filter_map(|trigger| trigger.config.0.get("require_role")?.as_str());
    roles.map(str::to_owned).collect()
}

/// A role that a workflow asks for and the one that starts it does not.
fn guarded(plan: &Plan, child: &Known, node: &Node, pointer: &str) -> Option<Diagnostic> {
    let own = roles_of(plan);
    let role = child.roles.iter().find(|role| !own.contains(role))?;
    let message = format!(
        "`{}` needs the role `{role}`: a run that was asked for with a token which lacks it fails here",
        child.id
    );
    let hint = format!("let a manual trigger of this workflow say `require_role: {role}`, too");
    let at = node.get("workflow").unwrap_or(node).at;
    Some(told(Code::InvalidValue, at, format!("{pointer}/workflow"), message, hint))
}

/// What a step gives to a workflow that does not take it.
fn misgiven(child: &Known, given: Option<&Json>, node: &Node, pointer: &str) -> Vec<Diagnostic> {
    let Some(rules) = &child.rules else { return Vec::new() };
    let given = given.cloned().unwrap_or_default();
    if given.is_string() {
        // What a template comes to is known when it is there.
        return Vec::new();
    }
    // A value of a known field may become anything.
    let is_open = |field: &str| {
        let value = field.split('.').try_fold(&given, |value, name| match value {
            Json::Array(items) => items.get(name.parse::<usize>().ok()?),
            value => value.get(name),
        });
        value.is_some_and(is_template) && has_field(rules, field)
    };
    let faults = fill(rules, given.clone()).err().unwrap_or_default();
    let at = |field: &str| {
        let inner = |node: &Node, name: &str| match &node.value {
            Value::List(items) => items.get(name.parse::<usize>().ok()?).cloned(),
            _ => node.get(name).cloned(),
        };
        let mut place = node.get("input").unwrap_or(node).clone();
        for name in field.split('.') {
            let Some(found) = inner(&place, name) else { break };
            place = found;
        }
        place.at
    };
    let diagnostic = |fault: SettingFault| {
        let SettingFault { field, message, hint } = fault;
        let is_unknown = !field.is_empty() && !has_field(rules, &field);
        let near = meant(&field, rules.keys().map(String::as_str)).filter(|_| is_unknown);
        let hint = near.map_or(hint, |near| format!("did you mean `{near}`?"));
        let (code, message) = (Code::InvalidValue, format!("`{}`: {message}", child.id));
        let at = at(&field);
        told(code, at, format!("{pointer}/input/{}", field.replace('.', "/")), message, hint)
    };
    faults.into_iter().filter(|fault| !is_open(&fault.field)).map(diagnostic).collect()
}

/// Whether the rules of an input have a field, which may stand inside others.
fn has_field(rules: &Map<String, Json>, field: &str) -> bool {
    let mut names = field.split('.');
    let first = names.next().and_then(|name| rules.get(name));
    let inner = |rule: &Json, name: &str| match name.parse::<usize>() {
        Ok(_) if rule.get("items").is_some() => rule.get("items").cloned(),
        _ => rule.get("properties").and_then(|fields| fields.get(name)).cloned(),
    };
    names.try_fold(first.cloned(), |rule, name| Some(inner(&rule?, name))).flatten().is_some()
}

/// Whether something in a value is known only when a run is there.
fn is_template(value: &Json) -> bool {
    match value {
        Json::String(text) => text.contains("{{") || text.contains("{%"),
        Json::Array(items) => items.iter().any(is_template),
        Json::Object(members) => members.values().any(is_template),
        _ => false,
    }
}

fn missing(given: &str, known: &[Known], node: &Node, pointer: String) -> Option<Diagnostic> {
    if known.iter().any(|known| known.is_named(given)) || builtins::canonical(given).is_some() {
        return None;
    }
    let hint = match meant(given, known.iter().map(|known| known.id.as_str())) {
        Some(near) => format!("did you mean `{near}`?"),
        None => {
            "it must be there when the run gets to it; `cairn workflow list` shows those there are"
                .to_owned()
        }
    };
    let message = format!("there is no workflow `{given}` here");
    Some(told(Code::UnknownName, node.at, pointer, message, hint))
}

/// The addresses of a plan that another workflow listens at.
fn shared(plan: &Plan, document: &Node, paths: &mut BTreeMap<String, String>) -> Vec<Diagnostic> {
    let written = document.get("triggers").map(items).unwrap_or_default();
    let mut found = Vec::new();
    for (place, node) in written.iter().enumerate() {
        let is_webhook = node.get("type").and_then(Node::as_text) == Some("webhook");
        let Some(path) = node.get("path").filter(|_| is_webhook) else { continue };
        let Some(text) = path.as_text() else { continue };
        match paths.get(text) {
            Some(other) if *other != plan.workflow_id => {
                let message =
                    format!("`{other}` listens at `{text}` too; one of them gets nothing");
                let hint =
                    "give each webhook a path of its own, or switch one off with `enabled: false`";
                let pointer = format!("/triggers/{place}/path");
                found.push(told(Code::Conflict, path.at, pointer, message, hint.to_owned()));
            }
            _ => {
                paths.insert(text.to_owned(), plan.workflow_id.clone());
            }
        }
    }
    found
}

fn told(code: Code, at: Position, pointer: String, message: String, hint: String) -> Diagnostic {
    Diagnostic {
        path: String::new(),
        line: at.line,
        column: at.column,
        severity: Severity::Warning,
        code,
        pointer,
        message,
        suggestion: Some(hint),
    }
}

fn nodes(document: &Node) -> &[Node] {
    document.get("graph").and_then(|graph| graph.get("nodes")).map(items).unwrap_or_default()
}

fn items(node: &Node) -> &[Node] {
    match &node.value {
        Value::List(items) => items,
        _ => &[],
    }
}
