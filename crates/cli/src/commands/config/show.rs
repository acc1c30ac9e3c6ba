//! `cairn config show`: each value, and where it comes from.

use std::path::PathBuf;

use cairn_api::Exit;
use cairn_api::error::Result;
use serde_json::{Value, json};

use crate::config::{Config, Origin, Setting, names, usual_file};
use crate::output::{Style, plain};
use crate::render::{self, Cell};

/// Show each value of the configuration, and where it comes from
///
/// The file is `cairn/config.toml` in the XDG configuration directory, unless --config or CAIRN_CONFIG names another. Its keys are the ones shown here; paths in it start at its own folder.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  cairn config show\n  cairn config show --origin")]
pub(crate) struct Args {
    /// Show where each value comes from, too
    #[arg(long)]
    origin: bool,
}

/// A value as it is shown.
struct Shown {
    key: &'static str,
    value: Value,
    origin: Origin,
}

pub(crate) fn run(args: &Args, config: &Config) -> Result<Exit> {
    let values = values(config)?;
    if config.output.json {
        let values: Vec<Value> = values.iter().map(for_programs).collect();
        let file = config.file.as_ref().map(|file| file.display().to_string());
        config.output.object(&json!({"file": file, "values": values}))?;
        return Ok(Exit::Success);
    }
    config.output.line(&config.output.paint(Style::Faint, &file_line(config)))?;
    let rows: Vec<Vec<Cell>> = values.iter().map(|shown| row(shown, args.origin)).collect();
    render::table(&config.output, &rows).iter().try_for_each(|line| config.output.line(line))?;
    Ok(Exit::Success)
}

/// Which file the values are from.
fn file_line(config: &Config) -> String {
    match &config.file {
        Some(file) => format!("# {}", plain(&file.display().to_string())),
        None => match usual_file() {
            Some(file) => format!("# no file; {} is not there", plain(&file.display().to_string())),
            None => "# no file".to_owned(),
        },
    }
}

fn values(config: &Config) -> Result<Vec<Shown>> {
    let shown = |key, value: Value, origin: &Origin| Shown { key, value, origin: origin.clone() };
    let paths = |key, setting: &Setting<Vec<PathBuf>>| {
        let paths = setting.value.iter().map(|path| path.display().to_string());
        shown(key, paths.collect(), &setting.origin)
    };
    let home = config.home_setting()?;
    let autonomy = names::of(&names::AUTONOMY, &config.autonomy.value);
    let risk_policy = names::of(&names::RISK_POLICY, &config.risk_policy.value);
    let telemetry = config.telemetry.as_ref();
    let telemetry =
        telemetry.map(|to| shown("telemetry.endpoint", to.value.clone().into(), &to.origin));
    let mut all = vec![
        shown("autonomy", autonomy.into(), &config.autonomy.origin),
        paths("bundled", &config.bundled),
        shown("home", home.value.display().to_string().into(), &home.origin),
        shown("risk_policy", risk_policy.into(), &config.risk_policy.origin),
        shown("serve.drain_sec", config.drain.value.as_secs().into(), &config.drain.origin),
        shown("serve.listen", config.listen.value.to_string().into(), &config.listen.origin),
        paths("workflows", &config.workflows),
        paths("workspace.roots", &config.workspace_roots),
    ];
    all.extend(telemetry);
    all.extend(config.steps.shown().chain(config.limits.shown()).map(|(key, value, line)| {
        let file = config.file.clone().unwrap_or_default();
        let origin = line.map_or(Origin::Default, |line| Origin::File(file, line));
        Shown { key, value, origin }
    }));
    all.sort_by_key(|shown| shown.key);
    Ok(all)
}

fn row(shown: &Shown, origin: bool) -> Vec<Cell> {
    let value = match &shown.value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let mut row = vec![Cell::styled(Style::Faint, shown.key), Cell::new(value)];
    if origin {
        row.push(Cell::styled(Style::Faint, shown.origin.to_string()));
    }
    row
}

fn for_programs(shown: &Shown) -> Value {
    json!({
        "key": shown.key,
        "value": shown.value,
        "layer": shown.origin.layer(),
        "origin": shown.origin.to_string(),
    })
}
