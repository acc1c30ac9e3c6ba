//! Expressions made ready: paths are flat, filters are found, patterns are read.

use std::fmt::{self, Display, Formatter};

use regex::Regex;
use serde_json::Value;

use super::filters::{self, Argument, Filter};
use super::{Call, Expr, Fault, FaultKind, Op};

/// An expression that can be evaluated.
#[derive(Clone, Debug)]
pub(super) enum Code {
    Value(Value),
    List(Vec<Self>),
    Map(Vec<(Self, Self)>),
    /// A path from something that the scope knows.
    Path {
        root: String,
        parts: Vec<Part>,
    },
    /// A path from the value of another expression.
    Of(Box<Self>, Vec<Part>),
    Not(Box<Self>),
    Negated(Box<Self>),
    And(Box<(Self, Self)>),
    Or(Box<(Self, Self)>),
    Binary(Op, Box<(Self, Self)>),
    Default(Box<(Self, Self)>),
    Matches(Box<Self>, Regex),
    Filter(Box<Self>, &'static Filter, Vec<Option<Self>>),
    Test {
        of: Box<Self>,
        test: Test,
        negated: bool,
    },
    Choice(Box<[Self; 3]>),
}

/// One step of a path.
#[derive(Clone, Debug)]
pub(super) enum Part {
    Name(String),
    Item(Code),
}

/// What a value can be asked to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Test {
    Boolean,
    Defined,
    False,
    Mapping,
    None,
    Number,
    Sequence,
    String,
    True,
    Undefined,
}

/// Makes an expression ready.
pub(super) fn code(expr: &Expr) -> Result<Code, Fault> {
    let both = |left: &Expr, right: &Expr| Ok(Box::new((code(left)?, code(right)?)));
    Ok(match expr {
        Expr::Literal(value) => Code::Value(value.clone()),
        Expr::List(items) => Code::List(items.iter().map(code).collect::<Result<_, _>>()?),
        Expr::Map(entries) => {
            let entry = |(key, value): &(Expr, Expr)| Ok((code(key)?, code(value)?));
            Code::Map(entries.iter().map(entry).collect::<Result<_, Fault>>()?)
        }
        Expr::Name { name, .. } => Code::Path { root: name.clone(), parts: Vec::new() },
        Expr::Member { of, name, .. } => follow(code(of)?, Part::Name(name.clone())),
        Expr::Item { of, index } => follow(code(of)?, Part::Item(code(index)?)),
        Expr::Not(of) => Code::Not(Box::new(code(of)?)),
        Expr::Negated(of) => Code::Negated(Box::new(code(of)?)),
        Expr::Binary { op: Op::And, left, right } => Code::And(both(left, right)?),
        Expr::Binary { op: Op::Or, left, right } => Code::Or(both(left, right)?),
        Expr::Binary { op, left, right } => Code::Binary(*op, both(left, right)?),
        Expr::Filter { of, call } => filter(code(of)?, call)?,
        Expr::Test { of, name, negated } => {
            Code::Test { of: Box::new(code(of)?), test: test(name), negated: *negated }
        }
        Expr::Choice { then, when, otherwise } => {
            Code::Choice(Box::new([code(then)?, code(when)?, code(otherwise)?]))
        }
        Expr::Function(call) => return Err(worker(call)),
    })
}

fn follow(of: Code, part: Part) -> Code {
    match of {
        Code::Path { root, mut parts } => {
            parts.push(part);
            Code::Path { root, parts }
        }
        Code::Of(of, mut parts) => {
            parts.push(part);
            Code::Of(of, parts)
        }
        of => Code::Of(Box::new(of), vec![part]),
    }
}

fn filter(of: Code, call: &Call) -> Result<Code, Fault> {
    let filter = filters::find(call)?;
    let mut arguments = Vec::new();
    for argument in filters::placed(filter, call)? {
        arguments.push(argument.map(code).transpose()?);
    }
    if filters::needs_worker(call) {
        return Err(worker(call));
    }
    let first = || arguments.first().cloned().flatten().unwrap_or(Code::Value(Value::Null));
    Ok(match (filter.name, first()) {
        ("default", other) => Code::Default(Box::new((of, other))),
        ("matches", Code::Value(Value::String(pattern))) => {
            let pattern = filters::pattern(&pattern).map_err(|message| Fault {
                at: call.at,
                kind: FaultKind::Malformed,
                message,
                hint: None,
            })?;
            Code::Matches(Box::new(of), pattern)
        }
        _ => Code::Filter(Box::new(of), filter, arguments),
    })
}

fn worker(call: &Call) -> Fault {
    let message = format!("`{}` is for a worker process", call.name);
    Fault { at: call.at, kind: FaultKind::Unsupported, message, hint: None }
}

fn test(name: &str) -> Test {
    match name {
        "boolean" => Test::Boolean,
        "defined" => Test::Defined,
        "false" => Test::False,
        "mapping" => Test::Mapping,
        "none" => Test::None,
        "number" => Test::Number,
        "sequence" => Test::Sequence,
        "string" => Test::String,
        "true" => Test::True,
        _ => Test::Undefined,
    }
}

impl Test {
    /// Whether a value that is there is what it is asked to be.
    pub(super) fn holds(self, value: &Value) -> bool {
        match self {
            Self::Boolean => value.is_boolean(),
            Self::Defined => true,
            Self::False => matches!(value, Value::Bool(false)),
            Self::Mapping => value.is_object(),
            Self::None => value.is_null(),
            Self::Number => value.is_number(),
            Self::Sequence => value.is_array(),
            Self::String => value.is_string(),
            Self::True => matches!(value, Value::Bool(true)),
            Self::Undefined => false,
        }
    }
}

impl Display for Part {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => write!(f, ".{name}"),
            Self::Item(Code::Value(index)) => write!(f, "[{index}]"),
            Self::Item(_) => f.write_str("[…]"),
        }
    }
}

/// The arguments of a filter, each in its place.
pub(super) type Placed<'a> = Vec<Argument<'a>>;
