//! Every command there is.

use std::ffi::OsString;

use cairn_api::Exit;
use cairn_api::error::{Error, Result};
use cairn_lang::diagnostic::nearest;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, Parser, Subcommand};

use crate::config::{Config, Globals};

mod audit;
mod completions;
mod config;
mod dev;
mod doctor;
mod env;
mod guide;
mod help;
mod key;
mod mcp;
mod named;
mod provider;
mod reference;
mod run;
mod runs;
mod secret;
mod serve;
mod session;
mod token;
mod trigger;
mod usage;
mod workflow;

/// Durable workflows for AI agents: every step is recorded, and nothing is lost.
#[derive(Parser)]
#[command(
    name = "cairn",
    version,
    disable_help_subcommand = true,
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "Examples:\n  cairn mcp\n  cairn serve\n  cairn session list\n  cairn doctor\n  cairn help graph"
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) globals: Globals,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands, in alphabetical order.
#[derive(Subcommand)]
pub(crate) enum Command {
    Audit(audit::Args),
    Completions(completions::Args),
    Config(config::Args),
    #[command(hide = true)]
    Dev(dev::Args),
    Doctor(doctor::Args),
    Env(env::Args),
    Guide(guide::Args),
    Help(help::Args),
    Key(key::Args),
    Mcp(mcp::Args),
    Provider(provider::Args),
    #[command(hide = true)]
    Reference(reference::Args),
    Run(run::Args),
    Runs(runs::Args),
    Secret(secret::Args),
    Serve(serve::Args),
    Session(session::Args),
    Token(token::Args),
    Trigger(trigger::Args),
    Usage(usage::Args),
    Workflow(workflow::Args),
}

impl Command {
    pub(crate) fn run(self, config: &Config) -> Result<Exit> {
        match self {
            Self::Audit(args) => audit::run(args, config),
            Self::Completions(args) => completions::run(&args, config),
            Self::Config(args) => config::run(args, config),
            Self::Dev(args) => dev::run(args, config),
            Self::Doctor(args) => doctor::run(&args, config),
            Self::Env(args) => env::run(args, config),
            Self::Guide(args) => guide::run(&args, config),
            Self::Help(args) => help::run(&args, config),
            Self::Key(args) => key::run(args, config),
            Self::Mcp(args) => mcp::run(&args, config),
            Self::Provider(args) => provider::run(args, config),
            Self::Reference(args) => reference::run(&args, config),
            Self::Run(args) => run::run(&args, config),
            Self::Runs(args) => runs::run(args, config),
            Self::Secret(args) => secret::run(args, config),
            Self::Serve(args) => serve::run(&args, config),
            Self::Session(args) => session::run(args, config),
            Self::Token(args) => token::run(args, config),
            Self::Trigger(args) => trigger::run(args, config),
            Self::Usage(args) => usage::run(&args, config),
            Self::Workflow(args) => workflow::run(args, config),
        }
    }
}

/// What is wrong with a command line, in one line and with one thing to do about it.
pub(crate) fn usage_error(error: &clap::Error, args: &[OsString]) -> Error {
    let text = error.render().to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let mut parts = text.split("\n\n");
    let message = joined(parts.next().unwrap_or_default());
    let tip = parts.find_map(|part| part.trim().strip_prefix("tip: "));
    let suggestion = match (elsewhere(error, args), tip) {
        (Some(meant), _) => format!("did you mean `{meant}`?"),
        (None, Some(tip)) => joined(tip),
        (None, None) => format!("see `{} --help`", named(args).0),
    };
    Error::Usage { message, suggestion }
}

/// Words that people bring along from other programs, and what they are called here.
const OTHER_WORDS: &[(&str, &str)] = &[
    ("cairn log", "cairn runs events RUN"),
    ("cairn logs", "cairn runs events RUN"),
    ("cairn ps", "cairn runs list"),
    ("cairn runs kill", "cairn runs cancel RUN"),
    ("cairn runs logs", "cairn runs events RUN"),
    ("cairn runs retry", "cairn runs replay RUN"),
    ("cairn runs stop", "cairn runs cancel RUN"),
    ("cairn serve --host", "cairn serve --listen ADDRESS:PORT"),
    ("cairn serve --port", "cairn serve --listen 127.0.0.1:PORT"),
    ("cairn start", "cairn serve"),
    ("cairn stop", "cairn runs cancel RUN"),
];

