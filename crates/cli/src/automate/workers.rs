//! The worker processes, for whoever has something to be evaluated.

use async_trait::async_trait;
use cairn_core::flow::Fault;
use cairn_core::plan::FailureKind;
use cairn_engine::{flow, performer};
use cairn_worker::{Code, Error, Job, Pool, Settings};
use serde_json::{Map, Value};

/// The worker processes. None is started before there is something to do.
pub(crate) struct Workers(Pool);

impl Workers {
    pub(crate) fn new() -> Self {
        Self(Pool::new(Settings::of_this_program()))
    }

    async fn run(&self, job: Job) -> Result<Value, performer::Failed> {
        let failed = |Error { code, message }: Error| {
            let kind = kind(code);
            performer::Failed { kind, ..performer::Failed::new(code.name(), message) }
        };
        self.0.run(&job).await.map_err(failed)
    }
}

/// Whether another try may help: only when too much is going on.
const fn kind(code: Code) -> FailureKind {
    match code {
        Code::Busy => FailureKind::RateLimited,
        _ => FailureKind::Permanent,
    }
}

#[async_trait]
impl flow::Evaluator for Workers {
    async fn evaluate(
        &self,
        source: &Value,
        is_expression: bool,
        context: Map<String, Value>,
    ) -> Result<Value, Fault> {
        let job = Job::Settings { source: source.clone(), is_expression, context };
        self.0.run(&job).await.map_err(|Error { code, message }| Fault {
            kind: kind(code),
            ..Fault::new(code.name(), message)
        })
    }
}

#[async_trait]
impl performer::Evaluator for Workers {
    async fn jq(&self, expression: &str, input: Value) -> Result<Value, performer::Failed> {
        self.run(Job::Jq { program: expression.to_owned(), input }).await
    }

    async fn jsonpath(&self, expression: &str, input: Value) -> Result<Value, performer::Failed> {
        self.run(Job::JsonPath { path: expression.to_owned(), input }).await
    }

    async fn template(&self, template: &str, input: Value) -> Result<Value, performer::Failed> {
        let context = match input {
            Value::Object(members) => members,
            other => Map::from_iter([("input".to_owned(), other)]),
        };
        let source = Value::from(template);
        self.run(Job::Settings { source, is_expression: false, context }).await
    }
}
