//! Scopes, budgets and closed shapes.

use insta::assert_snapshot;
use serde_json::{Value, json};

use super::super::*;
use super::golden::example;
use crate::reason::BlockerReport;

/// What is wrong with an example after one member of its payload is replaced or added.
fn check(kind: Kind, pointer: &str, value: Value) -> String {
    let event = example(kind);
    let mut payload = serde_json::to_value(&event.data).unwrap();
    let (above, member) = pointer.rsplit_once('/').unwrap();
    match payload.pointer_mut(above).unwrap() {
        Value::Array(items) => items[member.parse::<usize>().unwrap()] = value,
        members => members[member] = value,
    }
    match EventData::read(kind, &payload.to_string()) {
        Err(error) => format!("unreadable: {error}"),
        Ok(data) => match (NewEvent { id: event.id, scope: event.scope, data }).check() {
            Ok(()) => "fine".into(),
            Err(invalid) => invalid.to_string(),
        },
    }
}

/// Two bytes in one character, so that characters and bytes differ.
fn text(bytes: usize) -> String {
    "ä".repeat(bytes / 2) + if bytes % 2 == 1 { "a" } else { "" }
}

#[test]
fn each_kind_has_its_scope_and_no_other() {
    let (run, node) = (RunId::from_bits(2), NodeId::from_bits(3));
    let mut table = String::new();
    for kind in Kind::ALL {
        let taken = |scope| {
            (NewEvent { scope, id: EventId::from_bits(1), data: super::golden::data(*kind) })
                .check()
                .is_ok()
        };
        let allowed: Vec<&str> = [
            ("session", taken(Scope::Session)),
            ("run", taken(Scope::Run(run))),
            ("node", taken(Scope::Node(run, node))),
        ]
        .into_iter()
        .filter_map(|(name, allowed)| allowed.then_some(name))
        .collect();
        table += &format!("{}: {}\n", kind.name(), allowed.join(", "));
    }
    assert_snapshot!(table, @r#"
    session_created: session
    observation_recorded: session, node
    run_started: run
    node_created: node
    edge_created: run
    advance_recorded: node
    node_output_appended: node
    preferences_changed: node
    capability_observed: node
    gap_recorded: node
    divergence_recorded: node
    decision_trace_appended: node
    context_set: run
    session_owned: session
    session_listed: session
    trigger_received: session
    run_queued: run
    step_started: run
    step_completed: run
    step_failed: run
    step_skipped: run
    step_waiting: run
    step_interrupted: run
    step_resolved: run
    loop_entered: run
    loop_exited: run
    timer_set: run
    timer_fired: run
    timer_cancelled: run
    task_opened: run
    task_answered: run
    child_started: run
    child_finished: run
    snapshot_taken: run
    run_paused: run
    run_resumed: run
    run_cancel_requested: run
    run_completed: run
    run_failed: run
    run_cancelled: run
    run_retired: run
    "#);
}

#[test]
fn a_wrong_scope_says_what_is_wanted() {
    let mut event = example(Kind::NodeCreated);
    event.scope = Scope::Session;
    assert_snapshot!(event.check().unwrap_err(), @"node_created must be about Node, and is about Session");
    let line = event.encode().unwrap();
    assert!(matches!(Event::decode(&line), Err(DecodeError::Invalid(_))));
}

#[test]
fn texts_are_measured_in_bytes_up_to_their_limit() {
    let blocker = "/outcome/blockers/blockers/0";
    let cases = [
        (Kind::NodeOutputAppended, "/payload/notesMarkdown".into(), limits::NOTES),
        (Kind::AdvanceRecorded, format!("{blocker}/message"), limits::BLOCKER_MESSAGE),
        (Kind::AdvanceRecorded, format!("{blocker}/suggestedFix"), limits::BLOCKER_FIX),
        (Kind::GapRecorded, "/summary".into(), limits::SUMMARY),
        (Kind::DivergenceRecorded, "/summary".into(), limits::SUMMARY),
        (Kind::DecisionTraceAppended, "/entries/0/summary".into(), limits::TRACE_SUMMARY),
        (Kind::ObservationRecorded, "/value/value".into(), limits::SHORT_STRING),
        (Kind::StepFailed, "/error/message".into(), limits::FAILURE_MESSAGE),
        (Kind::StepFailed, "/error/code".into(), limits::NAME),
        (Kind::RunFailed, "/error/message".into(), limits::FAILURE_MESSAGE),
        (Kind::RunStarted, "/workflowId".into(), limits::NAME),
        (Kind::RunStarted, "/workflowSourceRef".into(), limits::SOURCE_REF),
        (Kind::SessionListed, "/workflowSourceRef".into(), limits::SOURCE_REF),
        (Kind::TriggerReceived, "/workflowSourceRef".into(), limits::SOURCE_REF),
        (Kind::RunQueued, "/workflowSourceRef".into(), limits::SOURCE_REF),
        (Kind::TriggerReceived, "/key".into(), limits::NAME),
        (Kind::TriggerReceived, "/workflowId".into(), limits::NAME),
        (Kind::RunQueued, "/workflowId".into(), limits::NAME),
        (Kind::StepCompleted, "/case".into(), limits::NAME),
        (Kind::StepResolved, "/by".into(), limits::NAME),
        (Kind::TaskAnswered, "/by".into(), limits::NAME),
        (Kind::RunPaused, "/by".into(), limits::NAME),
        (Kind::RunResumed, "/by".into(), limits::NAME),
        (Kind::RunCancelRequested, "/by".into(), limits::NAME),
        (Kind::RunCancelRequested, "/reason".into(), limits::SUMMARY),
        (Kind::SessionOwned, "/holder".into(), limits::NAME),
    ];
    for (kind, pointer, max) in cases {
        let at = check(kind, &pointer, text(max).into());
        assert_eq!(at, "fine", "{} {pointer}", kind.name());
        let over = check(kind, &pointer, text(max + 1).into());
        let wanted = format!("has {}, and at most {max} are allowed", max + 1);
        assert!(over.contains(&wanted), "{} {pointer}: {over}", kind.name());
    }
    let path = |bytes| json!({"type": "path", "value": text(bytes)});
    assert_eq!(check(Kind::ObservationRecorded, "/value", path(limits::PATH)), "fine");
    assert_snapshot!(check(Kind::ObservationRecorded, "/value", path(limits::PATH + 1)), @"value has 513, and at most 512 are allowed; shorten it");
}

#[test]
fn lists_are_counted_up_to_their_limit() {
    let entry = |n: usize| json!({"kind": "entered_loop", "summary": format!("{n}")});
    let entries = |n| Value::from((0..n).map(entry).collect::<Vec<_>>());
    let trace = |n| check(Kind::DecisionTraceAppended, "/entries", entries(n));
    assert_eq!(trace(limits::TRACE_ENTRIES), "fine");
    assert_snapshot!(trace(limits::TRACE_ENTRIES + 1), @"entries has 26, and at most 25 are allowed; shorten it");
    assert_snapshot!(trace(0), @"entries must not be empty");
    let refs = |n| Value::from(vec![json!({"kind": "iteration", "value": 1}); n]);
    let about = |n| check(Kind::DecisionTraceAppended, "/entries/0/refs", refs(n));
    assert_eq!(about(limits::TRACE_REFS), "fine");
    assert_snapshot!(about(limits::TRACE_REFS + 1), @"refs has 11, and at most 10 are allowed; shorten it");
    let one = json!({"code": "INVARIANT_VIOLATION", "message": "m", "pointer": {"kind": "context_budget"}});
    let blockers =
        |n| check(Kind::AdvanceRecorded, "/outcome/blockers/blockers", vec![one.clone(); n].into());
    assert_eq!(blockers(limits::BLOCKERS), "fine");
    assert_snapshot!(blockers(limits::BLOCKERS + 1), @"blockers has 11, and at most 10 are allowed; shorten it");
    assert_snapshot!(blockers(0), @"blockers must not be empty");
}

#[test]
fn a_whole_trace_has_a_limit_too() {
    let long = |n: usize| {
        let entry = |text: String| json!({"kind": "entered_loop", "summary": text});
        let mut entries = vec![entry(text(limits::TRACE_SUMMARY)); 14];
        entries.push(entry("a".repeat(n)));
        check(Kind::DecisionTraceAppended, "/entries", entries.into())
    };
    let size = |n: usize| (1..=limits::TRACE_SUMMARY).find(|n2| *n2 == n);
    let fits = (1..=limits::TRACE_SUMMARY).rfind(|n| long(*n) == "fine").and_then(size).unwrap();
    assert_snapshot!(long(fits + 1), @"decision trace has 8193, and at most 8192 are allowed; shorten it");
}

#[test]
fn a_context_is_measured_as_canonical_json() {
    let context = |bytes: usize| json!({"k": "a".repeat(bytes - r#"{"k":""}"#.len())});
    assert_eq!(check(Kind::ContextSet, "/context", context(limits::CONTEXT)), "fine");
    assert_snapshot!(check(Kind::ContextSet, "/context", context(limits::CONTEXT + 1)), @"context has 262145, and at most 262144 are allowed; measured as canonical JSON (RFC 8785) in UTF-8: remove blobs, pass references");
    assert_snapshot!(check(Kind::ContextSet, "/context", json!([1])), @"a context is an object");
    for key in ["__proto__", "constructor", "prototype"] {
        assert!(check(Kind::ContextSet, "/context", json!({key: 1})).contains("may not use"));
    }
}

#[test]
fn what_contradicts_itself_is_refused() {
    assert_snapshot!(check(Kind::EdgeCreated, "/edgeKind", "checkpoint".into()), @"an edge is a checkpoint edge exactly when a checkpoint caused it");
    assert_snapshot!(check(Kind::EdgeCreated, "/cause/kind", "checkpoint_created".into()), @"an edge is a checkpoint edge exactly when a checkpoint caused it");
    assert_snapshot!(check(Kind::NodeOutputAppended, "/outputChannel", "artifact".into()), @"notes go to the recap channel, artifacts to the artifact channel");
    assert_snapshot!(check(Kind::CapabilityObserved, "/provenance/enforcementGrade", "weak".into()), @"the enforcement grade does not follow from the provenance");
    assert_snapshot!(check(Kind::CapabilityObserved, "/provenance/detail/result", "success".into()), @"a failure code is there exactly when the use failed");
    assert_snapshot!(check(Kind::PreferencesChanged, "/delta", json!([])), @"delta must not be empty");
    assert_snapshot!(check(Kind::PreferencesChanged, "/effective/riskPolicy", "aggressive".into()), @"the effective preferences do not hold what the delta says");
    let twice = json!([{"key": "riskPolicy", "value": "balanced"}, {"key": "riskPolicy", "value": "balanced"}]);
    assert_snapshot!(check(Kind::PreferencesChanged, "/delta", twice), @"a delta names each preference at most once");
    let sha = |kind: &str, text: &str| json!({"type": kind, "value": text});
    assert_snapshot!(check(Kind::ObservationRecorded, "/value", sha("git_sha1", "abc")), @"a git_sha1 has 40 lower-case hex digits");
    assert_snapshot!(check(Kind::ObservationRecorded, "/value", sha("sha256", &"G".repeat(64))), @"a sha256 has 64 lower-case hex digits");
    assert_eq!(
        check(Kind::ObservationRecorded, "/value", sha("git_sha1", &"a0".repeat(20))),
        "fine"
    );
    let blocker =
        |code: &str| json!({"code": code, "message": "m", "pointer": {"kind": "context_budget"}});
    let swapped = json!([blocker("USER_ONLY_DEPENDENCY"), blocker("INVARIANT_VIOLATION")]);
    assert_snapshot!(check(Kind::AdvanceRecorded, "/outcome/blockers/blockers", swapped), @"blockers stand in order of code and pointer");
}

#[test]
fn blockers_are_put_in_order() {
    let EventData::AdvanceRecorded(advance) = example(Kind::AdvanceRecorded).data else { panic!() };
    let guided::AdvanceOutcome::Blocked { blockers } = advance.outcome else { panic!() };
    let mut later = blockers.blockers().to_vec();
    later[0].message = "and then".into();
    let both = [blockers.blockers(), &later].concat();
    let report = BlockerReport::new(both).unwrap();
    assert_eq!(report.blockers()[0].message, "and then");
}

/// What decoding says of an example's line after a replacement.
fn decoded(kind: Kind, from: &str, to: &str) -> String {
    let line = String::from_utf8(example(kind).encode().unwrap()).unwrap();
    assert!(line.contains(from), "{from} is not in {line}");
    Event::decode(line.replace(from, to).as_bytes()).unwrap_err().to_string()
}

#[test]
fn a_line_is_read_strictly() {
    let gap = Kind::GapRecorded;
    assert_snapshot!(decoded(gap, r#""v":1"#, r#""v":2"#), @"the event is of version 2; this program reads version 1");
    assert_snapshot!(decoded(gap, r#""v":1"#, r#""v":2,"weather":"fine""#), @"the event is of version 2; this program reads version 1");
    assert_snapshot!(decoded(gap, r#""v":1"#, r#""v":1,"weather":"fine""#), @"not an event: unknown field `weather`, expected one of `data`, `dedupeKey`, `eventId`, `eventIndex`, `kind`, `needs`, `scope`, `sessionId`, `v` at line 1 column 610");
    assert_snapshot!(decoded(gap, r#""severity""#, r#""weather":"fine","severity""#), @"not an event: data of gap_recorded: unknown field `weather`, expected one of `evidenceRefs`, `gapId`, `reason`, `resolution`, `severity`, `summary` at line 1 column 241");
    assert_snapshot!(decoded(gap, r#""kind":"unresolved""#, r#""kind":"unresolved","x":1"#), @"not an event: data of gap_recorded: unknown field `x`, there are no fields at line 1 column 237");
    assert_snapshot!(decoded(gap, r#""v":1"#, r#""v":1,"v":1"#), @"not an event: duplicate field `v` at line 1 column 604");
    assert_snapshot!(decoded(gap, r#""summary""#, r#""summary":"","summary""#), @"not an event: data of gap_recorded: duplicate field `summary` at line 1 column 276");
    assert_snapshot!(decoded(gap, "gap_recorded\",\"scope", "gap_forgotten\",\"scope"), @"`gap_forgotten` is not a kind of event that this program knows");
    assert_snapshot!(decoded(gap, "gap_recorded:sess", "gap_recorded:Sess"), @"not an event: the dedupe key has characters it may not have");
    assert_snapshot!(decoded(gap, ":gap_00000000000000000000000005", ":gap_00000000000000000000000006"), @"the dedupe key is `gap_recorded:sess_00000000000000000000000001:gap_00000000000000000000000006`, and its content asks for `gap_recorded:sess_00000000000000000000000001:gap_00000000000000000000000005`");
    assert_snapshot!(decoded(gap, r#""runId":"run_"#, r#""runId":"sess_"#), @"not an event: `sess_00000000000000000000000002` is not a run id; one looks like `run_01j9zt3v5n8q4rk2m6x7c0d1ef` at line 1 column 548");
    let context = Kind::ContextSet;
    assert_snapshot!(decoded(context, r#""ticket""#, r#""ticket":1,"ticket""#), @"not an event: data of context_set: duplicate key `ticket` at line 1 column 38");
    assert_snapshot!(decoded(context, r#""A-1""#, "9007199254740993"), @"not an event: data of context_set: inexact integer `9007199254740993` at line 1 column 37");
}

/// The page that lists the events is held to the code.
#[test]
fn decision_0001_lists_every_event() {
    let page = include_str!("../../../../../docs/decisions/0001-events.md");
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| `")).collect();
    for kind in Kind::ALL {
        let name = format!("| `{}` |", kind.name());
        let row = rows.iter().find(|row| row.starts_with(&name));
        let row = row.unwrap_or_else(|| panic!("{} is not listed", kind.name()));
        let payload = serde_json::to_value(&example(*kind).data).unwrap();
        for field in payload.as_object().unwrap().keys() {
            assert!(row.contains(&format!("`{field}")), "{}: {field} is missing", kind.name());
        }
        let scope = match kind.scope_rule() {
            ScopeRule::Session => "| session |",
            ScopeRule::Run => "| run |",
            ScopeRule::Node => "| node |",
            ScopeRule::SessionOrNode => "| session or node |",
            ScopeRule::Any => unreachable!("every kind that is known has a rule"),
        };
        assert!(row.contains(scope), "{}: {scope}", kind.name());
    }
    let listed = rows.iter().filter(|row| row.matches(" | ").count() == 3).count();
    assert_eq!(listed, Kind::ALL.len(), "rows of events");
}

#[test]
fn notes_and_traces_are_cut_to_their_budgets() {
    let scope = example(Kind::DecisionTraceAppended).scope;
    let check = |data: EventData| {
        NewEvent {
            data,
            ..NewEvent { id: EventId::from_bits(1), scope, data: guided::SessionCreated {}.into() }
        }
        .check()
    };
    let guided::OutputPayload::Notes { notes_markdown } = guided::OutputPayload::notes(&text(9000))
    else {
        panic!("notes are notes");
    };
    assert!((limits::NOTES - 1..=limits::NOTES).contains(&notes_markdown.len()));
    assert!(notes_markdown.ends_with(crate::text::TRUNCATED));
    assert!(
        matches!(guided::OutputPayload::notes("short"), guided::OutputPayload::Notes { notes_markdown } if notes_markdown == "short")
    );
    for (entries, length) in [(1, 10), (1, 9000), (25, 500), (25, 9000), (40, 9000), (3, 513)] {
        let entry = guided::TraceEntry {
            kind: guided::TraceKind::SelectedNextStep,
            refs: vec![guided::TraceRef::Iteration { value: 1 }; 12],
            summary: text(length),
        };
        let trace = guided::DecisionTraceAppended::new(
            crate::id::TraceId::from_bits(1),
            vec![entry; entries],
        );
        assert_eq!(check(trace.unwrap().into()), Ok(()), "{entries} of {length}");
    }
    assert_eq!(
        guided::DecisionTraceAppended::new(crate::id::TraceId::from_bits(1), Vec::new()),
        None
    );
}
