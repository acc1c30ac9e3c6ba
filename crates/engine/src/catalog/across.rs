//! What workflows expect of each other.

use std::collections::BTreeMap;

use cairn_core::plan::{Action, Plan};
use cairn_lang::builtins;
use cairn_lang::diagnostic::{Code, Diagnostic, Severity};
use cairn_lang::graph;
use cairn_lang::source::{self, Node, Position, Value};

use super::{Found, meant};

/// Says what some workflows expect of each other and is not so: workflows that are not there,
/// and addresses that two of them listen at. The ids are those of all workflows there are.
pub fn across(found: &mut [Found], ids: &[String]) {
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
        let mut told = unknown(&compiled.plan, &document, ids);
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

/// The workflows that a plan names and that are not there.
fn unknown(plan: &Plan, document: &Node, ids: &[String]) -> Vec<Diagnostic> {
    let called = |(place, id): (usize, &str)| {
        let node = nodes(document).get(place)?.get("workflow")?;
        missing(id, ids, node, format!("/graph/nodes/{place}/workflow"))
    };
    let steps = nodes(document).iter().enumerate().filter_map(|(place, node)| {
        let step = plan.step(&node.get("id")?.as_text()?.parse().ok()?)?;
        match &step.action {
            Action::Typed { config, r#type } if r#type.as_str() == "workflow" => {
                Some((place, config.0.get("workflow")?.as_str()?))
            }
            _ => None,
        }
    });
    let mut told: Vec<Diagnostic> = steps.filter_map(called).collect();
    let handler = plan.policy.error_workflow_id.as_deref().and_then(|id| {
        let node = document.get("on_error")?.get("trigger_workflow")?;
        missing(id, ids, node, "/on_error/trigger_workflow".to_owned())
    });
    told.extend(handler);
    told
}

fn missing(given: &str, ids: &[String], node: &Node, pointer: String) -> Option<Diagnostic> {
    let named =
        |id: &&String| *id == given || id.split_once('.').is_some_and(|(_, name)| name == given);
    if ids.iter().any(|id| named(&id)) || builtins::canonical(given).is_some() {
        return None;
    }
    let hint = match meant(given, ids.iter().map(String::as_str)) {
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
