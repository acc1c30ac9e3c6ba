//! An engine over files, with steps that count what they do.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use cairn_core::catalog::schema::{any, closed, one_of, text};
use cairn_core::catalog::{Catalog as Types, Class, StepType, TriggerType, interpreted};
use cairn_engine::catalog::{Catalog, Directory};
use cairn_engine::flow::{
    Automations, Ended, NoEvaluator, NoSettings, Options, Parts, Past, Roles, RunRequest,
    TriggerEvent,
};
use cairn_engine::host::SystemHost;
use cairn_engine::performer::{Ctx, Failed, FailureKind, Outcome, Performer, Performers};
use cairn_engine::rights::{NoTokens, Rights};
use cairn_lang::ids::SourceKind;
use serde_json::{Value, json};
use tokio::sync::Notify;

/// What was done, by idempotency key.
#[derive(Default)]
pub(crate) struct Done {
    pub(crate) keys: Mutex<BTreeMap<String, u32>>,
    /// While it is set, steps whose message is `hold` do not end.
    pub(crate) holds: AtomicBool,
    pub(crate) held: Notify,
    pub(crate) go: Notify,
}

/// `log`, which also fails, waits and reads a file of its workflow when it is told to.
struct Log(Arc<Done>);

#[async_trait]
impl Performer for Log {
    fn kind(&self) -> StepType {
        let levels = one_of(&["debug", "info", "warning", "error"]);
        let input = closed(&json!({"level": levels, "message": text()}), &["message"]);
        StepType::new("log", Class::Effectful, input, closed(&json!({}), &[]))
    }

    async fn perform(&self, config: Value, ctx: &Ctx) -> Result<Outcome, Failed> {
        let message = config.get("message").and_then(Value::as_str).unwrap_or_default().to_owned();
        let tries = {
            let mut keys = self.0.keys.lock().unwrap();
            let tries = keys.entry(ctx.idempotency_key.hex()).or_default();
            *tries += 1;
            *tries
        };
        if message == "hold" && self.0.holds.load(Ordering::SeqCst) {
            self.0.held.notify_one();
            self.0.go.notified().await;
        }
        if message == "huge" {
            let nested = (0..100).fold(json!(1), |inner, _| json!([inner]));
            return Ok(Outcome::new(json!({"id": 9_007_199_254_740_993_u64, "deep": nested}), ""));
        }
        if message == "id" {
            return Ok(Outcome::new(json!({"id": 9_007_199_254_740_993_u64}), ""));
        }
        assert_ne!(message, "panic", "as told");
        if message == "loud" {
            return Err(Failed::new("TEST_FAILED", "no ".repeat(4_000)));
        }
        if message == "fail" || (message == "once" && tries == 1) {
            let kind = FailureKind::Connection;
            return Err(Failed { kind, ..Failed::new("TEST_FAILED", "as told") });
        }
        if let Some(path) = message.strip_prefix("file ") {
            let bytes = ctx.assets.get(path).cloned().unwrap_or_default();
            return Ok(Outcome::new(json!({"message": String::from_utf8_lossy(&bytes)}), ""));
        }
        Ok(Outcome::new(config, ""))
    }
}

/// `make`, whose output is its value.
struct Make;

#[async_trait]
impl Performer for Make {
    fn kind(&self) -> StepType {
        StepType::new("make", Class::Evaluated, closed(&json!({"value": any()}), &["value"]), any())
    }

    async fn perform(&self, config: Value, _: &Ctx) -> Result<Outcome, Failed> {
        Ok(Outcome::new(config.get("value").cloned().unwrap_or_default(), ""))
    }
}

pub(crate) struct World {
    pub(crate) home: tempfile::TempDir,
    pub(crate) done: Arc<Done>,
    pub(crate) options: Options,
    /// What tokens allow.
    pub(crate) rights: Arc<dyn Rights>,
}

