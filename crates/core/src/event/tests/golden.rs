//! One event of every kind, as it stands in a log: its key, then its line.
//!
//! A change here is a change of the format, and logs on disk must stay readable.

use insta::assert_snapshot;
use proptest::prelude::*;

use super::super::*;
use super::arbitrary;

/// What an event of each kind may say.
const EXAMPLES: &[(Kind, &str)] = &[
    (Kind::SessionCreated, "{}"),
    (
        Kind::ObservationRecorded,
        r#"{"confidence":"high","key":"git_branch","value":{"type":"short_string","value":"main"}}"#,
    ),
    (
        Kind::RunStarted,
        r#"{"workflowHash":"DIGEST","workflowId":"project.triage","workflowSourceKind":"project","workflowSourceRef":".cairn/triage.yaml"}"#,
    ),
    (
        Kind::NodeCreated,
        r#"{"nodeKind":"step","parentNodeId":null,"snapshotRef":"DIGEST","workflowHash":"DIGEST"}"#,
    ),
    (
        Kind::EdgeCreated,
        r#"{"cause":{"eventId":"evt_00000000000000000000000007","kind":"non_tip_advance"},"edgeKind":"acked_step","fromNodeId":"node_00000000000000000000000003","toNodeId":"node_00000000000000000000000004"}"#,
    ),
    (
        Kind::AdvanceRecorded,
        r#"{"attemptId":"att_00000000000000000000000005","intent":"ack_pending","outcome":{"blockers":{"blockers":[{"code":"MISSING_REQUIRED_OUTPUT","message":"no notes","pointer":{"contractRef":"notes","kind":"output_contract"},"suggestedFix":"write some"}]},"kind":"blocked"}}"#,
    ),
    (
        Kind::NodeOutputAppended,
        r#"{"outputChannel":"recap","outputId":"out_00000000000000000000000005","payload":{"notesMarkdown":"Done.","payloadKind":"notes"}}"#,
    ),
    (
        Kind::PreferencesChanged,
        r#"{"changeId":"prefchg_00000000000000000000000005","delta":[{"key":"riskPolicy","value":"balanced"}],"effective":{"autonomy":"guided","riskPolicy":"balanced"},"source":"user"}"#,
    ),
    (
        Kind::CapabilityObserved,
        r#"{"capObsId":"capobs_00000000000000000000000005","capability":"web_browsing","provenance":{"detail":{"attemptContext":"workflow_step","failureCode":"tool_missing","result":"failure"},"enforcementGrade":"strong","kind":"attempted_use"},"status":"unavailable"}"#,
    ),
    (
        Kind::GapRecorded,
        r#"{"evidenceRefs":[{"eventId":"evt_00000000000000000000000007","kind":"event"}],"gapId":"gap_00000000000000000000000005","reason":{"category":"contract_violation","detail":"missing_required_output"},"resolution":{"kind":"unresolved"},"severity":"critical","summary":"No notes."}"#,
    ),
    (
        Kind::DivergenceRecorded,
        r#"{"divergenceId":"div_00000000000000000000000005","reason":"efficiency_skip","relatedStepId":"fetch","summary":"Known already."}"#,
    ),
    (
        Kind::DecisionTraceAppended,
        r#"{"entries":[{"kind":"entered_loop","refs":[{"kind":"iteration","value":0}],"summary":"Two items."}],"traceId":"trace_00000000000000000000000005"}"#,
    ),
    (
        Kind::ContextSet,
        r#"{"context":{"ticket":"A-1"},"contextId":"ctx_00000000000000000000000005","source":"initial"}"#,
    ),
    (Kind::SessionOwned, r#"{"epoch":3,"holder":"process 4711 on mill"}"#),
    (
        Kind::SessionListed,
        r#"{"epoch":3,"listedId":"sess_00000000000000000000000009","workflowId":"project.triage"}"#,
    ),
    (
        Kind::TriggerReceived,
        r#"{"key":"delivery/1","payload":{"inline":{"n":1}},"runId":"run_00000000000000000000000002","triggerId":"hook","workflowId":"project.triage"}"#,
    ),
    (Kind::RunQueued, r#"{"depth":0,"input":{"inline":null},"workflowId":"project.triage"}"#),
    (Kind::StepStarted, r#"{"attempt":0,"input":{"inline":{}},"instance":"each@0::fetch"}"#),
    (
        Kind::StepCompleted,
        r#"{"attempt":0,"case":"bug","durationMs":12,"instance":"each@0::fetch","output":{"blob":{"byteLength":3,"contentType":"application/json","sha256":"DIGEST"}}}"#,
    ),
    (
        Kind::StepFailed,
        r#"{"attempt":1,"durationMs":12,"error":{"code":"HTTP_STATUS","message":"503"},"instance":"fetch","then":"retry"}"#,
    ),
    (Kind::StepSkipped, r#"{"instance":"fetch","reason":"untaken"}"#),
    (Kind::StepWaiting, r#"{"attempt":0,"instance":"fetch","waitingFor":"person"}"#),
    (Kind::StepInterrupted, r#"{"attempt":0,"instance":"fetch"}"#),
    (Kind::StepResolved, r#"{"attempt":0,"by":"ada","decision":"retry","instance":"fetch"}"#),
    (Kind::LoopEntered, r#"{"instance":"each","items":{"inline":[1,2]}}"#),
    (Kind::LoopExited, r#"{"instance":"each","iterations":2}"#),
    (
        Kind::TimerSet,
        r#"{"dueMs":1700000000000,"instance":"fetch","purpose":"retry","timerId":"timer_00000000000000000000000005"}"#,
    ),
    (Kind::TimerFired, r#"{"timerId":"timer_00000000000000000000000005"}"#),
    (Kind::TimerCancelled, r#"{"timerId":"timer_00000000000000000000000005"}"#),
    (
        Kind::TaskOpened,
        r#"{"instance":"ask","request":{"inline":{"title":"Ship?"}},"taskId":"task_00000000000000000000000005"}"#,
    ),
    (
        Kind::TaskAnswered,
        r#"{"answer":{"inline":true},"by":"ada","taskId":"task_00000000000000000000000005"}"#,
    ),
    (
        Kind::ChildStarted,
        r#"{"childRunId":"run_00000000000000000000000006","childSessionId":"sess_00000000000000000000000007","instance":"sub"}"#,
    ),
    (
        Kind::ChildFinished,
        r#"{"childRunId":"run_00000000000000000000000006","instance":"sub","output":{"inline":1},"status":"succeeded"}"#,
    ),
    (Kind::SnapshotTaken, r#"{"snapshotRef":"DIGEST","through":41}"#),
    (Kind::RunPaused, r#"{"by":"ada","changeId":"prefchg_00000000000000000000000005"}"#),
    (Kind::RunResumed, r#"{"by":"ada","changeId":"prefchg_00000000000000000000000006"}"#),
    (Kind::RunCancelRequested, r#"{"by":"ada","reason":"no longer needed"}"#),
    (Kind::RunCompleted, r#"{"result":{"inline":{"count":2}}}"#),
    (Kind::RunFailed, r#"{"error":{"code":"STEP_FAILED","message":"gave up"},"instance":"fetch"}"#),
    (Kind::RunCancelled, "{}"),
    (Kind::RunRetired, "{}"),
];

pub(crate) fn data(kind: Kind) -> EventData {
    let (_, json) = EXAMPLES.iter().find(|(known, _)| *known == kind).unwrap();
    let digest = crate::digest::Digest::of(b"example").to_string();
    EventData::read(kind, &json.replace("DIGEST", &digest)).unwrap()
}

/// An event of this kind, about the node, the run or the session as its rule asks.
pub(super) fn example(kind: Kind) -> Event {
    let (run, node) = (RunId::from_bits(2), NodeId::from_bits(3));
    Event {
        id: EventId::mint(1_700_000_000_000, 9),
        index: EventIndex(8),
        session: SessionId::from_bits(1),
        scope: match kind.scope_rule() {
            ScopeRule::Session | ScopeRule::SessionOrNode | ScopeRule::Any => Scope::Session,
            ScopeRule::Run => Scope::Run(run),
            ScopeRule::Node => Scope::Node(run, node),
        },
        data: data(kind),
        newer: None,
    }
}

#[test]
fn every_kind_is_pinned() {
    let mut pinned = String::new();
    for kind in Kind::ALL {
        let event = example(*kind);
        event.check().unwrap();
        let line = String::from_utf8(event.encode().unwrap()).unwrap();
        assert_eq!(Event::decode(line.as_bytes()).as_ref(), Ok(&event));
        pinned += &format!("{}\n{line}\n", event.dedupe_key());
    }
    assert_snapshot!(pinned, @r#"
    session_created:sess_00000000000000000000000001
    {"data":{},"dedupeKey":"session_created:sess_00000000000000000000000001","eventId":"evt_01hf7yat000000000000000009","eventIndex":8,"kind":"session_created","sessionId":"sess_00000000000000000000000001","v":1}
    observation_recorded:sess_00000000000000000000000001:git_branch:0d6e4079e36703ebd37c00722f5891d28b0e2811dc114b129215123adcce3605
    {"data":{"confidence":"high","key":"git_branch","value":{"type":"short_string","value":"main"}},"dedupeKey":"observation_recorded:sess_00000000000000000000000001:git_branch:0d6e4079e36703ebd37c00722f5891d28b0e2811dc114b129215123adcce3605","eventId":"evt_01hf7yat000000000000000009","eventIndex":8,"kind":"observation_recorded","sessionId":"sess_00000000000000000000000001","v":1}
    run_started:sess_00000000000000000000000001:run_00000000000000000000000002
    {"data":{"workflowHash":"sha256:50d858e0985ecc7f60418aaf0cc5ab587f42c2570a884095a9e8ccacd0f6545c","workflowId":"project.triage","workflowSourceKind":"project","workflowSourceRef":".cairn/triage.yaml"},"dedupeKey":"run_started:sess_00000000000000000000000001:run_00000000000000000000000002","eventId":"evt_01hf7yat000000000000000009","eventIndex":8,"kind":"run_started","scope":{"runId":"run_00000000000000000000000002"},"sessionId":"sess_00000000000000000000000001","v":1}
    node_created:sess_00000000000000000000000001:run_00000000000000000000000002:node_00000000000000000000000003
    {"data":{"nodeKind":"step","parentNodeId":null,"snapshotRef":"sha256:50d858e0985ecc7f60418aaf0cc5ab587f42c2570a884095a9e8ccacd0f6545c","workflowHash":"sha256:50d858e0985ecc7f60418aaf0cc5ab587f42c2570a884095a9e8ccacd0f6545c"},"dedupeKey":"node_created:sess_00000000000000000000000001:run_00000000000000000000000002:node_00000000000000000000000003","eventId":"evt_01hf7yat000000000000000009","eventIndex":8,"kind":"node_created","scope":{"nodeId":"node_00000000000000000000000003","runId":"run_00000000000000000000000002"},"sessionId":"sess_00000000000000000000000001","v":1}
    edge_created:sess_00000000000000000000000001:run_00000000000000000000000002:node_00000000000000000000000003->node_00000000000000000000000004:acked_step
    {"data":{"cause":{"eventId":"evt_00000000000000000000000007","kind":"non_tip_advance"},"edgeKind":"acked_step","fromNodeId":"node_00000000000000000000000003","toNodeId":"node_00000000000000000000000004"},"dedupeKey":"edge_created:sess_00000000000000000000000001:run_00000000000000000000000002:node_00000000000000000000000003->node_00000000000000000000000004:acked_step","eventId":"evt_01hf7yat000000000000000009","eventIndex":8,"kind":"edge_created","scope":{"runId":"run_00000000000000000000000002"},"sessionId":"sess_00000000000000000000000001","v":1}
    advance_recorded:sess_00000000000000000000000001:node_00000000000000000000000003:att_00000000000000000000000005
    {"data":{"attemptId":"att_00000000000000000000000005","intent":"ack_pending","outcome":{"blockers":{"blockers":[{"code":"MISSING_REQUIRED_OUTPUT","message":"no notes","pointer":{"contractRef":"notes","kind":"output_contract"},"suggestedFix":"write some"}]},"kind":"blocked"}},"dedupeKey":"advance_recorded:sess_00000000000000000000000001:node_00000000000000000000000003:att_00000000000000000000000005","eventId":"evt_01hf7yat000000000000000009","eventIndex":8,"kind":"advance_recorded","scope":{"nodeId":"node_00000000000000000000000003","runId":"run_00000000000000000000000002"},"sessionId":"sess_00000000000000000000000001","v":1}
    node_output_appended:sess_00000000000000000000000001:out_00000000000000000000000005
    {"data":{"outputChannel":"recap","outputId":"out_00000000000000000000000005","payload":{"notesMarkdown":"Done.","payloadKind":"notes"}},"dedupeKey":"node_output_appended:sess_00000000000000000000000001:out_00000000000000000000000005","eventId":"evt_01hf7yat000000000000000009","eventIndex":8,"kind":"node_output_appended","scope":{"nodeId":"node_00000000000000000000000003","runId":"run_00000000000000000000000002"},"sessionId":"sess_00000000000000000000000001","v":1}
    preferences_changed:sess_00000000000000000000000001:prefchg_00000000000000000000000005
    {"data":{"changeId":"prefchg_00000000000000000000000005","delta":[{"key":"riskPolicy","value":"balanced"}],"effective":{"autonomy":"guided","riskPolicy":"balanced"},"source":"user"},"dedupeKey":"preferences_changed:sess_00000000000000000000000001:prefchg_00000000000000000000000005","eventId":"evt_01hf7yat000000000000000009","eventIndex":8,"kind":"preferences_changed","scope":{"nodeId":"node_00000000000000000000000003","runId":"run_00000000000000000000000002"},"sessionId":"sess_00000000000000000000000001","v":1}
    capability_observed:sess_00000000000000000000000001:capobs_00000000000000000000000005
    {"data":{"capObsId":"capobs_00000000000000000000000005","capability":"web_browsing","provenance":{"detail":{"attemptContext":"workflow_step","failureCode":"tool_missing","result":"failure"},"enforcementGrade":"strong","kind":"attempted_use"},"status":"unavailable"},"dedupeKey":"capability_observed:sess_00000000000000000000000001:capobs_00000000000000000000000005","eventId":"evt_01hf7yat000000000000000009","eventIndex":8,"kind":"capability_observed","scope":{"nodeId":"node_00000000000000000000000003","runId":"run_00000000000000000000000002"},"sessionId":"sess_00000000000000000000000001","v":1}
    gap_recorded:sess_00000000000000000000000001:gap_00000000000000000000000005
    {"data":{"evidenceRefs":[{"eventId":"evt_00000000000000000000000007","kind":"event"}],"gapId":"gap_00000000000000000000000005","reason":{"category":"contract_violation","detail":"missing_required_output"},"resolution":{"kind":"unresolved"},"severity":"critical","summary":"No notes."},"dedupeKey":"gap_recorded:sess_00000000000000000000000001:gap_00000000000000000000000005","eventId":"evt_01hf7yat000000000000000009","eventIndex":8,"kind":"gap_recorded","scope":{"nodeId":"node_00000000000000000000000003","runId":"run_00000000000000000000000002"},"sessionId":"sess_00000000000000000000000001","v":1}
    divergence_recorded:sess_00000000000000000000000001:div_00000000000000000000000005
    {"data":{"divergenceId":"div_00000000000000000000000005","reason":"efficiency_skip","relatedStepId":"fetch","summary":"Known already."},"dedupeKey":"divergence_recorded:sess_00000000000000000000000001:div_00000000000000000000000005","eventId":"evt_01hf7yat000000000000000009","eventIndex":8,"kind":"divergence_recorded","scope":{"nodeId":"node_00000000000000000000000003","runId":"run_00000000000000000000000002"},"sessionId":"sess_00000000000000000000000001","v":1}
    decision_trace_appended:sess_00000000000000000000000001:trace_00000000000000000000000005
    {"data":{"entries":[{"kind":"entered_loop","refs":[{"kind":"iteration","value":0}],"summary":"Two items."}],"traceId":"trace_00000000000000000000000005"},"dedupeKey":"decision_trace_appended:sess_00000000000000000000000001:trace_00000000000000000000000005","eventId":"evt_01hf7yat000000000000000009","eventIndex":8,"kind":"decision_trace_appended","scope":{"nodeId":"node_00000000000000000000000003","runId":"run_00000000000000000000000002"},"sessionId":"sess_00000000000000000000000001","v":1}
    context_set:sess_00000000000000000000000001:ctx_00000000000000000000000005
    {"data":{"context":{"ticket":"A-1"},"contextId":"ctx_00000000000000000000000005","source":"initial"},"dedupeKey":"context_set:sess_00000000000000000000000001:ctx_00000000000000000000000005","eventId":"evt_01hf7yat000000000000000009","eventIndex":8,"kind":"context_set","scope":{"runId":"run_00000000000000000000000002"},"sessionId":"sess_00000000000000000000000001","v":1}
    session_owned:sess_00000000000000000000000001:3
    {"data":{"epoch":3,"holder":"process 4711 on mill"},"dedupeKey":"session_owned:sess_00000000000000000000000001:3","eventId":"evt_01hf7yat000000000000000009","eventIndex":8,"kind":"session_owned","sessionId":"sess_00000000000000000000000001","v":1}
    session_listed:sess_00000000000000000000000001:sess_00000000000000000000000009:3
    {"data":{"epoch":3,"listedId":"sess_00000000000000000000000009","workflowId":"project.triage"},"dedupeKey":"session_listed:sess_00000000000000000000000001:sess_00000000000000000000000009:3","eventId":"evt_01hf7yat000000000000000009","eventIndex":8,"kind":"session_listed","sessionId":"sess_00000000000000000000000001","v":1}
    trigger_received:sess_00000000000000000000000001:0648298b48be031996277ae472115a46e7964d2ac3882e61b84351f3c3f8a547:abc5ba840c8bfb595b6704851a2853136733656c9fac538b89539ddfbc29e473
    {"data":{"key":"delivery/1","payload":{"inline":{"n":1}},"runId":"run_00000000000000000000000002","triggerId":"hook","workflowId":"project.triage"},"dedupeKey":"trigger_received:sess_00000000000000000000000001:0648298b48be031996277ae472115a46e7964d2ac3882e61b84351f3c3f8a547:abc5ba840c8bfb595b6704851a2853136733656c9fac538b89539ddfbc29e473","eventId":"evt_01hf7yat000000000000000009","eventIndex":8,"kind":"trigger_received","sessionId":"sess_00000000000000000000000001","v":1}
    run_queued:sess_00000000000000000000000001:run_00000000000000000000000002
    {"data":{"depth":0,"input":{"inline":null},"workflowId":"project.triage"},"dedupeKey":"run_queued:sess_00000000000000000000000001:run_00000000000000000000000002","eventId":"evt_01hf7yat000000000000000009","eventIndex":8,"kind":"run_queued","scope":{"runId":"run_00000000000000000000000002"},"sessionId":"sess_00000000000000000000000001","v":1}
    step_started:8051db52363d7b80cb9d1fefd4632f87:0
    {"data":{"attempt":0,"input":{"inline":{}},"instance":"each@0::fetch"},"dedupeKey":"step_started:8051db52363d7b80cb9d1fefd4632f87:0","eventId":"evt_01hf7yat000000000000000009","eventIndex":8,"kind":"step_started","scope":{"runId":"run_00000000000000000000000002"},"sessionId":"sess_00000000000000000000000001","v":1}
    step_completed:8051db52363d7b80cb9d1fefd4632f87
    {"data":{"attempt":0,"case":"bug","durationMs":12,"instance":"each@0::fetch","output":{"blob":{"byteLength":3,"contentType":"application/json","sha256":"sha256:50d858e0985ecc7f60418aaf0cc5ab587f42c2570a884095a9e8ccacd0f6545c"}}},"dedupeKey":"step_completed:8051db52363d7b80cb9d1fefd4632f87","eventId":"evt_01hf7yat000000000000000009","eventIndex":8,"kind":"step_completed","scope":{"runId":"run_00000000000000000000000002"},"sessionId":"sess_00000000000000000000000001","v":1}
    step_failed:7ec60ea59d4f4b508f5f21dbc7541d0b:1
    {"data":{"attempt":1,"durationMs":12,"error":{"code":"HTTP_STATUS","message":"503"},"instance":"fetch","then":"retry"},"dedupeKey":"step_failed:7ec60ea59d4f4b508f5f21dbc7541d0b:1","eventId":"evt_01hf7yat000000000000000009","eventIndex":8,"kind":"step_failed","scope":{"runId":"run_00000000000000000000000002"},"sessionId":"sess_00000000000000000000000001","v":1}
    step_skipped:7ec60ea59d4f4b508f5f21dbc7541d0b
    {"data":{"instance":"fetch","reason":"untaken"},"dedupeKey":"step_skipped:7ec60ea59d4f4b508f5f21dbc7541d0b","eventId":"evt_01hf7yat000000000000000009","eventIndex":8,"kind":"step_skipped","scope":{"runId":"run_00000000000000000000000002"},"sessionId":"sess_00000000000000000000000001","v":1}
    step_waiting:7ec60ea59d4f4b508f5f21dbc7541d0b:0
    {"data":{"attempt":0,"instance":"fetch","waitingFor":"person"},"dedupeKey":"step_waiting:7ec60ea59d4f4b508f5f21dbc7541d0b:0","eventId":"evt_01hf7yat000000000000000009","eventIndex":8,"kind":"step_waiting","scope":{"runId":"run_00000000000000000000000002"},"sessionId":"sess_00000000000000000000000001","v":1}
    step_interrupted:7ec60ea59d4f4b508f5f21dbc7541d0b:0
    {"data":{"attempt":0,"instance":"fetch"},"dedupeKey":"step_interrupted:7ec60ea59d4f4b508f5f21dbc7541d0b:0","eventId":"evt_01hf7yat000000000000000009","eventIndex":8,"kind":"step_interrupted","scope":{"runId":"run_00000000000000000000000002"},"sessionId":"sess_00000000000000000000000001","v":1}
    step_resolved:7ec60ea59d4f4b508f5f21dbc7541d0b:0
    {"data":{"attempt":0,"by":"ada","decision":"retry","instance":"fetch"},"dedupeKey":"step_resolved:7ec60ea59d4f4b508f5f21dbc7541d0b:0","eventId":"evt_01hf7yat000000000000000009","eventIndex":8,"kind":"step_resolved","scope":{"runId":"run_00000000000000000000000002"},"sessionId":"sess_00000000000000000000000001","v":1}
    loop_entered:3bea4b39b22e5f6581df0032c4f3e37b
    {"data":{"instance":"each","items":{"inline":[1,2]}},"dedupeKey":"loop_entered:3bea4b39b22e5f6581df0032c4f3e37b","eventId":"evt_01hf7yat000000000000000009","eventIndex":8,"kind":"loop_entered","scope":{"runId":"run_00000000000000000000000002"},"sessionId":"sess_00000000000000000000000001","v":1}
    loop_exited:3bea4b39b22e5f6581df0032c4f3e37b
    {"data":{"instance":"each","iterations":2},"dedupeKey":"loop_exited:3bea4b39b22e5f6581df0032c4f3e37b","eventId":"evt_01hf7yat000000000000000009","eventIndex":8,"kind":"loop_exited","scope":{"runId":"run_00000000000000000000000002"},"sessionId":"sess_00000000000000000000000001","v":1}
    timer_set:sess_00000000000000000000000001:timer_00000000000000000000000005
    {"data":{"dueMs":1700000000000,"instance":"fetch","purpose":"retry","timerId":"timer_00000000000000000000000005"},"dedupeKey":"timer_set:sess_00000000000000000000000001:timer_00000000000000000000000005","eventId":"evt_01hf7yat000000000000000009","eventIndex":8,"kind":"timer_set","scope":{"runId":"run_00000000000000000000000002"},"sessionId":"sess_00000000000000000000000001","v":1}
    timer_fired:sess_00000000000000000000000001:timer_00000000000000000000000005
    {"data":{"timerId":"timer_00000000000000000000000005"},"dedupeKey":"timer_fired:sess_00000000000000000000000001:timer_00000000000000000000000005","eventId":"evt_01hf7yat000000000000000009","eventIndex":8,"kind":"timer_fired","scope":{"runId":"run_00000000000000000000000002"},"sessionId":"sess_00000000000000000000000001","v":1}
    timer_cancelled:sess_00000000000000000000000001:timer_00000000000000000000000005
    {"data":{"timerId":"timer_00000000000000000000000005"},"dedupeKey":"timer_cancelled:sess_00000000000000000000000001:timer_00000000000000000000000005","eventId":"evt_01hf7yat000000000000000009","eventIndex":8,"kind":"timer_cancelled","scope":{"runId":"run_00000000000000000000000002"},"sessionId":"sess_00000000000000000000000001","v":1}
    task_opened:sess_00000000000000000000000001:task_00000000000000000000000005
    {"data":{"instance":"ask","request":{"inline":{"title":"Ship?"}},"taskId":"task_00000000000000000000000005"},"dedupeKey":"task_opened:sess_00000000000000000000000001:task_00000000000000000000000005","eventId":"evt_01hf7yat000000000000000009","eventIndex":8,"kind":"task_opened","scope":{"runId":"run_00000000000000000000000002"},"sessionId":"sess_00000000000000000000000001","v":1}
    task_answered:sess_00000000000000000000000001:task_00000000000000000000000005
    {"data":{"answer":{"inline":true},"by":"ada","taskId":"task_00000000000000000000000005"},"dedupeKey":"task_answered:sess_00000000000000000000000001:task_00000000000000000000000005","eventId":"evt_01hf7yat000000000000000009","eventIndex":8,"kind":"task_answered","scope":{"runId":"run_00000000000000000000000002"},"sessionId":"sess_00000000000000000000000001","v":1}
    child_started:sess_00000000000000000000000001:run_00000000000000000000000006
    {"data":{"childRunId":"run_00000000000000000000000006","childSessionId":"sess_00000000000000000000000007","instance":"sub"},"dedupeKey":"child_started:sess_00000000000000000000000001:run_00000000000000000000000006","eventId":"evt_01hf7yat000000000000000009","eventIndex":8,"kind":"child_started","scope":{"runId":"run_00000000000000000000000002"},"sessionId":"sess_00000000000000000000000001","v":1}
    child_finished:sess_00000000000000000000000001:run_00000000000000000000000006
    {"data":{"childRunId":"run_00000000000000000000000006","instance":"sub","output":{"inline":1},"status":"succeeded"},"dedupeKey":"child_finished:sess_00000000000000000000000001:run_00000000000000000000000006","eventId":"evt_01hf7yat000000000000000009","eventIndex":8,"kind":"child_finished","scope":{"runId":"run_00000000000000000000000002"},"sessionId":"sess_00000000000000000000000001","v":1}
    snapshot_taken:sess_00000000000000000000000001:run_00000000000000000000000002:41
    {"data":{"snapshotRef":"sha256:50d858e0985ecc7f60418aaf0cc5ab587f42c2570a884095a9e8ccacd0f6545c","through":41},"dedupeKey":"snapshot_taken:sess_00000000000000000000000001:run_00000000000000000000000002:41","eventId":"evt_01hf7yat000000000000000009","eventIndex":8,"kind":"snapshot_taken","scope":{"runId":"run_00000000000000000000000002"},"sessionId":"sess_00000000000000000000000001","v":1}
    run_paused:sess_00000000000000000000000001:prefchg_00000000000000000000000005
    {"data":{"by":"ada","changeId":"prefchg_00000000000000000000000005"},"dedupeKey":"run_paused:sess_00000000000000000000000001:prefchg_00000000000000000000000005","eventId":"evt_01hf7yat000000000000000009","eventIndex":8,"kind":"run_paused","scope":{"runId":"run_00000000000000000000000002"},"sessionId":"sess_00000000000000000000000001","v":1}
    run_resumed:sess_00000000000000000000000001:prefchg_00000000000000000000000006
    {"data":{"by":"ada","changeId":"prefchg_00000000000000000000000006"},"dedupeKey":"run_resumed:sess_00000000000000000000000001:prefchg_00000000000000000000000006","eventId":"evt_01hf7yat000000000000000009","eventIndex":8,"kind":"run_resumed","scope":{"runId":"run_00000000000000000000000002"},"sessionId":"sess_00000000000000000000000001","v":1}
    run_cancel_requested:sess_00000000000000000000000001:run_00000000000000000000000002
    {"data":{"by":"ada","reason":"no longer needed"},"dedupeKey":"run_cancel_requested:sess_00000000000000000000000001:run_00000000000000000000000002","eventId":"evt_01hf7yat000000000000000009","eventIndex":8,"kind":"run_cancel_requested","scope":{"runId":"run_00000000000000000000000002"},"sessionId":"sess_00000000000000000000000001","v":1}
    run_completed:sess_00000000000000000000000001:run_00000000000000000000000002
    {"data":{"result":{"inline":{"count":2}}},"dedupeKey":"run_completed:sess_00000000000000000000000001:run_00000000000000000000000002","eventId":"evt_01hf7yat000000000000000009","eventIndex":8,"kind":"run_completed","scope":{"runId":"run_00000000000000000000000002"},"sessionId":"sess_00000000000000000000000001","v":1}
    run_failed:sess_00000000000000000000000001:run_00000000000000000000000002
    {"data":{"error":{"code":"STEP_FAILED","message":"gave up"},"instance":"fetch"},"dedupeKey":"run_failed:sess_00000000000000000000000001:run_00000000000000000000000002","eventId":"evt_01hf7yat000000000000000009","eventIndex":8,"kind":"run_failed","scope":{"runId":"run_00000000000000000000000002"},"sessionId":"sess_00000000000000000000000001","v":1}
    run_cancelled:sess_00000000000000000000000001:run_00000000000000000000000002
    {"data":{},"dedupeKey":"run_cancelled:sess_00000000000000000000000001:run_00000000000000000000000002","eventId":"evt_01hf7yat000000000000000009","eventIndex":8,"kind":"run_cancelled","scope":{"runId":"run_00000000000000000000000002"},"sessionId":"sess_00000000000000000000000001","v":1}
    run_retired:sess_00000000000000000000000001:run_00000000000000000000000002
    {"data":{},"dedupeKey":"run_retired:sess_00000000000000000000000001:run_00000000000000000000000002","eventId":"evt_01hf7yat000000000000000009","eventIndex":8,"kind":"run_retired","scope":{"runId":"run_00000000000000000000000002"},"sessionId":"sess_00000000000000000000000001","v":1}
    "#);
}

#[test]
fn a_key_is_safe_and_short_whatever_the_event_says() {
    let [outer, inner, step] = ["o", "i", "s"].map(|letter| letter.repeat(128));
    let instance = format!("{outer}@4294967295/{inner}@4294967295::{step}~4294967295");
    let json = format!(r#"{{"attempt":4294967295,"instance":"{instance}"}}"#);
    let mut event = example(Kind::StepInterrupted);
    event.data = EventData::read(Kind::StepInterrupted, &json).unwrap();
    assert!(DedupeKey::is_well_formed(event.dedupe_key().as_str()));
    for kind in Kind::ALL {
        let key = example(*kind).dedupe_key();
        assert!(DedupeKey::is_well_formed(key.as_str()), "{key}");
    }
    for text in ["", "a b", "A", "a.b", &"a".repeat(257)] {
        assert!(!DedupeKey::is_well_formed(text), "{text}");
    }
}

#[test]
fn names_and_kinds_are_one_to_one() {
    for kind in Kind::ALL {
        assert_eq!(Kind::named(kind.name()), Some(*kind));
    }
    assert_eq!(Kind::named("step_exploded"), None);
}

proptest! {
    #[test]
    fn encode_then_decode_is_identity(log in arbitrary::log(1..12)) {
        for event in log {
            prop_assert_eq!(event.check(), Ok(()));
            let line = event.encode().unwrap();
            prop_assert_eq!(&Event::decode(&line).unwrap(), &event);
            let header = Header::decode(&line).unwrap();
            prop_assert_eq!(header.id, event.id);
            prop_assert_eq!(header.index, event.index);
            prop_assert_eq!(header.session, event.session);
            prop_assert_eq!(header.scope, event.scope);
            prop_assert_eq!(header.dedupe_key.as_ref(), event.dedupe_key().to_string());
        }
    }

    #[test]
    fn a_line_is_canonical_as_it_is_written(log in arbitrary::log(1..6)) {
        for event in log {
            let line = event.encode().unwrap();
            let value: serde_json::Value = serde_json::from_slice(&line).unwrap();
            prop_assert_eq!(serde_json_canonicalizer::to_vec(&value).unwrap(), line);
        }
    }

    #[test]
    fn decoding_never_panics(bytes: Vec<u8>, cut in 0usize..400) {
        let _ = Event::decode(&bytes);
        let line = example(Kind::GapRecorded).encode().unwrap();
        prop_assert!(Event::decode(&line[..cut.min(line.len() - 1)]).is_err());
    }
}
