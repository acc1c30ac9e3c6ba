//! Which guided run somebody means who has no token.
//!
//! Matches are layers, not scores: a run that is named comes before any found by its commit,
//! that before any found by its branch, and so on. Within a layer what is not over comes
//! first, and then what moved last.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use unicode_normalization::UnicodeNormalization as _;

use crate::guided::label::label;
use crate::id::{EventIndex, NodeId, RunId, SessionId};
use crate::text::{TRUNCATED, truncate};

/// How many runs are offered.
pub const CANDIDATES_MAX: usize = 5;

/// How long a snippet may be, in bytes of UTF-8.
pub const SNIPPET_MAX: usize = 2048;

/// How much of the earlier notes is searched, in bytes of their words.
pub const WORDS_MAX: usize = 8 << 10;

/// How many characters of a session's id name it, beside the prefix of every id.
const ID_MIN: usize = 6;

/// What is known of the run that is meant.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Query {
    /// The commit that is checked out.
    pub git_head_sha: Option<String>,
    /// The branch that is checked out, or the beginning of its name.
    pub git_branch: Option<String>,
    /// Words to look for.
    pub text: Option<String>,
}

/// A run that may be meant, at its preferred tip.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Candidate {
    /// The run's log.
    pub session: SessionId,
    /// The run.
    pub run: RunId,
    /// Its preferred tip.
    pub tip: NodeId,
    /// Whether it is over.
    pub finished: bool,
    /// When it last moved, in milliseconds since 1970.
    pub last_ms: u64,
    /// The last event on the way to the tip. It tells runs of one session apart; logs of two
    /// sessions are of different lengths for other reasons.
    pub last_activity: EventIndex,
    /// The commit that was last observed.
    pub git_head_sha: Option<String>,
    /// The branch that was last observed.
    pub git_branch: Option<String>,
    /// The notes that hold at the tip.
    pub notes: Option<String>,
    /// The words of the notes on the way to the tip, those of the latest first, with a space
    /// between them.
    pub words: String,
    /// The workflow's id.
    pub workflow_id: String,
    /// The workflow's name.
    pub workflow_name: Option<String>,
}

/// Why a run is offered; also the layers, best first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub enum WhyMatched {
    MatchedIdentifier,
    MatchedHeadSha,
    MatchedBranch,
    MatchedNotes,
    MatchedWorkflowId,
    MatchedEarlierNotes,
    RecencyFallback,
}

impl WhyMatched {
    /// The name that people and clients see.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::MatchedIdentifier => "matched_identifier",
            Self::MatchedHeadSha => "matched_head_sha",
            Self::MatchedBranch => "matched_branch",
            Self::MatchedNotes => "matched_notes",
            Self::MatchedWorkflowId => "matched_workflow_id",
            Self::MatchedEarlierNotes => "matched_earlier_notes",
            Self::RecencyFallback => "recency_fallback",
        }
    }
}

/// A run that is offered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Offer {
    /// The run.
    pub candidate: Candidate,
    /// Why it is offered, the best reason first; never empty.
    pub why: Vec<WhyMatched>,
    /// The beginning of its notes.
    pub snippet: String,
}

/// The runs that are most likely meant, best first.
#[must_use]
pub fn rank(query: &Query, candidates: impl IntoIterator<Item = Candidate>) -> Vec<Offer> {
    let words = query.text.as_deref().map(tokens).unwrap_or_default();
    let mut offers: Vec<Offer> = candidates
        .into_iter()
        .map(|candidate| Offer {
            why: why(query, &words, &candidate),
            snippet: truncate(candidate.notes.as_deref().unwrap_or_default(), SNIPPET_MAX),
            candidate,
        })
        .collect();
    offers.sort_by_key(|offer| {
        let of = &offer.candidate;
        // Ids compare as their texts do.
        let latest = Reverse((of.last_ms, of.last_activity));
        (offer.why.first().copied(), of.finished, latest, of.session, of.run)
    });
    offers.truncate(CANDIDATES_MAX);
    offers
}

fn why(query: &Query, words: &BTreeSet<String>, candidate: &Candidate) -> Vec<WhyMatched> {
    let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let sha = given(&query.git_head_sha);
    let branch = given(&query.git_branch);
    let has_words = |text: &str| !words.is_empty() && words.is_subset(&tokens(text));
    let notes = candidate.notes.as_deref().unwrap_or_default();
    let name = candidate.workflow_name.as_deref().unwrap_or_default();
    let in_notes = has_words(uncut(notes));
    let tests = [
        (WhyMatched::MatchedIdentifier, words.iter().any(|word| is_name(word, candidate))),
        (WhyMatched::MatchedHeadSha, sha.is_some() && sha == candidate.git_head_sha),
        (
            WhyMatched::MatchedBranch,
            branch.zip(candidate.git_branch.as_ref()).is_some_and(|(q, c)| c.starts_with(&q)),
        ),
        (WhyMatched::MatchedNotes, in_notes),
        (WhyMatched::MatchedWorkflowId, has_words(&format!("{} {name}", candidate.workflow_id))),
        (WhyMatched::MatchedEarlierNotes, !in_notes && has_all(words, &candidate.words)),
    ];
    let matched: Vec<_> =
        tests.into_iter().filter(|(_, holds)| *holds).map(|(why, _)| why).collect();
    if matched.is_empty() { vec![WhyMatched::RecencyFallback] } else { matched }
}

fn has_all(words: &BTreeSet<String>, text: &str) -> bool {
    !words.is_empty() && words.iter().all(|word| text.split(' ').any(|known| known == word))
}

fn uncut(notes: &str) -> &str {
    notes.strip_suffix(TRUNCATED).unwrap_or(notes)
}

/// The words of notes, latest first, each once, as many as may be searched.
#[must_use]
pub fn searchable<'n>(latest_first: impl IntoIterator<Item = &'n str>) -> String {
    let (mut seen, mut words) = (BTreeSet::new(), String::new());
    for word in latest_first.into_iter().flat_map(|notes| tokens(uncut(notes))) {
        if words.len() + word.len() >= WORDS_MAX {
            break;
        }
        if seen.insert(word.clone()) {
            words.push_str(&word);
            words.push(' ');
        }
    }
    words
}

/// Whether a word is the session, the run or its label, or a session's id cut short.
fn is_name(word: &str, candidate: &Candidate) -> bool {
    let session = candidate.session.to_string();
    let short = word.len() >= SessionId::PREFIX.len() + 1 + ID_MIN && session.starts_with(word);
    let label = label(&candidate.workflow_id, candidate.run);
    short || word == candidate.run.to_string() || word == label.as_str()
}

/// The words of a text: NFKC, lower case, then runs of `a-z`, `0-9`, `_` and `-`.
#[must_use]
pub fn tokens(text: &str) -> BTreeSet<String> {
    let normal = text.nfkc().collect::<String>().to_lowercase();
    normal
        .split(|c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-')))
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}
