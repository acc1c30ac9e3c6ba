//! The databases of the configuration file, a table for each.

use std::path::Path;

use cairn_lang::diagnostic::nearest;
use cairn_steps::db_query::{Database, Given};
use cairn_store::regular;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Fault, path, text, wrong};

/// Every key that the table of a database may have.
const KEYS: [&str; 6] = ["create", "password_env", "password_file", "read_only", "socket", "url"];

/// How long a file with a password may be.
const PASSWORD_MAX: u64 = 64 << 10;

/// Reads the table of one database.
pub(super) fn read(
    name: &str,
    table: &DeTable<'_>,
    line_at: &dyn Fn(usize) -> usize,
    folder: &Path,
) -> Result<Database, Fault> {
    let mut given = Given::default();
    let mut last = None;
    for (key, value) in table {
        let line = line_at(key.span().start);
        let whole = format!("{name}.{}", key.get_ref());
        match key.get_ref().as_ref() {
            "url" => {
                given.url = address(&text(&whole, value, line)?, folder);
                last = Some(line);
            }
            "create" => given.create = flag(&whole, value, line)?,
            "read_only" => given.read_only = flag(&whole, value, line)?,
            "socket" => given.socket = flag(&whole, value, line)?,
            "password_env" => {
                let variable = text(&whole, value, line)?;
                given.password = Some(std::env::var(&variable).map_err(|_| {
                    fault(line, format!("`{whole}` names `{variable}`, which is not set"))
                })?);
            }
            "password_file" => {
                let file = path(&whole, value, line, folder)?;
                let found = regular::read_text(&file, PASSWORD_MAX).map_err(|error| {
                    fault(line, format!("`{whole}`: `{}` cannot be read: {error}", file.display()))
                })?;
                given.password = Some(found.trim_end_matches(['\r', '\n']).to_owned());
            }
            other => {
                let near = nearest(other, KEYS).map(|key| format!("{name}.{key}"));
                return Err(Fault {
                    nearest: near,
                    ..fault(line, format!("there is no key `{whole}`"))
                });
            }
        }
    }
    let Some(line) = last else {
        let what = format!("`{name}` needs a `url`");
        return Err(Fault { line: None, what, nearest: None });
    };
    Database::new(given).map_err(|what| fault(line, format!("`{name}.url`: {what}")))
}

const fn fault(line: usize, what: String) -> Fault {
    Fault { line: Some(line), what, nearest: None }
}

fn flag(key: &str, value: &Spanned<DeValue<'_>>, line: usize) -> Result<bool, Fault> {
    value.get_ref().as_bool().ok_or_else(|| wrong(key, "true or false", value, line))
}

/// The file of an SQLite database is meant from the configuration's own folder.
fn address(url: &str, folder: &Path) -> String {
    match url.strip_prefix("sqlite:") {
        Some(path) if !path.is_empty() => {
            let path = path.strip_prefix("//").unwrap_or(path);
            format!("sqlite:{}", folder.join(path).display())
        }
        _ => url.to_owned(),
    }
}
