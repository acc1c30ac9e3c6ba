//! The settings of a step with their templates read, ready to be evaluated many times.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::code::{Code, code};
use super::evaluate::Evaluation;
use super::meter::{Meter, RESULT_MAX, size};
use super::{Error, ErrorKind, Expr, Fault, Piece, Template, expression, template};

/// What a run knows. Looking something up copies nothing that can be lent.
pub trait Scope {
    /// Everything that stands behind a name, such as `event`.
    fn root(&self, name: &str) -> Option<Cow<'_, Value>>;

    /// One thing of what stands behind a name, such as `steps.fetch`.
    fn member(&self, root: &str, name: &str) -> Option<Cow<'_, Value>>;
}

impl Scope for Map<String, Value> {
    fn root(&self, name: &str) -> Option<Cow<'_, Value>> {
        self.get(name).map(Cow::Borrowed)
    }

    fn member(&self, root: &str, name: &str) -> Option<Cow<'_, Value>> {
        self.get(root)?.get(name).map(Cow::Borrowed)
    }
}

/// The settings of a step with their templates read, once per plan.
#[derive(Clone, Debug)]
pub struct Prepared {
    source: Value,
    form: Form,
    is_expression: bool,
    reads: Reads,
}

#[derive(Clone, Debug)]
enum Form {
    /// Nothing of it is evaluated.
    Plain(Value),
    /// One expression, whose value keeps its type.
    Whole(Code),
    /// Text with expressions in it.
    Text(Vec<Bit>),
    List(Vec<Self>),
    Map(Vec<(String, Self)>),
    /// A text that only a worker process evaluates.
    Worker(String),
}

#[derive(Clone, Debug)]
enum Bit {
    Text(String),
    Value(Code),
}

/// Reads the templates of a step's settings, which are in the spelling of plans.
pub fn prepare(settings: &Value) -> Result<Prepared, Fault> {
    let mut reads = BTreeSet::new();
    let form = form(settings, &mut reads)?;
    Ok(Prepared { source: settings.clone(), form, is_expression: false, reads })
}

/// Reads a text that is one expression, with or without braces.
pub fn prepare_expression(text: &str) -> Result<Prepared, Fault> {
    let mut reads = BTreeSet::new();
    let expr = expression(text, &|_| false)?;
    let form = whole(text, &expr, &mut reads)?;
    Ok(Prepared { source: Value::from(text), form, is_expression: true, reads })
}

/// What is looked at: a name, and one thing of what stands behind it.
type Reads = BTreeSet<(String, Option<String>)>;

fn form(settings: &Value, reads: &mut Reads) -> Result<Form, Fault> {
    Ok(match settings {
        Value::String(text) if text.contains("{{") || text.contains("{%") => {
            texts(text, &template(text, &|_| false)?, reads)?
        }
        Value::Array(items) => {
            let forms =
                items.iter().map(|item| form(item, reads)).collect::<Result<Vec<_>, _>>()?;
            match forms.iter().all(Form::is_plain) {
                true => Form::Plain(settings.clone()),
                false => Form::List(forms),
            }
        }
        Value::Object(members) => {
            let mut forms = Vec::new();
            for (name, member) in members {
                forms.push((name.clone(), form(member, reads)?));
            }
            match forms.iter().all(|(_, form)| form.is_plain()) {
                true => Form::Plain(settings.clone()),
                false => Form::Map(forms),
            }
        }
        _ => Form::Plain(settings.clone()),
    })
}

fn whole(text: &str, expr: &Expr, reads: &mut Reads) -> Result<Form, Fault> {
    for reference in expr.references() {
        let member = reference.members.into_iter().next().and_then(|(name, _)| name);
        reads.insert((reference.root, member));
    }
    if expr.needs_worker() {
        return Ok(Form::Worker(text.to_owned()));
    }
    code(expr).map(Form::Whole)
}

fn texts(text: &str, template: &Template, reads: &mut Reads) -> Result<Form, Fault> {
    if let [Piece::Value { value, .. }] = template.pieces.as_slice() {
        return whole(text, value, reads);
    }
    let mut bits = Vec::new();
    for expr in template.values() {
        if let Form::Whole(code) = whole(text, expr, reads)? {
            bits.push(code);
        }
    }
    if template.needs_worker() {
        return Ok(Form::Worker(text.to_owned()));
    }
    let mut codes = bits.into_iter();
    let mut bits: Vec<Bit> = Vec::new();
    let mut trims = false;
    for piece in &template.pieces {
        match piece {
            Piece::Text(text) => {
                let text = if trims { text.trim_start() } else { text };
                bits.push(Bit::Text(text.to_owned()));
                trims = false;
            }
            Piece::Value { trims: (before, behind), .. } => {
                if let (true, Some(Bit::Text(text))) = (*before, bits.last_mut()) {
                    text.truncate(text.trim_end().len());
                }
                bits.extend(codes.next().map(Bit::Value));
                trims = *behind;
            }
            Piece::Tag { .. } => {}
        }
    }
    Ok(Form::Text(bits))
}

