use std::collections::BTreeMap;

use cairn_core::plan::{Action, Plan, Repeat};

use super::*;
use crate::builtins::Builtins;
use crate::guided;

/// How many bytes an agent is shown at most in one step, so that the task keeps its room.
const SHOWN_MAX: usize = 6 << 10;

fn plans() -> BTreeMap<&'static str, Plan> {
    let (tree, catalog) = (bundled(), Builtins::standard());
    let plan = |file: &Bundled| match guided::compile(&tree, file.path, &catalog) {
        Err(found) => panic!("{found:#?}"),
        Ok(compiled) => {
            assert_eq!(compiled.warnings, [], "{}", file.path);
            (file.path, compiled.plan)
        }
    };
    WORKFLOWS.iter().map(plan).collect()
}

#[test]
fn paths_are_in_order_and_say_the_id() {
    assert!(WORKFLOWS.is_sorted_by_key(|file| file.path));
    for (path, plan) in plans() {
        assert_eq!(format!("{}.yaml", plan.workflow_id.replacen("wr.", "", 1)), path);
    }
}

#[test]
fn each_compiles_without_a_warning_to_the_same_plan_as_ever() {
    let hash = |plan: &Plan| format!("{} {}", plan.workflow_id, plan.hash().unwrap());
    let hashes: Vec<String> = plans().values().map(hash).collect();
    insta::assert_snapshot!("bundled", hashes.join("\n"));
}

#[test]
fn what_an_agent_is_shown_stays_short() {
    for (path, plan) in plans() {
        for step in &plan.steps {
            let Action::Prompt(prompt) = &step.action else { continue };
            let fragments = prompt.fragments.iter().map(|fragment| fragment.text.len());
            let requirements = prompt.requirements.iter().map(String::len);
            let shown = prompt.text.len() + fragments.chain(requirements).sum::<usize>();
            assert!(shown <= SHOWN_MAX, "{path}: {} has {shown} bytes", step.id);
        }
    }
}

#[test]
fn each_step_is_held_to_something() {
    for (path, plan) in plans() {
        for step in &plan.steps {
            let Action::Prompt(prompt) = &step.action else { continue };
            let checked = prompt.check.is_some() || !step.output_contracts.is_empty();
            assert!(checked, "{path}: nothing is asked of the answer of {}", step.id);
            // A check beside a contract would be enforced without being told.
            let both = prompt.check.is_some() && !step.output_contracts.is_empty();
            assert!(!both, "{path}: {} has a check beside a contract", step.id);
        }
    }
}

#[test]
fn each_loop_is_decided_under_a_contract() {
    for (path, plan) in plans() {
        for looped in &plan.loops {
            let decided = matches!(&looped.repeat, Repeat::UntilDecision { contract_ref, .. } if contract_ref == "wr.contracts.loop_control");
            assert!(decided, "{path}: {}", looped.id);
        }
    }
}
