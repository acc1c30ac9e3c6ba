//! What follows from sessions, in an SQLite file that may be deleted at any time.

use std::fs::{OpenOptions, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode};

use crate::error::{Error, Result};

/// The version of the tables; a file of another version is made anew.
const VERSION: i64 = 7;
/// How long another process is waited for.
const PATIENCE: Duration = Duration::from_millis(250);
/// How long it is tried to open the file while somebody else makes it, and after which pause.
const OPEN_PATIENCE: Duration = Duration::from_millis(750);
const OPEN_PAUSE: Duration = Duration::from_millis(10);

pub(super) struct Sqlite {
    shared: Arc<Shared>,
}

struct Shared {
    path: PathBuf,
    connection: Mutex<Option<Connection>>,
}

/// Whether somebody else is at work on the file.
fn is_busy(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{DatabaseBusy, DatabaseLocked};
    matches!(error.sqlite_error_code(), Some(DatabaseBusy | DatabaseLocked))
}

impl Sqlite {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { shared: Arc::new(Shared { path, connection: Mutex::new(None) }) }
    }

    /// Does something with the file on a thread that may wait. A file that is damaged is
    /// removed: whatever was in it follows from the sessions. For anything else, such as
    /// another process at work, it stays.
    pub(super) async fn with<T: Send + 'static>(
        &self,
        work: impl Fn(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T> {
        let shared = Arc::clone(&self.shared);
        let done = tokio::task::spawn_blocking(move || {
            shared.attempt(&work).or_else(|error| match error.sqlite_error_code() {
                Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
                    shared.discard();
                    shared.attempt(&work)
                }
                _ if matches!(error, rusqlite::Error::FromSqlConversionFailure(..)) => {
                    // What it says of sessions that it has read is worth nothing, either.
                    shared.discard();
                    Err(error)
                }
                _ => Err(error),
            })
        });
        let failed = |what: String| Error::Io {
            context: "using the index".to_owned(),
            source: Arc::new(std::io::Error::other(what)),
        };
        match done.await {
            Ok(Err(error)) if is_busy(&error) => {
                Err(Error::LockBusy { what: "the index of runs".to_owned(), holder: None })
            }
            Ok(done) => done.map_err(|error| failed(error.to_string())),
            Err(error) => Err(failed(error.to_string())),
        }
    }
}

impl Shared {
    fn attempt<T>(
        &self,
        work: impl Fn(&mut Connection) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        let mut held = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let connection = match held.take() {
            Some(open) => open,
            None => self.open()?,
        };
        work(held.insert(connection))
    }

    /// Opens the file. Of several processes that make it, the others wait for the first.
    fn open(&self) -> rusqlite::Result<Connection> {
        let begun = Instant::now();
        loop {
            match self.try_open() {
                // SQLite waits for nobody where the way of writing is chosen.
                Err(error) if is_busy(&error) && begun.elapsed() < OPEN_PATIENCE => {
                    std::thread::sleep(OPEN_PAUSE);
                }
                opened => return opened,
            }
        }
    }

    fn try_open(&self) -> rusqlite::Result<Connection> {
        keep_private(&self.path);
        let connection = Connection::open(&self.path)?;
        connection.busy_timeout(PATIENCE)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        // Losing the last rows in a power cut costs reading their sessions again.
        connection.pragma_update(None, "synchronous", "OFF")?;
        let version =
            || connection.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0));
        if version()? == VERSION {
            return Ok(connection);
        }
        connection.execute_batch("BEGIN IMMEDIATE")?;
        // Somebody else may have been first.
        if version()? != VERSION {
            connection.execute_batch(&format!(
                "DROP TABLE IF EXISTS derived;
                 DROP TABLE IF EXISTS runs;
                 DROP TABLE IF EXISTS sessions_read;
                 DROP TABLE IF EXISTS places;
                 {}
                 {}
                 PRAGMA user_version = {VERSION};",
                super::runs::TABLES,
                super::search::TABLES,
            ))?;
        }
        connection.execute_batch("COMMIT")?;
        Ok(connection)
    }

    fn discard(&self) {
        *self.connection.lock().unwrap_or_else(PoisonError::into_inner) = None;
        for ending in ["", "-wal", "-shm"] {
            let mut path = self.path.clone().into_os_string();
            path.push(ending);
            // It may not be there, and if it cannot go the second attempt says why.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Sees to it that nobody else can read the file: there are notes in it. The files that SQLite
/// puts beside it are made with the same mode.
fn keep_private(path: &Path) {
    // A file that is there is not opened: closing it would drop the locks that SQLite holds.
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    if made.is_err_and(|error| error.kind() == ErrorKind::AlreadyExists) {
        // One of somebody else is theirs to keep.
        let _ = std::fs::set_permissions(path, Permissions::from_mode(0o600));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::Place;
    use crate::port::search::Search as _;

    fn place(text: &str) -> Place {
        Place(text.to_owned())
    }

    #[tokio::test]
    async fn a_file_that_is_no_good_is_made_anew() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("index.sqlite");
        std::fs::write(&path, vec![7; 9000]).unwrap();
        let index = Sqlite::new(path.clone());
        assert_eq!(index.place().await.unwrap(), None);
        index.reach(None, &place("x")).await.unwrap();
        assert_eq!(Sqlite::new(path).place().await.unwrap(), Some(place("x")));
    }

    #[tokio::test]
    async fn nobody_else_can_read_it() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("index.sqlite");
        let index = Sqlite::new(path.clone());
        index.reach(None, &place("x")).await.unwrap();
        let modes = || {
            let files = std::fs::read_dir(home.path()).unwrap();
            files.map(|file| file.unwrap().metadata().unwrap().permissions().mode() & 0o777)
        };
        assert!(modes().count() > 1, "the log of SQLite is there, too");
        assert!(modes().all(|mode| mode == 0o600));
        drop(index);
        std::fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        assert_eq!(Sqlite::new(path).place().await.unwrap(), Some(place("x")));
        assert!(modes().all(|mode| mode == 0o600));
    }

    #[tokio::test]
    async fn a_file_that_somebody_else_is_writing_stays() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("index.sqlite");
        let index = Sqlite::new(path.clone());
        index.reach(None, &place("x")).await.unwrap();
        let other = Connection::open(&path).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let busy = index.reach(Some(&place("x")), &place("y")).await.unwrap_err();
        assert_eq!(busy.code(), "STORE_BUSY");
        other.execute_batch("COMMIT").unwrap();
        assert_eq!(Sqlite::new(path).place().await.unwrap(), Some(place("x")));
    }
}
