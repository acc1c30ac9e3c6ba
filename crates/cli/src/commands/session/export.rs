//! `cairn session export`: a session with all it needs, as one file.

use std::path::{Path, PathBuf};

use cairn_api::Exit;
use cairn_api::error::{Error, Result};
use cairn_api::session::{self, Document, Extent};
use cairn_api::time;
use cairn_core::bundle::Salvage;
use cairn_core::id::SessionId;
use cairn_engine::record::{Action, Object};
use cairn_store::Store;
use cairn_store::bundle::ExportInfo;
use serde_json::{Value, json};

use crate::config::Config;
use crate::render;
use crate::{fresh, home, somebody};

mod file;

/// Write a session with all it needs into one file, or as a document to read
///
/// The runs of one workflow share a session, and all of them are exported with it. A session that is damaged, or that lacks something it needs, is exported with --partial only: a bundle then holds the part before the first loss, a document everything that can be read, and both say so.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  cairn session export sess_01hf7yat -o work.bundle.json\n  cairn session export sess_01hf7yat | ssh host cairn session import -\n  cairn session export sess_01hf7yat --markdown -o work.md"
)]
pub(crate) struct Args {
    /// Session: its id, the beginning of that, the label of a run, or a run in it
    #[arg(value_name = "ID")]
    session: String,

    /// File to write; `-` is standard output
    #[arg(long, short, value_name = "FILE", default_value = "-")]
    output: PathBuf,

    /// Write a document for people, which cannot be imported
    #[arg(long)]
    markdown: bool,

    /// Export what is sound of a session that is not whole
    #[arg(long)]
    partial: bool,
}

/// What is to be written, and what to say of it.
struct Export {
    bytes: Vec<u8>,
    /// The bundle, when it is one.
    bundle_id: Option<String>,
    /// What is missing, when something is: for people, and for programs.
    banner: Option<(String, Value)>,
}

pub(crate) fn run(args: &Args, config: &Config) -> Result<Exit> {
    let (session, export) = home::with_papers(config, async |store| {
        let session = session::resolve_with_runs(store, &args.session).await?;
        let export = match args.markdown {
            true => document(args, store, session).await?,
            false => bundle(args, store, session).await?,
        };
        Ok((session, export))
    })?;
    let Export { bytes, bundle_id, banner } = export;
    let (banner, salvage) = banner.unzip();
    if let Some(banner) = banner {
        config.output.remark(&banner);
    }
    if args.output == Path::new("-") {
        config.output.bytes(&bytes)?;
        return Ok(Exit::Success);
    }
    file::write(&args.output, &bytes)
        .map_err(|source| Error::File { path: args.output.clone(), source })?;
    let file = args.output.display().to_string();
    if config.output.json {
        let mut answer = json!({
            "sessionId": session.to_string(),
            "file": file,
            "bytes": bytes.len(),
        });
        if let Some(answer) = answer.as_object_mut() {
            answer.extend(bundle_id.map(|id| ("bundleId".to_owned(), Value::String(id))));
            answer.extend(salvage.map(|salvage| ("salvage".to_owned(), salvage)));
        }
        config.output.object(&answer)?;
    } else {
        let size = render::size(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        config.output.line(&format!("exported {session} to {file} ({size})"))?;
    }
    Ok(Exit::Success)
}

async fn document(args: &Args, store: &Store, session: SessionId) -> Result<Export> {
    let extent = if args.partial { Extent::Partial } else { Extent::Whole };
    let changes = somebody::changes(store);
    let object = Object { session: Some(session), ..Object::default() };
    let deed = changes.deed(Action::ExportSession, object, &json!({"kind": "document"}));
    let Document { markdown, salvage } =
        changes.make(deed, session::tell(store, session, extent)).await?;
    let banner = salvage.map(|Salvage { damage, health }| {
        let text = format!("PARTIAL EXPORT: {session} is {health}: {damage}");
        (text, json!({"health": health, "damage": damage}))
    });
    Ok(Export { bytes: markdown.into_bytes(), bundle_id: None, banner })
}

async fn bundle(args: &Args, store: &Store, session: SessionId) -> Result<Export> {
    let bundle_id = fresh::bundle_id()?;
    let info = ExportInfo {
        bundle_id,
        exported_at: time::rfc3339(fresh::now_ms()).unwrap_or_default(),
        app_version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let bundle_id = Some(bundle_id.to_string());
    if !args.partial {
        let exported = somebody::changes(store).export(session, info).await;
        let bytes = exported.map_err(|error| match error {
            cairn_engine::Error::Store(error) => Error::of_export(error),
            other => other.into(),
        })?;
        return Ok(Export { bytes, bundle_id, banner: None });
    }
    let saved = somebody::changes(store).salvage(session, info).await?;
    let banner = saved.salvage.map(|Salvage { damage, health }| {
        let (kept, left_out) = (saved.events, saved.left_out);
        let text = format!(
            "PARTIAL EXPORT: {session} is {health}: {damage}\n  {} exported, {left_out} more could be read and are left out",
            render::count(kept, "event is", "events are"),
        );
        let details = json!({
            "health": health,
            "damage": damage,
            "eventsExported": kept,
            "eventsLeftOut": left_out,
        });
        (text, details)
    });
    Ok(Export { bytes: saved.bytes, bundle_id, banner })
}
