//! `gemini`: the Gemini command line, without a terminal.

use async_trait::async_trait;
use serde_json::{Value, json};

use super::claude::{denials, short};
use super::cli::{self, Program, kind_of, number, set, text};
use super::request::{Progress, Refusal, RefusalKind, Reply, Request, Used};
use super::state::State;
use super::structured::told;
use super::{Capabilities, Login, Means, Provider};
use crate::process::End;

const INSTALL: &str = "install it with `npm install -g @google/gemini-cli`, or name it as \
                       `command` under `[providers.gemini]`";
/// The model when nobody names one: without one it asks another model first which to take.
const MODEL: &str = "gemini-2.5-flash";

/// What it would take settings from where it works.
const SETTINGS: [&str; 2] = [".gemini", ".env"];

pub(super) struct Gemini;

#[async_trait]
impl Provider for Gemini {
    fn kind(&self) -> &'static str {
        "gemini"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { schema: false, sessions: true, tools: true, program: true }
    }

    fn key_name(&self) -> Option<&'static str> {
        Some("GEMINI_API_KEY")
    }

    async fn ask(&self, request: &Request, means: &Means<'_>) -> Result<Reply, Refusal> {
        let program = cli::find(means, self.kind(), INSTALL)?;
        without_settings(request)?;
        let state = State::open(request).await?;
        let mut command = vec![program.display().to_string()];
        command.extend(means.settings.args.iter().cloned());
        let model = request.model.as_deref().unwrap_or(MODEL);
        command.extend(["-o", "stream-json", "--skip-trust", "-m", model].map(str::to_owned));
        if !request.tools.is_empty() {
            let policy = state.write("policy.toml", &policy(&request.tools))?;
            command.extend(["--policy".to_owned(), policy.display().to_string()]);
        }
        if let Some(id) = state.id() {
            command.extend(["--resume".to_owned(), id.to_owned()]);
        }
        // What it cannot reach it writes down with the whole prompt, here and not elsewhere.
        let mut variables =
            vec![set("GEMINI_CLI_NO_RELAUNCH", "true"), set("TMPDIR", state.folder())];
        if means.settings.login == Login::Key {
            state.write(".gemini/settings.json", &settings(request).to_string())?;
            variables.push(set("GEMINI_CLI_HOME", state.folder()));
        }
        variables.extend(cli::home(means));
        variables.extend(means.key.map(|key| set("GEMINI_API_KEY", key.expose())));
        let base = means.settings.base_url.as_ref();
        variables.extend(base.map(|base| set("GOOGLE_GEMINI_BASE_URL", base)));
        let stdin = prompt(request).into_bytes();
        let mut seen = Seen::default();
        let asked = Program { command, variables, stdin, request };
        let ended = cli::run(asked, means, &mut |event| seen.take(event, request)).await?;
        state.keep_id(seen.session.as_deref());
        let Some(result) = &seen.result else { return Err(ended.refusal(self.kind())) };
        seen.reply(result, request, model, ended.end == End::Lingered)
    }

    async fn check(&self, means: &Means<'_>) -> Result<String, Refusal> {
        let program = cli::find(means, self.kind(), INSTALL)?;
        cli::version(means, &program).await
    }

    fn skill_folders(&self) -> &'static [&'static str] {
        &[".gemini/skills"]
    }
}

/// Refuses a folder with settings of its own. It is told to work in a folder that nobody trusted,
/// and a version that then trusts it would run the programs that these settings name.
fn without_settings(request: &Request) -> Result<(), Refusal> {
    let Some(found) =
        SETTINGS.into_iter().find(|name| request.folder.join(name).symlink_metadata().is_ok())
    else {
        return Ok(());
    };
    let message = format!(
        "the folder has a `{found}`, which may name programs that Gemini would run; remove it in \
         a step before, or use another `workdir`"
    );
    Err(Refusal::new(RefusalKind::Unconfigured, message))
}

