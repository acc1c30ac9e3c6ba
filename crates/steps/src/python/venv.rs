//! Virtual environments, one for each set of requirements.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use cairn_core::digest::Digest;
use cairn_engine::performer::{Ctx, Failed, FailureKind};

use super::{INSTALLING_MAX, Options, requirements};
use crate::process::{self, Done, End, Job, Keep, Variables};
use crate::shell::STREAM_MAX;

/// The virtual environments of a folder.
pub(super) struct Venvs {
    options: Options,
    process: process::Options,
    /// Who makes one now; the others wait.
    making: Mutex<BTreeMap<Digest, Arc<tokio::sync::Mutex<()>>>>,
}

impl Venvs {
    pub(super) const fn new(options: Options, process: process::Options) -> Self {
        Self { options, process, making: Mutex::new(BTreeMap::new()) }
    }

    /// The interpreter without any packages.
    pub(super) fn plain(&self) -> PathBuf {
        self.options.interpreter.clone()
    }

    /// The interpreter that has the packages of a file of requirements, and whether they were
    /// installed just now.
    pub(super) async fn interpreter(
        &self,
        path: &str,
        requirements: &[u8],
        ctx: &Ctx,
    ) -> Result<(PathBuf, bool), Failed> {
        requirements::check(path, requirements)?;
        let version = self.version(ctx).await?;
        let key = Digest::of(&[version.as_bytes(), b"\0", requirements].concat());
        let place = self.options.folder.join(key.hex());
        let turn = {
            let mut making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(making.entry(key).or_default())
        };
        let _turn = turn.lock().await;
        let is_there = place.join("bin/python").exists();
        if !is_there {
            self.make(&place, requirements, ctx).await?;
        }
        Ok((place.join("bin/python"), !is_there))
    }

    /// Makes an environment beside its place and moves it there, so that what is there is whole.
    async fn make(&self, place: &Path, requirements: &[u8], ctx: &Ctx) -> Result<(), Failed> {
        let failed = |error: std::io::Error| {
            let folder = self.options.folder.display();
            Failed::new("PYTHON_FOLDER", format!("`{folder}` cannot be used: {error}"))
        };
        std::fs::create_dir_all(&self.options.folder).map_err(failed)?;
        let draft =
            tempfile::TempDir::with_prefix_in("new-", &self.options.folder).map_err(failed)?;
        let venv = draft.path().join("venv");
        let list = draft.path().join("requirements.txt");
        std::fs::write(&list, requirements).map_err(failed)?;
        let venv_text = venv.to_string_lossy().into_owned();
        let interpreter = self.options.interpreter.to_string_lossy().into_owned();
        let make = [&interpreter, "-I", "-m", "venv", "--copies", &venv_text].map(str::to_owned);
        self.run(&make, draft.path(), ctx, "making the virtual environment").await?;
        let mut install: Vec<String> = [
            &format!("{venv_text}/bin/python"),
            "-I",
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-input",
            "--disable-pip-version-check",
            "--require-hashes",
            "--no-deps",
            "--only-binary",
            ":all:",
            "--no-cache-dir",
            "--requirement",
            &list.to_string_lossy(),
        ]
        .map(str::to_owned)
        .into();
        if let Some(wheels) = &self.options.wheels {
            let wheels = wheels.to_string_lossy().into_owned();
            install.extend(["--no-index".to_owned(), "--find-links".to_owned(), wheels]);
        } else if let Some(index) = &self.options.index {
            install.extend(["--index-url".to_owned(), index.clone()]);
        }
        if requirements.iter().any(|byte| !byte.is_ascii_whitespace()) {
            self.run(&install, draft.path(), ctx, "installing the packages").await?;
        }
        match std::fs::rename(&venv, place) {
            // Another process was faster, and made the same.
            Err(_) if place.join("bin/python").exists() => Ok(()),
            other => other.map_err(failed),
        }
    }

    /// What the interpreter says it is: another one needs other environments.
    async fn version(&self, ctx: &Ctx) -> Result<String, Failed> {
        let interpreter = self.options.interpreter.to_string_lossy().into_owned();
        let ask = "import sys; print(sys.version, sys.executable)";
        let command = [&interpreter, "-I", "-c", ask].map(str::to_owned);
        let done = self.run(&command, Path::new("/"), ctx, "asking for the version").await?;
        Ok(done.stdout.text())
    }

    async fn run(
        &self,
        command: &[String],
        folder: &Path,
        ctx: &Ctx,
        what: &str,
    ) -> Result<Done, Failed> {
        let job = Job {
            session: ctx.session,
            command,
            // pip reads the operator's own settings.
            variables: Variables::inherited(ctx).into_list(),
            folder,
            opened: None,
            stdin: Vec::new(),
            keep: Keep::All(STREAM_MAX),
            timeout: INSTALLING_MAX,
            strict: false,
            watch: None,
        };
        let done = process::run(job, &self.process).await?;
        if done.end == End::Exit(0) {
            return Ok(done);
        }
        if done.end == End::TimedOut {
            let message = format!(
                "{what} took longer than {} s, beside the step's own time",
                INSTALLING_MAX.as_secs()
            );
            return Err(Failed::of(FailureKind::Timeout, "PYTHON_PACKAGES", message));
        }
        let said = done.stderr.text();
        let last: Vec<&str> = said.lines().rev().take(5).collect();
        let last: Vec<&str> = last.into_iter().rev().collect();
        Err(Failed::of(
            FailureKind::ServerError,
            "PYTHON_PACKAGES",
            format!("{what} failed: {}", last.join("\n")),
        ))
    }
}
