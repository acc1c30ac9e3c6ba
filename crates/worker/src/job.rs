//! What a worker is asked for.

use serde_json::{Map, Value, json};

/// What a worker is asked for. Each is evaluated on its own; nothing is kept between them.
#[derive(Clone, PartialEq, Debug)]
pub enum Job {
    /// The settings of a step, or one expression: templates are evaluated.
    Settings {
        /// As the plan has them.
        source: Value,
        /// Whether the source is one expression.
        is_expression: bool,
        /// What they look at.
        context: Map<String, Value>,
    },
    /// A jq program, which gives one value.
    Jq {
        /// The program.
        program: String,
        /// What it is run on.
        input: Value,
    },
    /// A JSONPath: one value if it can name only one, else the list of those it finds.
    JsonPath {
        /// The path.
        path: String,
        /// What it is looked up in.
        input: Value,
    },
    /// A pattern: its first match with its groups, or `null`.
    Regex {
        /// The pattern.
        pattern: String,
        /// What is searched.
        text: String,
    },
}

impl Job {
    /// The job as it is sent.
    pub(crate) fn to_json(&self) -> Value {
        match self {
            Self::Settings { source, is_expression, context } => {
                json!({"kind": "settings", "source": source, "expression": is_expression, "context": context})
            }
            Self::Jq { program, input } => {
                json!({"kind": "jq", "program": program, "input": input})
            }
            Self::JsonPath { path, input } => {
                json!({"kind": "jsonpath", "path": path, "input": input})
            }
            Self::Regex { pattern, text } => {
                json!({"kind": "regex", "pattern": pattern, "text": text})
            }
        }
    }

    /// The job that was sent.
    pub(crate) fn from_json(message: Value) -> Option<Self> {
        let Value::Object(mut fields) = message else { return None };
        let text = |value: Value| match value {
            Value::String(text) => Some(text),
            _ => None,
        };
        let mut take = |name: &str| fields.remove(name);
        Some(match take("kind")?.as_str()? {
            "settings" => Self::Settings {
                source: take("source")?,
                is_expression: take("expression")?.as_bool()?,
                context: match take("context")? {
                    Value::Object(context) => context,
                    _ => return None,
                },
            },
            "jq" => Self::Jq { program: text(take("program")?)?, input: take("input")? },
            "jsonpath" => Self::JsonPath { path: text(take("path")?)?, input: take("input")? },
            "regex" => Self::Regex { pattern: text(take("pattern")?)?, text: text(take("text")?)? },
            _ => return None,
        })
    }
}
