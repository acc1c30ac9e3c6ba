//! Skills: folders with a `SKILL.md`, where providers look for them.

use std::path::{Path, PathBuf};

/// The file that makes a folder a skill.
const FILE: &str = "SKILL.md";
/// How much of it is read for its description.
const HEAD_MAX: usize = 16 << 10;
/// How many are listed of one folder.
const SKILLS_MAX: usize = 500;

/// A skill that a provider finds.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Skill {
    /// Its name.
    pub name: String,
    /// What it says of itself.
    pub description: String,
    /// The folder that it is in.
    pub folder: PathBuf,
}

/// The skills in these folders of some places. Of two with one name that of the earlier place
/// counts.
pub(super) fn find(folders: &[&str], places: &[PathBuf]) -> Vec<Skill> {
    let mut found: Vec<Skill> = Vec::new();
    for place in places {
        for folder in folders {
            for skill in within(&place.join(folder)) {
                if !found.iter().any(|known| known.name == skill.name) {
                    found.push(skill);
                }
            }
        }
    }
    found.sort();
    found
}

/// The skills in a folder. What cannot be read is none.
fn within(folder: &Path) -> Vec<Skill> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let skill = |folder: PathBuf| {
        let text = std::fs::read(folder.join(FILE)).ok()?;
        let text = String::from_utf8_lossy(text.get(..text.len().min(HEAD_MAX))?).into_owned();
        let usual = folder.file_name()?.to_str()?.to_owned();
        let name = field(&text, "name").unwrap_or(usual);
        let description = field(&text, "description").unwrap_or_default();
        Some(Skill { name, description, folder })
    };
    entries.map(|entry| entry.path()).filter_map(skill).take(SKILLS_MAX).collect()
}

/// A field of the lines between `---` at the beginning of a file.
fn field(text: &str, name: &str) -> Option<String> {
    let mut lines = text.lines();
    if lines.next()?.trim() != "---" {
        return None;
    }
    let mut lines = lines.take_while(|line| line.trim() != "---");
    let value = lines.find_map(|line| line.strip_prefix(name)?.trim_start().strip_prefix(':'))?;
    let value = value.trim().trim_matches(['"', '\'']);
    (!value.is_empty()).then(|| value.to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn skills_are_found_by_their_files_and_the_project_comes_first() {
        let (project, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let write = |place: &Path, name: &str, text: &str| {
            let folder = place.join(".claude/skills").join(name);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join(FILE), text).unwrap();
        };
        write(
            project.path(),
            "docs",
            "---\nname: docs-search\ndescription: \"Finds pages\"\n---\nRead.",
        );
        write(home.path(), "docs", "---\nname: docs-search\ndescription: other\n---\n");
        write(home.path(), "plain", "No head.");
        fs::create_dir_all(home.path().join(".claude/skills/empty")).unwrap();
        let found = find(&[".claude/skills"], &[project.path().into(), home.path().into()]);
        let told: Vec<(&str, &str)> =
            found.iter().map(|skill| (skill.name.as_str(), skill.description.as_str())).collect();
        assert_eq!(told, [("docs-search", "Finds pages"), ("plain", "")]);
        assert_eq!(find(&[".codex/skills"], &[home.path().into()]), []);
    }
}
