//! What a run waits for somebody to say, in lines: what is asked, and how it is answered.

use serde_json::Value;

/// A question to a person.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The run that asks.
    pub run: &'a str,
    /// The question's own id.
    pub task: &'a str,
    /// The step that asks.
    pub step: &'a str,
    /// In words.
    pub prompt: &'a str,
    /// The JSON schema of the answer's fields, when more than yes or no is asked for.
    pub form: Option<&'a Value>,
    /// Who may answer; anybody when it is empty.
    pub who: &'a [&'a str],
}

impl Asked<'_> {
    /// What is asked, the fields of the form, and the command that answers.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let who = match self.who {
            [] => String::new(),
            names => format!(" {}", names.join(", ")),
        };
        let mut lines = vec![format!("{} asks{who}: {}", self.step, self.prompt)];
        let fields = fields(self.form);
        let width = fields.iter().map(|field| field.name.chars().count()).max().unwrap_or_default();
        lines.extend(fields.iter().map(|field| {
            let (name, rules) = (field.name, field.rules());
            format!("  {name:<width$}  {rules}").trim_end().to_owned()
        }));
        lines.push(format!("  → {}  (or --reject)", self.command(&fields)));
        lines
    }

    fn command(&self, fields: &[Field<'_>]) -> String {
        let mut command = format!("cairn runs answer {} {} --approve", self.run, self.task);
        for field in fields {
            let set = format!("--set {}=…", field.name);
            command.push_str(&if field.required { format!(" {set}") } else { format!(" [{set}]") });
        }
        if let [name, ..] = self.who {
            command.push_str(&format!(" --by {name}"));
        }
        command
    }
}

/// What a step asks of an agent, and how one joins.
#[must_use]
pub fn of_agent(run: &str, step: &str, prompt: &str) -> Vec<String> {
    let first = prompt.lines().next().unwrap_or_default();
    vec![
        format!("{step} waits for an agent: {first}"),
        format!("  → cairn guide --continue {run}  (an agent finds it with resume_session)"),
    ]
}

/// What somebody decides of a step that was cut off, and the command that says it.
#[must_use]
pub fn cut_off(run: &str, step: &str) -> [String; 2] {
    [
        format!("{step} was cut off: nobody knows whether what it does was done"),
        format!("  → cairn runs resolve {run} {step} --decision retry|skip|fail"),
    ]
}

struct Field<'a> {
    name: &'a str,
    schema: &'a Value,
    required: bool,
}

/// The fields of a form, those first that have to be filled in.
fn fields(form: Option<&Value>) -> Vec<Field<'_>> {
    let member = |name: &str| form.and_then(|form| form.get(name));
    let required = member("required").and_then(Value::as_array);
    let is_required =
        |name: &str| required.is_some_and(|names| names.iter().any(|other| other == name));
    let properties = member("properties").and_then(Value::as_object);
    let mut fields: Vec<Field<'_>> = properties
        .into_iter()
        .flatten()
        .map(|(name, schema)| Field { name, schema, required: is_required(name) })
        .collect();
    fields.sort_by_key(|field| !field.required);
    fields
}

impl Field<'_> {
    /// What may be filled in, in words.
    fn rules(&self) -> String {
        let mut rules = Vec::new();
        let get = |name: &str| self.schema.get(name).filter(|value| !value.is_null());
        match (get("enum").and_then(Value::as_array), get("type")) {
            (Some(choices), _) => rules.push(format!("one of {}", list(choices))),
            (None, Some(Value::Array(types))) => rules.push(list(types).replace(", ", " or ")),
            (None, Some(kind)) => rules.push(word(kind)),
            (None, None) => {}
        }
        if self.required {
            rules.push("required".to_owned());
        }
        for (name, words) in [
            ("minimum", "at least"),
            ("maximum", "at most"),
            ("minLength", "length at least"),
            ("maxLength", "length at most"),
            ("pattern", "like"),
            ("format", "as"),
        ] {
            rules.extend(get(name).map(|value| format!("{words} {}", word(value))));
        }
        let rules = rules.join(", ");
        match get("description").or(get("title")).and_then(Value::as_str) {
            Some(about) if rules.is_empty() => about.to_owned(),
            Some(about) => format!("{rules}: {about}"),
            None => rules,
        }
    }
}

fn list(values: &[Value]) -> String {
    values.iter().map(word).collect::<Vec<_>>().join(", ")
}

fn word(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use serde_json::json;

    use super::*;

    fn asked(form: Option<&Value>, who: &[&str]) -> String {
        let (run, task, step, prompt) = ("run_1", "task_2", "check", "Refund 12 EUR?");
        Asked { run, task, step, prompt, form, who }.lines().join("\n")
    }

    #[test]
    fn a_question_says_what_is_asked_for_and_how_it_is_answered() {
        assert_snapshot!(asked(None, &[]), @r"
        check asks: Refund 12 EUR?
          → cairn runs answer run_1 task_2 --approve  (or --reject)
        ");
        let form = json!({
            "type": "object",
            "required": ["why"],
            "properties": {
                "kind": {"enum": ["full", "part", 3]},
                "note": {"description": "For the customer"},
                "share": {"type": ["integer", "null"], "minimum": 0, "maximum": 100},
                "why": {"type": "string", "minLength": 3, "description": "In a sentence"},
            },
        });
        assert_snapshot!(asked(Some(&form), &["ada", "bo"]), @r"
        check asks ada, bo: Refund 12 EUR?
          why    string, required, length at least 3: In a sentence
          kind   one of full, part, 3
          note   For the customer
          share  integer or null, at least 0, at most 100
          → cairn runs answer run_1 task_2 --approve --set why=… [--set kind=…] [--set note=…] [--set share=…] --by ada  (or --reject)
        ");
    }
}
