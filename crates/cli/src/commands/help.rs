//! `cairn help`: the guide, the reference and the errors, without a network.

use cairn_api::Exit;
use cairn_api::error::{Error, Result};
use cairn_lang::diagnostic::nearest;
use clap::CommandFactory as _;
use serde_json::json;

use super::Cli;
use crate::config::Config;
use crate::output::Style;
use crate::render::{self, Cell};

/// Every page: those of the guide, then the reference, then the errors.
const PAGES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/pages.rs"));

/// Read the guide, the reference, or what an error means
///
/// Without a topic it lists the topics. A topic is a page of the guide (`graph`), of the reference (`reference/steps`), the code of an error (`RUN_BUSY`), or a command (`runs fork`). Pages are Markdown. Examples of workflows are listed by `cairn workflow new --list`.
#[derive(clap::Args)]
#[command(
    visible_alias = "docs",
    after_help = "Examples:\n  cairn help\n  cairn help graph\n  cairn help RUN_BUSY\n  cairn help runs fork"
)]
pub(crate) struct Args {
    /// The topic
    #[arg(value_name = "TOPIC")]
    topic: Vec<String>,
}

pub(crate) fn run(args: &Args, config: &Config) -> Result<Exit> {
    let output = &config.output;
    if args.topic.is_empty() {
        return list(config);
    }
    if let Some(text) = command(&args.topic) {
        output.bytes(text.as_bytes())?;
        return Ok(Exit::Success);
    }
    let topic = args.topic.join(" ");
    let is_meant = |name: &str| {
        let last = name.rsplit('/').next().unwrap_or_default();
        name == topic || name.eq_ignore_ascii_case(&topic) || last == topic
    };
    let Some((name, text)) = PAGES.iter().find(|(name, _)| is_meant(name)) else {
        return Err(unknown(&topic));
    };
    if output.json {
        output.object(&json!({"topic": name, "markdown": text}))?;
    } else {
        output.bytes(text.as_bytes())?;
    }
    Ok(Exit::Success)
}

/// How many pages are named that have a word.
const NAMED_MAX: usize = 5;

/// There is no such topic: a page whose name is near, or those that speak of it.
fn unknown(topic: &str) -> Error {
    let near = nearest(topic, PAGES.iter().map(|(name, _)| *name));
    let word = topic.to_lowercase();
    let count = |text: &str| text.to_lowercase().matches(&word).count();
    let mut having: Vec<(usize, &str)> =
        PAGES.iter().map(|(name, text)| (count(text), *name)).filter(|(n, _)| *n > 0).collect();
    having.sort_by_key(|(count, name)| (std::cmp::Reverse(*count), *name));
    let pages = having.iter().take(NAMED_MAX).map(|(_, name)| format!("`cairn help {name}`"));
    let pages: Vec<String> = pages.collect();
    Error::Usage {
        message: format!("there is no topic `{topic}`"),
        suggestion: match (near, pages.is_empty()) {
            (Some(near), _) => format!("did you mean `cairn help {near}`?"),
            (None, false) => format!("these have the word: {}", pages.join(", ")),
            (None, true) => "list the topics with `cairn help`".to_owned(),
        },
    }
}

/// The help of the command that some words name, if all of them do.
fn command(words: &[String]) -> Option<String> {
    let mut command = Cli::command();
    command.build();
    for word in words {
        command = command.find_subcommand(word)?.clone();
    }
    Some(command.render_long_help().to_string())
}

fn list(config: &Config) -> Result<Exit> {
    let output = &config.output;
    let is_code = |name: &str| name.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    let pages = PAGES.iter().filter(|(name, _)| !is_code(name));
    if output.json {
        let items: Vec<_> =
            pages.map(|(name, text)| json!({"topic": name, "title": title(text)})).collect();
        output.object(&json!({"items": items}))?;
        return Ok(Exit::Success);
    }
    let rows: Vec<Vec<Cell>> = pages
        .map(|(name, text)| vec![Cell::styled(Style::Strong, *name), Cell::new(title(text))])
        .collect();
    render::table(output, &rows).iter().try_for_each(|line| output.line(line))?;
    output.remark(
        "read one with `cairn help TOPIC`; `cairn help CODE` says what an error means, \
         `cairn help COMMAND` how a command is used, `cairn workflow new --list` lists examples",
    );
    Ok(Exit::Success)
}

/// What a page is called.
fn title(text: &str) -> &str {
    text.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_is_there_once_and_has_a_title() {
        let mut names: Vec<&str> = PAGES.iter().map(|(name, _)| *name).collect();
        for known in ["graph", "triggers", "steps", "reference/cli", "RUN_BUSY", "errors"] {
            assert!(names.contains(&known), "{known}");
        }
        assert!(PAGES.iter().all(|(_, text)| !title(text).is_empty()));
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
