//! What compiled last of the files whose triggers a server watches, kept for its next start.
//!
//! A plan is kept whole, with its files and its source: nothing of it has to compile again, and no
//! run need have pinned it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cairn_core::plan::Plan;
use cairn_store::port::documents::{Documents, Name};
use serde_json::{Value, json};

use super::{Catalog, Found};
use crate::error::{Error, Result};

static FOLDER: Name = Name::fixed("plans");
/// How many bytes are kept of one workflow. One that is larger has to compile.
const BYTES_MAX: usize = 16 << 20;

/// What compiled last of a file.
pub(super) struct Kept {
    /// The key of its workflow.
    pub(super) key: String,
    /// Where the file was.
    place: PathBuf,
    pub(super) plan: Plan,
    pub(super) source: Vec<u8>,
    pub(super) assets: BTreeMap<String, Arc<[u8]>>,
}

impl Kept {
    fn of(found: &Found) -> Option<Self> {
        let plan = &found.outcome.as_ref().ok()?.plan;
        if plan.triggers.is_empty() {
            return None;
        }
        let (key, place) = (found.identity.key().to_owned(), found.identity.place().into());
        let (plan, source, assets) = (plan.clone(), found.bytes.clone(), found.assets.clone());
        Some(Self { key, place, plan, source, assets })
    }

    fn written(&self) -> Result<Vec<u8>> {
        let broken = |error: String| Error::Broken(error);
        let plan = self.plan.encode().map_err(|error| broken(error.to_string()))?;
        let plan: Value =
            serde_json::from_slice(&plan).map_err(|error| broken(error.to_string()))?;
        let assets =
            self.assets.iter().map(|(path, bytes)| (path.clone(), json!(STANDARD.encode(bytes))));
        let written = json!({
            "key": self.key,
            "place": self.place.to_string_lossy(),
            "plan": plan,
            "source": STANDARD.encode(&self.source),
            "assets": assets.collect::<serde_json::Map<_, _>>(),
        });
        Ok(written.to_string().into_bytes())
    }

    /// What was written; nothing when it is none of ours, or of a version that knows another plan.
    fn read(bytes: &[u8]) -> Option<Self> {
        let written: Value = serde_json::from_slice(bytes).ok()?;
        let decoded = |value: &Value| STANDARD.decode(value.as_str()?).ok();
        let plan = Plan::decode(&serde_json::to_vec(written.get("plan")?).ok()?).ok()?;
        let assets = written.get("assets")?.as_object()?.iter();
        let assets: Option<BTreeMap<String, Arc<[u8]>>> =
            assets.map(|(path, bytes)| Some((path.clone(), Arc::from(decoded(bytes)?)))).collect();
        Some(Self {
            key: written.get("key")?.as_str()?.to_owned(),
            place: written.get("place")?.as_str()?.into(),
            plan,
            source: decoded(written.get("source")?)?,
            assets: assets?,
        })
    }
}

impl Catalog {
    /// Takes in what compiled last before this process began.
    pub async fn recall(&self, documents: &dyn Documents) -> Result<()> {
        let mut kept = Vec::new();
        for name in documents.list(&FOLDER).await? {
            let found = documents.read(&name).await?;
            kept.extend(found.and_then(|found| Kept::read(&found.bytes)));
        }
        self.good().recall(kept);
        Ok(())
    }

    /// Keeps what compiles now for the next start, and forgets what is gone. What is kept already
    /// is not written again.
    pub async fn keep(&self, documents: &dyn Documents, found: &[Arc<Found>]) -> Result<()> {
        let mut wanted = BTreeMap::new();
        for workflow in found {
            let version = workflow.in_force();
            let Some(name) = Name::parse(&format!("plans/{}.json", version.identity.key())) else {
                continue;
            };
            if let Some(kept) = Kept::of(&version) {
                wanted.insert(name, kept.written()?);
            }
        }
        for name in documents.list(&FOLDER).await? {
            if wanted.contains_key(&name) {
                continue;
            }
            // What another project has there is its own.
            let is_gone = |kept: Kept| !kept.place.is_file();
            if let Some(known) = documents.read(&name).await?
                && Kept::read(&known.bytes).is_none_or(is_gone)
            {
                documents.remove(&name, &known.version).await?;
            }
        }
        for (name, bytes) in wanted.into_iter().filter(|(_, bytes)| bytes.len() <= BYTES_MAX) {
            let update = documents.update(&name, |seen| {
                let is_new = seen != Some(bytes.as_slice());
                Ok::<_, cairn_store::Error>((is_new.then(|| bytes.clone()), ()))
            });
            update.await?;
        }
        Ok(())
    }
}
