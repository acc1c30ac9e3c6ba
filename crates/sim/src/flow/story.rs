//! A log as lines that people can read.

use cairn_core::event::engine::Payload;
use cairn_core::event::{Event, EventData};

/// What was recorded, a line for each event.
pub(super) fn told(log: &[Event]) -> String {
    let lines: Vec<String> = log.iter().map(|event| line(&event.data)).collect();
    lines.join("\n")
}

fn shown(payload: &Payload) -> String {
    match payload {
        Payload::Inline(value) => value.0.to_string(),
        Payload::Blob(blob) => blob.sha256.to_string(),
    }
}

fn line(data: &EventData) -> String {
    match data {
        EventData::RunQueued(e) => {
            let trigger = e.trigger_id.as_ref().map(|id| format!(" by {id}")).unwrap_or_default();
            format!("queued{trigger} {}", shown(&e.input))
        }
        EventData::StepStarted(e) => {
            let input = e.input.given().map(shown).unwrap_or_default();
            format!("start {} {} {input}", e.instance, e.attempt)
        }
        EventData::StepCompleted(e) => {
            let case = e.case.as_ref().map(|case| format!(" [{case}]")).unwrap_or_default();
            format!("done {}{case} {}", e.instance, shown(&e.output))
        }
        EventData::StepFailed(e) => {
            format!("failed {} {} {} then {:?}", e.instance, e.attempt, e.error.code, e.then)
        }
        EventData::StepSkipped(e) => format!("skipped {} {:?}", e.instance, e.reason),
        EventData::StepWaiting(e) => format!("waits {} {:?}", e.instance, e.waiting_for),
        EventData::StepInterrupted(e) => format!("interrupted {} {}", e.instance, e.attempt),
        EventData::StepResolved(e) => format!("resolved {} {:?}", e.instance, e.decision),
        EventData::LoopEntered(e) => {
            let items = e.items.as_ref().map(shown).unwrap_or_default();
            format!("enter {} {items}", e.instance)
        }
        EventData::LoopExited(e) => format!("leave {} {}", e.instance, e.iterations),
        EventData::TimerSet(e) => {
            let at = e.instance.as_ref().map(|key| format!(" {key}")).unwrap_or_default();
            format!("timer {:?}{at} {}", e.purpose, e.due_ms)
        }
        EventData::RunCompleted(e) => format!("run completed {}", shown(&e.result)),
        EventData::RunFailed(e) => {
            let at = e.instance.as_ref().map(|key| format!(" at {key}")).unwrap_or_default();
            format!("run failed {}{at}", e.error.code)
        }
        other => other.kind().name().replace('_', " "),
    }
}
