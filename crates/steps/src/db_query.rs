//! `db_query`: asks a database that the operator named, one statement at a time.
//!
//! What a workflow brings in goes beside the statement, never into it. Each statement is a
//! transaction of its own: one whose answer is too long has changed nothing.

mod args;
mod mysql;
mod place;
mod pool;
mod postgres;
mod rows;
mod sqlite;
mod statement;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cairn_core::catalog::schema::{any, at_least, closed, flag, shown, text, told, whole};
use cairn_core::catalog::{Class, SettingFault, StepSettings, StepType, Takes};
use cairn_engine::performer::{Ctx, Failed, FailureKind, Outcome, Performer};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::settings;
use place::Place;
pub use place::{Database, Given};
use statement::Dialect;

/// How many rows come back at most, unless a step says less.
const ROWS_MAX: u64 = 10_000;
/// How long a statement may take, whatever the step's own limit.
const STATEMENT_MAX: Duration = Duration::from_secs(600);

pub(crate) struct DbQuery {
    databases: BTreeMap<String, (Database, Open)>,
}

/// Connections to a database.
enum Open {
    Postgres(Box<postgres::Pool>),
    Mysql(mysql::Pool),
    Sqlite,
}

impl DbQuery {
    pub(crate) fn new(databases: BTreeMap<String, Database>) -> Self {
        let open = |database: Database| {
            let open = match &database.place {
                Place::Postgres(config) => Open::Postgres(Box::new(postgres::Pool::new(config))),
                Place::Mysql(options) => Open::Mysql(mysql::Pool::new(options)),
                Place::Sqlite(_) => Open::Sqlite,
            };
            (database, open)
        };
        Self { databases: databases.into_iter().map(|(name, found)| (name, open(found))).collect() }
    }
}

#[derive(Deserialize)]
struct Input {
    database: String,
    query: String,
    #[serde(default)]
    args: Vec<Value>,
    #[serde(default)]
    read_only: bool,
    max_rows: Option<u64>,
}

/// What a database is asked.
struct Ask {
    statement: statement::Statement,
    args: Vec<Value>,
    read_only: bool,
    rows_max: u64,
    timeout: Duration,
}

/// What it answered.
struct Found {
    rows: Vec<Value>,
    /// How many rows there are, or how many were changed when none come back.
    count: u64,
}

#[async_trait]
impl Performer for DbQuery {
    fn kind(&self) -> StepType {
        let input = closed(
            &json!({
                "args": told(json!({"type": "array"}), "The values of `$1`, `$2` and so on. Only values go this way, and only this way."),
                "database": told(text(), "The name of a database in the operator's configuration."),
                "max_rows": told(at_least(1), "How many rows may come back, 10,000 when it is left out; more are a failure."),
                "query": told(text(), "One statement, as it is written."),
                "query_file": told(text(), "A file beside the workflow with the statement."),
                "read_only": told(flag(), "Whether the database is to refuse changes."),
            }),
            &["database"],
        );
        let what = "Asks a database: PostgreSQL, MySQL, MariaDB or SQLite. A statement is one transaction. Exact decimals, and whole numbers that JSON cannot hold, come as text; bytes come and go in base64; points in time as `2026-01-31T12:00:00Z`.";
        let example = json!({"database": "main", "query": "SELECT id, total FROM orders WHERE placed > $1", "args": ["{{ event.at }}"], "read_only": true});
        let output = closed(
            &json!({
                "row_count": told(whole(), "How many rows came back, or were changed when none come back."),
                "rows": told(json!({"type": "array", "items": any()}), "The rows, each with its columns by name."),
            }),
            &[],
        );
        StepType::new("db_query", Class::Effectful, shown(told(input, what), &example), output)
            .taking(&[
                ("database", Takes::Literal),
                ("query", Takes::Literal),
                ("query_file", Takes::AssetFor("query")),
            ])
            .checked(check)
    }

    async fn perform(&self, config: Value, ctx: &Ctx) -> Result<Outcome, Failed> {
        let input: Input = settings::read(config)?;
        let Some((database, open)) = self.databases.get(&input.database) else {
            let known: Vec<String> =
                self.databases.keys().map(|name| format!("`{name}`")).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(Failed::new(
                "DB_UNKNOWN",
                format!(
                    "there is no database `{}` in the configuration, which has {known}",
                    input.database
                ),
            ));
        };
        let statement = statement::read(&input.query, database.dialect(), input.args.len())?;
        let ask = Ask {
            statement,
            args: input.args,
            read_only: input.read_only || database.read_only,
            rows_max: input.max_rows.unwrap_or(ROWS_MAX).min(ROWS_MAX),
            timeout: ctx.timeout.min(STATEMENT_MAX),
        };
        let found = match (open, &database.place) {
            (Open::Postgres(pool), _) => pool.ask(&ask).await,
            (Open::Mysql(pool), _) => pool.ask(&ask).await,
            (Open::Sqlite, Place::Sqlite(path)) => sqlite::ask(path, Arc::new(ask)).await,
            (Open::Sqlite, _) => Err(Failed::new("DB_UNKNOWN", "the database has no file")),
        }?;
        let notes = format!("{} row(s) of `{}`", found.count, input.database);
        Ok(Outcome::new(json!({"row_count": found.count, "rows": found.rows}), notes))
    }
}

/// Says what no database would take: no statement or several, one that is denied, and a number of
/// values that is not that of the placeholders.
fn check(given: &StepSettings<'_>) -> Vec<SettingFault> {
    let hint = "one statement, with `$1`, `$2` … for the values of `args`";
    let Some(query) = given.config.get("query").and_then(Value::as_str) else {
        return vec![SettingFault::new("", "it does not say what is asked", hint)];
    };
    let count = match given.config.get("args") {
        None => 0,
        Some(Value::Array(args)) => args.len(),
        // How many values a template gives is known when it is there.
        Some(_) => return Vec::new(),
    };
    // Which language it is, the operator says. What all of them refuse is wrong.
    let read = |dialect| statement::read(query, dialect, count).err();
    let [Some(failed), Some(_), Some(_)] = Dialect::ALL.map(read) else { return Vec::new() };
    let field = if failed.code == "DB_ARGS" { "args" } else { "query" };
    vec![SettingFault::new(field, failed.message, hint)]
}

/// A statement that the database did not take.
fn refused(message: impl std::fmt::Display) -> Failed {
    Failed::new("DB_QUERY", format!("the database says: {message}"))
}

/// A database that was not reached, or went away.
fn unreached(message: impl std::fmt::Display) -> Failed {
    Failed::of(
        FailureKind::Connection,
        "DB_CONNECT",
        format!("the database was not reached: {message}"),
    )
}

/// A statement whose time was over.
fn timed_out() -> Failed {
    Failed::of(
        FailureKind::Timeout,
        "DB_TIMEOUT",
        "the statement was stopped when its time was over",
    )
}

/// A statement that may work when it is tried again, such as one that others were in the way of.
fn busy(message: impl std::fmt::Display) -> Failed {
    Failed::of(FailureKind::ServerError, "DB_BUSY", format!("the database says: {message}"))
}
