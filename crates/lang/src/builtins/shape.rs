//! What an artifact looks like: one table of fields, from which everything else is made.

use std::collections::BTreeMap;

use cairn_core::canonical::StrictValue;
use cairn_core::plan::Contract;
use serde_json::{Map, Value, json};

/// What an artifact of one kind must look like.
#[derive(Clone, Copy, Debug)]
pub struct ContractPack {
    /// What steps refer to it by.
    pub id: &'static str,
    /// The `kind` that its artifacts name.
    pub kind: &'static str,
    /// What it is for.
    pub purpose: &'static str,
    /// The fields beside `kind`.
    pub fields: &'static [Field],
}

/// One field of an artifact.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Field {
    pub name: &'static str,
    pub about: &'static str,
    pub required: bool,
    pub shape: Shape,
    /// What stands in an example, as JSON, where the shape alone would give something that
    /// does not fit the fields beside it.
    pub example: Option<&'static str>,
}

/// What a field holds.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// Text.
    Text,
    /// Text of at least so many characters.
    LongText(u32),
    /// A name of lower-case letters, digits, `_` and `-`.
    Name,
    /// A whole number from 0 on.
    Whole,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// A list of texts.
    Texts,
    /// A list of maps with these fields.
    Maps(&'static [Field]),
    /// A map with any keys.
    Open,
}

impl ContractPack {
    /// The contract as a plan carries it.
    #[must_use]
    pub fn contract(&self) -> Contract {
        Contract {
            artifact_kind: Some(self.kind.to_owned()),
            example: Some(StrictValue::new(self.example())),
            r#ref: self.id.to_owned(),
            schema: StrictValue::new(self.schema()),
        }
    }

    /// The JSON schema. Members that it does not name are allowed.
    #[must_use]
    pub fn schema(&self) -> Value {
        let mut schema = schema_of(self.fields);
        let kind = json!({"const": self.kind});
        if let Some(Value::Object(properties)) = schema.get_mut("properties") {
            properties.insert("kind".to_owned(), kind);
        }
        if let Some(Value::Array(required)) = schema.get_mut("required") {
            required.insert(0, json!("kind"));
        }
        schema
    }

    /// An artifact that satisfies it.
    #[must_use]
    pub fn example(&self) -> Value {
        let mut example = example_of(self.fields);
        if let Value::Object(members) = &mut example {
            members.insert("kind".to_owned(), json!(self.kind));
        }
        example
    }

    /// An artifact that satisfies it, with these values where they are fields of it.
    #[must_use]
    pub fn example_with(&self, given: &BTreeMap<String, String>) -> Value {
        let mut example = self.example();
        if let Value::Object(members) = &mut example {
            for (name, value) in given.iter().filter(|(name, _)| self.has(name)) {
                members.insert(name.clone(), json!(value));
            }
        }
        example
    }

    fn has(&self, name: &str) -> bool {
        self.fields.iter().any(|field| field.name == name)
    }

    /// What an agent is told about it, a line each.
    #[must_use]
    pub fn guidance(&self, required: bool) -> Vec<String> {
        self.guidance_with(required, &BTreeMap::new())
    }

    /// The same with these values in the example.
    #[must_use]
    pub fn guidance_with(&self, required: bool, given: &BTreeMap<String, String>) -> Vec<String> {
        let must = if required { "Give" } else { "You may give" };
        let fields: Vec<String> = self.fields.iter().map(Field::line).collect();
        vec![
            format!("{must} an artifact of kind `{}` ({}): {}.", self.kind, self.id, self.purpose),
            format!("Its fields: {}.", fields.join("; ")),
            format!("For example `{}`.", self.example_with(given)),
        ]
    }
}

impl Field {
    /// The field with this JSON in examples.
    #[must_use]
    pub const fn such_as(self, example: &'static str) -> Self {
        Self { example: Some(example), ..self }
    }

    fn line(&self) -> String {
        let optional = if self.required { "" } else { ", optional" };
        format!("`{}` ({}{optional}) {}", self.name, self.shape.name(), self.about)
    }
}

impl Shape {
    /// What it is called in front of people and agents.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Text => "text".to_owned(),
            Self::LongText(least) => format!("text of at least {least} characters"),
            Self::Name => "name of a-z, 0-9, _ and -".to_owned(),
            Self::Whole => "whole number".to_owned(),
            Self::OneOf(words) => words.join(" | "),
            Self::Texts => "list of texts".to_owned(),
            Self::Maps(fields) => {
                let inner: Vec<String> = fields.iter().map(Field::line).collect();
                format!("list of {{{}}}", inner.join("; "))
            }
            Self::Open => "map".to_owned(),
        }
    }
}

fn schema_of(fields: &[Field]) -> Value {
    let property = |field: &Field| {
        let mut schema = match field.shape {
            Shape::Text => json!({"type": "string", "minLength": 1}),
            Shape::LongText(least) => json!({"type": "string", "minLength": least}),
            Shape::Name => json!({"type": "string", "pattern": "^[a-z0-9_-]+$"}),
            Shape::Whole => json!({"type": "integer", "minimum": 0}),
            Shape::OneOf(words) => json!({"enum": words}),
            Shape::Texts => json!({"type": "array", "items": {"type": "string"}}),
            Shape::Maps(fields) => json!({"type": "array", "items": schema_of(fields)}),
            Shape::Open => json!({"type": "object"}),
        };
        if let Value::Object(members) = &mut schema {
            members.insert("description".to_owned(), json!(field.about));
        }
        (field.name.to_owned(), schema)
    };
    let properties: Map<String, Value> = fields.iter().map(property).collect();
    let required: Vec<&str> = fields.iter().filter(|f| f.required).map(|f| f.name).collect();
    json!({"type": "object", "properties": properties, "required": required})
}

fn example_of(fields: &[Field]) -> Value {
    let member = |field: &Field| {
        let given = field.example.and_then(|example| serde_json::from_str(example).ok());
        let value = given.unwrap_or_else(|| match field.shape {
            Shape::Text | Shape::LongText(_) => json!(format!("<{}>", field.about)),
            Shape::Name => json!("name"),
            Shape::Whole => json!(1),
            Shape::OneOf(words) => json!(words.first()),
            Shape::Texts => json!([format!("<{}>", field.about)]),
            Shape::Maps(fields) => json!([example_of(fields)]),
            Shape::Open => json!({}),
        });
        (field.name.to_owned(), value)
    };
    fields.iter().filter(|field| field.required).map(member).collect::<Map<_, _>>().into()
}
