//! The configuration file: TOML with a closed set of keys.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cairn_api::error::{Error, Result};
use cairn_core::event::guided::{Autonomy, RiskPolicy};
use cairn_lang::diagnostic::nearest;
use cairn_store::regular;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::names;

mod agents;
mod databases;
mod limits;
mod steps;

pub(crate) use limits::Limits;
pub(crate) use steps::Steps;

/// Every key that a file may have, beside the databases.
pub(super) const KEYS: [&str; 27] = [
    "agents.default_model",
    "agents.default_provider",
    "agents.stall_sec",
    "autonomy",
    "bundled",
    "home",
    "http.allow",
    "http.hosts",
    "limits.events_per_run",
    "limits.runs_at_once",
    "limits.runs_per_minute",
    "limits.steps_at_once",
    "limits.steps_per_run",
    "processes.allow_env",
    "python.index",
    "python.interpreter",
    "python.wheels",
    "retention.failure_days",
    "retention.guided_days",
    "retention.keep_max",
    "retention.success_days",
    "risk_policy",
    "serve.drain_sec",
    "serve.listen",
    "telemetry.endpoint",
    "workflows",
    "workspace.roots",
];
/// How long a file may be.
const BYTES_MAX: u64 = 1 << 20;
/// How many seconds steps may have to end at most.
pub(crate) const DRAIN_SEC_MAX: u64 = 86_400;
/// The tables that some of them stand in.
const TABLES: [&str; 9] = [
    "agents",
    "http",
    "limits",
    "processes",
    "python",
    "retention",
    "serve",
    "telemetry",
    "workspace",
];
/// The tables that have a table for each of what they list.
const LISTS: [&str; 4] = ["databases", "models", "presets", "providers"];

/// What a file says, each with its line.
#[derive(Default)]
pub(super) struct File {
    pub(super) autonomy: Option<(Autonomy, usize)>,
    pub(super) bundled: Option<(Vec<PathBuf>, usize)>,
    pub(super) drain: Option<(Duration, usize)>,
    pub(super) home: Option<(PathBuf, usize)>,
    pub(super) limits: Limits,
    pub(super) listen: Option<(SocketAddr, usize)>,
    pub(super) risk_policy: Option<(RiskPolicy, usize)>,
    pub(super) steps: Steps,
    pub(super) telemetry: Option<(String, usize)>,
    pub(super) workflows: Option<(Vec<PathBuf>, usize)>,
    pub(super) workspace_roots: Option<(Vec<PathBuf>, usize)>,
}

/// What is wrong with a file.
#[derive(PartialEq, Eq, Debug)]
struct Fault {
    line: Option<usize>,
    what: String,
    nearest: Option<String>,
}

/// Reads a file.
pub(super) fn read(path: &Path) -> Result<File> {
    let failed = |source| Error::File { path: path.to_owned(), source };
    // Whoever wants none names this one.
    let text = match path == Path::new("/dev/null") {
        true => String::new(),
        false => regular::read_text(path, BYTES_MAX).map_err(failed)?,
    };
    let folder = path.parent().unwrap_or(Path::new(""));
    parse(&text, folder).map_err(|Fault { line, what, nearest }| Error::ConfigInvalid {
        path: path.to_owned(),
        line,
        what,
        nearest,
    })
}

fn parse(text: &str, folder: &Path) -> std::result::Result<File, Fault> {
    let line_at = |at: usize| 1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count();
    let table = DeTable::parse(text).map_err(|error| Fault {
        line: error.span().map(|span| line_at(span.start)),
        what: error.message().lines().collect::<Vec<_>>().join("; "),
        nearest: None,
    })?;
    let mut file = File::default();
    for (key, value) in table.get_ref() {
        let line = line_at(key.span().start);
        let table = key.get_ref().as_ref();
        if !LISTS.contains(&table) && !TABLES.contains(&table) {
            file.take(table, value, line, folder)?;
            continue;
        }
        for (key, value) in inner(table, value, line)? {
            let name = format!("{table}.{}", key.get_ref());
            let line = line_at(key.span().start);
            match table {
                "databases" => {
                    let inner = inner(&name, value, line)?;
                    let found = databases::read(&name, inner, &line_at, folder)?;
                    file.steps.database(key.get_ref(), found, line);
                }
                table if LISTS.contains(&table) => {
                    let entry = agents::Entry {
                        list: table,
                        name: key.get_ref(),
                        table: inner(&name, value, line)?,
                        line,
                    };
                    file.steps.agents.entry(&entry, &line_at, folder)?;
                }
                _ => file.take(&name, value, line, folder)?,
            }
        }
    }
    Ok(file)
}

fn inner<'a, 't>(
    name: &str,
    value: &'a Spanned<DeValue<'t>>,
    line: usize,
) -> std::result::Result<&'a DeTable<'t>, Fault> {
    value.get_ref().as_table().ok_or_else(|| wrong(name, "a table", value, line))
}

