//! Steps that another step brings along: its verification, its audit, and the synthesis of
//! work that was handed out.

use cairn_core::plan::{
    Action, OnFailure, OnInterrupt, Origin, OutputContract, Prompt, Step, StepSource,
};
use cairn_core::text::Slug;

use super::{Build, Scope, prompt, run};
use crate::builtins::{SHELL_SECONDS, SHELL_SECONDS_MAX};
use crate::diagnostic::Code;
use crate::read::{Fields, Spot};

const AUDIT: &str = "as somebody who did not make it. Look at the work itself and not at what was said about it, and try to show that it falls short. Report what you find with its evidence; fix only what the task covers.";
const SYNTHESIS: &str = "Put together what the pieces of work brought that were handed out in the step before this one. Check each claim that you rely on against its source, say where the results contradict each other and which evidence decides, and draw the conclusion yourself.";

/// A step that follows another.
pub(super) struct Follower {
    /// What its id ends in, and where it comes from.
    name: &'static str,
    /// What its title begins with.
    title: &'static str,
    action: Action,
    contracts: Vec<OutputContract>,
    /// Whether the run stays where it is when the step does not turn out well.
    must_pass: bool,
}

impl<'a> Build<'a> {
    /// What follows a step of an agent: what a machine can see first, then the judgement.
    pub(super) fn followers(
        &mut self,
        fields: &Fields<'a>,
        scope: &Scope,
        name: &str,
    ) -> Vec<Follower> {
        let mut followers = Vec::new();
        if let Some(spot) = fields.get("verification") {
            followers.extend(verification(&spot, scope, name));
        }
        if let Some(fields) =
            fields.get("audit").and_then(|spot| spot.fields(&["prompt", "rubric"]))
        {
            let rubric = fields.get("rubric").map(|spot| spot.items()).unwrap_or_default();
            let rubric: Vec<String> =
                rubric.iter().filter_map(|line| prompt::prose(line, scope)).collect();
            let ours = format!("Audit what the step `{name}` produced, {AUDIT}");
            let mut audit = asked(&fields, &ours, scope);
            let heading = "Say for each of these whether it holds, with the evidence:";
            prompt::add_lines(&mut audit.text, heading, &rubric);
            followers.push(follower("audit", "Audit", audit, Vec::new()));
        }
        followers
    }

    /// What follows a step that hands out work.
    pub(super) fn synthesis(&mut self, fields: &Fields<'a>, scope: &Scope) -> Option<Follower> {
        let fields = fields.get("synthesis")?.fields(&["prompt", "outputContract"])?;
        let mut synthesis = asked(&fields, SYNTHESIS, scope);
        let contracts = self.outputs(&fields, &mut synthesis.requirements);
        Some(follower("synthesis", "Put together", synthesis, contracts))
    }

    /// Puts followers behind the step that was kept last, done whenever it is done.
    pub(super) fn follow(
        &mut self,
        parent: Option<Slug>,
        spot: &Spot<'a>,
        followers: impl IntoIterator<Item = Follower>,
    ) -> Vec<Slug> {
        let Some(parent) = parent else { return Vec::new() };
        let mut order = vec![parent.clone()];
        let found = self.steps.iter().find(|step| step.id == parent);
        let Some((condition, title)) =
            found.map(|step| (step.condition.clone(), step.title.clone()))
        else {
            return order;
        };
        for Follower { name, title: verb, action, contracts, must_pass } in followers {
            let Ok(id) = format!("{parent}.{name}").parse::<Slug>() else {
                spot.error(Code::TooLong, format!("the id `{parent}.{name}` is too long"));
                continue;
            };
            self.steps.push(Step {
                action,
                condition: condition.clone(),
                id: id.clone(),
                on_failure: if must_pass { OnFailure::Stop {} } else { OnFailure::Skip {} },
                on_interrupt: OnInterrupt::Retry,
                origin: Origin { id: Some(name.to_owned()), source: StepSource::FeatureInjected },
                output_contracts: contracts,
                require_confirmation: None,
                retry: None,
                timeout_ms: None,
                visits_max: None,
                title: format!("{verb}: {title}"),
            });
            order.push(id);
        }
        order
    }
}

/// A command that the engine runs, instructions for an agent, or first one and then the other.
fn verification(spot: &Spot<'_>, scope: &Scope, name: &str) -> Vec<Follower> {
    let Some(fields) = spot.fields(&["command", "prompt", "timeoutSec"]) else {
        return Vec::new();
    };
    let (command, text) = (fields.get("command"), fields.get("prompt"));
    let limit = fields.get("timeoutSec");
    if let Some(limit) = limit.as_ref().filter(|_| command.is_none()) {
        let hint = "leave it out, or add `command`";
        limit.error_hint(Code::Conflict, "only a command has a time limit", hint);
    }
    let seconds = limit.and_then(|spot| spot.whole(1, SHELL_SECONDS_MAX)).unwrap_or(SHELL_SECONDS);
    if command.is_none() && text.is_none() {
        let hint = "add `command`, `prompt` or both";
        spot.error_hint(Code::MissingField, "nothing says how to verify", hint);
    }
    let mut followers = Vec::new();
    let key = run::default_key(&format!("{name}.verification"));
    if let Some(action) = command.as_ref().and_then(|command| run::shell(command, &key, seconds)) {
        // Where the agent is to look at what came of it, the agent decides.
        let must_pass = text.is_none();
        let (name, title, contracts) = ("verification", "Verify", Vec::new());
        followers.push(Follower { name, title, action, contracts, must_pass });
    }
    if text.is_some() {
        let mut told = asked(&fields, "", scope);
        let mut name = "verification";
        if command.is_some() {
            let line = format!("A command was run to verify it; what came of it is {{{{{key}}}}}.");
            told.text = format!("{line}\n\n{}", told.text);
            name = "verification.review";
        }
        followers.push(follower(name, "Verify", told, Vec::new()));
    }
    followers
}

/// The prompt that a field holds, else one of ours.
fn asked(fields: &Fields<'_>, otherwise: &str, scope: &Scope) -> Prompt {
    let given = fields.get("prompt").and_then(|spot| prompt::prose(&spot, scope));
    Prompt {
        agent_role: scope.role.clone(),
        text: given.unwrap_or_else(|| otherwise.to_owned()),
        ..Prompt::default()
    }
}

fn follower(
    name: &'static str,
    title: &'static str,
    prompt: Prompt,
    contracts: Vec<OutputContract>,
) -> Follower {
    let action = Action::Prompt(Box::new(prompt));
    Follower { name, title, action, contracts, must_pass: true }
}
