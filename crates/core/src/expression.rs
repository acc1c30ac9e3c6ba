//! Templates: text with `{{ expressions }}` in it.
//!
//! One language is known, in three spellings: `{{ steps.fetch.json | length }}`,
//! `{{.Node.fetch.json | length}}` and `{{ fetch.output.json | length }}`. Reading makes one
//! of them, the first, and so a plan knows no other.
//!
//! What is made of paths, constants, operators and the filters of [`FILTERS`] is evaluated
//! here ([`prepare`], [`Prepared::evaluate`]): always in bounded time and memory, and never
//! with a panic. The rest, such as `{% for %}`, is for a worker process.
//!
//! In reading order: what an expression is (here), reading (`parse`, `tags`, `atom`), writing
//! (`print`, `jinja`), changing (`replace`), the filters ([`FILTERS`]), evaluating (`prepare`,
//! `code`, `evaluate`, `operators`).

mod atom;
mod code;
mod error;
mod evaluate;
mod filters;
mod jinja;
mod meter;
mod operators;
mod parse;
mod prepare;
mod print;
mod replace;
mod tags;
mod text;
pub mod untrusted;

pub use error::{Error, ErrorKind};
pub use filters::{FILTERS, Filter, Runs, page as filters_page, takes_anything};
pub use jinja::MEMBER;
pub use parse::{expression, template};
pub use prepare::{Prepared, Scope, prepare, prepare_expression};
pub use tags::Tag;
pub use text::text;

use serde_json::Value;

/// The functions of jq that no workflow may use: they reach out of the program, end it, or
/// give another value each time.
pub const JQ_REFUSED: &[&str] = &[
    "debug",
    "debug_empty",
    "env",
    "halt",
    "halt_error",
    "input",
    "input_filename",
    "input_line_number",
    "inputs",
    "localtime",
    "now",
    "repl",
    "stderr",
    "stderr_empty",
    "strflocaltime",
];

/// Text with expressions in it.
#[derive(Clone, PartialEq, Debug)]
pub struct Template {
    /// What it is made of, in order.
    pub pieces: Vec<Piece>,
}

/// A piece of a template.
#[derive(Clone, PartialEq, Debug)]
pub enum Piece {
    /// Text that stays as it is.
    Text(String),
    /// An expression, whose value takes its place.
    Value {
        /// The expression.
        value: Expr,
        /// Whether blanks before and behind it are left out.
        trims: (bool, bool),
    },
    /// Something between `{%` and `%}`.
    Tag {
        /// What it says.
        tag: Tag,
        /// Whether blanks before and behind it are left out.
        trims: (bool, bool),
    },
}

/// An expression. Places are bytes from the beginning of the text.
#[derive(Clone, PartialEq, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Expr {
    Literal(Value),
    List(Vec<Self>),
    Map(Vec<(Self, Self)>),
    Name { name: String, at: usize },
    Member { of: Box<Self>, name: String, at: usize },
    Item { of: Box<Self>, index: Box<Self> },
    Not(Box<Self>),
    Negated(Box<Self>),
    Binary { op: Op, left: Box<Self>, right: Box<Self> },
    Filter { of: Box<Self>, call: Call },
    Test { of: Box<Self>, name: String, negated: bool },
    Choice { then: Box<Self>, when: Box<Self>, otherwise: Box<Self> },
    Function(Call),
}

/// A filter or a function with its arguments.
#[derive(Clone, PartialEq, Debug)]
pub struct Call {
    /// Its name.
    pub name: String,
    /// Where the name stands.
    pub at: usize,
    /// The arguments without a name, in order.
    pub arguments: Vec<Expr>,
    /// The arguments with a name, such as `attribute="id"`.
    pub named: Vec<(String, Expr)>,
}

/// What stands between two expressions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Op {
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
pub struct Fault {
    /// Where, in bytes from the beginning of the text.
    pub at: usize,
    /// What kind of mistake it is.
    pub kind: FaultKind,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

/// What kind of mistake a text has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FaultKind {
    /// It does not read as a template.
    Malformed,
    /// A filter has arguments that it does not take.
    Arguments,
    /// It is too deep or too long to be evaluated in bounded time.
    TooDeep,
    /// A name that nothing has.
    Unknown {
        /// The name.
        given: String,
        /// Those there are.
        known: Vec<&'static str>,
    },
    /// Something that templates cannot do.
    Unsupported,
}

