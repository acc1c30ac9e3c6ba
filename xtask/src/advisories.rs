//! `advisories`: pins what is known of insecure packages, for machines without the network.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail, ensure};
use toml::de::{DeTable, DeValue};

/// Where the pinned copy is.
pub(crate) const FILE: &str = "xtask/advisories.txt";

/// What stands before the day of the newest change in the database, and its commit.
pub(crate) const OF: &str = "# The database of ";

/// What the copy says of itself.
const HEAD: &str = "\
# Versions of packages that are known to be insecure, after RustSec's database. A line has the id of
# an advisory, the package, and the versions that are fine, with `|` between them.
# `cargo xtask tidy` holds Cargo.lock to it; `cargo xtask advisories CHECKOUT` writes it anew.
";

/// Writes the copy from a checkout of the database.
pub(crate) fn write(root: &Path, checkout: &Path) -> Result<ExitCode> {
    let mut lines = Vec::new();
    for package in folder(&checkout.join("crates"))? {
        for page in folder(&package)? {
            let text = fs::read_to_string(&page).with_context(|| page.display().to_string())?;
            lines.extend(line(&text).with_context(|| page.display().to_string())?);
        }
    }
    if lines.is_empty() {
        bail!("{} holds no advisories", checkout.display());
    }
    lines.sort();
    let of = format!("{OF}{}", newest(checkout)?);
    fs::write(root.join(FILE), format!("{HEAD}{of}\n{}\n", lines.join("\n")))?;
    println!("advisories: {} in {FILE}", lines.len());
    Ok(ExitCode::SUCCESS)
}

/// The day of the newest change in a checkout, and its commit.
fn newest(checkout: &Path) -> Result<String> {
    let mut git = Command::new("git");
    git.arg("-C").arg(checkout).args(["log", "-1", "--format=%cs, commit %H"]);
    let said = git.output().context("starting git")?;
    ensure!(said.status.success(), "{} is no checkout of git", checkout.display());
    Ok(String::from_utf8(said.stdout)?.trim().to_owned())
}

fn folder(path: &Path) -> Result<Vec<std::path::PathBuf>> {
    let entries = fs::read_dir(path).with_context(|| path.display().to_string())?;
    entries.map(|entry| Ok(entry?.path())).collect()
}

/// The line for an advisory; none for one that was withdrawn or says nothing of security.
fn line(page: &str) -> Result<Option<String>> {
    let front = page.split_once("```toml\n").and_then(|(_, rest)| rest.split_once("```"));
    let (front, _) = front.context("no front matter")?;
    let front = DeTable::parse(front)?;
    let front = front.get_ref();
    let advisory = front.get("advisory").and_then(|a| a.get_ref().as_table());
    let advisory = advisory.context("no advisory")?;
    let text = |key: &str| advisory.get(key).and_then(|value| value.get_ref().as_str());
    let says_nothing = matches!(text("informational"), Some("notice" | "unmaintained"));
    if says_nothing || advisory.get("withdrawn").is_some() {
        return Ok(None);
    }
    let versions = front.get("versions").and_then(|v| v.get_ref().as_table());
    let list = |key: &str| -> Vec<String> {
        let list = versions.and_then(|v| v.get(key)).and_then(|list| list.get_ref().as_array());
        let text = |value: &toml::Spanned<DeValue<'_>>| value.get_ref().as_str().map(str::to_owned);
        list.into_iter().flatten().filter_map(text).collect()
    };
    let fine = [list("patched"), list("unaffected")].concat().join(" | ");
    let (id, package) = (text("id").context("no id")?, text("package").context("no package")?);
    Ok(Some(format!("{id} {package}: {fine}").trim_end().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_becomes_a_line() {
        let page = |more: &str| {
            format!(
                "```toml\n[advisory]\nid = \"RUSTSEC-2020-0001\"\npackage = \"a\"\n{more}\
                 [versions]\npatched = [\">= 1.2\"]\nunaffected = [\"< 1.0\"]\n```\n# Title\n"
            )
        };
        let told = |more: &str| line(&page(more)).unwrap();
        assert_eq!(told("").as_deref(), Some("RUSTSEC-2020-0001 a: >= 1.2 | < 1.0"));
        assert_eq!(told("withdrawn = \"2021-01-01\"\n"), None);
        assert_eq!(told("informational = \"unmaintained\"\n"), None);
        assert!(told("informational = \"unsound\"\n").is_some());
        assert!(line("# Title").is_err());
    }
}
