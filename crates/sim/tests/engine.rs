//! The whole engine in simulated worlds, one for each seed.
//!
//! `CAIRN_SEEDS=100000` looks at more of them; `make sim SEED=…` tells the story of one.

#![expect(clippy::print_stdout, reason = "how much was looked at is part of the result")]

use cairn_sim::engine;

fn seeds() -> u64 {
    std::env::var("CAIRN_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(10_000)
}

#[test]
fn every_workflow_of_the_world_compiles() {
    engine::compiles().unwrap();
}

#[test]
fn explore() {
    let mut found = 0;
    for seed in 0..seeds() {
        let played = engine::play(seed);
        if let Some(violation) = played.violations.first() {
            println!("seed {seed}: {violation} ({} events)", played.events);
            found += 1;
        }
    }
    assert_eq!(found, 0);
}

#[test]
fn the_same_seed_gives_the_same_log() {
    for seed in 0..100 {
        assert_eq!(engine::play(seed).log, engine::play(seed).log, "seed {seed}");
    }
}

#[test]
fn one() {
    let seed: u64 = std::env::var("CAIRN_SEED").unwrap_or_default().parse().unwrap_or_default();
    let played = engine::play(seed);
    println!("{}", played.log);
    println!("{:?}\n{:#?}\n{:#?}", played.counts, played.trouble, played.violations);
}
