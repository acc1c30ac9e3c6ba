//! The guided dialect: agents get one step, do it, and get the next.
//!
//! Compiling reads the document once, in its order, and collects whatever is wrong. The
//! plan's lists are put into the order that the plan asks for, so that the same meaning
//! has the same hash.

mod assess;
mod bind;
mod check;
mod choice;
mod condition;
mod delegate;
mod follow;
mod function;
mod header;
mod items;
mod keys;
mod named;
mod output;
mod prompt;
mod repeat;
mod run;
pub(crate) mod schema;
mod step;
mod template;

pub use bind::BINDINGS;

use std::collections::BTreeMap;

use cairn_core::canonical::StrictValue;
use cairn_core::event::guided::Capability;
use cairn_core::plan::{
    self, Assessment, CapabilityNeed, Condition, Confirmation, Dialect, Edge, Function, Guide,
    Loop, Need, Origin, Plan, Policy, Step, StepSource, Warning,
};
use cairn_core::text::Slug;
use serde_json::{Value, json};

use crate::Compiled;
use crate::builtins::{Builtins, ContractPack, Feature};
use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::read::{Report, Spot};
use crate::source::{self, Node, Position, SourceTree};

/// Compiles the guided workflow at `path`.
///
/// The same tree gives the same plan. When it does not compile, everything that is wrong
/// is told at once, warnings included.
pub fn compile(
    tree: &SourceTree,
    path: &str,
    catalog: &Builtins,
) -> Result<Compiled, Vec<Diagnostic>> {
    let report = Report::default();
    let Some(bytes) = tree.files.get(path) else {
        report.add(diagnostic(path, Code::UnknownName, format!("there is no file `{path}`")));
        return Err(report.take());
    };
    let document = source::parse(path, bytes).map_err(|fault| vec![*fault])?;
    let routines = template::routines(tree, bytes);
    let mut build = Build::new(tree, catalog, &routines);
    build.bound = bind::read(tree, &report);
    let plan = build.workflow(&Spot::root(path, &document, &report), bytes);
    let found = report.take();
    let Some(mut plan) = plan.filter(|_| found.iter().all(is_warning)) else {
        return Err(found);
    };
    plan.warnings = found.iter().filter_map(warning).collect();
    match plan.check().map_err(|e| e.to_string()).and(plan.encode().map_err(|e| e.to_string())) {
        Ok(_) => Ok(Compiled { plan, warnings: found }),
        Err(message) => Err(vec![diagnostic(path, Code::InvalidValue, message)]),
    }
}

/// Whether a document looks like a guided workflow, right or wrong.
#[must_use]
pub fn is_workflow(document: &Node) -> bool {
    document.get("steps").is_some_and(|steps| matches!(steps.value, source::Value::List(_)))
        && document.get("id").is_some()
}

fn is_warning(diagnostic: &Diagnostic) -> bool {
    diagnostic.severity == Severity::Warning
}

/// A warning as the plan carries it: without words, which may change.
fn warning(found: &Diagnostic) -> Option<Warning> {
    let code = found.code.name().parse().ok()?;
    Some(Warning { code, detail: StrictValue::new(json!({"pointer": found.pointer})) })
}

fn diagnostic(path: &str, code: Code, message: String) -> Diagnostic {
    let Position { line, column } = Position::START;
    Diagnostic {
        path: path.to_owned(),
        line,
        column,
        severity: Severity::Error,
        code,
        pointer: String::new(),
        message,
        suggestion: None,
    }
}

/// What has been compiled so far.
struct Build<'a> {
    tree: &'a SourceTree,
    catalog: &'a Builtins,
    routines: &'a BTreeMap<String, (String, Node)>,
    assessments: BTreeMap<String, Assessment>,
    bound: bind::Bound,
    conditions: BTreeMap<Slug, Condition>,
    contracts: BTreeMap<&'static str, &'static ContractPack>,
    features: BTreeMap<&'static str, &'static Feature>,
    functions: Vec<Function>,
    calls: Vec<function::Call<'a>>,
    loops: Vec<Loop>,
    named: BTreeMap<String, Spot<'a>>,
    names: BTreeMap<String, u32>,
    needs: BTreeMap<Capability, Need>,
    steps: Vec<Step>,
}