/// The command that was meant by one that is not there: under another word, or below another.
fn elsewhere(error: &clap::Error, args: &[OsString]) -> Option<String> {
    let (path, command) = named(args);
    let kind = match error.kind() {
        ErrorKind::InvalidSubcommand => ContextKind::InvalidSubcommand,
        ErrorKind::UnknownArgument => ContextKind::InvalidArg,
        _ => return None,
    };
    let Some(ContextValue::String(given)) = error.get(kind) else { return None };
    let given = given.split(['=', ' ']).next().unwrap_or_default();
    let typed = format!("{path} {given}");
    if let Some((_, meant)) = OTHER_WORDS.iter().find(|(other, _)| *other == typed) {
        return Some((*meant).to_owned());
    }
    // One on this level is what the parser finds itself.
    let shown = |command: &&clap::Command| !command.is_hide_set();
    let here: Vec<&str> =
        command.get_subcommands().filter(shown).map(clap::Command::get_name).collect();
    if path != "cairn" || nearest(given, here).is_some() {
        return None;
    }
    let below = command.get_subcommands().filter(shown).flat_map(|group| {
        let name = group.get_name();
        group.get_subcommands().filter(shown).map(move |leaf| (name, leaf.get_name()))
    });
    let below: Vec<(&str, &str)> = below.collect();
    let near = nearest(given, below.iter().map(|(_, leaf)| *leaf))?;
    let mut groups = below.iter().filter(|(_, leaf)| *leaf == near);
    match (groups.next(), groups.next()) {
        (Some((group, leaf)), None) => Some(format!("cairn {group} {leaf}")),
        _ => None,
    }
}

/// Says which commands there are below one that does nothing by itself.
pub(crate) fn command_missing(path: &str, command: &clap::Command) -> Error {
    let below = command.get_subcommands().filter(|command| !command.is_hide_set());
    let below: Vec<&str> = below.map(clap::Command::get_name).collect();
    Error::Usage {
        message: format!("`{path}` needs a command: {}", below.join(", ")),
        suggestion: format!("see `{path} --help`"),
    }
}

/// The command that a command line names, as far as it does, and how to type it.
pub(crate) fn named(args: &[OsString]) -> (String, clap::Command) {
    let mut command = Cli::command();
    command.build();
    let mut path = vec!["cairn".to_owned()];
    for arg in args.iter().skip(1).filter_map(|arg| arg.to_str()) {
        if let Some(found) = command.find_subcommand(arg).cloned() {
            path.push(arg.to_owned());
            command = found;
        }
    }
    (path.join(" "), command)
}

fn joined(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_has_a_help_text_with_an_example() {
        fn check(command: &clap::Command) {
            let name = command.get_name();
            assert!(command.get_about().is_some(), "{name} does not say what it does");
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.starts_with("Example"), "{name} has no example");
            assert!(help.contains("\n  cairn "), "{name} has no example");
            command.get_subcommands().for_each(check);
        }
        check(&Cli::command());
    }

    #[test]
    fn every_command_is_known_to_read_or_to_change() {
        use cairn_api::audit::{CLI, Call};
        fn leaves(path: &str, command: &clap::Command, all: &mut Vec<String>) {
            if command.get_subcommands().next().is_none() {
                all.push(path.trim_start().to_owned());
            }
            for below in command.get_subcommands() {
                leaves(&format!("{path} {}", below.get_name()), below, all);
            }
        }
        let mut all = Vec::new();
        leaves("", &Cli::command(), &mut all);
        for command in &all {
            assert!(Call::of(CLI, command).is_some(), "`cairn {command}` is in no table");
        }
        for (known, _) in CLI {
            assert!(all.iter().any(|command| command == known), "there is no `cairn {known}`");
        }
    }

    #[test]
    fn a_wrong_command_line_is_told_in_one_line() {
        let told = |args: &[&str]| {
            let error = Cli::try_parse_from(args).err().unwrap();
            let args: Vec<OsString> = args.iter().map(OsString::from).collect();
            let error = usage_error(&error, &args);
            format!("{error} → {}", error.envelope().suggestion)
        };
        insta::assert_snapshot!(told(&["cairn", "sesion"]), @"unrecognized subcommand 'sesion' → a similar subcommand exists: 'session'");
        insta::assert_snapshot!(told(&["cairn", "valdate"]), @"unrecognized subcommand 'valdate' → did you mean `cairn workflow validate`?");
        insta::assert_snapshot!(told(&["cairn", "runs", "stop"]), @"unrecognized subcommand 'stop' → did you mean `cairn runs cancel RUN`?");
        insta::assert_snapshot!(told(&["cairn", "logs"]), @"unrecognized subcommand 'logs' → did you mean `cairn runs events RUN`?");
        insta::assert_snapshot!(told(&["cairn", "serve", "--port", "80"]), @"unexpected argument '--port' found → did you mean `cairn serve --listen 127.0.0.1:PORT`?");
        insta::assert_snapshot!(told(&["cairn", "session", "show"]), @"the following required arguments were not provided: <ID> → see `cairn session show --help`");
        insta::assert_snapshot!(told(&["cairn", "session", "list", "--limit", "x"]), @"invalid value 'x' for '--limit <N>': a whole number from 1 to 200 → see `cairn session list --help`");
        insta::assert_snapshot!(told(&["cairn", "session", "list", "--helth", "x"]), @"unexpected argument '--helth' found → a similar argument exists: '--health'");
    }
}
