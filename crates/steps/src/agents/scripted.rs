//! `scripted`: answers from a file, for tests, examples and whoever has no account.
//!
//! The file is that of the configuration, or else `nodes/answers.json` of the workflow. It holds
//! a list; the first entry whose texts are all in the prompt is the answer. Nothing is used up,
//! so that a step that is repeated gets the same answer.

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::Value;

use super::request::{Progress, Refusal, RefusalKind, Reply, Request, Used};
use super::structured::nearest;
use super::{Capabilities, Means, Provider};

/// The file of a workflow that has the answers.
const ASSET: &str = "nodes/answers.json";
/// How large a file may be.
const FILE_MAX: u64 = 4 << 20;

pub(super) struct Scripted;

/// One answer.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    /// Texts that the prompt has to hold; any prompt when there are none.
    #[serde(default)]
    when: Vec<String>,
    /// What is said: text, or a value.
    answer: Option<Value>,
    /// What is said on the way.
    #[serde(default)]
    progress: Vec<String>,
    /// The way in which it goes wrong instead.
    refusal: Option<String>,
    /// Tokens read and written.
    usage: Option<(u64, u64)>,
}

#[async_trait]
impl Provider for Scripted {
    fn kind(&self) -> &'static str {
        "scripted"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { schema: true, sessions: true, tools: true, program: false }
    }

    async fn ask(&self, request: &Request, means: &Means<'_>) -> Result<Reply, Refusal> {
        let entries = entries(request, means)?;
        let fits = |entry: &&Entry| entry.when.iter().all(|text| request.prompt.contains(text));
        let Some(entry) = entries.iter().find(fits) else {
            let message = "no entry of the script matches the prompt; add one without `when`";
            return Err(Refusal::new(RefusalKind::Failed, message).after(Used::launch()));
        };
        let (input_tokens, output_tokens) = entry.usage.unwrap_or((100, 20));
        let model = request.model.clone().or_else(|| Some("scripted".to_owned()));
        let used = Used { input_tokens, output_tokens, model, ..Used::launch() };
        entry.progress.iter().for_each(|said| request.tell(Progress::Said(said.clone())));
        if let Some(name) = &entry.refusal {
            let kind = RefusalKind::ALL.into_iter().find(|kind| kind.name() == *name);
            let kind = kind.ok_or_else(|| unknown(name))?;
            return Err(Refusal::new(kind, "the script says so").after(used));
        }
        let text = match &entry.answer {
            Some(Value::String(text)) => text.clone(),
            Some(value) => value.to_string(),
            None => String::new(),
        };
        Ok(Reply { text, used, ..Reply::default() })
    }

    async fn check(&self, means: &Means<'_>) -> Result<String, Refusal> {
        match &means.settings.file {
            Some(file) => {
                let bytes = read(file)?;
                let entries = parse(&bytes, &file.display().to_string())?;
                Ok(format!("{} answers in {}", entries.len(), file.display()))
            }
            None => Ok(format!("answers from `{ASSET}` of the workflow")),
        }
    }
}

fn entries(request: &Request, means: &Means<'_>) -> Result<Vec<Entry>, Refusal> {
    if let Some(file) = &means.settings.file {
        return parse(&read(file)?, &file.display().to_string());
    }
    let Some(asset) = request.assets.get(ASSET) else {
        let message =
            format!("the workflow has no `{ASSET}`, and `[providers.scripted]` names no `file`");
        return Err(Refusal::new(RefusalKind::Unconfigured, message));
    };
    parse(asset, ASSET)
}

fn read(file: &std::path::Path) -> Result<Vec<u8>, Refusal> {
    let fault = |why: String| {
        let message = format!("the script `{}` cannot be read: {why}", file.display());
        Refusal::new(RefusalKind::Unconfigured, message)
    };
    let found = std::fs::metadata(file).map_err(|error| fault(error.to_string()))?;
    if !found.is_file() || found.len() > FILE_MAX {
        return Err(fault(format!("it is no file of at most {FILE_MAX} bytes")));
    }
    std::fs::read(file).map_err(|error| fault(error.to_string()))
}

fn parse(bytes: &[u8], place: &str) -> Result<Vec<Entry>, Refusal> {
    serde_json::from_slice(bytes).map_err(|error| {
        let message = format!("the script `{place}` is invalid: {error}");
        Refusal::new(RefusalKind::Unconfigured, message)
    })
}

fn unknown(name: &str) -> Refusal {
    let known: Vec<String> = RefusalKind::ALL.into_iter().map(RefusalKind::name).collect();
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    let near =
        nearest(name, &known).map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
    let message = format!("the script has an unknown refusal `{name}`{near}");
    Refusal::new(RefusalKind::Unconfigured, message)
}
