//! Diagnostics for people: the line of the source, and a mark under the place.

use cairn_api::workflow::Diagnostic;
use cairn_engine::catalog::Found;

use crate::output::plain;

/// How much of a line is shown.
const WIDTH: usize = 100;

/// A workflow's diagnostics, each with the line of the source that it is about.
pub(super) fn render(found: &Found, diagnostics: &[Diagnostic]) -> Vec<String> {
    let text = String::from_utf8_lossy(&found.bytes);
    let own = found.path.display().to_string();
    diagnostics.iter().flat_map(|d| mark(d, (d.path == own).then_some(&text))).collect()
}

fn mark(d: &Diagnostic, text: Option<impl AsRef<str>>) -> Vec<String> {
    let pointer = if d.pointer.is_empty() { String::new() } else { format!(" {}", d.pointer) };
    let head = format!("{}:{}:{}: {}[{}]{pointer}", d.path, d.line, d.column, d.severity, d.code);
    let mut lines = vec![format!("{}: {}", plain(&head), plain(&d.message))];
    let place = usize::try_from(d.line).unwrap_or_default();
    let source = text.as_ref().and_then(|text| text.as_ref().lines().nth(place.checked_sub(1)?));
    if let Some(source) = source {
        let column = usize::try_from(d.column).unwrap_or_default().saturating_sub(1);
        // A long line is shown from a little in front of the place.
        let from = if column < WIDTH { 0 } else { column - WIDTH / 2 };
        let shown: String = source.chars().skip(from).take(WIDTH).collect();
        let number = d.line.to_string();
        let margin = " ".repeat(number.len());
        lines.push(format!("  {number} | {}", plain(&shown).trim_end()));
        lines.push(format!("  {margin} | {}^", " ".repeat(column - from)));
    }
    lines.extend(d.suggestion.as_ref().map(|text| format!("  = {}", plain(text))));
    lines
}
