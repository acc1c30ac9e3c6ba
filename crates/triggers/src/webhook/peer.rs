//! Who may send: ranges of addresses, and who a request is really from.

use std::net::IpAddr;

use cairn_core::catalog::SettingFault;
use cairn_engine::trigger::Request;
use ipnet::IpNet;

use super::header;

/// Ranges of addresses.
#[derive(Clone, Debug, Default)]
pub(super) struct Ranges(Vec<IpNet>);

impl Ranges {
    /// The ranges of a setting, each an address or an address with the length of its prefix.
    pub(super) fn read(field: &str, list: &[String]) -> Result<Self, Vec<SettingFault>> {
        let mut ranges = Vec::new();
        let mut faults = Vec::new();
        for (place, text) in list.iter().enumerate() {
            match range(text) {
                Ok(range) => ranges.push(range),
                Err((message, hint)) => {
                    faults.push(SettingFault::new(format!("{field}.{place}"), message, hint));
                }
            }
        }
        if faults.is_empty() { Ok(Self(ranges)) } else { Err(faults) }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn holds(&self, address: IpAddr) -> bool {
        self.0.iter().any(|range| range.contains(&address))
    }

    /// Who sent a request: the other end of the connection, unless that is a proxy that
    /// these ranges hold; then the last of those it names that is no such proxy itself.
    pub(super) fn sender(&self, request: &Request<'_>) -> Option<IpAddr> {
        let peer = request.peer.to_canonical();
        if !self.holds(peer) {
            return Some(peer);
        }
        let named: Vec<&[u8]> = header(request, "x-forwarded-for").collect();
        let named = named.iter().rev().flat_map(|line| line.rsplit(|byte| *byte == b','));
        for name in named {
            let address = std::str::from_utf8(name).ok()?.trim().parse::<IpAddr>().ok()?;
            let address = address.to_canonical();
            if !self.holds(address) {
                return Some(address);
            }
        }
        Some(peer)
    }
}

type Told = (String, String);

fn range(text: &str) -> Result<IpNet, Told> {
    let refuse = || {
        let hint = "write an address such as `10.0.0.7`, or a range such as `10.0.0.0/8`";
        (format!("`{text}` is not a range of addresses"), hint.to_owned())
    };
    if let Ok(address) = text.parse::<IpAddr>() {
        return Ok(IpNet::from(address.to_canonical()));
    }
    let range: IpNet = text.parse().map_err(|_| refuse())?;
    if let IpAddr::V6(address) = range.addr()
        && address.to_ipv4_mapped().is_some()
    {
        // Requests are held against the IPv4 form, so this would never fit.
        return Err((refuse().0, "write the IPv4 form of it".to_owned()));
    }
    if range.addr() != range.network() {
        // `10.1.2.3/8` was likely meant to be something else than all of `10.0.0.0/8`.
        let message = format!("`{text}` does not begin where its range does");
        return Err((message, format!("write `{}`", range.trunc())));
    }
    Ok(range)
}
