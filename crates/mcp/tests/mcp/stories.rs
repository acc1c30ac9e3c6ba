//! Agents that follow every answer to the letter, and arrive where it says.
//!
//! An agent here knows nothing but the text of the last answer: it sends the call that the text
//! shows, with its own words in the places that are left open.

use cairn_api::token::Scope;
use cairn_engine::performer::Performers;
use cairn_mcp::Door;
use serde_json::{Value, json};

use crate::protocol::{call, door_to, folder};

/// What a call that is shown leaves open.
const NOTES: &str = "<what you did in this step alone>";

/// An answer as an agent has it.
struct Told {
    text: String,
    data: Value,
}

impl Told {
    fn new(mut result: Value) -> Self {
        assert_eq!(result["isError"], false, "{result:#}");
        let texts = result["content"].as_array().unwrap().iter();
        let texts: Vec<&str> = texts.map(|item| item["text"].as_str().unwrap()).collect();
        Self { text: texts.join("\n\n"), data: result["structuredContent"].take() }
    }

    /// The call that the text shows, word for word.
    fn shown(&self) -> Value {
        let calls = self.text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let mut calls = calls.filter(|call| call.get("continueToken").is_some());
        calls.next().unwrap_or_else(|| panic!("no call is shown:\n{}", self.text))
    }

    /// The shown call with the places filled in that it leaves open.
    fn filled(&self, notes: &str, artifacts: &[Value]) -> Value {
        let mut call = self.shown();
        assert_eq!(call["output"]["notesMarkdown"], NOTES, "{}", self.text);
        call["output"]["notesMarkdown"] = json!(notes);
        if !artifacts.is_empty() {
            let kinds = |all: &Value| {
                let all = all.as_array().unwrap_or_else(|| panic!("{}", self.text)).iter();
                all.map(|artifact| artifact["kind"].clone()).collect::<Vec<_>>()
            };
            let artifacts = json!(artifacts);
            assert_eq!(kinds(&call["output"]["artifacts"]), kinds(&artifacts), "{}", self.text);
            call["output"]["artifacts"] = artifacts;
        }
        call
    }

    fn step(&self) -> &str {
        self.data["pending"]["stepId"].as_str().unwrap_or("-")
    }

    #[track_caller]
    fn says(&self, part: &str) {
        assert!(self.text.contains(part), "`{part}` is not in:\n{}", self.text);
    }
}

async fn start(door: &Door, arguments: Value) -> Told {
    Told::new(call(door, "start_workflow", arguments).await)
}

async fn send(door: &Door, arguments: Value) -> Told {
    Told::new(call(door, "continue_workflow", arguments).await)
}

async fn go(door: &Door, at: &Told, notes: &str) -> Told {
    send(door, at.filled(notes, &[])).await
}

fn guided(steps: &str) -> (tempfile::TempDir, Door) {
    let text =
        format!("id: project.story\nname: Story\ndescription: A story.\nversion: 1.0.0\n{steps}");
    let (home, catalog) = folder("story", &text);
    (home, door_to(catalog, Performers::default()))
}

const PLAIN: &str = "steps:
  - {id: first, title: First, prompt: Do the first thing.}
  - {id: second, title: Second, prompt: Do the second thing.}
  - {id: third, title: Third, prompt: Do the third thing.}
";

#[tokio::test]
async fn a_block_keeps_the_facts_that_came_with_it() {
    let (_home, door) = guided(
        "steps:
  - id: look
    title: Look
    prompt: Look at it. Set `risky` in the context.
    validationCriteria: [{type: contains, value: 'Finding', message: name a finding}]
  - {id: careful, title: Careful, prompt: Take care., runCondition: {var: risky}}
  - {id: end, title: End, prompt: End it.}
",
    );
    let first = start(&door, json!({"workflowId": "project.story"})).await;
    let mut bad = first.filled("It is risky.", &[]);
    bad["context"] = json!({"risky": true});
    let blocked = send(&door, bad).await;
    assert_eq!(blocked.data["kind"], "blocked");
    blocked.says("Context and preferences that you sent are recorded");
    let next = go(&door, &blocked, "Finding 1: it is risky.").await;
    assert_eq!(next.step(), "careful", "{}", next.text);
}

