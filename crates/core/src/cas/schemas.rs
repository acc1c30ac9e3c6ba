//! The types that a role thread is made of, as schemas with addresses.
//!
//! They are fixed: a change of a schema is a change of its address, and of the address of
//! everything under it. `decision 0020` lists them.

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::{Address, REFERENCE, Typed};

/// The schema of schemas, which is under itself.
static META: LazyLock<Typed> = LazyLock::new(|| {
    let payload = serde_json::from_str(include_str!("meta.json"));
    Typed { r#type: None, payload: payload.unwrap_or_default() }
});

/// The schema of schemas.
#[must_use]
pub fn meta() -> &'static Typed {
    &META
}

/// The address of the schema of schemas.
#[must_use]
pub fn meta_address() -> Address {
    META.address()
}

/// A schema as a value that has an address.
#[must_use]
pub fn schema(payload: Value) -> Typed {
    Typed::new(meta_address(), payload)
}

fn reference() -> Value {
    json!({"type": "string", "format": REFERENCE})
}

fn text() -> Value {
    json!({"type": "string"})
}

fn closed(properties: &Value, required: &[&str]) -> Value {
    json!({
        "type": "object", "additionalProperties": false, "properties": properties,
        "required": required,
    })
}

/// The schema of a workflow: its roles, each with the schema of its output, and its graph.
#[must_use]
pub fn workflow() -> Typed {
    let role = closed(
        &json!({
            "capabilities": {"type": "array", "items": text()}, "description": text(),
            "goal": text(), "meta": reference(), "output": text(), "procedure": text(),
        }),
        &["capabilities", "description", "goal", "meta", "output", "procedure"],
    );
    let condition = closed(&json!({"description": text(), "expression": text()}), &["expression"]);
    let mut payload = closed(
        &json!({
            "conditions": {"type": "object", "additionalProperties": condition},
            "description": text(), "graph": {"type": "object"}, "name": text(),
            "roles": {"type": "object", "additionalProperties": role},
        }),
        &["description", "graph", "name", "roles"],
    );
    title(&mut payload, "workflow");
    schema(payload)
}

/// The schema of the node that a thread starts with.
#[must_use]
pub fn start() -> Typed {
    let fields = json!({"prompt": text(), "workflow": reference()});
    let mut payload = closed(&fields, &["prompt", "workflow"]);
    title(&mut payload, "start node");
    schema(payload)
}

/// The schema of a step of a thread.
#[must_use]
pub fn step() -> Typed {
    let before = json!({"anyOf": [reference(), {"type": "null"}]});
    let fields = json!({
        "agent": text(), "detail": reference(), "output": reference(), "prev": before,
        "role": text(), "start": reference(),
    });
    let mut payload = closed(&fields, &["agent", "detail", "output", "prev", "role", "start"]);
    title(&mut payload, "step node");
    schema(payload)
}

/// The schema of a text, which prompts and what agents wrote are under.
#[must_use]
pub fn plain_text() -> Typed {
    schema(text())
}

fn title(schema: &mut Value, title: &str) {
    if let Value::Object(members) = schema {
        members.insert("title".to_owned(), title.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What other programs stored must be found under these for ever.
    #[test]
    fn addresses_of_schemas_do_not_change() {
        let found = [meta().clone(), plain_text(), workflow(), start(), step()];
        let found: Vec<String> = found.iter().map(|typed| typed.address().to_string()).collect();
        assert_eq!(
            found,
            ["CTS5P6RD8HMCS", "7VQ43ZSJTEWA7", "35QV37TM8P9JN", "BFT4NTV84WCXH", "5Q3SZW1X21ZKG"]
        );
    }
}
