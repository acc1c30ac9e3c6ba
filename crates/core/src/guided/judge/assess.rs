//! Assessments: judgements in several respects, read into their normal form.

use serde_json::{Map, Value, json};

use super::{Asked, Judged, Problem, at_step, kind, kinds, malformed};
use crate::plan::{Assessment, Consequence, Dimension, Prompt};
use crate::reason::{ContractViolation, Reason};

/// The contract that assessments are given under.
const CONTRACT: &str = "wr.contracts.assessment";

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
    fn artifact(&self, summary: Option<&Value>) -> Value {
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
        if let (Value::Object(members), Some(summary)) = (&mut kept, summary) {
            members.insert("summary".to_owned(), summary.clone());
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
                let follow = consequences.filter_map(|c| follow_up(asked, c, &accepted));
                judged.problems.extend(follow);
                judged.artifacts.remove(place);
                judged.accepted.push(accepted.artifact(artifact.get("summary")));
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
    let level = |d: &Dimension| (d.id.clone(), json!(d.levels.join("|")));
    let dimensions: Map<String, Value> = wanted.dimensions.iter().map(level).collect();
    let example = json!({
        "kind": kinds::ASSESSMENT, "assessmentId": wanted.id, "dimensions": dimensions,
    });
    format!("give an artifact like {example}, one level for each dimension")
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

/// What has to be done first when a level asks for more.
fn follow_up(asked: Asked<'_>, from: &Consequence, accepted: &Accepted) -> Option<Problem> {
    if from.assessment.as_ref().is_some_and(|id| *id != accepted.assessment_id) {
        return None;
    }
    let at: Vec<&str> = accepted
        .dimensions
        .iter()
        .filter(|dimension| dimension.level == from.level)
        .map(|dimension| dimension.dimension_id.as_str())
        .collect();
    (!at.is_empty()).then(|| Problem {
        reason: Reason::Contract(ContractViolation::InvalidRequiredOutput),
        pointer: at_step(&asked.step.id),
        message: format!(
            "`{}` is `{}` in {}: more is to be done before this step is over",
            accepted.assessment_id,
            from.level,
            at.join(", "),
        ),
        fix: Some(format!("{} Then assess again and send the new levels.", from.guidance)),
    })
}
