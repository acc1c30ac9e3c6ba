//! The step types that need no performer: the interpreter decides them, or waits for somebody.

use serde_json::{Value, json};

use super::schema::{
    any, at_least, closed, one_of, shown, text, texts, texts_by_name, told, whole,
};
use super::{Cases, Class, StepType, Takes};

/// All of them, in alphabetical order.
#[must_use]
pub fn all() -> Vec<StepType> {
    vec![
        branch(),
        end(),
        fail(),
        guide(),
        human(),
        r#loop(),
        merge(),
        parallel(),
        wait(),
        webhook_respond(),
        workflow(),
    ]
}

fn branch() -> StepType {
    let input = closed(
        &json!({"expr": told(text(), "What is looked at: a yes or no picks the case `true` or `false`, anything else the case of its text.")}),
        &["expr"],
    );
    StepType {
        cases: Cases::Any,
        ..pure(
            "branch",
            "Goes on along the edges of one case, or along `default` when no other fits.",
            input,
            &json!({"expr": "{{ steps.fetch.status == 200 }}", "cases": {"true": "save", "default": "complain"}}),
            closed(&json!({"value": told(any(), "What was looked at.")}), &[]),
        )
    }
    .taking(&[("expr", Takes::Expression)])
}

/// Ends the run. In guided workflows a performer does it.
#[must_use]
pub fn end() -> StepType {
    pure(
        "end",
        "Ends the run as a success.",
        closed(&json!({"result": told(any(), "The result of the run.")}), &[]),
        &json!({"result": "{{ steps.summary.text }}"}),
        nothing(),
    )
}

fn fail() -> StepType {
    pure(
        "fail",
        "Ends the run as a failure.",
        closed(&json!({"message": told(text(), "Why it failed.")}), &["message"]),
        &json!({"message": "no stock for {{ event.payload.sku }}"}),
        nothing(),
    )
}

fn guide() -> StepType {
    let input = closed(
        &json!({
            "output_contract": told(json!({"type": "object"}), "What the output is held to, as in guided workflows."),
            "prompt": told(text(), "What the agent is asked to do. What somebody sent is marked as such."),
            "prompt_file": told(text(), "A file beside the workflow that holds the prompt."),
        }),
        &[],
    );
    let output = told(any(), "What the agent handed in.");
    effect(
        "guide",
        "Hands a piece of work to the agent that holds the run, over MCP, and waits for it.",
        input,
        &json!({"prompt": "Judge whether {{ steps.fetch.json.title }} is spam."}),
        output,
    )
    .taking(&[
        ("output_contract", Takes::Schema),
        ("prompt", Takes::Prompt),
        ("prompt_file", Takes::AssetFor("prompt")),
    ])
}

fn human() -> StepType {
    let input = closed(
        &json!({
            "approves_unattended": told(json!({"type": "boolean"}), "Has to be `true` beside `on_expire: approve`: what nobody looked at counts as approved."),
            "expires_sec": told(at_least(1), "How long the question stands."),
            "form": told(json!({"type": "object"}), "What is asked for besides yes or no: the fields of the answer by name, as in the input of a `manual` trigger but without defaults, or its JSON schema."),
            "on_expire": told(one_of(&["approve", "reject", "fail"]), "What counts when nobody answered."),
            "prompt": told(text(), "The question."),
            "who": told(texts(), "Who may answer; anybody who may run the workflow when it is left out."),
        }),
        &["prompt"],
    );
    let output = closed(
        &json!({
            "answer": told(any(), "What was answered."),
            "at": told(text(), "When."),
            "by": told(text(), "Who answered."),
            "verdict": told(one_of(&["approved", "rejected"]), "Yes or no."),
        }),
        &[],
    );
    StepType {
        cases: Cases::Of(vec!["approved".to_owned(), "rejected".to_owned()]),
        ..effect(
            "human",
            "Asks a person and waits for the answer.",
            input,
            &json!({
                "prompt": "Refund {{ event.payload.amount }}?", "who": ["ada"],
                "form": {"reason": {"type": "string", "required": true}, "part": {"type": "number", "minimum": 0}},
                "expires_sec": 86_400, "on_expire": "reject",
            }),
            output,
        )
    }
    .taking(&[("form", Takes::Schema), ("who.*", Takes::Literal)])
}

