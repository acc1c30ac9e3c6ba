//! Assessments: judgements in several respects, read into their normal form.

use serde_json::{Map, Value, json};

use super::{Asked, Judged, Problem, at_step, kind, kinds, malformed};
use crate::plan::{Assessment, Consequence, Dimension, Prompt};
use crate::reason::{ContractViolation, Reason};
use crate::text::truncate;

/// The contract that assessments are given under.
const CONTRACT: &str = "wr.contracts.assessment";
/// The member in which an agent says that the user accepts a level that asks for more work.
const ACCEPTED: &str = "acceptedByUser";
/// How much of an author's guidance a blocker tells, so that the way out fits beside it.
const GUIDANCE_MAX: usize = 512;

/// A judgement in its normal form, as its artifact keeps it.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Accepted {
    pub assessment_id: String,
    pub dimensions: Vec<AcceptedDimension>,
    /// How levels were read, where they were not written exactly.
    pub normalization_notes: Vec<String>,
}

/// One respect of a judgement.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub struct AcceptedDimension {
    pub dimension_id: String,
    pub level: String,
    pub rationale: Option<String>,
}

impl Accepted {
    /// The artifact that keeps it.
    fn artifact(&self, sent: &Value) -> Value {
        let dimension = |d: &AcceptedDimension| {
            let mut kept = json!({"dimensionId": d.dimension_id, "level": d.level});
            if let (Value::Object(members), Some(rationale)) = (&mut kept, &d.rationale) {
                members.insert("rationale".to_owned(), json!(rationale));
            }
            kept
        };
        let mut kept = json!({
            "assessmentId": self.assessment_id,
            "dimensions": self.dimensions.iter().map(dimension).collect::<Vec<_>>(),
            "kind": kinds::ASSESSMENT,
            "normalizationNotes": self.normalization_notes,
        });
        for name in ["summary", ACCEPTED] {
            if let (Value::Object(members), Some(said)) = (&mut kept, sent.get(name)) {
                members.insert(name.to_owned(), said.clone());
            }
        }
        kept
    }

    /// Reads a kept artifact; none when it is another.
    #[must_use]
    pub fn read(artifact: &Value) -> Option<Self> {
        if kind(artifact) != Some(kinds::ASSESSMENT) {
            return None;
        }
        let text = |value: &Value, name: &str| Some(value.get(name)?.as_str()?.to_owned());
        let dimension = |value: &Value| {
            Some(AcceptedDimension {
                dimension_id: text(value, "dimensionId")?,
                level: text(value, "level")?,
                rationale: text(value, "rationale"),
            })
        };
        let notes = artifact.get("normalizationNotes")?.as_array()?;
        Some(Self {
            assessment_id: text(artifact, "assessmentId")?,
            dimensions: artifact
                .get("dimensions")?
                .as_array()?
                .iter()
                .map(dimension)
                .collect::<Option<_>>()?,
            normalization_notes: notes.iter().filter_map(|n| Some(n.as_str()?.into())).collect(),
        })
    }
}

/// Reads the assessments that a step asks for, and what follows from them.
pub(super) fn judge(asked: Asked<'_>, prompt: &Prompt, judged: &mut Judged) {
    let known = asked.plan.guide.as_ref().map(|guide| guide.assessments.as_slice());
    for id in &prompt.assessments {
        let wanted = known.unwrap_or_default().iter().find(|assessment| assessment.id == *id);
        let Some(wanted) = wanted else { continue };
        let Some(place) = find(&judged.artifacts, id, prompt.assessments.len() == 1) else {
            judged.problems.push(missing(wanted));
            continue;
        };
        let Some(artifact) = judged.artifacts.get(place).cloned() else { continue };
        match read(wanted, &artifact) {
            Err(faults) => judged.problems.push(malformed(
                CONTRACT,
                format!("the assessment `{id}`: {}", faults.join("; ")),
                fix(wanted),
            )),
            Ok(accepted) => {
                let consequences = prompt.consequences.iter();
                let word = artifact.get(ACCEPTED).and_then(Value::as_str).map(str::trim);
                let word = word.filter(|word| !word.is_empty());
                let follow = consequences.filter_map(|c| follow_up(asked, c, &accepted, word));
                match word {
                    None => judged.problems.extend(follow),
                    Some(_) => judged.accepted_by_user.extend(follow),
                }
                judged.artifacts.remove(place);
                judged.accepted.push(accepted.artifact(&artifact));
            }
        }
    }
}

/// The artifact that answers an assessment: the last one that names it.
fn find(artifacts: &[Value], id: &str, only: bool) -> Option<usize> {
    artifacts.iter().rposition(|artifact| {
        let named = artifact.get("assessmentId").and_then(Value::as_str);
        kind(artifact) == Some(kinds::ASSESSMENT)
            && (named == Some(id) || (only && named.is_none()))
    })
}

fn missing(wanted: &Assessment) -> Problem {
    Problem {
        reason: Reason::Contract(ContractViolation::MissingRequiredOutput),
        ..malformed(CONTRACT, format!("the assessment `{}` is missing", wanted.id), fix(wanted))
    }
}

