//! The worker itself: limits what it may do, then answers jobs until nobody asks.

mod jinja;
mod jq;
mod json_path;
mod limits;
mod pattern;

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use cairn_core::expression::{prepare, prepare_expression};
use serde_json::{Map, Value, json};

use crate::error::{Code, Error};
use crate::frame;
use crate::job::Job;

/// How many bytes an answer may have.
const ANSWER_MAX: usize = 1 << 20;

/// Whether the program was started as a worker, by the name that it was started under.
#[must_use]
pub fn is_asked_for() -> bool {
    std::env::args_os().next().is_some_and(|name| name == crate::NAME)
}

/// Answers jobs from the input on the output, until the input ends.
#[must_use]
pub fn main() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        // Nobody reads an exit code beyond this; the pool sees that the process is gone.
        Err(_) => ExitCode::FAILURE,
    }
}

fn serve() -> io::Result<()> {
    limits::apply()?;
    let (mut input, mut output) = (io::stdin().lock(), io::stdout().lock());
    let apart = limits::leave_network();
    frame::write(&mut output, &json!({"apart": apart}))?;
    while let Some(message) = frame::read(&mut input)? {
        limits::start_job()?;
        let answer = match answer(message) {
            Ok(value) => json!({"value": value}),
            Err(error) => json!({"code": error.code.name(), "message": error.message}),
        };
        frame::write(&mut output, &answer)?;
    }
    Ok(())
}

fn answer(message: Value) -> Result<Value, Error> {
    let job = Job::from_json(message)
        .ok_or_else(|| Error::new(Code::Crash, "the worker does not know this job"))?;
    let value = catch_unwind(AssertUnwindSafe(|| perform(job))).unwrap_or_else(|panic| {
        let said = panic.downcast_ref::<&str>().copied().unwrap_or_default();
        let said = panic.downcast_ref::<String>().map_or(said, String::as_str);
        Err(match said.contains("capacity overflow") {
            true => Error::new(Code::Memory, "it takes more memory than an expression may have"),
            false => Error::new(Code::Crash, format!("the evaluator broke: {said}")),
        })
    })?;
    let bytes = serde_json::to_vec(&value).map_or(0, |bytes| bytes.len());
    if bytes > ANSWER_MAX {
        let message = format!("the value has {bytes} bytes; at most {ANSWER_MAX} may be");
        return Err(Error::new(Code::Memory, message));
    }
    Ok(value)
}

fn perform(job: Job) -> Result<Value, Error> {
    match job {
        Job::Settings { source, is_expression, context } => {
            settings(&source, is_expression, &context)
        }
        Job::Jq { program, input } => jq::run(&program, &input),
        Job::JsonPath { path, input } => json_path::run(&path, &input),
        Job::Regex { pattern, text } => pattern::run(&pattern, &text),
    }
}

fn settings(
    source: &Value,
    is_expression: bool,
    context: &Map<String, Value>,
) -> Result<Value, Error> {
    let prepared = match (is_expression, source) {
        (true, Value::String(text)) => prepare_expression(text)?,
        _ => prepare(source)?,
    };
    let mut failed = None;
    let value = prepared.evaluate_with(context, &mut |text, is_expression| {
        jinja::run(text, is_expression, context).map_err(|error| {
            let kind = match error.code {
                Code::Value(kind) => kind,
                _ => cairn_core::expression::ErrorKind::Worker,
            };
            let told = cairn_core::expression::Error::new(kind, error.message.clone());
            failed = Some(error.code);
            told
        })
    });
    value.map_err(|error| match failed {
        // The code is the engine's, the message says in which field it is.
        Some(code) => Error::new(code, error.message),
        None => error.into(),
    })
}
