//! How an engine of automations behaves, and what that says of a plan and of a session.

use std::time::Duration;

use cairn_core::flow::Limits;
use cairn_core::id::SessionId;
use cairn_core::plan::{Overflow, Plan, RateLimit, Retention};
use cairn_core::text::Slug;

use super::desk;
use super::retire::RETENTION;

/// How an engine of automations behaves.
#[derive(Clone, Debug)]
pub struct Options {
    /// How many steps are performed at once.
    pub steps_at_once: usize,
    /// How many steps of one workflow are performed at once.
    pub steps_at_once_per_workflow: usize,
    /// How many runs of one workflow are under way at once, unless it says so itself.
    pub runs_at_once: usize,
    /// How many runs of a workflow may begin within a minute, unless it says so itself.
    pub runs_per_minute: u32,
    /// How much a run may do.
    pub limits: Limits,
    /// How long a step may take that does not say so.
    pub step_timeout: Duration,
    /// From which size on a value is kept beside the log.
    pub inline_max: usize,
    /// How large a session may get before new runs go into another.
    pub session_max: u64,
    /// How old a session may get before new runs go into another.
    pub session_age_max: Duration,
    /// How long runs are kept whose workflow does not say so.
    pub retention: Retention,
    /// After how many days without a change a guided session is removed; never when nothing is
    /// said.
    pub guided_days: Option<u32>,
    /// After how many events of a run its state is stored, so that they need not be read again.
    pub snapshot_every: usize,
    /// How long an agent waits for its next step before it is told how the run goes.
    pub hand_patience: Duration,
    /// How long an agent has a run that it has claimed, after its last call.
    pub claim_lasts: Duration,
    /// Tells people of trouble that no caller hears of.
    pub trouble: fn(&str),
    /// Tells people of anything else that no caller hears of.
    pub news: fn(&str),
}

impl Default for Options {
    fn default() -> Self {
        Self {
            steps_at_once: 256,
            steps_at_once_per_workflow: 64,
            runs_at_once: 256,
            runs_per_minute: 60,
            limits: Limits::default(),
            step_timeout: Duration::from_secs(30),
            inline_max: 32 << 10,
            session_max: 64 << 20,
            session_age_max: Duration::from_secs(24 * 60 * 60),
            retention: RETENTION,
            guided_days: None,
            snapshot_every: 2_000,
            hand_patience: Duration::from_secs(20),
            claim_lasts: Duration::from_secs(15 * 60),
            trouble: |_| {},
            news: |_| {},
        }
    }
}

impl Options {
    /// How many runs of a plan may be under way at once.
    pub(super) fn at_once(&self, plan: &Plan) -> usize {
        let own = plan.policy.concurrency_max;
        own.map_or(self.runs_at_once, |max| usize::try_from(max).unwrap_or(usize::MAX))
    }

    /// How many runs of a plan may begin in a span of time.
    pub(super) fn rate(&self, plan: &Plan) -> RateLimit {
        let usual = RateLimit { per_ms: 60_000, runs_max: self.runs_per_minute };
        plan.policy.rate_limit.clone().unwrap_or(usual)
    }

    /// What a run of a plan waits for that a trigger asked for.
    pub(super) fn limits_of(&self, plan: &Plan, trigger: Option<&Slug>) -> desk::Limits {
        let waits = overflow(plan, trigger) == Some(Overflow::Queue);
        desk::Limits { most: self.at_once(plan), rate: waits.then(|| self.rate(plan)) }
    }

    /// Whether a session of so many bytes takes new runs: it is neither large nor old.
    pub(super) fn takes_more(&self, session: SessionId, bytes: u64, now_ms: u64) -> bool {
        bytes < self.session_max && self.is_young(session, now_ms)
    }

    /// Whether a session is not old.
    pub(super) fn is_young(&self, session: SessionId, now_ms: u64) -> bool {
        let age_ms = now_ms.saturating_sub(session.minted_ms());
        u128::from(age_ms) < self.session_age_max.as_millis()
    }
}

/// What becomes of a firing of a trigger over a limit, when the trigger says so.
pub(super) fn overflow(plan: &Plan, trigger: Option<&Slug>) -> Option<Overflow> {
    plan.triggers.iter().find(|known| Some(&known.id) == trigger)?.overflow
}
