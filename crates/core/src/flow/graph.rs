//! A plan made ready to be gone through: places instead of names, templates read.

use std::collections::{BTreeSet, HashMap};

use serde_json::Value;

use crate::catalog::{Catalog, Class};
use crate::expression::{self, Prepared};
use crate::plan::cycle::{self, TakenOn};
use crate::plan::{Action, Loop, OnFailure, Plan, Repeat, Step};
use crate::text::Slug;

/// A plan made ready to be gone through.
#[derive(Debug)]
pub struct Graph {
    /// The plan.
    pub plan: Plan,
    pub(super) places: Vec<Place>,
    names: HashMap<String, usize>,
    entry: Vec<usize>,
    /// The places of each cycle, by the first of them.
    cycles: HashMap<usize, Vec<usize>>,
}

/// Why a plan cannot be gone through.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{id}`: {message}")]
pub struct Unfit {
    /// The step, loop or condition.
    pub id: String,
    /// What is wrong with it.
    pub message: String,
}

/// A step or a loop, among the others of its level.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) id: Slug,
    /// The loop around it.
    pub(super) around: Option<usize>,
    pub(super) does: Does,
    pub(super) condition: Option<Prepared>,
    pub(super) settings: Prepared,
    pub(super) outs: Vec<Out>,
    /// The JSON schema of what comes of it.
    pub(super) output: Value,
    /// How many edges lead here; to the first place of a cycle, those that lead into the cycle.
    pub(super) incoming: u32,
    /// The first place of the cycle that it is in.
    cycle: Option<usize>,
    /// Where it stands among the plan's steps, or among its loops.
    at: usize,
}

impl Place {
    /// Whether somebody performs it, and may be cut off at it.
    pub(super) const fn is_performed(&self) -> bool {
        matches!(self.does, Does::Perform(_))
    }
}

/// What reaching a place leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Does {
    Branch,
    Child,
    End,
    Fail,
    Guide,
    Human,
    Loop,
    Merge(Strategy),
    Parallel,
    Perform(Class),
    Respond,
    Wait,
}

/// What a merge makes of its inputs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Strategy {
    Object,
    List,
    First,
}

/// An edge that leaves a place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Out {
    pub(super) to: usize,
    pub(super) when: When,
}

/// When an edge is taken.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum When {
    Always,
    Case(String),
    /// The step failed for good, and this one takes its place.
    Failure,
}

impl When {
    pub(super) const fn taken_on(&self) -> TakenOn<'_> {
        match self {
            Self::Always => TakenOn::Always,
            Self::Case(case) => TakenOn::Case(case.as_str()),
            Self::Failure => TakenOn::Failure,
        }
    }
}

impl Graph {
    /// Reads a plan's templates and edges.
    pub fn new(plan: Plan, catalog: &Catalog) -> Result<Self, Unfit> {
        let ids = plan.steps.iter().map(|s| &s.id).chain(plan.loops.iter().map(|l| &l.id));
        let names: HashMap<String, usize> =
            ids.enumerate().map(|(place, id)| (id.to_string(), place)).collect();
        let mut places = Vec::with_capacity(names.len());
        for (at, step) in plan.steps.iter().enumerate() {
            places.push(place_of_step(&plan, step, at, catalog)?);
        }
        for (at, looped) in plan.loops.iter().enumerate() {
            places.push(place_of_loop(&plan, looped, at)?);
        }
        let entry = plan.entry.iter().filter_map(|id| names.get(id.as_str()).copied()).collect();
        let cycles = HashMap::new();
        let mut graph = Self { plan, places, names, entry, cycles };
        graph.connect();
        graph.find_cycles()?;
        graph.count_incoming();
        Ok(graph)
    }

    fn connect(&mut self) {
        let steps = self.plan.steps.len();
        for (at, looped) in self.plan.loops.iter().enumerate() {
            for id in &looped.body {
                let inner = self.names.get(id.as_str()).and_then(|p| self.places.get_mut(*p));
                if let Some(place) = inner {
                    place.around = Some(steps + at);
                }
            }
        }
        let edges = self.plan.edges.iter().map(|edge| {
            let when = edge.case.clone().map_or(When::Always, When::Case);
            (&edge.from, &edge.to, when)
        });
        let fallbacks = self.plan.steps.iter().filter_map(|step| match &step.on_failure {
            OnFailure::Fallback { step_id } => Some((&step.id, step_id, When::Failure)),
            OnFailure::Stop {} | OnFailure::Skip {} => None,
        });
        for (from, to, when) in edges.chain(fallbacks) {
            let ends = (self.names.get(from.as_str()), self.names.get(to.as_str()));
            let (Some(from), Some(to)) = ends else { continue };
            if let Some(place) = self.places.get_mut(*from) {
                place.outs.push(Out { to: *to, when });
            }
        }
        self.inherit();
    }

