//! Reads documents field by field, and collects everything that is wrong with them.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crate::diagnostic::{Code, Diagnostic, Severity, nearest};
use crate::source::{Entry, Node, Position, Value};

/// How many names are listed where none of them is near to the one that was given.
const LISTED_MAX: usize = 12;

/// How many diagnostics are told; of those beyond, how many there are.
pub(crate) const TOLD_MAX: usize = 100;

/// How many characters of a name are quoted.
const QUOTED_MAX: usize = 80;

/// What was found so far.
#[derive(Default)]
pub(crate) struct Report {
    list: RefCell<Vec<Diagnostic>>,
    /// What was found, told or not, so that nothing counts twice.
    seen: RefCell<BTreeSet<u64>>,
    /// Whether an error is among those that are not told.
    hides_error: Cell<bool>,
    /// How many patterns there were.
    patterns: Cell<u32>,
    /// How large they were together.
    pattern_sizes: Cell<u64>,
}

impl Report {
    pub(crate) fn add(&self, diagnostic: Diagnostic) {
        let mut hasher = DefaultHasher::new();
        let Diagnostic { path, line, column, code, pointer, message, .. } = &diagnostic;
        (path, line, column, code.name(), pointer, message).hash(&mut hasher);
        if !self.seen.borrow_mut().insert(hasher.finish()) {
            return;
        }
        if self.is_full() {
            let hides = self.hides_error.get() || diagnostic.severity == Severity::Error;
            self.hides_error.set(hides);
        } else {
            self.list.borrow_mut().push(diagnostic);
        }
    }

    /// Whether what is found from now on is only counted.
    fn is_full(&self) -> bool {
        self.list.borrow().len() >= TOLD_MAX
    }

    /// Everything, in order and once, and how much was left out.
    pub(crate) fn take(&self) -> Vec<Diagnostic> {
        let mut list = self.list.take();
        list.sort();
        let more = self.seen.take().len().saturating_sub(list.len());
        if let Some(last) = list.last().filter(|_| more > 0).cloned() {
            let severity = if self.hides_error.get() { Severity::Error } else { Severity::Warning };
            list.push(Diagnostic {
                severity,
                code: Code::TooMany,
                pointer: String::new(),
                message: format!("and {} more", grouped(more)),
                suggestion: None,
                ..last
            });
        }
        list
    }
}

/// A number with its thousands apart.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A name as far as it is quoted.
fn short(name: &str) -> String {
    match name.char_indices().nth(QUOTED_MAX) {
        Some((end, _)) => format!("{}…", name.get(..end).unwrap_or_default()),
        None => name.to_owned(),
    }
}

/// A value of a document, and how to speak about it.
#[derive(Clone)]
pub(crate) struct Spot<'a> {
    file: &'a str,
    pub(crate) node: &'a Node,
    pub(crate) pointer: String,
    report: &'a Report,
}

/// A map whose keys are known.
pub(crate) struct Fields<'a> {
    pub(crate) spot: Spot<'a>,
    entries: BTreeMap<&'a str, &'a Entry>,
    /// Those that no field of this map is called.
    unknown: Vec<&'a str>,
}

impl<'a> Spot<'a> {
    pub(crate) fn root(file: &'a str, node: &'a Node, report: &'a Report) -> Self {
        Self { file, node, pointer: String::new(), report }
    }

    /// Counts a pattern; says no when there were so many before.
    pub(crate) fn is_one_more_pattern(&self, most: u32) -> bool {
        let before = self.report.patterns.get();
        self.report.patterns.set(before.saturating_add(1));
        before < most
    }

    /// Adds the size of a pattern, and says how large all of them are.
    pub(crate) fn add_pattern_size(&self, size: u64) -> u64 {
        let sizes = self.report.pattern_sizes.get().saturating_add(size);
        self.report.pattern_sizes.set(sizes);
        sizes
    }

    /// The root of another document that this one brings in.
    pub(crate) fn elsewhere(&self, file: &'a str, node: &'a Node) -> Self {
        Self { file, node, pointer: String::new(), report: self.report }
    }

