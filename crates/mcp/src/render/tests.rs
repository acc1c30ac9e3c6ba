use cairn_api::guided::answer::{Answer, Resumed};
use cairn_core::event::guided::{Autonomy, Preferences, RiskPolicy};
use cairn_core::id::{NodeId, RunId, SessionId};
use cairn_core::projection::resume::WhyMatched;
use cairn_core::reason::{Blocker, BlockerCode, Pointer};
use cairn_engine::guided::answer as engine;
use engine::{Lifecycle, NextIntent};
use insta::assert_snapshot;

use super::*;

/// How long an answer to an ordinary advance may be without its prompt, in bytes.
const ADVANCE_MAX: usize = 600;

/// The run that all of this is about.
const LABEL: &str = "calm-otter-7f3a";
const NOW_MS: u64 = 1_700_000_000_000;

fn run() -> engine::RunRef {
    engine::RunRef { session: SessionId::mint(NOW_MS, 7), run: RunId::mint(NOW_MS, 8) }
}

/// A token of the run.
fn token(name: &str) -> String {
    format!("{LABEL}.{name}")
}

fn advance() -> engine::Answer {
    engine::Answer {
        lifecycle: Lifecycle::Advance,
        blockers: Vec::new(),
        retry_continue_token: None,
        tokens: engine::TokenSet {
            continue_token: token("CONTINUE"),
            checkpoint_token: Some(token("CHECKPOINT")),
            pair: None,
        },
        label: LABEL.into(),
        pending: Some(engine::Pending {
            step_id: "plan".into(),
            title: "Plan the fix".into(),
            prompt: "Write a plan.".into(),
            require_confirmation: false,
            asks: Asks::default(),
            is_owed: false,
        }),
        is_complete: false,
        next_intent: NextIntent::PerformPendingThenContinue,
        session: None,
        preferences: None,
        step_context: None,
        warnings: Vec::new(),
        recap: None,
        branches: Vec::new(),
        references: Vec::new(),
        standing: None,
    }
}

fn with_run(lifecycle: Lifecycle) -> engine::Answer {
    let reference = engine::Reference {
        title: "Style guide".into(),
        path: "docs/style.md".into(),
        purpose: "How code reads here".into(),
        authoritative: true,
        resolved: false,
    };
    engine::Answer {
        lifecycle,
        session: Some(run()),
        preferences: Some(Preferences {
            autonomy: Autonomy::Guided,
            risk_policy: RiskPolicy::Conservative,
        }),
        references: vec![reference],
        ..advance()
    }
}

/// The texts of an answer, as an agent reads them one after the other.
fn read(found: engine::Answer) -> String {
    answer(found).texts.join("\n=====\n")
}

fn data(found: engine::Answer) -> String {
    serde_json::to_string_pretty(&answer(found).data).unwrap()
}

