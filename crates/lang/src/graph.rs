//! The graph dialect: automations of steps, edges and triggers, which the engine runs by itself.
//!
//! Compiling reads the document once and collects whatever is wrong: first the names of all
//! steps, then the edges between them, then what each step can know when it runs, and last
//! the settings of each, held against that. Edges can be written in a list or inside nodes;
//! both give the same plan.

mod assets;
mod branches;
mod command;
mod config;
mod cycle;
mod edges;
mod env;
mod exposure;
mod fault;
mod flow;
mod form;
mod header;
mod limits;
mod loops;
mod missing;
mod node;
mod payload;
mod program;
mod reference;
mod schema;
mod sink;
mod trigger;
mod ways;

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use cairn_core::canonical::StrictValue;
use cairn_core::catalog::{Catalog, StepType};
use cairn_core::plan::{
    self, Condition, DataTable, Dialect, Edge, EnvField, Loop, Plan, Policy, Recommendations, Step,
    Trigger, Warning,
};
use cairn_core::text::Slug;
use serde_json::{Value, json};

use crate::diagnostic::{Code, Diagnostic, Severity, nearest};
use crate::ids::SourceKind;
use crate::read::{Fields, Report, Spot};
use crate::source::{self, Node, Position, SourceTree};
use crate::{Compiled, guided};
use edges::Link;

/// How many steps a workflow may have.
pub const STEPS_MAX: usize = 1_000;
/// How many edges a workflow may have.
pub const EDGES_MAX: usize = 5_000;

/// Compiles the graph workflow at `path`.
///
/// The same tree gives the same plan. When it does not compile, everything that is wrong
/// is told at once, warnings included.
pub fn compile(
    tree: &SourceTree,
    path: &str,
    catalog: &Catalog,
) -> Result<Compiled, Vec<Diagnostic>> {
    let report = Report::default();
    let Some(bytes) = tree.files.get(path) else {
        return Err(vec![diagnostic(
            path,
            Code::UnknownName,
            format!("there is no file `{path}`"),
        )]);
    };
    let document = source::parse(path, bytes).map_err(|fault| vec![*fault])?;
    let plan = workflow(tree, catalog, &Spot::root(path, &document, &report), path, bytes);
    let found = report.take();
    let sound = found.iter().all(|found| found.severity == Severity::Warning);
    let Some(mut plan) = plan.filter(|_| sound) else { return Err(found) };
    plan.warnings = found.iter().filter_map(warning).collect();
    match plan.check().map_err(|e| e.to_string()).and(plan.encode().map_err(|e| e.to_string())) {
        Ok(_) => Ok(Compiled { plan, warnings: found }),
        Err(message) => Err(vec![diagnostic(path, Code::InvalidValue, message)]),
    }
}

/// Whether a document looks like a graph workflow, right or wrong.
#[must_use]
pub fn is_workflow(document: &Node) -> bool {
    document.get("graph").is_some_and(|graph| graph.get("nodes").is_some())
}

/// Whether whoever wrote a document had a graph in mind, as far as its fields say.
#[must_use]
pub fn is_meant(document: &Node) -> bool {
    let source::Value::Map(entries) = &document.value else { return false };
    let names = entries.iter().map(|entry| entry.key.as_str());
    let of_graphs = |name: &&str| ["env", "graph", "nodes", "triggers"].contains(name);
    !guided::is_workflow(document)
        && (names.clone().any(|name| of_graphs(&name)) || nearest("graph", names).is_some())
}

/// Whether the triggers of a workflow are to fire. It is no part of the plan, so that
/// switching a workflow off and on changes nothing that was approved.
#[must_use]
pub fn is_enabled(document: &Node) -> bool {
    !document.get("enabled").is_some_and(|node| matches!(node.value, source::Value::Flag(false)))
}

/// The id of the workflow at `path` when it says none, which can be told even of one that
/// cannot be read.
#[must_use]
pub fn usual_id(path: &str, kind: SourceKind, bytes: &[u8]) -> String {
    header::usual_id(path, kind, bytes)
}

fn warning(found: &Diagnostic) -> Option<Warning> {
    // These follow from the plan, which keeps the hash that it had before anybody was warned.
    if matches!(found.code, Code::MayBeMissing | Code::UntrustedWithSecret) {
        return None;
    }
    let code = found.code.name().parse().ok()?;
    Some(Warning { code, detail: StrictValue::new(json!({"pointer": found.pointer})) })
}

fn diagnostic(path: &str, code: Code, message: String) -> Diagnostic {
    let Position { line, column } = Position::START;
    let (path, pointer) = (path.to_owned(), String::new());
    let severity = Severity::Error;
    Diagnostic { path, line, column, severity, code, pointer, message, suggestion: None }
}

/// What has been read so far.
struct Build<'a> {
    tree: &'a SourceTree,
    catalog: &'a Catalog,
    /// The text of the workflow's file.
    text: &'a str,
    /// The folder that it stands in, with a `/` at its end unless it is the root.
    folder: &'a str,
    env: BTreeMap<String, EnvField>,
    /// The hosts that it limits itself to.
    hosts: Option<Vec<String>>,
    drafts: Vec<Draft<'a>>,
    /// Where each step is among the drafts.
    places: BTreeMap<String, usize>,
    links: Vec<Link<'a>>,
    /// The branches of each `parallel`, and the last step of each.
    branch_ends: BTreeMap<usize, Vec<(usize, usize)>>,
    conditions: BTreeMap<Slug, Condition>,
    assets: assets::Assets,
    payloads: payload::Payloads,
    /// The steps of which an edge leads to nothing that there is, and so is not among them.
    torn: BTreeSet<usize>,
    /// What of the limits was used.
    spent: limits::Spent,
    /// Whether a step was named that is not there. What follows from that is not told.
    astray: Cell<bool>,
}

