//! What an agent hands in, and whether it is what the step asks for.

use cairn_core::event::limits;
use cairn_core::reason::{Blocker, BlockerCode, BlockerReport, Pointer};
use cairn_core::schema;
use cairn_core::text::{Slug, truncate};
use serde_json::{Map, Value, json};

use super::reads::Reads;
use crate::error::{Error, Result};
use crate::guided::answer::{Asks, NotesAsked, Warning, WarningCode};
use crate::guided::ask::Output;
use crate::guided::input;

/// How many artifacts are taken.
const ARTIFACTS_MAX: usize = 32;

/// What an agent handed in, as the step's output.
pub(super) struct Taken {
    pub(super) output: Value,
    pub(super) warnings: Vec<Warning>,
}

/// A step that is handed out: what it asks for, and what later steps read of it.
#[derive(Clone, Copy)]
pub(super) struct Handed<'a> {
    pub(super) step: &'a Slug,
    pub(super) request: &'a Value,
    pub(super) reads: &'a Reads,
}

/// What comes of what an agent sent: the step's output, or why the run stays where it is.
/// Nothing but the call, the question and the pinned plan counts, so the same call always gets
/// the same.
pub(super) fn judge(
    handed: Handed<'_>,
    sent: Option<&Output>,
) -> Result<Result<Taken, Vec<Blocker>>> {
    let Handed { step, request, reads } = handed;
    let nothing = Output::default();
    let sent = sent.unwrap_or(&nothing);
    within_limits(sent)?;
    let contract = request.get("output_contract");
    let notes = sent.notes.as_deref().filter(|notes| !notes.trim().is_empty());
    let judged = match contract {
        Some(contract) => under(contract, step, &sent.artifacts, notes),
        None => free(handed, &sent.artifacts, notes),
    };
    let judged = judged.and_then(|taken| match missing(step, contract, reads, &taken.output) {
        Some(blocker) => Err(blocker),
        None => Ok(taken),
    });
    Ok(judged.map_err(|blocker| match BlockerReport::new(vec![blocker]) {
        Ok(report) => report.blockers().to_vec(),
        Err(_) => Vec::new(),
    }))
}

fn within_limits(sent: &Output) -> Result<()> {
    if sent.artifacts.len() > ARTIFACTS_MAX {
        return Err(input::invalid(
            format!(
                "there are {} artifacts, and at most {ARTIFACTS_MAX} are allowed",
                sent.artifacts.len()
            ),
            "send what the step asks for",
            json!({"field": "output.artifacts", "max": ARTIFACTS_MAX}),
        ));
    }
    // All of them together are one output, and may have as much as a context.
    let whole = json!({"artifacts": sent.artifacts});
    input::context(Some(&whole)).map(drop).map_err(|error| match error {
        Error::Invalid { message, .. } => input::invalid(
            message.replace("`context", "`output"),
            "put the bulk of it into a file and name its path in the artifact",
            json!({"field": "output.artifacts"}),
        ),
        other => other,
    })
}

/// What later steps read of an output and it has not. What a contract names is for the contract
/// to ask for, and what it has no room for nobody can send.
fn missing(
    step: &Slug,
    contract: Option<&Value>,
    reads: &Reads,
    output: &Value,
) -> Option<Blocker> {
    let is_asked_for = |field: &str| {
        contract.is_none_or(|contract| !names(contract, field) && has_room(contract, field))
    };
    let members = output.as_object()?;
    let is_missing = |field: &&str| is_asked_for(field) && !members.contains_key(*field);
    let missing: Vec<&str> = reads.needed().filter(is_missing).collect();
    if missing.is_empty() {
        return None;
    }
    let reader = |field: &&str| format!("`{field}`, which {} reads", reads.readers(field));
    let told: Vec<String> = missing.iter().map(reader).collect();
    let mut artifact: Map<String, Value> = missing
        .iter()
        .filter(|field| **field != NOTES)
        .map(|field| ((*field).to_owned(), json!("<…>")))
        .collect();
    let notes = missing.contains(&NOTES);
    let fix = if artifact.is_empty() {
        "send `output.notesMarkdown` with what you did and found, beside what you sent".to_owned()
    } else {
        artifact.insert("kind".to_owned(), json!(step));
        let also =
            if notes { ", and `output.notesMarkdown` with what you did and found" } else { "" };
        format!(
            "send `output.artifacts` with one artifact such as {}{also}",
            Value::Object(artifact)
        )
    };
    Some(Blocker {
        code: BlockerCode::MissingRequiredOutput,
        pointer: Pointer::WorkflowStep { step_id: step.clone() },
        message: truncate(
            &format!("the output lacks {}", told.join("; and ")),
            limits::BLOCKER_MESSAGE,
        ),
        suggested_fix: Some(truncate(&fix, limits::BLOCKER_FIX)),
    })
}