impl File {
    fn take(
        &mut self,
        key: &str,
        value: &Spanned<DeValue<'_>>,
        line: usize,
        folder: &Path,
    ) -> std::result::Result<(), Fault> {
        match key {
            "autonomy" => self.autonomy = Some((choice(key, value, &names::AUTONOMY, line)?, line)),
            "risk_policy" => {
                self.risk_policy = Some((choice(key, value, &names::RISK_POLICY, line)?, line));
            }
            "home" => self.home = Some((path(key, value, line, folder)?, line)),
            "bundled" => self.bundled = Some((paths(key, value, line, folder)?, line)),
            "workflows" => self.workflows = Some((paths(key, value, line, folder)?, line)),
            "workspace.roots" => {
                self.workspace_roots = Some((paths(key, value, line, folder)?, line));
            }
            "serve.drain_sec" => {
                let wanted = format!("a whole number of seconds, {DRAIN_SEC_MAX} at most");
                let number = value.get_ref().as_integer();
                let seconds = number.and_then(|number| drain(number.as_str()));
                self.drain = Some((seconds.ok_or_else(|| wrong(key, &wanted, value, line))?, line));
            }
            "serve.listen" => {
                let address = value.get_ref().as_str().and_then(|text| text.parse().ok());
                let wanted = "an address such as \"127.0.0.1:7373\"";
                self.listen = Some((address.ok_or_else(|| wrong(key, wanted, value, line))?, line));
            }
            "telemetry.endpoint" => self.telemetry = Some((text(key, value, line)?, line)),
            key if limits::KEYS.contains(&key) => self.limits.take(key, value, line)?,
            key if steps::KEYS.contains(&key) => self.steps.take(key, value, line, folder)?,
            _ => return Err(unknown(key, line)),
        }
        Ok(())
    }
}

/// A time for steps to end.
pub(super) fn drain(text: &str) -> Option<Duration> {
    let seconds = text.parse().ok().filter(|seconds| *seconds <= DRAIN_SEC_MAX);
    seconds.map(Duration::from_secs)
}

fn unknown(key: &str, line: usize) -> Fault {
    // Who forgets the table has the name right.
    let last = |name: &&str| name.rsplit('.').next() == Some(key);
    let near = KEYS.into_iter().find(last).or_else(|| nearest(key, KEYS));
    Fault {
        line: Some(line),
        what: format!("there is no key `{key}`"),
        nearest: near.map(str::to_owned),
    }
}

fn wrong(key: &str, wanted: &str, value: &Spanned<DeValue<'_>>, line: usize) -> Fault {
    let found = match value.get_ref().as_str() {
        Some(text) => format!("\"{text}\""),
        None => match value.get_ref() {
            DeValue::Integer(number) => number.to_string(),
            DeValue::Boolean(flag) => flag.to_string(),
            other => format!("of type {}", other.type_str()),
        },
    };
    let what = format!("`{key}` is {found}, and should be {wanted}");
    Fault { line: Some(line), what, nearest: None }
}

fn text(
    key: &str,
    value: &Spanned<DeValue<'_>>,
    line: usize,
) -> std::result::Result<String, Fault> {
    let text = value.get_ref().as_str().filter(|text| !text.is_empty());
    text.map(str::to_owned).ok_or_else(|| wrong(key, "a text", value, line))
}

fn texts(
    key: &str,
    value: &Spanned<DeValue<'_>>,
    line: usize,
    wanted: &str,
) -> std::result::Result<Vec<String>, Fault> {
    let list = value.get_ref().as_array().ok_or_else(|| wrong(key, wanted, value, line))?;
    list.iter().map(|value| text(key, value, line)).collect()
}

/// A path is meant from the file's own folder, wherever the command runs.
fn path(
    key: &str,
    value: &Spanned<DeValue<'_>>,
    line: usize,
    folder: &Path,
) -> std::result::Result<PathBuf, Fault> {
    let wanted = "a path, whole or from the file's folder, without `~`";
    let text = value.get_ref().as_str().filter(|text| !text.is_empty());
    // A shell would have put something else in its place, and here nobody does.
    let text = text.filter(|text| !text.starts_with('~'));
    text.map(|text| folder.join(text)).ok_or_else(|| wrong(key, wanted, value, line))
}

fn paths(
    key: &str,
    value: &Spanned<DeValue<'_>>,
    line: usize,
    folder: &Path,
) -> std::result::Result<Vec<PathBuf>, Fault> {
    let list = value.get_ref().as_array();
    let list = list.ok_or_else(|| wrong(key, "a list of paths", value, line))?;
    list.iter().map(|value| path(key, value, line, folder)).collect()
}

