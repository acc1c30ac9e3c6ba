//! Plans to measure with: the events of ordinary steps.

use cairn_core::event::engine::{Payload, StepCompleted};
use cairn_core::event::guided::SessionCreated;
use cairn_core::event::{EventData, NewEvent, Scope};
use cairn_core::id::{EventId, RunId, SessionId};
use cairn_core::instance::{LoopTurn, StepInstanceKey};
use cairn_core::text::Slug;
use cairn_store::AppendPlan;
use serde_json::json;

pub(crate) fn session(number: u64) -> SessionId {
    SessionId::mint(1_700_000_000_000, u128::from(number))
}

fn plan(events: Vec<NewEvent>) -> AppendPlan {
    AppendPlan { events, ..AppendPlan::default() }
}

fn event(number: u64, scope: Scope, data: impl Into<EventData>) -> NewEvent {
    let id = EventId::mint(1_700_000_000_000, u128::from(number));
    NewEvent { id, scope, data: data.into() }
}

pub(crate) fn create() -> AppendPlan {
    plan(vec![event(0, Scope::Session, SessionCreated {})])
}

/// The outcome of one step, a few hundred bytes.
pub(crate) fn step(number: u64) -> AppendPlan {
    steps(number, 1)
}

/// The outcomes of several steps.
pub(crate) fn steps(first: u64, count: u64) -> AppendPlan {
    plan((first..first + count).map(completed).collect())
}

fn completed(number: u64) -> NewEvent {
    let run = RunId::from_bits(1);
    let slug = |text: &str| text.parse::<Slug>().ok();
    let (Some(step), Some(loop_id)) = (slug("fetch"), slug("each")) else {
        return event(number, Scope::Session, SessionCreated {});
    };
    let iteration = u32::try_from(number).unwrap_or(u32::MAX);
    let loop_path = vec![LoopTurn { iteration, loop_id, visit: 0 }];
    let output = json!({"status": 200, "body": {"id": number, "title": "x".repeat(120)}});
    let data = StepCompleted {
        attempt: 0,
        case: None,
        duration_ms: 12,
        instance: StepInstanceKey { loop_path, step, visit: 0 },
        output: Payload::inline(output),
        usage: None,
    };
    event(number + 1, Scope::Run(run), data)
}
