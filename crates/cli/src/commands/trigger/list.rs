//! `cairn trigger list`: every trigger, and when the clock fires it next.

use std::sync::Arc;

use cairn_api::Exit;
use cairn_api::call::{Trigger, Triggers};
use cairn_api::error::Result;
use cairn_engine::catalog::Found;
use cairn_server::watched;
use serde_json::Value;

use crate::config::Config;
use crate::output::{Output, Style, plain};
use crate::render::{self, Cell};
use crate::{fresh, home, sources};

/// List the triggers of all workflows
///
/// Those of a workflow that does not compile are those of the version that compiled last while a
/// server watched it, as the server has them; `cairn workflow validate` says what is wrong.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  cairn trigger list\n  cairn trigger list --json")]
pub(crate) struct Args {}

pub(crate) fn run(_: &Args, config: &Config) -> Result<Exit> {
    let catalog = sources::catalog(config);
    let (found, items) = home::with_store(config, async |store| {
        catalog.recall(&*store.documents).await?;
        let (found, vault) = (catalog.list()?, config.vault(store)?);
        let shown = (store, &vault);
        let items = watched::list(&found, &super::types(), shown, fresh::now_ms()).await;
        Ok((found, items))
    })?;
    let output = &config.output;
    if output.json {
        output.object(&Triggers { items })?;
    } else if items.is_empty() {
        output.remark("no workflow has a trigger");
    } else {
        print(&items, &found, output)?;
    }
    for broken in found.iter().filter(|found| found.outcome.is_err()) {
        let path = broken.path.display();
        let so = match broken.last_good() {
            Some(_) => "its triggers stay on the version that compiled last",
            None => "it has no triggers until it does",
        };
        output.remark(&format!(
            "{path} does not compile, and {so}; `cairn workflow validate {path}` says why"
        ));
    }
    for (workflow, named) in sources::without_handler(&catalog, &found) {
        output.remark(&format!(
            "when a run of {workflow} fails, nobody is told: `{named}`, which its `on_error` names, is not there"
        ));
    }
    Ok(Exit::Success)
}

/// The workflows whose failures a trigger takes, in words; none for one of another type.
fn failures(item: &Trigger, found: &[Arc<Found>]) -> Option<String> {
    let found = found.iter().find(|found| found.id == item.workflow_id)?.in_force();
    let triggers = &found.compiled().ok()?.plan.triggers;
    let trigger = triggers.iter().find(|trigger| trigger.id.as_str() == item.trigger_id)?;
    if trigger.r#type.as_str() != "error" {
        return None;
    }
    let named = trigger.config.0.get("workflows").and_then(Value::as_array);
    let named: Vec<&str> = named.into_iter().flatten().filter_map(Value::as_str).collect();
    Some(match named.as_slice() {
        [] => "when a run fails whose `on_error` names it".to_owned(),
        named => format!("when a run of {} fails", named.join(" or ")),
    })
}

fn print(items: &[Trigger], found: &[Arc<Found>], output: &Output) -> Result<()> {
    let heading = ["WORKFLOW", "TRIGGER", "TYPE", "FIRES"];
    let mut rows = vec![heading.map(|name| Cell::styled(Style::Faint, name)).into()];
    rows.extend(items.iter().map(|item| {
        let fires = match (&item.next_at, &item.path) {
            _ if !item.enabled => Cell::styled(Style::Faint, "not: the workflow is switched off"),
            _ if item.last_error.is_some() => {
                let why = item.last_error.as_deref().unwrap_or_default();
                Cell::styled(Style::Bad, format!("not: {why}"))
            }
            (Some(at), _) => Cell::new(format!("at {at}")),
            (None, Some(path)) => Cell::new(format!("on requests to {path}")),
            (None, None) => Cell::new(failures(item, found).unwrap_or_else(|| "-".to_owned())),
        };
        vec![
            Cell::styled(Style::Strong, &item.workflow_id),
            Cell::new(&item.trigger_id),
            Cell::new(&item.r#type),
            fires,
        ]
    }));
    render::table(output, &rows).iter().try_for_each(|line| output.line(line))?;
    for item in items {
        let Some(refused) = &item.refused else { continue };
        let (id, at) = (&item.trigger_id, refused.last_at.as_deref().unwrap_or("some time"));
        let (count, message) = (refused.count, plain(&refused.message));
        output.remark(&format!(
            "`{id}` of {} was refused {count} times, last at {at}: {message}",
            item.workflow_id
        ));
    }
    Ok(())
}