/// A path into what a run knows, such as `steps.fetch.json`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reference {
    /// What it begins with.
    pub root: String,
    /// Where it stands.
    pub at: usize,
    /// The names that follow, as far as they are written out. An item of a list has none.
    pub members: Vec<(Option<String>, usize)>,
}

impl Template {
    /// The expressions, in order; those of tags among them.
    pub fn values(&self) -> impl Iterator<Item = &Expr> {
        self.pieces.iter().flat_map(|piece| match piece {
            Piece::Value { value, .. } => vec![value],
            Piece::Tag { tag, .. } => tag.values(),
            Piece::Text(_) => Vec::new(),
        })
    }

    /// The expressions, each with the names that tags before it gave.
    #[must_use]
    pub fn scoped(&self) -> Vec<(&Expr, Vec<&str>)> {
        tags::scoped(self)
    }

    /// Whether it is text alone.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.pieces.iter().all(|piece| matches!(piece, Piece::Text(_)))
    }

    /// Whether only a worker process can evaluate it.
    #[must_use]
    pub fn needs_worker(&self) -> bool {
        self.pieces.iter().any(|piece| match piece {
            Piece::Text(_) => false,
            Piece::Value { value, .. } => value.needs_worker(),
            Piece::Tag { .. } => true,
        })
    }
}

impl Expr {
    /// Everything it looks at.
    #[must_use]
    pub fn references(&self) -> Vec<Reference> {
        let mut found = Vec::new();
        self.collect(false, &mut found);
        found
    }

    /// What can become part of its value: not what is only compared, counted or validated.
    #[must_use]
    pub fn flows(&self) -> Vec<Reference> {
        let mut found = Vec::new();
        self.collect(true, &mut found);
        found
    }

    /// What it looks at under the condition that it is there: before `default`, and in
    /// `is defined` and `is undefined`.
    #[must_use]
    pub fn guarded(&self) -> Vec<Reference> {
        let mut found = Vec::new();
        self.each(&mut |expr| match expr {
            Self::Filter { of, call } if call.name == "default" => found.extend(of.reference()),
            Self::Test { of, name, .. } if name.ends_with("defined") => {
                found.extend(of.reference());
            }
            _ => {}
        });
        found
    }

    /// Whether its value can only be true or false.
    #[must_use]
    pub fn is_boolean(&self) -> bool {
        match self {
            Self::Literal(value) => value.is_boolean(),
            Self::Not(_) | Self::Test { .. } => true,
            Self::Binary { op: Op::And | Op::Or, left, right } => {
                left.is_boolean() && right.is_boolean()
            }
            Self::Binary { op, .. } => op.compares(),
            Self::Filter { call, .. } => call.name == "bool",
            Self::Choice { then, otherwise, .. } => then.is_boolean() && otherwise.is_boolean(),
            _ => false,
        }
    }

    /// The filters in it.
    #[must_use]
    pub fn filters(&self) -> Vec<&Call> {
        let mut found = Vec::new();
        self.each(&mut |expr| found.extend(expr.filter()));
        found
    }

    /// Whether only a worker process can evaluate it.
    #[must_use]
    pub fn needs_worker(&self) -> bool {
        let mut found = false;
        self.each(&mut |expr| {
            found |= match expr {
                Self::Function(_) => true,
                Self::Filter { call, .. } => filters::needs_worker(call),
                _ => false,
            }
        });
        found
    }

    /// Says what no evaluator could make sense of: unknown filters, wrong arguments, patterns
    /// that cannot be read.
    #[must_use]
    pub fn check(&self) -> Vec<Fault> {
        self.filters().into_iter().filter_map(|call| filters::check(call).err()).collect()
    }

    const fn filter(&self) -> Option<&Call> {
        match self {
            Self::Filter { call, .. } => Some(call),
            _ => None,
        }
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
            Self::Filter { of, call } => std::iter::once(&**of).chain(call.parts()).collect(),
            Self::Choice { then, when, otherwise } => vec![then, when, otherwise],
            Self::Function(call) => call.parts().collect(),
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
            Self::Filter { call, .. } if filters::validates(call) => Vec::new(),
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

impl Call {
    fn parts(&self) -> impl Iterator<Item = &Expr> {
        self.arguments.iter().chain(self.named.iter().map(|(_, value)| value))
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
