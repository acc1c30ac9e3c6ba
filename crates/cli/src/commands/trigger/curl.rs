//! `cairn trigger curl`: a signed request to a webhook, ready to paste.

use std::sync::Arc;

use cairn_api::Exit;
use cairn_api::error::{Error, Result};
use cairn_engine::secrets::Scope;
use cairn_engine::trigger::{Hook, Watch, input};
use cairn_server::watched::{self, Place};
use serde_json::json;

use crate::commands::run::{Given, with_flag};
use crate::commands::secret::shape;
use crate::config::Config;
use crate::{fresh, home, sources};

/// Print a signed request to a webhook, as a curl command to paste
///
/// It is signed with the webhook's secret, which is not printed. A request that is signed with a
/// time is good for as long as the trigger's `tolerance_sec` says, 5 minutes unless it says
/// otherwise.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  cairn trigger curl pager --set service=api\n  cairn trigger curl pager alert --event alert.json\n  cairn trigger curl pager --server https://cairn.example.org | sh"
)]
pub(crate) struct Args {
    /// Workflow: its id, the name part of it, or its file
    #[arg(value_name = "WORKFLOW")]
    workflow: String,

    /// Trigger; may be left out when the workflow has one webhook
    #[arg(value_name = "TRIGGER")]
    trigger: Option<String>,

    #[command(flatten)]
    given: Given,

    /// Where the server is [default: the address it listens on]
    #[arg(long, value_name = "URL")]
    server: Option<String>,
}

pub(crate) fn run(args: &Args, config: &Config) -> Result<Exit> {
    let found = sources::find(&args.workflow, config)?;
    let places = watched::places(&[Arc::clone(&found)], &super::types());
    let (place, hook) = chosen(&places, args)?;
    let payload = args.given.payload()?.unwrap_or_else(|| json!({}));
    // What the trigger would refuse is not worth a signature.
    let plan = &found.compiled()?.plan;
    input::of_run(plan, Some(&place.trigger), payload.clone())
        .map_err(|error| with_flag(error, &payload))?;
    let body = payload.to_string();
    let secret = home::with_store(config, async |store| {
        let scope = Scope::Workflow(place.identity.clone());
        let mut signing = config.vault(store)?.signing(&scope, hook.secret(), 0).await?;
        Ok(signing.swap_remove(0).secret)
    })?;
    let id = fresh::message_id()?;
    let signed = hook.sign(body.as_bytes(), &id, fresh::now_ms(), &secret).ok_or_else(|| {
        let name = hook.secret();
        let why = hook.fault(&secret).unwrap_or("signs nothing");
        Error::Usage {
            message: format!("the secret `{name}` {why}"),
            suggestion: format!(
                "let one be made with `{}`",
                shape::generate(name, Some(place.identity.name()))
            ),
        }
    })?;
    let server = args.server.clone().unwrap_or_else(|| format!("http://{}", config.listen.value));
    let url = format!("{}/hooks{}", server.trim_end_matches('/'), hook.path());
    let method = hook.methods().first().map_or("POST", String::as_str);
    if config.output.json {
        let headers: serde_json::Map<_, _> =
            signed.into_iter().map(|(name, value)| (name, json!(value))).collect();
        let request = json!({"method": method, "url": url, "headers": headers, "body": body});
        config.output.object(&request)?;
        return Ok(Exit::Success);
    }
    let mut lines =
        vec![format!("curl -sS --fail-with-body -w '\\n' -X {method} {}", quoted(&url))];
    lines.push(format!("  -H {}", quoted("content-type: application/json")));
    lines.extend(
        signed.iter().map(|(name, value)| format!("  -H {}", quoted(&format!("{name}: {value}")))),
    );
    lines.push(format!("  -d {}", quoted(&body)));
    config.output.line(&lines.join(" \\\n"))?;
    Ok(Exit::Success)
}

/// The webhook that is meant.
fn chosen<'p>(places: &'p [Place], args: &Args) -> Result<(&'p Place, &'p dyn Hook)> {
    let hooks: Vec<(&Place, &dyn Hook)> = places
        .iter()
        .filter_map(|place| match &place.watch {
            Watch::Hook(hook) => Some((place, hook.as_ref())),
            _ => None,
        })
        .collect();
    let known = || hooks.iter().map(|(place, _)| place.trigger.as_str());
    match (&args.trigger, hooks.as_slice()) {
        (None, [only]) => Ok(*only),
        (None, []) => Err(Error::Usage {
            message: format!("`{}` has no webhook", args.workflow),
            suggestion: "list the triggers there are with `cairn trigger list`".to_owned(),
        }),
        (None, _) => Err(Error::Usage {
            message: format!("`{}` has several webhooks", args.workflow),
            suggestion: format!("say which: {}", known().collect::<Vec<_>>().join(", ")),
        }),
        (Some(given), _) => {
            let named = hooks.iter().find(|(place, _)| place.trigger.as_str() == given);
            let named = named.copied();
            named.ok_or_else(|| Error::trigger_unknown(&args.workflow, given, known()))
        }
    }
}

/// A text as one word of a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
