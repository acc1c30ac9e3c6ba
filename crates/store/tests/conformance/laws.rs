//! Laws of appending, for any order of any plans.

use cairn_core::event::Event;
use cairn_core::id::EventIndex;
use cairn_store::{Config, Store, open};
use proptest::prelude::*;

use crate::given::{SESSION, notes, start};

/// What somebody does with a store.
#[derive(Clone, Debug)]
enum Deed {
    /// Appends these notes, perhaps not for the first time.
    Append(u64),
    Seal,
    Reopen,
}

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let deed = prop_oneof![
        6 => (0u64..12).prop_map(Deed::Append),
        1 => Just(Deed::Seal),
        1 => Just(Deed::Reopen),
    ];
    prop::collection::vec(deed, 1..30)
}

/// Does it all; gives the log as it is in the end, and as a reader followed it.
async fn live(reopen: impl Fn() -> Store, deeds: &[Deed]) -> (Vec<Event>, Vec<Event>) {
    let mut store = reopen();
    let follower = reopen();
    let mut followed: Vec<Event> = Vec::new();
    store.log.append(SESSION, start()).await.unwrap();
    for deed in deeds {
        match deed {
            Deed::Append(number) => drop(store.log.append(SESSION, notes(*number)).await.unwrap()),
            Deed::Seal => store.log.seal(SESSION).await.unwrap(),
            Deed::Reopen => store = reopen(),
        }
        let next = EventIndex(followed.len() as u64);
        followed.extend(follower.log.read(SESSION, next).await.unwrap());
    }
    (store.log.read(SESSION, EventIndex(0)).await.unwrap(), followed)
}

/// What the log must hold: each fact once, in the order in which it was first told.
fn expected(deeds: &[Deed]) -> Vec<u64> {
    let mut told = Vec::new();
    for deed in deeds {
        if let Deed::Append(number) = deed
            && !told.contains(number)
        {
            told.push(*number);
        }
    }
    told
}

proptest! {
    #[test]
    fn a_fact_is_recorded_once_and_replay_equals_live(deeds in deeds()) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let memory = open(&Config::Memory).unwrap();
        let home = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let files = || open(&Config::files(home.path())).unwrap();
        let (in_memory, _) = runtime.block_on(live(|| memory.clone(), &deeds));
        let (on_disk, followed) = runtime.block_on(live(files, &deeds));
        prop_assert_eq!(&on_disk, &in_memory, "both stores say the same");
        prop_assert_eq!(&followed, &on_disk, "who follows sees what is there");
        let mut wanted = start().events;
        wanted.extend(expected(&deeds).into_iter().flat_map(|number| notes(number).events));
        let wanted: Vec<Event> =
            wanted.into_iter().zip(0..).map(|(event, at)| event.at(SESSION, EventIndex(at))).collect();
        prop_assert_eq!(on_disk, wanted);
    }
}
