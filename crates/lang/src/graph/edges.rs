//! What follows what, from every spelling of it.

use std::collections::BTreeSet;

use cairn_core::catalog::{Cases, StepType, Takes};
use cairn_core::classify::DEFAULT;
use cairn_core::expression::Expr;
use cairn_core::text::Slug;
use serde_json::json;

use super::schema::{self, Output};
use super::{Build, Draft, EDGES_MAX};
use crate::diagnostic::Code;
use crate::read::{Spot, quoted};

/// One step may follow another.
#[derive(Clone)]
pub(super) struct Link<'a> {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) case: Option<String>,
    /// Whether it is taken when the first step fails for good.
    pub(super) fails: bool,
    /// Where it is written.
    pub(super) spot: Spot<'a>,
}

/// Two links are the same when they lead from one step to another in the same case, wherever
/// that is written.
impl PartialEq for Link<'_> {
    fn eq(&self, other: &Self) -> bool {
        let key = |link: &Self| (link.from, link.to, link.fails);
        key(self) == key(other) && self.case == other.case
    }
}

/// The name of the step at which a path ends, which need not be written out.
const END: &str = "end";

impl<'a> Build<'a> {
    /// Reads all edges.
    pub(super) fn connect(&mut self, edges: Option<Spot<'a>>) {
        for from in 0..self.drafts.len() {
            self.inside(from);
        }
        for item in edges.map(|edges| edges.items()).unwrap_or_default() {
            let Some(fields) = item.fields(&["case", "from", "to"]) else { continue };
            let from = fields.need("from").and_then(|spot| self.place(&spot));
            let named = fields.get("case");
            let case = named.as_ref().and_then(case_name);
            let target = fields.need("to");
            match (from, target) {
                (Some(from), Some(target)) => self.link(from, case, &target, named.as_ref()),
                (Some(from), None) => drop(self.torn.insert(from)),
                // It may be meant to be the edge of any.
                (None, _) if self.torn.len() < self.drafts.len() => {
                    self.torn.extend(0..self.drafts.len());
                }
                (None, _) => {}
            }
        }
        // Too many are told of, and not looked at.
        if self.links.len() > EDGES_MAX {
            return;
        }
        self.merges();
        self.joins();
        self.strays();
        for place in 0..self.drafts.len() {
            self.cases(place);
        }
        self.levels();
    }

    /// The edges that stand inside a node.
    fn inside(&mut self, from: usize) {
        let Some(fields) = self.drafts.get(from).and_then(|draft| draft.fields.as_ref()) else {
            return;
        };
        let (next, cases) = (fields.get("next"), fields.get("cases"));
        let (branches, fallback) = (fields.get("branches"), fields.get("fallback"));
        for spot in next.into_iter().chain(branches) {
            self.link(from, None, &spot, None);
        }
        for (case, spot) in cases.map(|spot| spot.members()).unwrap_or_default() {
            self.link(from, Some(case.to_owned()), &spot, None);
        }
        let Some(spot) = fallback else { return };
        if let Some(to) = spot.node.as_text().and_then(|name| self.places.get(name).copied()) {
            self.links.push(Link { from, to, case: None, fails: true, spot });
        } else {
            self.astray.set(true);
        }
    }

    /// Adds the edges to a step, or to each of a list. They are spoken about where they lead
    /// to, or where their case is named.
    fn link(
        &mut self,
        from: usize,
        case: Option<String>,
        target: &Spot<'a>,
        named: Option<&Spot<'a>>,
    ) {
        let targets = if target.is_list() { target.items() } else { vec![target.clone()] };
        for target in targets {
            let Some(to) = self.place(&target) else {
                self.torn.insert(from);
                continue;
            };
            let spot = named.unwrap_or(&target).clone();
            let link = Link { from, to, case: case.clone(), fails: false, spot };
            if self.links.len() <= EDGES_MAX && !self.links.contains(&link) {
                self.links.push(link);
            }
        }
    }

