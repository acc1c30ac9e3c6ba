//! Reads templates and expressions in all their spellings.

use serde_json::Value;

use super::filters::{self, TESTS};
use super::{Expr, Fault, Op, Piece, Template};
use crate::diagnostic::{Code, nearest};

/// How deep an expression may nest.
const DEPTH_MAX: usize = 32;

/// Reads text with expressions in it.
pub(crate) fn template(text: &str, is_step: &dyn Fn(&str) -> bool) -> Result<Template, Fault> {
    let mut pieces = Vec::new();
    let mut parser = Parser { text, at: 0, depth: 0, is_step };
    while let Some(ahead) = parser.rest().find('{') {
        let begin = parser.at + ahead;
        let tail = text.get(begin..).unwrap_or_default();
        if tail.starts_with("{%") || tail.starts_with("{#") {
            let message = "only `{{ … }}` can stand in a template, not blocks or comments";
            let hint = "use filters, or a `transform` step in front of this one";
            return Err(Fault {
                at: begin,
                code: Code::Unsupported,
                message: message.into(),
                hint: Some(hint.into()),
            });
        }
        let open = if tail.starts_with("{{") { begin } else { begin + 1 };
        push(&mut pieces, text.get(parser.at..open).unwrap_or_default());
        parser.at = open;
        if open == begin {
            pieces.push(parser.braces()?);
        }
    }
    push(&mut pieces, parser.rest());
    Ok(Template { pieces })
}

/// Reads one expression that fills the whole text, with or without braces.
pub(crate) fn expression(text: &str, is_step: &dyn Fn(&str) -> bool) -> Result<Expr, Fault> {
    let mut parser = Parser { text, at: 0, depth: 0, is_step };
    let value = parser.choice()?;
    parser.blanks();
    if parser.rest().is_empty() { Ok(value) } else { Err(parser.fault("this cannot follow here")) }
}

fn push(pieces: &mut Vec<Piece>, text: &str) {
    match pieces.last_mut() {
        _ if text.is_empty() => {}
        Some(Piece::Text(before)) => before.push_str(text),
        _ => pieces.push(Piece::Text(text.to_owned())),
    }
}

pub(super) struct Parser<'t> {
    pub(super) text: &'t str,
    pub(super) at: usize,
    depth: usize,
    pub(super) is_step: &'t dyn Fn(&str) -> bool,
}

impl<'t> Parser<'t> {
    pub(super) fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub(super) fn fault(&self, message: impl Into<String>) -> Fault {
        Fault { at: self.at, code: Code::Malformed, message: message.into(), hint: None }
    }

