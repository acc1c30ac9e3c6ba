//! Generators of well-formed events of every kind.
//!
//! Ids come from small pools, so that events meet: outputs correct one another, loops
//! end, runs are cancelled while steps wait.

mod guided;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use guided::{
    capability, edge, gap, node_kind, observation, outcome, output, preferences, trace_entry,
};

use super::super::engine::*;
use super::super::guided::*;
use super::super::{ActorKind, AuditLine, Door, Event, EventData, Kind, Scope, ScopeRule, Via};
use crate::canonical::StrictValue;
use crate::digest::{Digest, SnapshotRef, WorkflowHash};
use crate::id::*;
use crate::instance::StepInstanceKey;
use crate::text::Slug;

/// A log of one session: events in order, with dense indexes.
pub(crate) fn log(
    len: impl Into<proptest::collection::SizeRange>,
) -> impl Strategy<Value = Vec<Event>> {
    vec((any::<u128>(), fact()), len).prop_map(|facts| {
        let place = |(at, (id, (scope, data))): (u64, (u128, (Scope, EventData)))| Event {
            id: EventId::from_bits(id),
            index: EventIndex(at),
            session: SessionId::from_bits(1),
            scope,
            data,
            newer: None,
        };
        (0..).zip(facts).map(place).collect()
    })
}

/// Anything that can have happened, with a scope that it may have.
pub(crate) fn fact() -> impl Strategy<Value = (Scope, EventData)> {
    select(Kind::ALL).prop_flat_map(|kind| {
        data(kind).prop_flat_map(|data| {
            let about_run = run().prop_map(Scope::Run).boxed();
            let about_node = (run(), node()).prop_map(|(run, node)| Scope::Node(run, node)).boxed();
            let scope = match data.kind().scope_rule() {
                ScopeRule::Session => Just(Scope::Session).boxed(),
                ScopeRule::Run => about_run,
                ScopeRule::Node => about_node,
                ScopeRule::SessionOrNode | ScopeRule::Any => {
                    prop_oneof![Just(Scope::Session), about_node].boxed()
                }
            };
            (scope, Just(data))
        })
    })
}

/// The particulars of an event of this kind.
pub(crate) fn data(kind: Kind) -> BoxedStrategy<EventData> {
    match kind {
        Kind::SessionCreated => from(Just(SessionCreated {})),
        Kind::ObservationRecorded => from(observation()),
        Kind::RunStarted => {
            let texts = (option::of(text()), option::of(text()));
            from((plan(), text(), vec(digest(), 0..3), texts).prop_map(
                |(workflow_hash, id, assets, (goal, workspace))| RunStarted {
                    assets,
                    goal,
                    workflow_hash,
                    workflow_id: id.clone(),
                    workflow_source_kind: SourceKind::Project,
                    workflow_source_ref: id,
                    workspace,
                },
            ))
        }
        Kind::NodeCreated => from((node_kind(), option::of(node()), snapshot(), plan()).prop_map(
            |(node_kind, parent_node_id, snapshot_ref, workflow_hash)| NodeCreated {
                node_kind,
                parent_node_id,
                snapshot_ref,
                workflow_hash,
            },
        )),
        Kind::EdgeCreated => from(edge()),
        Kind::AdvanceRecorded => from((id(4), option::of(digest()), outcome()).prop_map(
            |(attempt, input_digest, outcome)| AdvanceRecorded {
                attempt_id: AttemptId::from_bits(attempt),
                input_digest,
                intent: AdvanceIntent::AckPending,
                outcome,
            },
        )),
        Kind::NodeOutputAppended => from(output()),
        Kind::PreferencesChanged => from(preferences()),
        Kind::CapabilityObserved => from(capability()),
        Kind::GapRecorded => from(gap()),
        Kind::DivergenceRecorded => from((id(4), option::of(slug()), text()).prop_map(
            |(divergence, related_step_id, summary)| DivergenceRecorded {
                divergence_id: DivergenceId::from_bits(divergence),
                reason: DivergenceReason::EfficiencySkip,
                related_step_id,
                summary,
            },
        )),
        Kind::DecisionTraceAppended => {
            from((id(4), vec(trace_entry(), 1..4)).prop_map(|(trace, entries)| {
                DecisionTraceAppended { entries, trace_id: TraceId::from_bits(trace) }
            }))
        }
        Kind::ContextSet => from((object(), id(9), option::of(node())).prop_map(
            |(context, context_id, node_id)| ContextSet {
                context: StrictValue::new(context),
                context_id: ContextId::from_bits(context_id),
                node_id,
                source: ContextSource::AgentDelta,
            },
        )),
        _ => performed(kind),
    }
}