    /// The step that a text names. `end` is there even when nobody wrote it.
    fn place(&mut self, spot: &Spot<'a>) -> Option<usize> {
        if spot.node.as_text() == Some(END) && !self.places.contains_key(END) {
            let made = Some((json!({}), "end"));
            self.make(END.parse().ok()?, spot.clone(), END, made);
        }
        let id = self.target(spot)?;
        self.places.get(id.as_str()).copied()
    }

    fn make(
        &mut self,
        id: Slug,
        spot: Spot<'a>,
        kind: &str,
        made: Option<(serde_json::Value, &'static str)>,
    ) -> usize {
        let place = self.drafts.len();
        self.places.insert(id.to_string(), place);
        let kind = self.catalog.get(kind);
        self.drafts.push(Draft { id, spot, fields: None, kind, around: None, made });
        place
    }

    /// What comes after a `parallel` waits for all its branches.
    fn joins(&mut self) {
        let mut joined = BTreeSet::new();
        for place in 0..self.drafts.len() {
            self.join(place, &mut joined);
        }
    }

    /// Joins the branches of a `parallel`, those of the ones inside first.
    fn join(&mut self, place: usize, joined: &mut BTreeSet<usize>) {
        let Some(branches) = self.branches(place).filter(|_| joined.insert(place)) else { return };
        let links = self.links.iter().filter(|link| link.from == place && !link.fails);
        let after: Vec<usize> =
            links.map(|link| link.to).filter(|to| !branches.contains(to)).collect();
        for inner in self.within(&branches, &after) {
            self.join(inner, joined);
        }
        self.links.retain(|link| link.from != place || link.fails || branches.contains(&link.to));
        self.note_ends(place, &branches, &after);
        let ends = self.ends(&branches, &after);
        let (merges, others): (Vec<usize>, Vec<usize>) = after
            .into_iter()
            .partition(|to| self.drafts.get(*to).is_some_and(|draft| draft.is("merge")));
        for merge in merges {
            if self.inputs(merge).is_none() {
                ends.iter().for_each(|end| self.push(*end, merge));
            }
        }
        if !others.is_empty() {
            self.made_join(place, &ends, others);
        }
    }

    /// The first steps of the branches of a `parallel` that names them.
    pub(super) fn branches(&self, place: usize) -> Option<BTreeSet<usize>> {
        let draft = self.drafts.get(place).filter(|draft| draft.is("parallel"))?;
        let branches = draft.fields.as_ref().and_then(|fields| fields.get("branches"));
        let branches = branches.filter(|spot| spot.is_list())?.items();
        Some(branches.iter().filter_map(|s| self.places.get(s.node.as_text()?).copied()).collect())
    }

    /// Adds the step that waits for all ends.
    fn made_join(&mut self, place: usize, ends: &[usize], others: Vec<usize>) {
        let Some(draft) = self.drafts.get(place) else { return };
        let Ok(id) = format!("{}.join", draft.id).parse() else { return };
        let (spot, around) = (draft.spot.clone(), draft.around);
        let inputs: Vec<&Slug> = ends.iter().filter_map(|end| self.id(*end)).collect();
        let made = (json!({"inputs": inputs, "strategy": "object"}), "parallel");
        let join = self.make(id, spot, "merge", Some(made));
        if let Some(draft) = self.drafts.get_mut(join) {
            draft.around = around;
        }
        ends.iter().for_each(|end| self.push(*end, join));
        others.into_iter().for_each(|to| self.push(join, to));
    }

    fn push(&mut self, from: usize, to: usize) {
        let Some(spot) = self.drafts.get(from).map(|draft| draft.spot.clone()) else { return };
        if !self.links.iter().any(|link| (link.from, link.to, link.fails) == (from, to, false)) {
            self.links.push(Link { from, to, case: None, fails: false, spot });
        }
    }

    /// The steps of branches, before what comes after all of them.
    pub(super) fn within(&self, branches: &BTreeSet<usize>, after: &[usize]) -> BTreeSet<usize> {
        let reached = reached(&self.next(), branches.iter().copied(), after);
        reached
            .into_iter()
            .enumerate()
            .filter_map(|(place, is_in)| is_in.then_some(place))
            .collect()
    }

    /// Where each step leads.
    pub(super) fn next(&self) -> Vec<Vec<usize>> {
        let mut next = vec![Vec::new(); self.drafts.len()];
        for link in &self.links {
            next.get_mut(link.from).into_iter().for_each(|to: &mut Vec<usize>| to.push(link.to));
        }
        next
    }

    /// The last of them.
    fn ends(&self, branches: &BTreeSet<usize>, after: &[usize]) -> Vec<usize> {
        let on = self.links.iter().filter(|link| !link.fails && !after.contains(&link.to));
        let goes_on: BTreeSet<usize> = on.map(|link| link.from).collect();
        let last = |place: &usize| {
            let draft = self.drafts.get(*place);
            let is_end = draft.is_some_and(|draft| draft.is("end") || draft.is("fail"));
            !goes_on.contains(place) && !is_end
        };
        self.within(branches, after).into_iter().filter(last).collect()
    }

    /// The inputs that a merge names.
    fn inputs(&self, place: usize) -> Option<Vec<Spot<'a>>> {
        let inputs = self.drafts.get(place)?.fields.as_ref()?.get("inputs")?;
        inputs.is_list().then(|| inputs.items())
    }

