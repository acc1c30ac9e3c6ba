//! The journal's format: event lines, closed by a commit line that vouches for them.
//!
//! A commit is all of an append or none of it: its digest covers the event lines and the
//! commit itself, and it names the commit before, so that a line that was cut, changed,
//! moved or lost shows. Reading is a pure function of the bytes.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::canonical::{self, StrictValue};
use crate::digest::Digest;
use crate::format;
use crate::id::EventIndex;
use crate::pin::Pin;

/// The version of the commit line.
pub const VERSION: u32 = 1;

const COMMIT_START: &[u8] = b"{\"commit\":";

/// What a commit line says, but for its own digest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Commit {
    /// Rises by one whenever another writer wrote last.
    pub epoch: u64,
    /// The first event.
    pub first: EventIndex,
    /// The last event.
    pub last: EventIndex,
    /// The blobs that the events need.
    pub pins: Vec<Pin>,
    /// The digest of the commit before; none for a session's first.
    pub prev: Option<Digest>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    commit: Body,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    epoch: u64,
    first: EventIndex,
    last: EventIndex,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    needs: Option<u32>,
    pins: Vec<Pin>,
    prev: Option<Digest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rec: Option<Digest>,
    v: u32,
}

impl Commit {
    fn line(&self, rec: Option<Digest>) -> Result<Vec<u8>, canonical::Error> {
        canonical::to_vec(&Line {
            commit: Body {
                epoch: self.epoch,
                first: self.first,
                last: self.last,
                needs: None,
                pins: self.pins.clone(),
                prev: self.prev,
                rec,
                v: VERSION,
            },
        })
    }

    /// Closes event lines with this commit's line; gives the commit's digest.
    pub fn close(&self, lines: &mut Vec<u8>) -> Result<Digest, canonical::Error> {
        let rec = Digest::of_all(&[lines, &self.line(None)?]);
        lines.extend_from_slice(&self.line(Some(rec))?);
        lines.push(b'\n');
        Ok(rec)
    }
}

/// One whole commit, as it stands in a journal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Frame<'a> {
    /// What its line says.
    pub commit: Commit,
    /// Its digest.
    pub rec: Digest,
    /// The format that a program must know to write the like of it.
    pub needs: u32,
    /// Its event lines, newlines included.
    pub lines: &'a [u8],
    /// Where it starts in the bytes.
    pub start: usize,
    /// Where the next one starts.
    pub end: usize,
}

/// What stands behind the last whole commit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tail {
    /// Nothing, or room that was set aside.
    Clean,
    /// The beginning of a commit that never was.
    Torn,
    /// A broken commit, and a whole one behind it: what was there was damaged.
    Damaged,
    /// A commit of a version that this program does not know, or one that holds what it does not
    /// know without saying which format that is.
    UnknownVersion,
}

/// A journal's bytes, read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Scan<'a> {
    /// The whole commits, from the start.
    pub frames: Vec<Frame<'a>>,
    /// What stands behind them.
    pub tail: Tail,
}

impl Scan<'_> {
    /// Where the whole commits end.
    #[must_use]
    pub fn end(&self) -> usize {
        self.frames.last().map_or(0, |frame| frame.end)
    }
}

/// Reads a journal's whole commits, and says what stands behind them.
///
/// That the commits continue each other is checked here too; a break is [`Tail::Damaged`].
#[must_use]
pub fn scan(bytes: &[u8]) -> Scan<'_> {
    let mut frames: Vec<Frame<'_>> = Vec::new();
    let mut start = 0;
    loop {
        let rest = bytes.get(start..).unwrap_or_default();
        if rest.iter().all(|byte| *byte == 0) {
            return Scan { frames, tail: Tail::Clean };
        }
        match read_frame(bytes, start) {
            Read::Whole(frame) if frames.last().is_none_or(|last| follows(last, &frame)) => {
                start = frame.end;
                frames.push(frame);
            }
            Read::Whole(_) => {
                return Scan { frames, tail: Tail::Damaged };
            }
            Read::UnknownVersion => {
                return Scan { frames, tail: Tail::UnknownVersion };
            }
            Read::Broken => {
                let tail =
                    if whole_frame_behind(bytes, start) { Tail::Damaged } else { Tail::Torn };
                return Scan { frames, tail };
            }
        }
    }
}

fn follows(last: &Frame<'_>, next: &Frame<'_>) -> bool {
    next.commit.prev == Some(last.rec)
        && next.commit.first == last.commit.last.next()
        && next.commit.epoch >= last.commit.epoch
}

enum Read<'a> {
    Whole(Frame<'a>),
    UnknownVersion,
    Broken,
}

/// Reads the commit whose event lines start at `start`.
fn read_frame(bytes: &[u8], start: usize) -> Read<'_> {
    let mut at = start;
    while let Some(line) = line_at(bytes, at) {
        let next = at + line.len() + 1;
        if line.starts_with(COMMIT_START) {
            let lines = bytes.get(start..at).unwrap_or_default();
            return match read_commit(line, lines) {
                Ok((commit, rec, needs)) => {
                    Read::Whole(Frame { commit, rec, needs, lines, start, end: next })
                }
                Err(Unread::Unknown) => Read::UnknownVersion,
                Err(Unread::Broken) => Read::Broken,
            };
        }
        at = next;
    }
    Read::Broken
}

