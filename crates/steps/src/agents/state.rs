//! Where a conversation is kept: a folder of its own, and which one it is.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::OwnedMutexGuard;

use super::request::{Refusal, RefusalKind, Request, Session};

/// The file that says which conversation it is.
const FILE: &str = "conversation.json";

/// A provider's own files for one request.
pub(super) struct State {
    folder: PathBuf,
    /// What is known of the conversation so far; nothing of a new one.
    pub(super) before: Option<Value>,
    is_kept: bool,
    _own: Option<TempDir>,
    /// One request at a time goes on with a conversation.
    _turn: Option<OwnedMutexGuard<()>>,
}

impl State {
    /// Makes the folder, or comes back to it once nobody else uses it.
    pub(super) async fn open(request: &Request) -> Result<Self, Refusal> {
        let unusable = |error: io::Error| {
            let message = format!("the agent's own folder cannot be used: {error}");
            Refusal::new(RefusalKind::Failed, message)
        };
        match &request.session {
            Session::New => {
                let own = tempfile::Builder::new().prefix("cairn-agent-").tempdir();
                let own = own.map_err(unusable)?;
                let folder = own.path().to_owned();
                Ok(Self { folder, before: None, is_kept: false, _own: Some(own), _turn: None })
            }
            Session::Kept(kept) => {
                let folder = kept.folder.clone();
                let turn = turn(&folder).lock_owned().await;
                private(&folder).map_err(unusable)?;
                // A file that a crash cut off is as none.
                let found = fs::read(folder.join(FILE)).ok();
                let before = found.and_then(|bytes| serde_json::from_slice(&bytes).ok());
                Ok(Self { folder, before, is_kept: true, _own: None, _turn: Some(turn) })
            }
        }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether the conversation is to be found again.
    pub(super) const fn is_kept(&self) -> bool {
        self.is_kept
    }

    /// The provider's own id of a conversation that is gone on with.
    pub(super) fn id(&self) -> Option<&str> {
        self.before.as_ref()?.get("id")?.as_str().filter(|id| super::is_word(id))
    }

    /// A number that was kept with it.
    pub(super) fn number(&self, name: &str) -> u64 {
        self.before.as_ref().and_then(|kept| kept.get(name)?.as_u64()).unwrap_or_default()
    }

    /// Keeps which conversation it is. One that cannot be kept begins anew the next time.
    pub(super) fn keep(&self, what: &Value) {
        if self.is_kept {
            let draft = self.folder.join(format!("{FILE}.draft"));
            let written = write_private(&draft, what.to_string().as_bytes());
            let _ = written.and_then(|()| fs::rename(&draft, self.folder.join(FILE)));
        }
    }

    /// Keeps the id of a conversation.
    pub(super) fn keep_id(&self, id: Option<&str>) {
        if let Some(id) = id {
            self.keep(&json!({"id": id}));
        }
    }

    /// Writes a file for the provider; gives its path.
    pub(super) fn write(&self, name: &str, text: &str) -> Result<PathBuf, Refusal> {
        let path = self.folder.join(name);
        let made = path.parent().map_or(Ok(()), private);
        made.and_then(|()| write_private(&path, text.as_bytes())).map_err(|error| {
            Refusal::new(RefusalKind::Failed, format!("`{name}` cannot be written: {error}"))
        })?;
        Ok(path)
    }
}

fn private(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(path)?;
    io::Write::write_all(&mut file, bytes)
}

/// Whose turn it is, for each folder.
fn turn(folder: &Path) -> Arc<tokio::sync::Mutex<()>> {
    type Turns = Mutex<BTreeMap<PathBuf, Arc<tokio::sync::Mutex<()>>>>;
    static TURNS: LazyLock<Turns> = LazyLock::new(Turns::default);
    let mut turns = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
    // Those that nobody waits for are not needed any more.
    turns.retain(|_, turn| Arc::strong_count(turn) > 1);
    Arc::clone(turns.entry(folder.to_owned()).or_default())
}
