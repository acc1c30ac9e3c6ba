//! What workers answer.

use insta::assert_snapshot;
use serde_json::json;

use super::*;

async fn run(job: Job) -> String {
    shown(Pool::new(settings()).run(&job).await)
}

#[tokio::test]
async fn templates_have_loops_and_conditions() {
    let context =
        json!({"steps": {"fetch": {"items": [{"id": 1, "ok": true}, {"id": 2, "ok": false}]}}});
    let text = "{% for item in steps.fetch.items if item.ok %}{{ loop.index }}: {{ item }}{% else %}none{% endfor %}\n";
    assert_snapshot!(run(template(text, context.clone())).await, @r#""1: {\"id\":1,\"ok\":true}\n""#);
    let text =
        "{% set n = steps.fetch.items | length %}{% if n > 1 %}{{ n ~ '/' ~ true }}{% endif %}";
    assert_snapshot!(run(template(text, context.clone())).await, @r#""2/true""#);
    let text = "{{ steps.fetch.items | selectattr('ok') | map(attribute='id') }}";
    assert_snapshot!(run(template(text, context.clone())).await, @"[1]");
    let text = "{% for x in steps.fetch.gone %}{% endfor %}";
    assert_snapshot!(run(template(text, context.clone())).await, @"EXPR_UNDEFINED: something is not there");
    let text =
        "{% if steps.other.x is defined %}a{% else %}{{ steps.other.x | default('b') }}{% endif %}";
    assert_snapshot!(run(template(text, context)).await, @r#""b""#);
}

#[tokio::test]
async fn an_error_says_in_which_field_it_is() {
    let source = json!({"body": {"text": "{% if true %}\n{{ 1 / 0 }}{% endif %}"}});
    let job = Job::Settings { source, is_expression: false, context: serde_json::Map::new() };
    assert_snapshot!(run(job).await, @"EXPR_FAILED: in `body.text`: line 2: invalid operation: unable to calculate 1 / 0");
}

#[tokio::test]
async fn jq_gives_one_value() {
    let input = json!([{"id": 3}, {"id": 4.5}]);
    assert_snapshot!(run(jq("[.[] | .id]", input.clone())).await, @"[3,4.5]");
    assert_snapshot!(run(jq(".[].id", input.clone())).await, @"EXPR_FAILED: the program gives more than one value; put it in `[ ]` to get a list");
    assert_snapshot!(run(jq("empty", input.clone())).await, @"EXPR_FAILED: the program gives no value; put it in `[ ]` to get a list");
    assert_snapshot!(run(jq(". | error", json!("no"))).await, @r#"EXPR_FAILED: jq: "no""#);
    assert_snapshot!(run(jq(".a +", input.clone())).await, @"EXPR_SYNTAX: the program cannot be read at the end: expected term");
    assert_snapshot!(run(jq(".a as x | 1", input)).await, @"EXPR_SYNTAX: the program cannot be read at byte 6: expected pattern");
}

#[tokio::test]
async fn paths_give_a_value_or_a_list() {
    let path = |path: &str| Job::JsonPath {
        path: path.to_owned(),
        input: json!({"a": [{"b": 1}, {"b": 2}], "c*": 3}),
    };
    assert_snapshot!(run(path("$.a[1].b")).await, @"2");
    assert_snapshot!(run(path("$.a[*].b")).await, @"[1,2]");
    assert_snapshot!(run(path("$['c*']")).await, @"3");
    assert_snapshot!(run(path("$.x")).await, @"EXPR_UNDEFINED: there is nothing at `$.x`");
    assert_snapshot!(run(path("$.a[?@.b > 1]")).await, @r#"[{"b":2}]"#);
    assert!(
        run(path("$.a[")).await.starts_with("EXPR_SYNTAX: at character 4"),
        "{}",
        run(path("$.a[")).await
    );
}

#[tokio::test]
async fn a_pattern_gives_its_first_match() {
    let find = |pattern: &str, text: &str| Job::Regex {
        pattern: pattern.to_owned(),
        text: text.to_owned(),
    };
    assert_snapshot!(run(find(r"(?<key>\w+)=(\d+)", "a=1 b=2")).await, @r#"{"groups":["a","1"],"match":"a=1","named":{"key":"a"}}"#);
    assert_snapshot!(run(find("x", "abc")).await, @"null");
    assert_snapshot!(run(find("(", "abc")).await, @"EXPR_SYNTAX: the pattern cannot be read: error: unclosed group");
}
