//! The door to runs: guided ones, and those that the engine performs and of which it hands
//! single steps to an agent. Which it is, the workflow or the token says.

use std::sync::Arc;

use cairn_api::Error;
use cairn_api::error::{Lack, Result};
use cairn_api::guided::answer::Resumed;
use cairn_api::token::{Holder, Scope};
use cairn_core::catalog::SettingFault;
use cairn_core::id::RunId;
use cairn_core::plan::Mode;
use cairn_engine as engine;
use cairn_engine::catalog::{Catalog, Found};
use cairn_engine::flow::{Automations, RunRequest, TriggerEvent, WaitingRun};
use cairn_engine::guided::Guide;
use cairn_engine::guided::answer::{Answer, Checkpointed, Warning, WarningCode};
use cairn_engine::guided::ask::{
    At, Checkpoint, CheckpointAt, Continue, Resume, Start, Tokens, Wanted,
};
use cairn_engine::trigger::Triggers;
use serde_json::{Value, json};

use crate::Reach;

/// How many runs that wait for an agent are offered at once.
const WAITING_MAX: usize = 5;

/// What the tools work with.
#[derive(Clone)]
pub struct Door {
    /// Guided runs.
    pub guide: Guide,
    /// Runs that the engine performs.
    pub automations: Automations,
    /// What starts those.
    pub triggers: Triggers,
    /// Workflows.
    pub catalog: Arc<Catalog>,
    /// Who comes in.
    pub holder: Holder,
    /// Which projects they may work on.
    pub reach: Reach,
}

impl Door {
    /// Begins a run, and gives the first step that is the agent's to do.
    pub async fn start(&self, ask: Start) -> Result<Answer> {
        self.reach.require(ask.workspace.as_deref())?;
        let found = self.find(&ask.workflow).await?;
        match found.compiled()?.plan.mode() {
            Mode::Performed => self.start_automation(&found, ask).await,
            Mode::Guided => {
                Ok(self.guide.start(Start { by: Some(self.holder.by.clone()), ..ask }).await?)
            }
        }
    }

    /// Takes what came of a step and gives the next, or shows where a run stands.
    pub async fn proceed(&self, ask: Continue) -> Result<Answer> {
        let ask = Continue { by: Some(self.holder.by.clone()), ..ask };
        match &ask.at {
            At::Compact(token) if self.automations.gave_out(token).await? => {
                let pair = ask.tokens == Tokens::Pair;
                let mut answer = self.automations.proceed(ask, &self.holder.roles()).await?;
                answer.warnings.extend(pair.then(compact_only));
                Ok(answer)
            }
            _ => Ok(self.guide.proceed(ask).await?),
        }
    }

    /// Leaves notes at a step of a guided run.
    pub async fn checkpoint(&self, ask: Checkpoint) -> Result<Checkpointed> {
        let (CheckpointAt::Compact(token) | CheckpointAt::Pair { checkpoint: token, .. }) = &ask.at;
        if self.automations.gave_out(token).await? {
            return Err(Error::Engine(engine::Error::TokenScope {
                message: "the token is one of an automation, which keeps no checkpoints: every step that is done is kept already".to_owned(),
                instead: "finish the step and send what it asks for with continue_workflow; the token alone shows that again".to_owned(),
            }));
        }
        let ask = Checkpoint { by: Some(self.holder.by.clone()), ..ask };
        Ok(self.guide.checkpoint(ask).await?)
    }

    /// Finds the runs that somebody most likely means.
    pub async fn resume(&self, ask: Resume) -> Result<Resumed> {
        // What others wrote down is for those who may read it.
        if !self.holder.scopes.iter().any(|scope| matches!(scope, Scope::Read | Scope::Admin)) {
            let lacks = Lack::Scope(Scope::Read);
            return Err(Error::Forbidden { action: "sessions:read", lacks });
        }
        self.reach.require(ask.workspace.as_deref())?;
        let words = ask.query.clone().unwrap_or_default();
        let waiting = self.automations.offered_to(&self.holder.by, &self.holder.roles()).await?;
        let waiting = waiting.into_iter().filter(|run| speaks_of(run, &words));
        let (found, more) = self.guide.look_for(ask).await?;
        let untrusted = self.guide.untrusted().await?;
        let resumed = Resumed { more, ..Resumed::new(found, &untrusted) };
        Ok(resumed.with_waiting(waiting.take(WAITING_MAX)))
    }

