//! Every tool there is, and what a tool is.

use std::pin::Pin;
use std::sync::Arc;

use cairn_api::arguments;
use cairn_api::error::Result;
use cairn_api::schema::{self, Schema};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::{Door, ToolSet};

mod checkpoint_workflow;
mod continue_workflow;
mod inspect_workflow;
mod list_workflows;
mod resume_session;
mod start_session;
mod start_workflow;

/// Every tool of a set, in the order in which an agent comes to need them.
pub(crate) fn table(set: ToolSet) -> Vec<Entry> {
    let mut table = vec![
        entry::<list_workflows::ListWorkflows>(),
        entry::<inspect_workflow::InspectWorkflow>(),
        entry::<start_workflow::StartWorkflow>(),
        entry::<continue_workflow::ContinueWorkflow>(),
        entry::<checkpoint_workflow::CheckpointWorkflow>(),
        entry::<resume_session::ResumeSession>(),
    ];
    if set.start_session {
        table.push(entry::<start_session::StartSession>());
    }
    table
}

/// Something that an agent can call.
pub(crate) trait Tool {
    /// The name that agents call.
    const NAME: &'static str;
    /// The name for people.
    const TITLE: &'static str;
    /// What it is for and how it goes wrong, for agents.
    const DESCRIPTION: &'static str;
    /// What it does to the data.
    const EFFECT: Effect;
    /// Whether it performs steps. Those run commands, which can do anything.
    const PERFORMS: bool = false;
    /// What it takes.
    type Input: DeserializeOwned + JsonSchema + Send;
    /// What it answers.
    type Output: Serialize + JsonSchema;

    /// Parses, asks the engine and renders.
    fn call(
        door: &Door,
        input: Self::Input,
    ) -> impl Future<Output = Result<Reply<Self::Output>>> + Send;
}

/// What a tool does to the data of Cairn. No tool destroys any of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Effect {
    /// Nothing.
    Reads,
    /// Something, once: the same call again changes nothing more.
    WritesOnce,
    /// Something, each time.
    Writes,
}

/// An answer, told twice.
pub(crate) struct Reply<T> {
    pub(crate) data: T,
    /// What agents read, one content item each.
    pub(crate) texts: Vec<String>,
}

/// An answer of any tool.
pub(crate) type AnyReply = Result<Reply<Value>>;

/// A tool of any type.
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) description: &'static str,
    pub(crate) effect: Effect,
    pub(crate) performs: bool,
    pub(crate) input: Arc<Schema>,
    /// The whole schema of the answer; clients get its outline.
    pub(crate) output: Schema,
    call: Call,
}

type Call =
    fn(Door, Arc<Schema>, Map<String, Value>) -> Pin<Box<dyn Future<Output = AnyReply> + Send>>;

impl Entry {
    /// Calls the tool.
    pub(crate) fn call(
        &self,
        door: &Door,
        arguments: Map<String, Value>,
    ) -> Pin<Box<dyn Future<Output = AnyReply> + Send>> {
        (self.call)(door.clone(), Arc::clone(&self.input), arguments)
    }
}

/// Forgets the types of a tool. The only place that does.
fn entry<T: Tool>() -> Entry {
    Entry {
        name: T::NAME,
        title: T::TITLE,
        description: T::DESCRIPTION,
        effect: T::EFFECT,
        performs: T::PERFORMS,
        input: Arc::new(schema::of_request::<T::Input>()),
        output: schema::of_answer::<T::Output>(),
        call: |door, schema, arguments| {
            Box::pin(async move {
                let input = arguments::read(&schema, arguments)?;
                let reply = T::call(&door, input).await?;
                let data = serde_json::to_value(reply.data)
                    .map_err(|error| cairn_api::Error::Internal(error.to_string()))?;
                Ok(Reply { data, texts: reply.texts })
            })
        },
    }
}

#[cfg(test)]
mod tests;
