//! How an engine-performed run goes through its plan.
//!
//! [`Graph`] is a plan made ready to be gone through, [`Run`] a run under way: its state,
//! which is a fold of its events, and the frontier, which follows from that state and the
//! graph. [`Run::decide`] says what a command means: events to record, and what the world
//! owes from then on. What it decides it has taken in already; whoever cannot record it
//! throws the run away and loads it again.
//!
//! A step is reached when an edge to it is taken. An edge is settled once: taken, or never to
//! be taken any more. That travels on along steps which nothing leads to, so that a merge
//! knows for which of its inputs it need not wait.

mod approvals;
mod begin;
mod command;
mod decide;
mod end;
mod fork;
mod frontier;
mod graph;
mod imported;
mod parts;
mod people;
mod scope;
mod settings;
mod turn;
mod visit;

pub use approvals::{Asker, unanswered};
pub use command::{
    Answer, Ask, Command, Effect, Fault, Limits, Moment, Outcome, Rejection, Verdict,
};
pub use decide::{Decision, Run};
pub use fork::{Begun, Change, Cut, Fork, NotThere, Repeated, begins, begun};
pub use graph::{Graph, Unfit};
pub use parts::part;
pub use scope::{ERROR, Hidden, Secrets};
