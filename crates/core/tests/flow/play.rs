//! Plays a run: performs what it owes, and tells what is recorded.

use std::collections::{BTreeMap, VecDeque};

use cairn_core::catalog::schema::{closed, one_of, text};
use cairn_core::catalog::{Catalog, Class, StepType, Takes, TriggerType, interpreted};
use cairn_core::digest::Digest;
use cairn_core::event::engine::{Payload, RunQueued};
use cairn_core::event::guided::{RunStarted, SourceKind};
use cairn_core::event::{Event, EventData, NewEvent, Scope};
use cairn_core::flow::{
    Answer, Command, Decision, Effect, Fault, Graph, Limits, Moment, Outcome, Rejection, Run,
    Verdict,
};
use cairn_core::id::{EventIndex, RunId, SessionId};
use cairn_core::instance::StepInstanceKey;
use cairn_core::plan::{Action, FailureKind};
use cairn_core::projection::run::RunState;
use cairn_lang::graph;
use cairn_lang::source::SourceTree;
use serde_json::{Value, json};

pub(crate) const RUN: RunId = RunId::from_bits(7);
const SESSION: SessionId = SessionId::from_bits(1);

/// A graph of these nodes, each a line of YAML.
pub(crate) fn graph(nodes: &str) -> Graph {
    let nodes: String = nodes.trim().lines().map(|l| format!("    - {}\n", l.trim())).collect();
    whole(&format!("name: Test\ngraph:\n  nodes:\n{nodes}"))
}

/// What the interpreter decides, two types that are performed, and a trigger.
fn catalog() -> Catalog {
    let levels = one_of(&["debug", "info", "warning", "error"]);
    let input = closed(&json!({"level": levels, "message": text()}), &["message"]);
    let output = closed(&json!({"count": {"type": "integer"}}), &[]);
    let log = StepType::new("log", Class::Effectful, input, output);
    let engines = one_of(&["jq", "jsonpath", "template"]);
    let input = json!({"engine": engines, "expression": text(), "input": {}, "template": text()});
    let transform = StepType::new("transform", Class::Evaluated, closed(&input, &[]), json!({}))
        .taking(&[("expression", Takes::Literal)]);
    let input = closed(&json!({}), &[]);
    let manual = TriggerType { name: "manual".into(), input, payload: None, check: |_| Vec::new() };
    Catalog::new(interpreted::all().into_iter().chain([log, transform])).with_triggers([manual])
}

/// A graph whose step was given another setting than a compiler lets through.
pub(crate) fn unsound(nodes: &str, step: &str, name: &str, value: &Value) -> Graph {
    let mut plan = graph(nodes).plan.clone();
    for step in plan.steps.iter_mut().filter(|known| known.id.as_str() == step) {
        if let Action::Typed { config, .. } = &mut step.action {
            config.0.as_object_mut().unwrap().insert(name.to_owned(), value.clone());
        }
    }
    Graph::new(plan, &catalog()).unwrap()
}

pub(crate) fn whole(text: &str) -> Graph {
    let files = BTreeMap::from([("w/workflow.yaml".to_owned(), text.as_bytes().to_vec())]);
    let tree =
        SourceTree { kind: cairn_lang::ids::SourceKind::Project, files, library: BTreeMap::new() };
    let catalog = catalog();
    let compiled = graph::compile(&tree, "w/workflow.yaml", &catalog);
    let plan = compiled.unwrap_or_else(|found| panic!("{found:#?}\n{text}")).plan;
    Graph::new(plan, &catalog).unwrap()
}

/// A run under way, with everything that was recorded and is owed.
pub(crate) struct Play {
    pub(crate) graph: Graph,
    pub(crate) run: Run,
    pub(crate) log: Vec<Event>,
    pub(crate) owed: VecDeque<Effect>,
    pub(crate) now_ms: u64,
    /// How often a step fails before it succeeds.
    pub(crate) failing: BTreeMap<String, u32>,
    random: u128,
}

impl Play {
    /// A run of the graph that was given this payload.
    pub(crate) fn new(graph: Graph, payload: Value) -> Self {
        let mut play = Self::empty(graph, RunState::new(RUN));
        play.record(vec![play.queued(payload)]);
        play
    }

    pub(crate) fn empty(graph: Graph, state: RunState) -> Self {
        let run = Run::new(state, Limits::default());
        let (log, owed, failing) = (Vec::new(), VecDeque::new(), BTreeMap::new());
        Self { graph, run, log, owed, now_ms: 1_000, failing, random: 1 }
    }

    fn queued(&self, payload: Value) -> NewEvent {
        let queued = RunQueued {
            advance: None,
            by: None,
            depth: 0,
            forked_from: None,
            input: Payload::inline(
                json!({"event": {"payload": payload, "at": "now"}, "env": {"who": "there"}}),
            ),
            parent: None,
            trigger_id: None,
            via: None,
            workflow_id: self.graph.plan.workflow_id.clone(),
            workflow_source_ref: None,
            workspace: None,
        };
        let id = cairn_core::id::EventId::from_bits(0);
        NewEvent { id, scope: Scope::Run(RUN), data: queued.into() }
    }

    fn record(&mut self, events: Vec<NewEvent>) {
        for event in events {
            let event = event.at(SESSION, EventIndex(self.log.len() as u64));
            if matches!(event.data, EventData::RunQueued(_)) {
                self.run.state.apply(&event);
            }
            // What a run knows is held against what is read back.
            self.log.push(Event::decode(&event.encode().unwrap()).unwrap());
        }
    }

