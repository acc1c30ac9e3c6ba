//! Preferences, capabilities, confirmations: who is asked, and what is told.

use cairn_core::event::guided::{Autonomy, RiskPolicy};
use cairn_core::event::{Event, EventData, guided::EnforcementGrade};
use cairn_engine::guided::answer::NextIntent;
use cairn_engine::guided::ask::{Continue, Start, Wanted};
use serde_json::json;

use crate::world::{NOTES, World, ack, blockers, prompt, step};

const CAREFUL: &str = "
id: project.careful
name: Careful
description: Needs the web, and asks.
version: 1.0.0
capabilities: {web_browsing: required}
recommendedPreferences: {recommendedAutonomy: guided, recommendedRiskPolicy: conservative}
steps:
  - {id: look, title: Look, prompt: Look it up., requireConfirmation: true}
  - {id: ship, title: Ship, prompt: Ship it., requireConfirmation: {kind: human_approval}}
";

fn seen(status: &str) -> serde_json::Value {
    json!({"kind": "wr.capability_observation", "capability": "web_browsing", "status": status})
}

#[tokio::test]
async fn a_required_capability_is_probed_first_with_strong_provenance() {
    let world = World::of(CAREFUL);
    let probe = world.start("project.careful").await;
    assert_eq!(step(&probe), "wr_probe_web_browsing");
    assert_eq!(blockers(&world.go(&probe).await), ["MISSING_REQUIRED_OUTPUT"]);
    let again = world.back(&probe.tokens).await;
    let missing = world.go_with(&again, vec![seen("unavailable")]).await;
    assert_eq!(blockers(&missing), ["REQUIRED_CAPABILITY_UNAVAILABLE"]);
    let token = missing.retry_continue_token.unwrap();
    let there = world.guide.proceed(ack(&token, NOTES, vec![seen("available")])).await.unwrap();
    assert_eq!(step(&there), "look");
    let events = world.events(probe.session.unwrap().session).await;
    let grade = events.iter().find_map(|event| match &event.data {
        EventData::CapabilityObserved(seen) => Some(seen.provenance.grade()),
        _ => None,
    });
    assert_eq!(grade, Some(EnforcementGrade::Strong));
}

#[tokio::test]
async fn a_mere_claim_never_unlocks_what_a_workflow_cannot_do_without() {
    let world = World::of(CAREFUL);
    let probe = world.start_in("project.careful", Autonomy::FullAutoNeverStop).await;
    let look = world.go(&probe).await;
    assert_eq!(step(&look), "look");
    let guided = Wanted { autonomy: Some(Autonomy::Guided), risk_policy: None };
    let with = |token: &str, artifact: serde_json::Value| Continue {
        preferences: guided,
        ..ack(token, NOTES, vec![artifact])
    };
    let token = look.tokens.continue_token;
    let claimed = world.guide.proceed(with(&token, seen("available"))).await.unwrap();
    assert_eq!(blockers(&claimed), ["REQUIRED_CAPABILITY_UNKNOWN"]);
    let mut tried = seen("available");
    tried.as_object_mut().unwrap().insert("detail".into(), json!("Fetched a page: 200."));
    let token = claimed.retry_continue_token.unwrap();
    let ship = world.guide.proceed(with(&token, tried)).await.unwrap();
    assert_eq!(step(&ship), "ship");
}

#[tokio::test]
async fn what_is_known_of_a_capability_belongs_to_its_branch() {
    let world = World::of(CAREFUL);
    let probe = world.start_in("project.careful", Autonomy::FullAutoNeverStop).await;
    let has = world.go_with(&probe, vec![seen("available")]).await;
    let again = world.back(&probe.tokens).await;
    let lacks = world.go_with(&again, vec![seen("unavailable")]).await;
    let guided = Wanted { autonomy: Some(Autonomy::Guided), risk_policy: None };
    let go = |answer: &cairn_engine::guided::answer::Answer| {
        let token = answer.tokens.continue_token.clone();
        let call = Continue { preferences: guided, ..ack(&token, NOTES, Vec::new()) };
        world.guide.proceed(call)
    };
    assert_eq!(step(&go(&has).await.unwrap()), "ship");
    assert_eq!(blockers(&go(&lacks).await.unwrap()), ["REQUIRED_CAPABILITY_UNAVAILABLE"]);
    // Both observations stay in the log; which one holds is asked of the path.
    let events = world.events(probe.session.unwrap().session).await;
    let observed = |event: &&Event| matches!(event.data, EventData::CapabilityObserved(_));
    assert_eq!(events.iter().filter(observed).count(), 2);
}

