//! `cairn guide` and `cairn session resume`: the same runs as agents have, for people.

use std::io::{Read as _, Write as _};
use std::process::Stdio;

use insta::assert_snapshot;
use rustix::process::{Pid, Signal, kill_process};

use crate::env::{Outcome, TestEnv};

const TRIAGE: &str = "
id: project.triage
name: Triage
description: Sorts a report.
version: 1.0.0
steps:
  - {id: read, title: Read the report, prompt: 'Read the report on {{ticket}}.'}
  - id: judge
    title: Judge it
    prompt: Say how grave it is.
    outputContract: {contractRef: wr.contracts.review_verdict}
  - {id: close, title: Close it, prompt: Write the answer.}
";

const VERDICT: &str = r#"{"kind": "wr.review_verdict", "verdict": "clean", "confidence": "high", "findings": [], "summary": "Small."}"#;

fn env() -> TestEnv {
    let env = TestEnv::new();
    std::fs::create_dir(env.path("workflows")).unwrap();
    std::fs::write(env.path("workflows/triage.yaml"), TRIAGE).unwrap();
    env
}

fn answers(env: &TestEnv, lines: &[&str]) {
    std::fs::write(env.path("answers.jsonl"), lines.join("\n")).unwrap();
}

/// What differs from run to run: the two words of the label, and tokens.
fn stable(outcome: &Outcome) -> String {
    let text = outcome.to_string();
    let mut out = String::new();
    for word in text.split_inclusive([' ', '\n', '"', ',']) {
        let bare = word.trim_end_matches([' ', '\n', '"', ',']);
        let rest = word.get(bare.len()..).unwrap_or_default();
        let shown = match bare {
            _ if bare.starts_with("triage-") && bare.contains('.') => "[token]",
            _ if bare.starts_with("triage-") => "[label]",
            _ => bare,
        };
        out.push_str(shown);
        out.push_str(rest);
    }
    match (out.find("moved "), out.find(" ago")) {
        (Some(from), Some(to)) if from < to => out.replace_range(from..to, "moved [age]"),
        _ => {}
    }
    out
}

