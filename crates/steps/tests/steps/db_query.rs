//! Statements against a real PostgreSQL, MariaDB and SQLite.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use cairn_engine::performer::{Ctx, Failed, FailureKind, Outcome, Performers};
use cairn_steps::catalog::{self, Settings};
use cairn_steps::db_query::{Database, Given};
use serde_json::{Value, json};

use crate::databases::{Server, mariadb, postgres};
use crate::world::{ctx, settings};

/// The step with one database, `main`.
struct Db(Performers);

impl Db {
    fn new(given: Given) -> Self {
        let database = Database::new(given).unwrap();
        let databases = BTreeMap::from([("main".to_owned(), database)]);
        let settings = Settings { databases, ..settings(Path::new("/nonexistent")) };
        Self(catalog::all(&settings))
    }

    fn at(url: String) -> Self {
        Self::new(Given { url, ..Given::default() })
    }

    async fn ask(&self, query: &str, more: Value) -> Result<Outcome, Failed> {
        self.ask_in(query, more, &ctx()).await
    }

    async fn ask_in(&self, query: &str, more: Value, ctx: &Ctx) -> Result<Outcome, Failed> {
        let mut config = json!({"database": "main", "query": query});
        config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.0.get("db_query").unwrap().perform(config, ctx).await
    }

    async fn rows(&self, query: &str, args: Value) -> Value {
        let found = self.ask(query, json!({"args": args})).await;
        found.unwrap_or_else(|failed| panic!("{query}: {failed}")).output["rows"].clone()
    }

    async fn code(&self, query: &str, more: Value) -> &'static str {
        match self.ask(query, more).await {
            Ok(found) => panic!("{query}: {}", found.output),
            Err(failed) => failed.code,
        }
    }
}

fn in_postgres(server: &Server) -> Db {
    let url = format!("postgres://app@127.0.0.1:{}/postgres", server.port);
    Db::new(Given { url, password: Some("hunter2".into()), ..Given::default() })
}

#[tokio::test]
async fn postgres_keeps_values_as_they_are() {
    let server = postgres();
    let db = in_postgres(&server);
    let all = "SELECT true AS b, 7::int2 AS i2, 8::int4 AS i4, 9007199254740993::int8 AS i8,
        0.1::float4 AS f4, 1.5::float8 AS f8, 'NaN'::float8 AS nan, 123456789.123456789000::numeric AS n,
        -0.00010::numeric AS n2, 100000000::numeric AS n3, 0::numeric AS n4, 'é'::text AS t, 'x'::varchar AS v,
        '{\"a\": [1, null]}'::jsonb AS jb, '[1]'::json AS j, '\\x00ff'::bytea AS by,
        'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid AS u,
        '2026-01-31 12:00:00.5+02'::timestamptz AS tz, '2026-01-31 12:00:00'::timestamp AS ts,
        '2026-01-31'::date AS d, '12:30:00'::time AS ti, 'infinity'::timestamptz AS inf,
        '1 year 2 mons 3 days 04:05:06.7'::interval AS iv, NULL::text AS nu,
        ARRAY[1, NULL, 3] AS a, ARRAY[['a', 'b'], ['c', 'd']] AS aa, '{}'::int[] AS ea";
    let row = db.rows(all, json!([])).await;
    let wanted = json!([{
        "b": true, "i2": 7, "i4": 8, "i8": "9007199254740993", "f4": 0.1, "f8": 1.5, "nan": "NaN",
        "n": "123456789.123456789000", "n2": "-0.00010", "n3": "100000000", "n4": "0", "t": "é", "v": "x",
        "jb": {"a": [1, null]}, "j": [1], "by": "AP8=", "u": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        "tz": "2026-01-31T10:00:00.5Z", "ts": "2026-01-31T12:00:00", "d": "2026-01-31",
        "ti": "12:30:00", "inf": "infinity", "iv": "P1Y2M3DT14706.7S", "nu": null,
        "a": [1, null, 3], "aa": [["a", "b"], ["c", "d"]], "ea": [],
    }]);
    assert_eq!(row, wanted);
    // What came out goes in again and is the same.
    let table = "CREATE TABLE kept (b bool, i8 int8, n numeric, t text, jb jsonb, by bytea, u uuid,
        tz timestamptz, d date, a int[], aa text[], nu text)";
    db.rows(table, json!([])).await;
    let names = ["b", "i8", "n", "t", "jb", "by", "u", "tz", "d", "a", "aa", "nu"];
    let args: Vec<Value> = names.iter().map(|name| row[0][name].clone()).collect();
    let insert =
        "INSERT INTO kept VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) RETURNING *";
    let kept = db.rows(insert, json!(args)).await;
    for name in names {
        assert_eq!(kept[0][name], row[0][name], "{name}");
    }
    assert_eq!(db.code("SELECT '1.2.3.4'::inet AS x", json!({})).await, "DB_TYPE");
    assert_eq!(db.code("SELECT $1::int", json!({"args": ["x"]})).await, "DB_QUERY");
    assert_eq!(db.code("SELECT $1::text", json!({"args": ["a\0b"]})).await, "DB_ARGS");
    assert_eq!(db.code("SELECT $1::bytea", json!({"args": ["%"]})).await, "DB_ARGS");
}

