//! The workflows of the simulated world: small ones, each with something that can go wrong.

use std::collections::BTreeMap;

use cairn_core::catalog::schema::{closed, text};
use cairn_core::catalog::{Catalog as Types, Class, StepType, TriggerType, interpreted};
use cairn_engine::catalog::Identity;
use cairn_lang::ids::SourceKind;
use cairn_lang::source::SourceTree;
use serde_json::json;

/// A workflow, how many of its runs may be under way at once, and whether it has a trigger.
pub(super) struct Written {
    pub(super) id: &'static str,
    pub(super) at_once: usize,
    pub(super) has_trigger: bool,
    text: &'static str,
}

/// The workflow whose setting is missing now and then.
pub(super) const NEEDY: &str = "project.needy";
/// The workflow that asks a person.
pub(super) const ASKS: &str = "project.ask";
/// The workflow that the clock starts.
pub(super) const TICKS: &str = "project.tick";
/// The workflow of which only so many runs may begin in a minute.
pub(super) const RATED: &str = "project.rated";
/// The step that only a person allows.
pub(super) const ALLOWED: &str = "allowed";

/// Those that people and triggers ask for.
pub(super) const ALL: [Written; 12] = [
    Written {
        id: "project.one",
        at_once: 1,
        has_trigger: true,
        text: "name: one
concurrency: 1
triggers: [{ type: manual, id: m }]
graph:
  nodes:
    - { id: a, type: act, say: slow, next: b }
    - { id: b, type: act, say: 'after {{ steps.a.said }}' }
",
    },
    Written {
        id: "project.two",
        at_once: 2,
        has_trigger: true,
        text: "name: two
concurrency: 2
triggers: [{ type: manual, id: m }]
on_error: { trigger_workflow: project.oops }
graph:
  nodes:
    - { id: a, type: act, say: flaky, retry: { max: 2, delay_sec: 1 }, next: b }
    - { id: b, type: act, say: slow, on_interrupt: ask }
",
    },
    Written {
        id: "project.oops",
        at_once: 256,
        has_trigger: false,
        text: "name: oops
triggers: [{ type: error, id: e }]
graph:
  nodes:
    - { id: a, type: act, say: '{{ event.payload.code }}' }
",
    },
    Written {
        id: "project.nap",
        at_once: 3,
        has_trigger: true,
        text: "name: nap
concurrency: 3
triggers: [{ type: manual, id: m }]
graph:
  nodes:
    - { id: a, type: wait, duration_sec: 2, next: b }
    - { id: b, type: act, say: awake }
",
    },
    Written {
        id: ASKS,
        at_once: 256,
        has_trigger: false,
        text: "name: ask
graph:
  nodes:
    - { id: q, type: human, prompt: May I?, cases: { approved: allowed, rejected: end } }
    - { id: allowed, type: act, say: allowed, on_interrupt: ask }
",
    },
    Written {
        id: "project.parent",
        at_once: 2,
        has_trigger: true,
        text: "name: parent
concurrency: 2
triggers: [{ type: manual, id: m }]
graph:
  nodes:
    - { id: c, type: workflow, workflow: project.leaf, input: { n: 1 }, next: d }
    - { id: d, type: act, say: 'child' }
",
    },
    Written {
        id: "project.leaf",
        at_once: 2,
        has_trigger: false,
        text: "name: leaf
concurrency: 2
graph:
  nodes:
    - { id: a, type: act, say: slow }
",
    },
    Written {
        id: NEEDY,
        at_once: 256,
        has_trigger: true,
        text: "name: needy
triggers: [{ type: manual, id: m }]
env: [{ name: SITE, widget: text, required: true }]
graph:
  nodes:
    - { id: a, type: act, say: '{{ env.SITE }}' }
",
    },
    Written {
        id: "project.count",
        at_once: 256,
        has_trigger: false,
        text: "name: count
graph:
  nodes:
    - { id: l, type: loop, count: 3, body: [i], next: a }
    - { id: i, type: act, say: number }
    - { id: a, type: act, say: number, next: b }
    - { id: b, type: act, say: 'it is {{ steps.a.number }}' }
",
    },
    Written {
        id: TICKS,
        at_once: 1,
        has_trigger: true,
        text: "name: tick
concurrency: 1
triggers: [{ type: manual, id: m, overflow: queue }]
graph:
  nodes:
    - { id: a, type: act, say: tick, next: b }
    - { id: b, type: act, say: tock }
",
    },
    Written {
        id: RATED,
        at_once: 256,
        has_trigger: false,
        text: "name: rated
rate_limit: 3/min
graph:
  nodes:
    - { id: a, type: act, say: rated }
",
    },
    Written {
        id: "project.drop",
        at_once: 1,
        has_trigger: true,
        text: "name: drop
concurrency: 1
triggers: [{ type: manual, id: m, overflow: drop }]
graph:
  nodes:
    - { id: a, type: act, say: slow }
",
    },
];

/// How many runs of [`RATED`] may begin in a minute.
pub(super) const RATE: usize = 3;

/// The folder of a workflow.
fn folder(id: &str) -> &str {
    id.trim_start_matches("project.")
}

/// What tells a workflow from all others.
pub(super) fn identity(id: &str) -> Identity {
    Identity::recorded(id, Some(&format!("(built in)/{}/workflow.yaml", folder(id))))
}

/// All of them, as files.
pub(super) fn tree() -> SourceTree {
    let file = |written: &Written| {
        (format!("{}/workflow.yaml", folder(written.id)), written.text.as_bytes().to_vec())
    };
    let files: BTreeMap<String, Vec<u8>> = ALL.iter().map(file).collect();
    SourceTree { kind: SourceKind::Project, files, library: BTreeMap::new() }
}

/// The types of steps and triggers that they use.
pub(super) fn types() -> Types {
    let trigger = |name: &str| TriggerType {
        name: name.to_owned(),
        input: json!({"type": "object"}),
        payload: None,
        check: |_| Vec::new(),
    };
    Types::new(interpreted::all().into_iter().chain([act()]))
        .with_triggers(["error", "manual"].map(trigger))
}

/// A step that does something outside.
pub(super) fn act() -> StepType {
    let input = closed(&json!({"say": text()}), &["say"]);
    let output = closed(&json!({"said": text(), "number": {"type": "number"}}), &[]);
    StepType::new("act", Class::Effectful, input, output)
}
