use std::collections::BTreeSet;

use insta::assert_snapshot;
use proptest::prelude::*;

use super::*;
use crate::event::tests::arbitrary;
use crate::projection::tests::play;

const RUN: RunId = RunId::from_bits(1);

/// What the policy says, word for word and slowly: the leaf with the latest activity on
/// its path, then the newest, then the first by id.
fn slow_tip(dag: &RunDag) -> Option<NodeId> {
    let order = |leaf: &&Node| {
        let activity = dag.path_back(leaf.id).map(|node| node.touched).max();
        (activity, leaf.created, std::cmp::Reverse(leaf.id))
    };
    dag.leaves().max_by_key(order).map(|leaf| leaf.id)
}

fn check(script: &str) -> String {
    let dag = RunDag::fold(RUN, &play(script));
    let number = |node: NodeId| node.bits();
    let branch = |b: &Branch| format!("{}:{}", number(b.tip), b.last_activity);
    let branches: Vec<String> = dag.branches().iter().map(branch).collect();
    let tip = dag.preferred_tip().map(|node| node.id);
    assert_eq!(tip, slow_tip(&dag));
    assert_eq!(tip, dag.branches().first().map(|branch| branch.tip));
    branches.join(" ")
}

#[test]
fn the_tip_is_the_leaf_with_the_latest_activity() {
    assert_snapshot!(check(""), @"");
    assert_snapshot!(check("node 1"), @"1:0");
    assert_snapshot!(check("node 1; node 2 of 1; node 3 of 1"), @"3:2 2:1");
    assert_snapshot!(check("node 1; node 2 of 1; node 3 of 1; note 2 hello"), @"2:3 3:2");
}

#[test]
fn activity_of_an_ancestor_counts_for_every_branch_behind_it() {
    let forks = "node 1; node 2 of 1; node 3 of 2; node 4 of 2; node 5 of 1";
    assert_snapshot!(check(forks), @"5:4 4:3 3:2");
    assert_snapshot!(check(&format!("{forks}; gap 2 9")), @"4:5 3:5 5:4");
    assert_snapshot!(check(&format!("{forks}; gap 2 9; note 1 all")), @"5:6 4:6 3:6");
    assert_snapshot!(check(&format!("{forks}; gap 2 9; note 1 all; note 3 mine")), @"3:7 5:6 4:6");
}

#[test]
fn an_edge_is_activity_of_the_node_it_leads_to() {
    assert_snapshot!(check("node 1; node 2 of 1; node 3 of 1; edge 1 2"), @"2:3 3:2");
}

#[test]
fn attempts_and_context_are_not_activity() {
    let quiet = "node 1; node 2 of 1; node 3 of 1; blocked 2; context 2 a=1";
    assert_snapshot!(check(quiet), @"3:2 2:1");
}

#[test]
fn children_roots_and_paths() {
    let dag = RunDag::fold(RUN, &play("node 1; node 2 of 1; node 3 of 2; node 4 of 1; edge 1 2"));
    let ids = |nodes: Vec<&Node>| nodes.iter().map(|node| node.id.bits()).collect::<Vec<_>>();
    let node = NodeId::from_bits;
    assert_eq!(ids(dag.roots().collect()), [1]);
    assert_eq!(ids(dag.leaves().collect()), [3, 4]);
    assert_eq!(ids(dag.children(node(1)).collect()), [2, 4]);
    assert_eq!(ids(dag.path_back(node(3)).collect()), [3, 2, 1]);
    assert_eq!(dag.edges().len(), 1);
    assert!(dag.is_on_path(node(1), node(3)) && dag.is_on_path(node(3), node(3)));
    assert!(!dag.is_on_path(node(4), node(3)) && !dag.is_on_path(node(9), node(3)));
    assert_eq!(dag.last_activity_at(node(3)), Some(EventIndex(4)));
}

#[test]
fn a_long_chain_folds_quickly_and_its_tip_follows() {
    let script: Vec<String> =
        (2..20_000).map(|n| format!("node {n} of {}; note {} x", n - 1, n - 1)).collect();
    let events = play(&format!("node 1; {}", script.join("; ")));
    let mut dag = RunDag::new(RUN);
    for event in &events {
        dag.apply(event);
        let newest = dag.nodes().last().map(|node| node.id);
        assert_eq!(dag.preferred_tip().map(|node| node.id), newest);
    }
    assert!(dag.is_on_path(NodeId::from_bits(1), NodeId::from_bits(19_999)));
}

proptest! {
    #[test]
    fn the_tip_is_the_one_that_the_policy_picks(log in arbitrary::log(0..60)) {
        let mut dag = RunDag::new(RUN);
        for event in &log {
            dag.apply(event);
            prop_assert_eq!(dag.preferred_tip().map(|node| node.id), slow_tip(&dag));
        }
        let first = dag.branches().first().map(|branch| branch.tip);
        prop_assert_eq!(dag.preferred_tip().map(|node| node.id), first);
    }

    /// Trees of many nodes, where each parent is any earlier node.
    #[test]
    fn jumps_find_the_ancestors(parents in prop::collection::vec(any::<prop::sample::Index>(), 1..80)) {
        let lines = parents.iter().enumerate().map(|(at, parent)| {
            format!("; node {} of {}", at + 2, parent.index(at + 1) + 1)
        });
        let dag = RunDag::fold(RUN, &play(&format!("node 1{}", lines.collect::<String>())));
        for below in dag.nodes() {
            let path: BTreeSet<NodeId> = dag.path_back(below.id).map(|node| node.id).collect();
            for above in dag.nodes() {
                prop_assert_eq!(dag.is_on_path(above.id, below.id), path.contains(&above.id));
            }
        }
    }
}