    /// The same place with another value.
    pub(crate) fn instead<'b>(&self, node: &'b Node) -> Spot<'b>
    where
        'a: 'b,
    {
        Spot { file: self.file, node, pointer: self.pointer.clone(), report: self.report }
    }

    /// A member of this map, or an item of this list.
    pub(crate) fn child(&self, name: &str, node: &'a Node) -> Self {
        let name = name.replace('~', "~0").replace('/', "~1");
        Self { node, pointer: format!("{}/{name}", self.pointer), ..self.clone() }
    }

    fn say(
        &self,
        severity: Severity,
        at: Position,
        code: Code,
        text: String,
        hint: Option<String>,
    ) {
        self.report.add(Diagnostic {
            path: self.file.to_owned(),
            line: at.line,
            column: at.column,
            severity,
            code,
            pointer: self.pointer.clone(),
            message: text,
            suggestion: hint,
        });
    }

    pub(crate) fn error(&self, code: Code, message: impl Into<String>) {
        self.say(Severity::Error, self.node.at, code, message.into(), None);
    }

    pub(crate) fn error_hint(
        &self,
        code: Code,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.say(Severity::Error, self.node.at, code, message.into(), Some(hint.into()));
    }

    /// An error at a place inside this value, or in the file that it names.
    pub(crate) fn error_at(
        &self,
        at: Position,
        code: Code,
        message: impl Into<String>,
        hint: Option<String>,
    ) {
        self.say(Severity::Error, at, code, message.into(), hint);
    }

    pub(crate) fn warn(&self, code: Code, message: impl Into<String>, hint: impl Into<String>) {
        self.say(Severity::Warning, self.node.at, code, message.into(), Some(hint.into()));
    }

    /// A warning at a place inside this value, or in the file that it names.
    pub(crate) fn warn_at(
        &self,
        at: Position,
        code: Code,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.say(Severity::Warning, at, code, message.into(), Some(hint.into()));
    }

    /// Says that nothing has this name, and which name was likely meant.
    pub(crate) fn unknown<'n>(
        &self,
        what: &str,
        given: &str,
        names: impl IntoIterator<Item = &'n str>,
    ) {
        let message = format!("there is no {what} `{}`", short(given));
        let hint = self.hint(|| {
            let names: Vec<&str> = names.into_iter().collect();
            let listed = || (2..=LISTED_MAX).contains(&names.len()).then(|| known(&names));
            meant(given, &names).or_else(listed)
        });
        self.say(Severity::Error, self.node.at, Code::UnknownName, message, hint);
    }

    /// What to do about something, unless it is only counted.
    pub(crate) fn hint(&self, hint: impl FnOnce() -> Option<String>) -> Option<String> {
        if self.report.is_full() { None } else { hint() }
    }

    /// Whether what is found from now on is only counted, so that nobody asks where it stands.
    pub(crate) fn is_only_counted(&self) -> bool {
        self.report.is_full()
    }

    pub(crate) fn wrong_type(&self, wanted: &str) {
        let found = match &self.node.value {
            Value::Null => "nothing",
            Value::Flag(_) => "true or false",
            Value::Number(_) => "a number",
            Value::Text(_) => "text",
            Value::List(_) => "a list",
            Value::Map(_) => "a map",
        };
        self.error(Code::WrongType, format!("{wanted} should stand here, not {found}"));
    }

    pub(crate) fn text(&self) -> Option<&'a str> {
        let text = self.node.as_text();
        if text.is_none() {
            self.wrong_type("text");
        }
        text
    }

    /// Text that says something.
    pub(crate) fn filled(&self) -> Option<&'a str> {
        let text = self.text()?;
        if text.trim().is_empty() {
            self.error(Code::InvalidValue, "this must not be empty");
            return None;
        }
        Some(text)
    }

    pub(crate) fn flag(&self) -> Option<bool> {
        if let Value::Flag(flag) = self.node.value {
            return Some(flag);
        }
        self.wrong_type("true or false");
        None
    }

    /// A whole number in a range.
    pub(crate) fn whole(&self, min: u32, max: u32) -> Option<u32> {
        let Value::Number(number) = &self.node.value else {
            self.wrong_type("a number");
            return None;
        };
        let whole = number.as_f64().filter(|n| n.fract() == 0.0 && *n >= 0.0 && *n <= 4e9);
        let whole = whole.and_then(|n| format!("{n:.0}").parse().ok());
        if whole.is_none_or(|n: u32| n < min || n > max) {
            self.error(Code::InvalidValue, format!("a whole number from {min} to {max} is needed"));
            return None;
        }
        whole
    }

    /// One of several words.
    pub(crate) fn choice<T: Copy>(&self, choices: &[(&str, T)]) -> Option<T> {
        let given = self.text()?;
        let found = choices.iter().find(|(name, _)| *name == given).map(|(_, value)| *value);
        if found.is_none() {
            let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
            let hint = self.hint(|| meant(given, &names));
            let message = format!("`{}` is not one of {}", short(given), quoted(&names));
            self.say(Severity::Error, self.node.at, Code::UnknownValue, message, hint);
        }
        found
    }

    pub(crate) fn is_list(&self) -> bool {
        matches!(self.node.value, Value::List(_))
    }

    /// Whether this is a list with nothing in it.
    pub(crate) fn is_empty_list(&self) -> bool {
        matches!(&self.node.value, Value::List(items) if items.is_empty())
    }

    pub(crate) fn is_map(&self) -> bool {
        matches!(self.node.value, Value::Map(_))
    }

    /// The items of a list.
    pub(crate) fn items(&self) -> Vec<Self> {
        if let Value::List(items) = &self.node.value {
            let child = |(place, node): (usize, &'a Node)| self.child(&place.to_string(), node);
            return items.iter().enumerate().map(child).collect();
        }
        self.wrong_type("a list");
        Vec::new()
    }

    /// The texts of a list.
    pub(crate) fn texts(&self) -> Vec<String> {
        self.items().iter().filter_map(Spot::filled).map(str::to_owned).collect()
    }

    /// The members of a map, whatever their keys.
    pub(crate) fn members(&self) -> Vec<(&'a str, Self)> {
        if let Value::Map(entries) = &self.node.value {
            let member = |e: &'a Entry| (e.key.as_str(), self.child(&e.key, &e.node));
            return entries.iter().map(member).collect();
        }
        self.wrong_type("a map");
        Vec::new()
    }

    /// The fields of a map, which may only be these.
    pub(crate) fn fields(&self, names: &[&str]) -> Option<Fields<'a>> {
        let Value::Map(entries) = &self.node.value else {
            self.wrong_type("a map");
            return None;
        };
        let mut unknown = Vec::new();
        for entry in entries.iter().filter(|entry| !names.contains(&entry.key.as_str())) {
            unknown.push(entry.key.as_str());
            let here = self.child(&entry.key, &entry.node);
            let message = format!("the field `{}` is not known here", short(&entry.key));
            let hint = || match entry.key.as_str() {
                // Who forgets the level between has the name right.
                "nodes" | "edges" if names.contains(&"graph") => {
                    Some(format!("`{}` belongs under `graph:`", entry.key))
                }
                key => Some(meant(key, names).unwrap_or_else(|| known(names))),
            };
            let hint = self.hint(hint);
            here.say(Severity::Error, entry.key_at, Code::UnknownField, message, hint);
        }
        let entries = entries.iter().map(|entry| (entry.key.as_str(), entry)).collect();
        Some(Fields { spot: self.clone(), entries, unknown })
    }
}

