//! Warns of a workflow in which what somebody sent, a secret and a way out come together: whoever
//! can talk a step into something has what to send, and where to.

use cairn_core::expression::{self, Expr, Reference};
use cairn_core::plan::{Action, Step};
use serde_json::Value;

use super::Build;
use crate::diagnostic::Code;

/// Fields of an event that somebody outside writes.
const SENT: [&str; 4] = ["payload", "text", "thread", "user"];

impl Build<'_> {
    /// Says so once, at the first step that leads out.
    pub(super) fn exposure(&self, steps: &[Step]) {
        let Some((out, how)) = steps.iter().find_map(|step| self.leads_out(step)) else { return };
        let sent = steps.iter().find_map(|step| {
            let here = self.places.get(step.id.as_str()).copied()?;
            looks(step).into_iter().find(|look| self.is_from_outside(here, &look.at))
        });
        let Some(sent) = sent else { return };
        let Some(held) = steps.iter().find_map(holds) else { return };
        let Some(draft) = self.places.get(out.id.as_str()).and_then(|at| self.drafts.get(*at))
        else {
            return;
        };
        let message = format!(
            "`{}` writes outside ({how}), while {held} and `{}` what somebody sent (`{}`)",
            out.id,
            sent.field,
            sent.path(),
        );
        let hint = "limit `http` steps with `hosts` and agents with `allowed_tools`, let a `human` \
                    step approve what goes out, or move the secret into a workflow that takes \
                    declared input only";
        draft.spot.warn(Code::UntrustedWithSecret, message, hint);
    }

    /// Whether what a step is told gets outside, and nothing limits where to.
    fn leads_out<'s>(&self, step: &'s Step) -> Option<(&'s Step, String)> {
        let Action::Typed { config, r#type } = &step.action else { return None };
        let how = match r#type.as_str() {
            kind @ ("python" | "shell") => kind.to_owned(),
            kind @ ("agent" | "skill") if has_tools(step) => format!("{kind} with tools"),
            // What the child does is not known here.
            "workflow" => "workflow, which may do so".to_owned(),
            "http" if self.hosts.is_none() => {
                let method = config.0.get("method").and_then(Value::as_str).unwrap_or("GET");
                let reads = matches!(method, "GET" | "HEAD");
                // An address says as much as a body, if a run makes it.
                if reads && !["query", "url"].iter().any(|field| carries(step, field)) {
                    return None;
                }
                format!("http {method}")
            }
            "db_query" => {
                let read_only = config.0.get("read_only").and_then(Value::as_bool);
                (read_only != Some(true)).then(|| "db_query without `read_only`".to_owned())?
            }
            _ => return None,
        };
        Some((step, how))
    }

    /// Whether a reference brings what somebody outside wrote: the same values that cannot be an
    /// option or a host, but for what the engine itself puts into an event.
    fn is_from_outside(&self, here: usize, reference: &Reference) -> bool {
        let first = reference.members.first().and_then(|(name, _)| name.as_deref());
        let is_own = reference.root == "event" && first.is_some_and(|name| !SENT.contains(&name));
        !is_own && self.is_tainted(here, reference)
    }
}

/// What a step holds that nobody else is to know, in words.
fn holds(step: &Step) -> Option<String> {
    let secret = looks(step).into_iter().find(|look| look.at.root == "secret");
    if let Some(secret) = secret {
        return Some(format!("`{}` holds the secret `{}`", secret.field, secret.name()));
    }
    // The commands of an agent inherit the key to its model.
    has_tools(step).then(|| format!("`{}` holds the key to its model", step.id))
}

/// Whether a step hands work to an agent that may use tools.
fn has_tools(step: &Step) -> bool {
    let Action::Typed { config, r#type } = &step.action else { return false };
    let tools = config.0.get("allowed_tools").and_then(Value::as_array);
    matches!(r#type.as_str(), "agent" | "skill") && tools.is_some_and(|tools| !tools.is_empty())
}

/// Whether a run decides something of a setting of a step.
fn carries(step: &Step, field: &str) -> bool {
    let Action::Typed { config, .. } = &step.action else { return false };
    let mut found = Vec::new();
    config.0.get(field).into_iter().for_each(|value| collect(field, value, &mut found));
    found.iter().any(|look| !matches!(look.at.root.as_str(), "env" | "run"))
}

/// A look at something from the settings of a step.
struct Looked {
    /// Which setting, such as `notify.headers.Authorization`.
    field: String,
    at: Reference,
}

impl Looked {
    /// The name of the secret.
    fn name(&self) -> &str {
        self.at.members.first().and_then(|(name, _)| name.as_deref()).unwrap_or_default()
    }

    /// What is looked at, as it is written.
    fn path(&self) -> String {
        let names = self.at.members.iter().map_while(|(name, _)| name.as_deref());
        std::iter::once(self.at.root.as_str()).chain(names).collect::<Vec<_>>().join(".")
    }
}

fn looks(step: &Step) -> Vec<Looked> {
    let mut found = Vec::new();
    if let Action::Typed { config, .. } = &step.action {
        collect(step.id.as_str(), &config.0, &mut found);
    }
    found
}

fn collect(field: &str, value: &Value, found: &mut Vec<Looked>) {
    match value {
        Value::String(text) if text.contains("{{") => {
            let Ok(template) = expression::template(text, &|_| true) else { return };
            let references = template.values().flat_map(Expr::references);
            found.extend(references.map(|at| Looked { field: field.to_owned(), at }));
        }
        Value::Array(items) => items.iter().for_each(|item| collect(field, item, found)),
        Value::Object(members) => {
            members.iter().for_each(|(name, member)| {
                collect(&format!("{field}.{name}"), member, found);
            });
        }
        _ => {}
    }
}
