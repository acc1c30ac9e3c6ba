//! `command`: any program that reads a prompt and prints an answer.

use async_trait::async_trait;
use serde_json::Value;

use super::cli::{self, Program, set};
use super::request::{Refusal, RefusalKind, Reply, Request, Used};
use super::{Capabilities, Means, Provider};
use crate::process::End;

const INSTALL: &str = "name it as `command` under `[providers.NAME]`, with `kind = \"command\"`";
/// How much it may print.
const ANSWER_MAX: usize = 4 << 20;

pub(super) struct Command;

#[async_trait]
impl Provider for Command {
    fn kind(&self) -> &'static str {
        "command"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { tools: true, program: true, ..Capabilities::default() }
    }

    async fn ask(&self, request: &Request, means: &Means<'_>) -> Result<Reply, Refusal> {
        let program = self.program(means)?;
        let shown = program.clone();
        let mut command = vec![program];
        command.extend(means.settings.args.iter().cloned());
        let mut variables: Vec<_> = cli::home(means).into_iter().collect();
        let name = means.settings.api_key.as_deref().unwrap_or("CAIRN_PROVIDER_KEY");
        variables.extend(means.key.map(|key| set(name, key.expose())));
        variables.extend(request.model.as_ref().map(|model| set("CAIRN_MODEL", model)));
        if !request.tools.is_empty() {
            variables.push(set("CAIRN_ALLOWED_TOOLS", request.tools.join(",")));
        }
        let stdin = prompt(request).into_bytes();
        let asked = Program { command, variables, stdin, request };
        let ended = cli::run_plain(asked, means, ANSWER_MAX).await?;
        if ended.end != End::Exit(0) {
            return Err(ended.refusal(&shown));
        }
        if ended.stdout.trim().is_empty() {
            let message = format!("`{shown}` printed nothing; let it print its answer");
            return Err(Refusal::new(RefusalKind::NoResult, message).after(Used::launch()));
        }
        let text = ended.stdout.trim_end_matches('\n').to_owned();
        Ok(Reply { text, used: Used::launch(), ..Reply::default() })
    }

    async fn check(&self, means: &Means<'_>) -> Result<String, Refusal> {
        self.program(means)
    }
}

impl Command {
    fn program(&self, means: &Means<'_>) -> Result<String, Refusal> {
        if means.settings.command.is_none() {
            let message = format!("the provider has no program; {INSTALL}");
            return Err(Refusal::new(RefusalKind::Unconfigured, message));
        }
        Ok(cli::find(means, "", INSTALL)?.display().to_string())
    }
}

/// All that the program reads: what it is told about its part, the work, and what is asked of
/// the answer.
fn prompt(request: &Request) -> String {
    let mut prompt = String::new();
    if let Some(system) = &request.system {
        prompt.push_str(&format!("{system}\n\n"));
    }
    prompt.push_str(&request.prompt);
    if let Some(schema) = &request.schema {
        prompt.push_str(&asking_for(schema));
    }
    prompt.push('\n');
    prompt
}

/// The words that ask for an answer of a schema where nothing else does.
pub(super) fn asking_for(schema: &Value) -> String {
    format!(
        "\n\nAnswer with one JSON object and nothing else: no code fence, no remark. It must be \
         valid against this JSON schema:\n{schema}"
    )
}