#[tokio::test]
async fn a_probe_is_believed_about_what_it_probes_alone() {
    let both = CAREFUL
        .replace("{web_browsing: required}", "{delegation: required, web_browsing: required}");
    let world = World::of(&both);
    let first = world.start_in("project.careful", Autonomy::FullAutoNeverStop).await;
    assert_eq!(step(&first), "wr_probe_delegation");
    let mut other = seen("available");
    let own = json!({"kind": "wr.capability_observation", "capability": "delegation",
                     "status": "available"});
    let second = world.go_with(&first, vec![own, other.clone()]).await;
    assert_eq!(step(&second), "wr_probe_web_browsing");
    let look = world.go(&second).await;
    let guided = Wanted { autonomy: Some(Autonomy::Guided), risk_policy: None };
    let token = &look.tokens.continue_token;
    let call = Continue { preferences: guided, ..ack(token, NOTES, Vec::new()) };
    let blocked = world.guide.proceed(call).await.unwrap();
    assert_eq!(blockers(&blocked), ["REQUIRED_CAPABILITY_UNKNOWN"]);
    other.as_object_mut().unwrap().insert("detail".into(), json!("Fetched a page: 200."));
    let retry = blocked.retry_continue_token.unwrap();
    let call = Continue { preferences: guided, ..ack(&retry, NOTES, vec![other]) };
    assert_eq!(step(&world.guide.proceed(call).await.unwrap()), "ship");
}

#[tokio::test]
async fn whom_a_confirmation_waits_for_depends_on_the_mode() {
    use NextIntent::{AwaitUserConfirmation as Wait, PerformPendingThenContinue as Go};
    for (autonomy, look, ship) in [
        (Autonomy::Guided, Wait, Wait),
        (Autonomy::FullAutoStopOnUserDeps, Go, Wait),
        (Autonomy::FullAutoNeverStop, Go, Go),
    ] {
        let world = World::of(CAREFUL);
        let probe = world.start_in("project.careful", autonomy).await;
        let first = world.go_with(&probe, vec![seen("available")]).await;
        assert!(first.pending.as_ref().unwrap().require_confirmation);
        let second = world.go(&first).await;
        assert_eq!((first.next_intent, second.next_intent), (look, ship), "{autonomy:?}");
        let done = world.go(&second).await;
        assert!(done.is_complete && done.next_intent == NextIntent::Complete);
        // Nobody could be asked for the approval, so its lack is disclosed.
        let gaps =
            done.warnings.iter().filter(|warning| warning.code.name() == "gap_recorded").count();
        assert_eq!(gaps, usize::from(autonomy == Autonomy::FullAutoNeverStop));
    }
}

#[tokio::test]
async fn going_beyond_a_recommendation_is_a_warning_never_a_block() {
    let world = World::of(CAREFUL);
    let warned = |answer: &cairn_engine::guided::answer::Answer| {
        answer.warnings.iter().any(|warning| warning.code.name() == "recommendation_exceeded")
    };
    assert!(!warned(&world.start("project.careful").await));
    let bold = Start {
        workflow: "careful".into(),
        preferences: Wanted {
            autonomy: Some(Autonomy::FullAutoNeverStop),
            risk_policy: Some(RiskPolicy::Aggressive),
        },
        ..Start::default()
    };
    let answer = world.guide.start(bold).await.unwrap();
    assert!(warned(&answer));
    let message = &answer.warnings.first().unwrap().message;
    assert!(message.contains("guided") && message.contains("conservative"), "{message}");
    assert!(warned(&world.back(&answer.tokens).await), "told again to whoever comes back");
    assert!(!warned(&world.go(&answer).await), "and not at every step");
}

#[tokio::test]
async fn preferences_belong_to_their_node_and_those_behind_it() {
    let world = World::of(crate::world::THREE);
    let first = world.start("project.three").await;
    assert_eq!(first.preferences.unwrap().autonomy, Autonomy::Guided);
    let change = Continue {
        preferences: Wanted { autonomy: Some(Autonomy::FullAutoNeverStop), risk_policy: None },
        ..ack(&first.tokens.continue_token, NOTES, Vec::new())
    };
    let second = world.guide.proceed(change).await.unwrap();
    assert_eq!(second.preferences.unwrap().autonomy, Autonomy::FullAutoNeverStop);
    let third = world.go(&second).await;
    assert_eq!(third.preferences, None, "told when it changed, and not again");
    let back = world.back(&first.tokens).await;
    assert_eq!(back.preferences.unwrap().autonomy, Autonomy::Guided, "an older node keeps its own");
    let there = world.back(&third.tokens).await;
    assert_eq!(there.preferences.unwrap().autonomy, Autonomy::FullAutoNeverStop);
}

#[tokio::test]
async fn a_prompt_names_what_nobody_has_set() {
    let world = World::of(crate::world::THREE);
    let first = world.start("project.three").await;
    assert!(first.pending.unwrap().prompt.contains("[unset: ticket]"));
    assert_eq!(first.warnings.first().unwrap().code.name(), "context_unset");
}

