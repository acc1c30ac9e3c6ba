//! `cairn env check`: whether a run would find what it needs.

use cairn_api::Exit;
use cairn_api::env::{Checked, Fault};
use cairn_api::error::Result;
use cairn_engine::settings;

use super::Target;
use crate::config::Config;

/// Check whether a run would find all that it needs
///
/// Tells values that do not fit, settings and secrets that are missing, and values that nobody asks for. Ends with 3 when a run could not start.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  cairn env check triage\n  cairn env check triage --json")]
pub(crate) struct Args {
    /// The workflow: its id, the name part of it, or its file
    #[arg(value_name = "WORKFLOW", required_unless_present = "of")]
    workflow: Option<String>,
    /// The same, as other commands take it
    #[arg(
        long = "workflow",
        id = "of",
        value_name = "WORKFLOW",
        hide = true,
        conflicts_with = "workflow"
    )]
    of: Option<String>,
}

pub(crate) fn run(args: &Args, config: &Config) -> Result<Exit> {
    let workflow = super::workflow(args.workflow.as_deref().or(args.of.as_deref()))?;
    let target = Target::find(workflow, config)?;
    let settings = target.settings()?;
    let mut checked = Checked::of(&target.plan, &settings);
    if target.plan.env.iter().any(|field| field.secret)
        && let Err(error) = target.secrets_can_be_read()
    {
        let envelope = error.envelope();
        let (message, suggestion) = (envelope.message, envelope.suggestion);
        checked.faults.push(Fault { name: "master key".to_owned(), message, suggestion });
        checked.ready = false;
    }
    for fault in target.misfits(workflow)? {
        checked.faults.push(fault);
        checked.ready = false;
    }
    let exit = if checked.ready { Exit::Success } else { Exit::Invalid };
    let output = &config.output;
    if output.json {
        output.object(&checked)?;
        return Ok(exit);
    }
    for fault in &checked.faults {
        output.line(&format!("{}\n  → {}", fault.message, fault.suggestion))?;
    }
    for name in &checked.missing {
        let remedy = settings::remedy(&target.plan, workflow, name);
        output.line(&format!("`{name}` has no value, and a run needs it\n  → {remedy}"))?;
    }
    for name in &checked.unused {
        output.remark(&format!("`{name}` has a value, and the workflow does not ask for it"));
    }
    if checked.ready {
        output.line("a run would find all that it needs")?;
    }
    Ok(exit)
}
