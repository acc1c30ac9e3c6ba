//! The filters and tests that expressions may use.

mod date;
mod form;
mod list;
mod number;
mod page;
mod text;

use std::borrow::Cow;

use serde_json::Value;

use super::code::Placed;
use super::meter::Meter;
use super::{Call, Error, ErrorKind, Expr, Fault, FaultKind};

pub use form::takes_anything;
pub(super) use form::{matches, pattern};
pub use page::page;

/// A filter.
#[derive(Debug)]
pub struct Filter {
    /// Its name.
    pub name: &'static str,
    /// How many arguments it takes at least.
    pub least: usize,
    /// How many arguments it takes at most.
    pub most: usize,
    /// What its arguments can be called, in order.
    pub arguments: &'static [&'static str],
    /// Who runs it.
    pub runs: Runs,
}

/// Who runs a filter.
#[derive(Debug)]
pub enum Runs {
    /// The evaluator, in bounded time.
    Here(Body),
    /// A worker process.
    InWorker,
}

/// What a filter does. Without a value in what comes out there was none to be found.
#[derive(Clone, Copy)]
pub struct Body(fn(&Input<'_>) -> Result<Option<Value>, Error>);

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Body")
    }
}

/// What a filter is given.
pub(super) struct Input<'i> {
    pub(super) value: &'i Value,
    /// The arguments in their places, those that are left out among them.
    pub(super) arguments: &'i [Option<Cow<'i, Value>>],
    pub(super) meter: &'i Meter,
}

type Run = fn(&Input<'_>) -> Result<Option<Value>, Error>;

const fn here(
    name: &'static str,
    least: usize,
    arguments: &'static [&'static str],
    run: Run,
) -> Filter {
    Filter { name, least, most: arguments.len(), arguments, runs: Runs::Here(Body(run)) }
}

const fn worker(name: &'static str, least: usize, arguments: &'static [&'static str]) -> Filter {
    Filter { name, least, most: MANY, arguments, runs: Runs::InWorker }
}

/// How many arguments a filter without a bound may have.
const MANY: usize = 64;

/// Every filter there is, by name.
pub const FILTERS: &[Filter] = &[
    here("abs", 0, &[], number::abs),
    here("base64", 0, &[], text::base64),
    worker("batch", 1, &["count", "fill_with"]),
    here("bool", 0, &[], form::bool),
    here("capitalize", 0, &[], text::capitalize),
    here("date", 0, &["form", "offset"], date::date),
    here("default", 1, &["value"], form::given),
    worker("dictsort", 0, &["by", "reverse"]),
    here("first", 0, &[], list::first),
    here("float", 0, &[], number::float),
    here("from_json", 0, &[], text::from_json),
    worker("groupby", 0, &["attribute"]),
    worker("indent", 0, &["width"]),
    here("int", 0, &[], number::int),
    here("items", 0, &[], list::items),
    here("join", 0, &["d"], list::join),
    here("keys", 0, &[], list::keys),
    here("last", 0, &[], list::last),
    here("length", 0, &[], list::length),
    here("lines", 0, &[], text::lines),
    here("list", 0, &[], list::list),
    here("lower", 0, &[], text::lower),
    here("map", 1, &["attribute", "default"], list::map),
    here("matches", 1, &["pattern"], form::matches_text),
    here("max", 0, &[], list::max),
    here("min", 0, &[], list::min),
    Filter { most: MANY, ..here("one_of", 1, &[], form::one_of) },
    here("plus_seconds", 1, &["seconds"], date::plus_seconds),
    here("raw_path", 0, &[], form::given),
    worker("reject", 0, &[]),
    worker("rejectattr", 1, &[]),
    here("replace", 2, &["from", "to"], text::replace),
    here("reverse", 0, &[], list::reverse),
    here("round", 0, &["precision"], number::round),
    worker("select", 0, &[]),
    worker("selectattr", 1, &[]),
    worker("slice", 1, &["count", "fill_with"]),
    here("slug", 0, &[], form::slug),
    here("sort", 0, &["reverse", "attribute"], list::sort),
    here("split", 0, &["separator"], text::split),
    here("string", 0, &[], text::string),
    here("sum", 0, &[], list::sum),
    here("timestamp", 0, &[], date::timestamp),
    here("title", 0, &[], text::title),
    here("tojson", 0, &[], text::to_json),
    here("trim", 0, &[], text::trim),
    here("truncate", 1, &["length"], text::truncate),
    here("unique", 0, &[], list::unique),
    here("untrusted", 0, &[], text::untrusted),
    here("upper", 0, &[], text::upper),
    here("urlencode", 0, &[], text::urlencode),
    here("values", 0, &[], list::values),
];

/// Other names of filters, and the one that a plan has.
const ALIASES: [(&str, &str); 6] = [
    ("count", "length"),
    ("d", "default"),
    ("fromjson", "from_json"),
    ("json", "tojson"),
    ("to_json", "tojson"),
    ("toJson", "tojson"),
];

/// What a value can be asked to be.
pub(super) const TESTS: &[&str] = &[
    "boolean",
    "defined",
    "false",
    "mapping",
    "none",
    "number",
    "sequence",
    "string",
    "true",
    "undefined",
];

/// The name that a plan has for a filter.
pub(super) fn canonical(name: &str) -> &str {
    ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, canonical)| canonical)
}

/// Whether what comes out of a filter is no longer what somebody sent: a number, a count,
/// or a text of a form that the workflow writes out. `matches` takes the whole text, and
/// vouches for nothing when its pattern takes any.
pub(super) fn validates(call: &Call) -> bool {
    let is_open = |argument: &Expr| match argument {
        Expr::Literal(Value::String(pattern)) => takes_anything(pattern),
        _ => true,
    };
    match call.name.as_str() {
        "matches" => !call.parts().any(is_open),
        "bool" | "float" | "int" | "length" | "one_of" | "slug" => {
            call.parts().all(|argument| matches!(argument, Expr::Literal(_)))
        }
        _ => false,
    }
}

