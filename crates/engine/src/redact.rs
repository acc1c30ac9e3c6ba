//! Keeps secrets out of whatever is recorded or shown.
//!
//! A secret is found as it is, and as it looks reversed and in base64 and hex, also when line
//! breaks were put into it; and wherever resolving the escapes of addresses, forms, HTML and JSON
//! gives one of these, whichever letters were escaped and however. It is a net below the rope: that no secret gets
//! to where it does not belong is the compiler's business, and a secret in some other disguise is
//! not found. `docs/guide/settings.md` lists both.

mod decoded;
mod entities;
mod forms;

use std::borrow::Cow;

use aho_corasick::{AhoCorasick, MatchKind};
use serde_json::Value;

use crate::secrets::Secret;
use decoded::{Decoded, Escapes};
use forms::{forms, hex_forms};

/// Shorter secrets would hide half of every text.
pub const LENGTH_MIN: usize = 6;
/// What is shorter is not looked for across line breaks: two columns of numbers would hide.
const WRAPPED_MIN: usize = 8;

/// Hides secrets.
#[derive(Clone, Debug, Default)]
pub struct Redactor(Finder);

/// What finds secrets.
#[derive(Clone, Debug, Default)]
enum Finder {
    /// There are none.
    #[default]
    Nothing,
    /// Finds the forms of all secrets.
    Forms(Box<Forms>),
    /// It could not be made. What cannot be searched is not shown.
    Blind,
}

/// The forms of all secrets.
#[derive(Clone, Debug)]
struct Forms {
    /// All of them, in a text as it is.
    plain: Patterns,
    /// The longer ones, in a text without its line breaks.
    wrapped: Patterns,
    /// Those in hex, whose letters may be of either case.
    hex: Patterns,
}

/// Texts to find, with what to put in the place of each.
#[derive(Clone, Debug)]
struct Patterns {
    finder: AhoCorasick,
    shown: Vec<String>,
}

/// What stands for a text that could not be searched.
const UNSEARCHED: &str = "[hidden: secrets could not be searched for]";

impl Redactor {
    /// Hides these secrets, by name.
    #[must_use]
    pub fn new<'a>(secrets: impl IntoIterator<Item = (&'a str, &'a Secret)>) -> Self {
        let mut found: Vec<(String, String)> = Vec::new();
        let mut hex: Vec<(String, String)> = Vec::new();
        for (name, secret) in secrets {
            let shown = format!("[secret:{name}]");
            hex.extend(hex_forms(secret.expose()).into_iter().map(|form| (form, shown.clone())));
            found.extend(forms(secret.expose()).into_iter().map(|form| (form, shown.clone())));
        }
        if found.is_empty() {
            return Self::default();
        }
        let plain = Patterns::new(&found, Case::Counts);
        let hex = Patterns::new(&hex, Case::Ignored);
        found.iter_mut().for_each(|(form, _)| form.retain(|letter| !is_blank(letter)));
        found.retain(|(form, _)| form.len() >= WRAPPED_MIN);
        let both = plain.zip(Patterns::new(&found, Case::Counts)).zip(hex);
        Self(both.map_or(Finder::Blind, |((plain, wrapped), hex)| {
            Finder::Forms(Box::new(Forms { plain, wrapped, hex }))
        }))
    }

    /// Whether there is nothing to hide.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        matches!(self.0, Finder::Nothing)
    }

    /// The text without secrets.
    #[must_use]
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let forms = match &self.0 {
            Finder::Nothing => return Cow::Borrowed(text),
            Finder::Blind => return Cow::Borrowed(UNSEARCHED),
            Finder::Forms(forms) => forms,
        };
        let mut hidden = forms.plain.hide(text);
        if let Some(without) = forms.hex.hide_owned(&hidden) {
            hidden = Cow::Owned(without);
        }
        if let Some(without) = forms.hide_escaped(&hidden) {
            hidden = Cow::Owned(without);
        }
        for breaks in [Breaks::Real, Breaks::Written] {
            for patterns in [&forms.wrapped, &forms.hex] {
                if let Some(unwrapped) = Unwrapped::of(&hidden, breaks)
                    && let Some(without) = patterns.hide_wrapped(&hidden, &unwrapped)
                {
                    hidden = Cow::Owned(without);
                }
            }
        }
        hidden
    }

    /// The value without secrets, in its texts, its names and its numbers.
    #[must_use]
    pub fn value(&self, value: Value) -> Value {
        if self.is_empty() {
            return value;
        }
        if matches!(self.0, Finder::Blind) {
            return Value::String(UNSEARCHED.to_owned());
        }
        match value {
            Value::String(text) => match self.text(&text) {
                Cow::Borrowed(_) => Value::String(text),
                Cow::Owned(hidden) => Value::String(hidden),
            },
            Value::Number(number) => match self.text(&number.to_string()) {
                Cow::Borrowed(_) => Value::Number(number),
                Cow::Owned(hidden) => Value::String(hidden),
            },
            Value::Array(items) => items.into_iter().map(|item| self.value(item)).collect(),
            Value::Object(members) => members
                .into_iter()
                .map(|(name, member)| (self.text(&name).into_owned(), self.value(member)))
                .collect(),
            other => other,
        }
    }
}

