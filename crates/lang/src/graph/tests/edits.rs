//! An edited source compiles to the plan that one expects.

use crate::edit::{Edit, apply, rename_in_text};

use super::*;

/// A source and its files compiled.
fn compiled(text: &str, files: &[(String, String)]) -> Plan {
    let mut tree = tree(text);
    for (path, text) in files {
        tree.files.insert(path.clone(), text.clone().into_bytes());
    }
    super::super::compile(&tree, "w/workflow.yaml", &catalog())
        .map(|compiled| compiled.plan)
        .unwrap_or_else(|found| panic!("{}", lines(&found)))
}

#[test]
fn every_step_can_be_renamed_and_only_its_name_changes() {
    let before = everything();
    let ids: Vec<String> = before.steps.iter().map(|step| step.id.to_string()).collect();
    let written = ids.iter().filter(|id| EVERYTHING.contains(&format!("id: {id}")));
    for from in written {
        let to = "renamed-step";
        let edit = Edit::RenameStep { from: from.clone(), to: to.to_owned() };
        let text = apply(EVERYTHING, &edit).unwrap_or_else(|refused| panic!("{from}: {refused}"));
        let is_step = |name: &str| ids.iter().any(|id| id == name);
        let files: Vec<(String, String)> = FILES
            .iter()
            .filter_map(|(path, text)| {
                Some(((*path).to_owned(), rename_in_text(text, from, to, &is_step)?))
            })
            .collect();
        let after = compiled(&text, &files);
        let names = |plan: &Plan| -> Vec<String> {
            plan.edges
                .iter()
                .flat_map(|edge| [edge.from.to_string(), edge.to.to_string()])
                .collect()
        };
        let renamed = |name: String| if name == *from { to.to_owned() } else { name };
        let mut expected: Vec<String> = names(&before).into_iter().map(renamed).collect();
        let mut found = names(&after);
        expected.sort();
        found.sort();
        assert_eq!(found, expected, "{from}");
        let back = Edit::RenameStep { from: to.to_owned(), to: from.clone() };
        assert_eq!(apply(&text, &back).as_deref(), Ok(EVERYTHING), "{from}");
    }
}

#[test]
fn a_setting_that_is_set_is_in_the_plan() {
    let before = everything();
    let edit = Edit::Set { pointer: "/name".to_owned(), value: serde_json::json!("Another") };
    let text = apply(EVERYTHING, &edit).unwrap();
    let expected = Plan { name: "Another".to_owned(), ..before };
    assert_eq!(compiled(&text, &[]), expected);
}
