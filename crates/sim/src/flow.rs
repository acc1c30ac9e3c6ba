//! Random automations in a random world, held against a reference.
//!
//! A seed gives a graph, a world that performs it and a run under way in it: outcomes,
//! failures, answers and timers in any order, pauses, cancels and crashes. The real
//! interpreter decides; [`reference`] says what must come of each step, by asking backwards
//! through the plan.

mod author;
mod chance;
mod check;
mod deeds;
mod laws;
mod reference;
mod story;
mod types;
mod words;
mod world;

use std::collections::BTreeMap;
use std::fmt;

use cairn_core::event::engine::EndStatus;
use cairn_core::flow::Graph;
use cairn_lang::graph;
use cairn_lang::source::SourceTree;

use world::World;

/// What an interpreter must not do.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct Violation(String);

/// A world in which something went wrong.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Which.
    pub seed: u64,
    /// What.
    pub violation: Violation,
    /// The automation.
    pub text: String,
    /// What was recorded.
    pub log: String,
}

/// A world that came to its end.
#[derive(Clone, Debug)]
pub struct Played {
    /// How its run ended.
    pub status: EndStatus,
    /// How many events were recorded.
    pub events: usize,
    /// The automation.
    pub text: String,
    /// What was recorded, a line for each event.
    pub log: String,
}

/// Plays the world of a seed.
pub fn play(seed: u64) -> Result<Played, Box<Failure>> {
    let written = author::write(seed);
    let text = written.text.clone();
    let failure = |violation, log| {
        let text = text.clone();
        Box::new(Failure { seed, violation, text, log })
    };
    let graph = compile(&text).map_err(|violation| failure(violation, String::new()))?;
    let world = World::new(seed, graph, &written);
    let mut world = world.map_err(|violation| failure(violation, String::new()))?;
    let outcome = world.play().and_then(|()| check::check(&world));
    let log = story::told(&world.log);
    match (outcome, world.ended()) {
        (Ok(()), Some(status)) => {
            Ok(Played { status, events: world.log.len(), text: written.text, log })
        }
        (Ok(()), None) => Err(failure(Violation("the run is not over".to_owned()), log)),
        (Err(violation), _) => Err(failure(violation, log)),
    }
}

/// What is written must compile.
fn compile(text: &str) -> Result<Graph, Violation> {
    let path = "w/workflow.yaml";
    let files = BTreeMap::from([(path.to_owned(), text.as_bytes().to_vec())]);
    let kind = cairn_lang::ids::SourceKind::Project;
    let tree = SourceTree { kind, files, library: BTreeMap::new() };
    let catalog = types::all();
    let compiled = graph::compile(&tree, path, &catalog).map_err(|found| {
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        Violation(format!("it does not compile\n{}", found.join("\n")))
    })?;
    Graph::new(compiled.plan, &catalog).map_err(|unfit| Violation(unfit.to_string()))
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, violation, text, log } = self;
        write!(f, "seed {seed}: {violation}\n\n{text}\n{log}")
    }
}
