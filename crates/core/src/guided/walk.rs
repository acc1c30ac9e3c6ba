//! Which step comes next.
//!
//! A walk goes from where the run stands to the next step whose condition holds, through
//! the beginnings and ends of loops, and tells why on the way.

use serde_json::{Map, Value};

use super::condition::holds;
use super::scene::{scene, source};
use crate::event::guided::{TraceEntry, TraceKind, TraceRef};
use crate::instance::{LoopTurn, StepInstanceKey};
use crate::plan::{Loop, Plan, Repeat};
use crate::snapshot::{Completed, EngineState, LoopDecision, LoopFrame, Running, Verdict};
use crate::text::Slug;

/// How many steps and turns one walk may pass over.
const MOVES_MAX: u32 = 100_000;

/// How many decisions of one walk are kept for its trace to choose from.
const TRACE_MAX: usize = 256;

/// Where a walk led.
#[derive(Clone, PartialEq, Debug)]
pub struct Walk {
    /// Where the run stands now.
    pub state: EngineState,
    /// Why, in order.
    pub trace: Vec<TraceEntry>,
    /// What was wrong on the way. The walk went on as well as it could.
    pub trouble: Vec<Trouble>,
}

/// What can be wrong on the way.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Trouble {
    /// A turn was asked for that the loop does not have.
    LoopLimit {
        /// Who asked for it.
        by: Asked,
        /// Which loop.
        loop_id: Slug,
        /// The turn that was asked for; counts from 0.
        iteration: u32,
        /// How many turns it has.
        max_iterations: u32,
    },
    /// The context does not say how often the loop goes round.
    LoopSource {
        /// Which loop.
        loop_id: Slug,
        /// What was looked for.
        path: String,
        /// What it must be.
        wanted: &'static str,
    },
    /// Every turn of a loop passes over all of its steps.
    Endless {
        /// Which loop.
        loop_id: Slug,
    },
}

/// The way to the first step of a run.
#[must_use]
pub fn begin(plan: &Plan, context: &Map<String, Value>) -> Walk {
    let mut walker = Walker::new(plan, context);
    walker.next = plan.entry.first().cloned();
    walker.go()
}

/// The way from a step that was just done, with what its artifacts decided.
#[must_use]
pub fn after(
    plan: &Plan,
    context: &Map<String, Value>,
    running: &Running,
    decisions: &[LoopDecision],
) -> Walk {
    let mut walker = Walker::new(plan, context);
    walker.completed = running.completed().steps().to_vec();
    walker.decisions = standing(plan, [running.decisions(), decisions].concat());
    walker.stack = running.loop_stack().to_vec();
    walker.live = walker.stack.len();
    if let Some(done) = running.pending() {
        walker.leave(&done.step.clone());
        walker.completed.push(done);
    }
    walker.go()
}

/// The end of a run that stops before its last step.
#[must_use]
pub fn end(running: &Running) -> Walk {
    let done = running.completed().steps().iter().cloned().chain(running.pending());
    let state = EngineState::Complete { completed: done.collect() };
    Walk { state, trace: Vec::new(), trouble: Vec::new() }
}

struct Walker<'a> {
    plan: &'a Plan,
    context: &'a Map<String, Value>,
    stack: Vec<LoopFrame>,
    /// How many turns of the stack, outermost first, somebody has done a step in.
    live: usize,
    /// The step or loop of the top level that comes next.
    next: Option<Slug>,
    completed: Vec<StepInstanceKey>,
    decisions: Vec<LoopDecision>,
    trace: Vec<TraceEntry>,
    trouble: Vec<Trouble>,
}

impl<'a> Walker<'a> {
    const fn new(plan: &'a Plan, context: &'a Map<String, Value>) -> Self {
        Self {
            plan,
            context,
            stack: Vec::new(),
            live: 0,
            next: None,
            completed: Vec::new(),
            decisions: Vec::new(),
            trace: Vec::new(),
            trouble: Vec::new(),
        }
    }

