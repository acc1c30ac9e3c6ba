//! Limits on what takes long to look at, so that no file of the allowed size does.

use std::cell::Cell;

use cairn_core::pattern::{self, SIZE_MAX, SIZES_MAX};

use super::Build;
use crate::diagnostic::Code;
use crate::read::Spot;
use crate::source::{Node, Value};

/// How many triggers a workflow may have: to find out that one never fires, centuries are
/// searched.
pub(super) const TRIGGERS_MAX: usize = 100;

/// How many patterns may stand in a workflow and in the files that it reads.
const PATTERNS_MAX: usize = 200;

/// What makes a pattern smaller.
const SMALLER: &str = "repeat less, or say `[0-9A-Za-z_]` in place of `\\w`";

/// How many bytes of text steps may take from files, together.
const TEXT_MAX: usize = 4 << 20;

/// What was looked at so far.
#[derive(Default)]
pub(super) struct Spent {
    patterns: Cell<usize>,
    /// How large the patterns are together.
    sizes: Cell<u64>,
    text: Cell<usize>,
}

/// How many patterns a text may hold: each is behind this.
fn patterns_in(text: &str) -> usize {
    let behind = |at: usize| text.get(at + "matches".len()..).unwrap_or_default();
    let found = text.match_indices("matches");
    found.filter(|(at, _)| behind(*at).trim_start().starts_with('(')).count()
}

/// The patterns in a text that are written out.
fn patterns_of(text: &str) -> impl Iterator<Item = String> {
    text.match_indices("matches").filter_map(move |(at, name)| {
        let given = text.get(at + name.len()..)?.trim_start().strip_prefix('(')?.trim_start();
        let quote = given.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
        let (pattern, _) = given.get(1..)?.split_once(quote)?;
        Some(pattern.replace("\\\\", "\\"))
    })
}

/// How many patterns a document may hold.
fn patterns(node: &Node) -> usize {
    match &node.value {
        Value::Text(text) => patterns_in(text),
        Value::List(items) => items.iter().map(patterns).sum(),
        Value::Map(entries) => entries
            .iter()
            .map(|entry| usize::from(entry.key == "pattern") + patterns(&entry.node))
            .sum(),
        _ => 0,
    }
}

impl Build<'_> {
    /// Whether the document has no more patterns than may be; says so when it has.
    pub(super) fn has_few_patterns(&self, root: &Spot<'_>) -> bool {
        self.spent.patterns.set(patterns(root.node));
        let is_any = self.spent.patterns.get() > 0;
        self.are_few(root) && (!is_any || self.are_small(root))
    }

    /// Whether the patterns of a document are small enough to be built; says of the first that
    /// is not.
    fn are_small(&self, spot: &Spot<'_>) -> bool {
        match &spot.node.value {
            Value::Text(text) => patterns_of(text).all(|pattern| self.is_small(spot, &pattern)),
            Value::List(_) => spot.items().iter().all(|item| self.are_small(item)),
            Value::Map(_) => spot.members().iter().all(|(key, member)| {
                let pattern = member.node.as_text().filter(|_| *key == "pattern");
                pattern.is_none_or(|pattern| self.is_small(member, pattern))
                    && self.are_small(member)
            }),
            _ => true,
        }
    }

    fn is_small(&self, spot: &Spot<'_>, text: &str) -> bool {
        let size = pattern::size(text).unwrap_or_default();
        self.spent.sizes.set(self.spent.sizes.get().saturating_add(size));
        let message = if size > SIZE_MAX {
            format!("this pattern has the size {size}; at most {SIZE_MAX} may be")
        } else if self.spent.sizes.get() > SIZES_MAX {
            format!("with this pattern they are larger than {SIZES_MAX} together")
        } else {
            return true;
        };
        spot.error_hint(Code::TooLong, message, SMALLER);
        false
    }

    /// Whether a text from a file is still within the limits; says so when it is not.
    pub(super) fn is_within_limits(&self, spot: &Spot<'_>, text: &str) -> bool {
        let patterns = self.spent.patterns.get().saturating_add(patterns_in(text));
        self.spent.patterns.set(patterns);
        self.spent.text.set(self.spent.text.get().saturating_add(text.len()));
        if self.spent.text.get() > TEXT_MAX {
            let message = format!("steps take more than {} MiB of text from files", TEXT_MAX >> 20);
            spot.error_hint(Code::TooLong, message, "move a part into a workflow of its own");
            return false;
        }
        self.are_few(spot) && patterns_of(text).all(|pattern| self.is_small(spot, &pattern))
    }

    fn are_few(&self, spot: &Spot<'_>) -> bool {
        let count = self.spent.patterns.get();
        if count > PATTERNS_MAX {
            let message = format!("there are {count} patterns; at most {PATTERNS_MAX} may be");
            spot.error_hint(Code::TooLong, message, "move a part into a workflow of its own");
        }
        count <= PATTERNS_MAX
    }
}
