//! `/api/v1/openapi.json`: how the API looks, made from the route table.

use axum::Json;
use axum::routing::get;
use cairn_api::schema::Schema;
use serde_json::{Map, Value, json};

use super::{Route, table};
use crate::access::{Access, Action};

pub(super) fn routes() -> Vec<Route> {
    let read = Access::Needs(Action::ReadServer);
    let what = "Describe the API, as OpenAPI 3.1";
    vec![Route::get("/api/v1/openapi.json", read, what, get(async || Json(document())))]
}

/// The description of the whole API.
pub(crate) fn document() -> Value {
    let mut paths: Map<String, Value> = Map::new();
    for route in table(None) {
        let path = route.path.replace("{*path}", "{path}");
        let item = paths.entry(path.clone()).or_insert_with(|| json!({}));
        if let Value::Object(item) = item {
            item.insert(route.method.to_owned(), operation(&route, &path));
        }
    }
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Cairn",
            "description": "A durable workflow engine for AI agents.",
            "version": "1",
        },
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Problem": problem()},
        },
    });
    if let Value::Object(members) = &mut document {
        members.insert("paths".to_owned(), Value::Object(paths));
    }
    document
}

fn operation(route: &Route, path: &str) -> Value {
    let mut operation = Map::new();
    operation.insert("summary".to_owned(), json!(route.what));
    operation.insert("operationId".to_owned(), json!(id(route.method, path)));
    let names = path.split(['{', '}']).skip(1).step_by(2);
    let parameters: Vec<Value> = names
        .map(|name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}}))
        .collect();
    operation.insert("parameters".to_owned(), Value::Array(parameters));
    match route.access {
        Access::Public => operation.insert("security".to_owned(), json!([])),
        Access::Needs(action) => {
            operation.insert("x-scope".to_owned(), json!(action.scope().name()));
            operation.insert("security".to_owned(), json!([{"token": []}]))
        }
    };
    if let Some(request) = route.request {
        let content = json!({"application/json": {"schema": plain(request())}});
        operation.insert("requestBody".to_owned(), json!({"content": content}));
    }
    let success = match route.answer {
        Some(answer) => json!({
            "description": "Done",
            "content": {"application/json": {"schema": plain(answer())}},
        }),
        None => json!({"description": "Done"}),
    };
    let failure = json!({
        "description": "Not done, and why",
        "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
    });
    operation.insert("responses".to_owned(), json!({"2XX": success, "default": failure}));
    Value::Object(operation)
}

/// A name for a call, such as `postRunsIdCancel`.
fn id(method: &str, path: &str) -> String {
    let words = path.trim_start_matches("/api/v1").split(|c: char| !c.is_ascii_alphanumeric());
    words.filter(|word| !word.is_empty()).fold(method.to_owned(), |mut id, word| {
        let (first, rest) = word.split_at(1);
        id.push_str(&first.to_ascii_uppercase());
        id.push_str(rest);
        id
    })
}

/// A schema as a part of a larger document.
fn plain(mut schema: Schema) -> Value {
    schema.remove("$schema");
    Value::Object(schema)
}

fn problem() -> Value {
    let text = || json!({"type": "string"});
    json!({
        "type": "object",
        "description": "A failure, as RFC 9457 has it, with what to do about it.",
        "required": ["type", "title", "status", "code"],
        "properties": {
            "type": text(), "title": text(), "status": {"type": "integer"}, "detail": text(),
            "code": text(), "message": text(), "suggestion": text(),
            "retry": {"type": "object"}, "details": {"type": "object"},
        },
    })
}
