//! What keeps a run, and what it is told: one table of reasons, two ways to act on it.

use cairn_core::event::EventData;
use cairn_core::event::guided::Autonomy;
use cairn_engine::guided::answer::NextIntent;
use cairn_engine::guided::ask::{Continue, Wanted};
use serde_json::json;

use crate::world::{NOTES, World, ack, blockers, step};

/// Every kind of requirement, a step each.
const STRICT: &str = "
id: project.strict
name: Strict
description: Asks for something in every step.
version: 1.0.0
assessments:
  - id: ready
    purpose: Whether the work is ready.
    dimensions:
      - {id: confidence, purpose: How sure, levels: [low, high]}
      - {id: scope, purpose: How much, levels: [Small, Large], required: false}
steps:
  - id: checked
    title: Checked notes
    prompt: Write findings.
    validationCriteria:
      and:
        - {type: regex, pattern: 'Finding \\d+:', message: number your findings}
        - {type: length, min: 20, message: say more}
  - id: verdict
    title: A verdict
    prompt: Review it.
    outputContract: {contractRef: wr.contracts.review_verdict}
  - id: judged
    title: A judgement
    prompt: Assess it.
    assessmentRefs: [ready]
    assessmentConsequences:
      - when: {anyEqualsLevel: low}
        effect: {kind: require_followup, guidance: Find more evidence.}
  - id: last
    title: The last
    prompt: Finish.
    nonAssumableChoices: [irreversible_action]
";

fn verdict() -> serde_json::Value {
    json!({"kind": "wr.review_verdict", "verdict": "clean", "confidence": "high",
           "findings": [], "summary": "All is well."})
}

fn judgement(level: &str) -> serde_json::Value {
    json!({"kind": "wr.assessment", "assessmentId": "ready",
           "dimensions": {"confidence": {"level": level, "rationale": "It was tried."}}})
}

#[tokio::test]
async fn missing_and_invalid_outputs_block_with_an_example() {
    let world = World::of(STRICT);
    let first = world.start("project.strict").await;
    let blocked = world.go(&first).await;
    assert_eq!(blockers(&blocked), ["INVALID_REQUIRED_OUTPUT"]);
    let fix = blocked.blockers.first().unwrap().suggested_fix.clone().unwrap();
    assert!(
        fix.contains("number your findings (your notes match the pattern `"),
        "with the rule: {fix}"
    );
    assert!(!fix.contains("say more"), "only what is wrong: {fix}");
    assert_eq!(step(&blocked), "checked", "the same step is pending");
    assert_eq!(blocked.next_intent, NextIntent::PerformPendingThenContinue);

    let retry = blocked.retry_continue_token.unwrap();
    let notes = "Finding 1: the cart is empty. Finding 2: nobody checks it.";
    let second = world.guide.proceed(ack(&retry, notes, Vec::new())).await.unwrap();
    assert_eq!(step(&second), "verdict");

    let blocked = world.go(&second).await;
    assert_eq!(blockers(&blocked), ["MISSING_REQUIRED_OUTPUT"]);
    let fix = blocked.blockers.first().unwrap().suggested_fix.clone().unwrap();
    assert!(fix.contains("wr.review_verdict"), "{fix}");
    let wrong = json!({"kind": "wr.review_verdict", "verdict": "fine", "confidence": "high"});
    let again = ack(&blocked.retry_continue_token.unwrap(), NOTES, vec![wrong]);
    let blocked = world.guide.proceed(again).await.unwrap();
    assert_eq!(blockers(&blocked), ["INVALID_REQUIRED_OUTPUT"]);
    let message = &blocked.blockers.first().unwrap().message;
    for part in
        ["`verdict` must be one of \"clean\", \"minor\", \"blocking\"", "`findings` is missing"]
    {
        assert!(message.contains(part), "{message}");
    }
}

#[tokio::test]
async fn an_assessment_is_read_kept_and_told() {
    let world = World::of(STRICT);
    let first = world.start_in("project.strict", Autonomy::FullAutoNeverStop).await;
    let second = world.go(&first).await;
    let third = world.go_with(&second, vec![verdict()]).await;
    let guided = Wanted { autonomy: Some(Autonomy::Guided), risk_policy: None };
    let low = Continue {
        preferences: guided,
        ..ack(&third.tokens.continue_token, NOTES, vec![judgement("low")])
    };
    let blocked = world.guide.proceed(low).await.unwrap();
    let blocker = blocked.blockers.first().unwrap();
    assert!(blocker.suggested_fix.as_ref().unwrap().contains("Find more evidence."), "{blocker:?}");
    let now = blocked.preferences.as_ref().unwrap();
    assert_eq!(now.autonomy, Autonomy::Guided, "a change is told, also where it blocks");
    let high = Continue {
        preferences: guided,
        ..ack(&blocked.retry_continue_token.unwrap(), NOTES, vec![judgement("HIGH")])
    };
    let done = world.guide.proceed(high).await.unwrap();
    assert_eq!(step(&done), "last");
    let told = done.step_context.unwrap();
    let assessment = told.assessments.first().unwrap();
    assert_eq!(assessment.dimensions.first().unwrap().level, "high");
    assert_eq!(assessment.normalization_notes, ["confidence: `HIGH` was read as `high`"]);
    assert_eq!(done.preferences, None, "what did not change is not told again");
}

