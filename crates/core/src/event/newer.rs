//! Events that a later program wrote.

use super::DedupeKey;

/// What makes an event one of a later format: its line, which only that program can write.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Newer {
    needs: u32,
    dedupe_key: DedupeKey,
    line: Vec<u8>,
}

impl Newer {
    pub(super) const fn new(needs: u32, dedupe_key: DedupeKey, line: Vec<u8>) -> Self {
        Self { needs, dedupe_key, line }
    }

    /// The format that a program must know to write the like of it.
    #[must_use]
    pub const fn needs(&self) -> u32 {
        self.needs
    }

    /// The name of the fact, as the line has it: what it is made of may not be known.
    #[must_use]
    pub const fn dedupe_key(&self) -> &DedupeKey {
        &self.dedupe_key
    }

    /// The line as it was written, without the newline.
    #[must_use]
    pub fn line(&self) -> &[u8] {
        &self.line
    }
}