impl Forms {
    /// The text without what was found in it when its escapes, and those in what they gave, were
    /// resolved, if anything was: as it reads then, and without its line breaks.
    fn hide_escaped(&self, text: &str) -> Option<String> {
        if !text.contains(['%', '+', '&', '\\']) {
            return None;
        }
        let whole = Decoded::of(text);
        let mut found: Vec<(usize, usize, &str)> = Vec::new();
        let mut search = |decoded: &Decoded| {
            self.plain.places(decoded, &mut found);
            if let Some(unwrapped) = decoded.unwrapped() {
                self.wrapped.places(&unwrapped, &mut found);
                self.hex.places(&unwrapped, &mut found);
            }
        };
        for escapes in Escapes::ALL {
            let Some(once) = whole.without(escapes) else { continue };
            search(&once);
            let twice = Escapes::ALL.into_iter().filter_map(|escapes| once.without(escapes));
            twice.for_each(|decoded| search(&decoded));
        }
        found.sort_unstable();
        let (mut hidden, mut kept) = (String::new(), 0);
        for (start, end, shown) in found {
            if start >= kept {
                hidden.push_str(text.get(kept..start).unwrap_or_default());
                hidden.push_str(shown);
            }
            kept = kept.max(end);
        }
        (kept > 0).then(|| hidden + text.get(kept..).unwrap_or_default())
    }
}

impl Patterns {
    /// None when the finder cannot be made.
    fn new(found: &[(String, String)], case: Case) -> Option<Self> {
        let forms = found.iter().map(|(form, _)| form);
        let mut builder = AhoCorasick::builder();
        builder.match_kind(MatchKind::LeftmostLongest);
        let finder = builder.ascii_case_insensitive(case == Case::Ignored).build(forms);
        let shown = found.iter().map(|(_, shown)| shown.clone()).collect();
        Some(Self { finder: finder.ok()?, shown })
    }

    /// What stands for a text that was found.
    fn shown(&self, found: &aho_corasick::Match) -> &str {
        // Each pattern has its place, so a missing one hides as well.
        self.shown.get(found.pattern().as_usize()).map_or(UNSEARCHED, String::as_str)
    }

