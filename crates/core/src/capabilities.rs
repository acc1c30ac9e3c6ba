//! What a plan can do: everything of it that reaches beyond the engine, in one list.
//!
//! It is read from the plan alone, so it is known before anything runs and the same on every
//! machine. A step of a type that is not known here is listed too: nothing that a plan can do is
//! left out because this version does not know it.

mod address;
mod lines;

pub use address::{host, without_port};

use serde_json::{Map, Value, json};

use crate::expression::{self, Expr};
use crate::plan::{Action, ConfirmedBy, DataTable, EnvField, Plan, ResolveFrom, Step};
use crate::text::Slug;

/// What a plan can do. Steps are in the order of the plan, names in order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Capabilities {
    /// The commands that are run.
    pub commands: Vec<StepCommand>,
    /// The hosts that are asked over HTTP.
    pub hosts: Vec<StepHost>,
    /// The databases that are asked.
    pub databases: Vec<StepDatabase>,
    /// The data tables that steps use.
    pub tables: Vec<DataTable>,
    /// The secrets that steps and triggers are given.
    pub secrets: Vec<SecretUse>,
    /// The files that it brings along or tells agents to read.
    pub files: Vec<FileUse>,
    /// The workflows that it starts.
    pub children: Vec<ChildUse>,
    /// The models and agents that work is handed to.
    pub agents: Vec<AgentUse>,
    /// The steps whose prompts are handed to the agent that holds the run.
    pub prompts: Vec<Slug>,
    /// The steps at which somebody is asked.
    pub people: Vec<Question>,
    /// The steps that answer a webhook.
    pub answers: Vec<Slug>,
    /// The steps of a type that is not known here.
    pub unknown: Vec<UnknownStep>,
}

/// A command that a step runs.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub struct StepCommand {
    pub step: Slug,
    pub command: CommandText,
}

/// A command with its templates as the plan spells them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CommandText {
    /// A line for `sh -c`.
    Line(String),
    /// A program and its arguments.
    Program(Vec<String>),
    /// A value that the run makes.
    Decided(String),
}

/// A host that a step asks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StepHost {
    /// Which step.
    pub step: Slug,
    /// What it asks with.
    pub method: String,
    /// Whom.
    pub host: Host,
}

/// A host, as far as the plan says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Host {
    /// This one, with its port if it is not the usual one.
    Literal(String),
    /// The run decides; the address is as the plan spells it.
    Decided(String),
}

/// A database that a step asks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StepDatabase {
    /// Which step.
    pub step: Slug,
    /// What the operator's configuration calls it.
    pub database: String,
    /// Whether the database is told to refuse changes.
    pub read_only: bool,
}

/// A secret that the plan asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SecretUse {
    /// Its name.
    pub name: String,
    /// The hosts that it may be sent to; without any, to all that a step may reach.
    pub hosts: Vec<String>,
    /// The steps and triggers that are given it.
    pub used_by: Vec<Slug>,
    /// The paths whose requests are signed with it; those are never told the secret itself.
    pub signs: Vec<String>,
}

/// A file that the plan names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileUse {
    /// Its path.
    pub path: String,
    /// What it is there for.
    pub role: FileRole,
}

/// What a file is there for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileRole {
    /// It is beside the workflow, and its content is part of the plan.
    Asset,
    /// An agent is told to read it, from the folder of the workflow.
    PackageReference,
    /// An agent is told to read it, from the project that it works on.
    WorkspaceReference,
}

/// A workflow that is started.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChildUse {
    /// The step that starts it; without one it is started when a run fails.
    pub step: Option<Slug>,
    /// Its id.
    pub workflow: String,
}

/// A model or an agent that a step hands work to. What the plan leaves open, the operator's
/// configuration says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AgentUse {
    /// Which step.
    pub step: Slug,
    /// What it does: `agent`, `classify` or `skill`.
    pub r#type: String,
    /// Who is asked.
    pub provider: Option<String>,
    /// With which preset.
    pub preset: Option<String>,
    /// Which model.
    pub model: Option<String>,
    /// The tools that it may use without asking.
    pub tools: Vec<String>,
    /// The skills that it is given.
    pub skills: Vec<String>,
    /// Where it works, from the run's workspace.
    pub workdir: Option<String>,
    /// Whose conversation it goes on with, if it does.
    pub session: Option<String>,
}