#[tokio::test]
async fn a_run_that_never_stops_tells_of_a_missing_capability_once() {
    let world = World::of(CAREFUL);
    let probe = world.start_in("project.careful", Autonomy::FullAutoNeverStop).await;
    let session = probe.session.unwrap().session;
    let mut answer = world.go_with(&probe, vec![seen("unavailable")]).await;
    while !answer.is_complete {
        answer = world.go(&answer).await;
    }
    let told = world.events(session).await.into_iter().filter(|event| match &event.data {
        EventData::GapRecorded(gap) => {
            serde_json::to_string(&gap.reason).unwrap().contains("required_capability_unavailable")
        }
        _ => false,
    });
    assert_eq!(told.count(), 1);
}

#[tokio::test]
async fn a_claim_beside_a_trial_takes_nothing_back() {
    let world = World::of(CAREFUL);
    let probe = world.start("project.careful").await;
    let look = world.go_with(&probe, vec![seen("available")]).await;
    let mut tried = seen("available");
    tried.as_object_mut().unwrap().insert("detail".into(), json!("Fetched a page: 200."));
    let ship = world.go_with(&look, vec![tried, seen("available")]).await;
    assert_eq!(step(&ship), "ship");
    assert!(world.go(&ship).await.is_complete);
}

#[tokio::test]
async fn a_capability_that_is_preferred_or_disabled_changes_what_the_agent_is_told() {
    let text = CAREFUL
        .replace("{web_browsing: required}", "{web_browsing: preferred, delegation: disabled}");
    let world = World::of(&text);
    let look = world.start("project.careful").await;
    assert_eq!(step(&look), "look", "what is not required is not probed");
    for part in [
        "`web_browsing` is preferred: look things up on the web where that helps.",
        "`delegation` is disabled: do not hand work to subagents, even if you can",
    ] {
        assert!(prompt(&look).contains(part), "{}", prompt(&look));
        assert!(prompt(&world.back(&look.tokens).await).contains(part), "also when coming back");
    }
    let ship = world.go_with(&look, vec![seen("unavailable")]).await;
    assert_eq!((step(&ship), ship.blockers.len()), ("ship", 0));
    let warned = ship.warnings.iter().find(|w| w.code.name() == "capability_unavailable").unwrap();
    assert!(warned.message.contains("`web_browsing`"), "{}", warned.message);
}

#[tokio::test]
async fn what_a_loop_says_of_confirmations_and_notes_holds_for_its_steps() {
    let text = "
id: project.asking
name: Asking
description: A loop that asks.
version: 1.0.0
steps:
  - id: round
    type: loop
    title: Round
    loop: {type: for, count: 1, maxIterations: 1}
    requireConfirmation: true
    notesOptional: true
    body:
      - {id: ask, title: Ask, prompt: Ask.}
      - {id: free, title: Free, prompt: Free., requireConfirmation: false, notesOptional: false}
  - {id: end, title: End, prompt: End.}
";
    let world = World::of(text);
    let ask = world.start("project.asking").await;
    assert!(ask.pending.as_ref().unwrap().require_confirmation);
    assert_eq!(ask.next_intent, NextIntent::AwaitUserConfirmation);
    let free = world.guide.proceed(ack(&ask.tokens.continue_token, "", Vec::new())).await.unwrap();
    assert_eq!(step(&free), "free", "without notes");
    assert!(!free.pending.as_ref().unwrap().require_confirmation);
    let call = ack(&free.tokens.continue_token, "", Vec::new());
    assert_eq!(blockers(&world.guide.proceed(call).await.unwrap()), ["MISSING_REQUIRED_OUTPUT"]);
}

#[tokio::test]
async fn the_same_step_reads_differently_in_every_mode() {
    let text = crate::world::THREE
        .replace("prompt: Do the second thing.}", "prompt: Do it., requireConfirmation: true}");
    let world = World::of(&text);
    let modes = [Autonomy::Guided, Autonomy::FullAutoStopOnUserDeps, Autonomy::FullAutoNeverStop];
    let mut shown = Vec::new();
    for autonomy in modes {
        let first = world.start_in("project.three", autonomy).await;
        assert!(prompt(&first).contains(&format!("Mode `{}`", autonomy.name())));
        let second = world.go(&first).await;
        assert!(!prompt(&second).contains("Mode `"), "told once: {}", prompt(&second));
        let asks = prompt(&second).contains("The user would confirm this step.");
        assert_eq!(asks, autonomy != Autonomy::Guided, "{}", prompt(&second));
        shown.push(prompt(&first).to_owned());
    }
    shown.dedup();
    assert_eq!(shown.len(), 3);
    // A change is told where it begins to hold.
    let first = world.start("project.three").await;
    let call = Continue {
        preferences: Wanted { autonomy: None, risk_policy: Some(RiskPolicy::Aggressive) },
        ..ack(&first.tokens.continue_token, crate::world::NOTES, Vec::new())
    };
    let second = world.guide.proceed(call).await.unwrap();
    assert!(prompt(&second).contains("Risk `aggressive`"), "{}", prompt(&second));
}