#[tokio::test]
async fn a_rewound_agent_gets_a_branch_of_its_own() {
    let (_home, mut door) = guided(PLAIN);
    door.holder.scopes.push(Scope::Read);
    let first = start(&door, json!({"workflowId": "project.story"})).await;
    let second = go(&door, &first, "Used a list.").await;
    let third = go(&door, &second, "Sorted the list.").await;
    assert_eq!(third.step(), "third");
    // The chat is rewound: the agent does the first step again, and knows of nothing later.
    let rewound = go(&door, &first, "Used a map.").await;
    rewound.says("NOT RECORDED: notes.");
    assert_eq!(rewound.step(), "first", "the place that was rewound to");
    let again = go(&door, &rewound, "Used a map.").await;
    assert_eq!(again.step(), "second");
    again.says("this is a new branch");
    let seen = send(&door, json!({"continueToken": again.data["continueToken"]})).await;
    seen.says("Used a map.");
    assert!(!seen.text.contains("Used a list."), "{}", seen.text);
    // The old branch is where it was, by the token that the answer gives for it.
    let old = &rewound.data["branches"][0]["continueToken"];
    let old = send(&door, json!({"continueToken": old})).await;
    assert_eq!(old.step(), "third");
    old.says("Sorted the list.");
    // And a finished run shows it, with the way there.
    let last = go(&door, &again, "Walked the map.").await;
    let end = go(&door, &last, "Done.").await;
    assert_eq!(end.data["isComplete"], true);
    end.says("this run has other branches");
    let other = &end.data["branches"][0]["continueToken"];
    assert_eq!(send(&door, json!({"continueToken": other})).await.step(), "third");
    let found = Told::new(call(&door, "resume_session", json!({"query": "sorted list"})).await);
    assert_eq!(found.data["candidates"][0]["branch"], true, "{}", found.text);
    let token = &found.data["candidates"][0]["continueToken"];
    assert_eq!(send(&door, json!({"continueToken": token})).await.step(), "third");
}

#[tokio::test(flavor = "multi_thread")]
async fn six_agents_from_one_node_make_six_branches() {
    let (_home, door) = guided(PLAIN);
    let first = start(&door, json!({"workflowId": "project.story"})).await;
    let token = &first.data["continueToken"];
    let agents = (0..6).map(|number| {
        let (door, call) = (door.clone(), first.filled(&format!("Idea {number}."), &[]));
        let alone = json!({"continueToken": token});
        tokio::spawn(async move {
            // Half of them come back first, half answer at once.
            let told = match number % 2 {
                0 => send(&door, alone).await,
                _ => send(&door, call).await,
            };
            match told.step() {
                "first" => go(&door, &told, &format!("Idea {number}.")).await,
                _ => told,
            }
        })
    });
    let agents: Vec<_> = agents.collect();
    for (number, agent) in agents.into_iter().enumerate() {
        let second = agent.await.unwrap();
        assert_eq!(second.step(), "second", "{}", second.text);
        let seen = send(&door, json!({"continueToken": second.data["continueToken"]})).await;
        let recap = seen.data["recap"]["text"].as_str().unwrap();
        assert!(recap.contains(&format!("Idea {number}.")), "{recap}");
        assert_eq!(recap.matches("Idea").count(), 1, "nothing of a sibling's: {recap}");
    }
}

const JUDGED: &str = "assessments:
  - id: ready
    purpose: Whether it can be released.
    dimensions: [{id: tests, purpose: How well it is tested, levels: [low, high]}]
steps:
  - id: judge
    title: Judge
    prompt: Judge whether it is ready.
    assessmentRefs: [ready]
    assessmentConsequences:
      - when: {anyEqualsLevel: low}
        effect: {kind: require_followup, guidance: Add the missing tests.}
  - {id: end, title: End, prompt: End it.}
";

#[tokio::test]
async fn an_honest_low_assessment_passes_when_the_user_accepts_it() {
    let (_home, door) = guided(JUDGED);
    let first = start(&door, json!({"workflowId": "project.story"})).await;
    let low = |accepted: Option<&str>| {
        let mut artifact = json!({
            "kind": "wr.assessment", "assessmentId": "ready", "dimensions": {"tests": "low"},
        });
        if let Some(said) = accepted {
            artifact["acceptedByUser"] = json!(said);
        }
        artifact
    };
    let blocked = send(&door, first.filled("There are no tests.", &[low(None)])).await;
    blocked.says("Add the missing tests.");
    blocked.says("Do only what your task covers, and leave the rest to the user.");
    blocked.says("If the user accepts the state as it is");
    blocked.says("\"acceptedByUser\"");
    let accepted = low(Some("We release a prototype; tests come later."));
    let end = send(&door, blocked.filled("There are no tests.", &[accepted])).await;
    assert_eq!((end.step(), &end.data["kind"]), ("end", &json!("ok")), "{}", end.text);
    end.says("gap_recorded: `ready` stays `low` in tests; the user accepted it");
    let over = go(&door, &end, "Ended.").await;
    over.says("complete with an open gap; tell the user: `ready` stays `low` in tests");
}

