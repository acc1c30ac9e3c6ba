//! Reads templates and expressions in all their spellings.

use serde_json::Value;

use super::filters::{self, TESTS};
use super::{Call, Expr, Fault, FaultKind, Op, Piece, Template};

/// How deep an expression may nest.
const DEPTH_MAX: usize = 32;

/// How many signs an expression may have. Each may hold all that stands before it, so this
/// too is a depth.
const LINKS_MAX: usize = 400;

/// Reads text with expressions in it. The function says what is the name of a step.
pub fn template(text: &str, is_step: &dyn Fn(&str) -> bool) -> Result<Template, Fault> {
    let mut pieces = Vec::new();
    let mut parser = Parser::new(text, is_step);
    let mut open = Vec::new();
    while let Some(ahead) = parser.rest().find('{') {
        let begin = parser.at + ahead;
        let tail = text.get(begin..).unwrap_or_default();
        let (value, tag) = (tail.starts_with("{{"), tail.starts_with("{%"));
        let end = if value || tag { begin } else { begin + 1 };
        push(&mut pieces, text.get(parser.at..end).unwrap_or_default());
        parser.at = end;
        if value {
            pieces.push(parser.braces()?);
        } else if tag {
            pieces.push(parser.tag(&mut open)?);
        }
    }
    if let Some((name, at)) = open.pop() {
        return Err(Fault { at, ..parser.fault(format!("`{{% {name} %}}` is not ended")) });
    }
    push(&mut pieces, parser.rest());
    Ok(Template { pieces })
}

/// Reads one expression that fills the whole text, with or without braces.
pub fn expression(text: &str, is_step: &dyn Fn(&str) -> bool) -> Result<Expr, Fault> {
    let mut parser = Parser::new(text, is_step);
    let value = parser.choice()?;
    parser.blanks();
    if parser.rest().is_empty() { Ok(value) } else { Err(parser.stray()) }
}

fn push(pieces: &mut Vec<Piece>, text: &str) {
    match pieces.last_mut() {
        _ if text.is_empty() => {}
        Some(Piece::Text(before)) => before.push_str(text),
        _ => pieces.push(Piece::Text(text.to_owned())),
    }
}

/// The arguments of a filter: without a name, and with one.
type Arguments = (Vec<Expr>, Vec<(String, Expr)>);

pub(super) struct Parser<'t> {
    pub(super) text: &'t str,
    pub(super) at: usize,
    depth: usize,
    links: usize,
    pub(super) is_step: &'t dyn Fn(&str) -> bool,
}

impl<'t> Parser<'t> {
    pub(super) fn new(text: &'t str, is_step: &'t dyn Fn(&str) -> bool) -> Self {
        Self { text, at: 0, depth: 0, links: 0, is_step }
    }

