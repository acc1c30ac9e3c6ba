//! Who knows the addresses of names.

use std::io;
use std::net::IpAddr;

use async_trait::async_trait;

/// Knows the addresses of names.
#[async_trait]
pub trait Resolver: Send + Sync {
    /// All addresses of a name.
    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>>;
}

/// Asks the system.
pub struct System;

#[async_trait]
impl Resolver for System {
    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        let found = tokio::net::lookup_host((host, 0)).await?;
        Ok(found.map(|address| address.ip()).collect())
    }
}
