//! What a step's notes must satisfy.

use cairn_core::canonical::StrictValue;
use cairn_core::plan::Check;
use cairn_core::text::Slug;
use regex::RegexBuilder;

use super::{Build, schema};
use crate::diagnostic::Code;
use crate::read::{Fields, Spot};

/// How many requirements an agent is told of.
const LINES_MAX: usize = 5;
/// How long a text may be asked to be.
const LENGTH_MAX: u32 = 1_000_000;

/// How many bytes a schema may have.
const SCHEMA_MAX: usize = 4 << 10;

const RULE: &[&str] =
    &["type", "value", "pattern", "flags", "min", "max", "message", "schema", "condition"];

#[derive(Clone, Copy)]
enum Kind {
    Contains,
    Regex,
    Length,
    Schema,
}

impl<'a> Build<'a> {
    /// The checks of a step: a list of rules that all hold, or rules that are put together.
    pub(super) fn check(&mut self, spot: &Spot<'a>, step: &str) -> Option<Check> {
        let mut counter = 0;
        let check = if spot.is_list() {
            let rules = spot.items();
            if rules.is_empty() {
                spot.error(Code::InvalidValue, "the list of checks is empty");
            }
            let checks = self.checks(&rules, step, &mut counter)?;
            Check::All { checks }
        } else {
            self.one_check(spot, step, &mut counter)?
        };
        if only_phrases(&check) {
            spot.warn(
                Code::CheckGameable,
                "these checks can be passed by writing a phrase",
                "ask for evidence: a pattern of the result, a length, or an `outputContract`",
            );
        }
        Some(check)
    }

    fn checks(
        &mut self,
        rules: &[Spot<'a>],
        step: &str,
        counter: &mut usize,
    ) -> Option<Vec<Check>> {
        let checks: Vec<Option<Check>> =
            rules.iter().map(|rule| self.one_check(rule, step, counter)).collect();
        checks.into_iter().collect()
    }

    fn one_check(&mut self, spot: &Spot<'a>, step: &str, counter: &mut usize) -> Option<Check> {
        if spot.node.get("type").is_some() || !spot.is_map() {
            return self.rule(&spot.fields(RULE)?, step, counter);
        }
        let fields = spot.fields(&["and", "or", "not"])?;
        let found: Vec<&str> =
            ["and", "or", "not"].into_iter().filter(|name| fields.get(name).is_some()).collect();
        let [name] = found.as_slice() else {
            let message = "a check has a `type`, or exactly one of `and`, `or` and `not`";
            spot.error(Code::InvalidValue, message);
            return None;
        };
        let inner = fields.get(name)?;
        if *name == "not" {
            let check = self.one_check(&inner, step, counter)?;
            return Some(Check::Not { check: Box::new(check) });
        }
        let rules = inner.items();
        if inner.is_list() && rules.is_empty() {
            inner.error(Code::InvalidValue, "the list of checks is empty");
            return None;
        }
        let checks = self.checks(&rules, step, counter)?;
        Some(if *name == "and" { Check::All { checks } } else { Check::Any { checks } })
    }

    fn rule(&mut self, fields: &Fields<'a>, step: &str, counter: &mut usize) -> Option<Check> {
        let kind = fields.need("type")?;
        let chosen = kind.choice(&[
            ("contains", Kind::Contains),
            ("regex", Kind::Regex),
            ("length", Kind::Length),
            ("schema", Kind::Schema),
        ]);
        let message = fields.need_text("message");
        *counter += 1;
        let named = format!("{step}.check.{counter}");
        let condition: Option<Slug> = self.condition(fields.get("condition").as_ref(), &named);
        match chosen? {
            Kind::Contains => {
                let value = fields.need_text("value")?;
                Some(Check::Contains { condition, message: message?, value })
            }
            Kind::Regex => {
                let (flags, pattern) = pattern(fields)?;
                Some(Check::Regex { condition, flags, message: message?, pattern })
            }
            Kind::Length => {
                let bound = |name| fields.get(name).and_then(|spot| spot.whole(0, LENGTH_MAX));
                let (min, max) = (bound("min"), bound("max"));
                if fields.get("min").is_none() && fields.get("max").is_none() {
                    fields.spot.error(Code::MissingField, "`length` needs `min`, `max` or both");
                    return None;
                }
                if min.zip(max).is_some_and(|(min, max)| min > max) {
                    fields.spot.error(Code::InvalidValue, "`min` is more than `max`");
                }
                Some(Check::Length { condition, max, message: message?, min })
            }
            Kind::Schema => {
                let spot = fields.need("schema")?;
                let schema = schema::read(&spot)?;
                let bytes = schema.to_string().len();
                if bytes > SCHEMA_MAX {
                    let text = format!("the schema has {bytes} bytes; at most {SCHEMA_MAX} may be");
                    spot.error_hint(Code::TooLong, text, "the agent is shown it: ask for less");
                }
                Some(Check::Schema {
                    condition,
                    message: message?,
                    schema: StrictValue::new(schema),
                })
            }
        }
    }
}

fn pattern(fields: &Fields<'_>) -> Option<(String, String)> {
    let spot = fields.need("pattern")?;
    let pattern = spot.filled()?;
    let given = fields.get("flags").and_then(|spot| spot.text().map(|text| (spot.clone(), text)));
    let given = given.as_ref();
    if let Some((spot, text)) =
        given.filter(|(_, text)| text.chars().any(|c| !"gimsuy".contains(c)))
    {
        let message = format!("`{text}` are not flags; there are `i`, `m`, `s` and `u`");
        spot.error(Code::UnknownValue, message);
        return None;
    }
    if !schema::has_few_patterns(&spot, pattern) {
        return None;
    }
    // `g` and `y` make no difference to whether a pattern is found.
    let has = |flag: char| given.is_some_and(|(_, text)| text.contains(flag));
    let built = RegexBuilder::new(pattern)
        .case_insensitive(has('i'))
        .multi_line(has('m'))
        .dot_matches_new_line(has('s'))
        .size_limit(1 << 20)
        .build();
    if let Err(error) = built {
        let text = error.to_string();
        let reason = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
        let hint = "patterns have no look-around and no back-references";
        spot.error_hint(Code::InvalidValue, format!("not a pattern: {reason}"), hint);
        return None;
    }
    let flags = ['i', 'm', 's', 'u'].into_iter().filter(|flag| has(*flag)).collect();
    Some((flags, pattern.to_owned()))
}

/// Whether nothing but fixed phrases is asked for.
fn only_phrases(check: &Check) -> bool {
    match check {
        Check::Contains { .. } => true,
        Check::All { checks } => checks.len() == 1 && checks.iter().all(only_phrases),
        Check::Any { checks } => checks.iter().any(only_phrases),
        Check::Not { .. } | Check::Regex { .. } | Check::Length { .. } | Check::Schema { .. } => {
            false
        }
    }
}

/// What an agent is told of the checks.
pub(super) fn lines(check: &Check) -> Vec<String> {
    let mut lines = Vec::new();
    describe(check, &mut lines);
    lines.truncate(LINES_MAX);
    lines
}

fn describe(check: &Check, lines: &mut Vec<String>) {
    match check {
        Check::All { checks } => checks.iter().for_each(|check| describe(check, lines)),
        other => lines.push(other.told()),
    }
}
