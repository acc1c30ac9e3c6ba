//! The world outside: what steps do there, and the settings that people give or forget.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use cairn_core::catalog::{SettingFault, StepType};
use cairn_core::plan::Plan;
use cairn_engine::catalog::Identity;
use cairn_engine::flow::{Bindings, Environment};
use cairn_engine::performer::{Ctx, Failed, FailureKind, Outcome, Performer};
use cairn_engine::{Error, Result};
use serde_json::{Value, json};

use super::book::Book;
use super::executor::{Machine, Process};
use super::weather::Weather;
use super::workflows;

/// Does steps, slowly and not always well.
pub(super) struct Act {
    pub(super) machine: Machine,
    pub(super) process: Process,
    pub(super) book: Book,
}

#[async_trait]
impl Performer for Act {
    fn kind(&self) -> StepType {
        workflows::act()
    }

    async fn perform(&self, config: Value, ctx: &Ctx) -> std::result::Result<Outcome, Failed> {
        let Some(step) = &ctx.trace else { return Err(Failed::new("NO_TRACE", "no try")) };
        let step = (step.run, step.instance.clone(), step.attempt);
        self.book.open().performs(self.process, step, ctx.idempotency_key);
        let say = config.get("say").and_then(Value::as_str).unwrap_or_default();
        let pause = match say {
            "slow" => self.machine.below(3_000),
            _ => self.machine.below(20),
        };
        if pause > 4 {
            self.machine.sleep(Duration::from_millis(pause as u64)).await;
        }
        if say == "flaky" && self.machine.percent(50) {
            let kind = FailureKind::Connection;
            return Err(Failed { kind, ..Failed::new("FLAKY", "it happens") });
        }
        Ok(Outcome::new(json!({"said": say, "number": 600.0}), ""))
    }
}

/// The settings that people give.
pub(super) struct People {
    pub(super) machine: Machine,
    /// Whether somebody forgot one.
    pub(super) forgot: Arc<AtomicBool>,
    pub(super) weather: Weather,
}

#[async_trait]
impl Environment for People {
    async fn settings(&self, _: &Identity, plan: &Plan) -> Result<Value> {
        self.machine.sleep(Duration::from_micros(200)).await;
        if plan.workflow_id != workflows::NEEDY {
            return Ok(json!({}));
        }
        if self.forgot.load(Ordering::Relaxed) {
            self.weather.hit("setting missing");
            let fault = SettingFault {
                field: "SITE".to_owned(),
                message: "it has no value".to_owned(),
                hint: "give it one".to_owned(),
            };
            return Err(Error::SettingsInvalid { path: "env".to_owned(), faults: vec![fault] });
        }
        Ok(json!({"SITE": "here"}))
    }

    async fn secrets(&self, _: &Identity, _: &Plan) -> Result<Bindings> {
        Ok(Bindings::default())
    }
}
