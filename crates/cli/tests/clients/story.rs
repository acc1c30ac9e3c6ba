//! One story for every client: a run with a checkpoint, a block, a fork and a way back, and an
//! automation.

use std::collections::BTreeSet;

use serde_json::{Value, json};

/// The tools that every client is shown.
pub(crate) const TOOLS: [&str; 6] = [
    "list_workflows",
    "inspect_workflow",
    "start_workflow",
    "continue_workflow",
    "checkpoint_workflow",
    "resume_session",
];

/// Somebody else's client.
pub(crate) trait Client {
    fn call(&mut self, tool: &str, arguments: Value) -> Outcome;
}

/// What a client made of an answer.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Outcome {
    is_error: bool,
    data: Value,
    texts: Vec<String>,
}

impl Outcome {
    /// From a tool's result as it stands in the protocol.
    pub(crate) fn new(result: Value) -> Self {
        let text = |item: &Value| item["text"].as_str().unwrap().to_owned();
        let texts: Vec<String> = result["content"].as_array().unwrap().iter().map(text).collect();
        assert!(!texts.is_empty());
        Self {
            is_error: result["isError"] == true,
            data: result["structuredContent"].clone(),
            texts,
        }
    }

    fn text(&self, field: &str) -> &str {
        self.data[field].as_str().unwrap_or_else(|| panic!("no {field} in {:#}", self.data))
    }

    fn token(&self) -> &str {
        self.text("continueToken")
    }

    /// The pending step, in an answer that went well.
    fn step(&self) -> &str {
        assert!(!self.is_error && self.data["kind"] == "ok", "{self:?}");
        self.data["pending"]["stepId"].as_str().unwrap_or_default()
    }

    fn code(&self) -> &str {
        assert!(self.is_error, "{self:?}");
        assert!(self.texts[0].contains(self.text("suggestion")), "{self:?}");
        self.text("code")
    }
}

/// Plays the whole story.
pub(crate) fn play(client: &mut dyn Client) {
    choose(client);
    let first = client.call(
        "start_workflow",
        json!({"workflowId": "project.story", "context": {"subject": "the heliotrope release"}}),
    );
    assert_eq!(first.step(), "gather");
    assert!(first.texts[0].starts_with("Gather the facts about the heliotrope release."));
    assert!(first.texts[0].contains(first.token()));
    assert!(first.data["session"]["sessionId"].as_str().unwrap().starts_with("sess_"));

    let kept = checkpoint(client, &first);
    let second = advance(client, kept.token(), "Gathered the heliotrope facts.");
    assert_eq!(second.step(), "decide");
    let third = unblock(client, &second);
    let again = client.call("continue_workflow", json!({"continueToken": first.token()}));
    assert_eq!(again.step(), "gather");
    assert_eq!(again.data["branches"].as_array().map(Vec::len), Some(1), "behind the checkpoint");
    fork(client, &second);
    come_back(client, &third);
    refuse(client, &first);
    take_turns(client);
}

fn choose(client: &mut dyn Client) {
    let listed = client.call("list_workflows", json!({"query": "story"}));
    let entry = &listed.data["workflows"][0];
    assert_eq!(entry["workflowId"], "project.story", "{listed:?}");
    assert_eq!((&entry["kind"], &entry["idStatus"]), (&json!("workflow"), &json!("namespaced")));
    let inspected =
        client.call("inspect_workflow", json!({"workflowId": "project.story", "detail": "full"}));
    let steps = inspected.data["steps"].as_array().unwrap();
    let ids: Vec<&str> = steps.iter().map(|step| step["stepId"].as_str().unwrap()).collect();
    assert_eq!(ids, ["gather", "decide", "report"]);
    assert_eq!(inspected.data["contracts"][0]["ref"], "wr.contracts.gate_verdict");
    assert!(!inspected.texts[0].contains("Gather the facts"), "prompts are not shown");
}

fn checkpoint(client: &mut dyn Client, at: &Outcome) -> Outcome {
    let call = json!({
        "checkpointToken": at.text("checkpointToken"),
        "output": {"notesMarkdown": "Half of the facts are there."},
    });
    let kept = client.call("checkpoint_workflow", call.clone());
    assert!(!kept.is_error, "{kept:?}");
    assert_eq!(client.call("checkpoint_workflow", call), kept, "kept once");
    kept
}

fn advance(client: &mut dyn Client, token: &str, notes: &str) -> Outcome {
    let call = json!({"continueToken": token, "output": {"notesMarkdown": notes}});
    client.call("continue_workflow", call)
}