// case: sql.values
#[tokio::test]
async fn postgres_takes_values_only_as_values() {
    let server = postgres();
    let db = in_postgres(&server);
    db.rows("CREATE TABLE users (id int PRIMARY KEY, name text)", json!([])).await;
    let made = db.ask("INSERT INTO users VALUES (1, $1), (2, $2)", json!({"args": ["ada", "bob"]}));
    assert_eq!(made.await.unwrap().output, json!({"row_count": 2, "rows": []}));
    for evil in ["' OR 1=1 --", "'; DROP TABLE users; --", "{\"$ne\":1}", "\\'; --"] {
        let found = db.rows("SELECT * FROM users WHERE name = $1", json!([evil])).await;
        assert_eq!(found, json!([]), "{evil}");
    }
    let found =
        db.rows("SELECT id FROM users WHERE name = ANY($1) ORDER BY id", json!([["ada", "bob"]]));
    assert_eq!(found.await, json!([{"id": 1}, {"id": 2}]));
    assert_eq!(db.code("SELECT 1; DROP TABLE users", json!({})).await, "DB_STATEMENTS");
    assert_eq!(db.code("COPY users FROM PROGRAM 'id'", json!({})).await, "DB_STATEMENT");
    assert_eq!(db.code("SET ROLE postgres", json!({})).await, "DB_STATEMENT");
    assert_eq!(db.code("SELECT 1 AS a, 2 AS a", json!({})).await, "DB_COLUMNS");
    assert_eq!(db.code("SELECT nonsense", json!({})).await, "DB_QUERY");
    assert_eq!(db.code("INSERT INTO users VALUES (1, 'x')", json!({})).await, "DB_QUERY");
    // Nothing is changed where nothing may be, nor when the answer is too long.
    let read_only = json!({"read_only": true});
    assert_eq!(db.code("DELETE FROM users", read_only.clone()).await, "DB_QUERY");
    assert_eq!(db.ask("SELECT 1 AS x", read_only).await.unwrap().output["row_count"], json!(1));
    let one = json!({"max_rows": 1});
    assert_eq!(db.code("DELETE FROM users RETURNING id", one).await, "DB_TOO_MANY_ROWS");
    let long = "SELECT repeat('x', 1100000) AS x FROM users";
    assert_eq!(db.code(long, json!({})).await, "DB_TOO_LARGE");
    let many = "SELECT i FROM generate_series(1, 1000000) AS i";
    assert_eq!(db.code(many, json!({})).await, "DB_TOO_MANY_ROWS");
    assert_eq!(db.rows("SELECT count(*) AS n FROM users", json!([])).await, json!([{"n": 2}]));
    // What one step does to its connection, the next does not see.
    db.rows("SELECT set_config('search_path', 'elsewhere', false) AS x", json!([])).await;
    assert_eq!(db.rows("SELECT count(*) AS n FROM users", json!([])).await, json!([{"n": 2}]));
    // Many at once share a few connections.
    let many = (0..40).map(|n| async move { n });
    let asked = futures_util::future::join_all(many.map(|n| {
        let db = &db;
        async move { db.rows("SELECT $1::int AS n", json!([n.await])).await }
    }));
    for (n, found) in asked.await.into_iter().enumerate() {
        assert_eq!(found, json!([{"n": n}]));
    }
    let count = "SELECT count(*) AS n FROM pg_stat_activity WHERE application_name = 'cairn'";
    let open = db.rows(count, json!([])).await[0]["n"].as_i64().unwrap();
    assert!(open <= 8, "{open}");
}

