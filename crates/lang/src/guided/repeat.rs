//! Loops: while, until, for and forEach.

use std::collections::BTreeSet;

use cairn_core::canonical::StrictValue;
use cairn_core::plan::{FunctionScope, Loop, LoopVariables, Repeat};
use cairn_core::text::Slug;
use serde_json::{Value, json};

use super::items::ByName;
use super::{Build, Scope, condition, run};
use crate::diagnostic::Code;
use crate::read::{Fields, Spot};
use crate::source;

/// How many turns a loop may be allowed.
const TURNS_MAX: u32 = 1_000;

const FIELDS: &[&str] = &[
    "id",
    "type",
    "title",
    "loop",
    "loopId",
    "while",
    "maxIterations",
    "body",
    "functionDefinitions",
    "requireConfirmation",
    "runCondition",
    "notesOptional",
];
const CONFIG: &[&str] = &[
    "type",
    "condition",
    "conditionSource",
    "items",
    "count",
    "maxIterations",
    "iterationVar",
    "itemVar",
    "indexVar",
];

const FORGOTTEN: &str =
    "the context decides whether this loop goes on, so a forgotten variable ends it";
const DECIDE: &str = "let a step decide under `wr.contracts.loop_control`, and name that in `conditionSource`; or look at the outcome of a `run` step of the loop";

/// What a `while` or `until` loop looks at.
pub(super) enum Looked<'a> {
    Context(Spot<'a>),
    Decision(Repeat),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    While,
    Until,
    For,
    Each,
}

impl<'a> Build<'a> {
    pub(super) fn looped(
        &mut self,
        item: &Spot<'a>,
        scope: &Scope,
        by_name: &mut Vec<ByName<'a>>,
    ) -> Option<Slug> {
        let fields = item.fields(FIELDS)?;
        let named = self.id(&fields, scope);
        let name = named.as_ref().map(|(name, _)| name.clone()).unwrap_or_default();
        let title = fields.need_text("title").unwrap_or_default();
        let referring = fields.get("while");
        let config = spelled(&fields).and_then(|spot| spot.fields(CONFIG));
        let body = fields.need("body");
        let performed = body.as_ref().map(|list| run::outcomes(list, scope)).unwrap_or_default();
        let repeat = match (&referring, &config) {
            (Some(spot), _) => self
                .referred(spot, &fields)
                .and_then(|looked| self.goes_on(looked, &name, &performed, false)),
            (None, Some(config)) => self.repeat(config, &name, &performed),
            (None, None) => None,
        };
        let place = if referring.is_some() { Some(&fields) } else { config.as_ref() };
        let max = place.and_then(|place| place.need("maxIterations"));
        let max_iterations = max.and_then(|spot| spot.whole(1, TURNS_MAX)).unwrap_or(1);
        if let (Some(config), Some(Repeat::Count { count })) = (&config, &repeat) {
            within_limit(config, &count.0, max_iterations);
        }
        let condition = self.run_condition(&fields, scope, &name);
        let require_confirmation = self.confirmation(&fields, &name);
        // What a loop says of confirmations and notes holds for its steps that say nothing.
        let notes_optional = fields.get("notesOptional").map(|spot| spot.flag() == Some(true));
        let confirmation = match fields.get("requireConfirmation") {
            Some(_) => require_confirmation.clone(),
            None => scope.confirmation.clone(),
        };
        let inside = Scope {
            confirmation,
            notes_optional: notes_optional.unwrap_or(scope.notes_optional),
            ..scope.clone()
        };
        let inline = body.as_ref().filter(|body| body.node.as_text().is_none());
        let inner = inline.map(|body| self.items(body, &inside)).unwrap_or_default();
        if let Some(list) = inline.filter(|list| list.is_empty_list()) {
            list.error(Code::InvalidValue, "the body of a loop has at least one step");
        }
        if let Some((_, id)) = &named {
            let scope = FunctionScope::Loop { loop_id: id.clone() };
            self.define(fields.get("functionDefinitions"), &scope);
        }
        let variables = config.as_ref().map(variables).unwrap_or_default();
        let (_, id) = named?;
        // What is wrong has been told; the loop stays, so that its steps are not told about too.
        let repeat = repeat.unwrap_or(Repeat::Count { count: StrictValue::new(json!(1)) });
        self.loops.push(Loop {
            body: inner,
            condition,
            id: id.clone(),
            max_iterations,
            repeat,
            require_confirmation,
            title,
            variables,
            visits_max: None,
        });
        match body.filter(|body| body.node.as_text().is_some()) {
            Some(body) => by_name.push(ByName { looped: id.clone(), body, inside }),
            None => self.check_decision(&id, &fields.spot),
        }
        Some(id)
    }

