//! `shell`: runs a command and keeps what came of it.
//!
//! In a guided run a command that fails has an outcome like any other: its exit code. In an
//! automation that is a failure.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use cairn_core::catalog::schema::{
    any, closed, flag, one_of, shown, text, texts_by_name, told, whole,
};
use cairn_core::catalog::{Class, StepType, Takes};
use cairn_core::command::Sent;
use cairn_engine::performer::{Ctx, Failed, Outcome, Performer};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::process::arguments::{self, Given};
use crate::process::told::{Parse, outcome};
use crate::process::{Folder, Job, Keep, Options, STOP_MAX, Variables, run};
use crate::settings;

/// How much of each stream is kept in a guided run: its end, where programs say what went wrong.
const GUIDED_MAX: usize = 16 << 10;
/// How much each stream may be in an automation.
pub(crate) const STREAM_MAX: usize = 1 << 20;

pub(crate) struct Shell {
    pub(crate) options: Options,
}

#[derive(Deserialize)]
struct Input {
    /// The program and its arguments, or a line for `sh`.
    command: Command,
    /// Variables to set.
    #[serde(default)]
    env: BTreeMap<String, Value>,
    /// What the command reads.
    stdin: Option<Value>,
    parse_output: Option<Parse>,
    /// Whether whatever a run brings may be an argument.
    #[serde(default)]
    trusts_arguments: bool,
    /// What of the command and its input was sent.
    #[serde(default)]
    sent: Sent,
    /// Where, from the workspace. Only guided runs have it.
    cwd: Option<PathBuf>,
    /// How long it may take. Only guided runs have it: the engine times automations.
    #[serde(rename = "timeoutMs")]
    timeout_ms: Option<u64>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Command {
    Line(String),
    Words(Vec<Value>),
}

#[async_trait]
impl Performer for Shell {
    fn kind(&self) -> StepType {
        let input = closed(
            &json!({
                "command": told(json!({"type": ["string", "array"]}), "The program and its arguments; a text is a line for `sh -c`."),
                "env": told(texts_by_name(), "Variables to set. What changes how programs work, such as `PATH`, is denied."),
                "parse_output": told(one_of(&["json", "text"]), "With `json`, standard output must be JSON, and is there as `json` too."),
                "stdin": told(text(), "What the command reads."),
                "trusts_arguments": told(flag(), "Whether whatever a run brings may be an argument, options too."),
            }),
            &["command"],
        );
        let what = "Runs a command. It gets a folder with the workflow's files, its own variables and no others of the engine's; all that it started ends with it.";
        let example = json!({"command": ["bash", "nodes/check.sh"], "env": {"HOST": "{{ env.HOST }}"}, "parse_output": "json"});
        let input = shown(told(input, what), &example);
        StepType::new("shell", Class::Effectful, input, output_schema()).taking(&[
            ("command", Takes::Command),
            ("env.*", Takes::Secrets),
            ("stdin", Takes::Secrets),
        ])
    }

    async fn perform(&self, config: Value, ctx: &Ctx) -> Result<Outcome, Failed> {
        let input: Input = settings::read(config)?;
        let command = words(input.command)?;
        let guided = input.timeout_ms.is_some();
        let folder = match guided {
            true => Folder::within(input.cwd.as_deref(), ctx)?,
            false => Folder::open(ctx).await?,
        };
        let variables = match guided {
            true => Variables::inherited(ctx),
            false => Variables::safe(ctx, folder.path()),
        };
        let variables = variables.give(&input.env, &self.options.allow_env)?.into_list();
        let given = Given { ctx, sent: &input.sent, from: 0, trusts: input.trusts_arguments };
        arguments::check(&command, &given, &variables, folder.path())?;
        let begun = Instant::now();
        let job = Job {
            session: ctx.session,
            command: &command,
            variables,
            folder: folder.path(),
            opened: None,
            stdin: input.stdin.as_ref().map(plain).unwrap_or_default().into_bytes(),
            keep: if guided { Keep::End(GUIDED_MAX) } else { Keep::All(STREAM_MAX) },
            timeout: input.timeout_ms.map_or(ctx.timeout, Duration::from_millis),
            strict: !guided,
            watch: None,
        };
        let done = run(job, &self.options).await?;
        folder.require_small().await?;
        Ok(outcome(&done, &command, elapsed_ms(begun), input.parse_output))
    }

    fn needs_workspace(&self, _: &Value) -> bool {
        true
    }

    fn grace(&self) -> Duration {
        STOP_MAX
    }
}

/// What a process gives, as a schema.
pub(crate) fn output_schema() -> Value {
    closed(
        &json!({
            "duration_ms": told(whole(), "How long it took."),
            "exit_code": told(whole(), "Its exit code; none when it was ended."),
            "json": told(any(), "What it printed, read as JSON, when `parse_output` says so."),
            "ok": told(flag(), "Whether the exit code is 0."),
            "stderr": told(text(), "What it printed as errors."),
            "stdout": told(text(), "What it printed."),
            "timed_out": told(flag(), "Whether it was stopped when its time was over."),
            "truncated": told(flag(), "Whether it printed more than is kept."),
        }),
        &[],
    )
}

fn words(command: Command) -> Result<Vec<String>, Failed> {
    let words = match command {
        Command::Line(line) => vec!["sh".to_owned(), "-c".to_owned(), line],
        Command::Words(words) => words.iter().map(plain).collect(),
    };
    if words.first().is_none_or(String::is_empty) {
        return Err(Failed::new("SHELL_COMMAND", "there is no command"));
    }
    if words.iter().any(|word| word.contains('\0')) {
        return Err(Failed::new("SHELL_COMMAND", "an argument holds a NUL byte, which none can"));
    }
    Ok(words)
}

/// A value as a program reads it: text as it is, anything else as JSON.
pub(crate) fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

pub(crate) fn elapsed_ms(begun: Instant) -> u64 {
    u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX)
}
