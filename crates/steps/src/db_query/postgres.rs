//! PostgreSQL.

mod decode;

use cairn_engine::performer::Failed;
use futures_util::TryStreamExt as _;
use std::pin::pin;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{CancelToken, Client, Config, Error};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::args::Arg;
use super::pool::Idle;
use super::rows::{BYTES_MAX, Rows, too_large, unreadable};
use super::{Ask, Found, busy, refused, timed_out, unreached};
use crate::http::tls;

/// Connections to one database.
pub(super) struct Pool {
    config: Config,
    idle: Idle<Client>,
}

impl Pool {
    pub(super) fn new(config: &Config) -> Self {
        Self { config: config.clone(), idle: Idle::new() }
    }

    pub(super) async fn ask(&self, ask: &Ask) -> Result<Found, Failed> {
        let _turn = self.idle.turn().await?;
        let client = match self.idle.take().filter(|client| !client.is_closed()) {
            Some(client) => client,
            None => self.connect().await?,
        };
        let mut watch = Watch { token: Some(client.cancel_token()) };
        let found = transact(&client, ask).await;
        watch.token = None;
        if found.is_ok() || !client.is_closed() {
            self.idle.give(client);
        }
        found
    }

    async fn connect(&self) -> Result<Client, Failed> {
        let connector = MakeRustlsConnect::new(tls()?);
        let (client, connection) =
            self.config.connect(connector).await.map_err(|error| failed(&error))?;
        // It ends with its client; whoever uses that sees why.
        tokio::spawn(connection);
        Ok(client)
    }
}

/// Tells the server to stop when nobody waits for the answer any more.
struct Watch {
    token: Option<CancelToken>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        let (Some(token), Ok(runtime)) = (self.token.take(), tokio::runtime::Handle::try_current())
        else {
            return;
        };
        let Ok(tls) = tls() else { return };
        // The server's own limit ends the statement if this does not get through.
        runtime.spawn(async move { token.cancel_query(MakeRustlsConnect::new(tls)).await });
    }
}

async fn transact(client: &Client, ask: &Ask) -> Result<Found, Failed> {
    let mode = if ask.read_only { "READ ONLY" } else { "READ WRITE" };
    let ms = ask.timeout.as_millis().max(1);
    let begin = format!("BEGIN {mode}; SET LOCAL statement_timeout = {ms}");
    // What somebody did to the connection before goes first, on the same way.
    let fresh = tokio::try_join!(client.batch_execute("DISCARD ALL"), client.batch_execute(&begin));
    fresh.map_err(|error| failed(&error))?;
    let found = query(client, ask).await;
    let end = if found.is_ok() { "COMMIT" } else { "ROLLBACK" };
    let ended = client.batch_execute(end).await;
    let found = found?;
    ended.map_err(|error| failed(&error))?;
    Ok(found)
}

async fn query(client: &Client, ask: &Ask) -> Result<Found, Failed> {
    let statement = client.prepare(&ask.statement.text).await.map_err(|error| failed(&error))?;
    let names = statement.columns().iter().map(|column| column.name().to_owned()).collect();
    let mut rows = Rows::new(names, ask.rows_max)?;
    let args: Vec<Arg<'_>> = ask.args.iter().map(Arg).collect();
    let args: Vec<&(dyn ToSql + Sync)> = args.iter().map(|arg| arg as _).collect();
    let stream = client.query_raw(&statement, args).await.map_err(|error| failed(&error))?;
    let mut stream = pin!(stream);
    while let Some(row) = stream.try_next().await.map_err(|error| failed(&error))? {
        let mut values = Vec::with_capacity(row.len());
        for (place, column) in row.columns().iter().enumerate() {
            let value = row.try_get::<_, Option<decode::Raw<'_>>>(place);
            let raw = value.ok().flatten();
            // A value that is far too large is not made any larger by being read.
            if raw.as_ref().is_some_and(|raw| raw.0.len() > BYTES_MAX) {
                return Err(too_large());
            }
            let value = raw.map(|raw| decode::value(column.type_(), raw.0));
            match value {
                None => values.push(serde_json::Value::Null),
                Some(Some(value)) => values.push(value),
                Some(None) => return Err(unreadable(column.name(), column.type_().name())),
            }
        }
        rows.push(values)?;
    }
    let changed = stream.rows_affected().unwrap_or_default();
    Ok(rows.found(changed))
}

/// What an error means. The text of the server is for people; none has a password in it.
fn failed(error: &Error) -> Failed {
    let Some(known) = error.as_db_error() else {
        let cause =
            std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string);
        // A value that does not fit is found before anything is sent.
        return match error.to_string().starts_with("error serializing parameter") {
            true => Failed::new("DB_ARGS", format!("a value does not fit: {cause}")),
            false => unreached(cause),
        };
    };
    let said = format!("{} ({})", known.message(), known.code().code());
    match known.code() {
        code if *code == SqlState::QUERY_CANCELED => timed_out(),
        code if *code == SqlState::T_R_SERIALIZATION_FAILURE => busy(said),
        code if *code == SqlState::T_R_DEADLOCK_DETECTED => busy(said),
        code if ["53", "55", "58"].iter().any(|class| code.code().starts_with(class)) => busy(said),
        code if ["08", "57"].iter().any(|class| code.code().starts_with(class)) => unreached(said),
        _ => refused(said),
    }
}
