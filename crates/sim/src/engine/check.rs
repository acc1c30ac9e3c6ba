//! What must hold once everything is over, as far as whoever asked can tell.

use std::collections::{BTreeMap, BTreeSet};

use cairn_core::event::engine::{InterruptDecision, Payload, StepInput};
use cairn_core::event::{Event, EventData};
use cairn_core::flow::{Graph, Limits, Run, Secrets};
use cairn_core::id::RunId;
use cairn_core::projection::run::{RunState, StepStatus};
use cairn_lang::graph;
use serde_json::json;

use super::book::{Entries, Said, Told};
use super::workflows::{self, ALLOWED};
use super::world::{Counts, EVIL, NOBODY};

struct NoSecrets;

impl Secrets for NoSecrets {
    fn reveal(&self, _: &str) -> Option<String> {
        None
    }
}

/// Holds what was promised against what is there.
pub(super) fn check(book: &mut Entries, hits: &Counts, store: Option<&[Event]>) {
    let mut wrong = Vec::new();
    said(book, &mut wrong);
    children(book, &mut wrong);
    lists(book, &mut wrong);
    // Where the clock went elsewhere, or a begin was neither acknowledged nor refused, nobody can
    // tell what a minute held.
    if !["clock jumps", "disk unsure"].iter().any(|odd| hits.contains_key(odd)) {
        rate(book, &mut wrong);
    }
    if let Some(store) = store {
        kept(book, store, &mut wrong);
    }
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
        approved(*run, events, book, &mut wrong);
    }
    book.violations.extend(wrong);
}

/// What was acknowledged is recorded under the name of whoever said it, and what was refused is
/// not.
fn said(book: &Entries, wrong: &mut Vec<String>) {
    let by = |event: &Event| match &event.data {
        EventData::RunCancelRequested(said) => Some(said.by.clone()),
        EventData::RunPaused(said) => Some(said.by.clone()),
        EventData::RunResumed(said) => Some(said.by.clone()),
        EventData::TaskAnswered(said) => Some(said.by.clone()),
        EventData::StepResolved(said) => Some(said.by.clone()),
        _ => None,
    };
    let recorded: BTreeSet<String> = book.log.iter().filter_map(by).collect();
    for (name, said) in &book.said {
        match said {
            Said::Done(run) if !recorded.contains(name) => {
                wrong.push(format!("what {name} said to {run} was acknowledged, and is lost"));
            }
            Said::Refused(run, why) if recorded.contains(name) => {
                wrong.push(format!("what {name} said to {run} was refused ({why}), and recorded"));
            }
            _ => {}
        }
    }
}

/// Whoever lists runs lists those that there are, as their logs say they are.
fn lists(book: &Entries, wrong: &mut Vec<String>) {
    let there = book.runs.iter().filter(|(_, run)| !run.is_retired && !run.is_imported);
    for (id, run) in there {
        let end = match run.end {
            Some("run_completed") => Some("succeeded"),
            end => end.and_then(|end| end.strip_prefix("run_")),
        };
        for listed in &book.listed {
            let listed = listed.get(id).map(|status| status.name());
            if end.is_some() && listed != end {
                wrong.push(format!("{id} is {end:?}, and is listed as {listed:?}"));
            }
        }
    }
    let failed = book.log.iter().filter_map(|event| match &event.data {
        EventData::StepFailed(failed) => Some((event, failed)),
        _ => None,
    });
    for (event, failed) in failed {
        // That a process ends is no failure of what it was asked to do.
        if failed.error.code == "SERVER_STOPPING" {
            wrong.push(format!("{:?} failed for the end of a process", event.scope));
        }
    }
}

