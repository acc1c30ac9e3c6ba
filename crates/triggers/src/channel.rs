//! `channel`: fires when a message of a channel fits.
//!
//! A channel describes itself: the events that it can tell of, the ids by which they are
//! filtered, and the actions that steps can ask for. The trigger knows no channel by name.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cairn_core::catalog::{SettingFault, TriggerType};
use cairn_engine::trigger::{Firing, Message, Messages, Trigger, Watch};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::settings::{self, closed, flag, text};

/// The channels that are connected.
#[derive(Clone, Debug, Default)]
pub struct Channels(Arc<BTreeMap<String, ChannelType>>);

/// A channel, as it describes itself.
#[derive(Clone, PartialEq, Debug)]
pub struct ChannelType {
    /// What workflows call it.
    pub name: String,
    /// What can happen in it.
    pub events: Vec<EventType>,
    /// What steps can do in it.
    pub actions: Vec<ActionType>,
}

/// Something that can happen in a channel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EventType {
    /// What workflows call it, such as `message`.
    pub name: String,
    /// What it tells of.
    pub description: String,
    /// The ids that it can be filtered by, such as `channel_id`.
    pub ids: Vec<String>,
}

/// Something that steps can do in a channel.
#[derive(Clone, PartialEq, Debug)]
pub struct ActionType {
    /// What workflows call it, such as `send_message`.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The JSON schema of what it needs.
    pub input: Value,
    /// The JSON schema of what comes of it.
    pub output: Value,
}

impl Channels {
    /// These channels.
    #[must_use]
    pub fn new(all: Vec<ChannelType>) -> Self {
        Self(Arc::new(all.into_iter().map(|channel| (channel.name.clone(), channel)).collect()))
    }

    /// The channel with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&ChannelType> {
        self.0.get(name)
    }

    /// The channels, by name.
    pub fn all(&self) -> impl Iterator<Item = &ChannelType> {
        self.0.values()
    }
}

/// The type.
pub struct Channel {
    channels: Channels,
}

#[derive(Deserialize)]
struct Input {
    channel: String,
    event: Option<String>,
    #[serde(default)]
    r#match: Map<String, Value>,
    match_enabled: Option<bool>,
    reply_source: Option<bool>,
    target: Option<String>,
}

/// The messages of one trigger.
#[derive(Debug)]
pub struct Filter {
    channel: String,
    event: String,
    /// Without it every message fits.
    rules: Option<Rules>,
    replies: bool,
}

#[derive(Debug, Default)]
struct Rules {
    /// Whether what fits the ids is left out, and not taken.
    excludes: bool,
    ids: BTreeMap<String, BTreeSet<String>>,
    text: Option<String>,
    mention: Option<bool>,
    /// The name of the place that messages come from, such as `#support`.
    target: Option<String>,
}

impl Channel {
    /// The type, with the channels that there are.
    #[must_use]
    pub const fn new(channels: Channels) -> Self {
        Self { channels }
    }

    /// Says what the connected channels do not have. A workflow compiles without them: which
    /// are connected is a matter of the machine that it runs on.
    fn unconnected(&self, filter: &Filter) -> Vec<SettingFault> {
        let Some(channel) = self.channels.get(&filter.channel) else {
            let known: Vec<&str> = self.channels.all().map(|c| c.name.as_str()).collect();
            let message = format!("the channel `{}` is not connected", filter.channel);
            return vec![SettingFault::new("channel", message, connected(&known))];
        };
        let Some(event) = channel.events.iter().find(|event| event.name == filter.event) else {
            let known: Vec<&str> = channel.events.iter().map(|event| event.name.as_str()).collect();
            let message = format!("`{}` has no event `{}`", channel.name, filter.event);
            return vec![SettingFault::new("event", message, connected(&known))];
        };
        let asked = filter.rules.iter().flat_map(|rules| rules.ids.keys());
        asked
            .filter(|name| !event.ids.contains(*name))
            .map(|name| {
                let message = format!("`{}` cannot be filtered by `{name}`", event.name);
                let known: Vec<&str> = event.ids.iter().map(String::as_str).collect();
                SettingFault::new(format!("match.{name}"), message, connected(&known))
            })
            .collect()
    }
}

fn connected(known: &[&str]) -> String {
    match known {
        [] => "connect it first".to_owned(),
        known => format!("there are {}", known.join(", ")),
    }
}

impl Trigger for Channel {
    fn kind(&self) -> TriggerType {
        let properties = json!({
            "channel": text("The channel, such as slack."),
            "event": text("What happens there; `message` when it is left out."),
            "match": {"type": "object", "description": "Which of it: `mode` (whitelist or blacklist), ids as a list of `{id, name}`, `text_contains`, `mention_bot`."},
            "match_enabled": flag("Whether `match` counts; without it everything fits."),
            "reply_source": flag("Whether the result goes back to where the message came from."),
            "target": text("The name of the place that messages come from, such as #support."),
        });
        let example = json!({"type": "channel", "channel": "slack", "event": "message", "match": {"mention_bot": true}});
        TriggerType {
            name: "channel".to_owned(),
            input: closed(
                properties,
                &["channel"],
                "Fires when a message of a channel fits.",
                example,
            ),
            payload: None,
            check: |config| settings::faults(config, Filter::read),
        }
    }