// case: sql.limits
#[tokio::test]
async fn postgres_statements_end_with_their_time_or_their_step() {
    let server = postgres();
    let db = in_postgres(&server);
    let short = Ctx { timeout: Duration::from_millis(200), ..ctx() };
    let begun = Instant::now();
    let failed = db.ask_in("SELECT pg_sleep(60)", json!({}), &short).await.unwrap_err();
    assert_eq!((failed.code, failed.kind), ("DB_TIMEOUT", FailureKind::Timeout));
    assert!(begun.elapsed() < Duration::from_secs(5));
    let sleepers = "SELECT count(*) AS n FROM pg_stat_activity WHERE query LIKE '%pg_sleep(61)%' AND state = 'active' AND pid <> pg_backend_pid()";
    let sleeping = async |wanted: i64| {
        let begun = Instant::now();
        while db.rows(sleepers, json!([])).await[0]["n"] != json!(wanted) {
            assert!(begun.elapsed() < Duration::from_secs(5), "{wanted} should sleep");
        }
    };
    let (up, ctx) = (sleeping(1), ctx());
    tokio::select! {
        ended = db.ask_in("SELECT pg_sleep(61)", json!({}), &ctx) => panic!("it ended: {ended:?}"),
        () = up => {}
    }
    sleeping(0).await;
    // A wrong password or no server is told without the password.
    let url = format!("postgres://app:hunter3@127.0.0.1:{}/postgres", server.port);
    let failed = Db::at(url).ask("SELECT 1", json!({})).await.unwrap_err();
    assert_eq!((failed.code, failed.message.contains("hunter")), ("DB_QUERY", false), "{failed}");
    let socket = server.folder.path().display().to_string().replace('/', "%2F");
    let url = format!("postgres://app:hunter2@{socket}:{}/postgres", server.port);
    let socket = Db::new(Given { url, socket: true, read_only: true, ..Given::default() });
    assert_eq!(socket.rows("SELECT 1 AS x", json!([])).await, json!([{"x": 1}]));
    assert_eq!(socket.code("CREATE TABLE x (a int)", json!({})).await, "DB_QUERY");
    drop(server);
    let failed = db.ask("SELECT 1", json!({})).await.unwrap_err();
    assert_eq!((failed.code, failed.kind), ("DB_CONNECT", FailureKind::Connection));
}

/// How much memory this process had at most so far, in bytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

#[tokio::test]
async fn a_postgres_value_that_is_far_too_large_is_named_and_not_kept() {
    const LARGE: u64 = 256 << 20;
    let server = postgres();
    let db = in_postgres(&server);
    assert_eq!(db.rows("SELECT 1 AS x", json!([])).await, json!([{"x": 1}]));
    let before = peak();
    let query = format!("SELECT repeat('x', {LARGE}) AS x");
    assert_eq!(db.code(&query, json!({})).await, "DB_TOO_LARGE");
    let grown = peak() - before;
    // The client of the database keeps it whole for a moment, and grows in doublings.
    assert!(grown < LARGE * 5 / 2, "{} MiB", grown >> 20);
    assert_eq!(db.code("SELECT 'a' || chr(0)", json!({})).await, "DB_QUERY");
    assert_eq!(db.rows("SELECT 2 AS x", json!([])).await, json!([{"x": 2}]));
}

