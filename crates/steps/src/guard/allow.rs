//! What the operator allows beside the public network.

use std::net::IpAddr;
use std::str::FromStr;

use super::Denied;
use super::address::{Kind, classify};
use cairn_core::hosts::{HostPattern, normal};

/// What may be connected to: a part of the public network, or all of it, and what is allowed
/// beside it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Policy {
    allowed: Vec<Allowed>,
    hosts: Option<Vec<HostPattern>>,
}

/// One permission: `host`, `*.host`, an address or a network such as `10.0.0.0/8`, each with
/// `:port` or `:*` behind it or without.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Allowed {
    what: What,
    port: Port,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum What {
    Name(String),
    /// Every name below this one.
    Below(String),
    /// The addresses that begin with so many bits of this one.
    Network(IpAddr, u8),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Port {
    Usual,
    Any,
    One(u16),
}

impl Policy {
    /// These permissions.
    #[must_use]
    pub const fn new(allowed: Vec<Allowed>) -> Self {
        Self { allowed, hosts: None }
    }

    /// The same permissions, and of the public network these hosts only.
    #[must_use]
    pub fn limited_to(self, hosts: Option<Vec<HostPattern>>) -> Self {
        Self { hosts, ..self }
    }

    /// The same hosts of the public network, and nothing beside it.
    pub(super) fn without_permissions(&self) -> Self {
        Self { allowed: Vec::new(), hosts: self.hosts.clone() }
    }

    /// Whether a host is one of those that requests are limited to. What is allowed by its own
    /// name or address need not be listed twice.
    pub(super) fn lists(&self, host: &str, literal: Option<IpAddr>, port: u16) -> bool {
        let Some(hosts) = &self.hosts else { return true };
        let allowed = |allowed: &Allowed| {
            let address = literal.is_some_and(|address| allowed.what.has_address(address));
            allowed.port.holds(port) && (address || allowed.what.has_name(host))
        };
        hosts.iter().any(|listed| listed.fits(host)) || self.allowed.iter().any(allowed)
    }

    /// Whether an address of a host may be connected to.
    pub(super) fn check(&self, host: &str, address: IpAddr, port: u16) -> Result<(), Denied> {
        let Some(kind) = classify(address) else { return Ok(()) };
        // Who allows a name means a machine, not what clouds tell their machines.
        let by_name = matches!(kind, Kind::Loopback | Kind::Private | Kind::Shared);
        let fits = |allowed: &Allowed| {
            allowed.port.holds(port)
                && (allowed.what.has_address(address) || by_name && allowed.what.has_name(host))
        };
        if self.allowed.iter().any(fits) {
            return Ok(());
        }
        Err(Denied::Address { host: host.to_owned(), address, kind })
    }

    pub(super) fn allows_name(&self, host: &str, port: u16) -> bool {
        self.allowed.iter().any(|allowed| allowed.what.has_name(host) && allowed.port.holds(port))
    }

    /// Whether a port may be used that is not one of the usual ones. For a name that is
    /// allowed by its network alone, what it resolves to decides.
    pub(super) fn allows_port(&self, host: &str, literal: Option<IpAddr>, port: u16) -> bool {
        self.allowed.iter().any(|allowed| {
            let named = match (&allowed.what, literal) {
                (What::Network(..), Some(address)) => allowed.what.has_address(address),
                (what, _) => what.has_name(host),
            };
            named && allowed.port != Port::Usual && allowed.port.holds(port)
        })
    }
}

impl Port {
    fn holds(self, port: u16) -> bool {
        match self {
            Self::Usual => super::PORTS.contains(&port),
            Self::Any => true,
            Self::One(one) => one == port,
        }
    }
}

impl What {
    fn has_name(&self, host: &str) -> bool {
        match self {
            Self::Name(name) => name == host,
            Self::Below(name) => {
                host.strip_suffix(name.as_str()).is_some_and(|rest| rest.ends_with('.'))
            }
            Self::Network(..) => false,
        }
    }

    fn has_address(&self, address: IpAddr) -> bool {
        let Self::Network(network, bits) = self else { return false };
        let mask = |all: u32| u128::MAX.checked_shl(all - u32::from(*bits)).unwrap_or(0);
        match (network, address.to_canonical()) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                let differ = u128::from(u32::from(*network) ^ u32::from(address));
                differ & mask(32) == 0
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                (u128::from(*network) ^ u128::from(address)) & mask(128) == 0
            }
            _ => false,
        }
    }
}

impl FromStr for Allowed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!("`{text}` is neither a host, an address nor a network, with or without a port")
        };
        if let Ok(what) = network(text) {
            return Ok(Self { what, port: Port::Usual });
        }
        let (what, port) = match text.rsplit_once(':') {
            Some((what, "*")) => (what, Port::Any),
            Some((what, port)) => (what, Port::One(port.parse().map_err(|_| wrong())?)),
            None => (text, Port::Usual),
        };
        let bare = what.strip_prefix('[').and_then(|what| what.strip_suffix(']'));
        if let Ok(what) = network(bare.unwrap_or(what)) {
            return Ok(Self { what, port });
        }
        let name = normal(what);
        let plain = |name: &str| {
            let part = |part: &str| {
                !part.is_empty()
                    && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
            };
            name.split('.').all(part) && !name.ends_with(|last: char| last.is_ascii_digit())
        };
        let what = match name.strip_prefix("*.") {
            Some(below) if plain(below) => What::Below(below.to_owned()),
            None if plain(&name) => What::Name(name),
            _ => return Err(wrong()),
        };
        Ok(Self { what, port })
    }
}

fn network(text: &str) -> Result<What, ()> {
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, Some(bits.parse::<u8>().map_err(drop)?)),
        None => (text, None),
    };
    let address: IpAddr = address.parse().map_err(drop)?;
    let all = if address.is_ipv4() { 32 } else { 128 };
    let bits = bits.unwrap_or(all);
    if bits > all { Err(()) } else { Ok(What::Network(address, bits)) }
}