/// The field that notes become.
const NOTES: &str = "notes";
/// The field that several artifacts become.
const ARTIFACTS: &str = "artifacts";

/// The output of a step that asks for nothing in particular.
fn free(handed: Handed<'_>, artifacts: &[Value], notes: Option<&str>) -> Result<Taken, Blocker> {
    let Handed { step, reads, .. } = handed;
    let mut output = match artifacts {
        [] if notes.is_none() => {
            return Err(Blocker {
                code: BlockerCode::MissingRequiredOutput,
                pointer: Pointer::WorkflowStep { step_id: step.clone() },
                message: "the step is said to be done, and nothing says what came of it".to_owned(),
                suggested_fix: Some(
                    "send `output.notesMarkdown` with what you did and found".to_owned(),
                ),
            });
        }
        [] => Map::new(),
        [one] if !reads.needs(ARTIFACTS) => bare(one, false),
        several => Map::from_iter([(ARTIFACTS.to_owned(), json!(several))]),
    };
    let mut warnings: Vec<Warning> = unread(step, reads, &output).into_iter().collect();
    warnings.extend(keep_notes(&mut output, notes));
    Ok(Taken { output: Value::Object(output), warnings })
}

/// A warning when nothing of an artifact is read by any later step: it is recorded, and that is
/// all.
fn unread(step: &Slug, reads: &Reads, output: &Map<String, Value>) -> Option<Warning> {
    let mut fields = output.keys().filter(|field| *field != "kind").peekable();
    fields.peek()?;
    let fields: Vec<&String> = fields.collect();
    if fields.iter().any(|field| reads.may_read(field)) || !reads.names_any() {
        return None;
    }
    let fields: Vec<String> =
        fields.iter().map(|field| format!("`steps.{step}.{field}`")).collect();
    Some(Warning {
        code: WarningCode::OutputUnread,
        message: truncate(
            &format!(
                "recorded as {}, which no later step reads by name; what they read is {}",
                fields.join(", "),
                reads.told(step)
            ),
            limits::SUMMARY,
        ),
    })
}

/// The output of a step with a contract: one artifact, held to it.
fn under(
    contract: &Value,
    step: &Slug,
    artifacts: &[Value],
    notes: Option<&str>,
) -> Result<Taken, Blocker> {
    let blocker = |code, message: &str| Blocker {
        code,
        pointer: Pointer::OutputContract { contract_ref: step.to_string() },
        message: truncate(message, limits::BLOCKER_MESSAGE),
        suggested_fix: Some(truncate(&fix(contract, step), limits::BLOCKER_FIX)),
    };
    let [artifact] = artifacts else {
        return Err(match artifacts.len() {
            0 => blocker(
                BlockerCode::MissingRequiredOutput,
                "the step asks for an artifact, and there is none in `output.artifacts`",
            ),
            several => blocker(
                BlockerCode::InvalidRequiredOutput,
                &format!("the step asks for one artifact, and {several} came"),
            ),
        });
    };
    let mut output = bare(artifact, names(contract, "kind"));
    let mut warnings = Vec::new();
    if is_of_objects(contract) && has_room(contract, "notes") {
        warnings = keep_notes(&mut output, notes);
    } else if notes.is_some() {
        warnings.push(Warning {
            code: WarningCode::NotesNotKept,
            message: "not recorded: notes. The contract of this step has no place for them; the \
                      artifact is recorded"
                .to_owned(),
        });
    }
    let output = match is_of_objects(contract) {
        true => Value::Object(output),
        false => output.remove("value").unwrap_or_default(),
    };
    let faults = schema::faults(contract, &output, "the output");
    if faults.is_empty() {
        return Ok(Taken { output, warnings });
    }
    Err(blocker(BlockerCode::InvalidRequiredOutput, &faults.join("; ")))
}

/// The members of an artifact, without the name of its kind unless that is one of them.
fn bare(artifact: &Value, with_kind: bool) -> Map<String, Value> {
    let mut members = artifact.as_object().cloned().unwrap_or_default();
    if !with_kind {
        members.remove("kind");
    }
    members
}

fn keep_notes(output: &mut Map<String, Value>, notes: Option<&str>) -> Vec<Warning> {
    let Some(notes) = notes else { return Vec::new() };
    if output.contains_key(NOTES) {
        return vec![Warning {
            code: WarningCode::NotesNotKept,
            message: "not recorded: notes. The artifact has `notes` of its own, which are recorded"
                .to_owned(),
        }];
    }
    let kept = truncate(notes, limits::NOTES);
    let cut = kept.len() < notes.len();
    output.insert(NOTES.to_owned(), json!(kept));
    let warning = Warning {
        code: WarningCode::NotesTruncated,
        message: "the notes were longer than 4096 bytes and were cut at their end".to_owned(),
    };
    cut.then_some(warning).into_iter().collect()
}

