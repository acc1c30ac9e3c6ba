//! Templates: text with `{{ expressions }}` in it.
//!
//! One language is known, in three spellings: `{{ steps.fetch.json | length }}`,
//! `{{.Node.fetch.json | length}}` and `{{ fetch.output.json | length }}`. Reading makes one
//! of them, the first, and so a plan knows no other. Nothing is evaluated here.

mod filters;
mod parse;
mod print;
mod value;

pub(crate) use filters::FILTERS;
pub(crate) use parse::{expression, template};

use serde_json::Value;

use crate::diagnostic::Code;

/// Text with expressions in it.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Template {
    pub(crate) pieces: Vec<Piece>,
}

/// A piece of a template.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Piece {
    Text(String),
    Value {
        value: Expr,
        /// Whether blanks before and behind it are left out.
        trims: (bool, bool),
    },
}

/// An expression. Places are bytes from the beginning of the text.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Expr {
    Literal(Value),
    List(Vec<Self>),
    Map(Vec<(Self, Self)>),
    Name { name: String, at: usize },
    Member { of: Box<Self>, name: String, at: usize },
    Item { of: Box<Self>, index: Box<Self> },
    Not(Box<Self>),
    Negated(Box<Self>),
    Binary { op: Op, left: Box<Self>, right: Box<Self> },
    Filter { of: Box<Self>, name: String, at: usize, arguments: Vec<Self> },
    Test { of: Box<Self>, name: String, negated: bool },
    Choice { then: Box<Self>, when: Box<Self>, otherwise: Box<Self> },
}

/// What stands between two expressions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Op {
    Or,
    And,
    Equal,
    Unequal,
    Less,
    LessEqual,
    More,
    MoreEqual,
    In,
    NotIn,
    Plus,
    Minus,
    Joined,
    Times,
    Divided,
    DividedWhole,
    Remainder,
}

/// Why a text is no template.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Fault {
    pub(crate) at: usize,
    pub(crate) code: Code,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

/// A path into what a run knows, such as `steps.fetch.json`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Reference {
    pub(crate) root: String,
    pub(crate) at: usize,
    /// The names that follow, as far as they are written out. An item of a list has none.
    pub(crate) members: Vec<(Option<String>, usize)>,
}

impl Template {
    /// The expressions, in order.
    pub(crate) fn values(&self) -> impl Iterator<Item = &Expr> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Value { value, .. } => Some(value),
            Piece::Text(_) => None,
        })
    }

    /// Whether it is text alone.
    pub(crate) fn is_plain(&self) -> bool {
        self.values().next().is_none()
    }
}

impl Expr {
    /// Everything it looks at.
    pub(crate) fn references(&self) -> Vec<Reference> {
        let mut found = Vec::new();
        self.collect(false, &mut found);
        found
    }

    /// What can become part of its value: not what is only compared, counted or validated.
    pub(crate) fn flows(&self) -> Vec<Reference> {
        let mut found = Vec::new();
        self.collect(true, &mut found);
        found
    }

    /// The filters in it, and where they stand.
    pub(crate) fn filters(&self) -> Vec<(&str, usize, usize)> {
        let mut found = Vec::new();
        self.each(&mut |expr| {
            if let Self::Filter { name, at, arguments, .. } = expr {
                found.push((name.as_str(), *at, arguments.len()));
            }
        });
        found
    }

    fn each<'e>(&'e self, visit: &mut dyn FnMut(&'e Self)) {
        visit(self);
        self.parts().into_iter().for_each(|part| part.each(visit));
    }

    /// What it is made of.
    fn parts(&self) -> Vec<&Self> {
        match self {
            Self::Literal(_) | Self::Name { .. } => Vec::new(),
            Self::List(items) => items.iter().collect(),
            Self::Map(entries) => entries.iter().flat_map(|(key, value)| [key, value]).collect(),
            Self::Not(of) | Self::Negated(of) => vec![of],
            Self::Member { of, .. } | Self::Test { of, .. } => vec![of],
            Self::Item { of, index } => vec![of, index],
            Self::Binary { left, right, .. } => vec![left, right],
            Self::Filter { of, arguments, .. } => std::iter::once(&**of).chain(arguments).collect(),
            Self::Choice { then, when, otherwise } => vec![then, when, otherwise],
        }
    }

    fn collect(&self, flowing: bool, found: &mut Vec<Reference>) {
        if let Some(reference) = self.reference() {
            found.push(reference);
            self.indexes(flowing, found);
            return;
        }
        let parts: Vec<&Self> = match self {
            _ if !flowing => self.parts(),
            Self::Not(_) | Self::Test { .. } => Vec::new(),
            Self::Binary { op, .. } if op.compares() => Vec::new(),
            Self::Filter { name, arguments, .. } if filters::validates(name, arguments) => {
                Vec::new()
            }
            Self::Choice { then, otherwise, .. } => vec![then, otherwise],
            _ => self.parts(),
        };
        parts.into_iter().for_each(|part| part.collect(flowing, found));
    }

    /// What the indexes of a path look at.
    fn indexes(&self, flowing: bool, found: &mut Vec<Reference>) {
        match self {
            Self::Member { of, .. } => of.indexes(flowing, found),
            Self::Item { of, index } => {
                of.indexes(flowing, found);
                if !flowing {
                    index.collect(flowing, found);
                }
            }
            _ => {}
        }
    }

    /// The path that it is, if it is one.
    fn reference(&self) -> Option<Reference> {
        match self {
            Self::Name { name, at } => {
                Some(Reference { root: name.clone(), at: *at, members: Vec::new() })
            }
            Self::Member { of, name, at } => {
                let mut reference = of.reference()?;
                reference.members.push((Some(name.clone()), *at));
                Some(reference)
            }
            Self::Item { of, .. } => {
                let mut reference = of.reference()?;
                let at = reference.members.last().map_or(reference.at, |(_, at)| *at);
                reference.members.push((None, at));
                Some(reference)
            }
            _ => None,
        }
    }
}

impl Op {
    const fn compares(self) -> bool {
        !matches!(
            self,
            Self::Or
                | Self::And
                | Self::Plus
                | Self::Minus
                | Self::Joined
                | Self::Times
                | Self::Divided
                | Self::DividedWhole
                | Self::Remainder
        )
    }
}

#[cfg(test)]
mod tests;
