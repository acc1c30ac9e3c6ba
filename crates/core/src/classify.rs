//! From what a model answered to one of the cases that a workflow declares.
//!
//! A model may say anything. Six layers stand between its answer and the edge that a run takes:
//! a verdict in the asked-for JSON, normalising, an exact match, a fuzzy match, another and
//! stricter question, and a threshold of confidence. Whatever comes in, what comes out is a
//! declared case or [`DEFAULT`], together with the layer that decided.

mod read;

#[cfg(test)]
mod tests;

use serde_json::{Value, json};
use unicode_normalization::UnicodeNormalization as _;

/// The case that is taken when no other is.
pub const DEFAULT: &str = "default";

/// How many edits an answer may be away from a case, at most.
const EDITS_MAX: usize = 2;
/// How long a text may be that is compared letter by letter.
const COMPARED_MAX: usize = 64;

/// What a workflow asks for.
#[derive(Clone, PartialEq, Debug)]
pub struct Rules {
    /// The cases, without [`DEFAULT`].
    pub cases: Vec<String>,
    /// Whether an answer may be matched that is only close to a case.
    pub fuzzy: bool,
    /// How sure the model has to be; 0 takes any answer.
    pub threshold: f64,
}

/// The layer that decided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layer {
    /// The verdict in the JSON that was asked for is a case as it stands.
    StructuredOutput,
    /// It is one once case, punctuation and quotes are gone.
    Normalize,
    /// The whole answer is a case as it stands.
    ExactMatch,
    /// It is close to one case, or names one case and no other.
    FuzzyMatch,
    /// The first answer was none; that to a stricter question was.
    RetryOnMismatch,
    /// There was a verdict, and the model was not sure enough of it.
    ConfidenceThreshold,
    /// No layer found a case.
    None,
}

impl Layer {
    /// Its name in records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::StructuredOutput => "structured_output",
            Self::Normalize => "normalize",
            Self::ExactMatch => "exact_match",
            Self::FuzzyMatch => "fuzzy_match",
            Self::RetryOnMismatch => "retry_on_mismatch",
            Self::ConfidenceThreshold => "confidence_threshold",
            Self::None => "none",
        }
    }
}

/// What is made of one answer.
#[derive(Clone, PartialEq, Debug)]
pub struct Reading {
    /// The case, when a layer found one.
    pub case: Option<String>,
    /// The layer that found it, or [`Layer::None`].
    pub layer: Layer,
    /// How sure the model says it is, from 0 to 1.
    pub confidence: Option<f64>,
    /// Why, in the model's words.
    pub reasoning: Option<String>,
}

/// Where a run goes.
#[derive(Clone, PartialEq, Debug)]
pub struct Verdict {
    /// A declared case, or [`DEFAULT`].
    pub case: String,
    /// The layer that decided.
    pub layer: Layer,
    /// How sure the model says it is, from 0 to 1.
    pub confidence: Option<f64>,
    /// Why, in the model's words.
    pub reasoning: Option<String>,
}

/// Reads one answer: its text, and the structured result where a provider has one.
#[must_use]
pub fn read(text: &str, structured: Option<&Value>, rules: &Rules) -> Reading {
    let said = read::said(text, structured);
    let (case, layer) = match &said.verdict {
        Some(verdict) => matched(verdict, rules, Layer::StructuredOutput),
        // Several that differ are none.
        None if said.contradicts => (None, Layer::None),
        None => matched(text, rules, Layer::ExactMatch),
    };
    Reading { case, layer, confidence: said.confidence, reasoning: said.reasoning }
}

/// Decides by all answers there were, the first one first. `answers` after the first are those
/// to a stricter question.
#[must_use]
pub fn decide(answers: &[Reading], rules: &Rules) -> Verdict {
    let found = answers.iter().enumerate().find(|(_, reading)| reading.case.is_some());
    let Some((nth, reading)) = found else {
        let last = answers.last();
        return Verdict {
            case: DEFAULT.to_owned(),
            layer: Layer::None,
            confidence: last.and_then(|reading| reading.confidence),
            reasoning: last.and_then(|reading| reading.reasoning.clone()),
        };
    };
    // One that is asked how sure it is and does not say is not sure.
    let sure = rules.threshold <= 0.0
        || reading.confidence.is_some_and(|confidence| confidence >= rules.threshold);
    let (case, layer) = match (&reading.case, sure) {
        (Some(case), true) if nth == 0 => (case.clone(), reading.layer),
        (Some(case), true) => (case.clone(), Layer::RetryOnMismatch),
        _ => (DEFAULT.to_owned(), Layer::ConfidenceThreshold),
    };
    let Reading { confidence, reasoning, .. } = reading.clone();
    Verdict { case, layer, confidence, reasoning }
}

