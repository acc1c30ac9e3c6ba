use insta::assert_snapshot;
use serde_json::json;

use super::*;
use crate::canonical;
use crate::digest::Digest;
use crate::event::engine::*;
use crate::event::{EventData, NewEvent, Scope};
use crate::id::{ChangeId, EventId, EventIndex};

const RUN: RunId = RunId::from_bits(1);

fn event(index: u64, line: &str) -> Event {
    let words: Vec<&str> = line.split_whitespace().collect();
    let key = |place: usize| words[place].parse::<StepInstanceKey>().unwrap();
    let attempt = words.get(2).and_then(|word| word.parse().ok()).unwrap_or(0);
    let value = Payload::inline(json!(1));
    let error = Failure { code: "STEP_FAILED".into(), message: "no".into() };
    let timer_id = TimerId::from_bits(5);
    let task_id = TaskId::from_bits(5);
    let change_id = ChangeId::from_bits(index.into());
    let child_run_id = RunId::from_bits(6);
    let (by, via) = (String::from("ada"), None);
    let failed = |then| {
        let (instance, error) = (key(1), error.clone());
        let output = None;
        StepFailed { attempt, duration_ms: 1, error, instance, output, then, usage: None }.into()
    };
    let resolved = |decision| {
        StepResolved { attempt, by: by.clone(), decision, instance: key(1), via: None }.into()
    };
    let data: EventData = match words[0] {
        "queue" => RunQueued {
            advance: None,
            by: None,
            depth: 0,
            forked_from: None,
            input: value,
            parent: None,
            trigger_id: None,
            via: None,
            workflow_id: "w".into(),
            workflow_source_ref: None,
            workspace: None,
        }
        .into(),
        "begin" => RunStarted {
            assets: Vec::new(),
            goal: None,
            workflow_hash: crate::digest::WorkflowHash(Digest::of(b"plan")),
            workflow_id: "w".into(),
            workflow_source_kind: crate::event::guided::SourceKind::Project,
            workflow_source_ref: "w".into(),
            workspace: None,
        }
        .into(),
        "start" => {
            StepStarted { attempt, epoch: None, input: value.into(), instance: key(1) }.into()
        }
        "repeat" => {
            let earlier = EarlierValue::Attempt(attempt - 1);
            let input = StepInput::Earlier { earlier };
            StepStarted { attempt, epoch: Some(2), input, instance: key(1) }.into()
        }
        "take" => {
            let input = StepInput::Earlier { earlier: EarlierValue::Output(key(2)) };
            StepStarted { attempt: 0, epoch: None, input, instance: key(1) }.into()
        }
        "complete" => {
            let (instance, output) = (key(1), value);
            StepCompleted { attempt, case: None, duration_ms: 1, instance, output, usage: None }
                .into()
        }
        "retry" => failed(AfterFailure::Retry),
        "stop" => failed(AfterFailure::Stop),
        "fail-skip" => failed(AfterFailure::Skip),
        "fallback" => failed(AfterFailure::Fallback),
        "skip" => StepSkipped { instance: key(1), reason: SkipReason::Condition }.into(),
        "wait" => {
            StepWaiting { attempt: 0, instance: key(1), waiting_for: WaitingFor::Person }.into()
        }
        "interrupt" => StepInterrupted { attempt, instance: key(1) }.into(),
        "again" => resolved(InterruptDecision::Retry),
        "give-up" => resolved(InterruptDecision::Fail),
        "enter" => LoopEntered { instance: key(1), items: None }.into(),
        "exit" => LoopExited { instance: key(1), iterations: 2 }.into(),
        "timer" => {
            TimerSet { due_ms: 9, instance: None, purpose: TimerPurpose::Wait, timer_id }.into()
        }
        "fire" => TimerFired { timer_id }.into(),
        "ask" => TaskOpened { instance: key(1), request: value, task_id }.into(),
        "answer" => TaskAnswered { answer: value, by, task_id, via }.into(),
        "child" => ChildStarted {
            child_run_id,
            child_session_id: SessionId::from_bits(7),
            instance: key(1),
        }
        .into(),
        "pause" => RunPaused { by, change_id, imported: false, via }.into(),
        "resume" => RunResumed { by, change_id, input: None, via }.into(),
        "cancel" => RunCancelRequested { by, reason: String::new(), via }.into(),
        "cancelled" => RunCancelled {}.into(),
        "done" => RunCompleted { result: value }.into(),
        "fail" => RunFailed { error, instance: None }.into(),
        "retire" => RunRetired {}.into(),
        other => panic!("`{other}` is no event of a script"),
    };
    let scope = Scope::Run(RUN);
    let id = EventId::from_bits(index.into());
    NewEvent { id, scope, data }.at(SessionId::from_bits(1), EventIndex(index))
}

fn fold(script: &str) -> RunState {
    let lines = script.split(';').map(str::trim);
    let events: Vec<Event> = (0..).zip(lines).map(|(index, line)| event(index, line)).collect();
    RunState::fold(RUN, &events)
}

