//! MySQL and MariaDB.

use cairn_core::canonical;
use cairn_engine::performer::Failed;
use mysql_async::consts::ColumnType;
use mysql_async::prelude::Queryable as _;
use mysql_async::{Column, Conn, DriverError, Error, Opts, Params, Value as Sql};
use serde_json::{Value, json};

use super::pool::Idle;
use super::rows::{Rows, bytes, float, integer, unreadable};
use super::{Ask, Found, busy, refused, timed_out, unreached};

/// The character set of what is no text.
const BINARY: u16 = 63;

/// Connections to one database.
pub(super) struct Pool {
    options: Opts,
    idle: Idle<Conn>,
}

impl Pool {
    pub(super) fn new(options: &Opts) -> Self {
        Self { options: options.clone(), idle: Idle::new() }
    }

    pub(super) async fn ask(&self, ask: &Ask) -> Result<Found, Failed> {
        let _turn = self.idle.turn().await?;
        let mut connection = self.connect().await?;
        let id = connection.id();
        let mut watch = Watch { connection: Some((self.options.clone(), id)) };
        let found = transact(&mut connection, ask).await;
        watch.connection = None;
        if found.as_ref().err().is_none_or(|failed| failed.code != "DB_CONNECT") {
            self.idle.give(connection);
        }
        found
    }

    /// A connection on which nobody left anything.
    async fn connect(&self) -> Result<Conn, Failed> {
        if let Some(mut known) = self.idle.take()
            && known.reset().await.is_ok_and(|fresh| fresh)
        {
            return Ok(known);
        }
        Conn::new(self.options.clone()).await.map_err(|error| failed(&error))
    }
}

/// Tells the server to stop when nobody waits for the answer any more.
struct Watch {
    connection: Option<(Opts, u32)>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        let (Some((options, id)), Ok(runtime)) =
            (self.connection.take(), tokio::runtime::Handle::try_current())
        else {
            return;
        };
        // The server's own limit ends the statement if this does not get through.
        runtime.spawn(async move {
            let mut connection = Conn::new(options).await?;
            connection.query_drop(format!("KILL QUERY {id}")).await?;
            connection.disconnect().await
        });
    }
}

async fn transact(connection: &mut Conn, ask: &Ask) -> Result<Found, Failed> {
    limit(connection, ask).await?;
    let mode = if ask.read_only { "READ ONLY" } else { "READ WRITE" };
    let begun = connection.query_drop(format!("START TRANSACTION {mode}")).await;
    begun.map_err(|error| failed(&error))?;
    let found = query(connection, ask).await;
    let end = if found.is_ok() { "COMMIT" } else { "ROLLBACK" };
    let ended = connection.query_drop(end).await;
    let found = found?;
    ended.map_err(|error| failed(&error))?;
    Ok(found)
}

/// How long a statement may take. The two kinds of servers name it differently.
async fn limit(connection: &mut Conn, ask: &Ask) -> Result<(), Failed> {
    let ms = ask.timeout.as_millis().max(1);
    let seconds = ask.timeout.as_secs_f64().max(0.001);
    let mariadb = format!("SET SESSION max_statement_time = {seconds:.3}");
    if connection.query_drop(mariadb).await.is_ok() {
        return Ok(());
    }
    let mysql = format!("SET SESSION max_execution_time = {ms}");
    connection.query_drop(mysql).await.map_err(|error| failed(&error))
}

async fn query(connection: &mut Conn, ask: &Ask) -> Result<Found, Failed> {
    let args = ask.statement.order.iter().map(|place| ask.args.get(*place).map_or(Sql::NULL, arg));
    let args: Vec<Sql> = args.collect();
    let args = if args.is_empty() { Params::Empty } else { Params::Positional(args) };
    let mut answer =
        connection.exec_iter(&ask.statement.text, args).await.map_err(|error| failed(&error))?;
    let columns: Vec<Column> = answer.columns_ref().to_vec();
    let names = columns.iter().map(|column| column.name_str().into_owned()).collect();
    let mut rows = Rows::new(names, ask.rows_max)?;
    while let Some(row) = answer.next().await.map_err(|error| failed(&error))? {
        let mut values = Vec::with_capacity(columns.len());
        for (column, found) in columns.iter().zip(row.unwrap_raw()) {
            let found = value(column, found.unwrap_or(Sql::NULL));
            values.push(found.ok_or_else(|| {
                unreadable(&column.name_str(), &format!("{:?}", column.column_type()))
            })?);
        }
        rows.push(values)?;
    }
    let changed = answer.affected_rows();
    Ok(rows.found(changed))
}

