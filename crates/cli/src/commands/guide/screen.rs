//! Steps on a terminal, and what is typed there.

use std::cell::RefCell;
use std::io;

use cairn_api::error::{Error, Result};
use cairn_engine::guided::answer::{Answer, BranchSummary, NextIntent, Standing};

use super::answers::{Given, Said};
use crate::output::{Output, Style, plain};
use crate::render;

/// What can be typed beside notes, and what it does.
const COMMANDS: [(&str, &str); 7] = [
    (":artifact {\"kind\": …}", "add a structured result"),
    (":set NAME=VALUE", "set a fact of the context"),
    (":draft", "show what you have typed so far"),
    (":drop", "discard it and start again"),
    (":again", "show the step again; what you typed stays"),
    (":quit", "stop here; the run is kept"),
    (":help", "show this"),
];

pub(super) struct Screen<'a> {
    output: &'a Output,
}

impl<'a> Screen<'a> {
    pub(super) const fn new(output: &'a Output) -> Self {
        Self { output }
    }

    /// Shows where the run stands. What keeps it there comes last: the prompt line follows.
    pub(super) fn show(&self, answer: &Answer) -> Result<()> {
        let output = self.output;
        if let Some(recap) = &answer.recap {
            output.line(&output.paint(Style::Faint, "so far"))?;
            output.line(&self.indented(&recap.text))?;
            output.line("")?;
        }
        self.fork(&answer.branches)?;
        let label = output.paint(Style::Faint, &answer.label);
        if let Some(run) = answer.standing.as_ref().filter(|_| answer.pending.is_none()) {
            return self.run(answer, run);
        }
        let Some(pending) = &answer.pending else {
            self.warn(answer)?;
            let done = output.paint(Style::Good, "complete");
            return output.line(&format!("{done}  {label}"));
        };
        let title = output.paint(Style::Strong, &plain(&pending.title));
        output.line(&format!("\n{title}  {}  {label}", pending.step_id))?;
        output.line(&self.indented(&for_people(&pending.prompt)))?;
        self.warn(answer)?;
        if answer.next_intent == NextIntent::AwaitUserConfirmation {
            let asks = "  The run waits for your yes: answer when you agree with what was done.";
            output.line(&output.paint(Style::Warning, asks))?;
        }
        Ok(())
    }

    /// Warnings, then blockers.
    fn warn(&self, answer: &Answer) -> Result<()> {
        let output = self.output;
        for warning in &answer.warnings {
            let code = output.paint(Style::Warning, warning.code.name());
            output.line(&format!(
                "{code}  {}",
                self.wrapped(&plain(&for_people(&warning.message)), 2)
            ))?;
        }
        for blocker in &answer.blockers {
            let code = output.paint(Style::Bad, blocker.code.name());
            output.line(&format!(
                "{code}  {}",
                self.wrapped(&plain(&for_people(&blocker.message)), 2)
            ))?;
            if let Some(fix) = &blocker.suggested_fix {
                output.line(&format!("  → {}", self.wrapped(&plain(&for_people(fix)), 4)))?;
            }
        }
        Ok(())
    }

    /// Shows how an automation goes that has no step for whoever sits here.
    fn run(&self, answer: &Answer, run: &Standing) -> Result<()> {
        let output = self.output;
        let label = output.paint(Style::Faint, &answer.label);
        let style = match run.status {
            "succeeded" => Style::Good,
            "failed" => Style::Bad,
            _ => Style::Warning,
        };
        output.line(&format!("{}  {label}", output.paint(style, run.status)))?;
        if let Some(error) = &run.error {
            output.line(&format!("  {}: {}", error.code, plain(&error.message)))?;
        }
        if let Some(result) = &run.result {
            output
                .line(&self.indented(&serde_json::to_string_pretty(result).unwrap_or_default()))?;
        }
        for asked in &run.asks {
            let run = answer.session.map(|session| session.run.to_string()).unwrap_or_default();
            output.line(&format!("  {} asks: {}", asked.step, plain(&asked.prompt)))?;
            output.line(&format!("    cairn runs answer {run} {} --approve", asked.task))?;
        }
        Ok(())
    }

    /// A text in lines that the terminal can show whole, broken between words; those behind the
    /// first are a little to the right.
    fn wrapped(&self, text: &str, indent: usize) -> String {
        let Some(width) = self.output.width else { return text.to_owned() };
        let lines = render::wrap(text, width.saturating_sub(indent));
        lines.join(&format!("\n{}", " ".repeat(indent)))
    }

    /// Text from elsewhere, line by line, a little to the right.
    fn indented(&self, text: &str) -> String {
        let shown = |line: &str| {
            let lead = line.chars().take_while(|c| *c == ' ').count() + 2;
            let line = self.wrapped(plain(line).trim_start(), lead);
            format!("{}{line}", " ".repeat(lead)).trim_end().to_owned()
        };
        text.lines().map(shown).collect::<Vec<_>>().join("\n")
    }

