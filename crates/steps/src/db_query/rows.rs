//! Rows as they come, with limits.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cairn_core::canonical::INTEGER_MAX;
use cairn_engine::performer::{Failed, FailureKind};
use serde_json::{Map, Value, json};

use super::Found;

/// How many bytes all rows together may have, written as JSON.
pub(super) const BYTES_MAX: usize = 1 << 20;

/// Rows that have come so far.
pub(super) struct Rows {
    names: Vec<String>,
    rows: Vec<Value>,
    rows_max: u64,
    bytes: usize,
}

impl Rows {
    pub(super) fn new(names: Vec<String>, rows_max: u64) -> Result<Self, Failed> {
        let mut sorted: Vec<&String> = names.iter().collect();
        sorted.sort();
        if let Some([twice, _]) = sorted.array_windows().find(|[a, b]| a == b) {
            return Err(Failed::new(
                "DB_COLUMNS",
                format!(
                    "two columns are called `{twice}`; give one of them another name with `AS`"
                ),
            ));
        }
        Ok(Self { names, rows: Vec::new(), rows_max, bytes: 0 })
    }

    /// Takes one more row.
    pub(super) fn push(&mut self, values: Vec<Value>) -> Result<(), Failed> {
        let over = |code, message: String| Failed::of(FailureKind::InvalidOutput, code, message);
        if self.rows.len() as u64 >= self.rows_max {
            let message = format!("there are more than {} rows; ask for fewer", self.rows_max);
            return Err(over("DB_TOO_MANY_ROWS", message));
        }
        let row: Map<String, Value> = self.names.iter().cloned().zip(values).collect();
        let row = Value::Object(row);
        self.bytes += row.to_string().len();
        if self.bytes > BYTES_MAX {
            return Err(too_large());
        }
        self.rows.push(row);
        Ok(())
    }

    pub(super) fn found(self, changed: u64) -> Found {
        let count = if self.names.is_empty() { changed } else { self.rows.len() as u64 };
        Found { rows: self.rows, count }
    }
}

/// More came back than a step may hold.
pub(super) fn too_large() -> Failed {
    let message = "the rows are more than 1 MiB; ask for fewer rows or columns".to_owned();
    Failed { kind: FailureKind::InvalidOutput, ..Failed::new("DB_TOO_LARGE", message) }
}

/// A column whose values nobody here can read.
pub(super) fn unreadable(column: &str, kind: &str) -> Failed {
    let message =
        format!("the column `{column}` holds `{kind}`, which has no JSON; cast it to text");
    Failed::new("DB_TYPE", message)
}

/// A whole number: as text where JSON is not exact any more.
pub(super) fn integer(number: i128) -> Value {
    match (i64::try_from(number), number.unsigned_abs() <= u128::from(INTEGER_MAX)) {
        (Ok(number), true) => json!(number),
        _ => json!(number.to_string()),
    }
}

/// A number with a fraction: as text where it is none.
pub(super) fn float(number: f64) -> Value {
    if number.is_finite() { json!(number) } else { json!(number.to_string()) }
}

/// Bytes, in base64.
pub(super) fn bytes(bytes: &[u8]) -> Value {
    json!(STANDARD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_exact() {
        assert_eq!(integer(-7), json!(-7));
        assert_eq!(integer(1 << 53), json!(1_u64 << 53));
        assert_eq!(integer((1 << 53) + 1), json!("9007199254740993"));
        assert_eq!(integer(i128::from(u64::MAX)), json!("18446744073709551615"));
        assert_eq!(float(f64::NAN), json!("NaN"));
    }

    #[test]
    fn two_columns_of_one_name_are_refused() {
        let names = ["a", "b", "a"].map(str::to_owned).to_vec();
        assert_eq!(Rows::new(names, 1).err().unwrap().code, "DB_COLUMNS");
    }

    // case: sql.limits
    #[test]
    fn rows_and_bytes_are_counted() {
        let mut rows = Rows::new(vec!["a".into()], 2).unwrap();
        rows.push(vec![json!(1)]).unwrap();
        rows.push(vec![json!(2)]).unwrap();
        assert_eq!(rows.push(vec![json!(3)]).unwrap_err().code, "DB_TOO_MANY_ROWS");
        assert_eq!(rows.found(9).count, 2);
        let mut rows = Rows::new(vec!["a".into()], 2).unwrap();
        let failed = rows.push(vec![json!("x".repeat(BYTES_MAX))]).unwrap_err();
        assert_eq!((failed.code, failed.kind), ("DB_TOO_LARGE", FailureKind::InvalidOutput));
        assert_eq!(Rows::new(Vec::new(), 1).unwrap().found(9).count, 9);
    }
}
