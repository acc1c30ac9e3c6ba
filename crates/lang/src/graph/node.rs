//! Reads nodes: their names and types first, then what each of them does.

use cairn_core::canonical::StrictValue;
use cairn_core::plan::{
    Action, Backoff, Condition, FailureKind, Loop, OnFailure, OnInterrupt, Origin, RetryPolicy,
    Step, StepSource,
};
use cairn_core::text::Slug;
use cairn_core::time;
use serde_json::{Value, json};

use super::flow::Flow;
use super::header::{SECONDS_MAX, millis};
use super::{Build, Draft, STEPS_MAX, schema};
use crate::diagnostic::Code;
use crate::ids;
use crate::read::{Fields, Spot};
use crate::source;

/// What every node can say, whatever its type.
pub(super) const COMMON: &[&str] = &[
    "cases",
    "fallback",
    "id",
    "max_visits",
    "next",
    "note",
    "on_failure",
    "on_interrupt",
    "position",
    "retry",
    "timeout_sec",
    "title",
    "type",
    "when",
];

/// Names that programs which show a plan would trip over.
const RESERVED: [&str; 3] = ["__proto__", "constructor", "prototype"];

/// The errors that a retry can be kept to.
const ERRORS: [(&str, FailureKind); 6] = [
    ("connection", FailureKind::Connection),
    ("exit_code", FailureKind::ExitCode),
    ("invalid_output", FailureKind::InvalidOutput),
    ("rate_limited", FailureKind::RateLimited),
    ("server_error", FailureKind::ServerError),
    ("timeout", FailureKind::Timeout),
];

impl<'a> Build<'a> {
    /// Takes in the names and types of all nodes; none when there are too many.
    pub(super) fn nodes(&mut self, list: &Spot<'a>) -> Option<()> {
        let items = list.items();
        if items.len() > STEPS_MAX {
            let message = format!("there are {} nodes; at most {STEPS_MAX} may be", items.len());
            list.error_hint(Code::TooLong, message, "move a part into a workflow of its own");
            return None;
        }
        if list.is_list() && items.is_empty() {
            list.error(Code::InvalidValue, "a workflow has at least one node");
        }
        for item in &items {
            self.draft(item);
        }
        Some(())
    }

    fn draft(&mut self, item: &Spot<'a>) {
        let source::Value::Map(entries) = &item.node.value else {
            item.wrong_type("a map");
            return;
        };
        let kind = item.node.get("type").map(|node| item.child("type", node));
        let found = kind.as_ref().and_then(|spot| spot.filled()).map(|name| self.catalog.get(name));
        let known: Vec<&str> = match found {
            None if kind.is_none() => {
                let names: Vec<&str> = self.catalog.types().map(|t| t.name.as_str()).collect();
                item.error_hint(
                    Code::MissingField,
                    "the field `type` is missing",
                    format!("types are {}", crate::read::quoted(&names)),
                );
                entries.iter().map(|entry| entry.key.as_str()).collect()
            }
            Some(Some(found)) => {
                let properties = found.input.get("properties").and_then(Value::as_object);
                let own = properties.into_iter().flat_map(|p| p.keys().map(String::as_str));
                own.chain(COMMON.iter().copied()).collect()
            }
            _ => {
                if let Some((spot, name)) = kind.as_ref().and_then(|s| Some((s, s.node.as_text()?)))
                {
                    spot.unknown(
                        "type of step",
                        name,
                        self.catalog.types().map(|t| t.name.as_str()),
                    );
                }
                entries.iter().map(|entry| entry.key.as_str()).collect()
            }
        };
        let Some(fields) = item.fields(&known) else { return };
        let Some(spot) = fields.need("id") else { return };
        let Some(id) = self.step_id(&spot) else { return };
        self.places.insert(id.to_string(), self.drafts.len());
        let kind = found.flatten();
        self.drafts.push(Draft { id, spot, fields: Some(fields), kind, around: None, made: None });
    }

