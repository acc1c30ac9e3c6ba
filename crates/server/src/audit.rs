//! The record of who changed what: lines in one file, each of which vouches for the one
//! before it.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{
    self, BufRead as _, BufReader, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _,
};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use cairn_api::audit::{Entries, Entry};
use cairn_api::error::{Error, Result};
use cairn_api::time::rfc3339;
use cairn_core::canonical;
use cairn_core::digest::Digest;

/// How long a line can be.
const LINE_MAX: u64 = 16 << 10;
/// How much of what a caller sent is kept.
const TEXT_MAX: usize = 512;

/// The record of a data directory. Clones write the same file.
#[derive(Clone, Debug)]
pub struct Audit {
    path: PathBuf,
}

/// What was asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Deed<'a> {
    /// Who asked.
    pub by: &'a str,
    /// For what, such as `runs:start`.
    pub action: &'a str,
    /// About what.
    pub object: &'a str,
    /// Whether it was let through.
    pub allowed: bool,
}

impl Audit {
    /// The record of a data directory.
    #[must_use]
    pub fn new(home: &Path) -> Self {
        Self { path: home.join("audit").join("audit.jsonl") }
    }

    /// Adds a line, which is durable on return.
    pub fn record(&self, deed: &Deed<'_>, now_ms: u64) -> Result<()> {
        let add = || -> io::Result<()> {
            let folder = self.path.parent().unwrap_or(Path::new("."));
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(false).mode(0o600);
            let mut file = options.open(&self.path)?;
            file.lock()?;
            let added = add(&mut file, deed, now_ms);
            // A child process may have inherited the lock, so it is not left to the closing.
            let _ = file.unlock();
            added
        };
        add().map_err(self.failed())
    }

    /// Lines from a place on.
    pub fn read(&self, from: u64, limit: usize) -> Result<Entries> {
        let mut items = Vec::new();
        let mut next_cursor = None;
        for (index, line) in self.lines()?.enumerate() {
            let index = u64::try_from(index).unwrap_or(u64::MAX);
            let line = line.map_err(self.failed())?;
            if index < from {
                continue;
            }
            if items.len() == limit {
                next_cursor = Some(index);
                break;
            }
            items.push(self.entry(index, &line)?);
        }
        Ok(Entries { items, next_cursor })
    }

    /// Checks every line, and gives how many there are.
    pub fn verify(&self) -> Result<u64> {
        let mut previous = nothing();
        let mut count = 0;
        for line in self.lines()? {
            let line = line.map_err(self.failed())?;
            let entry = self.entry(count, &line)?;
            let sound = entry.index == count
                && entry.previous == previous
                && entry.digest == digest(&entry);
            if !sound {
                return Err(self.broken(count));
            }
            previous = entry.digest;
            count += 1;
        }
        Ok(count)
    }

    fn entry(&self, index: u64, line: &str) -> Result<Entry> {
        canonical::parse(line.as_bytes()).map_err(|_| self.broken(index))
    }

    fn lines(&self) -> Result<impl Iterator<Item = io::Result<String>>> {
        let file = match File::open(&self.path) {
            Ok(file) => Some(file),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(self.failed()(error)),
        };
        Ok(file.into_iter().flat_map(|file| BufReader::new(file).lines()))
    }

    fn failed(&self) -> impl Fn(io::Error) -> Error {
        |source| Error::File { path: self.path.clone(), source }
    }

    fn broken(&self, index: u64) -> Error {
        Error::AuditBroken { path: self.path.clone(), line: index + 1 }
    }
}

fn add(file: &mut File, deed: &Deed<'_>, now_ms: u64) -> io::Result<()> {
    let last = last(file)?;
    let (index, previous) =
        last.map_or_else(|| (0, nothing()), |last| (last.index + 1, last.digest));
    let short = |text: &str| text.chars().take(TEXT_MAX).collect();
    let mut entry = Entry {
        index,
        at: rfc3339(now_ms).unwrap_or_default(),
        by: short(deed.by),
        action: short(deed.action),
        object: short(deed.object),
        allowed: deed.allowed,
        previous,
        digest: String::new(),
    };
    entry.digest = digest(&entry);
    let mut line = canonical::to_vec(&entry).map_err(io::Error::other)?;
    line.push(b'\n');
    file.write_all(&line)?;
    file.sync_data()
}

/// The last whole line; what a crash left behind it is taken away.
fn last(file: &mut File) -> io::Result<Option<Entry>> {
    let length = file.seek(SeekFrom::End(0))?;
    let from = length.saturating_sub(2 * LINE_MAX);
    file.seek(SeekFrom::Start(from))?;
    let mut tail = Vec::new();
    file.read_to_end(&mut tail)?;
    let whole = tail.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let end = from + u64::try_from(whole).unwrap_or_default();
    if end < length {
        file.set_len(end)?;
    }
    file.seek(SeekFrom::Start(end))?;
    let lines = tail.get(..whole).unwrap_or_default().trim_ascii_end();
    if lines.is_empty() {
        return Ok(None);
    }
    let last = lines.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    // Going on behind a line that cannot be read would hide that somebody changed it.
    let entry = canonical::parse(last).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(Some(entry))
}

fn nothing() -> String {
    Digest::of(b"").to_string()
}

fn digest(entry: &Entry) -> String {
    let bare = Entry { digest: String::new(), ..entry.clone() };
    canonical::to_vec(&bare).map(|bytes| Digest::of(&bytes).to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn deed(object: &str) -> Deed<'_> {
        Deed { by: "admin", action: "runs:start", object, allowed: true }
    }

    fn with_lines(count: usize) -> (tempfile::TempDir, Audit, PathBuf) {
        let home = tempfile::tempdir().unwrap();
        let audit = Audit::new(home.path());
        for n in 0..count {
            audit.record(&deed(&format!("run {n}\n{{\"forged\":1}}")), 1_700_000_000_000).unwrap();
        }
        let path = home.path().join("audit/audit.jsonl");
        (home, audit, path)
    }

    #[test]
    fn lines_are_chained_and_read_page_by_page() {
        let (_home, audit, _) = with_lines(5);
        assert_eq!(audit.verify().unwrap(), 5);
        let page = audit.read(1, 2).unwrap();
        assert_eq!(page.items.iter().map(|e| e.index).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(page.next_cursor, Some(3));
        assert_eq!(audit.read(3, 2).unwrap().next_cursor, None);
    }

    #[test]
    fn a_change_to_any_line_is_found() {
        for (from, to) in [("run 1", "run 9"), ("admin", "adm1n"), ("\"index\":1", "\"index\":7")] {
            let (_home, audit, path) = with_lines(3);
            let text = fs::read_to_string(&path).unwrap();
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines[1] = lines[1].replacen(from, to, 1);
            fs::write(&path, lines.join("\n") + "\n").unwrap();
            assert_eq!(audit.verify().unwrap_err().code(), "AUDIT_BROKEN", "{from}");
        }
        let (_home, audit, path) = with_lines(3);
        let text = fs::read_to_string(&path).unwrap();
        let kept: Vec<&str> = text.lines().skip(1).collect();
        fs::write(&path, kept.join("\n") + "\n").unwrap();
        assert_eq!(audit.verify().unwrap_err().code(), "AUDIT_BROKEN", "a line less");
    }

    #[test]
    fn a_line_that_a_crash_cut_off_is_no_line() {
        let (_home, audit, path) = with_lines(2);
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"{\"index\":2,\"at\":").unwrap();
        audit.record(&deed("next"), 1_700_000_000_001).unwrap();
        assert_eq!(audit.verify().unwrap(), 3);
    }
}
