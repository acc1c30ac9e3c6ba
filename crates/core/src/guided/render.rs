//! What an agent is shown: the pending step's instructions, made from the pinned plan.

pub(super) mod mode;

use std::borrow::Cow;
use std::fmt::Write as _;

use serde_json::{Value, json};

use super::condition::{holds, lookup};
use super::judge::{self, kinds};
use super::keys;
use super::probe;
use super::scene::Scene;
use crate::canonical;
use crate::digest::Digest;
use crate::event::guided::{Capability, Preferences};
use crate::instance::StepInstanceKey;
use crate::plan::{
    Action, CapabilityNeed, ConfirmedBy, Function, FunctionScope, InjectedText, Need, Plan, Prompt,
    Step,
};
use crate::snapshot::LoopFrame;
use crate::text::truncate;

/// How long one value may be that a prompt takes in.
pub const VALUE_MAX: usize = 4096;
/// How long the function definitions of one prompt may be together.
pub const FUNCTIONS_MAX: usize = 16 << 10;

/// What the references of features begin with.
const FEATURES: &str = "wr.features.";

/// How many demands on the answer a prompt lists.
pub const REQUIREMENTS_MAX: usize = 5;

/// A prompt, ready to be read.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Shown {
    /// The text.
    pub prompt: String,
    /// The names that it mentions and nobody has set, in order.
    pub unset: Vec<String>,
}

/// A step where a run stands.
#[derive(Clone, Copy, Debug)]
pub struct Stage<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// The step.
    pub step: &'a Step,
    /// The loops around it.
    pub loop_stack: &'a [LoopFrame],
    /// The context with the turns of those loops.
    pub scene: &'a Scene<'a>,
    /// The preferences that hold there.
    pub preferences: Preferences,
    /// Who must agree to it; none when nobody is asked.
    pub confirmed_by: Option<ConfirmedBy>,
    /// The steps that were done before, as far as they are known.
    pub done: &'a [StepInstanceKey],
}

/// What an agent is told beside the step itself.
#[derive(Clone, Copy, Debug)]
pub struct Telling {
    /// The rules of the whole workflow: the agent begins, or has lost what it was told.
    pub opening: bool,
    /// What the preferences ask of it: it cannot know them, or they changed.
    pub mode: bool,
}

/// The instructions of a step as an agent sees them. `beside` is what it is shown of other
/// branches, which may speak of functions that the step does not.
#[must_use]
pub fn prompt(stage: Stage<'_>, telling: Telling, beside: &str) -> Shown {
    let Stage { plan, step, scene, .. } = stage;
    let Action::Prompt(prompt) = &step.action else {
        return Shown { prompt: performed(step), unset: Vec::new() };
    };
    let mut text = String::new();
    if telling.opening {
        rules(plan, &mut text);
    }
    let role = prompt.agent_role.as_ref().or(plan.agent_role.as_ref());
    section(&mut text, role.map(String::as_str).unwrap_or_default());
    section(&mut text, &text_of(stage, prompt, telling));
    for fragment in &prompt.fragments {
        let condition = fragment.condition.as_ref();
        let condition = condition.and_then(|id| plan.conditions.iter().find(|c| c.id == *id));
        let shown = fragment.condition.is_none()
            || condition.is_some_and(|condition| holds(&condition.config.0, scene));
        if shown {
            section(&mut text, &fragment.text);
        }
    }
    section(&mut text, &functions(stage, prompt, telling, beside));
    let mut shown = fill(&text, scene);
    // What follows is written here or by the compiler: what stands in braces there is meant so.
    section(&mut shown.prompt, &requirements(stage, prompt));
    if telling.mode {
        section(&mut shown.prompt, &mode::all(plan, stage.preferences));
    }
    section(&mut shown.prompt, mode::confirmation(stage.confirmed_by, stage.preferences.autonomy));
    if telling.opening {
        section(&mut shown.prompt, &mode::disclosure(step, prompt));
    }
    shown
}

/// What stands in place of instructions when the engine does the step.
fn performed(step: &Step) -> String {
    format!("The engine performs `{}` itself: continue, and it runs.", step.id)
}

