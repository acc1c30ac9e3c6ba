//! The whole engine in simulated worlds, one for each seed.

use cairn_sim::engine;

#[test]
fn every_workflow_of_the_world_compiles() {
    engine::compiles().unwrap();
}

#[test]
fn the_same_seed_gives_the_same_log() {
    for seed in 0..100 {
        assert_eq!(engine::play(seed).log, engine::play(seed).log, "seed {seed}");
    }
}