    fn go(mut self) -> Walk {
        loop {
            for _ in 0..MOVES_MAX {
                let Some(item) = self.item() else {
                    if self.stack.is_empty() {
                        return self.arrive(None);
                    }
                    self.turn();
                    continue;
                };
                match self.plan.find_loop(&item) {
                    Some(found) => self.enter(found),
                    None if self.is_due(&item) => return self.arrive(Some(item)),
                    None => self.leave(&item),
                }
            }
            self.give_up();
        }
    }

    /// Leaves the outermost loop, which turns and turns without a step to do. The walk then
    /// goes on behind it, so it comes to an end.
    fn give_up(&mut self) {
        let Some(outer) = self.stack.first().cloned() else { return };
        self.trouble.push(Trouble::Endless { loop_id: outer.loop_id.clone() });
        self.stack.truncate(1);
        let path = self.path();
        self.completed.retain(|key| !key.loop_path.starts_with(&path));
        match self.plan.find_loop(&outer.loop_id) {
            Some(found) => self.exit(found, outer.iteration),
            None => self.stack.clear(),
        }
    }

    /// The step or loop to look at now; none at the end of a turn or of the plan.
    fn item(&self) -> Option<Slug> {
        let Some(frame) = self.stack.last() else { return self.next.clone() };
        let found = self.plan.find_loop(&frame.loop_id)?;
        found.body.get(usize::try_from(frame.body_index).ok()?).cloned()
    }

    /// Goes past a step or loop.
    fn leave(&mut self, item: &Slug) {
        match self.stack.last_mut() {
            Some(frame) => frame.body_index += 1,
            None => {
                let edge = self.plan.edges.iter().find(|edge| edge.from == *item);
                self.next = edge.map(|edge| edge.to.clone());
            }
        }
    }

    fn arrive(self, pending: Option<Slug>) -> Walk {
        let Self { stack, completed, decisions, mut trace, trouble, .. } = self;
        let completed: Completed = completed.into_iter().collect();
        let state = match pending {
            None => EngineState::Complete { completed },
            Some(step) => {
                let refs = vec![TraceRef::StepId { step_id: step.clone() }];
                let summary = format!("`{step}` comes next");
                trace.push(TraceEntry { kind: TraceKind::SelectedNextStep, refs, summary });
                match Running::new(completed, stack, Some(step)) {
                    Ok(running) => EngineState::Running(running.with_decisions(decisions)),
                    // Plans are checked: no step stands twice in one turn.
                    Err(error) => unreachable!("a step that is done cannot be pending: {error:?}"),
                }
            }
        };
        Walk { state, trace, trouble }
    }

    /// Whether a step is to be done; says so when a condition decides.
    fn is_due(&mut self, step: &Slug) -> bool {
        let condition = self.plan.step(step).and_then(|found| found.condition.as_ref());
        condition.is_none_or(|id| self.evaluate(id, &TraceRef::StepId { step_id: step.clone() }))
    }

    fn evaluate(&mut self, id: &Slug, about: &TraceRef) -> bool {
        let seen = scene(self.plan, self.context, &self.stack);
        let condition = self.plan.conditions.iter().find(|known| known.id == *id);
        let result = condition.is_some_and(|condition| holds(&condition.config.0, &seen));
        let refs = vec![about.clone(), TraceRef::ConditionId { condition_id: id.clone() }];
        let does = if result { "holds" } else { "does not hold" };
        self.tell(TraceKind::EvaluatedCondition, refs, format!("condition `{id}` {does}"));
        result
    }

    /// Says why. However long the walk, only its latest decisions are kept.
    fn tell(&mut self, kind: TraceKind, refs: Vec<TraceRef>, summary: String) {
        if self.trace.len() >= TRACE_MAX {
            self.trace.drain(..TRACE_MAX / 2);
        }
        self.trace.push(TraceEntry { kind, refs, summary });
    }