    /// Finds the cycles of each level, and holds them to having one token.
    fn find_cycles(&mut self) -> Result<(), Unfit> {
        let around = |at: usize| self.places.get(at).map(|place| place.around);
        let places = self.places.iter().enumerate();
        let edges = places.flat_map(|(at, place)| place.outs.iter().map(move |out| (at, out.to)));
        let edges: Vec<(usize, usize)> =
            edges.filter(|(from, to)| around(*from) == around(*to)).collect();
        for (at, first) in cycle::cycles(self.places.len(), &edges).into_iter().enumerate() {
            let Some(first) = first else { continue };
            self.cycles.entry(first).or_default().push(at);
            if let Some(place) = self.places.get_mut(at) {
                place.cycle = Some(first);
            }
        }
        for place in self.cycles.values().flatten().filter_map(|at| self.places.get(*at)) {
            let outs: Vec<(usize, TakenOn<'_>)> =
                place.outs.iter().map(|out| (out.to, out.when.taken_on())).collect();
            let stays = |to: usize| self.places.get(to).is_some_and(|to| to.cycle == place.cycle);
            if cycle::divided(&outs, stays).is_some() {
                let message = "one of its outcomes would divide the cycle that it is in";
                return Err(Unfit { id: place.id.to_string(), message: message.into() });
            }
        }
        Ok(())
    }

    /// Counts the edges that lead to each place, or into its cycle.
    fn count_incoming(&mut self) {
        let places = self.places.iter().enumerate();
        let edges = places.flat_map(|(at, place)| place.outs.iter().map(move |out| (at, out.to)));
        let edges = edges.map(|(from, to)| (self.unit(from), self.unit(to)));
        for (_, to) in edges.filter(|(from, to)| from != to).collect::<Vec<_>>() {
            if let Some(place) = self.places.get_mut(to) {
                place.incoming += 1;
            }
        }
    }

    /// The place that stands for another in its level: itself, or the first of its cycle.
    pub(super) fn unit(&self, place: usize) -> usize {
        self.places.get(place).and_then(|found| found.cycle).unwrap_or(place)
    }

    /// The places of the cycle that a place is in.
    pub(super) fn cycle(&self, place: usize) -> Option<&[usize]> {
        let first = self.places.get(place)?.cycle?;
        self.cycles.get(&first).map(Vec::as_slice)
    }

    /// The edges of a place; of a place in a cycle, all that leave the cycle, each with the
    /// place that it is an edge of.
    pub(super) fn outs(&self, place: usize) -> impl Iterator<Item = (usize, &Out)> {
        let unit = self.unit(place);
        let places = self.cycle(place).map_or_else(|| vec![place], <[usize]>::to_vec);
        let is_in_cycle = self.cycle(place).is_some();
        places.into_iter().flat_map(move |from| {
            let outs = self.places.get(from).into_iter().flat_map(|place| &place.outs);
            let leaves = move |out: &&Out| !is_in_cycle || self.unit(out.to) != unit;
            outs.filter(leaves).map(move |out| (from, out))
        })
    }

    /// The places that the edges of a place, or of its cycle, lead to.
    pub(super) fn ways_out(&self, place: usize) -> Vec<usize> {
        self.outs(place).map(|(_, out)| out.to).collect()
    }

    /// The edges of the steps of a cycle, by name; none outside of cycles.
    pub(super) fn cycle_edges(&self, place: usize) -> Option<BTreeSet<(&Slug, &Slug, &When)>> {
        let places = self.cycle(place)?.iter().filter_map(|at| self.places.get(*at));
        let edges = places.flat_map(|from| {
            let to = |out: &Out| self.places.get(out.to).map(|to| &to.id);
            from.outs.iter().filter_map(move |out| Some((&from.id, to(out)?, &out.when)))
        });
        Some(edges.collect())
    }

    /// How often a run may come to a place.
    pub(super) fn visits_max(&self, place: usize) -> u32 {
        let step = self.step(place).and_then(|step| step.visits_max);
        let looped = self.looped(place).and_then(|looped| looped.visits_max);
        step.or(looped).unwrap_or(cycle::VISITS_MAX)
    }

    /// Whether a run may come back to a step.
    #[must_use]
    pub fn is_in_cycle(&self, step: &Slug) -> bool {
        self.find(step).is_some_and(|at| self.cycle(at).is_some())
    }

    /// Where the turns of a loop begin: at each place that nothing leads to. A cycle that
    /// nothing leads into begins with the first of its places in the body.
    pub(super) fn first_of_turn(&self, looped: usize) -> Vec<usize> {
        let body = || self.looped(looped).into_iter().flat_map(|looped| &looped.body);
        let first = |unit: usize| {
            let mut body = body().filter_map(|id| self.find(id));
            body.find(|at| self.unit(*at) == unit).unwrap_or(unit)
        };
        let units = self.level(Some(looped)).filter(|at| self.unit(*at) == *at);
        let free = |at: &usize| self.places.get(*at).is_some_and(|place| place.incoming == 0);
        units.filter(free).map(first).collect()
    }

    /// A step that the compiler added stands in the loop of whatever leads to it.
    fn inherit(&mut self) {
        loop {
            let mut found = None;
            for place in self.places.iter().filter(|place| place.around.is_some()) {
                let open = place
                    .outs
                    .iter()
                    .find(|out| self.places.get(out.to).is_some_and(|next| next.around.is_none()));
                if let Some(out) = open {
                    found = Some((out.to, place.around));
                    break;
                }
            }
            let Some((to, around)) = found else { return };
            if let Some(place) = self.places.get_mut(to) {
                place.around = around;
            }
        }
    }

    /// The secrets that the settings of a step name.
    #[must_use]
    pub fn secrets_of(&self, step: &Slug) -> Vec<String> {
        let place = self.find(step).and_then(|place| self.place(place));
        let reads = place.into_iter().flat_map(|place| place.settings.reads());
        let secrets = reads.filter(|(root, _)| *root == "secret");
        secrets.filter_map(|(_, name)| name.map(str::to_owned)).collect()
    }

    /// Whether the settings of a step name a secret.
    #[must_use]
    pub fn reads_secrets(&self, step: &Slug) -> bool {
        let place = self.find(step).and_then(|place| self.place(place));
        place.is_some_and(|place| place.settings.reads().any(|(root, _)| root == "secret"))
    }

    /// Whether a step asks a person something.
    #[must_use]
    pub fn asks_people(&self, step: &Slug) -> bool {
        self.does(step) == Some(Does::Human)
    }

    /// Whether any step asks a person, here or in another run.
    #[must_use]
    pub fn asks_anybody(&self) -> bool {
        let mut places = self.places.iter();
        places.any(|place| matches!(place.does, Does::Human | Does::Child))
    }

    /// Whether what a step gives follows from the plan and from what was recorded before it.
    #[must_use]
    pub fn is_computed(&self, step: &Slug) -> bool {
        matches!(self.does(step), Some(Does::Perform(Class::Pure | Class::Evaluated)))
    }

    /// Whether a step stands for another run.
    #[must_use]
    pub fn is_child(&self, step: &Slug) -> bool {
        self.does(step) == Some(Does::Child)
    }

    /// Whether a step stands for another run, or a loop for some.
    #[must_use]
    pub fn asks_others(&self, step: &Slug) -> bool {
        let Some(at) = self.find(step) else { return false };
        let inner = |at: usize| self.place(at).is_some_and(|place| self.asks_others(&place.id));
        self.is_child(step)
            || (self.does(step) == Some(Does::Loop) && self.level(Some(at)).any(inner))
    }

    fn does(&self, step: &Slug) -> Option<Does> {
        self.place(self.find(step)?).map(|place| place.does)
    }

    pub(super) fn find(&self, id: &Slug) -> Option<usize> {
        self.names.get(id.as_str()).copied()
    }

    pub(super) fn named(&self, id: &str) -> Option<usize> {
        self.names.get(id).copied()
    }

    pub(super) fn place(&self, place: usize) -> Option<&Place> {
        self.places.get(place)
    }

    /// The plan's step at a place, unless it is a loop.
    pub(super) fn step(&self, place: usize) -> Option<&Step> {
        let found = self.places.get(place)?;
        if found.does == Does::Loop { None } else { self.plan.steps.get(found.at) }
    }

    /// The plan's loop at a place.
    pub(super) fn looped(&self, place: usize) -> Option<&Loop> {
        let found = self.places.get(place)?;
        if found.does == Does::Loop { self.plan.loops.get(found.at) } else { None }
    }

    /// The places of a level: in a loop, or outside of all.
    pub(super) fn level(&self, around: Option<usize>) -> impl Iterator<Item = usize> {
        let places = self.places.iter().enumerate();
        places.filter(move |(_, place)| place.around == around).map(|(at, _)| at)
    }

    /// Where a run begins: where its trigger says, else where the plan does.
    pub(super) fn entries(&self, trigger: Option<&Slug>) -> Vec<usize> {
        let named = self.plan.triggers.iter().find(|known| Some(&known.id) == trigger);
        let named = named.and_then(|trigger| self.find(trigger.entry.as_ref()?));
        named.map_or_else(|| self.entry.clone(), |place| vec![place])
    }

    /// How many loops stand around a place.
    pub(super) fn depth(&self, place: usize) -> usize {
        let around = |place: &usize| self.places.get(*place).and_then(|place| place.around);
        std::iter::successors(around(&place), around).count()
    }
}

fn place_of_step(plan: &Plan, step: &Step, at: usize, catalog: &Catalog) -> Result<Place, Unfit> {
    let unfit = |message: String| Unfit { id: step.id.to_string(), message };
    let Action::Typed { config, r#type } = &step.action else {
        return Err(unfit("it is for an agent that is led through the workflow".into()));
    };
    let strategy = || match config.0.get("strategy").and_then(Value::as_str) {
        Some("list") => Strategy::List,
        Some("first") => Strategy::First,
        _ => Strategy::Object,
    };
    let does = match r#type.as_str() {
        "branch" => Does::Branch,
        "end" => Does::End,
        "fail" => Does::Fail,
        "guide" => Does::Guide,
        "human" => Does::Human,
        "merge" => Does::Merge(strategy()),
        "parallel" => Does::Parallel,
        "wait" => Does::Wait,
        "webhook_respond" => Does::Respond,
        "workflow" => Does::Child,
        other => {
            let kind = catalog.get(other);
            let kind =
                kind.ok_or_else(|| unfit(format!("this program has no step type `{other}`")))?;
            Does::Perform(kind.class)
        }
    };
    let settings = match (does, config.0.get("expr").and_then(Value::as_str)) {
        (Does::Branch, Some(text)) => expression::prepare_expression(text),
        _ => expression::prepare(&config.0),
    };
    let settings = settings.map_err(|fault| unfit(fault.message))?;
    let condition = condition(plan, step.condition.as_ref())?;
    let output = catalog.get(r#type.as_str()).map(|kind| kind.output.clone()).unwrap_or_default();
    let (id, outs) = (step.id.clone(), Vec::new());
    let (around, incoming, cycle) = (None, 0, None);
    Ok(Place { id, around, does, condition, settings, outs, output, incoming, cycle, at })
}

fn place_of_loop(plan: &Plan, looped: &Loop, at: usize) -> Result<Place, Unfit> {
    let unfit = |message: String| Unfit { id: looped.id.to_string(), message };
    let settings = match &looped.repeat {
        Repeat::Count { count } => expression::prepare(&count.0),
        Repeat::Each { items } => expression::prepare(&items.0),
        Repeat::While { condition_id } => match condition(plan, Some(condition_id))? {
            Some(prepared) => Ok(prepared),
            None => return Err(unfit(format!("there is no condition `{condition_id}`"))),
        },
        Repeat::UntilDecision { .. } => {
            return Err(unfit("it waits for a decision of a guided run".into()));
        }
    };
    let settings = settings.map_err(|fault| unfit(fault.message))?;
    let condition = condition(plan, looped.condition.as_ref())?;
    let (id, outs, does) = (looped.id.clone(), Vec::new(), Does::Loop);
    let (around, incoming, cycle, output) = (None, 0, None, Value::Null);
    Ok(Place { id, around, does, condition, settings, outs, output, incoming, cycle, at })
}

fn condition(plan: &Plan, id: Option<&Slug>) -> Result<Option<Prepared>, Unfit> {
    let Some(id) = id else { return Ok(None) };
    let unfit = |message: String| Unfit { id: id.to_string(), message };
    let found = plan.conditions.iter().find(|condition| condition.id == *id);
    let text = found.and_then(|found| found.config.0.get("expression")).and_then(Value::as_str);
    let text = text.ok_or_else(|| unfit("it is no expression".into()))?;
    expression::prepare_expression(text).map(Some).map_err(|fault| unfit(fault.message))
}