// case: sql.server-files
#[tokio::test]
async fn the_files_of_a_postgres_server_are_out_of_reach() {
    let server = postgres();
    let db = in_postgres(&server);
    for query in [
        "COPY (SELECT 1) TO PROGRAM 'id'",
        "COPY x FROM '/etc/passwd'",
        "SELECT lo_import('/etc/passwd')",
        "SELECT pg_catalog.\"lo_import\"('/etc/passwd')",
        "SELECT lo_export(1, '/tmp/x')",
        "SELECT pg_read_file('/etc/passwd') AS x",
        "SELECT pg_ls_dir('/') AS x",
    ] {
        assert_eq!(db.code(query, json!({})).await, "DB_STATEMENT", "{query}");
    }
    // With a role of its own the database says so, too, however the question is put.
    db.rows("CREATE ROLE plain LOGIN PASSWORD 'hunter2'", json!([])).await;
    let url = format!("postgres://plain@127.0.0.1:{}/postgres", server.port);
    let plain = Db::new(Given { url, password: Some("hunter2".into()), ..Given::default() });
    let hidden = "DO $$ BEGIN EXECUTE 'SELECT lo_' || 'import(''/etc/passwd'')'; END $$";
    let failed = plain.ask(hidden, json!({})).await.unwrap_err();
    assert_eq!(failed.code, "DB_QUERY");
    assert!(failed.message.contains("permission denied"), "{failed}");
}

#[tokio::test]
async fn mariadb_keeps_values_and_limits() {
    let server = mariadb();
    let db = Db::at(format!("mysql://root@127.0.0.1:{}/mysql", server.port));
    db.rows("CREATE DATABASE app", json!([])).await;
    let db = Db::at(format!("mysql://root@127.0.0.1:{}/app", server.port));
    let table = "CREATE TABLE kept (i bigint, u bigint unsigned, n decimal(20,5), f double, t text CHARACTER SET utf8mb4,
        j json, by_ blob, d date, ts datetime(6), ti time, bi bit(9), nu text)";
    db.rows(table, json!([])).await;
    let insert = "INSERT INTO kept VALUES ($1, $2, $3, $4, $5, $6, unhex('00ff'), $7, $8, $9, b'100000001', $10)";
    let args = json!([7, 18_446_744_073_709_551_615_u64, "12.50000", 1.5, "é", {"a": [1]}, "2026-01-31", "2026-01-31 12:00:00.5", "-12:30:00", null]);
    let made = db.ask(insert, json!({"args": args})).await.unwrap();
    assert_eq!(made.output, json!({"row_count": 1, "rows": []}));
    let row = db
        .rows(
            "SELECT i, u, n, f, t, by_, d, ts, ti, bi, nu FROM kept WHERE i = ? AND t = ?",
            json!([7, "é"]),
        )
        .await;
    assert_eq!(
        row,
        json!([{
            "i": 7, "u": "18446744073709551615", "n": "12.50000", "f": 1.5, "t": "é", "by_": "AP8=",
            "d": "2026-01-31", "ts": "2026-01-31T12:00:00.5", "ti": "-12:30:00", "bi": 257, "nu": null,
        }])
    );
    let found = db.rows("SELECT $2 AS b, $1 AS a, $2 AS c", json!([1, "x"])).await;
    assert_eq!(found, json!([{"a": 1, "b": "x", "c": "x"}]));
    for evil in ["' OR 1=1 --", "\\' OR 1=1 -- ", "\"; DROP TABLE kept; --"] {
        let found = db.rows("SELECT i FROM kept WHERE t = $1", json!([evil])).await;
        assert_eq!(found, json!([]), "{evil}");
    }
    assert_eq!(db.code("SELECT 1; DROP TABLE kept", json!({})).await, "DB_STATEMENTS");
    assert_eq!(
        db.code("LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE kept", json!({})).await,
        "DB_STATEMENT"
    );
    assert_eq!(db.code("DELETE FROM kept", json!({"read_only": true})).await, "DB_QUERY");
    assert_eq!(db.code("SELECT seq FROM seq_1_to_1000000", json!({})).await, "DB_TOO_MANY_ROWS");
    assert_eq!(db.code("SELECT repeat('x', 1100000) AS x", json!({})).await, "DB_TOO_LARGE");
    assert_eq!(db.rows("SELECT count(*) AS n FROM kept", json!([])).await, json!([{"n": 1}]));
    let short = Ctx { timeout: Duration::from_millis(300), ..ctx() };
    let begun = Instant::now();
    let failed = db.ask_in("SELECT sleep(60) AS x", json!({}), &short).await;
    let failed = failed.map(|found| found.output).unwrap_err();
    assert_eq!((failed.code, failed.kind), ("DB_TIMEOUT", FailureKind::Timeout));
    assert!(begun.elapsed() < Duration::from_secs(5));
    let sleepers = "SELECT count(*) AS n FROM information_schema.processlist WHERE info LIKE '%sleep(61)%' AND id <> connection_id()";
    let sleeping = async |wanted: i64| {
        let begun = Instant::now();
        while db.rows(sleepers, json!([])).await[0]["n"] != json!(wanted) {
            assert!(begun.elapsed() < Duration::from_secs(5), "{wanted} should sleep");
        }
    };
    let (up, ctx) = (sleeping(1), ctx());
    tokio::select! {
        ended = db.ask_in("SELECT sleep(61) AS x", json!({}), &ctx) => panic!("it ended: {ended:?}"),
        () = up => {}
    }
    sleeping(0).await;
    let failed = Db::at(format!("mysql://root:hunter2@127.0.0.1:{}/app", server.port));
    let failed = failed.ask("SELECT 1", json!({})).await.unwrap_err();
    assert_eq!((failed.code, failed.message.contains("hunter")), ("DB_CONNECT", false), "{failed}");
}

