//! Hosts that something is limited to: by their names, or by what they stand below.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use regex_syntax::hir::literal::{ExtractKind, Extractor, Literal};
use regex_syntax::hir::{Class, Hir, HirKind};

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

/// Whether a regular expression of whole texts lets through hosts of some domains only: each text
/// ends with a domain that the expression writes out, such as `.example.com`, or is written out
/// itself. When a domain follows in the address anyway, the text has only to stay in front of it.
#[must_use]
pub fn keeps_to_domains(pattern: &str, domain_follows: bool) -> bool {
    let Ok(read) = regex_syntax::parse(pattern) else { return false };
    if ends_host(&read) {
        return false;
    }
    if domain_follows {
        return true;
    }
    let mut extractor = Extractor::new();
    let suffixes = extractor.kind(ExtractKind::Suffix).extract(&read);
    let fixes = |literal: &Literal| {
        let text = String::from_utf8_lossy(literal.as_bytes());
        let domain = text.find('.').and_then(|dot| text.get(dot..)).unwrap_or_default();
        // A domain that stands below another one belongs to somebody.
        literal.is_exact() || domain.matches('.').count() >= 2
    };
    suffixes.literals().is_some_and(|all| !all.is_empty() && all.iter().all(fixes))
}

/// Whether a text of an expression can have a sign that ends the host of an address, or says that
/// the host comes later.
fn ends_host(read: &Hir) -> bool {
    const SIGNS: [char; 6] = ['/', '?', '#', '@', '\\', '%'];
    match read.kind() {
        HirKind::Empty | HirKind::Look(_) => false,
        HirKind::Literal(literal) => {
            let text = String::from_utf8_lossy(&literal.0);
            text.contains(SIGNS) || text.contains(|c: char| c.is_ascii_control() || c == ' ')
        }
        HirKind::Class(Class::Unicode(class)) => {
            let has = |sign: char| class.iter().any(|r| (r.start()..=r.end()).contains(&sign));
            SIGNS.into_iter().any(has) || has('\t') || has(' ')
        }
        HirKind::Class(Class::Bytes(_)) => true,
        HirKind::Repetition(repetition) => ends_host(&repetition.sub),
        HirKind::Capture(capture) => ends_host(&capture.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => parts.iter().any(ends_host),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_that_any_host_fits_keeps_to_no_domain() {
        for (pattern, alone, before_domain) in [
            (r"^[a-z]+\.example\.com$", true, true),
            (r"(eu|us)\.api\.example\.com", true, true),
            (r"(?:a|b)\.example\.(?:com|org)", true, true),
            (r"^[a-z-]+\.example\.com:8443$", true, true),
            ("^api$", true, true),
            ("^(api|web)$", true, true),
            (r"^[a-z0-9.-]+$", false, true),
            (r"[a-z]+\.com", false, true),
            (r"[a-z.]*example\.com", false, true),
            (r"[\w.-]+", false, true),
            (r"[a-z]+", false, true),
            (r"(a\.example\.com|[a-z.]+)", false, true),
            (r"[a-z./]+\.example\.com", false, false),
            (r"[^x]+\.example\.com", false, false),
            (r".*\.example\.com", false, false),
            (r"\S+\.example\.com", false, false),
            ("a@b", false, false),
            ("(", false, false),
        ] {
            assert_eq!(keeps_to_domains(pattern, false), alone, "{pattern}");
            assert_eq!(keeps_to_domains(pattern, true), before_domain, "{pattern}");
        }
    }

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
