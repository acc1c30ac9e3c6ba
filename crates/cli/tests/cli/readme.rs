//! The tour in the README, command by command.

use std::path::Path;
use std::process::Command;

/// A command of the tour and what it prints.
struct Step {
    command: String,
    expected: Vec<String>,
}

fn tour(readme: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut inside = false;
    for line in readme.lines() {
        match (line, line.strip_prefix("$ ")) {
            ("```console", _) => inside = true,
            ("```", _) => inside = false,
            (_, Some(command)) if inside => {
                steps.push(Step { command: command.to_owned(), expected: Vec::new() });
            }
            _ if inside => steps.last_mut().unwrap().expected.push(line.to_owned()),
            _ => {}
        }
    }
    steps
}

/// Whether a line is as the tour shows it; `...` stands for what differs from day to day.
fn matches(expected: &str, line: &str) -> bool {
    match expected.split_once("...") {
        None => expected == line,
        Some((before, after)) => line.starts_with(before) && line.ends_with(after),
    }
}

/// Whether an output is as the tour shows it; a line that is only `...` stands for any lines.
fn same(expected: &[String], lines: &[&str]) -> bool {
    let Some((first, rest)) = expected.split_first() else { return lines.is_empty() };
    if first == "..." {
        return (0..=lines.len()).any(|skipped| same(rest, &lines[skipped..]));
    }
    lines.split_first().is_some_and(|(line, more)| matches(first, line) && same(rest, more))
}

#[test]
fn the_tour_does_what_it_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    let home = tempfile::tempdir().unwrap();
    let bin = Path::new(env!("CARGO_BIN_EXE_cairn")).parent().unwrap().display();
    let path = format!("{bin}:{}", std::env::var("PATH").unwrap());
    let steps = tour(&readme);
    assert!(steps.len() > 7, "{} commands", steps.len());
    for Step { command, expected } in steps {
        let output = Command::new("sh")
            .args(["-c", &format!("{command} 2>&1")])
            .current_dir(&root)
            .env("PATH", &path)
            .env("CAIRN_HOME", home.path())
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let same = same(&expected, &lines);
        assert!(same, "$ {command}\nprinted:\n{text}\nthe README says:\n{}", expected.join("\n"));
    }
}
