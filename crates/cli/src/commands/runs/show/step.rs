//! All of one step: what it was given, and what came out.

use cairn_api::Exit;
use cairn_api::error::{Error, Result};
use cairn_api::run::{Shown, Step};
use cairn_core::event::EventData;
use cairn_core::event::engine::{EarlierValue, Payload, StepInput};
use cairn_core::pin::BlobKind;
use cairn_engine::flow::Past;
use cairn_store::Store;
use serde_json::{Value, json};

use super::time;
use crate::config::Config;
use crate::output::{Output, Style, plain};
use crate::{fresh, home};

/// Members of an output that are read as text.
const TEXTS: [&str; 4] = ["stdout", "stderr", "body", "text"];

pub(super) async fn run(id: &str, past: &Past, config: &Config) -> Result<Exit> {
    let mut shown = Shown::from(past);
    let Some(mut step) = shown.steps.remove(id) else {
        let known: Vec<&str> = shown.steps.keys().map(String::as_str).collect();
        return Err(Error::Usage {
            message: format!("{} has no step `{id}`", past.summary.run),
            suggestion: format!("its steps are {}", known.join(", ")),
        });
    };
    let store = home::open(config)?;
    let (given, came) = payloads(id, past);
    let input = whole(&store, given).await?;
    if let Some(Payload::Blob(_)) = came {
        step.output = whole(&store, came).await?.unwrap_or_default();
    }
    if config.output.json {
        let mut told = serde_json::to_value(&step).map_err(|e| Error::Internal(e.to_string()))?;
        if let Some(members) = told.as_object_mut() {
            members.insert("runId".to_owned(), json!(past.summary.run));
            members.insert("step".to_owned(), json!(id));
            members.insert("input".to_owned(), input.unwrap_or_default());
        }
        config.output.object(&told)?;
    } else {
        print(id, &step, input, &config.output)?;
    }
    Ok(Exit::Success)
}

/// What a step was given at its last try, and what came out.
fn payloads<'p>(id: &str, past: &'p Past) -> (Option<&'p Payload>, Option<&'p Payload>) {
    let (mut given, mut came) = (None, None);
    for event in &past.events {
        match &event.data {
            EventData::StepStarted(e) if e.instance.to_string() == id => {
                given = input(&e.input, given, past);
            }
            EventData::StepCompleted(e) if e.instance.to_string() == id => came = Some(&e.output),
            _ => {}
        }
    }
    (given, came)
}

/// What a try was given, which an earlier event may hold.
fn input<'p>(
    input: &'p StepInput,
    before: Option<&'p Payload>,
    past: &'p Past,
) -> Option<&'p Payload> {
    match input {
        StepInput::Given(payload) => Some(payload),
        StepInput::Earlier { earlier: EarlierValue::Attempt(_) } => before,
        StepInput::Earlier { earlier: EarlierValue::Output(other) } => {
            past.events.iter().find_map(|event| match &event.data {
                EventData::StepCompleted(e) if e.instance == *other => Some(&e.output),
                _ => None,
            })
        }
    }
}

/// A value, also when it is kept beside the log.
async fn whole(store: &Store, payload: Option<&Payload>) -> Result<Option<Value>> {
    Ok(match payload {
        None => None,
        Some(Payload::Inline(value)) => Some(value.0.clone()),
        Some(Payload::Blob(blob)) => {
            let bytes = store.blobs.get(BlobKind::Artifact, blob.sha256).await?;
            let read = serde_json::from_slice(&bytes);
            Some(read.map_err(|error| Error::Internal(error.to_string()))?)
        }
    })
}

fn print(id: &str, step: &Step, input: Option<Value>, output: &Output) -> Result<()> {
    let status = output.paint(super::status_style(&step.status), &step.status);
    let case = step.case.as_ref().map(|case| format!(" [{case}]")).unwrap_or_default();
    output.line(&format!("{}  {status}{case}", output.paint(Style::Strong, id)))?;
    let begun = step.begun_at.as_deref().unwrap_or("-");
    let (tries, time) = (step.attempts, time(step, fresh::now_ms()));
    output.line(&format!("begun at {begun}, tries {tries}, time {time}"))?;
    if let Some(usage) = &step.usage {
        let whom = [usage.provider.as_deref(), usage.model.as_deref()];
        let whom: Vec<&str> = whom.into_iter().flatten().collect();
        output.line(&format!("used {} of {}", usage.in_words(), plain(&whom.join(" "))))?;
    }
    if let Some(error) = &step.error {
        let text = format!("{}: {}", error.code, plain(&error.message));
        output.line(&output.paint(Style::Bad, &text))?;
    }
    if let Some(input) = input.filter(|input| !input.is_null()) {
        section("input", &pretty(&input), output)?;
    }
    let mut rest = step.output.clone();
    let mut texts = Vec::new();
    if let Some(members) = rest.as_object_mut() {
        for name in TEXTS {
            if let Some(Value::String(text)) = members.get(name).filter(|text| *text != "") {
                texts.push((name, text.clone()));
                members.remove(name);
            }
        }
    }
    if !rest.is_null() {
        section("output", &pretty(&rest), output)?;
    }
    texts.iter().try_for_each(|(name, text)| section(name, text, output))
}

fn section(name: &str, text: &str, output: &Output) -> Result<()> {
    output.line(&format!("\n{}", output.paint(Style::Faint, &format!("{name}:"))))?;
    text.lines().try_for_each(|line| output.line(&plain(line)))
}

fn pretty(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => serde_json::to_string_pretty(other).unwrap_or_default(),
    }
}
