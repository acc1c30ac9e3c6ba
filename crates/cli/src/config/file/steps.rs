//! What the configuration file says about steps.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cairn_core::hosts::{HostPattern, InvalidHost};
use cairn_steps::catalog::Settings;
use cairn_steps::db_query::Database;
use cairn_steps::guard::{Allowed, Guard, Policy};
use serde_json::{Value, json};
use toml::Spanned;
use toml::de::DeValue;

use super::agents::{self, Agents};
use super::{Fault, path, text, texts, wrong};

/// The keys that concern steps, beside those that are listed.
pub(super) const KEYS: [&str; 9] = [
    "agents.default_model",
    "agents.default_provider",
    "agents.stall_sec",
    "http.allow",
    "http.hosts",
    "processes.allow_env",
    "python.index",
    "python.interpreter",
    "python.wheels",
];

/// What the file says about steps.
#[derive(Default)]
pub(crate) struct Steps {
    pub(super) agents: Agents,
    pub(super) allow_env: Vec<String>,
    pub(super) databases: BTreeMap<String, Database>,
    pub(super) http_allow: Vec<Allowed>,
    pub(super) http_hosts: Option<Vec<HostPattern>>,
    pub(super) python_index: Option<String>,
    pub(super) python_interpreter: Option<PathBuf>,
    pub(super) python_wheels: Option<PathBuf>,
    /// What it says as it is shown, each with its line.
    said: BTreeMap<&'static str, (Value, usize)>,
}

impl Steps {
    pub(super) fn take(
        &mut self,
        key: &str,
        value: &Spanned<DeValue<'_>>,
        line: usize,
        folder: &Path,
    ) -> Result<(), Fault> {
        if agents::KEYS.contains(&key) {
            return self.agents.take(key, value, line);
        }
        let (key, said) = match key {
            "http.allow" => {
                let wanted = "a list of hosts, addresses or networks, such as [\"10.0.0.0/8\"]";
                let given = texts(key, value, line, wanted)?;
                let allowed = given.iter().map(|text| text.parse::<Allowed>());
                let allowed: Result<Vec<Allowed>, String> = allowed.collect();
                self.http_allow =
                    allowed.map_err(|what| Fault { what, ..wrong(key, wanted, value, line) })?;
                ("http.allow", json!(given))
            }
            "http.hosts" => {
                let wanted = "a list of hosts, such as [\"api.example.com\", \"*.example.net\"]";
                let given = texts(key, value, line, wanted)?;
                let hosts = given.iter().map(|text| text.parse::<HostPattern>());
                let hosts: Result<Vec<HostPattern>, InvalidHost> = hosts.collect();
                let fault = |error: InvalidHost| Fault {
                    what: error.to_string(),
                    ..wrong(key, wanted, value, line)
                };
                self.http_hosts = Some(hosts.map_err(fault)?);
                ("http.hosts", json!(given))
            }
            "processes.allow_env" => {
                self.allow_env = texts(key, value, line, "a list of names")?;
                ("processes.allow_env", json!(self.allow_env))
            }
            "python.index" => {
                self.python_index = Some(text(key, value, line)?);
                ("python.index", json!(self.python_index))
            }
            "python.interpreter" => {
                // A bare name is looked for in the usual places.
                let given = PathBuf::from(text(key, value, line)?);
                let bare = given.components().count() == 1;
                let found = if bare { given } else { folder.join(given) };
                let shown = json!(found.display().to_string());
                self.python_interpreter = Some(found);
                ("python.interpreter", shown)
            }
            _ => {
                let found = path(key, value, line, folder)?;
                let shown = json!(found.display().to_string());
                self.python_wheels = Some(found);
                ("python.wheels", shown)
            }
        };
        self.said.insert(key, (said, line));
        Ok(())
    }

    pub(super) fn database(&mut self, name: &str, found: Database, line: usize) {
        self.databases.insert(name.to_owned(), found);
        // Where it is may hold a password; its name is all that workflows use.
        let names: Vec<&String> = self.databases.keys().collect();
        let first = self.said.get("databases").map_or(line, |(_, first)| *first);
        self.said.insert("databases", (json!(names), first));
    }

    /// Each key that has a value, and its line when that is from the file.
    pub(crate) fn shown(&self) -> impl Iterator<Item = (&'static str, Value, Option<usize>)> {
        let default = |key: &str| match key {
            key if key.starts_with("agents.") => None,
            "http.hosts" | "python.index" | "python.wheels" => None,
            "python.interpreter" => Some(json!("python3")),
            _ => Some(json!([])),
        };
        let said = move |key: &str| self.said.get(key).or_else(|| self.agents.said.get(key));
        let lists = ["databases", "models", "presets", "providers"];
        lists.into_iter().chain(KEYS).filter_map(move |key| match said(key) {
            Some((value, line)) => Some((key, value.clone(), Some(*line))),
            None if ["models", "presets", "providers"].contains(&key) => None,
            None => Some((key, default(key)?, None)),
        })
    }

    /// The settings that this makes of those of somebody who says nothing.
    pub(crate) fn settings(&self, mut settings: Settings) -> Settings {
        settings.databases.clone_from(&self.databases);
        self.agents.configure(&mut settings.agents);
        settings.guard =
            Guard::new(Policy::new(self.http_allow.clone()).limited_to(self.http_hosts.clone()));
        settings.process.allow_env.clone_from(&self.allow_env);
        let python = &mut settings.python;
        if let Some(interpreter) = &self.python_interpreter {
            python.interpreter.clone_from(interpreter);
        }
        python.index.clone_from(&self.python_index);
        python.wheels.clone_from(&self.python_wheels);
        settings
    }
}
