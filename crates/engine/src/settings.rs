//! Settings: the values that a workflow asks for beside its event.
//!
//! A workflow says what it asks for; the values are in a file beside its own, which can be
//! kept in version control, and in one of the data directory, which wins. Secrets are in
//! neither: they are in the vault.

mod file;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cairn_core::catalog::SettingFault;
use cairn_core::plan::{EnvField, Plan};
use cairn_lang::diagnostic::nearest;
use serde_json::{Map, Value};

use self::file::Written;
use crate::catalog::Identity;
use crate::error::{Error, Result};
use crate::secrets::{Held, Scope, Vault};

/// Where the values for one workflow are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Files {
    /// The workflow.
    pub workflow: Identity,
    /// Beside the workflow's file.
    pub beside: Option<PathBuf>,
    /// In the data directory.
    pub own: PathBuf,
}

impl Files {
    /// The files for a workflow: `env.yaml` beside a `workflow.yaml`, `<name>.env.yaml` beside
    /// any other, and `env/<key of the workflow>.yaml` in the data directory.
    #[must_use]
    pub fn of(home: &Path, workflow: &Identity) -> Self {
        // A built-in workflow has none, and one whose file is gone has its values in the data
        // directory still.
        let source = Path::new(workflow.place());
        let beside = Some(source).filter(|source| source.is_file()).and_then(|source| {
            let stem = source.file_stem()?.to_str()?;
            let name = match stem {
                "workflow" => "env.yaml".to_owned(),
                stem => format!("{stem}.env.yaml"),
            };
            Some(source.with_file_name(name))
        });
        let own = home.join("env").join(format!("{}.yaml", workflow.key()));
        Self { workflow: workflow.clone(), beside, own }
    }
}

/// Where a value comes from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Origin {
    /// The workflow's own default.
    Default,
    /// The file beside the workflow.
    Beside,
    /// The file in the data directory.
    Own,
    /// The vault.
    Vault,
}

impl Origin {
    /// It in a word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Beside => "beside",
            Self::Own => "own",
            Self::Vault => "vault",
        }
    }
}

/// The settings of a workflow, with their values.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Settings {
    /// The values by name, without secrets: what templates see as `env`.
    pub values: Map<String, Value>,
    /// Where each value and each secret comes from.
    pub origins: BTreeMap<String, Origin>,
    /// What a run needs and nobody has given, secrets too.
    pub missing: Vec<String>,
    /// What is wrong with the values that there are.
    pub faults: Vec<SettingFault>,
    /// Values that nobody asks for.
    pub unused: Vec<String>,
}

impl Settings {
    /// Reads the settings of a workflow. `has_secret` says whether the vault has one.
    pub fn load(plan: &Plan, files: &Files, has_secret: impl Fn(&str) -> bool) -> Result<Self> {
        let beside = files.beside.as_deref().map(Written::read).transpose()?.unwrap_or_default();
        let own = Written::read(&files.own)?;
        let mut settings = Self::default();
        for field in &plan.env {
            settings.take(field, &[(&own, Origin::Own), (&beside, Origin::Beside)]);
            if field.secret && has_secret(&field.name) {
                settings.origins.insert(field.name.clone(), Origin::Vault);
            }
        }
        let asked = |name: &str| plan.env.iter().any(|field| field.name == name);
        let given = own.names().chain(beside.names());
        settings.unused = given.filter(|name| !asked(name)).map(str::to_owned).collect();
        settings.unused.dedup();
        let missing = plan.env.iter().filter(|field| settings.lacks(field, &plan.env));
        settings.missing = missing.map(|field| field.name.clone()).collect();
        Ok(settings)
    }

    /// Reads the settings of a workflow, given the vault that has its secrets.
    pub fn with_secrets(plan: &Plan, files: &Files, vault: &Vault) -> Result<Self> {
        // Whoever asks for none needs no vault.
        let asked = plan.env.iter().any(|field| field.secret);
        let held = if asked { vault.list()? } else { Vec::new() };
        let own = Scope::Workflow(files.workflow.clone());
        let is_its = |held: &&Held| held.scope == own || held.scope == Scope::Global;
        Self::load(plan, files, |name| held.iter().filter(is_its).any(|held| held.name == name))
    }

