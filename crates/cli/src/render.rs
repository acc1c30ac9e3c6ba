//! Sizes, times and tables for people.

use jiff::Timestamp;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

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
        self.text.width()
    }

    /// The same, no wider than this; an ellipsis stands for the rest.
    fn cut(self, room: usize) -> Self {
        let room = room.max(CUT_MIN);
        if self.width() <= room {
            return self;
        }
        let text = format!("{}…", beginning(&self.text, room - 1).trim_end());
        Self { text, ..self }
    }

    /// The same in pieces that are no wider than this, broken at blanks where there are any.
    fn pieces(&self, room: usize) -> Vec<Self> {
        let piece = |text: &str| Self { text: text.to_owned(), style: self.style };
        wrap(&self.text, room).into_iter().map(piece).collect()
    }
}

/// A line in pieces that are no wider than this, broken at blanks where there are any.
pub(crate) fn wrap(text: &str, room: usize) -> Vec<&str> {
    let room = room.max(CUT_MIN);
    let (mut pieces, mut rest) = (Vec::new(), text);
    while rest.width() > room {
        let head = beginning(rest, room);
        let at = head.rfind(' ').filter(|at| *at > 0).unwrap_or(head.len());
        let (piece, after) = rest.split_at(at);
        pieces.push(piece);
        rest = after.trim_start();
    }
    pieces.push(rest);
    pieces
}

/// What gives way when a table is too wide for the terminal.
pub(crate) struct Narrow {
    /// Columns that are left out, the least important one first.
    pub(crate) drop: &'static [usize],
    /// The column that is cut when that is not enough.
    pub(crate) cut: usize,
}

/// Blanks between two columns.
const GAP: usize = 2;
/// What is cut keeps at least this much, or it would say nothing.
const CUT_MIN: usize = 8;

/// Rows that fit into a terminal of this width. Without a terminal everything stays.
pub(crate) fn fit(rows: Vec<Vec<Cell>>, width: Option<usize>, narrow: &Narrow) -> Vec<Vec<Cell>> {
    let Some(width) = width else { return rows };
    let widths = widths(&rows);
    let gone = |column: usize, drops: usize| narrow.drop.iter().take(drops).any(|c| *c == column);
    let over = |drops: usize| {
        let left = widths.iter().enumerate().filter(|(column, _)| !gone(*column, drops));
        left.map(|(_, wide)| wide + GAP).sum::<usize>().saturating_sub(width + GAP)
    };
    let drops_max = narrow.drop.len();
    let drops = (0..drops_max).find(|drops| over(*drops) == 0).unwrap_or(drops_max);
    let cut = widths.get(narrow.cut).map_or(0, |wide| wide.saturating_sub(over(drops)));
    let fitted = |row: Vec<Cell>| {
        let left = row.into_iter().enumerate().filter(|(column, _)| !gone(*column, drops));
        left.map(|(column, cell)| if column == narrow.cut { cell.cut(cut) } else { cell }).collect()
    };
    rows.into_iter().map(fitted).collect()
}

/// Rows of a name and a value; a value that is too wide for the terminal goes on below.
pub(crate) fn fold(rows: Vec<Vec<Cell>>, width: Option<usize>) -> Vec<Vec<Cell>> {
    let Some(width) = width else { return rows };
    let names = widths(&rows).first().copied().unwrap_or_default();
    let room = width.saturating_sub(names + GAP).max(CUT_MIN);
    let mut folded = Vec::new();
    for row in rows {
        let mut cells = row.into_iter();
        let (mut name, value) = (cells.next(), cells.next());
        for Cell { text, style } in value.iter().flat_map(|value| value.pieces(room)) {
            let name = name.take().unwrap_or_else(|| Cell::new(""));
            folded.push(vec![name, Cell { text, style }]);
        }
    }
    folded
}

/// The beginning of a text that is no wider than this.
fn beginning(text: &str, room: usize) -> &str {
    let mut taken = 0;
    let end = text.char_indices().find_map(|(at, c)| {
        taken += c.width().unwrap_or_default();
        (taken > room).then_some(at)
    });
    end.and_then(|end| text.get(..end)).unwrap_or(text)
}

