//! Where what was decided may be recorded in parts. A commit has a bound, and a crash between
//! two of them must leave a run that can go on.

use crate::event::{EventData, NewEvent};
use crate::instance::StepInstanceKey;

/// How many of these events are recorded together: at most so many, unless they cannot be
/// parted there.
#[must_use]
pub fn part(events: &[NewEvent], max: usize) -> usize {
    let may_part = |at: &usize| match (events.get(at - 1), events.get(*at)) {
        (Some(earlier), Some(later)) => is_boundary(earlier, later),
        _ => true,
    };
    let (less, more) = ((1..=max.min(events.len())).rev(), max..=events.len());
    less.chain(more).find(may_part).unwrap_or(events.len())
}

/// Whether a run can go on when only the earlier of two events is recorded: they are of two
/// runs, or of two steps, each of which has what it needs.
fn is_boundary(earlier: &NewEvent, later: &NewEvent) -> bool {
    if earlier.scope.run() != later.scope.run() {
        return true;
    }
    match (about(&earlier.data), about(&later.data)) {
        (Some(one), Some(other)) => one != other,
        _ => false,
    }
}

/// The step that something is recorded of.
const fn about(data: &EventData) -> Option<&StepInstanceKey> {
    match data {
        EventData::StepStarted(e) => Some(&e.instance),
        EventData::StepCompleted(e) => Some(&e.instance),
        EventData::StepFailed(e) => Some(&e.instance),
        EventData::StepSkipped(e) => Some(&e.instance),
        EventData::StepWaiting(e) => Some(&e.instance),
        EventData::StepInterrupted(e) => Some(&e.instance),
        EventData::StepResolved(e) => Some(&e.instance),
        EventData::LoopEntered(e) => Some(&e.instance),
        EventData::LoopExited(e) => Some(&e.instance),
        EventData::TimerSet(e) => e.instance.as_ref(),
        EventData::TaskOpened(e) => Some(&e.instance),
        EventData::ChildStarted(e) => Some(&e.instance),
        _ => None,
    }
}
