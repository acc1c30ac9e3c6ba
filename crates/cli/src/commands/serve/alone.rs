//! One server for each data directory: two would fire the same schedules.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::net::SocketAddr;
use std::path::Path;

use cairn_api::error::{Error, Result};

/// The place of the one server of a data directory, for as long as it is held.
pub(super) struct Place(File);

/// Takes the place of the server, or says who has it.
pub(super) fn take(home: &Path) -> Result<Place> {
    let path = home.join("server.lock");
    let failed = |source| Error::File { path: path.clone(), source };
    fs::create_dir_all(home).map_err(failed)?;
    let open = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
    let mut file = open.map_err(failed)?;
    match file.try_lock() {
        Ok(()) => {
            // Who was here before is here no more.
            let _ = file.set_len(0);
            Ok(Place(file))
        }
        Err(TryLockError::WouldBlock) => {
            let mut server = String::new();
            let _ = file.read_to_string(&mut server);
            let server = server.lines().next().unwrap_or("another process").to_owned();
            Err(Error::ServerRunning { home: home.to_owned(), server })
        }
        Err(TryLockError::Error(source)) => Err(failed(source)),
    }
}

impl Place {
    /// Says who is here, for whoever comes next.
    pub(super) fn sign(&mut self, address: SocketAddr) {
        let text = format!("process {} at http://{address}\n", std::process::id());
        // Without it the next one still hears that somebody is here.
        let _ = self.0.set_len(0).and_then(|()| self.0.rewind());
        let _ = self.0.write_all(text.as_bytes());
    }
}
