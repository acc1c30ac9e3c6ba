//! What an answer or an output is held to, in either spelling: a JSON schema, or the fields by
//! name.

use serde_json::{Map, Value, json};

use crate::guided::schema;
use crate::read::Spot;
use crate::source;

/// A form as a JSON schema.
pub(super) fn read(spot: &Spot<'_>) -> Option<Value> {
    let is_schema = |name: &str| match spot.node.get(name).map(|node| &node.value) {
        None => false,
        // A field can have the name of a keyword: then it is a map.
        Some(source::Value::Map(_)) => name == "properties",
        Some(_) => true,
    };
    if !spot.is_map() || ["type", "properties", "required", "enum"].into_iter().any(is_schema) {
        return schema::read(spot);
    }
    let (mut properties, mut required, mut whole) = (Map::new(), Vec::new(), true);
    for (name, field) in spot.members() {
        let (is_required, rules) = field_rules(&field);
        // The rules are the field's own, without the word that says whether it must be there.
        let schema = match &rules {
            Some(rules) => schema::read(&field.instead(rules)),
            None => schema::read(&field),
        };
        whole &= schema.is_some();
        properties.extend(schema.map(|schema| (name.to_owned(), schema)));
        if is_required {
            required.push(name);
        }
    }
    let form = json!({
        "type": "object", "properties": properties, "required": required,
        "additionalProperties": false,
    });
    whole.then_some(form)
}

/// Whether a field must be there, and what else it says.
fn field_rules(field: &Spot<'_>) -> (bool, Option<source::Node>) {
    let required = field.node.get("required").map(|node| field.child("required", node));
    // A list of names belongs to a schema.
    let Some(required) = required.filter(|spot| !spot.is_list()) else { return (false, None) };
    let mut rules = field.node.clone();
    if let source::Value::Map(entries) = &mut rules.value {
        entries.retain(|entry| entry.key != "required");
    }
    (required.flag().unwrap_or_default(), Some(rules))
}
