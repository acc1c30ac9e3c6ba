//! The list of runs, in the same SQLite file.

use std::collections::BTreeSet;

use async_trait::async_trait;
use cairn_core::digest::SnapshotRef;
use cairn_core::id::{EventIndex, RunId, SessionId};
use cairn_core::projection::run::RunStatus;
use rusqlite::types::Value;
use rusqlite::{
    Connection, OptionalExtension as _, Row, TransactionBehavior, params, params_from_iter,
};

use super::index::Sqlite;
use crate::error::Result;
use crate::port::{Mark, Place, RunFilter, RunIndex, RunRow, SessionRead, SnapshotAt, Which};

/// The tables, made when the file is. Every list comes from an index in its own order, so that it
/// costs what it gives, however many runs there are.
pub(super) const TABLES: &str = "
    CREATE TABLE runs (
        run TEXT PRIMARY KEY, session TEXT NOT NULL, workflow TEXT NOT NULL,
        status TEXT NOT NULL, is_over INTEGER NOT NULL, first INTEGER NOT NULL,
        last INTEGER, queued_ms INTEGER NOT NULL, ended_ms INTEGER, trigger_id TEXT, parent TEXT,
        snapshot TEXT, through INTEGER, is_retired INTEGER NOT NULL, place TEXT,
        started_ms INTEGER, seen INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX runs_by_time ON runs (queued_ms DESC, run DESC) WHERE is_retired = 0;
    CREATE INDEX runs_by_status ON runs (status, queued_ms DESC, run DESC) WHERE is_retired = 0;
    CREATE INDEX runs_under_way ON runs (queued_ms DESC, run DESC) WHERE is_over = 0;
    CREATE INDEX runs_by_workflow ON runs (workflow, queued_ms DESC, run DESC);
    CREATE INDEX runs_by_place ON runs (place, queued_ms DESC, run DESC);
    CREATE INDEX runs_by_session ON runs (session, queued_ms DESC, run DESC);
    CREATE TABLE sessions_read (
        session TEXT PRIMARY KEY, workflow TEXT, next INTEGER NOT NULL, seen INTEGER NOT NULL,
        mark TEXT
    ) WITHOUT ROWID;
    CREATE INDEX sessions_by_workflow ON sessions_read (workflow) WHERE workflow IS NOT NULL;
    CREATE INDEX sessions_unsettled ON sessions_read (session) WHERE mark IS NULL;
    CREATE TABLE places (name TEXT PRIMARY KEY, place TEXT NOT NULL) WITHOUT ROWID;";

/// What the place of the list of runs is kept under.
const RUNS: &str = "runs";

/// Up to which place in the order of changes everything was seen to.
pub(super) fn place(connection: &Connection, name: &str) -> rusqlite::Result<Option<Place>> {
    let mut query = connection.prepare_cached("SELECT place FROM places WHERE name = ?")?;
    query.query_row([name], |row| row.get(0).map(Place)).optional()
}

/// Says that everything up to a place was seen to, unless somebody else has said so since.
pub(super) fn reach(
    change: &Connection,
    name: &str,
    since: Option<&Place>,
    to: &Place,
) -> rusqlite::Result<()> {
    if place(change, name)?.as_ref() == since {
        let text = "INSERT INTO places (name, place) VALUES (?, ?)
            ON CONFLICT DO UPDATE SET place = excluded.place";
        change.prepare_cached(text)?.execute([name, &to.0])?;
    }
    Ok(())
}

const COLUMNS: &str = "run, session, workflow, status, is_over, first, last, queued_ms, ended_ms, \
    trigger_id, parent, snapshot, through, is_retired, place, started_ms, seen";

/// Numbers in the file have a sign.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn unsigned(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    let number: i64 = row.get(column)?;
    u64::try_from(number).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(column, number))
}

