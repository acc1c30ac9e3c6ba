//! The filters and tests that expressions may use.

use super::Expr;

/// A filter: its name, and how many arguments it takes at least and at most.
pub(crate) struct Filter {
    pub(crate) name: &'static str,
    pub(crate) least: usize,
    pub(crate) most: usize,
}

const fn filter(name: &'static str, least: usize, most: usize) -> Filter {
    Filter { name, least, most }
}

/// How many arguments a filter without a bound may have.
const MANY: usize = 64;

/// Every filter there is, by name.
pub(crate) const FILTERS: &[Filter] = &[
    filter("abs", 0, 0),
    filter("base64", 0, 0),
    filter("bool", 0, 0),
    filter("capitalize", 0, 0),
    filter("default", 1, 1),
    filter("first", 0, 0),
    filter("float", 0, 0),
    filter("from_json", 0, 0),
    filter("int", 0, 0),
    filter("join", 0, 1),
    filter("last", 0, 0),
    filter("length", 0, 0),
    filter("lines", 0, 0),
    filter("list", 0, 0),
    filter("lower", 0, 0),
    filter("matches", 1, 1),
    filter("max", 0, 0),
    filter("min", 0, 0),
    filter("one_of", 1, MANY),
    filter("replace", 2, 2),
    filter("reverse", 0, 0),
    filter("round", 0, 1),
    filter("slug", 0, 0),
    filter("sort", 0, 0),
    filter("split", 1, 1),
    filter("string", 0, 0),
    filter("sum", 0, 0),
    filter("title", 0, 0),
    filter("tojson", 0, 0),
    filter("trim", 0, 0),
    filter("truncate", 1, 1),
    filter("unique", 0, 0),
    filter("upper", 0, 0),
    filter("urlencode", 0, 0),
];

/// Other names of filters, and the one that a plan has.
const ALIASES: [(&str, &str); 5] = [
    ("count", "length"),
    ("d", "default"),
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
/// or a text of a form that the workflow writes out. `matches` takes the whole text.
pub(super) fn validates(name: &str, arguments: &[Expr]) -> bool {
    matches!(name, "bool" | "float" | "int" | "length" | "matches" | "one_of" | "slug")
        && arguments.iter().all(|argument| matches!(argument, Expr::Literal(_)))
}
