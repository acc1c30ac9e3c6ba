//! `skill`: an agent uses one skill.

use std::time::Duration;

use async_trait::async_trait;
use cairn_core::catalog::schema::{any, closed, shown, text, told};
use cairn_core::catalog::{Class, StepType, Takes};
use cairn_engine::performer::{Ctx, Failed, Outcome, Performer};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::agent::{self, output_schema, shared, sinks};
use crate::agents::Agents;
use crate::ask;
use crate::process::STOP_MAX;
use crate::settings;

/// The channels whose actions are no skills.
const CHANNELS: [&str; 5] = ["email", "rest", "slack", "telegram", "whatsapp"];

pub(crate) struct Skill {
    agents: Agents,
}

impl Skill {
    pub(crate) const fn new(agents: Agents) -> Self {
        Self { agents }
    }
}

#[derive(Deserialize)]
struct Input {
    skill: String,
    #[serde(default)]
    args: Map<String, Value>,
}

#[async_trait]
impl Performer for Skill {
    fn kind(&self) -> StepType {
        let mut own = json!({
            "args": told(json!({"type": "object", "additionalProperties": any()}), "What the skill is given. What somebody sent is marked as such."),
            "skill": told(text(), "The skill, by name."),
        });
        if let (Some(own), Value::Object(shared)) = (own.as_object_mut(), shared()) {
            own.extend(shared);
        }
        let input = closed(&ask::settings(own), &["skill"]);
        let what = "Has an agent use one of its skills. It is an `agent` step whose prompt names the skill and its arguments.";
        let example = json!({
            "provider": "claude", "skill": "create-ticket",
            "args": {"title": "{{ event.payload.text | truncate(80) }}"},
        });
        let input = shown(told(input, what), &example);
        let own = [("args.**", Takes::Prompt), ("skill", Takes::Literal)];
        StepType::new("skill", Class::Effectful, input, output_schema()).taking(&sinks(&own))
    }

    async fn perform(&self, mut config: Value, ctx: &Ctx) -> Result<Outcome, Failed> {
        let Input { skill, args } = settings::read(config.clone())?;
        if let Some((channel, op)) = skill.split_once('.')
            && CHANNELS.contains(&channel)
        {
            let message = format!(
                "`{skill}` is an action of a channel, not a skill; write `type: channel`, \
                 `channel: {channel}`, `op: {op}` with the same `args`"
            );
            return Err(Failed::new("SKILL_IS_CHANNEL", message));
        }
        if let Some(config) = config.as_object_mut() {
            let args = Value::Object(args);
            let prompt = format!("Use the skill `{skill}` with these arguments:\n{args:#}");
            config.insert("prompt".to_owned(), json!(prompt));
            config.insert("skills".to_owned(), json!([skill]));
        }
        let input: agent::Input = settings::read(config)?;
        agent::work(&self.agents, &input, ctx).await
    }

    fn needs_workspace(&self, _: &Value) -> bool {
        true
    }

    fn grace(&self) -> Duration {
        STOP_MAX
    }
}
