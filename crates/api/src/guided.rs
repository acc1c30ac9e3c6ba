//! Guided runs on the wire: what an agent sends, and what it gets.
//!
//! Field comments are what agents read in the tools' schemas, so they are written for them.

pub mod answer;
pub mod request;
pub mod workflow;
