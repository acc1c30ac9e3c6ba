//! `cairn guide`: a person or a script goes through a workflow, step by step.

mod answers;
mod screen;

use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cairn_api::Exit;
use cairn_api::error::{Error, Result};
use cairn_api::guided::answer as wire;
use cairn_api::token::{Holder, Scope};
use cairn_core::event::guided::{Autonomy, RiskPolicy};
use cairn_core::token::compact::Label;
use cairn_engine::guided::answer::{Answer, Lifecycle, Standing};
use cairn_engine::guided::ask::{At, Continue, Intent, Resume, Start, Tokens, Wanted};
use cairn_mcp::{Door, Reach};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::runs;
use crate::config::Config;
use crate::{automate, door, home, somebody, sources, stop};
use answers::{Given, Said, Script};
use screen::Screen;

/// How long what an automation is at may take to be put aside.
const PATIENCE: Duration = Duration::from_secs(5);

/// Go through a workflow in the terminal, step by step
///
/// Each step is shown; its notes are read from standard input and end with a line that is
/// only a dot. Without that line nothing is sent, and what the run refuses is kept for editing.
/// With --answers they come from a file: a JSON list, or one JSON object per line, of
/// `{"step": ID, "notes": TEXT, "artifacts": [...], "context": {...}}`, where all but the notes
/// may be left out. To continue later, use --continue with the token that is shown when you
/// stop. Of an automation only the steps of type `guide` are shown; the engine does the others.
/// A run of one that waits for an agent is joined with --continue and its id, whoever started
/// it: `cairn runs list --waiting-for agent` shows them.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  cairn guide wr.quick-task\n  cairn guide triage.yaml --set ticket=T-17\n  cairn guide wr.code-review --answers answers.json --json\n  cairn guide --continue run_01hf7yat"
)]
pub(crate) struct Args {
    /// Workflow: its id, the name part of it, or its file
    #[arg(value_name = "ID|FILE", required_unless_present = "continue")]
    workflow: Option<String>,

    /// Continue where a token stands or the run with a label, or join a run that waits for an agent
    #[arg(long, value_name = "TOKEN|LABEL|RUN", conflicts_with_all = ["workflow", "set"])]
    r#continue: Option<String>,

    /// Read the answers to the steps from a file, or from `-`
    #[arg(long, value_name = "FILE")]
    answers: Option<PathBuf>,

    /// What this run is for, in one sentence
    #[arg(long, value_name = "TEXT", conflicts_with = "continue")]
    goal: Option<String>,

    /// Set a fact of the context; a value that is JSON is taken as such
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,

    /// When to stop for a person: guided, full_auto_stop_on_user_deps or full_auto_never_stop
    #[arg(long, value_name = "MODE", value_parser = word::<Autonomy>)]
    autonomy: Option<Autonomy>,

    /// How much risk to take between correct paths: conservative, balanced or aggressive
    #[arg(long, value_name = "POLICY", value_parser = word::<RiskPolicy>)]
    risk_policy: Option<RiskPolicy>,
}

pub(crate) fn run(args: &Args, config: &Config) -> Result<Exit> {
    let script = args.answers.as_deref().map(Script::read).transpose()?;
    let screen = Screen::new(&config.output);
    let left = Left::default();
    let ended = home::block_on(stop::by_signal(async {
        left.under_way.set(true);
        let (door, answer) = begin(args, config).await?;
        left.under_way.set(false);
        left.door.replace(Some(door.clone()));
        let automations = door.automations.clone();
        let walk = Walk { args, config, screen: &screen, door, left: &left };
        let ended = match script {
            Some(script) => walk.scripted(script, answer).await,
            None => walk.typed(answer).await,
        };
        // What an automation is at is left to whoever comes next.
        automations.stop(PATIENCE).await;
        ended
    }));
    let interrupted = matches!(ended, Ok(Exit::Interrupted | Exit::Terminated));
    match home::block_on(async { Ok(left.token().await) })? {
        Some(token) => {
            screen.unsent(&left.draft.borrow());
            screen.leave(&token);
        }
        None if interrupted && left.under_way.get() => screen.lost(),
        None => {}
    }
    ended
}

/// What is left behind by whoever stops or is interrupted.
#[derive(Default)]
struct Left {
    door: RefCell<Option<Door>>,
    /// The token of where the run stands; none when it is over.
    place: RefCell<Option<String>>,
    /// What was typed and not sent.
    draft: RefCell<Said>,
    /// Whether the run is at work on what it was sent.
    under_way: Cell<bool>,
}

