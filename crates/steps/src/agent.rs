//! `agent`: an agent or a model does a piece of work.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cairn_core::catalog::schema::{
    any, at_least, closed, flag, one_of, shown, text, texts, told, whole,
};
use cairn_core::catalog::{Class, StepType, Takes};
use cairn_engine::performer::{Ctx, Failed, FailureKind, Outcome, Performer};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::agents::{Agents, Refusal, RefusalKind, Reply, Request, Resolved, Skill, Used, usage};
use crate::ask::{self, Who};
use crate::process::{Below, Folder, STOP_MAX};
use crate::settings;

/// The folder in which an agent finds its skills.
const SKILLS: &str = ".skills";

pub(crate) struct Agent {
    agents: Agents,
}

impl Agent {
    pub(crate) const fn new(agents: Agents) -> Self {
        Self { agents }
    }
}

#[derive(Deserialize)]
pub(crate) struct Input {
    #[serde(flatten)]
    pub(crate) who: Who,
    pub(crate) prompt: String,
    #[serde(default)]
    pub(crate) skills: Vec<String>,
    pub(crate) max_turns: Option<u32>,
    #[serde(default)]
    pub(crate) allowed_tools: Vec<String>,
    #[serde(default)]
    pub(crate) on_denied: OnDenied,
    pub(crate) output_schema: Option<Value>,
    pub(crate) workdir: Option<PathBuf>,
    #[serde(default)]
    pub(crate) receipts: Vec<PathBuf>,
}

/// What becomes of work for which a tool was denied.
#[derive(Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OnDenied {
    #[default]
    Fail,
    Continue,
}

/// The settings that `agent` and `skill` share.
pub(crate) fn shared() -> Value {
    json!({
        "allowed_tools": told(texts(), "The tools that it may use without asking, as the provider calls them, such as `Bash(git *)` or `run_shell_command`; with `codex` any entry lets it write to its folder."),
        "max_turns": told(at_least(1), "How many turns it may take, where the provider takes a limit."),
        "on_denied": told(one_of(&["fail", "continue"]), "What becomes of it when a tool was denied to it; `fail` when it is left out."),
        "output_schema": told(json!({"type": "object"}), "What its answer must be like: fields by name, or a JSON schema. An answer that is not is sent back once."),
        "receipts": told(texts(), "Files that must be there afterwards, from the folder that it works in. Without them its answer does not count."),
        "workdir": told(text(), "Where it works, from the run's workspace."),
    })
}