    pub(super) fn blanks(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    /// Takes a sign, if it is next.
    pub(super) fn sign(&mut self, sign: &str) -> bool {
        self.blanks();
        let found = self.rest().starts_with(sign);
        self.at += if found { sign.len() } else { 0 };
        found
    }

    /// Takes a word, if it is next.
    fn word(&mut self, word: &str) -> bool {
        self.blanks();
        let found = run(self.rest(), is_letter) == word;
        self.at += if found { word.len() } else { 0 };
        found
    }

    pub(super) fn expect(&mut self, sign: &str) -> Result<(), Fault> {
        if self.sign(sign) {
            return Ok(());
        }
        Err(self.fault(format!("`{sign}` should stand here")))
    }

    /// An expression with its braces.
    fn braces(&mut self) -> Result<Piece, Fault> {
        let open = self.at;
        self.at += 2;
        let before = self.rest().starts_with("- ");
        self.at += usize::from(before);
        let value = self.choice()?;
        let behind = self.sign("-");
        if !self.sign("}}") {
            let at = self.at.min(self.text.len());
            let closed = self.text.get(open..).is_some_and(|text| text.contains("}}"));
            let message = if closed { "this cannot follow here" } else { "`{{` is not closed" };
            let at = if closed { at } else { open };
            return Err(Fault { at, code: Code::Malformed, message: message.into(), hint: None });
        }
        Ok(Piece::Value { value, trims: (before, behind) })
    }

    pub(super) fn choice(&mut self) -> Result<Expr, Fault> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            let message = format!("the expression nests deeper than {DEPTH_MAX} levels");
            return Err(Fault { code: Code::TooDeep, ..self.fault(message) });
        }
        let then = self.or()?;
        let value = if self.word("if") {
            let when = Box::new(self.or()?);
            if !self.word("else") {
                return Err(self.fault("`else` should stand here"));
            }
            Expr::Choice { then: Box::new(then), when, otherwise: Box::new(self.choice()?) }
        } else {
            then
        };
        self.depth -= 1;
        Ok(value)
    }

    fn or(&mut self) -> Result<Expr, Fault> {
        let mut left = self.and()?;
        while self.word("or") || self.sign("||") {
            left = binary(Op::Or, left, self.and()?);
        }
        Ok(left)
    }

    fn and(&mut self) -> Result<Expr, Fault> {
        let mut left = self.not()?;
        while self.word("and") || self.sign("&&") {
            left = binary(Op::And, left, self.not()?);
        }
        Ok(left)
    }

    fn not(&mut self) -> Result<Expr, Fault> {
        let mut count = 0;
        while self.word("not") || (!self.rest().starts_with("!=") && self.sign("!")) {
            count += 1;
        }
        let value = self.comparison()?;
        Ok((0..count % 2).fold(value, |value, _| Expr::Not(Box::new(value))))
    }

    fn comparison(&mut self) -> Result<Expr, Fault> {
        const SIGNS: [(&str, Op); 6] = [
            ("==", Op::Equal),
            ("!=", Op::Unequal),
            ("<=", Op::LessEqual),
            (">=", Op::MoreEqual),
            ("<", Op::Less),
            (">", Op::More),
        ];
        let left = self.sum()?;
        for (sign, op) in SIGNS {
            if self.sign(sign) {
                return Ok(binary(op, left, self.sum()?));
            }
        }
        if self.word("in") {
            return Ok(binary(Op::In, left, self.sum()?));
        }
        if self.word("is") {
            return self.test(left);
        }
        let before = self.at;
        if self.word("not") {
            if self.word("in") {
                return Ok(binary(Op::NotIn, left, self.sum()?));
            }
            self.at = before;
        }
        Ok(left)
    }

    fn test(&mut self, of: Expr) -> Result<Expr, Fault> {
        let negated = self.word("not");
        self.blanks();
        let name = run(self.rest(), is_letter);
        if !TESTS.contains(&name) {
            let hint = nearest(name, TESTS.iter().copied());
            let hint = hint.map(|name| format!("did you mean `{name}`?"));
            let message = format!("there is no test `{name}`");
            return Err(Fault { at: self.at, code: Code::UnknownName, message, hint });
        }
        self.at += name.len();
        Ok(Expr::Test { of: Box::new(of), name: name.to_owned(), negated })
    }

    fn sum(&mut self) -> Result<Expr, Fault> {
        let mut left = self.joined()?;
        loop {
            self.blanks();
            // `-}}` closes an expression.
            let closing =
                self.rest().strip_prefix('-').is_some_and(|s| s.trim_start().starts_with("}}"));
            if self.sign("+") {
                left = binary(Op::Plus, left, self.joined()?);
            } else if !closing && self.sign("-") {
                left = binary(Op::Minus, left, self.joined()?);
            } else {
                return Ok(left);
            }
        }
    }

    fn joined(&mut self) -> Result<Expr, Fault> {
        let mut left = self.product()?;
        while self.sign("~") {
            left = binary(Op::Joined, left, self.product()?);
        }
        Ok(left)
    }

    fn product(&mut self) -> Result<Expr, Fault> {
        let mut left = self.sized()?;
        loop {
            let op = if self.sign("*") {
                Op::Times
            } else if self.sign("//") {
                Op::DividedWhole
            } else if self.sign("/") {
                Op::Divided
            } else if self.sign("%") {
                Op::Remainder
            } else {
                return Ok(left);
            };
            left = binary(op, left, self.sized()?);
        }
    }

    /// A value with its sign and filters.
    fn sized(&mut self) -> Result<Expr, Fault> {
        let negative = self.sign("-");
        let value = self.path()?;
        let value = match (negative, value) {
            (false, value) => value,
            (true, Expr::Literal(Value::Number(number))) => Expr::Literal(negated(&number)),
            (true, value) => Expr::Negated(Box::new(value)),
        };
        self.filtered(value)
    }

    fn filtered(&mut self, mut value: Expr) -> Result<Expr, Fault> {
        loop {
            self.blanks();
            if self.rest().starts_with("||") || !self.sign("|") {
                return Ok(value);
            }
            self.blanks();
            let at = self.at;
            let name = run(self.rest(), is_letter);
            if name.is_empty() {
                return Err(self.fault("the name of a filter should stand here"));
            }
            self.at += name.len();
            let arguments = if self.rest().starts_with('(') {
                self.at += 1;
                self.list(")")?
            } else {
                self.spaced()?
            };
            let name = filters::canonical(name).to_owned();
            value = Expr::Filter { of: Box::new(value), name, at, arguments };
        }
    }

    /// Arguments with blanks between, as in `truncate 80`.
    fn spaced(&mut self) -> Result<Vec<Expr>, Fault> {
        let mut arguments = Vec::new();
        loop {
            self.blanks();
            let rest = self.rest();
            let begins = |c: char| c.is_ascii_digit() || matches!(c, '"' | '\'' | '.');
            if !rest.starts_with(begins) {
                return Ok(arguments);
            }
            arguments.push(self.path()?);
        }
    }

    /// Expressions with commas between, up to a sign that closes them.
    pub(super) fn list(&mut self, close: &str) -> Result<Vec<Expr>, Fault> {
        let mut items = Vec::new();
        while !self.sign(close) {
            if !items.is_empty() {
                self.expect(",")?;
                if self.sign(close) {
                    break;
                }
            }
            items.push(self.choice()?);
        }
        Ok(items)
    }
}

fn binary(op: Op, left: Expr, right: Expr) -> Expr {
    Expr::Binary { op, left: Box::new(left), right: Box::new(right) }
}

fn negated(number: &serde_json::Number) -> Value {
    match number.as_i64() {
        Some(whole) => Value::from(-whole),
        None => Value::from(-number.as_f64().unwrap_or_default()),
    }
}

pub(super) const fn is_letter(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// What of a text is made of certain characters.
pub(super) fn run(text: &str, is_part: impl Fn(char) -> bool) -> &str {
    let end = text.find(|c| !is_part(c)).unwrap_or(text.len());
    text.get(..end).unwrap_or_default()
}