impl Left {
    /// The token to come back with: that of the run's tip, where it may have gone on already.
    async fn token(&self) -> Option<String> {
        let (door, token) = (self.door.take()?, self.place.take()?);
        if !self.under_way.get() {
            return Some(token);
        }
        // Where the run cannot be looked at, the place that is known is better than none.
        let branches = door.proceed(back(&token)).await.map(|answer| answer.branches);
        let newest = branches.unwrap_or_default().into_iter().find(|branch| branch.preferred);
        Some(newest.map_or(token, |branch| branch.continue_token))
    }
}

/// A way through a run.
struct Walk<'a> {
    args: &'a Args,
    config: &'a Config,
    screen: &'a Screen<'a>,
    door: Door,
    left: &'a Left,
}

impl Walk<'_> {
    /// Shows where the run stands; gives the token to go on with, unless it is over.
    fn arrive(&self, answer: &Answer) -> Result<Option<String>> {
        let token = (!answer.is_complete).then(|| token(answer).to_owned());
        self.left.place.replace(token.clone());
        if self.config.output.json {
            self.config.output.object(&wire::Answer::from(answer.clone()))?;
        } else {
            self.screen.show(answer)?;
        }
        Ok(token)
    }

    /// Sends a call, and knows that it is under way.
    async fn send(&self, call: Continue) -> Result<Answer> {
        self.left.under_way.set(true);
        let answer = self.door.proceed(call).await;
        self.left.under_way.set(false);
        answer
    }

    /// Goes on over a step that the engine was interrupted at: nobody need say anything to it.
    async fn resumed(&self, answer: Answer) -> Result<Answer> {
        if !answer.pending.as_ref().is_some_and(|pending| pending.is_owed) {
            return Ok(answer);
        }
        match self.arrive(&answer)? {
            Some(token) => self.send(Said::default().ack(&token, self.args)).await,
            None => Ok(answer),
        }
    }

    /// The answers come from a file. The first that is refused ends it.
    async fn scripted(&self, mut script: Script, answer: Answer) -> Result<Exit> {
        let mut answer = self.resumed(answer).await?;
        while let Some(token) = self.arrive(&answer)? {
            if answer.pending.is_none() {
                match self.look_again(&answer, &token).await? {
                    Some(next) => answer = next,
                    None => return Ok(Exit::Waiting),
                }
                continue;
            }
            match script.next(&answer)? {
                Some(said) => answer = self.send(said.ack(&token, self.args)).await?,
                None => return Ok(Exit::Waiting),
            }
        }
        Ok(end(&answer))
    }

    /// The answers are typed in. What was typed stays until the run has taken it.
    async fn typed(&self, answer: Answer) -> Result<Exit> {
        let draft = &self.left.draft;
        let mut answer = self.resumed(answer).await?;
        while let Some(token) = self.arrive(&answer)? {
            if answer.pending.is_none() {
                match self.look_again(&answer, &token).await? {
                    Some(next) => answer = next,
                    None => return Ok(Exit::Waiting),
                }
                continue;
            }
            let (step, mut refused) = (step_of(&answer), None);
            answer = loop {
                let next = match self.screen.ask(draft).await? {
                    Given::Answer => {
                        let said = draft.borrow().clone();
                        self.send(said.ack(&token, self.args)).await
                    }
                    Given::Again => self.door.proceed(back(&token)).await,
                    Given::Nothing => return refused.map_or(Ok(Exit::Waiting), Err),
                };
                match next {
                    Ok(next) => break next,
                    Err(error) => {
                        self.screen.refused(&error);
                        refused = Some(error);
                    }
                }
            };
            // Where the run stays at the step, and where it is only shown again, the draft stays.
            let stays = !answer.blockers.is_empty() || answer.lifecycle == Lifecycle::Rehydrate;
            if !stays || step != step_of(&answer) {
                draft.take();
            }
        }
        Ok(end(&answer))
    }

    /// Where an automation stands after a while; none when only a person can let it go on.
    async fn look_again(&self, answer: &Answer, token: &str) -> Result<Option<Answer>> {
        let stuck =
            |run: &Standing| !run.asks.is_empty() || matches!(run.status, "paused" | "waiting");
        match answer.standing.as_ref().is_some_and(stuck) {
            true => Ok(None),
            false => Ok(Some(self.door.proceed(back(token)).await?)),
        }
    }
}

/// How the command ends when a run has.
fn end(answer: &Answer) -> Exit {
    let failed = |run: &Standing| run.status != "succeeded";
    if answer.standing.as_ref().is_some_and(failed) { Exit::Failed } else { Exit::Success }
}

