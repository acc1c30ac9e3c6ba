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
        let mut looks = steps.iter().flat_map(looks);
        let Some(sent) = looks.find(|look| self.is_from_outside(&look.at)) else { return };
        let mut looks = steps.iter().flat_map(looks_at_secrets);
        let Some(secret) = looks.next() else { return };
        let Some(draft) = self.places.get(out.id.as_str()).and_then(|at| self.drafts.get(*at))
        else {
            return;
        };
        let message = format!(
            "`{}` writes outside ({how}), while `{}` holds the secret `{}` and `{}` what somebody \
             sent (`{}`)",
            out.id,
            secret.field,
            secret.name(),
            sent.field,
            sent.path(),
        );
        let hint = "limit `http` steps with `hosts`, let a `human` step approve what goes out, or \
                    move the secret into a workflow that takes declared input only";
        draft.spot.warn(Code::UntrustedWithSecret, message, hint);
    }

    /// Whether a step changes something outside that nothing limits, and with what.
    fn leads_out<'s>(&self, step: &'s Step) -> Option<(&'s Step, String)> {
        let Action::Typed { config, r#type } = &step.action else { return None };
        let how = match r#type.as_str() {
            kind @ ("agent" | "python" | "shell" | "skill") => kind.to_owned(),
            "http" if self.hosts.is_none() => {
                let method = config.0.get("method").and_then(Value::as_str);
                let method = method.filter(|method| !matches!(*method, "GET" | "HEAD"))?;
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

    /// Whether a reference brings what somebody outside wrote.
    fn is_from_outside(&self, reference: &Reference) -> bool {
        let first = reference.members.first().and_then(|(name, _)| name.as_deref());
        match reference.root.as_str() {
            "event" => {
                first.is_none_or(|name| SENT.contains(&name)) && !self.is_declared(reference)
            }
            "steps" => {
                let place = first.and_then(|step| self.places.get(step));
                place.and_then(|at| self.drafts.get(*at)).is_some_and(|draft| draft.is("http"))
            }
            _ => false,
        }
    }
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

fn looks_at_secrets(step: &Step) -> impl Iterator<Item = Looked> {
    looks(step).into_iter().filter(|look| look.at.root == "secret")
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