/// A step at which somebody is asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Question {
    /// Which step.
    pub step: Slug,
    /// Whom.
    pub asks: Asked,
    /// Whether it counts as approved when nobody answers.
    pub unattended: bool,
}

/// Who is asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Asked {
    /// Anybody who may run the workflow.
    Anybody,
    /// One of these.
    OneOf(Vec<String>),
    /// Whoever must agree with what an agent did.
    Confirmation(ConfirmedBy),
}

/// A step of a type that is not known here.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub struct UnknownStep {
    pub step: Slug,
    pub r#type: Slug,
}

/// Types of steps that hand work to a model or an agent, which works with the operator's key.
const MODELS: [&str; 3] = ["agent", "classify", "skill"];

/// Whether a plan hands work to a model or an agent.
#[must_use]
pub fn asks_models(plan: &Plan) -> bool {
    plan.steps.iter().any(|step| match &step.action {
        Action::Typed { r#type, .. } => MODELS.contains(&r#type.as_str()),
        Action::Prompt(_) => false,
    })
}

/// Types of steps that stay inside the engine.
const INNER: [&str; 9] =
    ["branch", "end", "fail", "log", "loop", "merge", "parallel", "transform", "wait"];

impl Capabilities {
    /// What a plan can do.
    #[must_use]
    pub fn of(plan: &Plan) -> Self {
        let mut found = Self { tables: plan.data_tables.clone(), ..Self::default() };
        plan.steps.iter().for_each(|step| found.step(step));
        let on_failure = plan.policy.error_workflow_id.iter();
        found.children.extend(on_failure.map(|id| ChildUse { step: None, workflow: id.clone() }));
        found.secrets = secrets(plan);
        found.files = files(plan);
        found
    }

    /// Whether nothing that it does reaches beyond the engine.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn step(&mut self, step: &Step) {
        let id = || step.id.clone();
        if let Some(confirmation) = &step.require_confirmation {
            let asks = Asked::Confirmation(confirmation.by);
            self.people.push(Question { step: id(), asks, unattended: false });
        }
        let Action::Typed { config, r#type } = &step.action else {
            return self.prompts.push(id());
        };
        let nothing = Map::new();
        let config = config.0.as_object().unwrap_or(&nothing);
        let text = |name: &str| config.get(name).map(plain).unwrap_or_default();
        match r#type.as_str() {
            "shell" => {
                let command = command(config.get("command"));
                self.commands.push(StepCommand { step: id(), command });
            }
            "python" => {
                let command = python(config);
                self.commands.push(StepCommand { step: id(), command });
            }
            "http" => {
                let method = config.get("method").map_or("GET".to_owned(), plain);
                let host = address::host(&text("url"));
                self.hosts.push(StepHost { step: id(), method, host });
            }
            "db_query" => {
                let read_only = config.get("read_only").and_then(Value::as_bool) == Some(true);
                let database = text("database");
                self.databases.push(StepDatabase { step: id(), database, read_only });
            }
            "workflow" => {
                let workflow = text("workflow");
                self.children.push(ChildUse { step: Some(id()), workflow });
            }
            "guide" => self.prompts.push(id()),
            kind if MODELS.contains(&kind) => self.agents.push(agent(&step.id, kind, config)),
            "human" => {
                let asks = match config.get("who") {
                    None => Asked::Anybody,
                    Some(Value::Array(who)) => Asked::OneOf(who.iter().map(plain).collect()),
                    Some(who) => Asked::OneOf(vec![plain(who)]),
                };
                let unattended = config.get("on_expire").is_some_and(|what| what == "approve");
                self.people.push(Question { step: id(), asks, unattended });
            }
            "webhook_respond" => self.answers.push(id()),
            inner if INNER.contains(&inner) => {}
            _ => self.unknown.push(UnknownStep { step: id(), r#type: r#type.clone() }),
        }
    }
}

/// Text as it is, and anything else as JSON.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn command(given: Option<&Value>) -> CommandText {
    match given {
        Some(Value::Array(parts)) => CommandText::Program(parts.iter().map(plain).collect()),
        Some(Value::String(line)) => CommandText::Line(line.clone()),
        other => CommandText::Decided(other.map(Value::to_string).unwrap_or_default()),
    }
}

