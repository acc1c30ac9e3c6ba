//! What a line for a shell may consist of, if it is given what somebody sent.
//!
//! Data is followed through a line (`walk/line.rs`) only as far as the line is understood. So the
//! line is held to a grammar here that is read exactly: commands with names that are written out,
//! plain expansions, pipes, redirections to files, assignments, `if`, `while`, `until`, `for`,
//! `case`, groups and substitutions. Whatever else stands there is refused and named: closed in
//! doubt, since what is not read is not followed.

mod builtin;
mod word;

use word::ShapeWord;

/// How deep groups and substitutions can stand in one another.
const DEPTH_MAX: usize = 16;

/// What a line does that data is not followed through.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unfollowed {
    /// What it does, as in "defines a function".
    pub what: &'static str,
    /// The text from there on, shortened.
    pub near: String,
}

/// The first thing in a line that data is not followed through.
pub(super) fn unfollowed(text: &str) -> Option<Unfollowed> {
    let mut shape = Shape { text, at: 0, depth: 0, documents: Vec::new() };
    let odd = shape.list(&Ends::Text).err()?;
    Some(Unfollowed { what: odd.what, near: near(text, odd.at) })
}

/// What stands at a place of a line, shortened.
fn near(text: &str, at: usize) -> String {
    const LENGTH_MAX: usize = 24;
    let line = text.get(at..).unwrap_or_default().lines().next().unwrap_or_default().trim();
    match line.char_indices().nth(LENGTH_MAX) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line.to_owned(),
    }
}

/// Something that is not read.
#[derive(Debug)]
struct Odd {
    what: &'static str,
    at: usize,
}

type Read<T> = Result<T, Odd>;

/// Where a list of commands ends.
enum Ends {
    /// With the text.
    Text,
    /// With a closing parenthesis.
    Parenthesis,
    /// With `;;` or `esac`.
    Case,
    /// With one of these words.
    Words(&'static [&'static str]),
}

struct Shape<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    /// The here-documents that begin on the next line.
    documents: Vec<Document>,
}

/// A here-document that is still to come.
struct Document {
    end: String,
    is_quoted: bool,
    strips: bool,
}

const UNREADABLE: &str = "cannot be read to its end";

/// Words that mean something to a shell where a command begins.
const RESERVED: [&str; 20] = [
    "!", "[[", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function",
    "if", "select", "then", "time", "until", "while", "{", "}",
];

