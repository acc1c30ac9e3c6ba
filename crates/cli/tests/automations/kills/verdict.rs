//! Whether every run did what it had to, by its log and by what was noticed outside.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cairn_core::event::engine::{InterruptDecision, Payload};
use cairn_core::event::{Event, EventData};
use cairn_core::id::EventIndex;
use cairn_store::{Config, open};
use serde_json::Value;

use super::{AT_ONCE, Story, story};
use crate::receiver::Asked;

/// What is recorded of a run.
#[derive(Default)]
struct Recorded {
    events: Vec<Arc<Event>>,
}

/// Fails with the timeline of the first run of which something is wrong.
#[expect(clippy::print_stdout, reason = "how much was looked at is part of the result")]
pub(super) fn check(story: &Story, asked: &BTreeMap<String, Asked>, marks: &str) {
    let runs = recorded(story);
    let mut faults = Vec::new();
    for (run, recorded) in &runs {
        let found = recorded.faults(run, asked, marks);
        faults.extend(found.into_iter().map(|fault| (run.clone(), fault)));
    }
    for (key, wanted) in &story.wanted {
        let run = wanted.run.as_ref().unwrap();
        if !runs.contains_key(run) {
            faults.push((run.clone(), format!("{key} was asked for and never begun")));
        }
    }
    let strangers = asked
        .keys()
        .filter(|path| path.split('/').nth(1).is_none_or(|run| !runs.contains_key(run)));
    faults.extend(strangers.map(|path| (path.clone(), "asked for by no run".to_owned())));
    faults.extend(shared_keys(asked));
    let in_flight = in_flight(story, &runs);
    let interrupted = count(&runs, |data| matches!(data, EventData::StepInterrupted(_)));
    let requests: u32 = asked.values().map(|asked| asked.times).sum();
    println!(
        "{} runs; {} steps asked outside, {requests} times; {interrupted} tries cut off, {} decisions of a person; runs under way at a kill: {in_flight:?}",
        runs.len(),
        asked.len(),
        story.resolved
    );
    if let Some((run, fault)) = faults.first() {
        let all: Vec<String> =
            faults.iter().take(20).map(|(run, f)| format!("{run}: {f}")).collect();
        panic!(
            "{} faults:\n{}\n\n{run}: {fault}\n{}",
            faults.len(),
            all.join("\n"),
            story.told(run)
        );
    }
    let enough = in_flight.iter().filter(|runs| **runs >= AT_ONCE).count();
    // A slow machine needs longer to begin new ones than old ones need to end.
    assert!(enough * 2 >= in_flight.len(), "too few runs under way: {in_flight:?}");
}

fn recorded(story: &Story) -> BTreeMap<String, Recorded> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = open(&Config::files(story.place.home())).unwrap();
        let mut runs: BTreeMap<String, Recorded> = BTreeMap::new();
        for session in store.sessions.list().await.unwrap() {
            for event in store.log.read(session, EventIndex(0)).await.unwrap() {
                let Some(run) = event.scope.run() else { continue };
                runs.entry(run.to_string()).or_default().events.push(Arc::new(event));
            }
        }
        runs
    })
}

fn count(runs: &BTreeMap<String, Recorded>, wanted: impl Fn(&EventData) -> bool) -> usize {
    let events = runs.values().flat_map(|recorded| &recorded.events);
    events.filter(|event| wanted(&event.data)).count()
}

/// How many runs were under way at each kill.
fn in_flight(story: &Story, runs: &BTreeMap<String, Recorded>) -> Vec<usize> {
    let spans: Vec<(u64, u64)> = runs
        .values()
        .filter_map(|recorded| {
            let (first, last) = (recorded.events.first()?, recorded.events.last()?);
            Some((first.id.minted_ms(), last.id.minted_ms()))
        })
        .collect();
    let at = |kill: &u64| spans.iter().filter(|(first, last)| first <= kill && kill < last).count();
    story.killed.iter().map(at).collect()
}

