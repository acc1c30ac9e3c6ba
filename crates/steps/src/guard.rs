//! Where this program may connect to: nowhere inside, unless the operator says so.
//!
//! Every connection that a workflow can steer goes through here. An address is read and
//! normalised, its name is resolved, and every address that comes back is looked at; the
//! connection is made to those and no others, so that a name that changes its mind in
//! between gains nothing.

mod address;
mod allow;
mod resolve;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use cairn_core::hosts::normal;
use url::{Host, ParseError, Url};

pub use address::{Kind, classify};
pub use allow::{Allowed, Policy};
pub use resolve::{Resolver, System};

/// The ports that need no permission.
const PORTS: [u16; 4] = [80, 443, 8080, 8443];

/// Why a connection is not made.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Denied {
    #[error("`{0}` is not an address: {1}")]
    Unreadable(String, &'static str),
    #[error("`{0}` addresses are not used, only `http` and `https`")]
    Scheme(String),
    #[error("the address has a user name or password in it; put them into a header")]
    Userinfo,
    #[error("the address names no host")]
    NoHost,
    #[error(
        "port {port} of `{host}` is not one of {PORTS:?}; the operator can allow `{host}:{port}` in `http.allow`"
    )]
    Port { host: String, port: u16 },
    #[error("`{host}` is {address}, which is {kind}; the operator can allow it in `http.allow`")]
    Address { host: String, address: IpAddr, kind: Kind },
    #[error(
        "`{0}` is a name for this machine or its network; the operator can allow it in `http.allow`"
    )]
    Name(String),
    #[error(
        "`{0}` is none of the hosts in `http.hosts` of the configuration; the operator can add it"
    )]
    Unlisted(String),
    #[error("`{0}` is none of the `hosts` of the workflow; add it there, or ask one of those")]
    OutsideWorkflow(String),
    #[error("`{0}` has no address")]
    NoAddress(String),
}

/// An address that may be asked for, as far as its text tells.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    /// The whole address, normalised.
    pub url: Url,
    /// Its host, as names are compared: in lower case, without a dot at the end.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Its address, when it is one and not a name.
    pub literal: Option<IpAddr>,
}

/// Looks at an address without asking anybody.
pub fn check(text: &str, policy: &Policy) -> Result<Target, Denied> {
    let url = Url::parse(text.trim())
        .map_err(|error| Denied::Unreadable(shortened(text), unreadable(error)))?;
    check_url(url, policy)
}

/// What is wrong with a text that is no address.
const fn unreadable(error: ParseError) -> &'static str {
    match error {
        ParseError::RelativeUrlWithoutBase => "a whole one begins with `https://` or `http://`",
        ParseError::EmptyHost => "it names no host",
        ParseError::InvalidPort => "its port is no number up to 65535",
        ParseError::InvalidIpv4Address | ParseError::InvalidIpv6Address => {
            "its host looks like the number of a machine, and is none"
        }
        _ => "its host has characters that no host has",
    }
}

/// The same for one that was read already.
pub fn check_url(url: Url, policy: &Policy) -> Result<Target, Denied> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(Denied::Scheme(url.scheme().to_owned()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Denied::Userinfo);
    }
    let port = url.port_or_known_default().ok_or(Denied::NoHost)?;
    let (host, literal) = match url.host().ok_or(Denied::NoHost)? {
        Host::Domain(name) => (normal(name), None),
        Host::Ipv4(ip) => (ip.to_string(), Some(IpAddr::V4(ip))),
        Host::Ipv6(ip) => (ip.to_string(), Some(IpAddr::V6(ip))),
    };
    if host.is_empty() {
        return Err(Denied::NoHost);
    }
    if !policy.lists(&host, literal, port) {
        return Err(Denied::Unlisted(host));
    }
    if !PORTS.contains(&port) && !policy.allows_port(&host, literal, port) {
        return Err(Denied::Port { host, port });
    }
    match literal {
        Some(address) => policy.check(&host, address, port)?,
        None if is_inner_name(&host) && !policy.allows_name(&host, port) => {
            return Err(Denied::Name(host));
        }
        None => {}
    }
    Ok(Target { url, host, port, literal })
}

/// Looks at addresses, resolves their names, and looks again.
#[derive(Clone)]
pub struct Guard {
    /// What the operator allows.
    pub policy: Arc<Policy>,
    /// Who knows the addresses of names.
    pub resolver: Arc<dyn Resolver>,
}

impl Guard {
    /// A guard that asks the system for addresses.
    #[must_use]
    pub fn new(policy: Policy) -> Self {
        Self { policy: Arc::new(policy), resolver: Arc::new(System) }
    }

    /// The same guard without what `http.allow` permits: for addresses that a server gave.
    #[must_use]
    pub fn without_permissions(&self) -> Self {
        let policy = Arc::new(self.policy.without_permissions());
        Self { policy, resolver: Arc::clone(&self.resolver) }
    }

    /// The addresses of a name, all of which may be connected to. One bad one refuses the name.
    pub async fn addresses(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, Denied> {
        let found = self.resolver.resolve(host).await.unwrap_or_default();
        for address in &found {
            self.policy.check(host, *address, port)?;
        }
        if found.is_empty() {
            return Err(Denied::NoAddress(host.to_owned()));
        }
        Ok(found.into_iter().map(|address| SocketAddr::new(address, port)).collect())
    }
}

/// Whether a name stands for this machine, or for what clouds tell their machines.
fn is_inner_name(host: &str) -> bool {
    const INNER: [&str; 4] = ["localhost", "local", "internal", "localdomain"];
    INNER.iter().any(|inner| host == *inner || host.ends_with(&format!(".{inner}")))
}

fn shortened(text: &str) -> String {
    text.chars().take(100).collect()
}

#[cfg(test)]
mod tests;
