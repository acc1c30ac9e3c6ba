//! The vault: one document with every secret, each sealed, and the whole vouched for.
//!
//! A value is bound to its scope, name and version. A code over the whole document says that
//! no record was left out, put back, or taken from an older copy.

mod anchor;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cairn_core::canonical;
use cairn_store::Store;
use cairn_store::port::documents::{Documents, Name, Stamp, Version};
use cairn_store::port::locks::{Exclusive, Locks};
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use subtle::ConstantTimeEq as _;

use self::anchor::Anchor;
use super::Secret;
use super::key::{self, KeySource, MasterKey, Purpose};
use super::seal::{self, Place};
use crate::catalog::Identity;
use crate::error::{Error, Result};
use crate::file;
use crate::trigger::HookSecret;

static DOCUMENT: Name = Name::fixed("secrets/vault.json");
const VERSION: u32 = 1;
/// What stands before the key of a workflow that a secret is for.
const WORKFLOW: &str = "workflow:";
/// How long a value may be.
pub(crate) const VALUE_MAX: usize = 64 << 10;

/// Where secrets are kept, and the key to them.
#[derive(Clone)]
pub struct Vault {
    documents: Arc<dyn Documents>,
    locks: Arc<dyn Locks>,
    /// The data directory, in which the key must not lie.
    home: PathBuf,
    key: KeySource,
    /// What was read and vouched for last, and when that was. Clones share it.
    known: Arc<Mutex<Option<(Stamps, Unlocked)>>>,
}

/// What the vault is read from, at one time: as long as it is the same, so is what was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stamps {
    vault: Option<Stamp>,
    anchor: Option<Stamp>,
    key: Option<file::Stamp>,
}

/// The content and the key to it.
#[derive(Clone)]
struct Unlocked {
    content: Arc<Content>,
    key: MasterKey,
}

/// Who a secret is for.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Scope {
    /// Every workflow that asks for its name.
    Global,
    /// One workflow.
    Workflow(Identity),
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Global => f.write_str("global"),
            Self::Workflow(workflow) => write!(f, "{WORKFLOW}{}", workflow.key()),
        }
    }
}

impl Scope {
    /// Says that there is no such secret, and how there would be.
    pub(crate) fn lacks(&self, name: &str) -> String {
        match self {
            Self::Global => format!("there is no secret `{name}`"),
            Self::Workflow(workflow) => format!(
                "`{}` has no secret `{name}`: set it with `cairn secret set {name} --workflow {}`",
                workflow.id(),
                workflow.name()
            ),
        }
    }
}