fn widths(rows: &[Vec<Cell>]) -> Vec<usize> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let widest = |column| rows.iter().filter_map(|row| row.get(column)).map(Cell::width).max();
    (0..columns).map(|column| widest(column).unwrap_or_default()).collect()
}

/// Rows as aligned lines, two blanks between columns and none at the end.
pub(crate) fn table(output: &Output, rows: &[Vec<Cell>]) -> Vec<String> {
    let widths = widths(rows);
    rows.iter().map(|row| line(output, row, &widths)).collect()
}

fn line(output: &Output, row: &[Cell], widths: &[usize]) -> String {
    let mut line = String::new();
    // Blanks are owed until something follows them.
    let mut owed = 0;
    for (cell, width) in row.iter().zip(widths) {
        if cell.text.is_empty() {
            owed += width + GAP;
            continue;
        }
        line.push_str(&" ".repeat(owed));
        line.push_str(&output.paint(cell.style, &cell.text));
        owed = width - cell.width() + GAP;
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

/// How long something took.
pub(crate) fn span(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        60_000..3_600_000 => format!("{} min", ms / 60_000),
        3_600_000..86_400_000 => format!("{} h", ms / 3_600_000),
        _ => format!("{} d", ms / 86_400_000),
    }
}

/// How long something is under way that was begun then, given as RFC 3339.
pub(crate) fn since(now_ms: u64, then: Option<&str>) -> String {
    let Some(then) = then.and_then(|text| text.parse::<Timestamp>().ok()) else {
        return "-".to_owned();
    };
    span(now_ms.saturating_sub(u64::try_from(then.as_millisecond()).unwrap_or_default()))
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
    fn a_while_is_told_in_the_unit_that_fits() {
        let told = [0, 999, 1_250, 59_999, 60_000, 7_200_000, 172_800_000].map(span);
        assert_eq!(told, ["0 ms", "999 ms", "1.2 s", "59.9 s", "1 min", "2 h", "2 d"]);
        let then = Some("2023-11-14T22:13:20.000Z");
        assert_eq!(since(1_700_000_003_000, then), "3.0 s");
        assert_eq!(since(1_700_000_003_000, None), "-");
    }

    #[test]
    fn columns_are_aligned_and_lines_end_without_blanks() {
        let output = Output::new(false, false, true);
        let row = |cells: [&str; 3]| cells.map(Cell::new).into();
        let rows: Vec<Vec<Cell>> =
            vec![row(["a", "bb", "c"]), row(["aaa", "", "c"]), row(["a", "\x1b[2J", ""])];
        assert_eq!(
            table(&output, &rows),
            ["a    bb         c", "aaa             c", "a    \\u{1b}[2J"]
        );
    }

    #[test]
    fn a_narrow_terminal_loses_columns_first_and_then_the_end_of_one() {
        let output = Output::new(false, false, true);
        let told = |width: Option<usize>| {
            let row = |cells: [&str; 3]| cells.map(Cell::new).into();
            let rows = vec![row(["name", "size", "what it said"]), row(["a", "1", "日本語日本語"])];
            table(&output, &fit(rows, width, &Narrow { drop: &[1], cut: 2 })).join("\n")
        };
        let whole = "name  size  what it said\na     1     日本語日本語";
        assert_eq!([None, Some(24)].map(told), [whole, whole]);
        assert_eq!(told(Some(23)), "name  what it said\na     日本語日本語");
        assert_eq!(told(Some(16)), "name  what it s…\na     日本語日…");
        assert_eq!(told(Some(1)), "name  what it…\na     日本語…");
    }

    #[test]
    fn a_long_value_goes_on_below() {
        let output = Output::new(false, false, true);
        let told = |value: &str| {
            let rows =
                vec![["name", value].map(Cell::new).into(), ["x", "y"].map(Cell::new).into()];
            table(&output, &fold(rows, Some(16))).join("\n")
        };
        assert_eq!(told("one"), "name  one\nx     y");
        assert_eq!(told("one two three"), "name  one two\n      three\nx     y");
        assert_eq!(told("abcdefghijklm"), "name  abcdefghij\n      klm\nx     y");
    }
}
