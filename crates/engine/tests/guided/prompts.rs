//! What an agent is shown, word for word.

use insta::assert_snapshot;
use serde_json::json;

use crate::world::{World, ack, prompt, step};

const WHOLE: &str = "
id: project.whole
name: Whole
description: A prompt with everything in it.
version: 1.0.0
agentRole: You are a careful engineer.
preconditions: [The repository can be read.]
clarificationPrompts: [Which version is wanted?]
metaGuidance: [Say what you did not check.]
references:
  - {id: rules, title: Rules, source: docs/rules.md, purpose: To be kept., authoritative: true}
  - {id: lost, title: Lost, source: docs/lost.md, purpose: To be found., authoritative: false}
functionDefinitions:
  - {name: grade, definition: Give a grade from 1 to 5.}
  - {name: ask, definition: Ask the team.}
  - {name: unused, definition: Nobody refers to it.}
steps:
  - id: plan
    title: Plan
    agentRole: You are a planner for {{product.name}}.
    promptBlocks:
      goal: Decide what to change first in {{product.files.0}}.
      constraints: [Small steps., 'Nothing for {{nobody}}.']
      procedure: [Order the findings.]
      outputRequired: {order: The findings in order.}
      verify: [Nothing is left out.]
    promptFragments:
      - {id: quick, when: {var: mode, equals: quick}, text: Keep it short.}
      - {id: slow, when: {var: mode, equals: slow}, text: Take your time.}
      - {id: always, text: Write in full sentences.}
    functionDefinitions:
      - {name: sort, definition: Sort by risk.}
    functionReferences: [grade(), sort(), ask()]
    validationCriteria:
      - {type: regex, pattern: 'Finding \\d+', message: Number the findings}
      - {type: length, min: 20, message: Be thorough}
  - id: loop
    type: loop
    title: Loop
    loop: {type: for, count: 2, maxIterations: 2}
    functionDefinitions:
      - {name: test, definition: Run the whole suite.}
    body:
      - {id: change, title: Change, prompt: 'Make change {{currentIteration}}.', functionReferences: [grade(), test()]}
";

fn product() -> serde_json::Value {
    json!({"product": {"name": "the cart", "files": ["src/cart.rs"]}, "mode": "quick"})
}

