//! What commands work with: defaults, then the file, then the environment, then flags.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cairn_api::error::{Error, Result};
use cairn_core::event::guided::{Autonomy, Preferences, RiskPolicy};
use cairn_engine::secrets::{KeySource, Secret, Vault};
use cairn_server::{DEFAULT_ADDRESS, DEFAULT_DRAIN, Telemetry};
use cairn_steps::catalog::Settings;
use cairn_store::{Store, files};
use clap::parser::ValueSource;
use clap::{ArgMatches, Args};
use etcetera::BaseStrategy as _;

use self::file::{File, Limits, Steps};
use crate::output::Output;

mod file;
pub(crate) mod names;
mod telemetry;

pub(crate) use file::DRAIN_SEC_MAX;

/// Options that every command takes.
#[derive(Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Globals {
    /// Data directory [default: `cairn` in the XDG data directory]
    #[arg(long, global = true, value_name = "DIR", env = "CAIRN_HOME", hide_env_values = true)]
    home: Option<PathBuf>,

    /// Configuration file [default: `cairn/config.toml` in the XDG configuration directory]
    #[arg(long, global = true, value_name = "FILE", env = "CAIRN_CONFIG", hide_env_values = true)]
    config: Option<PathBuf>,

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

    /// Whether `home` is from the command line, not from the environment.
    #[arg(skip)]
    home_typed: bool,

    /// Whether `config` is.
    #[arg(skip)]
    config_typed: bool,

    /// The command, with those above it.
    #[arg(skip)]
    command: String,
}

impl Globals {
    /// Notes what only the matches know: which options were typed.
    pub(crate) fn typed(&mut self, matches: &ArgMatches) {
        let is_typed = |name| matches.value_source(name) == Some(ValueSource::CommandLine);
        (self.home_typed, self.config_typed) = (is_typed("home"), is_typed("config"));
        let mut path = Vec::new();
        let mut below = matches.subcommand();
        while let Some((name, matches)) = below {
            path.push(name);
            below = matches.subcommand();
        }
        self.command = path.join(" ");
    }

    /// How to answer, whatever the configuration is.
    pub(crate) fn output(&self) -> Output {
        Output::new(self.json, self.quiet, self.no_color)
    }
}

/// How often the disk is made to keep its word.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Durability {
    // One sync for each commit: nothing acknowledged is lost.
    Normal,
    // Two: damage to the very last commit is told from one that never was, too.
    Strict,
}

/// A value and where it comes from.
pub(crate) struct Setting<T> {
    pub(crate) value: T,
    pub(crate) origin: Origin,
}

/// Where a value comes from, the weakest first.
#[derive(Clone)]
pub(crate) enum Origin {
    Default,
    File(PathBuf, usize),
    Environment(&'static str),
    Flag(&'static str),
}

impl Origin {
    /// The layer in one word.
    pub(crate) const fn layer(&self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::File(..) => "file",
            Self::Environment(_) => "environment",
            Self::Flag(_) => "flag",
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path, line) => write!(f, "{}:{line}", path.display()),
            Self::Environment(name) | Self::Flag(name) => f.write_str(name),
        }
    }
}

/// What a command works with.
pub(crate) struct Config {
    /// Which command it is, such as `runs list`.
    pub(crate) command: String,
    /// How it answers.
    pub(crate) output: Output,
    /// The file that was read, when there was one.
    pub(crate) file: Option<PathBuf>,
    /// The directories of workflows beside the user's own.
    pub(crate) workflows: Setting<Vec<PathBuf>>,
    /// The directories of workflows that came with something.
    pub(crate) bundled: Setting<Vec<PathBuf>>,
    /// The directories that clients of the server may name as their project.
    pub(crate) workspace_roots: Setting<Vec<PathBuf>>,
    /// Where the server listens.
    pub(crate) listen: Setting<SocketAddr>,
    /// How long steps under way may take once the server is told to stop.
    pub(crate) drain: Setting<Duration>,
    /// The collector of traces, when somebody says.
    pub(crate) telemetry: Option<Setting<String>>,
    /// When runs stop for a person, unless they say otherwise.
    pub(crate) autonomy: Setting<Autonomy>,
    /// How much risk runs take, unless they say otherwise.
    pub(crate) risk_policy: Setting<RiskPolicy>,
    /// What the file says about how much runs may do.
    pub(crate) limits: Limits,
    /// What the file says about steps.
    pub(crate) steps: Steps,
    /// Where the data is, when somebody says.
    home: Option<Setting<PathBuf>>,
    durability: Durability,
    unsafe_filesystem: bool,
}