/// What holds for the steps of one list.
#[derive(Clone)]
struct Scope {
    /// What their ids begin with.
    prefix: String,
    origin: Origin,
    /// The condition of the call that brought them.
    condition: Option<Value>,
    /// What `{name}` stands for.
    arguments: BTreeMap<String, String>,
    /// What `{{wr.bindings.name}}` stands for.
    slots: BTreeMap<String, String>,
    features: Vec<&'static Feature>,
    /// The role of steps that name none.
    role: Option<String>,
    /// Who must agree to steps that do not say.
    confirmation: Option<Confirmation>,
    /// Whether the notes on steps that do not say may be left out.
    notes_optional: bool,
    /// The templates that are being expanded.
    templates: Vec<String>,
}

impl Scope {
    fn authored() -> Self {
        Self {
            prefix: String::new(),
            origin: Origin { id: None, source: StepSource::Authored },
            condition: None,
            arguments: BTreeMap::new(),
            slots: BTreeMap::new(),
            features: Vec::new(),
            role: None,
            confirmation: None,
            notes_optional: false,
            templates: Vec::new(),
        }
    }
}

impl<'a> Build<'a> {
    fn new(
        tree: &'a SourceTree,
        catalog: &'a Builtins,
        routines: &'a BTreeMap<String, (String, Node)>,
    ) -> Self {
        Self {
            tree,
            catalog,
            routines,
            assessments: BTreeMap::new(),
            bound: BTreeMap::new(),
            conditions: BTreeMap::new(),
            contracts: BTreeMap::new(),
            features: BTreeMap::new(),
            functions: Vec::new(),
            calls: Vec::new(),
            loops: Vec::new(),
            named: BTreeMap::new(),
            names: BTreeMap::new(),
            needs: BTreeMap::new(),
            steps: Vec::new(),
        }
    }

    fn workflow(&mut self, root: &Spot<'a>, bytes: &[u8]) -> Option<Plan> {
        let fields = root.fields(header::FIELDS)?;
        let header = header::read(&fields, self.tree.kind, bytes);
        let scope = self.scope(&fields, &Scope::authored());
        self.needs.clone_from(&header.capabilities);
        let mut order = self.probes();
        if let Some(steps) = fields.need("steps") {
            order.extend(self.items(&steps, &scope));
            if steps.is_empty_list() {
                steps.error(Code::InvalidValue, "a workflow has at least one step");
            }
        }
        self.unused_features(&fields);
        self.resolve_calls();
        if let Some(profile) = header.metrics {
            self.metrics(profile, &order);
        }
        Some(self.plan(header, order))
    }

    /// Puts everything into the order that the plan asks for.
    fn plan(&mut self, header: header::Header, order: Vec<Slug>) -> Plan {
        let mut functions = std::mem::take(&mut self.functions);
        functions.sort_by(|a, b| (&a.scope, &a.name).cmp(&(&b.scope, &b.name)));
        let mut loops = std::mem::take(&mut self.loops);
        loops.sort_by(|a, b| a.id.cmp(&b.id));
        let next = order.iter().skip(1);
        let edge = |(from, to): (&Slug, &Slug)| Edge {
            case: None,
            condition: None,
            from: from.clone(),
            to: to.clone(),
        };
        let guide = Guide {
            assessments: std::mem::take(&mut self.assessments).into_values().collect(),
            ..header.guide
        };
        Plan {
            agent_role: header.agent_role,
            assets: Vec::new(),
            based_on: None,
            capabilities: header
                .capabilities
                .into_iter()
                .map(|(capability, need)| CapabilityNeed { capability, need })
                .collect(),
            conditions: std::mem::take(&mut self.conditions).into_values().collect(),
            contracts: self.contracts.values().map(|contract| contract.contract()).collect(),
            data_tables: Vec::new(),
            description: header.description,
            dialect: Dialect::Guided,
            edges: order.iter().zip(next).map(edge).collect(),
            entry: order.first().cloned().into_iter().collect(),
            env: Vec::new(),
            features: self
                .features
                .keys()
                .map(|id| plan::Feature {
                    config: StrictValue::new(json!({})),
                    id: (*id).to_owned(),
                })
                .collect(),
            functions,
            guide: Some(guide),
            loops,
            name: header.name,
            policy: Policy::default(),
            recommendations: header.recommendations,
            schema_version: plan::VERSION,
            steps: std::mem::take(&mut self.steps),
            tags: Vec::new(),
            triggers: Vec::new(),
            version: header.version,
            warnings: Vec::new(),
            workflow_id: header.id,
        }
    }
}

#[cfg(test)]
mod tests;
