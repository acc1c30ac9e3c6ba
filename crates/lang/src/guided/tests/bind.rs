use super::*;
use crate::guided;

const WORKFLOW: &str = "id: project.a
name: A
description: A.
extensionPoints:
- {slotId: reviewer, purpose: Reviews., default: wr.code-review}
steps:
- {id: a, title: A, prompt: 'Use {{wr.bindings.reviewer}}.'}
";

/// The prompt under these files of bindings, or what is wrong with them.
fn bound(files: &[(&str, &str)]) -> String {
    let mut tree = tree(SourceKind::Project, WORKFLOW);
    let files = files.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec()));
    tree.files.extend(files);
    match guided::compile(&tree, "w.yaml", &Builtins::standard()) {
        Err(found) => lines(&found),
        Ok(compiled) => match &compiled.plan.steps[0].action {
            cairn_core::plan::Action::Prompt(prompt) => prompt.text.clone(),
            cairn_core::plan::Action::Typed { .. } => panic!("no prompt"),
        },
    }
}

#[test]
fn a_project_chooses_what_stands_at_an_extension_point() {
    let [own, tree] = BINDINGS;
    let one = r#"{"reviewer": "project.one"}"#;
    let two = r#"{"reviewer": "project.two", "other": "project.x"}"#;
    let alone = r#"{"project.a": {"reviewer": "project.three"}, "reviewer": "project.one"}"#;
    let elsewhere = r#"{"project.b": {"reviewer": "project.three"}}"#;
    assert_eq!(bound(&[]), "Use wr.code-review.");
    assert_eq!(bound(&[(tree, one)]), "Use project.one.");
    assert_eq!(bound(&[(tree, one), (own, two)]), "Use project.two.");
    assert_eq!(bound(&[(own, alone)]), "Use project.three.");
    assert_eq!(bound(&[(own, elsewhere)]), "Use wr.code-review.");
}

#[test]
fn mistakes_in_bindings_are_told() {
    let [own, _] = BINDINGS;
    let told = ["[]", "{", r#"{"reviewer": 3}"#, r#"{"reviewer": "the best one"}"#];
    assert_snapshot!(told.map(|text| bound(&[(own, text)])).join("\n"), @r"
    .cairn/bindings.json:1:1: error[wrong_type]: a map should stand here, not a list
    .cairn/bindings.json:1:2: error[malformed]: the text ends where a key in quotes should be
    .cairn/bindings.json:1:14: error[wrong_type] /reviewer: text should stand here, not a number
    .cairn/bindings.json:1:14: error[invalid_id] /reviewer: `the best one` is not the id of a routine or workflow; such as `project.routine-review`
    ");
}
