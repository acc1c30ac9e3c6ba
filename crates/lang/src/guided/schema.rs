//! JSON schemas in workflows: a closed set of keywords, so that every program that
//! checks them means the same.

use std::collections::BTreeSet;

use cairn_core::pattern;
use regex::RegexBuilder;
use serde_json::{Map, Value, json};

use crate::diagnostic::Code;
use crate::read::Spot;
use crate::source;

/// What a keyword holds.
#[derive(Clone, Copy)]
enum Holds {
    Any,
    Choices,
    Count,
    Flag,
    Number,
    Pattern,
    Schema,
    Schemas,
    Text,
    Texts,
    Type,
}

/// Every keyword there is.
const KEYWORDS: [(&str, Holds); 16] = [
    ("additionalProperties", Holds::Flag),
    ("const", Holds::Any),
    ("description", Holds::Text),
    ("enum", Holds::Choices),
    ("items", Holds::Schema),
    ("maxItems", Holds::Count),
    ("maxLength", Holds::Count),
    ("maximum", Holds::Number),
    ("minItems", Holds::Count),
    ("minLength", Holds::Count),
    ("minimum", Holds::Number),
    ("pattern", Holds::Pattern),
    ("properties", Holds::Schemas),
    ("required", Holds::Texts),
    ("title", Holds::Text),
    ("type", Holds::Type),
];

const TYPES: [(&str, ()); 7] = [
    ("array", ()),
    ("boolean", ()),
    ("integer", ()),
    ("null", ()),
    ("number", ()),
    ("object", ()),
    ("string", ()),
];

/// How large a count may be.
const COUNT_MAX: u32 = 1_000_000;
/// How large a pattern may become, in bytes, and how many there may be: each is looked at.
const PATTERN_MAX: usize = 256 << 10;
const PATTERNS_MAX: u32 = 100;

/// A schema, with the lists in order whose order means nothing.
pub(crate) fn read(spot: &Spot<'_>) -> Option<Value> {
    let known = KEYWORDS.map(|(name, _)| name);
    let fields = spot.fields(&known)?;
    let mut schema = Map::new();
    let mut whole = true;
    for (name, holds) in KEYWORDS {
        let Some(given) = fields.get(name) else { continue };
        let value = keyword(&given, holds);
        whole &= value.is_some();
        schema.extend(value.map(|value| (name.to_owned(), value)));
    }
    if spot.is_map() && fields.all().next().is_none() {
        let hint = "say at least the `type`";
        spot.error_hint(Code::InvalidValue, "the schema asks for nothing", hint);
        return None;
    }
    whole.then_some(Value::Object(schema))
}

fn keyword(spot: &Spot<'_>, holds: Holds) -> Option<Value> {
    match holds {
        Holds::Any => Some(spot.node.to_json()),
        Holds::Choices => {
            let empty = spot.items().is_empty();
            if spot.is_list() && empty {
                spot.error(Code::InvalidValue, "the list of values is empty");
            }
            (!empty).then(|| spot.node.to_json())
        }
        Holds::Count => spot.whole(0, COUNT_MAX).map(|count| json!(count)),
        Holds::Flag => spot.flag().map(Value::Bool),
        Holds::Number => match &spot.node.value {
            source::Value::Number(number) => Some(Value::Number(number.clone())),
            _ => {
                spot.error(Code::WrongType, "a number should stand here");
                None
            }
        },
        Holds::Pattern => {
            let pattern = spot.filled()?;
            if !has_few_patterns(spot, pattern) {
                return None;
            }
            match RegexBuilder::new(pattern).size_limit(PATTERN_MAX).build() {
                Ok(_) => Some(json!(pattern)),
                Err(regex::Error::CompiledTooBig(_)) => {
                    let hint = "repeat less, or say `[0-9A-Za-z_]` in place of `\\w`";
                    spot.error_hint(Code::TooLong, "this pattern is too large", hint);
                    None
                }
                Err(_) => {
                    let hint = "patterns have no look-around and no back-references";
                    spot.error_hint(Code::InvalidValue, "this is not a pattern", hint);
                    None
                }
            }
        }
        Holds::Schema => read(spot),
        Holds::Schemas => {
            let members = spot.members();
            let read: Vec<Option<(String, Value)>> = members
                .iter()
                .map(|(name, spot)| Some(((*name).to_owned(), property(spot)?)))
                .collect();
            let read = read.into_iter().collect::<Option<Map<_, _>>>();
            read.filter(|_| spot.is_map()).map(Value::Object)
        }
        Holds::Text => spot.text().map(|text| json!(text)),
        Holds::Texts => {
            let texts: BTreeSet<String> = spot.texts().into_iter().collect();
            spot.is_list().then(|| json!(texts))
        }
        Holds::Type if spot.is_list() => {
            let types: Vec<Option<&str>> = spot.items().iter().map(one_type).collect();
            let types = types.into_iter().collect::<Option<BTreeSet<&str>>>()?;
            if types.is_empty() {
                spot.error(Code::InvalidValue, "the list of types is empty");
                return None;
            }
            Some(json!(types))
        }
        Holds::Type => one_type(spot).map(|name| json!(name)),
    }
}

/// The schema of a property, which may ask for nothing: then any value will do.
fn property(spot: &Spot<'_>) -> Option<Value> {
    match &spot.node.value {
        source::Value::Map(entries) if entries.is_empty() => Some(json!({})),
        _ => read(spot),
    }
}

fn one_type<'a>(spot: &Spot<'a>) -> Option<&'a str> {
    spot.choice(&TYPES)?;
    spot.text()
}

/// Counts a pattern of the workflow; says so when there are more than may be.
pub(super) fn has_few_patterns(spot: &Spot<'_>, text: &str) -> bool {
    let is_one_more = spot.is_one_more_pattern(PATTERNS_MAX);
    if !is_one_more {
        let message = format!("there are more than {PATTERNS_MAX} patterns");
        spot.error_hint(Code::TooLong, message, "let a step of the workflow check the rest");
        return false;
    }
    let size = pattern::size(text).unwrap_or_default();
    let is_small = size <= pattern::SIZE_MAX && spot.add_pattern_size(size) <= pattern::SIZES_MAX;
    if !is_small {
        let hint = "repeat less, or say `[0-9A-Za-z_]` in place of `\\w`";
        spot.error_hint(Code::TooLong, "this pattern is too large", hint);
    }
    is_small
}
