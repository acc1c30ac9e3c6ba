//! What is known of the last line of the audit record, apart from the lines.
//!
//! Two slots, written in turn, as for the head of a session. They are synced now and then only:
//! what they say was durable when it was written, so a crash leaves a lower bound of the truth.

use std::path::Path;

use cairn_core::digest::Digest;

use super::super::durable::{failed, not_durable, read_if_there, sync_parent};
use super::super::fs::{File, Fs, Open};
use super::super::head::{SLOT_LEN, sealed, unsealed};
use crate::error::Result;
use crate::port::audit::Head;

const MAGIC: &str = "cairn-audit 1";
/// After how many lines it is synced: a power failure leaves it no further behind.
const SYNC_EVERY: u64 = 32;

/// What is known of the last line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Known {
    /// How many lines were added, it included.
    pub(super) lines: u64,
    /// Where it ends.
    pub(super) end: u64,
    last: Digest,
}

impl Known {
    /// What is known when a line was added behind so many, at an offset.
    pub(super) fn after(lines: u64, line: &[u8], at: u64) -> Self {
        let last = Digest::of(line.trim_ascii_end());
        Self { lines: lines + 1, end: at + line.len() as u64, last }
    }

    fn encode(&self) -> Vec<u8> {
        sealed(&format!("{MAGIC} {} {} {}", self.lines, self.end, self.last))
    }

    fn decode(slot: &[u8]) -> Option<Self> {
        let mut words = unsealed(slot)?.strip_prefix(MAGIC)?.split_ascii_whitespace();
        let (lines, end) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        Some(Self { lines, end, last: words.next()?.parse().ok()? })
    }
}

/// The newest word, and which slot has it.
fn newest(bytes: &[u8]) -> Option<(usize, Known)> {
    let slots = bytes.chunks(SLOT_LEN).take(2).enumerate();
    let known = slots.filter_map(|(slot, bytes)| Some((slot, Known::decode(bytes)?)));
    known.max_by_key(|(_, known)| known.lines)
}

/// Reads what is kept apart.
pub(super) fn read(fs: &dyn Fs, path: &Path) -> Result<Head> {
    let bytes = read_if_there(fs, path)?.unwrap_or_default();
    if bytes.is_empty() {
        // It is made before the first line is.
        return Ok(Head::Absent);
    }
    Ok(newest(&bytes)
        .map_or(Head::Unreadable, |(_, known)| Head::Of { lines: known.lines, last: known.last }))
}

/// The file, held open by whoever adds a line.
pub(super) struct HeadFile {
    file: Box<dyn File>,
    newest: Option<(usize, Known)>,
}

impl HeadFile {
    /// Opens it to write. The first time its name is made durable, so that it is there whenever
    /// lines are.
    pub(super) fn open(fs: &dyn Fs, path: &Path) -> Result<Self> {
        let there = read_if_there(fs, path)?;
        let file = fs.open(path, Open::Create).map_err(failed("opening", path))?;
        if there.is_none() {
            file.sync().map_err(not_durable(path))?;
            sync_parent(fs, path)?;
        }
        Ok(Self { file, newest: there.as_deref().and_then(newest) })
    }

    /// What it says.
    pub(super) fn known(&self) -> Option<&Known> {
        self.newest.as_ref().map(|(_, known)| known)
    }

    /// Writes beside the newest word. It may fail: the line is there, and the next one is counted
    /// from where the word before says.
    pub(super) fn write(&mut self, known: &Known) {
        let slot = self.newest.as_ref().map_or(0, |(slot, _)| 1 - slot.min(&1));
        let written = self.file.write_all_at(&known.encode(), (slot * SLOT_LEN) as u64);
        if written.is_ok() && known.lines % SYNC_EVERY == 1 {
            let _ = self.file.sync();
        }
    }
}