/// What may flow into them, and into the settings of the step itself.
pub(crate) fn sinks(own: &[(&'static str, Takes)]) -> Vec<(&'static str, Takes)> {
    const SHARED: [(&str, Takes); 3] = [
        ("output_schema", Takes::Schema),
        ("receipts.*", Takes::Literal),
        ("workdir", Takes::Literal),
    ];
    ask::sinks(&SHARED.iter().chain(own).copied().collect::<Vec<_>>())
}

/// What comes out of `agent` and `skill`.
pub(crate) fn output_schema() -> Value {
    closed(
        &json!({
            "denied": told(texts(), "The tools that were denied to it."),
            "json": told(any(), "The answer as a value, when `output_schema` asks for one."),
            "lingered": told(flag(), "Whether it had to be ended after its answer."),
            "model": told(text(), "The model."),
            "provider": told(text(), "Who was asked."),
            "session_id": told(text(), "The provider's own id of the conversation."),
            "text": told(text(), "What was answered."),
            "turns": told(whole(), "How many turns it took, when the provider says."),
        }),
        &[],
    )
}

#[async_trait]
impl Performer for Agent {
    fn kind(&self) -> StepType {
        let mut own = json!({
            "prompt": told(text(), "What it is to do. What somebody sent is marked as such."),
            "prompt_file": told(text(), "A file beside the workflow that holds the prompt."),
            "skills": told(texts(), "Skills that it is given, by name; `cairn provider skills` lists them."),
        });
        if let (Some(own), Value::Object(shared)) = (own.as_object_mut(), shared()) {
            own.extend(shared);
        }
        let input = closed(&ask::settings(own), &[]);
        let what = "Hands a piece of work to an agent or a model. It works in the run's workspace, which all steps of the run share; a program among the providers runs as `shell` commands do, without the user's own settings.";
        let example = json!({
            "provider": "claude", "prompt": "Summarise {{ event.payload.text }} in one sentence.",
            "max_turns": 5, "output_schema": {"summary": {"type": "string", "required": true}},
        });
        let input = shown(told(input, what), &example);
        let own = [("prompt", Takes::Prompt), ("prompt_file", Takes::AssetFor("prompt"))];
        StepType::new("agent", Class::Effectful, input, output_schema()).taking(&sinks(&own))
    }

    async fn perform(&self, config: Value, ctx: &Ctx) -> Result<Outcome, Failed> {
        let input: Input = settings::read(config)?;
        work(&self.agents, &input, ctx).await
    }

    fn needs_workspace(&self, _: &Value) -> bool {
        true
    }

    fn grace(&self) -> Duration {
        STOP_MAX
    }
}

/// Has a piece of work done.
pub(crate) async fn work(agents: &Agents, input: &Input, ctx: &Ctx) -> Result<Outcome, Failed> {
    let who = match input.who.resolve(agents) {
        Ok(who) => who,
        Err(refusal) => return Ok(ask::refused(&refusal, None, Used::default())),
    };
    let folder = Folder::open(ctx).await?;
    let place = Below::open(folder.path(), input.workdir.as_deref()).map_err(|error| {
        Failed::new("AGENT_FOLDER", format!("`workdir` cannot be used: {error}"))
    })?;
    let mut prompt = input.prompt.clone();
    prompt.push_str(&skills(agents, &who, &input.skills, &place)?);
    let mut request = input.who.request(&who, agents, ctx, &prompt, &place.path)?;
    request.opened = Some(Arc::clone(&place.opened));
    request.schema.clone_from(&input.output_schema);
    request.turns_max = input.max_turns.or(request.turns_max);
    request.tools.clone_from(&input.allowed_tools);
    request.takes_denials = input.on_denied == OnDenied::Continue;
    let done = asked(agents, &who, request, &place, &input.receipts).await;
    folder.require_small().await?;
    Ok(match done {
        Ok((reply, used)) => outcome(&reply, &used, &who),
        Err((refusal, used)) => ask::refused(&refusal, Some(&who), used),
    })
}

/// Asks, and once more when the answer is not as it was asked for.
async fn asked(
    agents: &Agents,
    who: &Resolved,
    mut request: Request,
    place: &Below,
    receipts: &[PathBuf],
) -> Result<(Reply, Used), (Box<Refusal>, Used)> {
    let first = request.prompt.clone();
    let mut used = Used::default();
    let mut last = None;
    for _ in 0..2 {
        let refusal = match agents.ask(who, &request).await {
            Ok(reply) => match missing(place, receipts) {
                None => {
                    used = used.and(reply.used.clone());
                    return Ok((reply, used));
                }
                Some(what) => {
                    let message = format!(
                        "the agent finished without writing `{what}`, which is one of its `receipts`"
                    );
                    let refusal = Refusal::new(RefusalKind::NoResult, message);
                    refusal.after(reply.used).saying(reply.text)
                }
            },
            Err(refusal) => refusal,
        };
        if !matches!(refusal.kind, RefusalKind::NoResult | RefusalKind::InvalidResult) {
            return Err((Box::new(refusal), used));
        }
        used = used.and((*refusal.used).clone());
        request.prompt = format!(
            "{first}\n\nAn earlier answer was not accepted: {}. Do what is missing and answer \
             again.",
            refusal.message
        );
        last = Some(refusal);
    }
    let refusal = last.unwrap_or_else(|| Refusal::new(RefusalKind::Failed, "nobody was asked"));
    // What it used is counted already.
    Err((Box::new(refusal.after(Used::default())), used))
}

/// The first of the receipts that is not there.
fn missing(place: &Below, receipts: &[PathBuf]) -> Option<String> {
    receipts.iter().find(|path| !place.has_file(path)).map(|path| path.display().to_string())
}

/// Lays the skills out where the agent works; gives the words that tell it of them.
fn skills(
    agents: &Agents,
    who: &Resolved,
    names: &[String],
    place: &Below,
) -> Result<String, Failed> {
    if names.is_empty() {
        return Ok(String::new());
    }
    let found = agents.skills(&who.name).map_err(|refusal| refusal.failed())?;
    let mut told =
        String::from("\n\nYou have these skills. Read the file of one before you use it:");
    for name in names {
        let Some(skill) = found.iter().find(|skill| skill.name == *name) else {
            return Err(unknown(name, &who.name, &found));
        };
        let unusable = |why: String| {
            Failed::new("AGENT_SKILL", format!("the skill `{name}` cannot be laid out: {why}"))
        };
        let files = skill.files().map_err(|error| unusable(error.to_string()))?;
        for (file, bytes) in files {
            let laid_out = place.lay_out(&format!("{SKILLS}/{name}/{file}"), &bytes);
            laid_out.map_err(|failed| unusable(failed.message))?;
        }
        told.push_str(&format!("\n- `{SKILLS}/{name}/SKILL.md`: {}", skill.description));
    }
    Ok(told)
}

fn unknown(name: &str, provider: &str, found: &[Skill]) -> Failed {
    let known: Vec<&str> = found.iter().map(|skill| skill.name.as_str()).collect();
    let near = cairn_lang::diagnostic::nearest(name, known.iter().copied());
    let next = match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("`cairn provider skills {provider}` lists those there are"),
    };
    let message = format!("the provider `{provider}` has no skill `{name}`; {next}");
    Failed::of(FailureKind::Permanent, "AGENT_SKILL", message)
}

fn outcome(reply: &Reply, used: &Used, who: &Resolved) -> Outcome {
    let mut output = json!({
        "denied": reply.denied, "lingered": reply.lingered, "provider": who.name,
        "text": ask::cut(&reply.text),
    });
    let mut add = |name: &str, value: Value| {
        drop(output.as_object_mut().map(|o| o.insert(name.to_owned(), value)))
    };
    if let Some(model) = used.model.as_ref().or(who.model.as_ref()) {
        add("model", json!(model));
    }
    if let Some(value) = &reply.structured {
        add("json", value.clone());
    }
    if let Some(session) = &reply.session {
        add("session_id", json!(session));
    }
    if let Some(turns) = reply.turns {
        add("turns", json!(turns));
    }
    Outcome { usage: Some(usage(used)), ..Outcome::new(output, ask::shown(&reply.text)) }
}
