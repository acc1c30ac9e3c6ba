//! What holds of all projections, and of those that a run's nodes are asked for.

mod guided;
mod laws;
mod play;

pub(crate) use play::play;
