//! Steps that are handed to an agent.

use std::sync::atomic::Ordering;
use std::time::Duration;

use cairn_core::event::EventData;
use cairn_core::flow::{Answer as Said, Verdict};
use cairn_core::reason::BlockerCode;
use cairn_engine::Error;
use cairn_engine::flow::{Automations, Roles};
use cairn_engine::guided::answer::{Answer, NextIntent, Standing};
use cairn_engine::guided::ask::{At, Continue, Intent, Output, Tokens, Wanted};
use serde_json::{Value, json};

use crate::world::{World, request};

/// Two steps for an agent, and one for the engine between them.
const RELAY: &str = "{ id: look, type: guide, prompt: 'Look at {{ event.payload.thing }}', next: note }
    { id: note, type: log, message: '{{ steps.look.notes }}', next: judge }
    { id: judge, type: guide, prompt: Judge it, output_contract: { type: object, required: [good], properties: { good: { type: boolean } }, additionalProperties: false }, next: done }
    { id: done, type: end, result: '{{ steps.judge.good }}' }";

/// Two steps for an agent at the same time.
const PAIR: &str = "{ id: split, type: parallel, branches: [one, two] }
    { id: one, type: guide, prompt: First, next: join }
    { id: two, type: guide, prompt: Second, next: join }
    { id: join, type: merge }";

pub(crate) fn back(token: &str) -> Continue {
    Continue {
        at: At::Compact(token.to_owned()),
        intent: None,
        output: None,
        context: None,
        preferences: Wanted::default(),
        tokens: Tokens::Compact,
        by: None,
    }
}

pub(crate) fn done(token: &str, notes: &str, artifacts: Vec<Value>) -> Continue {
    let notes = (!notes.is_empty()).then(|| notes.to_owned());
    Continue { output: Some(Output { notes, artifacts }), ..back(token) }
}

async fn start(engine: &Automations, workflow: &str) -> Answer {
    engine.start_held(request(workflow, json!({"thing": "the door"}))).await.unwrap()
}

pub(crate) fn token(answer: &Answer) -> &str {
    assert!(answer.tokens.continue_token.len() <= 96);
    &answer.tokens.continue_token
}

fn step(answer: &Answer) -> &str {
    answer.pending.as_ref().map_or("-", |pending| pending.step_id.as_str())
}

fn standing(answer: &Answer) -> &Standing {
    answer.standing.as_ref().unwrap()
}

async fn events(engine: &Automations, answer: &Answer) -> Vec<EventData> {
    let past = engine.past(answer.session.unwrap().run).await.unwrap();
    past.events.into_iter().map(|event| event.data).collect()
}

fn answers(events: &[EventData]) -> usize {
    events.iter().filter(|data| matches!(data, EventData::TaskAnswered(_))).count()
}

