//! The keys that sign tokens.

use async_trait::async_trait;
use cairn_core::keyring::{Keyring, SigningKey};

use super::{Memory, held};
use crate::error::Result;
use crate::port::Keys;

impl Memory {
    fn fresh_key(&self) -> Result<SigningKey> {
        (self.shared.outside.random_bytes)().map(SigningKey::new)
    }
}

#[async_trait]
impl Keys for Memory {
    async fn load(&self) -> Result<Keyring> {
        let mut keys = held(&self.shared.keys);
        if let Some(ring) = &*keys {
            return Ok(ring.clone());
        }
        let ring = Keyring::new(self.fresh_key()?);
        Ok(keys.insert(ring).clone())
    }

    async fn rotate(&self) -> Result<Keyring> {
        let fresh = self.fresh_key()?;
        let mut keys = held(&self.shared.keys);
        let ring = match keys.take() {
            Some(ring) => ring.rotated(fresh),
            None => Keyring::new(fresh),
        };
        Ok(keys.insert(ring).clone())
    }
}
