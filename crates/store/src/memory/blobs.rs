//! Bytes under their digests.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use cairn_core::digest::Digest;
use cairn_core::pin::BlobKind;

use super::{Memory, Shelf, held};
use crate::error::{Error, Result};
use crate::plan::Blob;
use crate::port::{Blobs, Sweep};

#[async_trait]
impl Blobs for Memory {
    async fn put(&self, blob: Blob) -> Result<Digest> {
        let digest = blob.digest();
        held(&self.shared.blobs).insert((blob.kind, digest), blob.bytes);
        Ok(digest)
    }

    async fn get(&self, kind: BlobKind, digest: Digest) -> Result<Vec<u8>> {
        let missing = Error::BlobMissing { kind: kind.name(), digest };
        held(&self.shared.blobs).get(&(kind, digest)).cloned().ok_or(missing)
    }

    async fn sweep(&self) -> Result<Box<dyn Sweep>> {
        Ok(Box::new(MemorySweep(Arc::clone(&self.shared.blobs))))
    }
}

struct MemorySweep(Arc<Mutex<Shelf>>);

#[async_trait]
impl Sweep for MemorySweep {
    async fn list(&self, kind: BlobKind) -> Result<Vec<(Digest, u64)>> {
        let blobs = held(&self.0);
        Ok(blobs.keys().filter(|(of, _)| *of == kind).map(|(_, digest)| (*digest, 0)).collect())
    }

    async fn remove(&self, kind: BlobKind, digest: Digest) -> Result<()> {
        held(&self.0).remove(&(kind, digest));
        Ok(())
    }
}
