//! A small fixed catalog: what the interpreter decides, and some steps that are performed.

use cairn_core::catalog::schema::{closed, flag, text, texts, texts_by_name, whole};
use cairn_core::catalog::{Catalog, Class, StepType, Takes, interpreted};
use serde_json::json;

pub(super) fn standard() -> Catalog {
    Catalog::new(interpreted::all().into_iter().chain(work()))
}

/// Steps that the engine performs.
fn work() -> Vec<StepType> {
    let effect = |name, input, output, sinks: &[_]| {
        StepType::new(name, Class::Effectful, input, output).taking(sinks)
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
            &[
                ("url", Takes::Address),
                ("query.*", Takes::BoundSecrets),
                ("headers.*", Takes::Secrets),
                ("body.**", Takes::Secrets),
            ],
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
                    "trusts_arguments": flag(),
                }),
                &["script"],
            ),
            closed(&process, &[]),
            &[
                ("args", Takes::Arguments),
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
                    "trusts_arguments": flag(),
                }),
                &["command"],
            ),
            closed(&process, &[]),
            &[("command", Takes::Command), ("env.*", Takes::Secrets), ("stdin", Takes::Secrets)],
        ),
        StepType::new(
            "transform",
            Class::Evaluated,
            closed(
                &json!({
                    "engine": {"enum": ["jq", "jsonpath", "template", "gotemplate"]}, "expression": text(),
                    "input": {}, "template": text(),
                }),
                &[],
            ),
            json!({}),
        )
        .taking(&[("expression", Takes::Literal)]),
    ]
}
