//! What steps that ask a model have in common: who is asked, about what, and where it works.

use std::path::{Path, PathBuf};

use cairn_core::catalog::Takes;
use cairn_core::catalog::schema::{at_least, one_of, text, told};
use cairn_core::expression::untrusted;
use cairn_engine::performer::{Ctx, Failed, Outcome};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::agents::{Agents, Choice, Kept, Refusal, Request, Resolved, Session, Used, usage};
use crate::process::Variables;

/// How much of an answer is recorded.
pub(crate) const TEXT_MAX: usize = 256 << 10;
/// How much of it is told in the notes.
const TOLD_MAX: usize = 1_400;

/// Who is asked.
#[derive(Deserialize)]
pub(crate) struct Who {
    provider: Option<String>,
    preset: Option<String>,
    model: Option<String>,
    system: Option<String>,
    #[serde(default)]
    session: Mode,
    max_tokens: Option<u64>,
}

/// Whose conversation it is.
#[derive(Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Mode {
    /// Its own.
    #[default]
    New,
    /// The run's.
    Root,
    /// The workflow's.
    Persistent,
}

/// The settings that say who is asked, with those of the step itself.
pub(crate) fn settings(own: Value) -> Value {
    let mut all = json!({
        "max_tokens": told(at_least(1), "How many tokens an answer may have, where the provider takes a limit."),
        "model": told(text(), "The model; that of the preset, of the provider or of the configuration when it is left out."),
        "preset": told(text(), "A preset of the configuration: provider, model, limits and system prompt under one name."),
        "provider": told(text(), "Who is asked: `claude`, `codex`, `gemini`, `anthropic`, `openai`, `scripted`, or a name from the configuration."),
        "session": told(one_of(&["new", "root", "persistent"]), "`new` forgets afterwards; `root` goes on with the conversation of the run, one step at a time; `persistent` with that of the workflow."),
        "system": told(text(), "What the model is told about its part."),
    });
    if let (Some(all), Value::Object(own)) = (all.as_object_mut(), own) {
        all.extend(own);
    }
    all
}

/// What may flow into the settings of a step that asks a model, of which these are its own. What
/// somebody sent is read by the model; it says neither who that is nor what it may do.
pub(crate) fn sinks(own: &[(&'static str, Takes)]) -> Vec<(&'static str, Takes)> {
    own.iter().copied().chain([("system", Takes::Prompt), ("**", Takes::Own)]).collect()
}

/// Whether the settings of a step ask for a conversation that is kept.
pub(crate) fn is_kept(config: &Value) -> bool {
    matches!(config.get("session").and_then(Value::as_str), Some("root" | "persistent"))
}

impl Who {
    pub(crate) fn resolve(&self, agents: &Agents) -> Result<Resolved, Refusal> {
        agents.resolve(&Choice {
            provider: self.provider.as_deref(),
            preset: self.preset.as_deref(),
            model: self.model.as_deref(),
        })
    }

    /// The request that these settings make, in a folder.
    pub(crate) fn request(
        &self,
        who: &Resolved,
        agents: &Agents,
        ctx: &Ctx,
        prompt: &str,
        folder: &Path,
    ) -> Result<Request, Failed> {
        let nonce = nonce()?;
        let (open, close) = (format!("<untrusted-{nonce}>"), format!("</untrusted-{nonce}>"));
        let (prompt, in_prompt) = untrusted::delimited(prompt, &open, &close);
        let given = self.system.clone().or_else(|| who.preset.system.clone());
        let given = given.map(|system| untrusted::delimited(&system, &open, &close));
        let in_system = given.as_ref().is_some_and(|(_, marked)| *marked);
        let given = given.map(|(system, _)| system);
        let warning = (in_prompt || in_system).then(|| untrusted::warning(&open, &close));
        let system: Vec<String> = given.into_iter().chain(warning).collect();
        let request = Request::new(ctx.session, prompt, folder.to_owned());
        Ok(Request {
            system: (!system.is_empty()).then(|| system.join("\n\n")),
            model: who.model.clone(),
            turns_max: who.preset.turns_max,
            tokens_max: self.max_tokens.or(who.preset.tokens_max),
            session: self.session(who, ctx)?,
            timeout: ctx.timeout,
            stall: agents.configuration().stall,
            variables: Variables::safe(ctx, folder).into_list(),
            assets: std::sync::Arc::clone(&ctx.assets),
            ..request
        })
    }

    /// Where the conversation is kept: beside the folder of the run, or beside those of all.
    fn session(&self, who: &Resolved, ctx: &Ctx) -> Result<Session, Failed> {
        let beside = match self.session {
            Mode::New => return Ok(Session::New),
            Mode::Root => ctx.workspace.as_ref().map(|folder| crate::workspace::sessions(folder)),
            Mode::Persistent => ctx
                .workspace
                .as_ref()
                .and_then(|folder| folder.parent())
                .map(|all| all.join("persistent").join(&ctx.workflow_key)),
        };
        let folder: PathBuf = beside.map(|folder| folder.join(&who.name)).ok_or_else(|| {
            Failed::new("AGENT_SESSION", "the run has no folder in which a conversation is kept")
        })?;
        Ok(Session::Kept(Kept { folder }))
    }
}

/// What comes of a step whose work was not done.
pub(crate) fn refused(refusal: &Refusal, who: Option<&Resolved>, before: Used) -> Outcome {
    let mut output = Map::new();
    if !refusal.said.is_empty() {
        output.insert("text".to_owned(), json!(cut(&refusal.said)));
    }
    if let Some(who) = who {
        output.insert("provider".to_owned(), json!(who.name));
    }
    let used = before.and((*refusal.used).clone());
    let fault = Some(refusal.failed());
    let usage = (used.launches > 0).then(|| usage(&used));
    let notes = format!("{}: {}", refusal.kind.code(), refusal.message);
    Outcome { fault, usage, ..Outcome::new(Value::Object(output), notes) }
}

/// As much of an answer as is recorded.
pub(crate) fn cut(text: &str) -> String {
    cairn_core::text::truncate(text, TEXT_MAX)
}

/// The beginning of an answer, for people.
pub(crate) fn shown(text: &str) -> String {
    cairn_core::text::truncate(text.trim(), TOLD_MAX)
}

/// A word that nobody can guess.
fn nonce() -> Result<String, Failed> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|error| {
        Failed::new("AGENT_ENTROPY", format!("the system gives no random bytes: {error}"))
    })?;
    Ok(format!("{:016x}", u64::from_le_bytes(bytes)))
}
