//! What the configuration file says about agents: providers, presets and the prices of models.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use cairn_lang::diagnostic::nearest;
use cairn_steps::agents::{Configuration, Login, Model, Preset, ProviderSettings, kinds};
use serde_json::{Value, json};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Fault, choice, path, text, texts, wrong};

/// The keys that are not listed.
pub(super) const KEYS: [&str; 3] =
    ["agents.default_model", "agents.default_provider", "agents.stall_sec"];

/// Every key that the table of a provider may have.
const PROVIDER: [&str; 8] =
    ["api_key", "args", "base_url", "command", "file", "kind", "login", "model"];
/// Every key that the table of a preset may have.
const PRESET: [&str; 5] = ["max_tokens", "max_turns", "model", "provider", "system"];
/// Every key that the table of a model may have.
const MODEL: [&str; 2] = ["input_usd_per_mtok", "output_usd_per_mtok"];

/// One table of a list.
pub(super) struct Entry<'a, 't> {
    /// The list that it is in.
    pub(super) list: &'a str,
    /// Its name there.
    pub(super) name: &'a str,
    pub(super) table: &'a DeTable<'t>,
    pub(super) line: usize,
}

/// What the file says about agents.
#[derive(Default)]
pub(crate) struct Agents {
    providers: BTreeMap<String, ProviderSettings>,
    presets: BTreeMap<String, Preset>,
    models: BTreeMap<String, Model>,
    default_provider: Option<String>,
    default_model: Option<String>,
    stall: Option<Duration>,
    /// What it says as it is shown, each with its line.
    pub(super) said: BTreeMap<&'static str, (Value, usize)>,
}

impl Agents {
    /// Takes a key that is not listed.
    pub(super) fn take(
        &mut self,
        key: &str,
        value: &Spanned<DeValue<'_>>,
        line: usize,
    ) -> Result<(), Fault> {
        match key {
            "agents.default_model" => {
                let model = text(key, value, line)?;
                self.said.insert("agents.default_model", (json!(model), line));
                self.default_model = Some(model);
            }
            "agents.default_provider" => {
                let provider = text(key, value, line)?;
                self.said.insert("agents.default_provider", (json!(provider), line));
                self.default_provider = Some(provider);
            }
            _ => {
                let seconds = whole(key, value, line)?;
                self.said.insert("agents.stall_sec", (json!(seconds), line));
                self.stall = Some(Duration::from_secs(seconds));
            }
        }
        Ok(())
    }

    /// Takes a table of a list.
    pub(super) fn entry(
        &mut self,
        entry: &Entry<'_, '_>,
        line_at: &dyn Fn(usize) -> usize,
        folder: &Path,
    ) -> Result<(), Fault> {
        let name = entry.name.to_owned();
        let (list, names): (&'static str, Vec<String>) = match entry.list {
            "models" => {
                self.models.insert(name, model(entry, line_at)?);
                ("models", self.models.keys().cloned().collect())
            }
            "presets" => {
                self.presets.insert(name, preset(entry, line_at)?);
                ("presets", self.presets.keys().cloned().collect())
            }
            _ => {
                self.providers.insert(name, provider(entry, line_at, folder)?);
                ("providers", self.providers.keys().cloned().collect())
            }
        };
        let first = self.said.get(list).map_or(entry.line, |(_, first)| *first);
        self.said.insert(list, (json!(names), first));
        Ok(())
    }

    /// Says it to whoever hands out work.
    pub(super) fn configure(&self, configuration: &mut Configuration) {
        configuration.providers.extend(self.providers.clone());
        configuration.presets.extend(self.presets.clone());
        configuration.models.0.extend(self.models.clone());
        configuration.default_provider.clone_from(&self.default_provider);
        configuration.default_model.clone_from(&self.default_model);
        configuration.stall = self.stall.unwrap_or(configuration.stall);
    }
}

