//! What a workflow can do, as doors show it.

use cairn_core::capabilities::{self, Asked, CommandText, FileRole, Host};
use cairn_core::plan::{ConfirmedBy, Plan, TableAccess};
use cairn_core::text::Slug;
use schemars::JsonSchema;
use serde::Serialize;

/// Everything of a workflow that reaches beyond the engine. Steps are in the order of the plan.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Capabilities {
    /// The commands that are run, templates as the plan spells them.
    pub commands: Vec<StepCommand>,
    /// The hosts that are asked over HTTP.
    pub hosts: Vec<StepHost>,
    /// The databases that are asked.
    pub databases: Vec<StepDatabase>,
    /// The data tables that steps use.
    pub tables: Vec<Table>,
    /// The secrets that steps and triggers are given.
    pub secrets: Vec<Secret>,
    /// The files that it brings along or tells agents to read.
    pub files: Vec<File>,
    /// The workflows that it starts.
    pub children: Vec<Child>,
    /// The models and agents that work is handed to.
    pub agents: Vec<AgentUse>,
    /// The steps whose prompts are handed to the agent that holds the run.
    pub prompts: Vec<String>,
    /// The steps at which somebody is asked.
    pub people: Vec<Question>,
    /// The steps that answer a webhook.
    pub answers: Vec<String>,
    /// The steps of a type that this version does not know.
    pub unknown: Vec<UnknownStep>,
}

/// A model or an agent that a step hands work to. What is left out, the configuration says.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentUse {
    /// Which step.
    pub step_id: String,
    /// What it does: `agent`, `classify` or `skill`.
    pub r#type: String,
    /// Who is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// With which preset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preset: Option<String>,
    /// Which model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The tools that it may use without asking.
    pub tools: Vec<String>,
    /// The skills that it is given.
    pub skills: Vec<String>,
    /// Where it works, from the run's workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workdir: Option<String>,
    /// Whose conversation it goes on with, `root` or `persistent`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
}

/// A command that a step runs. It has one of `line`, `program` and `decided`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepCommand {
    /// Which step.
    pub step_id: String,
    /// A line for `sh -c`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<String>,
    /// A program and its arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<Vec<String>>,
    /// What the run makes the command of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided: Option<String>,
}

/// A host that a step asks. It has one of `host` and `decided`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepHost {
    /// Which step.
    pub step_id: String,
    /// What it asks with.
    pub method: String,
    /// The host, with its port if it is not the usual one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The address of a host that the run decides, as the plan spells it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided: Option<String>,
}

/// A database that a step asks.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepDatabase {
    pub step_id: String,
    pub database: String,
    pub read_only: bool,
}

/// A data table that steps use.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Table {
    pub table: String,
    pub read_only: bool,
}

/// A secret that steps and triggers are given.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Secret {
    /// Its name.
    pub name: String,
    /// The hosts that it may be sent to; without any, to all that a step may reach.
    pub hosts: Vec<String>,
    /// The steps and triggers that are given it.
    pub used_by: Vec<String>,
}

/// A file that the workflow names.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct File {
    /// Its path.
    pub path: String,
    /// `asset`, `package_reference` or `workspace_reference`.
    pub role: &'static str,
}

/// A workflow that is started.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Child {
    /// The step that starts it; without one it is started when a run fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_id: Option<String>,
    /// Its id.
    pub workflow_id: String,
}

/// A step at which somebody is asked.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Question {
    /// Which step.
    pub step_id: String,
    /// `anybody`, `listed`, `user`, `human_approval` or `coordinator_eval`.
    pub asks: &'static str,
    /// Those who may answer, when they are listed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub who: Vec<String>,
    /// Whether it counts as approved when nobody answers.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unattended: bool,
}

/// A step of a type that this version does not know.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnknownStep {
    pub step_id: String,
    pub r#type: String,
}

impl Capabilities {
    /// What a plan can do.
    #[must_use]
    pub fn of(plan: &Plan) -> Self {
        Self::from(capabilities::Capabilities::of(plan))
    }
}

