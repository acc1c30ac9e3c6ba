//! What expressions are worth.

use std::borrow::Cow;
use std::cell::Cell;

use insta::assert_snapshot;
use serde_json::{Map, Value, json};

use crate::expression::*;

fn scope() -> Map<String, Value> {
    let scope = json!({
        "steps": {
            "fetch": {
                "status": 200,
                "json": {"items": [{"id": 7, "name": "Ada"}, {"id": 9, "name": "Bob"}], "none": null},
            },
            "classify-intent": {"verdict": "bug"},
        },
        "event": {"payload": {"text": "Hello, World", "n": 3, "branch": "main", "big": 9_007_199_254_740_993_i64}},
        "env": {"LIMIT": 10, "RATE": 0.5, "ON": true},
    });
    match scope {
        Value::Object(scope) => scope,
        _ => unreachable!(),
    }
}

/// The value of settings, or why they have none.
fn value(settings: Value) -> String {
    let prepared = match prepare(&settings) {
        Ok(prepared) => prepared,
        Err(fault) => return format!("{}: {}", fault.at, fault.message),
    };
    match prepared.evaluate(&scope()) {
        Ok(value) => value.to_string(),
        Err(error) => format!("{}: {error}", error.code()),
    }
}

fn worth(expr: &str) -> String {
    value(json!(format!("{{{{ {expr} }}}}")))
}

