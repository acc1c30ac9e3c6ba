//! `cairn doctor`: says whether this machine and its data directory are fit for use.

use std::path::Path;

use cairn_api::Exit;
use cairn_api::error::Result;
use cairn_api::time::rfc3339;
use cairn_server::watched;
use cairn_store::Store;
use cairn_store::files::{self, Checkup, Free};
use serde_json::json;

use super::{serve, trigger};
use crate::config::Config;
use crate::output::{Style, plain};
use crate::render::{self, Cell};
use crate::{fresh, home, somebody, sources};

/// A sync that takes longer makes every step feel slow.
const SYNC_SLOW_US: u64 = 20_000;
/// How long a refusal is news: a week.
const LATELY_MS: u64 = 7 * 24 * 60 * 60 * 1_000;
/// No disk is this fast: what answers is memory.
const SYNC_FAST_US: u64 = 15;

/// Check the data directory: file system, sync latency, permissions, free space, versions
///
/// The exit code is 3 when a check failed. Warnings do not count.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  cairn doctor\n  cairn doctor --home /srv/cairn --json")]
pub(crate) struct Args {}

/// What a check came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Info,
    Good,
    Warning,
    Failed,
}

impl State {
    const fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Good => "ok",
            Self::Warning => "warning",
            Self::Failed => "failed",
        }
    }

    const fn style(self) -> Style {
        match self {
            Self::Info => Style::Faint,
            Self::Good => Style::Good,
            Self::Warning => Style::Warning,
            Self::Failed => Style::Bad,
        }
    }

    /// Fine, or else this.
    const fn good_or(good: bool, otherwise: Self) -> Self {
        if good { Self::Good } else { otherwise }
    }
}

struct Check {
    name: &'static str,
    state: State,
    text: String,
}

pub(crate) fn run(_: &Args, config: &Config) -> Result<Exit> {
    let root = config.home()?;
    // The first use makes the directory; a checkup counts as one.
    let store = home::open_anywhere(config)?;
    let found = files::doctor(&root)?;
    let key_ring = home::block_on(async { Ok(key_ring(&store, found.keyring_mode).await) })?;
    let audit = home::block_on(async { Ok(audit(&store).await) })?;
    let mut checks = checks(&root, &found, config.files()?.free_min, (key_ring, audit));
    checks.push(workflows(config));
    checks.push(home::block_on(async { triggers(config, &store).await })?);
    let failed = checks.iter().any(|check| check.state == State::Failed);
    let exit = if failed { Exit::Invalid } else { Exit::Success };
    if config.output.json {
        let checks: Vec<_> = checks
            .iter()
            .map(|c| json!({"name": c.name, "state": c.state.name(), "text": c.text}))
            .collect();
        config.output.object(&json!({"ok": !failed, "checks": checks}))?;
        return Ok(exit);
    }
    let rows: Vec<Vec<Cell>> = checks
        .iter()
        .map(|check| {
            let state = Cell::styled(check.state.style(), check.state.name());
            vec![state, Cell::new(check.name), Cell::new(&check.text)]
        })
        .collect();
    for line in render::table(&config.output, &rows) {
        config.output.line(&line)?;
    }
    Ok(exit)
}

fn checks(
    root: &Path,
    found: &Checkup,
    free_min: Free,
    (key_ring, audit): (Check, Check),
) -> Vec<Check> {
    let version = env!("CARGO_PKG_VERSION");
    let events = cairn_core::event::VERSION;
    let bundles = cairn_core::bundle::VERSION;
    vec![
        check(
            "version",
            State::Info,
            format!("cairn {version}, events {events}, bundles {bundles}"),
        ),
        check("system", State::Info, system()),
        user(),
        check("data directory", State::Info, root.display().to_string()),
        check(
            "writable",
            State::good_or(found.writable, State::Failed),
            if found.writable { "yes" } else { "no: files cannot be made in it" }.to_owned(),
        ),
        check(
            "file system",
            State::good_or(found.supported, State::Failed),
            match found.supported {
                true => found.filesystem.clone(),
                false => format!("{}: not one that is known to keep its word", found.filesystem),
            },
        ),
        space(found, free_min),
        sync(&found.sync_us),
        permissions(root, found.root_mode),
        key_ring,
        mode("admin token", files::document_mode(root, &serve::ADMIN_TOKEN), 0o600, State::Failed),
        audit,
        isolation(),
        agents(),
        check(
            "sessions",
            State::Info,
            format!("{}; `cairn session list --all` lists them", found.sessions),
        ),
    ]
}

const fn check(name: &'static str, state: State, text: String) -> Check {
    Check { name, state, text }
}

fn system() -> String {
    let system = rustix::system::uname();
    let text = |part: &std::ffi::CStr| part.to_string_lossy().into_owned();
    format!("{} {} {}", text(system.sysname()), text(system.release()), text(system.machine()))
}

fn user() -> Check {
    if rustix::process::geteuid().is_root() {
        let text = "root: a user of its own is safer".to_owned();
        return check("user", State::Warning, text);
    }
    check("user", State::Good, format!("uid {}", rustix::process::geteuid().as_raw()))
}

/// What keeps the commands of steps apart.
fn isolation() -> Check {
    let name = "processes";
    match cairn_steps::process::isolation().cgroup {
        Some(folder) => {
            let text =
                format!("sessions, no new privileges, control groups in {}", folder.display());
            check(name, State::Good, text)
        }
        None => {
            let text = "sessions, no new privileges; no control groups of version 2, so the \
                        supervisor of a command looks after its memory";
            check(name, State::Info, text.to_owned())
        }
    }
}

