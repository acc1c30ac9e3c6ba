//! Conditions of steps, through real runs.

use serde_json::{Value, json};

use crate::world::World;

/// Each operator, once as it holds and once as it does not, by the name of its step.
const CONDITIONS: &[(&str, &str)] = &[
    ("truthy", "{var: tags}"),
    ("not-truthy", "{var: zero}"),
    ("equals", "{var: risk, equals: High}"),
    ("not-equals", "{var: risk, equals: high}"),
    ("equals-null", "{var: missing, equals: null}"),
    ("not_equals", "{var: risk, not_equals: Low}"),
    ("not-not_equals", "{var: risk, not_equals: High}"),
    ("gt", "{var: count, gt: 2}"),
    ("not-gt", "{var: count, gt: 3}"),
    ("gte", "{var: count, gte: 3}"),
    ("not-gte", "{var: missing, gte: 0}"),
    ("lt", "{var: count, lt: 4}"),
    ("not-lt", "{var: count, lt: 3}"),
    ("lte", "{var: count, lte: 3}"),
    ("not-lte", "{var: risk, lte: 9}"),
    ("range", "{var: count, gt: 1, lte: 3}"),
    ("not-range", "{var: count, gt: 1, lte: 2}"),
    ("in", "{var: risk, in: [Low, High]}"),
    ("not-in", "{var: risk, in: [Low]}"),
    ("contains", "{var: tags, contains: b}"),
    ("contains-text", "{var: file.path, contains: main}"),
    ("not-contains", "{var: tags, contains: c}"),
    ("length", "{var: file.lines.length, equals: 2}"),
    ("place", "{var: file.lines.1, equals: 8}"),
    ("and", "{and: [{var: tags}, {var: count}]}"),
    ("not-and", "{and: [{var: tags}, {var: zero}]}"),
    ("or", "{or: [{var: zero}, {var: count}]}"),
    ("not-or", "{or: [{var: zero}, {var: missing}]}"),
    ("inverse", "{not: {var: zero}}"),
    ("not-inverse", "{not: {var: count}}"),
];

fn context() -> Value {
    json!({
        "risk": "High", "count": 3, "zero": 0, "tags": ["a", "b"],
        "file": {"path": "src/main.rs", "lines": [7, 8]},
    })
}

#[tokio::test]
async fn every_operator_decides_whether_a_step_is_done() {
    let mut text =
        "id: project.conditions\nname: Conditions\ndescription: Many.\nversion: 1.0.0\nsteps:\n"
            .to_owned();
    for (name, condition) in CONDITIONS {
        text.push_str(&format!(
            "  - {{id: {name}, title: It, prompt: Do it., runCondition: {condition}}}\n"
        ));
    }
    let world = World::of(&text);
    let steps = world.to_the_end(world.start_with("conditions", context()).await).await;
    let expected: Vec<&str> =
        CONDITIONS.iter().map(|(name, _)| *name).filter(|name| !name.starts_with("not-")).collect();
    assert_eq!(steps, expected);
}

#[tokio::test]
async fn a_run_without_a_step_to_do_is_complete_at_once() {
    let world = World::of(
        "id: project.nothing\nname: Nothing\ndescription: Nothing to do.\nversion: 1.0.0\nsteps:\n  - {id: one, title: One, prompt: Do it., runCondition: {var: never}}\n",
    );
    let first = world.start("nothing").await;
    assert!(first.is_complete && first.pending.is_none());
}
