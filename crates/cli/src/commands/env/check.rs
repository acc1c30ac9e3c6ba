//! `cairn env check`: whether a run would find what it needs.

use cairn_api::Exit;
use cairn_api::error::Result;
use serde_json::{Value, json};

use super::Target;
use crate::config::Config;

/// Check whether a run would find all that it needs
///
/// Tells values that do not fit, settings and secrets that are missing, and values that nobody asks for. Ends with 3 when a run could not start.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  cairn env check triage\n  cairn env check triage --json")]
pub(crate) struct Args {
    /// The workflow: its id, the name part of it, or its file
    #[arg(value_name = "WORKFLOW")]
    workflow: String,
}

pub(crate) fn run(args: &Args, config: &Config) -> Result<Exit> {
    let target = Target::find(&args.workflow, config)?;
    let settings = target.settings(config)?;
    let ready = settings.missing.is_empty() && settings.faults.is_empty();
    let exit = if ready { Exit::Success } else { Exit::Invalid };
    let output = &config.output;
    if output.json {
        let faults: Vec<Value> = settings
            .faults
            .iter()
            .map(|fault| json!({"name": fault.field, "message": fault.message, "suggestion": fault.hint}))
            .collect();
        output.object(&json!({
            "workflowId": target.plan.workflow_id, "ready": ready, "missing": settings.missing,
            "faults": faults, "unused": settings.unused,
        }))?;
        return Ok(exit);
    }
    for fault in &settings.faults {
        output.line(&format!("{}\n  → {}", fault.message, fault.hint))?;
    }
    for name in &settings.missing {
        let secret = target.plan.env.iter().any(|field| field.name == *name && field.secret);
        let command = if secret { "secret set --workflow" } else { "env set" };
        output.line(&format!(
            "`{name}` has no value, and a run needs it\n  → cairn {command} {} {name}",
            args.workflow
        ))?;
    }
    for name in &settings.unused {
        output.remark(&format!("`{name}` has a value, and the workflow does not ask for it"));
    }
    if ready {
        output.line("a run would find all that it needs")?;
    }
    Ok(exit)
}
