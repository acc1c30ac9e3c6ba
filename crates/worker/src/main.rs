//! A worker as a program of its own, for tests. `cairn` is the same under this name.

use std::process::ExitCode;

fn main() -> ExitCode {
    cairn_worker::child::main()
}
