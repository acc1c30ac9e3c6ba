//! Every step type there is.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cairn_core::catalog::{Catalog, interpreted};
use cairn_engine::performer::{Evaluator, Performer, Performers};

use crate::agent::Agent;
use crate::agents::{self, Agents, Credentials};
use crate::classify::Classify;
use crate::db_query::{Database, DbQuery};
use crate::end::End;
use crate::guard::{Guard, Policy};
use crate::http::Http;
use crate::log::Log;
use crate::process;
use crate::python::{self, Python};
use crate::shell::Shell;
use crate::skill::Skill;
use crate::transform::Transform;
use crate::workspace::Workspaces;

/// What the operator says about steps.
#[derive(Clone)]
pub struct Settings {
    /// The providers that work is handed to.
    pub agents: agents::Configuration,
    /// Who knows the keys to them.
    pub credentials: Option<Arc<dyn Credentials>>,
    /// The databases that workflows may ask, by name.
    pub databases: BTreeMap<String, Database>,
    /// Who evaluates expressions that are not evaluated in this process.
    pub evaluator: Option<Arc<dyn Evaluator>>,
    /// Where requests may go.
    pub guard: Guard,
    /// How commands are run.
    pub process: process::Options,
    /// How Python scripts are run.
    pub python: python::Options,
    /// Where runs have their folders.
    pub workspaces: Workspaces,
}

impl Settings {
    /// The settings of an operator who says nothing.
    ///
    /// `supervisor` is the program that is one when it is started as [`process::NAME`], and
    /// `home` the data directory.
    #[must_use]
    pub fn new(supervisor: PathBuf, home: &Path) -> Self {
        Self {
            agents: agents::Configuration::default(),
            credentials: None,
            databases: BTreeMap::new(),
            evaluator: None,
            guard: Guard::new(Policy::default()),
            process: process::Options {
                supervisor,
                allow_env: Vec::new(),
                memory_max: process::MEMORY_MAX,
                records: process::Records::new(home.join("processes")),
            },
            python: python::Options::new(home.join("cache/python")),
            workspaces: Workspaces::new(home.join("workspaces")),
        }
    }
}

impl Settings {
    /// Those that work is handed to.
    #[must_use]
    pub fn agents(&self) -> Agents {
        Agents::new(self.agents.clone(), self.credentials.clone(), self.process.clone())
    }
}

/// Every performer, in alphabetical order.
#[must_use]
pub fn all(settings: &Settings) -> Performers {
    let processes = Arc::new(settings.process.records.clone());
    let workspaces = Arc::new(settings.workspaces.clone());
    Performers::new(list(settings)).with_processes(processes).with_workspaces(workspaces)
}

/// Every step type, those included that need no performer.
#[must_use]
pub fn types() -> Catalog {
    // What a step type is does not depend on what the operator says.
    let settings = Settings::new(PathBuf::new(), Path::new(""));
    let performed = list(&settings).into_iter().map(|performer| performer.kind());
    Catalog::new(performed.chain(interpreted::all()))
}

