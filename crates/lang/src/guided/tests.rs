mod bind;
mod features;
mod follow;
mod mistakes;
mod named;
mod run;

use insta::assert_snapshot;
use proptest::prelude::*;

use super::*;
use crate::ids::SourceKind;

const EVERYTHING: &str = include_str!("tests/everything.yaml");
const COMPARE: &str = include_str!("tests/compare.yaml");

fn tree(kind: SourceKind, text: &str) -> SourceTree {
    let files = [("w.yaml", text), ("compare.yaml", COMPARE)];
    let files = files.map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec()));
    SourceTree { kind, files: files.into(), library: BTreeMap::new() }
}

fn compile(kind: SourceKind, text: &str) -> Result<Compiled, Vec<Diagnostic>> {
    super::compile(&tree(kind, text), "w.yaml", &Builtins::standard())
}

/// A workflow with these steps compiled, or everything that is wrong with it.
fn with_steps(steps: &str) -> Result<Plan, String> {
    let head = "id: project.test\nname: Test\ndescription: For a test.\nsteps:\n";
    match compile(SourceKind::Project, &format!("{head}{steps}")) {
        Ok(compiled) => Ok(compiled.plan),
        Err(found) => Err(lines(&found)),
    }
}

fn lines(found: &[Diagnostic]) -> String {
    found.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

fn everything() -> Compiled {
    compile(SourceKind::Bundled, EVERYTHING).unwrap_or_else(|found| panic!("{}", lines(&found)))
}

#[test]
fn a_workflow_with_everything_is_pinned() {
    let Compiled { plan, warnings } = everything();
    assert_snapshot!(plan.hash().unwrap(), @"sha256:38d8eddc5334799ec82611aa3d5a9be8a3297f426a6425103a01bfd87ca7808b");
    assert_snapshot!(lines(&warnings), @"w.yaml:122:36: warning[loop_context_controlled] /steps/7/loop/condition: the context decides whether this loop goes on, so a forgotten variable ends it; let a step decide under `wr.contracts.loop_control`, and name that in `conditionSource`; or look at the outcome of a `run` step of the loop");
    assert_eq!(Plan::decode(&plan.encode().unwrap()), Ok(plan));
}

#[test]
fn the_spelling_of_a_source_is_not_in_the_hash() {
    let hash = |path: &str, text: &str| {
        let mut tree = tree(SourceKind::Bundled, "");
        tree.files.insert(path.to_owned(), text.as_bytes().to_vec());
        super::compile(&tree, path, &Builtins::standard()).unwrap().plan.hash().unwrap()
    };
    let document = source::parse("w.yaml", EVERYTHING.as_bytes()).unwrap();
    let json = document.to_json().to_string();
    assert_eq!(hash("w.json", &json), hash("w.yaml", EVERYTHING));
    let features = "[wr.features.subagent_guidance, wr.features.memory_context]";
    let reversed = "[wr.features.memory_context, wr.features.subagent_guidance]";
    assert_eq!(hash("w.yaml", EVERYTHING), hash("w.yaml", &EVERYTHING.replace(features, reversed)));
    assert_ne!(hash("w.yaml", EVERYTHING), hash("w.yaml", &EVERYTHING.replace(features, "[]")));
}

#[test]
fn lists_are_in_the_order_that_the_plan_asks_for() {
    let plan = everything().plan;
    let ids = |ids: Vec<String>| ids.join(" ");
    assert_snapshot!(ids(plan.steps.iter().map(|s| s.id.to_string()).collect()), @"wr_probe_web_browsing gather plan ready design.list design.write change look decide attempt look-around spread finish");
    assert_snapshot!(ids(plan.loops.iter().map(|l| l.id.to_string()).collect()), @"build each-file search tries");
    assert_snapshot!(ids(plan.conditions.iter().map(|c| c.id.to_string()).collect()), @"build.run design.write.run finish.confirm gather.check.4 plan.confirm plan.fragment.quick plan.run ready.run search.loop spread.fragment.piece-1");
    assert_snapshot!(ids(plan.contracts.iter().map(|c| c.r#ref.clone()).collect()), @"wr.contracts.assessment wr.contracts.capability_observation wr.contracts.coding_handoff wr.contracts.discovery_handoff wr.contracts.gate_verdict wr.contracts.loop_control");
    assert_snapshot!(ids(plan.functions.iter().map(|f| f.name.clone()).collect()), @"test() grade()");
    assert_snapshot!(ids(plan.edges.iter().map(|e| format!("{}>{}", e.from, e.to)).collect()), @"wr_probe_web_browsing>gather gather>plan plan>ready ready>design.list design.list>design.write design.write>build build>tries tries>search search>spread spread>finish");
}

#[test]
fn nothing_takes_the_place_of_a_bundled_routine() {
    let call = "id: project.a\nname: A\ndescription: A.\nsteps:\n- {id: a, title: A, templateCall: {templateId: wr.templates.routine.compare}}";
    let mut tree = tree(SourceKind::Project, call);
    let steps = |tree: &SourceTree| {
        let plan = super::compile(tree, "w.yaml", &Builtins::standard()).unwrap().plan;
        plan.steps.iter().map(|step| step.id.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(steps(&tree), ["a.list", "a.write"]);
    let bundled = COMPARE.replace("id: list", "id: name").into_bytes();
    tree.library.insert("compare.yaml".to_owned(), bundled);
    assert_eq!(steps(&tree), ["a.name", "a.write"]);
}

#[test]
fn a_missing_file_is_told() {
    let tree = tree(SourceKind::Project, "");
    let found = super::compile(&tree, "other.yaml", &Builtins::standard()).unwrap_err();
    assert_snapshot!(lines(&found), @"other.yaml:1:1: error[unknown_name]: there is no file `other.yaml`");
}

proptest! {
    #[test]
    fn no_source_is_too_strange_and_none_compiles_in_two_ways(
        edits in prop::collection::vec((0usize..EVERYTHING.len(), 0usize..12, "[a-z0-9{}\\[\\]:,\"' \n|&*!~.-]{0,6}"), 1..6)
    ) {
        let mut text: Vec<char> = EVERYTHING.chars().collect();
        for (at, cut, insert) in edits {
            let at = at.min(text.len());
            let end = (at + cut).min(text.len());
            text.splice(at..end, insert.chars());
        }
        let text: String = text.into_iter().collect();
        let first = compile(SourceKind::Bundled, &text);
        if let Ok(compiled) = &first {
            let bytes = compiled.plan.encode().unwrap();
            prop_assert!(Plan::decode(&bytes).is_ok_and(|read| read == compiled.plan));
        }
        prop_assert_eq!(first, compile(SourceKind::Bundled, &text));
    }
}