fn choice<T: Copy>(
    key: &str,
    value: &Spanned<DeValue<'_>>,
    choices: &[(&'static str, T)],
    line: usize,
) -> std::result::Result<T, Fault> {
    let given = value.get_ref().as_str();
    if let Some((_, value)) = choices.iter().find(|(name, _)| Some(*name) == given) {
        return Ok(*value);
    }
    let all: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
    let near = given.and_then(|given| nearest(given, all.iter().copied())).map(str::to_owned);
    let wanted = format!("one of {}", all.join(", "));
    Err(Fault { nearest: near, ..wrong(key, &wanted, value, line) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> String {
        let fault = parse(text, Path::new("/etc")).err().unwrap();
        format!("{:?}: {} ({:?})", fault.line, fault.what, fault.nearest)
    }

    #[test]
    fn a_file_says_what_it_says() {
        let text =
            "home = \"data\"\nworkflows = [\"/a\", \"b\"]\n\n[serve]\nlisten = \"[::1]:80\"\n";
        let file = parse(text, Path::new("/etc")).ok().unwrap();
        assert_eq!(file.home, Some(("/etc/data".into(), 1)));
        assert_eq!(file.workflows, Some((vec!["/a".into(), "/etc/b".into()], 2)));
        assert_eq!(file.listen, Some(("[::1]:80".parse().unwrap(), 5)));
        assert_eq!((file.bundled, file.autonomy), (None, None));
        assert!(parse("", Path::new("")).is_ok());
    }

    #[test]
    fn steps_have_settings_of_their_own() {
        let text = "[http]\nallow = [\"127.0.0.1:*\"]\n[processes]\nallow_env = [\"PAGER\"]\n\
                    [python]\ninterpreter = \"python3.12\"\nwheels = \"wheels\"\n\
                    [databases.main]\nurl = \"sqlite:app.db\"\nread_only = true\n\
                    [databases.far]\nurl = \"postgres://app@db.example/app\"\n";
        let file = parse(text, Path::new("/etc")).ok().unwrap();
        assert_eq!(file.steps.http_allow, ["127.0.0.1:*".parse().unwrap()]);
        assert_eq!(file.steps.allow_env, ["PAGER"]);
        assert_eq!(file.steps.python_interpreter, Some("python3.12".into()));
        assert_eq!(file.steps.python_wheels, Some("/etc/wheels".into()));
        assert_eq!(file.steps.databases.keys().collect::<Vec<_>>(), ["far", "main"]);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line_and_the_nearest_name() {
        insta::assert_snapshot!(fault("\nhom = \"x\""), @r#"Some(2): there is no key `hom` (Some("home"))"#);
        insta::assert_snapshot!(fault("listen = \"x\""), @r#"Some(1): there is no key `listen` (Some("serve.listen"))"#);
        insta::assert_snapshot!(fault("[serve]\n\nlistne = 1"), @r#"Some(3): there is no key `serve.listne` (Some("serve.listen"))"#);
        insta::assert_snapshot!(fault("colour = 1"), @"Some(1): there is no key `colour` (None)");
        insta::assert_snapshot!(fault("home = 1"), @"Some(1): `home` is 1, and should be a path, whole or from the file's folder, without `~` (None)");
        insta::assert_snapshot!(fault("home = \"~/x\""), @r#"Some(1): `home` is "~/x", and should be a path, whole or from the file's folder, without `~` (None)"#);
        insta::assert_snapshot!(fault("workflows = \"x\""), @r#"Some(1): `workflows` is "x", and should be a list of paths (None)"#);
        insta::assert_snapshot!(fault("serve = 1"), @"Some(1): `serve` is 1, and should be a table (None)");
        insta::assert_snapshot!(fault("[serve]\nlisten = \"localhost\""), @r#"Some(2): `serve.listen` is "localhost", and should be an address such as "127.0.0.1:7373" (None)"#);
        insta::assert_snapshot!(fault("autonomy = \"guidedd\""), @r#"Some(1): `autonomy` is "guidedd", and should be one of guided, full_auto_stop_on_user_deps, full_auto_never_stop (Some("guided"))"#);
        insta::assert_snapshot!(fault("[http]\nallow = [\"10.0.0.0/8\", \"http://x\"]"), @"Some(2): `http://x` is neither a host, an address nor a network, with or without a port (None)");
        insta::assert_snapshot!(fault("[processes]\nallow = [\"A\"]"), @r#"Some(2): there is no key `processes.allow` (Some("processes.allow_env"))"#);
        insta::assert_snapshot!(fault("[databases]\nmain = \"postgres://h/d\""), @r#"Some(2): `databases.main` is "postgres://h/d", and should be a table (None)"#);
        insta::assert_snapshot!(fault("[databases.main]\n"), @"None: `databases.main` needs a `url` (None)");
        insta::assert_snapshot!(fault("[databases.main]\nurl = \"oracle://u:hunter2@h/d\""), @"Some(2): `databases.main.url`: `oracle` is no kind of database; use `postgres`, `mysql` or `sqlite` (None)");
        insta::assert_snapshot!(fault("[databases.main]\nurl = \"sqlite:x\"\nreadonly = true"), @r#"Some(3): there is no key `databases.main.readonly` (Some("databases.main.read_only"))"#);
        insta::assert_snapshot!(fault("[databases.main]\nurl = \"postgres://h/d\"\npassword_file = \"missing\""), @"Some(3): `databases.main.password_file`: `/etc/missing` cannot be read: No such file or directory (os error 2) (None)");
        insta::assert_snapshot!(fault("home = \"a\"\nhome = \"b\""), @"Some(2): duplicate key (None)");
        insta::assert_snapshot!(fault("home ="), @"Some(1): string values must be quoted, expected literal string (None)");
    }
}