impl Prepared {
    /// The settings as the plan has them.
    #[must_use]
    pub const fn source(&self) -> &Value {
        &self.source
    }

    /// Whether the source is one expression, and not settings.
    #[must_use]
    pub const fn is_expression(&self) -> bool {
        self.is_expression
    }

    /// What it looks at: a name, and one thing of what stands behind it.
    pub fn reads(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        self.reads.iter().map(|(root, member)| (root.as_str(), member.as_deref()))
    }

    /// Whether nothing of it is evaluated.
    #[must_use]
    pub const fn is_plain(&self) -> bool {
        self.form.is_plain()
    }

    /// Whether a part of it can be evaluated by a worker process only.
    #[must_use]
    pub fn needs_worker(&self) -> bool {
        self.form.needs_worker()
    }

    /// What it looks at, as an object that can be sent to a worker process.
    #[must_use]
    pub fn context(&self, scope: &dyn Scope) -> Map<String, Value> {
        let mut context = Map::new();
        for (root, member) in &self.reads {
            match member {
                None => {
                    context.extend(scope.root(root).map(|value| (root.clone(), value.into_owned())))
                }
                Some(name) => {
                    let Some(value) = scope.member(root, name) else { continue };
                    let members = context.entry(root).or_insert_with(|| Value::Object(Map::new()));
                    if let Value::Object(members) = members {
                        members.entry(name).or_insert_with(|| value.into_owned());
                    }
                }
            }
        }
        context
    }

    /// The settings with the value of every template in its place.
    ///
    /// It takes bounded time and memory whatever the scope has, and never panics.
    pub fn evaluate(&self, scope: &dyn Scope) -> Result<Value, Error> {
        self.evaluate_with(scope, &mut |_, _| {
            let message = "this is evaluated by a worker process";
            Err(Error::new(ErrorKind::Worker, message))
        })
    }

    /// The same, where a function evaluates what needs a worker: the text, and whether it is
    /// one expression.
    pub fn evaluate_with(
        &self,
        scope: &dyn Scope,
        worker: &mut dyn FnMut(&str, bool) -> Result<Value, Error>,
    ) -> Result<Value, Error> {
        let meter = Meter::new();
        let evaluation = Evaluation { scope, meter: &meter };
        let value = self.form.value(evaluation, &mut |text| worker(text, self.is_expression))?;
        size(&value, RESULT_MAX)?;
        Ok(value)
    }
}

/// What evaluates a text that needs a worker.
type Worker<'w> = &'w mut dyn FnMut(&str) -> Result<Value, Error>;

impl Form {
    const fn is_plain(&self) -> bool {
        matches!(self, Self::Plain(_))
    }

    fn needs_worker(&self) -> bool {
        match self {
            Self::Worker(_) => true,
            Self::List(items) => items.iter().any(Self::needs_worker),
            Self::Map(members) => members.iter().any(|(_, form)| form.needs_worker()),
            Self::Plain(_) | Self::Whole(_) | Self::Text(_) => false,
        }
    }

    fn value(&self, evaluation: Evaluation<'_>, worker: Worker<'_>) -> Result<Value, Error> {
        match self {
            Self::Plain(value) => Ok(value.clone()),
            Self::Whole(code) => match evaluation.value(code)? {
                Cow::Owned(value) => Ok(value),
                Cow::Borrowed(value) => evaluation.meter.copy(value),
            },
            Self::Text(bits) => joined(bits, evaluation).map(Value::String),
            Self::List(items) => {
                let items = items.iter().map(|form| form.value(evaluation, worker));
                Ok(Value::Array(items.collect::<Result<_, _>>()?))
            }
            Self::Map(members) => {
                let mut map = Map::new();
                for (name, form) in members {
                    let value =
                        form.value(evaluation, worker).map_err(|error| within(name, error))?;
                    map.insert(name.clone(), value);
                }
                Ok(Value::Object(map))
            }
            Self::Worker(text) => worker(text),
        }
    }
}

/// An error that says in which field it is.
fn within(name: &str, error: Error) -> Error {
    let Error { kind, message } = error;
    let message = match message.strip_prefix("in `") {
        Some(rest) => format!("in `{name}.{rest}"),
        None => format!("in `{name}`: {message}"),
    };
    Error { kind, message }
}

fn joined(bits: &[Bit], evaluation: Evaluation<'_>) -> Result<String, Error> {
    let mut whole = String::new();
    for bit in bits {
        match bit {
            Bit::Text(text) => whole.push_str(text),
            Bit::Value(code) => {
                let value = evaluation.value(code)?;
                whole.push_str(&evaluation.meter.text(&value)?);
            }
        }
    }
    Ok(whole)
}
