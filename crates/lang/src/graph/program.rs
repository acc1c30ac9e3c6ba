//! Programs in a workflow: jq, and JSONPaths. They are read here, and run elsewhere.

use cairn_core::expression::JQ_REFUSED;
use jaq_core::load::{self, Arena, File, Loader};
use jaq_core::{Compiler, data};
use jaq_json::Val;
use serde_json_path::JsonPath;

use super::fault::Wrong;
use super::reference::Written;
use super::{Build, Draft};
use crate::diagnostic::Code;
use crate::read::meant;

/// How many signs a program may have to be read here. A reader calls itself for each of
/// them, and the worker that runs the program has a stack of its own to lose.
const SIGNS_MAX: usize = 400;

impl Build<'_> {
    /// Says what is wrong with the program of a step, if it has one.
    pub(super) fn programs(&self, draft: &Draft<'_>) {
        let Some(fields) = draft.fields.as_ref().filter(|_| draft.is("transform")) else { return };
        let Some(spot) = fields.get("expression") else { return };
        let Some(text) = spot.node.as_text().filter(|text| !text.contains("{{")) else { return };
        let engine = fields.get("engine").and_then(|spot| spot.node.as_text().map(str::to_owned));
        let wrong = match engine.as_deref() {
            Some("jsonpath") => path(text),
            Some("jq") | None => program(text),
            Some(_) => None,
        };
        if let Some((at, code, message, hint)) = wrong {
            let written = Written { spot: &spot, text, is_file: false };
            spot.error_at(self.position(&written, at), code, message, hint);
        }
    }
}

fn signs(text: &str) -> usize {
    let words = text.split_whitespace().count();
    text.chars().filter(|c| !c.is_alphanumeric() && !c.is_whitespace()).count() + words
}

/// What is wrong with a JSONPath.
fn path(text: &str) -> Option<Wrong> {
    if signs(text) > SIGNS_MAX {
        return None;
    }
    let error = JsonPath::parse(text).err()?;
    let at = text.char_indices().nth(error.position()).map_or(text.len(), |(at, _)| at);
    let message = format!("this is no JSONPath: {}", error.message());
    Some((at, Code::Malformed, message, None))
}

/// What is wrong with a jq program.
fn program(text: &str) -> Option<Wrong> {
    if signs(text) > SIGNS_MAX {
        return None;
    }
    let allowed = |name: &str| !JQ_REFUSED.contains(&name);
    let defs = jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs());
    let funs = jaq_core::funs().chain(jaq_std::funs()).chain(jaq_json::funs());
    let arena = Arena::default();
    let loader = Loader::new(defs.filter(|def| allowed(def.name)));
    let modules = match loader.load(&arena, File { code: text, path: () }) {
        Ok(modules) => modules,
        Err(errors) => return Some(unread(text, &errors)),
    };
    let compiler = Compiler::<_, data::JustLut<Val>>::default();
    let errors =
        compiler.with_funs(funs.filter(|(name, ..)| allowed(name))).compile(modules).err()?;
    let (name, kind) = errors.into_iter().flat_map(|(_, errors)| errors).next()?;
    let at = load::span(text, name).start;
    if !allowed(name) {
        let message = format!("`{name}` cannot be used: it reaches out of the program");
        return Some((at, Code::Unsupported, message, None));
    }
    let names: Vec<&str> = jaq_std::defs().chain(jaq_core::defs()).map(|def| def.name).collect();
    let message = format!("there is no {} `{name}` in jq", kind.as_str());
    Some((at, Code::UnknownName, message, meant(name, &names)))
}

fn unread(text: &str, errors: &load::Errors<&str, ()>) -> Wrong {
    let first = errors.iter().find_map(|(_, error)| match error {
        load::Error::Io(errors) => errors.first().map(|(part, _)| (*part, "")),
        load::Error::Lex(errors) => errors.first().map(|(wanted, part)| (*part, wanted.as_str())),
        load::Error::Parse(errors) => errors.first().map(|(wanted, part)| (*part, wanted.as_str())),
    });
    let (part, wanted) = first.unwrap_or_default();
    if wanted.is_empty() {
        let message = "a jq program cannot bring in others".to_owned();
        return (0, Code::Unsupported, message, None);
    }
    let at = if part.is_empty() { text.len() } else { load::span(text, part).start };
    (at, Code::Malformed, format!("this is no jq program: expected {wanted}"), None)
}
