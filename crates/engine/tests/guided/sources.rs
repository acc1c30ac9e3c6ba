//! Directories of workflows in which something is wrong: the rest is there all the same.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use cairn_core::catalog::{Catalog as Types, interpreted};
use cairn_engine::catalog::{Catalog, Directory};
use cairn_engine::guided::answer::{Answer, WarningCode};
use cairn_lang::ids::SourceKind;

use crate::world::{THREE, World};

fn catalog(root: &Path) -> Catalog {
    Catalog::new(vec![Directory { kind: SourceKind::Project, root: root.to_owned() }])
}

/// The workflows of the project, each with the codes of what is wrong with it.
fn listed(catalog: &Catalog, root: &Path) -> Vec<String> {
    let found = catalog.list().unwrap();
    let own = found.iter().filter(|found| found.kind == SourceKind::Project);
    let line = |found: &std::sync::Arc<cairn_engine::catalog::Found>| {
        let wrong = found.outcome.as_ref().err().into_iter().flatten();
        let codes: Vec<&str> = wrong.map(|diagnostic| diagnostic.code.name()).collect();
        let id = found.id.replace(&format!("{}/", root.display()), "");
        format!("{id} {}", codes.join(" ")).trim().to_owned()
    };
    own.map(line).collect()
}

/// Whether the system keeps this user from files that nobody may read.
fn is_kept_out(path: &Path) -> bool {
    fs::set_permissions(path, fs::Permissions::from_mode(0o000)).unwrap();
    fs::File::open(path).is_err()
}

#[test]
fn what_cannot_be_read_stands_beside_the_others() {
    let home = tempfile::tempdir().unwrap();
    let root = home.path();
    fs::write(root.join("one.yaml"), THREE).unwrap();
    symlink("nowhere.yaml", root.join("nowhere.yaml")).unwrap();
    assert_eq!(listed(&catalog(root), root), ["project.three"], "a link that leads nowhere");
    // It can be opened, and then the kernel refuses to read it, whoever asks.
    symlink("/proc/self/mem", root.join("mem.yaml")).unwrap();
    assert_eq!(listed(&catalog(root), root), ["mem.yaml unreadable", "project.three"]);
    fs::remove_file(root.join("mem.yaml")).unwrap();

    let (file, folder) = (root.join("shut.yaml"), root.join("shut"));
    fs::write(&file, THREE.replace("project.three", "project.shut")).unwrap();
    fs::create_dir(&folder).unwrap();
    let kept_out = is_kept_out(&file) && is_kept_out(&folder);
    if kept_out {
        let catalog = catalog(root);
        let all = ["project.three", "shut unreadable", "shut.yaml unreadable"];
        let mut told = listed(&catalog, root);
        told.sort();
        assert_eq!(told, all);
        assert_eq!(catalog.find("project.three").unwrap().id, "project.three");
        for path in [&file, &folder] {
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        assert_eq!(listed(&catalog, root), ["project.shut", "project.three"], "as soon as it can");
    }
    for path in [&file, &folder] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
}

#[test]
fn a_file_that_is_left_out_is_taken_once_it_is_the_workflows_own() {
    let home = tempfile::tempdir().unwrap();
    let (root, outside) = (home.path().join("workflows"), home.path().join("key"));
    fs::create_dir_all(root.join("nodes")).unwrap();
    fs::write(&outside, "{}").unwrap();
    let text = "name: One\ngraph:\n  nodes:\n    - { id: a, type: end }\n";
    fs::write(root.join("one.yaml"), text).unwrap();
    let catalog = catalog(&root).knowing(Types::new(interpreted::all()));
    let told = || -> Vec<String> {
        let found = catalog.find("one").unwrap();
        let warnings = &found.outcome.as_ref().unwrap().warnings;
        warnings.iter().map(|told| format!("{}: {}", told.code.name(), told.message)).collect()
    };
    assert_eq!(told(), Vec::<String>::new());
    let (hard, soft) = (root.join("nodes/hard.json"), root.join("nodes/soft.json"));
    fs::hard_link(&outside, &hard).unwrap();
    symlink(&outside, &soft).unwrap();
    assert_eq!(
        told(),
        [
            "unreadable: the file is left out: it has another name elsewhere, and would change with that",
            "unreadable: the file is left out: it is a link, and what a workflow uses must be in its own folder",
        ]
    );
    fs::remove_file(&outside).unwrap();
    fs::remove_file(&soft).unwrap();
    assert_eq!(told(), Vec::<String>::new());
}

#[test]
fn two_files_of_one_source_with_one_id_are_noticed() {
    let home = tempfile::tempdir().unwrap();
    let root = home.path();
    fs::write(root.join("a.yaml"), THREE).unwrap();
    fs::write(root.join("b.yaml"), THREE).unwrap();
    let catalog = catalog(root);
    assert_eq!(listed(&catalog, root), ["b.yaml duplicate_id", "project.three duplicate_id"]);
    let second = catalog.find(&root.join("b.yaml").display().to_string()).unwrap();
    let told = &second.diagnostics()[0].message;
    assert!(told.contains("`project.three` is the id of") && told.contains("a.yaml"), "{told}");
    let first = catalog.find("project.three").unwrap();
    let refused = first.compiled().unwrap_err();
    assert_eq!(refused.code(), "WORKFLOW_INVALID");
    assert!(refused.to_string().contains("b.yaml too, so it names neither"), "{refused}");
}

#[tokio::test]
async fn the_id_that_an_old_workflow_is_to_take_is_free() {
    let old = THREE.replace("id: project.three", "id: three");
    let alone = World::of(&old).start("three").await;
    let told = |answer: &Answer| {
        let code = WarningCode::LegacyWorkflowId;
        answer.warnings.iter().find(|warning| warning.code == code).unwrap().message.clone()
    };
    assert!(told(&alone).ends_with("`project.three`"), "{}", told(&alone));
    let beside = World::with(&[("old.yaml", &old), ("new.yaml", THREE)]).start("three").await;
    assert!(told(&beside).contains("`project.three_"), "{}", told(&beside));
}
