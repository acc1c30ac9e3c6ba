//! A line for a shell, taken apart into its commands.
//!
//! What is read here is an author's text, so it is read as it is meant: quotes, substitutions,
//! pipes, redirections and here-documents. What a shell would refuse is read to its end.

/// How many substitutions can stand in one another.
const DEPTH_MAX: usize = 16;

/// How many commands of a line are looked at.
const COMMANDS_MAX: usize = 4_096;

/// A line: its commands, in the order in which they stand.
#[derive(Debug, Default)]
pub(super) struct Line {
    pub(super) commands: Vec<LineCommand>,
    /// Whether there was more than anybody would write.
    pub(super) is_cut: bool,
}

/// One command of a line.
#[derive(Debug, Default)]
pub(super) struct LineCommand {
    pub(super) words: Vec<LineWord>,
    /// What its input is, where that is not the line's own.
    pub(super) input: Option<LineWord>,
    /// Whether that is the name of a file.
    pub(super) reads_file: bool,
    /// The files that it writes to.
    pub(super) writes: Vec<LineWord>,
    /// Whether it reads what the command before it writes.
    pub(super) is_piped: bool,
}

/// A word of a line.
#[derive(Debug, Default)]
pub(super) struct LineWord {
    /// Its text, without the quotes, and with its expansions as they are written.
    pub(super) text: String,
    /// How much of it stands before the first expansion; all of it if there is none.
    pub(super) lead: Option<usize>,
    /// The variables that it expands.
    pub(super) variables: Vec<String>,
    /// The commands whose output it holds.
    pub(super) outputs: Vec<Line>,
    /// The variables that it computes with.
    pub(super) computed: Vec<String>,
}

/// Takes a line apart.
pub(super) fn line(text: &str) -> Line {
    let mut reader = Reader { text, at: 0, depth: 0, left: COMMANDS_MAX, body_end: None };
    reader.line(false)
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    /// How many more commands are read.
    left: usize,
    /// Where the here-documents end that begin on the next line.
    body_end: Option<usize>,
}

/// What a line that is being read has so far.
#[derive(Default)]
struct Open {
    line: Line,
    command: LineCommand,
    /// Parentheses that were opened.
    groups: usize,
    /// `case` that has seen no `esac`.
    cases: usize,
}