fn fix(wanted: &Assessment) -> String {
    let choices = wanted.dimensions.iter();
    let choices: Vec<String> =
        choices.map(|d| format!("{}: {}", d.id, d.levels.join(" | "))).collect();
    let example = example_with(wanted, |d| json!(d.levels.first()));
    format!("give an artifact like {example}, with your level for each ({})", choices.join("; "))
}

/// An assessment to fill in.
pub(super) fn example(wanted: &Assessment) -> Value {
    example_with(wanted, |d| json!(format!("<{}>", d.levels.join(" | "))))
}

fn example_with(wanted: &Assessment, level: impl Fn(&Dimension) -> Value) -> Value {
    let levels = wanted.dimensions.iter().map(|d| (d.id.clone(), level(d)));
    let dimensions: Map<String, Value> = levels.collect();
    json!({"kind": kinds::ASSESSMENT, "assessmentId": wanted.id, "dimensions": dimensions})
}

/// Reads the levels; they may be a map by dimension or a list.
fn read(wanted: &Assessment, artifact: &Value) -> Result<Accepted, Vec<String>> {
    let dimensions = artifact.get("dimensions").unwrap_or(&Value::Null);
    let given = entries(dimensions);
    if dimensions.as_array().is_some_and(|items| items.len() > given.len()) {
        let fault = "`dimensions` is a list with an item that names no `dimensionId`";
        return Err(vec![format!("{fault}; send a map of dimension to level")]);
    }
    let mut faults: Vec<String> = given
        .iter()
        .filter(|(id, _)| !wanted.dimensions.iter().any(|d| d.id == *id))
        .map(|(id, _)| format!("it has no dimension `{id}`"))
        .collect();
    let mut accepted = Accepted {
        assessment_id: wanted.id.clone(),
        dimensions: Vec::new(),
        normalization_notes: Vec::new(),
    };
    for dimension in &wanted.dimensions {
        let Some((_, entry)) = given.iter().find(|(id, _)| *id == dimension.id) else {
            if dimension.required {
                faults.push(format!("dimension `{}` has no level", dimension.id));
            }
            continue;
        };
        let text = entry.as_str().or_else(|| entry.get("level")?.as_str()).unwrap_or_default();
        let level = dimension.levels.iter().find(|level| *level == text).or_else(|| {
            let same = |level: &&String| level.eq_ignore_ascii_case(text.trim());
            dimension.levels.iter().find(same)
        });
        match level {
            None => faults.push(format!(
                "the level of `{}` must be one of {}, and is `{text}`",
                dimension.id,
                dimension.levels.join(", "),
            )),
            Some(level) => {
                if level != text {
                    let note = format!("{}: `{text}` was read as `{level}`", dimension.id);
                    accepted.normalization_notes.push(note);
                }
                accepted.dimensions.push(AcceptedDimension {
                    dimension_id: dimension.id.clone(),
                    level: level.clone(),
                    rationale: entry.get("rationale").and_then(Value::as_str).map(str::to_owned),
                });
            }
        }
    }
    if faults.is_empty() { Ok(accepted) } else { Err(faults) }
}

/// Each dimension with what was said of it.
fn entries(dimensions: &Value) -> Vec<(String, Value)> {
    match dimensions {
        Value::Object(members) => members.iter().map(|(id, v)| (id.clone(), v.clone())).collect(),
        Value::Array(items) => items
            .iter()
            .filter_map(|item| {
                let id = item.get("dimensionId").or_else(|| item.get("id"))?.as_str()?;
                Some((id.to_owned(), item.clone()))
            })
            .collect(),
        _ => Vec::new(),
    }
}

/// What has to be done first when a level asks for more, or stays undone since the user accepts
/// it.
fn follow_up(
    asked: Asked<'_>,
    from: &Consequence,
    accepted: &Accepted,
    word: Option<&str>,
) -> Option<Problem> {
    if from.assessment.as_ref().is_some_and(|id| *id != accepted.assessment_id) {
        return None;
    }
    let at: Vec<&str> = accepted
        .dimensions
        .iter()
        .filter(|dimension| dimension.level == from.level)
        .map(|dimension| dimension.dimension_id.as_str())
        .collect();
    let (id, level, at) = match at.is_empty() {
        true => return None,
        false => (&accepted.assessment_id, &from.level, at.join(", ")),
    };
    Some(Problem {
        reason: Reason::Contract(ContractViolation::InvalidRequiredOutput),
        pointer: at_step(&asked.step.id),
        message: match word {
            None => {
                format!("`{id}` is `{level}` in {at}: more work is needed before this step is done")
            }
            Some(word) => format!("`{id}` stays `{level}` in {at}; the user accepted it: {word}"),
        },
        fix: Some(format!(
            "{} Then assess again, honestly, and send the new levels. Do only what your task \
             covers, and leave the rest to the user. If the user accepts the state as it is, send \
             the same assessment with `\"{ACCEPTED}\": \"<what the user said>\"` in it: the step \
             passes, and a gap is recorded.",
            truncate(&from.guidance, GUIDANCE_MAX)
        )),
    })
}
