//! `python`: runs a script with the packages that it asks for.
//!
//! A workflow's packages are in a virtual environment of their own, which is found by what
//! it asks for. Only files of packages whose digest is written down are installed, and
//! nothing of them runs while that happens.

mod requirements;
mod venv;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use cairn_core::catalog::schema::{closed, flag, one_of, shown, text, texts, texts_by_name, told};
use cairn_core::catalog::{Class, SettingFault, StepSettings, StepType, Takes};
use cairn_core::command::Sent;
use cairn_engine::performer::{Ctx, Failed, Outcome, Performer};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::process::arguments::{self, Given};
use crate::process::told::{Parse, outcome};
use crate::process::{self, Folder, Job, Keep, STOP_MAX, Variables};
use crate::settings;
use crate::shell::{STREAM_MAX, elapsed_ms, output_schema, plain};
use venv::Venvs;

/// How Python scripts are run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where virtual environments are kept. They can be deleted at any time.
    pub folder: PathBuf,
    /// The interpreter.
    pub interpreter: PathBuf,
    /// The index that packages are from, when it is not pip's own choice.
    pub index: Option<String>,
    /// A folder with packages, which are taken from there and nowhere else.
    pub wheels: Option<PathBuf>,
}

impl Options {
    /// What there is when the operator says nothing.
    #[must_use]
    pub fn new(folder: PathBuf) -> Self {
        Self { folder, interpreter: "python3".into(), index: None, wheels: None }
    }
}

/// How long making an environment and installing its packages may take.
const INSTALLING_MAX: Duration = Duration::from_secs(600);

/// How many words stand before the arguments of a script: the interpreter, an option, the script.
const FIXED: usize = 3;

pub(crate) struct Python {
    process: process::Options,
    venvs: Venvs,
}

#[derive(Deserialize)]
struct Input {
    script: String,
    requirements: Option<String>,
    #[serde(default)]
    args: Vec<Value>,
    #[serde(default)]
    env: BTreeMap<String, Value>,
    stdin: Option<Value>,
    parse_output: Option<Parse>,
    #[serde(default)]
    trusts_arguments: bool,
    /// What of the arguments was sent.
    #[serde(default)]
    sent: Sent,
}

impl Python {
    pub(crate) fn new(options: Options, process: process::Options) -> Self {
        Self { venvs: Venvs::new(options, process.clone()), process }
    }
}

/// Says what is wrong with a file of requirements, before anybody waits for pip.
fn check(given: &StepSettings<'_>) -> Vec<SettingFault> {
    let path = given.config.get("requirements").and_then(Value::as_str);
    let Some((path, bytes)) = path.and_then(|path| Some((path, (given.file)(path)?))) else {
        return Vec::new();
    };
    let wrong = |failed: Failed| {
        let hint = "`pip-compile --generate-hashes` writes such a file";
        SettingFault::new("requirements", failed.message, hint)
    };
    requirements::check(path, bytes).map_err(wrong).err().into_iter().collect()
}

#[async_trait]
impl Performer for Python {
    fn kind(&self) -> StepType {
        let input = closed(
            &json!({
                "args": told(texts(), "Arguments of the script."),
                "env": told(texts_by_name(), "Variables to set. What changes how programs work, such as `PYTHONPATH`, is denied."),
                "parse_output": told(one_of(&["json", "text"]), "With `json`, standard output must be JSON, and is there as `json` too."),
                "requirements": told(text(), "A file beside the workflow with the packages that the script needs, each as `name==version --hash=sha256:…`."),
                "script": told(text(), "The script, a file beside the workflow."),
                "stdin": told(text(), "What the script reads."),
                "trusts_arguments": told(flag(), "Whether whatever a run brings may be an argument, options too."),
            }),
            &["script"],
        );
        let what = "Runs a Python script, as `shell` runs a command. Its packages are installed once, from wheels with a known digest only, and shared by all that ask for the same.";
        let example = json!({"script": "nodes/process.py", "requirements": "nodes/requirements.txt", "stdin": "{{ steps.fetch.json | tojson }}", "parse_output": "json"});
        let input = shown(told(input, what), &example);
        StepType::new("python", Class::Effectful, input, output_schema())
            .taking(&[
                ("args", Takes::Arguments),
                ("env.*", Takes::Secrets),
                ("requirements", Takes::Asset),
                ("script", Takes::Asset),
                ("stdin", Takes::Secrets),
            ])
            .checked(check)
    }

    async fn perform(&self, config: Value, ctx: &Ctx) -> Result<Outcome, Failed> {
        let input: Input = settings::read(config)?;
        let asset = |path: &str| {
            ctx.assets.get(path).cloned().ok_or_else(|| {
                let message =
                    format!("`{path}` is no file of the workflow; keep it under `nodes/`");
                Failed::new("PYTHON_FILE", message)
            })
        };
        asset(&input.script)?;
        let asked = Instant::now();
        let (interpreter, installed) = match &input.requirements {
            Some(path) => self.venvs.interpreter(path, &asset(path)?, ctx).await?,
            None => (self.venvs.plain(), false),
        };
        let installing_ms = installed.then(|| elapsed_ms(asked));
        let folder = Folder::open(ctx).await?;
        let interpreter = interpreter.to_string_lossy().into_owned();
        let fixed = [interpreter, "-I".to_owned(), input.script.clone()];
        let command: Vec<String> = fixed.into_iter().chain(input.args.iter().map(plain)).collect();
        let variables = Variables::safe(ctx, folder.path());
        let variables = variables.give(&input.env, &self.process.allow_env)?.into_list();
        let given = Given { ctx, sent: &input.sent, from: FIXED, trusts: input.trusts_arguments };
        arguments::check(&command, &given, &variables, folder.path())?;
        let begun = Instant::now();
        let job = Job {
            session: ctx.session,
            command: &command,
            variables,
            folder: folder.path(),
            opened: None,
            stdin: input.stdin.as_ref().map(plain).unwrap_or_default().into_bytes(),
            keep: Keep::All(STREAM_MAX),
            timeout: ctx.timeout,
            strict: true,
            watch: None,
        };
        let done = process::run(job, &self.process).await?;
        folder.require_small().await?;
        let told: Vec<String> =
            std::iter::once("python".to_owned()).chain(command.iter().skip(2).cloned()).collect();
        let mut outcome = outcome(&done, &told, elapsed_ms(begun), input.parse_output);
        if let Some(ms) = installing_ms {
            outcome.notes = format!("packages installed in {ms} ms; {}", outcome.notes);
        }
        Ok(outcome)
    }

    fn preparation(&self, config: &Value) -> Duration {
        match config.get("requirements") {
            Some(_) => INSTALLING_MAX,
            None => Duration::ZERO,
        }
    }

    fn needs_workspace(&self, _: &Value) -> bool {
        true
    }

    fn grace(&self) -> Duration {
        STOP_MAX
    }
}
