//! How commands answer: data on standard output, remarks and errors on standard error.

use std::fmt::Write as _;
use std::io::{self, ErrorKind, IsTerminal as _, Write as _};

use cairn_api::Exit;
use cairn_api::error::{Error, Result};
use cairn_core::text::{acts, inert};
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
        let text = harmless(text, self.color);
        writeln!(out, "{text}").and_then(|()| out.flush()).map_err(Error::Output)
    }

    /// Writes the answer, or a part of it, as one line of JSON.
    pub(crate) fn object<T: Serialize>(&self, value: &T) -> Result<()> {
        let text = serde_json::to_string(value);
        let text = json(&text.map_err(|error| Error::Internal(error.to_string()))?);
        let mut out = io::stdout().lock();
        writeln!(out, "{text}").and_then(|()| out.flush()).map_err(Error::Output)
    }

    /// Writes the answer as it is.
    pub(crate) fn bytes(&self, bytes: &[u8]) -> Result<()> {
        let mut out = io::stdout().lock();
        let shown = out.is_terminal().then(|| harmless(&String::from_utf8_lossy(bytes), false));
        let bytes = shown.as_ref().map_or(bytes, String::as_bytes);
        out.write_all(bytes).and_then(|()| out.flush()).map_err(Error::Output)
    }

    /// Remarks on something that is not part of the answer.
    pub(crate) fn remark(&self, text: &str) {
        if !self.quiet {
            // A remark that nobody can read is no reason to fail.
            let _ = writeln!(io::stderr().lock(), "{}", harmless(text, self.error_color));
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
            json(&serde_json::to_string(&envelope).unwrap_or(envelope.code))
        } else {
            let label = paint(self.error_color, Style::Bad, &format!("error[{}]", envelope.code));
            let text =
                format!("{label}: {}\n  → {}", plain(&envelope.message), envelope.suggestion);
            harmless(&text, self.error_color)
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

/// Text from elsewhere on one line: it may not move the cursor, change colors or turn the
/// direction of reading.
pub(crate) fn plain(text: &str) -> String {
    inert(&text.replace(['\n', '\r', '\t'], " "))
}

/// What is about to be shown, as [`inert`] as it gets: lines and tabs stay, and so do our own
/// styles where there are any. Whoever shows text from elsewhere passes it through [`plain`]; what
/// is forgotten there is caught here.
pub(crate) fn harmless(text: &str, styled: bool) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let own = STYLES.iter().find(|style| styled && rest.starts_with(**style));
        let taken = own.map_or(letter.len_utf8(), |style| style.len());
        match own {
            Some(style) => shown.push_str(style),
            None if matches!(letter, '\n' | '\t') || !acts(letter) => shown.push(letter),
            None => shown.extend(letter.escape_unicode()),
        }
        rest = rest.get(taken..).unwrap_or_default();
    }
    shown
}

/// What [`paint`] puts around a text.
const STYLES: [&str; 6] = ["\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[33m"];

/// JSON that means the same and does nothing to a terminal.
fn json(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        if !acts(letter) {
            shown.push(letter);
            continue;
        }
        for unit in letter.encode_utf16(&mut [0; 2]) {
            // Writing to a text does not fail.
            let _ = write!(shown, "\\u{unit:04x}");
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What must not reach a terminal from a run, a name or an error.
    const ACTING: [&str; 12] = [
        "\x1b[2J\x1b[H",
        "\x1b]0;title\x07",
        "\x1b]8;;https://evil.example\x1b\\link",
        "\x1b[8mhidden",
        "\u{9b}31m",
        "\u{9d}0;title\u{9c}",
        "\u{202e}gnp.exe",
        "\u{2066}\u{2069}\u{200f}\u{61c}",
        "a\rb",
        "\x08\x08\x7f",
        "\u{2028}\u{85}",
        "\u{e0041}\u{feff}",
    ];

    // case: terminal.inert
    // case: log.one-line
    #[test]
    fn nothing_acts_on_the_terminal() {
        for text in ACTING {
            let acting = |shown: &str| shown.chars().any(|c| acts(c) && !matches!(c, '\n' | '\t'));
            for shown in [plain(text), harmless(text, false), harmless(text, true), json(text)] {
                assert!(!acting(&shown), "{text:?} became {shown:?}");
            }
            let object = serde_json::to_string(&serde_json::json!({ text: text })).unwrap();
            let shown = json(&object);
            assert!(!acting(&shown), "{text:?} became {shown:?}");
            let again: serde_json::Value = serde_json::from_str(&shown).unwrap();
            assert_eq!(again, serde_json::json!({ text: text }), "{text:?}");
        }
        assert_eq!(plain("a\nb\tc"), "a b c");
        assert_eq!(harmless("a\n\tb ä 漢", false), "a\n\tb ä 漢");
    }

    #[test]
    fn our_own_styles_stay() {
        let text = paint(true, Style::Bad, "no\x1b[2J");
        assert_eq!(harmless(&text, true), "\x1b[31mno\\u{1b}[2J\x1b[0m");
        assert_eq!(harmless(&text, false), "\\u{1b}[31mno\\u{1b}[2J\\u{1b}[0m");
    }
}
