//! The environment of a command: what it is given, and the little that programs need.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use cairn_core::command::{is_variable, loads};
use cairn_engine::flow::{chain, trace};
use cairn_engine::performer::{Ctx, Failed};
use serde_json::Value;

/// What a command of a guided run inherits: it works on the user's own project.
const INHERITED: [&str; 8] = ["HOME", "LANG", "LC_ALL", "PATH", "SHELL", "TERM", "TMPDIR", "USER"];
/// What a command of an automation inherits.
const SAFE: [&str; 5] = ["LANG", "LC_ALL", "PATH", "TMPDIR", "TZ"];

/// The variables of a command.
pub(crate) struct Variables(Vec<(String, OsString)>);

impl Variables {
    /// What a command of a guided run has before it is given any.
    pub(crate) fn inherited(ctx: &Ctx) -> Self {
        Self(from_here(&INHERITED).collect()).with_key(ctx)
    }

    /// What a command of an automation has before it is given any.
    pub(crate) fn safe(ctx: &Ctx, home: &Path) -> Self {
        let home = ("HOME".to_owned(), home.as_os_str().to_owned());
        Self(from_here(&SAFE).chain([home]).collect()).with_key(ctx)
    }

    fn with_key(mut self, ctx: &Ctx) -> Self {
        self.0.push(("CAIRN_IDEMPOTENCY_KEY".to_owned(), ctx.idempotency_key.hex().into()));
        self.0.push((chain::VARIABLE.to_owned(), ctx.chain.to_string().into()));
        let trace = ctx.trace.as_ref().map(|step| step.parent().to_string().into());
        self.0.extend(trace.map(|trace| (trace::VARIABLE.to_owned(), trace)));
        self
    }

    /// Adds what a workflow gives, without what it may not.
    pub(crate) fn give(
        mut self,
        given: &BTreeMap<String, Value>,
        allowed: &[String],
    ) -> Result<Self, Failed> {
        for (name, value) in given {
            check(name, allowed)?;
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            if value.contains('\0') {
                return Err(denied(format!("`{name}` holds a NUL byte, which no variable can")));
            }
            self.0.push((name.clone(), value.into()));
        }
        Ok(self)
    }

    pub(crate) fn into_list(self) -> Vec<(String, OsString)> {
        self.0
    }
}

fn from_here(names: &'static [&'static str]) -> impl Iterator<Item = (String, OsString)> {
    names.iter().filter_map(|name| Some(((*name).to_owned(), std::env::var_os(name)?)))
}

fn check(name: &str, allowed: &[String]) -> Result<(), Failed> {
    if !is_variable(name) {
        return Err(denied(format!(
            "`{}` is no name of a variable: letters, digits and `_` make one",
            name.escape_debug()
        )));
    }
    if is_denied(name, allowed) {
        return Err(denied(format!(
            "a workflow may not set `{name}`, which changes what programs do; \
             the operator can allow it with `processes.allow_env`"
        )));
    }
    Ok(())
}

/// Whether the operator has to allow a variable first: it changes which code runs.
pub(crate) fn is_denied(name: &str, allowed: &[String]) -> bool {
    loads(name) && !allowed.iter().any(|allowed| allowed == name)
}

fn denied(message: String) -> Failed {
    Failed::new("SHELL_ENV", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    // case: process.environment
    #[test]
    fn what_changes_the_code_that_runs_is_denied() {
        for name in [
            "LD_PRELOAD",
            "LD_LIBRARY_PATH",
            "PATH",
            "BASH_ENV",
            "PYTHONPATH",
            "PYTHONSTARTUP",
            "IFS",
            "GIT_SSH_COMMAND",
            "GIT_CONFIG_COUNT",
            "NODE_OPTIONS",
            "PERL5OPT",
            "RUBYOPT",
            "ld_preload",
            "CAIRN_RUN",
            "GLIBC_TUNABLES",
            "DYLD_INSERT_LIBRARIES",
            "ENV",
        ] {
            let error = check(name, &[]).unwrap_err();
            assert_eq!(error.code, "SHELL_ENV", "{name}");
            assert!(check(name, &[name.to_owned()]).is_ok(), "{name} can be allowed");
        }
        for name in ["", "A B", "A=B", "1A", "BASH_FUNC_x%%", "Ä", "A\0"] {
            assert!(check(name, &[name.to_owned()]).is_err(), "{name:?} is no name");
        }
        for name in ["HOST", "DATA", "GIT_AUTHOR_NAME", "_x", "API_PATH", "HOME"] {
            assert!(check(name, &[]).is_ok(), "{name}");
        }
    }

    #[test]
    fn the_lists_are_in_order() {
        assert!(INHERITED.is_sorted() && SAFE.is_sorted());
    }
}