impl Open {
    /// The command ends here.
    fn end(&mut self, left: &mut usize) {
        let command = std::mem::take(&mut self.command);
        let is_bare = command.words.is_empty() && command.writes.is_empty();
        let is_empty = is_bare && command.input.is_none() && !command.is_piped;
        match command.words.first().map(|word| word.text.as_str()) {
            Some("case") => self.cases += 1,
            Some("esac") => self.cases = self.cases.saturating_sub(1),
            _ => {}
        }
        if is_empty {
            return;
        }
        match left.checked_sub(1) {
            Some(less) => {
                *left = less;
                self.line.commands.push(command);
            }
            None => self.line.is_cut = true,
        }
    }
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn take(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    fn eat(&mut self, wanted: &str) -> bool {
        let found = self.rest().starts_with(wanted);
        self.at += if found { wanted.len() } else { 0 };
        found
    }

    /// Commands up to the end, or up to the parenthesis that closes a substitution.
    fn line(&mut self, is_inner: bool) -> Line {
        let mut open = Open::default();
        while let Some(next) = self.peek() {
            match next {
                '\n' => {
                    self.at = self.body_end.take().unwrap_or(self.at + 1);
                    open.end(&mut self.left);
                }
                ' ' | '\t' | '\r' => self.at += 1,
                '#' => self.at += self.rest().find('\n').unwrap_or(self.rest().len()),
                ';' | '&' if !self.rest().starts_with("&>") => {
                    self.at += 1;
                    open.end(&mut self.left);
                }
                '|' => self.bar(&mut open),
                '(' => {
                    self.at += 1;
                    open.groups += 1;
                    open.end(&mut self.left);
                }
                ')' => {
                    self.at += 1;
                    if open.groups == 0 && open.cases_open() > 0 {
                        // A pattern of `case` is no command.
                        open.pattern();
                    } else if open.groups == 0 && is_inner {
                        break;
                    } else {
                        open.groups = open.groups.saturating_sub(1);
                        open.end(&mut self.left);
                    }
                }
                '<' | '>' | '&' => self.redirection(&mut open),
                _ => {
                    let word = self.word();
                    let is_number = word.text.bytes().all(|byte| byte.is_ascii_digit());
                    // The number of what is redirected is no word.
                    if !(is_number && matches!(self.peek(), Some('<' | '>'))) {
                        open.command.words.push(word);
                    }
                }
            }
        }
        open.end(&mut self.left);
        open.line
    }

    /// `|` hands on what a command writes; `||` does not.
    fn bar(&mut self, open: &mut Open) {
        if self.eat("||") {
            return open.end(&mut self.left);
        }
        self.at += 1;
        self.eat("&");
        // What was closed before it writes, too.
        let is_group = open.command.words.is_empty() && !open.command.is_piped;
        if is_group && open.command.input.is_none() && !open.line.commands.is_empty() {
            open.command.words.push(LineWord { text: "}".to_owned(), ..LineWord::default() });
        }
        open.end(&mut self.left);
        open.command.is_piped = true;
    }

    /// What a command reads from or writes to.
    fn redirection(&mut self, open: &mut Open) {
        if self.rest().starts_with("<(") || self.rest().starts_with(">(") {
            let word = self.word();
            return open.command.words.push(word);
        }
        if self.eat("<<<") {
            self.blanks();
            open.command.input = Some(self.word());
        } else if self.eat("<<") {
            open.command.input = Some(self.document());
        } else if self.eat("<&") || self.eat("<>") || self.eat("<") {
            self.blanks();
            let word = self.word();
            // The line's own input by another name.
            let is_own = word.text == "0" || super::walk::is_input(&word.text);
            open.command.input = (!is_own).then_some(word);
            open.command.reads_file = true;
        } else {
            let begun = self.at;
            while matches!(self.peek(), Some('>' | '&' | '|')) {
                self.at += 1;
            }
            let is_copy = self.text.get(begun..self.at) == Some(">&");
            self.blanks();
            let word = self.word();
            let is_number = word.text == "-" || word.text.bytes().all(|b| b.is_ascii_digit());
            if !(is_copy && is_number) {
                open.command.writes.push(word);
            }
        }
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(' ' | '\t')) {
            self.at += 1;
        }
    }

    /// A here-document, which begins on the next line.
    fn document(&mut self) -> LineWord {
        let strips = self.eat("-");
        self.blanks();
        let before = self.at;
        let end = self.word().text;
        let is_quoted =
            self.text.get(before..self.at).is_some_and(|end| end.contains(['\'', '"', '\\']));
        let begin = self.body_end.or_else(|| Some(self.at + self.rest().find('\n')? + 1));
        let begin = begin.unwrap_or(self.text.len());
        let mut at = begin;
        for line in self.text.get(begin..).unwrap_or_default().split_inclusive('\n') {
            let text = line.trim_end_matches('\n');
            let text = if strips { text.trim_start_matches('\t') } else { text };
            if text == end {
                self.body_end = Some(at + line.len());
                break;
            }
            at += line.len();
            self.body_end = Some(at);
        }
        let body = self.text.get(begin..at).unwrap_or_default();
        if is_quoted {
            return LineWord { text: body.to_owned(), ..LineWord::default() };
        }
        let mut inner =
            Reader { text: body, at: 0, depth: self.depth, left: self.left, body_end: None };
        let mut word = LineWord::default();
        inner.quoted(&mut word, None);
        self.left = inner.left;
        word
    }

    /// A word: what stands together, with its quotes.
    fn word(&mut self) -> LineWord {
        let mut word = LineWord::default();
        let begun = self.at;
        while let Some(next) = self.peek() {
            match next {
                '\'' => {
                    self.at += 1;
                    let rest = self.rest();
                    let length = rest.find('\'').unwrap_or(rest.len());
                    word.text.push_str(rest.get(..length).unwrap_or_default());
                    self.at += length;
                    self.eat("'");
                }
                '"' => {
                    self.at += 1;
                    self.quoted(&mut word, Some('"'));
                }
                '\\' => self.escaped(&mut word),
                '$' => self.dollar(&mut word),
                '`' => self.ticks(&mut word),
                '<' | '>' if self.rest().get(1..2) == Some("(") => {
                    self.at += 2;
                    self.output(&mut word);
                }
                ' ' | '\t' | '\r' | '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>' => break,
                _ => {
                    word.text.push(next);
                    self.at += next.len_utf8();
                }
            }
        }
        // Nothing stands still, whatever stands here.
        if self.at == begun {
            self.take();
        }
        word
    }

