//! Processes that evaluate what could take a process down: full templates, jq, JSONPath and
//! patterns.
//!
//! An expression can ask for more memory or time than there is, and some engines then abort
//! the process that they run in. So they run in processes of their own, each with an empty
//! environment, little memory, few open files and no network. A process that dies fails the
//! job that it had, and nothing else.
//!
//! In reading order: what is asked for ([`Job`]), who asks ([`Pool`]), who answers
//! ([`child`]), and how a failure is told ([`Error`]).

pub mod child;
mod error;
mod frame;
mod job;
mod pool;
mod process;

pub use error::{Code, Error};
pub use job::Job;
pub use pool::{Pool, Settings};

/// The name under which the program is a worker.
pub const NAME: &str = "cairn-worker";
