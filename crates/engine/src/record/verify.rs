//! The check that no line was changed, put in, taken out or cut off.

use cairn_core::audit::Line;
use cairn_core::digest::Digest;
use cairn_store::port::audit::Head;

use super::Record;
use crate::error::{Error, Result};

/// How many lines are checked at a time.
const PAGE: usize = 1_024;

impl Record {
    /// Checks every line, and gives how many there are.
    pub async fn verify(&self) -> Result<u64> {
        // Whatever is added meanwhile is behind it.
        let head = self.log.head().await?;
        let (mut previous, mut count, mut is_counted) = (Line::nothing(), 0, false);
        loop {
            let lines = self.log.read(count, PAGE).await?;
            for bytes in &lines {
                let line = Line::read(bytes).ok_or_else(|| self.broken(count))?;
                if line.index > count {
                    return Err(self.cut(count, line.index));
                }
                if line.index < count || line.previous != previous || is_other(head, count, bytes) {
                    return Err(self.broken(count));
                }
                // Only versions that keep the head say through which door.
                is_counted |= line.door.is_some() || line.outcome.is_some();
                previous = line.digest;
                count += 1;
            }
            if lines.len() < PAGE {
                break;
            }
        }
        match head {
            Head::Of { lines, .. } if lines > count => Err(self.cut(count, lines)),
            Head::Absent if is_counted => Err(self.headless()),
            Head::Unreadable => Err(self.headless()),
            _ => Ok(count),
        }
    }

    fn cut(&self, found: u64, written: u64) -> Error {
        Error::AuditCut { path: self.log.place().into(), found, written }
    }

    fn headless(&self) -> Error {
        Error::AuditHead { path: self.log.place().into() }
    }
}

/// Whether the line that is known apart is not the one that stands there.
fn is_other(head: Head, index: u64, bytes: &[u8]) -> bool {
    matches!(head, Head::Of { lines, last } if lines == index + 1 && Digest::of(bytes) != last)
}