/// A secret, as far as it can be shown.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Held {
    /// Who it is for.
    pub scope: Scope,
    /// Its name.
    pub name: String,
    /// Rises with each change.
    pub version: u64,
    /// When it was set.
    pub set_at_ms: u64,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Content {
    /// Rises with each change of the document.
    generation: u64,
    key_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mac: Option<String>,
    records: Vec<Record>,
    v: u32,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Record {
    name: String,
    /// The value before this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    previous: Option<Previous>,
    scope: String,
    sealed: String,
    set_at_ms: u64,
    version: u64,
    /// The workflow of its scope, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    workflow: Option<Workflow>,
}

/// A workflow as it was when a secret was set for it.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Workflow {
    id: String,
    place: String,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Previous {
    sealed: String,
    version: u64,
}

impl Vault {
    /// The vault of a store. Its key does not lie in the data directory.
    #[must_use]
    pub fn new(store: &Store, home: impl Into<PathBuf>, key: KeySource) -> Self {
        let (documents, locks) = (Arc::clone(&store.documents), Arc::clone(&store.locks));
        Self { documents, locks, home: home.into(), key, known: Arc::default() }
    }

    /// What tells whether anything changed that secrets are read from.
    pub async fn stamps(&self) -> Result<Stamps> {
        let key = match &self.key {
            KeySource::Given(_) => None,
            KeySource::File(path) => file::stamp(path),
        };
        let anchor = self.documents.stamp(&anchor::DOCUMENT).await?;
        Ok(Stamps { vault: self.documents.stamp(&DOCUMENT).await?, anchor, key })
    }

    /// Every secret there is, by scope and name. It needs no key.
    pub async fn list(&self) -> Result<Vec<Held>> {
        let held = |record: &Record| Held {
            scope: record.whose(),
            name: record.name.clone(),
            version: record.version,
            set_at_ms: record.set_at_ms,
        };
        let seen = self.read().await?;
        Ok(seen.iter().flat_map(|seen| &seen.content.records).map(held).collect())
    }

    /// Keeps a value, and gives its version. The value before it stays for a while: see
    /// [`Vault::signing`].
    pub async fn set(&self, scope: &Scope, name: &str, value: &Secret, now_ms: u64) -> Result<u64> {
        if value.expose().is_empty() || value.expose().len() > VALUE_MAX {
            return Err(Error::Invalid {
                message: format!("the value of `{name}` is empty or longer than {VALUE_MAX} bytes"),
                fix: "give a value of at least one character".to_owned(),
                details: serde_json::json!({"name": name}),
            });
        }
        self.change(|content, key| {
            let workflow = scope.workflow();
            let (scope, version) = (scope.to_string(), content.generation);
            let place = Place { scope: &scope, name, version };
            let sealed = seal::seal(&key.purpose(Purpose::Secrets), place, value)?;
            let before = content.take(&scope, name);
            let previous =
                before.map(|before| Previous { sealed: before.sealed, version: before.version });
            let name = name.to_owned();
            content.records.push(Record {
                name,
                previous,
                scope,
                sealed,
                set_at_ms: now_ms,
                version,
                workflow,
            });
            content.sort();
            Ok(version)
        })
        .await
    }

    /// Gives the secrets of one workflow to another, as when its file was moved; gives how many.
    /// The other has none of the same names.
    pub async fn rebind(&self, from: &Identity, to: &Identity) -> Result<usize> {
        let held = self.list().await?;
        let of = |whose: &Identity| {
            let scope = Scope::Workflow(whose.clone());
            held.iter().filter(move |held| held.scope == scope)
        };
        if of(from).next().is_none() || from == to {
            return Ok(0);
        }
        let is_taken = |name: &str| of(to).any(|held| held.name == name);
        if let Some(taken) = of(from).find(|held| is_taken(&held.name)) {
            return Err(Error::Invalid {
                message: format!("{to} has a secret `{}` of its own", taken.name),
                fix: format!("remove one of the two with `cairn secret remove {}`", taken.name),
                details: serde_json::json!({"name": taken.name}),
            });
        }
        let (from, to) = (Scope::Workflow(from.clone()), Scope::Workflow(to.clone()));
        self.change(|content, key| {
            let (from, mut count) = (from.to_string(), 0);
            for record in content.records.iter_mut().filter(|record| record.scope == from) {
                *record = Record { workflow: to.workflow(), ..record.resealed(key, key, &to)? };
                count += 1;
            }
            content.sort();
            Ok(count)
        })
        .await
    }

    /// Forgets a secret. Says whether there was one.
    pub async fn remove(&self, scope: &Scope, name: &str) -> Result<bool> {
        let there = |held: &Held| held.scope == *scope && held.name == name;
        if !self.list().await?.iter().any(there) {
            return Ok(false);
        }
        self.change(|content, _| Ok(content.take(&scope.to_string(), name).is_some())).await
    }

    /// The value of a secret. What a workflow does not have of its own is looked for among
    /// the global ones.
    pub async fn reveal(&self, scope: &Scope, name: &str) -> Result<Secret> {
        let Unlocked { content, key } = self.unlocked().await?;
        let record = content.find(scope, name).ok_or_else(|| unknown(scope, name))?;
        record.open(&key)
    }

    /// The values that may sign at this time: the one in use, and the one before it for a
    /// while after it was replaced.
    pub async fn signing(
        &self,
        scope: &Scope,
        name: &str,
        grace_ms: u64,
    ) -> Result<Vec<HookSecret>> {
        let Unlocked { content, key } = self.unlocked().await?;
        let record = content.find(scope, name).ok_or_else(|| unknown(scope, name))?;
        let mut secrets = vec![HookSecret { secret: record.open(&key)?, until_ms: None }];
        if let Some(previous) = &record.previous {
            let until_ms = Some(record.set_at_ms.saturating_add(grace_ms));
            let (sealed, version) = (previous.sealed.clone(), previous.version);
            let before = Record { sealed, version, ..record.clone() };
            secrets.push(HookSecret { secret: before.open(&key)?, until_ms });
        }
        Ok(secrets)
    }

    /// Seals everything under a fresh master key, and gives how many secrets there are.
    ///
    /// The key is durable before anything is sealed under it, and the one before it stays
    /// until nothing is, so that a crash at any point loses nothing. A key that was given
    /// cannot be replaced in its place: the fresh one goes to the file `to`.
    pub async fn rotate(&self, to: Option<&Path>) -> Result<usize> {
        let _lock = self.locks.lock(Exclusive::Vault).await?;
        let seen = self.read().await?;
        let old = self.master(seen.as_ref(), true)?;
        let target = match (&self.key, to) {
            (_, Some(to)) if to.exists() => {
                return Err(key::unusable(Some(to), "there is a file already; name another one"));
            }
            (_, Some(to)) => to.to_owned(),
            (KeySource::File(path), None) => next(path),
            (KeySource::Given(_), None) => {
                let what = "it was given, so there is no file to put a fresh one in; name one";
                return Err(key::unusable(None, what));
            }
        };
        self.require_outside(&target)?;
        let fresh = MasterKey::fresh()?;
        key::write(&target, &fresh)?;
        let version = seen.as_ref().map(|seen| seen.version.clone());
        let mut content = self.verified(seen, &old)?;
        for record in &mut content.records {
            *record = record.resealed(&old, &fresh, &record.whose())?;
        }
        let count = content.records.len();
        content.generation += 1;
        self.write(version, content, &fresh).await?;
        if let (KeySource::File(path), None) = (&self.key, to) {
            file::rename(&next(path), path)?;
        }
        Ok(count)
    }

    async fn read(&self) -> Result<Option<Seen>> {
        if let Some(what) = self.documents.exposed(&DOCUMENT).await? {
            let what = format!("{} cannot be trusted: {what}", self.place());
            return Err(Error::SecretDecrypt { name: None, what });
        }
        let anchor = Anchor::read(&*self.documents).await?;
        let require = |found| match &anchor {
            Some(anchor) => anchor.require(found, &*self.documents, &self.place()),
            None => Ok(()),
        };
        let Some(found) = self.documents.read(&DOCUMENT).await? else {
            return require(None).map(|()| None);
        };
        let content = canonical::parse(found.bytes.trim_ascii_end()).ok();
        let content = content.filter(|content: &Content| content.v == VERSION);
        let content = content.ok_or_else(|| self.damaged())?;
        require(Some((content.generation, &found.bytes)))?;
        Ok(Some(Seen { content, version: found.version }))
    }

    /// Refuses what others than the owner may have read: the vault, and the key to it.
    pub async fn require_private(&self) -> Result<()> {
        self.list().await?;
        match &self.key {
            KeySource::File(path) => key::require_private(path),
            KeySource::Given(_) => Ok(()),
        }
    }

    /// Whether the secrets that are there can be read: the key is, and it is theirs.
    pub async fn check(&self) -> Result<()> {
        self.unlocked().await.map(drop)
    }

    fn place(&self) -> String {
        self.documents.place(&DOCUMENT)
    }

    fn damaged(&self) -> Error {
        let what = format!("{} is damaged, or was changed by something else", self.place());
        Error::SecretDecrypt { name: None, what }
    }

    /// The master key of what was seen. A rotation that a crash cut short is finished first.
    fn master(&self, seen: Option<&Seen>, make: bool) -> Result<MasterKey> {
        let path = match &self.key {
            KeySource::Given(text) => {
                let what = "it is not 32 bytes in base64 or hex";
                let key = MasterKey::parse(text.expose());
                return key.ok_or_else(|| key::unusable(None, what))?.require_random(None);
            }
            KeySource::File(path) => path,
        };
        self.require_outside(path)?;
        let used = seen.map(|seen| &seen.content).filter(|content| !content.records.is_empty());
        let found = key::read(path)?;
        let fits = |key: &MasterKey| used.is_none_or(|content| content.key_id == key.id());
        if let Some(key) = found.clone().filter(fits) {
            return Ok(key);
        }
        if let Some(key) = key::read(&next(path))?.filter(|key| used.is_some() && fits(key)) {
            file::rename(&next(path), path)?;
            return Ok(key);
        }
        match found {
            // It is of no use, and whoever reads with it will say so.
            Some(key) => Ok(key),
            None if used.is_none() && make => {
                let fresh = MasterKey::fresh()?;
                key::write(path, &fresh)?;
                Ok(fresh)
            }
            None => {
                let what =
                    "it is not there, and secrets are sealed under it; put a backup in its place";
                Err(key::unusable(Some(path), what))
            }
        }
    }

    /// Whoever copies the data directory must not have the key to it.
    fn require_outside(&self, path: &Path) -> Result<()> {
        if file::whole(path).starts_with(file::whole(&self.home)) {
            let what = "it lies in the data directory, which it protects; keep it elsewhere";
            return Err(key::unusable(Some(path), what));
        }
        Ok(())
    }

    /// The content that was seen, which is as this key left it.
    fn verified(&self, seen: Option<Seen>, key: &MasterKey) -> Result<Content> {
        let Some(Seen { content, .. }) = seen else {
            let (key_id, records) = (key.id(), Vec::new());
            return Ok(Content { generation: 1, key_id, mac: None, records, v: VERSION });
        };
        if content.records.is_empty() {
            return Ok(content);
        }
        if content.key_id != key.id() {
            let what = format!("{} is sealed under another master key", self.place());
            return Err(Error::SecretDecrypt { name: None, what });
        }
        let made = content.mac(key)?;
        let given = content.mac.as_deref().unwrap_or_default();
        let same: bool = given.as_bytes().ct_eq(made.as_bytes()).into();
        if same { Ok(content) } else { Err(self.damaged()) }
    }

    /// The content and the key to it. It is read again when there is another.
    async fn unlocked(&self) -> Result<Unlocked> {
        let stamps = self.stamps().await?;
        if let Some((at, known)) = &*self.known()
            && *at == stamps
        {
            return Ok(known.clone());
        }
        let read = match self.look().await {
            // Another process may be just putting everything under another key.
            Err(Error::SecretDecrypt { .. }) => {
                let _lock = self.locks.lock(Exclusive::Vault).await?;
                self.look().await
            }
            other => other,
        }?;
        // What changed meanwhile is not known to be what was read.
        if self.stamps().await? == stamps {
            *self.known() = Some((stamps, read.clone()));
        }
        Ok(read)
    }

    fn known(&self) -> MutexGuard<'_, Option<(Stamps, Unlocked)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn look(&self) -> Result<Unlocked> {
        let seen = self.read().await?;
        let key = match seen.as_ref().filter(|seen| !seen.content.records.is_empty()) {
            Some(seen) => self.master(Some(seen), false)?,
            // There is nothing to find, and no reason to make a key.
            None => MasterKey::fresh()?,
        };
        Ok(Unlocked { content: Arc::new(self.verified(seen, &key)?), key })
    }

    async fn change<T>(
        &self,
        change: impl FnOnce(&mut Content, &MasterKey) -> Result<T>,
    ) -> Result<T> {
        let _lock = self.locks.lock(Exclusive::Vault).await?;
        let seen = self.read().await?;
        let key = self.master(seen.as_ref(), true)?;
        let version = seen.as_ref().map(|seen| seen.version.clone());
        let mut content = self.verified(seen, &key)?;
        content.generation += 1;
        let answer = change(&mut content, &key)?;
        self.write(version, content, &key).await?;
        Ok(answer)
    }

    async fn write(
        &self,
        seen: Option<Version>,
        mut content: Content,
        key: &MasterKey,
    ) -> Result<()> {
        content.key_id = key.id();
        content.mac = Some(content.mac(key)?);
        let bytes =
            canonical::to_vec(&content).map_err(|error| Error::Broken(error.to_string()))?;
        self.documents.replace(&DOCUMENT, seen.as_ref(), bytes.clone()).await?;
        Anchor::write(&*self.documents, content.generation, &bytes).await
    }
}