fn arg(value: &Value) -> Sql {
    match value {
        Value::Null => Sql::NULL,
        Value::Bool(flag) => Sql::Int(i64::from(*flag)),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => Sql::Int(number),
            (None, Some(number)) => Sql::UInt(number),
            (None, None) => Sql::Double(number.as_f64().unwrap_or_default()),
        },
        Value::String(text) => Sql::Bytes(text.clone().into_bytes()),
        other => Sql::Bytes(other.to_string().into_bytes()),
    }
}

fn value(column: &Column, found: Sql) -> Option<Value> {
    Some(match found {
        Sql::NULL => Value::Null,
        Sql::Int(number) => integer(number.into()),
        Sql::UInt(number) => integer(number.into()),
        // The shortest text of the small number, so that 0.1 stays 0.1.
        Sql::Float(number) => float(number.to_string().parse().ok()?),
        Sql::Double(number) => float(number),
        Sql::Date(year, month, day, hour, minute, second, micros) => {
            let date = format!("{year:04}-{month:02}-{day:02}");
            match column.column_type() {
                ColumnType::MYSQL_TYPE_DATE | ColumnType::MYSQL_TYPE_NEWDATE => json!(date),
                _ => json!(format!("{date}T{hour:02}:{minute:02}:{second:02}{}", fraction(micros))),
            }
        }
        Sql::Time(negative, days, hours, minutes, seconds, micros) => {
            let minus = if negative { "-" } else { "" };
            let hours = days * 24 + u32::from(hours);
            json!(format!("{minus}{hours:02}:{minutes:02}:{seconds:02}{}", fraction(micros)))
        }
        Sql::Bytes(found) => match column.column_type() {
            ColumnType::MYSQL_TYPE_JSON => canonical::parse_exact(&found).ok()?,
            ColumnType::MYSQL_TYPE_BIT => {
                let number = found.iter().try_fold(0_u64, |number, byte| {
                    Some(number.checked_mul(256)? | u64::from(*byte))
                });
                integer(number?.into())
            }
            kind if is_bytes(kind) && column.character_set() == BINARY => bytes(&found),
            _ => json!(String::from_utf8(found).ok()?),
        },
    })
}

const fn is_bytes(kind: ColumnType) -> bool {
    matches!(
        kind,
        ColumnType::MYSQL_TYPE_BLOB
            | ColumnType::MYSQL_TYPE_TINY_BLOB
            | ColumnType::MYSQL_TYPE_MEDIUM_BLOB
            | ColumnType::MYSQL_TYPE_LONG_BLOB
            | ColumnType::MYSQL_TYPE_STRING
            | ColumnType::MYSQL_TYPE_VAR_STRING
            | ColumnType::MYSQL_TYPE_VARCHAR
            | ColumnType::MYSQL_TYPE_GEOMETRY
    )
}

fn fraction(micros: u32) -> String {
    let text = format!(".{micros:06}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn failed(error: &Error) -> Failed {
    let known = match error {
        Error::Server(known) => known,
        Error::Io(_) | Error::Driver(DriverError::ConnectionClosed) => return unreached(error),
        other => return refused(other),
    };
    let said = format!("{} ({})", known.message, known.code);
    match known.code {
        // Its time was over, or somebody called it off.
        1317 | 1969 | 3024 => timed_out(),
        1205 | 1213 | 1040 | 1203 => busy(said),
        1044 | 1045 | 1049 => unreached(said),
        _ => refused(said),
    }
}