    fn repeat(
        &mut self,
        config: &Fields<'a>,
        name: &str,
        performed: &BTreeSet<String>,
    ) -> Option<Repeat> {
        let kind = config.need("type")?.choice(&[
            ("while", Kind::While),
            ("until", Kind::Until),
            ("for", Kind::For),
            ("forEach", Kind::Each),
        ])?;
        match kind {
            Kind::While | Kind::Until => {
                let looked = self.conditional(config)?;
                self.goes_on(looked, name, performed, kind == Kind::Until)
            }
            Kind::For => {
                let spot = config.need("count")?;
                let count = match spot.node.value {
                    source::Value::Text(_) => json!({"var": condition::path(&spot)?}),
                    _ => json!(spot.whole(0, TURNS_MAX)?),
                };
                Some(Repeat::Count { count: StrictValue::new(count) })
            }
            Kind::Each => {
                let items = json!({"var": condition::path(&config.need("items")?)?});
                Some(Repeat::Each { items: StrictValue::new(items) })
            }
        }
    }

    /// How long a loop goes on that looks at something.
    fn goes_on(
        &mut self,
        looked: Looked<'a>,
        name: &str,
        performed: &BTreeSet<String>,
        until: bool,
    ) -> Option<Repeat> {
        let (spot, mut holds) = match looked {
            Looked::Decision(repeat) => return Some(repeat),
            Looked::Context(spot) => (spot.clone(), condition::read(&spot)),
        };
        // What the engine sets is never forgotten.
        let mut keys = holds.iter().flat_map(condition::keys);
        if !keys.all(|key| performed.contains(key)) {
            spot.warn(Code::LoopContextControlled, FORGOTTEN, DECIDE);
        }
        if until {
            holds = holds.map(|holds| json!({"not": holds}));
        }
        let condition_id = self.name_condition(&spot, &format!("{name}.loop"), holds?)?;
        Some(Repeat::While { condition_id })
    }

    /// What a `while` or `until` loop looks at: a decision artifact, or the context.
    fn conditional(&mut self, config: &Fields<'a>) -> Option<Looked<'a>> {
        match config.get("conditionSource") {
            Some(source) => {
                let all = source.fields(&["kind", "contractRef", "loopId", "condition"])?;
                let kinds = [("artifact_contract", true), ("context_variable", false)];
                if all.need("kind")?.choice(&kinds)? {
                    return self.decided(&source).map(Looked::Decision);
                }
                source.fields(&["kind", "condition"])?.need("condition").map(Looked::Context)
            }
            None => {
                let spot = config.get("condition");
                if spot.is_none() {
                    config.spot.error_hint(
                        Code::MissingField,
                        "nothing says how long the loop goes on",
                        "add `conditionSource` with `kind: artifact_contract` and `contractRef: wr.contracts.loop_control`",
                    );
                }
                spot.map(Looked::Context)
            }
        }
    }

    /// A loop that goes on until an artifact says stop.
    fn decided(&mut self, source: &Spot<'a>) -> Option<Repeat> {
        let fields = source.fields(&["kind", "contractRef", "loopId"])?;
        let decision_id = fields.text("loopId");
        let contract_ref = self.contract(&fields.need("contractRef")?)?.id.to_owned();
        Some(Repeat::UntilDecision { contract_ref, decision_id })
    }

    /// Warns of a loop that waits for a decision which none of its steps takes.
    pub(super) fn check_decision(&self, looped: &Slug, spot: &Spot<'_>) {
        let Some(found) = self.loops.iter().find(|known| known.id == *looped) else { return };
        let Repeat::UntilDecision { contract_ref, .. } = &found.repeat else { return };
        let decides = |id: &Slug| {
            let step = self.steps.iter().find(|step| step.id == *id);
            step.is_some_and(|step| step.output_contracts.iter().any(|c| c.r#ref == *contract_ref))
        };
        if !found.body.iter().any(decides) {
            spot.warn(
                Code::LoopWithoutDecision,
                format!("no step of this loop gives an output under `{contract_ref}`"),
                "add `outputContract` to the step that decides",
            );
        }
    }
}

/// A number of turns that the limit cuts short is a mistake in one of the two.
fn within_limit(config: &Fields<'_>, count: &Value, max: u32) {
    if let Some(turns) = count.as_u64().filter(|turns| *turns > u64::from(max))
        && let Some(spot) = config.get("count")
    {
        let message = format!("the loop has {turns} turns, and `maxIterations` allows {max}");
        spot.error_hint(Code::Conflict, message, "make them agree: the higher of the two is meant");
    }
}

/// The `loop` of a step, unless it is of the other spelling, with `while`.
fn spelled<'a>(fields: &Fields<'a>) -> Option<Spot<'a>> {
    if fields.get("while").is_none() {
        for name in ["loopId", "maxIterations"] {
            if let Some(spot) = fields.get(name) {
                let message = format!("`{name}` stands beside `while`, and there is none");
                spot.error_hint(Code::Conflict, message, "put it into `loop`, or add `while`");
            }
        }
        return fields.need("loop");
    }
    if let Some(spot) = fields.get("loop") {
        let message = "the loop has both `loop` and `while`";
        spot.error_hint(Code::Conflict, message, "keep one of them");
    }
    None
}

fn variables(config: &Fields<'_>) -> LoopVariables {
    let name = |field: &str| config.get(field).and_then(|spot| condition::path(&spot));
    LoopVariables {
        index: name("indexVar"),
        item: name("itemVar"),
        iteration: name("iterationVar"),
    }
}
