//! The text of a statement: that it is one, and where its values go.
//!
//! Values are bound by the databases themselves, so nothing here keeps data apart from text.
//! It lets every database take `$1`, and says early what they would say late.

use cairn_engine::performer::Failed;

/// A language of databases.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Dialect {
    Postgres,
    Mysql,
    Sqlite,
}

impl Dialect {
    /// Every one.
    pub(super) const ALL: [Self; 3] = [Self::Postgres, Self::Mysql, Self::Sqlite];
}

/// One statement.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Statement {
    /// Its text, with the placeholders of its dialect.
    pub(super) text: String,
    /// Which value goes to each placeholder, where a placeholder does not say it itself.
    pub(super) order: Vec<usize>,
}

/// Statements that change the connection or reach beyond the database.
const DENIED: [&str; 38] = [
    "ABORT",
    "ATTACH",
    "BEGIN",
    "BINLOG",
    "CHANGE",
    "CHECKPOINT",
    "COMMIT",
    "COPY",
    "DEALLOCATE",
    "DECLARE",
    "DETACH",
    "DISCARD",
    "END",
    "EXECUTE",
    "FETCH",
    "FLUSH",
    "HANDLER",
    "INSTALL",
    "KILL",
    "LISTEN",
    "LOAD",
    "LOCK",
    "MOVE",
    "PRAGMA",
    "PREPARE",
    "PURGE",
    "RELEASE",
    "RESET",
    "ROLLBACK",
    "SAVEPOINT",
    "SET",
    "SHUTDOWN",
    "START",
    "UNLISTEN",
    "UNLOCK",
    "USE",
    "VACUUM",
    "XA",
];

/// Names of what reads and writes files of the server when a role may. A role that may not is
/// the better guard: there are other ways.
const FILES: [&str; 13] = [
    "DUMPFILE",
    "LOAD_FILE",
    "LO_EXPORT",
    "LO_IMPORT",
    "OUTFILE",
    "PG_FILE_READ",
    "PG_FILE_WRITE",
    "PG_LS_DIR",
    "PG_READ_BINARY_FILE",
    "PG_READ_FILE",
    "PG_STAT_FILE",
    "READFILE",
    "WRITEFILE",
];

fn require_inside(name: &str) -> Result<(), Failed> {
    if FILES.contains(&name.to_uppercase().as_str()) {
        let message = format!("`{name}` reaches the files of the database's server");
        return Err(Failed::new("DB_STATEMENT", message));
    }
    Ok(())
}

/// Reads a statement that is given so many values.
pub(super) fn read(text: &str, dialect: Dialect, given: usize) -> Result<Statement, Failed> {
    let mut scan = Scan {
        dialect,
        rest: text,
        text: String::new(),
        order: Vec::new(),
        unnumbered: false,
        numbered: false,
        word: None,
        ended: false,
    };
    scan.run()?;
    let wrong = |code, message: String| Err(Failed::new(code, message));
    let Some(word) = scan.word else {
        return wrong("DB_STATEMENT", "there is no statement".to_owned());
    };
    if DENIED.contains(&word.as_str()) {
        return wrong(
            "DB_STATEMENT",
            format!(
                "`{word}` is no statement of a workflow: each runs in a transaction of its own, on a connection that others use too"
            ),
        );
    }
    if scan.numbered && scan.unnumbered {
        return wrong("DB_ARGS", "`$1` and `?` cannot stand in one statement".to_owned());
    }
    let wanted = match scan.numbered {
        true => scan.order.iter().max().map_or(0, |last| last + 1),
        false => scan.order.len(),
    };
    if wanted != given {
        return wrong(
            "DB_ARGS",
            format!("the statement has {wanted} placeholder(s), and `args` has {given} value(s)"),
        );
    }
    Ok(Statement { text: scan.text, order: scan.order })
}

struct Scan<'a> {
    dialect: Dialect,
    rest: &'a str,
    text: String,
    order: Vec<usize>,
    unnumbered: bool,
    numbered: bool,
    /// The first word.
    word: Option<String>,
    /// Whether there was a semicolon.
    ended: bool,
}

