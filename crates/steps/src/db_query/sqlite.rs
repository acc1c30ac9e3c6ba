//! SQLite.

use std::sync::Arc;
use std::time::Duration;

use cairn_engine::performer::Failed;
use rusqlite::limits::Limit;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ErrorCode, InterruptHandle, OpenFlags, Statement, ToSql};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::place::File;
use super::rows::{Rows, bytes, float, integer, too_large, unreadable};
use super::{Ask, Found, busy, refused, timed_out, unreached};

/// How many bytes a value or a row may have while it is worked with; far less comes back.
const VALUE_MAX: i32 = 64 << 20;

/// How long a statement waits for others to be done.
const BUSY_MAX: Duration = Duration::from_secs(5);

pub(super) async fn ask(file: &File, ask: Arc<Ask>) -> Result<Found, Failed> {
    let (tell, told) = oneshot::channel();
    let (file, timeout) = (file.clone(), ask.timeout);
    let work = tokio::task::spawn_blocking(move || work(&file, &ask, tell));
    // Whoever stops waiting, or has waited long enough, stops the statement.
    let watch = Watch(told.await.ok());
    let ended = tokio::time::timeout(timeout, work).await;
    let Ok(ended) = ended else { return Err(timed_out()) };
    drop(watch);
    ended.unwrap_or_else(|error| Err(unreached(error)))
}

/// Stops a statement when it is dropped. One that is over does not notice.
struct Watch(Option<InterruptHandle>);

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(handle) = &self.0 {
            handle.interrupt();
        }
    }
}

fn work(file: &File, ask: &Ask, tell: oneshot::Sender<InterruptHandle>) -> Result<Found, Failed> {
    let mode = match (ask.read_only, file.create) {
        (true, _) => OpenFlags::SQLITE_OPEN_READ_ONLY,
        (false, false) => OpenFlags::SQLITE_OPEN_READ_WRITE,
        (false, true) => OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE,
    };
    let flags = mode | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let opened = Connection::open_with_flags(&file.path, flags);
    let connection = opened.map_err(|error| absent(file).unwrap_or_else(|| failed(&error)))?;
    connection.busy_timeout(BUSY_MAX.min(ask.timeout)).map_err(|error| failed(&error))?;
    // No statement reaches another file, or makes something that fills the memory.
    let limits = [(Limit::SQLITE_LIMIT_ATTACHED, 0), (Limit::SQLITE_LIMIT_LENGTH, VALUE_MAX)];
    for (limit, max) in limits {
        connection.set_limit(limit, max).map_err(|error| failed(&error))?;
    }
    if tell.send(connection.get_interrupt_handle()).is_err() {
        return Err(timed_out());
    }
    transact(&connection, ask)
}

/// Says what is missing of a file that could not be opened.
fn absent(file: &File) -> Option<Failed> {
    let path = file.path.display();
    let folder = file.path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let message = match folder {
        Some(folder) if !folder.is_dir() => {
            format!("the folder `{}` of the database is not there; create it", folder.display())
        }
        _ if file.path.exists() => return None,
        _ => format!(
            "the database file `{path}` is not there; create it, or say `create = true` for this \
             database in the configuration"
        ),
    };
    Some(Failed::new("DB_FILE", message))
}

fn transact(connection: &Connection, ask: &Ask) -> Result<Found, Failed> {
    let run = |text: &str| connection.execute_batch(text).map_err(|error| failed(&error));
    run("BEGIN")?;
    let found = query(connection, ask);
    match found {
        Ok(found) => run("COMMIT").map(|()| found),
        Err(error) => {
            // It may have ended with its statement.
            let _ = run("ROLLBACK");
            Err(error)
        }
    }
}

fn query(connection: &Connection, ask: &Ask) -> Result<Found, Failed> {
    let mut statement = connection.prepare(&ask.statement.text).map_err(|error| failed(&error))?;
    let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let mut rows = Rows::new(names.clone(), ask.rows_max)?;
    bind(&mut statement, ask)?;
    if names.is_empty() {
        let changed = statement.raw_execute().map_err(|error| failed(&error))?;
        return Ok(rows.found(changed as u64));
    }
    let mut answer = statement.raw_query();
    while let Some(row) = answer.next().map_err(|error| failed(&error))? {
        let mut values = Vec::with_capacity(names.len());
        for (place, name) in names.iter().enumerate() {
            let found = row.get_ref(place).map_err(|error| failed(&error))?;
            values.push(value(found).ok_or_else(|| unreadable(name, "text that is not UTF-8"))?);
        }
        rows.push(values)?;
    }
    Ok(rows.found(0))
}

fn bind(statement: &mut Statement<'_>, ask: &Ask) -> Result<(), Failed> {
    // A placeholder with a name would be null without a word.
    if statement.parameter_count() != ask.args.len() {
        return Err(Failed::new("DB_ARGS", "placeholders are written `$1`, `$2` and so on"));
    }
    for (place, arg) in (1..).zip(&ask.args) {
        statement.raw_bind_parameter(place, Arg(arg)).map_err(|error| failed(&error))?;
    }
    Ok(())
}

/// A value that is bound to a placeholder.
struct Arg<'a>(&'a Value);

impl ToSql for Arg<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self.0 {
            Value::Null => ToSqlOutput::from(rusqlite::types::Null),
            Value::Bool(flag) => ToSqlOutput::from(*flag),
            Value::Number(number) => match number.as_i64() {
                Some(number) => ToSqlOutput::from(number),
                None => ToSqlOutput::from(number.as_f64().unwrap_or_default()),
            },
            Value::String(text) => ToSqlOutput::from(text.as_str()),
            other => ToSqlOutput::from(other.to_string()),
        })
    }
}

fn value(found: ValueRef<'_>) -> Option<Value> {
    Some(match found {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => integer(number.into()),
        ValueRef::Real(number) => float(number),
        ValueRef::Text(text) => json!(std::str::from_utf8(text).ok()?),
        ValueRef::Blob(found) => bytes(found),
    })
}

fn failed(error: &rusqlite::Error) -> Failed {
    match error.sqlite_error_code() {
        Some(ErrorCode::OperationInterrupted) => timed_out(),
        Some(ErrorCode::TooBig) => too_large(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => busy(error),
        Some(ErrorCode::CannotOpen | ErrorCode::NotADatabase | ErrorCode::SystemIoFailure) => {
            unreached(error)
        }
        _ => refused(error),
    }
}
