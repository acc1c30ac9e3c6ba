//! Where to listen, and for whom.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use axum::routing::MethodRouter;
use cairn_api::error::{Error, Result};
use cairn_core::digest::Digest;
use tokio::net::TcpListener;

use crate::automation::Automation;
use crate::telemetry::Telemetry;

/// Where the server listens when nobody says.
pub const DEFAULT_ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7373);

/// How long steps under way may take, when nobody says, once the server is told to stop:
/// less than the half minute after which supervisors lose patience.
pub const DEFAULT_DRAIN: Duration = Duration::from_secs(25);

/// Whom to serve.
#[derive(Clone)]
pub struct Config {
    /// Host names that requests may be meant for, beside the loopback ones.
    pub public_hosts: Vec<String>,
    /// The digest of the admin token.
    pub admin_token: Digest,
    /// Makes up the text of a token.
    pub new_token: fn() -> Result<String>,
    /// What answers agents at `/mcp`.
    pub mcp: Option<MethodRouter>,
    /// What runs by itself.
    pub automation: Automation,
    /// Where traces go, when they go somewhere.
    pub telemetry: Option<Telemetry>,
    /// How long steps under way may take once the server is told to stop.
    pub drain: Duration,
}

/// What stands between the server and its clients.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Front {
    /// Nothing: clients are on this machine.
    None,
    /// A proxy that speaks TLS to clients on other machines.
    Proxy,
}

/// Starts to listen; port 0 takes a free one, which the listener then names.
///
/// Refuses an address that other machines can reach unless a proxy stands in front: what
/// is sent here is not encrypted.
pub async fn listen(address: SocketAddr, front: Front) -> Result<TcpListener> {
    if !address.ip().is_loopback() && front == Front::None {
        return Err(Error::AddressExposed(address));
    }
    TcpListener::bind(address).await.map_err(|source| match source.kind() {
        io::ErrorKind::AddrInUse => Error::PortTaken(address),
        _ => Error::Bind { address, source },
    })
}