/// A child that its parent was told is refused has no run.
fn children(book: &Entries, wrong: &mut Vec<String>) {
    let parent = |event: &Event| match &event.data {
        EventData::RunQueued(queued) => {
            let parent = queued.parent.as_ref()?;
            Some(((parent.run_id, parent.instance.clone()), event.scope.run()?))
        }
        _ => None,
    };
    let children: BTreeMap<_, RunId> = book.log.iter().filter_map(parent).collect();
    let mut told = BTreeSet::new();
    for event in &book.log {
        let Some(run) = event.scope.run() else { continue };
        match &event.data {
            EventData::ChildFinished(finished) => {
                told.insert(finished.child_run_id);
            }
            EventData::StepFailed(failed) => {
                let child = children.get(&(run, failed.instance.clone()));
                let is_cancelled = book.runs.get(&run).is_some_and(|run| run.is_cancelled);
                let error = &failed.error;
                if let Some(child) = child.filter(|child| !is_cancelled && !told.contains(child)) {
                    wrong.push(format!("{run} is told that {child} is refused, a run: {error:?}"));
                }
            }
            _ => {}
        }
    }
}

/// No more runs begin in a minute than may. A run may be asked for a while before it is recorded.
fn rate(book: &Entries, wrong: &mut Vec<String>) {
    const SPAN_MS: u64 = 60_000 - 10_000;
    let asked = book.log.iter().filter(|event| match &event.data {
        EventData::RunQueued(queued) => {
            queued.workflow_id == workflows::RATED && queued.forked_from.is_none()
        }
        _ => false,
    });
    let mut times: Vec<u64> = asked.map(|event| event.id.minted_ms()).collect();
    times.sort_unstable();
    for (first, last) in times.iter().zip(times.iter().skip(workflows::RATE)) {
        if last - first < SPAN_MS {
            wrong.push(format!("{} runs of {} in a minute", workflows::RATE + 1, workflows::RATED));
        }
    }
}

/// What was recorded is in the store, unless the time of its run is over.
fn kept(book: &Entries, store: &[Event], wrong: &mut Vec<String>) {
    // A session that was taken along and brought back holds the same events.
    let at = |event: &Event| (event.session, event.id);
    let there: BTreeMap<_, &Event> = store.iter().map(|event| (at(event), event)).collect();
    for event in &book.log {
        let Some(run) = event.scope.run() else { continue };
        if !book.runs.get(&run).is_some_and(|entry| !entry.is_retired && !entry.is_imported) {
            continue;
        }
        match there.get(&at(event)) {
            Some(found) if found.data == event.data => {}
            Some(_) => wrong.push(format!("{} of {run} was changed", event.data.kind().name())),
            None => wrong.push(format!("{} of {run} is gone", event.data.kind().name())),
        }
    }
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
        let received = book.received.contains_key(&(workflow.clone(), key.clone()));
        let run = RunId::derive(&[workflows::identity(workflow).key(), "m", key]);
        if refused && (received || book.runs.contains_key(&run)) {
            wrong.push(format!("{key} of {workflow} was refused, and is recorded: {told:?}"));
        }
    }
    for ((workflow, key), run) in &book.received {
        if !book.runs.contains_key(run) {
            wrong.push(format!("{key} of {workflow} was received, and never begun"));
        }
    }
}

/// What only a person allows begins in a run in which a person said yes to what was asked there,
/// or in a fork for which somebody who may say it did. One yes is worth one begin: tries of one
/// instance are one. What was recorded elsewhere is not among the events.
fn approved(run: RunId, events: &[&Event], book: &Entries, wrong: &mut Vec<String>) {
    let (mut asked, mut yes, mut begun) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
    for event in events {
        match &event.data {
            EventData::RunQueued(queued) => {
                let vouched = queued.forked_from.iter().flat_map(|from| &from.vouched);
                yes.extend(vouched.cloned());
                if !yes.is_empty() && queued.by.as_deref() == Some(NOBODY) {
                    wrong.push(format!("{run} was vouched for by somebody who may not answer"));
                }
                let of = queued.forked_from.iter().filter_map(|from| book.runs.get(&from.run_id));
                if !yes.is_empty() && of.into_iter().any(|of| of.is_imported) {
                    wrong.push(format!("{run} keeps what was answered elsewhere"));
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
            // What one yes allowed is done a second time by those who could say it.
            EventData::StepResolved(step) => {
                let is_again = step.decision == InterruptDecision::Retry;
                let is_allowed = step.instance.step.as_str() == ALLOWED;
                if is_again && is_allowed && step.by.starts_with(NOBODY) {
                    wrong.push(format!(
                        "`{}` of {run} is repeated by one who may not answer",
                        step.instance
                    ));
                }
            }
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