    fn path(&self) -> Vec<LoopTurn> {
        let turn = |f: &LoopFrame| LoopTurn {
            iteration: f.iteration,
            loop_id: f.loop_id.clone(),
            visit: 0,
        };
        self.stack.iter().map(turn).collect()
    }

    /// Comes to the beginning of a loop.
    fn enter(&mut self, found: &'a Loop) {
        let about = TraceRef::LoopId { loop_id: found.id.clone() };
        let due = found.condition.as_ref().is_none_or(|id| self.evaluate(id, &about));
        if !due {
            self.leave(&found.id);
            return;
        }
        self.stack.push(LoopFrame { body_index: 0, iteration: 0, loop_id: found.id.clone() });
        if self.goes_on(found, 0) {
            self.tell(TraceKind::EnteredLoop, vec![about], format!("entered loop `{}`", found.id));
        } else {
            self.exit(found, 0);
        }
    }

    /// Comes to the end of a turn.
    fn turn(&mut self) {
        let Some(frame) = self.stack.last().cloned() else { return };
        let Some(found) = self.plan.find_loop(&frame.loop_id) else {
            self.stack.pop();
            return;
        };
        let path = self.path();
        self.completed.retain(|key| !key.loop_path.starts_with(&path));
        let next = frame.iteration + 1;
        if let Some(frame) = self.stack.last_mut() {
            (frame.iteration, frame.body_index) = (next, 0);
        }
        let goes_on = self.goes_on(found, next);
        self.live = self.live.min(self.stack.len() - 1);
        if !goes_on {
            self.exit(found, next);
        }
    }

    fn exit(&mut self, found: &Loop, turns: u32) {
        self.stack.pop();
        let key = StepInstanceKey { loop_path: self.path(), step: found.id.clone(), visit: 0 };
        self.completed.push(key);
        self.decisions.retain(|decision| !is_named(decision, found));
        let about = vec![TraceRef::LoopId { loop_id: found.id.clone() }];
        let times = if turns == 1 { "1 turn".to_owned() } else { format!("{turns} turns") };
        self.tell(TraceKind::ExitedLoop, about, format!("left loop `{}` after {times}", found.id));
        self.leave(&found.id);
    }

    /// Whether the turn that the innermost frame stands at is made.
    fn goes_on(&mut self, found: &Loop, iteration: u32) -> bool {
        let (wanted, why) = self.wants(found, iteration);
        let allowed = iteration < found.max_iterations;
        let refs = vec![
            TraceRef::LoopId { loop_id: found.id.clone() },
            TraceRef::Iteration { value: iteration },
        ];
        let why = match (wanted.is_some(), allowed) {
            (true, false) => format!("{why}, but {} turns are the limit", found.max_iterations),
            _ => why,
        };
        self.tell(TraceKind::EvaluatedCondition, refs, why);
        // What the plan asks for ends at the limit, which is the author's word too, and a turn
        // that passed over all of its steps left nobody to ask for less.
        let was_made = self.live >= self.stack.len();
        if let Some(by @ (Asked::ByArtifact | Asked::ByContext)) = wanted
            && !allowed
            && was_made
        {
            self.trouble.push(Trouble::LoopLimit {
                by,
                loop_id: found.id.clone(),
                iteration,
                max_iterations: found.max_iterations,
            });
        }
        wanted.is_some() && allowed
    }

