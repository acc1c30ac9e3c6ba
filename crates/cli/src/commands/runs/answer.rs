//! `cairn runs answer`: answers a question that a run asks.

use cairn_api::Exit;
use cairn_api::error::{Error, Result};
use cairn_api::run::{Shown, Task, TaskFor};
use cairn_core::flow::{Answer, Verdict};
use cairn_core::id::TaskId;
use cairn_engine::flow::Automations;
use serde_json::{Map, Value, json};

use super::RunArg;
use crate::commands::guide::fact;
use crate::config::Config;
use crate::somebody;

/// Answer a question that a run asks
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  cairn runs answer run_01hf7yat --approve\n  cairn runs answer run_01hf7yat task_01hf7yat --reject --set why='too early'"
)]
#[command(group = clap::ArgGroup::new("verdict").required(true).args(["approve", "reject"]))]
pub(crate) struct Args {
    #[command(flatten)]
    run: RunArg,

    /// Question; may be left out when the run asks only one
    #[arg(value_name = "TASK")]
    task: Option<TaskId>,

    /// Say yes
    #[arg(long)]
    approve: bool,

    /// Say no
    #[arg(long)]
    reject: bool,

    /// Fill in a field of the form; a value that is JSON is taken as such
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,

    /// Answer in this name [default: the user's]
    #[arg(long, value_name = "NAME")]
    by: Option<String>,
}

pub(crate) async fn run(args: &Args, engine: &Automations, config: &Config) -> Result<Exit> {
    let run = args.run.find(engine).await?;
    let task = match args.task {
        Some(task) => task,
        None => {
            let past = engine.past(run).await?;
            let tasks = Shown::from(&past).tasks;
            let (open, handed): (Vec<Task>, Vec<Task>) =
                tasks.into_iter().partition(|task| task.waiting_for == TaskFor::Person);
            if let (Some(task), true) = (handed.first(), open.is_empty()) {
                return Err(Error::Usage {
                    message: format!("`{}` waits for an agent, not for an answer", task.step),
                    suggestion: format!("do it yourself with `cairn guide --continue {run}`"),
                });
            }
            if open.is_empty() {
                return Err(Error::Usage {
                    message: "the run asks nothing, or nothing any more".to_owned(),
                    suggestion: format!("see what became of it with `cairn runs show {run}`"),
                });
            }
            let [task] = open.as_slice() else {
                return Err(Error::Usage {
                    message: format!("the run asks {} questions", open.len()),
                    suggestion: format!("see them with `cairn runs show {run}`"),
                });
            };
            task.task_id
        }
    };
    let values = args.set.iter().map(|set| fact(set)).collect::<Result<Map<_, _>>>()?;
    let verdict = if args.approve { Verdict::Approved } else { Verdict::Rejected };
    let mut by = somebody::by();
    by.name = args.by.clone().unwrap_or(by.name);
    let name = by.name.clone();
    let answer = Answer { verdict, values: Value::Object(values) };
    engine.answer(run, task, by, answer).await?;
    if config.output.json {
        config.output.object(&json!({"runId": run, "taskId": task, "verdict": verdict.case()}))?;
    } else {
        config.output.line(&format!("{} by {name}", verdict.case()))?;
        if engine.is_here(run).await? {
            config.output.remark(&format!("go on with `cairn runs resume {run}`"));
        }
    }
    Ok(Exit::Success)
}
