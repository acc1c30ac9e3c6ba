//! Models and agents that work is handed to: one file for each provider, behind one trait.
//!
//! Whoever has work for an agent makes a [`Request`], lets [`Agents::resolve`] say who does it,
//! and calls [`Agents::ask`]. What comes back is a [`Reply`], or a [`Refusal`] whose kind says
//! which of the known ways it went wrong. Neither needs a step around it.
//!
//! In reading order: what is asked and answered (`request`), what the operator says
//! (`configuration`), the price of models (`models`), asking (here), how a structured answer is
//! found (`structured`), the command-line agents (`cli`, then `claude`, `codex`, `gemini` and
//! `command`), the model endpoints (`endpoint`, then `anthropic` and `openai`), answers from a
//! file (`scripted`), and skills (`skills`).

mod anthropic;
mod claude;
mod cli;
mod codex;
mod command;
mod configuration;
mod endpoint;
mod gemini;
mod models;
mod openai;
mod request;
mod scripted;
mod skills;
mod state;
mod structured;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use cairn_core::event::engine::Usage;
use cairn_engine::redact::Redactor;
use cairn_engine::secrets::Secret;

use crate::process;
pub use configuration::{Configuration, Login, Preset, ProviderSettings};
use endpoint::Endpoint;
pub use models::{Model, Models};
pub use request::{Kept, Progress, Refusal, RefusalKind, Reply, Request, Session, Used};
pub use skills::Skill;

/// Runs a model, or an agent around one.
#[async_trait]
pub trait Provider: Send + Sync {
    /// What the configuration calls this kind of provider.
    fn kind(&self) -> &'static str;

    /// What it can do.
    fn capabilities(&self) -> Capabilities;

    /// The secret that it usually needs, by name.
    fn key_name(&self) -> Option<&'static str> {
        None
    }

    /// Hands a piece of work over, and waits for its end. Whoever drops the future calls it off.
    async fn ask(&self, request: &Request, means: &Means<'_>) -> Result<Reply, Refusal>;

    /// Says which version is there, without asking a model anything.
    async fn check(&self, means: &Means<'_>) -> Result<String, Refusal>;

    /// The folders in which it looks for skills, from a project or a home.
    fn skill_folders(&self) -> &'static [&'static str] {
        &[]
    }
}

/// What a provider can do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Capabilities {
    /// Whether it holds an answer to a schema by itself.
    pub schema: bool,
    /// Whether a conversation can be gone on with.
    pub sessions: bool,
    /// Whether it has tools, and so works on files.
    pub tools: bool,
    /// Whether it is a program, which needs a folder to run in.
    pub program: bool,
}

/// What a provider works with.
pub struct Means<'a> {
    /// What the operator says about it.
    pub settings: &'a ProviderSettings,
    /// The key to it.
    pub key: Option<&'a Secret>,
    /// Takes the key out of what comes back.
    pub hidden: &'a Redactor,
    /// How programs are run.
    pub process: &'a process::Options,
    /// How endpoints are asked.
    pub(crate) endpoint: &'a Endpoint,
}

/// Every kind of provider, in alphabetical order.
const PROVIDERS: [&dyn Provider; 7] = [
    &anthropic::Anthropic,
    &claude::Claude,
    &codex::Codex,
    &command::Command,
    &gemini::Gemini,
    &openai::Openai,
    &scripted::Scripted,
];

/// The kinds of providers, by name.
#[must_use]
pub fn kinds() -> Vec<&'static str> {
    PROVIDERS.iter().map(|provider| provider.kind()).collect()
}

/// The agents whose programs are found here under their usual names.
#[must_use]
pub fn installed() -> Vec<&'static str> {
    ["claude", "codex", "gemini"]
        .into_iter()
        .filter(|name| cli::in_path(name.as_ref()).is_some())
        .collect()
}

/// The names of the secrets that are keys to the providers of a configuration, in order.
#[must_use]
pub fn key_names(configuration: &Configuration) -> Vec<String> {
    let name = |settings: &ProviderSettings| {
        let usual = || of_kind(&settings.kind)?.key_name().map(str::to_owned);
        settings.api_key.clone().or_else(usual)
    };
    let names: BTreeSet<String> = configuration.providers.values().filter_map(name).collect();
    names.into_iter().collect()
}

fn of_kind(kind: &str) -> Option<&'static dyn Provider> {
    PROVIDERS.into_iter().find(|provider| provider.kind() == kind)
}