fn performed(kind: Kind) -> BoxedStrategy<EventData> {
    let attempt = || 0u32..4;
    let change =
        |(by, change, via): (String, u128, Option<Via>)| (by, ChangeId::from_bits(change), via);
    match kind {
        Kind::SessionOwned => from(
            (0u64..9, option::of(text()))
                .prop_map(|(epoch, holder)| SessionOwned { epoch, holder }),
        ),
        Kind::SessionListed => {
            from((0u64..9, any::<u128>(), text()).prop_map(|(epoch, listed, workflow_id)| {
                SessionListed {
                    epoch,
                    listed_id: SessionId::from_bits(listed),
                    workflow_source_ref: (epoch > 4).then(|| workflow_id.clone()),
                    workflow_id,
                }
            }))
        }
        Kind::TriggerReceived => {
            from((option::of(text()), payload(), run(), slug(), text(), via()).prop_map(
                |(by, payload, run_id, trigger_id, name, via)| TriggerReceived {
                    by,
                    key: name.clone(),
                    payload,
                    run_id,
                    trigger_id,
                    via,
                    workflow_source_ref: by_place(&name),
                    workflow_id: name,
                },
            ))
        }
        Kind::RunQueued => from(queued()),
        Kind::StepStarted => {
            from((1u32..4, option::of(0u64..9), step_input(), instance()).prop_map(
                |(attempt, epoch, input, instance)| StepStarted { attempt, epoch, input, instance },
            ))
        }
        Kind::StepCompleted => {
            from((attempt(), option::of(text()), instance(), payload(), usage()).prop_map(
                |(attempt, case, instance, output, usage)| StepCompleted {
                    attempt,
                    case,
                    duration_ms: 12,
                    instance,
                    output,
                    usage,
                },
            ))
        }
        Kind::StepFailed => from(
            (attempt(), failure(), instance(), option::of(payload()), after(), usage()).prop_map(
                |(attempt, error, instance, output, then, usage)| StepFailed {
                    attempt,
                    duration_ms: 12,
                    error,
                    instance,
                    output,
                    then,
                    usage,
                },
            ),
        ),
        Kind::StepSkipped => from(
            instance().prop_map(|instance| StepSkipped { instance, reason: SkipReason::Condition }),
        ),
        Kind::StepWaiting => from(instance().prop_map(|instance| StepWaiting {
            attempt: 0,
            instance,
            waiting_for: WaitingFor::Caller,
        })),
        Kind::StepInterrupted => from(
            (attempt(), instance())
                .prop_map(|(attempt, instance)| StepInterrupted { attempt, instance }),
        ),
        Kind::StepResolved => from((attempt(), text(), decision(), instance(), via()).prop_map(
            |(attempt, by, decision, instance, via)| StepResolved {
                attempt,
                by,
                decision,
                instance,
                via,
            },
        )),
        Kind::LoopEntered => from(
            (loop_key(), option::of(payload()))
                .prop_map(|(instance, items)| LoopEntered { instance, items }),
        ),
        Kind::LoopExited => from(
            (loop_key(), 0u32..9)
                .prop_map(|(instance, iterations)| LoopExited { instance, iterations }),
        ),
        Kind::TimerSet => {
            from((0u64..99, option::of(instance()), id(4)).prop_map(|(due_ms, instance, timer)| {
                TimerSet {
                    due_ms,
                    instance,
                    purpose: TimerPurpose::Wait,
                    timer_id: TimerId::from_bits(timer),
                }
            }))
        }
        Kind::TimerFired => {
            from(id(4).prop_map(|timer| TimerFired { timer_id: TimerId::from_bits(timer) }))
        }
        Kind::TimerCancelled => {
            from(id(4).prop_map(|timer| TimerCancelled { timer_id: TimerId::from_bits(timer) }))
        }
        Kind::TaskOpened => {
            from((instance(), payload(), id(4)).prop_map(|(instance, request, task)| TaskOpened {
                instance,
                request,
                task_id: TaskId::from_bits(task),
            }))
        }
        Kind::TaskAnswered => {
            from((payload(), text(), id(4), via()).prop_map(|(answer, by, task, via)| {
                TaskAnswered { answer, by, task_id: TaskId::from_bits(task), via }
            }))
        }
        Kind::ChildStarted => from((run(), instance()).prop_map(|(child_run_id, instance)| {
            ChildStarted { child_run_id, child_session_id: SessionId::from_bits(2), instance }
        })),
        Kind::ChildFinished => {
            from((run(), instance(), payload()).prop_map(|(child_run_id, instance, output)| {
                ChildFinished { child_run_id, instance, output, status: EndStatus::Failed }
            }))
        }
        Kind::SnapshotTaken => from((snapshot(), 0u64..99, vec(digest(), 0..2)).prop_map(
            |(snapshot_ref, through, artifacts)| SnapshotTaken {
                artifacts,
                snapshot_ref,
                through: EventIndex(through),
            },
        )),
        Kind::RunPaused => {
            from((text(), id(4), via(), any::<bool>()).prop_map(move |(by, id, via, imported)| {
                let (by, change_id, via) = change((by, id, via));
                RunPaused { by, change_id, imported, via }
            }))
        }
        Kind::RunResumed => from((text(), id(4), via(), proptest::option::of(payload())).prop_map(
            move |(by, id, via, input)| {
                let (by, change_id, via) = change((by, id, via));
                RunResumed { by, change_id, input, via }
            },
        )),
        Kind::RunCancelRequested => {
            from((text(), text(), via()).prop_map(|(by, reason, via)| RunCancelRequested {
                by,
                reason,
                via,
            }))
        }
        Kind::RunCompleted => from(payload().prop_map(|result| RunCompleted { result })),
        Kind::RunFailed => from(
            (failure(), option::of(instance()))
                .prop_map(|(error, instance)| RunFailed { error, instance }),
        ),
        Kind::RunCancelled => from(Just(RunCancelled {})),
        Kind::RunRetired => from(Just(RunRetired {})),
        _ => unreachable!("{} is a guided kind", kind.name()),
    }
}

