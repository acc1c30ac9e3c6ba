//! The guided runs that can be found, in the same SQLite file.
//!
//! A run that moved is put in anew, with the highest number. So whatever is asked for in the
//! order of numbers comes latest first, and costs what it gives.

use std::collections::BTreeSet;

use async_trait::async_trait;
use cairn_core::id::SessionId;
use rusqlite::{Connection, TransactionBehavior, params, params_from_iter};

use super::index::Sqlite;
use super::runs::{place, reach};
use crate::error::Result;
use crate::port::search::{Findable, FindableRun, Search, Wanted};
use crate::port::{Mark, Place, Which};

/// The tables, made when the file is.
pub(super) const TABLES: &str = r#"
    CREATE TABLE guided_sessions (session TEXT PRIMARY KEY, mark TEXT) WITHOUT ROWID;
    CREATE INDEX guided_unsettled ON guided_sessions (session) WHERE mark IS NULL;
    CREATE TABLE guided (
        id INTEGER PRIMARY KEY, session TEXT NOT NULL, is_over INTEGER NOT NULL,
        commit_sha TEXT, branch TEXT, value TEXT NOT NULL
    );
    CREATE INDEX guided_by_session ON guided (session);
    CREATE INDEX guided_by_commit ON guided (commit_sha) WHERE commit_sha IS NOT NULL;
    CREATE INDEX guided_by_branch ON guided (branch) WHERE branch IS NOT NULL;
    CREATE INDEX guided_by_end ON guided (is_over);
    CREATE TABLE guided_names (name TEXT NOT NULL, id INTEGER NOT NULL, PRIMARY KEY (name, id))
        WITHOUT ROWID;
    CREATE INDEX guided_names_by_id ON guided_names (id);
    CREATE VIRTUAL TABLE guided_words USING fts5(
        words, content = '', contentless_delete = 1,
        tokenize = "unicode61 remove_diacritics 0 tokenchars '_-'"
    );"#;

/// What the place of the list is kept under.
const GUIDED: &str = "guided";
/// Stands between two texts, so that no phrase reaches from one into the other. No word has such
/// a letter.
const BETWEEN: &str = "ÿ";
/// The words of a run that is over, and of one that is not.
const ENDS: [&str; 2] = ["ÿopen", "ÿover"];
/// How many of a kind are given, of those that are over and of those that are not.
const MATCHES_MAX: usize = 1_000;
/// The same for those that have the words next to each other.
const PHRASES_MAX: usize = 100;
/// The same for those that are only the latest.
const LATEST_MAX: usize = 10;
/// How many words are looked for.
const WORDS_MAX: usize = 32;

fn forget(change: &Connection, session: &str) -> rusqlite::Result<()> {
    let mut query = change.prepare_cached("SELECT id FROM guided WHERE session = ?")?;
    let ids = query.query_map([session], |row| row.get(0))?;
    for id in ids.collect::<rusqlite::Result<Vec<i64>>>()? {
        for text in [
            "DELETE FROM guided_words WHERE rowid = ?",
            "DELETE FROM guided_names WHERE id = ?",
            "DELETE FROM guided WHERE id = ?",
        ] {
            change.prepare_cached(text)?.execute([id])?;
        }
    }
    Ok(())
}

fn put(change: &Connection, session: &str, run: &FindableRun) -> rusqlite::Result<()> {
    let FindableRun { names, is_over, commit, branch, texts, value, .. } = run;
    let text = "INSERT INTO guided (session, is_over, commit_sha, branch, value)
        VALUES (?,?,?,?,?)";
    let row = params![session, is_over, commit, branch, value];
    change.prepare_cached(text)?.execute(row)?;
    let id = change.last_insert_rowid();
    let mut name = change.prepare_cached("INSERT OR IGNORE INTO guided_names VALUES (?, ?)")?;
    for known in names {
        name.execute(params![known, id])?;
    }
    let [open, over] = ENDS;
    let end = if *is_over { over } else { open };
    let words = format!("{end} {BETWEEN} {}", texts.join(&format!(" {BETWEEN} ")));
    let text = "INSERT INTO guided_words (rowid, words) VALUES (?, ?)";
    change.prepare_cached(text)?.execute(params![id, words])?;
    Ok(())
}

/// Keeps what somebody found, but for sessions that somebody else has looked at meanwhile; says
/// whether there are none.
fn keep(change: &Connection, found: &[Findable], gone: &[SessionId]) -> rusqlite::Result<bool> {
    for session in gone {
        let session = session.to_string();
        forget(change, &session)?;
        let text = "DELETE FROM guided_sessions WHERE session = ?";
        change.prepare_cached(text)?.execute([&session])?;
    }
    let (mut runs, mut is_all) = (Vec::new(), true);
    for Findable { session, known, mark, runs: of_session } in found {
        let these = Which::These(BTreeSet::from([*session]));
        if marks(change, &these)?.pop().and_then(|(_, mark)| mark) != *known {
            is_all = false;
            continue;
        }
        let session = session.to_string();
        forget(change, &session)?;
        let text = "INSERT INTO guided_sessions VALUES (?, ?)
            ON CONFLICT DO UPDATE SET mark = excluded.mark";
        let mark = mark.as_ref().map(|mark| &mark.0);
        change.prepare_cached(text)?.execute(params![session, mark])?;
        runs.extend(of_session.iter().map(|run| (session.clone(), run)));
    }
    runs.sort_by_key(|(_, run)| run.last_ms);
    runs.iter().try_for_each(|(session, run)| put(change, session, run))?;
    Ok(is_all)
}

