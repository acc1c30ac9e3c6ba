//! Guided runs drawn as text, newest node first, as `git log --graph` draws commits.

use std::collections::{BTreeMap, BTreeSet};

use cairn_api::session::{Graph, GraphNode, GraphStep};
use cairn_core::id::NodeId;

use crate::output::Style;
use crate::render::Cell;

/// The signs that a graph is drawn with.
pub(super) struct Signs {
    node: char,
    checkpoint: char,
    blocked: char,
    line: char,
    fork: char,
    cross: char,
    meet: char,
    end: char,
    across: char,
    more: char,
    tip: &'static str,
    cut: &'static str,
}

pub(super) const UNICODE: Signs = Signs {
    node: '●',
    checkpoint: '◆',
    blocked: '○',
    line: '│',
    fork: '├',
    cross: '┼',
    meet: '┴',
    end: '╯',
    across: '─',
    more: '⋮',
    tip: "← tip",
    cut: "…",
};

pub(super) const ASCII: Signs = Signs {
    node: '*',
    checkpoint: '#',
    blocked: 'o',
    line: '|',
    fork: '|',
    cross: '+',
    meet: '+',
    end: '\'',
    across: '-',
    more: ':',
    tip: "<- tip",
    cut: "..",
};

/// How many characters of a node's id are shown: the last ones, since the first are a time.
const SHORT: usize = 6;

/// The rows of a graph: lines, id, step, what stands out, and the first line of the notes.
pub(super) fn rows(graph: &Graph, signs: &Signs) -> Vec<Vec<Cell>> {
    let draw = |(rail, node): (String, Option<&GraphNode>)| {
        let mut row = vec![Cell::styled(Style::Faint, format!("  {rail}"))];
        row.extend(node.into_iter().flat_map(|node| cells(graph, node, signs)));
        row
    };
    rails(graph, signs).into_iter().map(draw).collect()
}

fn cells(graph: &Graph, node: &GraphNode, signs: &Signs) -> [Cell; 4] {
    let id = node.node_id.to_string();
    let short = id.len().checked_sub(SHORT).and_then(|at| id.get(at..)).unwrap_or(&id);
    let is_tip = graph.preferred_tip == Some(node.node_id);
    let style = if is_tip { Style::Strong } else { Style::Plain };
    [
        Cell::styled(Style::Faint, format!("{}{short}", signs.cut)),
        Cell::styled(style, label(node)),
        Cell::styled(Style::Warning, badges(node, is_tip.then_some(signs.tip))),
        Cell::new(node.notes.as_deref().unwrap_or_default()),
    ]
}

/// What a node is called: the step that led to it, or what it is.
fn label(node: &GraphNode) -> String {
    let step = node.step.as_ref().map(named);
    match (node.kind.as_str(), step) {
        ("checkpoint", Some(step)) => format!("checkpoint before {step}"),
        ("checkpoint", None) => "checkpoint".to_owned(),
        ("blocked_attempt", Some(step)) => format!("blocked at {step}"),
        ("blocked_attempt", None) => "blocked attempt".to_owned(),
        (_, Some(step)) => step,
        (_, None) if node.parent_node_id.is_none() => "start".to_owned(),
        (_, None) => "a step".to_owned(),
    }
}

/// A step's title; in a loop, or on a later visit, with which instance it is.
fn named(step: &GraphStep) -> String {
    let GraphStep { instance, title } = step;
    if instance.loop_path.is_empty() && instance.visit == 0 {
        title.clone()
    } else {
        format!("{title} ({instance})")
    }
}

fn badges(node: &GraphNode, tip: Option<&str>) -> String {
    let mut badges = Vec::new();
    for gap in &node.gaps {
        let state = if gap.open { &gap.severity } else { "closed" };
        badges.push(format!("[gap: {state}]"));
    }
    if !node.blockers.is_empty() {
        badges.push("[blocked]".to_owned());
    }
    if !node.divergences.is_empty() {
        badges.push("[diverged]".to_owned());
    }
    if node.preferences.is_some() {
        badges.push("[preferences]".to_owned());
    }
    badges.extend(tip.map(str::to_owned));
    badges.join(" ")
}

