//! The types of steps and triggers in random automations.

use cairn_core::catalog::schema::{closed, text};
use cairn_core::catalog::{Catalog, Class, StepType, Takes, TriggerType, interpreted};
use serde_json::json;

/// What the interpreter decides, and some steps that the world performs.
pub(super) fn all() -> Catalog {
    let answer = closed(&json!({"json": {}, "status": {"type": "integer"}}), &[]);
    let http = closed(&json!({"body": {}, "url": text()}), &["url"]);
    let log = closed(&json!({"message": text()}), &["message"]);
    let shell = closed(&json!({"command": {"type": "array"}}), &["command"]);
    let fields = json!({"engine": text(), "expression": text(), "input": {}});
    let manual = TriggerType {
        name: "manual".to_owned(),
        input: closed(&json!({}), &[]),
        payload: None,
        check: |_| Vec::new(),
    };
    let work = [
        StepType::new("http", Class::Effectful, http, answer.clone()),
        StepType::new("log", Class::Effectful, log, closed(&json!({}), &[])),
        StepType::new("shell", Class::Effectful, shell, answer)
            .taking(&[("command", Takes::Command)]),
        StepType::new("transform", Class::Evaluated, closed(&fields, &[]), json!({}))
            .taking(&[("expression", Takes::Literal)]),
    ];
    Catalog::new(interpreted::all().into_iter().chain(work)).with_triggers([manual])
}