    pub(super) fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub(super) fn fault(&self, message: impl Into<String>) -> Fault {
        Fault { at: self.at, kind: FaultKind::Malformed, message: message.into(), hint: None }
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
    pub(super) fn word(&mut self, word: &str) -> bool {
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
        self.restart();
        let before = self.rest().starts_with("- ");
        self.at += usize::from(before);
        let value = self.choice()?;
        let behind = self.close(open, ("{{", "}}"))?;
        Ok(Piece::Value { value, trims: (before, behind) })
    }

    /// The end of something in braces, and whether blanks behind it are left out.
    pub(super) fn close(&mut self, open: usize, signs: (&str, &str)) -> Result<bool, Fault> {
        let behind = self.sign("-");
        if self.sign(signs.1) {
            return Ok(behind);
        }
        let closed = self.text.get(open..).is_some_and(|text| text.contains(signs.1));
        if closed {
            return Err(self.stray());
        }
        Err(Fault { at: open, ..self.fault(format!("`{}` is not closed", signs.0)) })
    }

    /// Something stands where an expression is over.
    fn stray(&self) -> Fault {
        let compares = self.rest().trim_start().starts_with('=');
        let hint = compares.then(|| "write `==` to compare".to_owned());
        Fault { hint, ..self.fault("this cannot follow here") }
    }

    /// Begins another expression of the same text.
    pub(super) const fn restart(&mut self) {
        self.links = 0;
    }

    /// Counts a sign that holds what stands before it.
    pub(super) fn link(&mut self) -> Result<(), Fault> {
        self.links += 1;
        if self.links <= LINKS_MAX {
            return Ok(());
        }
        let message = format!("the expression has more than {LINKS_MAX} signs and filters");
        Err(Fault { kind: FaultKind::TooDeep, ..self.fault(message) })
    }

    pub(super) fn choice(&mut self) -> Result<Expr, Fault> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            let message = format!("the expression nests deeper than {DEPTH_MAX} levels");
            return Err(Fault { kind: FaultKind::TooDeep, ..self.fault(message) });
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

    pub(super) fn or(&mut self) -> Result<Expr, Fault> {
        let mut left = self.and()?;
        while self.word("or") || self.sign("||") {
            left = self.binary(Op::Or, left, Self::and)?;
        }
        Ok(left)
    }

    fn and(&mut self) -> Result<Expr, Fault> {
        let mut left = self.not()?;
        while self.word("and") || self.sign("&&") {
            left = self.binary(Op::And, left, Self::not)?;
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

    /// Two values with a sign between, of which the right one is still to be read.
    fn binary(
        &mut self,
        op: Op,
        left: Expr,
        right: fn(&mut Self) -> Result<Expr, Fault>,
    ) -> Result<Expr, Fault> {
        self.link()?;
        let right = Box::new(right(self)?);
        Ok(Expr::Binary { op, left: Box::new(left), right })
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
                return self.binary(op, left, Self::sum);
            }
        }
        if self.word("in") {
            return self.binary(Op::In, left, Self::sum);
        }
        if self.word("is") {
            return self.test(left);
        }
        let before = self.at;
        if self.word("not") {
            if self.word("in") {
                return self.binary(Op::NotIn, left, Self::sum);
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
            let kind = FaultKind::Unknown { given: name.to_owned(), known: TESTS.to_vec() };
            return Err(Fault { kind, ..self.fault(format!("there is no test `{name}`")) });
        }
        self.at += name.len();
        Ok(Expr::Test { of: Box::new(of), name: name.to_owned(), negated })
    }

    fn sum(&mut self) -> Result<Expr, Fault> {
        let mut left = self.joined()?;
        loop {
            self.blanks();
            // `-}}` and `-%}` close an expression.
            let closing = self
                .rest()
                .strip_prefix('-')
                .is_some_and(|rest| rest.trim_start().starts_with("}}") || rest.starts_with("%}"));
            if self.sign("+") {
                left = self.binary(Op::Plus, left, Self::joined)?;
            } else if !closing && self.sign("-") {
                left = self.binary(Op::Minus, left, Self::joined)?;
            } else {
                return Ok(left);
            }
        }
    }

    fn joined(&mut self) -> Result<Expr, Fault> {
        let mut left = self.product()?;
        while self.sign("~") {
            left = self.binary(Op::Joined, left, Self::product)?;
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
            } else if !self.rest().starts_with("%}") && self.sign("%") {
                Op::Remainder
            } else {
                return Ok(left);
            };
            left = self.binary(op, left, Self::sized)?;
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
            self.link()?;
            let (arguments, named) = if self.rest().starts_with('(') {
                self.at += 1;
                self.arguments()?
            } else {
                (self.spaced()?, Vec::new())
            };
            let name = filters::canonical(name).to_owned();
            let call = Call { name, at, arguments, named };
            value = Expr::Filter { of: Box::new(value), call };
        }
    }

    /// Arguments with commas between; those with a name stand behind the others.
    pub(super) fn arguments(&mut self) -> Result<Arguments, Fault> {
        let (mut arguments, mut named) = Arguments::default();
        while !self.sign(")") {
            if !(arguments.is_empty() && named.is_empty()) {
                self.expect(",")?;
                if self.sign(")") {
                    break;
                }
            }
            self.blanks();
            let name = run(self.rest(), is_letter);
            let behind = self.rest().get(name.len()..).unwrap_or_default().trim_start();
            if !name.is_empty() && behind.starts_with('=') && !behind.starts_with("==") {
                self.at += name.len();
                self.expect("=")?;
                named.push((name.to_owned(), self.choice()?));
            } else if named.is_empty() {
                arguments.push(self.choice()?);
            } else {
                return Err(self.fault("an argument with a name should stand here"));
            }
        }
        Ok((arguments, named))
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
