//! `cairn provider list`: the providers and presets there are.

use cairn_api::Exit;
use cairn_api::error::Result;
use serde_json::json;

use crate::config::Config;
use crate::output::Style;
use crate::render::{self, Cell};

/// List the providers and presets there are
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  cairn provider list\n  cairn provider list --json")]
pub(crate) struct Args {}

pub(crate) fn run(_: &Args, config: &Config) -> Result<Exit> {
    let configuration = config.step_settings()?.agents;
    let output = &config.output;
    if output.json {
        let providers = configuration.providers.iter().map(|(name, provider)| {
            json!({"name": name, "kind": provider.kind, "model": provider.model})
        });
        let presets = configuration.presets.iter().map(|(name, preset)| {
            json!({"name": name, "provider": preset.provider, "model": preset.model})
        });
        output.object(&json!({
            "providers": providers.collect::<Vec<_>>(),
            "presets": presets.collect::<Vec<_>>(),
            "defaultProvider": configuration.default_provider,
        }))?;
        return Ok(Exit::Success);
    }
    let heading = |names: [&'static str; 3]| -> Vec<Cell> {
        names.map(|name| Cell::styled(Style::Faint, name)).into()
    };
    let mut rows = vec![heading(["PROVIDER", "KIND", "MODEL"])];
    rows.extend(configuration.providers.iter().map(|(name, provider)| {
        let is_default = configuration.default_provider.as_ref() == Some(name);
        let shown = if is_default { format!("{name} (default)") } else { name.clone() };
        let model = provider.model.as_deref().unwrap_or("-");
        vec![Cell::new(shown), Cell::new(&provider.kind), Cell::new(model)]
    }));
    render::table(output, &rows).iter().try_for_each(|line| output.line(line))?;
    if !configuration.presets.is_empty() {
        output.line("")?;
        let mut rows = vec![heading(["PRESET", "PROVIDER", "MODEL"])];
        rows.extend(configuration.presets.iter().map(|(name, preset)| {
            let provider = preset.provider.as_deref().unwrap_or("-");
            vec![
                Cell::new(name),
                Cell::new(provider),
                Cell::new(preset.model.as_deref().unwrap_or("-")),
            ]
        }));
        render::table(output, &rows).iter().try_for_each(|line| output.line(line))?;
    }
    Ok(Exit::Success)
}