fn in_sqlite(folder: &Path) -> Db {
    let path = folder.join("app.db");
    rusqlite::Connection::open(&path).unwrap().execute_batch("PRAGMA user_version = 1").unwrap();
    Db::at(format!("sqlite:{}", path.display()))
}

#[tokio::test]
async fn sqlite_keeps_values_and_limits() {
    let folder = tempfile::tempdir().unwrap();
    let db = in_sqlite(folder.path());
    db.rows("CREATE TABLE kept (i integer, r real, t text, b blob, nu text, j text)", json!([]))
        .await;
    let insert = "INSERT INTO kept VALUES ($1, $2, $3, x'00ff', $4, $5)";
    let made = db
        .ask(insert, json!({"args": [9_007_199_254_740_993_u64, 1.5, "é", null, {"a": 1}]}))
        .await;
    assert_eq!(made.unwrap().output, json!({"row_count": 1, "rows": []}));
    let row = db.rows("SELECT * FROM kept WHERE t = $1", json!(["é"])).await;
    let wanted = json!([{"i": "9007199254740993", "r": 1.5, "t": "é", "b": "AP8=", "nu": null, "j": "{\"a\":1}"}]);
    assert_eq!(row, wanted);
    let found = db.rows("SELECT $2 AS b, $1 AS a, $2 AS c", json!([1, true])).await;
    assert_eq!(found, json!([{"a": 1, "b": 1, "c": 1}]));
    for query in ["SELECT :name", "SELECT @name", "SELECT $name"] {
        assert_eq!(db.code(query, json!({})).await, "DB_ARGS", "{query}");
    }
}