/// The line that starts at `at`, when it is ended by a newline.
fn line_at(bytes: &[u8], at: usize) -> Option<&[u8]> {
    let rest = bytes.get(at..)?;
    let end = rest.iter().position(|byte| *byte == b'\n')?;
    rest.get(..end)
}

/// Why a line is not a commit that can be gone on from.
enum Unread {
    /// It is not what was written.
    Broken,
    /// Somebody wrote it who knows more.
    Unknown,
}

/// The commit that a line holds, if it vouches for these event lines, and the format it needs.
fn read_commit(line: &[u8], lines: &[u8]) -> Result<(Commit, Digest, u32), Unread> {
    let body = match serde_json::from_slice::<Line>(line) {
        Ok(Line { commit }) if commit.needs.is_none() => commit,
        Ok(_) | Err(_) => return read_newer(line, lines),
    };
    if body.v != VERSION {
        return Err(Unread::Unknown);
    }
    let rec = body.rec.ok_or(Unread::Broken)?;
    let commit = commit_of(body);
    let unsigned = commit.line(None).map_err(|_| Unread::Broken)?;
    // The line must be the very bytes that its content asks for, or a change could hide in it.
    let canonical = commit.line(Some(rec)).is_ok_and(|bytes| bytes == line);
    if canonical && commit.counts(lines) && Digest::of_all(&[lines, &unsigned]) == rec {
        Ok((commit, rec, 1))
    } else {
        Err(Unread::Broken)
    }
}

fn commit_of(body: Body) -> Commit {
    let Body { epoch, first, last, pins, prev, .. } = body;
    Commit { epoch, first, last, pins, prev }
}

impl Commit {
    /// Whether there are as many lines as it says.
    fn counts(&self, lines: &[u8]) -> bool {
        let events = lines.iter().filter(|byte| **byte == b'\n').count() as u64;
        self.first.0.checked_add(events) == self.last.0.checked_add(1)
    }
}

/// A commit with members that this program does not have: its digest covers them too.
fn read_newer(line: &[u8], lines: &[u8]) -> Result<(Commit, Digest, u32), Unread> {
    let broken = |_: &dyn std::fmt::Display| Unread::Broken;
    let StrictValue(mut value) = canonical::parse(line).map_err(|error| broken(&error))?;
    let written = canonical::to_vec(&value).is_ok_and(|bytes| bytes == line);
    let body = value.get_mut("commit").and_then(Value::as_object_mut).ok_or(Unread::Broken)?;
    if body.get("v").and_then(Value::as_u64).is_some_and(|v| v != u64::from(VERSION)) {
        return Err(Unread::Unknown);
    }
    let rec = body.remove("rec").and_then(|rec| serde_json::from_value::<Digest>(rec).ok());
    let rec = rec.filter(|_| written).ok_or(Unread::Broken)?;
    let unsigned = canonical::to_vec(&value).map_err(|error| broken(&error))?;
    if Digest::of_all(&[lines, &unsigned]) != rec {
        return Err(Unread::Broken);
    }
    // From here on it is what somebody wrote.
    let body = value.get_mut("commit").map(Value::take).unwrap_or_default();
    let needs = format::needs(&body).filter(|needs| format::is_newer(*needs));
    let (Some(needs), Ok(body)) = (needs, format::known::<Body>(body)) else {
        return Err(Unread::Unknown);
    };
    let commit = commit_of(body);
    if commit.counts(lines) { Ok((commit, rec, needs)) } else { Err(Unread::Broken) }
}

