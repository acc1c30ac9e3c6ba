//! The guided runs of all sessions, for whoever looks for one by its words.

use async_trait::async_trait;
use cairn_core::id::SessionId;

use super::{Mark, Place, Which};
use crate::error::Result;

/// What can be found: guided runs, as a list that follows from sessions and can be made from
/// them again. Losing it costs time only, so it may keep nothing at all.
#[async_trait]
pub trait Search: Send + Sync {
    /// Up to which place in the order of changes everything is in the list; none for a list that
    /// is being made.
    async fn place(&self) -> Result<Option<Place>>;

    /// Puts what sessions hold in the place of what they held, and nothing in the place of what
    /// is gone. Says whether all of it was kept: what somebody else has kept of a session since
    /// it was looked up stays.
    async fn keep(&self, found: Vec<Findable>, gone: Vec<SessionId>) -> Result<bool>;

    /// Says that everything up to a place is in the list, for somebody who has seen to all that
    /// moved since another. Changes nothing when that is not the list's place any more.
    async fn reach(&self, since: Option<&Place>, place: &Place) -> Result<()>;

    /// Gives the marks that sessions had when they were read; none for those that are to be read
    /// again in any case. A session has no workflow here.
    async fn marks(&self, which: &Which) -> Result<Vec<(SessionId, Option<Mark>)>>;

    /// Gives what was kept of runs that may be wanted: all that are named, stand at the commit or
    /// at the branch, or have all the words, and the latest. Where there are very many of a kind
    /// it gives the latest of them. It may give others, too.
    async fn find(&self, wanted: &Wanted) -> Result<Vec<(SessionId, String)>>;
}

/// What a session holds that can be found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Findable {
    /// The session.
    pub session: SessionId,
    /// The mark that it was known with.
    pub known: Option<Mark>,
    /// What its mark was; none when it is to be read again in any case.
    pub mark: Option<Mark>,
    /// Its guided runs.
    pub runs: Vec<FindableRun>,
}

/// A guided run that can be found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FindableRun {
    /// What it is called, beside the id of its session.
    pub names: Vec<String>,
    /// Whether it is over.
    pub is_over: bool,
    /// When it last moved, in milliseconds since 1970.
    pub last_ms: u64,
    /// The commit it stands at.
    pub commit: Option<String>,
    /// The branch it stands at.
    pub branch: Option<String>,
    /// Its texts, each as its words with a space between them.
    pub texts: Vec<String>,
    /// Whatever else is to be kept of it.
    pub value: String,
}

/// Which guided runs are wanted.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Wanted {
    /// Words, in their order. Each may also be a name, or the beginning of a session's id.
    pub words: Vec<String>,
    /// The commit.
    pub commit: Option<String>,
    /// The beginning of the branch's name.
    pub branch: Option<String>,
}
