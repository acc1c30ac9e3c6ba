//! The reference of the tools, as Markdown.

use std::fmt::Write as _;

use cairn_api::schema::Schema;
use serde_json::Value;

use crate::ToolSet;
use crate::tools::{self, Effect, Entry};

const HEAD: &str = "# MCP tools

<!-- Written by `cargo xtask generate`; change the tools instead. -->

What `cairn mcp` on standard input and output, and `/mcp` of `cairn serve`, offer to agents. \
Tools read the data of Cairn or add to it; none destroys any of it. Those that perform steps of a \
workflow run the commands that it names, which can do anything that their user can; they say so in \
`destructiveHint` and `openWorldHint`. [The guide](../guide/mcp.md) shows how to connect an agent. \
A `?` marks what may be left out.

A failure is a tool result with `isError`, and its data is the error envelope: `code`, `message`, \
`retry`, `suggestion`, and sometimes `details`. [The codes](../errors/README.md) have a page each.
";

/// The whole page. It depends on the tools alone.
#[must_use]
pub fn reference() -> String {
    let mut page = HEAD.to_owned();
    for entry in tools::table(ToolSet { start_session: true }) {
        tool(&mut page, &entry);
    }
    page
}

fn tool(page: &mut String, entry: &Entry) {
    let effect = match entry.effect {
        Effect::Reads => "Changes nothing.",
        Effect::WritesOnce => "The same call again changes nothing more.",
        Effect::Writes => "Every call adds something.",
    };
    let performs = if entry.performs { " Runs the commands of `shell` steps." } else { "" };
    let said = entry.description.replace('\n', "\n\n");
    // Writing to a String cannot fail.
    let _ =
        write!(page, "\n## `{}`\n\n{}. {effect}{performs}\n\n{said}\n", entry.name, entry.title);
    if entry.name == "start_session" {
        page.push_str("\nOnly with `--enable-start-session` or `CAIRN_START_SESSION`.\n");
    }
    if has_fields(&entry.input) {
        page.push_str("\n| Argument | Type | Meaning |\n| --- | --- | --- |\n");
        rows(page, &entry.input, "");
    }
    page.push_str("\n| Answer | Type | Meaning |\n| --- | --- | --- |\n");
    rows(page, &entry.output, "");
}

fn has_fields(schema: &Schema) -> bool {
    schema.get("properties").and_then(Value::as_object).is_some_and(|all| !all.is_empty())
}

/// A row for each field, then those inside it.
fn rows(page: &mut String, schema: &Schema, parent: &str) {
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|all| all.iter().any(|one| one == name));
    let fields = schema.get("properties").and_then(Value::as_object);
    for (name, field) in fields.into_iter().flatten() {
        let Some(field) = field.as_object() else { continue };
        let path = format!("{parent}{name}");
        let always = if is_required(name) { "" } else { "?" };
        let said = field.get("description").and_then(Value::as_str).unwrap_or_default();
        let said = said.replace('|', "\\|");
        let _ = writeln!(page, "| `{path}`{always} | {} | {said} |", kind(field));
        rows(page, field, &format!("{path}."));
        if let Some(items) = field.get("items").and_then(Value::as_object) {
            rows(page, items, &format!("{path}[]."));
        }
    }
}

fn kind(field: &Schema) -> String {
    let choices = field.get("enum").and_then(Value::as_array).into_iter().flatten();
    let choices: Vec<String> =
        choices.filter_map(Value::as_str).map(|choice| format!("`{choice}`")).collect();
    if !choices.is_empty() {
        return choices.join(", ");
    }
    match field.get("type") {
        Some(Value::String(name)) => name.clone(),
        Some(Value::Array(names)) => {
            names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or ")
        }
        _ => "any".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_and_every_argument_is_on_the_page() {
        let page = reference();
        for entry in tools::table(ToolSet { start_session: true }) {
            assert!(page.contains(&format!("\n## `{}`\n", entry.name)));
            let arguments = entry.input.get("properties").and_then(Value::as_object);
            for name in arguments.into_iter().flat_map(|all| all.keys()) {
                assert!(page.contains(&format!("| `{name}`")), "{name}");
            }
        }
    }
}