impl<'a> Fields<'a> {
    pub(crate) fn get(&self, name: &str) -> Option<Spot<'a>> {
        self.entries.get(name).map(|entry| self.spot.child(name, &entry.node))
    }

    /// The fields that are there, by name.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&'a str, Spot<'a>)> {
        self.entries.iter().map(|(name, entry)| (*name, self.spot.child(name, &entry.node)))
    }

    /// A field that must be there.
    pub(crate) fn need(&self, name: &str) -> Option<Spot<'a>> {
        let found = self.get(name);
        // Whoever misspelt it is told so, and once is enough.
        let is_misspelt = self.unknown.iter().any(|given| nearest(given, [name]).is_some());
        if found.is_none() && !is_misspelt {
            self.spot.error(Code::MissingField, format!("the field `{name}` is missing"));
        }
        found
    }

    pub(crate) fn text(&self, name: &str) -> Option<String> {
        self.get(name)?.filled().map(str::to_owned)
    }

    pub(crate) fn need_text(&self, name: &str) -> Option<String> {
        self.need(name)?.filled().map(str::to_owned)
    }

    pub(crate) fn texts(&self, name: &str) -> Vec<String> {
        self.get(name).map(|spot| spot.texts()).unwrap_or_default()
    }

    pub(crate) fn flag(&self, name: &str) -> Option<bool> {
        self.get(name)?.flag()
    }
}

fn known(names: &[&str]) -> String {
    format!("known are {}", quoted(names))
}

pub(crate) fn meant(given: &str, names: &[&str]) -> Option<String> {
    nearest(given, names.iter().copied()).map(|name| format!("did you mean `{name}`?"))
}

pub(crate) fn quoted(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}