#[tokio::test]
async fn a_gap_that_is_closed_with_evidence_no_longer_taints_the_end() {
    let (_home, door) = guided(JUDGED);
    let first = start(&door, json!({"workflowId": "project.story"})).await;
    let accepted = json!({
        "kind": "wr.assessment", "assessmentId": "ready", "dimensions": {"tests": "low"},
        "acceptedByUser": "Later.",
    });
    let end = send(&door, first.filled("There are no tests.", &[accepted])).await;
    let message = end.data["warnings"][0]["message"].as_str().unwrap();
    let gap = message.split("gapId ").nth(1).unwrap().trim_end_matches(')');
    end.says("wr.gap_resolution");
    for (evidence, kind) in [("", "blocked"), ("12 tests pass: `make test`.", "ok")] {
        let mut call = end.filled("Added tests.", &[]);
        if kind == "ok" {
            // The retry that the block shows.
            let mut other = call.clone();
            other["output"]["artifacts"] =
                json!([{"kind": "wr.gap_resolution", "gapId": gap, "evidence": ""}]);
            call["continueToken"] = send(&door, other).await.shown()["continueToken"].clone();
        }
        call["output"]["artifacts"] =
            json!([{"kind": "wr.gap_resolution", "gapId": gap, "evidence": evidence}]);
        let told = send(&door, call).await;
        assert_eq!(told.data["kind"], kind, "{}", told.text);
        if kind == "ok" {
            assert_eq!(told.data["isComplete"], true);
            told.says("gap_closed: this gap is closed: `ready` stays `low`");
            assert_eq!(told.data["warnings"].as_array().unwrap().len(), 1, "{}", told.text);
        }
    }
}

#[tokio::test]
async fn a_new_chat_finds_the_run_by_its_goal() {
    let (_home, mut door) = guided(PLAIN);
    door.holder.scopes.push(Scope::Read);
    let goal = "Move the shop's checkout to the new tax rules.";
    let first = start(&door, json!({"workflowId": "project.story", "goal": goal})).await;
    let second = go(&door, &first, "Read the law.").await;
    let blocked = send(&door, {
        let mut call = second.filled(" ", &[]);
        call["context"] = json!({"ticket": "TAX-19"});
        call
    });
    assert_eq!(blocked.await.data["kind"], "blocked");
    start(&door, json!({"workflowId": "project.story", "goal": "Something else."})).await;
    let latest = Told::new(call(&door, "resume_session", json!({})).await);
    latest.says("These runs moved last.");
    for (query, done) in [("checkout tax rules", false), ("read the law", true)] {
        let found = Told::new(call(&door, "resume_session", json!({"query": query})).await);
        found.says("Runs, best match first.");
        found.says(&format!("goal: {goal}"));
        found.says("pending step: Second");
        found.says("blocked: the answer to `second` has no notes");
        let token = &found.data["candidates"][0]["continueToken"];
        let back = send(&door, json!({"continueToken": token})).await;
        assert_eq!(back.step(), "second", "{}", back.text);
        back.says(goal);
        back.says("Read the law.");
        if done {
            assert_eq!(go(&door, &back, "Changed the rates.").await.step(), "third");
        }
    }
}