/// The text of a prompt, without the lines of features that an earlier step was told.
fn text_of<'a>(stage: Stage<'a>, prompt: &'a Prompt, telling: Telling) -> Cow<'a, str> {
    let is_told = |line: &InjectedText| {
        let told = |done: &StepInstanceKey| match stage.plan.step(&done.step).map(|s| &s.action) {
            Some(Action::Prompt(earlier)) => earlier.injected.contains(line),
            Some(Action::Typed { .. }) | None => false,
        };
        line.r#ref.starts_with(FEATURES) && stage.done.iter().any(told)
    };
    let told: Vec<Digest> = match telling.opening {
        true => Vec::new(),
        false => prompt.injected.iter().filter(|l| is_told(l)).map(|l| l.sha256).collect(),
    };
    if told.is_empty() {
        return Cow::Borrowed(&prompt.text);
    }
    let is_new = |line: &&str| {
        let item = line.strip_prefix("- ");
        !item.is_some_and(|item| told.contains(&Digest::of(item.as_bytes())))
    };
    let parts = prompt.text.split("\n\n").filter_map(|part| {
        let left: Vec<&str> = part.lines().filter(is_new).collect();
        // A heading that lost all its lines goes with them.
        let is_bare = left.len() == 1 && left.len() < part.lines().count();
        (!is_bare).then(|| left.join("\n"))
    });
    Cow::Owned(parts.collect::<Vec<_>>().join("\n\n"))
}

/// Adds a part, with an empty line before it.
fn section(text: &mut String, part: &str) {
    let part = part.trim_end();
    if part.is_empty() {
        return;
    }
    if !text.is_empty() {
        text.push_str("\n\n");
    }
    text.push_str(part);
}

fn rules(plan: &Plan, text: &mut String) {
    let needs: Vec<String> = plan.capabilities.iter().filter_map(capability).collect();
    if !needs.is_empty() {
        section(text, &bullets("Capabilities", &needs));
    }
    let Some(guide) = &plan.guide else { return };
    let lists = [
        ("Before you begin", &guide.preconditions),
        ("Settle these questions first, as far as they are open", &guide.clarifications),
        ("Rules for the whole workflow", &guide.rules),
    ];
    for (title, lines) in lists.into_iter().filter(|(_, lines)| !lines.is_empty()) {
        section(text, &bullets(title, lines));
    }
}

/// What is said of a capability that the plan can do without; a required one is probed.
fn capability(wanted: &CapabilityNeed) -> Option<String> {
    let name = probe::name(wanted.capability);
    let (gain, instead) = match wanted.capability {
        Capability::Delegation => ("hand work to subagents", "do it yourself"),
        Capability::WebBrowsing => ("look things up on the web", "go without"),
    };
    match wanted.need {
        Need::Required => None,
        Need::Preferred => Some(format!(
            "`{name}` is preferred: {gain} where that helps. If you cannot, {instead}, and send \
             this artifact with that step: {}",
            json!({
                "kind": kinds::CAPABILITY, "capability": name, "status": "unavailable",
                "detail": "<what you tried>",
            })
        )),
        Need::Disabled => {
            Some(format!("`{name}` is disabled: do not {gain}, even if you can; {instead}."))
        }
    }
}

fn bullets(title: &str, lines: &[String]) -> String {
    let mut list = format!("{title}:");
    for line in lines {
        list.push_str("\n- ");
        list.push_str(line);
    }
    list
}

/// What is asked of the answer.
fn requirements(stage: Stage<'_>, prompt: &Prompt) -> String {
    let notes = match needs_notes(stage.step, prompt) {
        true => "Give notes on what you did in this step alone.",
        false => "Notes are optional in this step.",
    };
    let mut lines = vec![notes.to_owned()];
    lines.extend(asks(stage).context.iter().map(|(name, told)| {
        format!("Set the context key `{name}` ({told}), in `context` beside `output`.")
    }));
    // What the engine asks for itself is always told.
    let all = prompt.requirements.len();
    lines.extend(prompt.requirements.iter().take(REQUIREMENTS_MAX).cloned());
    match all > REQUIREMENTS_MAX {
        false => bullets("What the answer needs", &lines),
        true => bullets(
            &format!("What the answer needs, the first {REQUIREMENTS_MAX} of {all} demands"),
            &lines,
        ),
    }
}

/// What the answer to a step brings.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Asks {
    /// Whether there must be notes.
    pub notes: bool,
    /// One to fill in for each artifact that must come.
    pub artifacts: Vec<Value>,
    /// The keys of the context that are to be set and are not, each with what it may be.
    pub context: Vec<(String, String)>,
}

/// What the answer to a step brings.
#[must_use]
pub fn asks(stage: Stage<'_>) -> Asks {
    let Action::Prompt(prompt) = &stage.step.action else {
        return Asks { notes: false, ..Asks::default() };
    };
    let open = |key: &keys::Key<'_>| key.fault(stage.scene).is_some();
    let context = keys::of(stage.plan, stage.step).into_iter().filter(open);
    Asks {
        notes: needs_notes(stage.step, prompt),
        artifacts: judge::examples(stage.plan, stage.step, prompt),
        context: context.map(|key| (key.name.to_owned(), key.told())).collect(),
    }
}