/// Knows the keys to providers.
#[async_trait]
pub trait Credentials: Send + Sync {
    /// The secret of this name, for every workflow; none when there is none.
    async fn reveal(&self, name: &str) -> Result<Option<Secret>, String>;
}

/// Who is to do a piece of work, as far as somebody says.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Choice<'a> {
    pub provider: Option<&'a str>,
    pub preset: Option<&'a str>,
    pub model: Option<&'a str>,
}

/// Who does a piece of work.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The provider, as the configuration calls it.
    pub name: String,
    /// What the operator says about it.
    pub settings: ProviderSettings,
    /// The model; the provider's own choice when there is none.
    pub model: Option<String>,
    /// What the preset says.
    pub preset: Preset,
}

impl Resolved {
    /// What the provider can do.
    #[must_use]
    pub fn capabilities(&self) -> Capabilities {
        of_kind(&self.settings.kind).map(Provider::capabilities).unwrap_or_default()
    }
}

/// Hands work to providers.
#[derive(Clone)]
pub struct Agents {
    configuration: Arc<Configuration>,
    credentials: Option<Arc<dyn Credentials>>,
    process: process::Options,
    endpoint: Arc<Endpoint>,
}

impl Agents {
    /// The providers of a configuration.
    #[must_use]
    pub fn new(
        configuration: Configuration,
        credentials: Option<Arc<dyn Credentials>>,
        process: process::Options,
    ) -> Self {
        let endpoint = Arc::new(Endpoint::default());
        Self { configuration: Arc::new(configuration), credentials, process, endpoint }
    }

    /// What the operator says.
    #[must_use]
    pub fn configuration(&self) -> &Configuration {
        &self.configuration
    }

    /// Who does what is asked: what the choice names, then what its preset says, then what is
    /// usual.
    pub fn resolve(&self, choice: &Choice<'_>) -> Result<Resolved, Refusal> {
        self.configuration.resolve(choice)
    }

    /// Hands a piece of work over, and sees to it that nothing of the provider's key is in what
    /// comes back, that a structured answer is as its schema asks, and that it is known what was
    /// used up.
    pub async fn ask(&self, who: &Resolved, request: &Request) -> Result<Reply, Refusal> {
        let provider = self.provider(who)?;
        fits(provider, who, request)?;
        let key = self.key(provider, &who.settings).await?;
        let hidden = hidden(key.as_ref());
        let means = self.means(&who.settings, key.as_ref(), &hidden)?;
        match provider.ask(request, &means).await {
            Ok(mut reply) => {
                self.count(who, request, &mut reply.used, reply.text.len());
                structured::hold(reply, request)
            }
            Err(mut refusal) => {
                if refusal.used.launches > 0 {
                    self.count(who, request, &mut refusal.used, 0);
                }
                Err(refusal)
            }
        }
    }

    /// Says which version of a provider is there, and whether there is a key to it.
    pub async fn check(&self, name: &str) -> Result<String, Refusal> {
        let who = self.resolve(&Choice { provider: Some(name), ..Choice::default() })?;
        let provider = self.provider(&who)?;
        let key = self.key(provider, &who.settings).await?;
        let hidden = hidden(key.as_ref());
        provider.check(&self.means(&who.settings, key.as_ref(), &hidden)?).await
    }

    /// The skills that a provider finds in the project and in the home.
    pub fn skills(&self, name: &str) -> Result<Vec<Skill>, Refusal> {
        let who = self.resolve(&Choice { provider: Some(name), ..Choice::default() })?;
        let folders = self.provider(&who)?.skill_folders();
        Ok(skills::find(folders, &self.configuration.skill_places))
    }

