//! Places where data must not become something else: programs and addresses.

use cairn_core::expression::{Expr, Piece, Template};
use serde_json::{Value, json};

use super::Build;
use super::flow::Flow;
use super::reference::Written;
use crate::diagnostic::Code;
use crate::read::Spot;

/// Programs that run what stands behind `-c` or `-e`.
const INTERPRETERS: [&str; 14] = [
    "bash", "dash", "fish", "ksh", "lua", "node", "perl", "php", "pwsh", "python", "python3",
    "ruby", "sh", "zsh",
];

/// What an interpreter takes its program behind.
const PROGRAM_FLAGS: [&str; 6] = ["-c", "-e", "-lc", "-ec", "-r", "--eval"];

impl Build<'_> {
    /// A command: a line for the shell, or a program and its arguments.
    pub(super) fn command(&self, here: usize, flow: &Flow, spot: &Spot<'_>) -> Option<Value> {
        if !spot.is_list() {
            let line = self.program(spot)?;
            spot.filled()?;
            return Some(json!(["sh", "-c", line]));
        }
        let parts = spot.items();
        let Some(first) = parts.first() else {
            spot.error(Code::InvalidValue, "the command is empty");
            return None;
        };
        let program = self.argument(here, flow, first, true)?;
        let name = program.rsplit('/').next().unwrap_or_default();
        let interprets = INTERPRETERS.contains(&name);
        let mut command = vec![program.clone()];
        for part in parts.iter().skip(1) {
            let text = command.last().is_some_and(|flag| PROGRAM_FLAGS.contains(&flag.as_str()));
            let part = match interprets && text {
                true => self.program(part).map(str::to_owned),
                false => self.argument(here, flow, part, false),
            };
            command.push(part.unwrap_or_default());
        }
        Some(json!(command))
    }

    /// Text that a program is made of.
    fn program<'s>(&self, spot: &Spot<'s>) -> Option<&'s str> {
        let text = spot.text()?;
        if let Some(at) = text.find("{{").or_else(|| text.find("{%")) {
            let at = self.position(&Written { spot, text, is_file: false }, at);
            let message = "`{{…}}` cannot stand in a command line: what a run brings is data, not program text";
            let hint = "hand the value over in `env` or `stdin`, and write `\"$NAME\"` here";
            spot.error_at(at, Code::TaintedValue, message, Some(hint.to_owned()));
            return None;
        }
        Some(text)
    }

    fn argument(
        &self,
        here: usize,
        flow: &Flow,
        spot: &Spot<'_>,
        is_program: bool,
    ) -> Option<String> {
        let text = spot.text()?;
        let written = Written { spot, text, is_file: false };
        let template = self.template(here, flow, &written, false)?;
        if is_program {
            template.values().for_each(|expr| self.refuse(here, &written, expr, "name a program"));
        }
        if template.is_plain() && text.starts_with("nodes/") {
            self.asset(spot);
        }
        Some(template.to_string())
    }

    /// Refuses data as the host of an address.
    pub(super) fn address(&self, here: usize, written: &Written<'_, '_>, template: &Template) {
        // The host ends at the first `/`, `?` or `#` behind the scheme. When a setting gives
        // the beginning, it gives the scheme too.
        let mut scheme = false;
        for piece in &template.pieces {
            match piece {
                Piece::Text(text) => {
                    let rest = text.split_once("://").map(|(_, rest)| rest);
                    let behind = rest.unwrap_or(text);
                    scheme |= rest.is_some();
                    if scheme && behind.contains(['/', '?', '#']) {
                        return;
                    }
                }
                // Of which branch the host comes, nobody knows here.
                Piece::Tag { .. } => {
                    let message = "`{% %}` cannot stand before the path of an address";
                    let hint = "write the scheme and the host out";
                    written.spot.error_hint(Code::Unsupported, message, hint);
                    return;
                }
                Piece::Value { value, .. } => {
                    self.refuse(here, written, value, "be the host of an address");
                    scheme = true;
                }
            }
        }
    }

    /// Refuses what somebody sent, unless the expression validates it.
    fn refuse(&self, here: usize, written: &Written<'_, '_>, expr: &Expr, what: &str) {
        for reference in expr.flows().iter().filter(|reference| self.is_tainted(here, reference)) {
            let at = self.position(written, reference.at);
            let message =
                format!("what `{}` brings was sent by somebody, and cannot {what}", reference.root);
            let hint =
                "write it out, take it from `env`, or pass it through `one_of(…)`, `slug` or `int`";
            written.spot.error_at(at, Code::TaintedValue, message, Some(hint.to_owned()));
        }
    }
}
