//! `tidy`: checks what the compiler cannot.
//!
//! Each check is a pure function on text or on `cargo metadata`; only this file
//! touches the file system.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

mod advisories;
mod cases;
mod codes;
mod dependencies;
mod layers;
mod links;
mod locks;
mod ports;
mod record;
mod sources;
mod voice;

/// A text file of the repository, with its path from the root.
struct File {
    path: String,
    text: String,
}

/// Something to fix, shown as `path:line: what; what to do`.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    path: String,
    line: usize,
    what: String,
}

impl Finding {
    fn new(path: &str, line: usize, what: String) -> Self {
        Self { path: path.to_owned(), line, what }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.what)
    }
}

/// Runs every check and prints what it finds.
pub(crate) fn run(root: &Path) -> Result<ExitCode> {
    let metadata = metadata(root)?;
    let output = metadata.get("target_directory").and_then(Value::as_str);
    let output = output.context("cargo names no target directory")?;
    let mut paths = Vec::new();
    walk(root, Path::new(output), &mut paths)?;
    paths.sort();
    let rust = load(root, &paths, "rs")?;
    let pages = load(root, &paths, "md")?;
    let manifests = load(root, &paths, "toml")?;

    let edges = layers::edges(&metadata);
    let codes = codes::find(&rust);

    let mut findings = layers::check(&edges, &manifests);
    findings.extend(codes::check(&codes, &pages));
    findings.extend(codes::untested(&codes, &rust));
    findings.extend(cases::check(&pages, &rust));
    findings.extend(dependencies(root)?);
    findings.extend(links::check(&pages, |path| root.join(path).exists()));
    findings.extend(locks::check(&pages, &rust));
    findings.extend(ports::check(&rust));
    findings.extend(record::check(&rust));
    findings.extend(sources::check(&rust));
    findings.extend(voice::check(&pages, &rust));
    findings.sort();

    for finding in &findings {
        println!("{finding}");
    }
    println!(
        "tidy: {} dependencies, {} error codes, {} Rust files, {} pages; {} finding(s)",
        edges.len(),
        codes.len(),
        rust.len(),
        pages.len(),
        findings.len(),
    );
    Ok(if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Lists the files under `folder`, without hidden ones and what cargo wrote to `output`.
fn walk(folder: &Path, output: &Path, paths: &mut Vec<PathBuf>) -> Result<()> {
    let reading = || format!("reading {}", folder.display());
    for entry in fs::read_dir(folder).with_context(reading)? {
        let entry = entry.with_context(reading)?;
        let (path, name) = (entry.path(), entry.file_name());
        let kind = entry.file_type().with_context(reading)?;
        if name.to_string_lossy().starts_with('.') || name == "node_modules" {
            continue;
        }
        if kind.is_file() {
            paths.push(path);
        } else if kind.is_dir() && path != output {
            walk(&path, output, paths)?;
        }
    }
    Ok(())
}

/// Reads the files with one extension.
fn load(root: &Path, paths: &[PathBuf], extension: &str) -> Result<Vec<File>> {
    let wanted = paths.iter().filter(|path| path.extension().is_some_and(|e| e == extension));
    wanted
        .map(|path| {
            let text =
                fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
            let path = path.strip_prefix(root)?.to_string_lossy().replace('\\', "/");
            Ok(File { path, text })
        })
        .collect()
}

/// Holds all dependencies to the rules of `deny.toml`, and to the advisories that are pinned.
fn dependencies(root: &Path) -> Result<Vec<Finding>> {
    let text = |name: &str| fs::read_to_string(root.join(name)).with_context(|| name.to_owned());
    let (rules, lock) = (dependencies::Rules::read(&text("deny.toml")?), text("Cargo.lock")?);
    let host = Command::new("rustc").arg("-vV").output().context("starting rustc")?;
    let host = String::from_utf8_lossy(&host.stdout).into_owned();
    let host = host.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.context("rustc names no host")?;
    let known = asked(root, &["--locked", "--filter-platform", host])?;
    let mut findings = dependencies::check(rules.as_ref(), &lock, &known);
    let pinned = text(crate::advisories::FILE)?;
    findings.extend(advisories::check(&lock, &pinned));
    match advisories::age(&pinned) {
        advisories::Age::Fresh => {}
        advisories::Age::Old(days) => {
            println!("tidy: the advisories are {days} days old; `make deny` asks for the latest");
        }
        advisories::Age::Stale(finding) => findings.push(finding),
    }
    Ok(findings)
}

/// What cargo knows of the workspace's own packages.
fn metadata(root: &Path) -> Result<Value> {
    asked(root, &["--no-deps"])
}

fn asked(root: &Path, more: &[&str]) -> Result<Value> {
    let output = Command::new("cargo")
        .args(["metadata", "--format-version", "1"])
        .args(more)
        .current_dir(root)
        .stderr(Stdio::inherit())
        .output()
        .context("starting cargo")?;
    ensure!(output.status.success(), "`cargo metadata` failed: {}", output.status);
    serde_json::from_slice(&output.stdout).context("reading the output of `cargo metadata`")
}
