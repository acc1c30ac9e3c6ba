//! Steps on a terminal, and what is typed there.

use std::io;

use cairn_api::error::{Error, Result};
use cairn_engine::guided::answer::Answer;

use super::answers::{Given, Said};
use crate::output::{Output, Style, plain};

const HELP: &str = "\
type notes on what you did; a line that is only a dot ends them
  :artifact {\"kind\": ...}   add a structured result
  :set NAME=VALUE             set a fact of the context
  :again                      show the step again
  :quit                       stop here; the run waits";

pub(super) struct Screen<'a> {
    output: &'a Output,
}

impl<'a> Screen<'a> {
    pub(super) const fn new(output: &'a Output) -> Self {
        Self { output }
    }

    pub(super) fn show(&self, answer: &Answer) -> Result<()> {
        let output = self.output;
        for blocker in &answer.blockers {
            let code = serde_json::to_value(blocker.code).unwrap_or_default();
            let code = output.paint(Style::Bad, code.as_str().unwrap_or_default());
            output.line(&format!("{code}  {}", plain(&blocker.message)))?;
            if let Some(fix) = &blocker.suggested_fix {
                output.line(&format!("  → {}", plain(fix)))?;
            }
        }
        for warning in &answer.warnings {
            let code = output.paint(Style::Warning, warning.code);
            output.line(&format!("{code}  {}", plain(&warning.message)))?;
        }
        if let Some(recap) = &answer.recap {
            output.line(&output.paint(Style::Faint, "so far"))?;
            output.line(&indented(&recap.text))?;
            output.line("")?;
        }
        let label = output.paint(Style::Faint, &answer.label);
        let Some(pending) = &answer.pending else {
            let done = output.paint(Style::Good, "complete");
            return output.line(&format!("{done}  {label}"));
        };
        let title = output.paint(Style::Strong, &plain(&pending.title));
        output.line(&format!("\n{title}  {}  {label}", pending.step_id))?;
        output.line(&indented(&pending.prompt))?;
        if pending.require_confirmation {
            output.line(&output.paint(Style::Warning, "  Make sure that the user agrees."))?;
        }
        Ok(())
    }

    /// Reads an answer from standard input. One that does not come to its end is none.
    pub(super) async fn ask(&self) -> Result<Given> {
        self.output.remark("\nnotes (`.` ends them, `:help` shows more):");
        let mut said = Said::default();
        while let Some(line) = next_line().await? {
            let (word, rest) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
            match word {
                "." => return Ok(Given::Answer(said)),
                ":again" => return Ok(Given::Again),
                ":quit" => return Ok(Given::Nothing),
                ":help" => self.output.remark(HELP),
                ":artifact" => match serde_json::from_str(rest) {
                    Ok(artifact) => said.artifacts.push(artifact),
                    Err(error) => self.output.remark(&format!("that is not JSON: {error}")),
                },
                ":set" => match super::fact(rest) {
                    Ok((name, value)) => drop(said.context.insert(name, value)),
                    Err(error) => self.output.remark(&error.to_string()),
                },
                _ => {
                    said.notes.push_str(line.trim_end_matches(['\n', '\r']));
                    said.notes.push('\n');
                }
            }
        }
        if !said.notes.trim().is_empty() || !said.artifacts.is_empty() {
            self.output.remark("there was no line with a dot, so the step is not answered");
        }
        Ok(Given::Nothing)
    }

    /// Says how to come back.
    pub(super) fn leave(&self, token: &str) {
        self.output.remark(&format!("the run waits; go on with\n  cairn guide --continue {token}"));
    }
}

/// The next line of standard input, if there is one.
async fn next_line() -> Result<Option<String>> {
    let (sender, line) = tokio::sync::oneshot::channel();
    // A thread of its own, which nobody waits for when a signal comes first.
    std::thread::spawn(move || {
        let mut line = String::new();
        let read = io::stdin().read_line(&mut line);
        // Nobody may be there to hear it.
        let _ = sender.send(read.map(|bytes| (bytes > 0).then_some(line)));
    });
    let read = line.await.map_err(|error| Error::Internal(error.to_string()))?;
    read.map_err(|source| Error::File { path: "-".into(), source })
}

/// Text from elsewhere, line by line, a little to the right.
fn indented(text: &str) -> String {
    let shown = |line: &str| format!("  {}", plain(line)).trim_end().to_owned();
    text.lines().map(shown).collect::<Vec<_>>().join("\n")
}
