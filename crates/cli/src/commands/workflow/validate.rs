//! `cairn workflow validate`: says what is wrong with workflows, and where.

use std::collections::BTreeSet;
use std::path::PathBuf;

use cairn_api::Exit;
use cairn_api::error::Result;
use cairn_api::workflow::{self, Diagnostic};
use cairn_core::capabilities::Capabilities;
use cairn_engine::catalog::{Found, Source, across};
use cairn_engine::trigger::Watch;
use cairn_lang::diagnostic::{self, Code};
use cairn_steps::catalog::Settings;
use cairn_steps::lacking::lacking;
use serde_json::json;

use super::{marks, sarif};
use crate::commands::trigger;
use crate::config::{Config, usual_file};
use crate::output::plain;
use crate::render;
use crate::sources;

/// Say what is wrong with workflows, and where
///
/// Without a path, every workflow in a directory that `cairn workflow list` looks into is
/// checked. The exit code is 3 when any has an error; warnings alone are fine. Databases, private
/// addresses and channels that this machine is not set up for are warnings. Of a file that is
/// named here and is right, it also says what the workflow can do: the commands it runs, the
/// hosts and databases it asks, its secrets, files, prompts and questions. With `--json` it says
/// so of every workflow.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  cairn workflow validate\n  cairn workflow validate triage.yaml workflows/\n  cairn workflow validate . --format sarif > workflows.sarif"
)]
pub(crate) struct Args {
    /// Files, and directories to look through
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// How to say it: `sarif` is SARIF 2.1.0, which code hosts show beside a change
    #[arg(long, value_name = "FORMAT", value_enum)]
    format: Option<Format>,
}

/// How to say what is wrong.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// For people
    Text,
    /// One object, as with `--json`
    Json,
    /// One SARIF log
    Sarif,
}

pub(crate) fn run(args: &Args, config: &Config) -> Result<Exit> {
    let catalog = sources::catalog(config);
    let sources = catalog.sources()?;
    let mut found: Vec<Found> = Vec::new();
    if args.paths.is_empty() {
        let directories = sources.iter().filter(|source| source.root.is_some());
        found.extend(directories.flat_map(Source::workflows));
    }
    for path in &args.paths {
        if path.is_dir() {
            found.extend(catalog.directory(path, &sources)?.workflows());
        } else {
            found.push(catalog.file(path, &sources)?);
        }
    }
    let mut seen = BTreeSet::new();
    found.retain(|found| match found.path.canonicalize() {
        Ok(path) => seen.insert(path),
        Err(_) => true,
    });
    across(&mut found, &catalog.list()?);
    let settings = config.step_settings()?;
    let file = config.file.clone().or_else(usual_file);
    let file = file.map_or_else(|| "config.toml".to_owned(), |file| file.display().to_string());
    let told: Vec<Vec<Diagnostic>> = found
        .iter()
        .map(|found| {
            let here =
                here(found, &settings, &file).into_iter().map(|told| Diagnostic::from(&told));
            sources::diagnostics(found).into_iter().chain(here).collect()
        })
        .collect();
    let count = |severity: &str| {
        let of = |list: &Vec<Diagnostic>| list.iter().filter(|d| d.severity == severity).count();
        told.iter().map(of).sum::<usize>()
    };
    let (errors, warnings) = (count("error"), count("warning"));
    let output = &config.output;
    let format = args.format.unwrap_or(if output.json { Format::Json } else { Format::Text });
    if format == Format::Sarif {
        output.object(&sarif::log(told.iter().flatten()))?;
    } else if format == Format::Json {
        let diagnostics: Vec<&Diagnostic> = told.iter().flatten().collect();
        output.object(&json!({
            "workflows": found.len(),
            "errors": errors,
            "warnings": warnings,
            "diagnostics": diagnostics,
            "capabilities": found.iter().filter_map(capabilities).collect::<Vec<_>>(),
        }))?;
    } else {
        for (found, told) in found.iter().zip(&told) {
            marks::render(found, told).iter().try_for_each(|line| output.line(line))?;
        }
        for found in found.iter().filter(|found| args.paths.contains(&found.path)) {
            can(found).iter().try_for_each(|line| output.line(line))?;
        }
        if told.iter().filter(|told| !told.is_empty()).count() > 1 {
            summary(&found, &told).iter().try_for_each(|line| output.line(line))?;
        }
        let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        output.line(&format!(
            "{}: {}, {}",
            render::count(number(found.len()), "workflow", "workflows"),
            render::count(number(errors), "error", "errors"),
            render::count(number(warnings), "warning", "warnings"),
        ))?;
    }
    Ok(if errors == 0 { Exit::Success } else { Exit::Invalid })
}

/// What a workflow asks for that is not set up on this machine.
fn here(found: &Found, settings: &Settings, file: &str) -> Vec<diagnostic::Diagnostic> {
    let Ok(compiled) = &found.outcome else { return Vec::new() };
    let lacks = lacking(&compiled.plan, settings).into_iter().map(|lack| {
        let place = ("/graph/nodes", lack.step.as_str(), lack.field);
        let hint = format!("add {} to {file}; until then {}", lack.lines, lack.until);
        found.warning_at(place, Code::NotConfigured, (lack.message, hint))
    });
    let types = trigger::types();
    let triggers = compiled.plan.triggers.iter().filter_map(|trigger| {
        let watch = types.get(trigger.r#type.as_str())?.watch(&trigger.config.0).ok()?;
        let Watch::Unconnected(why) = watch else { return None };
        let place = ("/triggers", trigger.id.as_str(), "channel");
        let hint = "until then it starts nothing".to_owned();
        Some(found.warning_at(place, Code::NotConfigured, (why, hint)))
    });
    lacks.chain(triggers).collect()
}

/// What a workflow can do, for programs.
fn capabilities(found: &Found) -> Option<serde_json::Value> {
    let plan = &found.outcome.as_ref().ok()?.plan;
    Some(json!({
        "workflowId": plan.workflow_id,
        "path": found.path.display().to_string(),
        "can": workflow::Capabilities::of(plan),
    }))
}

/// What a workflow can do, a line for each thing.
fn can(found: &Found) -> Vec<String> {
    let Ok(compiled) = &found.outcome else { return Vec::new() };
    let lines = Capabilities::of(&compiled.plan).lines();
    if lines.is_empty() {
        return Vec::new();
    }
    let title = format!("{} can", plain(&compiled.plan.workflow_id));
    std::iter::once(title).chain(lines.iter().map(|line| format!("  {line}"))).collect()
}

/// How many mistakes each workflow has that has any, a line each.
fn summary(found: &[Found], told: &[Vec<Diagnostic>]) -> Vec<String> {
    let mut lines = vec![String::new()];
    for (found, told) in found.iter().zip(told).filter(|(_, told)| !told.is_empty()) {
        let errors = told.iter().filter(|d| d.severity == "error").count();
        let warnings = told.len() - errors;
        let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        let path = found.path.display().to_string();
        lines.push(format!(
            "  {}: {}, {}",
            plain(&path),
            render::count(number(errors), "error", "errors"),
            render::count(number(warnings), "warning", "warnings"),
        ));
    }
    lines
}