/// The run's status, then each step's, and what else is outstanding.
fn play(script: &str) -> String {
    let run = fold(script);
    let step = |(key, step): (&StepInstanceKey, &StepState)| {
        format!(" {key}={:?}/{}", step.status, step.attempts).to_lowercase()
    };
    let mut told = run.status().name().to_owned();
    told.extend(run.steps.iter().map(step));
    for (name, count) in [
        ("loops", run.loops.len()),
        ("timers", run.timers.len()),
        ("tasks", run.tasks.len()),
        ("children", run.children.len()),
    ] {
        if count > 0 {
            told += &format!(" {name}:{count}");
        }
    }
    told
}

#[test]
fn a_run_from_end_to_end() {
    assert_snapshot!(play("queue"), @"queued");
    assert_snapshot!(play("queue; begin"), @"running");
    assert_snapshot!(play("queue; begin; start a"), @"running a=running/1");
    assert_snapshot!(play("queue; begin; start a; complete a; start b"), @"running a=succeeded/1 b=running/1");
    assert_snapshot!(play("queue; begin; start a; complete a; done"), @"succeeded a=succeeded/1");
    assert_snapshot!(play("queue; begin; start a; stop a; fail"), @"failed a=failed/1");
}

#[test]
fn a_failed_step_is_tried_again_skipped_or_final() {
    assert_snapshot!(play("begin; start a; retry a"), @"running a=pending/1");
    assert_snapshot!(play("begin; start a; retry a; start a 1; complete a 1"), @"running a=succeeded/2");
    assert_snapshot!(play("begin; start a; fail-skip a"), @"running a=skipped/1");
    assert_snapshot!(play("begin; start a; fallback a; start b"), @"running a=failed/1 b=running/1");
    assert_snapshot!(play("begin; skip a"), @"running a=skipped/0");
    assert_eq!(
        fold("begin; start a; retry a; start a 1; complete a 1")
            .steps
            .values()
            .next()
            .unwrap()
            .error,
        None
    );
}

#[test]
fn a_run_waits_when_nothing_else_goes_on() {
    assert_snapshot!(play("begin; start a; wait a; ask a"), @"waiting a=waiting/1 tasks:1");
    assert_snapshot!(play("begin; start a; wait a; ask a; start b"), @"running a=waiting/1 b=running/1 tasks:1");
    assert_snapshot!(play("begin; start a; wait a; ask a; answer; complete a"), @"running a=succeeded/1");
    assert_snapshot!(play("begin; start a; wait a; timer; child a"), @"waiting a=waiting/1 timers:1 children:1");
    assert_snapshot!(play("begin; start a; interrupt a"), @"waiting a=unknown/1");
    assert_snapshot!(play("begin; start a; interrupt a; again a"), @"running a=pending/1");
    assert_snapshot!(play("begin; start a; interrupt a; give-up a"), @"running a=failed/1");
}

#[test]
fn a_paused_run_is_paused_until_it_is_resumed() {
    assert_snapshot!(play("begin; start a; pause"), @"paused a=running/1");
    assert_snapshot!(play("begin; start a; pause; resume"), @"running a=running/1");
}

#[test]
fn a_cancelled_run_owes_nothing() {
    assert_snapshot!(play("begin; start a; timer; ask a; child a; cancel"), @"running a=running/1 timers:1 tasks:1 children:1");
    assert_snapshot!(play("begin; start a; timer; ask a; child a; cancel; cancelled"), @"cancelled a=cancelled/1");
    assert_snapshot!(play("begin; cancelled; done"), @"cancelled");
    assert_snapshot!(play("begin; cancelled; start a"), @"cancelled");
    assert!(fold("begin; cancel").cancel_requested);
    assert!(fold("begin; done; retire").retired);
}

#[test]
fn no_step_and_no_loop_goes_on_when_its_run_is_over() {
    let under_way = "begin; start a; retry a; wait b; start c; interrupt c; enter each; \
                     complete each@0::d; start each@1::d; enter each@1::inner; start each@1/inner@0::e";
    for (end, status) in
        [("cancel; cancelled", "cancelled"), ("fail", "failed"), ("done", "succeeded")]
    {
        let run = fold(&format!("{under_way}; {end}"));
        assert_eq!(run.status().name(), status);
        let open: Vec<&StepInstanceKey> = run
            .steps
            .iter()
            .filter(|(_, s)| s.status != StepStatus::Cancelled)
            .map(|(k, _)| k)
            .collect();
        assert!(open.is_empty(), "{end}: {open:?}");
        for looped in ["each", "each@1::inner"] {
            assert!(run.steps.contains_key(&looped.parse().unwrap()), "{looped} has a status");
        }
    }
}

