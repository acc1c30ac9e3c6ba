//! What a plan asks for that the operator does not give here. Another machine may, so it is told
//! as a warning when a workflow is looked at, and as an error by the step that needs it.

use cairn_core::capabilities::{self, Host};
use cairn_core::plan::{Action, Plan, Step};
use cairn_core::text::Slug;
use serde_json::Value;

use crate::catalog::Settings;
use crate::guard;
use crate::process::is_denied;

/// Something that a step lacks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lack {
    /// Which step.
    pub step: Slug,
    /// The setting that asks for it.
    pub field: &'static str,
    /// What is not there.
    pub message: String,
    /// The lines of the configuration that give it.
    pub lines: String,
    /// What comes of the step until then.
    pub until: &'static str,
}

/// What the steps of a plan lack under these settings, in the order of the plan.
#[must_use]
pub fn lacking(plan: &Plan, settings: &Settings) -> Vec<Lack> {
    plan.steps.iter().filter_map(|step| lack(step, settings)).collect()
}

fn lack(step: &Step, settings: &Settings) -> Option<Lack> {
    let Action::Typed { config, r#type } = &step.action else { return None };
    let text = |name: &str| config.0.get(name).and_then(Value::as_str);
    let (field, message, lines, until) = match r#type.as_str() {
        "db_query" => {
            let name = text("database").filter(|name| !settings.databases.contains_key(*name))?;
            let message = format!("the configuration has no database `{name}`");
            let lines = format!("`[databases.{name}]` and `url = \"…\"`");
            ("database", message, lines, "the step fails with `DB_UNKNOWN`")
        }
        "http" => {
            let url = text("url")?;
            let Host::Literal(authority) = capabilities::host(url) else { return None };
            let scheme = url.split_once("://").map_or("https", |(scheme, _)| scheme);
            let denied = guard::check(&format!("{scheme}://{authority}/"), &settings.guard.policy);
            let lines = format!("`[http]` and `allow = [\"{authority}\"]`");
            ("url", denied.err()?.to_string(), lines, "the step fails with `HTTP_DENIED`")
        }
        _ => {
            let given = config.0.get("env").and_then(Value::as_object)?;
            let allowed = &settings.process.allow_env;
            let name = given.keys().find(|name| is_denied(name, allowed))?;
            let message = format!(
                "a workflow may not set `{name}`, which changes what programs do, unless the \
                 operator allows it"
            );
            let lines = format!("`[processes]` and `allow_env = [\"{name}\"]`");
            ("env", message, lines, "the step fails with `SHELL_ENV`")
        }
    };
    Some(Lack { step: step.id.clone(), field, message, lines, until })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::{Path, PathBuf};

    use cairn_lang::ids::SourceKind;
    use cairn_lang::source::SourceTree;

    use super::*;
    use crate::guard::{Guard, Policy};

    fn told(node: &str, settings: &Settings) -> String {
        let text =
            format!("name: T\nenv: [{{name: URL}}]\ngraph: {{nodes: [{{id: a, {node}}}]}}\n");
        let files = BTreeMap::from([("w.yaml".to_owned(), text.into_bytes())]);
        let tree = SourceTree { kind: SourceKind::Project, files, library: BTreeMap::new() };
        let compiled =
            cairn_lang::graph::compile(&tree, "w.yaml", &crate::catalog::types()).unwrap();
        let lacks = lacking(&compiled.plan, settings);
        lacks.iter().map(|lack| format!("{} {}: {}", lack.step, lack.field, lack.message)).collect()
    }

    #[test]
    fn what_the_operator_does_not_give_is_told() {
        let bare = Settings::new(PathBuf::new(), Path::new(""));
        let allowed = vec!["localhost:9000".parse().unwrap()];
        let open = Settings { guard: Guard::new(Policy::new(allowed)), ..bare.clone() };
        let mut path = bare.clone();
        path.process.allow_env = vec!["PATH".to_owned()];
        for (node, settings, wanted) in [
            (
                "type: db_query, database: main, query: SELECT 1",
                &bare,
                "a database: the configuration has no database `main`",
            ),
            ("type: http, url: 'https://example.com/x'", &bare, ""),
            ("type: http, url: '{{ env.URL }}/x'", &bare, ""),
            ("type: http, url: 'http://localhost:9000/{{ event.id }}'", &bare, "port 9000"),
            ("type: http, url: 'http://localhost/x'", &bare, "http.allow"),
            ("type: http, url: 'http://10.0.0.7/x'", &bare, "http.allow"),
            ("type: http, url: 'http://localhost:9000/{{ event.id }}'", &open, ""),
            (
                "type: shell, command: [x], env: {PATH: /bin}",
                &bare,
                "a env: a workflow may not set `PATH`",
            ),
            ("type: shell, command: [x], env: {HOST: a, Z: b}", &bare, ""),
            ("type: shell, command: [x], env: {PATH: /bin}", &path, ""),
        ] {
            let told = told(node, settings);
            assert_eq!(told.is_empty(), wanted.is_empty(), "{node}: {told}");
            assert!(told.contains(wanted), "{node}: {told}");
        }
    }
}
