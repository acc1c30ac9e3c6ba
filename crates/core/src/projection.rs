//! What follows from a log: folds over its events, each pure, total and incremental.
//!
//! A projection takes one event at a time with `apply`, or all at once with `fold`, and
//! the two agree. Of guided runs: [`dag`], [`outputs`], [`gaps`], [`capabilities`],
//! [`preferences`], [`context`], [`status`], [`recap`]. Of engine-performed runs: [`run`].
//! Of both: [`timeline`], [`session`]. And [`resume`] ranks what may be gone on with.

pub mod capabilities;
pub mod context;
pub mod dag;
pub mod gaps;
pub mod outputs;
pub mod preferences;
pub mod recap;
pub mod resume;
pub mod run;
pub mod session;
pub mod status;
pub mod timeline;

#[cfg(test)]
mod tests;
