//! Places where data must not become something else.

use cairn_core::expression::{Expr, Piece, Template};

use super::Build;
use super::reference::Written;
use crate::diagnostic::Code;

impl Build<'_> {
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
    pub(super) fn refuse(&self, here: usize, written: &Written<'_, '_>, expr: &Expr, what: &str) {
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
