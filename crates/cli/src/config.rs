//! What commands work with: defaults, then the environment, then flags.

use std::path::PathBuf;

use cairn_api::error::{Error, Result};
use cairn_store::files;
use clap::Args;
use etcetera::BaseStrategy as _;

use crate::output::Output;

/// Options that every command takes.
#[derive(Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Globals {
    /// Data directory [default: `cairn` in the XDG data directory]
    #[arg(long, global = true, value_name = "DIR", env = "CAIRN_HOME", hide_env_values = true)]
    home: Option<PathBuf>,

    /// Answer in JSON, errors too
    #[arg(long, global = true)]
    json: bool,

    /// Leave out remarks on standard error
    #[arg(long, short, global = true)]
    quiet: bool,

    /// Use no colors; the variable NO_COLOR does the same
    #[arg(long, global = true)]
    no_color: bool,

    /// Syncs for each commit: one, or with `strict` one more for its witness
    #[arg(
        long,
        global = true,
        value_name = "LEVEL",
        env = "CAIRN_DURABILITY",
        hide_env_values = true,
        default_value = "normal"
    )]
    durability: Durability,

    /// Take a data directory on a file system that may lose what it said was safe
    #[arg(long, global = true, env = "CAIRN_UNSAFE_FILESYSTEM", hide_env_values = true, value_parser = clap::builder::BoolishValueParser::new())]
    unsafe_filesystem: bool,
}

/// How often the disk is made to keep its word.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Durability {
    // One sync for each commit: nothing acknowledged is lost.
    Normal,
    // Two: damage to the very last commit is told from one that never was, too.
    Strict,
}

/// What a command works with.
pub(crate) struct Config {
    /// How it answers.
    pub(crate) output: Output,
    /// Where the data is, when the user says.
    home: Option<PathBuf>,
    durability: Durability,
    unsafe_filesystem: bool,
}

impl Config {
    pub(crate) fn new(globals: Globals) -> Self {
        Self {
            output: Output::new(globals.json, globals.quiet, globals.no_color),
            home: globals.home,
            durability: globals.durability,
            unsafe_filesystem: globals.unsafe_filesystem,
        }
    }

    /// How the files of the data directory are kept.
    pub(crate) fn files(&self) -> Result<files::Config> {
        Ok(files::Config {
            strict: self.durability == Durability::Strict,
            unsafe_filesystem: self.unsafe_filesystem,
            ..files::Config::new(self.home()?)
        })
    }

    /// The data directory, which need not exist yet.
    pub(crate) fn home(&self) -> Result<PathBuf> {
        if let Some(home) = &self.home {
            return Ok(home.clone());
        }
        let user = etcetera::choose_base_strategy().map_err(|_| Error::HomeUnknown)?;
        Ok(user.data_dir().join("cairn"))
    }
}

/// The directories that a variable of the environment lists.
pub(crate) fn directories(name: &str) -> Vec<PathBuf> {
    let list = std::env::var_os(name).unwrap_or_default();
    std::env::split_paths(&list).filter(|path| !path.as_os_str().is_empty()).collect()
}

/// The directory of the user's own workflows, which need not exist.
pub(crate) fn user_workflows() -> Option<PathBuf> {
    let user = etcetera::choose_base_strategy().ok()?;
    Some(user.config_dir().join("cairn").join("workflows"))
}

/// Whether the locale's encoding is UTF-8.
pub(crate) fn is_utf8() -> bool {
    let said = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(said).unwrap_or_default();
    let encoding = locale.to_ascii_lowercase().replace('-', "");
    encoding.contains("utf8")
}

/// A variable of the environment that is there and says something.
pub(crate) fn is_set(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| !value.is_empty())
}
