//! What the operator says about providers, presets and models.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use url::{Host, Url};

use super::models::Models;
use super::request::{Refusal, RefusalKind, STALL};
use super::{Choice, Resolved, usual};

/// Everything that the operator says.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// Providers, by name.
    pub providers: BTreeMap<String, ProviderSettings>,
    /// Presets, by name.
    pub presets: BTreeMap<String, Preset>,
    /// What models cost.
    pub models: Models,
    /// The provider of a step that names none.
    pub default_provider: Option<String>,
    /// The model of a step that names none.
    pub default_model: Option<String>,
    /// How long an agent may say nothing.
    pub stall: Duration,
    /// The project and the home in which skills are looked for.
    pub skill_places: Vec<PathBuf>,
}

impl Default for Configuration {
    fn default() -> Self {
        Self {
            providers: usual(),
            presets: BTreeMap::new(),
            models: Models::default(),
            default_provider: None,
            default_model: None,
            stall: STALL,
            skill_places: Vec::new(),
        }
    }
}

/// What the operator says about a provider.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProviderSettings {
    /// Which kind it is.
    pub kind: String,
    /// The program, where it is one.
    pub command: Option<PathBuf>,
    /// What the program is given before all else.
    pub args: Vec<String>,
    /// The endpoint, when it is not the vendor's.
    pub base_url: Option<String>,
    /// The name of the secret that is its key.
    pub api_key: Option<String>,
    /// Who is logged in.
    pub login: Login,
    /// The model of a step that names none.
    pub model: Option<String>,
    /// A file with answers, for `scripted`.
    pub file: Option<PathBuf>,
}

impl ProviderSettings {
    /// A provider of this kind of which nothing is said.
    #[must_use]
    pub fn of(kind: &str) -> Self {
        Self {
            kind: kind.to_owned(),
            command: None,
            args: Vec::new(),
            base_url: None,
            api_key: None,
            login: Login::Key,
            model: None,
            file: None,
        }
    }
}

impl ProviderSettings {
    /// What is wrong with the endpoint, if something is. With a key or a login it has to be
    /// reached over TLS, or be on this machine.
    #[must_use]
    pub fn base_url_fault(&self, has_key: bool) -> Option<&'static str> {
        let base = self.base_url.as_deref()?;
        let Ok(url) = Url::parse(base) else { return Some("is not an address") };
        if !url.username().is_empty() || url.password().is_some() {
            return Some("holds a user or a password; name the key with `api_key`");
        }
        let is_here = match url.host() {
            Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            None => return Some("is not an address"),
        };
        match url.scheme() {
            "https" => None,
            "http" if is_here || !(has_key || self.login == Login::User) => None,
            "http" => {
                Some("would send the key without TLS; use `https`, or an endpoint on this machine")
            }
            _ => Some("is not an `https` or `http` address"),
        }
    }
}

/// Who is logged in to a command-line agent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Login {
    /// Whoever has the key; the user's own settings are not read.
    #[default]
    Key,
    /// The user that runs the engine, by the agent's own login.
    User,
}

/// A named way to ask.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Preset {
    pub provider: Option<String>,
    pub model: Option<String>,
    /// What the model is told about its part.
    pub system: Option<String>,
    pub turns_max: Option<u32>,
    pub tokens_max: Option<u64>,
}

impl Configuration {
    /// Who does what is asked.
    pub(super) fn resolve(&self, choice: &Choice<'_>) -> Result<Resolved, Refusal> {
        let preset = match choice.preset {
            Some(name) => self.presets.get(name).cloned().ok_or_else(|| {
                let hint = "add it to the configuration as `[presets.NAME]`";
                unknown("preset", name, self.presets.keys(), hint)
            })?,
            None => Preset::default(),
        };
        let asked = choice.provider.or(preset.provider.as_deref());
        let Some(name) = asked.or(self.default_provider.as_deref()) else {
            let message = "no provider is set; give the step a `provider`, or set \
                           `agents.default_provider` in the configuration";
            return Err(Refusal::new(RefusalKind::Unconfigured, message));
        };
        let settings = self.providers.get(name).cloned().ok_or_else(|| {
            let hint = "add it to the configuration as `[providers.NAME]`";
            unknown("provider", name, self.providers.keys(), hint)
        })?;
        // The usual model is one of the usual provider.
        let usual = self
            .default_model
            .as_deref()
            .filter(|_| asked.is_none() || self.default_provider.as_deref() == Some(name));
        let model = choice.model.or(preset.model.as_deref()).or(settings.model.as_deref());
        let model = model.or(usual).map(str::to_owned);
        Ok(Resolved { name: name.to_owned(), settings, model, preset })
    }
}

