//! The audit record as a file of lines.

mod head;

use std::io::ErrorKind;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use async_trait::async_trait;

use super::durable::{ensure_dir, failed, not_durable, sync_parent};
use super::fs::{File, Fs, Open};
use super::layout::Layout;
use super::leases::{encode, owner_at, this_process};
use super::lock::LockFile;
use super::pace::blocking;
use crate::error::{Error, Result};
use crate::port::audit::{AuditLog, Head, LINE_MAX, NextLine};
use head::{HeadFile, Known};

/// What whoever adds a line says to do.
const PURPOSE: &str = "add to the audit record";
/// How much is read at once.
const CHUNK: u64 = 1 << 20;

pub(super) struct FileAudit {
    fs: Arc<dyn Fs>,
    layout: Layout,
    /// Held by whoever adds a line: the sync that failed, after which no more are added.
    failed: Mutex<Option<Error>>,
}

impl FileAudit {
    pub(super) const fn new(fs: Arc<dyn Fs>, layout: Layout) -> Self {
        Self { fs, layout, failed: Mutex::new(None) }
    }

    fn add(&self, next: NextLine<'_>) -> Result<bool> {
        let begun = Instant::now();
        let mut lost = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lost) = &*lost {
            return Err(lost.clone());
        }
        let added = self.add_line(next, begun);
        if let Err(error @ Error::DurabilityLost { .. }) = &added {
            *lost = Some(error.clone());
        }
        added
    }

    fn add_line(&self, next: NextLine<'_>, begun: Instant) -> Result<bool> {
        let (fs, path) = (&*self.fs, self.layout.audit());
        if let Some(folder) = path.parent() {
            ensure_dir(fs, folder)?;
        }
        let mut lock = LockFile::open(fs, path.clone())?;
        let holder = self.layout.audit_holder();
        let Some(_held) = lock.acquire_since(fs, begun)? else {
            let holder = owner_at(fs, &holder).map(|owner| owner.to_string());
            return Err(Error::LockBusy { what: "the audit record".to_owned(), holder });
        };
        // The lock is on the record itself, where nothing but lines may stand.
        let note = fs.open(&holder, Open::Create).map_err(failed("opening", &holder))?;
        let noted = note.write_all_at(&encode(&this_process(PURPOSE)), 0);
        noted.map_err(failed("writing", &holder))?;
        let file = fs.open(&path, Open::Write).map_err(failed("opening", &path))?;
        let (last, end) = last_line(&*file, &path)?;
        let mut head = HeadFile::open(fs, &self.layout.audit_head())?;
        let lines = lines_so_far(&*file, &path, head.known(), end)?;
        let Some(mut line) = next(last.as_deref()) else { return Ok(false) };
        debug_assert!(
            line.len() <= LINE_MAX && !line.contains(&b'\n') && !is_torn(&line),
            "not a line"
        );
        line.push(b'\n');
        if end == 0 {
            // The first line is worth nothing without the file's name.
            sync_parent(fs, &path)?;
        }
        let written = file.write_all_at(&line, end).map_err(failed("writing", &path));
        let added = written.and_then(|()| file.sync().map_err(not_durable(&path)));
        if added.is_err() {
            // What was not acknowledged is cut off; the next one would do it, too.
            let _ = file.set_len(end);
        }
        added?;
        head.write(&Known::after(lines, &line, end));
        Ok(true)
    }
}

/// The last whole line and where it ends; what a crash left behind it is cut off.
fn last_line(file: &dyn File, path: &Path) -> Result<(Option<Vec<u8>>, u64)> {
    let reading = || failed("reading", path);
    let len = file.stat().map_err(reading())?.len;
    let from = len.saturating_sub(2 * LINE_MAX as u64);
    let tail = file.read_to_end_at(from).map_err(reading())?;
    let mut lines: Vec<&[u8]> = tail.split_inclusive(|byte| *byte == b'\n').collect();
    let mut end = len;
    while let Some(cut) = lines.pop_if(|line| !line.ends_with(b"\n") || is_torn(line)) {
        end -= cut.len() as u64;
    }
    let last = lines.last().map(|line| line.trim_ascii_end());
    if end < len {
        file.set_len(end).map_err(failed("cutting", path))?;
    }
    Ok((last.map(<[u8]>::to_vec), end))
}

/// How many lines were added before, those that are lost since counted.
fn lines_so_far(file: &dyn File, path: &Path, known: Option<&Known>, end: u64) -> Result<u64> {
    let (lines, from) = match known {
        // Somebody cut lines off: what was known of goes on being counted.
        Some(known) if end <= known.end => return Ok(known.lines),
        Some(known) => (known.lines, known.end),
        None => (0, 0),
    };
    // Lines that a crash kept from being counted, or that were added when nothing counted them.
    let rest = file.read_range(from, end).map_err(failed("reading", path))?;
    let more = rest.iter().filter(|byte| **byte == b'\n').count();
    Ok(lines + u64::try_from(more).unwrap_or(u64::MAX))
}

/// Whether a crash left a hole in a line: its end reached the disk, and something before did not.
fn is_torn(line: &[u8]) -> bool {
    line.contains(&0)
}

#[async_trait]
impl AuditLog for FileAudit {
    async fn append(&self, next: NextLine<'_>) -> Result<bool> {
        blocking(|| self.add(next))
    }

    async fn read(&self, from: u64, limit: usize) -> Result<Vec<Vec<u8>>> {
        let path = self.layout.audit();
        let file = match self.fs.open(&path, Open::Read) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            file => file.map_err(failed("opening", &path))?,
        };
        blocking(|| read_lines(&*file, from, limit).map_err(failed("reading", &path)))
    }

    async fn head(&self) -> Result<Head> {
        blocking(|| head::read(&*self.fs, &self.layout.audit_head()))
    }

    fn place(&self) -> String {
        self.layout.audit().display().to_string()
    }
}

/// Reads whole lines piece by piece; one without its end is none yet.
fn read_lines(file: &dyn File, from: u64, limit: usize) -> std::io::Result<Vec<Vec<u8>>> {
    let (mut lines, mut number, mut at) = (Vec::new(), 0, 0);
    let mut rest: Vec<u8> = Vec::new();
    while lines.len() < limit {
        let bytes = file.read_range(at, at + CHUNK)?;
        if bytes.is_empty() {
            break;
        }
        at += bytes.len() as u64;
        rest.extend_from_slice(&bytes);
        let whole = rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let left = rest.split_off(whole);
        for line in rest.trim_ascii_end().split(|byte| *byte == b'\n').filter(|_| whole > 0) {
            if number >= from && lines.len() < limit {
                lines.push(line.to_vec());
            }
            number += 1;
        }
        rest = left;
    }
    // Only the last one can be: whoever adds another has seen to it.
    lines.pop_if(|line| is_torn(line));
    Ok(lines)
}