    fn escaped(&mut self, word: &mut LineWord) {
        self.at += 1;
        // A line goes on behind one.
        word.text.extend(self.take().filter(|next| *next != '\n'));
    }

    /// Text in which only expansions count, up to what closes it.
    fn quoted(&mut self, word: &mut LineWord, close: Option<char>) {
        while let Some(next) = self.peek() {
            match next {
                _ if Some(next) == close => {
                    self.at += next.len_utf8();
                    return;
                }
                '\\' => self.escaped(word),
                '$' => self.dollar(word),
                '`' => self.ticks(word),
                _ => {
                    word.text.push(next);
                    self.at += next.len_utf8();
                }
            }
        }
    }

    /// What `$` begins.
    fn dollar(&mut self, word: &mut LineWord) {
        let begun = self.at;
        self.at += 1;
        let lead = word.text.len();
        match self.peek() {
            Some('(') if self.rest().starts_with("((") => {
                let length = self.rest().find("))").map_or(self.rest().len(), |end| end + 2);
                let inner = self.rest().get(..length).unwrap_or_default();
                let names = inner.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
                // A number is an argument behind `$` alone.
                let is_name = |name: &&str| {
                    let is_number = name.starts_with(|c: char| c.is_ascii_digit());
                    let expanded = [format!("${name}"), format!("${{{name}")];
                    !name.is_empty()
                        && (!is_number || expanded.iter().any(|name| inner.contains(name)))
                };
                word.computed.extend(names.filter(is_name).map(str::to_owned));
                self.at += length;
            }
            Some('(') => {
                self.at += 1;
                return self.output(word);
            }
            Some('{') => self.braced(word),
            Some('\'') => {
                self.at += 1;
                let mut text = LineWord::default();
                while let Some(next) = self.take().filter(|next| *next != '\'') {
                    text.text.push(next);
                    if next == '\\' {
                        text.text.extend(self.take());
                    }
                }
                return word.text.push_str(&text.text);
            }
            Some('"') => return,
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                let name = self.name();
                word.variables.push(name);
            }
            Some(c) if c.is_ascii_digit() || "@*#?$!-".contains(c) => {
                self.at += 1;
                word.variables.push(c.to_string());
            }
            _ => return word.text.push('$'),
        }
        word.lead.get_or_insert(lead);
        word.text.push_str(self.text.get(begun..self.at).unwrap_or_default());
    }

    fn name(&mut self) -> String {
        let rest = self.rest();
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let length = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
        self.at += length;
        rest.get(..length).unwrap_or_default().to_owned()
    }

    /// `${…}`, which may hold others.
    fn braced(&mut self, word: &mut LineWord) {
        self.at += 1;
        while matches!(self.peek(), Some('#' | '!')) {
            self.at += 1;
        }
        let name = match self.peek() {
            Some(special @ ('@' | '*')) => {
                self.at += 1;
                special.to_string()
            }
            _ => self.name(),
        };
        word.variables.push(name);
        if self.deeper() {
            let mut inner = LineWord::default();
            self.quoted(&mut inner, Some('}'));
            word.variables.append(&mut inner.variables);
            word.outputs.append(&mut inner.outputs);
            word.computed.append(&mut inner.computed);
        }
        self.depth = self.depth.saturating_sub(1);
    }

    /// Whether one more may stand within the others.
    const fn deeper(&mut self) -> bool {
        self.depth += 1;
        self.depth <= DEPTH_MAX
    }

    /// The commands of a substitution, behind its parenthesis.
    fn output(&mut self, word: &mut LineWord) {
        let lead = word.text.len();
        let line = match self.deeper() {
            true => self.line(true),
            false => {
                self.at = self.text.len();
                Line { is_cut: true, ..Line::default() }
            }
        };
        self.depth -= 1;
        word.lead.get_or_insert(lead);
        word.text.push_str("$()");
        word.outputs.push(line);
    }

    /// The commands between two backticks.
    fn ticks(&mut self, word: &mut LineWord) {
        self.at += 1;
        let mut text = String::new();
        while let Some(next) = self.take().filter(|next| *next != '`') {
            match next {
                '\\' => text.extend(self.take()),
                _ => text.push(next),
            }
        }
        let (depth, left) = (self.depth, self.left);
        let mut inner = Reader { text: &text, at: 0, depth, left, body_end: None };
        let lead = word.text.len();
        let line = match inner.deeper() {
            true => inner.line(false),
            false => Line { is_cut: true, ..Line::default() },
        };
        self.left = inner.left;
        word.lead.get_or_insert(lead);
        word.text.push_str("$()");
        word.outputs.push(line);
    }
}

