//! `cairn secret set`: keeps a value, encrypted.

use std::io::{self, BufRead as _, IsTerminal as _, Read as _, Write as _};

use cairn_api::Exit;
use cairn_api::error::{Error, Result};
use cairn_engine::catalog::Identity;
use cairn_engine::redact::LENGTH_MIN;
use cairn_engine::secrets::{Scope, Secret};
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
use serde_json::json;

use super::shape;
use crate::commands::named::{self, Named};
use crate::config::Config;
use crate::{fresh, home, somebody, sources};

/// How many bytes are read of a value.
const BYTES_MAX: u64 = 1 << 20;

/// Keep a secret, encrypted
///
/// The value is read from standard input, or asked for without an echo when that is a terminal. It is never an argument: others can see those. One line break at its end is left out. With --generate a random value is made, printed once, and fits the signature of any webhook.
#[derive(clap::Args)]
#[command(
    override_usage = "cairn secret set NAME [--workflow WORKFLOW]\n       cairn secret set WORKFLOW NAME",
    after_help = "Examples:\n  cairn secret set GITHUB_PAT --workflow triage\n  cairn secret set WEBHOOK_KEY < key.txt\n  cairn secret set ORDER_SECRET --workflow order --generate"
)]
pub(crate) struct Args {
    /// The secret; or the workflow, before the secret
    #[arg(value_name = "NAME")]
    first: String,
    /// The secret, when the workflow comes first
    #[arg(value_name = "NAME_LAST", hide = true)]
    second: Option<String>,
    /// Keep it for this workflow alone: its id, the name part of it, or its file
    #[arg(long, value_name = "WORKFLOW")]
    workflow: Option<String>,
    /// Make a random value, and print it once
    #[arg(long)]
    generate: bool,
}

pub(crate) fn run(args: &Args, config: &Config) -> Result<Exit> {
    let mut words = vec![args.first.as_str()];
    words.extend(args.second.as_deref());
    refuse_value(args, config)?;
    let command = ("cairn secret set", &[][..]);
    let Named { workflow: of, name, .. } = named::read(&words, args.workflow.as_deref(), command)?;
    if !is_name(name) {
        return Err(Error::Usage {
            message: format!("`{name}` cannot name a secret"),
            suggestion: "use letters, digits and `_`, such as `GITHUB_PAT`".to_owned(),
        });
    }
    let scope = super::scope(of, Some(name), config)?;
    let value = match (args.generate, io::stdin().is_terminal()) {
        (true, _) => fresh::webhook_secret()?,
        (false, true) => asked(name).map_err(unread)?,
        (false, false) => piped().map_err(unread)?,
    };
    let found = match of {
        Some(given) => vec![sources::find(given, config)?],
        None => sources::catalog(config).list()?,
    };
    shape::require(&found, (name, of), &value)?;
    let length = value.expose().len();
    let version = home::with_store(config, async |store| {
        let (vault, at) = (config.vault(store)?, (&scope, name));
        Ok(somebody::changes(store).set_secret(&vault, at, &value, fresh::now_ms()).await?)
    })?;
    let workflow = match &scope {
        Scope::Global => None,
        Scope::Workflow(workflow) => Some(workflow),
    };
    if config.output.json {
        let path = workflow.map(Identity::place);
        let mut told = json!({"name": name, "version": version, "path": path});
        if let (true, Some(told)) = (args.generate, told.as_object_mut()) {
            told.insert("value".to_owned(), json!(value.expose()));
        }
        config.output.object(&told)?;
    } else {
        let whom = workflow.map_or("every workflow".to_owned(), ToString::to_string);
        let told = format!("set {name} for {whom}");
        if args.generate {
            config.output.line(value.expose())?;
            config.output.remark(&format!("{told}: shown once; give it to whoever signs"));
        } else {
            config.output.line(&told)?;
        }
    }
    if length < LENGTH_MIN {
        config.output.remark(&format!(
            "note: it has {length} bytes; what has fewer than {LENGTH_MIN} cannot be told from other \
             text, and is recorded where a step prints it"
        ));
    }
    Ok(Exit::Success)
}

/// Refuses a second word that can only be a value: what stands before it is no workflow, or the
/// workflow is named already.
fn refuse_value(args: &Args, config: &Config) -> Result<()> {
    let Some(second) = &args.second else { return Ok(()) };
    let first = &args.first;
    let is_workflow = || {
        let unknown = sources::past_of(first, config).and_then(|of| of.require(false));
        unknown.is_ok() && is_name(second)
    };
    if args.workflow.is_none() && is_workflow() {
        return Ok(());
    }
    Err(Error::Usage {
        message: "a value is never an argument: others can see those".to_owned(),
        suggestion: format!(
            "run `cairn secret set {first}` and type it, or pipe it in; if `{first}` is meant as a \
             workflow, `cairn workflow list` lists those there are"
        ),
    })
}

fn is_name(name: &str) -> bool {
    let safe = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let digit = name.starts_with(|c: char| c.is_ascii_digit());
    !name.is_empty() && name.len() <= 64 && !digit && name.chars().all(safe)
}

fn unread(error: io::Error) -> Error {
    Error::Usage {
        message: format!("the value could not be read: {error}"),
        suggestion: "give it on standard input, as text".to_owned(),
    }
}

/// What comes in, without one line break at the end.
fn piped() -> io::Result<Secret> {
    let mut text = String::new();
    io::stdin().take(BYTES_MAX).read_to_string(&mut text)?;
    Ok(without_break(text))
}

/// What somebody types, without showing it.
fn asked(name: &str) -> io::Result<Secret> {
    let input = io::stdin();
    let before = tcgetattr(&input)?;
    let mut silent = before.clone();
    silent.local_modes.remove(LocalModes::ECHO);
    silent.local_modes.insert(LocalModes::ECHONL);
    write!(io::stderr(), "value of {name}: ")?;
    tcsetattr(&input, OptionalActions::Flush, &silent)?;
    let mut text = String::new();
    let read = input.lock().read_line(&mut text);
    tcsetattr(&input, OptionalActions::Flush, &before)?;
    read.map(|_| without_break(text))
}

fn without_break(mut text: String) -> Secret {
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    Secret::new(text)
}