fn unknown<'a>(
    what: &str,
    name: &str,
    known: impl Iterator<Item = &'a String>,
    hint: &str,
) -> Refusal {
    let known: Vec<&str> = known.map(String::as_str).collect();
    let near = super::structured::nearest(name, &known);
    let next = match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("{hint}; there are {}", listed(&known)),
    };
    Refusal::new(RefusalKind::Unconfigured, format!("there is no {what} `{name}`; {next}"))
}

fn listed(known: &[&str]) -> String {
    match known {
        [] => "none".to_owned(),
        known => known.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Configuration {
        let mut sample = Configuration::default();
        let cheap = Preset {
            provider: Some("claude".into()),
            model: Some("haiku".into()),
            ..Preset::default()
        };
        sample.presets.insert("classifier-cheap".into(), cheap);
        sample
    }

    fn told(choice: Choice<'_>) -> String {
        match sample().resolve(&choice) {
            Ok(who) => format!("{} {}", who.name, who.model.unwrap_or_default()),
            Err(refusal) => format!("{}: {}", refusal.kind.code(), refusal.message),
        }
    }

    #[test]
    fn a_step_comes_before_its_preset_and_that_before_what_is_usual() {
        let preset = Some("classifier-cheap");
        assert_eq!(told(Choice { preset, ..Choice::default() }), "claude haiku");
        let model = Some("opus");
        assert_eq!(told(Choice { preset, model, ..Choice::default() }), "claude opus");
        let provider = Some("codex");
        assert_eq!(told(Choice { preset, provider, ..Choice::default() }), "codex haiku");
    }

    // case: agent.key-tls
    #[test]
    fn a_key_goes_over_tls_or_stays_here() {
        let settings = |base: &str, login| ProviderSettings {
            base_url: Some(base.to_owned()),
            login,
            ..ProviderSettings::of("openai")
        };
        let fault = |base, has_key| settings(base, Login::Key).base_url_fault(has_key);
        for base in [
            "https://api.example.com/v1",
            "http://localhost:11434/v1",
            "http://127.0.0.1:8080",
            "http://127.9.9.9",
            "http://[::1]:1",
        ] {
            assert_eq!(fault(base, true), None, "{base}");
        }
        for base in [
            "http://api.example.com",
            "http://192.168.1.5:11434",
            "http://localhost.example.com",
            "http://notlocalhost",
            "http://127.0.0.1.nip.io",
            "http://0.0.0.0:1",
        ] {
            assert!(fault(base, true).unwrap().contains("TLS"), "{base}");
            assert_eq!(fault(base, false), None, "{base}");
            let login = settings(base, Login::User).base_url_fault(false);
            assert!(login.unwrap().contains("TLS"), "{base}");
        }
        for base in
            ["", "api.example.com", "ftp://x", "file:///etc/passwd", "https://u:p@x.example"]
        {
            assert!(fault(base, false).is_some(), "{base}");
        }
        assert_eq!(ProviderSettings::of("openai").base_url_fault(true), None);
    }

    #[test]
    fn what_is_not_there_is_told_with_the_nearest_name() {
        let preset = Some("clasifier-cheap");
        assert_eq!(
            told(Choice { preset, ..Choice::default() }),
            "AGENT_UNCONFIGURED: there is no preset `clasifier-cheap`; did you mean `classifier-cheap`?"
        );
        let provider = Some("cluade");
        assert!(told(Choice { provider, ..Choice::default() }).ends_with("did you mean `claude`?"));
        assert!(told(Choice::default()).contains("agents.default_provider"));
    }
}
