//! The format that this program writes, and reading what a later one wrote.
//!
//! Optional members and new kinds of things are added to what is stored without a new version.
//! Whatever uses one of them says so in its own line, as `needs`: the first format that has it.
//! An older program reads such a line as far as it knows it, carries the rest as it is, and
//! writes nothing to the session. `decision 0009` says why.

mod known;

pub(crate) use known::known;

use serde_json::Value;

/// The latest format that this program knows. The first is 1 and is never written down.
pub const FORMAT: u32 = 1;

/// The member that says which format a line needs.
pub(crate) const NEEDS: &str = "needs";

/// The format that a stored object says it needs; none when it says nothing, or nothing sound.
pub(crate) fn needs(object: &Value) -> Option<u32> {
    object.get(NEEDS)?.as_u64().and_then(|needs| u32::try_from(needs).ok())
}

/// Whether this program knows only a part of what is in that format.
#[must_use]
pub const fn is_newer(needs: u32) -> bool {
    needs > FORMAT
}
