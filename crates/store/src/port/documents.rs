//! Small documents that are read and replaced whole: secrets, tokens, settings, schedules.

use std::borrow::Cow;
use std::fmt;

use async_trait::async_trait;
use cairn_core::digest::Digest;

use crate::error::{Error, Result};

/// Documents, each under a name.
#[async_trait]
pub trait Documents: Send + Sync {
    /// Gives a document; none when it is not there.
    async fn read(&self, name: &Name) -> Result<Option<Document>>;

    /// Puts a document in the place of the one that was seen, or makes it when none was.
    ///
    /// Fails with `DocumentMoved` when there is another one by now: read again and decide again,
    /// as [`update`](trait.Documents.html#method.update) does. On return it will survive a crash;
    /// a crash on the way leaves the old document or the new one. Where there are files, only
    /// their owner can read it.
    async fn replace(&self, name: &Name, seen: Option<&Version>, bytes: Vec<u8>)
    -> Result<Version>;

    /// Removes the document that was seen. Fails with `DocumentMoved` when there is another one
    /// by now, or none.
    async fn remove(&self, name: &Name, seen: &Version) -> Result<()>;

    /// Lists the documents in a folder, in order of their names.
    async fn list(&self, folder: &Name) -> Result<Vec<Name>>;

    /// Gives a stamp that is another one whenever the document is, or who may read it. Cheaper
    /// than reading; none when the document is not there.
    async fn stamp(&self, name: &Name) -> Result<Option<Stamp>>;

    /// Says why others than the owner may have read a document, in words that follow the name of
    /// a file; none when nobody may, or when it is not there.
    async fn exposed(&self, name: &Name) -> Result<Option<String>>;

    /// Says where a document is, for people.
    fn place(&self, name: &Name) -> String;
}

impl dyn Documents + '_ {
    /// Changes a document, whoever else does: `change` is given what is there and gives what is
    /// to be there, or none to leave it. It is asked again when somebody else was faster.
    pub async fn update<T, E: From<Error>>(
        &self,
        name: &Name,
        mut change: impl FnMut(Option<&[u8]>) -> Result<(Option<Vec<u8>>, T), E>,
    ) -> Result<T, E> {
        loop {
            let seen = self.read(name).await?;
            let (bytes, answer) = change(seen.as_ref().map(|seen| &*seen.bytes))?;
            let Some(bytes) = bytes else { return Ok(answer) };
            let version = seen.as_ref().map(|seen| &seen.version);
            match self.replace(name, version, bytes).await {
                // Each time somebody else got on, so this ends.
                Err(Error::DocumentMoved { .. }) => {}
                Err(error) => return Err(error.into()),
                Ok(_) => return Ok(answer),
            }
        }
    }
}

/// A document as it was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Document {
    /// Its content.
    pub bytes: Vec<u8>,
    /// What tells it from those before and after it.
    pub version: Version,
}

impl Document {
    /// The document of this content.
    pub(crate) fn of(bytes: Vec<u8>) -> Self {
        Self { version: Version::of(&bytes), bytes }
    }
}

/// What tells one content of a document from another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Version(Digest);

impl Version {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self(Digest::of(bytes))
    }
}

/// What is compared to know whether a document is still the same.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stamp(pub(crate) String);

/// The name of a document, such as `schedules.json` or `keys/tokens.json`: a file name of plain
/// letters, in at most one folder. It leads nowhere else, and to nothing that is hidden.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Name(Cow<'static, str>);

/// How long a name can be.
const NAME_MAX: usize = 160;

impl Name {
    /// A name that is known when the program is compiled, which is when it is checked.
    #[must_use]
    pub const fn fixed(text: &'static str) -> Self {
        assert!(is_name(text.as_bytes()), "not the name of a document");
        Self(Cow::Borrowed(text))
    }

    /// The name that a text is, if it is one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        is_name(text.as_bytes()).then(|| Self(Cow::Owned(text.to_owned())))
    }

    /// Its text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is the name of something in this folder.
    pub(crate) fn is_in(&self, folder: &Self) -> bool {
        self.0.split_once('/').is_some_and(|(of, _)| of == folder.0)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether a text is a name. What begins with a dot is for locks, what ends with `.tmp` for
/// what is being written.
const fn is_name(text: &[u8]) -> bool {
    if text.len() > NAME_MAX || ends_with_tmp(text) {
        return false;
    }
    let (mut at, mut folders, mut begins) = (0, 0, true);
    while at < text.len() {
        #[expect(clippy::indexing_slicing, reason = "`get` is not for constants")]
        let byte = text[at];
        let plain = byte.is_ascii_alphanumeric() || matches!(byte, b'@' | b'_' | b'-');
        match byte {
            b'/' if !begins && folders == 0 => (folders, begins) = (1, true),
            b'.' if !begins => {}
            _ if plain => begins = false,
            _ => return false,
        }
        at += 1;
    }
    !begins
}

const fn ends_with_tmp(text: &[u8]) -> bool {
    matches!(text.split_last_chunk::<4>(), Some((_, b".tmp")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_leads_nowhere_else() {
        for good in ["a", "schedules.json", "keys/tokens.json", "env/@0af.yaml", "env/wr.a-b_c.y"] {
            assert_eq!(Name::parse(good).unwrap().as_str(), good);
        }
        let long = "a".repeat(NAME_MAX + 1);
        for bad in [
            "",
            "/",
            "/a",
            "a/",
            "a//b",
            "..",
            "../a",
            "a/..",
            "a/../b",
            ".a",
            "a/.b",
            "a/b/c",
            "a b",
            "ä",
            "a\0",
            "a\n",
            "a\\b",
            "a.tmp",
            "env/a.tmp",
            &long,
        ] {
            assert_eq!(Name::parse(bad), None, "{bad:?}");
        }
        let (folder, name) = (Name::fixed("env"), Name::fixed("env/a.yaml"));
        assert!(name.is_in(&folder) && !folder.is_in(&folder));
        assert!(!Name::fixed("envy/a").is_in(&folder));
    }
}
