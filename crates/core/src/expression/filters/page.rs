//! What each filter does, for people: a page of the reference.

use super::{FILTERS, Filter};

/// A filter for people: its name, what it gives, an expression with it, and what that gives, if
/// that is the same each time.
struct Told(&'static str, &'static str, &'static str, Option<&'static str>);

/// Every filter, by name.
const TOLD: &[Told] = &[
    Told("abs", "The number without its sign.", "-3 | abs", Some("3")),
    Told("base64", "The text in base64.", "'hi' | base64", Some(r#""aGk=""#)),
    Told(
        "batch",
        "The list in lists of so many items.",
        "[1, 2, 3] | batch(2)",
        Some("[[1, 2], [3]]"),
    ),
    Told(
        "bool",
        "`true` or `false`, of a truth value, those words, 0 or 1; anything else fails the step.",
        "'true' | bool",
        Some("true"),
    ),
    Told(
        "capitalize",
        "The text with its first letter in upper case and the others in lower case.",
        "'hELLO' | capitalize",
        Some(r#""Hello""#),
    ),
    Told(
        "date",
        "An instant in a form: `%Y %m %d %H %M %S`, `%L` (milliseconds), `%F` (`%Y-%m-%d`), `%T` (`%H:%M:%S`), `%a %A %b %B` (names in English), `%s` (seconds since 1970), `%z` (the offset), `%%`. Without a form it is `%Y-%m-%d`. The second argument is the offset from UTC. An instant is a text such as `event.at`, a day, or seconds since 1970.",
        "'2027-03-01T23:30:00Z' | date('%a %d %b %Y, %H:%M', '+07:00')",
        Some(r#""Tue 02 Mar 2027, 06:30""#),
    ),
    Told(
        "default",
        "The value, or the argument if there is none.",
        "event.payload.gone | default('none')",
        Some(r#""none""#),
    ),
    Told(
        "dictsort",
        "The pairs of a map, sorted by name; `by='value'` sorts by value.",
        "{'b': 1, 'a': 2} | dictsort",
        Some(r#"[["a", 2], ["b", 1]]"#),
    ),
    Told(
        "first",
        "The first item of a list, or the first character of a text.",
        "[1, 2] | first",
        Some("1"),
    ),
    Told(
        "float",
        "The number as a decimal; text that is no number fails the step.",
        "'1.5' | float",
        Some("1.5"),
    ),
    Told("from_json", "The value that a JSON text holds.", "'[1]' | from_json", Some("[1]")),
    Told(
        "groupby",
        "The items of a list, grouped by an attribute: pairs of its value and the items.",
        "[{'k': 1}] | groupby('k')",
        Some(r#"[[1, [{"k": 1}]]]"#),
    ),
    Told(
        "indent",
        "The text with every line but the first indented by so many blanks.",
        r#"'a\nb' | indent(2)"#,
        Some(r#""a\n  b""#),
    ),
    Told(
        "int",
        "The whole number; text that is none fails the step. It validates a value.",
        "'7' | int",
        Some("7"),
    ),
    Told("items", "The pairs of a map.", "{'a': 1} | items", Some(r#"[["a", 1]]"#)),
    Told(
        "join",
        "The items of a list in one text, with the argument between them.",
        "[1, 2] | join(', ')",
        Some(r#""1, 2""#),
    ),
    Told("keys", "The names in a map.", "{'a': 1} | keys", Some(r#"["a"]"#)),
    Told("last", "The last item of a list.", "[1, 2] | last", Some("2")),
    Told("length", "How many items, names or characters there are.", "'abc' | length", Some("3")),
    Told("lines", "The lines of a text.", r#"'a\nb' | lines"#, Some(r#"["a", "b"]"#)),
    Told(
        "list",
        "The value as a list: the characters of a text, the names in a map.",
        "'ab' | list",
        Some(r#"["a", "b"]"#),
    ),
    Told("lower", "The text in lower case.", "'AB' | lower", Some(r#""ab""#)),
    Told(
        "map",
        "An attribute of each item; `default` for items that lack it.",
        "[{'id': 1}] | map(attribute='id')",
        Some("[1]"),
    ),
    Told(
        "matches",
        "The text, if all of it fits the regular expression; otherwise the step fails. It validates a value.",
        "'v12' | matches('v[0-9]+')",
        Some(r#""v12""#),
    ),
    Told("max", "The largest item.", "[1, 3, 2] | max", Some("3")),
    Told("min", "The smallest item.", "[1, 3, 2] | min", Some("1")),
    Told(
        "one_of",
        "The value, if it is one of the arguments; otherwise the step fails. It validates a value.",
        "'api' | one_of('api', 'web')",
        Some(r#""api""#),
    ),
    Told(
        "plus_seconds",
        "An instant so many seconds later, or earlier.",
        "'2027-03-01T09:00:00Z' | plus_seconds(-3600)",
        Some(r#""2027-03-01T08:00:00.000Z""#),
    ),
    Told(
        "raw_path",
        "In a URL: the text unchanged, so that it may hold several segments.",
        "'a/b' | raw_path",
        Some(r#""a/b""#),
    ),
    Told(
        "reject",
        "The items that do not pass a test.",
        "[1, 'a'] | reject('number')",
        Some(r#"["a"]"#),
    ),
    Told(
        "rejectattr",
        "The items with an attribute that does not pass a test.",
        "[{'a': 1}, {'a': 'x'}] | rejectattr('a', 'number')",
        Some(r#"[{"a": "x"}]"#),
    ),
    Told(
        "replace",
        "The text with one part replaced by another.",
        "'a-b' | replace('-', '+')",
        Some(r#""a+b""#),
    ),
    Told("reverse", "The list or the text, backwards.", "[1, 2] | reverse", Some("[2, 1]")),
    Told(
        "round",
        "The number, rounded to so many digits behind the point.",
        "1.25 | round(1)",
        Some("1.3"),
    ),
    Told("select", "The items that pass a test.", "[1, 'a'] | select('number')", Some("[1]")),
    Told(
        "selectattr",
        "The items with an attribute that passes a test.",
        "[{'a': 1}, {'a': 'x'}] | selectattr('a', 'number')",
        Some(r#"[{"a": 1}]"#),
    ),
    Told("slice", "The list in so many lists.", "[1, 2, 3] | slice(2)", Some("[[1, 2], [3]]")),
    Told(
        "slug",
        "The text, if it is 1 to 128 of a-z, 0-9, `_` and `-` with a letter or digit first; otherwise the step fails. It validates a value.",
        "'my-app' | slug",
        Some(r#""my-app""#),
    ),
    Told(
        "sort",
        "The list in order; `reverse=true` the other way, `attribute='id'` by an attribute.",
        "[2, 1] | sort",
        Some("[1, 2]"),
    ),
    Told(
        "split",
        "The parts of a text between separators, or its words.",
        "'a,b' | split(',')",
        Some(r#"["a", "b"]"#),
    ),
    Told("string", "The value as text.", "7 | string", Some(r#""7""#)),
    Told("sum", "The sum of a list.", "[1, 2] | sum", Some("3")),
    Told(
        "timestamp",
        "The seconds from 1970 to an instant.",
        "'2027-03-01T09:00:00Z' | timestamp",
        Some("1803891600"),
    ),
    Told(
        "title",
        "The text with each word capitalized.",
        "'a nice day' | title",
        Some(r#""A Nice Day""#),
    ),
    Told("tojson", "The value as JSON text.", "{'a': 1} | tojson", Some(r#""{\"a\":1}""#)),
    Told("trim", "The text without blanks at its ends.", "'  a ' | trim", Some(r#""a""#)),
    Told(
        "truncate",
        "The text, cut to so many characters; the last one is `…` then.",
        "'abcdef' | truncate(3)",
        Some(r#""ab…""#),
    ),
    Told("unique", "The list without repetitions.", "[1, 2, 1] | unique", Some("[1, 2]")),
    Told(
        "untrusted",
        "In a prompt: the text between marks that tell a model that it is data. The compiler adds it where it is needed.",
        "'x' | untrusted",
        None,
    ),
    Told("upper", "The text in upper case.", "'ab' | upper", Some(r#""AB""#)),
    Told(
        "urlencode",
        "The text as a part of a URL. The compiler adds it to data in URLs.",
        "'a b' | urlencode",
        Some(r#""a%20b""#),
    ),
    Told("values", "The values in a map.", "{'a': 1} | values", Some("[1]")),
];

/// The page of the filters, in Markdown.
#[must_use]
pub fn page() -> String {
    let mut page = String::from(
        "# Filters\n\n<!-- Written by `cargo xtask generate`; change the filters instead. -->\n\n\
         A filter stands behind a value in a template or an expression, `{{ steps.fetch.json.items | length }}`, \
         and several are applied from left to right. `{{.Node.x | truncate 80}}` is understood too. \
         There is no clock in a template, so that a run that is repeated gives the same: `event.at` is when \
         the run was asked for, `run.started_at` when it began.\n\n\
         | Filter | Gives | Example |\n| --- | --- | --- |\n",
    );
    let cell = |text: &str| text.replace('|', "\\|");
    for Told(name, what, example, gives) in TOLD {
        let arguments = FILTERS.iter().find(|filter| filter.name == *name).map(arguments);
        let gives = gives.map(|gives| format!(" gives `{}`", cell(gives))).unwrap_or_default();
        page.push_str(&format!(
            "| `{name}{}` | {} | `{}`{gives} |\n",
            arguments.unwrap_or_default(),
            cell(what),
            cell(example),
        ));
    }
    page.push_str(
        "\n`is` asks what a value is: `boolean`, `defined`, `false`, `mapping`, `none`, `number`, `sequence`, \
         `string`, `true`, `undefined`; `is not` the opposite.\n",
    );
    page
}

/// The names of a filter's arguments, in parentheses.
fn arguments(filter: &Filter) -> String {
    match filter.arguments {
        [] => String::new(),
        names => format!("({})", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value};

    use super::*;
    use crate::expression::{Runs, prepare_expression};

    #[test]
    fn every_filter_is_told_and_does_what_is_told() {
        let told: Vec<&str> = TOLD.iter().map(|Told(name, ..)| *name).collect();
        let known: Vec<&str> = FILTERS.iter().map(|filter| filter.name).collect();
        assert_eq!(told, known);
        for (Told(name, _, example, gives), filter) in TOLD.iter().zip(FILTERS) {
            assert!(example.contains(&format!("| {name}")), "{example}");
            let (Some(gives), Runs::Here(_)) = (gives, &filter.runs) else { continue };
            let scope = Map::from_iter([("event".to_owned(), serde_json::json!({"payload": {}}))]);
            let value = prepare_expression(example).unwrap().evaluate(&scope).unwrap();
            assert_eq!(value, serde_json::from_str::<Value>(gives).unwrap(), "{example}");
        }
    }
}