#[tokio::test]
async fn a_whole_prompt_is_as_it_was() {
    let world = World::of(WHOLE);
    let first = world.start_with("whole", product()).await;
    assert_snapshot!(prompt(&first), @r#"
    Before you begin:
    - The repository can be read.

    Settle these questions first, as far as they are open:
    - Which version is wanted?

    Rules for the whole workflow:
    - Say what you did not check.

    You are a planner for the cart.

    ## Goal
    Decide what to change first in src/cart.rs.

    ## Constraints
    - Small steps.
    - Nothing for [unset: nobody].

    ## Procedure
    1. Order the findings.

    ## Output required, in your notes
    - order: The findings in order.

    ## Verify
    - Nothing is left out.

    Keep it short.

    Write in full sentences.

    Functions for this step:
    - `sort()`: Sort by risk.
    - `ask()`: Ask the team.
    - `grade()`: Give a grade from 1 to 5.

    What the answer needs:
    - Give notes on what you did in this step alone.
    - Number the findings (your notes match the pattern `Finding \d+`)
    - Be thorough (your notes have at least 20 characters)

    Mode `guided`: the user is available. Ask them what a step leaves open, and before anything that cannot be undone. What is missing blocks the run until you supply it.
    Risk `conservative`: of two correct approaches choose the one that can be undone, and verify a claim before you rely on it.

    If something keeps you from doing a step as written, say so in `output.artifacts`:
    - only the user can provide it: {"dependency":"needs_user_artifact","kind":"wr.user_dependency","summary":"<what, and what for>"} (dependency: needs_user_secret_or_token, needs_user_account_access, needs_user_artifact, needs_user_approval, needs_user_environment_action)
    - you deviate from the step on purpose: {"kind":"wr.workflow_divergence","reason":"efficiency_skip","relatedStepId":"plan","summary":"<what you did instead>"} (reason: missing_user_context, capability_unavailable, efficiency_skip, safety_stop, policy_constraint)
    "#);
}

#[tokio::test]
async fn whoever_comes_back_is_told_everything_again_and_whoever_goes_on_is_not() {
    let world = World::of(WHOLE);
    let first = world.start_with("whole", product()).await;
    assert_eq!(prompt(&world.back(&first.tokens).await), prompt(&first));
    let notes = "Finding 1: the cart is empty at night.";
    let call = ack(&first.tokens.continue_token, notes, Vec::new());
    let change = world.guide.proceed(call).await.unwrap();
    assert_eq!(step(&change), "change");
    assert_snapshot!(prompt(&change), @r"
    You are a careful engineer.

    Make change 1.

    Functions for this step:
    - `test()`: Run the whole suite.

    What the answer needs:
    - Give notes on what you did in this step alone.
    ");
    let back = world.back(&change.tokens).await;
    for part in ["Rules for the whole workflow:", "Make change 1.", "- `grade()`: Give a grade"] {
        assert!(prompt(&back).contains(part), "{}", prompt(&back));
    }
}

#[tokio::test]
async fn function_definitions_come_from_the_step_outwards_by_name() {
    let world = World::of(WHOLE);
    let first = world.start_with("whole", product()).await;
    let order = |text: &str| {
        let names = ["`sort()`", "`test()`", "`ask()`", "`grade()`", "`unused()`"];
        let mut found: Vec<_> = names
            .iter()
            .filter_map(|name| Some((text.find(&format!("- {name}:"))?, *name)))
            .collect();
        found.sort_unstable();
        found.into_iter().map(|(_, name)| name).collect::<Vec<_>>()
    };
    for answer in [&first, &world.back(&first.tokens).await] {
        assert_eq!(order(prompt(answer)), ["`sort()`", "`ask()`", "`grade()`"]);
    }
    let notes = "Finding 1: the cart is empty at night.";
    let call = ack(&first.tokens.continue_token, notes, Vec::new());
    let change = world.guide.proceed(call).await.unwrap();
    assert_eq!(order(prompt(&change)), ["`test()`"], "what was told is not told again");
    let back = world.back(&change.tokens).await;
    assert_eq!(order(prompt(&back)), ["`test()`", "`grade()`"]);
}

#[tokio::test]
async fn whoever_rewinds_is_told_of_functions_that_the_other_branches_mention() {
    let world = World::of(WHOLE);
    let first = world.start_with("whole", product()).await;
    let go = async |token: &str, notes: &str| {
        world.guide.proceed(ack(token, notes, Vec::new())).await.unwrap()
    };
    let change = go(&first.tokens.continue_token, "Finding 1: the cart is empty at night.").await;
    assert!(!prompt(&world.back(&first.tokens).await).contains("Run the whole suite."));
    go(&change.tokens.continue_token, "Ran test() twice and unused() never.").await;
    let back = world.back(&first.tokens).await;
    let end = prompt(&back).split_once("Functions for this step:").unwrap().1;
    let end = end.split_once("\n\nMode `guided`").unwrap().0;
    assert_snapshot!(end, @r"
    - `sort()`: Sort by risk.
    - `ask()`: Ask the team.
    - `grade()`: Give a grade from 1 to 5.

    Functions that other branches mention:
    - `test()`: Run the whole suite.
    - `unused()`: Nobody refers to it.

    What the answer needs:
    - Give notes on what you did in this step alone.
    - Number the findings (your notes match the pattern `Finding \d+`)
    - Be thorough (your notes have at least 20 characters)
    ");
    let there = world.back(&change.tokens).await;
    assert!(prompt(&there).contains("`unused()`"), "{}", prompt(&there));
}

#[tokio::test]
async fn function_definitions_stay_within_their_budget() {
    let long = "é".repeat(3 << 10);
    let definitions: String = (0..5)
        .map(|number| format!("  - {{name: f{number}, definition: '{number} {long}'}}\n"))
        .collect();
    let text = format!(
        "id: project.long\nname: Long\ndescription: Long.\nversion: 1.0.0\nfunctionDefinitions:\n{definitions}steps:\n  - {{id: one, title: One, prompt: Do it., functionReferences: [f4(), f3(), f2(), f1(), f0()]}}\n"
    );
    let world = World::of(&text);
    let first = world.start("long").await;
    let shown = prompt(&first);
    assert!(shown.len() < (16 << 10) + 1536, "{} bytes", shown.len());
    assert!(shown.contains("`f0()`") && shown.contains("`f2()`") && !shown.contains("`f3()`"));
    assert!(shown.contains("\n\n[TRUNCATED]\nLeft out for their length: 2 definitions."));
}

#[tokio::test]
async fn references_come_with_the_start_and_for_whoever_comes_back() {
    let world = World::of(WHOLE);
    let project = world.home.path().join("project");
    std::fs::create_dir_all(project.join("docs")).unwrap();
    std::fs::create_dir_all(project.join(".git")).unwrap();
    std::fs::write(project.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    std::fs::write(project.join("docs/rules.md"), "Rules.").unwrap();
    let start = cairn_engine::guided::ask::Start {
        workflow: "whole".into(),
        workspace: Some(project.clone()),
        ..Default::default()
    };
    let first = world.guide.start(start).await.unwrap();
    let [rules, lost] = first.references.as_slice() else { panic!("{first:?}") };
    assert_eq!((rules.title.as_str(), rules.authoritative, rules.resolved), ("Rules", true, true));
    assert_eq!(
        (lost.purpose.as_str(), lost.authoritative, lost.resolved),
        ("To be found.", false, false)
    );
    let warned = first.warnings.iter().any(|warning| warning.code.name() == "reference_unresolved");
    assert!(warned, "a missing document is told and stops nothing");
    let back = world.back(&first.tokens).await;
    let titles: Vec<&str> = back.references.iter().map(|found| found.title.as_str()).collect();
    assert_eq!(titles, ["Rules", "Lost"]);
    let call = ack(&first.tokens.continue_token, "Finding 1: it is fine as it is.", Vec::new());
    let next = world.guide.proceed(call).await.unwrap();
    assert_eq!(step(&next), "change");
    assert_eq!(next.references, []);
}

#[tokio::test]
async fn a_recap_keeps_the_latest_entries_that_fit_and_says_what_it_left_out() {
    let text = WHOLE.replace("count: 2, maxIterations: 2", "count: 9, maxIterations: 9");
    let world = World::of(&text);
    let mut answer = world.start_with("whole", product()).await;
    for number in 0..6 {
        let notes = format!("Finding {number}: {}", "é".repeat(1000));
        let call = ack(&answer.tokens.continue_token, &notes, Vec::new());
        answer = world.guide.proceed(call).await.unwrap();
    }
    let recap = world.back(&answer.tokens).await.recap.unwrap();
    assert!(recap.text.len() <= 8 << 10, "{} bytes", recap.text.len());
    assert_eq!(recap.omitted, 3);
    let opening = "\n\n[TRUNCATED] 3 earlier entries left out, the latest kept\n\n[";
    assert!(recap.text.starts_with("Context:\n- mode: quick\n"), "{}", recap.text);
    assert!(recap.text.contains(opening), "{}", recap.text);
    assert!(recap.text.contains("Finding 5: "));
}

#[tokio::test]
async fn a_prompt_lists_five_demands_on_the_answer_at_most() {
    let hints: Vec<String> = (1..=7).map(|n| format!("hint {n}")).collect();
    let text = format!(
        "
id: project.demanding
name: Demanding
description: Asks for much.
version: 1.0.0
steps:
  - {{id: one, title: One, prompt: One., output: {{hints: [{}]}}}}
",
        hints.join(", ")
    );
    let world = World::of(&text);
    let one = world.start("project.demanding").await;
    let (_, demands) = prompt(&one).split_once("What the answer needs").unwrap();
    let demands = demands.split("\n\n").next().unwrap();
    assert_eq!(demands.matches("\n- ").count(), 6, "{demands}");
    assert!(demands.starts_with(", the first 5 of 7 demands:"), "{demands}");
    assert!(demands.contains("Give notes") && demands.contains("hint 5"), "{demands}");
}

#[tokio::test]
async fn the_lines_of_features_are_told_once_and_again_to_whoever_comes_back() {
    let text = "
id: project.featured
name: Featured
description: Features are switched on once.
version: 1.0.0
features: [wr.features.subagent_guidance]
steps:
  - id: one
    title: One
    promptBlocks: {goal: Look., constraints: [Stay small.], verify: [It builds.]}
  - id: two
    title: Two
    promptBlocks: {goal: Build., constraints: [Stay small.]}
  - {id: three, title: Three, promptBlocks: {goal: End.}}
";
    let world = World::of(text);
    let one = world.start("project.featured").await;
    let line = "A subagent sees nothing of this run";
    let check = "Each claim of a subagent's";
    assert!(prompt(&one).contains(line) && prompt(&one).contains(check), "{}", prompt(&one));
    let two = world.go(&one).await;
    assert_snapshot!(prompt(&two), @r"
    ## Goal
    Build.

    ## Constraints
    - Stay small.

    What the answer needs:
    - Give notes on what you did in this step alone.
    ");
    let back = world.back(&two.tokens).await;
    assert!(prompt(&back).contains(line) && prompt(&back).contains(check), "{}", prompt(&back));
    let three = world.go(&two).await;
    assert!(prompt(&three).starts_with("## Goal\nEnd.\n\nWhat the answer"), "{}", prompt(&three));
}