/// The first answer: that of a new run, or of the place that a token names.
async fn begin(args: &Args, config: &Config) -> Result<(Door, Answer)> {
    let mut catalog = sources::catalog(config);
    let mut workflow = args.workflow.clone().unwrap_or_default();
    if Path::new(&workflow).is_file() {
        let (pinned, found) = sources::with_file(Path::new(&workflow), config)?;
        (catalog, workflow) = (pinned, found.id.clone());
    }
    let workspace = std::env::current_dir().ok();
    let (store, catalog) = (home::open(config)?, Arc::new(catalog));
    let automations = automate::open(config, store.clone(), Arc::clone(&catalog))?;
    let guide = door::guide(config, store, Arc::clone(&catalog), workspace.clone())?;
    // Whoever sits at this machine may do everything.
    let holder = Holder { scopes: vec![Scope::Admin], by: somebody::by() };
    let door = door::with(guide, automations, catalog, (holder, Reach::User));
    let answer = match &args.r#continue {
        Some(run) if run.starts_with("run_") => {
            let run = runs::find(run, &door.automations).await?;
            door.join(run).await?
        }
        Some(token) => {
            let token = labelled(token, &door).await?;
            door.proceed(back(&token)).await?
        }
        None => {
            let context = args.set.iter().map(|set| fact(set)).collect::<Result<Map<_, _>>>()?;
            let context = (!context.is_empty()).then_some(Value::Object(context));
            let preferences = args.wanted();
            let goal = args.goal.clone();
            let start =
                Start { workflow, goal, context, preferences, workspace, ..Start::default() };
            door.start(start).await?
        }
    };
    Ok((door, answer))
}

/// The token of the only run with a label; any other text is taken for a token itself.
async fn labelled(text: &str, door: &Door) -> Result<String> {
    if !text.contains('-') || Label::new(text).is_none() {
        return Ok(text.to_owned());
    }
    let query = Some(text.to_owned());
    let ask = Resume { query, git_branch: None, git_head_sha: None, workspace: None };
    let found = door.guide.resume(ask).await?;
    let runs: Vec<_> = found.into_iter().filter(|run| run.label == text && !run.branch).collect();
    match runs.as_slice() {
        [run] => Ok(run.continue_token.clone()),
        // What it is then is said by whoever reads tokens.
        [] => Ok(text.to_owned()),
        several => Err(Error::Usage {
            message: format!("{} runs are called `{text}`", several.len()),
            suggestion: format!("find the one you mean with `cairn session resume --query {text}`"),
        }),
    }
}

impl Args {
    const fn wanted(&self) -> Wanted {
        Wanted { autonomy: self.autonomy, risk_policy: self.risk_policy }
    }
}

/// One of the words of a closed set.
fn word<T: DeserializeOwned>(text: &str) -> std::result::Result<T, String> {
    serde_json::from_value(Value::from(text)).map_err(|error| error.to_string())
}

/// One fact of the context.
pub(super) fn fact(set: &str) -> Result<(String, Value)> {
    let (name, value) = set.split_once('=').ok_or_else(|| Error::Usage {
        message: format!("`{set}` sets nothing"),
        suggestion: "write --set NAME=VALUE".to_owned(),
    })?;
    let value = match serde_json::from_str(value) {
        Ok(value) => value,
        // What begins like JSON is meant as such.
        Err(error) if value.trim_start().starts_with(['{', '[', '"']) => {
            let place = match error.line() {
                0 | 1 => format!("column {}", error.column()),
                line => format!("line {line}, column {}", error.column()),
            };
            let quoted = Value::from(value).to_string();
            return Err(Error::Usage {
                message: format!("the value of `{name}` begins like JSON and is none: {place}"),
                suggestion: format!("correct it there, or write '{quoted}' if it is meant as text"),
            });
        }
        Err(_) => Value::String(value.to_owned()),
    };
    Ok((name.to_owned(), value))
}

fn step_of(answer: &Answer) -> Option<String> {
    answer.pending.as_ref().map(|pending| pending.step_id.clone())
}

/// The token to go on with: after a block that for another try.
fn token(answer: &Answer) -> &str {
    answer.retry_continue_token.as_deref().unwrap_or(&answer.tokens.continue_token)
}

fn back(token: &str) -> Continue {
    Continue {
        at: At::Compact(token.to_owned()),
        intent: Some(Intent::Rehydrate),
        output: None,
        context: None,
        preferences: Wanted::default(),
        tokens: Tokens::Compact,
        by: None,
    }
}