#[test]
fn a_script_goes_through_a_workflow() {
    let env = env();
    let verdict = format!(r#"{{"step": "judge", "artifacts": [{VERDICT}]}}"#);
    answers(&env, &[r#"{"notes": "Read it."}"#, &verdict, r#"{"notes": "Answered."}"#]);
    let outcome =
        env.run(&["guide", "triage", "--set", "ticket=T-1", "--answers", "answers.jsonl"]);
    let shown = stable(&outcome);
    let long =
        |line: &&str| line.starts_with("  - Its fields") || line.starts_with("  - For example");
    let shown: Vec<&str> = shown.lines().filter(|line| !long(line)).collect();
    assert_snapshot!(shown.join("\n"), @r#"
    exit 0
    --- stdout

    Read the report  read  [label]
      Read the report on T-1.

      What the answer needs:
      - Give notes on what you did in this step alone.

      Mode `guided`: the user is available. Ask them what a step leaves open, and before anything that cannot be undone. What is missing blocks the run until you supply it.
      Risk `conservative`: of two correct approaches choose the one that can be undone, and verify a claim before you rely on it.

      If something keeps you from doing a step as written, say so with `:artifact`:
      - only the user can provide it: {"dependency":"needs_user_artifact","kind":"wr.user_dependency","summary":"<what, and what for>"} (dependency: needs_user_secret_or_token, needs_user_account_access, needs_user_artifact, needs_user_approval, needs_user_environment_action)
      - you deviate from the step on purpose: {"kind":"wr.workflow_divergence","reason":"efficiency_skip","relatedStepId":"read","summary":"<what you did instead>"} (reason: missing_user_context, capability_unavailable, efficiency_skip, safety_stop, policy_constraint)

    Judge it  judge  [label]
      Say how grave it is.

      What the answer needs:
      - Notes are optional in this step.
      - Give an artifact of kind `wr.review_verdict` (wr.contracts.review_verdict): the outcome of a review.

    Close it  close  [label]
      Write the answer.

      What the answer needs:
      - Give notes on what you did in this step alone.
    complete  [label]
    "#);
}

#[test]
fn a_block_is_told_and_the_next_answer_mends_it() {
    let env = env();
    let mended = format!(r#"{{"artifacts": [{VERDICT}]}}"#);
    let lines = [r#"{"notes": "Read."}"#, r#"{"notes": "Grave."}"#, &mended];
    answers(&env, &lines);
    let outcome = env.run(&["guide", "triage", "--answers", "answers.jsonl"]);
    assert_eq!(outcome.code, 5, "it waits for more: {outcome}");
    let blocked = outcome.stdout.find("MISSING_REQUIRED_OUTPUT").unwrap();
    let step = outcome.stdout.rfind("Judge it").unwrap();
    assert!(step < blocked, "what keeps it comes last: {outcome}");
    assert!(outcome.stdout.contains("Close it"), "{outcome}");
    assert!(outcome.stderr.contains("cairn guide --continue triage-"), "{outcome}");
}

#[test]
fn answers_that_belong_elsewhere_are_refused() {
    let env = env();
    answers(&env, &[r#"{"step": "judge", "notes": "Grave."}"#]);
    assert_snapshot!(stable(&env.run(&["guide", "triage", "--answers", "answers.jsonl"])), @r#"
    exit 2
    --- stdout

    Read the report  read  [label]
      Read the report on [unset: ticket].

      What the answer needs:
      - Give notes on what you did in this step alone.

      Mode `guided`: the user is available. Ask them what a step leaves open, and before anything that cannot be undone. What is missing blocks the run until you supply it.
      Risk `conservative`: of two correct approaches choose the one that can be undone, and verify a claim before you rely on it.

      If something keeps you from doing a step as written, say so with `:artifact`:
      - only the user can provide it: {"dependency":"needs_user_artifact","kind":"wr.user_dependency","summary":"<what, and what for>"} (dependency: needs_user_secret_or_token, needs_user_account_access, needs_user_artifact, needs_user_approval, needs_user_environment_action)
      - you deviate from the step on purpose: {"kind":"wr.workflow_divergence","reason":"efficiency_skip","relatedStepId":"read","summary":"<what you did instead>"} (reason: missing_user_context, capability_unavailable, efficiency_skip, safety_stop, policy_constraint)
    context_unset  the prompt mentions `ticket`, which the context does not have; set it there
    --- stderr
    the run waits; go on with
      cairn guide --continue [token]
    error[USAGE_INVALID]: answer 1 is for the step `judge`, and `read` is pending
      → put the answers in the order of the steps, or leave `step` out
    "#);
    answers(&env, &["notes: yes"]);
    assert_snapshot!(env.run(&["guide", "triage", "--answers", "answers.jsonl"]), @r#"
    exit 2
    --- stderr
    error[USAGE_INVALID]: answers.jsonl: expected ident at line 1 column 2
      → give a JSON list, or one JSON object a line, such as {"notes": "Did it."}
    "#);
}

#[test]
fn a_person_types_notes_and_comes_back_later() {
    let env = env();
    let mut command = env.command(&["guide", "workflows/triage.yaml"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b":set ticket=T-9\nRead it all.\n.\n:quit\n").unwrap();
    drop(stdin);
    let left = Outcome::of(child.wait_with_output().unwrap());
    assert_eq!(left.code, 5, "{left}");
    let token = left.stderr.split_whitespace().last().unwrap().to_owned();
    let back = env.run(&["guide", "--continue", &token]);
    assert!(back.stdout.contains("Read it all."), "what happened is told: {back}");
    assert!(back.stdout.contains("Judge it"), "{back}");
    let found = env.run(&["session", "resume", "--query", "read all"]);
    assert_snapshot!(stable(&found), @"
    exit 0
    --- stdout
    [label]  project.triage
      in_progress, moved [age] ago, its last notes match, sess_[fresh]
      project: [tmp]
      next: Judge it
      last: Read it all.
      cairn guide --continue [token]
    ");
    let json = env.run(&["session", "resume", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    let first = json.pointer("/candidates/0/whyMatched/0").unwrap();
    assert_eq!(first, "recency_fallback");
}

#[test]
fn json_is_what_agents_get() {
    let env = env();
    answers(&env, &[r#"{"notes": "Read it."}"#]);
    let outcome = env.run(&["guide", "triage", "--answers", "answers.jsonl", "--json"]);
    let lines: Vec<serde_json::Value> =
        outcome.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2, "{outcome}");
    let steps: Vec<_> = lines.iter().map(|line| line.pointer("/pending/stepId").unwrap()).collect();
    assert_eq!(steps, ["read", "judge"]);
}

#[test]
fn the_file_that_is_named_is_the_one() {
    let env = env();
    let slot =
        "extensionPoints:\n  - {slotId: grader, purpose: Grades., default: wr.code-review}\nsteps:";
    let draft =
        TRIAGE.replace("steps:", slot).replace("on {{ticket}}", "to {{wr.bindings.grader}}");
    for folder in ["drafts/a", ".cairn"] {
        std::fs::create_dir_all(env.path(folder)).unwrap();
    }
    std::fs::write(env.path("drafts/a/other.yaml"), TRIAGE).unwrap();
    std::fs::write(env.path("drafts/triage.yaml"), draft).unwrap();
    std::fs::write(env.path(".cairn/bindings.json"), r#"{"grader": "project.grade"}"#).unwrap();
    let shown = env.run(&["guide", "drafts/triage.yaml"]);
    assert!(shown.stdout.contains("Read the report to project.grade."), "{shown}");
}

#[test]
fn half_an_answer_is_none() {
    let env = env();
    let left = env.run_with_input(&["guide", "triage"], b"Half of wh");
    assert_eq!(left.code, 5, "{left}");
    assert!(left.stderr.contains("no line with a dot"), "{left}");
    assert!(!left.stdout.contains("Judge it"), "{left}");
    let broken = env.run_with_input(&["guide", "triage"], b"Read it.\n\xff\n.\n");
    assert_eq!(broken.code, 1, "{broken}");
    assert!(broken.stderr.contains("error[FILE_IO]: -: "), "{broken}");
    assert!(broken.stderr.contains("cairn guide --continue triage-"), "{broken}");
    assert!(!broken.stdout.contains("Judge it"), "{broken}");
}

const LONG: &str = "
id: project.long
name: Long
description: Takes its time.
version: 1.0.0
steps:
  - {id: wait, title: Wait, run: {type: shell, command: '(echo up; sleep 60; echo on) > pipe & wait'}}
";

const START: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"start_workflow","arguments":{"workflowId":"project.long","workspacePath":"[here]"}}}
"#;

#[test]
fn a_signal_ends_the_commands_of_steps_too() {
    let env = env();
    std::fs::write(env.path("workflows/long.yaml"), LONG).unwrap();
    let pipe = env.path("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let start = START.replace("[here]", env.path("").to_str().unwrap());
    let cases = [
        (["guide", "project.long"].as_slice(), "", Signal::INT, 130),
        (["guide", "project.long"].as_slice(), "", Signal::TERM, 143),
        (["mcp"].as_slice(), &start, Signal::INT, 130),
        (["mcp"].as_slice(), &start, Signal::TERM, 143),
    ];
    for (args, input, signal, code) in cases {
        let mut command = env.command(args);
        command.env("PATH", std::env::var_os("PATH").unwrap());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // The input stays open: it is the signal that ends it.
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(input.as_bytes()).unwrap();
        let mut pipe = std::fs::File::open(&pipe).unwrap();
        pipe.read_exact(&mut [0; 3]).unwrap();
        kill_process(Pid::from_child(&child), signal).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(code), "{args:?}");
        // The pipe ends when nobody is left who could write, and nobody wrote.
        let mut rest = String::new();
        pipe.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "", "{args:?}");
        drop(stdin);
    }
}

const SLOW: &str = "
id: project.slow
name: Slow
description: Takes its time, the first time.
version: 1.0.0
steps:
  - {id: a, title: Begin, prompt: Begin.}
  - {id: slow, title: Wait, run: {type: shell, command: 'if [ -e again ]; then echo quick; else (echo up; sleep 60) > pipe & wait; fi'}}
  - {id: b, title: End, prompt: End.}
";

#[test]
fn a_run_goes_on_over_the_step_that_the_engine_was_interrupted_at() {
    let env = env();
    std::fs::write(env.path("workflows/slow.yaml"), SLOW).unwrap();
    let pipe = env.path("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    answers(&env, &[r#"{"step": "a", "notes": "Begun."}"#, r#"{"step": "b", "notes": "Ended."}"#]);
    let with_path = |args: &[&str]| {
        let mut command = env.command(args);
        command.env("PATH", std::env::var_os("PATH").unwrap());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    };
    let mut guide = with_path(&["guide", "project.slow", "--answers", "answers.jsonl"]);
    let child = guide.spawn().unwrap();
    std::fs::File::open(&pipe).unwrap().read_exact(&mut [0; 3]).unwrap();
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let left = Outcome::of(child.wait_with_output().unwrap());
    assert_eq!(left.code, 130, "{left}");
    let token = left.stderr.split_whitespace().last().unwrap().to_owned();
    std::fs::write(env.path("again"), "").unwrap();
    answers(&env, &[r#"{"step": "b", "notes": "Ended."}"#]);
    let mut guide = with_path(&["guide", "--continue", &token, "--answers", "answers.jsonl"]);
    let outcome = Outcome::of(guide.output().unwrap());
    assert_eq!(outcome.code, 0, "{outcome}");
    assert!(!outcome.stdout.contains("another branch"), "the token is that of the tip: {outcome}");
    assert!(outcome.stdout.contains("quick"), "{outcome}");
    assert!(outcome.stdout.contains("complete"), "{outcome}");
}

#[test]
fn what_was_typed_is_given_back_when_a_signal_comes() {
    let env = env();
    let mut command = env.command(&["guide", "triage"]);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"Read half of it.\n:draft\n").unwrap();
    let mut stderr = child.stderr.take().unwrap();
    let mut told = String::new();
    // It has taken the line down once it shows it.
    while !told.contains("  Read half of it.\n") {
        let mut byte = [0; 1];
        stderr.read_exact(&mut byte).unwrap();
        told.extend(byte.map(char::from));
    }
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(rest.contains("was not sent, and is not kept:\n  Read half of it.\n"), "{rest}");
    assert!(rest.contains("cairn guide --continue triage-"), "{rest}");
    drop(stdin);
}

#[test]
fn a_signal_ends_the_wait_for_an_answer() {
    let env = env();
    let mut command = env.command(&["guide", "triage"]);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let stdin = child.stdin.take();
    // It asks for notes now.
    let mut asked = [0; 6];
    child.stderr.as_mut().unwrap().read_exact(&mut asked).unwrap();
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let mut told = String::new();
    child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(told.contains("cairn guide --continue triage-"), "the way back: {told}");
    drop(stdin);
}

#[test]
fn what_was_typed_stays_until_the_run_has_taken_it() {
    let env = env();
    let typed = format!(
        "Read it.\n.\nGrave.\n.\n:artifact {{\"verdict\": 1}}\n.\n:drop\nSmall after all.\n:again\n:artifact {VERDICT}\n:draft\n.\n:quit\n"
    );
    let outcome = env.run_with_input(&["guide", "triage"], typed.as_bytes());
    // The first try lacks the verdict, the second has a bad artifact, the third is right.
    assert!(outcome.stdout.contains("MISSING_REQUIRED_OUTPUT"), "{outcome}");
    assert!(outcome.stderr.contains("not taken[VALIDATION_ERROR]"), "{outcome}");
    assert!(outcome.stdout.contains("Close it"), "{outcome}");
    assert!(outcome.stderr.contains("  Small after all.\n  :artifact {"), "{outcome}");
    assert_eq!(outcome.code, 5, "{outcome}");
    let told = env.run(&["session", "resume", "--json"]).stdout;
    assert!(told.contains("Small after all.") && !told.contains("Grave."), "{told}");
}

#[test]
fn an_answer_that_is_refused_to_the_end_is_told_with_the_way_back() {
    let env = env();
    let outcome = env.run_with_input(&["guide", "triage"], b":artifact {\"a\": 1}\nRead.\n.\n");
    assert_eq!(outcome.code, 2, "{outcome}");
    assert!(outcome.stderr.contains("error[VALIDATION_ERROR]"), "{outcome}");
    assert!(outcome.stderr.contains("cairn guide --continue triage-"), "{outcome}");
}

#[test]
fn a_command_that_is_not_known_is_no_note() {
    let env = env();
    let typed = b":artefact {}\n:set foo\n::x is a note\n.\n";
    let outcome = env.run_with_input(&["guide", "triage"], typed);
    assert!(outcome.stderr.contains("write :set NAME=VALUE"), "{outcome}");
    assert!(outcome.stderr.contains("there is no `:artefact`; there are:"), "{outcome}");
    let lines = outcome.stderr.lines().filter(|line| line.starts_with("  :"));
    let what = |line: &str| line.chars().collect::<Vec<_>>().get(23..25).map(<[char]>::to_vec);
    let gaps: Vec<_> = lines.map(what).collect();
    assert_eq!(gaps, vec![Some(vec![' ', ' ']); 7], "the second column is straight: {outcome}");
    let told = env.run(&["session", "resume", "--json"]).stdout;
    assert!(told.contains(":x is a note") && !told.contains("artefact"), "{told}");
}

#[test]
fn going_on_from_an_older_step_is_announced_as_a_fork() {
    let env = env();
    let first = env.run_with_input(&["guide", "triage"], b":quit\n");
    let token = first.stderr.split_whitespace().last().unwrap().to_owned();
    let once = env.run_with_input(&["guide", "--continue", &token], b"Read it once.\n.\n:quit\n");
    assert!(!once.stdout.contains("another branch"), "{once}");
    let again = env.run_with_input(&["guide", "--continue", &token], b"");
    assert!(again.stdout.contains("your answer starts another branch"), "{again}");
    assert!(again.stdout.contains("  1 node, the newest: Read it once.\n"), "{again}");
    assert!(again.stdout.contains("    cairn guide --continue triage-"), "{again}");
}

#[test]
fn a_run_is_found_by_its_label_and_by_its_session() {
    let env = env();
    let one = env.run_with_input(&["guide", "triage"], b"The first one.\n.\n:quit\n");
    env.run_with_input(&["guide", "triage"], b"The second one.\n.\n:quit\n");
    let token = one.stderr.split_whitespace().last().unwrap();
    let label = token.split('.').next().unwrap();
    let listed = env.run(&["session", "list"]).stdout;
    assert!(listed.contains("LABEL") && listed.contains(label), "{listed}");
    let shown = env.run(&["session", "show", label]);
    assert!(shown.code == 0 && shown.stdout.contains(label), "{shown}");
    let session = shown.stdout.split_whitespace().find(|word| word.starts_with("sess_")).unwrap();
    for query in [label, session, &session[..14], token, &format!("the run {label}")] {
        let found = env.run(&["session", "resume", "--query", query, "--json"]).stdout;
        let found: serde_json::Value = serde_json::from_str(&found).unwrap();
        let first = found.pointer("/candidates/0").unwrap();
        assert_eq!(first.pointer("/session/label").unwrap(), label, "{query}");
        assert_eq!(first.pointer("/whyMatched/0").unwrap(), "matched_identifier", "{query}");
    }
    let unknown = env.run(&["session", "show", "calm-otter"]);
    assert!(unknown.stderr.contains("SESSION_NOT_FOUND"), "{unknown}");
}