/// Steps that share a key, which is each one's own.
fn shared_keys(asked: &BTreeMap<String, Asked>) -> Vec<(String, String)> {
    let mut seen: BTreeMap<&String, &String> = BTreeMap::new();
    let mut faults = Vec::new();
    for (path, asked) in asked {
        for key in &asked.keys {
            if let Some(other) = seen.insert(key, path) {
                faults.push((path.clone(), format!("has the key of {other}")));
            }
        }
    }
    faults
}

const fn is_end(data: &EventData) -> bool {
    matches!(
        data,
        EventData::RunCompleted(_) | EventData::RunFailed(_) | EventData::RunCancelled(_)
    )
}

impl Recorded {
    fn times(&self, wanted: impl Fn(&EventData) -> bool) -> usize {
        self.events.iter().filter(|event| wanted(&event.data)).count()
    }

    fn faults(&self, run: &str, asked: &BTreeMap<String, Asked>, marks: &str) -> Vec<String> {
        let mut faults = Vec::new();
        let mut hold = |holds: bool, fault: String| {
            if !holds {
                faults.push(fault);
            }
        };
        let queued = self.events.iter().find_map(|event| match &event.data {
            EventData::RunQueued(queued) => Some(queued.clone()),
            _ => None,
        });
        let Some(queued) = queued else { return vec!["it was never asked for".to_owned()] };
        let ends = self.times(is_end);
        hold(ends == 1, format!("it ended {ends} times"));
        hold(
            self.events.last().is_some_and(|last| is_end(&last.data)),
            "it went on after its end".to_owned(),
        );
        for (what, times) in [
            ("asked for", self.times(|data| matches!(data, EventData::RunQueued(_)))),
            ("begun", self.times(|data| matches!(data, EventData::RunStarted(_)))),
        ] {
            hold(times == 1, format!("it was {what} {times} times"));
        }
        let n = n_of(&queued.input);
        hold(self.is_right(&queued.workflow_id, n), format!("wrong end: {:?}", self.events.last()));
        let mut done = BTreeSet::new();
        for event in &self.events {
            if let EventData::StepCompleted(step) = &event.data {
                hold(
                    done.insert(step.instance.clone()),
                    format!("{} was completed twice", step.instance),
                );
            }
        }
        for step in story::paths(&queued.workflow_id) {
            match asked.get(&format!("/{run}/{step}")) {
                None => hold(false, format!("{step} was never done")),
                Some(asked) => {
                    hold(asked.keys.len() == 1, format!("{step} has the keys {:?}", asked.keys));
                }
            }
        }
        if queued.workflow_id == "project.careful" {
            let again = self.times(|data| decided(data, InterruptDecision::Retry));
            for (step, most) in [("once", 1), ("asked", 1 + again)] {
                let asked = asked.get(&format!("/{run}/{step}")).cloned().unwrap_or_default();
                hold(
                    asked.times as usize <= most,
                    format!("{step} was done {} times", asked.times),
                );
                let succeeded = done.iter().any(|instance| instance.to_string() == step);
                hold(asked.times > 0 || !succeeded, format!("{step} was never done"));
                hold(asked.keys.len() <= 1, format!("{step} has the keys {:?}", asked.keys));
            }
            let keys: BTreeSet<&str> =
                marks.lines().filter_map(|line| line.strip_prefix(run)).collect();
            hold(keys.len() == 1, format!("the process had the keys {keys:?}"));
        }
        faults
    }

    fn is_right(&self, workflow: &str, n: u64) -> bool {
        match self.events.last().map(|last| &last.data) {
            Some(EventData::RunCompleted(_)) if workflow == "project.mourner" => true,
            Some(EventData::RunCompleted(end)) => match &end.result {
                Payload::Inline(value) => Some(&value.0) == story::result(workflow, n).as_ref(),
                Payload::Blob(_) => false,
            },
            Some(EventData::RunFailed(_)) => workflow == "project.doomed",
            _ => false,
        }
    }
}

fn decided(data: &EventData, decision: InterruptDecision) -> bool {
    matches!(data, EventData::StepResolved(resolved) if resolved.decision == decision)
}

fn n_of(input: &Payload) -> u64 {
    let Payload::Inline(input) = input else { return 0 };
    input.0.pointer("/event/payload/n").and_then(Value::as_u64).unwrap_or_default()
}
