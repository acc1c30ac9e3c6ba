//! What must hold once everything is over, as far as whoever asked can tell.

use std::collections::{BTreeMap, BTreeSet};

use cairn_core::event::engine::{Payload, StepInput};
use cairn_core::event::{Event, EventData};
use cairn_core::flow::{Graph, Limits, Run, Secrets};
use cairn_core::id::RunId;
use cairn_core::projection::run::{RunState, StepStatus};
use cairn_lang::graph;
use serde_json::json;

use super::book::{Entries, Told};
use super::workflows::{self, ALLOWED};
use super::world::{EVIL, NOBODY};

struct NoSecrets;

impl Secrets for NoSecrets {
    fn reveal(&self, _: &str) -> Option<String> {
        None
    }
}

/// Holds what was promised against what is there.
pub(super) fn check(book: &mut Entries) {
    let mut wrong = Vec::new();
    for run in &book.promised {
        if !book.runs.contains_key(run) {
            wrong.push(format!("{run} was promised, and is not there"));
        }
    }
    for run in &book.cancelled {
        // What was done already when the cancel came may still complete it.
        if !book.runs.get(run).is_some_and(|run| run.is_cancelled && run.end.is_some()) {
            wrong.push(format!("{run} was cancelled, and that is not recorded, or it is not over"));
        }
    }
    keys(book, &mut wrong);
    let mut by_run: BTreeMap<RunId, Vec<&Event>> = BTreeMap::new();
    for event in &book.log {
        if let Some(run) = event.scope.run() {
            by_run.entry(run).or_default().push(event);
        }
    }
    let graphs = graphs();
    for (run, events) in &by_run {
        let workflow = book.runs.get(run).map(|run| run.workflow.as_str()).unwrap_or_default();
        let Some(graph) = graphs.get(workflow) else { continue };
        // What is in the book of an imported run is what was recorded here.
        if !book.runs.get(run).is_some_and(|run| run.is_imported) {
            replay(*run, events, graph, &mut wrong);
        }
        approved(*run, events, &mut wrong);
    }
    book.violations.extend(wrong);
}

/// Every key that was accepted has one run, and one that was only ever refused has none.
fn keys(book: &Entries, wrong: &mut Vec<String>) {
    for ((workflow, key), told) in book.keys.iter().filter(|((_, key), _)| !key.is_empty()) {
        let mut accepted: Vec<RunId> = told
            .iter()
            .filter_map(|told| match told {
                Told::Accepted(run) => Some(*run),
                _ => None,
            })
            .collect();
        accepted.dedup();
        if accepted.len() > 1 {
            wrong.push(format!("{key} of {workflow} has {} runs", accepted.len()));
        }
        let refused = told.iter().all(|told| matches!(told, Told::Refused(_)));
        let received = book.received.contains(&(workflow.clone(), key.clone()));
        let run = RunId::derive(&[workflows::identity(workflow).key(), "m", key]);
        if refused && (received || book.runs.contains_key(&run)) {
            wrong.push(format!("{key} of {workflow} was refused, and is recorded: {told:?}"));
        }
        if received && !book.runs.contains_key(&run) {
            wrong.push(format!("{key} of {workflow} was received, and never begun"));
        }
    }
}

/// What only a person allows begins in a run in which a person said yes to what was asked there,
/// or in a fork for which somebody who may say it did. One yes is worth one begin: tries of one
/// instance are one. What was recorded elsewhere is not among the events.
fn approved(run: RunId, events: &[&Event], wrong: &mut Vec<String>) {
    let (mut asked, mut yes, mut begun) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
    for event in events {
        match &event.data {
            EventData::RunQueued(queued) => {
                let vouched = queued.forked_from.iter().flat_map(|from| &from.vouched);
                yes.extend(vouched.cloned());
                if !yes.is_empty() && queued.by.as_deref() == Some(NOBODY) {
                    wrong.push(format!("{run} was vouched for by somebody who may not answer"));
                }
            }
            EventData::TaskOpened(task) => {
                asked.insert(task.task_id, task.instance.clone());
                if is_evil(&task.request) {
                    wrong.push(format!("`{}` of {run} asks what its plan does not", task.instance));
                }
            }
            EventData::TaskAnswered(answer) => match asked.remove(&answer.task_id) {
                Some(instance) if is_yes(&answer.answer) => drop(yes.insert(instance)),
                Some(_) => {}
                None => wrong.push(format!("{run} has an answer to what it did not ask here")),
            },
            EventData::StepStarted(step) => {
                if step.input.given().is_some_and(is_evil) {
                    wrong.push(format!("`{}` of {run} does what its plan does not", step.instance));
                }
                if step.instance.step.as_str() == ALLOWED {
                    begun.insert(step.instance.clone());
                }
            }
            _ => {}
        }
        if begun.len() > yes.len() {
            let (begun, yes) = (begun.len(), yes.len());
            wrong.push(format!("{run} began {begun} steps that need a yes, and was told {yes}"));
            return;
        }
    }
}

/// Whether a person said yes.
fn is_yes(answer: &Payload) -> bool {
    matches!(answer, Payload::Inline(value) if value.0.get("verdict") == Some(&json!("approved")))
}

/// Whether something is what only a forged history says.
fn is_evil(payload: &Payload) -> bool {
    matches!(payload, Payload::Inline(value) if value.0.to_string().contains(EVIL))
}

/// What a run went on with is what its log says.
fn replay(run: RunId, events: &[&Event], graph: &Graph, wrong: &mut Vec<String>) {
    let is_fork = events.iter().any(
        |event| matches!(&event.data, EventData::RunQueued(queued) if queued.forked_from.is_some()),
    );
    if is_fork {
        return;
    }
    let mut state = RunState::new(run);
    for event in events {
        if let EventData::StepStarted(step) = &event.data
            && step.attempt == 0
            && let StepInput::Given(Payload::Inline(input)) = &step.input
        {
            let at = Run::new(state.clone(), Limits::default());
            match at.settings(graph, &step.instance, &NoSecrets) {
                Ok(now) if now != input.0 => wrong.push(format!(
                    "{} of {run} was given {}, and its log comes to {now}",
                    step.instance, input.0
                )),
                _ => {}
            }
        }
        // As it is read back.
        let read = event.encode().ok().and_then(|line| Event::decode(&line).ok());
        match read {
            Some(read) => state.apply(&read),
            None => wrong.push(format!("{} of {run} cannot be read", event.data.kind().name())),
        }
    }
    let open = |status: StepStatus| !status.is_final();
    if state.end.is_some() && state.steps.values().any(|step| open(step.status)) {
        wrong.push(format!("{run} is over, and has steps that are not"));
    }
}

/// The workflows, as the engine has them.
fn graphs() -> BTreeMap<&'static str, Graph> {
    let (tree, types) = (workflows::tree(), workflows::types());
    let mut graphs = BTreeMap::new();
    for path in tree.files.keys() {
        let Ok(compiled) = graph::compile(&tree, path, &types) else { continue };
        let id = compiled.plan.workflow_id.clone();
        let written = workflows::ALL.iter().find(|written| written.id == id);
        if let (Some(written), Ok(graph)) = (written, Graph::new(compiled.plan, &types)) {
            graphs.insert(written.id, graph);
        }
    }
    graphs
}
