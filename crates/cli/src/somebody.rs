//! Who gives a command, and the changes that they ask for.

use cairn_core::event::{ActorKind, By, Door, Via};
use cairn_engine::host::SystemHost;
use cairn_engine::record::Record;
use cairn_engine::record::changes::Changes;
use cairn_store::Store;

/// Who gives a command, as far as the system says.
pub(crate) fn by() -> By {
    let name = std::env::var("USER").unwrap_or_else(|_| "somebody".to_owned());
    let via = Via { actor: ActorKind::Person, door: Door::Cli, line: None, token_id: None };
    By { name, via: Some(via) }
}

/// The record of who changed what.
pub(crate) fn record(store: &Store) -> Record {
    Record::new(store, SystemHost::shared())
}

/// The changes to a store that whoever gives a command asks for.
pub(crate) fn changes(store: &Store) -> Changes {
    Changes::new(&record(store), store, by())
}
