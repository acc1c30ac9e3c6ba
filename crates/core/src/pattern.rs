//! How large a pattern is, as far as its text says: building one can take long, so a pattern is
//! weighed before it is built.
//!
//! `\w{250}` is short, and becomes 250 copies of a class with hundreds of ranges. The size counts
//! what is built: letters, the ranges of classes, and each as often as it is repeated.

use regex_syntax::hir::{Class, Hir, HirKind};

/// How large one pattern may be.
pub const SIZE_MAX: u64 = 1_000_000;

/// How large the patterns of a workflow may be together.
pub const SIZES_MAX: u64 = 4_000_000;

/// What a range beyond ASCII counts for: it is built from several ranges of bytes.
const WIDE: u64 = 4;

/// How large a pattern is; nothing if it cannot be read.
#[must_use]
pub fn size(text: &str) -> Option<u64> {
    regex_syntax::parse(text).ok().map(|read| weight(&read))
}

/// Whether a pattern is no larger than may be, or cannot be read, which whoever builds it tells.
#[must_use]
pub fn is_small(text: &str) -> bool {
    size(text).is_none_or(|size| size <= SIZE_MAX)
}

fn weight(read: &Hir) -> u64 {
    let sum = |parts: &[Hir]| parts.iter().map(weight).fold(1, u64::saturating_add);
    match read.kind() {
        HirKind::Empty | HirKind::Look(_) => 1,
        HirKind::Literal(literal) => u64::try_from(literal.0.len()).unwrap_or(u64::MAX),
        HirKind::Class(Class::Bytes(class)) => count(class.ranges().len()),
        HirKind::Class(Class::Unicode(class)) => {
            let wide = class.iter().filter(|range| !range.end().is_ascii()).count();
            count(class.ranges().len() - wide).saturating_add(count(wide).saturating_mul(WIDE))
        }
        HirKind::Repetition(repeated) => {
            let times = repeated.max.unwrap_or(repeated.min.saturating_add(1)).max(1);
            weight(&repeated.sub).saturating_mul(u64::from(times))
        }
        HirKind::Capture(group) => weight(&group.sub).saturating_add(1),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => sum(parts),
    }
}

fn count(ranges: usize) -> u64 {
    u64::try_from(ranges).unwrap_or(u64::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_built_is_counted() {
        for (text, least, most) in [
            ("", 1, 1),
            ("^[a-z]+$", 3, 20),
            ("a{1,99}", 99, 99),
            (r"^\w{250}1$", 250_000, SIZE_MAX),
            (r"^[0-9A-Za-z_]{250}$", 1_000, 3_000),
            (r"(\w{50}){50}", SIZE_MAX + 1, u64::MAX),
            (r"((((a{999}){999}){999}){999}){999}", SIZE_MAX + 1, u64::MAX),
            (r"(?i)\pL{900}", SIZE_MAX + 1, u64::MAX),
        ] {
            let size = size(text).unwrap();
            assert!((least..=most).contains(&size), "{text}: {size}");
            assert_eq!(is_small(text), size <= SIZE_MAX, "{text}");
        }
        assert_eq!(size("("), None);
        assert!(is_small("("));
    }
}
