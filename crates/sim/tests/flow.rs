//! Random automations in random worlds, one for each seed, held against a reference.
//!
//! `CAIRN_SEEDS=100000` looks at more of them; `make sim SEED=…` tells the story of one.

#![expect(clippy::print_stdout, reason = "how much was looked at is part of the result")]

use cairn_core::event::engine::EndStatus;
use cairn_sim::flow;

/// In how many parts the seeds are looked at, so that they can be at the same time.
const PARTS: usize = 8;

/// How many seeds there are.
fn seeds() -> u64 {
    std::env::var("CAIRN_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(10_000)
}

/// Plays every `PARTS`th world.
fn part(first: u64) {
    let (mut ended, mut events) = (Vec::new(), 0);
    for seed in (first..seeds()).step_by(PARTS) {
        let played = flow::play(seed).unwrap_or_else(|failure| panic!("{failure}"));
        events += played.events;
        ended.push(played.status);
    }
    let count = |wanted| ended.iter().filter(|status| **status == wanted).count();
    let counts = [EndStatus::Succeeded, EndStatus::Failed, EndStatus::Cancelled].map(count);
    println!("{} worlds, {events} events; ended well, badly, by request: {counts:?}", ended.len());
    assert!(ended.len() < 1_000 || counts.iter().all(|runs| *runs > 5), "{counts:?}");
}

macro_rules! parts {
    ($($name:ident $first:literal)*) => {$(
        #[test]
        fn $name() {
            part($first);
        }
    )*};
}

parts! {
    runs_come_to_what_the_reference_says_0 0
    runs_come_to_what_the_reference_says_1 1
    runs_come_to_what_the_reference_says_2 2
    runs_come_to_what_the_reference_says_3 3
    runs_come_to_what_the_reference_says_4 4
    runs_come_to_what_the_reference_says_5 5
    runs_come_to_what_the_reference_says_6 6
    runs_come_to_what_the_reference_says_7 7
}
