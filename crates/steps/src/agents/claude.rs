//! `claude`: Claude Code, without a terminal.

use async_trait::async_trait;
use serde_json::Value;

use super::cli::{self, Program, kind_of, kind_of_status, number, set, text};
use super::request::{Progress, Refusal, RefusalKind, Reply, Request, Used};
use super::state::State;
use super::{Capabilities, Login, Means, Provider};
use crate::process::End;

const INSTALL: &str = "install it with `npm install -g @anthropic-ai/claude-code@latest`, or name \
                       it as `command` under `[providers.claude]`";
/// How much of a tool's input is told.
const INPUT_MAX: usize = 300;

pub(super) struct Claude;

#[async_trait]
impl Provider for Claude {
    fn kind(&self) -> &'static str {
        "claude"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { schema: true, sessions: true, tools: true, program: true }
    }

    fn key_name(&self) -> Option<&'static str> {
        Some("ANTHROPIC_API_KEY")
    }

    async fn ask(&self, request: &Request, means: &Means<'_>) -> Result<Reply, Refusal> {
        let program = cli::find(means, self.kind(), INSTALL)?;
        let state = State::open(request).await?;
        let mut command = vec![program.display().to_string()];
        command.extend(means.settings.args.iter().cloned());
        command.extend(arguments(request, &state));
        let mut variables = vec![
            set("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            set("CLAUDE_CODE_MAX_RETRIES", "2"),
            set("API_TIMEOUT_MS", request.stall.as_millis().to_string()),
            set("DISABLE_AUTOUPDATER", "1"),
        ];
        if means.settings.login == Login::Key {
            variables.push(set("CLAUDE_CONFIG_DIR", state.folder()));
        }
        variables.extend(cli::home(means));
        variables.extend(means.key.map(|key| set("ANTHROPIC_API_KEY", key.expose())));
        let base = means.settings.base_url.as_ref();
        variables.extend(base.map(|base| set("ANTHROPIC_BASE_URL", base)));
        let stdin = request.prompt.clone().into_bytes();
        let mut seen = Seen::default();
        let asked = Program { command, variables, stdin, request };
        let ended = cli::run(asked, means, &mut |event| seen.take(event, request)).await?;
        state.keep_id(seen.session.as_deref());
        let Some(result) = &seen.result else { return Err(ended.refusal(self.kind())) };
        let lingered = ended.end == End::Lingered;
        seen.reply(result, request, lingered, state.id().is_some())
    }

    async fn check(&self, means: &Means<'_>) -> Result<String, Refusal> {
        let program = cli::find(means, self.kind(), INSTALL)?;
        cli::version(means, &program).await
    }

    fn skill_folders(&self) -> &'static [&'static str] {
        &[".claude/skills"]
    }
}

fn arguments(request: &Request, state: &State) -> Vec<String> {
    let mut arguments: Vec<String> =
        ["-p", "--output-format", "stream-json", "--verbose", "--strict-mcp-config"]
            .map(str::to_owned)
            .to_vec();
    let mut option = |name: &str, value: String| arguments.extend([name.to_owned(), value]);
    // Hooks, servers and instructions of whatever folder it works in are not read.
    option("--setting-sources", String::new());
    if let Some(model) = &request.model {
        option("--model", model.clone());
    }
    if let Some(turns) = request.turns_max {
        option("--max-turns", turns.to_string());
    }
    if let Some(schema) = &request.schema {
        option("--json-schema", schema.to_string());
    }
    if let Some(system) = &request.system {
        option("--append-system-prompt", system.clone());
    }
    match state.id() {
        Some(id) => option("--resume", id.to_owned()),
        None if !state.is_kept() => arguments.push("--no-session-persistence".to_owned()),
        None => {}
    }
    if !request.tools.is_empty() {
        // It takes all that follows, so it comes last.
        arguments.push("--allowedTools".to_owned());
        arguments.extend(request.tools.iter().cloned());
    }
    arguments
}

/// What was read of its events.
#[derive(Default)]
struct Seen {
    session: Option<String>,
    model: Option<String>,
    denied: Vec<String>,
    result: Option<Value>,
}

