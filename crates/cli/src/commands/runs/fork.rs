//! `cairn runs fork`: goes on from a step of a run, in a run of its own.

use std::collections::BTreeMap;

use cairn_api::Exit;
use cairn_api::error::Result;
use cairn_api::run::Forked;
use cairn_core::flow::Change;
use cairn_core::id::RunId;
use cairn_core::instance::StepInstanceKey;
use cairn_core::plan::{Action, Step};
use cairn_engine::flow::{Automations, ForkPoint, Forker};

use super::RunArg;
use crate::commands::guide::fact;
use crate::commands::run::{text_note, text_of};
use crate::config::Config;
use crate::output::{Output, Style};
use crate::somebody;

/// Go on from a step of a run, in a new run that keeps what came before
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  cairn runs fork run_01hf7yat --from notify --dry-run\n  cairn runs fork run_01hf7yat --from notify --set 'fetch={\"json\":[]}'\n  cairn runs fork run_01hf7yat --from each@2::fetch --on-new-plan"
)]
pub(crate) struct Args {
    #[command(flatten)]
    run: RunArg,

    /// Step to go on from, such as `notify` or `each@2::fetch`
    #[arg(long, value_name = "STEP")]
    from: StepInstanceKey,

    /// Change the output of an earlier step; a value that is JSON is taken as such
    #[arg(long, value_name = "STEP=OUTPUT")]
    set: Vec<String>,

    /// Follow the workflow as it is now, and not as it was
    #[arg(long)]
    on_new_plan: bool,

    /// Only show which steps would be done again
    #[arg(long)]
    dry_run: bool,
}

pub(crate) async fn run(args: &Args, config: &Config) -> Result<Exit> {
    let engine = super::engine(config)?;
    let run = args.run.find(&engine).await?;
    let changes = args.set.iter().map(|set| change(set)).collect::<Result<Vec<_>>>()?;
    // Few steps give a text, so one may be meant for something else.
    for text in changes.iter().zip(&args.set).filter_map(|(c, set)| text_of(set, &c.output)) {
        config.output.remark(&text_note(text));
    }
    let changed: Vec<String> = changes.iter().map(|change| change.instance.to_string()).collect();
    let (step, on_new_plan) = (args.from.clone(), args.on_new_plan);
    let from = ForkPoint { run, step, changes, on_new_plan };
    let asker = Forker::local(somebody::by());
    let preview = Forked::new(None, &engine.preview(&from, &asker).await?);
    let types = types(&engine, run).await;
    if args.dry_run {
        if config.output.json {
            config.output.object(&preview)?;
        } else {
            print(&preview, &changed, &types, &config.output);
        }
        return Ok(Exit::Success);
    }
    if !config.output.json {
        print(&preview, &changed, &types, &config.output);
    }
    let forked = async { Ok(Some(engine.fork(&from, &asker).await?.run)) };
    crate::commands::run::ask(&engine, forked, config).await
}

fn change(set: &str) -> Result<Change> {
    let (step, output) = fact(set)?;
    let instance = step.parse().map_err(|error: cairn_core::instance::InvalidInstance| {
        cairn_api::Error::Usage {
            message: error.to_string(),
            suggestion: "write --set STEP=OUTPUT".to_owned(),
        }
    })?;
    Ok(Change { instance, output })
}

/// Steps of the run by what they are.
async fn types(engine: &Automations, run: RunId) -> BTreeMap<String, String> {
    let hash = match engine.state(run).await {
        Ok((_, state)) => state.started.map(|started| started.workflow_hash),
        Err(_) => None,
    };
    // Without its plan a fork is shown all the same.
    let plan = match hash {
        Some(hash) => engine.plan(hash).await.ok(),
        None => None,
    };
    let typed = |step: &Step| match &step.action {
        Action::Typed { r#type, .. } => Some((step.id.to_string(), r#type.to_string())),
        _ => None,
    };
    plan.iter().flat_map(|plan| &plan.steps).filter_map(typed).collect()
}

fn print(preview: &Forked, changed: &[String], types: &BTreeMap<String, String>, output: &Output) {
    let kept = preview.kept.iter().filter(|step| !changed.contains(step));
    let by = somebody::by().name;
    let kept = kept.map(|step| match preview.vouched.contains(step) {
        true => format!("{step} (the decision counts as yours, {by})"),
        false => step.clone(),
    });
    let kept: Vec<String> = kept.collect();
    for (name, steps) in [("kept", kept.join(", ")), ("changed", changed.join(", "))] {
        if !steps.is_empty() {
            output.remark(&format!("{name}: {steps}"));
        }
    }
    for again in &preview.again {
        let id = again.step.rsplit("::").next().unwrap_or(&again.step);
        let note = match types.get(id).map(String::as_str) {
            // A line in the history of the new run is nobody's second.
            Some("log") => "",
            Some("human") => "  is asked again",
            _ if again.has_effects => "  its effects may happen twice",
            _ => "",
        };
        output.remark(&format!("again: {}{}", again.step, output.paint(Style::Warning, note)));
    }
}
