//! Settings: the values that a workflow asks for beside its event.
//!
//! A workflow says what it asks for; the values are in a file beside its own, which can be
//! kept in version control, and in a document of the store, which wins. Secrets are in
//! neither: they are in the vault.

mod file;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cairn_core::catalog::SettingFault;
use cairn_core::plan::{EnvField, Plan};
use cairn_lang::diagnostic::nearest;
use cairn_store::port::documents::{Documents, Name};
use serde_json::{Map, Value};

use self::file::Written;
use crate::catalog::Identity;
use crate::error::{Error, Result};
use crate::file as plain;
use crate::secrets::{Held, Scope, Vault};

/// Where the values for one workflow are.
#[derive(Clone)]
pub struct Files {
    /// The workflow.
    pub workflow: Identity,
    /// Beside the workflow's file.
    pub beside: Option<PathBuf>,
    documents: Arc<dyn Documents>,
    /// In the store.
    own: Name,
}

impl Files {
    /// The files for a workflow: `env.yaml` beside a `workflow.yaml`, `<name>.env.yaml` beside
    /// any other, and the document `env/<key of the workflow>.yaml`.
    pub fn of(documents: &Arc<dyn Documents>, workflow: &Identity) -> Result<Self> {
        // A built-in workflow has none, and one whose file is gone has its values in the store
        // still.
        let source = Path::new(workflow.place());
        let beside = Some(source).filter(|source| source.is_file()).and_then(|source| {
            let stem = source.file_stem()?.to_str()?;
            let name = match stem {
                "workflow" => "env.yaml".to_owned(),
                stem => format!("{stem}.env.yaml"),
            };
            Some(source.with_file_name(name))
        });
        let own = Name::parse(&format!("env/{}.yaml", workflow.key()));
        let own = own.ok_or_else(|| {
            Error::Broken(format!("the key `{}` cannot be part of a name", workflow.key()))
        })?;
        Ok(Self { workflow: workflow.clone(), beside, documents: Arc::clone(documents), own })
    }

    /// Where the values of the store are, for people.
    #[must_use]
    pub fn own_place(&self) -> String {
        self.documents.place(&self.own)
    }

    /// What is in the store.
    async fn read_own(&self) -> Result<Written> {
        let found = self.documents.read(&self.own).await?;
        Written::parse(&self.own_place(), &found.map(|found| found.bytes).unwrap_or_default())
    }

    /// What is beside the workflow's file. It is the author's own, so it is no document.
    fn read_beside(&self) -> Result<Written> {
        let Some(path) = &self.beside else { return Ok(Written::default()) };
        // A file that is not there has nothing in it.
        let bytes = plain::read_if_there(path)?.unwrap_or_default();
        Written::parse(&path.display().to_string(), &bytes)
    }

    /// Where the values of an origin stand, for people.
    fn place_of(&self, origin: Origin, plan: &Plan) -> String {
        match (origin, &self.beside) {
            (Origin::Own, _) => self.own_place(),
            (Origin::Beside, Some(path)) => path.display().to_string(),
            (Origin::Beside | Origin::Default | Origin::Vault, _) => plan.workflow_id.clone(),
        }
    }

    fn require_beside(&self) -> Result<&Path> {
        self.beside.as_deref().ok_or_else(|| Error::Invalid {
            message: "the workflow is built in, so there is no file beside it".to_owned(),
            fix: "leave out --beside".to_owned(),
            details: Value::Null,
        })
    }
}

/// Where a value comes from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Origin {
    /// The workflow's own default.
    Default,
    /// The file beside the workflow.
    Beside,
    /// The document in the store.
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
    /// What is wrong with the values that there are, and where each comes from.
    pub faults: Vec<(Origin, SettingFault)>,
    /// Values that nobody asks for.
    pub unused: Vec<String>,
}

