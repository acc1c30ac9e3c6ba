//! The step types as a page for people, made from their descriptions alone.

use std::fmt::Write as _;

use cairn_core::catalog::{Cases, Catalog, Class, StepType};
use serde_json::{Map, Value};

/// The whole page, as Markdown.
#[must_use]
pub fn page(catalog: &Catalog) -> String {
    let mut page = String::from("# Step types\n\n");
    page.push_str(
        "<!-- Written by `cargo xtask generate`; change the descriptions instead. -->\n\n",
    );
    page.push_str("What a node of a [graph](../guide/graph.md) can be. Its settings stand beside `id` and `type`; what comes out is read as `{{ steps.<id>.<field> }}`.\n");
    catalog.types().for_each(|kind| section(&mut page, kind));
    page
}

fn section(page: &mut String, kind: &StepType) {
    let what = kind.input.get("description").and_then(Value::as_str).unwrap_or_default();
    // Writing to a String cannot fail.
    let _ = write!(page, "\n## `{}`\n\n{what}\n\n{}\n", kind.name, class(kind.class));
    match &kind.cases {
        Cases::None => {}
        Cases::Any => page.push_str("\nThe cases are those that the workflow names.\n"),
        Cases::Listed(field) => {
            let _ = writeln!(
                page,
                "\nThe cases are those in `{field}`, or else those that the edges name; there must be a `default` among the edges."
            );
        }
        Cases::Of(cases) => {
            let cases: Vec<String> = cases.iter().map(|case| format!("`{case}`")).collect();
            let _ = writeln!(page, "\nCases: {}.", cases.join(", "));
        }
    }
    page.push_str("\n| Setting | Holds | Meaning |\n| --- | --- | --- |\n");
    let required = kind.input.get("required").and_then(Value::as_array);
    for (name, schema) in properties(&kind.input).into_iter().flatten() {
        let needed = required.is_some_and(|list| list.iter().any(|found| found == name));
        let star = if needed { " (needed)" } else { "" };
        let _ = writeln!(page, "| `{name}`{star} | {} | {} |", holds(schema), meaning(schema));
    }
    match properties(&kind.output) {
        Some(fields) if !fields.is_empty() => {
            page.push_str("\n| Output | Holds | Meaning |\n| --- | --- | --- |\n");
            for (name, schema) in fields {
                let _ = writeln!(page, "| `{name}` | {} | {} |", holds(schema), meaning(schema));
            }
        }
        Some(_) => page.push_str("\nNothing comes out.\n"),
        None => {
            let _ = writeln!(page, "\nWhat comes out: {}", meaning(&kind.output));
        }
    }
    if let Some(example) = kind.input.pointer("/examples/0") {
        let _ = write!(page, "\n```yaml\n- id: example\n  type: {}\n", kind.name);
        yaml(page, example, 2);
        page.push_str("```\n");
    }
}

const fn class(class: Class) -> &'static str {
    match class {
        Class::Pure => "Decided in memory, without touching the world.",
        Class::Evaluated => "Evaluated, and evaluated again after a crash.",
        Class::Effectful => {
            "Touches the world: that it is about to be done is on disk before it is done."
        }
    }
}

fn properties(schema: &Value) -> Option<&Map<String, Value>> {
    schema.get("properties").and_then(Value::as_object)
}

fn meaning(schema: &Value) -> String {
    let text = schema.get("description").and_then(Value::as_str).unwrap_or_default();
    text.replace('|', "\\|")
}

/// What values a field holds, in words.
fn holds(schema: &Value) -> String {
    if let Some(words) = schema.get("enum").and_then(Value::as_array) {
        let words: Vec<String> =
            words.iter().filter_map(Value::as_str).map(|word| format!("`{word}`")).collect();
        return words.join(", ");
    }
    let word = |name: &str| match name {
        "array" => "a list",
        "boolean" => "true or false",
        "integer" => "a whole number",
        "object" => "a map",
        "string" => "text",
        _ => "anything",
    };
    match schema.get("type") {
        Some(Value::Array(types)) => {
            types.iter().filter_map(Value::as_str).map(word).collect::<Vec<_>>().join(" or ")
        }
        one => word(one.and_then(Value::as_str).unwrap_or_default()).to_owned(),
    }
}

/// Writes the members of a value as YAML.
fn yaml(page: &mut String, value: &Value, depth: usize) {
    for (name, value) in value.as_object().into_iter().flatten() {
        let pad = " ".repeat(depth);
        match value {
            Value::Object(_) => {
                let _ = writeln!(page, "{pad}{}:", scalar(name));
                yaml(page, value, depth + 2);
            }
            Value::String(text) => {
                let _ = writeln!(page, "{pad}{}: {}", scalar(name), scalar(text));
            }
            other => {
                let _ = writeln!(page, "{pad}{}: {other}", scalar(name));
            }
        }
    }
}

/// Text as YAML reads it: quoted where it would be something else.
fn scalar(text: &str) -> String {
    let plain = text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "_-./ ".contains(c))
        && !["true", "false", "null", "yes", "no", "on", "off"].contains(&text);
    if plain { text.to_owned() } else { format!("{:?}", text) }
}
