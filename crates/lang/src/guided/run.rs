//! Steps that the engine performs: commands, values, lines of history, and the early end.

use std::collections::BTreeSet;

use cairn_core::canonical::StrictValue;
use cairn_core::command::{self, Called, Input, Sent, Word, configures};
use cairn_core::guided::performed::SAVE_AS;
use cairn_core::plan::Action;
use cairn_core::text::Slug;
use serde_json::{Map, Value, json};

use super::step::FIELDS;
use super::{Build, Scope, condition, prompt};
use crate::builtins::{Holds, RunType, Setting};
use crate::diagnostic::Code;
use crate::read::{Fields, Spot};
use crate::source;

/// What a step with `run` can say beside it.
const BESIDE: [&str; 5] = ["id", "run", "runCondition", "title", "type"];

/// How many bytes the settings of a step may have.
const CONFIG_MAX: usize = 64 << 10;

impl<'a> Build<'a> {
    /// A step that no agent sees: the engine performs it and goes on.
    pub(super) fn run(&mut self, fields: &Fields<'a>, scope: &Scope) -> Option<Slug> {
        // A field that is not known at all has been told already.
        let misplaced = |name: &str| FIELDS.contains(&name) && !BESIDE.contains(&name);
        for (name, spot) in fields.all().filter(|(name, _)| misplaced(name)) {
            let hint = match name {
                "requireConfirmation" => "ask in a step with a prompt in front of it",
                _ => "no agent sees this step: give it to a step with a prompt",
            };
            let message = format!("`{name}` cannot stand beside `run`");
            spot.error_hint(Code::Conflict, message, hint);
        }
        let named = self.id(fields, scope);
        let id = named.as_ref().map(|(_, id)| id);
        let action = fields.get("run").and_then(|spot| self.typed(&spot, scope, id));
        // What is wrong has been told; the step stays, so that the rest is looked at too.
        let action = action.unwrap_or_else(|| Action::Prompt(Box::default()));
        self.keep(fields, scope, named, action, Vec::new())
    }

