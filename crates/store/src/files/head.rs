//! `head`: a witness of the last acknowledged commit.
//!
//! Two slots, written in turn and never synced on the way: what it says was durable when
//! it was written, so it is a lower bound of the truth. It tells a torn tail, which never
//! was, from a damaged one, and it tells a reader without the lock how far to trust.

use cairn_core::digest::Digest;
use cairn_core::id::EventIndex;

use super::durable::failed;
use super::fs::{File, Fs, Open};
use super::layout::SessionDir;
use crate::error::Result;

pub(super) const SLOT_LEN: usize = 256;
const MAGIC: &str = "cairn-head 1";

/// The last acknowledged commit, as far as the witness knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Head {
    pub(super) last: EventIndex,
    pub(super) rec: Digest,
}

/// What the witness file holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Witness {
    /// There is no file.
    Absent,
    /// There is a file, and neither slot can be read.
    Unreadable,
    /// What the newer slot says, and which one it is.
    Says(Head, usize),
}

impl Witness {
    pub(super) const fn head(self) -> Option<Head> {
        match self {
            Self::Says(head, _) => Some(head),
            Self::Absent | Self::Unreadable => None,
        }
    }
}

impl Head {
    fn encode(self) -> Vec<u8> {
        sealed(&format!("{MAGIC} {} {}", self.last, self.rec))
    }

    fn decode(slot: &[u8]) -> Option<Self> {
        let (last, rec) = unsealed(slot)?.strip_prefix(MAGIC)?.trim_start().split_once(' ')?;
        Some(Self { last: EventIndex(last.parse().ok()?), rec: rec.parse().ok()? })
    }
}

/// A slot that holds a text and its sum.
pub(super) fn sealed(text: &str) -> Vec<u8> {
    let sum = Digest::of(text.as_bytes()).hex();
    let mut slot = format!("{text} {sum}").into_bytes();
    slot.resize(SLOT_LEN - 1, b' ');
    slot.push(b'\n');
    slot
}

/// The text that a slot holds, if it was written whole.
pub(super) fn unsealed(slot: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(slot).ok()?;
    let (text, sum) = text.trim_end().rsplit_once(' ')?;
    (Digest::of(text.as_bytes()).hex() == sum).then_some(text)
}

/// Reads the witness.
pub(super) fn read(fs: &dyn Fs, dir: &SessionDir) -> Result<Witness> {
    let path = dir.head();
    Ok(super::durable::read_if_there(fs, &path)?.map_or(Witness::Absent, |bytes| decode(&bytes)))
}

fn decode(bytes: &[u8]) -> Witness {
    let slots = bytes.chunks(SLOT_LEN).take(2).enumerate();
    let newest = slots
        .filter_map(|(slot, bytes)| Head::decode(bytes).map(|head| (head, slot)))
        .max_by_key(|(head, _)| head.last);
    newest.map_or(Witness::Unreadable, |(head, slot)| Witness::Says(head, slot))
}

/// The witness file, held open by a writer.
pub(super) struct HeadFile {
    file: Box<dyn File>,
    slot: usize,
}

impl HeadFile {
    /// Opens the witness to write; the slot that holds the newest word is spared.
    pub(super) fn open(fs: &dyn Fs, dir: &SessionDir, newest: Witness) -> Result<Self> {
        let path = dir.head();
        let file = fs.open(&path, Open::Create).map_err(failed("opening", &path))?;
        let slot = match newest {
            Witness::Says(_, slot) => 1 - slot.min(1),
            Witness::Absent | Witness::Unreadable => 0,
        };
        Ok(Self { file, slot })
    }

    /// Writes the witness. It may fail: then readers trust less than they could.
    pub(super) fn write(&mut self, head: Head) -> bool {
        let offset = (self.slot * SLOT_LEN) as u64;
        let written = self.file.write_all_at(&head.encode(), offset).is_ok();
        self.slot = 1 - self.slot;
        written
    }

    /// Makes the witness durable.
    pub(super) fn sync(&self) -> bool {
        self.file.sync().is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(last: u64) -> Head {
        Head { last: EventIndex(last), rec: Digest::of(&last.to_le_bytes()) }
    }

    #[test]
    fn the_newer_readable_slot_counts() {
        let both = [head(7).encode(), head(9).encode()].concat();
        assert_eq!(decode(&both), Witness::Says(head(9), 1));
        for at in 0..SLOT_LEN {
            let mut torn = both.clone();
            torn[SLOT_LEN + at] ^= 1;
            let newest = decode(&torn).head();
            assert!(newest == Some(head(7)) || newest == Some(head(9)), "byte {at}: {newest:?}");
        }
    }

    #[test]
    fn every_cut_leaves_an_older_word_or_none() {
        let both = [head(7).encode(), head(9).encode()].concat();
        let said = SLOT_LEN + head(9).encode().trim_ascii_end().len();
        for cut in 0..both.len() {
            let word = decode(&both[..cut]).head();
            let newest = cut >= said && word == Some(head(9));
            assert!(newest || word.is_none_or(|word| word == head(7)), "{cut}: {word:?}");
        }
    }
}
