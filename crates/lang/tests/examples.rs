//! Compiles every workflow of a directory that `CAIRN_GUIDED_EXAMPLES` names, if it names one.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use cairn_lang::builtins::Builtins;
use cairn_lang::guided;
use cairn_lang::ids::SourceKind;
use cairn_lang::source::{self, SourceTree};

#[expect(
    clippy::disallowed_methods,
    reason = "the compiler has no settings, but this test has one"
)]
fn directory() -> Option<PathBuf> {
    std::env::var_os("CAIRN_GUIDED_EXAMPLES").map(PathBuf::from).filter(|path| path.is_dir())
}

#[test]
fn workflows_from_elsewhere_compile() {
    let Some(directory) = directory() else { return };
    let (files, library) = (BTreeMap::new(), BTreeMap::new());
    let mut tree = SourceTree { kind: SourceKind::Bundled, files, library };
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "json" || ending == "yaml") {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            tree.files.insert(name, fs::read(path).unwrap());
        }
    }
    let mut compiled = 0;
    for (path, bytes) in &tree.files {
        if !guided::is_workflow(&source::parse(path, bytes).unwrap()) {
            continue;
        }
        match guided::compile(&tree, path, &Builtins::standard()) {
            Err(errors) => {
                let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
                panic!("{}", errors.join("\n"));
            }
            Ok(found) => {
                let hash = found.plan.hash().unwrap();
                let steps: Vec<&str> = found.plan.steps.iter().map(|s| s.id.as_str()).collect();
                println!("{path}: {hash}\n  {}", steps.join(" "));
                for warning in found.warnings {
                    println!("  {warning}");
                }
                compiled += 1;
            }
        }
    }
    assert!(compiled > 0);
}