fn python(config: &Map<String, Value>) -> CommandText {
    let script = config.get("script").map(plain).unwrap_or_default();
    let mut parts = vec!["python".to_owned(), script];
    match config.get("args") {
        Some(Value::Array(args)) => parts.extend(args.iter().map(plain)),
        Some(args) => parts.push(plain(args)),
        None => {}
    }
    CommandText::Program(parts)
}

fn agent(step: &Slug, kind: &str, config: &Map<String, Value>) -> AgentUse {
    let text = |name: &str| config.get(name).map(plain);
    let list = |name: &str| match config.get(name) {
        Some(Value::Array(items)) => items.iter().map(plain).collect(),
        Some(other) => vec![plain(other)],
        None => Vec::new(),
    };
    AgentUse {
        step: step.clone(),
        r#type: kind.to_owned(),
        provider: text("provider"),
        preset: text("preset"),
        model: text("model"),
        tools: list("allowed_tools"),
        skills: if kind == "skill" { list("skill") } else { list("skills") },
        workdir: text("workdir"),
        session: text("session").filter(|session| session != "new"),
    }
}

fn secrets(plan: &Plan) -> Vec<SecretUse> {
    let steps: Vec<(&Slug, Vec<String>)> = plan.steps.iter().filter_map(looks_at).collect();
    let used = |field: &EnvField| {
        let by = steps.iter().filter(|(_, names)| names.contains(&field.name)).map(|(id, _)| *id);
        let named = |config: &Value| texts(config).contains(&field.name.as_str());
        let triggers = plan.triggers.iter().filter(|trigger| named(&trigger.config.0));
        let signed = plan.triggers.iter().map(|trigger| &trigger.config.0);
        let signed = signed.filter(|config| config.get("secret") == Some(&json!(field.name)));
        let path = |config: &Value| config.get("path").and_then(Value::as_str).map(str::to_owned);
        SecretUse {
            signs: signed.filter_map(path).collect(),
            name: field.name.clone(),
            hosts: field.hosts.clone(),
            used_by: by.chain(triggers.map(|trigger| &trigger.id)).cloned().collect(),
        }
    };
    plan.env.iter().filter(|field| field.secret).map(used).collect()
}

/// The secrets that a step looks at.
fn looks_at(step: &Step) -> Option<(&Slug, Vec<String>)> {
    let Action::Typed { config, .. } = &step.action else { return None };
    let mut names = Vec::new();
    for text in texts(&config.0).into_iter().filter(|text| text.contains("{{")) {
        // What is no template is evaluated by nobody.
        let Ok(template) = expression::template(text, &|_| true) else { continue };
        let looked = template.values().flat_map(Expr::references);
        let secrets = looked.filter(|reference| reference.root == "secret");
        names.extend(secrets.filter_map(|mut found| found.members.drain(..).next()?.0));
    }
    Some((&step.id, names))
}

/// Every text in a value.
fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter().flat_map(texts).collect(),
        Value::Object(members) => members.values().flat_map(texts).collect(),
        _ => Vec::new(),
    }
}

fn files(plan: &Plan) -> Vec<FileUse> {
    let assets = plan.assets.iter().map(|asset| (&asset.path, FileRole::Asset));
    let references = plan.guide.iter().flat_map(|guide| &guide.references).map(|reference| {
        let role = match reference.resolve_from {
            ResolveFrom::Workspace => FileRole::WorkspaceReference,
            ResolveFrom::Package => FileRole::PackageReference,
        };
        (&reference.source, role)
    });
    let file = |(path, role): (&String, FileRole)| FileUse { path: path.clone(), role };
    assets.chain(references).map(file).collect()
}

#[cfg(test)]
mod tests;