fn from<T: Into<EventData> + std::fmt::Debug + 'static>(
    payload: impl Strategy<Value = T> + 'static,
) -> BoxedStrategy<EventData> {
    payload.prop_map(Into::into).boxed()
}

fn id(pool: u128) -> impl Strategy<Value = u128> {
    0..pool
}

fn run() -> impl Strategy<Value = RunId> {
    id(2).prop_map(RunId::from_bits)
}

fn node() -> impl Strategy<Value = NodeId> {
    id(6).prop_map(NodeId::from_bits)
}

fn text() -> impl Strategy<Value = String> {
    "[a-zäöü \n]{1,12}"
}

fn slug() -> impl Strategy<Value = Slug> {
    select(vec!["fetch", "grade", "each"]).prop_map(|text| text.parse().unwrap())
}

fn instance() -> impl Strategy<Value = StepInstanceKey> {
    let keys = vec![
        "fetch",
        "review",
        "review~1",
        "outer@0::grade",
        "outer@1::grade",
        "outer@2::grade",
        "outer@0/inner@0::fix",
        "outer@0/inner@1::fix",
        "outer@1/inner@0::fix",
        "outer~1@0::grade",
        "outer~1@1::grade",
    ];
    select(keys).prop_map(|text| text.parse().unwrap())
}

fn loop_key() -> impl Strategy<Value = StepInstanceKey> {
    select(vec!["outer", "outer~1", "outer@0::inner", "outer@1::inner"])
        .prop_map(|text| text.parse().unwrap())
}

fn via() -> impl Strategy<Value = Option<Via>> {
    let actor = select(vec![ActorKind::Person, ActorKind::Agent, ActorKind::Engine]);
    let door = select(vec![Door::Cli, Door::Http, Door::Webhook, Door::Engine]);
    let line = (0u64..99).prop_map(|index| AuditLine { digest: Digest::of(&[]), index });
    let parts = (actor, door, option::of(line), option::of(text()));
    option::of(parts.prop_map(|(actor, door, line, token_id)| Via { actor, door, line, token_id }))
}