#[tokio::test]
async fn an_agent_gets_its_steps_one_after_the_other() {
    let world = World::new(&[("relay", RELAY)]);
    let engine = world.engine();
    let first = start(&engine, "relay").await;
    let pending = first.pending.clone().unwrap();
    assert_eq!(pending.step_id, "look");
    let (warning, prompt) = pending.prompt.split_once("\n\n").unwrap();
    assert!(warning.starts_with("Text between ⟦untrusted⟧ and ⟦/untrusted⟧ was sent"), "{warning}");
    let (prompt, asks) = prompt.split_once("\n\n").unwrap();
    assert_eq!(prompt, "Look at ⟦untrusted⟧the door⟦/untrusted⟧");
    assert!(asks.starts_with("Output required: notes in `output.notesMarkdown`"), "{asks}");
    assert_eq!(first.next_intent, NextIntent::PerformPendingThenContinue);
    assert!(first.label.starts_with("relay-"), "{}", first.label);
    assert_eq!((first.tokens.checkpoint_token.as_ref(), first.session.is_some()), (None, true));

    let second =
        engine.proceed(done(token(&first), "It is red.", vec![]), &Roles::Any).await.unwrap();
    assert_eq!(step(&second), "judge");
    let prompt = second.pending.as_ref().unwrap().prompt.as_str();
    assert!(prompt.starts_with("Judge it\n\nOutput required: one artifact"), "{prompt}");
    assert!(prompt.contains(r#"{"good":"<boolean>","kind":"judge"}"#), "{prompt}");

    let good = vec![json!({"kind": "judge", "good": true})];
    let last = engine.proceed(done(token(&second), "", good), &Roles::Any).await.unwrap();
    assert_eq!((step(&last), last.is_complete), ("-", true));
    assert_eq!(last.next_intent, NextIntent::Complete);
    assert_eq!(
        (standing(&last).status, &standing(&last).result),
        ("succeeded", &Some(json!(true)))
    );
    let again = engine.proceed(back(token(&last)), &Roles::Any).await.unwrap();
    assert_eq!((again.is_complete, &again.standing), (true, &last.standing));
    let recap = again.recap.unwrap().text;
    assert_eq!(
        recap,
        "- `look` is done: It is red.\n- `note` is done\n- `judge` is done\n- `done` is done"
    );
}

#[tokio::test]
async fn what_is_not_as_asked_for_blocks_and_writes_nothing() {
    let world = World::new(&[("relay", RELAY)]);
    let engine = world.engine();
    let first = start(&engine, "relay").await;
    let before = events(&engine, &first).await;
    let blocked = engine.proceed(done(token(&first), " ", vec![]), &Roles::Any).await.unwrap();
    assert_eq!(blocked.blockers[0].code, BlockerCode::MissingRequiredOutput);
    assert_eq!(blocked.retry_continue_token.as_deref(), Some(token(&blocked)));
    assert_ne!(token(&blocked), token(&first));
    assert_eq!(step(&blocked), "look");
    let shown = engine.proceed(back(token(&first)), &Roles::Any).await.unwrap();
    assert_eq!((step(&shown), &shown.recap), ("look", &None));
    assert_eq!(events(&engine, &first).await, before, "nothing was written");

    let second = engine.proceed(done(token(&blocked), "Red.", vec![]), &Roles::Any).await.unwrap();
    let bad = vec![json!({"good": "yes", "x": 1})];
    let bad = done(token(&second), "", bad);
    let blocked = engine.proceed(bad.clone(), &Roles::Any).await.unwrap();
    assert_eq!(blocked.blockers[0].code, BlockerCode::InvalidRequiredOutput);
    let message = blocked.blockers[0].message.as_str();
    assert!(
        message.contains("`good` must be true or false") && message.contains("`x`"),
        "{message}"
    );
    assert_eq!(
        engine.proceed(bad.clone(), &Roles::Any).await.unwrap(),
        blocked,
        "blocked is blocked, as long as the step waits"
    );
    let good = vec![json!({"good": false})];
    let last = engine.proceed(done(token(&blocked), "", good), &Roles::Any).await.unwrap();
    assert!(last.is_complete);
    let late = engine.proceed(bad, &Roles::Any).await.unwrap();
    assert_eq!(late.blockers, [], "a step that is done waits for nothing");
    assert_eq!(late.warnings[0].code.name(), "replayed_with_other_input");
    assert!(late.warnings[0].message.contains("and the run is over"), "{late:?}");
}

// case: token.other-output
#[tokio::test(flavor = "multi_thread")]
async fn the_same_acknowledgement_counts_once_and_gets_the_same_answer() {
    let world = World::new(&[("relay", RELAY), ("pair", PAIR)]);
    for workflow in ["relay", "pair"] {
        let engine = world.engine();
        let first = start(&engine, workflow).await;
        let call = done(token(&first), "Done.", vec![]);
        let calls = (0..16).map(|_| {
            let (engine, call) = (engine.clone(), call.clone());
            tokio::spawn(async move { engine.proceed(call, &Roles::Any).await.unwrap() })
        });
        let calls: Vec<_> = calls.collect();
        let mut all = Vec::new();
        for call in calls {
            all.push(call.await.unwrap());
        }
        for answer in &all {
            assert_eq!(answer, &all[0], "{workflow}");
        }
        assert_eq!(answers(&events(&engine, &first).await), 1);
        let artifact = vec![json!({"good": true})];
        engine.proceed(done(token(&all[0]), "", artifact), &Roles::Any).await.unwrap();
        assert_eq!(
            engine.proceed(call.clone(), &Roles::Any).await.unwrap(),
            all[0],
            "also when it went on"
        );
        engine.stop(Duration::from_secs(5)).await;
        assert_eq!(
            world.engine().proceed(call.clone(), &Roles::Any).await.unwrap(),
            all[0],
            "and elsewhere"
        );
        let other = done(token(&first), "Something else.", vec![]);
        let warned = world.engine().proceed(other, &Roles::Any).await.unwrap();
        assert_eq!(warned.warnings[0].code.name(), "replayed_with_other_input");
        assert_eq!(step(&warned), step(&first), "the step that was sent to is shown again");
        // The call that the answer shows makes a run of its own, and the branch is the old one.
        let engine = world.engine();
        let again = done(token(&warned), "Something else.", vec![]);
        let forked = engine.proceed(again, &Roles::Any).await.unwrap();
        assert_ne!(forked.session.unwrap().run, first.session.unwrap().run);
        let old = engine.proceed(back(&warned.branches[0].continue_token), &Roles::Any).await;
        assert!(old.unwrap().is_complete);
    }
}

#[tokio::test]
async fn steps_that_wait_together_are_handed_out_one_by_one() {
    let world = World::new(&[("pair", PAIR)]);
    let engine = world.engine();
    let first = start(&engine, "pair").await;
    assert_eq!((step(&first), standing(&first).more), ("one", 1));
    let second = engine.proceed(done(token(&first), "A", vec![]), &Roles::Any).await.unwrap();
    assert_eq!((step(&second), standing(&second).more), ("two", 0));
    let last = engine.proceed(done(token(&second), "B", vec![]), &Roles::Any).await.unwrap();
    let both = json!({"one": {"notes": "A"}, "two": {"notes": "B"}});
    assert_eq!(standing(&last).result, Some(both));
    // The other one is reused, so nothing waits beside the one that is done again.
    let rewound = engine.proceed(back(token(&first)), &Roles::Any).await.unwrap();
    assert_eq!((step(&rewound), standing(&rewound).more), ("one", 0));
    assert!(rewound.warnings[0].message.contains("`two`; and repeats: `one`"), "{rewound:?}");
    let end = engine.proceed(done(token(&rewound), "C", vec![]), &Roles::Any).await.unwrap();
    let both = json!({"one": {"notes": "C"}, "two": {"notes": "B"}});
    assert_eq!(standing(&end).result, Some(both));
    assert!(end.warnings[0].message.contains("`two`. Everything else"), "{end:?}");
}

#[tokio::test]
async fn an_agent_that_waits_long_is_told_how_it_goes() {
    let nodes = "{ id: a, type: log, message: hold, next: g }
        { id: g, type: guide, prompt: Look }";
    let mut world = World::new(&[("slow", nodes)]);
    world.options.hand_patience = Duration::from_millis(50);
    world.done.holds.store(true, Ordering::SeqCst);
    let engine = world.engine();
    let first = start(&engine, "slow").await;
    assert_eq!((step(&first), first.is_complete), ("-", false));
    assert_eq!(first.next_intent, NextIntent::RehydrateOnly);
    assert_eq!(
        (standing(&first).status, &standing(&first).doing),
        ("running", &vec!["a".to_owned()])
    );
    let refused =
        engine.proceed(done(token(&first), "Done.", vec![]), &Roles::Any).await.unwrap_err();
    assert_eq!(refused.code(), "VALIDATION_ERROR");
    assert!(refused.fix().unwrap().contains("alone"), "{refused:?}");
    world.done.go.notify_one();
    let mut answer = engine.proceed(back(token(&first)), &Roles::Any).await.unwrap();
    while answer.pending.is_none() {
        answer = engine.proceed(back(token(&first)), &Roles::Any).await.unwrap();
    }
    assert_eq!(step(&answer), "g");
}

#[tokio::test]
async fn a_question_to_a_person_is_told_and_not_handed_out() {
    let nodes = "{ id: ask, type: human, prompt: 'Really?', who: [ada], cases: { approved: g, default: no } }
        { id: g, type: guide, prompt: Do it }
        { id: no, type: end, result: no }";
    let world = World::new(&[("gate", nodes)]);
    let engine = world.engine();
    let first = start(&engine, "gate").await;
    assert_eq!((step(&first), first.next_intent), ("-", NextIntent::RehydrateOnly));
    let asked = &standing(&first).asks[0];
    assert_eq!((asked.step.as_str(), asked.prompt.as_str()), ("ask", "Really?"));
    assert_eq!(asked.who, ["ada"]);
    let run = first.session.unwrap().run;
    let yes = Said { verdict: Verdict::Approved, values: json!({}) };
    let denied = engine.answer(run, asked.task, "agent", yes.clone()).await.unwrap_err();
    assert_eq!(denied.code(), "TASK_FORBIDDEN");
    engine.answer(run, asked.task, "ada", yes).await.unwrap();
    assert_eq!(step(&engine.proceed(back(token(&first)), &Roles::Any).await.unwrap()), "g");
}

#[tokio::test]
async fn what_was_left_in_the_middle_goes_on_when_the_agent_comes_back() {
    let nodes = "{ id: g, type: guide, prompt: Look, next: a }
        { id: a, type: log, message: hold, next: h }
        { id: h, type: guide, prompt: Look again }";
    let mut world = World::new(&[("left", nodes)]);
    world.options.hand_patience = Duration::from_millis(20);
    world.done.holds.store(true, Ordering::SeqCst);
    let engine = world.engine();
    let first = start(&engine, "left").await;
    engine.stop(Duration::from_secs(5)).await;

    let engine = world.engine();
    let call = done(token(&first), "Seen.", vec![]);
    let busy = engine.proceed(call.clone(), &Roles::Any).await.unwrap();
    assert_eq!((step(&busy), standing(&busy).status), ("-", "running"));
    world.done.held.notified().await;
    engine.stop(Duration::from_secs(5)).await;

    world.done.holds.store(false, Ordering::SeqCst);
    world.options.hand_patience = Duration::from_secs(20);
    let engine = world.engine();
    let second = engine.proceed(back(token(&busy)), &Roles::Any).await.unwrap();
    assert_eq!(step(&second), "h");
    assert_eq!(world.tries(), [2], "what was cut off is done again, under its key");
    let replayed = engine.proceed(call, &Roles::Any).await.unwrap();
    assert_eq!((step(&replayed), token(&replayed)), ("h", token(&second)));
    assert_eq!(answers(&events(&engine, &first).await), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_is_done_through_another_process_than_the_one_that_performs_the_run() {
    let world = World::new(&[("relay", RELAY)]);
    let (owner, other) = (world.engine(), world.engine());
    let first = start(&owner, "relay").await;
    let run = first.session.unwrap().run;
    let shown = other.proceed(back(token(&first)), &Roles::Any).await.unwrap();
    assert_eq!(step(&shown), "look");
    assert!(!other.is_here(run).await.unwrap(), "looking takes nothing over");
    let call = done(token(&first), "Red.", vec![]);
    let (one, two) =
        tokio::join!(owner.proceed(call.clone(), &Roles::Any), other.proceed(call, &Roles::Any));
    assert_eq!(one.unwrap(), two.as_ref().unwrap().clone());
    let second = two.unwrap();
    assert_eq!(step(&second), "judge");
    let bad = other.proceed(done(token(&second), "", vec![json!({})]), &Roles::Any).await.unwrap();
    assert_eq!(bad.blockers.len(), 1);
    let good = vec![json!({"good": true})];
    let last = other.proceed(done(token(&bad), "", good), &Roles::Any).await.unwrap();
    assert_eq!(standing(&last).result, Some(json!(true)));
    assert!(owner.is_here(run).await.unwrap() && !other.is_here(run).await.unwrap());
}

#[tokio::test]
async fn a_run_that_failed_takes_no_step() {
    let nodes = "{ id: split, type: parallel, branches: [g, a] }
        { id: g, type: guide, prompt: Look, next: join }
        { id: a, type: log, message: hold, next: b }
        { id: b, type: log, message: fail, next: join }
        { id: join, type: merge }";
    let world = World::new(&[("sad", nodes)]);
    world.done.holds.store(true, Ordering::SeqCst);
    let engine = world.engine();
    let first = start(&engine, "sad").await;
    assert_eq!(step(&first), "g");
    world.done.held.notified().await;
    world.done.go.notify_one();
    engine.ended(first.session.unwrap().run).await.unwrap();
    let late = engine.proceed(done(token(&first), "Seen.", vec![]), &Roles::Any).await.unwrap_err();
    assert_eq!(late.code(), "RUN_COMPLETE");
    let shown = engine.proceed(back(token(&first)), &Roles::Any).await.unwrap();
    assert_eq!((shown.is_complete, standing(&shown).status), (true, "failed"));
    let error = standing(&shown).error.as_ref().unwrap();
    assert_eq!((error.code.as_str(), error.step.as_deref()), ("TEST_FAILED", Some("b")));
}

#[tokio::test]
async fn a_step_that_is_done_is_done_another_way_in_a_new_run() {
    let world = World::new(&[("relay", RELAY)]);
    let engine = world.engine();
    let first = start(&engine, "relay").await;
    let second = engine.proceed(done(token(&first), "Red.", vec![]), &Roles::Any).await.unwrap();
    let before = events(&engine, &first).await;
    let rewound = engine.proceed(back(token(&first)), &Roles::Any).await.unwrap();
    assert_eq!(step(&rewound), "look");
    let [branch] = rewound.branches.as_slice() else { panic!("{rewound:#?}") };
    assert_eq!(branch.summary, "- `look` is done: Red.\n- `note` is done");
    let there = engine.proceed(back(&branch.continue_token), &Roles::Any).await.unwrap();
    assert_eq!(token(&there), token(&second), "the branch leads to where the run stands");
    let warning = &rewound.warnings[0];
    assert_eq!(warning.code.name(), "fork_repeats");
    assert!(
        warning.message.ends_with(
            "which reuses: nothing; and repeats: `look`, `note` (its effects may happen twice), `judge`"
        ),
        "{}",
        warning.message
    );
    assert_eq!(events(&engine, &first).await, before, "looking back changes nothing");

    let blocked = engine.proceed(done(token(&rewound), "", vec![]), &Roles::Any).await.unwrap();
    assert_eq!((step(&blocked), blocked.blockers.len()), ("look", 1));
    let call = done(token(&blocked), "Blue.", vec![]);
    let forked = engine.proceed(call.clone(), &Roles::Any).await.unwrap();
    assert_eq!((step(&forked), forked.warnings[0].code.name()), ("judge", "forked"));
    let new = forked.session.unwrap().run;
    let told = &forked.warnings[0].message;
    assert!(told.contains(&new.to_string()) && told.contains("reuses: nothing"), "{told}");
    assert_ne!(new, first.session.unwrap().run);
    assert_ne!(forked.label, first.label);
    assert_eq!(events(&engine, &first).await, before, "the earlier run stays as it is");
    assert_eq!(engine.proceed(call, &Roles::Any).await.unwrap(), forked, "a fork is made once");
    let other = engine.proceed(back(token(&first)), &Roles::Any).await.unwrap();
    let [_, fork] = other.branches.as_slice() else { panic!("{:#?}", other.branches) };
    assert!(fork.summary.contains("`look` is done: Blue."), "the fork is told of: {fork:?}");
    let there = engine.proceed(back(&fork.continue_token), &Roles::Any).await;
    assert!(there.is_err() || step(&there.unwrap()) == "judge");
    let other = engine.proceed(done(token(&other), "Green.", vec![]), &Roles::Any).await.unwrap();
    assert!(![new, first.session.unwrap().run].contains(&other.session.unwrap().run));
    let good = vec![json!({"good": true})];
    let last = engine.proceed(done(token(&forked), "", good.clone()), &Roles::Any).await.unwrap();
    assert_eq!(standing(&last).result, Some(json!(true)));
    let last = engine.proceed(done(token(&second), "", good), &Roles::Any).await.unwrap();
    assert!(last.is_complete, "and so does the first");
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_and_writes_nothing() {
    let world = World::new(&[("relay", RELAY)]);
    let engine = world.engine();
    let first = start(&engine, "relay").await;
    let before = events(&engine, &first).await;
    let good = token(&first).to_owned();
    let (label, body) = good.split_once('.').unwrap();
    let fine = done(&good, "Seen.", vec![]);
    let refused = |ask: Continue| {
        let engine = engine.clone();
        async move {
            engine.proceed(ask, &Roles::Any).await.map_err(|error: Error| error.code()).unwrap_err()
        }
    };
    assert_eq!(refused(back(&format!("{good}x"))).await, "TOKEN_INVALID_FORMAT");
    assert_eq!(refused(back(&format!("other.{body}"))).await, "TOKEN_BAD_SIGNATURE");
    assert_eq!(refused(back(label)).await, "TOKEN_INVALID_FORMAT");
    let context = Some(json!({"x": 1}));
    assert_eq!(refused(Continue { context, ..fine.clone() }).await, "VALIDATION_ERROR");
    let autonomy = Some(cairn_core::event::guided::Autonomy::Guided);
    let preferences = Wanted { autonomy, risk_policy: None };
    assert_eq!(refused(Continue { preferences, ..fine.clone() }).await, "VALIDATION_ERROR");
    let intent = Some(Intent::Rehydrate);
    assert_eq!(refused(Continue { intent, ..fine.clone() }).await, "VALIDATION_ERROR");
    let large = vec![json!({"text": "x".repeat(300 << 10)})];
    assert_eq!(refused(done(&good, "", large)).await, "VALIDATION_ERROR");
    assert_eq!(events(&engine, &first).await, before);
    assert!(engine.gave_out(&good).await.unwrap());
    assert!(!engine.gave_out(&format!("other.{body}")).await.unwrap());

    let elsewhere = World::new(&[("relay", RELAY)]);
    let keys = world.home.path().join("data/keys");
    let other = elsewhere.engine();
    start(&other, "relay").await;
    assert_eq!(
        other.proceed(back(&good), &Roles::Any).await.unwrap_err().code(),
        "TOKEN_BAD_SIGNATURE"
    );
    let theirs = elsewhere.home.path().join("data/keys");
    for file in std::fs::read_dir(keys).unwrap().flatten() {
        std::fs::copy(file.path(), theirs.join(file.file_name())).unwrap();
    }
    let other = elsewhere.engine();
    assert_eq!(
        other.proceed(back(&good), &Roles::Any).await.unwrap_err().code(),
        "TOKEN_UNKNOWN_NODE"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_begun_by_whoever_performs_its_workflow() {
    let world = World::new(&[("relay", RELAY)]);
    let (owner, other) = (world.engine(), world.engine());
    let before = start(&owner, "relay").await;
    let first = start(&other, "relay").await;
    assert_eq!(step(&first), "look");
    assert_eq!(first.session.unwrap().session, before.session.unwrap().session);
    let run = first.session.unwrap().run;
    assert!(owner.is_here(run).await.unwrap() && !other.is_here(run).await.unwrap());
    owner.stop(Duration::from_secs(5)).await;
    let second = other.proceed(done(token(&first), "Red.", vec![]), &Roles::Any).await.unwrap();
    assert_eq!(step(&second), "judge");
    assert!(other.is_here(run).await.unwrap(), "what nobody performs is taken over");
    let third = start(&other, "relay").await;
    assert!(other.is_here(third.session.unwrap().run).await.unwrap());
}

/// A new run of a step behind an approval asks the person again, and says so.
// case: approval.fork
#[tokio::test]
async fn going_another_way_behind_an_approval_waits_for_a_new_one() {
    let nodes =
        "{ id: ask, type: human, prompt: May it?, cases: { approved: polish, rejected: end } }
        { id: polish, type: guide, prompt: Polish it, next: out }
        { id: out, type: end, result: '{{ steps.polish.notes }}' }";
    let world = World::new(&[("pub", nodes)]);
    let engine = world.engine();
    let first = start(&engine, "pub").await;
    let run = first.session.unwrap().run;
    let approve = async |run| {
        let task = *engine.state(run).await.unwrap().1.tasks.keys().next().unwrap();
        let answer = Said { verdict: Verdict::Approved, values: Value::Null };
        engine.answer(run, task, "ada", answer).await.unwrap();
    };
    approve(run).await;
    let polish = engine.proceed(back(token(&first)), &Roles::Any).await.unwrap();
    assert_eq!(step(&polish), "polish");
    engine.proceed(done(token(&polish), "Good.", vec![]), &Roles::Any).await.unwrap();
    let rewound = engine.proceed(back(token(&polish)), &Roles::Any).await.unwrap();
    let call = done(token(&rewound), "Better.", vec![]);
    let waits = engine.proceed(call.clone(), &Roles::Any).await.unwrap();
    let fork = waits.session.unwrap().run;
    assert_ne!(fork, run);
    let warning = &waits.warnings.last().unwrap().message;
    assert!(warning.starts_with("not recorded: the output."), "{warning}");
    assert_eq!(engine.state(fork).await.unwrap().1.tasks.len(), 1, "the person is asked");
    approve(fork).await;
    // The same call is for the same run, and counts as soon as it can.
    engine.proceed(call, &Roles::Any).await.unwrap();
    let ended = engine.ended(fork).await.unwrap();
    assert_eq!(ended.result, json!("Better."));
}

/// The law of input, for steps of automations: what a call sends is recorded, refused, or named in
/// a warning as not recorded.
#[tokio::test]
async fn what_a_call_sends_is_recorded_refused_or_named() {
    const MARK: &str = "marked-by-this-call";
    let closed = "output_contract: { type: object, properties: { good: { type: boolean } }, additionalProperties: false }, ";
    let open = "output_contract: { type: object, properties: { good: { type: boolean } } }, ";
    let artifact = json!({"kind": "g", "name": MARK});
    let good = json!({"kind": "g", "good": true});
    // The step's contract, what is sent, and what becomes of it.
    let table = [
        ("", MARK, vec![], "recorded"),
        ("", "", vec![artifact.clone()], "recorded"),
        ("", "Seen.", vec![artifact.clone()], "recorded"),
        ("", "Seen.", vec![artifact.clone(), artifact.clone()], "recorded"),
        (open, MARK, vec![good.clone()], "recorded"),
        (open, "", vec![artifact.clone()], "recorded"),
        (closed, MARK, vec![good], "named"),
        (closed, "", vec![artifact.clone()], "refused"),
        (closed, MARK, vec![], "refused"),
        ("done", MARK, vec![], "named"),
        ("done", "Seen.", vec![artifact], "named"),
    ];
    for (row, (contract, notes, artifacts, wanted)) in table.into_iter().enumerate() {
        let is_done = contract == "done";
        let contract = if is_done { "" } else { contract };
        let nodes = format!(
            "{{ id: g, type: guide, prompt: Look, {contract}next: end }}
            {{ id: end, type: end, result: fine }}"
        );
        let world = World::new(&[("law", &nodes)]);
        let engine = world.engine();
        let first = start(&engine, "law").await;
        if is_done {
            let before = done(token(&first), "Before.", vec![]);
            engine.proceed(before, &Roles::Any).await.unwrap();
        }
        let told = engine.proceed(done(token(&first), notes, artifacts), &Roles::Any).await;
        let told = told.unwrap();
        let recorded = events(&engine, &first).await.iter().any(|data| match data {
            EventData::TaskAnswered(task) => format!("{:?}", task.answer).contains(MARK),
            _ => false,
        });
        let named = told.warnings.iter().any(|warning| warning.message.contains("not recorded: "));
        let fate = match (told.blockers.is_empty(), recorded, named) {
            (true, true, false) => "recorded",
            (true, false, true) => "named",
            (false, false, false) => "refused",
            other => panic!("{row}: {other:?} {told:?}"),
        };
        assert_eq!(fate, wanted, "{row}: {told:?}");
    }
}

/// What later steps read of a step, the step asks for.
#[tokio::test]
async fn an_output_that_lacks_what_later_steps_read_blocks() {
    // What `end` reads, what is sent, and what is told.
    let table = [
        ("{{ steps.g.notes }}", "", json!([{"x": 1}]), "`notes`, which `end` reads"),
        ("{{ steps.g.notes }}", "Seen.", json!([{"x": 1}]), ""),
        ("{{ steps.g.score }}", "Seen.", json!([]), "`score`, which `end` reads"),
        ("{{ steps.g.score }}", "", json!([{"score": 1}]), ""),
        ("{{ steps.g.score | default(0) }}", "Seen.", json!([]), ""),
        ("{{ steps.g.artifacts | length }}", "", json!([{"score": 1}]), ""),
        ("fine", "", json!([{"score": 1}]), ""),
    ];
    for (reads, notes, artifacts, wanted) in table {
        let nodes = format!(
            "{{ id: g, type: guide, prompt: Look, next: end }}
            {{ id: end, type: end, result: '{reads}' }}"
        );
        let world = World::new(&[("reads", &nodes)]);
        let engine = world.engine();
        let first = start(&engine, "reads").await;
        let artifacts = artifacts.as_array().unwrap().clone();
        let told =
            engine.proceed(done(token(&first), notes, artifacts), &Roles::Any).await.unwrap();
        match wanted {
            "" => assert_eq!(standing(&told).status, "succeeded", "{reads}: {told:?}"),
            wanted => {
                let message = &told.blockers[0].message;
                assert!(message.contains(wanted), "{reads}: {message}");
            }
        }
    }
}