    pub(crate) fn started(&self) -> RunStarted {
        RunStarted {
            assets: Vec::new(),
            goal: None,
            workflow_hash: cairn_core::digest::WorkflowHash(Digest::of(b"plan")),
            workflow_id: self.graph.plan.workflow_id.clone(),
            workflow_source_kind: SourceKind::Project,
            workflow_source_ref: "w".into(),
            workspace: None,
        }
    }

    /// Every step that it ever began.
    pub(crate) fn begun(&self) -> cairn_core::flow::Begun {
        cairn_core::flow::begun(&self.log)
    }

    pub(crate) fn start(&mut self) -> &mut Self {
        self.tell(Command::Start(self.started())).unwrap();
        self
    }

    /// Says something to the run, and holds that what it knows is what its log says.
    pub(crate) fn tell(&mut self, command: Command) -> Result<Decision, Rejection> {
        let random = &mut self.random;
        let mut random = || {
            *random += 1;
            *random
        };
        let mut moment = Moment { now_ms: self.now_ms, random: &mut random };
        let decision = self.run.decide(&self.graph, command, &mut moment)?;
        self.record(decision.events.clone());
        self.owed.extend(decision.effects.iter().cloned());
        let folded = RunState::fold(RUN, &self.log);
        if folded.queued.as_ref().is_none_or(|queued| queued.forked_from.is_none()) {
            assert_eq!(folded, self.run.state, "what is folded is not what was decided");
        }
        Ok(decision)
    }

    /// Does the first thing that is owed; says whether there was one.
    pub(crate) fn step(&mut self) -> bool {
        let Some(effect) = self.owed.pop_front() else { return false };
        match effect {
            Effect::Perform { instance, .. } => self.perform(&instance),
            Effect::Timer { timer, due_ms } => {
                self.now_ms = self.now_ms.max(due_ms);
                let _ = self.tell(Command::FireTimer(timer));
            }
            Effect::CallOff => {
                self.owed.retain(|effect| matches!(effect, Effect::End(_)));
                let _ = self.tell(Command::Stopped);
            }
            _ => {}
        }
        true
    }

    pub(crate) fn perform(&mut self, instance: &StepInstanceKey) {
        let result = match self.failing.get_mut(&instance.to_string()) {
            Some(left @ 1..) => {
                *left -= 1;
                Err(Fault { kind: FailureKind::Connection, ..Fault::new("TEST", "as told") })
            }
            _ => {
                let settings = self.run.settings(&self.graph, instance, &NoSecrets).unwrap();
                Ok(Outcome { output: settings, case: None, usage: None })
            }
        };
        let told = Command::Complete { instance: instance.clone(), result, duration_ms: 1 };
        self.tell(told).unwrap();
    }

    /// Says yes to everything that was asked; says whether there was something.
    pub(crate) fn answer_all(&mut self) -> bool {
        let asked: Vec<_> = self.run.state.tasks.keys().copied().collect();
        for task in &asked {
            let answer = Answer { verdict: Verdict::Approved, values: Value::Null };
            self.tell(Command::Answer { task: *task, by: "ada".into(), answer }).unwrap();
        }
        !asked.is_empty()
    }

    /// Does everything that is owed, and tells what was recorded.
    pub(crate) fn play(&mut self) -> String {
        while self.step() {}
        self.told()
    }

    /// Forgets everything but the log, as a crash does.
    pub(crate) fn crash(&mut self) -> &mut Self {
        self.run = Run::new(RunState::fold(RUN, &self.log), Limits::default());
        self.owed.clear();
        if self.run.state.end.is_none() {
            self.tell(Command::Recover).unwrap();
        }
        self
    }

    pub(crate) fn told(&self) -> String {
        self.log.iter().skip(1).map(|event| line(&event.data)).collect::<Vec<_>>().join("\n")
    }
}

/// Plays a whole run.
pub(crate) fn play(nodes: &str, payload: Value) -> String {
    Play::new(graph(nodes), payload).start().play()
}

pub(crate) struct NoSecrets;

impl cairn_core::flow::Secrets for NoSecrets {
    fn reveal(&self, _: &str) -> Option<String> {
        None
    }
}

fn shown(payload: &Payload) -> String {
    match payload {
        Payload::Inline(value) => value.0.to_string(),
        Payload::Blob(blob) => blob.sha256.to_string(),
    }
}

fn line(data: &EventData) -> String {
    match data {
        EventData::RunStarted(_) => "run started".into(),
        EventData::StepStarted(e) => format!("start {} {}", e.instance, e.attempt),
        EventData::StepCompleted(e) => {
            let case = e.case.as_ref().map(|case| format!(" [{case}]")).unwrap_or_default();
            format!("done {}{case} {}", e.instance, shown(&e.output))
        }
        EventData::StepFailed(e) => {
            format!("failed {} {} {} then {:?}", e.instance, e.attempt, e.error.code, e.then)
        }
        EventData::StepSkipped(e) => format!("skipped {} {:?}", e.instance, e.reason),
        EventData::StepWaiting(e) => format!("waits {} {:?}", e.instance, e.waiting_for),
        EventData::LoopEntered(e) => format!("enter {}", e.instance),
        EventData::LoopExited(e) => format!("leave {} {}", e.instance, e.iterations),
        EventData::TimerSet(e) => format!("timer {:?} {}", e.purpose, e.due_ms),
        EventData::RunCompleted(e) => format!("run completed {}", shown(&e.result)),
        EventData::RunFailed(e) => {
            let at = e.instance.as_ref().map(|key| format!(" at {key}")).unwrap_or_default();
            format!("run failed {}{at}", e.error.code)
        }
        other => other.kind().name().replace('_', " "),
    }
}
