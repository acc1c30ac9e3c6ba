//! `cairn session export`: a session with all it needs, as one file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use cairn_api::Exit;
use cairn_api::error::{Error, Result};
use cairn_api::session;
use cairn_api::time;
use cairn_store::Health;
use cairn_store::bundle::{self, ExportInfo};
use serde_json::json;

use crate::config::Config;
use crate::render;
use crate::{fresh, home};

/// Write a session with all it needs into one file
///
/// Of a damaged session the part before the damage is written, and the bundle says so.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  cairn session export sess_01hf7yat -o work.bundle.json\n  cairn session export sess_01hf7yat | ssh host cairn session import -"
)]
pub(crate) struct Args {
    /// Session, or the beginning of its id
    #[arg(value_name = "ID")]
    session: String,

    /// File to write; `-` is standard output
    #[arg(long, short, value_name = "FILE", default_value = "-")]
    output: PathBuf,
}

pub(crate) fn run(args: &Args, config: &Config) -> Result<Exit> {
    let bundle_id = fresh::bundle_id()?;
    let info = ExportInfo {
        bundle_id,
        exported_at: time::rfc3339(fresh::now_ms()).unwrap_or_default(),
        app_version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let (session, damage, bytes) = home::with_store(config, async |store| {
        let session = session::resolve(store, &args.session).await?;
        let status = store.log.status(session).await?;
        let damage = (status.health != Health::Healthy).then_some(status.damage).flatten();
        Ok((session, damage, bundle::export(store, session, info).await?))
    })?;
    if let Some(damage) = damage {
        config
            .output
            .remark(&format!("the session is damaged ({damage}); its valid part is exported"));
    }
    if args.output == Path::new("-") {
        config.output.bytes(&bytes)?;
        return Ok(Exit::Success);
    }
    write(&args.output, &bytes)
        .map_err(|source| Error::File { path: args.output.clone(), source })?;
    let file = args.output.display().to_string();
    if config.output.json {
        config.output.object(&json!({
            "sessionId": session.to_string(),
            "bundleId": bundle_id.to_string(),
            "file": file,
            "bytes": bytes.len(),
        }))?;
    } else {
        let size = render::size(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        config.output.line(&format!("exported {session} to {file} ({size})"))?;
    }
    Ok(Exit::Success)
}

/// Writes to what a path stands for: where a link leads, or straight into a device or a pipe.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(found) if !found.is_file() => {
            OpenOptions::new().write(true).open(path)?.write_all(bytes)
        }
        Ok(_) => replace(&fs::canonicalize(path)?, bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => replace(&followed(path), bytes),
        Err(error) => Err(error),
    }
}

/// Where the links of a path lead when nothing is there yet.
fn followed(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    // The kernel follows no more than this many, either.
    for _ in 0..40 {
        match fs::read_link(&path) {
            Ok(to) => path = path.with_file_name(to),
            Err(_) => break,
        }
    }
    path
}

/// Writes beside the file first, so that nobody finds half a bundle under its name.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    let part = PathBuf::from(name);
    let written = (|| {
        let mut file = File::create_new(&part)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&part, path)
    })();
    if written.is_err() {
        // What is left of it is of no use to anybody.
        let _ = fs::remove_file(&part);
    }
    written
}