/// Whether any line behind a broken commit starts a whole one.
fn whole_frame_behind(bytes: &[u8], broken: usize) -> bool {
    let mut at = broken;
    while let Some(line) = line_at(bytes, at) {
        at += line.len() + 1;
        // A commit starts behind the line of another, so no other place is worth hashing.
        if line.starts_with(COMMIT_START) && matches!(read_frame(bytes, at), Read::Whole(_)) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn journal(sizes: &[usize]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let (mut next, mut prev) = (EventIndex(0), None);
        for (number, size) in sizes.iter().enumerate() {
            let last = EventIndex(next.0 + *size as u64 - 1);
            let commit =
                Commit { epoch: number as u64 / 2, first: next, last, pins: Vec::new(), prev };
            let mut lines: Vec<u8> = (next.0..=last.0)
                .flat_map(|n| format!("{{\"data\":{n}}}\n").into_bytes())
                .collect();
            prev = Some(commit.close(&mut lines).unwrap());
            bytes.extend(lines);
            next = last.next();
        }
        bytes
    }

    fn summary(bytes: &[u8]) -> (usize, Tail) {
        let scan = scan(bytes);
        (scan.frames.len(), scan.tail)
    }

    #[test]
    fn a_whole_journal_reads_back() {
        let bytes = journal(&[1, 3, 2]);
        let scan = scan(&bytes);
        assert_eq!((scan.frames.len(), scan.tail, scan.end()), (3, Tail::Clean, bytes.len()));
        assert_eq!(scan.frames[1].lines, b"{\"data\":1}\n{\"data\":2}\n{\"data\":3}\n");
    }

    #[test]
    fn room_set_aside_is_clean_and_an_empty_journal_too() {
        assert_eq!(summary(b""), (0, Tail::Clean));
        assert_eq!(summary(&[0; 4096]), (0, Tail::Clean));
        let bytes = [journal(&[1, 1]), vec![0; 100]].concat();
        assert_eq!(summary(&bytes), (2, Tail::Clean));
    }

    #[test]
    fn every_cut_of_the_last_commit_is_torn_and_keeps_the_others() {
        let (two, three) = (journal(&[1, 2]), journal(&[1, 2, 2]));
        assert_eq!(&three[..two.len()], &two[..]);
        for cut in two.len() + 1..three.len() {
            assert_eq!(summary(&three[..cut]), (2, Tail::Torn), "cut at {cut}");
            let zeroed = [&three[..cut], &vec![0; three.len() - cut]].concat();
            assert_eq!(summary(&zeroed), (2, Tail::Torn), "zeros from {cut}");
        }
    }

    #[test]
    fn every_changed_byte_is_noticed() {
        let bytes = journal(&[2, 1, 1, 1]);
        let bounds: Vec<usize> = scan(&bytes).frames.iter().map(|frame| frame.end).collect();
        for at in 0..bytes.len() {
            for flip in [1, 0x20, 0x80] {
                let mut changed = bytes.clone();
                changed[at] ^= flip;
                let whole = bounds.iter().filter(|end| **end <= at).count();
                let (frames, tail) = summary(&changed);
                assert_eq!(frames, whole, "byte {at}");
                // A change before the second last commit leaves a whole one behind it.
                let damaged = tail == Tail::Damaged || tail == Tail::UnknownVersion;
                assert!(damaged || at >= bounds[1], "byte {at}: {tail:?}");
                assert_ne!(tail, Tail::Clean, "byte {at}");
            }
        }
    }

    #[test]
    fn moved_and_repeated_commits_are_noticed() {
        let bytes = journal(&[1, 1, 1]);
        let ends: Vec<usize> = scan(&bytes).frames.iter().map(|frame| frame.end).collect();
        let (a, b, c) = (&bytes[..ends[0]], &bytes[ends[0]..ends[1]], &bytes[ends[1]..]);
        for order in [[a, c, b], [a, a, b], [a, c, c]] {
            assert_eq!(summary(&order.concat()), (1, Tail::Damaged));
        }
    }

    #[test]
    fn a_later_version_is_not_guessed_at() {
        let bytes = String::from_utf8(journal(&[1])).unwrap().replace("\"v\":1", "\"v\":2");
        assert_eq!(summary(bytes.as_bytes()), (0, Tail::UnknownVersion));
    }

    /// A journal of one commit with these members besides its own.
    fn with(members: &serde_json::Value) -> Vec<u8> {
        let commit = Commit {
            epoch: 0,
            first: EventIndex(0),
            last: EventIndex(0),
            pins: Vec::new(),
            prev: None,
        };
        let mut line: Value = serde_json::from_slice(&commit.line(None).unwrap()).unwrap();
        line["commit"].as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        let event = b"{\"data\":0}\n";
        let rec = Digest::of_all(&[event, &canonical::to_vec(&line).unwrap()]);
        line["commit"]["rec"] = serde_json::to_value(rec).unwrap();
        [event, &canonical::to_vec(&line).unwrap()[..], b"\n"].concat()
    }

    #[test]
    fn a_commit_of_a_later_format_is_read_as_far_as_it_is_known() {
        let newer = with(&serde_json::json!({"needs": 2, "weather": {"sun": 1}}));
        let read = scan(&newer);
        assert_eq!((read.frames.len(), read.tail, read.frames[0].needs), (1, Tail::Clean, 2));
        for at in 0..newer.len() - 1 {
            let mut changed = newer.clone();
            changed[at] ^= 1;
            assert!(scan(&changed).frames.is_empty(), "byte {at}");
        }
    }

    #[test]
    fn what_is_unknown_and_not_marked_is_neither_read_nor_cut_off() {
        for members in [
            serde_json::json!({"weather": 1}),
            serde_json::json!({"needs": 1}),
            serde_json::json!({"needs": 1, "weather": 1}),
            serde_json::json!({"needs": "2"}),
        ] {
            assert_eq!(summary(&with(&members)), (0, Tail::UnknownVersion), "{members}");
        }
    }

    proptest! {
        #[test]
        fn reading_any_bytes_ends_without_a_panic(bytes: Vec<u8>) {
            prop_assert_eq!(scan(&bytes).end(), 0);
        }
    }
}
