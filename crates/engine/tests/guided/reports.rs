//! What a blocked attempt is told: how much, and in which order.

use cairn_core::reason::Blocker;
use cairn_core::text::TRUNCATED;
use serde_json::{Value, json};

use crate::world::{NOTES, World, ack, blockers};

fn picky() -> String {
    format!(
        "
id: project.picky
name: Picky
description: Asks for much.
version: 1.0.0
capabilities: {{web_browsing: required}}
steps:
  - id: notes
    title: Notes
    prompt: Write.
    validationCriteria: [{{type: contains, value: evidence, message: '{}'}}]
",
        "Bring évidence. ".repeat(100)
    )
}

fn needs(number: usize, summary: &str) -> Value {
    json!({"kind": "wr.user_dependency", "dependency": "needs_user_artifact",
           "key": format!("file-{number:02}"), "summary": summary})
}

fn place(blocker: &Blocker) -> (String, String) {
    let [code, pointer] = [json!(blocker.code), json!(blocker.pointer)].map(|v| v.to_string());
    (code, pointer)
}

#[tokio::test]
async fn a_report_has_at_most_ten_blockers_in_order_and_within_their_budgets() {
    let world = World::of(&picky());
    let probe = world.start("project.picky").await;
    let seen = json!({"kind": "wr.capability_observation", "capability": "web_browsing",
                      "status": "available"});
    let first = world.go_with(&probe, vec![seen]).await;
    let long = "the file that only you have é".repeat(40);
    let mut artifacts: Vec<Value> = (0..14).rev().map(|number| needs(number, &long)).collect();
    artifacts.push(json!({"kind": "wr.workflow_divergence"}));
    let blocked = world.go_with(&first, artifacts).await;
    let report = &blocked.blockers;
    assert_eq!(report.len(), 10);
    let places: Vec<_> = report.iter().map(place).collect();
    assert!(places.is_sorted(), "{places:#?}");
    let codes = blockers(&blocked);
    assert_eq!(codes.iter().filter(|code| *code == "INVALID_REQUIRED_OUTPUT").count(), 2);
    assert_eq!(codes.iter().filter(|code| *code == "USER_ONLY_DEPENDENCY").count(), 8);
    for blocker in report {
        let fix = blocker.suggested_fix.as_ref().unwrap();
        assert!(blocker.message.len() <= 512 && fix.len() <= 1024, "{blocker:?}");
    }
    let cut = |text: &str| text.ends_with(TRUNCATED);
    assert!(report.iter().any(|blocker| cut(&blocker.message)), "a cut message says so");
    assert!(report.iter().any(|b| cut(b.suggested_fix.as_ref().unwrap())), "a cut fix too");
    // What is told is what is recorded, also to whoever sends it again.
    let written = world.writes();
    let again: Vec<Value> = vec![json!({"kind": "project.other"})];
    let call = ack(&first.tokens.continue_token, NOTES, again);
    assert_eq!(&world.guide.proceed(call).await.unwrap().blockers, report);
    assert_eq!(world.writes(), written);
}

#[tokio::test]
async fn the_order_of_a_report_does_not_follow_the_order_of_the_answer() {
    let world = World::of(&picky());
    let probe = world.start("project.picky").await;
    let mut reports = Vec::new();
    for turned in [false, true] {
        let mut artifacts: Vec<Value> = (0..3).map(|n| needs(n, "a file")).collect();
        if turned {
            artifacts.reverse();
        }
        let fresh = world.back(&probe.tokens).await;
        reports.push(world.go_with(&fresh, artifacts).await.blockers);
    }
    assert_eq!(reports.first(), reports.last());
}
