//! Plans and snapshots that were read lately. They never change, so they are never stale.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use cairn_core::digest::{Digest, SnapshotRef, WorkflowHash};
use cairn_core::pin::BlobKind;
use cairn_core::plan::Plan;
use cairn_core::snapshot::{EngineState, ExecutionSnapshot};
use cairn_store::Store;
use serde_json::Value;

use crate::error::{Error, Result};

/// How many of each are kept.
const KEPT_MAX: usize = 64;

#[derive(Default)]
pub(super) struct Cache {
    plans: Shelf<WorkflowHash, Plan>,
    states: Shelf<SnapshotRef, EngineState>,
}

impl Cache {
    pub(super) async fn plan(&self, store: &Store, hash: WorkflowHash) -> Result<Arc<Plan>> {
        if let Some(plan) = self.plans.get(&hash) {
            return Ok(plan);
        }
        let bytes = store.blobs.get(BlobKind::Plan, hash.0).await?;
        let plan = Plan::decode(&bytes).map_err(|error| Error::Broken(error.to_string()))?;
        Ok(self.plans.put(hash, plan))
    }

    pub(super) async fn state(&self, store: &Store, at: SnapshotRef) -> Result<Arc<EngineState>> {
        if let Some(state) = self.states.get(&at) {
            return Ok(state);
        }
        let bytes = store.blobs.get(BlobKind::Snapshot, at.0).await?;
        let snapshot = ExecutionSnapshot::decode(&bytes);
        let snapshot = snapshot.map_err(|error| Error::Broken(error.to_string()))?;
        Ok(self.states.put(at, snapshot.state))
    }
}

/// An artifact.
pub(super) async fn artifact(store: &Store, digest: Digest) -> Result<Value> {
    let bytes = store.blobs.get(BlobKind::Artifact, digest).await?;
    serde_json::from_slice(&bytes).map_err(|error| Error::Broken(error.to_string()))
}

struct Shelf<K, V>(Mutex<BTreeMap<K, Arc<V>>>);

impl<K, V> Default for Shelf<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Ord, V> Shelf<K, V> {
    fn get(&self, key: &K) -> Option<Arc<V>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    fn put(&self, key: K, value: V) -> Arc<V> {
        let value = Arc::new(value);
        let mut shelf = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Whatever is thrown out is read again when it is needed.
        if shelf.len() >= KEPT_MAX {
            shelf.clear();
        }
        shelf.insert(key, Arc::clone(&value));
        value
    }
}