/// Its settings: a key and nothing of anybody's own.
fn settings(request: &Request) -> Value {
    let mut settings = json!({
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": false},
        "advanced": {"ignoreLocalEnv": true},
        "general": {
            "enableAutoUpdate": false, "enableAutoUpdateNotification": false, "maxAttempts": 2,
        },
    });
    if let (Some(turns), Some(members)) = (request.turns_max, settings.as_object_mut()) {
        members.insert("model".to_owned(), json!({"maxSessionTurns": turns}));
    }
    settings
}

/// What lets it use these tools.
fn policy(tools: &[String]) -> String {
    let rule = |tool: &String| {
        format!("[[rule]]\ntoolName = {}\ndecision = \"allow\"\npriority = 100\n", json!(tool))
    };
    tools.iter().map(rule).collect()
}

/// It has no mode for schemas and no place for instructions, so the prompt says both.
fn prompt(request: &Request) -> String {
    let mut prompt = String::new();
    if let Some(system) = &request.system {
        prompt.push_str(&format!("{system}\n\n"));
    }
    prompt.push_str(&request.prompt);
    if let Some(schema) = &request.schema {
        prompt.push_str(&super::command::asking_for(schema));
    }
    prompt
}

/// What was read of its events.
#[derive(Default)]
struct Seen {
    session: Option<String>,
    said: String,
    denied: Vec<String>,
    /// The tool of each call, by the call's id.
    calls: Vec<(String, String)>,
    result: Option<Value>,
}

impl Seen {
    fn take(&mut self, event: &Value, request: &Request) -> bool {
        match text(event, "/type") {
            Some("init") => self.session = text(event, "/session_id").map(str::to_owned),
            Some("message") if text(event, "/role") == Some("assistant") => {
                let said = text(event, "/content").unwrap_or_default();
                request.tell(Progress::Said(said.to_owned()));
                self.said.push_str(said);
            }
            Some("tool_use") => {
                let name = text(event, "/tool_name").unwrap_or_default().to_owned();
                let id = text(event, "/tool_id").unwrap_or_default().to_owned();
                request.tell(Progress::Tool {
                    name: name.clone(),
                    input: short(event.get("parameters")),
                });
                self.calls.push((id, name));
                // What is said before a tool is used is not the answer.
                self.said.clear();
            }
            Some("tool_result") if text(event, "/status") == Some("error") => {
                let kind = text(event, "/error/type").unwrap_or_default();
                if ["policy_violation", "tool_not_registered"].contains(&kind) {
                    let id = text(event, "/tool_id").unwrap_or_default();
                    let call = self.calls.iter().find(|(known, _)| known == id);
                    let name = call.map_or("a tool", |(_, name)| name).to_owned();
                    request.tell(Progress::Denied(name.clone()));
                    self.denied.push(name);
                }
            }
            Some("result") => {
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
        model: &str,
        lingered: bool,
    ) -> Result<Reply, Refusal> {
        let used = Used {
            input_tokens: number(result, "/stats/input_tokens"),
            output_tokens: number(result, "/stats/output_tokens"),
            model: Some(model.to_owned()),
            ..Used::launch()
        };
        let refuse = |kind, message: String| {
            Err(Refusal::new(kind, message).after(used.clone()).saying(&self.said))
        };
        if text(result, "/status") != Some("success") {
            let message = text(result, "/error/message").unwrap_or("it does not say why");
            let kind = kind_of(message).unwrap_or(RefusalKind::Failed);
            return refuse(kind, format!("Gemini failed: {}", told(message)));
        }
        if !self.denied.is_empty() && !request.takes_denials {
            return refuse(RefusalKind::ToolsDenied, denials(&self.denied));
        }
        let (session, denied) = (self.session.clone(), self.denied.clone());
        let text = self.said.clone();
        Ok(Reply { text, structured: None, used, session, denied, turns: None, lingered })
    }
}
