//! Which guided run somebody means who has no token.
//!
//! Matches are layers, not scores: a run that is named comes before any found by its commit,
//! that before any found by its branch, and so on. Among runs found by words, those that have
//! the words next to each other, as they were asked for, in their goal or in one note come
//! first, then those that have all of them in one field, then those that have them in several
//! fields together. Within a layer what is not over comes first, and then what moved last.
//!
//! [`rank`] is a function of its candidates alone. Whoever finds them may leave out those that
//! no word of the query is in, as long as the latest runs are there to fall back on.

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

/// How much of a run's texts is searched, in bytes of their words.
pub const WORDS_MAX: usize = 16 << 10;

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

/// A run that may be meant, at its preferred tip, or another branch of one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Candidate {
    /// The run's log.
    pub session: SessionId,
    /// The run.
    pub run: RunId,
    /// Its preferred tip, or the end of the branch.
    pub tip: NodeId,
    /// Whether it is another branch than the preferred one. It is offered when words are found in
    /// what it alone holds, or when it is not over and the preferred one is.
    pub branch: bool,
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
    /// What the run is for.
    pub goal: Option<String>,
    /// The notes that hold at the tip.
    pub notes: Option<String>,
    /// The words of each text on the way to the tip, in order, with a space between them: notes,
    /// those of blocked attempts too, the latest first.
    pub texts: Vec<String>,
    /// The words of the context that holds at the tip; of a branch, of what it alone holds.
    pub context: Vec<String>,
    /// The workflow's id.
    pub workflow_id: String,
    /// The workflow's name.
    pub workflow_name: Option<String>,
}

impl Query {
    /// The words to look for, in their order.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        let text = spaced(self.text.as_deref().unwrap_or_default());
        text.split_ascii_whitespace().map(str::to_owned).collect()
    }
}

impl Candidate {
    /// What it is called, beside the id of its session.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let label = label(&self.workflow_id, self.run);
        vec![self.run.to_string(), label.as_str().to_owned()]
    }

    /// The words of everything that is searched, text by text.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        let name = self.workflow_name.as_deref().unwrap_or_default();
        let own = [
            spaced(self.goal.as_deref().unwrap_or_default()),
            spaced(uncut(self.notes.as_deref().unwrap_or_default())),
            spaced(&format!("{} {name}", self.workflow_id)),
        ];
        own.into_iter().chain(self.texts.iter().chain(&self.context).cloned()).collect()
    }
}

/// Why a run is offered; also the layers, best first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub enum WhyMatched {
    MatchedIdentifier,
    MatchedHeadSha,
    MatchedBranch,
    MatchedGoal,
    MatchedNotes,
    MatchedWorkflowId,
    MatchedEarlierNotes,
    MatchedContext,
    MatchedTogether,
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
            Self::MatchedGoal => "matched_goal",
            Self::MatchedNotes => "matched_notes",
            Self::MatchedWorkflowId => "matched_workflow_id",
            Self::MatchedEarlierNotes => "matched_earlier_notes",
            Self::MatchedContext => "matched_context",
            Self::MatchedTogether => "matched_together",
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

/// The runs that are offered, and how many more would be.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Ranked {
    /// The likeliest, best first.
    pub offers: Vec<Offer>,
    /// How many more there are of the kind that is offered, as far as they are known.
    pub more: usize,
}

/// The runs that are most likely meant, best first. Where some match the words, those that do not
/// match are left out. Another branch of a run is offered when words are found in what it alone holds, or when
/// it is not over and the run's newest branch is.
#[must_use]
pub fn rank(query: &Query, candidates: impl IntoIterator<Item = Candidate>) -> Ranked {
    let asked = Asked::new(query);
    let candidates: Vec<Candidate> = candidates.into_iter().collect();
    let over: BTreeSet<(SessionId, RunId)> = candidates
        .iter()
        .filter(|of| !of.branch && of.finished)
        .map(|of| (of.session, of.run))
        .collect();
    let mut offers: Vec<(Closeness, Offer)> = candidates
        .into_iter()
        .map(|candidate| {
            let why = asked.why(&candidate);
            let snippet = truncate(candidate.notes.as_deref().unwrap_or_default(), SNIPPET_MAX);
            (asked.closeness(&why, &candidate), Offer { why, snippet, candidate })
        })
        .filter(|(_, offer)| {
            let of = &offer.candidate;
            let is_left = !of.finished && over.contains(&(of.session, of.run));
            !of.branch || is_left || offer.why.iter().any(|why| why.is_words())
        })
        .collect();
    let is_match = |offer: &Offer| offer.why.first() != Some(&WhyMatched::RecencyFallback);
    if !asked.words.is_empty() && offers.iter().any(|(_, offer)| is_match(offer)) {
        offers.retain(|(_, offer)| is_match(offer));
    }
    offers.sort_by_key(|(closeness, offer)| {
        let of = &offer.candidate;
        // Ids compare as their texts do.
        let latest = Reverse((of.last_ms, of.last_activity));
        (*closeness, offer.why.first().copied(), of.finished, latest, of.session, of.run, of.tip)
    });
    let more = offers.len().saturating_sub(CANDIDATES_MAX);
    offers.truncate(CANDIDATES_MAX);
    Ranked { offers: offers.into_iter().map(|(_, offer)| offer).collect(), more }
}

/// How close a run is to what was asked for, before its layer counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Closeness {
    /// It is named, or stands at the commit or branch.
    Place,
    /// The words stand next to each other in one text.
    Phrase,
    /// The words are in one text.
    Together,
    /// Anything else.
    Other,
}

