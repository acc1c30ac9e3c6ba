//! What is told of a command that ran: its output for later steps, and a few lines for people.

use cairn_core::canonical;
use cairn_engine::performer::{Failed, FailureKind, Outcome};
use serde_json::{Value, json};

use crate::process::{Done, End};

/// How much of each stream is told in the notes, which hold 4,096 bytes with all they tell.
const TOLD_MAX: usize = 1400;
/// The same with the fences around it.
const FENCED_MAX: usize = 1600;
/// How much of the command is told.
const COMMAND_MAX: usize = 200;

/// How the output of a command is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Parse {
    Json,
    Text,
}

/// What came of a command, as an outcome.
pub(crate) fn outcome(
    done: &Done,
    command: &[String],
    duration_ms: u64,
    parse: Option<Parse>,
) -> Outcome {
    let (stdout, stderr) = (done.stdout.text(), done.stderr.text());
    let code = match done.end {
        End::Exit(code) => Some(code),
        _ => None,
    };
    let mut output = json!({
        "duration_ms": duration_ms,
        "exit_code": code,
        "ok": code == Some(0),
        "stderr": stderr,
        "stdout": stdout,
        "timed_out": done.end == End::TimedOut,
        "truncated": done.stdout.dropped + done.stderr.dropped > 0,
    });
    let lossy: Vec<&str> = [("stdout", &done.stdout), ("stderr", &done.stderr)]
        .into_iter()
        .filter(|(_, stream)| stream.is_lossy())
        .map(|(name, _)| name)
        .collect();
    if let Some(members) = output.as_object_mut().filter(|_| !lossy.is_empty()) {
        members.insert("not_utf8".to_owned(), json!(lossy));
    }
    let mut fault = done.end.fault();
    if parse == Some(Parse::Json) && fault.is_none() {
        match read_json(&stdout) {
            Ok(value) => {
                drop(output.as_object_mut().map(|output| output.insert("json".to_owned(), value)))
            }
            Err(failed) => fault = Some(failed),
        }
    }
    let mut notes = format!("{} after {duration_ms} ms: {}", ended(done.end), shown(command));
    for name in lossy {
        notes
            .push_str(&format!("\n\n{name} is not UTF-8: bytes that are no text are shown as `�`"));
    }
    for (name, text) in [("stdout", &stdout), ("stderr", &stderr)] {
        let text = text.trim();
        if !text.is_empty() {
            notes.push_str(&format!("\n\n{name}:\n{}", fenced(text)));
        }
    }
    Outcome { fault, ..Outcome::new(output, notes) }
}

fn read_json(stdout: &str) -> Result<Value, Failed> {
    canonical::parse_exact(stdout.as_bytes()).map_err(|error| {
        Failed::of(
            FailureKind::InvalidOutput,
            "SHELL_NOT_JSON",
            format!(
                "`parse_output` is `json`, and what the command printed is not: {error}; \
             let it print JSON only, and the rest on standard error"
            ),
        )
    })
}

fn ended(end: End) -> String {
    match end {
        End::Exit(code) => format!("exit code {code}"),
        End::Signal(_) => "ended by a signal".to_owned(),
        End::TimedOut => "stopped when its time was over".to_owned(),
        End::Stalled => "stopped because it printed nothing for too long".to_owned(),
        End::Lingered => "ended after its last word".to_owned(),
        End::TooMuch => "stopped because it printed too much".to_owned(),
        End::TooManyProcesses => "stopped because it had too many processes".to_owned(),
        End::OutOfMemory => "stopped because it used too much memory".to_owned(),
    }
}

/// A command on one line, or its beginning.
fn shown(command: &[String]) -> String {
    let whole = match command {
        [program, flag, line] if program.ends_with("sh") && flag == "-c" => line.clone(),
        other => other.join(" "),
    };
    let line = whole.split_whitespace().collect::<Vec<_>>().join(" ");
    let start = line.get(..line.floor_char_boundary(COMMAND_MAX)).unwrap_or_default();
    let cut = if start.len() < line.len() { "…" } else { "" };
    match longest_run(start) {
        0 => format!("`{start}{cut}`"),
        run => {
            let ticks = "`".repeat(run + 1);
            format!("{ticks} {start}{cut} {ticks}")
        }
    }
}

/// The end of a text between fences that are longer than any inside.
fn fenced(text: &str) -> String {
    let mut max = TOLD_MAX;
    loop {
        let from = text.ceil_char_boundary(text.len().saturating_sub(max));
        let end = text.get(from..).unwrap_or_default();
        let fence = "`".repeat(longest_run(end).max(2) + 1);
        let over = (end.len() + 2 * fence.len()).saturating_sub(FENCED_MAX);
        if over == 0 {
            let cut = if from > 0 { "…" } else { "" };
            return format!("{fence}\n{cut}{end}\n{fence}");
        }
        // A backtick less makes both fences shorter, too.
        max -= over.div_ceil(3);
    }
}

fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or_default()
}
