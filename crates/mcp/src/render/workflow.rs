//! Workflows, for agents to choose from.

use std::fmt::Write as _;

use cairn_api::guided::workflow::{Entry, Inspected, Kind, Workflows};
use cairn_core::guided::probe;

/// One page of the list.
pub(crate) fn workflows(data: &Workflows) -> String {
    if data.workflows.is_empty() {
        return "No workflow matches. Leave out the query to see all of them.".to_owned();
    }
    let mut text = match data.waiting_runs {
        0 => String::new(),
        1 => "1 run waits for you: find it with resume_session.\n".to_owned(),
        many => format!("{many} runs wait for you: find them with resume_session.\n"),
    };
    text.push_str("Start one with start_workflow and its id.");
    for entry in &data.workflows {
        let _ = write!(text, "\n- {}", headline(entry));
        if !entry.description.is_empty() {
            let _ = write!(text, ": {}", entry.description);
        }
    }
    if let Some(cursor) = &data.next_cursor {
        let _ = write!(text, "\nThere are more: call again with cursor \"{cursor}\".");
    }
    text
}

fn headline(entry: &Entry) -> String {
    let mut text = format!("`{}` {}", entry.workflow_id, entry.name);
    if entry.kind == Kind::Routine {
        text.push_str(" (routine)");
    }
    if entry.dialect.is_some() {
        text.push_str(" (automation)");
    }
    if let Some(canonical) = &entry.canonical_id {
        let _ = write!(text, " (now `{canonical}`)");
    }
    if let Some(problem) = &entry.problem {
        let _ = write!(text, " (cannot be started: {problem})");
    }
    text
}

/// One workflow.
pub(crate) fn inspected(data: &Inspected) -> String {
    let mut text = format!("{}\n{}", headline(&data.entry), data.entry.description);
    if let Some(about) = &data.about {
        let _ = write!(text, "\n\n{about}");
    }
    if data.entry.dialect.is_some() {
        text.push_str(
            "\n\nAn automation: the engine performs it. What is for an agent, the steps of type \
             guide, you get one at a time from start_workflow and continue_workflow.",
        );
    }
    list(&mut text, "Before it begins", data.preconditions.iter().cloned());
    let input = data.input.as_ref().and_then(|input| input.0.as_object());
    let input = input.into_iter().flatten().map(|(name, rules)| format!("`{name}`: {rules}"));
    list(&mut text, "Context to start it with", input);
    let steps = data.steps.iter().map(|step| {
        let kind = step.r#type.as_ref().map(|kind| format!(" ({kind})")).unwrap_or_default();
        format!("`{}` {}{kind}", step.step_id, step.title)
    });
    list(&mut text, "Steps", steps);
    let references = data.references.iter().map(|r| format!("{}: {}", r.title, r.source));
    list(&mut text, "References", references);
    let needs = data
        .capabilities
        .iter()
        .map(|need| format!("{} ({})", probe::name(need.capability), need.need.name()));
    list(&mut text, "Capabilities", needs);
    let loops = data.loops.iter().map(|found| {
        let body: Vec<&str> = found.body.iter().map(|id| id.as_str()).collect();
        format!("`{}`: {}, at most {} turns", found.id, body.join(", "), found.max_iterations)
    });
    list(&mut text, "Loops", loops);
    let contracts = data.contracts.iter().map(|contract| {
        let example = contract.example.as_ref().map(|example| format!(", such as {}", example.0));
        format!("`{}`{}", contract.r#ref, example.unwrap_or_default())
    });
    list(&mut text, "Contracts of outputs", contracts);
    text.push_str("\n\nSteps are given out one by one: begin with start_workflow.");
    text
}

fn list(text: &mut String, title: &str, items: impl Iterator<Item = String>) {
    let items: Vec<String> = items.collect();
    if items.is_empty() {
        return;
    }
    let _ = write!(text, "\n\n{title}:");
    for item in items {
        let _ = write!(text, "\n- {item}");
    }
}