    /// Whether another turn is asked for, and why.
    fn wants(&mut self, found: &Loop, iteration: u32) -> (Option<Asked>, String) {
        match &found.repeat {
            Repeat::Count { count } => {
                let by = if count.0.is_object() { Asked::ByContext } else { Asked::ByPlan };
                let turns = self.given(found, &count.0, "a whole number", Value::as_u64);
                let turns = turns.unwrap_or_default();
                (
                    (u64::from(iteration) < turns).then_some(by),
                    format!("turn {} of {turns}", iteration + 1),
                )
            }
            Repeat::Each { items } => {
                let len = |value: &Value| value.as_array().map(Vec::len);
                let items = self.given(found, &items.0, "a list", len).unwrap_or_default();
                let more = usize::try_from(iteration).is_ok_and(|turn| turn < items);
                (more.then_some(Asked::ByContext), format!("item {} of {items}", iteration + 1))
            }
            Repeat::While { condition_id } => {
                let about = TraceRef::LoopId { loop_id: found.id.clone() };
                let go = self.evaluate(condition_id, &about);
                // The condition has told its own line; this one tells what followed.
                let why = if go { "goes round again" } else { "does not go round again" };
                (go.then_some(Asked::ByPlan), format!("loop `{}` {why}", found.id))
            }
            Repeat::UntilDecision { .. } => match self.decision(found) {
                Some(Verdict::Stop) => (None, "an artifact decided to stop".to_owned()),
                Some(Verdict::Continue) => {
                    (Some(Asked::ByArtifact), "an artifact decided to go on".to_owned())
                }
                None => (Some(Asked::ByArtifact), "no artifact has decided to stop".to_owned()),
            },
        }
    }

    /// What a loop's source gives, if it is of the right type.
    fn given<T>(
        &mut self,
        found: &Loop,
        from: &Value,
        wanted: &'static str,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Option<T> {
        let outer = self.stack.split_last().map(|(_, outer)| outer).unwrap_or_default();
        let seen = scene(self.plan, self.context, outer);
        let read = source(&seen, from).as_deref().and_then(read);
        if read.is_none() {
            let path = from.get("var").and_then(Value::as_str).unwrap_or_default().to_owned();
            self.trouble.push(Trouble::LoopSource { loop_id: found.id.clone(), path, wanted });
        }
        read
    }

    /// Takes the latest decision that means this loop; earlier ones go with it.
    fn decision(&mut self, found: &Loop) -> Option<Verdict> {
        let means =
            |decision: &LoopDecision| decision.loop_id.is_none() || is_named(decision, found);
        let last = self.decisions.iter().rfind(|decision| means(decision));
        let verdict = last.map(|decision| decision.decision);
        self.decisions.retain(|decision| !means(decision));
        verdict
    }
}

/// The decisions that a loop of the plan can still act on, the latest of each name: a run
/// carries no others along, whatever its agents send.
fn standing(plan: &Plan, decisions: Vec<LoopDecision>) -> Vec<LoopDecision> {
    let decided = |found: &&Loop| matches!(found.repeat, Repeat::UntilDecision { .. });
    let means = |decision: &LoopDecision, found: &Loop| {
        decision.loop_id.is_none() || is_named(decision, found)
    };
    let mut kept: Vec<LoopDecision> = Vec::new();
    for decision in decisions {
        kept.retain(|earlier| earlier.loop_id != decision.loop_id);
        if plan.loops.iter().filter(decided).any(|found| means(&decision, found)) {
            kept.push(decision);
        }
    }
    kept
}

/// Who asks for another turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asked {
    /// An artifact, also by not saying stop.
    ByArtifact,
    /// The context, by a list or a number.
    ByContext,
    /// The plan, by a number or a condition: it ends at its limit at the latest.
    ByPlan,
}

/// Whether a decision names this loop, by its id or by what its artifacts call it.
fn is_named(decision: &LoopDecision, found: &Loop) -> bool {
    names(found).any(|name| decision.loop_id.as_deref() == Some(name))
}

/// What artifacts may call a loop.
pub(super) fn names(found: &Loop) -> impl Iterator<Item = &str> {
    let alias = match &found.repeat {
        Repeat::UntilDecision { decision_id, .. } => decision_id.as_deref(),
        _ => None,
    };
    std::iter::once(found.id.as_str()).chain(alias)
}
