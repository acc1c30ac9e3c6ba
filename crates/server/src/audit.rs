//! The record of who changed what: lines, each of which vouches for the one before it.

use std::sync::Arc;

use cairn_api::audit::{Entries, Entry};
use cairn_api::error::{Error, Result};
use cairn_api::time::rfc3339;
use cairn_core::canonical;
use cairn_core::digest::Digest;
use cairn_engine::flow::{Observer, Refusal, Told};
use cairn_store::port::audit::AuditLog;

use crate::clock::now_ms;

/// How much of what a caller sent is kept.
const TEXT_MAX: usize = 512;
/// How many lines are checked at a time.
const PAGE: usize = 1_024;

/// The record of a store. Clones write the same one.
#[derive(Clone)]
pub struct Audit {
    log: Arc<dyn AuditLog>,
}

/// Puts on record that triggers were refused, once for each reason and minute.
pub(crate) struct OnRecord(pub(crate) Audit);

impl Observer for OnRecord {
    fn told(&self, _: &Told) {}

    fn refused(&self, refusal: &Refusal<'_>) {
        let (audit, workflow) = (self.0.clone(), refusal.workflow.to_owned());
        let by = format!("trigger {}: {}", refusal.trigger, refusal.why.code());
        // Nobody waits for it, and what cannot be recorded is still in the list of triggers.
        tokio::spawn(async move {
            let action = "runs:start";
            let deed = Deed { by: &by, action, object: &workflow, allowed: false };
            drop(audit.record(&deed, now_ms()).await);
        });
    }
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
    /// The record of a store.
    #[must_use]
    pub fn new(log: Arc<dyn AuditLog>) -> Self {
        Self { log }
    }

    /// Adds a line, which is durable on return.
    pub async fn record(&self, deed: &Deed<'_>, now_ms: u64) -> Result<()> {
        if self.log.append(Box::new(|last| next(last, deed, now_ms))).await? {
            return Ok(());
        }
        // Going on behind a line that cannot be read would hide that somebody changed it.
        let lines = self.verify().await?;
        Err(self.broken(lines.saturating_sub(1)))
    }

    /// Lines from a place on.
    pub async fn read(&self, from: u64, limit: usize) -> Result<Entries> {
        let mut lines = self.log.read(from, limit.saturating_add(1)).await?;
        let has_more = lines.len() > limit;
        lines.truncate(limit);
        let items = (from..).zip(&lines).map(|(index, line)| self.entry(index, line));
        let items = items.collect::<Result<Vec<Entry>>>()?;
        let next = from.saturating_add(u64::try_from(items.len()).unwrap_or(u64::MAX));
        Ok(Entries { items, next_cursor: has_more.then_some(next) })
    }

    /// Checks every line, and gives how many there are.
    pub async fn verify(&self) -> Result<u64> {
        let mut previous = nothing();
        let mut count = 0;
        loop {
            let lines = self.log.read(count, PAGE).await?;
            for line in &lines {
                let entry = self.entry(count, line)?;
                let sound = entry.index == count
                    && entry.previous == previous
                    && entry.digest == digest(&entry);
                if !sound {
                    return Err(self.broken(count));
                }
                previous = entry.digest;
                count += 1;
            }
            if lines.len() < PAGE {
                return Ok(count);
            }
        }
    }

    fn entry(&self, index: u64, line: &[u8]) -> Result<Entry> {
        canonical::parse(line).map_err(|_| self.broken(index))
    }

    fn broken(&self, index: u64) -> Error {
        Error::AuditBroken { path: self.log.place().into(), line: index + 1 }
    }
}

/// The line that says what was asked for, behind the last one.
fn next(last: Option<&[u8]>, deed: &Deed<'_>, now_ms: u64) -> Option<Vec<u8>> {
    let last: Option<Entry> = last.map(canonical::parse).transpose().ok()?;
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
    canonical::to_vec(&entry).ok()
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
    use std::io::Write as _;
    use std::path::PathBuf;

    use super::*;

    fn deed(object: &str) -> Deed<'_> {
        Deed { by: "admin", action: "runs:start", object, allowed: true }
    }

    async fn with_lines(count: usize) -> (tempfile::TempDir, Audit, PathBuf) {
        let home = tempfile::tempdir().unwrap();
        let store = cairn_store::open(&cairn_store::Config::files(home.path())).unwrap();
        let audit = Audit::new(store.audit);
        for n in 0..count {
            audit
                .record(&deed(&format!("run {n}\n{{\"forged\":1}}")), 1_700_000_000_000)
                .await
                .unwrap();
        }
        let path = home.path().join("audit/audit.jsonl");
        (home, audit, path)
    }

    #[tokio::test]
    async fn lines_are_chained_and_read_page_by_page() {
        let (_home, audit, _) = with_lines(5).await;
        assert_eq!(audit.verify().await.unwrap(), 5);
        let page = audit.read(1, 2).await.unwrap();
        assert_eq!(page.items.iter().map(|e| e.index).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(page.next_cursor, Some(3));
        assert_eq!(audit.read(3, 2).await.unwrap().next_cursor, None);
    }

    // case: audit.chain
    #[tokio::test]
    async fn a_change_to_any_line_is_found() {
        for (from, to) in [("run 1", "run 9"), ("admin", "adm1n"), ("\"index\":1", "\"index\":7")] {
            let (_home, audit, path) = with_lines(3).await;
            let text = fs::read_to_string(&path).unwrap();
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines[1] = lines[1].replacen(from, to, 1);
            fs::write(&path, lines.join("\n") + "\n").unwrap();
            assert_eq!(audit.verify().await.unwrap_err().code(), "AUDIT_BROKEN", "{from}");
        }
        let (_home, audit, path) = with_lines(3).await;
        let text = fs::read_to_string(&path).unwrap();
        let kept: Vec<&str> = text.lines().skip(1).collect();
        fs::write(&path, kept.join("\n") + "\n").unwrap();
        assert_eq!(audit.verify().await.unwrap_err().code(), "AUDIT_BROKEN", "a line less");
    }

    #[tokio::test]
    async fn a_line_that_a_crash_cut_off_is_no_line() {
        let (_home, audit, path) = with_lines(2).await;
        let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"{\"index\":2,\"at\":").unwrap();
        audit.record(&deed("next"), 1_700_000_000_001).await.unwrap();
        assert_eq!(audit.verify().await.unwrap(), 3);
        // One that somebody changed stays, and nothing is added behind it.
        fs::write(&path, "{}\n").unwrap();
        let refused = audit.record(&deed("next"), 1_700_000_000_001).await.unwrap_err();
        assert_eq!(refused.code(), "AUDIT_BROKEN");
        assert_eq!(fs::read_to_string(&path).unwrap(), "{}\n");
    }
}