impl Config {
    pub(crate) fn load(globals: Globals) -> Result<Self> {
        let named = globals.config.clone();
        let path = named.clone().or_else(usual_file);
        // Only a file that somebody named has to be there.
        let path = path.filter(|path| named.is_some() || path.try_exists().unwrap_or(true));
        if let Some(path) = named.filter(|path| matches!(path.try_exists(), Ok(false))) {
            let named_by = if globals.config_typed { "--config" } else { "CAIRN_CONFIG" };
            return Err(Error::ConfigMissing { path, named_by });
        }
        let file = path.as_deref().map(file::read).transpose()?.unwrap_or_default();
        let File {
            autonomy,
            bundled,
            drain,
            home,
            limits,
            listen,
            risk_policy,
            steps,
            telemetry: endpoint,
            workflows,
            workspace_roots,
        } = file;
        let layers = Layers { file: path.as_deref().unwrap_or(Path::new("")) };
        let standard = Preferences::default();
        let typed = match (globals.home_typed, &globals.home) {
            (true, Some(home)) => {
                Some(Setting { value: home.clone(), origin: Origin::Flag("--home") })
            }
            (_, home) => home
                .clone()
                .map(|value| Setting { value, origin: Origin::Environment("CAIRN_HOME") }),
        };
        Ok(Self {
            command: globals.command.clone(),
            output: globals.output(),
            workflows: layers.pick(Vec::new(), workflows, "CAIRN_WORKFLOWS", directories)?,
            bundled: layers.pick(Vec::new(), bundled, "CAIRN_BUNDLED", directories)?,
            workspace_roots: layers.pick(
                Vec::new(),
                workspace_roots,
                "CAIRN_WORKSPACE_ROOTS",
                directories,
            )?,
            listen: layers.pick(DEFAULT_ADDRESS, listen, "CAIRN_LISTEN", |name| {
                said(name, "an address such as 127.0.0.1:7373", |text| text.parse().ok())
            })?,
            drain: layers.pick(DEFAULT_DRAIN, drain, "CAIRN_DRAIN_SEC", |name| {
                said(name, "a whole number of seconds", file::drain)
            })?,
            autonomy: layers.pick(standard.autonomy, autonomy, "CAIRN_AUTONOMY", |name| {
                said(name, &one_of(&names::AUTONOMY), |text| names::find(&names::AUTONOMY, text))
            })?,
            risk_policy: layers.pick(
                standard.risk_policy,
                risk_policy,
                "CAIRN_RISK_POLICY",
                |name| {
                    let choices = &names::RISK_POLICY;
                    said(name, &one_of(choices), |text| names::find(choices, text))
                },
            )?,
            telemetry: match text(telemetry::ENDPOINT) {
                Some(value) => {
                    let origin = Origin::Environment(telemetry::ENDPOINT);
                    Some(Setting { value, origin })
                }
                None => endpoint.map(|said| layers.said_in_file(said)),
            },
            home: typed.or_else(|| home.map(|said| layers.said_in_file(said))),
            limits,
            steps,
            durability: globals.durability,
            unsafe_filesystem: globals.unsafe_filesystem,
            file: path,
        })
    }

    /// Where traces go, when they go somewhere.
    pub(crate) fn telemetry(&self) -> Result<Option<Telemetry>> {
        telemetry::read(self.telemetry.as_ref())
    }

    /// What steps are performed with.
    pub(crate) fn step_settings(&self) -> Result<Settings> {
        // This program is the supervisor of commands, too, when it is started under its name.
        let own = std::env::current_exe().unwrap_or_else(|_| "/proc/self/exe".into());
        let mut settings = self.steps.settings(Settings::new(own, &self.home()?));
        // Skills of the project come before those of the user.
        let places = [std::env::current_dir().ok(), etcetera::home_dir().ok()];
        settings.agents.skill_places = places.into_iter().flatten().collect();
        Ok(settings)
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
        self.home_setting().map(|home| home.value)
    }