#[test]
fn an_ended_step_keeps_its_output_and_not_its_input() {
    let run = fold("begin; start a; complete a");
    let step = run.steps.values().next().unwrap();
    assert_eq!(step.input.as_ref(), None);
    assert_eq!(step.output, Some(Payload::inline(json!(1))));
    let instance: StepInstanceKey = "a".parse().unwrap();
    assert_eq!(step.node_id, Some(instance.node(RUN)));
    assert_eq!(run.last_node_id, step.node_id);
}

#[test]
fn an_input_may_be_named_where_it_stands_already() {
    let given = Some(Payload::inline(json!(1)));
    let input = |script: &str, step: &str| {
        fold(script).steps.get(&step.parse().unwrap()).unwrap().input.clone()
    };
    assert_eq!(input("begin; start a; retry a; repeat a 1", "a"), given);
    assert_eq!(input("begin; start a; interrupt a; again a; repeat a 1", "a"), given);
    assert_eq!(input("begin; start a; complete a; take b a", "b"), given);
}

#[test]
fn a_loop_that_is_visited_again_is_another_loop() {
    let first = "begin; enter each; complete each@0::a; complete each@1::a; exit each";
    assert_snapshot!(play(&format!("{first}; enter each~1; start each~1@0::a")), @"running each=succeeded/0 each~1@0::a=running/1 loops:1");
    let both =
        format!("{first}; enter each~1; complete each~1@0::a; complete each~1@1::a; exit each~1");
    assert_snapshot!(play(&both), @"running each=succeeded/0 each~1=succeeded/0");
}

#[test]
fn turns_that_are_over_leave() {
    let outer = "begin; enter outer; start outer@0::a; complete outer@0::a";
    assert_snapshot!(play(outer), @"running outer@0::a=succeeded/1 loops:1");
    assert_snapshot!(play(&format!("{outer}; start outer@1::a")), @"running outer@1::a=running/1 loops:1");
    let inner = format!(
        "{outer}; enter outer@0::inner; complete outer@0/inner@0::b; complete outer@0/inner@1::b"
    );
    assert_snapshot!(play(&inner), @"running outer@0::a=succeeded/1 outer@0/inner@1::b=succeeded/1 loops:2");
    assert_snapshot!(play(&format!("{inner}; exit outer@0::inner")), @"running outer@0::a=succeeded/1 outer@0::inner=succeeded/0 loops:1");
    assert_snapshot!(play(&format!("{inner}; exit outer@0::inner; skip outer@1::a")), @"running outer@1::a=skipped/0 loops:1");
    assert_snapshot!(play(&format!("{inner}; exit outer")), @"running outer=succeeded/0");
}

#[test]
fn a_long_loop_keeps_what_came_of_its_turns_and_nothing_else() {
    let turns: Vec<String> =
        (0..2_000).map(|n| format!("; start each@{n}::a; complete each@{n}::a")).collect();
    let run = fold(&format!("begin; enter each{}", turns.concat()));
    assert_eq!(run.steps.len(), 1);
    let results = r#"{"inline":1},"#.len() * 2_000;
    assert!(canonical::to_vec(&run).unwrap().len() < results + 1_000);
}

#[test]
fn a_part_of_a_long_loop_holds_what_came_since() {
    let turn = |n: u32| format!("; start each@{n}::a; complete each@{n}::a");
    let script = |turns: u32| (0..turns).map(turn).collect::<String>();
    let earlier = fold(&format!("begin; enter each{}", script(1_000)));
    let later = fold(&format!("begin; enter each{}", script(1_010)));
    let part = later.since(&earlier.held());
    assert!(canonical::to_vec(&part).unwrap().len() < 1_000, "it does not grow with the loop");
    assert_eq!(part.onto(earlier), later);
}

#[test]
fn a_run_knows_whether_a_step_is_still_to_come() {
    let run = fold("begin; complete a; enter each; complete each@0::b; start each@1::b");
    let before = |step: &str| run.is_before(&step.parse().unwrap());
    let told = ["a", "each@0::b", "each@1::b", "each@1::c", "each@2::b", "d"].map(before);
    assert_eq!(told, [false, false, false, true, true, true]);
    assert!(!fold("begin; enter each; exit each").is_before(&"each@0::b".parse().unwrap()));
}

#[test]
fn whatever_fits_into_an_event_fits_into_a_snapshot() {
    let nested = |depth: usize| (0..depth).fold(json!(null), |inner, _| json!([inner]));
    let output = |depth: usize| {
        let mut event = event(0, "complete a");
        if let EventData::StepCompleted(step) = &mut event.data {
            step.output = Payload::inline(nested(depth));
        }
        event
    };
    let deepest = (1..100).rfind(|depth| output(*depth).encode().is_ok()).unwrap();
    let snapshot = crate::snapshot::RunSnapshot {
        base: None,
        state: RunState::fold(RUN, &[output(deepest)]),
        through: EventIndex(0),
        workflow_hash: crate::digest::WorkflowHash(Digest::of(b"plan")),
    };
    assert!(snapshot.encode().is_ok());
    assert_eq!(output(deepest + 1).encode(), Err(canonical::Error::TooDeep));
}
