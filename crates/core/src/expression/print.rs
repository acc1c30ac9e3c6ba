//! Writes expressions in the one spelling that plans have.

use std::fmt::{self, Display, Formatter};

use super::{Call, Expr, Op, Piece, Template};

impl Display for Template {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.pieces.iter().try_for_each(|piece| match piece {
            Piece::Text(text) => f.write_str(text),
            Piece::Value { value, trims: (before, behind) } => {
                let dash = |trim: &bool| if *trim { "-" } else { "" };
                write!(f, "{{{{{} {value} {}}}}}", dash(before), dash(behind))
            }
            Piece::Tag { tag, trims: (before, behind) } => {
                let dash = |trim: &bool| if *trim { "-" } else { "" };
                write!(f, "{{%{} {tag} {}%}}", dash(before), dash(behind))
            }
        })
    }
}

/// How tightly an expression holds together; what holds less is put in parentheses.
const fn strength(expr: &Expr) -> u8 {
    match expr {
        Expr::Choice { .. } => 0,
        Expr::Binary { op, .. } => op.strength(),
        Expr::Not(_) => 3,
        Expr::Test { .. } => 4,
        Expr::Negated(_) => 8,
        Expr::Filter { .. } => 9,
        _ => 10,
    }
}

impl Op {
    const fn strength(self) -> u8 {
        match self {
            Self::Or => 1,
            Self::And => 2,
            Self::Plus | Self::Minus => 5,
            Self::Joined => 6,
            Self::Times | Self::Divided | Self::DividedWhole | Self::Remainder => 7,
            _ => 4,
        }
    }

    pub(super) const fn sign(self) -> &'static str {
        match self {
            Self::Or => "or",
            Self::And => "and",
            Self::Equal => "==",
            Self::Unequal => "!=",
            Self::Less => "<",
            Self::LessEqual => "<=",
            Self::More => ">",
            Self::MoreEqual => ">=",
            Self::In => "in",
            Self::NotIn => "not in",
            Self::Plus => "+",
            Self::Minus => "-",
            Self::Joined => "~",
            Self::Times => "*",
            Self::Divided => "/",
            Self::DividedWhole => "//",
            Self::Remainder => "%",
        }
    }
}

/// An expression where one of at least this strength is asked for.
struct Within<'e>(u8, &'e Expr);

impl Display for Within<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self(least, expr) = self;
        if strength(expr) < *least { write!(f, "({expr})") } else { write!(f, "{expr}") }
    }
}

impl Display for Expr {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Literal(value) => match value {
                serde_json::Value::Null => f.write_str("none"),
                value => write!(f, "{value}"),
            },
            Self::List(items) => {
                f.write_str("[")?;
                listed(f, items)?;
                f.write_str("]")
            }
            Self::Map(entries) => {
                f.write_str("{")?;
                for (place, (key, value)) in entries.iter().enumerate() {
                    let comma = if place == 0 { "" } else { ", " };
                    write!(f, "{comma}{key}: {value}")?;
                }
                // A blank, since `}}` would close the template.
                f.write_str(" }")
            }
            Self::Name { name, .. } => f.write_str(name),
            Self::Member { of, name, .. } if is_name(name) => {
                write!(f, "{}.{name}", Within(10, of))
            }
            Self::Member { of, name, .. } => {
                write!(f, "{}[{}]", Within(10, of), serde_json::Value::from(name.as_str()))
            }
            Self::Item { of, index } => write!(f, "{}[{index}]", Within(10, of)),
            Self::Not(of) => write!(f, "not {}", Within(4, of)),
            Self::Negated(of) => write!(f, "-{}", Within(10, of)),
            Self::Binary { op, left, right } => {
                // A comparison stands in no other; the rest is read from the left.
                let least = op.strength();
                let first = if least == 4 { 5 } else { least };
                write!(f, "{} {} {}", Within(first, left), op.sign(), Within(least + 1, right))
            }
            Self::Filter { of, call } => {
                // What is negated is filtered, as it was written.
                let least = if matches!(**of, Self::Negated(_)) { 8 } else { 9 };
                write!(f, "{} | {}", Within(least, of), call.name)?;
                match call.parts().next() {
                    Some(_) => call.list(f),
                    None => Ok(()),
                }
            }
            Self::Function(call) => {
                f.write_str(&call.name)?;
                call.list(f)
            }
            Self::Test { of, name, negated } => {
                let not = if *negated { "not " } else { "" };
                write!(f, "{} is {not}{name}", Within(5, of))
            }
            Self::Choice { then, when, otherwise } => {
                write!(f, "{} if {} else {otherwise}", Within(1, then), Within(1, when))
            }
        }
    }
}

impl Call {
    /// Its arguments, in parentheses.
    fn list(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("(")?;
        listed(f, &self.arguments)?;
        for (place, (name, value)) in self.named.iter().enumerate() {
            let comma = if place + self.arguments.len() == 0 { "" } else { ", " };
            write!(f, "{comma}{name}={value}")?;
        }
        f.write_str(")")
    }
}

fn listed(f: &mut Formatter<'_>, items: &[Expr]) -> fmt::Result {
    for (place, item) in items.iter().enumerate() {
        let comma = if place == 0 { "" } else { ", " };
        write!(f, "{comma}{item}")?;
    }
    Ok(())
}

/// Whether a name can stand behind a dot.
fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