impl Seen {
    /// Takes an event; says whether it was the last.
    fn take(&mut self, event: &Value, request: &Request) -> bool {
        match (text(event, "/type"), text(event, "/subtype")) {
            (Some("system"), Some("init")) => {
                self.session = text(event, "/session_id").map(str::to_owned);
                self.model = text(event, "/model").map(str::to_owned);
            }
            (Some("system"), Some("permission_denied")) => {
                let name = text(event, "/tool_name").unwrap_or("a tool").to_owned();
                request.tell(Progress::Denied(name.clone()));
                self.denied.push(name);
            }
            (Some("assistant"), _) => {
                let blocks = event.pointer("/message/content").and_then(Value::as_array);
                blocks.into_iter().flatten().for_each(|block| tell(block, request));
            }
            (Some("result"), _) => {
                self.result = Some(event.clone());
                return true;
            }
            _ => {}
        }
        false
    }

    fn reply(
        &self,
        result: &Value,
        request: &Request,
        lingered: bool,
        resumed: bool,
    ) -> Result<Reply, Refusal> {
        let said = text(result, "/result").unwrap_or_default().to_owned();
        let used = Used {
            input_tokens: number(result, "/usage/input_tokens")
                + number(result, "/usage/cache_creation_input_tokens")
                + number(result, "/usage/cache_read_input_tokens"),
            output_tokens: number(result, "/usage/output_tokens"),
            // Of a conversation that is gone on with, it is the cost of all of it.
            cost_usd_micros: match resumed {
                true => None,
                false => result.pointer("/total_cost_usd").and_then(micros),
            },
            model: self.model.clone().or_else(|| request.model.clone()),
            ..Used::launch()
        };
        let refuse = |kind, message: String| {
            Err(Refusal::new(kind, message).after(used.clone()).saying(&said))
        };
        let subtype = text(result, "/subtype").unwrap_or_default();
        let is_error = result.pointer("/is_error").and_then(Value::as_bool) == Some(true);
        if subtype == "error_max_turns" {
            let message = "the agent took more turns than `max_turns` allows";
            return refuse(RefusalKind::TurnsOver, message.to_owned());
        }
        if subtype.contains("structured_output") {
            let message = "the agent gave no answer that its schema takes";
            return refuse(RefusalKind::InvalidResult, message.to_owned());
        }
        if is_error || subtype.starts_with("error") {
            let status = number(result, "/api_error_status");
            let kind = match status {
                0 => kind_of(&said).unwrap_or(RefusalKind::Failed),
                status => kind_of_status(status),
            };
            let what = if said.is_empty() { subtype } else { said.as_str() };
            return refuse(kind, format!("Claude Code failed: {}", super::structured::told(what)));
        }
        if text(result, "/stop_reason") == Some("refusal") {
            return refuse(RefusalKind::Refused, "the model declined to answer".to_owned());
        }
        let mut denied = self.denied.clone();
        let listed = result.pointer("/permission_denials").and_then(Value::as_array);
        if denied.is_empty() {
            let names = listed.into_iter().flatten().filter_map(|one| text(one, "/tool_name"));
            denied.extend(names.map(str::to_owned));
        }
        denied.sort();
        denied.dedup();
        if !denied.is_empty() && !request.takes_denials {
            return refuse(RefusalKind::ToolsDenied, denials(&denied));
        }
        let turns = u32::try_from(number(result, "/num_turns")).ok().filter(|turns| *turns > 0);
        let structured = result.get("structured_output").filter(|value| !value.is_null()).cloned();
        let session = self.session.clone();
        Ok(Reply { text: said, structured, used, session, denied, turns, lingered })
    }
}

/// What is told when tools were denied.
pub(super) fn denials(denied: &[String]) -> String {
    let names: Vec<String> = denied.iter().map(|name| format!("`{name}`")).collect();
    format!(
        "the agent was denied {}; add it to `allowed_tools`, or write `on_denied: continue`",
        names.join(", ")
    )
}

fn tell(block: &Value, request: &Request) {
    match text(block, "/type") {
        Some("text") => {
            request.tell(Progress::Said(text(block, "/text").unwrap_or_default().to_owned()));
        }
        Some("tool_use") => request.tell(Progress::Tool {
            name: text(block, "/name").unwrap_or_default().to_owned(),
            input: short(block.get("input")),
        }),
        _ => {}
    }
}

/// The input of a tool, cut short.
pub(super) fn short(input: Option<&Value>) -> String {
    let text = input.map(Value::to_string).unwrap_or_default();
    text.chars().take(INPUT_MAX).collect()
}

/// An amount of US dollars in millionths.
fn micros(value: &Value) -> Option<u64> {
    let dollars = value.as_f64().filter(|dollars| dollars.is_finite() && *dollars >= 0.0)?;
    // What is cut off is less than a millionth.
    let micros = (dollars * 1_000_000.0).ceil().min(1e18) as u64;
    Some(micros)
}