#[tokio::test]
async fn what_only_the_user_has_blocks_or_is_disclosed() {
    let world = World::of(STRICT);
    let needs = |dependency: &str, choice: &str| {
        json!({"kind": "wr.user_dependency", "dependency": dependency, "choiceKind": choice,
               "summary": "the production database password"})
    };
    for autonomy in [Autonomy::Guided, Autonomy::FullAutoStopOnUserDeps] {
        let first = world.start_in("project.strict", autonomy).await;
        let secret = vec![needs("needs_user_secret_or_token", "")];
        let notes = "Finding 1: it needs the password to go on.";
        let call = ack(&first.tokens.continue_token, notes, secret);
        let blocked = world.guide.proceed(call).await.unwrap();
        assert_eq!(blockers(&blocked), ["USER_ONLY_DEPENDENCY"]);
        assert_eq!(blocked.next_intent, NextIntent::AwaitUserConfirmation);
    }
    let first = world.start_in("project.strict", Autonomy::FullAutoNeverStop).await;
    let second = world.go_with(&first, vec![needs("needs_user_secret_or_token", "")]).await;
    assert_eq!(step(&second), "verdict", "it never stops");
    let codes: Vec<&str> = second.warnings.iter().map(|warning| warning.code.name()).collect();
    assert_eq!(codes, ["gap_recorded", "gap_recorded"], "{:?}", second.warnings);
}

#[tokio::test]
async fn a_choice_is_the_users_only_where_the_workflow_says_so() {
    let world = World::of(STRICT);
    let choice = |kind: &str| {
        vec![json!({"kind": "wr.user_dependency", "dependency": "needs_user_choice",
                    "choiceKind": kind, "summary": "which data to delete"})]
    };
    let first = world.start_in("project.strict", Autonomy::FullAutoNeverStop).await;
    let second = world.go(&first).await;
    let third = world.go_with(&second, vec![verdict()]).await;
    let guided = Wanted { autonomy: Some(Autonomy::Guided), risk_policy: None };
    let mut call = ack(&third.tokens.continue_token, NOTES, vec![judgement("high")]);
    call.preferences = guided;
    let last = world.guide.proceed(call).await.unwrap();
    let refused = world.go_with(&last, choice("scope_boundary")).await;
    assert_eq!(blockers(&refused), ["INVALID_REQUIRED_OUTPUT"]);
    let token = refused.retry_continue_token.unwrap();
    let call = ack(&token, NOTES, choice("irreversible_action"));
    let asked = world.guide.proceed(call).await.unwrap();
    assert_eq!(blockers(&asked), ["USER_ONLY_DEPENDENCY"]);
}

