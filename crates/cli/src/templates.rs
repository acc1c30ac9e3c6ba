//! Workflows to begin with: the examples, which come with the program.

/// A workflow to begin with.
pub(crate) struct Template {
    /// What it is called, as its example is.
    pub(crate) name: &'static str,
    /// What it shows.
    pub(crate) what: &'static str,
    /// Who performs its steps.
    pub(crate) kind: Kind,
    /// Its files by their path from the workflow's folder, the workflow itself first.
    pub(crate) files: &'static [(&'static str, &'static str)],
}

/// Who performs the steps of a template.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// The engine.
    Graph,
    /// The engine, which begins them at this trigger.
    Triggered(&'static str),
    /// The engine, which hands some of them to an agent. It is begun with a setting.
    Handed(&'static str),
    /// An agent that is led through it.
    Guided,
}

impl Kind {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Graph | Self::Triggered(_) | Self::Handed(_) => "graph",
            Self::Guided => "guided",
        }
    }
}

/// Files of an example, by their path from its folder.
macro_rules! files {
    ($folder:literal: $($path:literal),+ $(,)?) => {
        &[$(($path, include_str!(concat!("../../../examples/", $folder, "/", $path)))),+]
    };
}

/// Every template there is, in alphabetical order.
pub(crate) static ALL: [Template; 8] = [
    Template {
        name: "bug-hunt",
        what: "an agent goes from a report to a fix that is shown to work",
        kind: Kind::Guided,
        files: files!("guided": "bug-hunt.yaml"),
    },
    Template {
        name: "daily-digest",
        what: "a schedule, three sources, one text",
        kind: Kind::Graph,
        files: files!(
            "graph/daily-digest":
            "workflow.yaml",
            "nodes/answers.json",
            "nodes/line.sh",
            "nodes/list.sh",
        ),
    },
    Template {
        name: "incident-response",
        what: "three sources are asked at the same time, an agent makes sense of them, a model judges",
        kind: Kind::Graph,
        files: files!(
            "graph/incident-response":
            "workflow.yaml",
            "event.json",
            "nodes/answers.json",
            "nodes/dashboard.sh",
            "nodes/disks.sh",
            "nodes/errors.sh",
            "nodes/runbook.sh",
        ),
    },
    Template {
        name: "nested-classification",
        what: "one decision behind another",
        kind: Kind::Graph,
        files: files!(
            "graph/nested-classification":
            "workflow.yaml",
            "event.json",
            "nodes/answers.json",
        ),
    },
    Template {
        name: "release-check",
        what: "an agent finds out whether a version can be released, part by part",
        kind: Kind::Guided,
        files: files!("guided": "release-check.yaml", "release-policy.md"),
    },
    Template {
        name: "release-notes",
        what: "the engine gathers and publishes, an agent writes in between",
        kind: Kind::Handed("version=v2.1"),
        files: files!(
            "graph/release-notes":
            "workflow.yaml",
            "answers.jsonl",
            "nodes/changes.sh",
            "nodes/publish.sh",
            "nodes/write.md",
        ),
    },
    Template {
        name: "support-triage",
        what: "a model classifies a message, and it goes one of four ways",
        kind: Kind::Graph,
        files: files!(
            "graph/support-triage":
            "workflow.yaml",
            "event.json",
            "nodes/answers.json",
            "nodes/issue.sh",
        ),
    },
    Template {
        name: "ticket-flow",
        what: "one workflow with three triggers, each with an entry of its own",
        kind: Kind::Triggered("message"),
        files: files!(
            "graph/ticket-flow":
            "workflow.yaml",
            "event.json",
            "nodes/thread.sh",
            "nodes/ticket.sh",
        ),
    },
];

/// The template of a name.
pub(crate) fn find(name: &str) -> Option<&'static Template> {
    ALL.iter().find(|template| template.name == name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn every_example_is_a_template_with_all_its_files() {
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
        let mut wanted = BTreeSet::new();
        for name in names(&examples.join("graph")) {
            let folder = examples.join("graph").join(&name);
            if folder.is_dir() {
                let template = find(&name).unwrap_or_else(|| panic!("{name} is no template"));
                let has = |path: &str| template.files.iter().any(|(known, _)| *known == path);
                for path in names(&folder)
                    .iter()
                    .filter(|path| !["README.md", "nodes"].contains(&path.as_str()))
                {
                    assert!(has(path), "{name} lacks {path}");
                }
                for path in names(&folder.join("nodes")) {
                    assert!(has(&format!("nodes/{path}")), "{name} lacks nodes/{path}");
                }
                wanted.insert(name);
            }
        }
        for name in names(&examples.join("guided")) {
            wanted.extend(name.strip_suffix(".yaml").map(str::to_owned));
        }
        let known: BTreeSet<String> = ALL.iter().map(|template| template.name.to_owned()).collect();
        assert_eq!(known, wanted);
        assert!(ALL.is_sorted_by_key(|template| template.name));
    }
}