impl Scan<'_> {
    fn run(&mut self) -> Result<(), Failed> {
        while let Some(next) = self.rest.chars().next() {
            if next.is_whitespace() {
                self.take(next.len_utf8());
            } else if let Some(length) = self.comment() {
                // A comment can hold code for some versions of MySQL; none is handed on.
                self.skip(length);
                self.text.push(' ');
            } else if next == ';' {
                self.ended = true;
                self.skip(1);
            } else if self.ended {
                let message = "there is more than one statement; use a step for each";
                return Err(Failed::new("DB_STATEMENTS", message));
            } else {
                self.token(next)?;
            }
        }
        Ok(())
    }

    fn token(&mut self, next: char) -> Result<(), Failed> {
        let length = match next {
            '\'' => self.quoted('\'', self.dialect == Dialect::Mysql)?,
            '"' => self.quoted('"', self.dialect == Dialect::Mysql)?,
            '`' if self.dialect != Dialect::Postgres => self.quoted('`', false)?,
            '[' if self.dialect == Dialect::Sqlite => self.quoted(']', false)?,
            '$' => return self.dollar(),
            '?' if self.dialect != Dialect::Postgres => return self.question(),
            _ if next.is_alphabetic() || next == '_' => return self.word(),
            _ => next.len_utf8(),
        };
        if next == '"' && self.dialect != Dialect::Mysql {
            require_inside(self.rest.get(1..length - 1).unwrap_or_default())?;
        }
        self.word.get_or_insert_default();
        self.take(length);
        Ok(())
    }

    fn take(&mut self, length: usize) {
        self.text.push_str(self.rest.get(..length).unwrap_or_default());
        self.skip(length);
    }

    fn skip(&mut self, length: usize) {
        self.rest = self.rest.get(length..).unwrap_or_default();
    }

    /// How long the comment is that begins here, if one does.
    fn comment(&self) -> Option<usize> {
        let line = || self.rest.find('\n').unwrap_or(self.rest.len());
        if self.rest.starts_with("--")
            || (self.dialect == Dialect::Mysql && self.rest.starts_with('#'))
        {
            return Some(line());
        }
        if !self.rest.starts_with("/*") {
            return None;
        }
        let nests = self.dialect == Dialect::Postgres;
        let (mut at, mut depth) = (2, 1);
        while depth > 0 {
            let rest = self.rest.get(at..).unwrap_or_default();
            match (rest.find("*/"), rest.find("/*").filter(|_| nests)) {
                (Some(end), Some(begin)) if begin < end => {
                    (at, depth) = (at + begin + 2, depth + 1)
                }
                (Some(end), _) => (at, depth) = (at + end + 2, depth - 1),
                (None, _) => return Some(self.rest.len()),
            }
        }
        Some(at)
    }

    /// How long the text is up to this mark, which stands for itself when it stands twice.
    fn quoted(&self, mark: char, backslash: bool) -> Result<usize, Failed> {
        let mut chars = self.rest.char_indices().skip(1).peekable();
        while let Some((at, next)) = chars.next() {
            if next == '\\' && backslash {
                chars.next();
            } else if next == mark && chars.next_if(|(_, after)| *after == mark).is_none() {
                return Ok(at + next.len_utf8());
            }
        }
        Err(Failed::new("DB_STATEMENT", "a quoted text does not end"))
    }

    /// A word, or a text whose first letter says how it is written.
    fn word(&mut self) -> Result<(), Failed> {
        let part = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
        let length = self.rest.find(|c| !part(c)).unwrap_or(self.rest.len());
        let word = self.rest.get(..length).unwrap_or_default().to_uppercase();
        require_inside(&word)?;
        let escapes = self.dialect == Dialect::Postgres && word == "E";
        self.word.get_or_insert(word);
        self.take(length);
        if escapes && self.rest.starts_with('\'') {
            let length = self.quoted('\'', true)?;
            self.take(length);
        }
        Ok(())
    }

    /// `$1`, or text between `$tag$` and `$tag$`.
    fn dollar(&mut self) -> Result<(), Failed> {
        let after = self.rest.get(1..).unwrap_or_default();
        let digits = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
        if digits > 0 {
            let number: usize = after.get(..digits).unwrap_or_default().parse().unwrap_or(0);
            let place = number.checked_sub(1).filter(|place| *place < 65_535);
            let place =
                place.ok_or_else(|| Failed::new("DB_ARGS", "placeholders begin with `$1`"))?;
            (self.numbered, self.word) = (true, self.word.take().or(Some(String::new())));
            self.order.push(place);
            self.text.push_str(&match self.dialect {
                Dialect::Postgres => format!("${number}"),
                Dialect::Mysql => "?".to_owned(),
                Dialect::Sqlite => format!("?{number}"),
            });
            self.skip(1 + digits);
            return Ok(());
        }
        let tag = after.find('$').map_or("", |end| self.rest.get(..end + 2).unwrap_or_default());
        let inner = tag.trim_matches('$');
        let is_tag = tag.len() >= 2 && inner.chars().all(|c| c.is_alphanumeric() || c == '_');
        if self.dialect != Dialect::Postgres || !is_tag {
            self.take(1);
            return Ok(());
        }
        let end = self.rest.get(tag.len()..).and_then(|body| body.find(tag)).ok_or_else(|| {
            Failed::new("DB_STATEMENT", format!("the text that begins with `{tag}` does not end"))
        })?;
        self.word.get_or_insert_default();
        self.take(tag.len() * 2 + end);
        Ok(())
    }

    fn question(&mut self) -> Result<(), Failed> {
        let after = self.rest.get(1..).unwrap_or_default();
        if after.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(Failed::new("DB_ARGS", "write `$1` for the first value, not `?1`"));
        }
        self.unnumbered = true;
        self.order.push(self.order.len());
        self.word.get_or_insert_default();
        self.take(1);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use Dialect::{Mysql, Postgres, Sqlite};

    use super::*;

    fn told(text: &str, dialect: Dialect, given: usize) -> String {
        match read(text, dialect, given) {
            Ok(statement) => format!("{} {:?}", statement.text.trim(), statement.order),
            Err(failed) => failed.code.to_owned(),
        }
    }

    #[test]
    fn each_dialect_gets_its_own_placeholders() {
        let text = "SELECT $2, '$3', $1, $2 -- $4";
        assert_eq!(told(text, Postgres, 2), "SELECT $2, '$3', $1, $2 [1, 0, 1]");
        assert_eq!(told(text, Mysql, 2), "SELECT ?, '$3', ?, ? [1, 0, 1]");
        assert_eq!(told(text, Sqlite, 2), "SELECT ?2, '$3', ?1, ?2 [1, 0, 1]");
        assert_eq!(told("SELECT ?, ?", Mysql, 2), "SELECT ?, ? [0, 1]");
        assert_eq!(told("SELECT a ? 'k'", Postgres, 0), "SELECT a ? 'k' []");
    }

    // case: sql.one-statement
    #[test]
    fn one_statement_is_taken_and_no_more() {
        for (text, dialect) in [
            ("SELECT 1;", Postgres),
            ("SELECT ';';  -- ;\n", Postgres),
            ("SELECT 1; /* x */ ;", Mysql),
            ("SELECT $$a;b$$", Postgres),
            ("SELECT $t$ $$;' $t$", Postgres),
            ("SELECT E'\\';'", Postgres),
            ("SELECT '\\';'", Mysql),
            ("SELECT \"a;b\"", Postgres),
            ("SELECT `a;b`", Mysql),
            ("SELECT [a;b]", Sqlite),
            ("SELECT /* /* ; */ ; */ 1", Postgres),
            ("SELECT 'it''s;'", Sqlite),
            ("SELECT 1 # ; x", Mysql),
            ("WITH x AS (SELECT 1) SELECT * FROM x", Postgres),
        ] {
            let fate = told(text, dialect, 0);
            assert!(fate.ends_with("[]"), "{text}: {fate}");
        }
        for (text, dialect) in [
            ("SELECT 1; DROP TABLE x", Postgres),
            ("SELECT 1;DROP TABLE x", Mysql),
            (";SELECT 1", Sqlite),
            ("SELECT '\\'; DROP TABLE x; --'", Postgres),
            ("SELECT /* /* */ 1; DROP TABLE x --*/", Mysql),
            ("SELECT $$a$$; DROP TABLE x", Postgres),
            ("SELECT 1;--\nDROP TABLE x", Postgres),
        ] {
            assert_eq!(told(text, dialect, 0), "DB_STATEMENTS", "{text}");
        }
    }

    #[test]
    fn what_is_no_statement_of_a_workflow_is_refused() {
        for text in [
            "",
            " -- only\n",
            "/* x */",
            ";",
            "'open",
            "BEGIN",
            "commit",
            "/* */ SET x = 1",
            "ATTACH 'a' AS b",
            "PRAGMA x",
            "COPY a FROM PROGRAM 'id'",
            "LOAD DATA INFILE 'x'",
            "vacuum into 'x'",
        ] {
            assert_eq!(told(text, Sqlite, 0), "DB_STATEMENT", "{text}");
        }
        assert_eq!(told("SELECT $a$ b", Postgres, 0), "DB_STATEMENT");
        for text in [
            "SELECT lo_import('/etc/passwd')",
            "SELECT pg_catalog.lo_export(1, '/tmp/x')",
            "SELECT \"pg_read_file\"('/etc/passwd')",
        ] {
            assert_eq!(told(text, Dialect::Postgres, 0), "DB_STATEMENT", "{text}");
        }
        let fine = "SELECT 'lo_import' AS pg_read_files";
        assert_ne!(told(fine, Dialect::Postgres, 0), "DB_STATEMENT");
        assert!(DENIED.is_sorted() && FILES.is_sorted());
    }

    #[test]
    fn code_in_comments_is_not_handed_on() {
        assert_eq!(told("SELECT 1 /*!50000 ; DROP TABLE x */", Mysql, 0), "SELECT 1 []");
    }

    #[test]
    fn as_many_values_as_placeholders() {
        for (text, given) in [
            ("SELECT 1", 1),
            ("SELECT $1", 0),
            ("SELECT $2", 1),
            ("SELECT $1", 2),
            ("SELECT $0", 0),
            ("SELECT ?", 0),
            ("SELECT ?, $1", 2),
            ("SELECT ?1", 1),
            ("SELECT $99999999999999999999", 1),
        ] {
            assert_eq!(told(text, Mysql, given), "DB_ARGS", "{text} with {given}");
        }
    }
}
