//! Triggers: what starts runs, one for each type.
//!
//! A trigger reads its settings once and then says, without clock, network or store, when
//! it fires, or whether something that arrived is meant for it. Whoever keeps time and takes
//! requests asks it, and records each [`Firing`] under its key before a run begins.

pub mod input;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use cairn_core::catalog::{SettingFault, TriggerType};
use cairn_core::plan::Plan;
use cairn_core::text::Slug;
use serde_json::{Map, Value};

use crate::secrets::Secret;

/// A type of trigger.
pub trait Trigger: Send + Sync {
    /// Its name, its settings, and what can be wrong with them.
    fn kind(&self) -> TriggerType;

    /// Reads the settings of one trigger. The compiler has checked them; a plan from
    /// elsewhere may not be.
    fn watch(&self, config: &Value) -> Result<Watch, Vec<SettingFault>>;
}

/// How a trigger is watched.
#[derive(Clone)]
pub enum Watch {
    /// By the clock.
    Times(Arc<dyn Times>),
    /// By requests that arrive.
    Hook(Arc<dyn Hook>),
    /// By messages of a channel.
    Messages(Arc<dyn Messages>),
    /// By people and programs that start a run.
    Call(Arc<dyn Call>),
    /// By runs that fail, which the engine sees itself.
    Failures,
    /// By nothing: what it waits for is not connected here, as these words say.
    Unconnected(String),
}

/// What starts one run.
#[derive(Clone, PartialEq, Debug)]
pub struct Firing {
    /// What tells it from every other firing of the trigger: the same key is the same run.
    pub key: String,
    /// The key that it has when it came before, a little while ago. A firing that is known
    /// under that one is no new one.
    pub earlier: Option<String>,
    /// What steps see as `event.payload`.
    pub payload: Value,
    /// What steps see beside it: `source`, and of a message `channel`, `text`, `thread`, `user`.
    pub event: Map<String, Value>,
}

impl Firing {
    /// A firing that has nothing but a payload.
    #[must_use]
    pub fn new(key: impl Into<String>, payload: Value) -> Self {
        Self { key: key.into(), earlier: None, payload, event: Map::new() }
    }
}

/// A trigger that the clock fires. All times are in milliseconds since 1970.
pub trait Times: Send + Sync {
    /// The first instant after this one.
    fn next_after(&self, ms: u64) -> Option<u64>;

    /// The instants to fire at when it is `now_ms`, and everything up to `last_ms` was seen
    /// to. What was missed is fired as the settings say. When the clock went back there
    /// are none.
    fn due(&self, last_ms: u64, now_ms: u64) -> Vec<u64>;

    /// An instant as the clock of the trigger's own zone shows it, if it has one.
    fn local(&self, _at_ms: u64) -> Option<String> {
        None
    }

    /// What starts the run of an instant. Its key is the instant.
    fn firing(&self, at_ms: u64) -> Firing;
}

/// A trigger that a request fires.
pub trait Hook: Send + Sync {
    /// Where requests go, from the first `/` on.
    fn path(&self) -> &str;

    /// The methods that it takes, in capitals. Whatever else is sent there is not meant for it.
    fn methods(&self) -> &[String];

    /// When the sender gets its answer.
    fn respond(&self) -> Respond;

    /// How many bytes a body may have. The caller reads no more than that.
    fn body_max(&self) -> usize;

    /// The name of the secret that signs requests.
    fn secret(&self) -> &str;

    /// Why nothing can be signed with a secret, as in "the secret … is empty".
    fn fault(&self, secret: &Secret) -> Option<&'static str>;

    /// How long a secret stays good after another took its place.
    fn grace_ms(&self) -> u64;

    /// The headers of a request that whoever has the secret sends with this body; none when
    /// nothing can be signed with it.
    fn sign(
        &self,
        body: &[u8],
        id: &str,
        now_ms: u64,
        secret: &Secret,
    ) -> Option<Vec<(String, String)>>;

    /// Says whether a request is genuine, and what starts its run.
    fn verify(
        &self,
        request: &Request<'_>,
        now_ms: u64,
        secrets: &[HookSecret],
    ) -> Result<Firing, Refusal>;
}