#[tokio::test]
async fn sqlite_stays_in_its_file_and_in_its_time() {
    let folder = tempfile::tempdir().unwrap();
    let db = in_sqlite(folder.path());
    db.rows("CREATE TABLE kept (i integer)", json!([])).await;
    db.rows("INSERT INTO kept VALUES (1), (2)", json!([])).await;
    let other = folder.path().join("other.db");
    let attach = format!("ATTACH '{}' AS other", other.display());
    let into = format!("VACUUM INTO '{}'", other.display());
    for query in [attach.as_str(), into.as_str(), "PRAGMA writable_schema = 1", "BEGIN"] {
        assert_eq!(db.code(query, json!({})).await, "DB_STATEMENT", "{query}");
    }
    assert!(!other.exists());
    assert_eq!(db.code("SELECT load_extension('x')", json!({})).await, "DB_QUERY");
    assert_eq!(db.code("SELECT 1; DELETE FROM kept", json!({})).await, "DB_STATEMENTS");
    assert_eq!(db.code("DELETE FROM kept", json!({"read_only": true})).await, "DB_QUERY");
    let one = json!({"max_rows": 1});
    assert_eq!(db.code("DELETE FROM kept RETURNING i", one).await, "DB_TOO_MANY_ROWS");
    assert_eq!(db.rows("SELECT count(*) AS n FROM kept", json!([])).await, json!([{"n": 2}]));
    assert_eq!(db.code("SELECT zeroblob(1100000) AS x", json!({})).await, "DB_TOO_LARGE");
    let before = peak();
    for large in ["zeroblob(2000000000)", "hex(zeroblob(900000000))", "printf('%900000000d', 1)"] {
        let query = format!("SELECT {large} AS x");
        let code = db.code(&query, json!({})).await;
        assert!(["DB_TOO_LARGE", "DB_QUERY"].contains(&code), "{large}: {code}");
    }
    assert!(peak() - before < 512 << 20, "{} MiB", (peak() - before) >> 20);
    let text = db.rows("SELECT length($1) AS n, $1 AS x", json!(["a\0b"])).await;
    assert_eq!(text[0]["x"], json!("a\0b"), "a NUL stays where it is");
    let many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 1000000) SELECT i FROM n";
    assert_eq!(db.code(many, json!({})).await, "DB_TOO_MANY_ROWS");
    let endless =
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) AS x FROM n";
    let short = Ctx { timeout: Duration::from_millis(200), ..ctx() };
    let begun = Instant::now();
    let failed = db.ask_in(endless, json!({}), &short).await.unwrap_err();
    assert_eq!((failed.code, failed.kind), ("DB_TIMEOUT", FailureKind::Timeout));
    assert!(begun.elapsed() < Duration::from_secs(5));
    let missing = Db::at(format!("sqlite:{}", folder.path().join("none.db").display()));
    let failed = missing.ask("SELECT 1", json!({})).await.unwrap_err();
    assert_eq!(failed.code, "DB_FILE");
    assert!(failed.message.contains("none.db` is not there"), "{failed}");
    assert!(failed.message.contains("`create = true`"), "{failed}");
    assert!(!folder.path().join("none.db").exists());
    let nowhere = Db::at(format!("sqlite:{}", folder.path().join("no/folder/x.db").display()));
    let failed = nowhere.ask("SELECT 1", json!({})).await.unwrap_err();
    assert!(failed.message.contains("the folder") && failed.code == "DB_FILE", "{failed}");
}

#[tokio::test]
async fn sqlite_makes_its_file_when_the_operator_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("new.db").display());
    let db = Db::new(Given { url: url.clone(), create: true, ..Given::default() });
    db.ask("CREATE TABLE t (n INTEGER)", json!({})).await.unwrap();
    assert!(folder.path().join("new.db").exists());
    for wrong in [
        Given { url, create: true, read_only: true, ..Given::default() },
        Given { url: "postgres://u@h/db".into(), create: true, ..Given::default() },
    ] {
        assert!(Database::new(wrong).is_err());
    }
}

#[tokio::test]
async fn a_database_that_nobody_named_is_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let db = in_sqlite(folder.path());
    let failed = db.ask("SELECT 1", json!({"database": "other"})).await.unwrap_err();
    assert_eq!(failed.code, "DB_UNKNOWN");
    assert!(failed.message.contains("`other`") && failed.message.contains("`main`"), "{failed}");
}