    /// A merge is reached from its inputs.
    fn merges(&mut self) {
        for place in 0..self.drafts.len() {
            for spot in self.merge_inputs(place) {
                let Some(input) = self.place(&spot) else { continue };
                self.push(input, place);
            }
        }
    }

    /// A merge that names its inputs is reached from nothing else.
    fn strays(&self) {
        for (place, draft) in self.drafts.iter().enumerate() {
            let spots = self.merge_inputs(place);
            if spots.is_empty() {
                continue;
            }
            let mut named = BTreeSet::new();
            for spot in &spots {
                let input = spot.node.as_text().and_then(|name| self.places.get(name).copied());
                if input.is_some_and(|input| !named.insert(input)) {
                    spot.error(Code::DuplicateId, "this input is named twice");
                }
            }
            let stray =
                self.links.iter().filter(|l| l.to == place && !l.fails && !named.contains(&l.from));
            for (link, id) in stray.filter_map(|link| Some((link, self.id(link.from)?))) {
                let message =
                    format!("`{id}` leads to `{}` and is not among its `inputs`", draft.id);
                link.spot.error_hint(Code::Conflict, message, format!("add `{id}` to `inputs`"));
            }
        }
    }

    fn merge_inputs(&self, place: usize) -> Vec<Spot<'a>> {
        let is_merge = self.drafts.get(place).is_some_and(|draft| draft.is("merge"));
        self.inputs(place).filter(|_| is_merge).unwrap_or_default()
    }

    /// Every outcome of a step must have somewhere to go, and every edge an outcome.
    fn cases(&self, place: usize) {
        let Some(draft) = self.drafts.get(place) else { return };
        let Some(kind) = draft.kind else { return };
        let edges: Vec<&Link<'a>> =
            self.links.iter().filter(|l| l.from == place && !l.fails).collect();
        if always_ends(draft) {
            for link in edges {
                let message = format!("`{}` ends the run, and nothing comes after it", draft.id);
                link.spot.error_hint(Code::Conflict, message, "leave the edge out");
            }
            return;
        }
        let outcomes = self.outcomes(draft, kind);
        edges.iter().for_each(|link| known_case(link, kind, &outcomes));
        let unnamed = edges.iter().find(|link| link.case.is_none());
        match unnamed {
            _ if outcomes == Cases::None => {}
            Some(link) => {
                let message =
                    format!("an edge of `{}` does not say on which case it is taken", draft.id);
                let hint = "give it a `case`, or `default` for all others";
                link.spot.error_hint(Code::MissingDefault, message, hint);
            }
            None if self.torn.contains(&place) => {}
            None => self.uncovered(draft, kind, &outcomes, &edges),
        }
    }

    /// The outcomes that a step can have. One that picks its case by an expression which is
    /// true or false has these two.
    fn outcomes(&self, draft: &Draft<'a>, kind: &StepType) -> Cases {
        if let Cases::Listed(field) = kind.cases {
            let listed = draft.fields.as_ref().and_then(|fields| fields.get(field));
            let listed = listed.filter(Spot::is_list).map(|spot| spot.items());
            let names = |items: Vec<Spot<'a>>| items.iter().filter_map(case_name).collect();
            return listed.map_or(Cases::Any, |items| Cases::Of(names(items)));
        }
        match self.chosen_by(draft, kind).is_some_and(|expr| expr.is_boolean()) {
            true => Cases::Of(vec!["true".to_owned(), "false".to_owned()]),
            false => kind.cases.clone(),
        }
    }

    /// The cases that the edges of a step name, without the default.
    pub(super) fn named_cases(&self, place: usize) -> Vec<&str> {
        let edges = self.links.iter().filter(|link| link.from == place && !link.fails);
        let mut cases: Vec<&str> = Vec::new();
        for case in edges.filter_map(|link| link.case.as_deref()) {
            if case != DEFAULT && !cases.contains(&case) {
                cases.push(case);
            }
        }
        cases
    }

    /// The expression that a step picks its case by.
    fn chosen_by(&self, draft: &Draft<'a>, kind: &StepType) -> Option<Expr> {
        let chosen = kind.sinks.iter().find(|sink| sink.takes == Takes::Expression);
        let chosen = chosen.filter(|_| kind.cases == Cases::Any)?;
        let spot = draft.fields.as_ref()?.get(&chosen.path)?;
        self.read_expression(spot.node.as_text()?).ok()
    }

    /// Whether what a step picks its case by is known to be neither true nor false.
    fn is_no_boolean(&self, draft: &Draft<'a>, kind: &StepType) -> bool {
        let Some(expr) = self.chosen_by(draft, kind) else { return false };
        if let Expr::Literal(value) = &expr {
            return !value.is_boolean();
        }
        if !matches!(expr, Expr::Member { .. } | Expr::Item { .. }) {
            return false;
        }
        let references = expr.references();
        let Some(read) = references.first().filter(|read| read.root == "steps") else {
            return false;
        };
        let mut members = read.members.iter().map(|(name, _)| name.as_deref());
        let step = members.next().flatten().and_then(|step| self.places.get(step));
        let read = step.and_then(|place| self.drafts.get(*place)).and_then(|draft| draft.kind);
        let path: Vec<Option<&str>> = members.collect();
        read.is_some_and(|kind| match schema::follow(&kind.output, &path) {
            Output::Known(schema) => {
                let name = schema.get("type").and_then(serde_json::Value::as_str);
                name.is_some_and(|name| name != "boolean")
            }
            _ => false,
        })
    }

    /// Says which outcomes have no edge.
    fn uncovered(&self, draft: &Draft<'a>, kind: &StepType, outcomes: &Cases, edges: &[&Link<'a>]) {
        let given: BTreeSet<&str> = edges.iter().filter_map(|link| link.case.as_deref()).collect();
        let missing: Vec<&str> = match outcomes {
            _ if given.contains(DEFAULT) => return,
            // A model can always say something else.
            _ if matches!(kind.cases, Cases::Listed(_)) => vec![DEFAULT],
            // What it gives may be true or false; anything else fails the step.
            Cases::Any
                if given == BTreeSet::from(["false", "true"])
                    && !self.is_no_boolean(draft, kind) =>
            {
                return;
            }
            Cases::Of(_) if edges.is_empty() && kind.cases != Cases::Any => return,
            Cases::Of(cases) if !edges.is_empty() => {
                cases.iter().map(String::as_str).filter(|case| !given.contains(case)).collect()
            }
            _ => vec![DEFAULT],
        };
        if !missing.is_empty() {
            let written = draft.fields.as_ref().and_then(|fields| fields.get("cases"));
            let message = format!("`{}` has no edge for {}", draft.id, quoted(&missing));
            written.as_ref().unwrap_or(&draft.spot).error_hint(
                Code::MissingDefault,
                message,
                match missing.as_slice() {
                    [one] if *one != DEFAULT => {
                        format!("add `{one}: <step>` to its cases; `{one}: end` ends there")
                    }
                    _ => "add `default: <step>` to its cases; `default: end` ends there".to_owned(),
                },
            );
        }
    }

    /// No edge leads into a loop or out of it.
    fn levels(&mut self) {
        // A step that the compiler made stands where it is used.
        for place in 0..self.drafts.len() {
            let Some(draft) = self.drafts.get(place).filter(|draft| draft.made.is_some()) else {
                continue;
            };
            let around = draft.around;
            let user = self.links.iter().find(|link| link.to == place).map(|link| link.from);
            let found = user.and_then(|user| self.drafts.get(user)).and_then(|user| user.around);
            if let Some(draft) = self.drafts.get_mut(place) {
                draft.around = around.or(found);
            }
        }
        for link in &self.links {
            let (Some(from), Some(to)) = (self.drafts.get(link.from), self.drafts.get(link.to))
            else {
                continue;
            };
            if from.around != to.around {
                let message = format!(
                    "the way from `{}` to `{}` crosses the bounds of a loop",
                    from.id, to.id
                );
                let hint = "lead to the loop itself, and on from it";
                link.spot.error_hint(Code::Conflict, message, hint);
            }
        }
    }
}