/// The document as it was read.
struct Seen {
    content: Content,
    version: Version,
}

/// Where the next master key waits until nothing needs the one before it.
fn next(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".next");
    name.into()
}

fn unknown(scope: &Scope, name: &str) -> Error {
    Error::SecretUnknown { scope: scope.clone(), name: name.to_owned() }
}

impl Scope {
    fn workflow(&self) -> Option<Workflow> {
        match self {
            Self::Global => None,
            Self::Workflow(workflow) => {
                let (id, place) = (workflow.id().to_owned(), workflow.place().to_owned());
                Some(Workflow { id, place })
            }
        }
    }
}

impl Content {
    fn sort(&mut self) {
        self.records.sort_by(|a, b| (&a.scope, &a.name).cmp(&(&b.scope, &b.name)));
    }

    fn take(&mut self, scope: &str, name: &str) -> Option<Record> {
        let place = self.records.iter().position(|r| r.scope == scope && r.name == name)?;
        Some(self.records.remove(place))
    }

    fn find(&self, scope: &Scope, name: &str) -> Option<&Record> {
        let of = |scope: &Scope| {
            let scope = scope.to_string();
            self.records.iter().find(move |r| r.scope == scope && r.name == name)
        };
        of(scope).or_else(|| of(&Scope::Global))
    }