fn marks(
    connection: &Connection,
    which: &Which,
) -> rusqlite::Result<Vec<(SessionId, Option<Mark>)>> {
    let columns = "SELECT session, mark FROM guided_sessions";
    let (condition, values) = match which {
        Which::All => ("", Vec::new()),
        Which::Unsettled => ("WHERE mark IS NULL", Vec::new()),
        Which::These(these) => {
            ("WHERE session = ?", these.iter().map(ToString::to_string).collect())
        }
        Which::Of(_) | Which::OfAny => return Ok(Vec::new()),
    };
    let mut query = connection.prepare_cached(&format!("{columns} {condition}"))?;
    let mut found = Vec::new();
    let mut each = |values: &[&String]| -> rusqlite::Result<()> {
        let rows = query.query_map(params_from_iter(values), |row| {
            let session: String = row.get(0)?;
            Ok((session, row.get::<_, Option<String>>(1)?.map(Mark)))
        })?;
        for row in rows {
            let (session, mark) = row?;
            found.extend(session.parse().ok().map(|session| (session, mark)));
        }
        Ok(())
    };
    if matches!(which, Which::These(_)) {
        values.iter().try_for_each(|value| each(&[value]))?;
    } else {
        each(&[])?;
    }
    Ok(found)
}

/// The numbers of runs that may be wanted.
fn ids(connection: &Connection, wanted: &Wanted) -> rusqlite::Result<BTreeSet<i64>> {
    let mut ids = BTreeSet::new();
    let mut add = |text: &str, values: &[&str]| -> rusqlite::Result<()> {
        let mut query = connection.prepare_cached(text)?;
        let rows = query.query_map(params_from_iter(values), |row| row.get(0))?;
        ids.extend(rows.collect::<rusqlite::Result<Vec<i64>>>()?);
        Ok(())
    };
    let words = wanted.words.get(..WORDS_MAX).unwrap_or(&wanted.words);
    for word in words {
        add("SELECT id FROM guided_names WHERE name = ?", &[word])?;
        if word.starts_with(&format!("{}_", SessionId::PREFIX)) {
            let text = format!(
                "SELECT id FROM guided WHERE session >= ?1 AND session < ?1 || '~'
                 ORDER BY id DESC LIMIT {MATCHES_MAX}"
            );
            add(&text, &[word])?;
        }
    }
    let latest = |condition: &str, limit: usize| {
        format!("SELECT id FROM guided WHERE {condition} ORDER BY id DESC LIMIT {limit}")
    };
    if let Some(commit) = &wanted.commit {
        add(&latest("commit_sha = ?", MATCHES_MAX), &[commit])?;
    }
    if let Some(branch) = &wanted.branch {
        // Behind every text that begins so.
        let beyond = format!("{branch}\u{10ffff}");
        add(&latest("branch >= ? AND branch < ?", MATCHES_MAX), &[branch, &beyond])?;
    }
    for end in ["is_over = 0", "is_over = 1"] {
        add(&latest(end, LATEST_MAX), &[])?;
    }
    if words.is_empty() {
        return Ok(ids);
    }
    let all: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
    let (all, phrase) = (all.join(" AND "), words.join(" "));
    for end in ENDS {
        let found = |limit: usize| {
            format!(
                "SELECT rowid FROM guided_words WHERE guided_words MATCH ?
                 ORDER BY rowid DESC LIMIT {limit}"
            )
        };
        add(&found(MATCHES_MAX), &[&format!("\"{end}\" AND {all}")])?;
        add(&found(PHRASES_MAX), &[&format!("\"{end}\" AND \"{phrase}\"")])?;
    }
    Ok(ids)
}

fn find(connection: &Connection, wanted: &Wanted) -> rusqlite::Result<Vec<(SessionId, String)>> {
    let mut query = connection.prepare_cached("SELECT session, value FROM guided WHERE id = ?")?;
    let mut found = Vec::new();
    for id in ids(connection, wanted)? {
        let (session, value): (String, String) =
            query.query_row([id], |row| Ok((row.get(0)?, row.get(1)?)))?;
        found.extend(session.parse().ok().map(|session| (session, value)));
    }
    Ok(found)
}

#[async_trait]
impl Search for Sqlite {
    async fn place(&self) -> Result<Option<Place>> {
        self.with(|connection| place(connection, GUIDED)).await
    }

    async fn keep(&self, found: Vec<Findable>, gone: Vec<SessionId>) -> Result<bool> {
        let write = move |connection: &mut Connection| {
            let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let is_all = keep(&change, &found, &gone)?;
            change.commit().map(|()| is_all)
        };
        self.with(write).await
    }

    async fn reach(&self, since: Option<&Place>, place: &Place) -> Result<()> {
        let (since, place) = (since.cloned(), place.clone());
        let write = move |connection: &mut Connection| {
            let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            reach(&change, GUIDED, since.as_ref(), &place)?;
            change.commit()
        };
        self.with(write).await
    }

    async fn marks(&self, which: &Which) -> Result<Vec<(SessionId, Option<Mark>)>> {
        let which = which.clone();
        self.with(move |connection| marks(connection, &which)).await
    }

    async fn find(&self, wanted: &Wanted) -> Result<Vec<(SessionId, String)>> {
        let wanted = wanted.clone();
        self.with(move |connection| {
            // What is found and what is kept of it are of one moment.
            let moment = connection.transaction()?;
            find(&moment, &wanted)
        })
        .await
    }
}