impl WhyMatched {
    /// Whether words in texts of the run led to it.
    const fn is_words(self) -> bool {
        matches!(self, Self::MatchedNotes | Self::MatchedEarlierNotes | Self::MatchedContext)
    }
}

/// A query, read once.
struct Asked<'q> {
    query: &'q Query,
    /// The words in the order in which they were asked for, with a space around each.
    phrase: String,
    words: BTreeSet<String>,
}

impl<'q> Asked<'q> {
    fn new(query: &'q Query) -> Self {
        let text = query.text.as_deref().unwrap_or_default();
        Self { query, phrase: spaced(text), words: tokens(text) }
    }

    fn why(&self, candidate: &Candidate) -> Vec<WhyMatched> {
        let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        let sha = given(&self.query.git_head_sha);
        let branch = given(&self.query.git_branch);
        let notes = spaced(uncut(candidate.notes.as_deref().unwrap_or_default()));
        let name = candidate.workflow_name.as_deref().unwrap_or_default();
        let goal = spaced(candidate.goal.as_deref().unwrap_or_default());
        let in_notes = self.all_in([notes.as_str()]);
        let id = spaced(&format!("{} {name}", candidate.workflow_id));
        let texts = |of: &[String]| self.all_in(of.iter().map(String::as_str));
        let mut tests = vec![
            (WhyMatched::MatchedIdentifier, self.words.iter().any(|word| is_name(word, candidate))),
            (WhyMatched::MatchedHeadSha, sha.is_some() && sha == candidate.git_head_sha),
            (
                WhyMatched::MatchedBranch,
                branch.zip(candidate.git_branch.as_ref()).is_some_and(|(q, c)| c.starts_with(&q)),
            ),
            (WhyMatched::MatchedGoal, self.all_in([goal.as_str()])),
            (WhyMatched::MatchedNotes, in_notes),
            (WhyMatched::MatchedWorkflowId, self.all_in([id.as_str()])),
            (WhyMatched::MatchedEarlierNotes, !in_notes && texts(&candidate.texts)),
            (WhyMatched::MatchedContext, texts(&candidate.context)),
        ];
        // Only where no field has all of them: what is told is the best reason there is.
        if !tests.iter().any(|(why, holds)| *holds && *why >= WhyMatched::MatchedGoal) {
            let together = texts(&candidate.words());
            tests.push((WhyMatched::MatchedTogether, together));
        }
        let matched: Vec<_> =
            tests.into_iter().filter(|(_, holds)| *holds).map(|(why, _)| why).collect();
        if matched.is_empty() { vec![WhyMatched::RecencyFallback] } else { matched }
    }

    fn closeness(&self, why: &[WhyMatched], candidate: &Candidate) -> Closeness {
        if why.first().is_some_and(|first| *first <= WhyMatched::MatchedBranch) {
            return Closeness::Place;
        }
        if self.words.is_empty() {
            return Closeness::Other;
        }
        let goal = spaced(candidate.goal.as_deref().unwrap_or_default());
        let notes = spaced(uncut(candidate.notes.as_deref().unwrap_or_default()));
        let own = [goal.as_str(), notes.as_str()];
        let given = candidate.texts.iter().chain(&candidate.context).map(String::as_str);
        let mut texts = own.into_iter().chain(given);
        match texts.clone().any(|text| text.contains(&self.phrase)) {
            true => Closeness::Phrase,
            false if texts.any(|text| self.all_in([text])) => Closeness::Together,
            false => Closeness::Other,
        }
    }

    /// Whether every word is in one of the texts.
    fn all_in<'t>(&self, texts: impl IntoIterator<Item = &'t str> + Clone) -> bool {
        let is_in = |word: &String| {
            let word = format!(" {word} ");
            texts.clone().into_iter().any(|text| text.contains(&word))
        };
        !self.words.is_empty() && self.words.iter().all(is_in)
    }
}

fn uncut(notes: &str) -> &str {
    notes.strip_suffix(TRUNCATED).unwrap_or(notes)
}

/// The words of each text, as much of the first ones as may be searched.
#[must_use]
pub fn searchable<'n>(texts: impl IntoIterator<Item = &'n str>) -> Vec<String> {
    let (mut found, mut room) = (Vec::new(), WORDS_MAX);
    for text in texts {
        let mut words = spaced(uncut(text));
        if words.len() > room {
            // Whole words: what was cut in two would be found by its halves.
            let end = words.get(..room).and_then(|kept| kept.rfind(' ')).unwrap_or_default();
            words.truncate(end + 1);
        }
        room = room.saturating_sub(words.len());
        if words.len() > 1 {
            found.push(words);
        }
        if room == 0 {
            break;
        }
    }
    found
}

/// Whether a word is the session, the run or its label, or a session's id cut short.
fn is_name(word: &str, candidate: &Candidate) -> bool {
    let session = candidate.session.to_string();
    let short = word.len() >= SessionId::PREFIX.len() + 1 + ID_MIN && session.starts_with(word);
    short || candidate.names().iter().any(|name| name == word)
}

/// The words of a text: NFKC, lower case, then runs of `a-z`, `0-9`, `_` and `-`.
#[must_use]
pub fn tokens(text: &str) -> BTreeSet<String> {
    spaced(text).split_ascii_whitespace().map(str::to_owned).collect()
}

/// The words of a text in their order, each with a space on both sides.
fn spaced(text: &str) -> String {
    let normal = text.nfkc().collect::<String>().to_lowercase();
    let mut words = String::from(" ");
    let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-');
    for word in normal.split(|c| !is_word(c)).filter(|word| !word.is_empty()) {
        words.push_str(word);
        words.push(' ');
    }
    words
}
