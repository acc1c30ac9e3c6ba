//! What a `parallel` brings: the outputs of its branches, by the names of their first steps.
//!
//! A `parallel` is decided before its branches run, so it has no output of its own. What reads
//! one is compiled to what reads the last steps of the branches.

use std::collections::BTreeSet;

use cairn_core::expression::{self, Expr, Fault, Template};
use cairn_core::text::Slug;
use serde_json::json;

use super::edges::reached;
use super::fault::Wrong;
use super::{Build, schema};
use crate::diagnostic::Code;
use crate::read::meant;

impl Build<'_> {
    /// A template, with what it reads of branches in its place.
    pub(super) fn read_template(&self, text: &str) -> Result<Template, Fault> {
        let read = expression::template(text, &|name| self.places.contains_key(name));
        read.map(|template| template.replace(&|expr| self.of_branch(expr)))
    }

    /// An expression, with what it reads of branches in its place.
    pub(super) fn read_expression(&self, text: &str) -> Result<Expr, Fault> {
        let read = expression::expression(text, &|name| self.places.contains_key(name));
        read.map(|expr| expr.replace(&|expr| self.of_branch(expr)))
    }

    /// What takes the place of `steps.gather.logs`, or of `steps.gather` alone.
    fn of_branch(&self, expr: &Expr) -> Option<Expr> {
        if let Expr::Member { of, name, at } = expr
            && let Some((_, ends)) = self.parallel(of)
        {
            // What is no branch stays, so that it is told as it is written.
            let end = ends.iter().find(|(branch, _)| branch.as_str() == name);
            return Some(end.map_or_else(|| expr.clone(), |(_, end)| step(end, *at)));
        }
        let (at, ends) = self.parallel(expr)?;
        let entry = |(branch, end): &(&Slug, &Slug)| (Expr::Literal(json!(branch)), step(end, at));
        Some(Expr::Map(ends.iter().map(entry).collect()))
    }

    /// The branches of the `parallel` that a path names, each with its last step; none when the
    /// path is another, or when every branch can end at several steps.
    fn parallel(&self, expr: &Expr) -> Option<(usize, Vec<(&Slug, &Slug)>)> {
        let Expr::Member { of, name, at } = expr else { return None };
        if !matches!(&**of, Expr::Name { name, .. } if name == "steps") {
            return None;
        }
        let ends = self.branch_ends.get(self.places.get(name)?)?;
        let named = |(branch, end): &(usize, usize)| Some((self.id(*branch)?, self.id(*end)?));
        let ends: Option<Vec<_>> = ends.iter().map(named).collect();
        ends.map(|ends| (*at, ends))
    }

    /// Says what is wrong with a look at a branch that has no output. What the others bring is
    /// in the place of the look already.
    pub(super) fn branch_read(&self, place: usize, name: &str, at: usize) -> Result<(), Wrong> {
        let Some(branches) = self.branches(place) else { return Ok(()) };
        let parallel = self.id(place).map(ToString::to_string).unwrap_or_default();
        let ids: Vec<&str> =
            branches.iter().filter_map(|branch| self.id(*branch)).map(Slug::as_str).collect();
        let (message, hint) = match ids.contains(&name) {
            true => (
                format!(
                    "the branch `{name}` of `{parallel}` can end at several steps, and has no output"
                ),
                Some("read one of its steps, or end it in one step or a `merge`".to_owned()),
            ),
            false => {
                let hint = meant(name, &ids).or_else(|| schema::known_are(&ids));
                (format!("`{parallel}` has no branch `{name}`"), hint)
            }
        };
        Err((at, Code::UnknownField, message, hint))
    }

    /// Notes where those branches of a `parallel` end that have one end; the others have no
    /// output. What several of them lead to belongs to none.
    pub(super) fn note_ends(&mut self, place: usize, branches: &BTreeSet<usize>, after: &[usize]) {
        let next = self.next();
        let steps = self.drafts.len();
        let all: Vec<(usize, Vec<bool>)> =
            branches.iter().map(|branch| (*branch, reached(&next, [*branch], after))).collect();
        let is_in = |steps: &[bool], step: usize| steps.get(step).copied().unwrap_or_default();
        let is_shared: Vec<bool> = (0..steps)
            .map(|step| all.iter().filter(|(_, steps)| is_in(steps, step)).nth(1).is_some())
            .collect();
        let end = |(branch, steps): &(usize, Vec<bool>)| {
            let is_own = |step: usize| is_in(steps, step) && !is_in(&is_shared, step);
            let mut goes_on = vec![false; steps.len()];
            for link in self.links.iter().filter(|link| !link.fails && is_own(link.to)) {
                goes_on.get_mut(link.from).into_iter().for_each(|goes_on| *goes_on = true);
            }
            let mut ends = (0..steps.len()).filter(|step| is_own(*step) && !is_in(&goes_on, *step));
            let end = ends.next().filter(|_| ends.next().is_none());
            end.map(|end| (*branch, end))
        };
        let ends: Vec<(usize, usize)> = all.iter().filter_map(end).collect();
        if !ends.is_empty() {
            self.branch_ends.insert(place, ends);
        }
    }
}

fn step(id: &Slug, at: usize) -> Expr {
    let steps = Expr::Name { name: "steps".to_owned(), at };
    Expr::Member { of: Box::new(steps), name: id.to_string(), at }
}