#[tokio::test]
async fn an_automation_is_forked_from_a_step_that_is_done() {
    let (_home, catalog) = folder(
        "relay",
        "
id: project.relay
name: Relay
description: Two steps for an agent.
triggers: [{ type: manual }]
graph:
  nodes:
    - { id: look, type: guide, prompt: Look at the door., next: judge }
    - { id: judge, type: guide, prompt: 'Judge: {{ steps.look.notes }}', next: done }
    - { id: done, type: end, result: '{{ steps.judge.notes }}' }
",
    );
    let door = door_to(catalog, Performers::default());
    let first = start(&door, json!({"workflowId": "project.relay"})).await;
    let second = go(&door, &first, "It is red.").await;
    let end = go(&door, &second, "Good.").await;
    assert_eq!(end.data["run"]["result"], "Good.");
    // Another look at the first step, with its old token alone.
    let back = send(&door, json!({"continueToken": first.data["continueToken"]})).await;
    assert_eq!(back.step(), "look");
    back.says("starts a new run");
    assert!(!back.text.contains("more step"), "nothing else waits: {}", back.text);
    let forked = go(&door, &back, "It is blue.").await;
    assert_eq!(forked.step(), "judge");
    forked.says("Judge: ⟦untrusted⟧It is blue.⟦/untrusted⟧");
    let (old, new) = (&first.data["session"]["runId"], &forked.data["session"]["runId"]);
    assert!(new.is_string() && new != old, "{}", forked.text);
    forked.says(new.as_str().unwrap());
    let end = go(&door, &forked, "Better.").await;
    assert_eq!(end.data["run"]["result"], "Better.");
}

/// An automation whose last step reads the notes of the one that the agent does.
const RELEASE: &str = "
id: project.release
name: Release
description: A step for an agent, which the end reads.
triggers: [{ type: manual }]
graph:
  nodes:
    - { id: risks, type: guide, prompt: Which changes can break something?, next: write }
    - id: write
      type: guide
      prompt: Write about it.
      output_contract: { type: object, required: [headline], properties: { headline: { type: string, maxLength: 20 } }, additionalProperties: false }
      next: done
    - { id: done, type: end, result: '{{ steps.risks.notes }}: {{ steps.write.headline }}' }
";