    fn typed(&self, spot: &Spot<'a>, scope: &Scope, id: Option<&Slug>) -> Option<Action> {
        if !spot.is_map() {
            spot.fields(&[]);
            return None;
        }
        let Some(given) = spot.node.get("type") else {
            let known = self.catalog.runs.iter().map(|known| format!("`{}`", known.id));
            let hint = format!("add `type`, one of {}", known.collect::<Vec<_>>().join(", "));
            spot.error_hint(Code::MissingField, "nothing says what kind of step this is", hint);
            return None;
        };
        let kind = spot.child("type", given);
        let found = self.catalog.run_type(kind.filled()?);
        let Some(found) = found else {
            let known = self.catalog.runs.iter().map(|known| known.id);
            kind.unknown("type of step", kind.text()?, known);
            return None;
        };
        let mut config = settings(spot, found, scope)?;
        let key = match spot.node.get(SAVE_AS) {
            Some(key) => save_as(&spot.child(SAVE_AS, key))?,
            None => default_key(id?.as_str()),
        };
        config.insert(SAVE_AS.to_owned(), json!(key));
        input(spot, &mut config);
        let config = Value::Object(config);
        let bytes = config.to_string().len();
        if bytes > CONFIG_MAX {
            let message = format!("the step has {bytes} bytes; at most {CONFIG_MAX} may be");
            spot.error_hint(Code::TooLong, message, "keep long scripts in a file");
        }
        let r#type = found.id.parse().ok()?;
        Some(Action::Typed { config: StrictValue::new(config), r#type })
    }
}

/// The action that runs a command and keeps the outcome under a key.
pub(super) fn shell(spot: &Spot<'_>, key: &str, seconds: u32) -> Option<Action> {
    let config = json!({
        "command": command_of(spot)?,
        SAVE_AS: key,
        "timeoutMs": u64::from(seconds) * 1_000,
    });
    Some(Action::Typed { config: StrictValue::new(config), r#type: "shell".parse().ok()? })
}

/// The keys of the context that the steps of a list set by being performed.
pub(super) fn outcomes(list: &Spot<'_>, scope: &Scope) -> BTreeSet<String> {
    let source::Value::List(items) = &list.node.value else { return BTreeSet::new() };
    let key = |item: &source::Node| {
        let given = item.get("run")?.get(SAVE_AS).and_then(source::Node::as_text);
        let id = item.get("id").and_then(source::Node::as_text)?;
        Some(given.map_or_else(|| default_key(&format!("{}{id}", scope.prefix)), str::to_owned))
    };
    items.iter().filter_map(key).collect()
}

pub(super) fn default_key(id: &str) -> String {
    id.replace(['-', '.'], "_")
}

/// The settings of a step as the plan carries them.
fn settings(spot: &Spot<'_>, kind: &RunType, scope: &Scope) -> Option<Map<String, Value>> {
    let mut known: Vec<&str> = kind.settings.iter().map(|setting| setting.name).collect();
    known.extend(["type", SAVE_AS]);
    let fields = spot.fields(&known)?;
    let mut config = Map::new();
    let mut whole = true;
    for setting in kind.settings {
        let given =
            if setting.required { fields.need(setting.name) } else { fields.get(setting.name) };
        let (name, times) = setting.holds.planned(setting.name);
        let value = match (given, setting.holds) {
            (Some(given), _) => value(&given, setting, scope),
            (None, Holds::Seconds { default, .. }) => Some(json!(u64::from(default))),
            (None, _) if setting.required => None,
            (None, _) => continue,
        };
        whole &= value.is_some();
        let counted = |value: Value| match value.as_u64() {
            Some(number) if times != 1 => json!(number.saturating_mul(times)),
            _ => value,
        };
        config.extend(value.map(|value| (name, counted(value))));
    }
    whole.then_some(config)
}

fn value(spot: &Spot<'_>, setting: &Setting, scope: &Scope) -> Option<Value> {
    match setting.holds {
        Holds::Command => command_of(spot),
        Holds::Environment => environment(spot, scope),
        Holds::InnerPath => inner_path(spot).map(|path| json!(path)),
        Holds::Seconds { max, .. } => spot.whole(1, max).map(|seconds| json!(seconds)),
        Holds::Text => text(spot, scope).map(|text| json!(text)),
        Holds::Value => filled(spot, scope),
    }
}

/// Says what of a command's input a run brings, and refuses it where a program is read, and as
/// a variable where a program makes program text of it.
fn input(spot: &Spot<'_>, config: &mut Map<String, Value>) {
    let Some(command) = config.get("command").and_then(Value::as_array) else { return };
    let words: Vec<Word<'_>> =
        command.iter().filter_map(Value::as_str).map(Word::literal).collect();
    let reading = command::read(&words, &Called);
    let is_brought = |value: &Value| value.as_str().is_some_and(|text| text.contains("{{"));
    let variables = config.get("env").and_then(Value::as_object);
    if reading.expands
        && variables.is_some_and(|variables| variables.values().any(is_brought))
        && let Some(env) = spot.node.get("env")
    {
        spot.child("env", env).error_hint(
            Code::TaintedValue,
            "`{{…}}` cannot stand here: `make` expands variables as program text",
            "write the value itself, or hand it over in a file or in `stdin`",
        );
    }
    for (name, why) in &reading.variables {
        let value = variables.and_then(|variables| variables.get(name));
        if value.is_some_and(is_brought)
            && let Some(env) = spot.node.get("env")
        {
            let env = spot.child("env", env);
            let spot = env.node.get(name).map(|node| env.child(name, node)).unwrap_or(env);
            spot.error_hint(
                Code::TaintedValue,
                format!("what a run brings cannot {why}, as `{name}` would here"),
                "hand the value over as an argument or in `stdin` of a program that reads data",
            );
        }
    }
    if let Some(found) = &reading.unfollowed {
        let given = ["env", "stdin"].into_iter().filter(|name| match config.get(*name) {
            Some(Value::Object(variables)) => variables.values().any(is_brought),
            value => value.is_some_and(is_brought),
        });
        for node in given.filter_map(|name| Some((name, spot.node.get(name)?))) {
            spot.child(node.0, node.1).error_hint(
                Code::TaintedValue,
                format!(
                    "the command line {} (`{}`), and what a run brings cannot be followed through \
                     it",
                    found.what, found.near
                ),
                "put the line into a script file, and hand the value over as a variable of that",
            );
        }
    }
    if !config.get("stdin").is_some_and(is_brought) {
        return;
    }
    if reading.input != Input::Data
        && let Some(stdin) = spot.node.get("stdin")
    {
        spot.child("stdin", stdin).error_hint(
            Code::TaintedValue,
            "`{{…}}` cannot stand here: the command makes a program or arguments of what it reads",
            "hand the value over in `env`, or in `stdin` of a program that reads data",
        );
    }
    let sent = Sent { stdin: true, ..Sent::default() };
    config.insert(Sent::FIELD.to_owned(), json!(sent));
}

/// A command as a program and its arguments.
fn command_of(spot: &Spot<'_>) -> Option<Value> {
    if !spot.is_list() {
        let line = verbatim(spot)?;
        return spot.filled().map(|_| json!(["sh", "-c", line]));
    }
    let parts = spot.items();
    let Some(program) = parts.first() else {
        spot.error(Code::InvalidValue, "the command is empty");
        return None;
    };
    let parts: Vec<Option<&str>> = parts.iter().map(verbatim).collect();
    program.filled()?;
    parts.into_iter().collect::<Option<Vec<&str>>>().map(|parts| json!(parts))
}

/// Text that stays as it is written, because a program is made of it.
fn verbatim<'a>(spot: &Spot<'a>) -> Option<&'a str> {
    let text = spot.text().filter(|text| without_nul(spot, text))?;
    if text.contains("{{") {
        spot.error_hint(
            Code::Unsupported,
            "`{{…}}` cannot stand in a command: what a run brings is data, not program text",
            "hand the value over in `env` or `stdin`, and write `\"$NAME\"` here",
        );
        return None;
    }
    Some(text)
}

fn environment(spot: &Spot<'_>, scope: &Scope) -> Option<Value> {
    let mut variables = Map::new();
    let mut whole = spot.is_map();
    for (name, spot) in spot.members() {
        let text = text(&spot, scope);
        let safe = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if !name.chars().all(safe) || !name.starts_with(|c: char| safe(c) && !c.is_ascii_digit()) {
            let message = format!("`{name}` cannot name an environment variable");
            spot.error_hint(Code::InvalidId, message, "use letters, digits and `_`");
            whole = false;
        }
        if configures(name) && text.as_ref().is_some_and(|text| text.contains("{{")) {
            let message =
                format!("`{{{{…}}}}` cannot be `{name}`, where programs look for what they run");
            spot.error_hint(Code::TaintedValue, message, "write the path itself");
            whole = false;
        }
        whole &= text.is_some();
        variables.extend(text.map(|text| (name.to_owned(), json!(text))));
    }
    whole.then_some(Value::Object(variables))
}

fn inner_path<'a>(spot: &Spot<'a>) -> Option<&'a str> {
    let path = spot.filled().filter(|text| without_nul(spot, text))?;
    if path.starts_with(['/', '~']) || path.split('/').any(|part| part == "..") {
        let message = format!("`{path}` leads out of the working directory");
        spot.error_hint(Code::InvalidValue, message, "name a directory inside it, such as `web`");
        return None;
    }
    if path.contains("{{") {
        let hint = "write the path itself";
        spot.error_hint(Code::Unsupported, "`{{…}}` cannot stand in a path", hint);
        return None;
    }
    Some(path)
}

