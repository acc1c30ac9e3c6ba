//! Runs that somebody else started, and that an agent joins.

use std::time::Duration;

use cairn_core::event::engine::WaitingFor;
use cairn_core::event::{ActorKind, By, Door, Via};
use cairn_core::id::RunId;
use cairn_engine::flow::{Automations, Roles};
use cairn_engine::guided::answer::Answer;
use cairn_engine::guided::ask::{At, Continue, Output, Tokens, Wanted};
use cairn_engine::host::SystemHost;
use cairn_engine::record::{Record, Wanted as Lines};
use serde_json::json;

use crate::world::{World, request};

const TWO: &str = "{ id: look, title: Look around, type: guide, prompt: 'Look at {{ event.payload.thing }}', next: tell }
    { id: tell, type: guide, prompt: Tell it, next: done }
    { id: done, type: end, result: '{{ steps.tell.notes }}' }";

fn back(token: &str) -> Continue {
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

fn done(answer: &Answer, notes: &str) -> Continue {
    let output = Output { notes: Some(notes.to_owned()), artifacts: Vec::new() };
    Continue { output: Some(output), ..back(&answer.tokens.continue_token) }
}

fn step(answer: &Answer) -> &str {
    answer.pending.as_ref().map_or("-", |pending| pending.step_id.as_str())
}

/// A run that nobody holds, as a webhook or a schedule begins it.
async fn begun(engine: &Automations) -> RunId {
    let asked = engine.submit(request("two", json!({"thing": "the door"}))).await.unwrap();
    while engine.waiting_for(WaitingFor::Caller).await.unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    asked.run
}

fn over_mcp() -> By {
    let via = Via { actor: ActorKind::Agent, door: Door::Mcp, line: None, token_id: None };
    By { name: "agent".to_owned(), via: Some(via) }
}

#[tokio::test]
async fn a_run_that_nobody_holds_is_found_joined_and_finished() {
    let world = World::new(&[("two", TWO)]);
    let engine = world.engine();
    assert_eq!(engine.unclaimed().await.unwrap(), 0);
    let run = begun(&engine).await;
    let found = engine.waiting_for_agents(&Roles::Any).await.unwrap();
    let [offer] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((offer.run.run, offer.step.as_str()), (run, "Look around"));
    assert!(offer.prompt.ends_with("Look at ⟦untrusted⟧the door⟦/untrusted⟧"), "{}", offer.prompt);
    assert_eq!(offer.claimant, None);
    assert_eq!(engine.unclaimed().await.unwrap(), 1);

    let first = engine.proceed(back(&offer.continue_token), &Roles::Any).await.unwrap();
    assert_eq!(step(&first), "look");
    let again = engine.proceed(back(&offer.continue_token), &Roles::Any).await.unwrap();
    assert_eq!(again, first, "the same call gets the same answer");
    assert_eq!(engine.unclaimed().await.unwrap(), 0, "it is claimed");
    let second = engine.proceed(done(&first, "Seen."), &Roles::Any).await.unwrap();
    assert_eq!(step(&second), "tell");
    let last = engine.proceed(done(&second, "Told."), &Roles::Any).await.unwrap();
    assert_eq!(last.standing.unwrap().result, Some(json!("Told.")));
    assert!(engine.waiting_for_agents(&Roles::Any).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn one_agent_at_a_time_has_a_run() {
    let world = World::new(&[("two", TWO)]);
    let engine = world.engine();
    let run = begun(&engine).await;
    let tries = (0..8).map(|_| {
        let engine = engine.clone();
        tokio::spawn(async move { engine.join(run, "agent", &Roles::Any).await })
    });
    let (mut joined, mut refused) = (Vec::new(), 0);
    for one in tries.collect::<Vec<_>>() {
        match one.await.unwrap() {
            Ok(answer) => joined.push(answer),
            Err(error) => {
                assert_eq!(error.code(), "RUN_CLAIMED");
                refused += 1;
            }
        }
    }
    assert_eq!((joined.len(), refused), (1, 7));

    // It is freed, and somebody else takes it: the first one's work is not taken any more.
    let had = engine.release(run, "ada").await.unwrap().unwrap();
    assert_eq!(had.by, "agent");
    assert_eq!(engine.release(run, "ada").await.unwrap(), None, "it is free");
    let other = engine.join(run, "agent", &Roles::Any).await.unwrap();
    let late = engine.proceed(done(&joined[0], "Seen."), &Roles::Any).await.unwrap_err();
    assert_eq!(late.code(), "RUN_CLAIMED");
    let late =
        engine.proceed(back(&joined[0].tokens.continue_token), &Roles::Any).await.unwrap_err();
    assert_eq!(late.code(), "RUN_CLAIMED");
    let second = engine.proceed(done(&other, "Seen."), &Roles::Any).await.unwrap();
    assert_eq!(step(&second), "tell");
    assert_eq!(engine.join(run, "agent", &Roles::Any).await.unwrap_err().code(), "RUN_CLAIMED");
}

#[tokio::test]
async fn a_claim_ends_with_its_time_and_late_work_counts_when_nobody_took_over() {
    let mut world = World::new(&[("two", TWO)]);
    world.options.claim_lasts = Duration::ZERO;
    let engine = world.engine();
    let run = begun(&engine).await;
    let first = engine.join(run, "agent", &Roles::Any).await.unwrap();
    let second = engine.join(run, "agent", &Roles::Any).await.unwrap();
    let next = engine.proceed(done(&first, "Seen."), &Roles::Any).await.unwrap();
    assert_eq!(step(&next), "tell", "its time is over, and nobody has it");
    let late = engine.proceed(done(&second, "Seen, too."), &Roles::Any).await.unwrap();
    assert_eq!(late.warnings[0].code.name(), "replayed_with_other_input");
}

#[tokio::test]
async fn whoever_started_a_run_over_mcp_has_it_until_its_time_is_over() {
    let mut world = World::new(&[("two", TWO)]);
    let engine = world.engine();
    let ask =
        cairn_engine::flow::RunRequest { by: over_mcp(), ..request("two", json!({"thing": "it"})) };
    let first = engine.start_held(ask).await.unwrap();
    let run = first.session.unwrap().run;
    let found = engine.waiting_for_agents(&Roles::Any).await.unwrap();
    assert!(found[0].claimant.is_some(), "{found:?}");
    assert_eq!(engine.join(run, "agent", &Roles::Any).await.unwrap_err().code(), "RUN_CLAIMED");
    let second = engine.proceed(done(&first, "Seen."), &Roles::Any).await.unwrap();
    assert_eq!(engine.join(run, "agent", &Roles::Any).await.unwrap_err().code(), "RUN_CLAIMED");
    engine.stop(Duration::from_secs(5)).await;

    world.options.claim_lasts = Duration::ZERO;
    let engine = world.engine();
    let joined = engine.join(run, "agent", &Roles::Any).await.unwrap();
    assert_eq!(step(&joined), "tell");
    let last = engine.proceed(done(&second, "Told."), &Roles::Any).await.unwrap();
    assert!(last.is_complete);
}

#[tokio::test]
async fn a_step_for_an_agent_takes_no_answer_of_a_person() {
    let world = World::new(&[("two", TWO)]);
    let engine = world.engine();
    let run = begun(&engine).await;
    let task = *engine.state(run).await.unwrap().1.tasks.keys().next().unwrap();
    let verdict = cairn_core::flow::Verdict::Approved;
    let answer = cairn_core::flow::Answer { verdict, values: json!({}) };
    let refused = engine.answer(run, task, "ada", answer).await.unwrap_err();
    assert_eq!(refused.code(), "TASK_FOR_AGENT");
    assert!(engine.waiting_for(WaitingFor::Person).await.unwrap().is_empty());
}

#[tokio::test]
async fn joining_takes_the_role_that_starting_does() {
    let source = "name: two
triggers: [{ id: manual, type: manual, require_role: approve }]
graph:
  nodes:
    - { id: look, type: guide, prompt: Look }
";
    let mut world = World::new(&[("two", source)]);
    world.rights = std::sync::Arc::new(crate::rights::Named);
    let engine = world.engine();
    let trigger = Some("manual".parse().unwrap());
    let ask = cairn_engine::flow::RunRequest { trigger, ..request("two", json!({})) };
    let run = engine.submit(ask).await.unwrap().run;
    while engine.waiting_for(WaitingFor::Caller).await.unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    let via = Via {
        actor: ActorKind::Agent,
        door: Door::Mcp,
        line: None,
        token_id: Some("role".to_owned()),
    };
    let by = By { name: "bot".to_owned(), via: Some(via) };
    assert_eq!(engine.join(run, by, &Roles::Any).await.unwrap_err().code(), "AUTH_FORBIDDEN");
    assert_eq!(step(&engine.join(run, "agent", &Roles::Any).await.unwrap()), "look");
}

/// Whoever holds the token of the agent that started a run is not that agent.
#[tokio::test]
async fn the_token_of_a_starter_lends_nobody_the_role() {
    let source = "name: two
triggers: [{ id: manual, type: manual, require_role: approve }]
graph:
  nodes:
    - { id: look, type: guide, prompt: Look }
";
    let mut world = World::new(&[("two", source)]);
    world.rights = std::sync::Arc::new(crate::rights::Named);
    let engine = world.engine();
    let trigger = Some("manual".parse().unwrap());
    let ask =
        cairn_engine::flow::RunRequest { trigger, by: over_mcp(), ..request("two", json!({})) };
    let first = engine.start_held(ask).await.unwrap();
    let by = Some(with_token("role"));
    let alone = back(&first.tokens.continue_token);
    for ask in [Continue { by: by.clone(), ..alone }, Continue { by, ..done(&first, "Seen.") }] {
        let refused = engine.proceed(ask, &Roles::Any).await.unwrap_err();
        assert_eq!(refused.code(), "AUTH_FORBIDDEN", "{refused}");
    }
    assert!(engine.proceed(done(&first, "Seen."), &Roles::Any).await.unwrap().is_complete);
}

fn with_token(id: &str) -> By {
    let via =
        Via { actor: ActorKind::Agent, door: Door::Mcp, line: None, token_id: Some(id.to_owned()) };
    By { name: "bot".to_owned(), via: Some(via) }
}

/// Whoever keeps others from a run is on record, once for each time that they take it over.
#[tokio::test]
async fn taking_a_run_over_is_on_record() {
    let mut world = World::new(&[("two", TWO)]);
    world.rights = std::sync::Arc::new(crate::rights::Named);
    let engine = world.engine();
    let run = begun(&engine).await;
    let claims = async || {
        let record = Record::new(&world.store(), SystemHost::shared());
        let lines = record.read(0, 100, &Lines::default()).await.unwrap().lines;
        let claims = lines.into_iter().filter(|line| line.action == "runs:claim");
        claims.map(|line| (line.run_id, line.token_id)).collect::<Vec<_>>()
    };
    let joined = engine.join(run, with_token("free"), &Roles::Any).await.unwrap();
    let line = (Some(run), Some("free".to_owned()));
    assert_eq!(claims().await, std::slice::from_ref(&line));
    let again = Continue { by: Some(with_token("free")), ..back(&joined.tokens.continue_token) };
    engine.proceed(again, &Roles::Any).await.unwrap();
    assert_eq!(claims().await, std::slice::from_ref(&line), "whoever has it changes nothing");
    assert_eq!(
        engine.join(run, with_token("free"), &Roles::Any).await.unwrap_err().code(),
        "RUN_CLAIMED"
    );
    assert_eq!(claims().await, [line], "and neither does whoever is refused");
}

/// An agent without a token has the roles of its door, and is offered nothing else.
#[tokio::test]
async fn whoever_lacks_the_role_neither_sees_nor_takes_a_run() {
    let source = "name: two
triggers: [{ id: manual, type: manual, require_role: approve }]
graph:
  nodes:
    - { id: look, type: guide, prompt: Look }
";
    let world = World::new(&[("two", source), ("open", TWO)]);
    let engine = world.engine();
    let trigger = Some("manual".parse().unwrap());
    let ask = cairn_engine::flow::RunRequest { trigger, ..request("two", json!({})) };
    let run = engine.submit(ask).await.unwrap().run;
    let open = engine.submit(request("open", json!({"thing": "x"}))).await.unwrap().run;
    while engine.waiting_for(WaitingFor::Caller).await.unwrap().len() < 2 {
        tokio::task::yield_now().await;
    }
    let offered = engine.waiting_for_agents(&Roles::Any).await.unwrap();
    let token = offered.iter().find(|found| found.run.run == run).unwrap().continue_token.clone();
    let at_door = Roles::Of(["read", "run"].map(str::to_owned).into());
    let seen = engine.waiting_for_agents(&at_door).await.unwrap();
    assert_eq!(seen.iter().map(|found| found.run.run).collect::<Vec<_>>(), [open]);
    let stdio = By { name: "agent".to_owned(), ..over_mcp() };
    assert_eq!(
        engine.join(run, stdio.clone(), &at_door).await.unwrap_err().code(),
        "AUTH_FORBIDDEN"
    );
    let ask = Continue { by: Some(stdio.clone()), ..back(&token) };
    assert_eq!(engine.proceed(ask, &at_door).await.unwrap_err().code(), "AUTH_FORBIDDEN");
    let may = Roles::Of(["approve".to_owned()].into());
    assert_eq!(step(&engine.join(run, stdio, &may).await.unwrap()), "look");
}
