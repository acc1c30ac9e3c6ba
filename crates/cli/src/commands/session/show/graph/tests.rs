use super::*;
use cairn_core::id::RunId;

/// A graph from nodes and parents, such as `1 2<1 3<1`; a `!` marks the preferred tip and a
/// `#` a checkpoint.
fn drawn(nodes: &str, signs: &Signs) -> String {
    let id = |text: &str| {
        let digits: String = text.chars().filter(char::is_ascii_digit).collect();
        NodeId::from_bits(digits.parse().unwrap())
    };
    let node = |text: &str| GraphNode {
        node_id: id(text.split('<').next().unwrap()),
        parent_node_id: text.split_once('<').map(|(_, parent)| id(parent)),
        kind: if text.contains('#') { "checkpoint" } else { "step" }.to_owned(),
        at: None,
        cause: None,
        step: None,
        pending: None,
        notes: None,
        gaps: Vec::new(),
        blockers: Vec::new(),
        divergences: Vec::new(),
        preferences: None,
    };
    let tip = nodes.split_whitespace().find(|text| text.contains('!'));
    let graph = Graph {
        run_id: RunId::from_bits(1),
        workflow_id: None,
        workflow_name: None,
        status: "in_progress".to_owned(),
        preferred_tip: tip.map(|text| id(text.split('<').next().unwrap())),
        nodes: nodes.split_whitespace().map(node).collect(),
        nodes_left_out: 0,
    };
    let line = |(rail, node): (String, Option<&GraphNode>)| match node {
        Some(node) => format!("{rail} {}", node.node_id.bits()),
        None => rail,
    };
    rails(&graph, signs).into_iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_straight_way_is_a_straight_line() {
    insta::assert_snapshot!(drawn("1 2<1 3#<2!", &UNICODE), @r"
    ◆ 3
    ● 2
    ● 1
    ");
}

#[test]
fn branches_meet_where_they_began() {
    insta::assert_snapshot!(drawn("1 2<1 3<1 4<2 5<2 6<4! 7#<3", &UNICODE), @r"
      ◆ 7
    ● │ 6
    │ │ ● 5
    ● │ │ 4
    │ ● │ 3
    ├─┼─╯
    ● │ 2
    ├─╯
    ● 1
    ");
    insta::assert_snapshot!(drawn("1 2<1 3<1 4<2 5<2 6<4! 7#<3", &ASCII), @r"
      # 7
    * | 6
    | | * 5
    * | | 4
    | * | 3
    |-+-'
    * | 2
    |-'
    * 1
    ");
}

#[test]
fn a_lane_that_passes_is_crossed() {
    insta::assert_snapshot!(drawn("1 2<1 3<2 4<1 5<2! 6<4 7<2", &UNICODE), @r"
      ● 7
      │ ● 6
    ● │ │ 5
    │ │ ● 4
    │ │ │ ● 3
    ├─┴─┼─╯
    ●   │ 2
    ├───╯
    ● 1
    ");
}

#[test]
fn what_was_left_out_is_below() {
    insta::assert_snapshot!(drawn("5<4! 6<3", &UNICODE), @r"
      ● 6
    ● │ 5
    ⋮ ⋮
    ");
}

#[test]
fn the_preferred_way_stays_on_the_left_when_it_is_not_the_newest() {
    insta::assert_snapshot!(drawn("1 2<1! 3<1 4<3", &UNICODE), @r"
      ● 4
      ● 3
    ● │ 2
    ├─╯
    ● 1
    ");
}