/// Whether an answer must bring notes: a contract's artifact can stand for them.
pub(super) fn needs_notes(step: &Step, prompt: &Prompt) -> bool {
    !prompt.notes_optional && step.output_contracts.is_empty()
}

/// The definitions that a prompt refers to, nearest scope first, then those that only what
/// stands beside it mentions; as many as fit. What an earlier step was told is not told again.
fn functions(stage: Stage<'_>, prompt: &Prompt, telling: Telling, beside: &str) -> String {
    let Stage { plan, step, loop_stack, .. } = stage;
    let told = |function: &&Function| {
        let refers = |done: &StepInstanceKey| match plan.step(&done.step).map(|step| &step.action) {
            Some(Action::Prompt(earlier)) => earlier.functions.contains(&function.name),
            Some(Action::Typed { .. }) | None => false,
        };
        let everywhere = matches!(function.scope, FunctionScope::Workflow {});
        !telling.opening && everywhere && stage.done.iter().any(refers)
    };
    let visible = |function: &&Function| match &function.scope {
        FunctionScope::Step { step_id } => *step_id == step.id,
        FunctionScope::Loop { loop_id } => loop_stack.iter().any(|f| f.loop_id == *loop_id),
        FunctionScope::Workflow {} => true,
    };
    let asked = |function: &&Function| prompt.functions.contains(&function.name);
    let mentioned = |function: &&Function| beside.contains(function.name.trim_end_matches(')'));
    // The plan's functions stand in order of scope and name.
    let all = plan.functions.iter();
    let mut own: Vec<&Function> = Vec::new();
    for function in all.clone().filter(visible).filter(asked).filter(|f| !told(f)) {
        if !own.iter().any(|known| known.name == function.name) {
            own.push(function);
        }
    }
    let is_own = |function: &&Function| own.iter().any(|known| known.name == function.name);
    let other: Vec<&Function> = all.filter(mentioned).filter(|f| !is_own(f)).collect();
    let mut text = String::new();
    section(&mut text, &list("Functions for this step:", &own, FUNCTIONS_MAX));
    let room = FUNCTIONS_MAX.saturating_sub(text.len());
    section(&mut text, &list("Functions that other branches mention:", &other, room));
    text
}

/// A list of definitions, as many as fit.
fn list(title: &str, functions: &[&Function], max: usize) -> String {
    if functions.is_empty() {
        return String::new();
    }
    let mut text = title.to_owned();
    for (place, function) in functions.iter().enumerate() {
        let entry = format!("\n- `{}`: {}", function.name, function.definition);
        if text.len() + entry.len() > max {
            let room = max.saturating_sub(text.len());
            text.push_str(&truncate(&entry, room));
            let left = functions.len() - place - 1;
            if left > 0 {
                let _ = write!(text, "\nLeft out for their length: {left} definitions.");
            }
            break;
        }
        text.push_str(&entry);
    }
    text
}

/// Puts values in the place of `{{path}}`. What is not a dotted path stays as it is written.
#[must_use]
pub fn fill(text: &str, scene: &Scene<'_>) -> Shown {
    let mut shown = Shown::default();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        shown.prompt.push_str(before);
        match after.split_once("}}") {
            Some((inner, behind)) if is_path(inner.trim()) => {
                let path = inner.trim();
                match lookup(scene, path) {
                    Some(value) => shown.prompt.push_str(&truncate(&plain(&value), VALUE_MAX)),
                    None => {
                        let _ = write!(shown.prompt, "[unset: {path}]");
                        if !shown.unset.iter().any(|known| known == path) {
                            shown.unset.push(path.to_owned());
                        }
                    }
                }
                rest = behind;
            }
            _ => {
                shown.prompt.push_str("{{");
                rest = after;
            }
        }
    }
    shown.prompt.push_str(rest);
    shown
}

/// The paths that a text takes values from.
pub(super) fn paths(text: &str) -> impl Iterator<Item = &str> {
    let parts = text.split("{{").skip(1);
    let inner = parts.filter_map(|part| part.split_once("}}").map(|(inner, _)| inner.trim()));
    inner.filter(|inner| is_path(inner))
}

fn is_path(text: &str) -> bool {
    let name = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
    };
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && text.split('.').all(name)
}

/// A value as it stands in a text.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => {
            let json = canonical::to_vec(other).ok();
            json.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default()
        }
    }
}