fn provider(
    entry: &Entry<'_, '_>,
    line_at: &dyn Fn(usize) -> usize,
    folder: &Path,
) -> Result<ProviderSettings, Fault> {
    let known = kinds();
    let mut settings = ProviderSettings::of(entry.name);
    let mut said_kind = None;
    for (key, value) in entry.table {
        let line = line_at(key.span().start);
        let whole = whole_name(entry, key.get_ref());
        match key.get_ref().as_ref() {
            "api_key" => settings.api_key = Some(text(&whole, value, line)?),
            "args" => settings.args = texts(&whole, value, line, "a list of arguments")?,
            "base_url" => settings.base_url = Some(text(&whole, value, line)?),
            "command" => {
                let given = text(&whole, value, line)?;
                // A bare name is looked for in the usual places.
                let bare = Path::new(&given).components().count() == 1;
                settings.command = Some(if bare { given.into() } else { folder.join(given) });
            }
            "file" => settings.file = Some(path(&whole, value, line, folder)?),
            "kind" => {
                let choices: Vec<(&'static str, &'static str)> =
                    known.iter().map(|kind| (*kind, *kind)).collect();
                said_kind = Some(choice(&whole, value, &choices, line)?.to_owned());
            }
            "login" => {
                let choices = [("key", Login::Key), ("user", Login::User)];
                settings.login = choice(&whole, value, &choices, line)?;
            }
            "model" => settings.model = Some(text(&whole, value, line)?),
            other => return Err(unknown(entry, other, line, &PROVIDER)),
        }
    }
    match said_kind {
        Some(kind) => settings.kind = kind,
        None if known.contains(&entry.name) => {}
        None => {
            let what =
                format!("`providers.{}` needs a `kind`, one of {}", entry.name, known.join(", "));
            return Err(Fault { line: Some(entry.line), what, nearest: None });
        }
    }
    // Whether a key of the usual name is there is known when it is used.
    if let Some(fault) = settings.base_url_fault(settings.api_key.is_some()) {
        let what = format!("`providers.{}.base_url` {fault}", entry.name);
        return Err(Fault { line: Some(entry.line), what, nearest: None });
    }
    Ok(settings)
}

fn preset(entry: &Entry<'_, '_>, line_at: &dyn Fn(usize) -> usize) -> Result<Preset, Fault> {
    let mut preset = Preset::default();
    for (key, value) in entry.table {
        let line = line_at(key.span().start);
        let name = whole_name(entry, key.get_ref());
        match key.get_ref().as_ref() {
            "max_tokens" => preset.tokens_max = Some(whole(&name, value, line)?),
            "max_turns" => {
                preset.turns_max =
                    Some(u32::try_from(whole(&name, value, line)?).unwrap_or(u32::MAX));
            }
            "model" => preset.model = Some(text(&name, value, line)?),
            "provider" => preset.provider = Some(text(&name, value, line)?),
            "system" => preset.system = Some(text(&name, value, line)?),
            other => return Err(unknown(entry, other, line, &PRESET)),
        }
    }
    Ok(preset)
}

fn model(entry: &Entry<'_, '_>, line_at: &dyn Fn(usize) -> usize) -> Result<Model, Fault> {
    let mut model = Model::default();
    for (key, value) in entry.table {
        let line = line_at(key.span().start);
        let name = whole_name(entry, key.get_ref());
        match key.get_ref().as_ref() {
            "input_usd_per_mtok" => model.input_usd_micros = dollars(&name, value, line)?,
            "output_usd_per_mtok" => model.output_usd_micros = dollars(&name, value, line)?,
            other => return Err(unknown(entry, other, line, &MODEL)),
        }
    }
    Ok(model)
}

fn whole_name(entry: &Entry<'_, '_>, key: &str) -> String {
    format!("{}.{}.{key}", entry.list, entry.name)
}

fn unknown(entry: &Entry<'_, '_>, key: &str, line: usize, known: &[&'static str]) -> Fault {
    Fault {
        line: Some(line),
        what: format!("there is no key `{}`", whole_name(entry, key)),
        nearest: nearest(key, known.iter().copied()).map(|near| whole_name(entry, near)),
    }
}

fn whole(key: &str, value: &Spanned<DeValue<'_>>, line: usize) -> Result<u64, Fault> {
    let number = value.get_ref().as_integer().and_then(|text| text.as_str().parse().ok());
    let number: Option<u64> = number.filter(|number| *number > 0);
    number.ok_or_else(|| wrong(key, "a whole number greater than 0", value, line))
}

/// A price, as millionths of a dollar.
fn dollars(key: &str, value: &Spanned<DeValue<'_>>, line: usize) -> Result<u64, Fault> {
    let text = match value.get_ref() {
        DeValue::Integer(number) => Some(number.as_str()),
        DeValue::Float(number) => Some(number.as_str()),
        _ => None,
    };
    let number: Option<f64> = text.and_then(|text| text.parse().ok());
    let number = number.filter(|number| number.is_finite() && (0.0..1e9).contains(number));
    let number = number.ok_or_else(|| wrong(key, "a price in US dollars", value, line))?;
    let micros = (number * 1_000_000.0).round() as u64;
    Ok(micros)
}
