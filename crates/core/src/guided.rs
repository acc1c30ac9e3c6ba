//! How a guided run goes on: a pure function of its plan, its state and what was said.
//!
//! In reading order: conditions over the context ([`condition`]), which step comes next
//! ([`walk`]), what the agent is shown ([`render`]), what is made of its answer
//! ([`judge`]), and which events follow ([`decide`]).

pub mod condition;
pub mod decide;
pub mod judge;
pub mod keys;
pub mod label;
pub mod performed;
pub mod probe;
pub mod render;
pub mod scene;
pub mod walk;