    /// The values, or the error that says what is wrong with them or missing.
    pub fn ready(self, plan: &Plan, files: &Files) -> Result<Map<String, Value>> {
        let missing = self.missing.iter().map(|name| {
            let message = format!("`{name}` has no value, and a run needs it");
            SettingFault::new(name.clone(), message, remedy(plan, files.workflow.name(), name))
        });
        let faults: Vec<SettingFault> = self.faults.iter().cloned().chain(missing).collect();
        if faults.is_empty() {
            return Ok(self.values);
        }
        // Secrets stand in no file.
        let secrets =
            self.faults.is_empty() && self.missing.iter().all(|name| is_secret(plan, name));
        let path = match secrets {
            true => plan.workflow_id.clone(),
            false => files.own.display().to_string(),
        };
        Err(Error::SettingsInvalid { path, faults })
    }

    /// Takes the value of a field from the strongest place that has one.
    fn take(&mut self, field: &EnvField, places: &[(&Written, Origin)]) {
        let found =
            places.iter().find_map(|(file, origin)| Some((file.get(&field.name)?, *origin)));
        if field.secret {
            if found.is_some() {
                let message =
                    format!("`{}` is a secret, and stands in a file for all to read", field.name);
                let hint = "take it out with `cairn env unset`, and set it with `cairn secret set`";
                self.faults.push(SettingFault::new(field.name.clone(), message, hint));
            }
            return;
        }
        let default = || Some((&field.default.as_ref()?.0, Origin::Default));
        let Some((value, origin)) = found.or_else(default) else { return };
        if let Some(why) = field.misfit(value) {
            let message = format!("`{}` {why}", field.name);
            let hint = "correct the value with `cairn env set`";
            self.faults.push(SettingFault::new(field.name.clone(), message, hint));
        }
        self.values.insert(field.name.clone(), value.clone());
        self.origins.insert(field.name.clone(), origin);
    }

    /// Whether a run needs a field, and nobody has given it.
    fn lacks(&self, field: &EnvField, all: &[EnvField]) -> bool {
        let empty = |value: &Value| match value {
            Value::Null => true,
            Value::String(text) => text.trim().is_empty(),
            Value::Array(items) => items.is_empty(),
            _ => false,
        };
        let given = match field.secret {
            true => self.origins.contains_key(&field.name),
            false => self.values.get(&field.name).is_some_and(|value| !empty(value)),
        };
        field.required && !given && self.shows(field, all)
    }

    /// Whether a form shows a field: whether the setting that it depends on is shown and has
    /// the value that it needs.
    #[must_use]
    pub fn shows(&self, field: &EnvField, all: &[EnvField]) -> bool {
        let mut field = field;
        // Settings that depend on each other in a circle are shown to nobody.
        for _ in 0..=all.len() {
            let Some(when) = &field.visible_when else { return true };
            let value = match self.values.get(&when.name) {
                Some(Value::String(text)) => text.clone(),
                Some(value) => value.to_string(),
                None => String::new(),
            };
            let next = all.iter().find(|other| other.name == when.name);
            match next.filter(|_| value == when.value) {
                Some(next) => field = next,
                None => return false,
            }
        }
        false
    }
}

/// The command that gives a value to a setting that has none.
#[must_use]
pub fn remedy(plan: &Plan, workflow: &str, name: &str) -> String {
    match is_secret(plan, name) {
        true => format!("cairn secret set --workflow {workflow} {name}"),
        false => format!("cairn env set {workflow} {name} VALUE"),
    }
}

fn is_secret(plan: &Plan, name: &str) -> bool {
    plan.env.iter().any(|field| field.name == name && field.secret)
}

/// The setting with a name.
pub fn find<'p>(plan: &'p Plan, name: &str) -> Result<&'p EnvField> {
    plan.env.iter().find(|field| field.name == name).ok_or_else(|| {
        let names = plan.env.iter().map(|field| field.name.as_str());
        Error::SettingUnknown {
            workflow: plan.workflow_id.clone(),
            name: name.to_owned(),
            nearest: nearest(name, names).map(str::to_owned),
        }
    })
}

