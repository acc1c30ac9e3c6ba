//! Inboxes as Unix sockets in the data directory.
//!
//! A connection is one letter, in lines: the sender writes the letter, the owner answers
//! `ready`, the sender writes `go`, the owner answers. A sender that waits no longer for `ready`
//! closes the connection, and then `go` never comes: so a letter is taken or withdrawn, and
//! neither side needs a clock for that. An owner that ends before it has begun to act on a letter
//! answers `never`. A connection that begins with `follow` is told of
//! everything that is recorded, a line each.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cairn_core::id::SessionId;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;

use super::log::FileLog;
use super::pace::blocking;
use super::watch::Ear;
use crate::error::{Error, Result};
use crate::fence::Epoch;
use crate::memory::mailbox::within;
use crate::port::Lease;
use crate::port::mailbox::{
    Delivery, Follower, Followers, Inbox, LETTERS_MAX, Letter, Mailbox, Openings, Patience,
};

/// How long a letter may be.
const LINE_MAX: u64 = 16 << 20;
/// How long a sender may take to write its letter, or to say `go`.
const SENDER_MAX: Duration = Duration::from_secs(10);

const READY: &str = "ready";
const GO: &str = "go";
const FOLLOW: &str = "follow";
/// What an owner says that ends before it has begun to act on a letter.
const NEVER: &str = "never";

/// The sockets of a data directory.
pub(super) struct Sockets {
    folder: PathBuf,
    /// Knows who owns a session.
    log: Arc<FileLog>,
}

/// The folder, held open: a socket is named below its descriptor, since the path of a socket is
/// short and that of a data directory may not be.
struct Folder(File);

impl Folder {
    fn open(path: &PathBuf) -> io::Result<Self> {
        let directory = rustix::fs::OFlags::DIRECTORY.bits().cast_signed();
        OpenOptions::new().read(true).custom_flags(directory).open(path).map(Self)
    }

    fn at(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}/{name}", self.0.as_raw_fd()))
    }
}

const PREFIX: &str = "sess_";
const SUFFIX: &str = ".sock";

fn name(session: SessionId) -> String {
    format!("{}{SUFFIX}", session.to_string().trim_start_matches(PREFIX))
}

/// How the names of a session's sockets begin before they are known under their own name.
fn fresh(session: SessionId) -> String {
    format!(".{}-", name(session))
}

/// The session whose socket has a name.
fn named(name: &str) -> Option<SessionId> {
    format!("{PREFIX}{}", name.strip_suffix(SUFFIX)?).parse().ok()
}

impl Sockets {
    pub(super) const fn new(folder: PathBuf, log: Arc<FileLog>) -> Self {
        Self { folder, log }
    }

    /// Listens under the name of a session, for its owner of this epoch.
    fn listen(&self, session: SessionId, epoch: Epoch) -> Result<UnixListener> {
        let failed = |source| self.failed("listening in", source);
        self.make().map_err(failed)?;
        let folder = Folder::open(&self.folder).map_err(failed)?;
        let new = format!("{}{:016x}", fresh(session), crate::random()?);
        // Whoever finds it under its name can be heard.
        let listener = UnixListener::bind(folder.at(&new)).map_err(failed)?;
        let named = self.log.under_epoch(session, epoch, || {
            // Its folder is for its owner alone; so is it, wherever somebody moves it.
            let owner = Permissions::from_mode(0o600);
            std::fs::set_permissions(folder.at(&new), owner).map_err(failed)?;
            std::fs::rename(folder.at(&new), folder.at(&name(session))).map_err(failed)?;
            self.remove_left(session, &folder).map_err(failed)
        });
        if named.is_err() {
            // It was never known; whoever opens the inbox next removes what is left.
            let _ = std::fs::remove_file(folder.at(&new));
        }
        named.map(|()| listener)
    }

    /// Removes the sockets that processes left which died before anybody could find them, or
    /// which are about to be refused.
    fn remove_left(&self, session: SessionId, folder: &Folder) -> io::Result<()> {
        let left = fresh(session);
        for entry in std::fs::read_dir(&self.folder)? {
            let name = entry?.file_name();
            if let Some(name) = name.to_str().filter(|name| name.starts_with(&left)) {
                match std::fs::remove_file(folder.at(name)) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    async fn connect(&self, session: SessionId) -> Option<UnixStream> {
        let folder = Folder::open(&self.folder).ok()?;
        UnixStream::connect(folder.at(&name(session))).await.ok()
    }

    fn make(&self) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)
    }

    fn failed(&self, what: &str, source: io::Error) -> Error {
        let context = format!("{what} {}", self.folder.display());
        Error::Io { context, source: Arc::new(source) }
    }
}

/// Ends a task with what it belongs to.
struct Ends(AbortHandle);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[async_trait]
impl Mailbox for Sockets {
    async fn open(&self, lease: &dyn Lease) -> Result<Inbox> {
        let listener = blocking(|| self.listen(lease.session(), lease.epoch()))?;
        let (letters, inbox) = mpsc::channel(LETTERS_MAX);
        let followers = Followers::default();
        let moved = followers.moved();
        let task = tokio::spawn(async move {
            // An owner that is out of descriptors for a moment is not deaf for ever.
            loop {
                match listener.accept().await {
                    Ok((stream, _)) => {
                        let (letters, moved) = (letters.clone(), moved.clone());
                        tokio::spawn(hear(stream, letters, moved));
                    }
                    Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
                }
            }
        });
        Ok(Inbox::new(inbox, followers, Ends(task.abort_handle())))
    }

