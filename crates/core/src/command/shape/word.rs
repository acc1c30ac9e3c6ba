//! Words of a line: quotes, and expansions that only bring a text.

use super::{DEPTH_MAX, Ends, Read, Shape, UNREADABLE, is_name};

/// What stands in the text of a word for something that is expanded.
pub(super) const EXPANDED: char = '\0';

/// A word.
#[derive(Debug)]
pub(super) struct ShapeWord<'a> {
    /// Its text without quotes, with [`EXPANDED`] where something is expanded.
    pub(super) text: String,
    /// It as it is written.
    pub(super) raw: &'a str,
    pub(super) at: usize,
    /// Whether it holds what a command writes.
    pub(super) has_output: bool,
    /// Whether something of it becomes several words, or names of files.
    pub(super) splits: bool,
    /// Whether its letters are written as numbers, as in `$'\x65'`.
    pub(super) is_spelled: bool,
}

impl ShapeWord<'_> {
    /// Whether all of it is written out.
    pub(super) fn is_literal(&self) -> bool {
        !self.text.contains(EXPANDED) && !self.splits && !self.is_spelled
    }
}

impl<'a> Shape<'a> {
    pub(super) fn word(&mut self) -> Read<ShapeWord<'a>> {
        let at = self.at;
        let (text, raw) = (String::new(), "");
        let mut word =
            ShapeWord { text, raw, at, has_output: false, splits: false, is_spelled: false };
        while let Some(next) = self.peek() {
            match next {
                '\'' => self.single(&mut word)?,
                '"' => {
                    self.at += 1;
                    self.double(&mut word)?;
                }
                '\\' => {
                    self.at += 1;
                    self.escaped(&mut word);
                }
                '$' => self.dollar(&mut word, false)?,
                '`' => {
                    word.splits = true;
                    self.ticks(&mut word)?;
                }
                '<' | '>' if self.rest().get(1..2) == Some("(") => {
                    return self.odd("substitutes a process");
                }
                '\r' => return self.odd("has a carriage return"),
                ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>' => break,
                '{' if self.is_brace() => return self.odd("expands braces"),
                _ => {
                    word.splits |= "*?[".contains(next) && word.text != "[" && !self.is_alone();
                    word.text.push(next);
                    self.at += next.len_utf8();
                }
            }
        }
        if self.at == at {
            return self.odd(UNREADABLE);
        }
        word.raw = self.text.get(at..self.at).unwrap_or_default();
        Ok(word)
    }

    /// Whether a bracket stands by itself, as that of `[` does.
    fn is_alone(&self) -> bool {
        let behind = self.rest().get(1..2);
        let before = self.at.checked_sub(1).and_then(|at| self.text.get(at..self.at));
        let is_blank = |text: Option<&str>| text.is_none_or(|text| text.trim().is_empty());
        self.peek() == Some('[') && is_blank(behind) && is_blank(before)
    }

    /// Whether braces stand here that become several words.
    fn is_brace(&self) -> bool {
        let rest = self.rest();
        let end = rest.find(|c: char| c.is_whitespace() || ";&|<>".contains(c));
        let word = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
        word.contains('}') && (word.contains(',') || word.contains(".."))
    }

    fn single(&mut self, word: &mut ShapeWord<'_>) -> Read<()> {
        self.at += 1;
        let Some(end) = self.rest().find('\'') else { return self.odd(UNREADABLE) };
        word.text.push_str(self.rest().get(..end).unwrap_or_default());
        self.at += end + 1;
        Ok(())
    }

    fn escaped(&mut self, word: &mut ShapeWord<'_>) {
        if let Some(next) = self.peek() {
            self.at += next.len_utf8();
            word.text.extend(Some(next).filter(|next| *next != '\n'));
        }
    }

    fn double(&mut self, word: &mut ShapeWord<'_>) -> Read<()> {
        loop {
            match self.peek() {
                None => return self.odd(UNREADABLE),
                Some('"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(next) => self.quoted(word, next)?,
            }
        }
    }

    /// A letter of a text in which only expansions count.
    fn quoted(&mut self, word: &mut ShapeWord<'_>, next: char) -> Read<()> {
        match next {
            '\\' => {
                self.at += 1;
                self.escaped(word);
            }
            '$' => self.dollar(word, true)?,
            '`' => self.ticks(word)?,
            _ => {
                word.text.push(next);
                self.at += next.len_utf8();
            }
        }
        Ok(())
    }

    /// The text of a here-document.
    pub(super) fn document_text(&mut self) -> Read<()> {
        let mut word = ShapeWord {
            text: String::new(),
            raw: "",
            at: 0,
            has_output: false,
            splits: false,
            is_spelled: false,
        };
        while let Some(next) = self.peek() {
            self.quoted(&mut word, next)?;
        }
        Ok(())
    }

    /// What `$` begins.
    fn dollar(&mut self, word: &mut ShapeWord<'_>, is_quoted: bool) -> Read<()> {
        let rest = self.rest().get(1..).unwrap_or_default();
        let next = rest.chars().next();
        match next {
            Some('(') if rest.starts_with("((") => self.computed()?,
            Some('(') => {
                self.at += 2;
                word.has_output = true;
                let documents = std::mem::take(&mut self.documents);
                self.nested(|shape| shape.list(&Ends::Parenthesis).map(drop))?;
                // Its text would stand behind the parenthesis.
                if !self.documents.is_empty() {
                    return self.odd(UNREADABLE);
                }
                self.documents = documents;
            }
            Some('{') => self.nested(|shape| shape.braced(word))?,
            Some('[') => return self.odd("computes with `$[`"),
            Some('\'') if !is_quoted => {
                self.at += 1;
                let begun = self.at;
                self.single(word)?;
                word.is_spelled = true;
                if self.text.get(begun..self.at).is_some_and(|text| text.ends_with("\\'")) {
                    return self.odd("escapes a quote in `$'…'`");
                }
                return Ok(());
            }
            Some('"') if !is_quoted => return self.odd("translates a text with `$\"`"),
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                self.at += 1;
                let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
                self.at += self.rest().find(|c| !is_letter(c)).unwrap_or(self.rest().len());
            }
            Some(c) if c.is_ascii_digit() || "@*#?$!-".contains(c) => self.at += 2,
            _ => {
                self.at += 1;
                word.text.push('$');
                return Ok(());
            }
        }
        // Numbers stay one word.
        let is_number = matches!(next, Some('#' | '?' | '$' | '!')) || rest.starts_with("((");
        word.splits |= !is_quoted && !is_number;
        word.text.push(EXPANDED);
        Ok(())
    }

    /// `$((…))` of numbers and names. Which names are data is followed elsewhere.
    fn computed(&mut self) -> Read<()> {
        let begun = self.at;
        let rest = self.rest().get(3..).unwrap_or_default();
        let Some(end) = rest.find("))") else { return self.odd(UNREADABLE) };
        let inner = rest.get(..end).unwrap_or_default();
        let is_usual =
            |c: char| c.is_ascii_alphanumeric() || " \t_+-*/%<>=!&|^~?:,($)#{}".contains(c);
        let opened = inner.matches('(').count();
        let is_closed = opened == inner.matches(')').count();
        // `#` only counts behind `$`, and what is in braces is a name.
        let is_plain = inner.split('$').skip(1).all(|part| {
            let name = part
                .strip_prefix('{')
                .map_or(part, |braced| braced.split_once('}').map_or("\0", |(name, _)| name));
            name.starts_with(|c: char| c.is_ascii_alphanumeric() || "_#@?".contains(c))
                && (!part.starts_with('{') || is_name(name) || name == "#")
        });
        let signs = inner.matches('#').count();
        let is_sign = signs == inner.matches("$#").count() + inner.matches("${#}").count();
        if !inner.chars().all(is_usual) || !is_closed || !is_plain || !is_sign {
            return self.odd("computes with more than numbers and names");
        }
        self.at = begun + 3 + end + 2;
        Ok(())
    }

    /// `${NAME}`, and what changes only the text of it.
    fn braced(&mut self, word: &mut ShapeWord<'_>) -> Read<()> {
        let begun = self.at;
        self.at += 2;
        if self.rest().starts_with('!') && !self.rest().starts_with("!}") {
            self.at = begun;
            return self.odd("expands a variable that another names, with `${!`");
        }
        if self.rest().starts_with('#') && !self.rest().starts_with("#}") {
            self.at += 1;
        }
        let rest = self.rest();
        let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let length = match rest.chars().next() {
            Some(c) if "@*#?$!-".contains(c) => 1,
            _ => rest.find(|c| !is_letter(c)).unwrap_or(rest.len()),
        };
        if length == 0 {
            return self.odd(UNREADABLE);
        }
        self.at += length;
        let rest = self.rest();
        let (what, skipped) = match rest.as_bytes() {
            [b'}', ..] => {
                self.at += 1;
                return Ok(());
            }
            [b'[', ..] => ("uses a list", 0),
            [b'@', ..] => ("transforms a variable with `@`", 0),
            [b'=', ..] | [b':', b'=', ..] => ("assigns in an expansion, with `=`", 0),
            [b':', b'-' | b'+' | b'?', ..] => ("", 2),
            [b'-' | b'+' | b'?' | b'#' | b'%' | b'/' | b'^' | b',', ..] => ("", 1),
            [b':', ..] => {
                let end = rest.find('}').unwrap_or(rest.len());
                let range = rest.get(..end).unwrap_or_default();
                match range.chars().all(|c| c.is_ascii_digit() || ": -".contains(c)) {
                    true => ("", 1),
                    false => ("computes in an expansion", 0),
                }
            }
            _ => (UNREADABLE, 0),
        };
        if !what.is_empty() {
            self.at = begun;
            return self.odd(what);
        }
        self.at += skipped;
        self.operand(word)
    }

    /// What stands behind the name in `${…}`.
    fn operand(&mut self, word: &mut ShapeWord<'_>) -> Read<()> {
        loop {
            match self.peek() {
                None => return self.odd(UNREADABLE),
                Some('}') => {
                    self.at += 1;
                    return Ok(());
                }
                Some('\'' | '"' | '\\' | '`') => return self.odd("quotes within an expansion"),
                Some('$') => self.dollar(word, true)?,
                Some(other) => self.at += other.len_utf8(),
            }
        }
    }

    /// The commands between two backticks.
    fn ticks(&mut self, word: &mut ShapeWord<'_>) -> Read<()> {
        self.at += 1;
        let Some(end) = self.rest().find('`') else { return self.odd(UNREADABLE) };
        let text = self.rest().get(..end).unwrap_or_default();
        if text.contains('\\') {
            return self.odd("escapes something between backticks");
        }
        if self.depth >= DEPTH_MAX {
            return self.odd("nests too deeply");
        }
        let mut inner = Shape { text, at: 0, depth: self.depth + 1, documents: Vec::new() };
        let read = inner.list(&Ends::Text);
        read.map_err(|odd| super::Odd { what: odd.what, at: self.at + odd.at })?;
        self.at += end + 1;
        word.has_output = true;
        word.text.push(EXPANDED);
        Ok(())
    }
}
