//! Sizes, times and tables for people.

use jiff::Timestamp;

use crate::output::{Output, Style, plain};

/// A cell of a table.
pub(crate) struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    pub(crate) fn new(text: impl AsRef<str>) -> Self {
        Self::styled(Style::Plain, text)
    }

    pub(crate) fn styled(style: Style, text: impl AsRef<str>) -> Self {
        Self { text: plain(text.as_ref()), style }
    }

    fn width(&self) -> usize {
        self.text.chars().count()
    }
}

/// Rows as aligned lines, two blanks between columns and none at the end.
pub(crate) fn table(output: &Output, rows: &[Vec<Cell>]) -> Vec<String> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let widths: Vec<usize> = (0..columns)
        .map(|column| rows.iter().filter_map(|row| row.get(column)).map(Cell::width).max())
        .map(Option::unwrap_or_default)
        .collect();
    rows.iter().map(|row| line(output, row, &widths)).collect()
}

fn line(output: &Output, row: &[Cell], widths: &[usize]) -> String {
    let mut line = String::new();
    // Blanks are owed until something follows them.
    let mut owed = 0;
    for (cell, width) in row.iter().zip(widths) {
        if cell.text.is_empty() {
            owed += width + 2;
            continue;
        }
        line.push_str(&" ".repeat(owed));
        line.push_str(&output.paint(cell.style, &cell.text));
        owed = width - cell.width() + 2;
    }
    line
}

/// A number of bytes.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let mut scaled = bytes as f64;
    let mut name = "B";
    for unit in UNITS {
        if scaled < 1024.0 {
            break;
        }
        scaled /= 1024.0;
        name = unit;
    }
    if name == "B" { format!("{bytes} B") } else { format!("{scaled:.1} {name}") }
}

/// A number of things.
pub(crate) fn count(number: u64, one: &str, many: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {many}") }
}

/// How long ago something was, given as RFC 3339.
pub(crate) fn ago(now_ms: u64, then: Option<&str>) -> String {
    let Some(then) = then.and_then(|text| text.parse::<Timestamp>().ok()) else {
        return "-".to_owned();
    };
    let then_ms = u64::try_from(then.as_millisecond()).unwrap_or_default();
    let seconds = now_ms.saturating_sub(then_ms) / 1_000;
    match seconds {
        0..5 => "just now".to_owned(),
        5..60 => format!("{seconds} s ago"),
        60..3_600 => format!("{} min ago", seconds / 60),
        3_600..86_400 => format!("{} h ago", seconds / 3_600),
        _ => format!("{} d ago", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_one_digit_after_the_point() {
        let sizes = [0, 1023, 1024, 1536, 5 << 20, 3 << 30, u64::MAX].map(size);
        assert_eq!(
            sizes,
            ["0 B", "1023 B", "1.0 KiB", "1.5 KiB", "5.0 MiB", "3.0 GiB", "16777216.0 TiB"]
        );
    }

    #[test]
    fn times_are_told_in_the_largest_unit_that_fits() {
        let then = "2023-11-14T22:13:20.000Z";
        let ago = |seconds: u64| super::ago(1_700_000_000_000 + seconds * 1_000, Some(then));
        let told = [0, 59, 60, 3_600, 86_399, 86_400, 864_000].map(ago);
        assert_eq!(
            told,
            ["just now", "59 s ago", "1 min ago", "1 h ago", "23 h ago", "1 d ago", "10 d ago"]
        );
        assert_eq!(super::ago(0, Some(then)), "just now");
        assert_eq!(super::ago(0, None), "-");
    }

    #[test]
    fn columns_are_aligned_and_lines_end_without_blanks() {
        let output = Output::new(false, false, true);
        let row = |cells: [&str; 3]| cells.map(Cell::new).into();
        let rows: Vec<Vec<Cell>> =
            vec![row(["a", "bb", "c"]), row(["aaa", "", "c"]), row(["a", "\x1b[2J", ""])];
        assert_eq!(table(&output, &rows), ["a    bb    c", "aaa        c", "a     [2J"]);
    }
}
