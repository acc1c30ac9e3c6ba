//! The data directory: opening the store in it.

use std::path::Path;

use cairn_api::error::{Error, Result};
use cairn_store::{Store, files};

use crate::config::Config;

/// Opens the store.
pub(crate) fn open(config: &Config) -> Result<Store> {
    let files = config.files()?;
    require_directory(&files.root)?;
    Ok(cairn_store::open(&cairn_store::Config::Files(files))?)
}

/// Refuses a path at which there is something else.
fn require_directory(root: &Path) -> Result<()> {
    if root.exists() && !root.is_dir() {
        return Err(Error::HomeNotADirectory(root.to_owned()));
    }
    Ok(())
}

/// Opens the store whatever file system it is on, for a look at it.
pub(crate) fn open_anywhere(config: &Config) -> Result<Store> {
    let files = files::Config { unsafe_filesystem: true, ..config.files()? };
    require_directory(&files.root)?;
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
