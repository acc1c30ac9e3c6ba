//! Other expressions in the place of parts of one.

use super::tags::Tag;
use super::{Call, Expr, Piece, Template};

/// Says what takes the place of an expression; nothing where it stays.
type With<'w> = &'w dyn Fn(&Expr) -> Option<Expr>;

impl Template {
    /// The template with other expressions in the place of some.
    #[must_use]
    pub fn replace(self, with: With<'_>) -> Self {
        let piece = |piece| match piece {
            Piece::Text(text) => Piece::Text(text),
            Piece::Value { value, trims } => Piece::Value { value: value.replace(with), trims },
            Piece::Tag { tag, trims } => Piece::Tag { tag: tag.replace(with), trims },
        };
        Self { pieces: self.pieces.into_iter().map(piece).collect() }
    }
}

impl Tag {
    fn replace(self, with: With<'_>) -> Self {
        match self {
            Self::If(when) => Self::If(when.replace(with)),
            Self::Elif(when) => Self::Elif(when.replace(with)),
            Self::For { names, of, when } => {
                Self::For { names, of: of.replace(with), when: when.map(|when| when.replace(with)) }
            }
            Self::Set { name, value } => Self::Set { name, value: value.replace(with) },
            Self::Else | Self::EndIf | Self::EndFor | Self::Break | Self::Continue => self,
        }
    }
}

impl Expr {
    /// The expression with others in the place of some of its parts. What takes a place is not
    /// looked into again.
    #[must_use]
    pub fn replace(self, with: With<'_>) -> Self {
        if let Some(other) = with(&self) {
            return other;
        }
        let inner = |expr: Box<Self>| Box::new(expr.replace(with));
        let all = |items: Vec<Self>| items.into_iter().map(|item| item.replace(with)).collect();
        let call = |call: Call| Call {
            arguments: all(call.arguments),
            named: call.named.into_iter().map(|(name, of)| (name, of.replace(with))).collect(),
            ..call
        };
        match self {
            Self::Literal(_) | Self::Name { .. } => self,
            Self::List(items) => Self::List(all(items)),
            Self::Map(entries) => {
                let entry = |(key, value): (Self, Self)| (key.replace(with), value.replace(with));
                Self::Map(entries.into_iter().map(entry).collect())
            }
            Self::Member { of, name, at } => Self::Member { of: inner(of), name, at },
            Self::Item { of, index } => Self::Item { of: inner(of), index: inner(index) },
            Self::Not(of) => Self::Not(inner(of)),
            Self::Negated(of) => Self::Negated(inner(of)),
            Self::Binary { op, left, right } => {
                Self::Binary { op, left: inner(left), right: inner(right) }
            }
            Self::Filter { of, call: given } => Self::Filter { of: inner(of), call: call(given) },
            Self::Test { of, name, negated } => Self::Test { of: inner(of), name, negated },
            Self::Choice { then, when, otherwise } => {
                Self::Choice { then: inner(then), when: inner(when), otherwise: inner(otherwise) }
            }
            Self::Function(given) => Self::Function(call(given)),
        }
    }
}
