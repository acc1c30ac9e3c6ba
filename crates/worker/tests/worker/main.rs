//! Worker processes: what they answer, and what they survive.

mod bad;
mod good;
mod pool;

use std::time::Duration;

use cairn_worker::{Error, Job, Pool, Settings};
use serde_json::Value;

fn settings() -> Settings {
    Settings {
        program: env!("CARGO_BIN_EXE_cairn-worker").into(),
        workers_max: 2,
        waiting_max: 64,
        time_max: Duration::from_secs(20),
        idle: Duration::from_secs(60),
    }
}

fn jq(program: &str, input: Value) -> Job {
    Job::Jq { program: program.to_owned(), input }
}

fn template(text: &str, context: Value) -> Job {
    let context = match context {
        Value::Object(context) => context,
        _ => panic!("a context is an object"),
    };
    Job::Settings { source: Value::from(text), is_expression: false, context }
}

/// An answer in one line.
fn shown(answer: Result<Value, Error>) -> String {
    match answer {
        Ok(value) => value.to_string(),
        Err(error) => format!("{}: {error}", error.code.name()),
    }
}