/// The schema that an answer is asked to have.
#[must_use]
pub fn schema(cases: &[String]) -> Value {
    json!({
        "type": "object",
        "properties": {
            "verdict": {"type": "string", "enum": cases},
            "confidence": {"type": "number", "minimum": 0, "maximum": 1},
            "reasoning": {"type": "string"},
        },
        "required": ["verdict"],
        "additionalProperties": false,
    })
}

/// The case that a text stands for, and the layer that says so.
fn matched(text: &str, rules: &Rules, exactly: Layer) -> (Option<String>, Layer) {
    if let Some(case) = rules.cases.iter().find(|case| *case == text) {
        return (Some(case.clone()), exactly);
    }
    let plain = normal(text);
    if plain.is_empty() {
        return (None, Layer::None);
    }
    if let Some(case) = only(rules.cases.iter().filter(|case| normal(case) == plain)) {
        return (Some(case.clone()), Layer::Normalize);
    }
    match rules.fuzzy.then(|| fuzzy(&plain, &rules.cases)).flatten() {
        Some(case) => (Some(case.clone()), Layer::FuzzyMatch),
        None => (None, Layer::None),
    }
}

/// A text without case, marks around it, and different ways to write the same letters.
fn normal(text: &str) -> String {
    let text: String = text.nfkc().collect::<String>().to_lowercase();
    let is_mark = |c: char| c.is_whitespace() || (!c.is_alphanumeric() && !"+-/#&".contains(c));
    text.trim_matches(is_mark).to_owned()
}

/// The case that a text is close to, or the only one that is a whole word of it.
fn fuzzy<'r>(plain: &str, cases: &'r [String]) -> Option<&'r String> {
    let short = plain.chars().nth(COMPARED_MAX).is_none();
    if short {
        let near = cases.iter().filter_map(|case| {
            let name = normal(case);
            let edits = edits(plain, &name)?;
            // What shares nothing with a short case is not close to it.
            (edits <= EDITS_MAX && edits < name.chars().count()).then_some((edits, case))
        });
        let near: Vec<(usize, &String)> = near.collect();
        if let Some(least) = near.iter().map(|(edits, _)| *edits).min() {
            let nearest = near.iter().filter(|(edits, _)| *edits == least).map(|(_, case)| *case);
            return only(nearest);
        }
    }
    only(cases.iter().filter(|case| holds_word(plain, &normal(case))))
}

/// Whether a text has another in it that no letter or digit stands next to.
fn holds_word(text: &str, word: &str) -> bool {
    !word.is_empty()
        && text.match_indices(word).any(|(at, _)| {
            let before = text.get(..at).and_then(|before| before.chars().next_back());
            let after = text.get(at + word.len()..).and_then(|after| after.chars().next());
            ![before, after].into_iter().flatten().any(char::is_alphanumeric)
        })
}

/// The one thing there is; none when there are several.
fn only<T>(mut all: impl Iterator<Item = T>) -> Option<T> {
    let first = all.next()?;
    all.next().is_none().then_some(first)
}

/// How many letters have to be added, removed or replaced; none when it is far more than counts.
fn edits(a: &str, b: &str) -> Option<usize> {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > EDITS_MAX {
        return None;
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, left) in a.iter().enumerate() {
        let mut corner = i;
        let mut last = i + 1;
        if let Some(first) = row.first_mut() {
            *first = last;
        }
        for (right, cell) in b.iter().zip(row.iter_mut().skip(1)) {
            let above = *cell;
            last = (corner + usize::from(left != right)).min(above + 1).min(last + 1);
            corner = above;
            *cell = last;
        }
    }
    row.last().copied()
}