    /// What vouches for everything but itself.
    fn mac(&self, key: &MasterKey) -> Result<String> {
        let broken = |error: String| Error::Broken(error);
        let bytes = canonical::to_vec(&Self { mac: None, ..self.clone() });
        let bytes = bytes.map_err(|error| broken(error.to_string()))?;
        let mac = Hmac::<Sha256>::new_from_slice(key.purpose(Purpose::Vault).as_slice());
        let mut mac = mac.map_err(|error| broken(error.to_string()))?;
        mac.update(&bytes);
        Ok(mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

impl Record {
    fn open(&self, key: &MasterKey) -> Result<Secret> {
        let place = Place { scope: &self.scope, name: &self.name, version: self.version };
        let key = key.purpose(Purpose::Secrets);
        seal::open(&key, place, &self.sealed).ok_or_else(|| Error::SecretDecrypt {
            name: Some(self.name.clone()),
            what: "it was sealed under another key, or for another name or version".to_owned(),
        })
    }

    /// Who it is for.
    fn whose(&self) -> Scope {
        let Some(key) = self.scope.strip_prefix(WORKFLOW) else { return Scope::Global };
        let known = self.workflow.as_ref();
        let (id, place) = known.map_or((key, key), |known| (&*known.id, &*known.place));
        Scope::Workflow(Identity::kept(key, id, place))
    }

    /// The same secret under another key, for the same or another scope.
    fn resealed(&self, old: &MasterKey, fresh: &MasterKey, scope: &Scope) -> Result<Self> {
        let (key, scope) = (fresh.purpose(Purpose::Secrets), scope.to_string());
        let reseal = |record: &Self| {
            let place = Place { scope: &scope, name: &record.name, version: record.version };
            seal::seal(&key, place, &record.open(old)?)
        };
        let previous = match &self.previous {
            None => None,
            Some(Previous { sealed, version }) => {
                let (sealed, version) = (sealed.clone(), *version);
                let before = Self { sealed, version, ..self.clone() };
                Some(Previous { sealed: reseal(&before)?, version })
            }
        };
        let sealed = reseal(self)?;
        Ok(Self { sealed, previous, scope, ..self.clone() })
    }
}

#[cfg(test)]
mod tests;
