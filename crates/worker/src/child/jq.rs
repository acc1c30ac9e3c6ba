//! Runs jq programs.

use cairn_core::expression::JQ_REFUSED;
use jaq_core::load::{self, Arena, File, Loader};
use jaq_core::{Compiler, Ctx, Vars, data, unwrap_valr};
use jaq_json::{Val, read};
use serde_json::Value;

use crate::error::{Code, Error};

/// The one value that a program gives.
pub(super) fn run(program: &str, input: &Value) -> Result<Value, Error> {
    let allowed = |name: &str| !JQ_REFUSED.contains(&name);
    let defs = jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs());
    let funs = jaq_core::funs().chain(jaq_std::funs()).chain(jaq_json::funs());
    let arena = Arena::default();
    let modules = Loader::new(defs.filter(|def| allowed(def.name)))
        .load(&arena, File { code: program, path: () })
        .map_err(|errors| unread(program, &errors))?;
    let filter = Compiler::<_, data::JustLut<Val>>::default()
        .with_funs(funs.filter(|(name, ..)| allowed(name)))
        .compile(modules)
        .map_err(|errors| {
            let unknown = errors.into_iter().flat_map(|(_, errors)| errors).next();
            let (name, kind) = unknown.map_or(("", "filter"), |(name, kind)| (name, kind.as_str()));
            Error::new(Code::Syntax, format!("the program uses an unknown {kind} `{name}`"))
        })?;
    let input = read::parse_single(input.to_string().as_bytes())
        .map_err(|error| Error::new(Code::Failed, error.to_string()))?;
    let ctx = Ctx::<data::JustLut<Val>>::new(&filter.lut, Vars::new([]));
    let mut outputs = filter.id.run((ctx, input)).map(unwrap_valr);
    let one = |count: &str| {
        let message = format!("the program gives {count}; put it in `[ ]` to get a list");
        Error::new(Code::Failed, message)
    };
    let failed = |error: jaq_core::Error<Val>| Error::new(Code::Failed, format!("jq: {error}"));
    let value = outputs.next().ok_or_else(|| one("no value"))?.map_err(failed)?;
    if outputs.next().transpose().map_err(failed)?.is_some() {
        return Err(one("more than one value"));
    }
    serde_json::from_str(&value.to_string())
        .map_err(|error| Error::new(Code::Failed, format!("what it gives is no JSON: {error}")))
}

fn unread(program: &str, errors: &load::Errors<&str, ()>) -> Error {
    let first = errors.iter().find_map(|(_, error)| match error {
        load::Error::Io(errors) => {
            errors.first().map(|(part, _)| (*part, "no `include` or `import`"))
        }
        load::Error::Lex(errors) => errors.first().map(|(wanted, part)| (*part, wanted.as_str())),
        load::Error::Parse(errors) => errors.first().map(|(wanted, part)| (*part, wanted.as_str())),
    });
    let (part, wanted) = first.unwrap_or_default();
    let place = match part.is_empty() {
        true => "at the end".to_owned(),
        false => format!("at byte {}", load::span(program, part).start),
    };
    Error::new(Code::Syntax, format!("the program cannot be read {place}: expected {wanted}"))
}
