//! Chores of the repository, run as `cargo xtask <command>`.
//!
//! `tidy` checks what the compiler cannot; `generate` writes the files that are
//! derived from the code. Neither changes a file that a person wrote.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool answers by printing"
)]

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};

mod advisories;
mod generate;
mod tidy;

const USAGE: &str = "\
usage: cargo xtask <command>

  tidy                check layering, error pages, links and source files
  generate [--check]  write the generated files, or fail when they are out of date
  advisories DIR      pin the advisories of a checkout of RustSec's database";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match run(&args) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &[&str]) -> Result<ExitCode> {
    let root =
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask has no parent directory")?;
    match args {
        ["tidy"] => tidy::run(root),
        ["advisories", checkout] => advisories::write(root, Path::new(checkout)),
        ["generate"] => generate::write(root),
        ["generate", "--check"] => generate::check(root),
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            Ok(ExitCode::SUCCESS)
        }
        _ => {
            eprintln!("{USAGE}");
            Ok(ExitCode::from(2))
        }
    }
}