/// Whether only a worker process can run a filter with these arguments.
pub(super) fn needs_worker(call: &Call) -> bool {
    let found = FILTERS.iter().find(|filter| filter.name == call.name);
    let runs_here = found.is_some_and(|filter| matches!(filter.runs, Runs::Here(_)));
    // A pattern that a run brings may be a costly one.
    let is_text = |argument: &Expr| matches!(argument, Expr::Literal(Value::String(_)));
    !runs_here || (call.name == "matches" && !call.parts().all(is_text))
}

/// The filter that is called.
pub(super) fn find(call: &Call) -> Result<&'static Filter, Fault> {
    FILTERS.iter().find(|filter| filter.name == call.name).ok_or_else(|| {
        let known = FILTERS.iter().map(|filter| filter.name).collect();
        let kind = FaultKind::Unknown { given: call.name.clone(), known };
        let message = format!("there is no filter `{}`", call.name);
        Fault { at: call.at, kind, message, hint: None }
    })
}

/// The arguments of a filter, each in its place.
pub(super) fn placed<'c>(filter: &Filter, call: &'c Call) -> Result<Placed<'c>, Fault> {
    let fault =
        |message: String| Fault { at: call.at, kind: FaultKind::Arguments, message, hint: None };
    let mut placed: Placed<'c> = call.arguments.iter().map(Some).collect();
    for (name, value) in &call.named {
        let place = filter.arguments.iter().position(|known| known == name);
        let Some(place) = place else {
            if matches!(filter.runs, Runs::InWorker) {
                continue;
            }
            let known = match filter.arguments {
                [] => "it takes none with a name".to_owned(),
                names => format!("there are `{}`", names.join("`, `")),
            };
            let message = format!("the filter `{}` has no argument `{name}`; {known}", filter.name);
            return Err(fault(message));
        };
        placed.resize(placed.len().max(place + 1), None);
        match placed.get_mut(place) {
            Some(slot @ None) => *slot = Some(value),
            _ => return Err(fault(format!("the argument `{name}` is given twice"))),
        }
    }
    let given = placed.iter().flatten().count();
    let wanted = match (filter.least, filter.most) {
        (least, most) if (least..=most).contains(&given) && placed.len() <= most => {
            return Ok(placed);
        }
        (0, 0) => "no argument".to_owned(),
        (1, 1) => "one argument".to_owned(),
        (least, most) => format!("{least} to {most} arguments"),
    };
    Err(fault(format!("the filter `{}` takes {wanted}", filter.name)))
}

/// Says what is wrong with a call of a filter.
pub(super) fn check(call: &Call) -> Result<(), Fault> {
    let arguments = placed(find(call)?, call)?;
    let Some(Some(Expr::Literal(Value::String(text)))) = arguments.first() else { return Ok(()) };
    let checked = match call.name.as_str() {
        "date" => date::check(text),
        "matches" => pattern(text).map(drop),
        _ => Ok(()),
    };
    checked.map_err(|message| Fault {
        at: call.at,
        kind: FaultKind::Malformed,
        message,
        hint: None,
    })
}

/// An argument, if it is given.
pub(super) type Argument<'a> = Option<&'a Expr>;

impl Filter {
    pub(super) fn run(&self, input: &Input<'_>) -> Result<Option<Value>, Error> {
        match &self.runs {
            Runs::Here(Body(run)) => run(input),
            Runs::InWorker => {
                let message = format!("`{}` is for a worker process", self.name);
                Err(Error::new(ErrorKind::Worker, message))
            }
        }
    }

    /// What the filter makes of a value, for a worker whose other filters are not ours.
    /// Arguments stand in their places; without a value there was none to be found.
    pub fn apply(
        &self,
        value: &Value,
        arguments: &[Option<Value>],
    ) -> Result<Option<Value>, Error> {
        let arguments: Vec<Option<Cow<'_, Value>>> =
            arguments.iter().map(|argument| argument.as_ref().map(Cow::Borrowed)).collect();
        self.run(&Input { value, arguments: &arguments, meter: &Meter::new() })
    }
}

impl Input<'_> {
    /// An argument, if it is given.
    fn argument(&self, place: usize) -> Option<&Value> {
        self.arguments.get(place)?.as_deref()
    }

    /// A refusal of the value's type.
    fn refuse<T>(&self, filter: &str, wanted: &str) -> Result<T, Error> {
        let kind = super::text::kind(self.value);
        Err(Error::kind(format!("`{filter}` takes {wanted}, not {kind}")))
    }

    /// The value, which is a text.
    fn text(&self, filter: &str) -> Result<&str, Error> {
        match self.value {
            Value::String(text) => Ok(text),
            _ => self.refuse(filter, "a text"),
        }
    }

    /// An argument that is a text.
    fn text_argument(&self, filter: &str, place: usize) -> Result<Option<&str>, Error> {
        match self.argument(place) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => {
                let kind = super::text::kind(other);
                Err(Error::kind(format!("`{filter}` takes a text as argument, not {kind}")))
            }
        }
    }

    /// The value, which is a list.
    fn list(&self, filter: &str) -> Result<&[Value], Error> {
        match self.value {
            Value::Array(items) => Ok(items),
            _ => self.refuse(filter, "a list"),
        }
    }

    /// A text that was made.
    fn made(&self, text: String) -> Result<Option<Value>, Error> {
        self.meter.take(text.len())?;
        Ok(Some(Value::String(text)))
    }
}
