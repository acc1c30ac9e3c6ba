//! Steps that the engine performs: however many and however large, the run goes on.

use std::sync::Arc;

use async_trait::async_trait;
use cairn_core::catalog::{Class, StepType};
use cairn_core::event::EventData;
use cairn_core::id::EventIndex;
use cairn_engine::guided::Guide;
use cairn_engine::guided::answer::Answer;
use cairn_engine::guided::ask::Start;
use cairn_engine::performer::{Ctx, Failed, Outcome, Performer, Performers};
use serde_json::{Value, json};

use crate::world::{NOTES, World, ack, prompt, step};

/// A step type that takes and gives anything.
pub(crate) fn kind(name: &str) -> StepType {
    StepType::new(name, Class::Effectful, json!({}), json!({}))
}

/// Gives what it is told to.
struct Giver(Value);

#[async_trait]
impl Performer for Giver {
    fn kind(&self) -> StepType {
        kind("log")
    }

    async fn perform(&self, _: Value, _: &Ctx) -> Result<Outcome, Failed> {
        let notes = format!("a line. {}", "More of it. ".repeat(20));
        Ok(Outcome::new(self.0.clone(), notes))
    }
}

fn giving(output: Value) -> Performers {
    Performers::new(vec![Arc::new(Giver(output))])
}

/// So many turns of the engine between two steps of the agent.
fn turning(turns: usize) -> String {
    format!(
        "
id: project.turning
name: Turning
description: The engine goes round.
version: 1.0.0
steps:
  - {{id: begin, title: Begin, prompt: Begin.}}
  - id: outer
    type: loop
    title: Outer
    loop: {{type: for, count: {turns}, maxIterations: {turns}}}
    body:
      - {{id: tell, title: Tell, run: {{type: log, message: Hello., saveAs: told}}}}
  - {{id: end, title: End, prompt: 'End {{{{told.error}}}}.'}}
"
    )
}

async fn begin(guide: &Guide) -> Answer {
    guide.start(Start { workflow: "turning".into(), ..Start::default() }).await.unwrap()
}

#[tokio::test]
async fn what_cannot_be_kept_is_told_and_stops_nothing() {
    for output in [
        json!("x".repeat(300 << 10)),
        json!(u64::MAX),
        (0..50).fold(json!(1), |inner, _| json!([inner])),
    ] {
        let world = World::of(&turning(1));
        let guide = world.performing(&world.store, giving(output));
        let first = begin(&guide).await;
        let call = ack(&first.tokens.continue_token, NOTES, Vec::new());
        let end = guide.proceed(call.clone()).await.unwrap();
        assert_eq!(step(&end), "end");
        assert!(prompt(&end).contains("What came out was not kept"), "{}", prompt(&end));
        assert!(!prompt(&end).contains("[unset"), "conditions can look at the fault");
        assert_eq!(guide.proceed(call).await.unwrap(), end);
    }
}

#[tokio::test]
async fn many_outcomes_leave_room_for_the_prompt() {
    let world = World::of(&turning(100));
    let guide = world.performing(&world.store, giving(json!({"error": "none"})));
    let first = begin(&guide).await;
    let end = guide.proceed(ack(&first.tokens.continue_token, NOTES, Vec::new())).await.unwrap();
    assert_eq!(step(&end), "end");
    assert!(prompt(&end).len() < 16 << 10, "{} bytes", prompt(&end).len());
    assert!(prompt(&end).starts_with("[TRUNCATED] earlier outcomes"), "{}", prompt(&end));
    assert!(prompt(&end).contains("The engine performed `tell`"));
}

#[tokio::test]
async fn every_call_gets_further_however_much_the_engine_has_to_do() {
    let text = turning(40).replace(
        "      - {id: tell,",
        "      - id: inner\n        type: loop\n        title: Inner\n        loop: {type: for, count: 30, maxIterations: 30}\n        body: [{id: again, title: Again, run: {type: log, message: Hi.}}]\n      - {id: tell,",
    );
    let world = World::of(&text);
    let store = cairn_store::open(&cairn_store::Config::Memory).unwrap();
    let guide = world.performing(&store, giving(json!({"error": "none"})));
    let first = begin(&guide).await;
    let call = ack(&first.tokens.continue_token, NOTES, Vec::new());
    let midway = guide.proceed(call.clone()).await.unwrap();
    assert_eq!(step(&midway), "again", "so much in one call, and no more");
    let end = guide.proceed(call).await.unwrap();
    assert_eq!(step(&end), "end", "the second call did the rest");
    let session = first.session.unwrap().session;
    let events = store.log.read(session, EventIndex(0)).await.unwrap();
    let advances = events.iter().filter(|e| matches!(e.data, EventData::AdvanceRecorded(_)));
    assert_eq!(advances.count(), 1 + 40 * 31, "and nothing was done twice");
}
