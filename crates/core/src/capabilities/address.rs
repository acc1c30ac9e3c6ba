//! The host of an address, as far as it is written out.

use super::Host;
use crate::expression::{self, Piece};

/// The host that an address of a plan leads to.
///
/// Only what every reader of addresses takes for the same host counts as written out; anything
/// else is shown whole, as something that the run decides.
#[must_use]
pub fn host(url: &str) -> Host {
    literal(url).map_or_else(|| Host::Decided(url.to_owned()), Host::Literal)
}

/// The host of a [`Host::Literal`], as hosts are compared.
#[must_use]
pub fn without_port(authority: &str) -> &str {
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => host,
        _ => authority,
    };
    host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host)
}

fn literal(url: &str) -> Option<String> {
    let template = expression::template(url, &|_| true).ok()?;
    let Some(Piece::Text(lead)) = template.pieces.first() else { return None };
    let lead = lead.to_ascii_lowercase();
    let (usual, rest) = match lead.strip_prefix("https://") {
        Some(rest) => (":443", rest),
        None => (":80", lead.strip_prefix("http://")?),
    };
    let end = rest.find(['/', '?', '#']);
    // Without an end of its own, what follows the text may belong to the host.
    if end.is_none() && template.pieces.len() > 1 {
        return None;
    }
    let authority = rest.get(..end.unwrap_or(rest.len()))?;
    let host = authority.strip_suffix(usual).unwrap_or(authority);
    is_plain(host).then(|| host.to_owned())
}

fn is_plain(authority: &str) -> bool {
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (authority, None),
    };
    let number = |port: &str| !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit());
    let name = |b: u8| b.is_ascii_alphanumeric() || b == b'.' || b == b'-';
    let six = |inner: &str| inner.bytes().all(|b| b.is_ascii_hexdigit() || b == b':');
    let bracketed = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let known = bracketed.map_or_else(|| host.bytes().all(name), six);
    !host.is_empty() && known && port.is_none_or(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_literal_when_no_reader_could_see_another() {
        for (url, host) in [
            ("https://api.example.com/orders", "api.example.com"),
            ("HTTPS://API.example.com", "api.example.com"),
            ("https://api.example.com:443/x", "api.example.com"),
            ("http://api.example.com:8080?x=1", "api.example.com:8080"),
            ("https://[2606:4700::1111]/x", "[2606:4700::1111]"),
            ("https://api.example.com/{{ event.payload.id | urlencode }}", "api.example.com"),
        ] {
            assert_eq!(super::host(url), Host::Literal(host.to_owned()), "{url}");
        }
        for url in [
            "{{ env.API }}/orders",
            "https://{{ env.HOST }}/x",
            "https://api.example.com{{ event.payload.x }}",
            "https://api.example.com:{{ env.PORT }}/",
            "https://good@evil.example/x",
            "https://good\\@evil.example/x",
            "https:\\\\evil.example/x",
            "https:/evil.example",
            "https://ev\til.example/",
            "https://exämple.com/",
            "ftp://example.com/",
            "https:///x",
            "",
        ] {
            assert_eq!(super::host(url), Host::Decided(url.to_owned()), "{url}");
        }
    }
}