    /// Claims a run that waits for an agent, and gives its step.
    pub async fn join(&self, run: RunId) -> Result<Answer> {
        Ok(self.automations.join(run, self.holder.by.clone(), &self.holder.roles()).await?)
    }

    /// Looks a workflow up, on a thread that may read and compile files.
    async fn find(&self, workflow: &str) -> Result<Arc<Found>> {
        let (catalog, workflow) = (Arc::clone(&self.catalog), workflow.to_owned());
        let found = tokio::task::spawn_blocking(move || catalog.find(&workflow)).await;
        Ok(found.map_err(|error| Error::Internal(error.to_string()))??)
    }

    async fn start_automation(&self, found: &Found, ask: Start) -> Result<Answer> {
        let (workflow, input) = (found.id.clone(), input(&ask)?);
        let trigger = match self.triggers.call(&found.compiled()?.plan) {
            None => None,
            Some((trigger, call)) => {
                // Only a door knows what an agent calls the input.
                call.fill(input.clone()).map_err(|faults| unfit(&faults))?;
                Some(trigger)
            }
        };
        let kind = "manual".to_owned();
        // What the run is for, in the place that a person's words have in other events.
        let goal = ask.goal.as_deref().map(str::trim).filter(|goal| !goal.is_empty());
        let more = goal.map(|goal| ("text".to_owned(), json!(goal))).into_iter().collect();
        let event = TriggerEvent { payload: input, kind, more };
        let (key, roles) = (None, self.holder.roles());
        let by = self.holder.by.clone();
        let request = RunRequest { workflow, trigger, key, event, depth: 0, by, roles };
        let mut answer = self.automations.start_held(request).await?;
        answer.warnings.extend((ask.tokens == Tokens::Pair).then(compact_only));
        answer.warnings.extend(engine::guided::empty_goal(ask.goal.as_deref()));
        if ask.preferences != Wanted::default() {
            let message = "an automation has no preferences; what you sent means nothing to it";
            let warning =
                Warning { code: WarningCode::PreferencesUnused, message: message.to_owned() };
            answer.warnings.push(warning);
        }
        Ok(answer)
    }
}

/// Whether all of these words are in what is known of a run.
fn speaks_of(run: &WaitingRun, words: &str) -> bool {
    let WaitingRun { label, workflow, step, prompt, given, .. } = run;
    let text = format!("{label} {workflow} {step} {prompt} {given}");
    let text = text.to_lowercase();
    words.split_whitespace().all(|word| text.contains(&word.to_lowercase()))
}

/// What an automation is given: the context of the call.
fn input(ask: &Start) -> Result<Value> {
    if ask.session.is_some() {
        return Err(Error::Engine(engine::Error::Invalid {
            message: "an automation has sessions of its own".to_owned(),
            fix: "leave `sessionId` out".to_owned(),
            details: json!({"field": "sessionId"}),
        }));
    }
    Ok(Value::Object(engine::guided::context(ask.context.as_ref())?))
}

fn unfit(faults: &[SettingFault]) -> Error {
    let shown = |fault: &SettingFault| json!({"field": fault.field, "message": fault.message, "suggestion": fault.hint});
    let told: Vec<&str> = faults.iter().map(|fault| fault.message.as_str()).collect();
    let hint = faults.first().map(|fault| fault.hint.as_str()).unwrap_or_default();
    Error::Engine(engine::Error::Invalid {
        message: format!("`context` does not fit the workflow: {}", told.join("; ")),
        fix: format!("{hint}; inspect_workflow shows the input that it takes"),
        details: json!({"field": "context", "faults": faults.iter().map(shown).collect::<Vec<_>>()}),
    })
}

fn compact_only() -> Warning {
    let message = "an automation gives out continueToken alone; stateToken and ackToken belong to guided runs";
    Warning { code: WarningCode::TokensCompactOnly, message: message.to_owned() }
}
