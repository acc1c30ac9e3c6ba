//! Dependencies between crates run one way, and the core stays pure.

use std::path::Path;

use serde_json::Value;

use super::{File, Finding};

/// The crates from left to right. A crate uses only what stands further left.
const LAYERS: &[&[&str]] = &[
    &["core"],
    &["lang", "store", "worker"],
    &["tables"],
    &["engine"],
    &["api", "steps", "triggers"],
    &["mcp", "server"],
    &["cli"],
];

/// Crates for development. They use what they like; nothing shipped uses them.
const TOOLS: &[&str] = &["bench", "sim", "xtask"];

/// Crates that do no I/O and know neither clock nor chance.
const PURE: &[&str] = &["core", "lang"];

/// Packages that would bring a clock, chance or a runtime into a pure crate.
/// A trailing `*` stands for any ending.
const IMPURE: &[&str] = &[
    "async-*",
    "chrono",
    "fastrand",
    "futures*",
    "getrandom",
    "jiff",
    "rand",
    "rand_*",
    "smol",
    "time",
    "tokio*",
];

/// A dependency of one of our crates that ends up in its build.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Edge {
    /// The crate, without the prefix of its package.
    from: String,
    /// What it depends on: one of our crates without the prefix, or a package's full name.
    to: String,
    /// Whether `to` is one of our crates.
    ours: bool,
    /// Folder of the crate, from the root.
    folder: String,
}

/// Reads the edges from `cargo metadata`. Development dependencies are not among them.
pub(super) fn edges(metadata: &Value) -> Vec<Edge> {
    let root = text(metadata, "workspace_root");
    let mut edges = Vec::new();
    for package in list(metadata, "packages") {
        let manifest = Path::new(text(package, "manifest_path"));
        let folder = manifest.parent().and_then(|path| path.strip_prefix(root).ok());
        let folder = folder.unwrap_or(manifest).to_string_lossy().replace('\\', "/");
        let shipped = list(package, "dependencies").iter().filter(|d| text(d, "kind") != "dev");
        edges.extend(shipped.map(|dependency| {
            let name = text(dependency, "name");
            Edge {
                from: short(text(package, "name")).unwrap_or_default().to_owned(),
                to: short(name).unwrap_or(name).to_owned(),
                ours: short(name).is_some(),
                folder: folder.clone(),
            }
        }));
    }
    edges
}

/// Reports every edge that runs the wrong way.
pub(super) fn check(edges: &[Edge], manifests: &[File]) -> Vec<Finding> {
    let wrong = edges.iter().filter_map(|edge| Some((edge, problem(edge)?)));
    wrong.map(|(edge, what)| finding(edge, what, manifests)).collect()
}

fn problem(edge: &Edge) -> Option<String> {
    let Edge { from, to, .. } = edge;
    if !edge.ours {
        let impure = PURE.contains(&from.as_str()) && IMPURE.iter().any(|name| matches(name, to));
        return impure.then(|| {
            format!("{from} must stay pure and depends on {to}; pass time, chance and I/O in")
        });
    }
    if TOOLS.contains(&to.as_str()) {
        return Some(format!(
            "{from} depends on {to}, which is for development; make it a dev-dependency"
        ));
    }
    if TOOLS.contains(&from.as_str()) {
        return None;
    }
    match (layer(from), layer(to)) {
        (Some(from), Some(to)) if to < from => None,
        (Some(_), Some(_)) => {
            Some(format!("{from} depends on {to}, which is not to its left; turn the edge round"))
        }
        _ => Some(format!(
            "{from} depends on {to}, and one has no place in the line; add it to LAYERS in xtask"
        )),
    }
}

fn finding(edge: &Edge, what: String, manifests: &[File]) -> Finding {
    let path = format!("{}/Cargo.toml", edge.folder);
    let name = if edge.ours { format!("cairn-{}", edge.to) } else { edge.to.clone() };
    let manifest = manifests.iter().find(|file| file.path == path);
    let line = manifest.and_then(|file| {
        let names_it = |line: &str| {
            line.strip_prefix(&name).is_some_and(|rest| rest.starts_with(['.', ' ', '=']))
        };
        file.text.lines().position(names_it)
    });
    Finding::new(&path, line.map_or(1, |index| index + 1), what)
}

fn layer(name: &str) -> Option<usize> {
    LAYERS.iter().position(|names| names.contains(&name))
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == pattern,
    }
}

/// The name of one of our crates without the prefix of its package.
fn short(package: &str) -> Option<&str> {
    package.strip_prefix("cairn-")
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
mod tests;