impl Settings {
    /// Reads the settings of a workflow. `has_secret` says whether the vault has one.
    pub async fn load(
        plan: &Plan,
        files: &Files,
        has_secret: impl Fn(&str) -> bool,
    ) -> Result<Self> {
        let own = files.read_own().await?;
        let beside = files.read_beside()?;
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
    pub async fn with_secrets(plan: &Plan, files: &Files, vault: &Vault) -> Result<Self> {
        // Whoever asks for none needs no vault.
        let asked = plan.env.iter().any(|field| field.secret);
        let held = if asked { vault.list().await? } else { Vec::new() };
        let own = Scope::Workflow(files.workflow.clone());
        let is_its = |held: &&Held| held.scope == own || held.scope == Scope::Global;
        Self::load(plan, files, |name| held.iter().filter(is_its).any(|held| held.name == name))
            .await
    }

    /// The values, or the error that says what is wrong with them or missing.
    pub fn ready(self, plan: &Plan, files: &Files) -> Result<Map<String, Value>> {
        let missing = self.missing.iter().map(|name| {
            let message = format!("`{name}` has no value, and a run needs it");
            SettingFault::new(name.clone(), message, remedy(plan, files.workflow.name(), name))
        });
        let found = self.faults.iter().map(|(_, fault)| fault.clone());
        let faults: Vec<SettingFault> = found.chain(missing).collect();
        if faults.is_empty() {
            return Ok(self.values);
        }
        // The first fault is the one that is told. Secrets stand in no file.
        let secrets = self.missing.iter().all(|name| is_secret(plan, name));
        let path = match self.faults.first() {
            Some((origin, _)) => files.place_of(*origin, plan),
            None if secrets => plan.workflow_id.clone(),
            None => files.own_place(),
        };
        Err(Error::SettingsInvalid { path, faults })
    }

    /// Takes the value of a field from the strongest place that has one.
    fn take(&mut self, field: &EnvField, places: &[(&Written, Origin)]) {
        let found =
            places.iter().find_map(|(file, origin)| Some((file.get(&field.name)?, *origin)));
        if field.secret {
            if let Some((_, origin)) = found {
                let message =
                    format!("`{}` is a secret, and stands in a file for all to read", field.name);
                let beside = if origin == Origin::Beside { " --beside" } else { "" };
                let hint = format!(
                    "take it out with `cairn env unset{beside}`, and set it with `cairn secret set`"
                );
                self.faults.push((origin, SettingFault::new(field.name.clone(), message, hint)));
            }
            return;
        }
        let default = || Some((&field.default.as_ref()?.0, Origin::Default));
        let Some((value, origin)) = found.or_else(default) else { return };
        if let Some(why) = field.misfit(value) {
            let message = format!("`{}` {why}", field.name);
            let hint = match origin {
                Origin::Beside => "correct the value there with `cairn env set --beside`",
                Origin::Default => "correct the default, or set a value with `cairn env set`",
                Origin::Own | Origin::Vault => "correct the value with `cairn env set`",
            };
            self.faults.push((origin, SettingFault::new(field.name.clone(), message, hint)));
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
        true => format!("cairn secret set {name} --workflow {workflow}"),
        false => format!("cairn env set {name} VALUE --workflow {workflow}"),
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

/// Keeps a value in the store, or beside the workflow; gives where, for people.
pub async fn set(
    plan: &Plan,
    files: &Files,
    name: &str,
    value: &Value,
    beside: bool,
) -> Result<String> {
    let field = find(plan, name)?;
    let place = match beside {
        true => files.require_beside()?.display().to_string(),
        false => files.own_place(),
    };
    let refuse = |message: String, hint: &str| {
        let faults = vec![SettingFault::new(name, message, hint)];
        Error::SettingsInvalid { path: place.clone(), faults }
    };
    if field.secret {
        return Err(refuse(format!("`{name}` is a secret"), "set it with `cairn secret set`"));
    }
    if let Some(why) = field.misfit(value) {
        return Err(refuse(format!("`{name}` {why}"), "give a value of that kind"));
    }
    let may_be_set = |own: &Written, given: &Written| {
        let is_other = |file: &Written| file.get(name).is_some_and(|known| known != value);
        match field.locked && (is_other(own) || is_other(given)) {
            true => Err(locked(&place, name)),
            false => Ok(()),
        }
    };
    let mut given = files.read_beside()?;
    if beside {
        may_be_set(&files.read_own().await?, &given)?;
        given.set(name, value);
        plain::replace(files.require_beside()?, given.text().as_bytes())?;
        return Ok(place);
    }
    let change = |old: Option<&[u8]>| {
        let mut own = Written::parse(&place, old.unwrap_or_default())?;
        may_be_set(&own, &given)?;
        own.head(&files.workflow);
        own.set(name, value);
        Ok::<_, Error>((Some(own.text().into_bytes()), ()))
    };
    files.documents.update(&files.own, change).await?;
    Ok(place)
}

/// Forgets a value of the store, or of the file beside the workflow. Says whether there was one.
/// A name that no workflow asks for any more can be forgotten, too.
pub async fn unset(plan: &Plan, files: &Files, name: &str, beside: bool) -> Result<bool> {
    // What is left without the value, if there is one.
    let without = |place: &str, mut written: Written| {
        if written.get(name).is_none() {
            return find(plan, name).map(|_| None);
        }
        if find(plan, name).is_ok_and(|field| field.locked) {
            return Err(locked(place, name));
        }
        written.remove(name);
        Ok(Some(written.text().into_bytes()))
    };
    if beside {
        let path = files.require_beside()?;
        let left = without(&path.display().to_string(), files.read_beside()?)?;
        return match left {
            Some(left) => plain::replace(path, &left).map(|()| true),
            None => Ok(false),
        };
    }
    let place = files.own_place();
    let change = |old: Option<&[u8]>| {
        let own = Written::parse(&place, old.unwrap_or_default())?;
        let left = without(&place, own)?;
        let was_there = left.is_some();
        Ok::<_, Error>((left, was_there))
    };
    files.documents.update(&files.own, change).await
}

fn locked(place: &str, name: &str) -> Error {
    let message = format!("`{name}` is locked: it stays as it was first set");
    let hint = "leave it as it is, or change `locked` in the workflow";
    let faults = vec![SettingFault::new(name, message, hint)];
    Error::SettingsInvalid { path: place.to_owned(), faults }
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
pub async fn rebind(
    documents: &Arc<dyn Documents>,
    vault: &Vault,
    from: &Identity,
    to: &Identity,
) -> Result<Rebound> {
    let refuse = |message: String, fix: &str| {
        let details = serde_json::json!({"from": from.place(), "to": to.place()});
        Err(Error::Invalid { message, fix: fix.to_owned(), details })
    };
    if Path::new(from.place()).exists() {
        let message = format!("{} is still there, and keeps what it has", from.place());
        return refuse(message, "move the file first, or set the values again for the other one");
    }
    let (old, new) = (Files::of(documents, from)?, Files::of(documents, to)?);
    let mut kept = old.read_own().await?;
    let (was, is) = (documents.read(&old.own).await?, documents.read(&new.own).await?);
    let settings = kept.names().count();
    if settings > 0 && new.read_own().await?.names().next().is_some() {
        let message = format!("{to} has settings of its own");
        return refuse(message, "take them away with `cairn env unset`");
    }
    let secrets = vault.rebind(from, to).await?;
    if secrets + settings == 0 {
        let message = format!("nothing is kept for {}", from.place());
        return refuse(message, "`cairn secret list` shows the files that secrets are kept for");
    }
    if let Some(was) = was.filter(|_| settings > 0) {
        kept.head(to);
        let seen = is.as_ref().map(|is| &is.version);
        documents.replace(&new.own, seen, kept.text().into_bytes()).await?;
        documents.remove(&old.own, &was.version).await?;
    }
    Ok(Rebound { secrets, settings })
}

#[cfg(test)]
mod tests;
