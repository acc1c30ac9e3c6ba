//! Skills: folders with a `SKILL.md`, where providers look for them.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// The file that makes a folder a skill.
const FILE: &str = "SKILL.md";
/// How much of it is read for its description.
const HEAD_MAX: u64 = 16 << 10;
/// How many are listed of one folder.
const SKILLS_MAX: usize = 500;
/// How long a name may be.
const NAME_MAX: usize = 64;
/// How many files a skill may have.
const FILES_MAX: usize = 1_000;
/// How large they may be together.
const BYTES_MAX: u64 = 16 << 20;
/// How deep its folders may be.
const DEPTH_MAX: usize = 16;

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

impl Skill {
    /// Its files, by their paths below its folder. Links and whatever is no file are left out.
    pub(crate) fn files(&self) -> io::Result<Vec<(String, Vec<u8>)>> {
        let mut files = Vec::new();
        let mut bytes = 0;
        let mut folders = vec![(self.folder.clone(), String::new(), 0)];
        while let Some((folder, above, depth)) = folders.pop() {
            for entry in std::fs::read_dir(&folder)? {
                let entry = entry?;
                let kind = entry.file_type()?;
                let Some(name) = entry.file_name().to_str().map(|name| format!("{above}{name}"))
                else {
                    return Err(io::Error::other("a file's name is not UTF-8"));
                };
                if kind.is_dir() && depth < DEPTH_MAX {
                    folders.push((entry.path(), format!("{name}/"), depth + 1));
                } else if kind.is_file() {
                    bytes += entry.metadata()?.len();
                    if files.len() == FILES_MAX || bytes > BYTES_MAX {
                        let most =
                            format!("it has more than {FILES_MAX} files or {BYTES_MAX} bytes");
                        return Err(io::Error::other(most));
                    }
                    files.push((name, std::fs::read(entry.path())?));
                }
            }
        }
        Ok(files)
    }
}

/// Whether a name is one word, which leads nowhere when it is a folder's.
fn is_name(name: &str) -> bool {
    let first = name.starts_with(|first: char| first.is_ascii_alphanumeric());
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    first && name.len() <= NAME_MAX && name.chars().all(plain)
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
        let file = folder.join(FILE);
        // What is no file may never end.
        if !file.metadata().ok()?.is_file() {
            return None;
        }
        let mut head = Vec::new();
        std::fs::File::open(file).ok()?.take(HEAD_MAX).read_to_end(&mut head).ok()?;
        let text = String::from_utf8_lossy(&head).into_owned();
        let usual = folder.file_name()?.to_str()?.to_owned();
        let name = field(&text, "name").filter(|name| is_name(name)).unwrap_or(usual);
        if !is_name(&name) {
            return None;
        }
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
        write(home.path(), "odd", "---\nname: ../../.ssh\ndescription: Leads out\n---\n");
        write(home.path(), "no name", "---\nname: /etc\n---\n");
        fs::create_dir_all(home.path().join(".claude/skills/empty")).unwrap();
        let found = find(&[".claude/skills"], &[project.path().into(), home.path().into()]);
        let told: Vec<(&str, &str)> =
            found.iter().map(|skill| (skill.name.as_str(), skill.description.as_str())).collect();
        assert_eq!(told, [("docs-search", "Finds pages"), ("odd", "Leads out"), ("plain", "")]);
        assert_eq!(find(&[".codex/skills"], &[home.path().into()]), []);
    }

    // case: agent.skill-name
    #[test]
    fn the_name_of_a_skill_leads_nowhere() {
        for name in ["docs", "docs-search", "Docs_2", "a.b", "7zip"] {
            assert!(is_name(name), "{name}");
        }
        let long = "a".repeat(NAME_MAX + 1);
        for name in ["", "..", ".", "../x", "a/b", "/x", "-x", "a b", "a\n", "ä", ".git", &long] {
            assert!(!is_name(name), "{name}");
        }
    }

    #[test]
    fn the_files_of_a_skill_are_those_in_its_folders() {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("deep")).unwrap();
        fs::write(home.path().join(FILE), "one").unwrap();
        fs::write(home.path().join("deep/two"), "two").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", home.path().join("link")).unwrap();
        std::os::unix::fs::symlink("/etc", home.path().join("deep/link")).unwrap();
        let (name, description) = ("x".to_owned(), String::new());
        let skill = Skill { name, description, folder: home.path().to_owned() };
        let mut files = skill.files().unwrap();
        files.sort();
        let files: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(files, [FILE, "deep/two"]);
        fs::File::create(home.path().join("large")).unwrap().set_len(BYTES_MAX).unwrap();
        assert!(skill.files().unwrap_err().to_string().contains("more than"));
    }
}