    fn provider(&self, who: &Resolved) -> Result<&'static dyn Provider, Refusal> {
        of_kind(&who.settings.kind).ok_or_else(|| {
            let message = format!("`{}` is no kind of provider", who.settings.kind);
            Refusal::new(RefusalKind::Unconfigured, message)
        })
    }

    /// What a provider works with, unless that would send a key where others can read it.
    fn means<'m>(
        &'m self,
        settings: &'m ProviderSettings,
        key: Option<&'m Secret>,
        hidden: &'m Redactor,
    ) -> Result<Means<'m>, Refusal> {
        if let Some(fault) = settings.base_url_fault(key.is_some()) {
            let message = format!("`base_url` of the provider {fault}");
            return Err(Refusal::new(RefusalKind::Unconfigured, message));
        }
        Ok(Means { settings, key, hidden, process: &self.process, endpoint: &self.endpoint })
    }

    /// The key to a provider. One that is named has to be there; the usual one need not.
    async fn key(
        &self,
        provider: &dyn Provider,
        settings: &ProviderSettings,
    ) -> Result<Option<Secret>, Refusal> {
        let usual = provider.key_name().filter(|_| settings.login == Login::Key);
        let Some(name) = settings.api_key.as_deref().or(usual) else { return Ok(None) };
        let found = match &self.credentials {
            Some(credentials) => credentials.reveal(name).await.map_err(|error| {
                Refusal::new(RefusalKind::NotLoggedIn, format!("`{name}` cannot be read: {error}"))
            })?,
            None => None,
        };
        if found.is_none() && settings.api_key.is_some() {
            let message =
                format!("there is no secret `{name}`; set it with `cairn secret set {name}`");
            return Err(Refusal::new(RefusalKind::NotLoggedIn, message));
        }
        Ok(found)
    }

    /// Fills in what a provider did not report.
    fn count(&self, who: &Resolved, request: &Request, used: &mut Used, answered: usize) {
        used.provider = Some(who.name.clone());
        if used.model.is_none() {
            used.model = request.model.clone();
        }
        used.launches = used.launches.max(1);
        if used.input_tokens == 0 && used.output_tokens == 0 {
            let read = request.prompt.len() + request.system.as_ref().map_or(0, String::len);
            used.input_tokens = models::tokens(read);
            used.output_tokens = models::tokens(answered);
            used.estimated = true;
        }
        if used.cost_usd_micros.is_none() {
            let model =
                used.model.as_deref().and_then(|model| self.configuration.models.find(model));
            used.cost_usd_micros =
                model.map(|model| model.cost(used.input_tokens, used.output_tokens));
            used.estimated |= used.cost_usd_micros.is_some();
        }
    }
}

/// What takes a key out of what comes back.
fn hidden(key: Option<&Secret>) -> Redactor {
    Redactor::new(key.into_iter().map(|key| ("provider key", key)))
}

/// Whether a text can be an argument of a program and nothing else: it is one word of visible
/// signs, or several, and begins no option.
fn is_word(text: &str) -> bool {
    !text.is_empty() && !text.starts_with(['-', '+']) && !text.chars().any(char::is_control)
}

/// Refuses what a provider cannot do, and what would be more to it than a name.
fn fits(provider: &dyn Provider, who: &Resolved, request: &Request) -> Result<(), Refusal> {
    let given = request.model.iter().map(|model| ("model", model));
    let given = given.chain(request.tools.iter().map(|tool| ("allowed_tools", tool)));
    if let Some((field, text)) = given.into_iter().find(|(_, text)| !is_word(text)) {
        let message = format!(
            "`{}` in `{field}` is no name: it is empty, begins with `-` or `+`, or holds a \
             control character",
            text.escape_debug()
        );
        return Err(Refusal::new(RefusalKind::Unconfigured, message));
    }
    let can = provider.capabilities();
    let kind = provider.kind();
    let missing = match () {
        () if request.session != Session::New && !can.sessions => {
            "cannot keep a conversation; use `session: new`, or another provider"
        }
        () if !request.tools.is_empty() && !can.tools => {
            "has no tools; remove `allowed_tools`, or use `claude`, `codex` or `gemini`"
        }
        () => return Ok(()),
    };
    let message = format!("the provider `{}` ({kind}) {missing}", who.name);
    Err(Refusal::new(RefusalKind::Unconfigured, message))
}

/// What was used up, as an event has it.
#[must_use]
pub fn usage(used: &Used) -> Usage {
    Usage {
        cost_usd_micros: used.cost_usd_micros,
        estimated: used.estimated,
        input_tokens: used.input_tokens,
        launches: used.launches,
        model: used.model.clone(),
        output_tokens: used.output_tokens,
        provider: used.provider.clone(),
    }
}

/// Settings of providers by name, as a configuration begins: every kind under its own name.
fn usual() -> BTreeMap<String, ProviderSettings> {
    let one = |provider: &&dyn Provider| {
        (provider.kind().to_owned(), ProviderSettings::of(provider.kind()))
    };
    // A program has to be named.
    PROVIDERS.iter().filter(|provider| provider.kind() != "command").map(one).collect()
}
