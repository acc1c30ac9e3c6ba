//! What kind of network an address is in.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A network that is not the public one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Kind {
    Unspecified,
    Loopback,
    Private,
    LinkLocal,
    Shared,
    Multicast,
    Reserved,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unspecified => "no address of one machine",
            Self::Loopback => "this machine",
            Self::Private => "in a private network",
            Self::LinkLocal => "in the local network, where clouds keep their secrets",
            Self::Shared => "in a provider's inner network",
            Self::Multicast => "an address of many machines",
            Self::Reserved => "reserved",
        })
    }
}

/// The kind of network that an address is in; none for the public one.
#[must_use]
pub fn classify(address: IpAddr) -> Option<Kind> {
    match address {
        IpAddr::V4(address) => classify_v4(address),
        IpAddr::V6(address) => classify_v6(address),
    }
}

const fn classify_v4(address: Ipv4Addr) -> Option<Kind> {
    Some(match address.octets() {
        [0, ..] => Kind::Unspecified,
        [127, ..] => Kind::Loopback,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => Kind::Private,
        [169, 254, ..] => Kind::LinkLocal,
        [100, 64..=127, ..] => Kind::Shared,
        [224..=239, ..] => Kind::Multicast,
        [192, 0, 0 | 2, _] | [192, 88, 99, _] | [198, 18 | 19, ..] => Kind::Reserved,
        [198, 51, 100, _] | [203, 0, 113, _] | [240..=255, ..] => Kind::Reserved,
        _ => return None,
    })
}

fn classify_v6(address: Ipv6Addr) -> Option<Kind> {
    if address.is_unspecified() {
        return Some(Kind::Unspecified);
    }
    if address.is_loopback() {
        return Some(Kind::Loopback);
    }
    let inner = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        classify_v4(Ipv4Addr::new(a, b, c, d))
    };
    match address.segments() {
        // Addresses of the older kind in the clothes of the newer one.
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            inner(high, low)
        }
        [0, 0, 0, 0, 0xffff, 0, high, low] => inner(high, low),
        [0x2002, high, low, ..] => inner(high, low),
        [0xfc00..=0xfdff, ..] => Some(Kind::Private),
        [0xfe80..=0xfebf, ..] => Some(Kind::LinkLocal),
        [0xfec0..=0xfeff, ..] => Some(Kind::Private),
        [0xff00..=0xffff, ..] => Some(Kind::Multicast),
        // Tunnels, documentation, benchmarks and identifiers that are no addresses.
        [0x2001, 0..=0x01ff, ..] | [0x2001, 0x0db8, ..] | [0x3fff, 0..=0x0fff, ..] => {
            Some(Kind::Reserved)
        }
        // The public network is one eighth of all there is.
        [0x2000..=0x3fff, ..] => None,
        _ => Some(Kind::Reserved),
    }
}