    async fn ask(&self, session: SessionId, text: String, patience: Patience) -> Result<Delivery> {
        let Patience { to_take, to_answer } = patience;
        let taken = async {
            let stream = self.connect(session).await?;
            let (from, mut to) = stream.into_split();
            let mut from = BufReader::new(from.take(LINE_MAX));
            say(&mut to, &text).await.ok()?;
            (line(&mut from).await? == READY).then_some((from, to))
        };
        let (mut from, mut to) = match within(taken, to_take).await {
            Some(Some(both)) => both,
            Some(None) => return Ok(Delivery::Nobody),
            None => return Ok(Delivery::Withdrawn),
        };
        // From here on the owner may act on it.
        let answered = async {
            say(&mut to, GO).await.ok()?;
            line(&mut from).await
        };
        Ok(match within(answered, to_answer).await.flatten() {
            Some(never) if never == NEVER => Delivery::Nobody,
            Some(answer) => Delivery::Answered(answer),
            None => Delivery::InDoubt,
        })
    }

    async fn follow(&self, session: SessionId) -> Result<Option<Follower>> {
        let begun = async {
            let stream = self.connect(session).await?;
            let (from, mut to) = stream.into_split();
            let mut from = BufReader::new(from.take(u64::MAX));
            say(&mut to, FOLLOW).await.ok()?;
            // Once this is answered, nothing is missed.
            (line(&mut from).await? == READY).then_some((from, to))
        };
        let Ok(Some((mut from, to))) = tokio::time::timeout(SENDER_MAX, begun).await else {
            return Ok(None);
        };
        let followers = Followers::default();
        let moved = followers.moved();
        let task = tokio::spawn(async move {
            while line(&mut from).await.is_some() {
                followers.wake();
            }
        });
        Ok(Some(Follower::new(&moved, (Ends(task.abort_handle()), to))))
    }

    async fn openings(&self) -> Result<Openings> {
        let begun = || {
            self.make()?;
            let ear = Ear::new()?;
            ear.listen(&self.folder)?;
            let (tell, sessions) = mpsc::unbounded_channel();
            let there = std::fs::read_dir(&self.folder)?.flatten().map(|entry| entry.file_name());
            let there = there.filter_map(|name| named(name.to_str()?));
            // Whoever listens here has just begun.
            there.for_each(|session| _ = tell.send(session));
            let task = tokio::spawn(async move {
                while let Ok(moved) = ear.moved().await {
                    let opened = moved.iter().filter_map(|moved| named(&moved.name));
                    opened.for_each(|session| _ = tell.send(session));
                }
            });
            Ok(Openings::new(sessions, Ends(task.abort_handle())))
        };
        begun().map_err(|source| self.failed("looking at", source))
    }

    async fn is_open(&self, session: SessionId) -> bool {
        self.connect(session).await.is_some()
    }
}

type Lines = BufReader<tokio::io::Take<OwnedReadHalf>>;

/// The next line, without its end; none when there is no whole one.
async fn line(from: &mut Lines) -> Option<String> {
    let mut line = String::new();
    from.read_line(&mut line).await.ok()?;
    line.strip_suffix('\n').map(str::to_owned)
}

async fn say(to: &mut OwnedWriteHalf, line: &str) -> io::Result<()> {
    to.write_all(format!("{line}\n").as_bytes()).await
}

/// Hears one connection to its end.
async fn hear(
    stream: UnixStream,
    letters: mpsc::Sender<Letter>,
    mut moved: watch::Receiver<u64>,
) -> Option<()> {
    let (from, mut to) = stream.into_split();
    let mut from = BufReader::new(from.take(LINE_MAX));
    let text = tokio::time::timeout(SENDER_MAX, line(&mut from)).await.ok()??;
    if text == FOLLOW {
        moved.mark_unchanged();
        say(&mut to, READY).await.ok()?;
        loop {
            tokio::select! {
                biased;
                // Whoever has heard enough closes the connection.
                _ = line(&mut from) => return None,
                told = moved.changed() => told.ok()?,
            }
            say(&mut to, ".").await.ok()?;
        }
    }
    let room = letters.reserve().await.ok()?;
    say(&mut to, READY).await.ok()?;
    let go = tokio::time::timeout(SENDER_MAX, line(&mut from)).await.ok()??;
    if go != GO {
        return None;
    }
    let (letter, envelope, answered) = Letter::new(text);
    room.send(letter);
    let mut answered = pin!(answered);
    // An inbox that is closed gives nobody what is sent into it any more.
    let answer = tokio::select! {
        biased;
        answer = &mut answered => answer,
        () = letters.closed() => match envelope.withdraw() {
            true => Ok(NEVER.to_owned()),
            false => answered.await,
        },
    };
    let answer = match answer {
        Ok(answer) => answer,
        Err(_) if envelope.withdraw() => NEVER.to_owned(),
        Err(_) => return None,
    };
    say(&mut to, &answer).await.ok()
}
