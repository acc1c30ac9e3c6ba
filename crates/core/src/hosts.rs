//! Hosts that something is limited to: by their names, or by what they stand below.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// A host, or every host below one: `api.example.com`, `*.example.com`, `192.0.2.1`.
///
/// It is in the form in which hosts are compared: in lower case, without a dot at its end.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct HostPattern(String);

/// Why a text is not a [`HostPattern`].
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "`{0}` is not a host such as `api.example.com` or `*.example.com`, without scheme and port"
)]
pub struct InvalidHost(pub String);

impl HostPattern {
    /// The pattern as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether a host is meant. `*.example.com` means every host below `example.com`, and not
    /// that one.
    #[must_use]
    pub fn fits(&self, host: &str) -> bool {
        let host = normal(host);
        match self.0.strip_prefix("*.") {
            Some(above) => host.strip_suffix(above).is_some_and(|rest| rest.ends_with('.')),
            None => self.0 == host,
        }
    }
}

/// A name as names are compared.
#[must_use]
pub fn normal(name: &str) -> String {
    name.trim_end_matches('.').to_ascii_lowercase()
}

impl FromStr for HostPattern {
    type Err = InvalidHost;

    fn from_str(text: &str) -> Result<Self, InvalidHost> {
        let wrong = || InvalidHost(text.chars().take(100).collect());
        let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        if let Ok(address) = bare.unwrap_or(text).parse::<IpAddr>() {
            return Ok(Self(address.to_string()));
        }
        let host = normal(text);
        let name = host.strip_prefix("*.").unwrap_or(&host);
        let part = |part: &str| {
            let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
            !part.is_empty() && part.len() <= 63 && part.bytes().all(plain)
        };
        // What ends in a number is an address to those who read addresses, and was none above.
        let number = name
            .rsplit('.')
            .next()
            .is_none_or(|last| last.starts_with("0x") || last.bytes().all(|b| b.is_ascii_digit()));
        // A whole domain such as `*.com` is nobody's in particular.
        let whole = host.starts_with("*.") && !name.contains('.');
        if name.len() > 253 || !name.split('.').all(part) || number || whole {
            return Err(wrong());
        }
        Ok(Self(host))
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether a host is one of these. A text that is no pattern means no host.
#[must_use]
pub fn any_fits<'p>(patterns: impl IntoIterator<Item = &'p String>, host: &str) -> bool {
    let mut patterns = patterns.into_iter().filter_map(|text| text.parse::<HostPattern>().ok());
    patterns.any(|pattern| pattern.fits(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_fits_its_hosts_and_no_others() {
        for (pattern, fits, others) in [
            (
                "api.example.com",
                &["api.example.com", "API.Example.com."][..],
                &["example.com", "x.api.example.com", "api.example.com.evil.example", ""][..],
            ),
            (
                "*.Example.com.",
                &["a.example.com", "a.b.example.com"],
                &["example.com", "evilexample.com", "example.com.evil.example", ".com"],
            ),
            ("192.0.2.1", &["192.0.2.1"], &["192.0.2.10", "1.192.0.2.1"]),
            ("[2001:DB8::1]", &["2001:db8::1"], &["2001:db8::2"]),
        ] {
            let pattern: HostPattern = pattern.parse().unwrap();
            fits.iter().for_each(|host| assert!(pattern.fits(host), "{pattern} {host}"));
            others.iter().for_each(|host| assert!(!pattern.fits(host), "{pattern} {host}"));
        }
    }

    #[test]
    fn only_hosts_are_patterns() {
        for text in [
            "",
            ".",
            "*",
            "*.",
            "*.com",
            "a.*.com",
            "**.example.com",
            "https://example.com",
            "example.com/x",
            "example.com:443",
            "user@example.com",
            "exämple.com",
            "a..b",
            "2130706433",
            "0x7f.0x1",
            "127.1",
            "{{ env.HOST }}",
        ] {
            assert_eq!(text.parse::<HostPattern>(), Err(InvalidHost(text.to_owned())), "{text}");
        }
    }
}
