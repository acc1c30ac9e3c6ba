//! The real store and interpreter in a simulated world. For development only; nothing
//! depends on it.
//!
//! A [`disk`] keeps apart what is durable and what is not yet; a [`fs`] is one process's
//! door to it, with the faults that are planned for it. From any moment [`crash`] makes
//! every disk that a power failure can leave, and [`world`] says whether the store is as
//! it must be on one: it knows the plans that were submitted and which were acknowledged,
//! and nothing of how the store works. The tests put these together: [`record`] keeps every
//! moment of a run, [`campaign`] crashes it at each, [`strike`] lets single calls fail, and
//! [`life`] plays a whole history by a seed. [`flow`] holds the interpreter of automations
//! against a reference, and [`engine`] runs the whole engine on a simulated machine.

pub mod campaign;
pub mod crash;
pub mod disk;
pub mod effect;
pub mod engine;
pub mod fault;
mod file;
pub mod flow;
pub mod fs;
pub mod image;
pub mod life;
pub mod random;
pub mod record;
pub mod strike;
pub mod world;
