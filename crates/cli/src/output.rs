//! How commands answer: data on standard output, remarks and errors on standard error.

use std::io::{self, ErrorKind, IsTerminal as _, Write as _};

use cairn_api::Exit;
use cairn_api::error::{Error, Result};
use clap::builder::StyledStr;
use serde::Serialize;

use crate::config;

/// How commands answer.
pub(crate) struct Output {
    /// Whether answers are for programs.
    pub(crate) json: bool,
    /// How many columns the terminal has, when the answer goes to one.
    pub(crate) width: Option<usize>,
    quiet: bool,
    color: bool,
    error_color: bool,
}

/// How a piece of text stands out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Style {
    Plain,
    Strong,
    Faint,
    Good,
    Warning,
    Bad,
}

impl Style {
    const fn code(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Strong => "1",
            Self::Faint => "2",
            Self::Good => "32",
            Self::Warning => "33",
            Self::Bad => "31",
        }
    }
}

impl Output {
    pub(crate) fn new(json: bool, quiet: bool, no_color: bool) -> Self {
        let forced = config::is_set("CLICOLOR_FORCE");
        let never = no_color || config::is_set("NO_COLOR");
        let color = |terminal: bool| !never && (forced || terminal);
        Self {
            json,
            width: width(),
            quiet,
            color: color(io::stdout().is_terminal()),
            error_color: color(io::stderr().is_terminal()),
        }
    }

    /// Writes a line of the answer.
    pub(crate) fn line(&self, text: &str) -> Result<()> {
        let mut out = io::stdout().lock();
        writeln!(out, "{text}").and_then(|()| out.flush()).map_err(Error::Output)
    }

    /// Writes the answer, or a part of it, as one line of JSON.
    pub(crate) fn object<T: Serialize>(&self, value: &T) -> Result<()> {
        let text = serde_json::to_string(value);
        self.line(&text.map_err(|error| Error::Internal(error.to_string()))?)
    }

    /// Writes the answer as it is.
    pub(crate) fn bytes(&self, bytes: &[u8]) -> Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(bytes).and_then(|()| out.flush()).map_err(Error::Output)
    }

    /// Remarks on something that is not part of the answer.
    pub(crate) fn remark(&self, text: &str) {
        if !self.quiet {
            // A remark that nobody can read is no reason to fail.
            let _ = writeln!(io::stderr().lock(), "{text}");
        }
    }

    /// Shows how a command is used to somebody who did not say what to do.
    pub(crate) fn usage(&self, help: &StyledStr) {
        let text = if self.error_color { help.ansi().to_string() } else { help.to_string() };
        let _ = writeln!(io::stderr().lock(), "{}", text.trim_end());
    }

    /// Lets a piece of the answer stand out, where colors are wanted.
    pub(crate) fn paint(&self, style: Style, text: &str) -> String {
        paint(self.color, style, text)
    }

    /// Says what went wrong, and how the program ends.
    pub(crate) fn fail(&self, error: &Error) -> Exit {
        if matches!(error, Error::Output(source) if source.kind() == ErrorKind::BrokenPipe) {
            // Whoever closes the pipe has read enough.
            return Exit::Success;
        }
        let envelope = error.envelope();
        let text = if self.json {
            serde_json::to_string(&envelope).unwrap_or(envelope.code)
        } else {
            let label = paint(self.error_color, Style::Bad, &format!("error[{}]", envelope.code));
            format!("{label}: {}\n  → {}", plain(&envelope.message), envelope.suggestion)
        };
        let _ = writeln!(io::stderr().lock(), "{text}");
        error.exit()
    }
}

/// How wide the terminal is, as far as it says.
fn width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    (size.ws_col > 0).then_some(usize::from(size.ws_col))
}

fn paint(color: bool, style: Style, text: &str) -> String {
    if color && style != Style::Plain {
        format!("\x1b[{}m{text}\x1b[0m", style.code())
    } else {
        text.to_owned()
    }
}

/// Text from elsewhere on one line: it may not move the cursor or change colors.
pub(crate) fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
