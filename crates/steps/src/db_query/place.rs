//! Where a database is, as the operator says it.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr as _;
use std::time::Duration;

use super::statement::Dialect;

/// How long connecting may take.
const CONNECT_MAX: Duration = Duration::from_secs(10);

/// A database that workflows may ask.
#[derive(Clone)]
pub struct Database {
    pub(super) place: Place,
    pub(super) read_only: bool,
}

#[derive(Clone)]
pub(super) enum Place {
    Postgres(Box<tokio_postgres::Config>),
    Mysql(Box<mysql_async::Opts>),
    Sqlite(File),
}

/// The file of an SQLite database.
#[derive(Clone)]
pub(super) struct File {
    pub(super) path: PathBuf,
    /// Whether it is made when it is not there.
    pub(super) create: bool,
}

/// What the operator says about a database.
#[derive(Clone, Default)]
pub struct Given {
    /// `postgres://…`, `mysql://…` or `sqlite:path`.
    pub url: String,
    /// Its password, when that is not in the address.
    pub password: Option<String>,
    /// Whether it is never changed.
    pub read_only: bool,
    /// Whether it may be a socket of this machine.
    pub socket: bool,
    /// Whether the file of an SQLite database is made when it is not there.
    pub create: bool,
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // There is a password in the rest.
        f.debug_struct("Database").field("read_only", &self.read_only).finish_non_exhaustive()
    }
}

impl Database {
    /// Reads what the operator says; what is wrong is told without any password.
    pub fn new(given: Given) -> Result<Self, String> {
        let (scheme, rest) = given.url.split_once(':').unwrap_or((&given.url, ""));
        let place = match scheme {
            "postgres" | "postgresql" => Place::Postgres(Box::new(postgres(&given)?)),
            "mysql" | "mariadb" => Place::Mysql(Box::new(mysql(&format!("mysql:{rest}"), &given)?)),
            "sqlite" => Place::Sqlite(match rest.strip_prefix("//").unwrap_or(rest) {
                "" => return Err("`sqlite:` needs the path of a file".to_owned()),
                path => File { path: path.into(), create: given.create },
            }),
            other => {
                let known = "`postgres`, `mysql` or `sqlite`";
                return Err(format!("`{other}` is no kind of database; use {known}"));
            }
        };
        let is_file = matches!(place, Place::Sqlite(_));
        match (given.create, is_file, given.read_only) {
            (true, false, _) => Err("only an SQLite database can be created".to_owned()),
            (true, true, true) => Err("`create` and `read_only` exclude each other".to_owned()),
            _ => Ok(Self { place, read_only: given.read_only }),
        }
    }

    pub(super) const fn dialect(&self) -> Dialect {
        match self.place {
            Place::Postgres(_) => Dialect::Postgres,
            Place::Mysql(_) => Dialect::Mysql,
            Place::Sqlite(_) => Dialect::Sqlite,
        }
    }
}

fn postgres(given: &Given) -> Result<tokio_postgres::Config, String> {
    use tokio_postgres::config::Host;

    let mut config = tokio_postgres::Config::from_str(&given.url)
        .map_err(|_| "the address is not of the form `postgres://user@host/name`".to_owned())?;
    if config.get_hosts().is_empty() {
        return Err("the address names no host".to_owned());
    }
    let sockets = config.get_hosts().iter().any(|host| matches!(host, Host::Unix(_)));
    if sockets && !given.socket {
        return Err("the address names a socket of this machine; say `socket = true`".to_owned());
    }
    if let Some(password) = &given.password {
        config.password(password);
    }
    config.connect_timeout(CONNECT_MAX).application_name("cairn");
    Ok(config)
}

fn mysql(url: &str, given: &Given) -> Result<mysql_async::Opts, String> {
    let options = mysql_async::Opts::from_url(url)
        .map_err(|_| "the address is not of the form `mysql://user@host/name`".to_owned())?;
    if options.socket().is_some() && !given.socket {
        return Err("the address names a socket of this machine; say `socket = true`".to_owned());
    }
    let password = given.password.clone().or_else(|| options.pass().map(str::to_owned));
    let builder = mysql_async::OptsBuilder::from_opts(options).pass(password);
    // A host is a host, also when a socket would be nearer.
    Ok(builder.prefer_socket(given.socket).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_told_without_the_password() {
        for (url, said) in [
            ("oracle://x", "no kind of database"),
            ("", "no kind of database"),
            ("sqlite:", "needs the path"),
            ("postgres://u:hunter2@/db", "names no host"),
            ("postgres://u:hunter2@h:x/db", "not of the form"),
            ("postgres://u:hunter2@%2Fvar%2Frun/db", "names a socket"),
            ("postgresql:///db?host=/var/run&password=hunter2", "names a socket"),
            ("mysql://u:hunter2@h/db?socket=/run/m.sock", "names a socket"),
            ("mysql://u:hunter2@h/db?nonsense=1", "not of the form"),
        ] {
            let given = Given { url: url.into(), ..Given::default() };
            let error = Database::new(given).unwrap_err();
            assert!(error.contains(said) && !error.contains("hunter2"), "{url}: {error}");
        }
    }

    #[test]
    fn a_socket_is_used_when_the_operator_says_so() {
        for url in ["postgres://u@%2Fvar%2Frun/db", "mysql://u@h/db?socket=/run/m.sock"] {
            let given = Given { url: url.into(), socket: true, ..Given::default() };
            assert!(Database::new(given).is_ok(), "{url}");
        }
    }

    #[test]
    fn nobody_prints_a_password() {
        for url in ["postgres://u:hunter2@h/db", "mysql://u:hunter2@h/db"] {
            let given = Given { url: url.into(), ..Given::default() };
            let printed = format!("{:?}", Database::new(given).unwrap());
            assert!(!printed.contains("hunter2"), "{printed}");
        }
    }
}
