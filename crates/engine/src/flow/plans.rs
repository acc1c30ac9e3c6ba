//! Plans made ready to be gone through, each once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use cairn_core::catalog::Catalog as Types;
use cairn_core::digest::WorkflowHash;
use cairn_core::event::guided::RunStarted;
use cairn_core::flow::Graph;
use cairn_core::pin::BlobKind;
use cairn_core::plan::Plan;
use cairn_store::{Blob, Store};

use crate::catalog::Found;
use crate::error::{Error, Result};

/// How many are kept ready.
const KEPT_MAX: usize = 256;

pub(super) struct Plans {
    store: Store,
    types: Types,
    ready: Mutex<BTreeMap<WorkflowHash, Arc<Ready>>>,
}

/// A plan made ready, and what pins a run to it.
#[derive(Clone)]
pub(super) struct LoadedPlan {
    pub(super) ready: Arc<Ready>,
    pub(super) started: RunStarted,
}

/// A plan made ready, with the files that belong to it.
pub(super) struct Ready {
    pub(super) hash: WorkflowHash,
    pub(super) graph: Graph,
    pub(super) assets: Arc<BTreeMap<String, Arc<[u8]>>>,
}

impl Plans {
    pub(super) fn new(store: Store, types: Types) -> Self {
        Self { store, types, ready: Mutex::default() }
    }

    fn known(&self, hash: WorkflowHash) -> Option<Arc<Ready>> {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner).get(&hash).cloned()
    }

    fn keep(&self, ready: Ready) -> Arc<Ready> {
        let ready = Arc::new(ready);
        let mut kept = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT_MAX {
            kept.clear();
        }
        kept.insert(ready.hash, Arc::clone(&ready));
        ready
    }

    /// The plan of a workflow as it is now. Plan and files are durable when this returns.
    pub(super) async fn pin(&self, found: &Found) -> Result<Arc<Ready>> {
        let (plan, hash) = (&found.compiled()?.plan, found.hash()?);
        if let Some(ready) = self.known(hash) {
            return Ok(ready);
        }
        let graph = self.graph(plan.clone())?;
        let ready = Ready { hash, graph, assets: Arc::new(found.assets.clone()) };
        self.put(&ready).await?;
        Ok(self.keep(ready))
    }

    /// Puts a plan and its files into the store, where a run may pin them.
    pub(super) async fn put(&self, ready: &Ready) -> Result<()> {
        for bytes in ready.assets.values() {
            let blob = Blob { kind: BlobKind::Asset, bytes: bytes.to_vec() };
            self.store.blobs.put(blob).await?;
        }
        let bytes = ready.graph.plan.encode().map_err(|error| Error::Broken(error.to_string()))?;
        self.store.blobs.put(Blob { kind: BlobKind::Plan, bytes }).await?;
        Ok(())
    }

    /// The plan that a run is pinned to.
    pub(super) async fn get(&self, hash: WorkflowHash) -> Result<Arc<Ready>> {
        if let Some(ready) = self.known(hash) {
            return Ok(ready);
        }
        let plan = read(&self.store, hash).await?;
        let mut assets = BTreeMap::new();
        for asset in &plan.assets {
            let bytes = self.store.blobs.get(BlobKind::Asset, asset.sha256).await?;
            assets.insert(asset.path.clone(), Arc::from(bytes));
        }
        let graph = self.graph(plan)?;
        Ok(self.keep(Ready { hash, graph, assets: Arc::new(assets) }))
    }

    fn graph(&self, plan: Plan) -> Result<Graph> {
        Graph::new(plan, &self.types).map_err(|error| Error::Broken(error.to_string()))
    }
}

/// A plan as a store has it.
pub(super) async fn read(store: &Store, hash: WorkflowHash) -> Result<Plan> {
    let bytes = store.blobs.get(BlobKind::Plan, hash.0).await?;
    Plan::decode(&bytes).map_err(|error| Error::Broken(error.to_string()))
}