    /// The secrets of the data directory, and the key to them.
    pub(crate) fn vault(&self, store: &Store) -> Result<Vault> {
        Ok(Vault::new(store, self.home()?, master_key()?))
    }

    /// The data directory and who says so.
    pub(crate) fn home_setting(&self) -> Result<Setting<PathBuf>> {
        if let Some(Setting { value, origin }) = &self.home {
            return Ok(Setting { value: value.clone(), origin: origin.clone() });
        }
        // Whoever says nothing gets no directory in a place that they did not name.
        if !is_set("HOME") && !is_set("XDG_DATA_HOME") {
            return Err(Error::HomeUnknown);
        }
        let user = etcetera::choose_base_strategy().map_err(|_| Error::HomeUnknown)?;
        Ok(Setting { value: user.data_dir().join("cairn"), origin: Origin::Default })
    }
}

/// Where the configuration file is unless somebody names another.
pub(crate) fn usual_file() -> Option<PathBuf> {
    own_directory().map(|own| own.join("config.toml"))
}

/// The layers below the command line.
struct Layers<'a> {
    file: &'a Path,
}

impl Layers<'_> {
    /// What the strongest layer says that says anything.
    fn pick<T>(
        &self,
        default: T,
        file: Option<(T, usize)>,
        variable: &'static str,
        environment: impl FnOnce(&'static str) -> Result<Option<T>>,
    ) -> Result<Setting<T>> {
        if let Some(value) = environment(variable)? {
            return Ok(Setting { value, origin: Origin::Environment(variable) });
        }
        let file = file.map(|said| self.said_in_file(said));
        Ok(file.unwrap_or(Setting { value: default, origin: Origin::Default }))
    }

    fn said_in_file<T>(&self, (value, line): (T, usize)) -> Setting<T> {
        Setting { value, origin: Origin::File(self.file.to_owned(), line) }
    }
}

/// What a variable of the environment says, when it is set.
fn said<T>(
    name: &'static str,
    wanted: &str,
    read: impl FnOnce(&str) -> Option<T>,
) -> Result<Option<T>> {
    let Some(text) = text(name) else { return Ok(None) };
    let value = read(&text).ok_or_else(|| Error::Usage {
        message: format!("the variable {name} is `{text}`, and should be {wanted}"),
        suggestion: format!("set {name} to {wanted}, or unset it"),
    })?;
    Ok(Some(value))
}

/// What a variable of the environment says, when it says something.
fn text(name: &str) -> Option<String> {
    let text = std::env::var_os(name).filter(|text| !text.is_empty());
    text.map(|text| text.to_string_lossy().into_owned())
}

fn one_of<T>(choices: &[(&'static str, T)]) -> String {
    let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
    format!("one of {}", names.join(", "))
}

/// The directories that a variable of the environment lists.
fn directories(name: &str) -> Result<Option<Vec<PathBuf>>> {
    let Some(list) = std::env::var_os(name) else { return Ok(None) };
    let paths = std::env::split_paths(&list).filter(|path| !path.as_os_str().is_empty());
    Ok(Some(paths.collect()))
}

/// The directory of the user's own workflows, which need not exist.
pub(crate) fn user_workflows() -> Option<PathBuf> {
    own_directory().map(|own| own.join("workflows"))
}

/// The directory of what the user has set up for this program.
fn own_directory() -> Option<PathBuf> {
    let user = etcetera::choose_base_strategy().ok()?;
    Some(user.config_dir().join("cairn"))
}

/// Where the master key is: in the environment, in the file that it names, or in the user's
/// configuration directory.
fn master_key() -> Result<KeySource> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(text) = set("CAIRN_MASTER_KEY") {
        return Ok(KeySource::Given(Secret::new(text.to_string_lossy())));
    }
    if let Some(path) = set("CAIRN_MASTER_KEY_FILE") {
        return Ok(KeySource::File(path.into()));
    }
    let own = own_directory().ok_or(Error::HomeUnknown)?;
    Ok(KeySource::File(own.join("master.key")))
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
