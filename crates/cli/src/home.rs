//! The data directory: opening the store in it.

use std::io;
use std::path::Path;

use cairn_api::error::{Error, Result};
use cairn_store::{Store, files};

use crate::config::{Config, Origin, Setting};

/// The commands that make the data directory when they are the first to use it. No other makes
/// one: a path that somebody mistyped stays what it is.
pub(crate) const FIRST_USE: &[&str] = &[
    "dev append-loop",
    "doctor",
    "env set",
    "guide",
    "key rotate",
    "mcp",
    "run",
    "secret set",
    "serve",
    "session import",
    "token create",
    "trigger fire",
    "workflow rebind",
];

/// Opens the store. Where there is none yet, a command that makes none finds nothing.
pub(crate) fn open(config: &Config) -> Result<Store> {
    let files = config.files()?;
    require_directory(&files.root)?;
    if !FIRST_USE.contains(&config.command.as_str()) && is_unused(&files.root) {
        require_named(config)?;
        return Ok(cairn_store::open(&cairn_store::Config::Memory)?);
    }
    Ok(cairn_store::open(&cairn_store::Config::Files(files))?)
}

/// Whether nothing was ever kept at a path.
fn is_unused(root: &Path) -> bool {
    match root.read_dir() {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

/// Refuses a data directory that somebody names and that is not there.
fn require_named(config: &Config) -> Result<()> {
    let Setting { value: path, origin } = config.home_setting()?;
    match origin {
        Origin::Default => Ok(()),
        _ if path.exists() => Ok(()),
        origin => Err(Error::HomeMissing { path, named_by: origin.to_string() }),
    }
}

/// Refuses a path at which there is something else.
fn require_directory(root: &Path) -> Result<()> {
    if root.exists() && !root.is_dir() {
        return Err(Error::HomeNotADirectory(root.to_owned()));
    }
    Ok(())
}

/// Opens the store whatever file system it is on, for a look at it. Only a directory that nobody
/// names is made for that.
pub(crate) fn open_anywhere(config: &Config) -> Result<Store> {
    let files = files::Config { unsafe_filesystem: true, ..config.files()? };
    require_directory(&files.root)?;
    require_named(config)?;
    Ok(cairn_store::open(&cairn_store::Config::Files(files))?)
}

/// Opens the store and does something with it.
pub(crate) fn with_store<T>(
    config: &Config,
    work: impl AsyncFnOnce(&Store) -> Result<T>,
) -> Result<T> {
    block_on(async {
        let store = open(config)?;
        work(&store).await
    })
}

/// The same, where sessions can be read that came from elsewhere and that nobody trusts yet.
pub(crate) fn with_papers<T>(
    config: &Config,
    work: impl AsyncFnOnce(&Store) -> Result<T>,
) -> Result<T> {
    with_store(config, async |store| work(&store.with_papers()?).await)
}

/// Waits for something that performs runs, before the process ends.
pub(crate) fn on_threads<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Error::Internal(error.to_string()))?;
    let done = runtime.block_on(work);
    // Whatever still goes on ends with the process. Taking the threads' clock away from it before
    // that would be a panic.
    std::mem::forget(runtime);
    done
}

/// Waits for something on this thread.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| Error::Internal(error.to_string()))?.block_on(work)
}
