//! Whole histories, one for each seed.

use cairn_sim::life;

#[test]
fn three_hundred_worlds_lose_nothing() {
    let mut plans = 0;
    for seed in 0..300 {
        let mut story = Vec::new();
        plans += life::play(seed, 60, &mut |line| story.push(line)).unwrap_or_else(|violation| {
            panic!("seed {seed}: {violation}\n{}", story.join("\n"));
        });
    }
    println!("300 worlds, {plans} plans");
    assert!(plans > 5000, "{plans} plans");
}
