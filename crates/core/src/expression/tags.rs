//! What stands between `{%` and `%}`: conditions, loops and names.

use std::fmt::{self, Display, Formatter};

use super::parse::{Parser, is_letter, run};
use super::{Expr, Fault, FaultKind, Piece, Template};

/// What stands between `{%` and `%}`.
#[derive(Clone, PartialEq, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Tag {
    If(Expr),
    Elif(Expr),
    Else,
    EndIf,
    For {
        /// What an item is called; two names are those of a key and its value.
        names: Vec<String>,
        of: Expr,
        when: Option<Expr>,
    },
    EndFor,
    Set {
        name: String,
        value: Expr,
    },
    Break,
    Continue,
}

/// The words that a tag begins with.
const WORDS: &[&str] =
    &["break", "continue", "elif", "else", "endfor", "endif", "for", "if", "set"];

/// How deep tags may nest.
const OPEN_MAX: usize = 16;

impl Tag {
    /// The expressions in it.
    pub(super) fn values(&self) -> Vec<&Expr> {
        match self {
            Self::If(value) | Self::Elif(value) | Self::Set { value, .. } => vec![value],
            Self::For { of, when, .. } => std::iter::once(of).chain(when).collect(),
            Self::Else | Self::EndIf | Self::EndFor | Self::Break | Self::Continue => Vec::new(),
        }
    }
}

/// The expressions of a template, each with the names that tags before it gave.
pub(super) fn scoped(template: &Template) -> Vec<(&Expr, Vec<&str>)> {
    let mut found = Vec::new();
    // The names of each loop around, behind those outside of all.
    let mut names: Vec<Vec<&str>> = vec![Vec::new()];
    for piece in &template.pieces {
        let seen: Vec<&str> = names.concat();
        match piece {
            Piece::Text(_) => {}
            Piece::Value { value, .. } => found.push((value, seen)),
            Piece::Tag { tag: Tag::For { names: given, of, when }, .. } => {
                found.push((of, seen));
                names.push(given.iter().map(String::as_str).chain(["loop"]).collect());
                found.extend(when.iter().map(|when| (when, names.concat())));
            }
            Piece::Tag { tag, .. } => {
                found.extend(tag.values().into_iter().map(|value| (value, seen.clone())));
                match tag {
                    Tag::EndFor if names.len() > 1 => drop(names.pop()),
                    Tag::Set { name, .. } => {
                        names.last_mut().into_iter().for_each(|names| names.push(name));
                    }
                    _ => {}
                }
            }
        }
    }
    found
}

impl Parser<'_> {
    /// A tag. The list has the tags that wait for their end.
    pub(super) fn tag(&mut self, open: &mut Vec<(&'static str, usize)>) -> Result<Piece, Fault> {
        let begin = self.at;
        self.at += 2;
        self.restart();
        let before = self.rest().starts_with('-');
        self.at += usize::from(before);
        self.blanks();
        let at = self.at;
        let word = run(self.rest(), is_letter);
        let Some(word) = WORDS.iter().copied().find(|known| *known == word) else {
            let kind = FaultKind::Unknown { given: word.to_owned(), known: WORDS.to_vec() };
            return Err(Fault { kind, ..self.fault(format!("there is no tag `{word}`")) });
        };
        self.at += word.len();
        let tag = self.content(word)?;
        self.nest(open, word, (at, begin))?;
        let behind = self.close(begin, ("{%", "%}"))?;
        Ok(Piece::Tag { tag, trims: (before, behind) })
    }

    fn content(&mut self, word: &str) -> Result<Tag, Fault> {
        Ok(match word {
            "if" => Tag::If(self.choice()?),
            "elif" => Tag::Elif(self.choice()?),
            "else" => Tag::Else,
            "endif" => Tag::EndIf,
            "for" => self.each()?,
            "endfor" => Tag::EndFor,
            "break" => Tag::Break,
            "continue" => Tag::Continue,
            _ => {
                let name = self.local()?;
                self.expect("=")?;
                Tag::Set { name, value: self.choice()? }
            }
        })
    }

    /// What stands behind `for`.
    fn each(&mut self) -> Result<Tag, Fault> {
        let mut names = vec![self.local()?];
        if self.sign(",") {
            names.push(self.local()?);
        }
        if !self.word("in") {
            return Err(self.fault("`in` should stand here"));
        }
        let of = self.or()?;
        let when = if self.word("if") { Some(self.choice()?) } else { None };
        Ok(Tag::For { names, of, when })
    }

    /// A name that a tag gives.
    fn local(&mut self) -> Result<String, Fault> {
        const TAKEN: [&str; 9] =
            ["env", "event", "false", "loop", "none", "run", "secret", "steps", "true"];
        self.blanks();
        let name = run(self.rest(), is_letter);
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(self.fault("a name should stand here"));
        }
        if TAKEN.contains(&name) {
            return Err(self.fault(format!("`{name}` has a meaning already")));
        }
        self.at += name.len();
        Ok(name.to_owned())
    }

    /// Holds a tag to those that wait for their end.
    fn nest(
        &self,
        open: &mut Vec<(&'static str, usize)>,
        word: &'static str,
        (at, begin): (usize, usize),
    ) -> Result<(), Fault> {
        let inner = open.last().map(|(name, _)| *name);
        let fits = match word {
            "if" | "for" => {
                open.push((word, begin));
                open.len() <= OPEN_MAX
            }
            "endif" => open.pop().is_some_and(|(name, _)| name == "if"),
            "endfor" => open.pop().is_some_and(|(name, _)| name == "for"),
            "elif" => inner == Some("if"),
            "else" => inner.is_some(),
            "break" | "continue" => open.iter().any(|(name, _)| *name == "for"),
            _ => true,
        };
        if fits {
            return Ok(());
        }
        let message = match word {
            "if" | "for" => format!("tags nest deeper than {OPEN_MAX} levels"),
            "break" | "continue" => format!("`{word}` stands in no loop"),
            _ => format!("`{word}` belongs to no open tag"),
        };
        let kind = if open.len() > OPEN_MAX { FaultKind::TooDeep } else { FaultKind::Malformed };
        Err(Fault { at, kind, message, hint: None })
    }
}

impl Display for Tag {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::If(value) => write!(f, "if {value}"),
            Self::Elif(value) => write!(f, "elif {value}"),
            Self::Else => f.write_str("else"),
            Self::EndIf => f.write_str("endif"),
            Self::For { names, of, when } => {
                // `if` behind a list is the loop's own.
                let choice = matches!(of, Expr::Choice { .. });
                let (left, right) = if choice { ("(", ")") } else { ("", "") };
                write!(f, "for {} in {left}{of}{right}", names.join(", "))?;
                when.iter().try_for_each(|when| write!(f, " if {when}"))
            }
            Self::EndFor => f.write_str("endfor"),
            Self::Set { name, value } => write!(f, "set {name} = {value}"),
            Self::Break => f.write_str("break"),
            Self::Continue => f.write_str("continue"),
        }
    }
}
