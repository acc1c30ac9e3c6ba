//! What a `parallel` brings: the outputs of its branches, by the names of their first steps.
//!
//! A `parallel` is decided before its branches run, so it has no output of its own. What reads
//! one is compiled to what reads the last steps of the branches.

use std::collections::BTreeSet;

use cairn_core::expression::{self, Expr, Fault, Template};
use cairn_core::text::Slug;
use serde_json::json;

use super::Build;

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
    /// path is another, or when a branch can end at several steps.
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

    /// Notes where the branches of a `parallel` end, if each has one end. What several of them
    /// lead to belongs to none.
    pub(super) fn note_ends(&mut self, place: usize, branches: &BTreeSet<usize>, after: &[usize]) {
        let reach = |branch: &usize| self.within(&BTreeSet::from([*branch]), after);
        let reached: Vec<(usize, BTreeSet<usize>)> =
            branches.iter().map(|branch| (*branch, reach(branch))).collect();
        let is_shared = |step: &usize| {
            reached.iter().filter(|(_, steps)| steps.contains(step)).nth(1).is_some()
        };
        let end = |(branch, steps): &(usize, BTreeSet<usize>)| {
            let own: BTreeSet<usize> =
                steps.iter().copied().filter(|step| !is_shared(step)).collect();
            let goes_on = |step: &usize| {
                let mut links = self.links.iter().filter(|link| !link.fails);
                links.any(|link| link.from == *step && own.contains(&link.to))
            };
            let mut ends = own.iter().copied().filter(|step| !goes_on(step));
            let end = ends.next().filter(|_| ends.next().is_none());
            end.map(|end| (*branch, end))
        };
        if let Some(ends) = reached.iter().map(end).collect::<Option<Vec<_>>>() {
            self.branch_ends.insert(place, ends);
        }
    }
}

fn step(id: &Slug, at: usize) -> Expr {
    let steps = Expr::Name { name: "steps".to_owned(), at };
    Expr::Member { of: Box::new(steps), name: id.to_string(), at }
}
