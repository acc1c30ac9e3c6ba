//! Steps that wait: for a time, a person, an agent, another run.

use cairn_core::event::engine::EndStatus;
use cairn_core::flow::{Answer, Command, Effect, Rejection, Verdict};
use cairn_core::id::{SessionId, TaskId};
use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::play::{Play, graph, unsound};

const ASK: &str = "
    { id: ask, type: human, prompt: Go?, who: [ada], expires_sec: 60, on_expire: reject, form: { type: object, required: [why], properties: { why: { type: string } } }, cases: { approved: yes-step, rejected: end } }
    { id: yes-step, type: log, message: '{{ steps.ask.by }}' }
";

fn task(play: &Play) -> TaskId {
    let found = play.owed.iter().find_map(|effect| match effect {
        Effect::Task(task) => Some(*task),
        _ => None,
    });
    found.unwrap()
}

fn answered(verdict: Verdict, values: Value, by: &str, task: TaskId) -> Command {
    Command::Answer { task, by: by.into(), answer: Answer { verdict, values } }
}

#[test]
fn a_person_answers_and_the_run_goes_on() {
    let mut play = Play::new(graph(ASK), json!({}));
    play.start();
    let task = task(&play);
    play.owed.clear();
    let given = json!({"why": "it is time"});
    let by_other = answered(Verdict::Approved, given.clone(), "bob", task);
    assert_eq!(play.tell(by_other), Err(Rejection::NotAsked(vec!["ada".into()])));
    let empty = answered(Verdict::Approved, json!({}), "ada", task);
    assert!(matches!(play.tell(empty), Err(Rejection::Unfit(_))));
    play.crash();
    play.owed.clear();
    play.tell(answered(Verdict::Approved, given.clone(), "ada", task)).unwrap();
    assert_snapshot!(play.play(), @r#"
    run started
    task opened
    waits ask Person
    timer TaskTimeout 61000
    task answered
    timer cancelled
    done ask [approved] {"answer":{"why":"it is time"},"at":"1970-01-01T00:00:01.000Z","by":"ada","verdict":"approved"}
    start yes-step 0
    done yes-step {"message":"ada"}
    run completed {"message":"ada"}
    "#);
    assert_eq!(play.tell(answered(Verdict::Approved, given, "ada", task)), Err(Rejection::Ended));
}

#[test]
fn nobody_answers_in_time() {
    let told = Play::new(graph(ASK), json!({})).start().play();
    assert!(told.contains("done ask [rejected]"), "{told}");
    let fails = ASK.replace("on_expire: reject", "on_expire: fail");
    let told = Play::new(graph(&fails), json!({})).start().play();
    assert!(told.ends_with("run failed TASK_EXPIRED at ask"), "{told}");
}

#[test]
fn a_question_whose_people_cannot_be_read_is_for_nobody() {
    for who in [json!("{{ event.payload.who }}"), json!([]), json!("bob"), json!([1])] {
        let mut play = Play::new(unsound(ASK, "ask", "who", &who), json!({"who": "bob"}));
        let told = play.start().play();
        assert!(told.ends_with("run failed TASK_WHO at ask"), "{who}: {told}");
    }
}

#[test]
fn an_answer_that_comes_too_late_is_refused() {
    let nodes = "
        { id: ask, type: human, prompt: Go?, expires_sec: 60, on_expire: fail, on_failure: skip, cases: { default: b } }
        { id: b, type: log, message: b, next: c }
        { id: c, type: log, message: c }
    ";
    let mut play = Play::new(graph(nodes), json!({}));
    play.start();
    let task = task(&play);
    play.step();
    assert!(play.told().ends_with("failed ask 0 TASK_EXPIRED then Skip\nstart b 0"));
    assert!(play.run.state.tasks.is_empty(), "the question is not open any more");
    let late = answered(Verdict::Approved, json!({}), "ada", task);
    assert_eq!(play.tell(late), Err(Rejection::NoTask(task)));
    assert!(play.play().ends_with("run completed {\"message\":\"c\"}"), "{}", play.told());
}

#[test]
fn a_person_does_not_answer_for_an_agent() {
    let nodes = "{ id: g, type: guide, prompt: Look around, output_contract: { type: object, required: [seen] } }";
    let mut play = Play::new(graph(nodes), json!({}));
    play.start();
    let task = task(&play);
    let answer = answered(Verdict::Approved, json!({}), "ada", task);
    assert_eq!(play.tell(answer), Err(Rejection::ForAgent("g".parse().unwrap())));
}

#[test]
fn a_wait_ends_at_its_time_also_after_a_crash() {
    let nodes = "{ id: w, type: wait, until: '2026-01-01T00:00:00Z' }";
    let mut play = Play::new(graph(nodes), json!({}));
    play.start().crash();
    assert_snapshot!(play.play(), @r#"
    run started
    waits w Timer
    timer Wait 1767225600000
    timer fired
    done w {"until":"2026-01-01T00:00:00.000Z"}
    run completed {"until":"2026-01-01T00:00:00.000Z"}
    "#);
}

#[test]
fn an_agent_does_a_step_that_is_handed_to_it() {
    let nodes = "{ id: g, type: guide, prompt: Look around, output_contract: { type: object, required: [seen] } }";
    let mut play = Play::new(graph(nodes), json!({}));
    play.start();
    let tell = |output| {
        let (instance, by) = ("g".parse().unwrap(), "agent".into());
        Command::Acknowledge { instance, by, output }
    };
    assert!(matches!(play.tell(tell(json!({}))), Err(Rejection::Unfit(_))));
    play.tell(tell(json!({"seen": 3}))).unwrap();
    assert!(play.play().ends_with("run completed {\"seen\":3}"), "{}", play.told());
}

#[test]
fn a_child_that_is_known_is_not_recorded_again_after_a_crash() {
    let nodes = "{ id: c, type: workflow, workflow: project.other }";
    let mut play = Play::new(graph(nodes), json!({}));
    play.start();
    for _ in 0..2 {
        let Some(Effect::Child { instance, child, .. }) = play.owed.pop_front() else {
            panic!("{:?}", play.owed)
        };
        let session = SessionId::from_bits(3);
        play.tell(Command::ChildStarted { child, session, instance }).unwrap();
        play.crash();
    }
    assert_eq!(play.told().matches("child started").count(), 1, "{}", play.told());
}

#[test]
fn a_run_waits_for_its_child() {
    let nodes =
        "{ id: c, type: workflow, workflow: project.other, input: { n: '{{ event.payload.n }}' } }";
    for status in [EndStatus::Succeeded, EndStatus::Failed] {
        let mut play = Play::new(graph(nodes), json!({"n": 4}));
        play.start();
        let owed = play.owed.clone();
        play.crash();
        assert_eq!(play.owed, owed, "a child that may not be there is asked for again");
        let Some(Effect::Child { instance, child, workflow, input }) = play.owed.pop_front() else {
            panic!("{:?}", play.owed)
        };
        assert_eq!((workflow.as_str(), input), ("project.other", json!({"n": 4})));
        let session = SessionId::from_bits(3);
        play.tell(Command::ChildStarted { child, session, instance }).unwrap();
        let output = json!({"message": "so it went"});
        play.tell(Command::ChildFinished { child, status, output }).unwrap();
        let end = match status {
            EndStatus::Succeeded => "run completed {\"result\":{\"message\":\"so it went\"},",
            _ => "run failed CHILD_FAILED at c",
        };
        assert!(play.play().lines().last().unwrap().starts_with(end), "{}", play.told());
    }
}