impl World {
    /// A world with workflows, each the nodes of a graph.
    pub(crate) fn new(workflows: &[(&str, &str)]) -> Self {
        let home = tempfile::tempdir().unwrap();
        for (name, nodes) in workflows {
            write(&home.path().join("workflows"), name, nodes);
        }
        let options = Options { runs_per_minute: u32::MAX, ..Options::default() };
        Self { home, done: Arc::default(), options, rights: Arc::new(NoTokens) }
    }

    pub(crate) fn store(&self) -> cairn_store::Store {
        cairn_store::open(&cairn_store::Config::files(self.home.path().join("data"))).unwrap()
    }

    /// An engine that knows nothing but what is stored.
    pub(crate) fn engine(&self) -> Automations {
        self.engine_on(self.store())
    }

    pub(crate) fn engine_on(&self, store: cairn_store::Store) -> Automations {
        self.engine_in("workflows", store)
    }

    /// An engine whose workflows are in a folder of this world.
    pub(crate) fn engine_in(&self, folder: &str, store: cairn_store::Store) -> Automations {
        self.engine_of(SourceKind::Project, folder, store)
    }

    /// An engine whose workflows are of a kind.
    pub(crate) fn engine_of(
        &self,
        kind: SourceKind,
        folder: &str,
        store: cairn_store::Store,
    ) -> Automations {
        let root: PathBuf = self.home.path().join(folder);
        let directory = Directory { kind, root };
        let performers =
            Performers::new(vec![Arc::new(Log(Arc::clone(&self.done))), Arc::new(Make)]);
        let parts = Parts {
            host: SystemHost::shared(),
            store,
            catalog: Arc::new(Catalog::new(vec![directory]).knowing(types(&performers))),
            types: types(&performers),
            performers,
            environment: Arc::new(NoSettings),
            evaluator: Arc::new(NoEvaluator),
            rights: Arc::clone(&self.rights),
        };
        Automations::new(parts, self.options.clone())
    }

    pub(crate) fn tries(&self) -> Vec<u32> {
        self.done.keys.lock().unwrap().values().copied().collect()
    }
}

fn types(performers: &Performers) -> Types {
    let trigger = |name: &str| TriggerType {
        name: name.to_owned(),
        input: json!({"type": "object", "properties": {"require_role": {"type": "string"}, "workflows": {"type": "array"}}}),
        payload: None,
        check: |_| Vec::new(),
    };
    let steps = interpreted::all().into_iter().chain(performers.kinds());
    Types::new(steps).with_triggers(["error", "manual"].map(trigger))
}

pub(crate) fn write(root: &Path, name: &str, nodes: &str) {
    let folder = root.join(name);
    std::fs::create_dir_all(&folder).unwrap();
    let text = match nodes.contains("graph:") {
        true => nodes.to_owned(),
        false => {
            let nodes: String =
                nodes.trim().lines().map(|l| format!("    - {}\n", l.trim())).collect();
            format!("name: {name}\ngraph:\n  nodes:\n{nodes}")
        }
    };
    std::fs::write(folder.join("workflow.yaml"), text).unwrap();
}

pub(crate) fn request(workflow: &str, payload: Value) -> RunRequest {
    let event = TriggerEvent { payload, kind: "manual".to_owned(), ..TriggerEvent::default() };
    let (trigger, key, roles) = (None, None, Roles::Any);
    let (workflow, by) = (workflow.to_owned(), "tester".into());
    RunRequest { workflow, trigger, key, event, depth: 0, by, roles }
}

/// Runs a workflow to its end.
pub(crate) async fn run(engine: &Automations, workflow: &str, payload: Value) -> (Ended, Past) {
    let asked = engine.submit(request(workflow, payload)).await.unwrap();
    let ended = engine.ended(asked.run);
    let ended = tokio::time::timeout(Duration::from_secs(20), ended).await.unwrap().unwrap();
    let past = engine.past(asked.run).await.unwrap();
    (ended, past)
}

/// The kinds of everything that is recorded of a run.
pub(crate) fn kinds(past: &Past) -> Vec<&'static str> {
    past.events.iter().map(|event| event.data.kind().name()).collect()
}

pub(crate) fn result(ended: &Ended) -> Value {
    json!({"status": format!("{:?}", ended.status), "result": ended.result})
}
