//! Arguments that agents send: checked against the schema they were shown, all at once, and
//! refused with words that an agent can follow.

use cairn_engine as engine;
use cairn_lang::diagnostic::nearest;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::error::{Error, Result};
use crate::schema::Schema;

/// How many problems are told at once.
const PROBLEMS_MAX: usize = 8;

/// Something that is wrong with arguments.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Problem {
    /// Where, such as `output.artifacts[0]`.
    pub path: String,
    /// What is wrong there.
    pub problem: String,
    /// What to send instead.
    pub fix: String,
}

impl Problem {
    /// A problem at a path.
    pub fn new(path: &str, problem: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { path: path.to_owned(), problem: problem.into(), fix: fix.into() }
    }
}

impl From<Problem> for Error {
    fn from(problem: Problem) -> Self {
        invalid(&[problem])
    }
}

/// The failure of a call with problems, all of them in one line.
fn invalid(problems: &[Problem]) -> Error {
    let joined =
        |told: fn(&Problem) -> &str| problems.iter().map(told).collect::<Vec<_>>().join("; ");
    Error::Engine(engine::Error::Invalid {
        message: joined(|found| &found.problem),
        fix: joined(|found| &found.fix),
        details: json!({"problems": problems}),
    })
}

/// Reads arguments. What is left out and what is `null` are the same.
pub fn read<T: DeserializeOwned>(schema: &Schema, arguments: Map<String, Value>) -> Result<T> {
    let arguments = Value::Object(arguments);
    let mut problems = Vec::new();
    check(&Place { whole: schema, path: String::new() }, schema, &arguments, &mut problems);
    if !problems.is_empty() {
        problems.truncate(PROBLEMS_MAX);
        return Err(invalid(&problems));
    }
    // The schema was made from the type, so this is for what a schema cannot say.
    serde_json::from_value(arguments)
        .map_err(|error| Problem::new("", error.to_string(), "correct what it names").into())
}

/// Where in the arguments, and the schema of all of them.
struct Place<'a> {
    whole: &'a Schema,
    path: String,
}

impl Place<'_> {
    fn field(&self, name: &str) -> Self {
        let dot = if self.path.is_empty() { "" } else { "." };
        Self { whole: self.whole, path: format!("{}{dot}{name}", self.path) }
    }

    fn item(&self, index: usize) -> Self {
        Self { whole: self.whole, path: format!("{}[{index}]", self.path) }
    }

    fn problem(&self, problem: String, fix: String) -> Problem {
        Problem { path: self.path.clone(), problem, fix }
    }
}

fn check(place: &Place<'_>, schema: &Schema, value: &Value, problems: &mut Vec<Problem>) {
    if let Some(wanted) = schema.get("type").and_then(Value::as_str)
        && !is_of(value, wanted)
    {
        problems.push(wrong_type(place, wanted, value));
        return;
    }
    if let Some(Value::Array(choices)) = schema.get("enum")
        && !choices.contains(value)
    {
        problems.push(wrong_choice(place, choices, value));
    }
    match value {
        Value::Object(fields) => check_fields(place, schema, fields, problems),
        Value::Array(items) => {
            let Some(Value::Object(each)) = schema.get("items") else { return };
            for (index, item) in items.iter().enumerate() {
                check(&place.item(index), each, item, problems);
            }
        }
        _ => {}
    }
}

fn check_fields(
    place: &Place<'_>,
    schema: &Schema,
    fields: &Map<String, Value>,
    problems: &mut Vec<Problem>,
) {
    let known = properties(schema);
    let is_closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
    for (name, value) in fields {
        match known.and_then(|known| known.get(name)) {
            Some(Value::Object(_)) if value.is_null() => {}
            Some(Value::Object(inner)) => check(&place.field(name), inner, value, problems),
            _ if is_closed => problems.push(unknown(&place.field(name), name, schema)),
            _ => {}
        }
    }
    let required = schema.get("required").and_then(Value::as_array);
    for name in required.into_iter().flatten().filter_map(Value::as_str) {
        if fields.get(name).is_none_or(Value::is_null) {
            let place = place.field(name);
            let said = known.and_then(|known| known.get(name)?.get("description")?.as_str());
            let problem = format!("`{}` is missing", place.path);
            problems.push(place.problem(problem, format!("add it: {}", said.unwrap_or(name))));
        }
    }
}

fn properties(schema: &Schema) -> Option<&Map<String, Value>> {
    schema.get("properties").and_then(Value::as_object)
}

fn is_of(value: &Value, wanted: &str) -> bool {
    match wanted {
        "integer" => value.is_u64() || value.is_i64(),
        _ => kind(value) == wanted,
    }
}

const fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn wrong_type(place: &Place<'_>, wanted: &str, value: &Value) -> Problem {
    let found = kind(value);
    let problem = format!("`{}` is of type {found}, not {wanted}", place.path);
    let holds_json = matches!(wanted, "object" | "array")
        && value.as_str().is_some_and(|text| text.trim_start().starts_with(['{', '[']));
    let fix = if holds_json {
        format!("send the {wanted} itself, not a string that holds it")
    } else {
        format!("send `{}` as {wanted}", place.path)
    };
    place.problem(problem, fix)
}

fn wrong_choice(place: &Place<'_>, choices: &[Value], value: &Value) -> Problem {
    let names: Vec<&str> = choices.iter().filter_map(Value::as_str).collect();
    let given: String = value.to_string().chars().take(64).collect();
    // None of them is named: the nearest word may be one that leaves more to an agent.
    let problem = format!("`{}` is {given}", place.path);
    place.problem(problem, format!("it is one of {}", listed(&names)))
}

fn unknown(place: &Place<'_>, name: &str, schema: &Schema) -> Problem {
    let shown: String = name.chars().take(64).collect();
    let known: Vec<&str> =
        properties(schema).into_iter().flat_map(Map::keys).map(String::as_str).collect();
    let problem = format!("there is no field `{shown}` here");
    if place.path != name && properties(place.whole).is_some_and(|all| all.contains_key(name)) {
        return place.problem(problem, format!("send `{shown}` at the top, beside the others"));
    }
    if let Some(path) = elsewhere(place.whole, "", name) {
        return place.problem(problem, format!("it belongs in `{path}`: send `{path}.{shown}`"));
    }
    let near = nearest(name, known.iter().copied());
    let near = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
    place.problem(problem, format!("{near}the fields here are {}", listed(&known)))
}

/// The object that a field of this name belongs to, if one of them has it.
fn elsewhere(schema: &Schema, path: &str, name: &str) -> Option<String> {
    let inside = properties(schema)?;
    if !path.is_empty() && inside.contains_key(name) {
        return Some(path.to_owned());
    }
    let dot = if path.is_empty() { "" } else { "." };
    inside.iter().find_map(|(field, inner)| {
        elsewhere(inner.as_object()?, &format!("{path}{dot}{field}"), name)
    })
}

fn listed(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
