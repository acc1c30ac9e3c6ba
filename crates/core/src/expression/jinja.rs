//! Writes templates for the Jinja engine of a worker process.
//!
//! Where that engine has rules of its own, the text asks for ours: values are joined as
//! [`text`](super::text) writes them, and a path may end early in front of `default`,
//! `is defined` and `is undefined`.

use std::fmt::{self, Display, Formatter, Write as _};

use serde_json::Value;

use super::{Call, Expr, Op, Piece, Tag, Template};

/// The filter that takes a member of a value, where there may be none.
pub const MEMBER: &str = "_member";

impl Template {
    /// The template in the spelling of the Jinja engine.
    #[must_use]
    pub fn jinja(&self) -> String {
        let mut whole = String::new();
        for piece in &self.pieces {
            let dash = |trim: bool| if trim { "-" } else { "" };
            // Writing to a string does not fail.
            let _ = match piece {
                // There are no comments in our templates.
                Piece::Text(text) => whole.write_str(&text.replace("{#", "{{ \"{#\" }}")),
                Piece::Value { value, trims } => {
                    let (before, behind) = (dash(trims.0), dash(trims.1));
                    write!(whole, "{{{{{before} {} {behind}}}}}", Jinja(value))
                }
                Piece::Tag { tag, trims } => {
                    let (before, behind) = (dash(trims.0), dash(trims.1));
                    write!(whole, "{{%{before} {} {behind}%}}", tagged(tag))
                }
            };
        }
        whole
    }
}

impl Expr {
    /// The expression in the spelling of the Jinja engine.
    #[must_use]
    pub fn jinja(&self) -> String {
        Jinja(self).to_string()
    }
}

fn tagged(tag: &Tag) -> String {
    match tag {
        Tag::If(value) => format!("if {}", Jinja(value)),
        Tag::Elif(value) => format!("elif {}", Jinja(value)),
        Tag::For { names, of, when } => {
            let when = when.as_ref().map(|when| format!(" if {}", Jinja(when)));
            format!("for {} in {}{}", names.join(", "), Jinja(of), when.unwrap_or_default())
        }
        Tag::Set { name, value } => format!("set {name} = {}", Jinja(value)),
        other => other.to_string(),
    }
}

/// An expression, in parentheses wherever it has parts.
struct Jinja<'e>(&'e Expr);

impl Display for Jinja<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            Expr::Literal(Value::Null) => f.write_str("none"),
            Expr::Literal(value @ Value::Number(_)) => write!(f, "({value})"),
            Expr::Literal(value) => write!(f, "{value}"),
            Expr::List(items) => {
                f.write_str("[")?;
                items.iter().try_for_each(|item| write!(f, "{}, ", Jinja(item)))?;
                f.write_str("]")
            }
            Expr::Map(entries) => {
                f.write_str("{")?;
                let mut entry =
                    |(key, value): &(Expr, Expr)| write!(f, "{}: {}, ", Jinja(key), Jinja(value));
                entries.iter().try_for_each(&mut entry)?;
                f.write_str(" }")
            }
            Expr::Name { name, .. } => f.write_str(name),
            Expr::Member { of, name, .. } => {
                write!(f, "{}[{}]", Jinja(of), Value::from(name.as_str()))
            }
            Expr::Item { of, index } => write!(f, "{}[{}]", Jinja(of), Jinja(index)),
            Expr::Not(of) => write!(f, "(not {})", Jinja(of)),
            Expr::Negated(of) => write!(f, "(-{})", Jinja(of)),
            Expr::Binary { op: Op::Joined, left, right } => {
                write!(f, "({} | string ~ {} | string)", Jinja(left), Jinja(right))
            }
            Expr::Binary { op, left, right } => {
                write!(f, "({} {} {})", Jinja(left), op.sign(), Jinja(right))
            }
            Expr::Filter { of, call } if call.name == "default" => {
                write!(f, "({} | default(", Early(of))?;
                call.arguments.iter().try_for_each(|value| write!(f, "{}, ", Early(value)))?;
                let mut named = call.named.iter();
                named.try_for_each(|(name, value)| write!(f, "{name}={}, ", Early(value)))?;
                f.write_str("))")
            }
            Expr::Filter { of, call } => {
                write!(f, "({} | {}", Jinja(of), call.name)?;
                arguments(f, call)?;
                f.write_str(")")
            }
            Expr::Test { of, name, negated } => {
                let not = if *negated { "not " } else { "" };
                match name.as_str() {
                    "defined" | "undefined" => write!(f, "({} is {not}{name})", Early(of)),
                    _ => write!(f, "({} is {not}{name})", Jinja(of)),
                }
            }
            Expr::Choice { then, when, otherwise } => {
                write!(f, "({} if {} else {})", Jinja(then), Jinja(when), Jinja(otherwise))
            }
            Expr::Function(call) => {
                f.write_str(&call.name)?;
                arguments(f, call)
            }
        }
    }
}

fn arguments(f: &mut Formatter<'_>, call: &Call) -> fmt::Result {
    f.write_str("(")?;
    call.arguments.iter().try_for_each(|value| write!(f, "{}, ", Jinja(value)))?;
    call.named.iter().try_for_each(|(name, value)| write!(f, "{name}={}, ", Jinja(value)))?;
    f.write_str(")")
}

/// A path that may end early.
struct Early<'e>(&'e Expr);

impl Display for Early<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            Expr::Member { of, name, .. } => {
                write!(f, "({} | {MEMBER}({}))", Early(of), Value::from(name.as_str()))
            }
            Expr::Item { of, index } => {
                write!(f, "({} | {MEMBER}({}))", Early(of), Jinja(index))
            }
            Expr::Binary { op: op @ (Op::And | Op::Or), left, right } => {
                write!(f, "({} {} {})", Jinja(left), op.sign(), Early(right))
            }
            Expr::Choice { then, when, otherwise } => {
                write!(f, "({} if {} else {})", Early(then), Jinja(when), Early(otherwise))
            }
            other => write!(f, "{}", Jinja(other)),
        }
    }
}