#[test]
fn a_step_comes_with_what_to_call_next() {
    assert_snapshot!(read(advance()), @r#"
    Write a plan.

    ---
    nextIntent: perform_pending_then_continue. When the step is done, call continue_workflow with
    {"continueToken":"calm-otter-7f3a.CONTINUE","output":{"notesMarkdown":"<what you did in this step alone>"}}
    Its answer is the next step: do not guess it or work ahead. To record notes before that, call checkpoint_workflow with checkpointToken "calm-otter-7f3a.CHECKPOINT".
    Run calm-otter-7f3a, step `plan`: Plan the fix.
    "#);
    assert_snapshot!(data(advance()), @r#"
    {
      "kind": "ok",
      "continueToken": "calm-otter-7f3a.CONTINUE",
      "checkpointToken": "calm-otter-7f3a.CHECKPOINT",
      "pending": {
        "stepId": "plan",
        "title": "Plan the fix",
        "prompt": "Write a plan.",
        "requireConfirmation": false
      },
      "isComplete": false,
      "nextIntent": "perform_pending_then_continue",
      "label": "calm-otter-7f3a"
    }
    "#);
}

#[test]
fn the_call_has_a_place_for_the_artifact_that_a_step_owes() {
    let mut found = advance();
    let artifacts = vec![json!({"kind": "a", "x": "<…>"}), json!({"kind": "b"})];
    let context = vec![("size".to_owned(), "small | large".to_owned())];
    let asks = Asks { artifacts, context, ..Asks::default() };
    found.pending = found.pending.map(|p| engine::Pending { asks, ..p });
    let told = read(found);
    assert!(told.contains(r#""artifacts":[{"kind":"a","x":"<…>"},{"kind":"b"}]"#), "{told}");
    assert!(told.contains(r#""context":{"size":"<small | large>"}"#), "{told}");
    assert!(!read(advance()).contains("artifacts"), "{}", read(advance()));
}

#[test]
fn what_was_not_recorded_is_told_first_with_the_call_that_records_it() {
    let warning = engine::Warning {
        code: engine::WarningCode::ReplayedWithOtherInput,
        message: "not recorded: notes".into(),
    };
    let found = engine::Answer { warnings: vec![warning], ..advance() };
    assert_snapshot!(read(found), @r#"
    NOT RECORDED: notes.

    ---
    Write a plan.

    ---
    nextIntent: perform_pending_then_continue. To record what you sent as a new branch, call continue_workflow with
    {"continueToken":"calm-otter-7f3a.CONTINUE","output":{"notesMarkdown":"<what you did in this step alone>"}}
    Its answer is the next step: do not guess it or work ahead. To record notes before that, call checkpoint_workflow with checkpointToken "calm-otter-7f3a.CHECKPOINT".
    Run calm-otter-7f3a, step `plan`: Plan the fix.
    "#);
}

#[test]
fn an_advance_stays_within_its_budget() {
    let longest = "x".repeat(96);
    let mut found = advance();
    found.tokens.continue_token.clone_from(&longest);
    found.tokens.checkpoint_token = Some(longest);
    found.pending = found.pending.map(|pending| engine::Pending {
        step_id: "investigate-the-root-cause.gather-evidence".into(),
        title: "Phase 3: Gather evidence for each of the hypotheses that are left".into(),
        prompt: String::new(),
        ..pending
    });
    let bytes = serde_json::to_vec(&Answer::from(found)).unwrap().len();
    assert!(bytes <= ADVANCE_MAX, "{bytes} bytes");
}

#[test]
fn a_start_says_which_run_it_is_and_all_about_its_references() {
    assert_snapshot!(read(with_run(Lifecycle::Start)), @r#"
    Write a plan.

    ---
    nextIntent: perform_pending_then_continue. When the step is done, call continue_workflow with
    {"continueToken":"calm-otter-7f3a.CONTINUE","output":{"notesMarkdown":"<what you did in this step alone>"}}
    Its answer is the next step: do not guess it or work ahead. To record notes before that, call checkpoint_workflow with checkpointToken "calm-otter-7f3a.CHECKPOINT".
    Run calm-otter-7f3a (run_01hf7yat000000000000000008, sess_01hf7yat000000000000000007), step `plan`: Plan the fix.
    =====
    References of this workflow:
    - Style guide: docs/style.md [unresolved]
      How code reads here (follow it strictly)
    =====
    preferences: autonomy guided, riskPolicy conservative.
    "#);
    assert_snapshot!(data(with_run(Lifecycle::Start)), @r#"
    {
      "kind": "ok",
      "continueToken": "calm-otter-7f3a.CONTINUE",
      "checkpointToken": "calm-otter-7f3a.CHECKPOINT",
      "pending": {
        "stepId": "plan",
        "title": "Plan the fix",
        "prompt": "Write a plan.",
        "requireConfirmation": false
      },
      "isComplete": false,
      "nextIntent": "perform_pending_then_continue",
      "session": {
        "sessionId": "sess_01hf7yat000000000000000007",
        "runId": "run_01hf7yat000000000000000008",
        "label": "calm-otter-7f3a"
      },
      "preferences": {
        "autonomy": "guided",
        "riskPolicy": "conservative"
      }
    }
    "#);
}

#[test]
fn coming_back_brings_a_recap_and_the_branches_there_are() {
    let found = engine::Answer {
        recap: Some(engine::Recap { text: "Found the cause.".into(), omitted: 3 }),
        branches: vec![engine::BranchSummary {
            node: NodeId::mint(1_700_000_000_000, 9),
            preferred: true,
            nodes: 4,
            is_complete: false,
            at: Some("ship".into()),
            summary: "Fixed it\nwith a test.".into(),
            continue_token: token("TIP"),
        }],
        warnings: vec![engine::Warning {
            code: engine::WarningCode::PinnedDrift,
            message: "the file changed".into(),
        }],
        ..with_run(Lifecycle::Rehydrate)
    };
    assert_snapshot!(read(found.clone()), @r#"
    DONE BEFORE: `plan` is done already, and the run is at `ship` there. To see that, call continue_workflow with continueToken "calm-otter-7f3a.TIP" alone. What follows is the step as it was; the call that it shows makes a new branch.

    ---
    Write a plan.

    ---
    nextIntent: perform_pending_then_continue. To do the step another way, call continue_workflow with
    {"continueToken":"calm-otter-7f3a.CONTINUE","output":{"notesMarkdown":"<what you did in this step alone>"}}
    Its answer is the next step: do not guess it or work ahead. To record notes before that, call checkpoint_workflow with checkpointToken "calm-otter-7f3a.CHECKPOINT".
    Run calm-otter-7f3a (run_01hf7yat000000000000000008, sess_01hf7yat000000000000000007), step `plan`: Plan the fix.
    =====
    References of this workflow:
    - Style guide: docs/style.md [unresolved]
    =====
    warnings; they do not stop the run:
    - pinned_drift: the file changed
    =====
    preferences: autonomy guided, riskPolicy conservative.
    =====
    recap: what happened so far, as it was recorded then:

    > Found the cause.
    =====
    branches: the run has continued from this step before. To continue one of these branches instead of starting another, use its continueToken.
    - at `ship`, the newest, continueToken "calm-otter-7f3a.TIP"
      Fixed it
      with a test.
    "#);
    assert_snapshot!(data(found), @r#"
    {
      "kind": "ok",
      "continueToken": "calm-otter-7f3a.CONTINUE",
      "checkpointToken": "calm-otter-7f3a.CHECKPOINT",
      "pending": {
        "stepId": "plan",
        "title": "Plan the fix",
        "prompt": "Write a plan.",
        "requireConfirmation": false
      },
      "isComplete": false,
      "nextIntent": "perform_pending_then_continue",
      "session": {
        "sessionId": "sess_01hf7yat000000000000000007",
        "runId": "run_01hf7yat000000000000000008",
        "label": "calm-otter-7f3a"
      },
      "preferences": {
        "autonomy": "guided",
        "riskPolicy": "conservative"
      },
      "warnings": [
        {
          "code": "pinned_drift",
          "message": "the file changed"
        }
      ],
      "recap": {
        "text": "Found the cause.",
        "truncation": {
          "omittedEntries": 3,
          "policy": "kept_most_recent"
        }
      },
      "branches": [
        {
          "nodeId": "node_01hf7yat000000000000000009",
          "preferred": true,
          "nodes": 4,
          "isComplete": false,
          "pendingStepId": "ship",
          "summary": "Fixed it\nwith a test.",
          "continueToken": "calm-otter-7f3a.TIP"
        }
      ]
    }
    "#);
}

#[test]
fn a_block_says_what_is_missing_and_how_to_try_again() {
    let found = engine::Answer {
        blockers: vec![Blocker {
            code: BlockerCode::MissingRequiredOutput,
            pointer: Pointer::OutputContract { contract_ref: "wr.contracts.loop_control".into() },
            message: "the step owes an artifact of kind `wr.loop_control`".into(),
            suggested_fix: Some(r#"add {"kind":"wr.loop_control","decision":"stop"}"#.into()),
        }],
        retry_continue_token: Some(token("RETRY")),
        ..advance()
    };
    assert_snapshot!(read(found.clone()), @r#"
    BLOCKED: the run stays at this step.

    1. MISSING_REQUIRED_OUTPUT: the step owes an artifact of kind `wr.loop_control`
       suggestedFix: add {"kind":"wr.loop_control","decision":"stop"}

    ---
    nextIntent: perform_pending_then_continue. Do each suggestedFix, then send the whole output again; the continueToken below is the `retryContinueToken` of this answer. Context and preferences that you sent are recorded; send only what changed.
    {"continueToken":"calm-otter-7f3a.RETRY","output":{"notesMarkdown":"<what you did in this step alone>"}}
    Still pending: Plan the fix (`plan`). To see its prompt again, send the token alone. To continue another day, stop here and tell the user: this token stays valid, and resume_session finds the run in a new chat.
    Run calm-otter-7f3a.
    "#);
    assert_snapshot!(data(found), @r#"
    {
      "kind": "blocked",
      "continueToken": "calm-otter-7f3a.CONTINUE",
      "checkpointToken": "calm-otter-7f3a.CHECKPOINT",
      "pending": {
        "stepId": "plan",
        "title": "Plan the fix",
        "prompt": "Write a plan.",
        "requireConfirmation": false
      },
      "isComplete": false,
      "nextIntent": "perform_pending_then_continue",
      "label": "calm-otter-7f3a",
      "blockers": [
        {
          "code": "MISSING_REQUIRED_OUTPUT",
          "pointer": {
            "kind": "output_contract",
            "contractRef": "wr.contracts.loop_control"
          },
          "message": "the step owes an artifact of kind `wr.loop_control`",
          "suggestedFix": "add {\"kind\":\"wr.loop_control\",\"decision\":\"stop\"}"
        }
      ],
      "retryContinueToken": "calm-otter-7f3a.RETRY"
    }
    "#);
}

#[test]
fn the_end_is_told_as_the_end() {
    let found = engine::Answer {
        pending: None,
        is_complete: true,
        next_intent: NextIntent::Complete,
        ..advance()
    };
    assert_snapshot!(read(found), @r"
    nextIntent: complete. The workflow is complete: call nothing more for this run, and tell the user its outcome.
    Run calm-otter-7f3a.
    ");
}

#[test]
fn a_confirmation_and_a_pair_of_tokens_change_what_to_call() {
    let found = engine::Answer {
        next_intent: NextIntent::AwaitUserConfirmation,
        tokens: engine::TokenSet {
            pair: Some(("st.v1.x".into(), "ack.v1.y".into())),
            ..advance().tokens
        },
        ..advance()
    };
    assert_snapshot!(read(found), @r#"
    Write a plan.

    ---
    nextIntent: await_user_confirmation. Do the step, show the user the result and wait for their yes. Then call continue_workflow with
    {"ackToken":"ack.v1.y","output":{"notesMarkdown":"<what you did in this step alone>"},"stateToken":"st.v1.x"}
    Its answer is the next step: do not guess it or work ahead. To record notes before that, call checkpoint_workflow with checkpointToken "calm-otter-7f3a.CHECKPOINT". To continue another day, stop here and tell the user: this token stays valid, and resume_session finds the run in a new chat.
    Run calm-otter-7f3a, step `plan`: Plan the fix.
    "#);
}

#[test]
fn accepted_assessments_are_told() {
    let assessment = engine::Accepted {
        assessment_id: "readiness".into(),
        dimensions: vec![engine::AcceptedDimension {
            dimension_id: "confidence".into(),
            level: "high".into(),
            rationale: Some("reproduced".into()),
        }],
        normalization_notes: vec!["`HIGH` was read as `high`".into()],
    };
    let found = engine::Answer {
        step_context: Some(engine::StepContext { assessments: vec![assessment] }),
        ..advance()
    };
    assert_snapshot!(answer(found.clone()).texts[1], @r"
    About the step just done:
    - assessment readiness was accepted: confidence=high
      note: `HIGH` was read as `high`
    ");
    let facts = serde_json::to_string(&answer(found).data.step_context).unwrap();
    assert_snapshot!(facts, @r#"{"assessments":{"assessmentId":"readiness","dimensions":[{"dimensionId":"confidence","level":"high","rationale":"reproduced"}],"normalizationNotes":["`HIGH` was read as `high`"]}}"#);
}

#[test]
fn a_failure_says_what_to_do() {
    let error = Error::SessionUnknown(run().session.to_string());
    let told = failure(&error);
    assert_snapshot!(told.texts[0], @r#"
    ERROR SESSION_NOT_FOUND: there is no session sess_01hf7yat000000000000000007
    Do: leave out sessionId to begin a new session, or find one with resume_session
    Retry: the same call fails again.
    Details: {"sessionId":"sess_01hf7yat000000000000000007"}
    "#);
    assert_eq!(told.data["code"], "SESSION_NOT_FOUND");
}

#[test]
fn kept_notes_and_runs_to_resume_come_with_what_to_call_next() {
    let kept = engine::Checkpointed {
        label: LABEL.into(),
        node: NodeId::mint(NOW_MS, 9),
        tokens: advance().tokens,
        recorded: true,
        next: engine::AfterCheckpoint::Step,
        warnings: Vec::new(),
    };
    let notes = engine::Checkpointed { next: engine::AfterCheckpoint::Notes, ..kept.clone() };
    assert_snapshot!(checkpointed(notes).texts[0], @r#"
    Recorded.
    The next checkpoint takes checkpointToken "calm-otter-7f3a.CHECKPOINT".
    Session calm-otter-7f3a.
    "#);
    assert_snapshot!(checkpointed(kept).texts[0], @r#"
    Recorded. The step is still pending; when it is done, send what it asks for with this continueToken; alone it shows the step again:
    {"continueToken":"calm-otter-7f3a.CONTINUE"}
    The next checkpoint takes checkpointToken "calm-otter-7f3a.CHECKPOINT".
    Run calm-otter-7f3a.
    "#);
    let candidate = engine::Resumable {
        run: run(),
        label: LABEL.into(),
        workflow_id: "wr.code-review".into(),
        goal: Some("Make the checkout faster.".into()),
        project: Some("/work/shop".into()),
        idle_sec: 7_300,
        branch: false,
        status: "blocked",
        blocked_by: vec!["the answer to `plan` has no notes".into()],
        pending_step: Some("Plan the fix".into()),
        why: vec![WhyMatched::MatchedBranch, WhyMatched::MatchedNotes],
        snippet: "Found the cause.\nIt is the cache.".into(),
        continue_token: token("TIP"),
    };
    let latest = engine::Resumable { why: vec![WhyMatched::RecencyFallback], ..candidate.clone() };
    let latest = Resumed::new(vec![latest], &[]);
    let (words, nothing) = (Looked { words: true, ..Looked::default() }, Looked::default());
    let folder = Looked { folder: true, ..nothing };
    let none = "No run matches all of these words; these moved last.";
    assert!(resumed(&latest, &words).starts_with(none), "{}", resumed(&latest, &words));
    let there = resumed(&latest, &folder);
    assert!(there.contains("leaves none out: `project` says"), "{there}");
    assert!(resumed(&latest, &nothing).starts_with("These runs moved last."));
    assert!(!resumed(&latest, &nothing).contains("recency_fallback"));
    let more = Resumed { more: 6, ..latest };
    assert!(resumed(&more, &nothing).contains("6 more are not shown"), "{more:?}");
    assert_snapshot!(resumed(&Resumed::new(vec![candidate], &[]), &words), @r#"
    Runs, best match first. Take the one that fits, or ask the user; then call continue_workflow with its continueToken alone.

    1. calm-otter-7f3a: wr.code-review, blocked, moved 2 h ago (matched_branch, matched_notes)
       goal: Make the checkout faster.
       project: /work/shop
       pending step: Plan the fix
       blocked: the answer to `plan` has no notes
       continueToken: "calm-otter-7f3a.TIP"
       > Found the cause.
       > It is the cache.
    "#);
    assert_snapshot!(resumed(&Resumed::new(Vec::new(), &[]), &nothing), @"There is no run to resume. Choose a workflow with list_workflows.");
    let paper = SessionId::from_bits(7);
    assert_snapshot!(resumed(&Resumed::new(Vec::new(), &[paper]), &nothing), @r"
    There is no run to resume. Choose a workflow with list_workflows.

    1 imported session waits for a person's trust; until then no run of it can be resumed. Tell the user: `cairn session trust sess_00000000000000000000000007` shows what it would do and asks.
    ");
    let opened = engine::SessionOpened {
        session: run().session,
        label: LABEL.into(),
        session_token: token("NOTES"),
    };
    assert_snapshot!(session_opened(&opened.into()), @r#"Session sess_01hf7yat000000000000000007 (calm-otter-7f3a) is open. Record notes with checkpoint_workflow and sessionToken "calm-otter-7f3a.NOTES"; each answer has the token for the next."#);
}

fn standing(status: &'static str) -> engine::Standing {
    let (asks, doing, cut_off) = (Vec::new(), Vec::new(), Vec::new());
    engine::Standing { status, result: None, error: None, asks, more: 0, doing, cut_off }
}

/// An answer about an automation.
fn automation(standing: engine::Standing, is_complete: bool) -> engine::Answer {
    let next_intent = match (is_complete, standing.status) {
        (true, "succeeded") => NextIntent::Complete,
        (true, _) => NextIntent::Ended,
        (false, _) => NextIntent::RehydrateOnly,
    };
    let standing = Some(standing);
    let found = engine::Answer { is_complete, next_intent, standing, pending: None, ..advance() };
    let mut found = engine::Answer { session: Some(run()), ..found };
    found.tokens.checkpoint_token = None;
    found
}

#[test]
fn an_automation_at_work_says_what_it_is_at() {
    let busy = engine::Standing {
        doing: vec!["fetch".into(), "each@2::send".into()],
        ..standing("running")
    };
    assert_snapshot!(read(automation(busy, false)), @r#"
    There is no step for you now: the engine is working (running `fetch`, `each@2::send`).

    ---
    nextIntent: rehydrate_only. To see where the run stands, call continue_workflow with
    {"continueToken":"calm-otter-7f3a.CONTINUE"}
    That call waits a while for the next step, and changes nothing. To continue another day, stop here and tell the user: this token stays valid, and resume_session finds the run once it waits for an agent.
    Run calm-otter-7f3a (run_01hf7yat000000000000000008, sess_01hf7yat000000000000000007).
    "#);
    assert_snapshot!(read(automation(standing("paused"), false)), @r#"
    There is no step for you now: the run is paused. Tell the user: `cairn runs resume run_01hf7yat000000000000000008` resumes it.

    ---
    nextIntent: rehydrate_only. Once that is done, call continue_workflow with
    {"continueToken":"calm-otter-7f3a.CONTINUE"}
    That call waits a while for the next step, and changes nothing. To continue another day, stop here and tell the user: this token stays valid, and resume_session finds the run once it waits for an agent.
    Run calm-otter-7f3a (run_01hf7yat000000000000000008, sess_01hf7yat000000000000000007).
    "#);
    assert_snapshot!(read(automation(standing("waiting"), false)), @r#"
    There is no step for you now: the run waits for a time, another run or a decision; `cairn runs show run_01hf7yat000000000000000008` says which.

    ---
    nextIntent: rehydrate_only. To see where the run stands, call continue_workflow with
    {"continueToken":"calm-otter-7f3a.CONTINUE"}
    That call waits a while for the next step, and changes nothing. To continue another day, stop here and tell the user: this token stays valid, and resume_session finds the run once it waits for an agent.
    Run calm-otter-7f3a (run_01hf7yat000000000000000008, sess_01hf7yat000000000000000007).
    "#);
}

#[test]
fn a_question_to_a_person_is_passed_on() {
    let asked = engine::Question {
        step: "check".into(),
        task: cairn_core::id::TaskId::from_bits(7),
        prompt: "Refund 12 EUR?".into(),
        who: vec!["ada".into(), "bo".into()],
        form: Some(serde_json::json!({
            "properties": {"why": {"type": "string"}},
            "required": ["why"],
        })),
    };
    let waits = engine::Standing { asks: vec![asked], ..standing("waiting") };
    assert_snapshot!(read(automation(waits, false)), @r#"
    There is no step for you now: the run waits for a person.

    `check` asks ada, bo: Refund 12 EUR?
      why  string, required
      → cairn runs answer run_01hf7yat000000000000000008 task_00000000000000000000000007 --approve --set why=… --by ada  (or --reject)
      or POST /api/v1/runs/run_01hf7yat000000000000000008/tasks/task_00000000000000000000000007/answer
    Tell the user. The answer is theirs: do not answer for them.

    ---
    nextIntent: rehydrate_only. Once they have answered, call continue_workflow with
    {"continueToken":"calm-otter-7f3a.CONTINUE"}
    That call waits a while for the next step, and changes nothing. To continue another day, stop here and tell the user: this token stays valid, and resume_session finds the run once it waits for an agent.
    Run calm-otter-7f3a (run_01hf7yat000000000000000008, sess_01hf7yat000000000000000007).
    "#);
}

#[test]
fn a_step_that_was_cut_off_is_left_to_the_user() {
    let cut = engine::Standing { cut_off: vec!["charge".into()], ..standing("waiting") };
    let told = read(automation(cut, false));
    let command = "cairn runs resolve run_01hf7yat000000000000000008 charge --decision";
    assert!(told.contains(command) && told.contains("The decision is theirs."), "{told}");
}

#[test]
fn the_end_of_an_automation_brings_its_result() {
    let result = Some(serde_json::json!({"sent": 3}));
    assert_snapshot!(read(automation(engine::Standing { result, ..standing("succeeded") }, true)), @r#"
    nextIntent: complete. The automation is complete. Call nothing more for this run, and tell the user its outcome.

    Result: {"sent":3}
    Run calm-otter-7f3a (run_01hf7yat000000000000000008, sess_01hf7yat000000000000000007).
    "#);
    let error = engine::RunError {
        code: "HTTP_STATUS".into(),
        message: "503 came back".into(),
        step: Some("send".into()),
    };
    let failed = engine::Standing { error: Some(error), ..standing("failed") };
    assert_snapshot!(read(automation(failed, true)), @r"
    nextIntent: ended. The automation failed at `send`: HTTP_STATUS: 503 came back. Call nothing more for this run, and tell the user its outcome.
    Run calm-otter-7f3a (run_01hf7yat000000000000000008, sess_01hf7yat000000000000000007).
    ");
}

#[test]
fn steps_that_wait_are_counted() {
    let mut found = advance();
    found.tokens.checkpoint_token = None;
    found.standing = Some(engine::Standing { more: 2, ..standing("waiting") });
    assert_snapshot!(read(found), @r#"
    Write a plan.

    ---
    nextIntent: perform_pending_then_continue. When the step is done, call continue_workflow with
    {"continueToken":"calm-otter-7f3a.CONTINUE","output":{"notesMarkdown":"<what you did in this step alone>"}}
    Its answer is the next step: do not guess it or work ahead.
    Run calm-otter-7f3a, step `plan`: Plan the fix.
    =====
    2 more steps wait for you: they come one after the other.
    "#);
}
