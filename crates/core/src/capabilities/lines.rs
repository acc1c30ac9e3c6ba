//! What a plan can do, as lines for a terminal.

use super::{AgentUse, Asked, Capabilities, CommandText, FileRole, Host};
use crate::plan::{ConfirmedBy, TableAccess};
use crate::text::{Slug, inert};

/// How wide the first column is.
const WIDTH: usize = 10;

impl Capabilities {
    /// Short lines, one for each thing. Nothing is cut, so nothing can hide behind a cut: a
    /// command of several lines takes as many.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for found in &self.commands {
            let text = command(&found.command);
            lines.extend(block("command", &format!("{}: {text}", found.step)));
        }
        for found in &self.hosts {
            let host = match &found.host {
                Host::Literal(host) => host.clone(),
                Host::Decided(url) => format!("a host that the run decides, {url}"),
            };
            lines.extend(block("host", &format!("{}: {} {host}", found.step, found.method)));
        }
        for found in &self.databases {
            let access = if found.read_only { "read only" } else { "read and write" };
            let text = format!("{}: {} ({access})", found.step, found.database);
            lines.extend(block("database", &text));
        }
        for table in &self.tables {
            let access = match table.access {
                TableAccess::Read => "read only",
                TableAccess::ReadWrite => "read and write",
            };
            lines.extend(block("table", &format!("{} ({access})", table.r#ref)));
        }
        for secret in &self.secrets {
            // What only signatures are checked with goes nowhere.
            if !secret.signs.is_empty() && secret.signs.len() == secret.used_by.len() {
                let paths: Vec<String> =
                    secret.signs.iter().map(|path| format!("/hooks{path}")).collect();
                let text = format!("{} signs requests to {}", secret.name, paths.join(", "));
                lines.extend(block("secret", &text));
                continue;
            }
            let hosts = match secret.hosts.is_empty() {
                true => "any host that a step reaches".to_owned(),
                false => secret.hosts.join(", "),
            };
            let by = match secret.used_by.is_empty() {
                true => "used by no step".to_owned(),
                false => format!("used by {}", listed(&secret.used_by)),
            };
            lines.extend(block("secret", &format!("{} → {hosts}; {by}", secret.name)));
        }
        lines.extend(self.rest());
        lines
    }

    fn rest(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for file in &self.files {
            let role = match file.role {
                FileRole::Asset => "",
                FileRole::PackageReference => " (an agent reads it, beside the workflow)",
                FileRole::WorkspaceReference => " (an agent reads it, in the workspace)",
            };
            lines.extend(block("file", &format!("{}{role}", file.path)));
        }
        for child in &self.children {
            let text = match &child.step {
                Some(step) => format!("{step}: starts {}", child.workflow),
                None => format!("when a run fails: starts {}", child.workflow),
            };
            lines.extend(block("workflow", &text));
        }
        for found in &self.agents {
            lines.extend(block("agent", &agent(found)));
        }
        if !self.prompts.is_empty() {
            let count = self.prompts.len();
            let text = format!("{count} handed to an agent: {}", listed(&self.prompts));
            lines.extend(block("prompts", &text));
        }
        for question in &self.people {
            let whom = match &question.asks {
                Asked::Anybody => "asks anybody who may run it".to_owned(),
                Asked::OneOf(who) => format!("asks {}", who.join(" or ")),
                Asked::Confirmation(ConfirmedBy::User) => "asks the user".to_owned(),
                Asked::Confirmation(ConfirmedBy::HumanApproval) => "asks an approver".to_owned(),
                Asked::Confirmation(ConfirmedBy::CoordinatorEval) => {
                    "asks another agent".to_owned()
                }
            };
            let late = match question.unattended {
                true => ", and is approved when nobody answers in time",
                false => "",
            };
            lines.extend(block("person", &format!("{}: {whom}{late}", question.step)));
        }
        for step in &self.answers {
            lines.extend(block("answer", &format!("{step}: answers the webhook")));
        }
        for found in &self.unknown {
            let what = format!("a step of type {}, which this version does not know", found.r#type);
            lines.extend(block("unknown", &format!("{}: {what}", found.step)));
        }
        lines
    }
}

impl CommandText {
    /// The command on as many lines as it was written on.
    #[must_use]
    pub fn shown(&self) -> String {
        command(self)
    }
}

fn agent(found: &AgentUse) -> String {
    let who = found.provider.clone().unwrap_or_else(|| match &found.preset {
        Some(preset) => format!("whoever the preset {preset} names"),
        None => "the configured provider".to_owned(),
    });
    let mut text = format!("{}: {} by {who}", found.step, found.r#type);
    let mut add = |what: &str, value: &str| text.push_str(&format!("; {what} {value}"));
    if let (Some(preset), Some(_)) = (&found.preset, &found.provider) {
        add("preset", preset);
    }
    if let Some(model) = &found.model {
        add("model", model);
    }
    match found.tools.is_empty() {
        true if found.r#type == "classify" => {}
        true => add("no", "tools"),
        false => add("may use", &found.tools.join(", ")),
    }
    if !found.skills.is_empty() {
        add("skills", &found.skills.join(", "));
    }
    if let Some(workdir) = &found.workdir {
        add("works in", workdir);
    }
    match found.session.as_deref() {
        None => {}
        Some("root") => add("remembers", "the conversation of the run"),
        Some("persistent") => add("remembers", "the conversations of earlier runs"),
        Some(other) => add("session", other),
    }
    text
}

fn command(command: &CommandText) -> String {
    match command {
        CommandText::Line(line) => line.trim_end().to_owned(),
        CommandText::Program(parts) => {
            parts.iter().map(|part| quoted(part)).collect::<Vec<_>>().join(" ")
        }
        CommandText::Decided(text) => format!("a command that the run decides, {text}"),
    }
}

/// An argument as it would be typed. Templates stay readable.
fn quoted(part: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./:=@%+,{}".contains(c);
    if !part.is_empty() && part.chars().all(plain) {
        return part.to_owned();
    }
    format!("'{}'", part.replace('\'', r"'\''"))
}

fn listed(names: &[Slug]) -> String {
    names.iter().map(Slug::as_str).collect::<Vec<_>>().join(", ")
}

/// A label and its text; further lines of the text stand below it.
fn block(label: &str, text: &str) -> Vec<String> {
    let line = |(place, line): (usize, &str)| {
        let label = if place == 0 { label } else { "" };
        format!("{label:WIDTH$}{}", inert(line))
    };
    text.lines().enumerate().map(line).collect()
}