fn is_of_objects(contract: &Value) -> bool {
    match contract.get("type") {
        None => true,
        Some(Value::Array(types)) => types.iter().any(|kind| kind == "object"),
        Some(kind) => kind == "object",
    }
}

/// What the answer to a step brings.
pub(super) fn asks(contract: Option<&Value>, step: &Slug, reads: &Reads) -> Asks {
    let own = |field: &&str| *field != NOTES && *field != ARTIFACTS;
    let fields: Vec<&str> = match contract {
        Some(contract) => reads.needed().filter(own).filter(|f| !names(contract, f)).collect(),
        None => reads.needed().filter(own).collect(),
    };
    let mut artifact = contract.map(|contract| example(contract, step));
    if artifact.is_none() && (!fields.is_empty() || reads.needs(ARTIFACTS)) {
        artifact = Some(json!({"kind": step}));
    }
    if let Some(Value::Object(members)) = &mut artifact {
        members.extend(fields.iter().map(|field| ((*field).to_owned(), json!("<…>"))));
    }
    let notes = match contract {
        Some(contract) if !records_notes(contract) => NotesAsked::NotRecorded,
        _ if reads.needs(NOTES) || artifact.is_none() => NotesAsked::Required,
        _ => NotesAsked::Optional,
    };
    Asks { notes, artifacts: artifact.into_iter().collect(), context: Vec::new() }
}

/// What the answer to a step brings, in words.
pub(super) fn demands(contract: Option<&Value>, asks: &Asks) -> String {
    let mut parts = Vec::new();
    if let Some(artifact) = asks.artifacts.first() {
        let mut part = format!("one artifact in `output.artifacts`, such as {artifact}");
        if let Some(contract) = contract {
            part.push_str(&format!(". Without `kind`, it is held to this JSON schema: {contract}"));
        }
        parts.push(part);
    }
    match asks.notes {
        NotesAsked::Required => {
            parts.push("notes in `output.notesMarkdown`: what you did and found".to_owned());
        }
        NotesAsked::Optional | NotesAsked::NotRecorded => {}
    }
    let mut text = format!("Output required: {}", parts.join("; and "));
    if asks.notes == NotesAsked::Optional {
        text.push_str(". Notes in `output.notesMarkdown` are optional");
    }
    text.push('.');
    text
}

/// Whether notes beside an artifact that is filled in as its example shows are recorded: where the
/// contract leaves room for them, and the artifact has none of its own.
fn records_notes(contract: &Value) -> bool {
    is_of_objects(contract) && has_room(contract, NOTES) && !names(contract, NOTES)
}

fn names(contract: &Value, member: &str) -> bool {
    contract.get("properties").is_some_and(|properties| properties.get(member).is_some())
}

fn has_room(contract: &Value, member: &str) -> bool {
    names(contract, member) || contract.get("additionalProperties") != Some(&Value::Bool(false))
}

/// What to send under a contract.
fn fix(contract: &Value, step: &Slug) -> String {
    format!(
        "send `output.artifacts` with one artifact such as {}; its contract, without `kind`, is {contract}",
        example(contract, step)
    )
}

/// An artifact with a place for everything that a contract names.
pub(super) fn example(contract: &Value, step: &Slug) -> Value {
    let mut members = Map::from_iter([("kind".to_owned(), json!(step))]);
    if !is_of_objects(contract) {
        members.insert("value".to_owned(), placeholder(contract));
        return Value::Object(members);
    }
    let properties = contract.get("properties").and_then(Value::as_object);
    for (name, rules) in properties.into_iter().flatten() {
        members.insert(name.clone(), placeholder(rules));
    }
    let required = contract.get("required").and_then(Value::as_array);
    for name in required.into_iter().flatten().filter_map(Value::as_str) {
        members.entry(name).or_insert_with(|| json!("<…>"));
    }
    Value::Object(members)
}

