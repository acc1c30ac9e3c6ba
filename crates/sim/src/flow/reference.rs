//! What must come of each step of a run, worked out from the plan by asking backwards.
//!
//! Whether a step is reached is asked of the steps that lead to it, what it reads of what they
//! gave. Nothing is counted and nothing is kept but the answers. Where the order in which the
//! world did things matters, the log is asked for that order and for nothing else.

mod walk;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use cairn_core::canonical;
use cairn_core::event::engine::{EndStatus, InterruptDecision};
use cairn_core::expression::{self, Prepared};
use cairn_core::flow::{Ask, Fault, Outcome};
use cairn_core::id::RunId;
use cairn_core::instance::{LoopTurn, StepInstanceKey};
use cairn_core::plan::{Action, FailureKind, Loop, OnFailure, Plan, Repeat, Step};
use cairn_core::text::Slug;
use serde_json::{Map, Value, json};

use super::chance::Chance;
use walk::Walk;

/// What must come of a step.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Fate {
    /// It is done.
    Done(Value, Option<String>),
    /// It is passed over: its condition does not hold, or it failed and may.
    Skipped,
    /// It failed, and another takes its place.
    Replaced,
    /// It failed, and so does the run, with this code.
    Stopped(String),
    /// What it waits for did not happen.
    Open,
    /// Nothing leads to it.
    Never,
}

/// What later steps read of steps that failed.
pub(super) type Left = BTreeMap<StepInstanceKey, Value>;

/// What happened in the world that no plan can tell.
#[derive(Clone, Debug, Default)]
pub(super) struct Notes {
    /// When waits were over.
    pub(super) waits: BTreeMap<StepInstanceKey, u64>,
    /// What was answered; without a value nobody did in time.
    pub(super) answers: BTreeMap<StepInstanceKey, Option<(Value, String)>>,
    /// Tries that a crash cut off.
    pub(super) cuts: BTreeMap<(StepInstanceKey, u32), Cut>,
}

/// What became of a try that a crash cut off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Cut {
    Failed,
    /// It was made again, with the same settings.
    Repeated,
    Resolved(InterruptDecision),
}

/// The order in which the log has things.
pub(super) type Order = BTreeMap<StepInstanceKey, usize>;

pub(super) struct Reference<'a> {
    pub(super) plan: &'a Plan,
    pub(super) run: RunId,
    pub(super) trigger: Option<&'a Slug>,
    pub(super) input: &'a Value,
    pub(super) chance: Chance,
    pub(super) notes: &'a Notes,
    /// What steps that failed left to be read: nothing but the log has the words of an error.
    left: &'a Left,
    pub(super) order: &'a Order,
    fates: RefCell<BTreeMap<StepInstanceKey, Fate>>,
    /// The steps from which each can be reached again, itself among them when it can.
    cycles: BTreeMap<&'a Slug, BTreeSet<&'a Slug>>,
    /// The walks through cycles, by path and by the first step of the cycle.
    walks: RefCell<BTreeMap<(Vec<LoopTurn>, &'a Slug), Walk>>,
}

type Path = [LoopTurn];

/// One try.
enum Try {
    Over(Fate),
    Failed(String, FailureKind),
    Again,
}

/// When an edge is taken.
enum When<'a> {
    Always,
    Case(&'a str),
    Failure,
}

impl<'a> Reference<'a> {
    pub(super) fn new(
        plan: &'a Plan,
        given: (RunId, Option<&'a Slug>, &'a Value),
        chance: Chance,
        notes: &'a Notes,
        (order, left): (&'a Order, &'a Left),
    ) -> Self {
        let (run, trigger, input) = given;
        let (fates, walks) = (RefCell::default(), RefCell::default());
        let cycles = BTreeMap::new();
        let mut reference =
            Self { plan, run, trigger, input, chance, notes, order, left, fates, cycles, walks };
        reference.cycles = reference.find_cycles();
        reference
    }

    /// What must come of every step that is reached, wherever it stands.
    pub(super) fn all(&self) -> BTreeMap<StepInstanceKey, Fate> {
        for id in self.level(None) {
            self.fate(&[], id);
        }
        self.fates.borrow().clone()
    }

