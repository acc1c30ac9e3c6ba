//! Who works on a run that waits for an agent: one at a time.
//!
//! A claim belongs to a token, not to a name: two agents of one user are two. It is kept beside the
//! log, as leases are, since who works on a step is no part of what comes of it. Whoever was given
//! the step by the answer that led to it holds the run without a record of it: the log says when
//! that was.

use std::collections::BTreeMap;

use cairn_core::event::By;
use cairn_core::id::RunId;
use cairn_core::token::compact::Attempt;
use cairn_store::port::documents::Name;
use serde::{Deserialize, Serialize};

use super::{Hand, log};
use crate::error::{Error, Result};
use crate::flow::Past;
use crate::host::Host;
use crate::record::{Action, Deed};

/// Marks a claim that takes the place of one of the same principal. Tokens carry it once: those of
/// the answer are under the claim without it, so two chats do not take a run from each other with
/// every call.
const TAKES_OVER: u32 = 1 << 31;

static DOCUMENT: Name = Name::fixed("claims.json");

/// What tells the claims of a run apart; tokens carry it in the upper half of their attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ClaimId(u32);

impl ClaimId {
    /// Whoever was handed the step directly: the agent that started the run.
    pub(super) const STARTER: Self = Self(0);

    /// A claim for somebody who joins.
    pub(super) fn mint(host: &dyn Host) -> Result<Self> {
        let bits = u32::try_from(host.entropy()? & u128::from(u32::MAX)).unwrap_or_default();
        Ok(Self((bits & !TAKES_OVER).max(1)))
    }

    /// The same for somebody who comes back to a run of their own without its token.
    pub(super) const fn taking_over(self) -> Self {
        Self(self.0 | TAKES_OVER)
    }

    /// The claim that holds from then on, and whether it may take the place of another one.
    pub(super) const fn settled(self) -> (Self, bool) {
        (Self(self.0 & !TAKES_OVER), self.0 & TAKES_OVER != 0)
    }

    /// The claim that a token belongs to.
    pub(super) fn of(attempt: Attempt) -> Self {
        Self(u32::try_from(attempt.0 >> 32).unwrap_or_default())
    }

    /// The first try at a step under this claim.
    pub(super) fn first_try(self) -> Attempt {
        Attempt(u64::from(self.0) << 32)
    }
}

/// The try after one that was blocked, under the same claim.
pub(super) fn next_try(attempt: Attempt) -> Attempt {
    let low = u64::from(u32::MAX);
    Attempt((attempt.0 & !low) | (attempt.0.wrapping_add(1) & low))
}

/// Who holds a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Claimant {
    /// Who, for people.
    pub by: String,
    /// Until when, in milliseconds since 1970, unless they call again.
    pub until_ms: u64,
}

/// A claim as it is written down. One whose time is over says that the run is free.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Claim {
    by: String,
    claim: u32,
    until_ms: u64,
}

/// How long a claim lasts that is made now.
#[derive(Clone, Copy)]
struct Span {
    now_ms: u64,
    lasts_ms: u64,
}

impl Span {
    const fn ends_ms(self) -> u64 {
        self.now_ms.saturating_add(self.lasts_ms)
    }
}

type Claims = BTreeMap<RunId, Claim>;

impl Hand {
    fn span(&self) -> Span {
        let lasts_ms = u64::try_from(self.flow.options.claim_lasts.as_millis());
        Span { now_ms: self.flow.host.now_ms(), lasts_ms: lasts_ms.unwrap_or(u64::MAX) }
    }

    /// Claims a run for whoever has a token, or says who has it.
    pub(super) async fn hold(&self, past: &Past, claim: ClaimId, by: &By) -> Result<()> {
        self.flow.require_start_role(past.summary.run, by).await?;
        let (run, span) = (past.summary.run, self.span());
        let (claim, takes_over) = claim.settled();
        let hold = |bytes: Option<&[u8]>| {
            let mut all = read(bytes)?;
            if let Some((holder, who)) = holder(all.get(&run), past, span)
                && holder != claim
                && !(takes_over && who.by == by.name)
            {
                return Err(Error::Claimed { run, by: who.by, until_ms: who.until_ms });
            }
            if claim == ClaimId::STARTER {
                return Ok((None, ()));
            }
            let entry = Claim { by: by.name.clone(), claim: claim.0, until_ms: span.ends_ms() };
            Ok((Some(with(&mut all, run, entry, span)?), ()))
        };
        self.flow.store.documents.update(&DOCUMENT, hold).await
    }