fn r#loop() -> StepType {
    let input = closed(
        &json!({
            "as": told(text(), "What the item is called inside; `item` when it is left out."),
            "body": told(texts(), "The steps that are repeated."),
            "count": told(at_least(0), "How often."),
            "index_as": told(text(), "What the number of the turn, from 0, is called inside; `index` when it is left out."),
            "items": told(any(), "A list, a turn for each item."),
            "max_iterations": told(at_least(1), "After so many turns the step fails."),
            "while": told(text(), "It goes on as long as this holds."),
        }),
        &["body"],
    );
    let output = closed(
        &json!({
            "iterations": told(whole(), "How many turns there were."),
            "results": told(json!({"type": "array"}), "What the last step of each turn gave."),
        }),
        &[],
    );
    pure(
        "loop",
        "Repeats some steps: for each item of a list, so many times, or while something holds.",
        input,
        &json!({"items": "{{ steps.fetch.json.users }}", "as": "user", "body": ["greet"]}),
        output,
    )
    .taking(&[("body.*", Takes::Steps), ("while", Takes::Expression)])
}

fn merge() -> StepType {
    let input = closed(
        &json!({
            "inputs": told(texts(), "The steps that are waited for; those with an edge to this one when it is left out."),
            "strategy": told(one_of(&["object", "list", "first"]), "What comes out: the outputs by step (the default), in a list, or the first."),
        }),
        &[],
    );
    pure(
        "merge",
        "Waits for steps that ran side by side, as far as they can still arrive, and puts their outputs together.",
        input,
        &json!({"inputs": ["metrics", "logs"], "strategy": "object"}),
        told(any(), "What the strategy makes of the outputs."),
    )
    .taking(&[("inputs.*", Takes::Steps)])
}

fn parallel() -> StepType {
    pure(
        "parallel",
        "Starts several branches at once. Reading it gives the outputs of its branches, by the names of their first steps: `steps.gather.logs`.",
        closed(&json!({"branches": told(texts(), "The first step of each branch.")}), &[]),
        &json!({"branches": ["metrics", "logs"]}),
        nothing(),
    )
    .taking(&[("branches.*", Takes::Steps)])
}

fn wait() -> StepType {
    effect(
        "wait",
        "Waits for a while, or until a point in time. A wait outlives a restart.",
        closed(
            &json!({
                "duration_sec": told(at_least(1), "How long."),
                "until": told(text(), "Until when, such as `2027-01-01T09:00:00Z`."),
            }),
            &[],
        ),
        &json!({"duration_sec": 3_600}),
        closed(&json!({"until": told(text(), "When it was over.")}), &[]),
    )
}

fn webhook_respond() -> StepType {
    effect(
        "webhook_respond",
        "Answers the webhook that started the run.",
        closed(
            &json!({
                "body": told(any(), "What is sent back."),
                "headers": told(texts_by_name(), "Headers of the answer."),
                "status": told(json!({"type": "integer", "minimum": 200, "maximum": 599}), "Its status; 200 when it is left out."),
            }),
            &[],
        ),
        &json!({"status": 201, "body": {"id": "{{ steps.save.json.id }}"}}),
        closed(&json!({}), &[]),
    )
}

fn workflow() -> StepType {
    effect(
        "workflow",
        "Runs another workflow and waits for its end.",
        closed(
            &json!({
                "input": told(any(), "What it is started with."),
                "workflow": told(text(), "Its id."),
            }),
            &["workflow"],
        ),
        &json!({"workflow": "project.enrich", "input": {"user": "{{ steps.fetch.json }}"}}),
        closed(
            &json!({
                "result": told(any(), "What it ended with."),
                "run_id": told(text(), "Its run."),
                "status": told(text(), "How it ended."),
            }),
            &[],
        ),
    )
    .taking(&[("workflow", Takes::Literal)])
}

fn pure(name: &str, what: &str, input: Value, example: &Value, output: Value) -> StepType {
    StepType::new(name, Class::Pure, shown(told(input, what), example), output)
}

fn effect(name: &str, what: &str, input: Value, example: &Value, output: Value) -> StepType {
    StepType::new(name, Class::Effectful, shown(told(input, what), example), output)
}

fn nothing() -> Value {
    json!({"type": "object", "properties": {}})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_in_order_and_say_what_they_do() {
        let all = all();
        assert!(all.is_sorted_by(|a, b| a.name < b.name));
        for kind in all {
            assert!(kind.input.get("description").is_some(), "{}", kind.name);
            assert!(kind.input.pointer("/examples/0").is_some(), "{}", kind.name);
        }
    }
}
