//! The MCP door: an agent in any client is led through a workflow.
//!
//! A call passes the same stations in the same order: its arguments are checked against the
//! schema that the client was shown, the engine is asked, and the answer is told twice, as
//! text that an agent can follow and as data. Nothing here decides anything about runs.
//!
//! In reading order: `tools` (every tool, one file each), `door` (guided run or automation),
//! `handler` (what the protocol asks
//! for), `render` (what agents read), and the two ways in: [`serve_stdio`] and [`http`].

mod advice;
mod door;
mod handler;
mod http;
mod message;
mod reach;
mod reference;
mod render;
mod stdio;
mod tools;

pub use door::Door;
pub use http::http;
pub use reach::Reach;
pub use reference::reference;
pub use stdio::{serve_stdio, serve_streams};

/// Which tools there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ToolSet {
    /// Whether sessions can be begun without a run.
    pub start_session: bool,
}