    /// Claims a run for somebody who only asks where it stands. Who takes it over is on record
    /// first, as any other change of theirs; whoever has it already changes nothing.
    pub(super) async fn claim(&self, past: &Past, claim: ClaimId, by: &By) -> Result<()> {
        self.flow.require_start_role(past.summary.run, by).await?;
        let (run, workflow) = (past.summary.run, &past.summary.workflow);
        let found = self.flow.store.documents.read(&DOCUMENT).await?;
        let all = read(found.as_ref().map(|found| &*found.bytes))?;
        let is_free = holder(all.get(&run), past, self.span()).is_none();
        let (_, takes_over) = claim.settled();
        if (is_free || takes_over) && claim != ClaimId::STARTER {
            let deed = Deed::to_run(by.clone(), Action::ClaimRun, run, workflow);
            self.flow.record.note(deed).await?;
        }
        self.hold(past, claim, by).await
    }

    /// Who holds a run, if somebody does.
    pub(super) async fn claimant(&self, past: &Past) -> Result<Option<Claimant>> {
        let found = self.flow.store.documents.read(&DOCUMENT).await?;
        let all = read(found.as_ref().map(|found| &*found.bytes))?;
        Ok(holder(all.get(&past.summary.run), past, self.span()).map(|(_, who)| who))
    }

    /// Frees a run; gives who held it.
    pub(super) async fn release(&self, past: &Past, by: &By) -> Result<Option<Claimant>> {
        let (run, span) = (past.summary.run, self.span());
        let free = |bytes: Option<&[u8]>| {
            let mut all = read(bytes)?;
            let Some((_, who)) = holder(all.get(&run), past, span) else {
                return Ok((None, None));
            };
            let entry = Claim { by: by.name.clone(), claim: 0, until_ms: span.now_ms };
            Ok((Some(with(&mut all, run, entry, span)?), Some(who)))
        };
        self.flow.store.documents.update(&DOCUMENT, free).await
    }
}

/// Who holds a run at an instant, and under which claim.
fn holder(entry: Option<&Claim>, past: &Past, span: Span) -> Option<(ClaimId, Claimant)> {
    if let Some(claim) = entry.filter(|claim| span.now_ms < claim.until_ms) {
        let who = Claimant { by: claim.by.clone(), until_ms: claim.until_ms };
        return Some((ClaimId(claim.claim), who));
    }
    // A step that was opened after the last claim had ended was handed out by another answer.
    let handed_ms = log::handed_directly(&past.events)?;
    let until_ms = handed_ms.saturating_add(span.lasts_ms);
    let is_newer = entry.is_none_or(|claim| claim.until_ms < handed_ms);
    (is_newer && span.now_ms < until_ms)
        .then(|| (ClaimId::STARTER, Claimant { by: log::agent(&past.events), until_ms }))
}

/// The document with one more claim, without those that say nothing any more.
fn with(all: &mut Claims, run: RunId, entry: Claim, span: Span) -> Result<Vec<u8>> {
    all.retain(|_, claim| span.now_ms < claim.until_ms.saturating_add(span.lasts_ms));
    all.insert(run, entry);
    serde_json::to_vec(&*all).map_err(|error| Error::Broken(error.to_string()))
}

fn read(bytes: Option<&[u8]>) -> Result<Claims> {
    let Some(bytes) = bytes else { return Ok(Claims::default()) };
    let unreadable = |error| Error::Broken(format!("claims.json cannot be read: {error}"));
    serde_json::from_slice(bytes).map_err(unreadable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_try_stays_under_its_claim() {
        for claim in [ClaimId::STARTER, ClaimId(7), ClaimId(u32::MAX)] {
            let first = claim.first_try();
            let second = next_try(first);
            assert_ne!(first, second);
            assert_eq!(ClaimId::of(second), claim);
            assert_eq!(ClaimId::of(next_try(Attempt(first.0 | u64::from(u32::MAX)))), claim);
            let settled = claim.settled().0;
            assert_eq!(settled.taking_over().settled(), (settled, true));
            assert_eq!(settled.settled(), (settled, false));
        }
    }
}