#[test]
fn one_expression_keeps_its_type_and_others_are_joined() {
    assert_snapshot!(value(json!("{{ steps.fetch.status }}")), @"200");
    assert_snapshot!(value(json!("is {{ steps.fetch.status }}!")), @r#""is 200!""#);
    assert_snapshot!(value(json!("{{ steps.fetch.json.items }}")), @r#"[{"id":7,"name":"Ada"},{"id":9,"name":"Bob"}]"#);
    assert_snapshot!(value(json!("a {{- env.ON -}} b {{ steps.fetch.json.none }} {{ [1, 'x'] }}")), @r#""atrueb null [1,\"x\"]""#);
    assert_snapshot!(value(json!({"n": ["{{ env.LIMIT + 1 }}", true], "plain": {"a": "${#x} {y}"}})), @r#"{"n":[11,true],"plain":{"a":"${#x} {y}"}}"#);
}

#[test]
fn paths_lead_through_lists_and_objects() {
    assert_snapshot!(worth("steps.fetch.json.items[1].name"), @r#""Bob""#);
    assert_snapshot!(worth("steps.fetch.json.items[-1]['id']"), @"9");
    assert_snapshot!(worth(r#"steps["classify-intent"].verdict"#), @r#""bug""#);
    assert_snapshot!(worth("steps.fetch.json.items | map(attribute='name') | join('+')"), @r#""Ada+Bob""#);
    assert_snapshot!(worth("{'a': [1, {'b': 2}]}.a[1].b"), @"2");
}

#[test]
fn what_is_not_there_is_named() {
    assert_snapshot!(worth("steps.fetch.jsn.items"), @"EXPR_UNDEFINED: there is no `steps.fetch.jsn`: `steps.fetch` has `json`, `status`");
    assert_snapshot!(worth("steps.other.json"), @"EXPR_UNDEFINED: there is no `steps.other`");
    assert_snapshot!(worth("nothing"), @"EXPR_UNDEFINED: there is nothing that `nothing` stands for");
    assert_snapshot!(worth("steps.fetch.json.items[2].id"), @"EXPR_UNDEFINED: there is no `steps.fetch.json.items[2]`: `steps.fetch.json.items` is a list of 2");
    assert_snapshot!(worth("steps.fetch.json.none.x"), @"EXPR_UNDEFINED: there is no `steps.fetch.json.none.x`: `steps.fetch.json.none` is `null`");
    assert_snapshot!(worth("[] | first"), @"EXPR_UNDEFINED: `first` finds nothing in what is empty");
    assert_snapshot!(value(json!({"a": {"b": "{{ env.OF }}"}})), @"EXPR_UNDEFINED: in `a.b`: there is no `env.OF`");
}

#[test]
fn default_stands_in_for_what_is_not_there() {
    assert_snapshot!(worth("steps.other.json.x | default('none')"), @r#""none""#);
    assert_snapshot!(worth("steps.fetch.json.none | default(1)"), @"null");
    assert_snapshot!(worth("[] | first | default(env.LIMIT)"), @"10");
    assert_snapshot!(worth("steps.other is defined or steps.other.x is undefined"), @"true");
    assert_snapshot!(worth("steps.other is none"), @"EXPR_UNDEFINED: there is no `steps.other`");
}

#[test]
fn types_that_do_not_fit_are_refused() {
    assert_snapshot!(worth("event.payload.text < 3"), @"EXPR_TYPE: `<` does not compare a text with a number");
    assert_snapshot!(worth("event.payload.text + 1"), @"EXPR_TYPE: `+` does not take a text and a number");
    assert_snapshot!(worth("none - 1"), @"EXPR_TYPE: `-` does not take null and a number");
    assert_snapshot!(worth("1 in 'a1'"), @"EXPR_TYPE: `in` does not look for a number in a text");
    assert_snapshot!(worth("3 | upper"), @"EXPR_TYPE: `upper` takes a text, not a number");
    assert_snapshot!(worth("[1, 'a'] | sort"), @"EXPR_TYPE: `sort` takes numbers or texts, not a number and a text");
    assert_snapshot!(worth("'abc'[0]"), @"EXPR_TYPE: a text has no items by a number");
}

// case: expr.numbers
#[test]
fn numbers_are_exact_or_refused() {
    assert_snapshot!(worth("event.payload.big + 1"), @"9007199254740994");
    assert_snapshot!(worth("event.payload.big == 9007199254740992.0"), @"false");
    assert_snapshot!(worth("1 / 0"), @"EXPR_DIVISION_BY_ZERO: a number is divided by zero");
    assert_snapshot!(worth("1 % 0.0"), @"EXPR_DIVISION_BY_ZERO: a number is divided by zero");
    assert_snapshot!(worth("18446744073709551615 + 1"), @"EXPR_OVERFLOW: the result is larger than a number can be");
    assert_snapshot!(worth("18446744073709551615 * 18446744073709551615"), @"EXPR_OVERFLOW: the result is larger than a number can be");
    assert_snapshot!(worth("1e308 * 10"), @"EXPR_OVERFLOW: the result is larger than a number can be");
    assert_snapshot!(worth("[-7 // 2, -7 % 2, 7 // -2, 7 % -2, -7.5 // 2, 4 / 2]"), @"[-4,1,-4,-1,-4.0,2.0]");
    assert_snapshot!(worth("true == 1 and 1 == 1.0 and '1' != 1"), @"true");
}

#[test]
fn validators_let_through_what_fits_and_nothing_else() {
    assert_snapshot!(worth("event.payload.branch | one_of('main', 'dev')"), @r#""main""#);
    assert_snapshot!(worth("event.payload.text | one_of('main', 'dev')"), @r#"EXPR_INVALID: `"Hello, World"` is not one of `"main"`, `"dev"`"#);
    assert_snapshot!(worth("event.payload.branch | slug"), @r#""main""#);
    assert_snapshot!(worth("'-rf' | slug"), @r#"EXPR_INVALID: `"-rf"` is no slug: 1 to 128 of a-z, 0-9, `_` and `-`, with a letter or digit first"#);
    assert_snapshot!(worth("event.payload.branch | matches('[a-z]+')"), @r#""main""#);
    assert_snapshot!(worth("'ab\n' | matches('[a-z]+')"), @r#"EXPR_INVALID: `"ab\n"` does not match its pattern"#);
    assert_snapshot!(worth("'x' | matches('a)|(x')"), @"9: the pattern cannot be read: unopened group");
    assert_snapshot!(worth("'12' | int + 1"), @"13");
    assert_snapshot!(worth("'12; rm' | int"), @r#"EXPR_INVALID: `int` takes a whole number, and `"12; rm"` is none"#);
}

#[test]
fn filters_do_what_they_say() {
    assert_snapshot!(worth("event.payload.text | truncate(6)"), @r#""Hello…""#);
    assert_snapshot!(worth("'é1 2' | urlencode ~ ({'a': 'x y', 'b': none} | urlencode)"), @r#""%C3%A91%202a=x%20y""#);
    assert_snapshot!(worth("'b,a,b' | split(',') | unique | sort(reverse=true)"), @r#"["b","a"]"#);
    assert_snapshot!(worth("steps.fetch.json.items | sort(attribute='id', reverse=true) | first"), @r#"{"id":9,"name":"Bob"}"#);
    assert_snapshot!(worth(r#"'{"a": [1]}' | from_json | tojson | length"#), @"9");
    assert_snapshot!(worth("[3, 1.5] | sum | round ~ '/' ~ ([3, 1.5] | max)"), @r#""5.0/3""#);
    assert_snapshot!(worth("{'b': 1, 'a': 2} | keys ~ ({'b': 1} | values) ~ ({'b': 1} | items)"), @r#""[\"a\",\"b\"][1][[\"b\",1]]""#);
    assert_snapshot!(worth("'ada lovelace' | title ~ ('aB' | capitalize) ~ (' x ' | trim | upper)"), @r#""Ada LovelaceAbX""#);
    assert_snapshot!(worth("'a-b' | replace('-', '+') | base64"), @r#""YSti""#);
    assert_snapshot!(worth("1 | upper(2)"), @"7: the filter `upper` takes no argument");
    assert_snapshot!(worth("1 | map(atribute='x')"), @"7: the filter `map` has no argument `atribute`; there are `attribute`, `default`");
}

#[test]
fn nothing_grows_without_bound() {
    let mut scope = scope();
    scope.insert("big".into(), json!(",".repeat(500_000)));
    scope.insert("deep".into(), (0..110).fold(json!(1), |value, _| json!([value])));
    let worth = |text: &str| {
        let error = prepare(&json!(text)).unwrap().evaluate(&scope).unwrap_err();
        format!("{}: {error}", error.code())
    };
    assert_snapshot!(worth("{{ big | replace(',', big) }}"), @"EXPR_TOO_LARGE: evaluating it makes more than 8388608 bytes");
    assert_snapshot!(worth("{{ [big, big, big] }}"), @"EXPR_TOO_LARGE: the value has more than 1048576 bytes");
    assert_snapshot!(worth("{{ big }}{{ big }}{{ big }}"), @"EXPR_TOO_LARGE: the value has more than 1048576 bytes");
    assert_snapshot!(worth("{{ big | split(',') | join(big) }}"), @"EXPR_TOO_LARGE: evaluating it makes more than 8388608 bytes");
    assert_snapshot!(worth("{{ deep }}"), @"EXPR_TOO_LARGE: the value nests deeper than 100 levels");
    let doubled = (0..40).fold("big".to_owned(), |text, _| format!("({text}) ~ 'x'"));
    let fault = prepare(&json!(format!("{{{{ {doubled} }}}}"))).unwrap_err();
    assert_eq!(fault.kind, FaultKind::TooDeep);
    let long = format!("{{{{ 1{} }}}}", " + 1".repeat(100_000));
    assert_eq!(prepare(&json!(long)).unwrap_err().kind, FaultKind::TooDeep);
}

#[test]
fn data_is_never_read_as_a_template() {
    let mut scope = scope();
    scope.insert("event".into(), json!("{{ env.LIMIT }}"));
    let prepared = prepare(&json!("{{ event }} {{ event }}")).unwrap();
    assert_eq!(prepared.evaluate(&scope).unwrap(), json!("{{ env.LIMIT }} {{ env.LIMIT }}"));
}

#[test]
fn what_a_worker_must_do_is_known_beforehand() {
    for text in [
        "{% if env.ON %}x{% endif %}",
        "{{ steps.fetch.json.items | groupby('id') }}",
        "{{ 'a' | matches(event.payload.text) }}",
        "{{ range(3) }}",
    ] {
        let prepared = prepare(&json!({"a": [text]})).unwrap();
        assert!(prepared.needs_worker() && !prepared.is_plain(), "{text}");
        assert_eq!(prepared.evaluate(&scope()).unwrap_err().code(), "EXPR_WORKER", "{text}");
    }
    let prepared = prepare(&json!("{{ steps.fetch.json | selectattr('a') }}{{ env }}")).unwrap();
    let context = Value::Object(prepared.context(&scope()));
    assert_eq!(context["steps"]["fetch"]["status"], json!(200));
    assert_eq!((context["env"]["LIMIT"].clone(), context.get("event")), (json!(10), None));
    assert!(prepare(&json!({"a": ["x {", 1]})).unwrap().is_plain());
}

#[test]
fn looking_up_copies_nothing_but_the_result() {
    struct Counting(Value, Cell<u32>);
    impl Scope for Counting {
        fn root(&self, _: &str) -> Option<Cow<'_, Value>> {
            panic!("a step is asked for by its name")
        }
        fn member(&self, _: &str, name: &str) -> Option<Cow<'_, Value>> {
            self.1.set(self.1.get() + 1);
            self.0.get(name).map(Cow::Borrowed)
        }
    }
    let scope = Counting(json!({"fetch": {"json": vec![0; 400_000]}}), Cell::new(0));
    let prepared =
        prepare_expression("steps.fetch.json | length > 3 and steps.fetch.json[-1] == 0");
    assert_eq!(prepared.unwrap().evaluate(&scope).unwrap(), json!(true));
    assert_eq!(scope.1.get(), 2);
}
