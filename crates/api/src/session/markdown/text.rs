//! Text inside Markdown that stays where it is put, whatever it holds.

use std::iter;

/// Text in a line: what would be read as Markdown or as HTML is escaped.
pub(super) fn inline(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in one_line(text).chars() {
        if matches!(
            c,
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '&' | '#' | '|' | '~' | '$' | '!'
        ) {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

/// Text in a line of HTML.
pub(super) fn html(text: &str) -> String {
    one_line(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// A name in a line, as code.
pub(super) fn code(text: &str) -> String {
    let text = one_line(text);
    let ticks = "`".repeat(longest_run(&text, '`') + 1);
    // The blanks go when it is shown, and keep ticks at the ends apart.
    let pad =
        if text.starts_with('`') || text.ends_with('`') || text.is_empty() { " " } else { "" };
    format!("{ticks}{pad}{text}{pad}{ticks}")
}

/// Lines of code: the fence is longer than any inside.
pub(super) fn fence(language: &str, text: &str) -> String {
    let lines = lines(text);
    let longest = lines.iter().map(|line| longest_run(line, '`')).max().unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{language}\n{}\n{fence}\n", lines.join("\n"))
}

/// Markdown of somebody else's, as a quote: headings, lists and fences that are left open end
/// with it, and HTML is shown, not read.
pub(super) fn quote(markdown: &str) -> String {
    let mut quoted = String::new();
    for line in without_html(&lines(markdown)) {
        let blank = if line.is_empty() { "" } else { " " };
        quoted.extend([">", blank, &line, "\n"]);
    }
    quoted
}

fn one_line(text: &str) -> String {
    text.split(|c: char| c.is_control() || c.is_whitespace())
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

/// The lines of a text, however they end, without what could speak to a terminal.
fn lines(text: &str) -> Vec<String> {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let shown = |c: &char| *c == '\t' || !c.is_control();
    text.trim_end().split('\n').map(|line| line.chars().filter(shown).collect()).collect()
}

fn longest_run(text: &str, of: char) -> usize {
    text.split(|c| c != of).map(str::len).max().unwrap_or_default()
}

/// The same lines with every `<` that could open HTML escaped.
///
/// In code it stays as it is, or it would be shown with its escape. Code is only what is code
/// without doubt: fences that are not indented, and spans when every line closes its own.
fn without_html(lines: &[String]) -> Vec<String> {
    let mut fence: Option<(char, usize)> = None;
    let mut fenced = Vec::with_capacity(lines.len());
    for line in lines {
        match fence {
            None => {
                fence = opens_fence(line);
                fenced.push(fence.is_some());
            }
            Some((tick, len)) => {
                fenced.push(true);
                if closes_fence(line, tick, len) {
                    fence = None;
                }
            }
        }
    }
    let plain = || lines.iter().zip(&fenced).filter(|(_, fenced)| !**fenced);
    let spans = plain().all(|(line, _)| !line.contains("\\`") && split_code(line).is_some());
    let escape = |(line, fenced): (&String, &bool)| match (fenced, spans) {
        (true, _) => line.clone(),
        (false, false) => line.replace('<', "&lt;"),
        (false, true) => {
            let pieces = split_code(line).unwrap_or_default();
            let shown = |(code, piece): &(bool, &str)| match code {
                true => (*piece).to_owned(),
                false => piece.replace('<', "&lt;"),
            };
            pieces.iter().map(shown).collect()
        }
    };
    lines.iter().zip(&fenced).map(escape).collect()
}

fn opens_fence(line: &str) -> Option<(char, usize)> {
    ['`', '~'].into_iter().find_map(|tick| {
        let rest = line.trim_start_matches(tick);
        let len = line.len() - rest.len();
        // Behind backticks that are no fence but a span there is another one.
        (len >= 3 && !(tick == '`' && rest.contains('`'))).then_some((tick, len))
    })
}

fn closes_fence(line: &str, tick: char, len: usize) -> bool {
    let ticks = line.trim_start_matches(' ');
    let indent = line.len() - ticks.len();
    let ticks = ticks.trim_end_matches([' ', '\t']);
    indent <= 3 && ticks.len() >= len && ticks.chars().all(|c| c == tick)
}

/// A line in pieces, each code or not; none when a span is left open.
fn split_code(line: &str) -> Option<Vec<(bool, &str)>> {
    let mut pieces = Vec::new();
    let mut rest = line;
    while let Some(start) = rest.find('`') {
        let (before, at) = rest.split_at(start);
        let ticks = run_len(at);
        let end = closing(at, ticks)?;
        let (code, after) = at.split_at(end);
        pieces.extend([(false, before), (true, code)]);
        rest = after;
    }
    pieces.push((false, rest));
    Some(pieces)
}

fn run_len(text: &str) -> usize {
    text.len() - text.trim_start_matches('`').len()
}

/// Where the span ends that a text begins with.
fn closing(text: &str, ticks: usize) -> Option<usize> {
    let runs = iter::successors(Some((ticks, 0)), |(from, _)| {
        let rest = text.get(*from..)?;
        let at = from + rest.find('`')?;
        let len = run_len(text.get(at..)?);
        Some((at + len, len))
    });
    runs.skip(1).find(|(_, len)| *len == ticks).map(|(end, _)| end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_stays_a_line_and_says_what_it_says() {
        assert_eq!(inline("a *b* <i>\n# c"), r"a \*b\* \<i\> \# c");
        assert_eq!(html("</summary> & \u{1b}[31m"), "&lt;/summary&gt; &amp; [31m");
        assert_eq!(code("plain"), "`plain`");
        assert_eq!(code("a`b``c"), "```a`b``c```");
        assert_eq!(code("`x\ny"), "`` `x y ``");
    }

    #[test]
    fn no_fence_is_closed_from_inside() {
        assert_eq!(fence("json", "{}"), "```json\n{}\n```\n");
        assert_eq!(fence("", "a\n````\nb"), "`````\na\n````\nb\n`````\n");
    }

    #[test]
    fn a_quote_ends_where_it_ends() {
        assert_eq!(quote("one\r\n\r\n```\ntwo\rthree"), "> one\n>\n> ```\n> two\n> three\n");
        assert_eq!(quote("# head\n- list"), "> # head\n> - list\n");
    }

    #[test]
    fn html_is_shown_and_code_is_left_alone() {
        assert_eq!(quote("<b> `Vec<T>` <!--"), "> &lt;b> `Vec<T>` &lt;!--\n");
        assert_eq!(quote("```rust\nVec<T>\n```\n<b>"), "> ```rust\n> Vec<T>\n> ```\n> &lt;b>\n");
        // What is code here depends on the line before, so nothing is.
        assert_eq!(quote("a ` b\nc ` <b> `d`"), "> a ` b\n> c ` &lt;b> `d`\n");
        assert_eq!(quote(r"\`<b>`"), "> \\`&lt;b>`\n");
        // A fence in a list ends with the list.
        assert_eq!(quote("- a\n\n  ```\n  x\n<b>"), "> - a\n>\n>   ```\n>   x\n> &lt;b>\n");
        assert_eq!(quote("```\n    ```\n<b>\n  ```\n<b>").matches("&lt;").count(), 1);
        assert_eq!(quote("``` a ``` <b>"), "> ``` a ``` &lt;b>\n");
    }
}