#[tokio::test]
async fn never_stopping_discloses_the_same_reasons_as_gaps() {
    let world = World::of(STRICT);
    let mut answer = world.start_in("project.strict", Autonomy::FullAutoNeverStop).await;
    let session = answer.session.unwrap().session;
    while !answer.is_complete {
        assert!(answer.blockers.is_empty());
        answer = world.go(&answer).await;
    }
    let gaps: Vec<String> = world
        .events(session)
        .await
        .iter()
        .filter_map(|event| match &event.data {
            EventData::GapRecorded(gap) => Some(serde_json::to_string(&gap.reason).unwrap()),
            _ => None,
        })
        .collect();
    let reason =
        |detail: &str| format!(r#"{{"category":"contract_violation","detail":"{detail}"}}"#);
    let (missing, invalid) = (reason("missing_required_output"), reason("invalid_required_output"));
    assert_eq!(gaps, [invalid, missing.clone(), missing]);
}

#[tokio::test]
async fn a_blocked_attempt_that_sends_nothing_writes_its_record_and_nothing_else() {
    let world = World::of(STRICT);
    let first = world.start("project.strict").await;
    let session = first.session.unwrap().session;
    let before = world.events(session).await.len();
    world.guide.proceed(ack(&first.tokens.continue_token, " ", Vec::new())).await.unwrap();
    let after = world.events(session).await;
    assert_eq!(after.len(), before + 1);
    assert!(matches!(after.last().unwrap().data, EventData::AdvanceRecorded(_)));
}

#[tokio::test]
async fn an_assessment_that_nobody_asked_for_is_not_told_as_accepted() {
    let made_up = |id: &str, level: &str| {
        json!({"kind": "wr.assessment", "assessmentId": id, "normalizationNotes": [],
               "dimensions": [{"dimensionId": "confidence", "level": level}]})
    };
    let world = World::of(STRICT);
    let first = world.start_in("project.strict", Autonomy::FullAutoNeverStop).await;
    let second = world.go(&first).await;
    let third = world.go_with(&second, vec![verdict()]).await;
    let sent = vec![made_up("other", "high"), made_up("ready", "low"), judgement("high")];
    let told = world.go_with(&third, sent).await.step_context.unwrap().assessments;
    let told: Vec<_> = told.iter().map(|a| (&*a.assessment_id, &*a.dimensions[0].level)).collect();
    assert_eq!(told, [("ready", "high")]);
    // One that is wrong in a run that never stops is kept, and was not accepted.
    let again = world.back(&third.tokens).await;
    let wrong = world.go_with(&again, vec![made_up("ready", "middling")]).await;
    assert!(wrong.step_context.is_none(), "{:?}", wrong.step_context);
}

#[tokio::test]
async fn dimensions_in_a_list_without_names_are_told_as_such() {
    let world = World::of(STRICT);
    let first = world.start_in("project.strict", Autonomy::FullAutoNeverStop).await;
    let third = world.go_with(&world.go(&first).await, vec![verdict()]).await;
    let listed = json!({"kind": "wr.assessment", "assessmentId": "ready", "dimensions": ["high"]});
    let guided = Wanted { autonomy: Some(Autonomy::Guided), risk_policy: None };
    let call = ack(&third.tokens.continue_token, NOTES, vec![listed]);
    let blocked = world.guide.proceed(Continue { preferences: guided, ..call }).await.unwrap();
    let message = &blocked.blockers[0].message;
    assert!(message.contains("an item that names no `dimensionId`"), "{message}");
}

const CHECKED: &str = "
id: project.checked
name: Checked
description: A step whose notes end in a version.
version: 1.0.0
steps:
  - id: only
    title: Only
    prompt: Do it.
    validationCriteria: [{type: regex, pattern: 'Version: [0-9.]+', message: name the version}]
  - {id: last, title: Last, prompt: Finish.}
";

/// What is recorded is what is checked: an end that is cut off counts for nothing.
#[tokio::test]
async fn a_check_looks_at_what_is_recorded() {
    let world = World::of(CHECKED);
    let first = world.start("project.checked").await;
    let long = format!("{}\nVersion: 9.9.9", "x".repeat(5_000));
    let blocked =
        world.guide.proceed(ack(&first.tokens.continue_token, &long, Vec::new())).await.unwrap();
    let fix = blocked.blockers[0].suggested_fix.as_deref().unwrap();
    assert!(fix.contains("longer than 4096 bytes"), "{fix}");
    let retry = blocked.retry_continue_token.unwrap();
    let done = world.guide.proceed(ack(&retry, "Version: 9.9.9", Vec::new())).await.unwrap();
    assert_eq!(step(&done), "last");
    // Notes in their place are held to the same.
    let correct = |notes: &str| cairn_engine::guided::ask::Checkpoint {
        at: cairn_engine::guided::ask::CheckpointAt::Compact(
            done.tokens.checkpoint_token.clone().unwrap(),
        ),
        output: cairn_engine::guided::ask::Output {
            notes: Some(notes.to_owned()),
            artifacts: Vec::new(),
        },
        replaces_notes: true,
        tokens: cairn_engine::guided::ask::Tokens::Compact,
        by: None,
    };
    let refused = world.guide.checkpoint(correct("No number.")).await.unwrap_err();
    assert!(refused.fix().unwrap().contains("name the version"), "{refused:?}");
    assert!(world.guide.checkpoint(correct("Version: 9.9.10")).await.unwrap().recorded);
}

/// A gap that is not open cannot be closed, and is no gap of its own.
#[tokio::test]
async fn a_gap_that_is_not_there_cannot_be_closed() {
    let world = World::of(CHECKED);
    let first = world.start_in("project.checked", Autonomy::FullAutoNeverStop).await;
    let last = world.go(&first).await;
    let gap = last.warnings.iter().find(|warning| warning.code.name() == "gap_recorded").unwrap();
    let id = gap.message.split("gapId ").nth(1).unwrap().trim_end_matches(')');
    let close = |id: &str| {
        let artifact =
            serde_json::json!({"kind": "wr.gap_resolution", "gapId": id, "evidence": "Seen."});
        ack(&last.tokens.continue_token, "Done.", vec![artifact])
    };
    let refused = world.guide.proceed(close("gap_mistyped")).await.unwrap_err();
    assert!(refused.to_string().contains("no open gap"), "{refused}");
    assert!(refused.fix().unwrap().contains(id), "the open ones are named: {refused:?}");
    let end = world.guide.proceed(close(id)).await.unwrap();
    assert!(end.is_complete);
    assert_eq!(end.warnings[0].code.name(), "gap_closed", "{end:?}");
}