    fn step_id(&self, spot: &Spot<'_>) -> Option<Slug> {
        let id = spot.filled()?;
        if RESERVED.contains(&id) {
            spot.error(Code::ReservedId, format!("`{id}` cannot name a step"));
            return None;
        }
        if !ids::is_step_id(id) {
            let message = format!("`{id}` cannot name a step");
            spot.error_hint(Code::InvalidId, message, "use a-z, 0-9, `_` and `-`");
            return None;
        }
        if self.places.contains_key(id) {
            spot.error_hint(
                Code::DuplicateId,
                format!("`{id}` names two steps"),
                "rename one of them",
            );
            return None;
        }
        id.parse().ok()
    }

    /// The step that a text names.
    pub(super) fn target(&self, spot: &Spot<'_>) -> Option<Slug> {
        let name = spot.filled()?;
        let found = self.places.get(name).and_then(|place| self.id(*place)).cloned();
        if found.is_none() {
            self.astray.set(true);
            spot.unknown("step", name, self.places.keys().map(String::as_str));
        }
        found
    }

    /// All steps and loops, as the plan has them.
    pub(super) fn steps(&mut self, flow: &Flow) -> (Vec<Step>, Vec<Loop>) {
        let (mut steps, mut loops) = (Vec::new(), Vec::new());
        for place in 0..self.drafts.len() {
            let condition = self.when(place, flow);
            if self.drafts.get(place).is_some_and(|draft| draft.is("loop")) {
                loops.extend(self.looped(place, flow, condition));
            } else {
                steps.extend(self.step(place, flow, condition));
            }
        }
        (steps, loops)
    }

    fn step(&self, place: usize, flow: &Flow, condition: Option<Slug>) -> Option<Step> {
        let draft = self.drafts.get(place)?;
        let origin = match &draft.made {
            Some((_, what)) => {
                Origin { id: Some((*what).to_owned()), source: StepSource::FeatureInjected }
            }
            None => Origin { id: None, source: StepSource::Authored },
        };
        let config = match &draft.made {
            Some((config, _)) => config.clone(),
            None => Value::Object(self.config(place, flow)),
        };
        let fields = draft.fields.as_ref();
        let timeout = fields.and_then(|fields| fields.get("timeout_sec"));
        Some(Step {
            action: Action::Typed {
                config: StrictValue::new(config),
                r#type: draft.kind?.name.parse().ok()?,
            },
            condition,
            id: draft.id.clone(),
            on_failure: fields.map_or(OnFailure::Stop {}, |fields| self.on_failure(fields)),
            on_interrupt: fields.and_then(on_interrupt).unwrap_or(OnInterrupt::Retry),
            origin,
            output_contracts: Vec::new(),
            require_confirmation: None,
            retry: fields.and_then(|fields| retry(&fields.get("retry")?)),
            timeout_ms: timeout.and_then(|spot| spot.whole(1, SECONDS_MAX)).map(millis),
            title: fields.and_then(|f| f.text("title")).unwrap_or_else(|| draft.id.to_string()),
            visits_max: self.visits_max(draft),
        })
    }

    /// The condition under which a step is done.
    fn when(&mut self, place: usize, flow: &Flow) -> Option<Slug> {
        let draft = self.drafts.get(place)?;
        let spot = draft.fields.as_ref()?.get("when")?;
        let expression = self.expression(place, flow, &spot)?;
        let id = format!("{}.when", draft.id);
        self.condition(&id, expression)
    }