/// A secret that may have signed a request.
#[derive(Clone, Debug)]
pub struct HookSecret {
    /// Its value.
    pub secret: Secret,
    /// Until when it is good; for good when nothing took its place.
    pub until_ms: Option<u64>,
}

/// When the sender of a request gets its answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Respond {
    /// As soon as the request is recorded.
    Immediately,
    /// When the run is over, with its result.
    LastStep,
    /// When a step answers.
    RespondStep,
}

/// A request, as far as a trigger looks at it.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// Its method, in capitals.
    pub method: &'a str,
    /// Its path, from the first `/` of the trigger's own on.
    pub path: &'a str,
    /// What stands behind the `?`, as it was sent.
    pub query: &'a str,
    /// Its headers in their order; names in any case.
    pub headers: &'a [(Cow<'a, str>, Cow<'a, [u8]>)],
    /// Its body, byte for byte.
    pub body: &'a [u8],
    /// Who is at the other end of the connection.
    pub peer: IpAddr,
}

/// Why a request starts nothing. The sender learns the status and the code, and no more.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{code}")]
pub struct Refusal {
    /// The HTTP status.
    pub status: u16,
    /// A stable name, such as `WEBHOOK_SIGNATURE_BAD`.
    pub code: &'static str,
}

/// A trigger that messages of a channel fire.
pub trait Messages: Send + Sync {
    /// The channel that it listens to.
    fn channel(&self) -> &str;

    /// Whether a message starts a run, and with what.
    fn firing(&self, message: &Message) -> Option<Firing>;

    /// Whether the run's result goes back to where the message came from.
    fn replies(&self) -> bool;
}

/// Something that happened in a channel.
#[derive(Clone, PartialEq, Debug)]
pub struct Message {
    /// The channel's name, such as `slack`.
    pub channel: String,
    /// What happened, such as `message`.
    pub event: String,
    /// The channel's own id of it: a redelivery has the same.
    pub id: String,
    /// What was written.
    pub text: String,
    /// Who wrote it.
    pub user: Option<String>,
    /// The conversation that it belongs to.
    pub thread: Option<String>,
    /// Whether the program itself was addressed.
    pub mentions_bot: bool,
    /// The ids that filters look at, such as `channel_id` and `user_id`.
    pub ids: BTreeMap<String, String>,
    /// Everything else, as the channel gave it.
    pub payload: Value,
}

/// A trigger that people and programs fire.
pub trait Call: Send + Sync {
    /// The JSON schema of what they give.
    fn input(&self) -> &Value;

    /// The role that a caller needs.
    fn role(&self) -> Option<&str>;

    /// What a run begins with: the input with its defaults, or what is wrong with it.
    fn fill(&self, input: Value) -> Result<Value, Vec<SettingFault>>;
}

/// The triggers there are, by type.
#[derive(Clone, Default)]
pub struct Triggers(BTreeMap<String, Arc<dyn Trigger>>);

impl Triggers {
    /// These triggers.
    #[must_use]
    pub fn new(all: Vec<Arc<dyn Trigger>>) -> Self {
        Self(all.into_iter().map(|trigger| (trigger.kind().name, trigger)).collect())
    }

    /// The type of trigger with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Trigger>> {
        self.0.get(name)
    }

    /// The trigger of a workflow that people and programs fire, and what it takes. Where runs
    /// begin only at triggers and several are for them, it is for them to say which.
    #[must_use]
    pub fn call(&self, plan: &Plan) -> Option<(Slug, Arc<dyn Call>)> {
        let mut called = plan.triggers.iter().filter_map(|trigger| {
            let kind = self.get(trigger.r#type.as_str())?;
            match kind.watch(&trigger.config.0).ok()? {
                Watch::Call(call) => Some((trigger.id.clone(), call)),
                _ => None,
            }
        });
        let first = called.next()?;
        (called.next().is_none() || !plan.entry.is_empty()).then_some(first)
    }

    /// What the compiler needs to know of them, by name.
    pub fn kinds(&self) -> impl Iterator<Item = TriggerType> {
        self.0.values().map(|trigger| trigger.kind())
    }
}
