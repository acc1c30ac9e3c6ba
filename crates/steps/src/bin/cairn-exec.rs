//! The supervisor of commands as a program of its own, for tests. `cairn` is the same when it
//! is started under this name.

use std::process::ExitCode;

fn main() -> ExitCode {
    cairn_steps::process::supervise(std::env::args_os().skip(1))
}
