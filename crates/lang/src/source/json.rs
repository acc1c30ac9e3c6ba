//! Reads JSON with positions. Literals are left to `serde_json`.

use super::{DEPTH_MAX, Entries, Entry, Fault, Node, Position, Value, number, too_deep};
use crate::diagnostic::Code;

pub(super) fn read(text: &str) -> Result<Node, Fault> {
    let mut reader = Reader { text, offset: 0, at: Position::START };
    let node = reader.value(0)?;
    reader.blanks();
    match reader.peek() {
        None => Ok(node),
        Some(_) => Err(reader.unexpected("nothing more")),
    }
}

struct Reader<'a> {
    text: &'a str,
    offset: usize,
    at: Position,
}

impl<'a> Reader<'a> {
    fn value(&mut self, depth: usize) -> Result<Node, Fault> {
        self.blanks();
        let at = self.at;
        if depth > DEPTH_MAX {
            return Err(too_deep(at));
        }
        let value = match self.peek() {
            Some('{') => self.map(depth)?,
            Some('[') => self.list(depth)?,
            Some('"') => Value::Text(self.string()?),
            Some('-' | '0'..='9') => {
                let literal =
                    self.while_in(|c| matches!(c, '0'..='9' | '+' | '-' | '.' | 'e' | 'E'));
                Value::Number(number(literal, at)?)
            }
            Some('a'..='z') => match self.while_in(|c| c.is_ascii_alphanumeric()) {
                "null" => Value::Null,
                "true" => Value::Flag(true),
                "false" => Value::Flag(false),
                word => {
                    let message = format!("`{word}` is not a JSON value");
                    return Err(Fault::new(at, Code::Malformed, message).hint("put text in quotes"));
                }
            },
            _ => return Err(self.unexpected("a value")),
        };
        Ok(Node { at, value })
    }

    fn list(&mut self, depth: usize) -> Result<Value, Fault> {
        self.step();
        let mut items = Vec::new();
        if self.close(']') {
            return Ok(Value::List(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            if self.close(']') {
                return Ok(Value::List(items));
            }
            self.take(',', "`,` or `]`")?;
        }
    }

    fn map(&mut self, depth: usize) -> Result<Value, Fault> {
        self.step();
        let mut entries = Entries::default();
        if self.close('}') {
            return Ok(Value::Map(entries.list));
        }
        loop {
            self.blanks();
            let key_at = self.at;
            if self.peek() != Some('"') {
                return Err(self.unexpected("a key in quotes"));
            }
            let key = self.string()?;
            self.blanks();
            self.take(':', "`:`")?;
            let node = self.value(depth + 1)?;
            entries.insert(Entry { key, key_at, node })?;
            if self.close('}') {
                return Ok(Value::Map(entries.list));
            }
            self.take(',', "`,` or `}`")?;
        }
    }

    fn string(&mut self) -> Result<String, Fault> {
        let (start, at) = (self.offset, self.at);
        self.step();
        loop {
            match self.step() {
                Some('"') => break,
                Some('\\') => {
                    self.step();
                }
                Some('\n') | None => {
                    return Err(Fault::new(
                        at,
                        Code::Malformed,
                        "the text is not closed with `\"`",
                    ));
                }
                Some(_) => {}
            }
        }
        let literal = self.text.get(start..self.offset).unwrap_or_default();
        serde_json::from_str(literal).map_err(|_| {
            Fault::new(at, Code::Malformed, "the text has an escape that JSON has not")
        })
    }

    fn close(&mut self, bracket: char) -> bool {
        self.blanks();
        let closes = self.peek() == Some(bracket);
        if closes {
            self.step();
        }
        closes
    }

    fn take(&mut self, wanted: char, what: &str) -> Result<(), Fault> {
        if self.peek() == Some(wanted) {
            self.step();
            Ok(())
        } else {
            Err(self.unexpected(what))
        }
    }

    fn blanks(&mut self) {
        self.while_in(|c| matches!(c, ' ' | '\t' | '\n' | '\r'));
    }

    fn while_in(&mut self, belongs: impl Fn(char) -> bool) -> &'a str {
        let start = self.offset;
        while self.peek().is_some_and(&belongs) {
            self.step();
        }
        self.text.get(start..self.offset).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.text.get(self.offset..)?.chars().next()
    }

    fn step(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.offset += next.len_utf8();
        if next == '\n' {
            self.at = Position { line: self.at.line + 1, column: 1 };
        } else {
            self.at.column += 1;
        }
        Some(next)
    }

    fn unexpected(&self, wanted: &str) -> Fault {
        let message = match self.peek() {
            None => format!("the text ends where {wanted} should be"),
            Some(found) => format!("`{found}` stands where {wanted} should be"),
        };
        let fault = Fault::new(self.at, Code::Malformed, message);
        match self.peek() {
            Some('}' | ']') => fault.hint("is there a `,` too many in front of it?"),
            Some('/' | '#') => fault.hint("JSON has no comments; YAML has"),
            _ => fault,
        }
    }
}
