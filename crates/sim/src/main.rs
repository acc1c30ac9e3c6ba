//! `cairn-sim`: plays the worlds of one seed and says what happens in them: the store's, then
//! that of a random automation.
//!
//! `cairn-sim --seed 42 --steps 200`

use std::io::{self, Write as _};
use std::process::ExitCode;

use cairn_sim::{flow, life};

const USAGE: &str = "usage: cairn-sim [--seed N] [--steps N]";

struct Options {
    seed: u64,
    steps: usize,
}

fn main() -> io::Result<ExitCode> {
    let Some(options) = options(std::env::args().skip(1)) else {
        writeln!(io::stderr(), "{USAGE}")?;
        return Ok(ExitCode::from(2));
    };
    let Options { seed, steps } = options;
    let mut out = io::stdout().lock();
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
            writeln!(out, "{} events, as the reference says", played.events)?;
            Ok(ExitCode::SUCCESS)
        }
        Err(failure) => {
            writeln!(out, "violation: {failure}")?;
            Ok(ExitCode::FAILURE)
        }
    }
}

fn options(mut arguments: impl Iterator<Item = String>) -> Option<Options> {
    let mut options = Options { seed: 42, steps: 200 };
    while let Some(name) = arguments.next() {
        let value = arguments.next()?;
        match name.as_str() {
            "--seed" => options.seed = value.parse().ok()?,
            "--steps" => options.steps = value.parse().ok()?,
            _ => return None,
        }
    }
    Some(options)
}