    fn hide<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if !self.finder.is_match(text) {
            return Cow::Borrowed(text);
        }
        let mut hidden = String::with_capacity(text.len());
        self.finder.replace_all_with(text, &mut hidden, |found, _, hidden| {
            hidden.push_str(self.shown(found));
            true
        });
        Cow::Owned(hidden)
    }

    /// The same, if anything was found.
    fn hide_owned(&self, text: &str) -> Option<String> {
        match self.hide(text) {
            Cow::Borrowed(_) => None,
            Cow::Owned(hidden) => Some(hidden),
        }
    }

    /// Where something was found in a text whose escapes are resolved, and what to show.
    fn places<'s>(&'s self, decoded: &Decoded, found: &mut Vec<(usize, usize, &'s str)>) {
        found.extend(self.finder.find_iter(&decoded.bytes).map(|found| {
            let (start, end) = decoded.place(found.start(), found.end());
            (start, end, self.shown(&found))
        }));
    }

    /// The text without what was found in it when its line breaks were left out, if anything was.
    fn hide_wrapped(&self, text: &str, unwrapped: &Unwrapped) -> Option<String> {
        let mut hidden = String::new();
        let mut kept = 0;
        for found in self.finder.find_iter(&unwrapped.text) {
            let (start, end) = unwrapped.place(found.start(), found.end());
            hidden.push_str(text.get(kept..start).unwrap_or_default());
            hidden.push_str(self.shown(&found));
            kept = end;
        }
        (kept > 0).then(|| hidden + text.get(kept..).unwrap_or_default())
    }
}

/// Whether the case of letters counts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Case {
    Counts,
    Ignored,
}

/// What counts as a line break.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Breaks {
    /// Line breaks and blanks.
    Real,
    /// Those too that are written out: `\n` and `\u000a` in JSON, whatever it stands in, `%0A` in
    /// addresses, and `&#10;` in HTML.
    Written,
}

/// Whether a letter is one of those that are put into texts to lay them out.
const fn is_blank(letter: char) -> bool {
    matches!(letter, '\n' | '\r' | ' ' | '\t')
}

/// The length of a line break or a blank that is written out where a text begins.
fn written_break(text: &str) -> Option<usize> {
    /// What stands in front, as often as texts stand in one another.
    const LEADS: [(&str, &[&str]); 3] = [("\\", &[]), ("%", &["25"]), ("&", &["amp;", "AMP;"])];
    /// What stands behind it.
    const BREAKS: [&[&str]; 3] = [
        &["n", "r", "t", "u000a", "u000d", "u0009", "u0020", "x0a", "x0d"],
        &["0a", "0d", "09", "20"],
        &["#10;", "#13;", "#9;", "#32;", "#xa;", "#xd;", "#x9;", "#x20;", "newline;", "tab;"],
    ];
    let place = LEADS.iter().position(|(lead, _)| text.starts_with(lead))?;
    let (lead, again) = LEADS.get(place)?;
    let mut at = lead.len();
    loop {
        let rest = text.get(at..)?;
        match again.iter().find(|again| rest.starts_with(**again)) {
            Some(again) => at += again.len(),
            None if again.is_empty() && rest.starts_with(lead) => at += lead.len(),
            None => break,
        }
    }
    let rest = text.get(at..)?;
    let begins = |known: &&&str| {
        rest.get(..known.len()).is_some_and(|begun| begun.eq_ignore_ascii_case(known))
    };
    BREAKS.get(place)?.iter().find(begins).map(|known| at + known.len())
}

/// A text without its line breaks and blanks.
struct Unwrapped {
    text: String,
    /// Where each byte of it was.
    places: Vec<usize>,
}

impl Unwrapped {
    /// None when there is nothing of that in the text.
    fn of(text: &str, breaks: Breaks) -> Option<Self> {
        let written = breaks == Breaks::Written;
        let is_wrapped = match breaks {
            Breaks::Real => text.contains(is_blank),
            Breaks::Written => text.contains(['\\', '%', '&']),
        };
        if !is_wrapped {
            return None;
        }
        let mut unwrapped = Self { text: String::new(), places: Vec::new() };
        let mut until = 0;
        for (at, letter) in text.char_indices() {
            if at < until || is_blank(letter) {
                continue;
            }
            if written && let Some(length) = written_break(text.get(at..).unwrap_or_default()) {
                until = at + length;
                continue;
            }
            unwrapped.text.push(letter);
            unwrapped.places.extend(at..at + letter.len_utf8());
        }
        Some(unwrapped)
    }

    /// Where a part of it was in the whole text.
    fn place(&self, start: usize, end: usize) -> (usize, usize) {
        let of = |at: usize| self.places.get(at).copied().unwrap_or_default();
        (of(start), of(end.saturating_sub(1)) + 1)
    }
}

#[cfg(test)]
mod tests;