fn unsigned_if_there(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<u64>> {
    match row.get_ref(column)? {
        rusqlite::types::ValueRef::Null => Ok(None),
        _ => unsigned(row, column).map(Some),
    }
}

/// Where a run stands. What has no such meaning was written by another version, or by nobody.
fn status(row: &Row<'_>) -> rusqlite::Result<RunStatus> {
    let name: String = row.get(3)?;
    RunStatus::parse(&name).ok_or_else(|| {
        let what = format!("no run has the status `{name}`").into();
        rusqlite::Error::FromSqlConversionFailure(3, rusqlite::types::Type::Text, what)
    })
}

/// A row, or nothing when it is none that we wrote.
fn row(row: &Row<'_>) -> rusqlite::Result<Option<RunRow>> {
    let (run, session): (String, String) = (row.get(0)?, row.get(1)?);
    let (Ok(run), Ok(session)) = (run.parse::<RunId>(), session.parse::<SessionId>()) else {
        return Ok(None);
    };
    let (parent, snapshot): (Option<String>, Option<String>) = (row.get(10)?, row.get(11)?);
    let through = unsigned_if_there(row, 12)?.map(EventIndex);
    let at = snapshot.and_then(|at| at.parse().ok()).map(SnapshotRef);
    Ok(Some(RunRow {
        run,
        session,
        workflow: row.get(2)?,
        status: status(row)?,
        first: EventIndex(unsigned(row, 5)?),
        last: unsigned_if_there(row, 6)?.map(EventIndex),
        queued_ms: unsigned(row, 7)?,
        ended_ms: unsigned_if_there(row, 8)?,
        trigger: row.get(9)?,
        parent: parent.and_then(|parent| parent.parse().ok()),
        snapshot: at.zip(through).map(|(at, through)| SnapshotAt { at, through }),
        is_retired: row.get(13)?,
        place: row.get(14)?,
        started_ms: unsigned_if_there(row, 15)?,
        seen: EventIndex(unsigned(row, 16)?),
    }))
}

fn select(
    connection: &Connection,
    condition: &str,
    values: Vec<Value>,
) -> rusqlite::Result<Vec<RunRow>> {
    let text = format!("SELECT {COLUMNS} FROM runs {condition}");
    let mut query = connection.prepare_cached(&text)?;
    let rows = query.query_map(params_from_iter(values), row)?;
    rows.filter_map(Result::transpose).collect()
}

/// Which rows are wanted, in SQL, of those with one status or any. What an index is made for
/// stands in the text: SQLite does not look at values before it chooses one.
fn condition(filter: &RunFilter, status: Option<RunStatus>) -> (String, Vec<Value>) {
    let (mut parts, mut values) = (Vec::new(), Vec::new());
    let mut equal = |column: &str, value: Value| {
        parts.push(format!("{column} = ?"));
        values.push(value);
    };
    if let Some(workflow) = &filter.workflow {
        equal("workflow", workflow.clone().into());
    }
    if let Some(place) = &filter.place {
        equal("place", place.clone().into());
    }
    if let Some(session) = filter.session {
        equal("session", session.to_string().into());
    }
    if let Some(status) = status {
        equal("status", status.name().to_owned().into());
    }
    if let Some(over) = filter.is_over {
        parts.push(format!("is_over = {}", u8::from(over)));
    }
    if !filter.with_retired {
        parts.push("is_retired = 0".to_owned());
    }
    if let Some((queued_ms, run)) = filter.before {
        parts.push("(queued_ms, run) < (?, ?)".to_owned());
        values.extend([signed(queued_ms).into(), run.to_string().into()]);
    }
    let wanted =
        if parts.is_empty() { String::new() } else { format!("WHERE {}", parts.join(" AND ")) };
    let limit = filter.limit.map(|limit| format!("LIMIT {limit}")).unwrap_or_default();
    (format!("{wanted} ORDER BY queued_ms DESC, run DESC {limit}"), values)
}

/// The rows that are wanted. Those of several statuses are taken status by status, each in its
/// order.
fn list(connection: &Connection, filter: &RunFilter) -> rusqlite::Result<Vec<RunRow>> {
    let each = |status| {
        let (condition, values) = condition(filter, status);
        select(connection, &condition, values)
    };
    let mut statuses = filter.statuses.clone();
    statuses.sort_unstable();
    statuses.dedup();
    match *statuses {
        [] => each(None),
        [status] => each(Some(status)),
        _ => {
            let mut rows = Vec::new();
            for status in statuses {
                rows.extend(each(Some(status))?);
            }
            rows.sort_by_key(|row| std::cmp::Reverse((row.queued_ms, row.run)));
            rows.truncate(filter.limit.unwrap_or(usize::MAX));
            Ok(rows)
        }
    }
}

fn put(change: &Connection, rows: &[RunRow], read: &[SessionRead]) -> rusqlite::Result<()> {
    let columns = COLUMNS.split(", ").filter(|column| *column != "run");
    let renewed: Vec<String> = columns.map(|name| format!("{name} = excluded.{name}")).collect();
    // Of a row that is there the indexes are left alone whose columns stay as they are.
    let text = format!(
        "INSERT INTO runs ({COLUMNS}) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)
         ON CONFLICT DO UPDATE SET {} WHERE excluded.seen >= seen",
        renewed.join(", ")
    );
    let mut query = change.prepare_cached(&text)?;
    for row in rows {
        query.execute(params![
            row.run.to_string(),
            row.session.to_string(),
            row.workflow,
            row.status.name(),
            row.status.is_over(),
            signed(row.first.0),
            row.last.map(|last| signed(last.0)),
            signed(row.queued_ms),
            row.ended_ms.map(signed),
            row.trigger,
            row.parent.map(|parent| parent.to_string()),
            row.snapshot.map(|snapshot| snapshot.at.0.to_string()),
            row.snapshot.map(|snapshot| signed(snapshot.through.0)),
            row.is_retired,
            row.place,
            row.started_ms.map(signed),
            signed(row.seen.0),
        ])?;
    }
    put_read(change, read)
}

/// Records how far sessions were read, as far as no more is known.
fn put_read(change: &Connection, read: &[SessionRead]) -> rusqlite::Result<()> {
    let text = "INSERT INTO sessions_read (session, workflow, next, seen, mark)
        VALUES (?,?,?,?,?)
        ON CONFLICT DO UPDATE SET next = excluded.next, seen = excluded.seen,
            mark = excluded.mark, workflow = excluded.workflow";
    let mut query = change.prepare_cached(text)?;
    for read in read {
        let known = sessions(change, &Which::These(BTreeSet::from([read.session])))?.pop();
        let recorded = match known {
            Some(known) => known.followed_by(read.clone()),
            None => Some(read.clone()),
        };
        let Some(SessionRead { session, workflow, next, seen, mark }) = recorded else { continue };
        let mark = mark.map(|mark| mark.0);
        let (session, next, seen) = (session.to_string(), signed(next.0), signed(seen.0));
        query.execute(params![session, workflow, next, seen, mark])?;
    }
    Ok(())
}

/// How far sessions were read, those that are wanted.
fn sessions(connection: &Connection, which: &Which) -> rusqlite::Result<Vec<SessionRead>> {
    let columns = "SELECT session, workflow, next, seen, mark FROM sessions_read";
    let (condition, values): (_, Vec<String>) = match which {
        Which::All => ("", Vec::new()),
        Which::These(these) => {
            let mut found = Vec::new();
            let text = format!("{columns} WHERE session = ?");
            for session in these {
                found.extend(select_read(connection, &text, &[session.to_string()])?);
            }
            return Ok(found);
        }
        Which::Of(workflow) => ("WHERE workflow = ?", vec![workflow.clone()]),
        Which::OfAny => ("WHERE workflow IS NOT NULL", Vec::new()),
        Which::Unsettled => ("WHERE mark IS NULL", Vec::new()),
    };
    select_read(connection, &format!("{columns} {condition}"), &values)
}

fn select_read(
    connection: &Connection,
    text: &str,
    values: &[String],
) -> rusqlite::Result<Vec<SessionRead>> {
    let mut query = connection.prepare_cached(text)?;
    let rows = query.query_map(params_from_iter(values), |row| {
        let session: String = row.get(0)?;
        let (workflow, next) = (row.get(1)?, EventIndex(unsigned(row, 2)?));
        let seen = EventIndex(unsigned(row, 3)?);
        let mark = row.get::<_, Option<String>>(4)?.map(Mark);
        let session = session.parse().ok();
        Ok(session.map(|session| SessionRead { session, workflow, next, seen, mark }))
    })?;
    rows.filter_map(rusqlite::Result::transpose).collect()
}

#[async_trait]
impl RunIndex for Sqlite {
    async fn record(&self, rows: Vec<RunRow>, read: Vec<SessionRead>) -> Result<()> {
        let write = move |connection: &mut Connection| {
            // What is known is looked at before it is changed.
            let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            put(&change, &rows, &read)?;
            change.commit()
        };
        self.with(write).await
    }

    async fn list(&self, filter: &RunFilter) -> Result<Vec<RunRow>> {
        let filter = filter.clone();
        self.with(move |connection| list(connection, &filter)).await
    }

    async fn find(&self, run: RunId) -> Result<Option<RunRow>> {
        let wanted = Value::from(run.to_string());
        let rows =
            self.with(move |connection| select(connection, "WHERE run = ?", vec![wanted.clone()]));
        Ok(rows.await?.into_iter().next())
    }

    async fn place(&self) -> Result<Option<Place>> {
        self.with(|connection| place(connection, RUNS)).await
    }

    async fn reach(&self, since: Option<&Place>, place: &Place) -> Result<()> {
        let (since, place) = (since.cloned(), place.clone());
        let write = move |connection: &mut Connection| {
            let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            reach(&change, RUNS, since.as_ref(), &place)?;
            change.commit()
        };
        self.with(write).await
    }

    async fn sessions(&self, which: &Which) -> Result<Vec<SessionRead>> {
        let which = which.clone();
        self.with(move |connection| sessions(connection, &which)).await
    }

    async fn forget(&self, gone: Vec<SessionId>) -> Result<()> {
        let write = move |connection: &mut Connection| {
            let change = connection.transaction()?;
            for session in &gone {
                let session = session.to_string();
                change.execute("DELETE FROM runs WHERE session = ?1", params![session])?;
                change.execute("DELETE FROM sessions_read WHERE session = ?1", params![session])?;
            }
            change.commit()
        };
        self.with(write).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(bits: u128, workflow: &str, is_over: bool) -> RunRow {
        RunRow {
            run: RunId::from_bits(bits),
            session: SessionId::from_bits(1),
            workflow: workflow.to_owned(),
            place: (bits > 1).then(|| format!("/{workflow}.yaml")),
            status: if is_over { RunStatus::Succeeded } else { RunStatus::Running },
            first: EventIndex(7),
            last: is_over.then_some(EventIndex(8)),
            queued_ms: u64::try_from(bits).unwrap(),
            started_ms: (bits > 2).then_some(8),
            ended_ms: is_over.then_some(9),
            trigger: Some("cron".to_owned()),
            parent: Some(RunId::from_bits(99)),
            snapshot: is_over.then(|| SnapshotAt {
                at: SnapshotRef(cairn_core::digest::Digest::of(b"state")),
                through: EventIndex(8),
            }),
            is_retired: bits == 4,
            seen: EventIndex(9),
        }
    }

    #[tokio::test]
    async fn files_and_memory_give_the_same_rows() {
        let home = tempfile::tempdir().unwrap();
        let files = Sqlite::new(home.path().join("index.sqlite"));
        let memory = crate::memory::runs();
        let rows =
            vec![run(1, "a", true), run(2, "b", false), run(3, "a", false), run(4, "a", true)];
        let read = SessionRead {
            session: SessionId::from_bits(1),
            workflow: Some("a".to_owned()),
            next: EventIndex(9),
            seen: EventIndex(9),
            mark: Some(Mark("m".to_owned())),
        };
        for index in [&files as &dyn RunIndex, &*memory] {
            index.record(rows.clone(), vec![read.clone()]).await.unwrap();
            index.record(vec![run(3, "a", true)], Vec::new()).await.unwrap();
            // Whoever read less does not know of which workflow it is.
            let again =
                SessionRead { workflow: None, next: EventIndex(0), mark: None, ..read.clone() };
            index.record(Vec::new(), vec![again.clone()]).await.unwrap();
            let workflow = read.workflow.clone();
            let known = SessionRead { workflow, ..again };
            assert_eq!(index.sessions(&Which::Unsettled).await.unwrap(), [known]);
            index.record(Vec::new(), vec![read.clone()]).await.unwrap();
            // And changes nothing of what is known of it.
            let less = SessionRead { seen: EventIndex(8), ..read.clone() };
            let older = RunRow { seen: EventIndex(8), ..run(1, "b", false) };
            index.record(vec![older], vec![less]).await.unwrap();
            assert_eq!(index.find(RunId::from_bits(1)).await.unwrap(), Some(run(1, "a", true)));
            let of = async |which: &Which| index.sessions(which).await.unwrap();
            assert_eq!(of(&Which::Unsettled).await, []);
            let this = Which::These(BTreeSet::from([read.session]));
            for which in [Which::All, this, Which::Of("a".to_owned()), Which::OfAny] {
                assert_eq!(of(&which).await, std::slice::from_ref(&read), "{which:?}");
            }
            assert_eq!(of(&Which::Of("b".to_owned())).await, []);
            assert_eq!(index.find(RunId::from_bits(2)).await.unwrap(), Some(run(2, "b", false)));
            assert_eq!(index.find(RunId::from_bits(8)).await.unwrap(), None);
            let places = ["1", "2", "3"].map(|place| Place(place.to_owned()));
            let [one, two, three] = &places;
            index.reach(Some(one), two).await.unwrap();
            assert_eq!(index.place().await.unwrap(), None, "a new list has not come so far");
            index.reach(None, one).await.unwrap();
            index.reach(Some(one), two).await.unwrap();
            index.reach(Some(one), three).await.unwrap();
            assert_eq!(index.place().await.unwrap().as_ref(), Some(two), "somebody was first");
        }
        let filters = [
            RunFilter::default(),
            RunFilter { workflow: Some("a".to_owned()), limit: Some(2), ..RunFilter::default() },
            RunFilter { place: Some("/a.yaml".to_owned()), ..RunFilter::default() },
            RunFilter { is_over: Some(false), ..RunFilter::default() },
            RunFilter { statuses: vec![RunStatus::Succeeded], ..RunFilter::default() },
            RunFilter {
                statuses: vec![RunStatus::Running, RunStatus::Succeeded],
                limit: Some(2),
                ..RunFilter::default()
            },
            RunFilter { before: Some((3, RunId::from_bits(3))), ..RunFilter::default() },
            RunFilter { session: Some(SessionId::from_bits(5)), ..RunFilter::default() },
            RunFilter { with_retired: true, ..RunFilter::default() },
        ];
        for filter in filters {
            let (one, other) = (files.list(&filter).await, memory.list(&filter).await);
            assert_eq!(one.unwrap(), other.unwrap(), "{filter:?}");
        }
        files.forget(vec![SessionId::from_bits(1)]).await.unwrap();
        assert_eq!(files.list(&RunFilter::default()).await.unwrap(), []);
    }

    #[tokio::test]
    async fn every_list_comes_from_an_index_in_its_order() {
        let home = tempfile::tempdir().unwrap();
        let files = Sqlite::new(home.path().join("index.sqlite"));
        let (workflow, place) = (Some("a".to_owned()), Some("/a.yaml".to_owned()));
        let session = Some(SessionId::from_bits(1));
        let before = Some((3, RunId::from_bits(3)));
        let all = RunFilter::default;
        let filters = [
            all(),
            RunFilter { before, ..all() },
            RunFilter { workflow: workflow.clone(), ..all() },
            RunFilter { workflow: workflow.clone(), before, with_retired: true, ..all() },
            RunFilter { workflow, is_over: Some(false), ..all() },
            RunFilter { place, before, ..all() },
            RunFilter { is_over: Some(false), ..all() },
            RunFilter { session, with_retired: true, ..all() },
            RunFilter { session, is_over: Some(false), ..all() },
            RunFilter { statuses: vec![RunStatus::Failed], before, ..all() },
        ];
        for filter in filters {
            let (condition, values) = condition(&filter, filter.statuses.first().copied());
            let explain = move |connection: &mut Connection| {
                let text = format!("EXPLAIN QUERY PLAN SELECT {COLUMNS} FROM runs {condition}");
                let mut query = connection.prepare(&text)?;
                let rows = query.query_map(params_from_iter(values.clone()), |row| row.get(3))?;
                rows.collect::<rusqlite::Result<Vec<String>>>()
            };
            let plan = files.with(explain).await.unwrap();
            let is_good = |line: &String| line.contains("USING INDEX");
            assert!(plan.iter().all(is_good), "{filter:?}: {plan:?}");
        }
    }

    #[tokio::test]
    async fn a_list_that_somebody_else_is_writing_says_so_and_keeps_nothing() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("index.sqlite");
        let files = Sqlite::new(path.clone());
        files.record(vec![run(1, "a", true)], Vec::new()).await.unwrap();
        let other = Connection::open(&path).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let busy = files.record(vec![run(2, "a", true)], Vec::new()).await.unwrap_err();
        assert_eq!(busy.code(), "STORE_BUSY");
        assert_eq!(files.list(&RunFilter::default()).await.unwrap(), [run(1, "a", true)]);
        other.execute_batch("COMMIT").unwrap();
        files.record(vec![run(2, "a", true)], Vec::new()).await.unwrap();
        assert_eq!(files.list(&RunFilter::default()).await.unwrap().len(), 2);
    }

    #[tokio::test]
    async fn a_list_with_a_status_that_nobody_knows_is_made_anew() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("index.sqlite");
        let files = Sqlite::new(path.clone());
        files.record(vec![run(1, "a", false)], Vec::new()).await.unwrap();
        let other = Connection::open(&path).unwrap();
        other.execute("UPDATE runs SET status = 'dreaming'", []).unwrap();
        drop(other);
        let told = files.list(&RunFilter::default()).await.unwrap_err().to_string();
        assert!(told.contains("no run has the status `dreaming`"), "{told}");
        // It follows from the sessions, which are read again.
        assert_eq!(files.list(&RunFilter::default()).await.unwrap(), []);
        files.record(vec![run(1, "a", false)], Vec::new()).await.unwrap();
        assert_eq!(files.list(&RunFilter::default()).await.unwrap(), [run(1, "a", false)]);
    }
}
