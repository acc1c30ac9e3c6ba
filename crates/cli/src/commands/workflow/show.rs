//! `cairn workflow show`: what a workflow does, step by step.

use std::collections::BTreeSet;

use cairn_api::Exit;
use cairn_api::error::Result;
use cairn_api::workflow::{self, Summary};
use cairn_core::capabilities::Capabilities;
use cairn_core::plan::{
    Action, Edge, Loop, Mode, OnFailure, Plan, Repeat, Step, StepSource, Trigger,
};
use cairn_core::text::Slug;
use serde_json::{Value, json};

use super::marks;
use crate::config::Config;
use crate::output::{Output, Style, plain};
use crate::sources;

/// Show what a workflow does, step by step
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  cairn workflow show project.triage\n  cairn workflow show triage.yaml --json"
)]
pub(crate) struct Args {
    /// Workflow: its id, the name part of it, or its file
    #[arg(value_name = "ID|FILE")]
    workflow: String,
}

pub(crate) fn run(args: &Args, config: &Config) -> Result<Exit> {
    let found = sources::find(&args.workflow, config)?;
    let output = &config.output;
    if (found.outcome.is_err() || found.alias.is_some()) && !output.json {
        let told = sources::diagnostics(&found);
        marks::render(&found, &told).iter().for_each(|line| output.remark(line));
    }
    let plan = &found.compiled()?.plan;
    let order = top(plan);
    if output.json {
        let contracts: Vec<&str> = plan.contracts.iter().map(|c| c.r#ref.as_str()).collect();
        output.object(&json!({
            "workflow": Summary::of(&found, &[]),
            "steps": order.iter().map(|id| item(plan, id)).collect::<Vec<_>>(),
            "triggers": plan.triggers,
            "contracts": contracts,
            "capabilities": workflow::Capabilities::of(plan),
        }))?;
        return Ok(Exit::Success);
    }
    let title = format!("{}  {}", plan.workflow_id, plan.name);
    output.line(&output.paint(Style::Strong, &plain(&title)))?;
    output.line(&plain(&plan.description))?;
    let hash = plan.hash().map(|hash| hash.to_string()).unwrap_or_default();
    output.line(&output.paint(Style::Faint, &format!("{} {hash}", found.kind.name())))?;
    output.line("")?;
    for id in &order {
        print(output, plan, id, 1)?;
    }
    if !plan.triggers.is_empty() {
        output.line("\nstarted by")?;
        plan.triggers.iter().try_for_each(|trigger| output.line(&started_by(trigger)))?;
    }
    if !plan.contracts.is_empty() {
        output.line("\ncontracts")?;
        for contract in &plan.contracts {
            output.line(&format!("  {}", contract.r#ref))?;
        }
    }
    let can = Capabilities::of(plan).lines();
    if !can.is_empty() {
        output.line("\ncan")?;
        can.iter().try_for_each(|line| output.line(&format!("  {line}")))?;
    }
    Ok(Exit::Success)
}

/// A trigger, with what tells it from others of its type.
fn started_by(trigger: &Trigger) -> String {
    let particular = |(name, value): (&String, &Value)| match value {
        Value::String(text) => Some(format!(", {name} {text}")),
        Value::Number(number) => Some(format!(", {name} {number}")),
        _ => None,
    };
    let particulars = trigger.config.0.as_object().into_iter().flatten();
    let particulars: String = particulars.filter_map(particular).collect();
    plain(&format!("  {}  {}{particulars}", trigger.id, trigger.r#type))
}

/// What is in no loop, in the order in which it is done; ways that part are in the order of
/// their edges.
fn top(plan: &Plan) -> Vec<Slug> {
    if plan.mode() == Mode::Performed {
        return ways(plan);
    }
    let mut seen = BTreeSet::new();
    let mut order = Vec::new();
    let mut next = plan.entry.first();
    while let Some(id) = next.filter(|id| seen.insert((*id).clone())) {
        order.push(id.clone());
        next = plan.edges.iter().find(|edge| edge.from == *id).map(|edge| &edge.to);
    }
    order
}

fn ways(plan: &Plan) -> Vec<Slug> {
    let starts = plan.entry.iter().chain(plan.triggers.iter().filter_map(|t| t.entry.as_ref()));
    let mut open: Vec<&Slug> = starts.collect();
    open.reverse();
    let mut order: Vec<Slug> = Vec::new();
    while let Some(id) = open.pop() {
        if order.contains(id) {
            continue;
        }
        order.push(id.clone());
        let fallback = plan.step(id).and_then(|step| match &step.on_failure {
            OnFailure::Fallback { step_id } => Some(step_id),
            _ => None,
        });
        let next = plan.edges.iter().filter(|edge| edge.from == *id).map(|edge| &edge.to);
        let next: Vec<&Slug> = next.chain(fallback).collect();
        open.extend(next.into_iter().rev());
    }
    order
}

/// Where a step of a graph leads.
fn leads(plan: &Plan, id: &Slug) -> String {
    if plan.mode() != Mode::Performed {
        return String::new();
    }
    let edges = plan.edges.iter().filter(|edge| edge.from == *id);
    let edge = |edge: &Edge| match &edge.case {
        Some(case) => format!("{}: {}", plain(case), edge.to),
        None => edge.to.to_string(),
    };
    let mut ends: Vec<String> = edges.map(edge).collect();
    if let Some(OnFailure::Fallback { step_id }) = plan.step(id).map(|step| &step.on_failure) {
        ends.push(format!("on failure: {step_id}"));
    }
    if ends.is_empty() { String::new() } else { format!("  → {}", ends.join(", ")) }
}

fn looped<'a>(plan: &'a Plan, id: &Slug) -> Option<&'a Loop> {
    plan.loops.iter().find(|looped| looped.id == *id)
}

fn print(output: &Output, plan: &Plan, id: &Slug, level: usize) -> Result<()> {
    let margin = "  ".repeat(level);
    if let Some(looped) = looped(plan, id) {
        let turns = format!("loop {}, at most {} turns", repeat(looped), looped.max_iterations);
        let remark = output.paint(Style::Faint, &format!("({turns})"));
        let leads = leads(plan, id);
        output.line(&format!("{margin}{id}  {}  {remark}{leads}", plain(&looped.title)))?;
        return looped.body.iter().try_for_each(|inner| print(output, plan, inner, level + 1));
    }
    let Some(step) = plan.step(id) else { return Ok(()) };
    let notes = notes(step);
    let notes = if notes.is_empty() { String::new() } else { format!("  ({})", notes.join(", ")) };
    let notes = output.paint(Style::Faint, &notes);
    let leads = leads(plan, id);
    output.line(&format!("{margin}{id}  {}{notes}{leads}", plain(&step.title)))
}

fn notes(step: &Step) -> Vec<String> {
    let mut notes = Vec::new();
    notes.extend(performed(step).map(|kind| match kind.as_str() {
        "human" => "a person answers".to_owned(),
        kind => format!("the engine does it: {kind}"),
    }));
    if step.condition.is_some() {
        notes.push("on a condition".to_owned());
    }
    if step.require_confirmation.is_some() {
        notes.push("asks".to_owned());
    }
    if step.origin.source != StepSource::Authored {
        notes.push(format!("from {}", step.origin.id.as_deref().unwrap_or("a feature")));
    }
    notes.extend(step.output_contracts.iter().map(|contract| contract.r#ref.clone()));
    notes
}

/// The type of a step that no agent sees.
fn performed(step: &Step) -> Option<&Slug> {
    match &step.action {
        Action::Prompt(_) => None,
        Action::Typed { r#type, .. } => Some(r#type),
    }
}

fn repeat(looped: &Loop) -> &'static str {
    match looped.repeat {
        Repeat::Count { .. } => "a number of times",
        Repeat::Each { .. } => "over a list",
        Repeat::While { .. } => "on a condition",
        Repeat::UntilDecision { .. } => "until a step decides to stop",
    }
}

fn item(plan: &Plan, id: &Slug) -> Value {
    if let Some(looped) = looped(plan, id) {
        let body: Vec<Value> = looped.body.iter().map(|inner| item(plan, inner)).collect();
        return json!({
            "loopId": id,
            "title": looped.title,
            "maxIterations": looped.max_iterations,
            "repeat": looped.repeat,
            "body": body,
        });
    }
    let Some(step) = plan.step(id) else { return Value::Null };
    json!({
        "stepId": id,
        "title": step.title,
        "performs": performed(step),
        "condition": step.condition,
        "requireConfirmation": step.require_confirmation,
        "outputContracts": step.output_contracts,
        "origin": step.origin,
    })
}
