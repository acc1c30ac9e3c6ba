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
const ARTIFACT: &str = "<as asked for above>";

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
            assert_eq!(call["output"]["artifacts"], json!([ARTIFACT]), "{}", self.text);
            call["output"]["artifacts"] = json!(artifacts);
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
            assert_eq!(told.data.get("warnings"), None, "{}", told.text);
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
