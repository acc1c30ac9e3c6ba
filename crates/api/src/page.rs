//! Lists that are read page by page.

use cairn_core::id::{InvalidId, SessionId};
use serde::{Deserialize, Serialize};

/// How many items a page has when nobody says.
pub const LIMIT_DEFAULT: usize = 50;
/// How many items a page has at most.
pub const LIMIT_MAX: usize = 200;

/// One page of a list.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Page<T> {
    /// The items.
    pub items: Vec<T>,
    /// Where the next page starts; none when this is the last one. A page may be short and
    /// still not be the last.
    pub next_cursor: Option<Cursor>,
}

/// Where a page starts. Clients hand it back as they got it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Cursor(pub(crate) SessionId);

impl std::str::FromStr for Cursor {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        text.parse().map(Self)
    }
}

impl std::fmt::Display for Cursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(&self.0, f)
    }
}
