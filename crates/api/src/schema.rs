//! JSON schemas of wire types, as clients get them: whole, small, and the same every time.

use schemars::JsonSchema;
use schemars::generate::{Contract, SchemaSettings};
use serde_json::{Map, Value, json};

/// A JSON schema, which is always an object.
pub type Schema = Map<String, Value>;

/// The schema of what a client sends.
#[must_use]
pub fn of_request<T: JsonSchema>() -> Schema {
    generate::<T>(Contract::Deserialize)
}

/// The whole schema of what a client gets, for people to read.
#[must_use]
pub fn of_answer<T: JsonSchema>() -> Schema {
    generate::<T>(Contract::Serialize)
}

/// The outline of [`of_answer`], for clients: the answer, or the error envelope in its place.
///
/// Some clients hold failures to the schema of the answer, too, so it has to allow for both.
/// What is inside lists and objects is left to the answers themselves: every client pays for the
/// outline in every conversation.
#[must_use]
pub fn outline(whole: &Schema) -> Schema {
    let required = whole.get("required").cloned().unwrap_or_else(|| json!([]));
    let properties = whole.get("properties").and_then(Value::as_object);
    let properties = properties.into_iter().flatten().map(|(name, property)| {
        let mut kept = property.as_object().cloned().unwrap_or_default();
        for inner in ["description", "items", "properties", "required"] {
            kept.remove(inner);
        }
        (name.clone(), Value::Object(with_one_type(kept)))
    });
    let properties: Schema = properties.collect();
    let outline = json!({
        "type": "object",
        "properties": properties,
        "anyOf": [{"required": required}, {"required": ["code"]}],
    });
    outline.as_object().cloned().unwrap_or_default()
}

/// Several types are choices, each with one: not every client reads a list of types.
fn with_one_type(mut schema: Schema) -> Schema {
    let Some(Value::Array(types)) = schema.get("type").cloned() else { return schema };
    let choice = |name: Value| match name.as_str() {
        Some("null") => json!({"type": name}),
        _ => {
            schema.insert("type".to_owned(), name);
            Value::Object(std::mem::take(&mut schema))
        }
    };
    let choices: Vec<Value> = types.into_iter().map(choice).collect();
    Schema::from_iter([("anyOf".to_owned(), Value::Array(choices))])
}

fn generate<T: JsonSchema>(contract: Contract) -> Schema {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.contract = contract;
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    // What the type itself is for is said by the tool that takes it.
    let whole = schema.as_object_mut().map(std::mem::take).unwrap_or_default();
    let mut whole = trim(whole);
    whole.remove("description");
    whole
}

/// Takes out what tells a client nothing.
fn trim(mut schema: Schema) -> Schema {
    for key in ["title", "format", "minimum", "default"] {
        schema.remove(key);
    }
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    }
    if schema.get("additionalProperties") == Some(&Value::Bool(true)) {
        schema.remove("additionalProperties");
    }
    if let Some(Value::Object(items)) = schema.get_mut("items") {
        *items = trim(std::mem::take(items));
    }
    for list in ["anyOf", "oneOf"] {
        let Some(Value::Array(choices)) = schema.get_mut(list) else { continue };
        choices.iter_mut().filter_map(Value::as_object_mut).for_each(|choice| {
            *choice = trim(std::mem::take(choice));
        });
    }
    let required: Vec<Value> = match schema.get("required") {
        Some(Value::Array(names)) => names.clone(),
        _ => Vec::new(),
    };
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        for (name, property) in properties {
            let Some(inner) = property.as_object_mut() else { continue };
            let mut inner = trim(std::mem::take(inner));
            if !required.iter().any(|required| required == name) {
                inner = without_null(inner);
            }
            *property = Value::Object(inner);
        }
    }
    schema
}

/// What can be left out need not be `null`.
fn without_null(mut schema: Schema) -> Schema {
    let null = json!("null");
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|name| *name != null);
        if let [only] = types.as_slice() {
            let only = only.clone();
            schema.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    let choices = match schema.remove("anyOf") {
        Some(Value::Array(choices)) => choices,
        other => {
            schema.extend(other.map(|other| ("anyOf".to_owned(), other)));
            return schema;
        }
    };
    let rest: Vec<Value> = choices.into_iter().filter(|c| c.get("type") != Some(&null)).collect();
    match <[Value; 1]>::try_from(rest) {
        Ok([Value::Object(only)]) => {
            let said = schema.remove("description");
            schema.extend(only);
            schema.extend(said.map(|said| ("description".to_owned(), said)));
        }
        Ok(other) => {
            schema.insert("anyOf".to_owned(), json!(other));
        }
        Err(rest) => {
            schema.insert("anyOf".to_owned(), Value::Array(rest));
        }
    }
    schema
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use serde::{Deserialize, Serialize};

    use super::*;

    /// What it is.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "camelCase", deny_unknown_fields)]
    struct Sample {
        /// The number
        /// of things.
        how_many: u32,
        #[serde(skip_serializing_if = "Option::is_none")]
        kind: Option<Kind>,
        #[serde(skip_serializing_if = "Option::is_none")]
        inner: Option<Inner>,
        next: Option<String>,
    }

    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    enum Kind {
        One,
        Two,
    }

    #[derive(Serialize, Deserialize, JsonSchema)]
    struct Inner {
        values: Vec<Map<String, Value>>,
    }

    fn text(schema: Schema) -> String {
        serde_json::to_string(&schema).unwrap()
    }

    #[test]
    fn a_request_may_leave_out_what_is_optional() {
        assert_snapshot!(text(of_request::<Sample>()), @r#"{"additionalProperties":false,"properties":{"howMany":{"description":"The number of things.","type":"integer"},"inner":{"properties":{"values":{"items":{"type":"object"},"type":"array"}},"required":["values"],"type":"object"},"kind":{"enum":["one","two"],"type":"string"},"next":{"type":"string"}},"required":["howMany"],"type":"object"}"#);
    }

    #[test]
    fn an_answer_says_what_is_always_there_and_allows_for_the_envelope() {
        assert_snapshot!(text(outline(&of_answer::<Sample>())), @r#"{"anyOf":[{"required":["howMany","next"]},{"required":["code"]}],"properties":{"howMany":{"type":"integer"},"inner":{"type":"object"},"kind":{"enum":["one","two"],"type":"string"},"next":{"anyOf":[{"type":"string"},{"type":"null"}]}},"type":"object"}"#);
    }
}
