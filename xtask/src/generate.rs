//! `generate`: writes the files that are derived from the code.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, ensure};

/// A file that the `cairn` binary prints.
struct Generated {
    /// Where it goes, from the root of the repository.
    path: &'static str,
    /// The arguments with which `cairn` prints it.
    args: &'static [&'static str],
}

/// Every generated file, in alphabetical order.
const FILES: &[Generated] = &[
    Generated { path: "docs/reference/builtins.md", args: &["reference", "builtins"] },
    Generated { path: "docs/reference/cli.md", args: &["reference"] },
    Generated { path: "docs/reference/filters.md", args: &["reference", "filters"] },
    Generated { path: "docs/reference/mcp.md", args: &["reference", "mcp"] },
    Generated { path: "docs/reference/openapi.json", args: &["reference", "openapi"] },
    Generated { path: "docs/reference/steps.md", args: &["reference", "steps"] },
];

/// Writes every generated file.
pub(crate) fn write(root: &Path) -> Result<ExitCode> {
    for file in FILES {
        let path = root.join(file.path);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
        }
        fs::write(&path, print(root, file.args)?)
            .with_context(|| format!("writing {}", path.display()))?;
        println!("generate: wrote {}", file.path);
    }
    Ok(ExitCode::SUCCESS)
}

/// Compares every generated file with what it should be, and writes nothing.
pub(crate) fn check(root: &Path) -> Result<ExitCode> {
    let mut code = ExitCode::SUCCESS;
    for file in FILES {
        let wanted = print(root, file.args)?;
        // A file that cannot be read is as wrong as one that differs.
        let found = fs::read(root.join(file.path)).unwrap_or_default();
        if let Some(line) = first_difference(&found, &wanted) {
            println!("{}:{line}: out of date; run `cargo xtask generate`", file.path);
            code = ExitCode::FAILURE;
        }
    }
    if code == ExitCode::SUCCESS {
        println!("generate: {} file(s) up to date", FILES.len());
    }
    Ok(code)
}

/// Runs `cairn` and returns what it prints.
fn print(root: &Path, args: &[&str]) -> Result<Vec<u8>> {
    let mut cargo = Command::new("cargo");
    cargo
        .args(["run", "--quiet", "--package", "cairn-cli", "--bin", "cairn", "--"])
        .args(args)
        .current_dir(root)
        .env("NO_COLOR", "1")
        .env_remove("CLICOLOR_FORCE")
        .env_remove("COLUMNS")
        .stdin(Stdio::null())
        .stderr(Stdio::inherit());
    // Help texts show the values of settings, which must not depend on who runs this.
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("CAIRN_") {
            cargo.env_remove(name);
        }
    }
    let output = cargo.output().context("starting cargo")?;
    ensure!(output.status.success(), "`cairn {}` failed: {}", args.join(" "), output.status);
    ensure!(!output.stdout.is_empty(), "`cairn {}` printed nothing", args.join(" "));
    Ok(output.stdout)
}

/// The first line, counted from 1, in which two texts differ.
fn first_difference(found: &[u8], wanted: &[u8]) -> Option<usize> {
    if found == wanted {
        return None;
    }
    let same = found.iter().zip(wanted).take_while(|(a, b)| a == b);
    Some(1 + same.filter(|(byte, _)| **byte == b'\n').count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_do_not_differ() {
        assert_eq!(first_difference(b"a\nb\n", b"a\nb\n"), None);
    }

    #[test]
    fn the_first_differing_line_is_named() {
        assert_eq!(first_difference(b"a\nb\n", b"a\nc\n"), Some(2));
        assert_eq!(first_difference(b"", b"a\n"), Some(1));
        assert_eq!(first_difference(b"a\n", b"a\nb\n"), Some(2));
    }

    #[test]
    fn files_are_listed_in_order() {
        assert!(FILES.is_sorted_by_key(|file| file.path));
    }
}
