//! `cairn-sim`: plays the worlds of one seed and says what happens in them: the store's, then
//! that of a random automation, then that of several engines on one store.
//!
//! `cairn-sim --seed 42 --steps 200`, or `cairn-sim --digest 200` for the digest of what so many
//! worlds of engines record, or `cairn-sim --find 2000` for the first of so many in which
//! something is wrong, or `--scan 2000` for all of them; `--find 2000 --seed 10000` looks at those
//! from seed 10,000 on.

use std::io::{self, Write as _};
use std::process::ExitCode;

use cairn_core::digest::Digest;
use cairn_sim::{engine, flow, life};

const USAGE: &str = "usage: cairn-sim [--seed N] [--steps N] | --digest N | --find N [--seed N] | --scan N [--seed N]";

struct Options {
    /// The seed to play, or the first to look at; none when it was not given.
    seed: Option<u64>,
    steps: usize,
    /// Of how many worlds of engines to give the digest, and nothing else.
    digest: Option<u64>,
    /// In how many worlds of engines to look for one that breaks a law, and nothing else.
    find: Option<u64>,
    /// In how many to look for all of them.
    scan: Option<u64>,
}

fn main() -> io::Result<ExitCode> {
    let Some(options) = options(std::env::args().skip(1)) else {
        writeln!(io::stderr(), "{USAGE}")?;
        return Ok(ExitCode::from(2));
    };
    let Options { seed, steps, digest, find, scan } = options;
    let mut out = io::stdout().lock();
    if let Some(worlds) = find.or(scan) {
        let first = seed.unwrap_or_default();
        let seeds = first..first.saturating_add(worlds);
        let found = seeds.filter_map(|seed| Some((seed, engine::play(seed).violations.pop()?)));
        let mut is_clean = true;
        for (seed, violation) in found.take(if scan.is_some() { usize::MAX } else { 1 }) {
            is_clean = false;
            writeln!(out, "seed {seed}: {violation}")?;
        }
        if is_clean {
            writeln!(out, "nothing in {worlds} worlds")?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(worlds) = digest {
        for seed in 0..worlds {
            writeln!(out, "{seed} {}", Digest::of(engine::play(seed).log.as_bytes()))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let seed = seed.unwrap_or(42);
    writeln!(out, "seed {seed}, {steps} steps")?;
    // A closed pipe must not end the world early.
    let played = life::play(seed, steps, &mut |line| drop(writeln!(out, "{line}")));
    let mut out = io::stdout().lock();
    match played {
        Ok(plans) => writeln!(out, "{plans} plans, all that were acknowledged are there\n")?,
        Err(violation) => {
            writeln!(out, "violation: {violation}")?;
            return Ok(ExitCode::FAILURE);
        }
    }
    match flow::play(seed) {
        Ok(played) => {
            writeln!(out, "{}\n{}", played.text, played.log)?;
            writeln!(out, "{} events, as the reference says\n", played.events)?;
        }
        Err(failure) => {
            writeln!(out, "violation: {failure}")?;
            return Ok(ExitCode::FAILURE);
        }
    }
    let played = engine::play(seed);
    write!(out, "{}", played.log)?;
    played.trouble.iter().try_for_each(|trouble| writeln!(out, "trouble: {trouble}"))?;
    writeln!(out, "{} events of {} processes: {:?}", played.events, played.seats, played.counts)?;
    writeln!(out, "what went wrong for somebody: {:?}", played.hits)?;
    match played.violations.first() {
        None => Ok(ExitCode::SUCCESS),
        Some(violation) => {
            writeln!(out, "violation: {violation}")?;
            Ok(ExitCode::FAILURE)
        }
    }
}

fn options(mut arguments: impl Iterator<Item = String>) -> Option<Options> {
    let mut options = Options { seed: None, steps: 200, digest: None, find: None, scan: None };
    while let Some(name) = arguments.next() {
        let value = arguments.next()?;
        match name.as_str() {
            "--seed" => options.seed = Some(value.parse().ok()?),
            "--steps" => options.steps = value.parse().ok()?,
            "--digest" => options.digest = Some(value.parse().ok()?),
            "--find" => options.find = Some(value.parse().ok()?),
            "--scan" => options.scan = Some(value.parse().ok()?),
            _ => return None,
        }
    }
    Some(options)
}