    /// Keeps a condition under a name.
    pub(super) fn condition(&mut self, id: &str, expression: String) -> Option<Slug> {
        let id: Slug = id.parse().ok()?;
        let config = StrictValue::new(json!({"expression": expression}));
        let r#type = "expression".parse().ok()?;
        self.conditions.insert(id.clone(), Condition { config, id: id.clone(), r#type });
        Some(id)
    }

    fn on_failure(&self, fields: &Fields<'_>) -> OnFailure {
        let words = [("stop", 0), ("skip", 1), ("fallback", 2)];
        let chosen = fields.get("on_failure").and_then(|spot| spot.choice(&words)).unwrap_or(0);
        let fallback = fields.get("fallback");
        match (chosen, fallback) {
            (2, Some(spot)) => match self.target(&spot) {
                Some(step_id) => OnFailure::Fallback { step_id },
                None => OnFailure::Stop {},
            },
            (2, None) => {
                fields.need("fallback");
                OnFailure::Stop {}
            }
            (_, Some(spot)) => {
                let message = "`fallback` is never used";
                spot.error_hint(
                    Code::Conflict,
                    message,
                    "add `on_failure: fallback`, or leave it out",
                );
                OnFailure::Stop {}
            }
            (1, None) => OnFailure::Skip {},
            _ => OnFailure::Stop {},
        }
    }

    /// Says when settings are not as the step's type asks.
    pub(super) fn settings(&self, place: usize) {
        let Some(draft) = self.drafts.get(place) else { return };
        let (Some(fields), Some(kind)) = (&draft.fields, draft.kind) else { return };
        let properties = kind.input.get("properties").and_then(Value::as_object);
        for (name, rule) in properties.into_iter().flatten() {
            fields.get(name).iter().for_each(|spot| schema::check(spot, rule));
        }
        schema::required(&kind.input).for_each(|name| drop(fields.need(name)));
        if draft.is("wait") {
            instant(fields);
        }
        if let Some(spot) = fields.get("branches").filter(Spot::is_empty_list) {
            spot.error_hint(Code::InvalidValue, "there are no branches", "name their first steps");
        }
    }
}

/// What a `wait` waits for: one thing, and a point in time only if it is one.
fn instant(fields: &Fields<'_>) {
    let hint = "say `duration_sec: 60`, or `until: 2027-01-01T09:00:00Z`";
    let until = fields.get("until");
    match (fields.get("duration_sec"), &until) {
        (None, None) => {
            fields.spot.error_hint(Code::MissingField, "it does not say how long it waits", hint);
        }
        (Some(_), Some(until)) => {
            until.error_hint(Code::Conflict, "the step has both `duration_sec` and `until`", hint);
        }
        _ => {}
    }
    let text = until.as_ref().and_then(|spot| Some((spot, spot.node.as_text()?)));
    if let Some((spot, text)) = text.filter(|(_, text)| !text.contains("{{"))
        && time::parse(text).is_none()
    {
        let message = format!("`{text}` is no point in time");
        spot.error_hint(Code::InvalidValue, message, hint);
    }
}

fn on_interrupt(fields: &Fields<'_>) -> Option<OnInterrupt> {
    fields.get("on_interrupt")?.choice(&[
        ("retry", OnInterrupt::Retry),
        ("fail", OnInterrupt::Fail),
        ("ask", OnInterrupt::Ask),
    ])
}

fn retry(spot: &Spot<'_>) -> Option<RetryPolicy> {
    if let source::Value::Number(number) = &spot.node.value {
        let hint = format!("write `retry: {{ max: {number} }}`");
        spot.error_hint(Code::WrongType, "a map should stand here, not a number", hint);
        return None;
    }
    let fields = spot.fields(&["backoff", "delay_sec", "jitter", "max", "max_delay_sec", "on"])?;
    let retries = fields.need("max").and_then(|spot| spot.whole(1, 100));
    let backoff = fields.get("backoff").map_or(Some(Backoff::Exponential), |spot| {
        spot.choice(&[("fixed", Backoff::Fixed), ("exponential", Backoff::Exponential)])
    });
    let seconds = |name: &str, usual| match fields.get(name) {
        Some(spot) => spot.whole(0, 86_400),
        None => Some(usual),
    };
    let (delay, longest) = (seconds("delay_sec", 1), seconds("max_delay_sec", 60));
    if let Some(spot) = fields.get("max_delay_sec").filter(|_| longest < delay) {
        spot.error(Code::InvalidValue, "the longest pause is shorter than the first");
    }
    let errors = fields.get("on").map(|spot| spot.items()).unwrap_or_default();
    let mut errors: Vec<FailureKind> =
        errors.iter().filter_map(|spot| spot.choice(&ERRORS)).collect();
    errors.sort();
    errors.dedup();
    Some(RetryPolicy {
        attempts_max: retries? + 1,
        backoff: backoff?,
        delay_max_ms: millis(longest?),
        delay_ms: millis(delay?),
        errors,
        jitter: fields.flag("jitter").unwrap_or(true),
    })
}