    fn watch(&self, config: &Value) -> Result<Watch, Vec<SettingFault>> {
        let filter = Filter::read(settings::read(config)?)?;
        let faults = self.unconnected(&filter);
        Ok(match faults.first() {
            None => Watch::Messages(Arc::new(filter)),
            Some(SettingFault { message, hint, .. }) => {
                Watch::Unconnected(format!("{message}; {hint}"))
            }
        })
    }
}

impl Filter {
    fn read(input: Input) -> Result<Self, Vec<SettingFault>> {
        let rules = Rules::read(&input.r#match, input.target)?;
        Ok(Self {
            channel: input.channel,
            event: input.event.unwrap_or_else(|| "message".to_owned()),
            rules: input.match_enabled.unwrap_or(true).then_some(rules),
            replies: input.reply_source.unwrap_or(true),
        })
    }
}

impl Rules {
    fn read(given: &Map<String, Value>, target: Option<String>) -> Result<Self, Vec<SettingFault>> {
        let mut rules = Self { target, ..Self::default() };
        let mut faults = Vec::new();
        for (name, value) in given {
            let mut refuse = |message: &str, hint: &str| {
                let message = format!("`{name}` {message}");
                faults.push(SettingFault::new(format!("match.{name}"), message, hint));
            };
            match (name.as_str(), value) {
                ("mode", Value::String(mode)) if mode == "whitelist" => rules.excludes = false,
                ("mode", Value::String(mode)) if mode == "blacklist" => rules.excludes = true,
                ("mode", _) => refuse("is neither of the two", "write whitelist or blacklist"),
                ("text_contains", Value::String(text)) => rules.text = Some(text.to_lowercase()),
                ("text_contains", _) => refuse("is not text", "write the text to look for"),
                ("mention_bot", Value::Bool(mention)) => rules.mention = Some(*mention),
                ("mention_bot", _) => refuse("is not yes or no", "write true or false"),
                (_, value) => match ids(value) {
                    Some(ids) => drop(rules.ids.insert(name.clone(), ids)),
                    None => refuse(
                        "is not a list of ids",
                        "write a list such as `[{id: C123, name: general}]`",
                    ),
                },
            }
        }
        if faults.is_empty() { Ok(rules) } else { Err(faults) }
    }

    fn fit(&self, message: &Message) -> bool {
        let text = self.text.as_ref().is_none_or(|text| message.text.to_lowercase().contains(text));
        let mention = self.mention.is_none_or(|mention| message.mentions_bot == mention);
        let target = self.target.as_ref().is_none_or(|target| {
            let named = message.ids.get("channel_name").or_else(|| message.ids.get("channel_id"));
            named.is_some_and(|name| name.trim_start_matches('#') == target.trim_start_matches('#'))
        });
        let holds = |(name, ids): (&String, &BTreeSet<String>)| {
            message.ids.get(name).is_some_and(|id| ids.contains(id))
        };
        let ids = match self.excludes {
            // Whoever is on any of the lists is left out.
            true => !self.ids.iter().any(holds),
            false => self.ids.iter().filter(|(_, ids)| !ids.is_empty()).all(holds),
        };
        text && mention && target && ids
    }
}

/// The ids of a list of `{id, name}`, of a list of ids, or of either as text.
fn ids(value: &Value) -> Option<BTreeSet<String>> {
    match value {
        Value::String(text) if text.trim_start().starts_with('[') => {
            ids(&serde_json::from_str(text).ok().filter(Value::is_array)?)
        }
        Value::String(id) => Some(BTreeSet::from([id.clone()])),
        Value::Array(items) => {
            let id = |item: &Value| item.get("id").unwrap_or(item).as_str().map(str::to_owned);
            items.iter().map(id).collect()
        }
        _ => None,
    }
}

impl Messages for Filter {
    fn channel(&self) -> &str {
        &self.channel
    }

    fn firing(&self, message: &Message) -> Option<Firing> {
        if message.channel != self.channel || message.event != self.event {
            return None;
        }
        if !self.rules.as_ref().is_none_or(|rules| rules.fit(message)) {
            return None;
        }
        let event = json!({
            "channel": message.channel, "source": message.ids, "text": message.text,
            "thread": message.thread, "user": message.user,
        });
        let event = event.as_object().cloned().unwrap_or_default();
        let key = format!("{}/{}", message.event, message.id);
        Some(Firing { event, ..Firing::new(key, message.payload.clone()) })
    }

    fn replies(&self) -> bool {
        self.replies
    }
}

#[cfg(test)]
mod tests;
