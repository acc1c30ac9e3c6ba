//! The `cairn` command: the one place that wires the parts together.
//!
//! Only here are there a clock, chance, an environment and a terminal; everything below
//! gets them as values. In reading order: `commands` (every command, one file each),
//! `config` (what they work with), `output` (how they answer). Under another name this
//! program watches over the commands of steps.

mod automate;
mod commands;
mod config;
mod door;
mod fresh;
mod home;
mod output;
mod render;
mod somebody;
mod sources;
mod stop;
mod templates;

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

use cairn_api::{Error, Exit};
use cairn_steps::process;
use clap::error::ErrorKind;
use clap::{ColorChoice, CommandFactory as _, FromArgMatches as _};

use crate::commands::Cli;
use crate::config::Config;
use crate::output::Output;

fn main() -> ExitCode {
    if cairn_worker::child::is_asked_for() {
        return cairn_worker::child::main();
    }
    let args: Vec<OsString> = std::env::args_os().collect();
    if args.first().is_some_and(|name| Path::new(name).ends_with(process::NAME)) {
        return process::supervise(args.into_iter().skip(1));
    }
    keep_to_itself();
    let exit = match parse(&args) {
        Ok(cli) => run(cli),
        Err(error) => refuse(&error, &args),
    };
    ExitCode::from(exit.code())
}

/// Keeps what this process holds, such as the master key, out of core files and from other
/// programs of the same user.
fn keep_to_itself() {
    use rustix::process::{DumpableBehavior, Resource, Rlimit};
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    // A system that has neither still keeps processes of other users out.
    let _ = rustix::process::setrlimit(Resource::Core, none);
    let _ = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable);
}

fn run(cli: Cli) -> Exit {
    let output = cli.globals.output();
    match Config::load(cli.globals).and_then(|config| cli.command.run(&config)) {
        Ok(exit) => exit,
        Err(error) => output.fail(&error),
    }
}

fn parse(args: &[OsString]) -> Result<Cli, clap::Error> {
    let plain = args.iter().any(|arg| arg == "--no-color");
    let color = if plain { ColorChoice::Never } else { ColorChoice::Auto };
    let matches = Cli::command().color(color).try_get_matches_from(args)?;
    let mut cli = Cli::from_arg_matches(&matches)?;
    cli.globals.typed(&matches);
    Ok(cli)
}

/// Answers a command line that does not name a thing to do: with help, or with what is wrong.
fn refuse(error: &clap::Error, args: &[OsString]) -> Exit {
    let has = |flag: &str| args.iter().any(|arg| arg == flag);
    let output = Output::new(has("--json"), has("--quiet"), has("--no-color"));
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            match error.print().and_then(|()| io::stdout().flush()) {
                Ok(()) => Exit::Success,
                Err(error) => output.fail(&Error::Output(error)),
            }
        }
        // A variable of the environment counts as an argument, so it may be either of them.
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let (path, mut command) = commands::named(args);
            if !output.json {
                output.usage(&command.render_help());
                return Exit::Usage;
            }
            output.fail(&commands::command_missing(&path, &command))
        }
        _ => output.fail(&commands::usage_error(error, args)),
    }
}