#[tokio::test]
async fn a_step_of_an_automation_asks_for_what_later_steps_read() {
    let (_home, catalog) = folder("release", RELEASE);
    let door = door_to(catalog, Performers::default());
    let first = start(&door, json!({"workflowId": "project.release"})).await;
    first.says("Output required: notes in `output.notesMarkdown`");
    // An artifact alone is not what `done` reads: it would fail when it is too late.
    let mut call = first.shown();
    call["output"] = json!({"artifacts": [{"kind": "risks", "text": "The export moved."}]});
    let blocked = send(&door, call).await;
    assert_eq!(blocked.data["kind"], "blocked", "{}", blocked.text);
    blocked.says("the output lacks `notes`, which `done` reads");
    let mut call = blocked.filled("The export moved.", &[]);
    call["output"]["artifacts"] = json!([{"kind": "risks", "count": 1}]);
    let second = send(&door, call).await;
    assert_eq!(second.step(), "write", "{}", second.text);
    second.says("output_unread: recorded as `steps.risks.count`");
    second.says(r#""artifacts":[{"headline":"<string>","kind":"write"}]"#);
    second.says("Without `kind`, it is held to this JSON schema");
    assert_eq!(second.shown()["output"].get("notesMarkdown"), None, "{}", second.text);
    let mut call = second.shown();
    call["output"]["artifacts"] = json!([{"kind": "write", "headline": "Moved"}]);
    let end = send(&door, call).await;
    assert_eq!(end.data["run"]["result"], "The export moved.: Moved");
    assert_eq!(end.data["nextIntent"], "complete");
    // What is wrong with another answer to a step that is done does not say that it is pending.
    let mut late = second.shown();
    late["output"]["artifacts"] = json!([{"kind": "write", "headline": "x".repeat(30)}]);
    let late = send(&door, late).await;
    late.says(
        "NOT RECORDED: artifacts. This step is done, with another output, and the run is over.",
    );
    assert!(!late.text.contains("Still pending"), "{}", late.text);
    // The old token alone says that the step is done, and where the run stands.
    let back = send(&door, json!({"continueToken": second.data["continueToken"]})).await;
    back.says("DONE BEFORE: `write` is done already, and the run is complete there.");
}

#[tokio::test]
async fn a_run_that_failed_is_not_called_complete() {
    let (_home, catalog) = folder(
        "sad",
        "
id: project.sad
name: Sad
description: It fails behind the agent's step.
triggers: [{ type: manual }]
graph:
  nodes:
    - { id: look, type: guide, prompt: Look., next: no }
    - { id: no, type: fail, message: It cannot be. }
",
    );
    let door = door_to(catalog, Performers::default());
    let first = start(&door, json!({"workflowId": "project.sad"})).await;
    let end = go(&door, &first, "Looked.").await;
    assert_eq!(end.data["nextIntent"], "ended", "{}", end.text);
    end.says("nextIntent: ended. The automation failed at `no`");
}

#[tokio::test]
async fn an_automation_is_found_by_its_goal_and_taken_over_in_a_new_chat() {
    let (_home, catalog) = folder("release", RELEASE);
    let mut door = door_to(catalog, Performers::default());
    door.holder.scopes.push(Scope::Read);
    let goal = "Release tiny-stats 9.9.9";
    let first = start(&door, json!({"workflowId": "project.release", "goal": goal})).await;
    let query = json!({"query": "tiny-stats"});
    let found = Told::new(call(&door, "resume_session", query).await);
    found.says("No guided run matches.");
    found.says("claimed under your name until");
    let token = &found.data["waiting"][0]["continueToken"];
    let back = send(&door, json!({"continueToken": token})).await;
    assert_eq!(back.step(), "risks", "{}", back.text);
    let next = go(&door, &back, "None.").await;
    assert_eq!(next.step(), "write", "{}", next.text);
    // The earlier chat no longer has it.
    let late =
        call(&door, "continue_workflow", json!({"continueToken": first.data["continueToken"]}))
            .await;
    assert_eq!(late["isError"], false, "it is shown that the step is done: {late:#}");
    let empty = start(&door, json!({"workflowId": "project.release", "goal": " "})).await;
    empty.says("goal_empty: not recorded: goal.");
}

const KEYED: &str = "steps:
  - id: orient
    title: Orient
    prompt: Look at the change.
    contextKeys: {reviewSize: [small, large], touchesTrust: [true, false]}
  - {id: trust, title: Trust, prompt: Look closer., runCondition: {var: touchesTrust, equals: true}}
  - {id: ask, title: Ask, prompt: 'Set the context key `urgent` to true or false.'}
  - {id: hurry, title: Hurry, prompt: Hurry., runCondition: {var: urgent, equals: true}}
  - {id: end, title: End, prompt: End it.}
";

#[tokio::test]
async fn keys_that_steer_the_run_are_shown_and_checked() {
    let (_home, door) = guided(KEYED);
    let first = start(&door, json!({"workflowId": "project.story"})).await;
    first.says("- Set the context key `reviewSize` (small | large), in `context` beside `output`.");
    let shown = first.shown();
    assert_eq!(
        shown["context"],
        json!({"reviewSize": "<small | large>", "touchesTrust": "<true | false>"})
    );
    let mut call = first.filled("Looked.", &[]);
    call.as_object_mut().unwrap().remove("context");
    let blocked = send(&door, call).await;
    assert_eq!(blocked.data["kind"], "blocked", "{}", blocked.text);
    blocked.says("the context key `reviewSize` is not set");
    blocked.says("the context key `touchesTrust` is not set");
    let mut call = blocked.filled("Looked.", &[]);
    call["context"] = json!({"reviewSize": "LARGE!", "touchesTrust": "yes"});
    let blocked = send(&door, call).await;
    blocked.says("`reviewSize` must be one of \"small\", \"large\", and is \"LARGE!\"");
    let mut call = blocked.filled("Looked.", &[]);
    call["context"] = json!({"reviewSize": "large", "touchesTrust": true});
    let trust = send(&door, call).await;
    assert_eq!(trust.step(), "trust", "{}", trust.text);
    // What only the text asks for is shown too, and named when it is missing or cannot fit.
    let ask = go(&door, &trust, "Nothing.").await;
    assert!(ask.shown()["context"]["urgent"].is_string(), "{}", ask.text);
    let mut call = ask.filled("Asked.", &[]);
    call["context"] = json!({"urgent": "yes"});
    let end = send(&door, call).await;
    assert_eq!(end.step(), "end");
    end.says("context_unset: `ask` asks for a context key: `urgent` is \"yes\", and is compared");
}

#[tokio::test]
async fn context_and_artifacts_come_back_in_a_recap_and_are_searched() {
    let (_home, mut door) = guided(PLAIN);
    door.holder.scopes.push(Scope::Read);
    let context = json!({"ticket": "TAX-18"});
    let first = start(&door, json!({"workflowId": "project.story", "context": context})).await;
    let mut call_ = first.filled("Read the law.", &[]);
    call_["context"] = json!({"ticket": "TAX-19"});
    call_["output"]["artifacts"] = json!([{"kind": "x.rates", "rate": 19}]);
    let second = send(&door, call_).await;
    let note = json!({"checkpointToken": second.data["checkpointToken"],
        "output": {"artifacts": [{"kind": "x.draft", "path": "draft.md"}]}});
    call(&door, "checkpoint_workflow", note).await;
    let found = Told::new(call(&door, "resume_session", json!({"query": "tax-19"})).await);
    assert_eq!(found.data["candidates"][0]["whyMatched"], json!(["matched_context"]));
    let old = Told::new(call(&door, "resume_session", json!({"query": "tax-18"})).await);
    old.says("No run matches");
    let both = Told::new(call(&door, "resume_session", json!({"query": "story tax-19"})).await);
    assert_eq!(both.data["candidates"][0]["whyMatched"], json!(["matched_together"]));
    let token = &found.data["candidates"][0]["continueToken"];
    let back = send(&door, json!({"continueToken": token})).await;
    back.says("> - ticket: TAX-19");
    back.says("x.rates: {\"rate\":19}");
    back.says("[second, checkpoint] x.draft: {\"path\":\"draft.md\"}");
}

#[tokio::test]
async fn a_late_checkpoint_says_where_it_went_and_where_the_run_stands() {
    let (_home, door) = guided(PLAIN);
    let first = start(&door, json!({"workflowId": "project.story"})).await;
    let note = |token: &Value, notes: &str| json!({"checkpointToken": token, "output": {"notesMarkdown": notes}});
    let token = first.data["checkpointToken"].clone();
    Told::new(call(&door, "checkpoint_workflow", note(&token, "Half way.")).await);
    go(&door, &first, "Done.").await;
    let stale = Told::new(call(&door, "checkpoint_workflow", note(&token, "Other.")).await);
    stale.says("NOT RECORDED.");
    stale.says("`first` is done, and the run is at `second`");
    assert!(!stale.text.contains("still pending"), "{}", stale.text);
    // Followed to the letter, it is recorded where the run stands.
    let again = note(&stale.data["checkpointToken"], "Other.");
    let again = Told::new(call(&door, "checkpoint_workflow", again).await);
    again.says("Recorded. The step is still pending");
    let back = send(&door, json!({"continueToken": again.data["continueToken"]})).await;
    assert_eq!(back.step(), "second");
    back.says("> Other.");
    // A token of the old step that was never used records there, and says so.
    let rewound = send(&door, json!({"continueToken": first.data["continueToken"]})).await;
    rewound.says("DONE BEFORE: `first` is done already, and the run is at `second` there.");
    let late = note(&rewound.data["checkpointToken"], "Late.");
    let late = Told::new(call(&door, "checkpoint_workflow", late).await);
    late.says("checkpoint_behind: recorded at `first`, but that step is done");
}

#[tokio::test]
async fn the_last_step_is_shown_as_done_once_the_run_is_complete() {
    let (_home, door) = guided("steps:\n  - {id: only, title: Only, prompt: Do it.}\n");
    let first = start(&door, json!({"workflowId": "project.story"})).await;
    let end = go(&door, &first, "Done.").await;
    assert_eq!(end.data["isComplete"], true);
    let back = send(&door, json!({"continueToken": first.data["continueToken"]})).await;
    back.says("DONE BEFORE: `only` is done already, and the run is complete there.");
    back.says("- complete, the newest, continueToken");
    assert_eq!(back.data["branches"][0]["isComplete"], true);
}

#[tokio::test]
async fn a_verdict_follows_the_gravest_finding() {
    let (_home, door) = guided(
        "steps:
  - id: verdict
    title: Verdict
    prompt: Judge it.
    outputContract: {contractRef: wr.contracts.review_verdict}
",
    );
    let first = start(&door, json!({"workflowId": "project.story"})).await;
    first.says("Notes are optional in this step.");
    first.says("blocking when it is critical or major");
    let verdict = |verdict: &str| {
        json!({"kind": "wr.review_verdict", "verdict": verdict, "confidence": "high",
            "summary": "S.", "findings": [{"severity": "critical", "summary": "It breaks."}]})
    };
    let blocked = send(&door, first.filled("N.", &[verdict("clean")])).await;
    blocked
        .says("`verdict` is `clean`, and the gravest finding is critical: it must be `blocking`");
    let end = send(&door, blocked.filled("N.", &[verdict("blocking")])).await;
    assert_eq!(end.data["isComplete"], true, "{}", end.text);
}
