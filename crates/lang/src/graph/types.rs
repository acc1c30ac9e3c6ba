//! The step types that come with the program, as the compiler sees them.

use cairn_core::catalog::{Cases, Catalog, Class, Sink, StepType, Takes};
use serde_json::{Value, json};

/// The step types that come with the program.
#[must_use]
pub fn standard() -> Catalog {
    Catalog::new(flow().into_iter().chain(work()).chain(people()))
}

/// Steps that decide where a run goes.
fn flow() -> Vec<StepType> {
    let pure = |name, cases, input, output, sinks: &[_]| {
        kind(name, Class::Pure, cases, input, output, sinks)
    };
    let none = || json!({"type": "object", "properties": {}});
    vec![
        pure(
            "branch",
            Cases::Any,
            closed(&json!({"expr": text()}), &["expr"]),
            closed(&json!({"value": {}}), &[]),
            &[("expr", Takes::Expression)],
        ),
        pure("end", Cases::None, closed(&json!({"result": {}}), &[]), none(), &[]),
        pure("fail", Cases::None, closed(&json!({"message": text()}), &["message"]), none(), &[]),
        pure(
            "loop",
            Cases::None,
            closed(
                &json!({
                    "as": text(), "body": texts(), "count": {"type": "integer", "minimum": 0},
                    "index_as": text(), "items": {}, "max_iterations": {"type": "integer", "minimum": 1},
                    "while": text(),
                }),
                &["body"],
            ),
            closed(&json!({"iterations": whole(), "results": {"type": "array"}}), &[]),
            &[("body.*", Takes::Steps), ("while", Takes::Expression)],
        ),
        pure(
            "merge",
            Cases::None,
            closed(
                &json!({"inputs": texts(), "strategy": {"enum": ["object", "list", "first"]}}),
                &[],
            ),
            json!({}),
            &[("inputs.*", Takes::Steps)],
        ),
        pure(
            "parallel",
            Cases::None,
            closed(&json!({"branches": texts()}), &[]),
            none(),
            &[("branches.*", Takes::Steps)],
        ),
    ]
}

/// Steps that the engine performs.
fn work() -> Vec<StepType> {
    let effect = |name, input, output, sinks: &[_]| {
        kind(name, Class::Effectful, Cases::None, input, output, sinks)
    };
    let process = json!({"stdout": text(), "stderr": text(), "exit_code": whole(), "json": {}});
    vec![
        effect(
            "db_query",
            closed(
                &json!({"args": {"type": "array"}, "database": text(), "query": text(), "query_file": text()}),
                &["database"],
            ),
            closed(&json!({"rows": {"type": "array"}, "row_count": whole()}), &[]),
            &[
                ("database", Takes::Literal),
                ("query", Takes::Literal),
                ("query_file", Takes::AssetFor("query")),
            ],
        ),
        effect(
            "http",
            closed(
                &json!({
                    "body": {}, "headers": texts_by_name(), "query": texts_by_name(), "url": text(),
                    "method": {"enum": ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]},
                    "parse_response": {"enum": ["json", "text"]},
                }),
                &["url"],
            ),
            closed(
                &json!({"status": whole(), "headers": {"type": "object"}, "body": text(), "json": {}}),
                &[],
            ),
            &[("url", Takes::Address), ("headers.*", Takes::Secrets), ("body.**", Takes::Secrets)],
        ),
        effect(
            "log",
            closed(
                &json!({"level": {"enum": ["debug", "info", "warning", "error"]}, "message": text()}),
                &["message"],
            ),
            closed(&json!({}), &[]),
            &[],
        ),
        effect(
            "python",
            closed(
                &json!({
                    "args": texts(), "env": texts_by_name(), "parse_output": {"enum": ["json", "text"]},
                    "requirements": text(), "script": text(), "stdin": text(),
                }),
                &["script"],
            ),
            closed(&process, &[]),
            &[
                ("env.*", Takes::Secrets),
                ("requirements", Takes::Asset),
                ("script", Takes::Asset),
                ("stdin", Takes::Secrets),
            ],
        ),
        effect(
            "shell",
            closed(
                &json!({
                    "command": {"type": ["string", "array"]}, "env": texts_by_name(),
                    "parse_output": {"enum": ["json", "text"]}, "stdin": text(),
                }),
                &["command"],
            ),
            closed(&process, &[]),
            &[("command", Takes::Command), ("env.*", Takes::Secrets), ("stdin", Takes::Secrets)],
        ),
        kind(
            "transform",
            Class::Evaluated,
            Cases::None,
            closed(
                &json!({
                    "engine": {"enum": ["jq", "jsonpath", "template"]}, "expression": text(),
                    "input": {}, "template": text(),
                }),
                &[],
            ),
            json!({}),
            &[("expression", Takes::Literal)],
        ),
        effect(
            "webhook_respond",
            closed(
                &json!({
                    "body": {}, "headers": texts_by_name(),
                    "status": {"type": "integer", "minimum": 200, "maximum": 599},
                }),
                &[],
            ),
            closed(&json!({}), &[]),
            &[],
        ),
        effect(
            "workflow",
            closed(&json!({"input": {}, "workflow": text()}), &["workflow"]),
            closed(&json!({"run_id": text(), "status": text(), "result": {}}), &[]),
            &[("workflow", Takes::Literal)],
        ),
    ]
}

/// Steps that wait: for a time, a person or an agent.
fn people() -> Vec<StepType> {
    let effect = |name, cases, input, output, sinks: &[_]| {
        kind(name, Class::Effectful, cases, input, output, sinks)
    };
    vec![
        effect(
            "guide",
            Cases::None,
            closed(
                &json!({"output_contract": {"type": "object"}, "prompt": text(), "prompt_file": text()}),
                &[],
            ),
            json!({}),
            &[("output_contract.**", Takes::Literal), ("prompt_file", Takes::AssetFor("prompt"))],
        ),
        effect(
            "human",
            Cases::Of(vec!["approved".to_owned(), "rejected".to_owned()]),
            closed(
                &json!({
                    "expires_sec": {"type": "integer", "minimum": 1}, "form": {"type": "object"},
                    "on_expire": {"enum": ["approve", "reject", "fail"]}, "prompt": text(), "who": texts(),
                }),
                &["prompt"],
            ),
            closed(&json!({"answer": {}, "at": text(), "by": text()}), &[]),
            &[("form.**", Takes::Literal), ("who.*", Takes::Literal)],
        ),
        effect(
            "wait",
            Cases::None,
            closed(
                &json!({"duration_sec": {"type": "integer", "minimum": 1}, "until": text()}),
                &[],
            ),
            closed(&json!({"until": text()}), &[]),
            &[],
        ),
    ]
}

fn kind(
    name: &str,
    class: Class,
    cases: Cases,
    input: Value,
    output: Value,
    sinks: &[(&str, Takes)],
) -> StepType {
    let sink = |(path, takes): &(&str, Takes)| Sink { path: (*path).to_owned(), takes: *takes };
    let sinks = sinks.iter().map(sink).collect();
    StepType { name: name.to_owned(), input, output, class, sinks, cases }
}

/// An object of these fields and no others.
pub(super) fn closed(properties: &Value, required: &[&str]) -> Value {
    json!({
        "type": "object", "properties": properties, "required": required,
        "additionalProperties": false,
    })
}

pub(super) fn text() -> Value {
    json!({"type": "string"})
}

pub(super) fn texts() -> Value {
    json!({"type": "array", "items": text()})
}

fn texts_by_name() -> Value {
    json!({"type": "object", "additionalProperties": text()})
}

fn whole() -> Value {
    json!({"type": "integer"})
}