/// A step of which the name is known.
struct Draft<'a> {
    id: Slug,
    /// Where its name stands.
    spot: Spot<'a>,
    /// Its fields, unless the compiler made it.
    fields: Option<Fields<'a>>,
    kind: Option<&'a StepType>,
    /// The loop that it is in.
    around: Option<usize>,
    /// The settings of a step that the compiler made, and for what.
    made: Option<(Value, &'static str)>,
}

impl Draft<'_> {
    fn is(&self, kind: &str) -> bool {
        self.kind.is_some_and(|known| known.name == kind)
    }
}

fn workflow<'a>(
    tree: &'a SourceTree,
    catalog: &'a Catalog,
    root: &Spot<'a>,
    path: &'a str,
    bytes: &'a [u8],
) -> Option<Plan> {
    let fields = root.fields(header::FIELDS)?;
    let head = Head {
        id: header::id(&fields, path, tree.kind, bytes),
        name: fields.need_text("name"),
        description: fields.text("description").unwrap_or_default(),
        version: fields.text("version"),
        tags: header::tags(&fields),
        policy: header::policy(&fields),
        tables: env::tables(&fields),
    };
    let folder = path.rfind('/').and_then(|end| path.get(..=end)).unwrap_or_default();
    let mut build = Build {
        tree,
        catalog,
        text: std::str::from_utf8(bytes).unwrap_or_default(),
        folder,
        env: env::settings(&fields),
        hosts: head.policy.hosts.clone(),
        drafts: Vec::new(),
        places: BTreeMap::new(),
        links: Vec::new(),
        branch_ends: BTreeMap::new(),
        conditions: BTreeMap::new(),
        assets: assets::Assets::default(),
        payloads: payload::Payloads::default(),
        torn: BTreeSet::new(),
        spent: limits::Spent::default(),
        astray: Cell::new(false),
    };
    if !build.has_few_patterns(root) {
        return None;
    }
    let graph = fields.need("graph")?.fields(&["edges", "entry", "nodes"])?;
    build.nodes(&graph.need("nodes")?)?;
    build.bodies();
    build.connect(graph.get("edges"));
    if build.links.len() > EDGES_MAX {
        let message = format!("there are more than {EDGES_MAX} edges");
        graph.spot.error_hint(Code::TooLong, message, "move a part into a workflow of its own");
        return None;
    }
    let triggers = build.triggers(fields.get("triggers"));
    let entry = build.entry(&graph, &triggers);
    let written = fields.get("triggers").map_or(0, |spot| spot.items().len());
    build.payloads = build.payloads(&triggers, &entry, written);
    let flow = build.flow(&entry, &triggers);
    let (steps, loops) = build.steps(&flow);
    build.exposure(&steps);
    build.folder_assets(&graph.spot);
    Some(build.plan(head, triggers, entry, steps, loops))
}

/// What a workflow says about itself.
struct Head {
    id: Option<String>,
    name: Option<String>,
    description: String,
    version: Option<String>,
    tags: Vec<String>,
    policy: Policy,
    tables: Vec<DataTable>,
}

impl Build<'_> {
    /// The name of a step.
    fn id(&self, place: usize) -> Option<&Slug> {
        self.drafts.get(place).map(|draft| &draft.id)
    }

    /// The edges in the order of their steps, so that every spelling gives the same.
    fn edges(&self) -> Vec<Edge> {
        let mut links: Vec<&Link<'_>> = self.links.iter().filter(|link| !link.fails).collect();
        links.sort_by_key(|link| {
            (link.from, link.case.as_deref() == Some("default"), &link.case, link.to)
        });
        let edge = |link: &Link<'_>| {
            let (from, to) = (self.id(link.from)?.clone(), self.id(link.to)?.clone());
            Some(Edge { case: link.case.clone(), condition: None, from, to })
        };
        links.into_iter().filter_map(edge).collect()
    }

    /// Puts everything into the order that the plan asks for.
    fn plan(
        self,
        head: Head,
        triggers: Vec<Trigger>,
        entry: Vec<Slug>,
        steps: Vec<Step>,
        mut loops: Vec<Loop>,
    ) -> Plan {
        loops.sort_by(|a, b| a.id.cmp(&b.id));
        Plan {
            agent_role: None,
            edges: self.edges(),
            assets: self.assets.into_list(),
            based_on: None,
            capabilities: Vec::new(),
            conditions: self.conditions.into_values().collect(),
            contracts: Vec::new(),
            data_tables: head.tables,
            description: head.description,
            dialect: Dialect::Graph,
            entry,
            env: self.env.into_values().collect(),
            features: Vec::new(),
            functions: Vec::new(),
            guide: None,
            loops,
            name: head.name.unwrap_or_default(),
            policy: head.policy,
            recommendations: Recommendations::default(),
            schema_version: plan::VERSION,
            steps,
            tags: head.tags,
            triggers,
            version: head.version,
            warnings: Vec::new(),
            workflow_id: head.id.unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests;
