//! Chains of runs, each of which starts the next one from outside: by a request to a webhook,
//! by a command. What a step sends or starts is told where its run stands in its chain, and
//! whoever comes in with that is one further. So a loop is noticed that no workflow shows.

use crate::error::{Error, Result};

/// The header of a request in which a step says where its run stands.
pub const HEADER: &str = "cairn-chain";
/// The variable in which a command is told.
pub const VARIABLE: &str = "CAIRN_CHAIN";
/// How many runs may have led to one.
const LINKS_MAX: u32 = 8;

/// Where a run stands that is started by one that said this. Who says nothing begins a chain; who
/// says something that cannot be read is at its end, since whoever breaks the count may be in a
/// loop.
#[must_use]
pub fn after(said: Option<&str>) -> u32 {
    let Some(said) = said else { return 0 };
    said.trim().parse::<u32>().map_or(u32::MAX, |place| place.saturating_add(1))
}

/// Refuses a chain that is too long to be meant.
pub(super) fn require_short(workflow: &str, place: u32) -> Result<()> {
    if place <= LINKS_MAX {
        return Ok(());
    }
    Err(Error::TriggerLoop { workflow: workflow.to_owned(), links: place })
}

#[cfg(test)]
mod tests {
    use super::*;

    // case: limit.loop
    #[test]
    fn a_chain_grows_by_one_with_every_run() {
        assert_eq!(after(None), 0);
        assert_eq!(after(Some("0")), 1);
        assert_eq!(after(Some(" 7 ")), 8);
        for said in ["-1", "many", "", " ", "1.5", "0x1", "4294967295", "99999999999", "\u{fffd}"] {
            assert_eq!(after(Some(said)), u32::MAX, "{said:?}");
            assert!(require_short("w", after(Some(said))).is_err(), "{said:?}");
        }
        assert!(require_short("w", 8).is_ok());
        assert_eq!(require_short("w", 9).unwrap_err().code(), "TRIGGER_LOOP");
    }
}