fn list(settings: &Settings) -> Vec<Arc<dyn Performer>> {
    let process = || settings.process.clone();
    let agents = settings.agents();
    vec![
        Arc::new(Agent::new(agents.clone())),
        Arc::new(Classify::new(agents.clone())),
        Arc::new(DbQuery::new(settings.databases.clone())),
        Arc::new(End),
        Arc::new(Http::new(settings.guard.clone())),
        Arc::new(Log),
        Arc::new(Python::new(settings.python.clone(), process())),
        Arc::new(Shell { options: process() }),
        Arc::new(Skill::new(agents)),
        Arc::new(Transform { evaluator: settings.evaluator.clone() }),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use cairn_lang::graph;
    use cairn_lang::ids::SourceKind;
    use cairn_lang::source::SourceTree;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn performers_are_in_order_and_say_what_they_do() {
        let settings = Settings::new(PathBuf::new(), Path::new(""));
        let kinds: Vec<_> = list(&settings).iter().map(|performer| performer.kind()).collect();
        assert!(kinds.is_sorted_by(|a, b| a.name < b.name));
        for kind in kinds {
            assert!(kind.input.get("description").is_some(), "{}", kind.name);
            assert!(kind.input.pointer("/examples/0").is_some(), "{}", kind.name);
        }
    }

    /// The names behind a prefix in a text.
    fn named(text: &str, prefix: &str) -> BTreeSet<String> {
        let name = |rest: &str| {
            let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '-'));
            rest.get(..end.unwrap_or(rest.len())).unwrap_or_default().to_owned()
        };
        text.split(prefix).skip(1).map(name).collect()
    }

    /// The texts in a list, or in a map.
    fn texts(value: Option<&Value>) -> Vec<String> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        match value {
            Some(Value::Array(items)) => items.iter().filter_map(text).collect(),
            Some(Value::Object(members)) => members.values().filter_map(text).collect(),
            _ => Vec::new(),
        }
    }

    /// A workflow in which an example has all that it looks at, and somewhere to go.
    fn around(kind: &str, example: &Value) -> SourceTree {
        let text = example.to_string();
        let stub = |id: &String| json!({"id": id, "type": "transform", "engine": "template", "template": "x"});
        let before: Vec<String> = named(&text, "steps.").into_iter().collect();
        let mut nodes: Vec<Value> = before.iter().map(stub).collect();
        for (node, next) in
            nodes.iter_mut().zip(before.iter().skip(1).map(String::as_str).chain(["it"]))
        {
            node["next"] = json!(next);
        }
        let inputs = texts(example.get("inputs"));
        if !inputs.is_empty() {
            nodes.push(json!({"id": "start", "type": "parallel", "branches": inputs}));
            nodes.extend(inputs.iter().map(stub));
        }
        let mut it = example.clone();
        it["id"] = json!("it");
        it["type"] = json!(kind);
        if kind == "human" {
            it["cases"] = json!({"default": "end"});
        }
        nodes.push(it);
        let lists = ["branches", "body"].iter().filter_map(|name| example.get(*name));
        let lists = lists.filter(|value| value.is_array()).chain(example.get("cases"));
        let after = lists.flat_map(|value| texts(Some(value)));
        nodes.extend(after.collect::<BTreeSet<String>>().iter().map(stub));
        let setting =
            |widget: &'static str| move |name: String| json!({"name": name, "widget": widget});
        let secrets = named(&text, "secret.").into_iter().map(setting("secret"));
        let env: Vec<Value> =
            named(&text, "env.").into_iter().map(setting("text")).chain(secrets).collect();
        let entry = nodes[0]["id"].clone();
        let document =
            json!({"name": "Example", "env": env, "graph": {"nodes": nodes, "entry": entry}});
        let assets = text.split('"').filter(|part| part.starts_with("nodes/"));
        let content = |path: &str| match path.ends_with(".txt") {
            true => Vec::new(),
            false => b"SELECT 1".to_vec(),
        };
        let assets = assets.map(|path| (path.to_owned(), content(path)));
        let files = assets.chain([("workflow.json".to_owned(), document.to_string().into_bytes())]);
        SourceTree { kind: SourceKind::Project, files: files.collect(), library: BTreeMap::new() }
    }

    #[test]
    fn every_example_compiles() {
        let types = types();
        for kind in types.types() {
            let example = kind.input.pointer("/examples/0").unwrap();
            let tree = around(&kind.name, example);
            if let Err(found) = graph::compile(&tree, "workflow.json", &types) {
                let found: Vec<String> = found.iter().map(ToString::to_string).collect();
                let text = String::from_utf8_lossy(&tree.files["workflow.json"]);
                panic!("{}:\n{}\n{text}", kind.name, found.join("\n"));
            }
        }
    }
}
