//! The state of a run that the engine performs.

use std::fmt::Write as _;

use cairn_api::guided::answer::{Answer, Question, Standing};
use cairn_api::run::asked::{self, Asked};

use super::{RULE, tokens};

/// The end of a run.
pub(super) fn over(run: &Standing) -> String {
    let outcome = match (&run.error, run.status) {
        (Some(error), _) => {
            let at = error.step.as_ref().map(|step| format!(" at `{step}`")).unwrap_or_default();
            format!("The automation failed{at}: {}: {}.", error.code, error.message)
        }
        (None, "cancelled") => "The automation was cancelled.".to_owned(),
        (None, _) => "The automation is complete.".to_owned(),
    };
    let intent = match run.status {
        "succeeded" => "complete",
        _ => "ended",
    };
    let mut text = format!("nextIntent: {intent}. {outcome}");
    text.push_str(" Call nothing more for this run, and tell the user its outcome.");
    if let Some(result) = &run.result {
        let _ = write!(text, "\n\nResult: {result}");
    }
    text
}

/// A run that has no step for the agent now.
pub(super) fn at_work(data: &Answer, run: &Standing) -> String {
    let id = data.session.as_ref().map_or("RUN", |session| session.run_id.as_str());
    let mut text = String::from("There is no step for you now: ");
    let mut again = "To see where the run stands";
    match run.status {
        "paused" => {
            let _ = write!(
                text,
                "the run is paused. Tell the user: `cairn runs resume {id}` resumes it."
            );
            again = "Once that is done";
        }
        _ if !run.asks.is_empty() => {
            text.push_str("the run waits for a person.");
            run.asks.iter().for_each(|asked| question(&mut text, asked, id));
            text.push_str("\nTell the user. The answer is theirs: do not answer for them.");
            again = "Once they have answered";
        }
        _ if !run.cut_off.is_empty() => {
            text.push_str("the run waits for a decision.");
            for line in run.cut_off.iter().flat_map(|step| asked::cut_off(id, step)) {
                let _ = write!(text, "\n{line}");
            }
            text.push_str("\nTell the user. The decision is theirs.");
            again = "Once they have decided";
        }
        "waiting" => {
            let _ = write!(
                text,
                "the run waits for a time, another run or a decision; `cairn runs show {id}` says \
                 which."
            );
        }
        status => {
            let doing: Vec<String> = run.doing.iter().map(|step| format!("`{step}`")).collect();
            let at =
                if doing.is_empty() { String::new() } else { format!(" {}", doing.join(", ")) };
            let _ = write!(text, "the engine is working ({status}{at}).");
        }
    }
    let _ = write!(
        text,
        "{RULE}nextIntent: {}. {again}, call continue_workflow with\n{}\nThat call waits a while \
         for the next step, and changes nothing. To continue another day, stop here and tell the \
         user: this token stays valid, and resume_session finds the run once it waits for an agent.",
        data.next_intent.name(),
        tokens(data, false)
    );
    text
}

fn question(text: &mut String, asked: &Question, run: &str) {
    let who: Vec<&str> = asked.who.iter().map(String::as_str).collect();
    let (task, step) = (&asked.task_id, format!("`{}`", asked.step_id));
    let (prompt, form) = (&asked.prompt, asked.form.as_ref());
    let lines = Asked { run, task, step: &step, prompt, form, who: &who }.lines();
    let _ =
        write!(text, "\n\n{}\n  or POST /api/v1/runs/{run}/tasks/{task}/answer", lines.join("\n"));
}

/// What else the run has for the agent and for people, beside the pending step.
pub(super) fn beside(data: &Answer) -> Option<String> {
    let run = data.run.as_ref().filter(|_| data.pending.is_some())?;
    let mut parts = Vec::new();
    match run.more_steps {
        0 => {}
        1 => parts.push("One more step waits for you: it comes when this one is done.".to_owned()),
        more => {
            parts.push(format!("{more} more steps wait for you: they come one after the other."))
        }
    }
    if !run.asks.is_empty() {
        let steps: Vec<String> =
            run.asks.iter().map(|asked| format!("`{}`", asked.step_id)).collect();
        parts.push(format!("The run also asks a person, at {}.", steps.join(", ")));
    }
    (!parts.is_empty()).then(|| parts.join(" "))
}