/// Goes on without what the step owes, is told so, and does as it is told.
fn unblock(client: &mut dyn Client, at: &Outcome) -> Outcome {
    let blocked = advance(client, at.token(), "It may pass.");
    assert_eq!(blocked.text("kind"), "blocked", "{blocked:?}");
    assert_eq!(blocked.data["blockers"][0]["code"], "MISSING_REQUIRED_OUTPUT");
    let retry = blocked.text("retryContinueToken");
    assert!(blocked.texts[0].contains(retry) && blocked.texts[0].contains("wr.gate_verdict"));
    let moved = decide(client, retry, "approved");
    assert_eq!(moved.step(), "report");
    assert_eq!(decide(client, retry, "approved"), moved, "done once");
    moved
}

fn decide(client: &mut dyn Client, token: &str, verdict: &str) -> Outcome {
    let artifact = json!({
        "kind": "wr.gate_verdict",
        "verdict": verdict,
        "rationale": "all checks were looked at",
        "confidence": "high",
    });
    let notes = format!("The heliotrope work is {verdict}.");
    let output = json!({"notesMarkdown": notes, "artifacts": [artifact]});
    client.call("continue_workflow", json!({"continueToken": token, "output": output}))
}

/// Goes back to a step that is done, and on from there another way.
fn fork(client: &mut dyn Client, done: &Outcome) {
    let again = client.call("continue_workflow", json!({"continueToken": done.token()}));
    assert_eq!(again.step(), "decide");
    assert_eq!(again.data["branches"].as_array().map(Vec::len), Some(1), "{again:?}");
    assert_ne!(again.token(), done.token(), "a fork is another attempt");
    assert_eq!(decide(client, again.token(), "rejected").step(), "report");
    let both = client.call("continue_workflow", json!({"continueToken": done.token()}));
    assert_eq!(both.data["branches"].as_array().map(Vec::len), Some(2), "{both:?}");
}

/// Finds the run as somebody who has no token, and brings it to its end.
fn come_back(client: &mut dyn Client, tip: &Outcome) {
    let found = client.call("resume_session", json!({"query": "story"}));
    let candidates = found.data["candidates"].as_array().unwrap();
    assert_eq!(candidates[0]["workflowId"], "project.story", "{found:?}");
    let token = candidates[0]["continueToken"].as_str().unwrap();
    let shown = client.call("continue_workflow", json!({"continueToken": token}));
    assert!(shown.data["recap"]["text"].as_str().is_some(), "{shown:?}");

    let shown = client.call("continue_workflow", json!({"continueToken": tip.token()}));
    assert_eq!(shown.step(), "report");
    let last = advance(client, shown.token(), "Reported.");
    assert_eq!(last.data["pending"], Value::Null);
    assert_eq!((&last.data["isComplete"], last.text("nextIntent")), (&json!(true), "complete"));
}

/// Does the one step of an automation that is an agent's.
fn take_turns(client: &mut dyn Client) {
    let listed = client.call("list_workflows", json!({"query": "relay"}));
    assert_eq!(listed.data["workflows"][0]["dialect"], "graph", "{listed:?}");
    let start = json!({"workflowId": "project.relay", "context": {"subject": "tea"}});
    let first = client.call("start_workflow", start);
    assert_eq!(first.step(), "judge");
    let asked = "Judge ⟦untrusted⟧tea⟦/untrusted⟧.";
    assert!(first.texts[0].contains(asked), "what somebody sent is marked: {first:?}");
    let hand_in = |client: &mut dyn Client, token: &str, verdict: &str| {
        let output = json!({"artifacts": [{"kind": "judge", "verdict": verdict}]});
        client.call("continue_workflow", json!({"continueToken": token, "output": output}))
    };
    let blocked = hand_in(client, first.token(), "fine");
    assert_eq!(blocked.data["blockers"][0]["code"], "INVALID_REQUIRED_OUTPUT", "{blocked:?}");
    let last = hand_in(client, blocked.text("retryContinueToken"), "good");
    assert_eq!(last.data["run"]["result"], "tea is good", "{last:?}");
    assert_eq!(hand_in(client, blocked.text("retryContinueToken"), "good"), last, "done once");
}

/// Does things wrong, and is told what to do instead.
fn refuse(client: &mut dyn Client, first: &Outcome) {
    let mut codes = BTreeSet::new();
    let mut wrong = |tool: &str, arguments: Value| {
        codes.insert(client.call(tool, arguments).code().to_owned());
    };
    wrong("continue_workflow", json!({"continueToken": format!("{}x", first.token())}));
    wrong("continue_workflow", json!({"continueToken": first.text("checkpointToken")}));
    wrong("continue_workflow", json!({"continueTokn": first.token()}));
    wrong("start_workflow", json!({"workflowId": "project.storey"}));
    assert!(codes.contains("VALIDATION_ERROR") && codes.contains("WORKFLOW_NOT_FOUND"));
    assert!(codes.iter().any(|code| code.starts_with("TOKEN_")), "{codes:?}");
}