/// Whether a step ends the run each time that the run gets to it.
fn always_ends(draft: &Draft<'_>) -> bool {
    let field = |name: &str| draft.fields.as_ref().and_then(|fields| fields.get(name));
    let is_skipped = |spot: Spot<'_>| spot.node.as_text() == Some("skip");
    let may_be_passed_over = field("when").is_some() || field("on_failure").is_some_and(is_skipped);
    (draft.is("end") || draft.is("fail")) && !may_be_passed_over
}

/// Says when an edge is of an outcome that there is not.
fn known_case(link: &Link<'_>, kind: &StepType, outcomes: &Cases) {
    let Some(case) = &link.case else { return };
    match outcomes {
        Cases::Any | Cases::Listed(_) => {}
        Cases::None => {
            let message = format!("`{}` steps have one outcome, and no case `{case}`", kind.name);
            let hint = "use `next`, or an edge without `case`";
            link.spot.error_hint(Code::UnknownName, message, hint);
        }
        Cases::Of(cases) => {
            let names = || cases.iter().map(String::as_str).chain([DEFAULT]);
            if !names().any(|name| name == case) {
                link.spot.unknown("case", case, names());
            }
        }
    }
}

fn case_name(spot: &Spot<'_>) -> Option<String> {
    match &spot.node.value {
        crate::source::Value::Flag(flag) => Some(flag.to_string()),
        crate::source::Value::Number(number) => Some(number.to_string()),
        _ => spot.filled().map(str::to_owned),
    }
}

/// Which steps these lead to, themselves among them, up to those that come after.
pub(super) fn reached(
    next: &[Vec<usize>],
    from: impl IntoIterator<Item = usize>,
    after: &[usize],
) -> Vec<bool> {
    let mut seen = vec![false; next.len()];
    let mut open: Vec<usize> = from.into_iter().collect();
    while let Some(place) = open.pop() {
        let Some(seen) = seen.get_mut(place).filter(|seen| !**seen && !after.contains(&place))
        else {
            continue;
        };
        *seen = true;
        open.extend(next.get(place).into_iter().flatten());
    }
    seen
}