/// The lines beside each node, and those between nodes where branches meet.
fn rails<'g>(graph: &'g Graph, signs: &Signs) -> Vec<(String, Option<&'g GraphNode>)> {
    let preferred = preferred_path(graph);
    let mut rails = Vec::new();
    // The node that each lane leads down to.
    let mut lanes: Vec<Option<NodeId>> = Vec::new();
    for node in graph.nodes.iter().rev() {
        let mut meeting: Vec<usize> = places(&lanes, |to| *to == Some(node.node_id));
        if meeting.is_empty() {
            meeting.push(free_lane(&mut lanes, preferred.contains(&node.node_id)));
        }
        let (Some(own), Some(last)) = (meeting.first(), meeting.last()) else { continue };
        if own < last {
            rails.push((join(&lanes, &meeting, signs), None));
        }
        for place in meeting.iter().skip(1) {
            set(&mut lanes, *place, None);
        }
        let sign = match node.kind.as_str() {
            "checkpoint" => signs.checkpoint,
            "blocked_attempt" => signs.blocked,
            _ => signs.node,
        };
        let drawn = lanes.iter().enumerate().map(|(place, to)| match to {
            _ if place == *own => sign,
            Some(_) => signs.line,
            None => ' ',
        });
        rails.push((spaced(drawn), Some(node)));
        set(&mut lanes, *own, node.parent_node_id);
    }
    if lanes.iter().any(Option::is_some) {
        let more = lanes.iter().map(|to| if to.is_some() { signs.more } else { ' ' });
        rails.push((spaced(more), None));
    }
    rails
}

/// The nodes from the preferred tip back; they have the first lane to themselves.
fn preferred_path(graph: &Graph) -> BTreeSet<NodeId> {
    let parents: BTreeMap<NodeId, Option<NodeId>> =
        graph.nodes.iter().map(|node| (node.node_id, node.parent_node_id)).collect();
    let back = |node: &NodeId| parents.get(node).copied().flatten();
    std::iter::successors(graph.preferred_tip, back).collect()
}

fn places(lanes: &[Option<NodeId>], wanted: impl Fn(&Option<NodeId>) -> bool) -> Vec<usize> {
    lanes.iter().enumerate().filter(|(_, to)| wanted(to)).map(|(place, _)| place).collect()
}

fn free_lane(lanes: &mut Vec<Option<NodeId>>, preferred: bool) -> usize {
    let free = if preferred { Some(0) } else { None };
    let free = free.or_else(|| places(lanes, Option::is_none).into_iter().find(|place| *place > 0));
    let place = free.unwrap_or_else(|| lanes.len().max(1));
    while lanes.len() <= place {
        lanes.push(None);
    }
    place
}

fn set(lanes: &mut Vec<Option<NodeId>>, place: usize, to: Option<NodeId>) {
    if let Some(lane) = lanes.get_mut(place) {
        *lane = to;
    }
    while lanes.last().is_some_and(Option::is_none) {
        lanes.pop();
    }
}

/// A line on which lanes meet in the first of them.
fn join(lanes: &[Option<NodeId>], meeting: &[usize], signs: &Signs) -> String {
    let (own, last) = (meeting.first(), meeting.last());
    let between = |place: usize| own.is_some_and(|own| *own < place) && last > Some(&place);
    let mut line = String::new();
    for (place, to) in lanes.iter().enumerate() {
        line.push(match to {
            _ if own == Some(&place) => signs.fork,
            _ if last == Some(&place) => signs.end,
            _ if meeting.contains(&place) => signs.meet,
            Some(_) if between(place) => signs.cross,
            None if between(place) => signs.across,
            Some(_) => signs.line,
            None => ' ',
        });
        let goes_on = own == Some(&place) || between(place);
        line.push(if goes_on { signs.across } else { ' ' });
    }
    line.trim_end().to_owned()
}

fn spaced(signs: impl Iterator<Item = char>) -> String {
    let line: String = signs.flat_map(|sign| [sign, ' ']).collect();
    line.trim_end().to_owned()
}

#[cfg(test)]
mod tests;
