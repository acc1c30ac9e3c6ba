//! What triggers were refused: how often, when last, and why. Nothing of it stands in the logs of
//! runs and keys, and whoever looks after a trigger is to know it all the same.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cairn_core::text::Slug;
use cairn_store::Store;
use cairn_store::port::documents::Name;
use serde::{Deserialize, Serialize};

use crate::catalog::Identity;
use crate::error::{Error, Result};
use crate::host::Host;

static DOCUMENT: Name = Name::fixed("refusals.json");
/// How long refusals are gathered before they are written down.
const GATHER: Duration = Duration::from_secs(1);
/// How long the same reason is no news.
const NEWS_MS: u64 = 60_000;
/// How much of a message is kept.
const MESSAGE_MAX: usize = 512;

/// What a trigger was refused.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Refused {
    /// How often.
    pub count: u64,
    /// When last, in milliseconds since 1970.
    pub at_ms: u64,
    /// Why, by its code.
    pub code: String,
    /// Why, in words.
    pub message: String,
}

impl Refused {
    /// What a trigger was refused, as it is written down.
    pub async fn of(store: &Store, workflow: &Identity, trigger: &Slug) -> Result<Option<Self>> {
        let found = store.documents.read(&DOCUMENT).await?;
        let mut all = read(found.as_ref().map(|found| &*found.bytes));
        Ok(all.remove(&name(workflow, trigger)))
    }

    /// Both, as one.
    fn add(&mut self, other: &Self) {
        let count = self.count.saturating_add(other.count);
        if other.at_ms >= self.at_ms {
            *self = other.clone();
        }
        self.count = count;
    }
}

type ByTrigger = BTreeMap<String, Refused>;

/// What was refused and is not written down yet.
pub(super) struct Refusals {
    host: Arc<dyn Host>,
    store: Store,
    fresh: Arc<Mutex<Fresh>>,
}

#[derive(Default)]
struct Fresh {
    by_trigger: ByTrigger,
    /// When each trigger was last refused for each reason.
    known: BTreeMap<(String, &'static str), u64>,
    is_due: bool,
}

fn held(fresh: &Mutex<Fresh>) -> MutexGuard<'_, Fresh> {
    fresh.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a trigger goes by.
fn name(workflow: &Identity, trigger: &Slug) -> String {
    format!("{}/{trigger}", workflow.key())
}

impl Refusals {
    pub(super) fn new(host: Arc<dyn Host>, store: Store) -> Self {
        Self { host, store, fresh: Arc::default() }
    }

    /// Notes that a firing was refused; says whether that is news.
    pub(super) fn note(&self, workflow: &Identity, trigger: &Slug, why: &Error) -> bool {
        self.note_code(workflow, trigger, (why.code(), why.to_string()))
    }

    /// The same, of what was refused before the engine was asked.
    pub(super) fn note_code(
        &self,
        workflow: &Identity,
        trigger: &Slug,
        (code, mut message): (&'static str, String),
    ) -> bool {
        let (name, at_ms) = (name(workflow, trigger), self.host.now_ms());
        message.truncate(message.floor_char_boundary(MESSAGE_MAX));
        let refused = Refused { count: 1, at_ms, code: code.to_owned(), message };
        let mut fresh = held(&self.fresh);
        fresh.by_trigger.entry(name.clone()).or_default().add(&refused);
        let last = fresh.known.insert((name, code), at_ms);
        if !std::mem::replace(&mut fresh.is_due, true) {
            self.write_later();
        }
        last.is_none_or(|last| at_ms.saturating_sub(last) >= NEWS_MS)
    }

    fn write_later(&self) {
        let (host, store) = (Arc::clone(&self.host), self.store.clone());
        let fresh = Arc::clone(&self.fresh);
        self.host.spawn(Box::pin(async move {
            host.sleep(GATHER).await;
            let gathered = {
                let mut fresh = held(&fresh);
                fresh.is_due = false;
                std::mem::take(&mut fresh.by_trigger)
            };
            let added = |bytes: Option<&[u8]>| {
                let mut all = read(bytes);
                for (name, refused) in &gathered {
                    all.entry(name.clone()).or_default().add(refused);
                }
                // Names and numbers can be written down.
                let bytes = serde_json::to_vec_pretty(&all).unwrap_or_default();
                Ok::<_, cairn_store::Error>((Some(bytes), ()))
            };
            // What cannot be written down is counted no more; nothing hangs on it.
            let _ = store.documents.update(&DOCUMENT, added).await;
        }));
    }

    /// What a trigger was refused, as far as it is known.
    pub(super) async fn of(&self, workflow: &Identity, trigger: &Slug) -> Result<Option<Refused>> {
        let mut refused = Refused::of(&self.store, workflow, trigger).await?;
        if let Some(fresh) = held(&self.fresh).by_trigger.get(&name(workflow, trigger)) {
            refused.get_or_insert_default().add(fresh);
        }
        Ok(refused)
    }
}

/// What is written down. What cannot be read counts as nothing.
fn read(bytes: Option<&[u8]>) -> ByTrigger {
    bytes.and_then(|bytes| serde_json::from_slice(bytes).ok()).unwrap_or_default()
}