/// Which agents can be started here.
fn agents() -> Check {
    let found = cairn_steps::agents::installed();
    let text = match found.as_slice() {
        [] => "none installed; model endpoints and commands work all the same".to_owned(),
        found => format!("{}; `cairn provider check` says more", found.join(", ")),
    };
    check("agents", State::Info, text)
}

/// Below the reserve new runs are refused.
fn space(found: &Checkup, reserve: Free) -> Check {
    let enough = found.free_bytes >= reserve.of(found.total_bytes);
    let text = format!("{} of {}", render::size(found.free_bytes), render::size(found.total_bytes));
    check("free space", State::good_or(enough, State::Failed), text)
}

fn sync(times_us: &[u64]) -> Check {
    let at = |part: usize| times_us.get((times_us.len().saturating_sub(1)) * part / 100).copied();
    let (Some(median), Some(worst)) = (at(50), at(100)) else {
        return check("sync", State::Failed, "could not be measured".to_owned());
    };
    let ms = |us: u64| format!("{:.2} ms", us as f64 / 1_000.0);
    let (state, remark) = match median {
        SYNC_SLOW_US.. => (State::Warning, ": slow, and every step waits for one"),
        0..SYNC_FAST_US => (State::Warning, ": too fast for a disk, so a power cut may lose data"),
        _ => (State::Good, ""),
    };
    check("sync", state, format!("median {}, worst {}{remark}", ms(median), ms(worst)))
}

/// Whether every workflow compiles.
fn workflows(config: &Config) -> Check {
    let name = "workflows";
    let found = match sources::catalog(config).list() {
        Ok(found) => found,
        Err(error) => return check(name, State::Failed, error.to_string()),
    };
    let untold = sources::without_handler(&sources::catalog(config), &found);
    let broken: Vec<String> = found
        .iter()
        .filter(|found| found.outcome.is_err())
        .map(|found| found.path.display().to_string())
        .collect();
    if let Some((workflow, named)) = untold.first().filter(|_| broken.is_empty()) {
        let text = format!(
            "nobody is told when {workflow} fails: `{named}`, which its `on_error` names, is not there"
        );
        return check(name, State::Warning, text);
    }
    if broken.is_empty() {
        return check(name, State::Good, render::count(found.len() as u64, "compiles", "compile"));
    }
    let (subject, stays) = match broken.len() {
        1 => ("does not compile", "its triggers stay"),
        _ => ("do not compile", "their triggers stay"),
    };
    let text = format!(
        "{} {subject}; in a running server {stays} on the version that compiled last",
        broken.join(", ")
    );
    check(name, State::Warning, text)
}

/// Whether every trigger can fire, and what was refused lately.
async fn triggers(config: &Config, store: &Store) -> Result<Check> {
    let (name, catalog) = ("triggers", sources::catalog(config));
    let now_ms = fresh::now_ms();
    let found = match catalog.recall(&*store.documents).await.and_then(|()| catalog.list()) {
        Ok(found) => found,
        Err(error) => return Ok(check(name, State::Failed, error.to_string())),
    };
    let vault = config.vault(store)?;
    let items = watched::list(&found, &trigger::types(), (store, &vault), now_ms).await;
    let since = rfc3339(now_ms.saturating_sub(LATELY_MS));
    let told: Vec<String> = items
        .iter()
        .filter(|item| item.enabled)
        .filter_map(|item| {
            let refused = item.refused.as_ref().filter(|refused| refused.last_at >= since);
            let why = item.last_error.clone().or_else(|| {
                refused.map(|refused| {
                    format!("was refused {} times: {}", refused.count, refused.message)
                })
            })?;
            Some(format!("`{}` of {}: {}", item.trigger_id, item.workflow_id, plain(&why)))
        })
        .collect();
    Ok(match told.as_slice() {
        [] => check(name, State::Good, render::count(items.len() as u64, "trigger", "triggers")),
        told => check(name, State::Warning, told.join("; ")),
    })
}

/// Reads the key ring if there is one; only its first use makes it.
async fn key_ring(store: &Store, found: Option<u32>) -> Check {
    let name = "key ring";
    let checked = mode(name, found, 0o600, State::Failed);
    if checked.state != State::Good {
        return checked;
    }
    match store.keys.load().await {
        Ok(_) => checked,
        Err(cairn_store::Error::Keyring { what, .. }) => check(name, State::Failed, what),
        Err(error) => check(name, State::Failed, error.to_string()),
    }
}

/// Whether the record of who changed what is whole.
async fn audit(store: &Store) -> Check {
    let name = "audit record";
    match somebody::record(store).verify_with(store).await {
        Ok(0) => check(name, State::Info, "none yet".to_owned()),
        Ok(lines) => check(name, State::Good, render::count(lines, "line", "lines")),
        Err(error) => check(name, State::Failed, error.to_string()),
    }
}

/// Whether others can get at the data directory, or at what is in it.
fn permissions(root: &Path, mode: u32) -> Check {
    let (name, found) = ("permissions", files::exposed(root));
    let Some(first) = found.iter().find(|exposed| exposed.writable).or(found.first()) else {
        return check(name, State::Good, format!("{mode:04o}"));
    };
    let state = if first.writable { State::Failed } else { State::Warning };
    check(name, state, format!("{}: {}", first.path.display(), first.told()))
}

fn mode(name: &'static str, found: Option<u32>, wanted: u32, otherwise: State) -> Check {
    match found {
        None => check(name, State::Info, "none yet".to_owned()),
        Some(mode) if mode & 0o077 == 0 => check(name, State::Good, format!("{mode:04o}")),
        Some(mode) => {
            let text = format!("{mode:04o}: others can get at it; make it {wanted:04o}");
            check(name, otherwise, text)
        }
    }
}