/// Keeps a value in the data directory, or beside the workflow.
pub fn set(plan: &Plan, files: &Files, name: &str, value: &Value, beside: bool) -> Result<PathBuf> {
    let field = find(plan, name)?;
    let path = target(files, beside)?;
    let refuse = |message: String, hint: &str| {
        let faults = vec![SettingFault::new(name, message, hint)];
        Err(Error::SettingsInvalid { path: path.display().to_string(), faults })
    };
    if field.secret {
        return refuse(format!("`{name}` is a secret"), "set it with `cairn secret set`");
    }
    if let Some(why) = field.misfit(value) {
        return refuse(format!("`{name}` {why}"), "give a value of that kind");
    }
    let before = [Some(&files.own), files.beside.as_ref()];
    for file in before.into_iter().flatten().filter(|_| field.locked) {
        if Written::read(file)?.get(name).is_some_and(|known| known != value) {
            return refuse(
                format!("`{name}` is locked: it stays as it was first set"),
                "leave it as it is, or change `locked` in the workflow",
            );
        }
    }
    let mut written = Written::read(path)?;
    if !beside {
        written.head(&files.workflow);
    }
    written.set(name, value);
    written.save(path)?;
    Ok(path.clone())
}

/// Forgets a value of the data directory, or of the file beside the workflow. Says whether
/// there was one. A name that no workflow asks for any more can be forgotten, too.
pub fn unset(plan: &Plan, files: &Files, name: &str, beside: bool) -> Result<bool> {
    let path = target(files, beside)?;
    let mut written = Written::read(path)?;
    if written.get(name).is_none() {
        return find(plan, name).map(|_| false);
    }
    if find(plan, name).is_ok_and(|field| field.locked) {
        let message = format!("`{name}` is locked: it stays as it was first set");
        let hint = "leave it as it is, or change `locked` in the workflow";
        let faults = vec![SettingFault::new(name, message, hint)];
        return Err(Error::SettingsInvalid { path: path.display().to_string(), faults });
    }
    written.remove(name);
    written.save(path)?;
    Ok(true)
}

/// What was bound to another workflow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rebound {
    /// How many secrets.
    pub secrets: usize,
    /// How many settings.
    pub settings: usize,
}

/// Gives a workflow the secrets and settings that are kept for the place that its file was
/// moved from. It has no settings, and no secrets of the same names, of its own.
pub fn rebind(home: &Path, vault: &Vault, from: &Identity, to: &Identity) -> Result<Rebound> {
    let refuse = |message: String, fix: &str| {
        let details = serde_json::json!({"from": from.place(), "to": to.place()});
        Err(Error::Invalid { message, fix: fix.to_owned(), details })
    };
    if Path::new(from.place()).exists() {
        let message = format!("{} is still there, and keeps what it has", from.place());
        return refuse(message, "move the file first, or set the values again for the other one");
    }
    let (old, new) = (Files::of(home, from).own, Files::of(home, to).own);
    let mut kept = Written::read(&old)?;
    let settings = kept.names().count();
    if settings > 0 && Written::read(&new)?.names().next().is_some() {
        let message = format!("{to} has settings of its own");
        return refuse(message, "take them away with `cairn env unset`");
    }
    let secrets = vault.rebind(from, to)?;
    if secrets + settings == 0 {
        let message = format!("nothing is kept for {}", from.place());
        return refuse(message, "`cairn secret list` shows the files that secrets are kept for");
    }
    if settings > 0 {
        kept.head(to);
        kept.save(&new)?;
        std::fs::remove_file(&old).map_err(crate::file::failed(&old))?;
    }
    Ok(Rebound { secrets, settings })
}

fn target(files: &Files, beside: bool) -> Result<&PathBuf> {
    if !beside {
        return Ok(&files.own);
    }
    files.beside.as_ref().ok_or_else(|| Error::Invalid {
        message: "the workflow is built in, so there is no file beside it".to_owned(),
        fix: "leave out --beside".to_owned(),
        details: Value::Null,
    })
}

#[cfg(test)]
mod tests;