    /// The result of a run that ends well.
    pub(super) fn result(&self) -> Option<Value> {
        let level = self.level(None);
        let ends = level.iter().filter(|id| self.kind(id) == "end").filter_map(|id| {
            match self.fate(&[], id) {
                Fate::Done(output, _) => {
                    output.get("result").filter(|result| !result.is_null()).cloned()
                }
                _ => None,
            }
        });
        if let Some(result) = ends.last() {
            return Some(result);
        }
        match self.last(&[], None)? {
            Some((key, output)) if self.kind(&key.step) != "end" => Some(output),
            _ => Some(Value::Null),
        }
    }

    fn kind(&self, id: &Slug) -> &str {
        let step = self.plan.steps.iter().find(|step| step.id == *id);
        step.map_or("loop", |step| match &step.action {
            Action::Typed { r#type, .. } => r#type.as_str(),
            Action::Prompt(_) => "prompt",
        })
    }

    /// The loop that a step stands in. One that the compiler added stands where it is led to.
    fn around(&self, id: &Slug) -> Option<&'a Slug> {
        let around = |id: &Slug| self.plan.loops.iter().find(|looped| looped.body.contains(id));
        let before = || self.earlier(id).into_iter().find_map(around);
        around(id).or_else(before).map(|looped| &looped.id)
    }