    /// Says that the run went on from here already, and how to go on there.
    fn fork(&self, branches: &[BranchSummary]) -> Result<()> {
        if branches.is_empty() {
            return Ok(());
        }
        let output = self.output;
        let told = "The run has continued from here before; your answer starts another branch.";
        output.line(&output.paint(Style::Warning, told))?;
        for branch in branches {
            let nodes = u64::try_from(branch.nodes).unwrap_or(u64::MAX);
            let mark = if branch.preferred { ", the newest" } else { "" };
            let count = render::count(nodes, "node", "nodes");
            let last = branch.summary.lines().rfind(|line| !line.trim().is_empty());
            let last = last.map(|line| format!(": {}", plain(line))).unwrap_or_default();
            output.line(&format!("  {count}{mark}{last}"))?;
            output.line(&format!("    cairn guide --continue {}", branch.continue_token))?;
        }
        Ok(())
    }

    /// Reads on at an answer until it is complete. One that does not come to its end is none.
    pub(super) async fn ask(&self, draft: &RefCell<Said>) -> Result<Given> {
        if draft.borrow().is_empty() {
            self.output.remark("\nnotes (`.` ends them, `:help` shows more):");
        } else {
            self.output.remark(
                "\nyour draft is still here: add to it, `.` sends it, `:draft` shows it, `:drop` discards it",
            );
        }
        while let Some(line) = next_line().await? {
            let line = line.trim_end_matches(['\n', '\r']);
            let (word, rest) = line.trim_end().split_once(' ').unwrap_or((line.trim_end(), ""));
            match word {
                "." => return Ok(Given::Answer),
                ":again" => return Ok(Given::Again),
                ":quit" => return Ok(Given::Nothing),
                ":help" => self.help(),
                ":draft" => self.tell(&draft.borrow()),
                ":drop" => {
                    draft.take();
                    self.output.remark("thrown away");
                }
                ":artifact" => match serde_json::from_str(rest) {
                    Ok(artifact) => draft.borrow_mut().artifacts.push(artifact),
                    Err(error) => self.output.remark(&format!("that is not JSON: {error}")),
                },
                ":set" => match super::fact(rest) {
                    Ok((name, value)) => drop(draft.borrow_mut().context.insert(name, value)),
                    Err(error) => {
                        self.output.remark(&format!("{error}: write :set NAME=VALUE"));
                    }
                },
                _ if word.starts_with(':') && !word.starts_with("::") => {
                    self.output.remark(&format!("there is no `{}`; there are:", plain(word)));
                    self.help();
                }
                _ => {
                    let notes = &mut draft.borrow_mut().notes;
                    notes.push_str(line.strip_prefix(':').unwrap_or(line));
                    notes.push('\n');
                }
            }
        }
        if !draft.borrow().is_empty() {
            self.output.remark("there was no line with a dot, so the step is not answered");
        }
        Ok(Given::Nothing)
    }

    fn help(&self) {
        let width = COMMANDS.iter().map(|(name, _)| name.chars().count()).max().unwrap_or_default();
        self.output.remark("type notes on what you did; a line that is only a dot ends them");
        for (name, what) in COMMANDS {
            self.output.remark(&format!("  {name:width$}  {what}"));
        }
        self.output.remark("a line of the notes that begins with `:` is typed with `::`");
    }

    /// Shows what was typed so far.
    fn tell(&self, draft: &Said) {
        let output = self.output;
        if draft.is_empty() {
            output.remark("nothing yet");
        }
        draft.notes.lines().for_each(|line| output.remark(&format!("  {}", plain(line))));
        for artifact in &draft.artifacts {
            output.remark(&format!("  :artifact {}", plain(&artifact.to_string())));
        }
        for (name, value) in &draft.context {
            output.remark(&format!("  :set {}={}", plain(name), plain(&value.to_string())));
        }
    }

    /// Says why an answer was not taken.
    pub(super) fn refused(&self, error: &Error) {
        let envelope = error.envelope();
        let (code, message) = (&envelope.code, plain(&envelope.message));
        self.output.remark(&format!("not taken[{code}]: {message}\n  → {}", envelope.suggestion));
    }

    /// Gives back what was typed and not sent, since it is kept nowhere.
    pub(super) fn unsent(&self, draft: &Said) {
        if !draft.is_empty() {
            self.output.remark("\nwhat you typed was not sent, and is not kept:");
            self.tell(draft);
        }
    }

    /// Says where a run is found whose beginning was interrupted.
    pub(super) fn lost(&self) {
        self.output.remark("the run had begun to work; find it with `cairn session resume`");
    }

    /// Says how to come back.
    pub(super) fn leave(&self, token: &str) {
        self.output.remark(&format!("the run waits; go on with\n  cairn guide --continue {token}"));
    }
}

/// A text that is written for agents, which send fields, as it is for people, who type.
fn for_people(text: &str) -> String {
    const INSTEAD: [(&str, &str); 6] = [
        ("send `output.artifacts` with", "type `:artifact` with"),
        ("send `output.notesMarkdown` with", "type notes with"),
        ("in `output.artifacts`", "with `:artifact`"),
        ("`output.artifacts", "`:artifact"),
        ("in `output.notesMarkdown`", "in your notes"),
        ("`output.notesMarkdown`", "your notes"),
    ];
    INSTEAD.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
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