impl<'a> Shape<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn eat(&mut self, wanted: &str) -> bool {
        let found = self.rest().starts_with(wanted);
        self.at += if found { wanted.len() } else { 0 };
        found
    }

    const fn odd<T>(&self, what: &'static str) -> Read<T> {
        Err(Odd { what, at: self.at })
    }

    fn blanks(&mut self) {
        while self.eat(" ") || self.eat("\t") || self.eat("\\\n") {}
        if self.peek() == Some('#') {
            self.at += self.rest().find('\n').unwrap_or(self.rest().len());
        }
    }

    /// Blanks and ends of lines, behind which here-documents stand.
    fn lines(&mut self) -> Read<()> {
        self.blanks();
        while self.eat("\n") {
            for document in std::mem::take(&mut self.documents) {
                self.document(&document)?;
            }
            self.blanks();
        }
        Ok(())
    }

    /// The word that stands here, as far as it is not quoted.
    fn bare(&self) -> &'a str {
        let ends = |c: char| c.is_whitespace() || ";&|()<>\"'\\$`".contains(c);
        let rest = self.rest();
        let end = rest.find(ends).unwrap_or(rest.len());
        let is_whole = rest.get(end..).unwrap_or_default().chars().next();
        match is_whole {
            Some('"' | '\'' | '\\' | '$' | '`') => "",
            _ => rest.get(..end).unwrap_or_default(),
        }
    }

    /// One of these words, which must stand here.
    fn reserved(&mut self, wanted: &str) -> Read<()> {
        match self.bare() == wanted {
            true => {
                self.at += wanted.len();
                Ok(())
            }
            false => self.odd(UNREADABLE),
        }
    }

    /// One level deeper.
    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Read<T>) -> Read<T> {
        if self.depth >= DEPTH_MAX {
            return self.odd("nests too deeply");
        }
        self.depth += 1;
        let done = read(self)?;
        self.depth -= 1;
        Ok(done)
    }

    /// Commands, and the word that ends them.
    fn list(&mut self, ends: &Ends) -> Read<&'a str> {
        loop {
            self.lines()?;
            let word = self.bare();
            match (self.peek(), ends) {
                (None, Ends::Text) => return Ok(""),
                (None, _) => return self.odd(UNREADABLE),
                (Some(')'), Ends::Parenthesis) => {
                    self.at += 1;
                    return Ok("");
                }
                (_, Ends::Case) if self.rest().starts_with(";;") || word == "esac" => {
                    self.eat(";;");
                    return Ok("");
                }
                (_, Ends::Words(words)) if words.contains(&word) => {
                    self.at += word.len();
                    return Ok(word);
                }
                _ => {}
            }
            self.pipeline()?;
            self.blanks();
            let is_end = matches!(self.peek(), None | Some('\n' | ')'));
            let is_case = self.rest().starts_with(";;") && matches!(ends, Ends::Case);
            let is_next = ["&&", "||", ";", "&"].iter().any(|next| !is_case && self.eat(next));
            if !(is_end || is_case || is_next) {
                return self.odd(UNREADABLE);
            }
        }
    }

    fn pipeline(&mut self) -> Read<()> {
        while matches!(self.bare(), "!" | "time") {
            self.at += self.bare().len();
            self.blanks();
        }
        loop {
            self.nested(Self::command)?;
            self.blanks();
            if self.rest().starts_with("||") || !self.eat("|") {
                return Ok(());
            }
            self.eat("&");
            self.lines()?;
        }
    }

    fn command(&mut self) -> Read<()> {
        if self.rest().starts_with("((") {
            return self.odd("computes with `((`");
        }
        let begun = self.at;
        let word = self.bare();
        if self.eat("(") {
            self.list(&Ends::Parenthesis)?;
            return self.redirections();
        }
        if !RESERVED.contains(&word) {
            return self.simple();
        }
        self.at += word.len();
        match word {
            "{" => drop(self.list(&Ends::Words(&["}"]))?),
            "if" => self.condition()?,
            "while" | "until" => {
                self.list(&Ends::Words(&["do"]))?;
                self.list(&Ends::Words(&["done"]))?;
            }
            "for" => self.each()?,
            "case" => self.case()?,
            "[[" => self.test()?,
            other => {
                self.at = begun;
                return self.odd(match other {
                    "function" => "defines a function",
                    "select" => "asks with `select`",
                    "coproc" => "starts a `coproc`",
                    _ => UNREADABLE,
                });
            }
        }
        self.redirections()
    }

    fn condition(&mut self) -> Read<()> {
        self.list(&Ends::Words(&["then"]))?;
        loop {
            match self.list(&Ends::Words(&["elif", "else", "fi"]))? {
                "elif" => drop(self.list(&Ends::Words(&["then"]))?),
                "else" => return self.list(&Ends::Words(&["fi"])).map(drop),
                _ => return Ok(()),
            }
        }
    }

    /// `for NAME in WORDS; do …; done`.
    fn each(&mut self) -> Read<()> {
        self.blanks();
        let begun = self.at;
        let name = self.bare();
        if !is_name(name) {
            return self.odd("computes with `for ((`");
        }
        self.settable(name)?;
        self.at += name.len();
        self.lines()?;
        if self.bare() != "in" {
            self.at = begun;
            return self.odd("loops over its arguments without `in`");
        }
        self.at += "in".len();
        loop {
            self.blanks();
            match self.peek() {
                Some(';' | '\n') => break,
                None => return self.odd(UNREADABLE),
                _ => drop(self.word()?),
            }
        }
        self.eat(";");
        self.lines()?;
        self.reserved("do")?;
        self.list(&Ends::Words(&["done"]))?;
        Ok(())
    }

    /// `case WORD in PATTERN) …;; esac`.
    fn case(&mut self) -> Read<()> {
        self.blanks();
        self.unsubstituted()?;
        self.lines()?;
        self.reserved("in")?;
        loop {
            self.lines()?;
            if self.bare() == "esac" {
                return self.reserved("esac");
            }
            self.eat("(");
            loop {
                self.blanks();
                self.unsubstituted()?;
                self.blanks();
                if self.eat(")") {
                    break;
                }
                if !self.eat("|") {
                    return self.odd(UNREADABLE);
                }
            }
            self.list(&Ends::Case)?;
        }
    }

    /// A word of a `case`, which runs nothing.
    fn unsubstituted(&mut self) -> Read<()> {
        let begun = self.at;
        let word = self.word()?;
        if word.has_output {
            self.at = begun;
            return self.odd("substitutes a command in a `case`");
        }
        Ok(())
    }

    /// `[[ … ]]` with operators that compare texts or look at files.
    fn test(&mut self) -> Read<()> {
        const OPERATORS: [&str; 12] =
            ["-n", "-z", "-f", "-e", "-d", "-s", "-r", "-w", "-x", "-L", "-h", "-a"];
        loop {
            self.lines()?;
            if self.bare() == "]]" {
                return self.reserved("]]");
            }
            let is_sign = ["&&", "||", "(", ")", "<", ">", "|"].iter().any(|sign| self.eat(sign));
            if is_sign {
                continue;
            }
            let bare = self.bare();
            if bare.starts_with('-') && bare.len() > 1 && !OPERATORS.contains(&bare) {
                return self.odd("computes in `[[`, or asks it for a variable by name");
            }
            if self.peek().is_none() {
                return self.odd(UNREADABLE);
            }
            self.word()?;
        }
    }

    /// A command with its words, assignments and redirections.
    fn simple(&mut self) -> Read<()> {
        let begun = self.at;
        let mut words: Vec<ShapeWord<'a>> = Vec::new();
        loop {
            self.blanks();
            if self.rest().starts_with("&>") {
                self.redirection(None)?;
                continue;
            }
            match self.peek() {
                None | Some('\n' | ';' | '&' | '|' | ')') => break,
                Some('(') => return self.odd("defines a function or a list"),
                Some('<' | '>') => self.redirection(None)?,
                Some(_) => {
                    let word = self.word()?;
                    let is_directed = matches!(self.peek(), Some('<' | '>'));
                    let is_number = word.raw.bytes().all(|byte| byte.is_ascii_digit());
                    match (self.peek(), is_directed) {
                        (Some('('), _) => {
                            self.at = word.at;
                            return self.odd("defines a function or a list");
                        }
                        (_, true) if is_number => self.redirection(Some(word.raw))?,
                        (_, true) if word.raw.starts_with('{') => {
                            self.at = word.at;
                            return self.odd("opens a file by a variable");
                        }
                        _ => words.push(word),
                    }
                }
            }
        }
        if self.at == begun {
            return self.odd(UNREADABLE);
        }
        self.performed(&words)
    }

    /// What stands behind a group.
    fn redirections(&mut self) -> Read<()> {
        loop {
            self.blanks();
            let digits = self.rest().len()
                - self.rest().trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let number = self.rest().get(..digits).unwrap_or_default();
            let is_directed = self.rest().get(digits..).unwrap_or_default().starts_with(['<', '>']);
            if is_directed {
                self.at += digits;
                self.redirection((digits > 0).then_some(number))?;
            } else if self.rest().starts_with("&>") {
                self.redirection(None)?;
            } else {
                return Ok(());
            }
        }
    }

    /// A redirection of the input, the output or the errors.
    fn redirection(&mut self, number: Option<&str>) -> Read<()> {
        let begun = self.at;
        if self.rest().starts_with("<(") || self.rest().starts_with(">(") {
            return self.odd("substitutes a process");
        }
        let operators = ["<<<", "<<-", "<<", "<&", "<>", "<", "&>>", "&>", ">>", ">|", ">&", ">"];
        let Some(operator) = operators.into_iter().find(|operator| self.eat(operator)) else {
            return self.odd(UNREADABLE);
        };
        let reads = operator.starts_with('<');
        let is_usual = match number {
            None => operator != "<>",
            Some(number) if reads => number == "0" && operator != "<>",
            Some(number) => matches!(number, "1" | "2"),
        };
        if !is_usual {
            self.at = begun;
            return self.odd("opens more than its input, its output and its errors");
        }
        self.blanks();
        if matches!(operator, "<<" | "<<-") {
            let word = self.word()?;
            let is_quoted = word.raw.contains(['\'', '"', '\\']);
            let strips = operator == "<<-";
            if !word.is_literal() || self.depth > DEPTH_MAX {
                return self.odd(UNREADABLE);
            }
            self.documents.push(Document { end: word.text, is_quoted, strips });
            return Ok(());
        }
        let word = self.word()?;
        let is_copy = matches!(operator, "<&" | ">&");
        let is_file = !is_copy || (operator == ">&" && !is_number(&word.text) && word.text != "-");
        let is_known = word.text == "-" || matches!(word.text.as_str(), "0" | "1" | "2");
        self.at = if is_file || is_known { self.at } else { begun };
        match (is_file, operator) {
            (false, _) if !is_known => {
                self.odd("opens more than its input, its output and its errors")
            }
            (true, "<<<") | (false, _) => Ok(()),
            _ if word.has_output => {
                self.at = begun;
                self.odd("substitutes a command in the name of a file")
            }
            _ => self.usual_path(&word),
        }
    }

    /// The text of a here-document.
    fn document(&mut self, document: &Document) -> Read<()> {
        let begun = self.at;
        let mut end = self.at;
        for line in self.rest().split_inclusive('\n') {
            let text = line.trim_end_matches('\n');
            let text = if document.strips { text.trim_start_matches('\t') } else { text };
            if text == document.end {
                let body = self.text.get(begun..end).unwrap_or_default();
                self.at = end + line.len();
                if document.is_quoted {
                    return Ok(());
                }
                let mut inner =
                    Shape { text: body, at: 0, depth: self.depth + 1, documents: Vec::new() };
                let read = inner.document_text();
                return read.map_err(|odd| Odd { what: odd.what, at: begun + odd.at });
            }
            end += line.len();
        }
        self.odd(UNREADABLE)
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a text can name a variable.
fn is_name(text: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !text.is_empty()
        && text.chars().all(is_letter)
        && !text.starts_with(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests;
