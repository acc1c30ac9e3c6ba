//! `codex`: the Codex command line, without a terminal.

use async_trait::async_trait;
use serde_json::{Value, json};

use super::claude::{denials, short};
use super::cli::{self, Program, kind_of, number, set, text};
use super::request::{Progress, Refusal, RefusalKind, Reply, Request, Used};
use super::state::State;
use super::structured::told;
use super::{Capabilities, Login, Means, Provider};
use crate::process::End;

const INSTALL: &str = "install it with `npm install -g @openai/codex`, or name its native program \
                       as `command` under `[providers.codex]`";
/// The endpoint of the vendor.
const BASE_URL: &str = "https://api.openai.com/v1";
/// The variable that has the key.
const KEY: &str = "CAIRN_CODEX_KEY";

pub(super) struct Codex;

#[async_trait]
impl Provider for Codex {
    fn kind(&self) -> &'static str {
        "codex"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { schema: true, sessions: true, tools: true, program: true }
    }

    fn key_name(&self) -> Option<&'static str> {
        Some("OPENAI_API_KEY")
    }

    async fn ask(&self, request: &Request, means: &Means<'_>) -> Result<Reply, Refusal> {
        let program = cli::find(means, self.kind(), INSTALL)?;
        let state = State::open(request).await?;
        let schema = match &request.schema {
            Some(schema) => Some(state.write("schema.json", &schema.to_string())?),
            None => None,
        };
        let mut command = vec![program.display().to_string()];
        command.extend(means.settings.args.iter().cloned());
        command.extend(arguments(request, means, &state));
        if let Some(path) = schema {
            let at = command.len() - if state.id().is_some() { 3 } else { 1 };
            let option = ["--output-schema".to_owned(), path.display().to_string()];
            drop(command.splice(at..at, option));
        }
        let mut variables = Vec::new();
        if means.settings.login == Login::Key {
            variables.push(set("CODEX_HOME", state.folder()));
        }
        variables.extend(cli::home(means));
        variables.extend(means.key.map(|key| set(KEY, key.expose())));
        let stdin = prompt(request).into_bytes();
        let mut seen = Seen::default();
        let asked = Program { command, variables, stdin, request };
        let ended = cli::run(asked, means, &mut |event| seen.take(event, request)).await?;
        let Some(last) = &seen.last else { return Err(ended.refusal(self.kind())) };
        let reply = seen.reply(last, request, &state, ended.end == End::Lingered);
        if let Some(id) = seen.thread.as_deref() {
            let (input, output) =
                (number(last, "/usage/input_tokens"), number(last, "/usage/output_tokens"));
            state.keep(&json!({"id": id, "input": input, "output": output}));
        }
        reply
    }

    async fn check(&self, means: &Means<'_>) -> Result<String, Refusal> {
        let program = cli::find(means, self.kind(), INSTALL)?;
        cli::version(means, &program).await
    }

    fn skill_folders(&self) -> &'static [&'static str] {
        &[".codex/skills"]
    }
}

/// There is no place for instructions but the prompt.
fn prompt(request: &Request) -> String {
    match &request.system {
        Some(system) => format!("{system}\n\n{}", request.prompt),
        None => request.prompt.clone(),
    }
}

fn arguments(request: &Request, means: &Means<'_>, state: &State) -> Vec<String> {
    let mut arguments: Vec<String> = [
        "exec",
        "--json",
        "--skip-git-repo-check",
        "--ignore-user-config",
        "--ignore-rules",
        "--disable",
        "plugins",
    ]
    .map(str::to_owned)
    .to_vec();
    let mut set = |value: String| arguments.extend(["-c".to_owned(), value]);
    set("analytics.enabled=false".to_owned());
    // What its commands inherit has no keys in it, and no instructions of the folder are read.
    set("shell_environment_policy.ignore_default_excludes=false".to_owned());
    set("project_doc_max_bytes=0".to_owned());
    if means.key.is_some() {
        let base = means.settings.base_url.as_deref().unwrap_or(BASE_URL);
        let idle = request.stall.as_millis();
        set("model_provider=\"cairn\"".to_owned());
        set(format!(
            "model_providers.cairn={{name=\"cairn\",base_url={},env_key=\"{KEY}\",\
             wire_api=\"responses\",request_max_retries=2,stream_max_retries=2,\
             stream_idle_timeout_ms={idle}}}",
            json!(base)
        ));
    }
    if let Some(model) = &request.model {
        arguments.extend(["-m".to_owned(), model.clone()]);
    }
    let writes = request.tools.iter().any(|tool| tool != "read-only");
    let sandbox = if writes { "workspace-write" } else { "read-only" };
    arguments.extend(["-s".to_owned(), sandbox.to_owned()]);
    if !state.is_kept() {
        arguments.push("--ephemeral".to_owned());
    }
    if let Some(id) = state.id() {
        arguments.extend(["resume".to_owned(), id.to_owned()]);
    }
    // The prompt comes over standard input.
    arguments.push("-".to_owned());
    arguments
}

/// What was read of its events.
#[derive(Default)]
struct Seen {
    thread: Option<String>,
    said: Option<String>,
    denied: Vec<String>,
    /// The event that ended the turn.
    last: Option<Value>,
}

impl Seen {
    fn take(&mut self, event: &Value, request: &Request) -> bool {
        match text(event, "/type") {
            Some("thread.started") => {
                self.thread = text(event, "/thread_id").map(str::to_owned);
            }
            Some("item.completed") => self.item(event, request),
            Some("turn.completed" | "turn.failed") => {
                self.last = Some(event.clone());
                return true;
            }
            // `error` is told while it tries again, too.
            _ => {}
        }
        false
    }

    fn item(&mut self, event: &Value, request: &Request) {
        let Some(item) = event.get("item") else { return };
        match text(item, "/type") {
            Some("agent_message") => {
                let said = text(item, "/text").unwrap_or_default().to_owned();
                request.tell(Progress::Said(said.clone()));
                self.said = Some(said);
            }
            Some("command_execution") => {
                let name = "exec_command".to_owned();
                if text(item, "/status") == Some("declined") {
                    request.tell(Progress::Denied(name.clone()));
                    self.denied.push(name);
                } else {
                    request.tell(Progress::Tool { name, input: short(item.get("command")) });
                }
            }
            _ => {}
        }
    }

    fn reply(
        &self,
        last: &Value,
        request: &Request,
        state: &State,
        lingered: bool,
    ) -> Result<Reply, Refusal> {
        // It counts the whole thread.
        let since =
            |pointer: &str, name: &str| number(last, pointer).saturating_sub(state.number(name));
        let used = Used {
            input_tokens: since("/usage/input_tokens", "input"),
            output_tokens: since("/usage/output_tokens", "output"),
            model: request.model.clone(),
            ..Used::launch()
        };
        let said = self.said.clone().unwrap_or_default();
        if text(last, "/type") == Some("turn.failed") {
            let message = text(last, "/error/message").unwrap_or("it does not say why");
            let kind = kind_of(message).unwrap_or(RefusalKind::Failed);
            let message = format!("Codex failed: {}", told(message));
            return Err(Refusal::new(kind, message).after(used).saying(said));
        }
        if !self.denied.is_empty() && !request.takes_denials {
            let message = denials(&self.denied);
            return Err(Refusal::new(RefusalKind::ToolsDenied, message).after(used).saying(said));
        }
        let (session, denied) = (self.thread.clone(), self.denied.clone());
        Ok(Reply { text: said, structured: None, used, session, denied, turns: None, lingered })
    }
}
