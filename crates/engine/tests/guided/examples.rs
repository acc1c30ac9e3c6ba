//! Workflow files of others, beside the repository: they run to their end, in the order of
//! steps that is written down with them. `CAIRN_GUIDED_EXAMPLES` names their directory.

use std::path::{Path, PathBuf};

use cairn_core::event::guided::Autonomy;
use cairn_engine::guided::ask::{Start, Wanted};
use cairn_lang::ids::SourceKind;
use serde_json::{Value, json};

use crate::world::{World, ack};

#[tokio::test]
async fn files_of_others_run_in_the_order_that_is_written_down() {
    let Some(folder) = std::env::var_os("CAIRN_GUIDED_EXAMPLES").map(PathBuf::from) else {
        return;
    };
    let text = std::fs::read(folder.join("expected-steps.json")).unwrap();
    let expected: Value = serde_json::from_slice(&text).unwrap();
    let documents = documents(&folder);
    let modes = [Autonomy::Guided, Autonomy::FullAutoStopOnUserDeps, Autonomy::FullAutoNeverStop];
    let folders = [(SourceKind::Bundled, folder.as_path())];
    let world = World::over(tempfile::tempdir().unwrap(), &folders);
    let mut faults = Vec::new();
    let mut runs = 0;
    for (workflow, scripts) in expected.as_object().unwrap() {
        for (name, script) in scripts.as_object().unwrap() {
            for autonomy in modes {
                runs += 1;
                if let Err(fault) = follow(&world, workflow, script, autonomy, &documents).await {
                    faults.push(format!("{workflow} {name} {autonomy:?}: {fault}"));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{runs} runs\n{}", faults.join("\n"));
    println!("{runs} runs as written down");
}

async fn follow(
    world: &World,
    workflow: &str,
    script: &Value,
    autonomy: Autonomy,
    documents: &[Value],
) -> Result<(), String> {
    let start = Start {
        workflow: workflow.to_owned(),
        context: Some(script.get("context").unwrap().clone()),
        preferences: Wanted { autonomy: Some(autonomy), risk_policy: None },
        ..Start::default()
    };
    let mut answer = world.guide.start(start).await.map_err(|error| error.to_string())?;
    let steps = script.get("steps").unwrap().as_array().unwrap();
    let total = |step: &str| steps.iter().filter(|s| s.get("step").unwrap() == step).count();
    let mut seen: std::collections::BTreeMap<String, usize> = std::collections::BTreeMap::new();
    for (place, step) in steps.iter().enumerate() {
        let wanted = step.get("step").unwrap().as_str().unwrap();
        let found = answer.pending.as_ref().map(|pending| pending.step_id.clone());
        if found.as_deref() != Some(wanted) {
            return Err(format!("step {place} is {found:?}, not {wanted}: {:?}", answer.blockers));
        }
        *seen.entry(wanted.to_owned()).or_default() += 1;
        let is_last = seen.get(wanted).copied() == Some(total(wanted));
        let artifacts: Vec<Value> = step
            .get("artifacts")
            .unwrap()
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|kind| artifacts(kind.as_str().unwrap(), is_last, documents, steps, place))
            .collect();
        let notes =
            "What was done in this step, at some length, so that any check of length passes.";
        answer = world
            .guide
            .proceed(ack(&answer.tokens.continue_token, notes, artifacts))
            .await
            .map_err(|error| format!("step {place} {wanted}: {error}"))?;
        if !answer.blockers.is_empty() {
            return Err(format!("step {place} {wanted} is blocked: {:?}", answer.blockers));
        }
    }
    match answer.is_complete {
        true => Ok(()),
        false => Err(format!("it is not over: {:?}", answer.pending.map(|p| p.step_id))),
    }
}

fn artifacts(
    kind: &str,
    is_last: bool,
    documents: &[Value],
    steps: &[Value],
    place: usize,
) -> Vec<Value> {
    if kind == "wr.assessment" {
        let step = steps.get(place).and_then(|step| step.get("step")).unwrap();
        return documents.iter().find_map(|document| assessments(document, step)).unwrap();
    }
    vec![match kind {
        "wr.loop_control" => {
            // A decision before a loop lets it begin when its steps come next.
            let repeats = steps.iter().skip(place + 1).any(|step| {
                let next = step.get("step").unwrap().as_str().unwrap();
                next.starts_with("do-work")
            });
            let stop = is_last && !repeats;
            json!({"kind": kind, "decision": if stop { "stop" } else { "continue" }})
        }
        "wr.review_verdict" => json!({
            "kind": kind, "verdict": "clean", "confidence": "high", "findings": [], "summary": "fine",
        }),
        "wr.shaping_handoff" => json!({
            "kind": kind, "version": 1, "pitchPath": "pitch.md", "selectedShape": "one",
            "appetite": "a week", "keyConstraints": ["one"], "rabbitHoles": ["one"],
            "outOfScope": ["one"], "validationChecklist": ["one"],
        }),
        other => panic!("an artifact of kind {other}"),
    }]
}

/// The workflow files.
fn documents(folder: &Path) -> Vec<Value> {
    let entries = std::fs::read_dir(folder).unwrap();
    let texts = entries.filter_map(|entry| std::fs::read(entry.unwrap().path()).ok());
    texts.filter_map(|text| serde_json::from_slice(&text).ok()).collect()
}

/// The judgements that a step asks for, with levels that nothing follows from.
fn assessments(document: &Value, step: &Value) -> Option<Vec<Value>> {
    let steps = document.get("steps")?.as_array()?;
    let inner = steps.iter().filter_map(|step| step.get("body")?.as_array()).flatten();
    let found = steps.iter().chain(inner).find(|found| found.get("id") == Some(step))?;
    let ids = found.get("assessmentRefs")?.as_array()?;
    let triggers: Vec<&Value> = found
        .get("assessmentConsequences")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|consequence| consequence.pointer("/when/anyEqualsLevel"))
        .collect();
    let all = document.get("assessments")?.as_array()?;
    let judged = |id: &Value| {
        let asked = all.iter().find(|assessment| assessment.get("id") == Some(id))?;
        let dimensions = asked.get("dimensions")?.as_array()?.iter().map(|dimension| {
            let levels = dimension.get("levels").unwrap().as_array().unwrap();
            let level = levels.iter().find(|level| !triggers.contains(level)).unwrap();
            (dimension.get("id").unwrap().as_str().unwrap().to_owned(), level.clone())
        });
        let dimensions: serde_json::Map<String, Value> = dimensions.collect();
        Some(json!({"kind": "wr.assessment", "assessmentId": id, "dimensions": dimensions}))
    };
    ids.iter().map(judged).collect()
}
