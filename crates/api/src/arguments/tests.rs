use cairn_engine::guided::ask;
use insta::assert_snapshot;
use serde_json::json;

use super::*;
use crate::guided::request::{CheckpointWorkflow, ContinueWorkflow, StartWorkflow};
use crate::schema;

/// What an agent is told about its arguments.
fn told<T, A>(arguments: Value) -> String
where
    T: DeserializeOwned + schemars::JsonSchema,
    A: TryFrom<T, Error = Error>,
{
    let arguments = arguments.as_object().cloned().unwrap();
    let read: Result<T> = read(&schema::of_request::<T>(), arguments);
    match read.and_then(|read| A::try_from(read)) {
        Ok(_) => "ok".to_owned(),
        Err(error) => {
            let envelope = error.envelope();
            assert_eq!(envelope.code, "VALIDATION_ERROR");
            format!("{}\n→ {}", envelope.message, envelope.suggestion)
        }
    }
}

fn start(arguments: Value) -> String {
    told::<StartWorkflow, ask::Start>(arguments)
}

fn proceed(arguments: Value) -> String {
    told::<ContinueWorkflow, ask::Continue>(arguments)
}

fn checkpoint(arguments: Value) -> String {
    told::<CheckpointWorkflow, ask::Checkpoint>(arguments)
}

#[test]
fn what_may_be_left_out_may_be_null() {
    assert_eq!(start(json!({"workflowId": "wr.x", "context": null, "tokens": null})), "ok");
    assert_eq!(proceed(json!({"continueToken": "x", "output": {"artifacts": null}})), "ok");
}

#[test]
fn a_missing_field_is_named_with_what_it_is() {
    assert_snapshot!(start(json!({})), @r"
    `workflowId` is missing
    → add it: Id from list_workflows, such as `wr.code-review`.
    ");
    assert_snapshot!(start(json!({"workflowId": null})), @r"
    `workflowId` is missing
    → add it: Id from list_workflows, such as `wr.code-review`.
    ");
    assert_snapshot!(checkpoint(json!({"checkpointToken": "x"})), @r#"
    `output` is missing
    → add it: What to record, such as {"notesMarkdown": "…"}.
    "#);
}

#[test]
fn an_unknown_field_is_told_with_the_one_that_was_meant() {
    assert_snapshot!(start(json!({"workflowId": "x", "contxt": {}})), @r"
    there is no field `contxt` here
    → did you mean `context`? the fields here are `context`, `goal`, `preferences`, `sessionId`, `tokens`, `workflowId`, `workspacePath`
    ");
    assert_snapshot!(start(json!({"workflowId": "x", "wish": "y"})), @r"
    there is no field `wish` here
    → the fields here are `context`, `goal`, `preferences`, `sessionId`, `tokens`, `workflowId`, `workspacePath`
    ");
    assert_snapshot!(proceed(json!({"continueToken": "x", "notesMarkdown": "y"})), @r"
    there is no field `notesMarkdown` here
    → it belongs in `output`: send `output.notesMarkdown`
    ");
    assert_snapshot!(proceed(json!({"output": {"continueToken": "x"}})), @r"
    there is no field `continueToken` here
    → send `continueToken` at the top, beside the others
    ");
}

#[test]
fn a_wrong_type_is_told_with_the_right_one() {
    assert_snapshot!(proceed(json!({"continueToken": "x", "output": "{\"notesMarkdown\": \"y\"}"})), @r"
    `output` is of type string, not object
    → send the object itself, not a string that holds it
    ");
    assert_snapshot!(proceed(json!({"continueToken": 7})), @r"
    `continueToken` is of type number, not string
    → send `continueToken` as string
    ");
    assert_snapshot!(proceed(json!({"continueToken": "x", "output": {"artifacts": [{"kind": "a"}, "b"]}})), @r"
    `output.artifacts[1]` is of type string, not object
    → send `output.artifacts[1]` as object
    ");
    assert_snapshot!(start(json!({"workflowId": "x", "context": []})), @r"
    `context` is of type array, not object
    → send `context` as object
    ");
}

#[test]
fn a_value_that_is_no_choice_is_told_with_the_choices() {
    assert_snapshot!(proceed(json!({"continueToken": "x", "intent": "advanced"})), @r#"
    `intent` is "advanced"
    → it is one of `advance`, `rehydrate`
    "#);
    assert_snapshot!(start(json!({"workflowId": "x", "preferences": {"autonomy": "yolo"}})), @r#"
    `preferences.autonomy` is "yolo"
    → it is one of `guided`, `full_auto_stop_on_user_deps`, `full_auto_never_stop`
    "#);
}

#[test]
fn everything_that_is_wrong_is_told_at_once() {
    assert_snapshot!(proceed(json!({"token": "x", "intent": "go", "output": 1})), @r#"
    `intent` is "go"; `output` is of type number, not object; there is no field `token` here
    → it is one of `advance`, `rehydrate`; send `output` as object; did you mean `tokens`? the fields here are `ackToken`, `context`, `continueToken`, `intent`, `output`, `preferences`, `stateToken`, `tokens`
    "#);
}

#[test]
fn tokens_that_do_not_belong_together_are_refused() {
    assert_snapshot!(proceed(json!({})), @r"
    `continueToken` is missing
    → send `continueToken` as the last answer of this run gave it; if it is lost, call resume_session
    ");
    assert_snapshot!(proceed(json!({"ackToken": "x"})), @r"
    ackToken came without its stateToken
    → send both as one answer gave them, or its continueToken alone
    ");
    assert_snapshot!(proceed(json!({"continueToken": "x", "ackToken": "y"})), @r"
    continueToken came together with stateToken or ackToken
    → send continueToken alone
    ");
    assert_snapshot!(checkpoint(json!({"output": {}, "stateToken": "x"})), @r"
    `checkpointToken` is missing
    → send `checkpointToken` as the last answer of this run gave it; if it is lost, call resume_session
    ");
    assert_snapshot!(checkpoint(json!({"output": {}, "checkpointToken": "x", "sessionToken": "y"})), @r"
    sessionToken came together with other tokens
    → send sessionToken alone, or leave it out
    ");
}

#[test]
fn what_only_a_closer_look_shows_is_refused_too() {
    assert_snapshot!(start(json!({"workflowId": "x", "sessionId": "y"})), @r"
    `sessionId` is not the id of a session
    → send `session.sessionId` of an earlier answer, or leave it out for a new one
    ");
    assert_snapshot!(start(json!({"workflowId": "x", "workspacePath": "y"})), @r"
    `workspacePath` is not an absolute path
    → send the whole path, beginning with `/`, or leave it out
    ");
}