    /// The steps and loops of a level, in the order of the plan.
    fn level(&self, around: Option<&Slug>) -> Vec<&'a Slug> {
        let steps = self.plan.steps.iter().map(|step| &step.id);
        let all = steps.chain(self.plan.loops.iter().map(|looped| &looped.id));
        all.filter(|id| self.around(id) == around).collect()
    }

    fn into(&self, id: &Slug) -> Vec<(&'a Slug, When<'a>)> {
        let edges = self
            .plan
            .edges
            .iter()
            .filter(|edge| edge.to == *id)
            .map(|edge| (&edge.from, edge.case.as_deref().map_or(When::Always, When::Case)));
        let fallbacks = self.plan.steps.iter().filter_map(|step| match &step.on_failure {
            OnFailure::Fallback { step_id } if step_id == id => Some((&step.id, When::Failure)),
            _ => None,
        });
        edges.chain(fallbacks).collect()
    }

    fn is_entry(&self, path: &Path, id: &Slug) -> bool {
        if !path.is_empty() {
            return self.into(id).is_empty();
        }
        let trigger = self.plan.triggers.iter().find(|trigger| Some(&trigger.id) == self.trigger);
        match trigger.and_then(|trigger| trigger.entry.as_ref()) {
            Some(entry) => entry == id,
            None => self.plan.entry.contains(id),
        }
    }

    /// Whether a way is taken, out of a cycle if it comes from one; without a value that is not
    /// settled.
    fn is_taken(&self, path: &Path, from: &Slug, when: &When<'_>) -> Option<bool> {
        let Some(walk) = self.walk(path, from) else {
            return self.leads_on(from, self.fate(path, from), when);
        };
        match walk.visits.last() {
            None if walk.is_open => None,
            None => Some(false),
            Some((_, Fate::Open | Fate::Stopped(_))) => None,
            Some((key, fate)) if key.step == *from => self.leads_on(from, fate.clone(), when),
            Some(_) => Some(false),
        }
    }

    /// Whether an outcome of a step takes a way.
    fn leads_on(&self, from: &Slug, fate: Fate, when: &When<'_>) -> Option<bool> {
        match (fate, when) {
            (Fate::Open | Fate::Stopped(_), _) => None,
            (Fate::Never, _) => Some(false),
            (Fate::Replaced, when) => Some(matches!(when, When::Failure)),
            (_, When::Failure) => Some(false),
            (_, When::Always) => Some(true),
            (Fate::Skipped, When::Case(wanted)) => Some(*wanted == "default"),
            (Fate::Done(_, case), When::Case(wanted)) => {
                let outs = self.plan.edges.iter().filter(|edge| edge.from == *from);
                let named: Vec<&str> = outs.filter_map(|edge| edge.case.as_deref()).collect();
                let case = case.as_deref().filter(|case| named.contains(case));
                Some(case.unwrap_or("default") == *wanted)
            }
        }
    }

    /// What must come of a step; in a cycle, of its last visit.
    fn fate(&self, path: &Path, id: &Slug) -> Fate {
        self.latest(path, id).1
    }

    /// The same, and which visit it is.
    fn latest(&self, path: &Path, id: &Slug) -> (StepInstanceKey, Fate) {
        let key = StepInstanceKey { loop_path: path.to_vec(), step: id.clone(), visit: 0 };
        if let Some(walk) = self.walk(path, id) {
            let last = walk.visits.iter().rev().find(|(key, _)| key.step == *id);
            let open = if walk.is_open { Fate::Open } else { Fate::Never };
            return last.cloned().unwrap_or((key, open));
        }
        if let Some(known) = self.fates.borrow().get(&key) {
            return (key, known.clone());
        }
        let fate = match self.is_reached(path, id) {
            Some(true) => self.done(&key),
            Some(false) => Fate::Never,
            None => Fate::Open,
        };
        self.fates.borrow_mut().insert(key.clone(), fate.clone());
        (key, fate)
    }

    fn is_reached(&self, path: &Path, id: &Slug) -> Option<bool> {
        if self.is_entry(path, id) {
            return Some(true);
        }
        let into = self.into(id);
        let settled: Vec<Option<bool>> =
            into.iter().map(|(from, when)| self.is_taken(path, from, when)).collect();
        let waits = self.kind(id) == "merge" && self.strategy(id) != "first";
        match (settled.contains(&Some(true)), settled.contains(&None)) {
            (_, true) if waits => None,
            (true, _) => Some(true),
            (false, true) => None,
            (false, false) => Some(false),
        }
    }

    fn config(&self, id: &Slug) -> &'a Value {
        const NONE: &Value = &Value::Null;
        let step = self.plan.steps.iter().find(|step| step.id == *id);
        match step.map(|step| &step.action) {
            Some(Action::Typed { config, .. }) => &config.0,
            _ => NONE,
        }
    }

    fn strategy(&self, id: &Slug) -> &'a str {
        self.config(id).get("strategy").and_then(Value::as_str).unwrap_or("object")
    }

    fn done(&self, key: &StepInstanceKey) -> Fate {
        if let Some(looped) = self.plan.loops.iter().find(|looped| looped.id == key.step) {
            return self.repeated(key, looped);
        }
        let Some(step) = self.plan.steps.iter().find(|step| step.id == key.step) else {
            return Fate::Never;
        };
        let mut intended = false;
        let mut attempt = 0;
        loop {
            let tried = self.tried(key, step, &mut attempt, &mut intended);
            attempt += 1;
            let (code, kind) = match tried {
                Try::Over(fate) => return fate,
                Try::Again => continue,
                Try::Failed(code, kind) => (code, kind),
            };
            let again = step.retry.as_ref().is_some_and(|policy| {
                let passes = match policy.errors.is_empty() {
                    true => kind != FailureKind::Permanent,
                    false => policy.errors.contains(&kind),
                };
                passes && attempt - self.repeated_tries(key, attempt) < policy.attempts_max
            });
            if !again {
                return match &step.on_failure {
                    OnFailure::Stop {} => Fate::Stopped(code),
                    OnFailure::Skip {} => Fate::Skipped,
                    OnFailure::Fallback { .. } => Fate::Replaced,
                };
            }
        }
    }

    /// How many of the first tries at a step were made again since a crash cut them off.
    fn repeated_tries(&self, key: &StepInstanceKey, tries: u32) -> u32 {
        let again =
            |cut: &&Cut| matches!(cut, Cut::Repeated | Cut::Resolved(InterruptDecision::Retry));
        let cuts = self.notes.cuts.range((key.clone(), 0)..(key.clone(), tries));
        u32::try_from(cuts.map(|(_, cut)| cut).filter(again).count()).unwrap_or(u32::MAX)
    }

    /// Whether a condition holds: a flag, or why there is none.
    fn holds(&self, key: &StepInstanceKey, asked: (Ask, u32), id: &Slug) -> Result<bool, Fault> {
        let condition = self.plan.conditions.iter().find(|condition| condition.id == *id);
        let text = condition.and_then(|found| found.config.0.get("expression")?.as_str());
        let prepared = expression::prepare_expression(text.unwrap_or_default());
        let prepared = prepared.map_err(|fault| Fault::new("UNREADABLE", fault.message))?;
        match self.value(key, asked, &prepared)? {
            Value::Bool(flag) => Ok(flag),
            _ => Err(Fault::new("EXPR_TYPE", "")),
        }
    }

    fn value(
        &self,
        key: &StepInstanceKey,
        asked: (Ask, u32),
        prepared: &Prepared,
    ) -> Result<Value, Fault> {
        let context = self.context(key, asked.1 - self.repeated_tries(key, asked.1));
        if prepared.needs_worker() {
            return self.chance.evaluate(key, asked, prepared, &prepared.context(&context));
        }
        prepared.evaluate(&context).map_err(|error| Fault::new(error.code(), error.message))
    }

    fn tried(
        &self,
        key: &StepInstanceKey,
        step: &Step,
        attempt: &mut u32,
        intended: &mut bool,
    ) -> Try {
        let failed = |fault: Fault| Try::Failed(fault.error.code, fault.kind);
        if let Some(condition) = step.condition.as_ref().filter(|_| !*intended) {
            match self.holds(key, (Ask::Condition, *attempt), condition) {
                Ok(true) => {}
                Ok(false) => return Try::Over(Fate::Skipped),
                Err(fault) => return failed(fault),
            }
        }
        let kind = self.kind(&step.id);
        if kind == "merge" {
            return Try::Over(Fate::Done(self.merged(key), None));
        }
        let config = self.config(&step.id);
        let expr = config.get("expr").and_then(Value::as_str).filter(|_| kind == "branch");
        let prepared = match expr {
            Some(text) => expression::prepare_expression(text),
            None => expression::prepare(config),
        };
        let Ok(prepared) = prepared else { return Try::Over(Fate::Open) };
        match self.value(key, (Ask::Settings, *attempt), &prepared) {
            Ok(settings) => self.with(key, kind, &settings, attempt, intended),
            Err(fault) => failed(fault),
        }
    }

    fn with(
        &self,
        key: &StepInstanceKey,
        kind: &str,
        settings: &Value,
        attempt: &mut u32,
        intended: &mut bool,
    ) -> Try {
        let permanent = |code: &str| Try::Failed(code.to_owned(), FailureKind::Permanent);
        let done = |output| Try::Over(Fate::Done(canonical::recorded(output), None));
        match kind {
            "branch" => {
                let case = settings.as_str().map_or_else(|| settings.to_string(), str::to_owned);
                let own = self.plan.edges.iter().filter(|edge| edge.from == key.step);
                let cases: Vec<&str> = own.filter_map(|edge| edge.case.as_deref()).collect();
                let leads = |case: &str| cases.contains(&case);
                if !cases.is_empty() && !leads(&case) && !leads("default") {
                    return permanent("BRANCH_CASE");
                }
                Try::Over(Fate::Done(json!({"value": settings}), Some(case)))
            }
            "parallel" => done(json!({})),
            "end" => done(json!({"result": settings.get("result")})),
            "fail" => permanent("RUN_FAILED"),
            "webhook_respond" => done(settings.clone()),
            "guide" => match self.notes.answers.contains_key(key) {
                true => done(self.chance.guide(key)),
                false => Try::Over(Fate::Open),
            },
            "human" => self.asked(key, settings),
            "wait" => match settings.get("duration_sec").and_then(Value::as_u64) {
                None => permanent("WAIT_INSTANT"),
                Some(_) => match self.notes.waits.get(key) {
                    Some(due) => done(json!({"until": cairn_core::time::show(*due)})),
                    None => Try::Over(Fate::Open),
                },
            },
            "workflow" => {
                let child = RunId::derive(&[&self.run.to_string(), &key.to_string()]);
                let input = settings.get("input").unwrap_or(&Value::Null);
                match self.chance.child(key, input) {
                    (EndStatus::Succeeded, result) => done(json!({
                        "run_id": child.to_string(), "status": "succeeded", "result": result,
                    })),
                    (EndStatus::Failed, _) => permanent("CHILD_FAILED"),
                    (EndStatus::Cancelled, _) => permanent("CHILD_CANCELLED"),
                }
            }
            _ => self.performed(key, kind, settings, attempt, intended),
        }
    }

    fn performed(
        &self,
        key: &StepInstanceKey,
        kind: &str,
        settings: &Value,
        attempt: &mut u32,
        intended: &mut bool,
    ) -> Try {
        *intended = kind != "transform";
        let cut = |attempt| self.notes.cuts.get(&(key.clone(), attempt));
        while cut(*attempt) == Some(&Cut::Repeated) {
            *attempt += 1;
        }
        match cut(*attempt) {
            Some(Cut::Failed | Cut::Resolved(InterruptDecision::Fail)) => {
                return Try::Failed("STEP_INTERRUPTED".to_owned(), FailureKind::Permanent);
            }
            Some(Cut::Resolved(InterruptDecision::Retry)) => return Try::Again,
            Some(Cut::Resolved(InterruptDecision::Skip)) => return Try::Over(Fate::Skipped),
            Some(Cut::Repeated) | None => {}
        }
        match self.chance.perform(key, *attempt, settings, *intended) {
            Ok(Outcome { output, case, .. }) => {
                // A run goes on with what is recorded.
                Try::Over(Fate::Done(canonical::recorded(output), case))
            }
            Err(fault) => Try::Failed(fault.error.code, fault.kind),
        }
    }

    fn asked(&self, key: &StepInstanceKey, settings: &Value) -> Try {
        match self.notes.answers.get(key) {
            None => Try::Over(Fate::Open),
            Some(Some((output, case))) => Try::Over(Fate::Done(output.clone(), Some(case.clone()))),
            Some(None) => {
                let then = settings.get("on_expire").and_then(Value::as_str);
                debug_assert!(!matches!(then, Some("approve" | "reject")), "an answer is noted");
                Try::Failed("TASK_EXPIRED".to_owned(), FailureKind::Permanent)
            }
        }
    }

    /// What a merge makes of the inputs from which the way to it was taken.
    fn merged(&self, key: &StepInstanceKey) -> Value {
        let (path, id) = (&key.loop_path, &key.step);
        let inputs = self.config(id).get("inputs").and_then(Value::as_array);
        let names = inputs.into_iter().flatten().filter_map(Value::as_str);
        let mut arrived: Vec<(String, Value)> = Vec::new();
        for name in names {
            let Some((from, _)) = self.into(id).into_iter().find(|(from, _)| from.as_str() == name)
            else {
                continue;
            };
            let taken = self.into(id).into_iter().any(|(other, when)| {
                other == from && self.is_taken(path, from, &when) == Some(true)
            });
            if let (true, Fate::Done(output, _)) = (taken, self.fate(path, from)) {
                arrived.push((name.to_owned(), output));
            }
        }
        match self.strategy(id) {
            "list" => arrived.into_iter().map(|(_, output)| output).collect(),
            "first" => {
                // Those that the log has behind the merge came too late for it.
                let now = self.place(path, id);
                let early = |name: &str| {
                    let step: Option<Slug> = name.parse().ok();
                    let place = step.and_then(|step| self.place(path, &step));
                    now.is_none() || place.is_some_and(|place| Some(place) < now)
                };
                let first = arrived.into_iter().find(|(name, _)| early(name));
                first.map(|(_, output)| output).unwrap_or_default()
            }
            _ => Value::Object(arrived.into_iter().collect()),
        }
    }

    fn repeated(&self, key: &StepInstanceKey, looped: &Loop) -> Fate {
        let stopped = |fault: Fault| Fate::Stopped(fault.error.code);
        if let Some(condition) = &looped.condition {
            match self.holds(key, (Ask::Condition, 0), condition) {
                Ok(true) => {}
                Ok(false) => return Fate::Skipped,
                Err(fault) => return stopped(fault),
            }
        }
        let turns = match self.turns(key, looped) {
            Ok(turns) => turns,
            Err(fault) => return stopped(fault),
        };
        let mut results: Vec<Value> = Vec::new();
        for turn in 0.. {
            let more = match (turns, &looped.repeat) {
                (Some(turns), _) => Ok(u64::from(turn) < turns),
                (None, Repeat::While { .. }) if turn >= looped.max_iterations => {
                    Err(Fault::new("LOOP_LIMIT", ""))
                }
                (None, Repeat::While { condition_id }) => {
                    self.holds(key, (Ask::Again, turn), condition_id)
                }
                _ => Ok(false),
            };
            match more {
                Ok(true) => {}
                Ok(false) => break,
                Err(fault) => return stopped(fault),
            }
            match self.turn(key, turn) {
                Some(result) => results.push(result),
                None => return Fate::Open,
            }
        }
        Fate::Done(json!({"iterations": results.len(), "results": results}), None)
    }

    /// How many turns a loop makes that knows it from the start.
    fn turns(&self, key: &StepInstanceKey, looped: &Loop) -> Result<Option<u64>, Fault> {
        let (source, is_list) = match &looped.repeat {
            Repeat::Each { items } => (&items.0, true),
            Repeat::Count { count } => (&count.0, false),
            _ => return Ok(None),
        };
        let prepared = expression::prepare(source);
        let prepared = prepared.map_err(|fault| Fault::new("UNREADABLE", fault.message))?;
        let value = self.value(key, (Ask::Settings, 0), &prepared)?;
        let turns = match is_list {
            true => value.as_array().map(|items| items.len() as u64).ok_or("LOOP_ITEMS"),
            false => value.as_u64().ok_or("LOOP_COUNT"),
        };
        match turns {
            Ok(turns) if turns > u64::from(looped.max_iterations) => {
                Err(Fault::new("LOOP_LIMIT", ""))
            }
            Ok(turns) => Ok(Some(turns)),
            Err(code) => Err(Fault::new(code, "")),
        }
    }

    /// The result of a turn; without one it does not come to its end.
    fn turn(&self, key: &StepInstanceKey, turn: u32) -> Option<Value> {
        let path = key.inside(turn);
        let level = self.level(Some(&key.step));
        let open = |id: &&Slug| matches!(self.fate(&path, id), Fate::Open | Fate::Stopped(_));
        // All are asked, so that every one of them is known.
        if level.iter().filter(|id| open(id)).count() > 0 {
            return None;
        }
        self.last(&path, Some(&key.step))?.map_or(Some(Value::Null), |(_, output)| Some(output))
    }

    /// What was done last in a level, if anything was. The log says which it is, when the plan
    /// leaves it open; without a value it says something that cannot be.
    fn last(&self, path: &Path, around: Option<&Slug>) -> Option<Option<(StepInstanceKey, Value)>> {
        let done: Vec<(StepInstanceKey, Value)> =
            self.level(around).into_iter().filter_map(|id| self.last_done(path, id)).collect();
        if done.is_empty() {
            return Some(None);
        }
        let followed: BTreeSet<&Slug> =
            done.iter().flat_map(|(key, _)| self.followed(path, &key.step)).collect();
        let last = done.into_iter().max_by_key(|(key, _)| self.order.get(key).copied())?;
        let fits = self.order.contains_key(&last.0) && !followed.contains(&last.0.step);
        fits.then_some(Some(last))
    }

    /// The last visit of a step that was done. In a cycle only the last of all counts.
    fn last_done(&self, path: &Path, id: &Slug) -> Option<(StepInstanceKey, Value)> {
        let Some(walk) = self.walk(path, id) else {
            let Fate::Done(output, _) = self.fate(path, id) else { return None };
            let key = StepInstanceKey { loop_path: path.to_vec(), step: id.clone(), visit: 0 };
            return Some((key, output));
        };
        let mut done = walk.visits.into_iter().rev().filter_map(|(key, fate)| match fate {
            Fate::Done(output, _) => Some((key, output)),
            _ => None,
        });
        done.next().filter(|(key, _)| key.step == *id)
    }

    /// The steps from which ways that were taken lead to a step.
    fn followed(&self, path: &Path, id: &Slug) -> BTreeSet<&'a Slug> {
        let mut found: BTreeSet<&'a Slug> = BTreeSet::new();
        let mut open: Vec<&Slug> = vec![id];
        while let Some(id) = open.pop() {
            for (from, _, when) in self.entries(id) {
                let early = self.strategy(id) != "first"
                    || self.place(path, from).is_some_and(|at| Some(at) < self.place(path, id));
                let taken = early && self.is_taken(path, from, &when) == Some(true);
                if taken && found.insert(from) {
                    found.extend(self.cycle(from).into_iter().flatten());
                    open.push(from);
                }
            }
        }
        found
    }

    /// Where the log has the end of a step that was done.
    fn place(&self, path: &Path, id: &Slug) -> Option<usize> {
        let visits = self.walk(path, id).map_or_else(Vec::new, |walk| walk.visits);
        let visit = visits.iter().rev().find(|(key, _)| key.step == *id);
        let visit = visit.map_or(0, |(key, _)| key.visit);
        let key = StepInstanceKey { loop_path: path.to_vec(), step: id.clone(), visit };
        self.order.get(&key).copied()
    }

    /// Everything that the templates of a step can look at.
    fn context(&self, key: &StepInstanceKey, attempt: u32) -> Map<String, Value> {
        let mut steps = Map::new();
        let mut context = Map::new();
        for (depth, turn) in key.loop_path.iter().enumerate() {
            let path = key.loop_path.get(..depth).unwrap_or_default();
            self.outputs(path, &turn.loop_id, &mut steps);
            self.variables(path, turn, &mut context);
        }
        self.outputs(&key.loop_path, &key.step, &mut steps);
        context.insert("steps".to_owned(), Value::Object(steps));
        for root in ["event", "env"] {
            context.insert(root.to_owned(), self.input.get(root).cloned().unwrap_or_default());
        }
        let mut run = json!({
            "attempt": attempt, "id": self.run.to_string(),
            "started_at": self.input.pointer("/event/at"), "workflow_id": self.plan.workflow_id,
        });
        if let (Some(trigger), Some(run)) = (self.trigger, run.as_object_mut()) {
            run.insert("trigger_id".to_owned(), json!(trigger.as_str()));
        }
        context.insert("run".to_owned(), run);
        context
    }

    /// What the steps gave that lead to one.
    fn outputs(&self, path: &Path, id: &Slug, steps: &mut Map<String, Value>) {
        for id in self.earlier(id) {
            match self.latest(path, id) {
                (_, Fate::Done(output, _)) => drop(steps.insert(id.to_string(), output)),
                (key, Fate::Skipped | Fate::Replaced) => {
                    steps.extend(self.left.get(&key).map(|left| (id.to_string(), left.clone())));
                }
                _ => {}
            }
        }
    }

    fn variables(&self, path: &Path, turn: &LoopTurn, context: &mut Map<String, Value>) {
        let Some(looped) = self.plan.loops.iter().find(|looped| looped.id == turn.loop_id) else {
            return;
        };
        let key = turn.of(path);
        let item = match &looped.repeat {
            Repeat::Each { items } => {
                let prepared = expression::prepare(&items.0).ok();
                let items = prepared.and_then(|p| self.value(&key, (Ask::Settings, 0), &p).ok());
                let place = usize::try_from(turn.iteration).unwrap_or(usize::MAX);
                items.and_then(|items| items.get(place).cloned())
            }
            _ => Some(json!(turn.iteration)),
        };
        for (name, value) in
            [(&looped.variables.item, item), (&looped.variables.index, Some(json!(turn.iteration)))]
        {
            if let (Some(name), Some(value)) = (name, value) {
                context.insert(name.clone(), value);
            }
        }
    }
}
