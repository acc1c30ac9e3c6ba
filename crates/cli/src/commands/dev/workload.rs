//! Plans that follow from a session and a number alone, so that a checker can compute what
//! a log must hold. Tests include this file as it is.

use cairn_core::canonical::StrictValue;
use cairn_core::digest::Digest;
use cairn_core::event::engine::{BlobRef, Payload, RunQueued, StepInput, StepStarted};
use cairn_core::event::guided::{
    Confidence, ContextSet, ContextSource, ObservationKey, ObservationRecorded, ObservedValue,
    SessionCreated,
};
use cairn_core::event::{EventData, NewEvent, Scope};
use cairn_core::id::{ContextId, EventId, EventIndex, RunId, SessionId};
use cairn_core::instance::StepInstanceKey;
use cairn_core::pin::BlobKind;
use cairn_store::{AppendPlan, Blob};

/// What is appended to one session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Workload {
    /// The session.
    pub(crate) session: SessionId,
    /// Whether some events need blobs.
    pub(crate) blobs: bool,
}

/// How many events the first `plans` plans have: two to begin with, then one, two and
/// three in turn.
pub(crate) const fn events_in(plans: u64) -> u64 {
    match plans.checked_sub(1) {
        None => 0,
        Some(later) => {
            let (rounds, rest) = (later / 3, later % 3);
            2 + rounds * 6 + rest * (rest + 1) / 2
        }
    }
}

/// How many whole plans make this many events; none when it is in the middle of one.
pub(crate) fn plans_in(events: u64) -> Option<u64> {
    let about = events / 2;
    (about.saturating_sub(2)..=about + 2).find(|plans| events_in(*plans) == events)
}

impl Workload {
    /// The plan with this number; plans are appended in order, from 0 on.
    pub(crate) fn plan(&self, number: u64) -> AppendPlan {
        let first = events_in(number);
        let data = if number == 0 { self.beginning() } else { self.work(number) };
        let blobs = if self.needs_blob(number) { vec![self.blob(number)] } else { Vec::new() };
        let events = (first..).zip(data);
        AppendPlan {
            events: events.map(|(index, (scope, data))| self.event(index, scope, data)).collect(),
            // Every plan touches the run with its last event.
            seen: vec![(self.run(), first.checked_sub(1).map(EventIndex))],
            blobs,
            fence: None,
        }
    }

    /// The session and its one run.
    fn beginning(&self) -> Vec<(Scope, EventData)> {
        let queued = RunQueued {
            advance: None,
            by: None,
            depth: 0,
            forked_from: None,
            input: Payload::inline(serde_json::json!({})),
            parent: None,
            trigger_id: None,
            via: None,
            workflow_id: "append-loop".to_owned(),
            workflow_source_ref: None,
            workspace: None,
        };
        vec![(Scope::Session, SessionCreated {}.into()), (Scope::Run(self.run()), queued.into())]
    }

    /// One event about the run, after up to two about the session.
    fn work(&self, number: u64) -> Vec<(Scope, EventData)> {
        let observed = (0..(number - 1) % 3).map(|place| {
            let seen = ObservationRecorded {
                confidence: Confidence::High,
                key: ObservationKey::GitBranch,
                value: ObservedValue::ShortString(format!("branch-{number}-{place}")),
            };
            (Scope::Session, seen.into())
        });
        let about_run = if self.needs_blob(number) {
            self.step_started(number).unwrap_or_else(|| self.context_set(number))
        } else {
            self.context_set(number)
        };
        observed.chain([(Scope::Run(self.run()), about_run)]).collect()
    }

    fn context_set(&self, number: u64) -> EventData {
        // Lengths vary, so that commits end at every kind of place.
        let filler = "x".repeat(usize::try_from(number * 37 % 700).unwrap_or_default());
        let context = serde_json::json!({"number": number, "filler": filler});
        EventData::ContextSet(ContextSet {
            context: StrictValue::new(context),
            context_id: ContextId::derive(&[&self.session.to_string(), &number.to_string()]),
            node_id: None,
            source: ContextSource::AgentDelta,
        })
    }

    fn step_started(&self, number: u64) -> Option<EventData> {
        let blob = self.blob(number);
        Some(EventData::StepStarted(StepStarted {
            attempt: u32::try_from(number).ok()?,
            epoch: None,
            input: StepInput::Given(Payload::Blob(BlobRef {
                byte_length: u64::try_from(blob.bytes.len()).ok()?,
                content_type: "text/plain".to_owned(),
                sha256: blob.digest(),
            })),
            instance: StepInstanceKey::of("work".parse().ok()?),
        }))
    }

    const fn needs_blob(&self, number: u64) -> bool {
        self.blobs && number > 0 && number.is_multiple_of(2)
    }

    fn blob(&self, number: u64) -> Blob {
        let text = format!("{} {number}\n", self.session);
        let lines = usize::try_from(number % 50 + 1).unwrap_or(1);
        Blob { kind: BlobKind::Artifact, bytes: text.repeat(lines).into_bytes() }
    }

    fn event(&self, index: u64, scope: Scope, data: EventData) -> NewEvent {
        let random =
            Digest::of_parts("append-loop", &[&self.session.to_string(), &index.to_string()]);
        let id = EventId::mint(self.session.minted_ms() + index, random.leading_bits());
        NewEvent { id, scope, data }
    }

    fn run(&self) -> RunId {
        RunId::derive(&["append-loop", &self.session.to_string()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_in_the_log_tells_the_plan() {
        let workload = Workload { session: SessionId::mint(1_700_000_000_000, 7), blobs: true };
        for number in 0..200 {
            let events = events_in(number);
            assert_eq!(plans_in(events), Some(number));
            let plan = workload.plan(number);
            assert_eq!(events_in(number + 1), events + plan.events.len() as u64, "{number}");
            assert_eq!(plan, workload.plan(number));
            for event in &plan.events {
                event.check().unwrap();
            }
        }
        assert_eq!(plans_in(1), None);
    }
}