/// Something that says what stands in its place.
fn placeholder(rules: &Value) -> Value {
    let words = rules.get("enum").and_then(Value::as_array);
    if let Some(words) = words {
        let words: Vec<String> = words.iter().map(plain).collect();
        return json!(format!("<{}>", words.join(" | ")));
    }
    let kind = rules.get("const").or_else(|| rules.get("type"));
    json!(format!("<{}>", kind.map_or_else(|| "…".to_owned(), plain)))
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(contract: &Value, artifacts: &[Value], notes: &str) -> String {
        let request = match contract {
            Value::Null => json!({"prompt": "Judge."}),
            contract => json!({"prompt": "Judge.", "output_contract": contract}),
        };
        let sent = Output { notes: Some(notes.to_owned()), artifacts: artifacts.to_vec() };
        let step: Slug = "judge".parse().unwrap();
        let handed = Handed { step: &step, request: &request, reads: &Reads::default() };
        match judge(handed, Some(&sent)).unwrap() {
            Ok(taken) => {
                let codes: Vec<&str> =
                    taken.warnings.iter().map(|warning| warning.code.name()).collect();
                format!("{} {codes:?}", taken.output)
            }
            Err(blockers) => {
                let line = |b: &Blocker| {
                    let fix = b.suggested_fix.as_deref().unwrap_or_default();
                    format!("{:?}: {} -> {fix}", b.code, b.message)
                };
                blockers.iter().map(line).collect::<Vec<_>>().join("\n")
            }
        }
    }

    #[test]
    fn without_a_contract_whatever_is_said_is_taken() {
        let free = Value::Null;
        assert_eq!(told(&free, &[], "Looked."), r#"{"notes":"Looked."} []"#);
        let one = json!({"kind": "verdict", "spam": true});
        assert_eq!(
            told(&free, std::slice::from_ref(&one), "Looked."),
            r#"{"notes":"Looked.","spam":true} []"#
        );
        assert_eq!(
            told(&free, &[one.clone(), one], ""),
            r#"{"artifacts":[{"kind":"verdict","spam":true},{"kind":"verdict","spam":true}]} []"#
        );
        let long = "x".repeat(5_000);
        assert!(told(&free, &[], &long).ends_with(r#"["notes_truncated"]"#));
        assert!(told(&free, &[], " ").starts_with("MissingRequiredOutput"), "silence is no answer");
    }

    #[test]
    fn a_contract_holds_one_artifact() {
        let contract = json!({
            "type": "object", "required": ["spam"], "additionalProperties": false,
            "properties": {"spam": {"type": "boolean"}, "why": {"enum": ["link", "words"]}},
        });
        let fine = json!({"kind": "judge", "spam": false});
        assert_eq!(told(&contract, &[fine], "Looked."), r#"{"spam":false} ["notes_not_kept"]"#);
        let open = json!({"type": "object", "required": ["spam"]});
        assert_eq!(
            told(&open, &[json!({"spam": 1})], "Looked."),
            r#"{"notes":"Looked.","spam":1} []"#
        );
        let list = json!({"type": "array", "items": {"type": "string"}});
        assert_eq!(told(&list, &[json!({"value": ["a"]})], ""), r#"["a"] []"#);
        let noted = json!({"type": "object", "properties": {"notes": {"type": "string"}}});
        let own = json!({"kind": "judge", "notes": "Mine."});
        assert_eq!(told(&noted, &[own], "Looked."), r#"{"notes":"Mine."} ["notes_not_kept"]"#);
        let asked = [&contract, &open, &list, &noted].map(records_notes);
        assert_eq!(asked, [false, true, false, false], "nobody is asked for notes in vain");
        insta::assert_snapshot!(told(&contract, &[], "Looked."), @r#"MissingRequiredOutput: the step asks for an artifact, and there is none in `output.artifacts` -> send `output.artifacts` with one artifact such as {"kind":"judge","spam":"<boolean>","why":"<link | words>"}; its contract, without `kind`, is {"additionalProperties":false,"properties":{"spam":{"type":"boolean"},"why":{"enum":["link","words"]}},"required":["spam"],"type":"object"}"#);
        let wrong = json!({"spam": "yes", "why": "tone", "x": 1});
        insta::assert_snapshot!(told(&contract, &[wrong], "").split(" -> ").next().unwrap(), @r#"InvalidRequiredOutput: `x` is not known; `spam` must be true or false, and is text; `why` must be one of "link", "words", and is "tone""#);
        assert!(told(&contract, &[json!({}), json!({})], "").contains("and 2 came"));
    }

    #[test]
    fn too_much_is_refused_and_not_judged() {
        let step: Slug = "judge".parse().unwrap();
        let refused = |artifacts: Vec<Value>| {
            let sent = Output { notes: None, artifacts };
            let handed = Handed { step: &step, request: &json!({}), reads: &Reads::default() };
            judge(handed, Some(&sent)).err().unwrap().to_string()
        };
        assert!(refused(vec![json!({}); 33]).contains("33 artifacts"));
        assert!(refused(vec![json!({"text": "x".repeat(300 << 10)})]).starts_with("`output` has"));
        let deep = (0..40).fold(json!({}), |inner, _| json!({"a": inner}));
        assert!(refused(vec![deep]).starts_with("`output` nests deeper"));
        assert!(refused(vec![json!({"__proto__": 1})]).contains("reserved name"));
    }
}