fn usage() -> impl Strategy<Value = Option<Usage>> {
    let cost = option::of(0u64..9_000_000);
    option::of((cost, 0u64..99, 0u64..99, option::of(text())).prop_map(
        |(cost_usd_micros, input_tokens, output_tokens, model)| Usage {
            estimated: input_tokens % 2 == 1,
            launches: u32::try_from(output_tokens % 3).unwrap_or_default(),
            cost_usd_micros,
            input_tokens,
            model: model.clone(),
            output_tokens,
            provider: model,
        },
    ))
}

fn step_input() -> impl Strategy<Value = StepInput> {
    let earlier =
        prop_oneof![Just(EarlierValue::Attempt(0)), instance().prop_map(EarlierValue::Output),];
    prop_oneof![
        payload().prop_map(StepInput::Given),
        earlier.prop_map(|earlier| StepInput::Earlier { earlier }),
    ]
}

fn digest() -> impl Strategy<Value = Digest> {
    any::<[u8; 1]>().prop_map(|bytes| Digest::of(&bytes))
}

fn plan() -> impl Strategy<Value = WorkflowHash> {
    digest().prop_map(WorkflowHash)
}

fn snapshot() -> impl Strategy<Value = SnapshotRef> {
    digest().prop_map(SnapshotRef)
}

/// An object whose members may be `null`, which removes.
fn object() -> impl Strategy<Value = Value> {
    let member = prop_oneof![Just(json!(null)), (0..9).prop_map(Value::from), number()];
    vec((select(vec!["a", "b", "c"]), member), 0..4).prop_map(|members| {
        members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    })
}

/// A number as it may come from anywhere, in a list; those that cannot be recorded aside.
fn number() -> impl Strategy<Value = Value> {
    let odd = vec![600.0, -0.0, -7.0, 0.1 + 0.2, 1e15, 1e21, 1e-7, 5e-324, f64::MAX];
    let number = prop_oneof![select(odd), any::<f64>(), any::<i32>().prop_map(f64::from)];
    number.prop_map(|number| {
        let list = json!([number]);
        if crate::canonical::check(&list, 2).is_ok() { list } else { json!([null]) }
    })
}

fn payload() -> impl Strategy<Value = Payload> {
    let blob = (digest(), text()).prop_map(|(sha256, content_type)| {
        Payload::Blob(BlobRef { byte_length: 7, content_type, sha256 })
    });
    prop_oneof![object().prop_map(Payload::inline), blob]
}

fn failure() -> impl Strategy<Value = Failure> {
    text().prop_map(|message| Failure { code: "STEP_FAILED".into(), message })
}

fn after() -> impl Strategy<Value = AfterFailure> {
    use AfterFailure::{Fallback, Retry, Skip, Stop};
    select(vec![Retry, Stop, Skip, Fallback])
}

fn decision() -> impl Strategy<Value = InterruptDecision> {
    use InterruptDecision::{Fail, Retry, Skip};
    select(vec![Retry, Fail, Skip])
}

fn queued() -> impl Strategy<Value = RunQueued> {
    let fork = (node(), run(), snapshot()).prop_map(|(node_id, run_id, snapshot_ref)| ForkedFrom {
        vouched: Vec::new(),
        node_id,
        run_id,
        session_id: SessionId::from_bits(2),
        snapshot_ref,
    });
    let parent = (instance(), run()).prop_map(|(instance, run_id)| ParentStep {
        instance,
        run_id,
        session_id: SessionId::from_bits(2),
    });
    let asked = (option::of(Just(Advance::ByHand)), option::of(text()), via());
    (asked, option::of(fork), payload(), option::of(parent), option::of(slug()), text()).prop_map(
        |((advance, by, via), forked_from, input, parent, trigger_id, workflow_id)| RunQueued {
            advance,
            workspace: by.clone(),
            by,
            depth: 1,
            forked_from,
            input,
            parent,
            trigger_id,
            via,
            workflow_source_ref: by_place(&workflow_id),
            workflow_id,
        },
    )
}

/// Some have it, and some have not.
fn by_place(id: &str) -> Option<String> {
    id.len().is_multiple_of(2).then(|| id.to_owned())
}