/// Text with its arguments and slots filled in. Blanks at its ends stay.
fn text(spot: &Spot<'_>, scope: &Scope) -> Option<String> {
    let text = spot.text().filter(|text| without_nul(spot, text))?;
    Some(prompt::replaced(spot, text, scope))
}

/// A value whose texts are filled in.
fn filled(spot: &Spot<'_>, scope: &Scope) -> Option<Value> {
    match &spot.node.value {
        source::Value::Text(_) => text(spot, scope).map(Value::String),
        source::Value::List(_) => {
            let items: Vec<_> = spot.items().iter().map(|item| filled(item, scope)).collect();
            items.into_iter().collect::<Option<Vec<_>>>().map(Value::Array)
        }
        source::Value::Map(_) => {
            let members: Vec<_> = spot
                .members()
                .iter()
                .map(|(name, spot)| Some(((*name).to_owned(), filled(spot, scope)?)))
                .collect();
            members.into_iter().collect::<Option<Map<_, _>>>().map(Value::Object)
        }
        _ => Some(spot.node.to_json()),
    }
}

/// The key of the context that the outcome is kept under.
fn save_as(spot: &Spot<'_>) -> Option<String> {
    let key = condition::path(spot)?;
    if key.contains('.') {
        let message = format!("`{key}` leads into a value; the outcome has a key of its own");
        spot.error_hint(Code::InvalidValue, message, format!("such as `{}`", default_key(&key)));
        return None;
    }
    Some(key)
}

fn without_nul(spot: &Spot<'_>, text: &str) -> bool {
    let clean = !text.contains('\0');
    if !clean {
        spot.error(Code::InvalidValue, "a zero byte cannot be handed to a program");
    }
    clean
}
