//! Who gives a command, and the changes that they ask for.

use cairn_core::event::{ActorKind, By, Door, Via};
use cairn_engine::host::SystemHost;
use cairn_engine::record::Record;
use cairn_engine::record::changes::Changes;
use cairn_store::Store;

/// Who gives a command, as far as the system says.
pub(crate) fn by() -> By {
    let name = std::env::var("USER").ok().filter(|name| !name.is_empty());
    let name = name.unwrap_or_else(of_process);
    let via = Via { actor: ActorKind::Person, door: Door::Cli, line: None, token_id: None };
    By { name, via: Some(via) }
}

/// The user that this process belongs to, where the environment does not say: as the system's own
/// list calls them, or by number.
fn of_process() -> String {
    let uid = rustix::process::getuid().as_raw();
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    named(&users, uid).map_or_else(|| format!("uid {uid}"), str::to_owned)
}

/// The name of a user in the system's list.
fn named(users: &str, uid: u32) -> Option<&str> {
    users.lines().find_map(|line| {
        let mut parts = line.split(':');
        let name = parts.next().filter(|name| !name.is_empty())?;
        let number = parts.nth(1)?.parse::<u32>().ok()?;
        (number == uid).then_some(name)
    })
}

/// The record of who changed what.
pub(crate) fn record(store: &Store) -> Record {
    Record::new(store, SystemHost::shared())
}

/// The changes to a store that whoever gives a command asks for.
pub(crate) fn changes(store: &Store) -> Changes {
    Changes::new(&record(store), store, by())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_called_as_the_system_does() {
        let users = "root:x:0:0:root:/root:/bin/bash\n+::::\nada:x:1000:1000::/home/ada:/bin/sh\n";
        assert_eq!(named(users, 0), Some("root"));
        assert_eq!(named(users, 1000), Some("ada"));
        assert_eq!(named(users, 1001), None);
        assert_eq!(named("", 0), None);
    }
}
