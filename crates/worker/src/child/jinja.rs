//! Evaluates full templates, with the filters and tests that every template has.

use cairn_core::expression::{self, ErrorKind as Kind, FILTERS, Filter, MEMBER, Piece, Runs};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Rest, Serde, ValueKind, ValueOrKwargs, from_args};
use minijinja::{Environment, ErrorKind, UndefinedBehavior, Value as Jinja};
use serde_json::{Map, Value};

use crate::error::{Code, Error};

/// How many instructions a template may take.
const FUEL: u64 = 1_000_000;

/// The value of a text.
pub(super) fn run(
    text: &str,
    is_expression: bool,
    context: &Map<String, Value>,
) -> Result<Value, Error> {
    let environment = environment();
    let context = Jinja::from(Serde(context));
    let whole = if is_expression { Some(expression::expression(text, &|_| false)?) } else { None };
    let template = expression::template(text, &|_| false);
    let single = match (&whole, &template) {
        (Some(expr), _) => Some(expr),
        (None, Ok(template)) => match template.pieces.as_slice() {
            [Piece::Value { value, .. }] => Some(value),
            _ => None,
        },
        (None, Err(_)) => None,
    };
    if let Some(expr) = single {
        let jinja = expr.jinja();
        let value = environment
            .compile_expression(&jinja)
            .and_then(|expr| expr.eval(context))
            .map_err(told)?;
        return json(&value).map_err(told);
    }
    let rendered = environment.render_str(&template?.jinja(), context).map_err(told)?;
    Ok(Value::String(rendered))
}

/// The engine with our rules: strict, and with one set of filters.
pub(super) fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    let mut syntax = SyntaxConfig::builder();
    if let Ok(syntax) = syntax.keep_trailing_newline(true).build() {
        environment.set_syntax(syntax);
    }
    environment.set_fuel(Some(FUEL));
    environment.set_recursion_limit(64);
    environment.set_formatter(|output, _, value| {
        let text = json(value)?;
        output.write_str(&expression::text(&text)).map_err(minijinja::Error::from)
    });
    for filter in FILTERS.iter().filter(|filter| matches!(filter.runs, Runs::Here(_))) {
        // What it does with what is not there is the engine's own matter.
        if filter.name != "default" {
            environment.add_filter(filter.name, |value: &Jinja, rest: Rest<ValueOrKwargs>| {
                apply(filter, value, rest)
            });
        }
    }
    environment.add_filter(MEMBER, |value: &Jinja, name: &Jinja| match value.is_undefined() {
        true => Ok(Jinja::UNDEFINED),
        false => value.get_item(name),
    });
    tests(&mut environment);
    environment
}

fn tests(environment: &mut Environment<'_>) {
    type Holds = fn(&Jinja) -> bool;
    let known: [(&'static str, Holds); 8] = [
        ("boolean", |value| value.kind() == ValueKind::Bool),
        ("false", |value| value.kind() == ValueKind::Bool && !value.is_true()),
        ("mapping", |value| value.kind() == ValueKind::Map),
        ("none", Jinja::is_none),
        ("number", |value| value.kind() == ValueKind::Number),
        ("sequence", |value| matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable)),
        ("string", |value| value.kind() == ValueKind::String),
        ("true", |value| value.kind() == ValueKind::Bool && value.is_true()),
    ];
    for (name, holds) in known {
        environment.add_test(name, move |value: &Jinja| match value.is_undefined() {
            true => Err(minijinja::Error::from(ErrorKind::UndefinedError)),
            false => Ok(holds(value)),
        });
    }
}

/// One of our filters, on the engine's values.
fn apply(
    filter: &Filter,
    value: &Jinja,
    rest: Rest<ValueOrKwargs>,
) -> Result<Jinja, minijinja::Error> {
    let rest = rest.into_values();
    let (given, named): (&[Jinja], Kwargs) = from_args(&rest)?;
    let mut arguments: Vec<Option<Value>> =
        given.iter().map(|value| json(value).map(Some)).collect::<Result<_, _>>()?;
    for name in named.args() {
        let Some(place) = filter.arguments.iter().position(|known| *known == name) else {
            let message = format!("the filter `{}` has no argument `{name}`", filter.name);
            return Err(minijinja::Error::new(ErrorKind::TooManyArguments, message));
        };
        arguments.resize(arguments.len().max(place + 1), None);
        let value = json(&named.peek::<Jinja>(name)?)?;
        arguments.get_mut(place).into_iter().for_each(|slot| *slot = Some(value.clone()));
    }
    match filter.apply(&json(value)?, &arguments) {
        Ok(Some(value)) => Ok(Jinja::from(Serde(value))),
        Ok(None) => Ok(Jinja::UNDEFINED),
        Err(error) => {
            let message = error.message.clone();
            Err(minijinja::Error::new(ErrorKind::InvalidOperation, message).with_source(error))
        }
    }
}

/// A value of the engine as JSON. What is not there has none, and what is no number neither.
fn json(value: &Jinja) -> Result<Value, minijinja::Error> {
    let failed = |kind: Kind, message: &str| {
        let source = expression::Error::new(kind, message);
        minijinja::Error::new(ErrorKind::InvalidOperation, message.to_owned()).with_source(source)
    };
    if value.is_undefined() {
        return Err(minijinja::Error::from(ErrorKind::UndefinedError));
    }
    let is_number = value.kind() == ValueKind::Number;
    if is_number && f64::try_from(value.clone()).is_ok_and(|number| !number.is_finite()) {
        return Err(failed(Kind::Overflow, "the result is larger than a number can be"));
    }
    serde_json::to_value(value).map_err(|error| match is_number {
        true => failed(Kind::Overflow, "the result is larger than a number can be"),
        false => failed(Kind::Type, &format!("the value is no JSON: {error}")),
    })
}

/// A failure of the engine as it is told.
fn told(error: minijinja::Error) -> Error {
    let line = error.line().filter(|line| *line > 1);
    let place = line.map_or_else(String::new, |line| format!("line {line}: "));
    let source = std::error::Error::source(&error);
    if let Some(own) = source.and_then(|source| source.downcast_ref::<expression::Error>()) {
        return Error::new(Code::Value(own.kind), format!("{place}{}", own.message));
    }
    let detail = error.detail().unwrap_or_default();
    let (code, message) = match error.kind() {
        ErrorKind::OutOfFuel => {
            (Code::Timeout, format!("the template takes more than {FUEL} steps"))
        }
        ErrorKind::SyntaxError => (Code::Syntax, format!("the template cannot be read: {detail}")),
        ErrorKind::UndefinedError => {
            (Code::Value(Kind::Undefined), format!("something is not there {detail}"))
        }
        kind => (Code::Failed, format!("{kind}: {detail}")),
    };
    Error::new(code, format!("{place}{}", message.trim_end()))
}

#[cfg(test)]
mod tests;
