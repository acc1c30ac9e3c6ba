//! `epoch`: the number of the last acquiring of a session.
//!
//! It is raised by whoever acquires the session, under the lock, and every commit repeats it.
//! So the session's epoch is the larger of the two: the file knows of an owner that has not
//! written anything yet, and the log of those whose file somebody removed or put back.

use cairn_core::digest::Digest;
use cairn_core::id::SessionId;

use super::durable::{read_if_there, replace};
use super::fs::Fs;
use super::layout::SessionDir;
use crate::error::{Error, Result};
use crate::fence::{Epoch, Ownership};
use crate::health::Health;

const NAME: &str = "cairn-epoch ";
const FORMAT: u32 = 1;

/// What is said of a damaged one. Without it the log has the number of the last owner who wrote.
const DAMAGED: &str = "the file `epoch` is damaged: end every process that uses the data \
    directory, then remove the file";

/// Says who may add to a session whose last commit has this epoch. For the lock's holder.
pub(super) fn ownership(
    fs: &dyn Fs,
    dir: &SessionDir,
    session: SessionId,
    committed: u64,
) -> Result<Ownership> {
    let committed = Epoch(committed);
    let Some(bytes) = read_if_there(fs, &dir.epoch())? else {
        return Ok(Ownership { epoch: committed, acquired: false });
    };
    // The file is replaced as a whole, so no crash leaves a part of it.
    let raised = decode(&bytes).ok_or_else(|| match later(&bytes) {
        Some(found) => Error::Newer { session, found, known: FORMAT },
        None => {
            let what = DAMAGED.to_owned();
            Error::Corrupt { session, health: Health::CorruptTail, what }
        }
    })?;
    Ok(Ownership { epoch: raised.max(committed), acquired: true })
}

/// What is wrong with the file, if anything is.
pub(super) fn damage(fs: &dyn Fs, dir: &SessionDir) -> Result<Option<String>> {
    let bytes = read_if_there(fs, &dir.epoch())?;
    let is_sound = |bytes: &Vec<u8>| decode(bytes).is_some() || later(bytes).is_some();
    Ok(bytes.filter(|bytes| !is_sound(bytes)).map(|_| DAMAGED.to_owned()))
}

/// Makes an epoch durable. For the lock's holder.
pub(super) fn write(fs: &dyn Fs, dir: &SessionDir, epoch: Epoch) -> Result<()> {
    replace(fs, &dir.epoch(), &encode(epoch))
}

fn encode(epoch: Epoch) -> Vec<u8> {
    let text = format!("{NAME}{FORMAT} {epoch}");
    format!("{text} {}\n", Digest::of(text.as_bytes()).hex()).into_bytes()
}

fn decode(bytes: &[u8]) -> Option<Epoch> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (_, epoch) = text.strip_prefix(NAME)?.split_once(' ')?;
    let epoch = epoch.split_whitespace().next()?.parse().ok().map(Epoch)?;
    (encode(epoch) == bytes).then_some(epoch)
}

/// The format of a file that a later version wrote.
fn later(bytes: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(bytes).ok()?.strip_prefix(NAME)?;
    text.split(' ').next()?.parse().ok().filter(|format| *format > FORMAT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_changed_or_missing_byte_is_noticed() {
        let bytes = encode(Epoch(41));
        assert_eq!(decode(&bytes), Some(Epoch(41)));
        for at in 0..bytes.len() {
            assert_eq!(decode(&bytes[..at]), None, "cut at {at}");
            assert!(at < 13 || later(&bytes).is_none());
            for flip in [1, 0x20, 0x80] {
                let mut changed = bytes.clone();
                changed[at] ^= flip;
                assert_eq!(decode(&changed), None, "byte {at}");
            }
        }
    }
}
