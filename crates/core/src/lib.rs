//! The pure core of Cairn: what a log can say, and what follows from it.
//!
//! Nothing here reads a file, a clock or a random number, and nothing is async: time,
//! ids and bytes come in as arguments, decisions go out as values.
//!
//! In reading order: names ([`id`], [`digest`], [`text`], [`instance`], [`hosts`]), canonical JSON
//! ([`canonical`]), the number of the format ([`format`]), what happened ([`event`], [`reason`]),
//! what is to happen ([`plan`]) and what it can do ([`capabilities`]), which kinds of step there are
//! ([`catalog`]), what a command may be given ([`command`]), what templates give ([`expression`]),
//! what a model's answer stands for ([`classify`]),
//! what follows from a log ([`projection`], [`snapshot`]), how a guided run goes on ([`guided`]), how
//! an engine-performed one does ([`flow`]), how a failure is told ([`error`]), and who changed what
//! ([`audit`]).

pub mod audit;
pub mod bundle;
pub mod canonical;
pub mod capabilities;
pub mod cas;
pub mod catalog;
pub mod classify;
pub mod command;
pub mod digest;
pub mod error;
pub mod event;
pub mod expression;
pub mod flow;
pub mod format;
pub mod guided;
pub mod hosts;
pub mod id;
pub mod instance;
pub mod journal;
pub mod keyring;
pub mod lineage;
pub mod manifest;
pub mod pattern;
pub mod pin;
pub mod plan;
pub mod projection;
pub mod reason;
pub mod schema;
pub mod snapshot;
pub mod text;
pub mod time;
pub mod token;
pub mod translate;
