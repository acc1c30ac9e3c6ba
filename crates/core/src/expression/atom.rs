//! Reads single values: constants, and paths into what a run knows.

use serde_json::Value;

use super::parse::{Parser, is_letter, run};
use super::{Call, Expr, Fault, FaultKind};

/// What another spelling begins with, and what it means.
const ROOTS: [(&str, &str); 8] = [
    (".Env", "env"),
    (".Event", "event"),
    (".Index", "index"),
    (".Item", "item"),
    (".Node", "steps"),
    (".Run", "run"),
    (".Secret", "secret"),
    (".Trigger", "event"),
];

/// The names that a path begins with.
const NAMES: [&str; 5] = ["env", "event", "run", "secret", "steps"];

/// The functions there are, for a worker process to call.
const FUNCTIONS: &[&str] = &["range"];

impl Parser<'_> {
    /// A value, and what is taken out of it.
    pub(super) fn path(&mut self) -> Result<Expr, Fault> {
        let mut value = self.primary()?;
        loop {
            let rest = self.rest();
            if rest.starts_with('.')
                && rest.get(1..).is_some_and(|rest| rest.starts_with(is_letter))
            {
                self.at += 1;
                let at = self.at;
                let name = self.name(matches!(&value, Expr::Name { name, .. } if name == "steps"));
                value = member(value, name, at);
            } else if rest.starts_with('[') {
                self.at += 1;
                let at = self.at;
                let index = self.choice()?;
                self.expect("]")?;
                value = match index {
                    Expr::Literal(Value::String(name)) => member(value, name, at),
                    index => Expr::Item { of: Box::new(value), index: Box::new(index) },
                };
            } else if rest.starts_with('(') {
                value = self.function(value)?;
            } else {
                return Ok(value);
            }
            self.link()?;
        }
    }

    /// A call of a function; only few have a name.
    fn function(&mut self, of: Expr) -> Result<Expr, Fault> {
        let Expr::Name { name, at } = of else {
            let message = "only functions can be called, and values have none";
            return Err(Fault { kind: FaultKind::Unsupported, ..self.fault(message) });
        };
        if !FUNCTIONS.contains(&name.as_str()) {
            let message = format!("there is no function `{name}`");
            let kind = FaultKind::Unknown { given: name, known: FUNCTIONS.to_vec() };
            return Err(Fault { at, kind, message, hint: None });
        }
        self.at += 1;
        let (arguments, named) = self.arguments()?;
        Ok(Expr::Function(Call { name, at, arguments, named }))
    }

    /// A name; that of a step may have hyphens in it.
    fn name(&mut self, is_step: bool) -> String {
        let plain = run(self.rest(), is_letter);
        let long = run(self.rest(), |c| is_letter(c) || c == '-').trim_end_matches('-');
        let name = if is_step && (self.is_step)(long) { long } else { plain };
        self.at += name.len();
        name.to_owned()
    }

    fn primary(&mut self) -> Result<Expr, Fault> {
        self.blanks();
        let rest = self.rest();
        let at = self.at;
        match rest.chars().next() {
            Some('(') => {
                self.at += 1;
                let value = self.choice()?;
                self.expect(")").map(|()| value)
            }
            Some('{') if rest.starts_with("{{") => {
                self.at += 2;
                let value = self.choice()?;
                self.expect("}}").map(|()| value)
            }
            Some('{') => self.map(),
            Some('[') => {
                self.at += 1;
                self.list("]").map(Expr::List)
            }
            Some(quote @ ('"' | '\'')) => self.string(quote),
            Some(c) if c.is_ascii_digit() => self.number(),
            Some('.') => self.dotted(),
            Some(c) if is_letter(c) => {
                let name = self.name(true);
                Ok(self.named(name, at))
            }
            _ => Err(self.fault("a value should stand here")),
        }
    }

    fn map(&mut self) -> Result<Expr, Fault> {
        self.at += 1;
        let mut entries = Vec::new();
        while !self.sign("}") {
            if !entries.is_empty() {
                self.expect(",")?;
            }
            let key = self.choice()?;
            self.expect(":")?;
            entries.push((key, self.choice()?));
        }
        Ok(Expr::Map(entries))
    }

    fn number(&mut self) -> Result<Expr, Fault> {
        let digits = |at: usize| {
            run(self.rest().get(at..).unwrap_or_default(), |c| c.is_ascii_digit()).len()
        };
        let sign = |at: usize, signs: &[u8]| {
            self.rest().as_bytes().get(at).is_some_and(|byte| signs.contains(byte))
        };
        let mut length = digits(0);
        if sign(length, b".") && digits(length + 1) > 0 {
            length += 1 + digits(length + 1);
        }
        if sign(length, b"eE") {
            let signed = length + 1 + usize::from(sign(length + 1, b"+-"));
            length = if digits(signed) > 0 { signed + digits(signed) } else { length };
        }
        let text = self.rest().get(..length).unwrap_or_default();
        let number = serde_json::from_str(text)
            .map_err(|_| self.fault(format!("`{text}` is not a number")))?;
        self.at += length;
        Ok(Expr::Literal(Value::Number(number)))
    }

    fn string(&mut self, quote: char) -> Result<Expr, Fault> {
        let mut text = String::new();
        let mut chars = self.rest().char_indices().skip(1);
        while let Some((place, c)) = chars.next() {
            match c {
                c if c == quote => {
                    self.at += place + 1;
                    return Ok(Expr::Literal(Value::String(text)));
                }
                '\\' => match chars.next().and_then(|(_, c)| escaped(c, &mut chars)) {
                    Some(c) => text.push(c),
                    None => {
                        let message =
                            "only `\\n`, `\\r`, `\\t`, `\\\\`, `\\u` and quotes are escaped";
                        return Err(self.fault(message));
                    }
                },
                c => text.push(c),
            }
        }
        Err(self.fault("the text is not closed"))
    }

    /// A path that begins with a dot, as in `.Node.fetch.json`.
    fn dotted(&mut self) -> Result<Expr, Fault> {
        self.at += 1;
        let at = self.at;
        let given = run(self.rest(), is_letter);
        let Some((_, root)) = ROOTS.iter().find(|(dotted, _)| dotted.get(1..) == Some(given))
        else {
            let given = format!(".{given}");
            let message = format!("there is nothing that `{given}` stands for");
            let known = ROOTS.iter().map(|(dotted, _)| *dotted).collect();
            let kind = FaultKind::Unknown { given, known };
            return Err(Fault { at, kind, message, hint: None });
        };
        self.at += given.len();
        let value = Expr::Name { name: (*root).to_owned(), at };
        if !matches!(*root, "event" | "run") || !self.rest().starts_with('.') {
            return Ok(value);
        }
        self.at += 1;
        let at = self.at;
        let name = snake(&self.name(false));
        Ok(member(value, name, at))
    }

    /// A word: a constant, something that a run knows, or a step.
    fn named(&mut self, name: String, at: usize) -> Expr {
        match name.as_str() {
            "true" | "True" => Expr::Literal(Value::Bool(true)),
            "false" | "False" => Expr::Literal(Value::Bool(false)),
            "none" | "None" | "null" => Expr::Literal(Value::Null),
            "trigger" => Expr::Name { name: "event".to_owned(), at },
            _ if !NAMES.contains(&name.as_str()) && (self.is_step)(&name) => {
                let rest = self.rest();
                if rest.strip_prefix(".output").is_some_and(|rest| !rest.starts_with(is_letter)) {
                    self.at += ".output".len();
                }
                member(Expr::Name { name: "steps".to_owned(), at }, name, at)
            }
            _ => Expr::Name { name, at },
        }
    }
}

fn member(of: Expr, name: String, at: usize) -> Expr {
    Expr::Member { of: Box::new(of), name, at }
}

/// What stands for an escaped character.
fn escaped(c: char, rest: &mut dyn Iterator<Item = (usize, char)>) -> Option<char> {
    match c {
        'b' => Some('\u{8}'),
        'f' => Some('\u{c}'),
        'n' => Some('\n'),
        'r' => Some('\r'),
        't' => Some('\t'),
        '\\' | '"' | '\'' | '/' => Some(c),
        'u' => {
            let digits: String = rest.take(4).map(|(_, c)| c).collect();
            u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32)
        }
        _ => None,
    }
}

/// `StartedAt` as `started_at`.
fn snake(name: &str) -> String {
    let mut snake = String::new();
    for (place, c) in name.chars().enumerate() {
        if c.is_ascii_uppercase() && place > 0 {
            snake.push('_');
        }
        snake.push(c.to_ascii_lowercase());
    }
    snake
}
