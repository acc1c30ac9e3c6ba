//! `cairn reference`: prints the pages of the reference, as Markdown or JSON.

use std::fmt::Write as _;

use cairn_api::Exit;
use cairn_api::error::Result;
use clap::{Arg, Command, CommandFactory as _};

use super::Cli;
use crate::config::Config;

/// Print a page of the reference
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  cairn reference > cli.md\n  cairn reference builtins")]
pub(crate) struct Args {
    /// Which page
    #[arg(value_enum, default_value = "cli", value_name = "PAGE")]
    page: Page,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Page {
    /// What every workflow may use
    Builtins,
    /// The command line
    Cli,
    /// The filters of templates
    Filters,
    /// The tools for agents
    Mcp,
    /// The HTTP API, as OpenAPI 3.1 in JSON
    Openapi,
    /// The step types of graphs
    Steps,
}

pub(crate) fn run(args: &Args, config: &Config) -> Result<Exit> {
    let page = match args.page {
        Page::Builtins => cairn_lang::builtins::page(),
        Page::Cli => page(),
        Page::Filters => cairn_core::expression::filters_page(),
        Page::Mcp => cairn_mcp::reference(),
        Page::Openapi => format!("{:#}\n", cairn_server::openapi()),
        Page::Steps => cairn_steps::page(&cairn_steps::catalog::types()),
    };
    config.output.bytes(page.as_bytes())?;
    Ok(Exit::Success)
}

/// The page of the command line. It depends on the commands alone.
fn page() -> String {
    let mut root = Cli::command();
    root.build();
    let mut page = String::from("# Command line\n\n");
    page.push_str("<!-- Written by `cargo xtask generate`; change the commands instead. -->\n\n");
    page.push_str(&text_of(&root));
    page.push_str("\n\n## Options of every command\n\n");
    let globals = || root.get_arguments().filter(|arg| arg.is_global_set() && !arg.is_hide_set());
    page.push_str(&table("Option", globals()));
    for command in root.get_subcommands().filter(|command| !command.is_hide_set()) {
        describe(&mut page, command, "cairn");
    }
    page.push_str("\n## Exit codes\n\n| Code | Meaning |\n| --- | --- |\n");
    for exit in Exit::ALL {
        // Writing to a String cannot fail.
        let _ = writeln!(page, "| {exit} | {} |", exit.meaning());
    }
    page.push_str(
        "\nAn error is told on standard error: its [code](../errors/README.md), what is wrong, \
         and what to do. With `--json` it is one JSON object.\n",
    );
    page
}

fn describe(page: &mut String, command: &Command, parent: &str) {
    let name = format!("{parent} {}", command.get_name());
    let children: Vec<_> = command.get_subcommands().filter(|c| !c.is_hide_set()).collect();
    let _ = write!(page, "\n## `{name}`\n\n{}\n", text_of(command));
    if !children.is_empty() {
        for child in children {
            describe(page, child, &name);
        }
        return;
    }
    let usage = command.clone().render_usage().to_string();
    let usage = usage.strip_prefix("Usage: ").unwrap_or(&usage);
    let _ = write!(page, "\n```text\n{usage}\n```\n");
    let own = || command.get_arguments().filter(|a| !a.is_global_set() && !a.is_hide_set());
    let named = |arg: &&Arg| !matches!(arg.get_id().as_str(), "help" | "version");
    for (title, positional) in [("Argument", true), ("Option", false)] {
        let shown = || own().filter(named).filter(|arg| arg.is_positional() == positional);
        if shown().next().is_some() {
            let _ = write!(page, "\n{}", table(title, shown()));
        }
    }
    if let Some(help) = command.get_after_help() {
        let help = help.to_string();
        let (title, lines) = help.split_once('\n').unwrap_or((&help, ""));
        let _ = write!(page, "\n{title}\n\n```sh\n");
        for line in lines.lines() {
            let _ = writeln!(page, "{}", line.trim_start());
        }
        page.push_str("```\n");
    }
}

fn text_of(command: &Command) -> String {
    let text = command.get_long_about().or_else(|| command.get_about());
    let text = text.map(ToString::to_string).unwrap_or_default();
    let (first, rest) = text.split_once("\n\n").unwrap_or((&text, ""));
    let first = format!("{}.", first.trim_end_matches('.'));
    if rest.is_empty() { first } else { format!("{first}\n\n{rest}") }
}

fn table<'a>(title: &str, args: impl Iterator<Item = &'a Arg>) -> String {
    let mut table = format!("| {title} | Meaning |\n| --- | --- |\n");
    for arg in args {
        let _ = writeln!(table, "| {} | {} |", spelled(arg), meaning(arg));
    }
    table
}

/// How an argument is typed.
fn spelled(arg: &Arg) -> String {
    let takes_value = arg.get_action().takes_values();
    let values = arg.get_value_names().unwrap_or_default();
    let value: String = values.iter().map(|name| format!("<{name}>")).collect();
    let long = arg.get_long().map(|long| match takes_value {
        true => format!("`--{long} {value}`"),
        false => format!("`--{long}`"),
    });
    let short = arg.get_short().map(|short| format!("`-{short}`"));
    match (short, long) {
        (Some(short), Some(long)) => format!("{short}, {long}"),
        (None, Some(one)) | (Some(one), None) => one,
        (None, None) => format!("`{value}`"),
    }
}

fn meaning(arg: &Arg) -> String {
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let mut text = help.replace('|', "\\|");
    let possible: Vec<_> =
        arg.get_possible_values().iter().map(|value| format!("`{}`", value.get_name())).collect();
    if arg.get_action().takes_values() && !possible.is_empty() {
        let _ = write!(text, "; one of {}", possible.join(", "));
    }
    if let [default] = arg.get_default_values()
        && arg.get_action().takes_values()
    {
        let _ = write!(text, "; default `{}`", default.to_string_lossy());
    }
    if let Some(name) = arg.get_env() {
        let _ = write!(text, "; variable `{}`", name.to_string_lossy());
    }
    text
}