impl From<capabilities::Capabilities> for Capabilities {
    fn from(found: capabilities::Capabilities) -> Self {
        let names = |slugs: Vec<Slug>| slugs.iter().map(Slug::to_string).collect::<Vec<_>>();
        let table = |table: cairn_core::plan::DataTable| Table {
            table: table.r#ref.to_string(),
            read_only: table.access == TableAccess::Read,
        };
        let database = |found: capabilities::StepDatabase| StepDatabase {
            step_id: found.step.to_string(),
            database: found.database,
            read_only: found.read_only,
        };
        let secret = |found: capabilities::SecretUse| Secret {
            name: found.name,
            hosts: found.hosts,
            used_by: names(found.used_by),
        };
        let child = |found: capabilities::ChildUse| Child {
            step_id: found.step.map(|step| step.to_string()),
            workflow_id: found.workflow,
        };
        let agent = |found: capabilities::AgentUse| AgentUse {
            step_id: found.step.to_string(),
            r#type: found.r#type,
            provider: found.provider,
            preset: found.preset,
            model: found.model,
            tools: found.tools,
            skills: found.skills,
            workdir: found.workdir,
            session: found.session,
        };
        let unknown = |found: capabilities::UnknownStep| UnknownStep {
            step_id: found.step.to_string(),
            r#type: found.r#type.to_string(),
        };
        Self {
            commands: found.commands.into_iter().map(Into::into).collect(),
            hosts: found.hosts.into_iter().map(Into::into).collect(),
            databases: found.databases.into_iter().map(database).collect(),
            tables: found.tables.into_iter().map(table).collect(),
            secrets: found.secrets.into_iter().map(secret).collect(),
            files: found.files.into_iter().map(Into::into).collect(),
            children: found.children.into_iter().map(child).collect(),
            agents: found.agents.into_iter().map(agent).collect(),
            prompts: names(found.prompts),
            people: found.people.into_iter().map(Into::into).collect(),
            answers: names(found.answers),
            unknown: found.unknown.into_iter().map(unknown).collect(),
        }
    }
}

impl From<capabilities::StepCommand> for StepCommand {
    fn from(found: capabilities::StepCommand) -> Self {
        let of = Self { step_id: found.step.to_string(), ..Self::default() };
        match found.command {
            CommandText::Line(line) => Self { line: Some(line), ..of },
            CommandText::Program(parts) => Self { program: Some(parts), ..of },
            CommandText::Decided(text) => Self { decided: Some(text), ..of },
        }
    }
}

impl From<capabilities::StepHost> for StepHost {
    fn from(found: capabilities::StepHost) -> Self {
        let (step_id, method) = (found.step.to_string(), found.method);
        let of = Self { step_id, method, ..Self::default() };
        match found.host {
            Host::Literal(host) => Self { host: Some(host), ..of },
            Host::Decided(url) => Self { decided: Some(url), ..of },
        }
    }
}

impl From<capabilities::FileUse> for File {
    fn from(found: capabilities::FileUse) -> Self {
        let role = match found.role {
            FileRole::Asset => "asset",
            FileRole::PackageReference => "package_reference",
            FileRole::WorkspaceReference => "workspace_reference",
        };
        Self { path: found.path, role }
    }
}

impl From<capabilities::Question> for Question {
    fn from(found: capabilities::Question) -> Self {
        let step_id = found.step.to_string();
        let (asks, who) = match found.asks {
            Asked::Anybody => ("anybody", Vec::new()),
            Asked::OneOf(who) => ("listed", who),
            Asked::Confirmation(ConfirmedBy::User) => ("user", Vec::new()),
            Asked::Confirmation(ConfirmedBy::HumanApproval) => ("human_approval", Vec::new()),
            Asked::Confirmation(ConfirmedBy::CoordinatorEval) => ("coordinator_eval", Vec::new()),
        };
        Self { step_id, asks, who, unattended: found.unattended }
    }
}
