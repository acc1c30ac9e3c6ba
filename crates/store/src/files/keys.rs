//! The key ring as a file that only its owner can read.

use std::sync::Arc;

use async_trait::async_trait;
use cairn_core::keyring::{Keyring, SigningKey};

use super::durable::{ensure_dir, read_if_there, replace};
use super::fs::Fs;
use super::layout::Layout;
use super::lock::LockFile;
use crate::error::{Error, Result};
use crate::port::Keys;
use crate::regular;

pub(super) struct FileKeys {
    fs: Arc<dyn Fs>,
    layout: Layout,
}

impl FileKeys {
    pub(super) fn new(fs: Arc<dyn Fs>, layout: Layout) -> Self {
        Self { fs, layout }
    }

    fn path(&self) -> std::path::PathBuf {
        self.layout.keys().join("keyring.json")
    }

    fn unusable(&self, what: impl Into<String>) -> Error {
        Error::Keyring { path: self.path(), what: what.into() }
    }

    fn read(&self) -> Result<Option<Keyring>> {
        if let Some(what) = regular::exposed(&self.path()) {
            return Err(self.unusable(what));
        }
        let Some(bytes) = read_if_there(&*self.fs, &self.path())? else { return Ok(None) };
        let what = "it is damaged; put keyring.json.bak back if there is one, or remove it to make a new one, \
                    which ends all tokens given out so far";
        Keyring::decode(&bytes).map(Some).map_err(|error| self.unusable(format!("{error}: {what}")))
    }

    /// Writes under the lock, after a copy of what was there.
    fn write(&self, change: impl FnOnce(Option<Keyring>) -> Result<Keyring>) -> Result<Keyring> {
        let fs = &*self.fs;
        ensure_dir(fs, &self.layout.keys())?;
        let mut lock = LockFile::open(fs, self.layout.keys().join(".lock"))?;
        let Some(_held) = lock.acquire(fs)? else {
            return Err(Error::KeyringBusy { path: self.path() });
        };
        let before = self.read()?;
        if let Some(ring) = &before {
            replace(fs, &self.path().with_file_name("keyring.json.bak"), &ring.encode()?)?;
        }
        let ring = change(before)?;
        replace(fs, &self.path(), &ring.encode()?)?;
        Ok(ring)
    }
}

fn fresh_key() -> Result<SigningKey> {
    crate::random_bytes().map(SigningKey::new)
}

#[async_trait]
impl Keys for FileKeys {
    async fn load(&self) -> Result<Keyring> {
        match self.read()? {
            Some(ring) => Ok(ring),
            None => self.write(|ring| ring.map_or_else(|| fresh_key().map(Keyring::new), Ok)),
        }
    }

    async fn rotate(&self) -> Result<Keyring> {
        self.write(|ring| {
            let fresh = fresh_key()?;
            Ok(ring.map_or_else(|| Keyring::new(fresh.clone()), |ring| ring.rotated(fresh.clone())))
        })
    }
}