impl Open {
    /// How many `case` are open, the one that is being read among them.
    fn cases_open(&self) -> usize {
        let is_case = self.command.words.first().is_some_and(|word| word.text == "case");
        self.cases + usize::from(is_case)
    }

    /// What was read is a pattern, or the head of a `case` and its first pattern.
    fn pattern(&mut self) {
        let is_head =
            |command: &LineCommand| command.words.first().is_some_and(|word| word.text == "case");
        let mut last = std::mem::take(&mut self.command);
        let is_new = is_head(&last);
        // Those that `|` joins were taken for commands.
        while !is_head(&last) && last.is_piped {
            let Some(before) = self.line.commands.pop() else { break };
            last = before;
        }
        self.cases += usize::from(is_new);
        // What is piped into it is read in it.
        if is_head(&last) {
            self.line.commands.push(last);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The commands of a line as they were read: `|` before one that is piped, `<` behind one
    /// whose input is given, and those of substitutions in parentheses.
    fn shown(line: &Line) -> String {
        let word = |word: &LineWord| {
            let inner: String =
                word.outputs.iter().map(|line| format!("({})", shown(line))).collect();
            format!("{}{inner}", word.text)
        };
        let command = |command: &LineCommand| {
            let words: Vec<String> = command.words.iter().map(word).collect();
            let input = command.input.as_ref().map(|input| format!(" <{}", word(input)));
            let piped = if command.is_piped { "|" } else { "" };
            format!("{piped}{}{}", words.join(" "), input.unwrap_or_default())
        };
        line.commands.iter().map(command).collect::<Vec<_>>().join(";")
    }

    #[test]
    fn a_line_is_taken_apart_as_a_shell_does() {
        for (text, wanted) in [
            ("cat | bash", "cat;|bash"),
            ("a && b || c; d & e\nf", "a;b;c;d;e;f"),
            ("echo 'a; b' \"c | d\" e\\;f # g; h", "echo a; b c | d e;f"),
            ("a 2>&1 >out <in b", "a b <in"),
            ("a &>out; b <&0", "a;b"),
            ("bash < /dev/stdin", "bash"),
            ("x=$(cat; ls) y", "x=$()(cat;ls) y"),
            ("echo \"`cat \\`ls\\``\"", "echo $()(cat $()(ls))"),
            ("(cat; ls) | sh", "cat;ls;};|sh"),
            ("{ cat; } | sh", "{ cat;};|sh"),
            ("f() { sh; }; f", "f;{ sh;};f"),
            ("case $x in bash) ls;; sh|zsh) cat;; esac; sh", "case $x in bash;ls;cat;esac;sh"),
            ("bash <<EOF; ls\na $(id) b\nEOF\ncat", "bash <a $() b\n(id);ls;cat"),
            ("bash <<'EOF'\n$(id)\nEOF\ncat", "bash <$(id)\n;cat"),
            ("bash <<< \"$x\"", "bash <$x"),
            ("tee >(sh) <(cat)", "tee $()(sh) $()(cat)"),
            ("echo $((1 + 2)) ${a:-$(id)} ${#b}", "echo $((1 + 2)) ${a:-$(id)}(id) ${#b}"),
            ("echo $'a\\'b'", "echo a\\'b"),
            ("'open", "open"),
            ("a $(b", "a $()(b)"),
            ("", ""),
        ] {
            assert_eq!(shown(&line(text)), wanted, "{text}");
        }
        assert!(line(&"$(".repeat(100)).commands.len() <= 1);
        assert!(line(&"a;".repeat(COMMANDS_MAX + 1)).is_cut);
    }

    #[test]
    fn a_word_knows_what_it_expands() {
        let line = line("a-$x${y:-$z}\"$1\"'$no' plain");
        let words = &line.commands[0].words;
        assert_eq!(words[0].variables, ["x", "y", "z", "1"]);
        assert_eq!(words[0].lead, Some(2));
        assert_eq!((words[1].lead, words[1].variables.len()), (None, 0));
    }
}
