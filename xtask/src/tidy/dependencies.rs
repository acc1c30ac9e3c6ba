//! Licences, sources and bans of all dependencies, by the rules of `deny.toml`. Advisories are held
//! to a pinned copy (`advisories.rs`); `make deny` asks for the latest, which needs the network.

use serde_json::Value;
use toml::de::{DeTable, DeValue};

use super::Finding;

/// Where packages may come from.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";
const RULES: &str = "deny.toml";
const LOCK: &str = "Cargo.lock";

/// What `deny.toml` says.
pub(super) struct Rules {
    allowed: Vec<String>,
    banned: Vec<(String, String)>,
}

impl Rules {
    /// Reads the rules; none when the file is not what it should be.
    pub(super) fn read(text: &str) -> Option<Self> {
        let table = DeTable::parse(text).ok()?;
        let list = |table: &str, key: &str, from: &DeTable<'_>| -> Option<Vec<Value>> {
            let list = from.get(table)?.get_ref().as_table()?.get(key)?;
            let list = list.get_ref().as_array()?;
            Some(list.iter().map(|item| plain(item.get_ref())).collect())
        };
        let table = table.get_ref();
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let allowed = list("licenses", "allow", table)?.iter().filter_map(text).collect();
        let ban = |value: &Value| {
            let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
            Some((text("name")?, text("reason").unwrap_or_default()))
        };
        let banned = list("bans", "deny", table)?.iter().filter_map(ban).collect();
        Some(Self { allowed, banned })
    }
}

fn plain(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => Value::String(text.clone().into_owned()),
        DeValue::Table(table) => {
            let members = table.iter();
            let member = |(key, value): (&toml::Spanned<_>, &toml::Spanned<DeValue<'_>>)| {
                (AsRef::<str>::as_ref(key.get_ref()).to_owned(), plain(value.get_ref()))
            };
            Value::Object(members.map(member).collect())
        }
        _ => Value::Null,
    }
}

/// Reports packages of another source or a name that is banned, by the lock file, and packages
/// under another licence, by what `cargo metadata` says of those for this platform.
pub(super) fn check(rules: Option<&Rules>, lock: &str, metadata: &Value) -> Vec<Finding> {
    let Some(rules) = rules else {
        return vec![Finding::new(RULES, 1, "it cannot be read; put it right".to_owned())];
    };
    let mut findings = locked(rules, lock);
    for package in metadata.get("packages").and_then(Value::as_array).into_iter().flatten() {
        let text = |key: &str| package.get(key).and_then(Value::as_str);
        let name = text("name").unwrap_or_default();
        let licence = text("license").unwrap_or_default();
        if !satisfied(licence, &rules.allowed) {
            let what = match licence {
                "" => format!("`{name}` names no licence; ask its author, or do without it"),
                licence => format!(
                    "`{name}` is under `{licence}`, which {RULES} does not allow; do without it, or allow it there"
                ),
            };
            findings.push(Finding::new(LOCK, 1, what));
        }
    }
    findings
}

fn locked(rules: &Rules, lock: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut name = "";
    for (at, line) in lock.lines().enumerate() {
        let value = |key: &str| line.strip_prefix(key)?.strip_prefix(" = \"")?.strip_suffix('"');
        if let Some(found) = value("name") {
            name = found;
            if let Some((_, why)) = rules.banned.iter().find(|(banned, _)| banned == name) {
                let what = format!("`{name}` is banned: {why}; do without it");
                findings.push(Finding::new(LOCK, at + 1, what));
            }
        }
        if let Some(source) = value("source").filter(|source| *source != REGISTRY) {
            let what = format!("`{name}` comes from `{source}`; take it from crates.io");
            findings.push(Finding::new(LOCK, at + 1, what));
        }
    }
    findings
}

/// Whether an expression of licences can be satisfied with those that are allowed. `AND` binds
/// more than `OR`, and `/` is the old way to write `OR`.
fn satisfied(expression: &str, allowed: &[String]) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    !words.is_empty() && any(&words, &mut at, allowed) && at == words.len()
}

fn any(words: &[&str], at: &mut usize, allowed: &[String]) -> bool {
    let mut holds = all(words, at, allowed);
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        // Both sides are read, whatever the first one says.
        holds |= all(words, at, allowed);
    }
    holds
}

fn all(words: &[&str], at: &mut usize, allowed: &[String]) -> bool {
    let mut holds = one(words, at, allowed);
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        holds &= one(words, at, allowed);
    }
    holds
}

fn one(words: &[&str], at: &mut usize, allowed: &[String]) -> bool {
    let Some(word) = words.get(*at) else { return false };
    *at += 1;
    if *word == "(" {
        let holds = any(words, at, allowed);
        let closed = words.get(*at) == Some(&")");
        *at += 1;
        return holds && closed;
    }
    let mut licence = (*word).to_owned();
    if let (Some(&"WITH"), Some(exception)) = (words.get(*at), words.get(*at + 1)) {
        licence = format!("{licence} WITH {exception}");
        *at += 2;
    }
    allowed.contains(&licence)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const DENY: &str = "[licenses]\nallow = [\"MIT\", \"Apache-2.0\", \"Apache-2.0 WITH LLVM-exception\"]\n[bans]\ndeny = [{ name = \"openssl-sys\", reason = \"no system TLS\" }]\n";

    #[test]
    fn licences_are_read_as_expressions() {
        let allowed = Rules::read(DENY).unwrap().allowed;
        for (expression, fine) in [
            ("MIT", true),
            ("GPL-3.0", false),
            ("MIT OR GPL-3.0", true),
            ("GPL-3.0/MIT", true),
            ("MIT AND GPL-3.0", false),
            ("(MIT OR GPL-3.0) AND Apache-2.0", true),
            ("MIT OR GPL-3.0 AND GPL-2.0", true),
            ("(MIT OR Apache-2.0) AND GPL-3.0", false),
            ("Apache-2.0 WITH LLVM-exception OR GPL-3.0", true),
            ("MIT WITH some-exception", false),
            ("", false),
            ("(MIT", false),
            ("MIT MIT", false),
            ("OR MIT", false),
        ] {
            assert_eq!(satisfied(expression, &allowed), fine, "{expression}");
        }
    }

    // case: supply.rules
    #[test]
    fn packages_are_held_to_the_rules() {
        let rules = Rules::read(DENY);
        let metadata = json!({"packages": [
            {"name": "good", "license": "MIT OR Apache-2.0"},
            {"name": "bad", "license": "AGPL-3.0"},
            {"name": "silent", "license": null},
        ]});
        let lock = "[[package]]\nname = \"openssl-sys\"\nversion = \"1\"\nsource = \"registry+https://github.com/rust-lang/crates.io-index\"\n[[package]]\nname = \"fork\"\nsource = \"git+https://example.com/fork\"\n[[package]]\nname = \"own\"\n";
        let told: Vec<String> =
            check(rules.as_ref(), lock, &metadata).iter().map(ToString::to_string).collect();
        for (at, part) in
            ["`openssl-sys` is banned", "`fork` comes from", "`bad` is under", "`silent` names no"]
                .iter()
                .enumerate()
        {
            assert!(told[at].contains(part), "{told:?}");
        }
        assert_eq!(told.len(), 4, "{told:?}");
        assert_eq!(check(None, "", &metadata).len(), 1);
    }
}
